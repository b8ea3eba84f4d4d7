"""A decoded Avro value as text in Avro's JSON encoding: what stands in a column where a type has no columns.

Rule: the text can be read back by `avro_json`, and gives the same value.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from signalbook.schemas.avro_types import Node, of_values

__all__ = ["number_of", "text_of"]

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
