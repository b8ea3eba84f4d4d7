"""What the columns of a Protobuf payload hold, read from the message as `schema-formats.md` says.

The message is parsed by the library of Protobuf; nothing is shared with the product, which is compared with this.
"""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor

from tests.pipeline.column_spelling import columns

__all__ = ["protobuf_cells"]

_WRAPPERS = {
    f"{kind}Value" for kind in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
}
_UNSIGNED = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)


def protobuf_cells(message: Any, within: frozenset[str] = frozenset()) -> Any:
    """The value of a message's column; at the top, the struct of its columns."""
    name = message.DESCRIPTOR.full_name
    match name.removeprefix("google.protobuf."):
        case "Timestamp":
            time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
                seconds=message.seconds, microseconds=message.nanos // 1000
            )
            return {"time": time, "nanos": message.nanos % 1000}
        case "Duration":
            return Decimal(message.seconds * 10**9 + message.nanos) / 10**9
        case short if short in _WRAPPERS:
            return _scalar(message.DESCRIPTOR.fields_by_name["value"], message.value)
    if _is_json(name) or name in within or not message.DESCRIPTOR.fields:
        return json.dumps(_text(message), ensure_ascii=False, separators=(",", ":"))
    within |= {name}
    names = columns(field.name for field in message.DESCRIPTOR.fields)
    found = {names[field.name]: _field(message, field, within) for field in message.DESCRIPTOR.fields}
    if message.DESCRIPTOR.is_extendable:
        extended = {
            f"[{field.full_name}]": _set(field, value) for field, value in message.ListFields() if field.is_extension
        }
        found["_extensions"] = json.dumps(extended, ensure_ascii=False, separators=(",", ":")) if extended else None
    return found


def _is_json(name: str) -> bool:
    return name in {f"google.protobuf.{short}" for short in ("Struct", "Value", "ListValue", "Any")}


def _field(message: Any, field: FieldDescriptor, within: frozenset[str]) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if _is_map(field):
        key, inner = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return [(_scalar(key, one), _one(inner, value[one], within)) for one in value]
    return [_one(field, one, within) for one in value] if field.is_repeated else _one(field, value, within)


def _one(field: FieldDescriptor, value: Any, within: frozenset[str]) -> Any:
    return _scalar(field, value) if field.message_type is None else protobuf_cells(value, within)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return str(value) if named is None else named.name
    return Decimal(value) if field.type in _UNSIGNED else value


def _text(message: Any) -> Any:
    """A message as JSON: fields by their names, those without presence always, bytes in Base64."""
    short = message.DESCRIPTOR.full_name.removeprefix("google.protobuf.")
    if short == "Any":
        return {"@type": message.type_url, "value": base64.b64encode(message.value).decode()}
    if short in ("Struct", "ListValue", "Value"):
        return json_format.MessageToDict(message)
    if short in ("Timestamp", "Duration"):
        return message.ToJsonString()
    if short in _WRAPPERS:
        return _number(message.value)
    found = {}
    for field in message.DESCRIPTOR.fields:
        if not field.has_presence or message.HasField(field.name):
            found[field.name] = _set(field, getattr(message, field.name))
    return found


def _set(field: FieldDescriptor, value: Any) -> Any:
    if _is_map(field):
        inner = field.message_type.fields_by_name["value"]
        return {_key(key): _set_one(inner, value[key]) for key in value}
    return [_set_one(field, one) for one in value] if field.is_repeated else _set_one(field, value)


def _set_one(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return _text(value)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return value if named is None else named.name
    return _number(value)


def _number(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)
