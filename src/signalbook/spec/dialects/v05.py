"""0.5-wip (xregistry/spec 05aafd4, September 2024), and the discovery documents of CloudEvents before it (2023).

Rule: names with an underscore in AMQP and MQTT are those of the model file of 0.5, names with a hyphen those of its
text; both are read, the text's are written.
"""

from __future__ import annotations

from dataclasses import replace

from signalbook.spec.dialects.dialect import AMQP_PROPERTIES, Dialect, Row, Sign, Table

__all__ = ["DISCOVERY", "V05"]

# What 1.0 has and 0.5 has not, and a server gives: it is left out where 0.5 is written.
_ASSIGNED = frozenset({"xid", "shortself", "ancestorid", "metaurl"})

_AMQP_SECTIONS = ("application-properties", "message-annotations", "delivery-annotations", "footer")
_AMQP = (
    *(
        Row(f"properties/{name.replace('-', '_')}", f"properties/{name}", "definition", only="in")
        for name in AMQP_PROPERTIES
        if "-" in name
    ),
    Row("properties", "properties", "definitions"),
    *(Row(name.replace("-", "_"), name, "keyed", only="in") for name in _AMQP_SECTIONS if "-" in name),
    *(Row(name, name, "keyed") for name in _AMQP_SECTIONS),
    Row("header/durable", "header/durable", "boolean"),
    Row("header/priority", "header/priority", "integer"),
    Row("header/ttl", "header/ttl", "integer"),
    Row("header/first-acquirer", "header/first-acquirer", "boolean"),
    Row("header/first_acquirer", "header/first-acquirer", "boolean", only="in"),
    Row("header/delivery-count", "header/delivery-count", "integer"),
    Row("header/delivery_count", "header/delivery-count", "integer", only="in"),
)

_MQTT_FORMS = {
    "qos": "integer",
    "retain": "boolean",
    "topic-name": "plain",
    "message-expiry-interval": "integer",
    "response-topic": "plain",
    "correlation-data": "plain",
    "content-type": "plain",
    "user-properties": "user_properties",
}
_MQTT = (
    *(Row(name, name.replace("-", "_"), form) for name, form in _MQTT_FORMS.items()),
    *(Row(name.replace("-", "_"), name.replace("-", "_"), form, only="in") for name, form in _MQTT_FORMS.items()),
    Row("payload-format", "payload_format_indicator", "integer"),
    Row("payload_format", "payload_format_indicator", "integer", only="in"),
)

_KAFKA = (
    Row("topic", "topic", "plain"),
    Row("partition", "partition", "integer"),
    Row("key", "", "key"),
    Row("headers", "headers", "keyed"),
)

_HTTP = (
    Row("headers", "headers", "definitions"),
    Row("query", "query", "query"),
    Row("path", "path", "bare"),
    Row("method", "method", "bare"),
    Row("status", "status", "bare"),
)

_ORIGIN = Row("origin", "labels/0.5.origin", "text")
_RESOURCE = (
    Row("xref", "meta/xref", "xref"),
    Row("xref", "labels/0.5.xref", "text", only="out"),
    Row("readonly", "meta/readonly"),
    Row("defaultversionsticky", "meta/defaultversionsticky"),
    Row("defaultversionid", "meta/defaultversionid"),
    Row("defaultversionurl", "meta/defaultversionurl"),
    _ORIGIN,
    Row("labels/1.0.deprecated", "meta/deprecated", "json"),
    Row("labels/1.0.meta", "meta", "json"),
)

_MESSAGE = Table(
    (
        Row("id", "messageid"),
        Row("uri", "meta/xref", "xref", only="in"),
        # A message of 1.0 has one version, so none that the default could stick to.
        Row("defaultversionsticky", "labels/0.5.defaultversionsticky", "sticky"),
        *(row for row in _RESOURCE if row.there != "defaultversionsticky"),
        Row("basemessageurl", "basemessage", "pointer"),
        Row("format", "envelope", "envelope"),
        Row("binding", "protocol", "protocol"),
        Row("message/timestamp", "labels/0.5.timestamp", "json"),
        Row("labels/1.0.query", "protocoloptions/query", "json", only="in"),
        Row("message", "protocoloptions", "options"),
        Row("labels/1.0.datacontenttype", "datacontenttype", "datacontenttype"),
        Row("metadata", "envelopemetadata", "metadata"),
        Row("schemaformat", "dataschemaformat"),
        Row("schemaobject", "dataschema", only="in"),
        Row("schema", "dataschema"),
        Row("schemaurl", "dataschemauri", "pointer"),
        Row("labels/1.0.envelopeoptions", "envelopeoptions", "json"),
        Row("labels/1.0.dataschemaxid", "dataschemaxid", "text"),
    ),
    _ASSIGNED,
)

_ENDPOINT = Table(
    (
        Row("id", "endpointid"),
        _ORIGIN,
        Row("labels/1.0.usage", "usage", "json", only="in"),
        Row("usage", "usage", "usage"),
        Row("format", "envelope", "envelope"),
        Row("config/protocol", "protocol", "endpoint_protocol"),
        Row("binding", "", "binding", only="in"),
        Row("config/endpoints", "protocoloptions/endpoints", "addresses"),
        Row("config/authorization", "protocoloptions/authorization", "authorization"),
        Row("config/deployed", "protocoloptions/deployed"),
        Row("config/options", "protocoloptions"),
        Row("config", "labels/0.5.config", "json"),
        Row("messagegroups", "messagegroups", "pointers"),
        Row("deprecated", "deprecated", "deprecation"),
        Row("labels/1.0.envelopeoptions", "envelopeoptions", "json"),
    ),
    _ASSIGNED,
)

# What the text says of the type of a member; what is not listed may be anything.
_TEXTS = dict.fromkeys(("id", "name", "description", "documentation", "origin"), str)
_ENTITY: dict[str, type | tuple[type, ...]] = {**_TEXTS, "labels": dict}
_RESOURCE_SHAPE: dict[str, type | tuple[type, ...]] = {
    **_ENTITY, "xref": str, "readonly": bool, "defaultversionid": str, "defaultversionsticky": bool, "format": str,
}  # fmt: skip
_SHAPES: dict[str, dict[str, type | tuple[type, ...]]] = {
    "registry": {"id": str, "specversion": str, "name": str, "description": str, "labels": dict},
    "messagegroup": {**_ENTITY, "format": str, "binding": str},
    "message": {
        **_RESOURCE_SHAPE, "binding": str, "basemessageurl": str, "metadata": dict, "message": dict,
        "schemaformat": str, "schemaurl": str, "schema": (str, dict, list),
    },
    "schemagroup": _ENTITY,
    "schema": _RESOURCE_SHAPE,
    "endpoint": {**_ENTITY, "usage": (str, list), "format": str, "binding": str, "config": dict, "channel": str},
}  # fmt: skip

V05 = Dialect(
    name="0.5-wip",
    label="0.5-wip",
    title="xRegistry 0.5-wip (September 2024)",
    prefix="0.5",
    written=True,
    tables={
        "registry": Table(
            (
                Row("id", "registryid"),
                Row("model", "", "unconverted", only="in"),
                Row("", "model", "unconverted", only="out"),
                Row("", "modelsource", "unconverted", only="out"),
                Row("", "capabilities", "unconverted", only="out"),
            ),
            _ASSIGNED,
        ),
        "messagegroup": Table(
            (
                Row("id", "messagegroupid"),
                _ORIGIN,
                Row("format", "envelope", "envelope"),
                Row("binding", "protocol", "protocol"),
                Row("labels/1.0.deprecated", "deprecated", "json"),
            ),
            _ASSIGNED,
        ),
        "message": _MESSAGE,
        "schemagroup": Table(
            (Row("id", "schemagroupid"), _ORIGIN, Row("labels/1.0.deprecated", "deprecated", "json")), _ASSIGNED
        ),
        "schema": Table(
            (Row("id", "schemaid"), *_RESOURCE, Row("schemaobject", "schema", only="in")), _ASSIGNED
        ),
        "endpoint": _ENDPOINT,
    },
    options={
        "AMQP/1.0": _AMQP, "MQTT/3.1.1": _MQTT, "MQTT/5.0": _MQTT, "KAFKA": _KAFKA, "HTTP": _HTTP,
    },
    protocols={"KAFKA": "Kafka", "HTTP": "HTTP/1.1"},
    types={"var": "any", "urireference": "uri", "datetime": "timestamp"},
    types_out={"any": "var"},
    now="01-01-0000T00:00:00Z",
    overrides=True,
    shapes=_SHAPES,
    signs=(
        Sign("message", "binding"),
        Sign("message", "metadata", dict),
        Sign("message", "schemaformat"),
        Sign("message", "message", dict),
        Sign("resource", "origin"),
        Sign("property", "type", str, "var"),
        Sign("group", "binding"),
        Sign("group", "config", dict),
        Sign("group", "origin"),
        Sign("group", "id"),
        Sign("resource", "id"),
        Sign("registry", "id"),
    ),
)  # fmt: skip

DISCOVERY = replace(
    V05,
    name="discovery",
    label="",
    title="CloudEvents discovery documents before 0.5 (2023)",
    prefix="discovery",
    written=False,
    collections={"definitionGroups": "messagegroups", "schemaGroups": "schemagroups", "definitions": "messages"},
    tables={
        **V05.tables,
        "message": Table(
            (
                Row("schemaUrl", "dataschemauri", "pointer", only="in"),
                Row("schemaFormat", "dataschemaformat", only="in"),
                *_MESSAGE.rows,
            )
        ),
        "endpoint": Table((Row("definitionGroups", "messagegroups", "pointers", only="in"), *_ENDPOINT.rows)),
        "schemaversion": Table(
            (Row("id", "versionid"), Row("versionId", "versionid", only="in"), Row("type", "", "marker"))
        ),
    },
    signs=(
        Sign("registry", "definitionGroups"),
        Sign("registry", "schemaGroups"),
        Sign("group", "definitionGroups"),
        Sign("group", "definitions", dict),
    ),
)
