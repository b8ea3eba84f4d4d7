"""The columns of Avro payloads: an Arrow type that Delta and Spark both hold, and what turns a value into it.

Rule 1: exact: a decimal of up to 38 digits, dates, timestamps in microseconds; times of day and nanoseconds are the
number that Avro has, with its unit in the field's metadata.
Rule 2: a union of null and one type is that type; one of several is a struct with a column for each member.
Rule 3: what has no column is JSON text in Avro's JSON encoding: a type within itself, a record without fields, a
record of more than `MOST_COLUMNS` columns within another.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from signalbook.schemas.avro.schema import Node, inner_types, of_values
from signalbook.schemas.format import column_names

__all__ = ["MOST_COLUMNS", "columns", "number_of", "text_of"]

# A decoded Avro value as text in Avro's JSON encoding: what stands in a column where a type has no columns.
#
# Rule: the text can be read back by `payload.check_json`, and gives the same value.


_DAY_ONE = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH = datetime(1970, 1, 1)


def text_of(node: Node, value: Any) -> str:
    """The JSON text of a value."""
    return json.dumps(_json(node, value), ensure_ascii=False, separators=(",", ":"))


def number_of(node: Node, value: Any) -> int:
    """The number that a date, a time of day or a timestamp has on the wire."""
    if node.logical == "date":
        return int(value.toordinal()) - _DAY_ONE
    if node.logical.startswith("time-"):
        micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        return int(micros // 1000 if node.logical == "time-millis" else micros)
    since = value - (_LOCAL_EPOCH if node.logical.startswith("local") else _EPOCH)
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return int(micros // 1000 if node.logical.endswith("millis") else micros)


def _json(node: Node, value: Any) -> Any:
    if value is None:
        return None
    match node.kind:
        case "union":
            members = of_values(node)
            if len(members) == 1:
                return {members[0].label: _json(members[0], value)}
            ((label, inner),) = value.items()
            return {label: _json(next(member for member in members if member.label == label), inner)}
        case "record":
            return {field.name: _json(field.node, value[field.name]) for field in node.fields}
        case "array" | "map":
            assert node.inner is not None
            if node.kind == "array":
                return [_json(node.inner, item) for item in value]
            return {key: _json(node.inner, item) for key, item in value.items()}
        case "bytes" | "fixed":
            return _bytes(node, value).decode("latin-1")
        case "float" | "double":
            return value if math.isfinite(value) else str(_SPELLINGS.get(value, "NaN"))
        case "int" | "long":
            return value if isinstance(value, int) else number_of(node, value)
        case "string":
            return str(value)
    return value


_SPELLINGS = {math.inf: "Infinity", -math.inf: "-Infinity"}


def _bytes(node: Node, value: Any) -> bytes:
    match node.logical:
        case "decimal":
            return _unscaled(value, node.scale, node.size if node.kind == "fixed" else 0)
        case "big-decimal":
            scale = -int(value.as_tuple().exponent)
            number = _unscaled(value, scale, 0)
            return _varint(len(number)) + number + _varint(scale)
        case "uuid":
            return bytes(value.bytes)
        case "duration":
            return b"".join(value[unit].to_bytes(4, "little") for unit in ("months", "days", "milliseconds"))
    return bytes(value)


def _unscaled(value: Decimal, scale: int, size: int) -> bytes:
    sign, digits, _ = value.as_tuple()
    number = int(Decimal((0, digits, 0))) * (-1 if sign else 1)
    # With an exact decimal of its scale, the digits are the number itself.
    return number.to_bytes(size or (8 + (number + (number < 0)).bit_length()) // 8, "big", signed=True)


def _varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


MOST_COLUMNS = 10_000

# What makes a column's value of a decoded one; None where it is the same.
Convert = Callable[[Any], Any] | None

_PLAIN = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "null": pa.string(),
}
_UTC = pa.timestamp("us", "UTC")
_LOCAL = pa.timestamp("us")
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": _UTC,
    "timestamp-micros": _UTC,
    "local-timestamp-millis": _LOCAL,
    "local-timestamp-micros": _LOCAL,
}
_UNITS = {
    "time-millis": "ms",
    "time-micros": "us",
    "timestamp-nanos": "ns",
    "local-timestamp-nanos": "ns",
}
_DURATION = pa.struct([("months", pa.int64()), ("days", pa.int64()), ("milliseconds", pa.int64())])
_WIDEST = 38


def columns(node: Node) -> tuple[pa.DataType, Callable[[Any], Any]]:
    """The struct of a payload's columns, and what turns a checked value into it."""
    making = _AvroColumns()
    if node.kind == "record" and node.fields:
        kind, convert = making.record(node)
        return kind, convert or _same
    kind, convert = making.column(node)
    inner = convert or _same
    return pa.struct([_field("value", kind, node)]), lambda value: {"value": inner(value)}


def _same(value: Any) -> Any:
    return value


def _field(name: str, kind: pa.DataType, node: Node) -> pa.Field:
    units = {_UNITS.get(one.logical) for one in of_values(node)}
    unit = units.pop() if len(units) == 1 else None
    return pa.field(name, kind, metadata={"unit": unit} if unit else None)


class _AvroColumns:
    """One type being made: the records that are open above, and the sizes known."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._sizes: dict[int, int] = {}

    def column(self, node: Node) -> tuple[pa.DataType, Convert]:
        """The type of one column, and its conversion."""
        if node.logical:
            found = _logical(node)
            if found is not None:
                return found
        if node.kind == "union":
            return self._union(node)
        if node.kind == "record":
            if id(node) in self._open or not node.fields or self._size(node) > MOST_COLUMNS:
                return pa.string(), lambda value: None if value is None else text_of(node, value)
            return self.record(node)
        if node.inner is not None:
            kind, convert = self.column(node.inner)
            if node.kind == "array":
                return pa.list_(_field("element", kind, node.inner)), _of_list(convert)
            return pa.map_(pa.string(), _field("value", kind, node.inner)), _of_map(convert)
        return _PLAIN[node.kind], None

    def record(self, node: Node) -> tuple[pa.DataType, Convert]:
        """The struct of a record."""
        self._open.add(id(node))
        names = column_names(field.name for field in node.fields)
        made = [(field.name, names[field.name], *self.column(field.node), field) for field in node.fields]
        self._open.discard(id(node))
        struct = pa.struct([_field(column, kind, field.node) for _, column, kind, _, field in made])
        return struct, _of_struct([(name, column, convert) for name, column, _, convert, _ in made])

    def _union(self, node: Node) -> tuple[pa.DataType, Convert]:
        members = of_values(node)
        if not members:
            return pa.string(), None
        if len(members) == 1:
            return self.column(members[0])
        names = column_names(member.label for member in members)
        made = [(member, *self.column(member)) for member in members]
        struct = pa.struct([_field(names[member.label], kind, member) for member, kind, _ in made])
        converts = {member.label: (names[member.label], convert) for member, _, convert in made}

        def of_union(value: Any) -> Any:
            if value is None:
                return None
            ((label, inner),) = value.items()
            column, convert = converts[label]
            return {column: inner if convert is None else convert(inner)}

        return struct, of_union

    def _size(self, node: Node) -> int:
        """The number of columns at the leaves of a type; a type within itself is one."""
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        self._sizes[id(node)] = 1
        found = sum(self._size(one) for one in inner_types(node)) or 1
        self._sizes[id(node)] = found
        return found


def _logical(node: Node) -> tuple[pa.DataType, Convert] | None:
    if node.logical in _LOGICAL:
        return _LOGICAL[node.logical], None
    match node.logical:
        case "time-millis" | "time-micros":
            return _PLAIN[node.kind], lambda value: None if value is None else number_of(node, value)
        case "decimal" if node.precision <= _WIDEST:
            return pa.decimal128(node.precision, node.scale), None
        case "decimal" | "big-decimal":
            return pa.string(), lambda value: None if value is None else format(value, "f")
        case "uuid":
            return pa.string(), lambda value: None if value is None else str(value)
        case "duration":
            return _DURATION, None
    return None


def _of_struct(fields: list[tuple[str, str, Convert]]) -> Convert:
    if all(convert is None and name == column for name, column, convert in fields):
        return None

    def of_struct(value: Any) -> Any:
        if value is None:
            return None
        return {column: value[name] if convert is None else convert(value[name]) for name, column, convert in fields}

    return of_struct


def _of_list(convert: Convert) -> Convert:
    if convert is None:
        return None
    return lambda value: None if value is None else [convert(item) for item in value]


def _of_map(convert: Convert) -> Convert:
    def of_map(value: Any) -> Any:
        if value is None:
            return None
        return [(key, item if convert is None else convert(item)) for key, item in value.items()]

    return of_map
