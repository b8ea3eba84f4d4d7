"""Protobuf payloads: written from values, and made up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import EncodeError
from google.protobuf.message_factory import GetMessageClass

from signalbook.schemas.bad_value import BadValue
from signalbook.schemas.json_exact import encode as encode_json
from signalbook.schemas.protobuf import ProtobufSchema
from signalbook.schemas.protobuf_value import is_map

__all__ = ["encode", "samples"]

_DEEPEST = 6


def encode(schema: ProtobufSchema, value: Any, contenttype: str) -> bytes:
    """The value, given as Protobuf's JSON mapping has it, in binary, or as that JSON under a JSON content type."""
    if schema.message is None:
        raise BadValue("nothing says which message a payload is")
    try:
        text = encode_json(value)
        message = GetMessageClass(schema.message)()
        json_format.Parse(text, message, descriptor_pool=schema.file.pool, max_recursion_depth=100)
        if _is_json(contenttype):
            return text.encode()
        found: bytes = message.SerializeToString(deterministic=True)
    except (json_format.ParseError, EncodeError, TypeError, ValueError, RecursionError) as error:
        raise BadValue(f"is not as {schema.message.full_name} has it: {error}") from None
    return found


def _is_json(contenttype: str) -> bool:
    bare = contenttype.partition(";")[0].strip().lower()
    return bare.endswith("+json") or bare in ("application/json", "text/json")


def samples(schema: ProtobufSchema, contenttype: str) -> Iterator[bytes]:
    """Payloads to try: one with all fields, one with those that are required."""
    if schema.message is not None:
        for full in (True, False):
            yield encode(schema, _message(schema.message, full, 0), contenttype)


# The well-known types have forms of their own in JSON (protobuf.dev, "ProtoJSON Format").
_KNOWN: Mapping[str, Any] = {
    "google.protobuf.Timestamp": "2024-05-17T12:30:00Z",
    "google.protobuf.Duration": "1.5s",
    "google.protobuf.FieldMask": "a",
    "google.protobuf.Struct": {"a": 1},
    "google.protobuf.Value": 1,
    "google.protobuf.ListValue": [1],
    "google.protobuf.Empty": {},
    "google.protobuf.Any": {},
    "google.protobuf.BoolValue": True,
    "google.protobuf.StringValue": "text",
    "google.protobuf.BytesValue": "YQ==",
    **{f"google.protobuf.{name}Value": 1 for name in ("Int32", "UInt32", "Int64", "UInt64", "Float", "Double")},
}


def _message(message: Descriptor, full: bool, depth: int) -> Any:
    if message.full_name in _KNOWN:
        return _KNOWN[message.full_name]
    made = {}
    for field in message.fields:
        if field.is_required or (full and _is_first_of_its_choice(field) and _fits(field, depth)):
            if depth > 4 * _DEEPEST:
                raise BadValue("contains itself without an end")
            made[field.name] = _field(field, full, depth)
    return made


def _is_first_of_its_choice(field: FieldDescriptor) -> bool:
    return field.containing_oneof is None or field.containing_oneof.fields[0].name == field.name


def _fits(field: FieldDescriptor, depth: int) -> bool:
    """Whether there is room for a field."""
    return field.message_type is None or depth < _DEEPEST


def _field(field: FieldDescriptor, full: bool, depth: int) -> Any:
    if is_map(field):
        key, value = field.message_type.fields
        return {str(_single(key, full, depth)).lower(): _single(value, full, depth)}
    one = _single(field, full, depth)
    return [one] if field.is_repeated else one


def _single(field: FieldDescriptor, full: bool, depth: int) -> Any:
    if field.message_type is not None:
        return _message(field.message_type, full, depth + 1)
    if field.enum_type is not None:
        values = field.enum_type.values
        return values[min(1, len(values) - 1)].name
    return _PLAIN.get(field.cpp_type, 1) if field.type != FieldDescriptor.TYPE_BYTES else "YQ=="


_PLAIN: Mapping[int, Any] = {
    FieldDescriptor.CPPTYPE_BOOL: True,
    FieldDescriptor.CPPTYPE_STRING: "text",
    FieldDescriptor.CPPTYPE_FLOAT: 1.5,
    FieldDescriptor.CPPTYPE_DOUBLE: 1.5,
}
