"""0.5-wip (xregistry/spec 05aafd4, September 2024), and the discovery documents of CloudEvents before it (2023).

Rule: names with an underscore in AMQP and MQTT are those of the model file of 0.5, names with a hyphen those of its
text; both are read, the text's are written.
"""

from __future__ import annotations

from dataclasses import replace

from signalbook.spec.dialects.dialect import AMQP_PROPERTIES, Dialect, DialectRow, DialectTable, Sign

__all__ = ["DISCOVERY", "V05"]

# What 1.0 has and 0.5 has not, and a server gives: it is left out where 0.5 is written.
_ASSIGNED = frozenset({"xid", "shortself", "ancestorid", "metaurl"})

_AMQP_SECTIONS = ("application-properties", "message-annotations", "delivery-annotations", "footer")
_AMQP = (
    *(
        DialectRow(f"properties/{name.replace('-', '_')}", f"properties/{name}", "definition", only="in")
        for name in AMQP_PROPERTIES
        if "-" in name
    ),
    DialectRow("properties", "properties", "definitions"),
    *(DialectRow(name.replace("-", "_"), name, "keyed", only="in") for name in _AMQP_SECTIONS if "-" in name),
    *(DialectRow(name, name, "keyed") for name in _AMQP_SECTIONS),
    DialectRow("header/durable", "header/durable", "boolean"),
    DialectRow("header/priority", "header/priority", "integer"),
    DialectRow("header/ttl", "header/ttl", "integer"),
    DialectRow("header/first-acquirer", "header/first-acquirer", "boolean"),
    DialectRow("header/first_acquirer", "header/first-acquirer", "boolean", only="in"),
    DialectRow("header/delivery-count", "header/delivery-count", "integer"),
    DialectRow("header/delivery_count", "header/delivery-count", "integer", only="in"),
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
    *(DialectRow(name, name.replace("-", "_"), form) for name, form in _MQTT_FORMS.items()),
    *(
        DialectRow(name.replace("-", "_"), name.replace("-", "_"), form, only="in")
        for name, form in _MQTT_FORMS.items()
    ),
    DialectRow("payload-format", "payload_format_indicator", "integer"),
    DialectRow("payload_format", "payload_format_indicator", "integer", only="in"),
)

_KAFKA = (
    DialectRow("topic", "topic", "plain"),
    DialectRow("partition", "partition", "integer"),
    DialectRow("key", "", "key"),
    DialectRow("headers", "headers", "keyed"),
)

_HTTP = (
    DialectRow("headers", "headers", "definitions"),
    DialectRow("query", "query", "query"),
    DialectRow("path", "path", "bare"),
    DialectRow("method", "method", "bare"),
    DialectRow("status", "status", "bare"),
)

_ORIGIN = DialectRow("origin", "labels/0.5.origin", "text")
_RESOURCE = (
    DialectRow("xref", "meta/xref", "xref"),
    DialectRow("xref", "labels/0.5.xref", "text", only="out"),
    DialectRow("readonly", "meta/readonly"),
    DialectRow("defaultversionsticky", "meta/defaultversionsticky"),
    DialectRow("defaultversionid", "meta/defaultversionid"),
    DialectRow("defaultversionurl", "meta/defaultversionurl"),
    _ORIGIN,
    DialectRow("labels/1.0.deprecated", "meta/deprecated", "json"),
    DialectRow("labels/1.0.meta", "meta", "json"),
)

_MESSAGE = DialectTable(
    (
        DialectRow("id", "messageid"),
        DialectRow("uri", "meta/xref", "xref", only="in"),
        # A message of 1.0 has one version, so none that the default could stick to.
        DialectRow("defaultversionsticky", "labels/0.5.defaultversionsticky", "sticky"),
        *(row for row in _RESOURCE if row.there != "defaultversionsticky"),
        DialectRow("basemessageurl", "basemessage", "pointer"),
        DialectRow("format", "envelope", "envelope"),
        DialectRow("binding", "protocol", "protocol"),
        DialectRow("message/timestamp", "labels/0.5.timestamp", "json"),
        DialectRow("labels/1.0.query", "protocoloptions/query", "json", only="in"),
        DialectRow("message", "protocoloptions", "options"),
        DialectRow("labels/1.0.datacontenttype", "datacontenttype", "datacontenttype"),
        DialectRow("metadata", "envelopemetadata", "metadata"),
        DialectRow("schemaformat", "dataschemaformat"),
        DialectRow("schemaobject", "dataschema", only="in"),
        DialectRow("schema", "dataschema"),
        DialectRow("schemaurl", "dataschemauri", "pointer"),
        DialectRow("labels/1.0.envelopeoptions", "envelopeoptions", "json"),
        DialectRow("labels/1.0.dataschemaxid", "dataschemaxid", "text"),
    ),
    _ASSIGNED,
)

_ENDPOINT = DialectTable(
    (
        DialectRow("id", "endpointid"),
        _ORIGIN,
        DialectRow("labels/1.0.usage", "usage", "json", only="in"),
        DialectRow("usage", "usage", "usage"),
        DialectRow("format", "envelope", "envelope"),
        DialectRow("config/protocol", "protocol", "endpoint_protocol"),
        DialectRow("binding", "", "binding", only="in"),
        DialectRow("config/endpoints", "protocoloptions/endpoints", "addresses"),
        DialectRow("config/authorization", "protocoloptions/authorization", "authorization"),
        DialectRow("config/deployed", "protocoloptions/deployed"),
        DialectRow("config/options", "protocoloptions"),
        DialectRow("config", "labels/0.5.config", "json"),
        DialectRow("messagegroups", "messagegroups", "pointers"),
        DialectRow("deprecated", "deprecated", "deprecation"),
        DialectRow("labels/1.0.envelopeoptions", "envelopeoptions", "json"),
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
        "registry": DialectTable(
            (
                DialectRow("id", "registryid"),
                DialectRow("model", "", "unconverted", only="in"),
                DialectRow("", "model", "unconverted", only="out"),
                DialectRow("", "modelsource", "unconverted", only="out"),
                DialectRow("", "capabilities", "unconverted", only="out"),
            ),
            _ASSIGNED,
        ),
        "messagegroup": DialectTable(
            (
                DialectRow("id", "messagegroupid"),
                _ORIGIN,
                DialectRow("format", "envelope", "envelope"),
                DialectRow("binding", "protocol", "protocol"),
                DialectRow("labels/1.0.deprecated", "deprecated", "json"),
            ),
            _ASSIGNED,
        ),
        "message": _MESSAGE,
        "schemagroup": DialectTable(
            (DialectRow("id", "schemagroupid"), _ORIGIN, DialectRow("labels/1.0.deprecated", "deprecated", "json")),
            _ASSIGNED,
        ),
        "schema": DialectTable(
            (DialectRow("id", "schemaid"), *_RESOURCE, DialectRow("schemaobject", "schema", only="in")), _ASSIGNED
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
        "message": DialectTable(
            (
                DialectRow("schemaUrl", "dataschemauri", "pointer", only="in"),
                DialectRow("schemaFormat", "dataschemaformat", only="in"),
                *_MESSAGE.rows,
            )
        ),
        "endpoint": DialectTable(
            (DialectRow("definitionGroups", "messagegroups", "pointers", only="in"), *_ENDPOINT.rows)
        ),
        "schemaversion": DialectTable(
            (
                DialectRow("id", "versionid"),
                DialectRow("versionId", "versionid", only="in"),
                DialectRow("type", "", "marker"),
            )
        ),
    },
    signs=(
        Sign("registry", "definitionGroups"),
        Sign("registry", "schemaGroups"),
        Sign("group", "definitionGroups"),
        Sign("group", "definitions", dict),
    ),
)
