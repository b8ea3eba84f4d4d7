"""The columns of Protobuf payloads: an Arrow type that Delta and Spark both hold, and what turns a message into it.

Rule 1: exact: 32-bit unsigned numbers are 64-bit columns, 64-bit unsigned ones decimal(20,0); a `Duration` is
decimal(21,9) seconds; a `Timestamp` is a struct of `time`, in microseconds, and `nanos`, what is left below them.
Rule 2: an enum is the text of its name, or of its number where an open enum has no name. The members of a oneof are
columns of which at most one is set. Wrappers are their value.
Rule 3: what has no column is JSON text: `Struct`, `Value`, `ListValue`, `Any`, a message within itself, one without
fields, one within more than fifty others, one of more than `MOST_COLUMNS` columns within another, and set extensions
(one column `_extensions`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from signalbook.schemas.format import column_names
from signalbook.schemas.protobuf.values import JSON_TYPES, WRAPPERS, is_map, jsonable, plain, text_of

__all__ = ["EXTENSIONS", "MOST_COLUMNS", "columns"]

MOST_COLUMNS = 10_000
EXTENSIONS = "_extensions"
_DEEPEST = 50

# What makes a column's value of a field's; None where it is the same.
Convert = Callable[[Any], Any] | None
Read = Callable[[Any], Any]

_F = FieldDescriptor
_SCALARS: dict[int, pa.DataType] = {
    _F.TYPE_BOOL: pa.bool_(),
    _F.TYPE_INT32: pa.int32(),
    _F.TYPE_SINT32: pa.int32(),
    _F.TYPE_SFIXED32: pa.int32(),
    _F.TYPE_UINT32: pa.int64(),
    _F.TYPE_FIXED32: pa.int64(),
    _F.TYPE_INT64: pa.int64(),
    _F.TYPE_SINT64: pa.int64(),
    _F.TYPE_SFIXED64: pa.int64(),
    _F.TYPE_UINT64: pa.decimal128(20, 0),
    _F.TYPE_FIXED64: pa.decimal128(20, 0),
    _F.TYPE_FLOAT: pa.float32(),
    _F.TYPE_DOUBLE: pa.float64(),
    _F.TYPE_STRING: pa.string(),
    _F.TYPE_BYTES: pa.binary(),
    _F.TYPE_ENUM: pa.string(),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP = pa.struct([("time", pa.timestamp("us", "UTC")), ("nanos", pa.int32())])
_DURATION = pa.decimal128(21, 9)


def columns(message: Descriptor) -> tuple[pa.DataType, Callable[[Any], Any]]:
    """The struct of a payload's columns, and what turns a message into it."""
    making = _ProtobufColumns()
    if message.fields and message.full_name not in _SPECIAL and message.full_name not in WRAPPERS:
        return making.struct(message)
    kind, convert = making.message(message)
    return pa.struct([_field("value", kind, message)]), lambda value: {"value": convert(value)}


class _ProtobufColumns:
    """One type being made: the messages that are open above, and the sizes known."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._enums: dict[str, dict[int, str]] = {}  # the names of each enum's numbers

    def message(self, message: Descriptor) -> tuple[pa.DataType, Read]:
        """The type of one message's column, and its conversion."""
        name = message.full_name
        if name in _SPECIAL:
            return _SPECIAL[name]
        if name in WRAPPERS:
            kind, convert = _scalar(message.fields_by_name["value"], self._enums)
            return kind, (lambda one: one.value) if convert is None else (lambda one: convert(one.value))
        if name in self._open or len(self._open) > _DEEPEST or not message.fields or self._size(message) > MOST_COLUMNS:
            return pa.string(), text_of
        return self.struct(message)

    def struct(self, message: Descriptor) -> tuple[pa.DataType, Read]:
        """The struct of a message with fields."""
        self._open.add(message.full_name)
        names = column_names((field.name for field in message.fields), reserved=[EXTENSIONS])
        made = [(names[field.name], *self._column(field), field.message_type) for field in message.fields]
        self._open.discard(message.full_name)
        fields = [_field(column, kind, inner) for column, kind, _, inner in made]
        reads = [(column, read) for column, _, read, _ in made]
        if message.is_extendable:
            fields.append(pa.field(EXTENSIONS, pa.string()))
            reads.append((EXTENSIONS, _extensions))

        def of_message(one: Any) -> dict[str, Any]:
            return {column: read(one) for column, read in reads}

        return pa.struct(fields), of_message

    def _column(self, field: FieldDescriptor) -> tuple[pa.DataType, Read]:
        name = field.name
        if is_map(field):
            return self._map(field)
        kind, convert = self._value(field)
        if field.is_repeated:
            return pa.list_(_field("element", kind, field.message_type)), _of_list(name, convert)
        if field.has_presence:
            return kind, _of_present(name, convert)
        if convert is None:
            return kind, lambda one: getattr(one, name)
        return kind, lambda one: convert(getattr(one, name))

    def _map(self, field: FieldDescriptor) -> tuple[pa.DataType, Read]:
        name = field.name
        key, key_convert = _scalar(field.message_type.fields_by_name["key"], self._enums)
        inner = field.message_type.fields_by_name["value"]
        kind, convert = self._value(inner)
        of_key, of_value = key_convert or _same, convert or _same

        def of_map(one: Any) -> list[tuple[Any, Any]]:
            values = getattr(one, name)
            return [(of_key(key), of_value(values[key])) for key in values]

        return pa.map_(key, _field("value", kind, inner.message_type)), of_map

    def _value(self, field: FieldDescriptor) -> tuple[pa.DataType, Convert]:
        if field.message_type is not None:
            return self.message(field.message_type)
        return _scalar(field, self._enums)

    def _size(self, message: Descriptor) -> int:
        """The number of columns at the leaves of a message; a message within itself is one."""
        name = message.full_name
        if name not in self._sizes:
            self._sizes[name] = 1
            self._sizes[name] = sum(
                1 if field.message_type is None else self._size(field.message_type) for field in message.fields
            )
        return self._sizes[name]


def _scalar(field: FieldDescriptor, enums: dict[str, dict[int, str]]) -> tuple[pa.DataType, Convert]:
    if field.enum_type is not None:
        enum = field.enum_type
        if enum.full_name not in enums:
            enums[enum.full_name] = {value.number: value.name for value in reversed(enum.values)}
        names = enums[enum.full_name]
        return pa.string(), lambda number: names.get(number) or str(number)
    if field.type in (_F.TYPE_UINT64, _F.TYPE_FIXED64):
        return _SCALARS[field.type], Decimal
    return _SCALARS[field.type], None


def _same(value: Any) -> Any:
    return value


def _of_list(name: str, convert: Convert) -> Read:
    if convert is None:
        return lambda one: list(getattr(one, name))
    return lambda one: [convert(value) for value in getattr(one, name)]


def _of_present(name: str, convert: Convert) -> Read:
    of_value = convert or _same
    return lambda one: of_value(getattr(one, name)) if one.HasField(name) else None


def _extensions(message: Any) -> str | None:
    found = {f"[{field.full_name}]": plain_field for field, plain_field in _set_extensions(message)}
    return json.dumps(jsonable(found), ensure_ascii=False, separators=(",", ":")) if found else None


def _set_extensions(message: Any) -> list[tuple[FieldDescriptor, Any]]:
    everything = plain(message)
    return [(field, everything[f"[{field.full_name}]"]) for field, _ in message.ListFields() if field.is_extension]


def _field(name: str, kind: pa.DataType, message: Descriptor | None) -> pa.Field:
    unit = "s" if message is not None and message.full_name == "google.protobuf.Duration" else None
    return pa.field(name, kind, metadata={"unit": unit} if unit else None)


def _timestamp(one: Any) -> dict[str, Any]:
    micros, nanos = divmod(one.nanos, 1000)
    return {"time": _EPOCH + timedelta(seconds=one.seconds, microseconds=micros), "nanos": nanos}


def _duration(one: Any) -> Decimal:
    return Decimal(one.seconds * 1_000_000_000 + one.nanos).scaleb(-9)


_SPECIAL: dict[str, tuple[pa.DataType, Read]] = {
    "google.protobuf.Timestamp": (_TIMESTAMP, _timestamp),
    "google.protobuf.Duration": (_DURATION, _duration),
    "google.protobuf.Any": (pa.string(), text_of),
    **dict.fromkeys(JSON_TYPES, (pa.string(), text_of)),
}
