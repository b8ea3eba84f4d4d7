"""AMQP 1.0: sections of values in AMQP's own types, and a body.

On paper, the types that JSON has stand as they are, the others as `{"type", "value"}`:

    JSON      boolean  integer  fraction  string  null  array  object
    AMQP      boolean  long     double    string  null  list   map
    Python    bool     int      float     str     None  tuple  dict

`{"type": "binary", "value": "AQID"}` is `bytes` in Python; the remaining types of AMQP 1.0 part 1, section 1.6, are a
`Typed`, so that a value goes out as the type it came in. A map that holds just `type` and `value` is written as
`{"type": "map", "value": {…}}`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from signalbook.cloudevents.attributes import AttributeValue, format_timestamp, is_timestamp
from signalbook.errors import Problem
from signalbook.jsontext import write_json
from signalbook.protocols.protocol import (
    Binding,
    FieldKind,
    Fields,
    Mode,
    Option,
    PaperField,
    Protocol,
    choice,
    on_paper,
    pointer,
)
from signalbook.protocols.values import (
    STATED_CONTENT_TYPE,
    STATED_TEXTS,
    STATED_TIMES,
    STATED_URIS,
    PropertyPlace,
    PropertySection,
    Typed,
    ValueForm,
    canonical,
    decoded,
    milliseconds,
    typed,
)

__all__ = ["AMQP", "MAX_DEPTH", "read_value", "write_value"]

# Values on paper ------------------------------------------------------------------------------------------------------

MAX_DEPTH = 64
_JSON_TYPES = frozenset((bool, int, float, str, type(None)))


def read_value(value: Any, path: str, problems: list[Problem], depth: int = 0) -> Any:
    """The Python form of a value on paper."""
    if depth > MAX_DEPTH:
        problems.append(Problem(path, "value", f"is nested deeper than {MAX_DEPTH} levels"))
        return None
    if isinstance(value, list):
        return tuple(read_value(item, f"{path}/{index}", problems, depth + 1) for index, item in enumerate(value))
    if isinstance(value, dict):
        return _read_object(value, path, problems, depth)
    if type(value) is int and not -(2**63) <= value < 2**63:
        problems.append(Problem(path, "type", "is beyond 64 bits with a sign; give larger numbers their type"))
    elif type(value) not in _JSON_TYPES or (type(value) is str and not _is_unicode(value)):
        problems.append(Problem(path, "type", "does not have an AMQP type"))
    return value


def _read_object(value: dict[str, Any], path: str, problems: list[Problem], depth: int) -> Any:
    """A map, or a value with its type."""
    kind, inner = str(value.get("type")), value.get("value")
    if value.keys() != {"type", "value"}:
        kind, inner = "map", value
    if kind == "map" and isinstance(inner, dict):
        return {name: read_value(item, f"{path}/{name}", problems, depth + 1) for name, item in inner.items()}
    row = _TYPES.get(kind)
    if row is None:
        problems.append(Problem(f"{path}/type", "value", f"must be one of {', '.join([*_TYPES, 'map'])}"))
        return None
    try:
        return row(kind, inner)
    except (ValueError, binascii.Error):
        problems.append(Problem(f"{path}/value", "type", f"is not a valid {kind}"))
        return None


def _is_unicode(text: str) -> bool:
    """Whether the text is free of unpaired surrogates."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def write_value(value: Any) -> Any:
    """The form on paper of a Python value."""
    if isinstance(value, bytes):
        return {"type": "binary", "value": base64.b64encode(value).decode()}
    if isinstance(value, Typed):
        return {"type": value.type, "value": value.value}
    if isinstance(value, (tuple, list)):
        return [write_value(item) for item in value]
    if isinstance(value, Mapping):
        written = {name: write_value(item) for name, item in value.items()}
        return {"type": "map", "value": written} if written.keys() == {"type", "value"} else written
    return value


def _binary(kind: str, inner: Any) -> bytes:
    inner = _natural(str)(kind, inner)
    return base64.b64decode(inner, validate=True)


def _natural(expected: type) -> Callable[[str, Any], Any]:
    def read(kind: str, inner: Any) -> Any:
        if type(inner) is not expected:
            raise ValueError
        return inner

    return read


def _whole_of(lowest: int, highest: int) -> Callable[[str, Any], Typed]:
    def read(kind: str, inner: Any) -> Typed:
        if type(inner) is not int or not lowest <= inner <= highest:
            raise ValueError
        return Typed(kind, inner)

    return read


def _long(kind: str, inner: Any) -> int:
    return int(_whole_of(-(2**63), 2**63 - 1)(kind, inner).value)


def _fraction(kind: str, inner: Any) -> Typed:
    if type(inner) not in (int, float):
        raise ValueError
    return Typed(kind, float(inner))


def _text_of(pattern: str) -> Callable[[str, Any], Typed]:
    matches = re.compile(pattern).fullmatch

    def read(kind: str, inner: Any) -> Typed:
        if not isinstance(inner, str) or not matches(inner):
            raise ValueError
        return Typed(kind, inner)

    return read


_TYPES: Mapping[str, Callable[[str, Any], Any]] = {
    "binary": _binary,
    "boolean": _natural(bool),
    "long": _long,
    "double": _natural(float),
    "string": _natural(str),
    "ubyte": _whole_of(0, 2**8 - 1),
    "ushort": _whole_of(0, 2**16 - 1),
    "uint": _whole_of(0, 2**32 - 1),
    "ulong": _whole_of(0, 2**64 - 1),
    "byte": _whole_of(-(2**7), 2**7 - 1),
    "short": _whole_of(-(2**15), 2**15 - 1),
    "int": _whole_of(-(2**31), 2**31 - 1),
    "timestamp": _whole_of(-(2**63), 2**63 - 1),
    "float": _fraction,
    "decimal32": _text_of(r"[-+0-9.eE]+"),
    "decimal64": _text_of(r"[-+0-9.eE]+"),
    "decimal128": _text_of(r"[-+0-9.eE]+"),
    "char": _text_of(r"(?s:.)"),
    "symbol": _text_of(r"[\x00-\x7f]*"),
    "uuid": _text_of(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
}


def _read_section(value: Any, path: str, problems: list[Problem]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        problems.append(Problem(path, "type", "must be an object"))
        return {}
    return {name: read_value(item, pointer(path, name), problems) for name, item in value.items()}


def _write_section(value: Mapping[str, Any]) -> tuple[str, Any]:
    return "", {name: write_value(item) for name, item in value.items()}


def _settle_section(value: Any, path: str, problems: list[Problem]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        problems.append(Problem(path, "type", "must be a map with texts for names"))
        return {}
    return _read_section(_write_section(value)[1], path, problems)


_SECTION = FieldKind("section", _read_section, _write_section, _settle_section)

# Values of definitions ------------------------------------------------------------------------------------------------

_IDS = frozenset({"binary", "string", "ulong", "uritemplate", "uuid"})
_FLAG, _COUNT = PropertyPlace("boolean", is_json=True), PropertyPlace("uint", is_json=True)
_TEXT, _ADDRESS = PropertyPlace(types=STATED_TEXTS), PropertyPlace("uritemplate", types=STATED_URIS)
_TIME = PropertyPlace("timestamp", types=STATED_TIMES)
_ID = PropertyPlace(several=True, types=_IDS)  # an id is a ulong, a uuid, bytes or a string; so is its echo
_LONGEST = 2**63 - 1  # of the numbers that need no type of their own


def _symbol_name(name: str) -> str | None:
    """AMQP 1.0 section 1.6.21: the names of what an application adds are symbols, which are ASCII text."""
    return None if name.isascii() else f'must have a name of ASCII characters, not "{name}"'


def _write_typed(type_: str, value: Any) -> Any:
    """A value in the AMQP type that the definition's type means; raises ValueError."""
    value = typed(type_, value)
    if type_ == "timestamp" and isinstance(value, str) and is_timestamp(value):
        return Typed("timestamp", milliseconds(value))
    if type_ == "uuid" and isinstance(value, str):
        return Typed("uuid", value)
    if value.__class__ is int and (type_ == "ulong" or value > _LONGEST):
        return Typed("ulong", value)
    if type_ == "number" and isinstance(value, str):
        return float(value)
    return decoded(value) if type_ == "binary" else value


_PROPERTIES = PropertySection(
    named={
        "message-id": _ID,
        "user-id": PropertyPlace("binary", types=frozenset({"binary", "string", "uritemplate"})),
        "to": _ADDRESS,
        "subject": _TEXT,
        "reply-to": _ADDRESS,
        "correlation-id": _ID,
        "content-type": STATED_CONTENT_TYPE,
        "content-encoding": PropertyPlace("ascii", types=STATED_TEXTS),
        "absolute-expiry-time": _TIME,
        "creation-time": _TIME,
        "group-id": _TEXT,
        "group-sequence": PropertyPlace("uint", types=frozenset({"integer"})),
        "reply-to-group-id": PropertyPlace("uritemplate", types=STATED_TEXTS),
    },
    is_map=True,
    form=ValueForm.AMQP,
    write=_write_typed,
)
_HEADER = PropertySection(
    named={
        "durable": _FLAG,
        "priority": PropertyPlace("ubyte", is_json=True),
        "ttl": _COUNT,
        "first-acquirer": _FLAG,
        "delivery-count": _COUNT,
    },
    plain=True,
    is_map=True,
    form=ValueForm.AMQP,
    write=_write_typed,
)
_ADDED = replace(
    _PROPERTIES, named={}, other=PropertyPlace(nests=True), name=_symbol_name, unique=True, is_keyed=True
)  # what applications and brokers add

# Messages -------------------------------------------------------------------------------------------------------------

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE = frozenset(("ubyte", "ushort", "uint", "ulong", "byte", "short", "int"))
_TEXTS = frozenset(("symbol", "uuid", "char"))
_SECTIONS = ("properties", "application-properties", "message-annotations", "delivery-annotations", "header", "footer")


def _property(fields: Fields, name: str) -> Any:
    return (fields.get("properties") or {}).get(name)


def _text_property(name: str) -> Callable[[Fields], list[Any]]:
    """Reads a property that is a text; in one call, since every message is asked for two of them."""

    def read(fields: Fields) -> list[Any]:
        section = fields.get("properties")
        value = section.get(name) if section else None
        if value is None:
            return []
        return [value.value if isinstance(value, Typed) else value]

    return read


def _identity(fields: Fields) -> str | None:
    value = _property(fields, "message-id")
    return None if value is None else canonical(value)


def _target(fields: Fields) -> Any:
    stated = _property(fields, "to") or _property(fields, "subject")
    return stated.value if isinstance(stated, Typed) else stated


def _payload_data(fields: Fields, payload: bytes | None) -> bytes | None:
    """The payload; of a body that is not a data section, the bytes of a binary value, or else the JSON of the value."""
    if fields.get("body", "data") == "data":
        return payload or None
    problems: list[Problem] = []
    try:
        value = read_value(msgspec.json.decode(payload or b""), "", problems)
        if problems:
            return payload
        return value if isinstance(value, bytes) else write_json(_as_json(value))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return payload or None


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, dict):
        return {name: _as_json(item) for name, item in value.items()}
    if isinstance(value, Typed):
        return canonical(value) if value.type == "timestamp" else _as_json(value.value)
    return canonical(value) if isinstance(value, bytes) else value


def _fields(content_type: str | None, pairs: Iterable[tuple[str, Any]] | None) -> Fields:
    return {"properties": {"content-type": content_type}, "application-properties": dict(pairs or ())}


def _read_attribute(value: Any) -> AttributeValue | None:
    """The attribute's value: native or canonical string, both must be read (amqp 3.1.3.2)."""
    if not isinstance(value, Typed):
        return value  # type: ignore[no-any-return]
    if value.type in _WHOLE or value.type in _TEXTS:
        return value.value  # type: ignore[no-any-return]
    if value.type == "timestamp":
        try:
            return format_timestamp(_EPOCH + timedelta(milliseconds=value.value))
        except OverflowError:
            raise ValueError("is a timestamp beyond the year 9999") from None
    raise ValueError(f"is of the AMQP type {value.type}, which an attribute cannot have")


def _write_attribute(value: AttributeValue) -> Any:
    # Boolean, long, string and binary in their own types. A timestamp stays the text it is: AMQP's has milliseconds and
    # no offset, and the event would come back changed.
    return value


AMQP = Protocol(
    name="AMQP/1.0",
    aliases=("amqp", "amqp/1"),
    # `body` names the section that is not `data`: `value` or `sequence`; the payload is then its JSON form on paper.
    fields={name: PaperField(name, _SECTION) for name in _SECTIONS}
    | on_paper(body=choice("data", "value", "sequence")),
    options={
        "properties": _PROPERTIES,
        "application-properties": _ADDED,
        "message-annotations": _ADDED,
        "delivery-annotations": _ADDED,
        "header": _HEADER,
        "footer": _ADDED,
        "body": PropertyPlace(),  # of 0.1, see `dialects.forms`
    },
    special={"body": Option("body", default="data")},
    endpoint_aliases={
        "linkproperties": "link-properties",
        "link_properties": "link-properties",
        "connectionproperties": "connection-properties",
        "connection_properties": "connection-properties",
        "distributionmode": "distribution-mode",
        "distribution_mode": "distribution-mode",
    },
    keys=(("properties", "subject"), ("properties", "to")),
    identity=_identity,
    moment=lambda fields: _property(fields, "creation-time"),
    target=_target,
    content_encodings=_text_property("content-encoding"),
    data=_payload_data,
    schemes=("amqp", "amqps"),
    id_property=("properties", "message-id"),
    # AMQP 1.0 section 3.2.2: for the next peer alone.
    of_connection=frozenset({"delivery-annotations"}),
    of_payload=frozenset({"footer"}),
    binding=Binding(
        protocol="AMQP/1.0",
        modes=(Mode.BINARY, Mode.STRUCTURED),
        attributes_in="application-properties",
        content_types=_text_property("content-type"),
        fields=_fields,
        read_value=_read_attribute,
        write_value=_write_attribute,
        # 1.0.2 has the colon; brokers that do not take it made later texts prefer the underscore.
        prefixes=("cloudEvents:", "cloudEvents_"),
        form=ValueForm.AMQP,
    ),
)
