"""What an Avro schema is once it is read: a graph of nodes, the same node wherever a name leads to it.

Rule 1: a graph is built by `avro_read` and never changes after that.
Rule 2: a logical type stands on a node only where the specification (Avro 1.12, "Logical Types") calls it valid there;
everywhere else it is ignored, as the specification says, and the node is what lies under it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "NAMED",
    "NOTHING",
    "PRIMITIVES",
    "Field",
    "Node",
    "canonical_form",
    "fingerprint",
    "inner_types",
    "logical_type",
    "of_values",
    "walk",
]

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED = frozenset({"record", "enum", "fixed"})


class _Nothing:
    """The default of a field that has none; JSON null is a default."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Any = _Nothing()


@dataclass(slots=True, eq=False)
class Node:
    """One type: `inner` are an array's items or a map's values, `members` those of a union."""

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    symbols: tuple[str, ...] = ()
    default: str | None = None
    size: int = 0
    inner: Node | None = None
    members: tuple[Node, ...] = ()
    logical: str = ""
    precision: int = 0
    scale: int = 0

    @property
    def label(self) -> str:
        """The name that a union's value carries in Avro's JSON encoding."""
        return self.name or self.kind


@dataclass(slots=True, eq=False)
class Field:
    """One field of a record; `default` is the JSON value, or `NOTHING`."""

    name: str
    node: Node
    aliases: tuple[str, ...] = ()
    default: Any = NOTHING


def of_values(node: Node) -> tuple[Node, ...]:
    """The members of a union that are not null; for any other node, itself."""
    if node.kind != "union":
        return (node,)
    return tuple(member for member in node.members if member.kind != "null")


def inner_types(node: Node) -> list[Node]:
    """The types directly within a type, in their order."""
    found = [field.node for field in node.fields]
    found.extend(node.members)
    if node.inner is not None:
        found.append(node.inner)
    return found


def walk(node: Node) -> Iterator[Node]:
    """Yield every node that can be reached, each once."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting.extend(inner_types(one))


# Logical types by the type they annotate; those with conditions of their own are below.
_LOGICAL: dict[str, frozenset[str]] = {
    "int": frozenset({"date", "time-millis"}),
    "long": frozenset(
        {
            "time-micros",
            "timestamp-millis",
            "timestamp-micros",
            "timestamp-nanos",
            "local-timestamp-millis",
            "local-timestamp-micros",
            "local-timestamp-nanos",
        }
    ),
    "string": frozenset({"uuid"}),
    "bytes": frozenset({"big-decimal"}),
}
_FIXED_SIZES = {"duration": 12, "uuid": 16}


def logical_type(kind: str, size: int, spec: Mapping[str, Any]) -> tuple[str, int, int]:
    """The valid logical type of a definition, with a decimal's precision and scale; an empty name: it has none."""
    name = spec.get("logicalType")
    if not isinstance(name, str):
        return "", 0, 0
    if name == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = _whole(spec.get("precision")), _whole(spec.get("scale", 0))
        # "floor(log10(2^(8 * n - 1) - 1))" digits fit in n bytes.
        digits = math.inf if kind == "bytes" else math.floor((8 * size - 1) * math.log10(2))
        if 0 < precision <= digits and 0 <= scale <= precision:
            return name, precision, scale
        return "", 0, 0
    if name in _LOGICAL.get(kind, ()) or (kind == "fixed" and _FIXED_SIZES.get(name) == size):
        return name, 0, 0
    return "", 0, 0


def _whole(value: Any) -> int:
    """A whole number, or -1 where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def canonical_form(node: Node) -> str:
    """The "Parsing Canonical Form" of the specification: what is left when nothing but the wire matters."""
    return "".join(_canonical(node, set()))


def _canonical(node: Node, seen: set[str]) -> Iterator[str]:
    if node.name:
        if node.name in seen:
            yield f'"{node.name}"'
            return
        seen.add(node.name)
    match node.kind:
        case "union":
            yield from _joined(node.members, seen)
        case "array" | "map":
            assert node.inner is not None
            yield f'{{"type":"{node.kind}","{"items" if node.kind == "array" else "values"}":'
            yield from _canonical(node.inner, seen)
            yield "}"
        case "enum":
            yield f'{{"name":"{node.name}","type":"enum","symbols":['
            yield ",".join(f'"{symbol}"' for symbol in node.symbols) + "]}"
        case "fixed":
            yield f'{{"name":"{node.name}","type":"fixed","size":{node.size}}}'
        case "record":
            yield f'{{"name":"{node.name}","type":"record","fields":['
            for number, field in enumerate(node.fields):
                yield f'{"," if number else ""}{{"name":"{field.name}","type":'
                yield from _canonical(field.node, seen)
                yield "}"
            yield "]}"
        case kind:
            yield f'"{kind}"'


def _joined(members: tuple[Node, ...], seen: set[str]) -> Iterator[str]:
    yield "["
    for number, member in enumerate(members):
        if number:
            yield ","
        yield from _canonical(member, seen)
    yield "]"


_EMPTY = 0xC15D213AA4D7A795


def _table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_EMPTY & -(value & 1))
        table.append(value)
    return tuple(table)


_TABLE = _table()


def fingerprint(node: Node) -> bytes:
    """The CRC-64-AVRO of the canonical form, as single-object encoding carries it: eight bytes, least one first."""
    value = _EMPTY
    for byte in canonical_form(node).encode():
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value.to_bytes(8, "little")
