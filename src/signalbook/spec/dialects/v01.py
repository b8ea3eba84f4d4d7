"""The CNCF Message and Event Catalog 0.1 (January 2022): groups of one format, definitions with numbered versions.

Rule: a definition's `definition` has a section for each part of a message; its format's rows say what that part is in
1.0. A format that 0.1 does not define has no rows: its `definition` is kept whole, as the options of a protocol of
that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from signalbook.spec.dialects.dialect import AMQP_PROPERTIES, Dialect, DialectRow, DialectTable, Format01, Sign

__all__ = ["GENERIC", "METASCHEMAS", "UNTYPED", "V01", "Field", "Metaschema", "Section01"]

# The metaschemas of 0.1, section 3: the sections of a `definition` by format, and the fields of each.
#
# Rule: a section with names has these fields and no others; one with a pattern has any field whose name matches.


Field = Literal[
    "template", "boolean", "integer", "ubyte", "uint", "timestamp", "binary", "uri", "media", "topic",
    "subject", "count", "dataschema", "choice",
]  # fmt: skip

# CloudEvents 1.0 "Naming Conventions"; AMQP 1.0 section 1.6.18 `symbol`: ASCII; MQTT 5.0 section 1.5.4: any UTF-8.
_CLOUDEVENTS_NAME = r"(?!data$)[a-z0-9]+"
_CLOUDEVENTS_KINDS: Mapping[str, Field] = {
    "source": "uri", "time": "timestamp", "datacontenttype": "media", "dataschema": "dataschema",
}  # fmt: skip
_SYMBOL = r"[\x21-\x7e]+"
_ANY = r"[^\x00]+"


@dataclass(frozen=True, slots=True)
class Section01:
    """One section: its fields by name, or the pattern of their names, some of which have a kind of their own.

    `choices` limits the value of some. A field is a template, or of the kind `choice` one of its choices itself. Where
    the text gives fields their types and does not ask for templates (3.4.1, 3.5.1), a field `may_be_text` as well.
    """

    fields: Mapping[str, Field] | None = None
    pattern: str = ""
    choices: Mapping[str, tuple[str, ...]] | None = None
    kinds: Mapping[str, Field] | None = None
    may_be_text: bool = False


@dataclass(frozen=True, slots=True)
class Metaschema:
    """The sections of a format, and where its `relatedvia` may point: fixed places, or any field of some sections.

    Where `via_attribute` is set, it is the bare name of a field of that section. `modern` are the fields that only the
    newer of two protocol versions has.
    """

    sections: Mapping[str, Section01]
    via: tuple[str, ...] = ()
    via_sections: tuple[str, ...] = ()
    via_attribute: str = ""
    modern: frozenset[str] = frozenset()


_AMQP_KINDS: Mapping[str, Field] = {
    "content-type": "media", "user-id": "binary",
    "absolute-expiry-time": "timestamp", "creation-time": "timestamp", "group-sequence": "count",
}  # fmt: skip
_PAYLOAD = Section01({"dataschema": "dataschema"})
_MODERN = ("payloadformat", "expiryinterval", "responsetopic", "correlationdata", "contenttype")

METASCHEMAS: Mapping[str, Metaschema] = {
    "CloudEvents": Metaschema(
        {
            "attributes": Section01(
                pattern=_CLOUDEVENTS_NAME, kinds=_CLOUDEVENTS_KINDS, choices={"specversion": ("1.0",)}
            ),
        },
        via_attribute="attributes",
    ),
    "AMQP": Metaschema(
        {
            "header": Section01({"durable": "boolean", "priority": "ubyte", "ttl": "uint"}),
            "deliveryannotations": Section01(pattern=_SYMBOL),
            "messageannotations": Section01(pattern=_SYMBOL),
            "properties": Section01(
                {name.replace("-", ""): _AMQP_KINDS.get(name, "template") for name in AMQP_PROPERTIES}
            ),
            "applicationproperties": Section01(pattern=_SYMBOL),
            "applicationdata": Section01(
                {"dataschema": "dataschema", "amqpencoding": "choice"},
                choices={"amqpencoding": ("Data", "Value", "Sequence")},
            ),
            "footer": Section01(pattern=_SYMBOL),
        },
        via=("properties.correlationid", "properties.groupid"),
        via_sections=("applicationproperties",),
    ),
    "MQTT": Metaschema(
        {
            "publish": Section01(
                {
                    "mqttversion": "choice",
                    "qos": "integer",
                    "retain": "boolean",
                    "topicname": "topic",
                    "payloadformat": "integer",
                    "expiryinterval": "uint",
                    "responsetopic": "topic",
                    "correlationdata": "binary",
                    "contenttype": "media",
                },
                choices={"mqttversion": ("3.1.1", "5.0"), "qos": ("0", "1", "2"), "payloadformat": ("0", "1")},
                may_be_text=True,
            ),
            "userproperty": Section01(pattern=_ANY),
            "payload": _PAYLOAD,
        },
        via=("publish.correlationdata",),
        via_sections=("userproperty",),
        modern=frozenset(_MODERN),
    ),
    "NATS": Metaschema(
        {"pub": Section01({"subject": "subject", "replyto": "subject"}, may_be_text=True), "payload": _PAYLOAD}
    ),
}


# 0.1 has no format for a message that is described by its payload alone.
GENERIC = "Generic"

# Properties whose type 1.0 fixes, so that a template there is not declared as one.
UNTYPED = frozenset({"specversion", "time", "absolute-expiry-time", "creation-time", "group-sequence"})

_ASSIGNED = frozenset(
    {"self", "xid", "shortself", "epoch", "isdefault", "ancestorid", "metaurl", "versionsurl", "versionscount"}
    | {"messagesurl", "messagescount"}
)


_AMQP = (
    DialectRow("definition/header/durable", "protocoloptions/header/durable", "boolean"),
    DialectRow("definition/header/priority", "protocoloptions/header/priority", "integer"),
    DialectRow("definition/header/ttl", "protocoloptions/header/ttl", "integer"),
    DialectRow("definition/deliveryannotations", "protocoloptions/delivery-annotations", "named_templates"),
    DialectRow("definition/messageannotations", "protocoloptions/message-annotations", "named_templates"),
    *(
        DialectRow(f"definition/properties/{name.replace('-', '')}", f"protocoloptions/properties/{name}", "template")
        for name in AMQP_PROPERTIES
    ),
    DialectRow("definition/applicationproperties", "protocoloptions/application-properties", "named_templates"),
    DialectRow("definition/applicationdata/dataschema", "", "dataschema"),
    DialectRow("definition/applicationdata/amqpencoding", "labels/0.1.amqpencoding", "choice"),
    DialectRow("definition/footer", "protocoloptions/footer", "named_templates"),
    # What of an AMQP header depends on the state of a node, 0.1 leaves out.
    DialectRow("labels/1.0.header", "protocoloptions/header", "json"),
)

_MQTT = (
    DialectRow("definition/publish/mqttversion", "", "mqttversion"),
    DialectRow("definition/publish/qos", "protocoloptions/qos", "integer"),
    DialectRow("definition/publish/retain", "protocoloptions/retain", "boolean"),
    DialectRow("definition/publish/topicname", "protocoloptions/topic_name", "plain"),
    DialectRow("definition/publish/payloadformat", "protocoloptions/payload_format_indicator", "integer"),
    DialectRow("definition/publish/expiryinterval", "protocoloptions/message_expiry_interval", "integer"),
    DialectRow("definition/publish/responsetopic", "protocoloptions/response_topic", "plain"),
    DialectRow("definition/publish/correlationdata", "protocoloptions/correlation_data", "plain"),
    DialectRow("definition/publish/contenttype", "protocoloptions/content_type", "plain"),
    DialectRow("labels/1.0.user_properties", "protocoloptions/user_properties", "json", only="in"),
    DialectRow("definition/userproperty", "protocoloptions/user_properties", "listed_templates"),
    DialectRow("definition/payload/dataschema", "", "dataschema"),
)

_NATS = (
    DialectRow("definition/pub/subject", "protocoloptions/subject", "plain"),
    DialectRow("definition/pub/replyto", "protocoloptions/reply", "plain"),
    DialectRow("definition/payload/dataschema", "", "dataschema"),
    DialectRow("labels/1.0.headers", "protocoloptions/headers", "json"),
)

# Only of 1.0: held in labels where 0.1 is written.
_HELD = (
    DialectRow("labels/1.0.name", "name", "text"),
    DialectRow("labels/1.0.documentation", "documentation", "text"),
    DialectRow("labels/1.0.icon", "icon", "text"),
)

V01 = Dialect(
    name="0.1",
    label="0.1",
    title="CNCF Message and Event Catalog 0.1 (January 2022)",
    prefix="0.1",
    written=True,
    form="catalog",
    members=frozenset({"id", "format", "specversion", "tags", "definition", "definitions", "versions"}),
    tables={
        "messagegroup": DialectTable(
            (
                DialectRow("documentation", "documentationtext"),
                *_HELD,
                DialectRow("labels/1.0.deprecated", "deprecated", "json"),
                DialectRow("createdtimeutc", "createdat"),
                DialectRow("updatedtimeutc", "modifiedat"),
            ),
            _ASSIGNED,
        ),
        "message": DialectTable(
            (
                DialectRow("authority", "authority", "filled"),
                DialectRow("documentation", "documentationtext"),
                *_HELD,
                DialectRow("labels/1.0.basemessage", "basemessage", "text"),
                DialectRow("labels/1.0.envelope", "envelope", "text"),
                DialectRow("labels/1.0.envelopeoptions", "envelopeoptions", "json"),
                DialectRow("labels/1.0.dataschemaxid", "dataschemaxid", "text"),
                DialectRow("labels/1.0.meta", "meta", "json"),
                DialectRow("labels/1.0.datacontenttype", "datacontenttype", "datacontenttype"),
                DialectRow("labels/1.0.versionid", "versionid", "text", only="in"),
                DialectRow("version", "versionid", "number"),
                DialectRow("createdtimeutc", "createdat"),
            ),
            _ASSIGNED | {"modifiedat"},
        ),
    },
    formats={
        "CloudEvents": Format01(
            (
                DialectRow("definition/attributes/dataschema", "", "dataschema"),
                DialectRow("definition/attributes", "envelopemetadata", "attributes"),
                DialectRow("labels/1.0.protocol", "protocol", "text"),
                DialectRow("labels/1.0.protocoloptions", "protocoloptions", "json"),
            ),
            envelope="CloudEvents/1.0",
        ),
        "AMQP": Format01(_AMQP, protocol="AMQP/1.0"),
        "MQTT": Format01(_MQTT, protocol="MQTT/5.0"),
        "NATS": Format01(_NATS, protocol="NATS"),
    },
    schematypes={"Avro": "Avro/1.11.0", "JSON": "JsonSchema/draft-07", "Protobuf": "Protobuf/3", "XSD": "XSD/1.0"},
    signs=(
        Sign("registry", "definitions", list),
        Sign("registry", "definition", dict),
        Sign("registry", "versions", list),
        Sign("message", "definition", dict),
    ),
)
