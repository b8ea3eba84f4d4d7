"""A value as Avro's binary encoding: what a builder of messages sends (Avro 1.12, "Binary Encoding").

Rule 1: a value is given as Avro's JSON encoding has it, or in Python's own types for logical types.
Rule 2: the member of a union is named, as `{"label": value}`, or is the first that takes the value.
Rule 3: a value that the schema does not take is a `BadValue` with its place; nothing is bent.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Decimal, localcontext
from typing import Any
from uuid import UUID

from signalbook.jsontext import encode_json
from signalbook.schemas.avro.payload import AvroSchema
from signalbook.schemas.avro.schema import NOTHING, Node
from signalbook.schemas.format import BadValue

__all__ = ["encode", "encode_value", "samples"]

_DEEPEST = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_ONE = date(1970, 1, 1).toordinal()


def encode_value(node: Node, value: Any) -> bytes:
    """The value as the schema's binary encoding; raises `BadValue`."""
    out = bytearray()
    _write(node, value, out, 0)
    return bytes(out)


def _write(node: Node, value: Any, out: bytearray, depth: int) -> None:
    if depth > _DEEPEST:
        raise BadValue("is nested too deeply")
    _WRITERS[node.kind](node, value, out, depth)


def _number(value: int, out: bytearray) -> None:
    """A zigzag variable-length integer."""
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)


def _null(node: Node, value: Any, out: bytearray, depth: int) -> None:
    if value is not None:
        raise BadValue("is not null")


def _boolean(node: Node, value: Any, out: bytearray, depth: int) -> None:
    if not isinstance(value, bool):
        raise BadValue("is not a boolean")
    out.append(value)


def _integer(bits: int) -> Callable[[Node, Any, bytearray, int], None]:
    def write(node: Node, value: Any, out: bytearray, depth: int) -> None:
        value = _temporal_number(node, value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise BadValue(f"is not a valid {node.logical or node.kind}")
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise BadValue(f"does not fit into {bits} bits")
        _number(value, out)

    return write


_UNITS = {"millis": 1000, "micros": 1_000_000, "nanos": 1_000_000_000}


def _temporal_number(node: Node, value: Any) -> Any:
    """The number that a date, a time of day or a moment is."""
    per_second = _UNITS.get(node.logical.rpartition("-")[2], 1)
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        since = moment - _EPOCH
        return (since.days * 86_400 + since.seconds) * per_second + since.microseconds * per_second // 1_000_000
    if isinstance(value, date):
        return value.toordinal() - _DAY_ONE
    if isinstance(value, time):
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        return seconds * per_second + value.microsecond * per_second // 1_000_000
    return value


def _real(layout: str) -> Callable[[Node, Any, bytearray, int], None]:
    def write(node: Node, value: Any, out: bytearray, depth: int) -> None:
        if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
            raise BadValue(f"is not a valid {node.kind}")
        try:
            out += struct.pack(layout, float(value))
        except OverflowError:
            raise BadValue(f"is too large for a {node.kind}") from None

    return write


def _bytes(node: Node, value: Any, out: bytearray, depth: int) -> None:
    content = _content(node, value)
    _number(len(content), out)
    out += content


def _fixed(node: Node, value: Any, out: bytearray, depth: int) -> None:
    if isinstance(value, UUID):
        value = value.bytes
    elif node.logical == "duration" and isinstance(value, Mapping):
        parts = [value.get(name, 0) for name in ("months", "days", "milliseconds")]
        value = struct.pack("<III", *parts)
    content = _content(node, value)
    if len(content) != node.size:
        raise BadValue(f"has {len(content)} bytes, not {node.size}")
    out += content


def _content(node: Node, value: Any) -> bytes:
    """Bytes as they are, or as Avro's JSON encoding writes them: a text of the characters U+0000 to U+00FF."""
    if isinstance(value, Decimal) and node.logical == "decimal":
        return _unscaled(value, node.scale, node.size)
    if isinstance(value, Decimal) and node.logical == "big-decimal":
        _, _, exponent = value.as_tuple()
        scale = max(0, -exponent) if isinstance(exponent, int) else 0
        digits = _unscaled(value, scale, 0)
        out = bytearray()
        _number(len(digits), out)
        out += digits
        _number(scale, out)
        return bytes(out)
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, str):
        try:
            return value.encode("latin-1")
        except UnicodeEncodeError:
            pass
    raise BadValue(f"is not a valid {node.kind}; give bytes, or a text of the characters U+0000 to U+00FF")


def _unscaled(value: Decimal, scale: int, size: int) -> bytes:
    """A decimal's digits as a signed number of so many bytes, or of as many as it needs."""
    if not value.is_finite():
        raise BadValue("is not a number")
    with localcontext(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN):
        shifted = value.scaleb(scale)
    if shifted != shifted.to_integral_value():
        raise BadValue(f"has more than {scale} digits after the point")
    number = int(shifted)
    try:
        return number.to_bytes(size or number.bit_length() // 8 + 1, "big", signed=True)
    except OverflowError:
        raise BadValue(f"does not fit into {size} bytes") from None


def _string(node: Node, value: Any, out: bytearray, depth: int) -> None:
    text = str(value) if isinstance(value, UUID) else value
    if not isinstance(text, str):
        raise BadValue("is not a string")
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise BadValue("holds half a surrogate pair") from None
    _number(len(content), out)
    out += content


def _enum(node: Node, value: Any, out: bytearray, depth: int) -> None:
    number = node.numbers.get(value) if isinstance(value, str) else None
    if number is None:
        raise BadValue(f"is not one of {', '.join(node.symbols)}")
    _number(number, out)


def _array(node: Node, value: Any, out: bytearray, depth: int) -> None:
    if not isinstance(value, list | tuple):
        raise BadValue("is not an array")
    assert node.inner is not None
    if value:
        _number(len(value), out)
    for number, item in enumerate(value):
        _inside(number, node.inner, item, out, depth)
    out.append(0)


def _map(node: Node, value: Any, out: bytearray, depth: int) -> None:
    if not isinstance(value, Mapping):
        raise BadValue("is not a map")
    assert node.inner is not None
    if value:
        _number(len(value), out)
    for name, item in value.items():
        _string(node, name, out, depth)
        _inside(name, node.inner, item, out, depth)
    out.append(0)


def _record(node: Node, value: Any, out: bytearray, depth: int) -> None:
    if not isinstance(value, Mapping):
        raise BadValue("is not a record")
    known = {field.name for field in node.fields}
    for name in value:
        if name not in known:
            raise BadValue(f"is not a field of {node.name}", name)
    for field in node.fields:
        if field.name in value:
            _inside(field.name, field.node, value[field.name], out, depth)
        elif field.default is not NOTHING:
            default = _labelled(field.node, field.default)
            _inside(field.name, field.node, default, out, depth)
        else:
            raise BadValue(f"lacks the field {field.name}")


def _labelled(node: Node, default: Any) -> Any:
    """A default as a value of its type: that of a union is one of its first member."""
    return default if node.kind != "union" or default is None else {node.members[0].label: default}


def _inside(step: str | int, node: Node, value: Any, out: bytearray, depth: int) -> None:
    try:
        _write(node, value, out, depth + 1)
    except BadValue as bad:
        raise bad.within(step) from None


def _union(node: Node, value: Any, out: bytearray, depth: int) -> None:
    if isinstance(value, Mapping) and len(value) == 1:
        label = next(iter(value))
        for number, member in enumerate(node.members):
            if label in (member.label, member.label.rpartition(".")[2]):
                _number(number, out)
                _inside(label, member, value[label], out, depth)
                return
    refused: BadValue | None = None
    for number, member in enumerate(node.members):
        content = bytearray()
        try:
            _write(member, value, content, depth + 1)
        except BadValue as bad:
            refused = bad if member.kind != "null" or refused is None else refused
            continue
        _number(number, out)
        out += content
        return
    several = len([member for member in node.members if member.kind != "null"]) > 1
    raise BadValue("does not fit any member of the union") if several or refused is None else refused


_WRITERS: Mapping[str, Callable[[Node, Any, bytearray, int], None]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _integer(32),
    "long": _integer(64),
    "float": _real("<f"),
    "double": _real("<d"),
    "bytes": _bytes,
    "string": _string,
    "fixed": _fixed,
    "enum": _enum,
    "array": _array,
    "map": _map,
    "record": _record,
    "union": _union,
}


# Avro payloads: written from values, and made up.


_DEEPEST_SAMPLE = 8


def encode(schema: AvroSchema, value: Any, contenttype: str) -> bytes:
    """The value in raw binary, or as Avro's JSON encoding under an `avro+json` content type."""
    if contenttype.partition(";")[0].strip().lower().endswith("avro+json"):
        try:
            return encode_json(value).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise BadValue(f"is not a JSON value: {error}") from None
    return encode_value(schema.node, value)


def samples(schema: AvroSchema, contenttype: str) -> Iterator[bytes]:
    """Payloads to try: one with all optional members, one without."""
    for full in (True, False):
        yield encode(schema, _value(schema.node, full, 0), contenttype)


_SAMPLE_VALUES: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 1,
    "float": 1.5,
    "double": 1.5,
    "string": "text",
    "bytes": "a",
}
_SAMPLE_LOGICAL_VALUES: dict[str, Any] = {
    "uuid": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
    "date": 19_860,
    "timestamp-millis": 1_715_949_000_000,
    "timestamp-micros": 1_715_949_000_000_000,
    "timestamp-nanos": 1_715_949_000_000_000_000,
    "local-timestamp-millis": 1_715_949_000_000,
    "local-timestamp-micros": 1_715_949_000_000_000,
    "local-timestamp-nanos": 1_715_949_000_000_000_000,
    # The unscaled number 1 of scale 0, as the specification lays a big-decimal out.
    "big-decimal": "\x02\x01\x00",
    "decimal": "\x01",
}


def _value(node: Node, full: bool, depth: int) -> Any:
    """A value of a type, in Avro's JSON encoding; what contains itself ends where it may."""
    full = full and depth < _DEEPEST_SAMPLE
    match node.kind:
        case "record":
            if depth > 4 * _DEEPEST_SAMPLE:
                raise BadValue("contains itself without an end")
            return {field.name: _value(field.node, full, depth + 1) for field in node.fields}
        case "enum":
            return node.symbols[0]
        case "fixed":
            return _sample_fixed(node)
        case "array" | "map":
            assert node.inner is not None
            if node.kind == "array":
                return [_value(node.inner, full, depth + 1)] if full else []
            return {"key": _value(node.inner, full, depth + 1)} if full else {}
        case "union":
            return _member(node, full, depth)
        case kind:
            return _SAMPLE_LOGICAL_VALUES.get(node.logical, _SAMPLE_VALUES[kind])


def _member(node: Node, full: bool, depth: int) -> Any:
    kinds = [member.kind for member in node.members]
    if "null" in kinds and (not full or len(kinds) == 1):
        return None
    member = next(one for one in node.members if one.kind != "null")
    return {member.label: _value(member, full, depth + 1)}


def _sample_fixed(node: Node) -> str:
    if node.logical == "duration":
        return struct.pack("<III", 1, 2, 3).decode("latin-1")
    if node.logical == "decimal":
        return (1).to_bytes(node.size, "big").decode("latin-1")
    return "\x01" * node.size
