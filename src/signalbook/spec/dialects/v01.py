"""The CNCF Message and Event Catalog 0.1 (January 2022): groups of one format, definitions with numbered versions.

Rule: a definition's `definition` has a section for each part of a message; its format's rows say what that part is in
1.0. A format that 0.1 does not define has no rows: its `definition` is kept whole, as the options of a protocol of
that name.
"""

from __future__ import annotations

from signalbook.spec.dialects.dialect import AMQP_PROPERTIES, Dialect, Format, Row, Sign, Table

__all__ = ["GENERIC", "UNTYPED", "V01"]

# 0.1 has no format for a message that is described by its payload alone.
GENERIC = "Generic"

# Properties whose type 1.0 fixes, so that a template there is not declared as one.
UNTYPED = frozenset({"specversion", "time", "absolute-expiry-time", "creation-time", "group-sequence"})

_ASSIGNED = frozenset(
    {"self", "xid", "shortself", "epoch", "isdefault", "ancestorid", "metaurl", "versionsurl", "versionscount"}
    | {"messagesurl", "messagescount", "specversion"}
)


_AMQP = (
    Row("definition/header/durable", "protocoloptions/header/durable", "boolean"),
    Row("definition/header/priority", "protocoloptions/header/priority", "integer"),
    Row("definition/header/ttl", "protocoloptions/header/ttl", "integer"),
    Row("definition/deliveryannotations", "protocoloptions/delivery-annotations", "named_templates"),
    Row("definition/messageannotations", "protocoloptions/message-annotations", "named_templates"),
    *(
        Row(f"definition/properties/{name.replace('-', '')}", f"protocoloptions/properties/{name}", "template")
        for name in AMQP_PROPERTIES
    ),
    Row("definition/applicationproperties", "protocoloptions/application-properties", "named_templates"),
    Row("definition/applicationdata/dataschema", "", "dataschema"),
    Row("definition/applicationdata/amqpencoding", "labels/0.1.amqpencoding", "choice"),
    Row("definition/footer", "protocoloptions/footer", "named_templates"),
    # What of an AMQP header depends on the state of a node, 0.1 leaves out.
    Row("labels/1.0.header", "protocoloptions/header", "json"),
)

_MQTT = (
    Row("definition/publish/mqttversion", "", "mqttversion"),
    Row("definition/publish/qos", "protocoloptions/qos", "integer"),
    Row("definition/publish/retain", "protocoloptions/retain", "boolean"),
    Row("definition/publish/topicname", "protocoloptions/topic_name", "plain"),
    Row("definition/publish/payloadformat", "protocoloptions/payload_format_indicator", "integer"),
    Row("definition/publish/expiryinterval", "protocoloptions/message_expiry_interval", "integer"),
    Row("definition/publish/responsetopic", "protocoloptions/response_topic", "plain"),
    Row("definition/publish/correlationdata", "protocoloptions/correlation_data", "plain"),
    Row("definition/publish/contenttype", "protocoloptions/content_type", "plain"),
    Row("labels/1.0.user_properties", "protocoloptions/user_properties", "json", only="in"),
    Row("definition/userproperty", "protocoloptions/user_properties", "listed_templates"),
    Row("definition/payload/dataschema", "", "dataschema"),
)

_NATS = (
    Row("definition/pub/subject", "protocoloptions/subject", "plain"),
    Row("definition/pub/replyto", "protocoloptions/reply", "plain"),
    Row("definition/payload/dataschema", "", "dataschema"),
    Row("labels/1.0.headers", "protocoloptions/headers", "json"),
)

# Only of 1.0: held in labels where 0.1 is written.
_HELD = (
    Row("labels/1.0.name", "name", "text"),
    Row("labels/1.0.documentation", "documentation", "text"),
    Row("labels/1.0.icon", "icon", "text"),
)

V01 = Dialect(
    name="0.1",
    label="0.1",
    title="CNCF Message and Event Catalog 0.1 (January 2022)",
    prefix="0.1",
    written=True,
    form="catalog",
    tables={
        "messagegroup": Table(
            (
                Row("documentation", "documentationtext"),
                *_HELD,
                Row("labels/1.0.deprecated", "deprecated", "json"),
                Row("createdtimeutc", "createdat"),
                Row("updatedtimeutc", "modifiedat"),
            ),
            _ASSIGNED,
        ),
        "message": Table(
            (
                Row("authority", "authority", "filled"),
                Row("documentation", "documentationtext"),
                *_HELD,
                Row("labels/1.0.basemessage", "basemessage", "text"),
                Row("labels/1.0.envelopeoptions", "envelopeoptions", "json"),
                Row("labels/1.0.dataschemaxid", "dataschemaxid", "text"),
                Row("labels/1.0.meta", "meta", "json"),
                Row("labels/1.0.datacontenttype", "datacontenttype", "datacontenttype"),
                Row("labels/1.0.versionid", "versionid", "text", only="in"),
                Row("version", "versionid", "number"),
                Row("createdtimeutc", "createdat"),
            ),
            _ASSIGNED | {"modifiedat"},
        ),
    },
    formats={
        "CloudEvents": Format(
            (
                Row("definition/attributes/dataschema", "", "dataschema"),
                Row("definition/attributes", "envelopemetadata", "attributes"),
                Row("labels/1.0.protocol", "protocol", "text"),
                Row("labels/1.0.protocoloptions", "protocoloptions", "json"),
            ),
            envelope="CloudEvents/1.0",
        ),
        "AMQP": Format(_AMQP, protocol="AMQP/1.0"),
        "MQTT": Format(_MQTT, protocol="MQTT/5.0"),
        "NATS": Format(_NATS, protocol="NATS"),
    },
    schematypes={"Avro": "Avro/1.11.0", "JSON": "JsonSchema/draft-07", "Protobuf": "Protobuf/3", "XSD": "XSD/1.0"},
    signs=(
        Sign("registry", "definitions", list),
        Sign("registry", "definition", dict),
        Sign("registry", "versions", list),
        Sign("message", "definition", dict),
    ),
)
