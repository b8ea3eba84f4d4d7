"""Avro payloads: written from values, and made up."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from signalbook.schemas.avro import AvroSchema
from signalbook.schemas.avro_encode import encode as encode_binary
from signalbook.schemas.avro_types import Node
from signalbook.schemas.bad_value import BadValue
from signalbook.schemas.json_exact import encode as encode_json

__all__ = ["encode", "samples"]

_DEEPEST = 8


def encode(schema: AvroSchema, value: Any, contenttype: str) -> bytes:
    """The value in raw binary, or as Avro's JSON encoding under an `avro+json` content type."""
    if contenttype.partition(";")[0].strip().lower().endswith("avro+json"):
        try:
            return encode_json(value).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise BadValue(f"is no JSON value: {error}") from None
    return encode_binary(schema.node, value)


def samples(schema: AvroSchema, contenttype: str) -> Iterator[bytes]:
    """Payloads to try: one with all optional members, one without."""
    for full in (True, False):
        yield encode(schema, _value(schema.node, full, 0), contenttype)


_PLAIN: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 1,
    "float": 1.5,
    "double": 1.5,
    "string": "text",
    "bytes": "a",
}
_LOGICAL: dict[str, Any] = {
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
    full = full and depth < _DEEPEST
    match node.kind:
        case "record":
            if depth > 4 * _DEEPEST:
                raise BadValue("contains itself without an end")
            return {field.name: _value(field.node, full, depth + 1) for field in node.fields}
        case "enum":
            return node.symbols[0]
        case "fixed":
            return _fixed(node)
        case "array" | "map":
            assert node.inner is not None
            if node.kind == "array":
                return [_value(node.inner, full, depth + 1)] if full else []
            return {"key": _value(node.inner, full, depth + 1)} if full else {}
        case "union":
            return _member(node, full, depth)
        case kind:
            return _LOGICAL.get(node.logical, _PLAIN[kind])


def _member(node: Node, full: bool, depth: int) -> Any:
    kinds = [member.kind for member in node.members]
    if "null" in kinds and (not full or len(kinds) == 1):
        return None
    member = next(one for one in node.members if one.kind != "null")
    return {member.label: _value(member, full, depth + 1)}


def _fixed(node: Node) -> str:
    if node.logical == "duration":
        return struct.pack("<III", 1, 2, 3).decode("latin-1")
    if node.logical == "decimal":
        return (1).to_bytes(node.size, "big").decode("latin-1")
    return "\x01" * node.size
