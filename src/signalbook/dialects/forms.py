"""The forms of 0.5 and 1.0 that a row may name: how a value looks on either side.

Rule: a form knows no version. What differs between dialects (names of types, the marker for "now", spellings of
protocols) it reads from the dialect of its step.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from signalbook.dialects.catalog01_forms import CATALOG_FORMS
from signalbook.dialects.rows import (
    LABELS,
    MISSING,
    NOW,
    PROPERTY,
    ConversionForm,
    ConversionStep,
    parsed,
    unwrapped,
    wrapped,
)
from signalbook.jsontext import Json
from signalbook.model.normalise import is_event
from signalbook.protocols.message import find_protocol
from signalbook.spec.dialects.dialect import CANONICAL, DialectRow
from signalbook.spec.dialects.v05 import V05

__all__ = ["FORMS", "has_inferred_schema", "holds_more", "with_held"]

Convert = Callable[[Any, ConversionStep, DialectRow], Any]


def _same(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return value


def _nothing(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return MISSING


def _into_label(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return orjson.dumps(value).decode()


def _out_of_label(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return parsed(value)


def _json_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return (_into_label if row.here.startswith(LABELS) else _out_of_label)(value, step, row)


def _json_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return (_into_label if row.there.startswith(LABELS) else _out_of_label)(value, step, row)


def _renames(names: Mapping[str, str], value: Any) -> Any:
    return {names.get(name, name): member for name, member in value.items()} if isinstance(value, dict) else value


# --- references ---------------------------------------------------------------------------------------------------


def _pointer_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    """A JSON Pointer into the document as an xid, with today's names of the collections."""
    if not isinstance(value, str) or not value.startswith("#/"):
        return value
    return "/".join(step.dialect.collections.get(part, part) for part in value[1:].split("/"))


def _pointer_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return f"#{value}" if isinstance(value, str) and value.startswith("/") else value


def _each(convert: Convert) -> Convert:
    def change(value: Any, step: ConversionStep, row: DialectRow) -> Any:
        return [convert(member, step, row) for member in value] if isinstance(value, list) else value

    return change


def _xref_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    """A pointer into the document, or an address that is relative to the registry, as an xid; others are held."""
    xid = _pointer_inward(value, step, row)
    if isinstance(xid, str) and xid.partition("/")[0] in CANONICAL:
        xid = f"/{xid}"
    if isinstance(xid, str) and xid.startswith("/"):
        return xid
    step.hold(f"{step.dialect.prefix}.xref", value, row.there)
    return MISSING


def _xref_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    """An address that is relative to the registry: in 0.5 it does not begin with a slash."""
    return value[1:] if isinstance(value, str) and value.startswith("/") else value


# --- names --------------------------------------------------------------------------------------------------------


def _protocol_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return find_protocol(value) or value


def _protocol_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return step.dialect.protocols.get(value, value) if isinstance(value, str) else value


def _binding_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    """An endpoint's `binding` beside `config.protocol`: the same, alone, or something that 1.0 cannot say."""
    protocol = _protocol_inward(value, step, row)
    if "protocol" not in step.target:
        step.put("protocol", protocol)
    elif step.target["protocol"] != protocol:
        step.hold(f"{step.dialect.prefix}.binding", value, row.there)
    return MISSING


# --- property definitions -----------------------------------------------------------------------------------------


def _definition(types: Mapping[str, str], now: tuple[str, str], value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if isinstance(kind, str) and kind in types:
        value = {**value, "type": types[kind]}
    return {**value, "value": now[1]} if value.get("value") == now[0] else value


def _definition_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return _definition(step.dialect.types, (step.dialect.now, NOW), value)


def _definition_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return _definition(step.dialect.types_out, (NOW, step.dialect.now), value)


def _all(convert: Convert) -> Convert:
    def change(value: Any, step: ConversionStep, row: DialectRow) -> Any:
        if isinstance(value, dict):
            return {name: convert(member, step, row) for name, member in value.items()}
        return _each(convert)(value, step, row)

    return change


def _keyed_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    """Named properties under their names, which the dialect takes for keys; of one name that comes again, the key."""
    if not isinstance(value, dict):
        return _all(_definition_outward)(value, step, row)
    found: Json = {}
    taken = {_named(key, member) for key, member in value.items()}
    for key, member in value.items():
        name = _named(key, member)
        if name == key or name in found:
            found[key if key not in taken or name == key else name] = _definition_outward(member, step, row)
        else:
            found[name] = _definition_outward(_without("name", member), step, row)
    return found


def _named(key: str, member: Any) -> str:
    name = member.get("name") if isinstance(member, dict) else None
    return name if isinstance(name, str) else key


def _metadata(convert: Convert) -> Convert:
    """Metadata of an event, also in the level `attributes` that the prose of the texts has; others stay as they are."""

    def change(value: Any, step: ConversionStep, row: DialectRow) -> Any:
        if not isinstance(value, dict) or _is_foreign(step):
            return value
        inner = value.get("attributes")
        if isinstance(inner, dict) and all(isinstance(member, dict) for member in inner.values()):
            value = {**value, "attributes": _all(convert)(inner, step, row)}
        return _all(convert)(value, step, row)

    return change


def _is_foreign(step: ConversionStep) -> bool:
    """Whether an entity has an envelope that the specification does not define."""
    own = step.source if step.dialect.modern else step.target
    envelope = own.get("envelope") or step.envelope
    return bool(envelope) and not is_event(envelope)


def _datacontenttype_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    """Where there is an envelope, the content type is one of its attributes; else a label holds it."""
    if "envelope" not in step.source and "envelopemetadata" not in step.source:
        return value
    metadata = step.source.get("envelopemetadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    member = metadata.get("datacontenttype")
    member = member if isinstance(member, dict) else {}
    if member.get("value", value) != value:
        return value
    if "value" not in member:
        metadata["datacontenttype"] = {**member, "value": value}
        step.source["envelopemetadata"] = metadata
        step.note("changed", row.here, "stands among the attributes of the envelope")
    return MISSING


# --- options of protocols -----------------------------------------------------------------------------------------


# Control characters, which no text of a registry has, and braces, which would make the bytes a template.
_NO_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f{}]")


def _key_text(encoded: str) -> str | None:
    """The text that bytes in Base64 are; what is not Base64 stays as it is; None stands for bytes that are not text."""
    try:
        text = base64.b64decode(encoded, validate=True).decode()
    except UnicodeDecodeError:
        return None
    except binascii.Error:
        return encoded
    return None if _NO_TEXT.search(text) else text


def _key_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    """A Kafka key: text, unless it is declared as bytes that are none."""
    kind = value.get("type") if isinstance(value, dict) else None
    key = unwrapped(value, step, "protocoloptions/key")
    if kind == "binary" and isinstance(key, str):
        step.kept.get("protocoloptions/key", {}).pop("type", None)
        if not step.kept.get("protocoloptions/key", True):
            del step.kept["protocoloptions/key"]
        text = _key_text(key)
        if text is None:
            step.put("protocoloptions/key_base64", key)
            return MISSING
        key = text
    if key is not MISSING:
        step.put("protocoloptions/key", key)
    return MISSING


def _key_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    encoded = step.take("protocoloptions/key_base64")
    if encoded is not MISSING:
        return {"type": "binary", "value": encoded}
    key = step.take("protocoloptions/key")
    return key if key is MISSING else wrapped(key, step, "protocoloptions/key")


def _user_properties_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    """Properties as 0.5 has them, one object of one member each, with the name beside the value."""
    if not isinstance(value, list):
        return value
    found: list[Any] = []
    for member in value:
        if isinstance(member, dict) and not PROPERTY & member.keys():
            for name, definition in member.items():
                definition = definition if isinstance(definition, dict) else {"value": definition}
                found.append({"name": name, **_definition_inward(definition, step, row)})
        else:
            found.append(_definition_inward(member, step, row))
    return found


def _user_properties_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    if not isinstance(value, list):
        return value
    return [
        {member["name"]: _without("name", _definition_outward(member, step, row))}
        if isinstance(member, dict) and isinstance(member.get("name"), str)
        else member
        for member in value
    ]


def _without(name: str, value: Mapping[str, Any]) -> Json:
    return {key: member for key, member in value.items() if key != name}


def _query_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    known = step.target.get("protocoloptions")
    return MISSING if isinstance(known, dict) and "query" in known else value


def _query_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    """A map of names and values; what that cannot say is held as well."""
    if not isinstance(value, list):
        return value
    simple = {
        str(member["name"]): member.get("value", "")
        for member in value
        if isinstance(member, dict) and isinstance(member.get("name"), str)
    }
    if [{"name": name, "value": text} for name, text in simple.items()] != value:
        step.hold("1.0.query", value, row.here)
    return simple


# --- endpoints ----------------------------------------------------------------------------------------------------


def _usage_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return MISSING if "usage" in step.target else value if isinstance(value, list) else [value]


def _usage_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    if not isinstance(value, list) or not value:
        return value
    if len(value) > 1:
        step.hold("1.0.usage", value, row.here)
    return value[0]


def _addresses_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    if not isinstance(value, list):
        return value
    return [{"uri": member} if isinstance(member, str) else member for member in value]


_AUTHORIZATION = {"resourceurl": "resourceuri", "grant_types": "granttypes"}
_AUTHORIZATION_OUT = {name: old for old, name in _AUTHORIZATION.items()}


def _authorization_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    if step.dialect.modern and find_protocol(step.source.get("protocol")) is None:
        return value
    members = value if isinstance(value, list) else [value]
    return [_renames(_AUTHORIZATION, member) for member in members]


def _authorization_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    members = [_renames(_AUTHORIZATION_OUT, member) for member in value] if isinstance(value, list) else [value]
    return members[0] if len(members) == 1 else members


# --- the rest -----------------------------------------------------------------------------------------------------


def _compatibility_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    if isinstance(value, str) and value.lower() == "none":
        step.note("respelled", row.there, f'is left out: without it the compatibility is "{value}" as well')
        return MISSING
    return value


def _unconverted(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    step.note("lost", row.there or row.here, "is written in another model language, and left out")
    return MISSING


FORMS: Mapping[str, ConversionForm] = {
    "same": ConversionForm(_same, _same),
    "text": ConversionForm(_same, _same),
    "json": ConversionForm(_json_inward, _json_outward),
    "pointer": ConversionForm(_pointer_inward, _pointer_outward),
    "pointers": ConversionForm(_each(_pointer_inward), _each(_pointer_outward)),
    "xref": ConversionForm(_xref_inward, _xref_outward),
    "envelope": ConversionForm(_same, _same),
    "protocol": ConversionForm(_protocol_inward, _protocol_outward),
    "endpoint_protocol": ConversionForm(_protocol_inward, _same),
    "binding": ConversionForm(_binding_inward, _nothing),
    "definition": ConversionForm(_definition_inward, _definition_outward),
    "definitions": ConversionForm(_all(_definition_inward), _all(_definition_outward)),
    "keyed": ConversionForm(_all(_definition_inward), _keyed_outward),
    "metadata": ConversionForm(_metadata(_definition_inward), _metadata(_definition_outward)),
    "datacontenttype": ConversionForm(_same, _datacontenttype_outward),
    "options": ConversionForm(_same, _same),
    "key": ConversionForm(_key_inward, _key_outward),
    "user_properties": ConversionForm(_user_properties_inward, _user_properties_outward),
    "query": ConversionForm(_query_inward, _query_outward),
    "usage": ConversionForm(_usage_inward, _usage_outward),
    "addresses": ConversionForm(_addresses_inward, _same),
    "authorization": ConversionForm(_authorization_inward, _authorization_outward),
    "deprecation": ConversionForm(
        lambda value, step, row: _renames({"docs": "documentation"}, value),
        lambda value, step, row: _renames({"documentation": "docs"}, value),
    ),
    "sticky": ConversionForm(lambda value, step, row: "true" if value is True else MISSING, _out_of_label),
    "compatibility": ConversionForm(_compatibility_inward, _same),
    "unconverted": ConversionForm(_unconverted, _unconverted),
    "rest": ConversionForm(
        lambda value, step, row: _json_inward(value, step, row) if value else MISSING, _json_outward
    ),
    "marker": ConversionForm(_nothing, _nothing),
    **CATALOG_FORMS,
}


# What a definition of an older dialect demands, and 1.0 has no place for, where messages are judged and built.
#
# Rule 1: a label keeps it, as `rows` and `properties` say; here it becomes part of `protocoloptions` again, as a
# property
# definition where 1.0 has a plain value: `required`, a type, a template where 1.0 has a number or a flag.
# Rule 2: it counts where the message at hand has such a field: Kafka's timestamp, the section of an AMQP body.


_OPTIONS = "protocoloptions"
# Options that are numbers or flags in 1.0, and can be templates in 0.1: what is there is any value that fits.
_PLAIN = frozenset(
    {
        *("qos", "retain", "payload_format_indicator", "message_expiry_interval", "partition"),
        *("durable", "priority", "ttl", "first-acquirer", "delivery-count"),
    }
)
_LABELS = ("0.5.properties", "0.1.properties", "0.5.timestamp", "0.1.amqpencoding")
_SAYS = ("value", "required", "type")


def with_held(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message with what its labels hold of its options."""
    labels = message.get("labels")
    if not isinstance(labels, Mapping):
        return message
    options = message.get(_OPTIONS)
    found: Json = dict(options) if isinstance(options, Mapping) else {}
    count = 0
    for path, rest in _held(labels, message.get("protocol")):
        _put(found, path, rest)
        count += 1
    return {**message, _OPTIONS: found} if count else message


def holds_more(message: Mapping[str, Any]) -> bool:
    """Whether a definition, or a base of it, has labels with what 1.0 has no place for."""
    labels = message.get("labels")
    return isinstance(labels, Mapping) and not labels.keys().isdisjoint(_LABELS)


def has_inferred_schema(message: Mapping[str, Any]) -> bool:
    """Whether a definition of 0.1 did not say what its schema is (section 3.1.2), so that it was inferred."""
    labels = message.get("labels")
    return isinstance(labels, Mapping) and labels.get("0.1.schematype") == "inferred"


def _held(labels: Mapping[str, Any], protocol: Any) -> Iterator[tuple[list[str], Json]]:
    for label in _LABELS[:2]:
        kept = parsed(labels.get(label))
        for place, rest in kept.items() if isinstance(kept, dict) else ():
            section, *path = str(place).split("/")
            # A null is not listed, and the empty text is any: seed 004, 3.1.1. 0.5 keeps no value that is a text.
            if section == _OPTIONS and path and isinstance(rest, dict) and rest.get("value", "") is not None:
                yield path, {name: value for name, value in rest.items() if (name, value) != ("value", "")}
    if protocol == "KAFKA" and "0.5.timestamp" in labels:
        stamp = parsed(labels["0.5.timestamp"])
        rest = dict(stamp) if isinstance(stamp, dict) else {"value": stamp}
        # Seed 003, "Kafka" binding: 0 leaves it to the producer.
        yield ["timestamp"], {name: value for name, value in rest.items() if (name, value) != ("value", 0)}
    if protocol == "AMQP/1.0" and isinstance(labels.get("0.1.amqpencoding"), str):
        yield ["body"], {"value": labels["0.1.amqpencoding"].lower(), "required": True}


def _put(options: Json, path: list[str], rest: Mapping[str, Any]) -> None:
    """Join a property at a path with what is held of it."""
    *above, name = path
    for step in above:
        inner = options.get(step)
        options[step] = options = dict(inner) if isinstance(inner, Mapping) else {}
    says = {key: rest[key] for key in _SAYS if key in rest}
    kind = says.get("type")
    if isinstance(kind, str):
        says["type"] = V05.types.get(kind, kind)
    elif name in _PLAIN and isinstance(says.get("value"), str):
        says["type"] = "any"
    if says:
        known = options.get(name)
        own = dict(known) if isinstance(known, Mapping) else {} if known is None else {"value": known}
        options[name] = {**own, **says}
