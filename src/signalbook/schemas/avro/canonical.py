"""What identifies an Avro schema on the wire: its canonical form, and the fingerprint of that (Avro 1.12)."""

from __future__ import annotations

from collections.abc import Iterator

from signalbook.schemas.avro.schema import Node

__all__ = ["canonical_form", "fingerprint"]


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
