"""Decoded Protobuf messages as plain values, made when they are asked for.

Rule 1: fields go by their names in the .proto text. A field without presence is always there, with its default; one
with presence only where it is set.
Rule 2: enums are their names (a number where an open enum has none), bytes are bytes, maps are dictionaries; wrappers
are their value or None; `Struct`, `Value` and `ListValue` are JSON values; `Timestamp` and `Duration` are the texts of
the JSON mapping; `Any` is `{"@type": …, "value": Base64}`. Set extensions go by their names in square brackets.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

__all__ = ["JSON_TYPES", "WRAPPERS", "MessageValue", "is_map", "jsonable", "plain", "text_of"]

WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
)
JSON_TYPES = frozenset({"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"})


def is_map(field: FieldDescriptor) -> bool:
    """Tell whether a field is a map."""
    kind = field.message_type
    return kind is not None and field.is_repeated and kind.GetOptions().map_entry


class MessageValue(Mapping[str, Any]):
    """A message that reads as a dictionary of its fields; it is turned into one on first use."""

    __slots__ = ("_plain", "message")

    def __init__(self, message: Message) -> None:
        self.message = message

    @property
    def plain(self) -> dict[str, Any]:
        """The dictionary itself."""
        try:
            return self._plain
        except AttributeError:
            found = plain(self.message)
            self._plain: dict[str, Any] = found if isinstance(found, dict) else {"value": found}
            return self._plain

    def __getitem__(self, key: str) -> Any:
        return self.plain[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.plain)

    def __len__(self) -> int:
        return len(self.plain)

    def __repr__(self) -> str:
        return repr(self.plain)

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, (self.plain,))


def plain(message: Message) -> Any:
    """A message as a dictionary, or as the value that its well-known type stands for."""
    return _plan(message.DESCRIPTOR)(message)


# Descriptors keep their pools alive, so that this cache is bounded.
@lru_cache(maxsize=1024)
def _plan(descriptor: Descriptor) -> Callable[[Any], Any]:
    """What makes the plain value of each message of a type."""
    special = _SPECIAL.get(descriptor.full_name)
    if special is not None:
        return special
    reads = [(field.name, field.has_presence, _read(field)) for field in descriptor.fields]
    extendable = descriptor.is_extendable

    def of_message(message: Any) -> dict[str, Any]:
        found = {
            name: getattr(message, name) if read is None else read(getattr(message, name))
            for name, presence, read in reads
            if not presence or message.HasField(name)
        }
        if extendable:
            for field, value in message.ListFields():
                if field.is_extension:
                    read = _read(field)
                    found[f"[{field.full_name}]"] = value if read is None else read(value)
        return found

    return of_message


def _read(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    """What makes the plain value of a field's; None where it is the same."""
    if is_map(field):
        one = _read_one(field.message_type.fields_by_name["value"]) or _same
        return lambda values: {key: one(values[key]) for key in values}
    read = _read_one(field)
    if not field.is_repeated:
        return read
    return list if read is None else lambda values: [read(value) for value in values]


def _read_one(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    if field.message_type is not None:
        return plain
    if field.enum_type is not None:
        names = {value.number: value.name for value in reversed(field.enum_type.values)}
        return lambda number: names.get(number, number)
    return None


def _same(value: Any) -> Any:
    return value


def text_of(message: Message) -> str:
    """A message as JSON text: bytes in Base64, numbers that JSON lacks as text."""
    return json.dumps(jsonable(plain(message)), ensure_ascii=False, separators=(",", ":"))


def jsonable(value: Any) -> Any:
    """A plain value as JSON has it."""
    if isinstance(value, dict):
        return {_key(key): jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [jsonable(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _any(message: Any) -> dict[str, str]:
    return {"@type": message.type_url, "value": base64.b64encode(message.value).decode()}


def _struct_value(message: Any) -> Any:
    """`Struct`, `Value` and `ListValue` as JSON; a `Value` with nothing in it is null."""
    name = message.DESCRIPTOR.name
    if name == "Struct":
        return {key: _struct_value(message.fields[key]) for key in message.fields}
    if name == "ListValue":
        return [_struct_value(one) for one in message.values]
    kind = message.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    found = getattr(message, kind)
    return _struct_value(found) if kind in ("struct_value", "list_value") else found


def _text(message: Any) -> Any:
    return message.ToJsonString()


def _wrapped(message: Any) -> Any:
    return message.value


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    "google.protobuf.Any": _any,
    "google.protobuf.Timestamp": _text,
    "google.protobuf.Duration": _text,
    **dict.fromkeys(JSON_TYPES, _struct_value),
    **dict.fromkeys(WRAPPERS, _wrapped),
}
