"""The default values of Avro fields, which stand in the schema as JSON.

Rule: bytes and fixed are text with one character a byte; the default of a union is one of any member (Avro 1.12; until
1.11 it was the first member), and carries no label.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from signalbook.schemas.avro_types import NOTHING, Field, Node

__all__ = ["default_problem", "raw_default", "single"]

Steps = tuple[str | int, ...]

_FLOAT = struct.Struct("<f")
_WHOLE = {"int": 31, "long": 63}
_DEEPEST = 100
# Defaults of unions are tried member by member: a hostile one could go on for ever.
_MOST = 100_000


class _Wrong(Exception):
    """A default that its type does not take."""

    def __init__(self, steps: Steps, message: str) -> None:
        super().__init__(steps, message)
        self.steps = steps
        self.message = message


def single(value: float) -> float:
    """The number of 32 bits that is nearest; beyond their range, infinity."""
    try:
        found: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found


def default_problem(default: Any, node: Node, steps: Steps) -> tuple[Steps, str] | None:
    """Where and why a default is none of its type; None where it is one."""
    try:
        _raw(default, node, steps, [_MOST])
    except _Wrong as wrong:
        return wrong.steps, wrong.message
    return None


def raw_default(field: Field) -> Any:
    """The default of a field as decoding the same value from bytes would give it, before logical types."""
    return _raw(field.default, field.node, (), [_MOST])


def _raw(default: Any, node: Node, steps: Steps, left: list[int]) -> Any:  # noqa: C901  one line a kind
    kind = node.kind
    left[0] -= 1
    if len(steps) > _DEEPEST or left[0] < 0:
        raise _Wrong(steps, "the default is nested too deeply, or holds too many values")
    if kind == "union":
        return _of_union(default, node, steps, left)
    if kind == "null" and default is None:
        return None
    if kind == "boolean" and isinstance(default, bool):
        return default
    if kind in _WHOLE and _number(default, whole=True) and -(1 << _WHOLE[kind]) <= default < 1 << _WHOLE[kind]:
        return int(default)
    if kind in ("float", "double") and (_number(default) or default in ("NaN", "Infinity", "-Infinity")):
        value = float(default)
        return value if kind == "double" else single(value)
    if kind == "string" and isinstance(default, str):
        return default
    if kind in ("bytes", "fixed") and isinstance(default, str):
        return _of_bytes(default, node, steps)
    if kind == "enum" and isinstance(default, str) and default in node.symbols:
        return default
    if kind == "array" and isinstance(default, list):
        return [_raw(item, _inner(node), (*steps, number), left) for number, item in enumerate(default)]
    if kind == "map" and isinstance(default, dict):
        return {key: _raw(item, _inner(node), (*steps, key), left) for key, item in default.items()}
    if kind == "record" and isinstance(default, dict):
        return _of_record(default, node, steps, left)
    raise _Wrong(steps, f"the default {default!r:.60} is no {node.label}")


def _inner(node: Node) -> Node:
    assert node.inner is not None
    return node.inner


def _number(value: Any, whole: bool = False) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and (not whole or value.is_integer()))


def _of_bytes(default: str, node: Node, steps: Steps) -> bytes:
    try:
        found = default.encode("latin-1")
    except UnicodeEncodeError:
        raise _Wrong(steps, "the default of bytes holds characters beyond U+00FF") from None
    if node.kind == "fixed" and len(found) != node.size:
        raise _Wrong(steps, f"the default has {len(found)} bytes, {node.name} has {node.size}")
    return found


def _of_union(default: Any, node: Node, steps: Steps, left: list[int]) -> Any:
    for number, member in enumerate(node.members):
        try:
            return (number, _raw(default, member, steps, left))
        except _Wrong:
            continue
    raise _Wrong(steps, f"the default {default!r:.60} is none of the union's members")


def _of_record(default: dict[str, Any], node: Node, steps: Steps, left: list[int]) -> dict[str, Any]:
    found = {}
    for field in node.fields:
        value = default.get(field.name, field.default)
        if value is NOTHING:
            raise _Wrong(steps, f"the default lacks {field.name}, which has none of its own")
        found[field.name] = _raw(value, field.node, (*steps, field.name), left)
    return found
