"""Random Avro schemas, and random payloads of a schema with the values they hold; an encoder that shares no code."""

import datetime
import struct
import uuid
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from signalbook.schemas.avro.schema import Node, of_values

__all__ = ["container", "payloads", "schemas", "varint"]

UTC = datetime.UTC
LOGICAL: list[Any] = [
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 5},
    {"type": "bytes", "logicalType": "big-decimal"},
]
PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]


@st.composite
def schemas(draw: st.DrawFn, recursive: bool = True) -> Any:  # noqa: C901  one branch a kind
    """A schema document; named types have names that are not used twice."""
    names = iter(range(1000))

    def named() -> str:
        return f"T{next(names)}"

    def one(depth: int, open_: tuple[str, ...]) -> Any:
        kinds = ["primitive", "logical", "enum", "fixed"]
        if depth < 3:
            kinds += ["record", "array", "map", "nullable", "union"]
        if open_ and recursive:
            kinds.append("self")
        kind = draw(st.sampled_from(kinds))
        if kind == "primitive":
            return draw(st.sampled_from(PRIMITIVES))
        if kind == "logical":
            return draw(st.sampled_from(LOGICAL))
        if kind == "enum":
            return {"type": "enum", "name": named(), "symbols": ["A", "B", "C"][: draw(st.integers(1, 3))]}
        if kind == "fixed":
            return draw(
                st.sampled_from(
                    [
                        {"type": "fixed", "name": named(), "size": draw(st.integers(0, 9))},
                        {"type": "fixed", "name": named(), "size": 12, "logicalType": "duration"},
                        {"type": "fixed", "name": named(), "size": 16, "logicalType": "uuid"},
                        {"type": "fixed", "name": named(), "size": 8, "logicalType": "decimal", "precision": 9},
                    ]
                )
            )
        if kind == "record":
            return record(depth, open_)
        if kind == "array":
            return {"type": "array", "items": one(depth + 1, open_)}
        if kind == "map":
            return {"type": "map", "values": one(depth + 1, open_)}
        if kind == "self":
            return ["null", draw(st.sampled_from(open_))]
        if kind == "nullable":
            inner = one(depth + 1, open_)
            return inner if isinstance(inner, list) or inner == "null" else ["null", inner]
        return draw(
            st.sampled_from(
                [
                    ["null", "int", "long", "string"],
                    ["double", "null", "bytes", {"type": "enum", "name": named(), "symbols": ["X", "Y"]}],
                    ["int", record(depth + 1, open_), {"type": "map", "values": "long"}],
                ]
            )
        )

    def record(depth: int, open_: tuple[str, ...]) -> Any:
        name = named()
        count = draw(st.integers(0, 4))
        fields = [{"name": f"{'fF'[n % 2]}{n // 2}", "type": one(depth + 1, (*open_, name))} for n in range(count)]
        return {"type": "record", "name": name, "namespace": "test.ns", "fields": fields}

    return draw(st.sampled_from([record, one]))(0, ())


def varint(number: int) -> bytes:
    """An integer as Avro writes it."""
    number = number * 2 if number >= 0 else -number * 2 - 1
    found = b""
    while number > 127:
        found += bytes([number % 128 + 128])
        number //= 128
    return found + bytes([number])


def sized(value: bytes) -> bytes:
    return varint(len(value)) + value


@st.composite
def payloads(draw: st.DrawFn, node: Node, depth: int = 0) -> tuple[bytes, Any]:  # noqa: C901  one branch a kind
    """The bytes of a random value, and the value as it should be decoded."""
    if node.logical:
        return _logical(draw, node)
    match node.kind:
        case "null":
            return b"", None
        case "boolean":
            value = draw(st.booleans())
            return bytes([value]), value
        case "int" | "long":
            value = draw(st.integers(-(2**31), 2**31 - 1) if node.kind == "int" else st.integers(-(2**63), 2**63 - 1))
            return varint(value), value
        case "float":
            value = draw(st.floats(width=32, allow_nan=False))
            return struct.pack("<f", value), value
        case "double":
            value = draw(st.floats(allow_nan=False))
            return struct.pack("<d", value), value
        case "bytes":
            value = draw(st.binary(max_size=6))
            return sized(value), value
        case "string":
            value = draw(st.text(max_size=6))
            return sized(value.encode()), value
        case "fixed":
            value = draw(st.binary(min_size=node.size, max_size=node.size))
            return value, value
        case "enum":
            index = draw(st.integers(0, len(node.symbols) - 1))
            return varint(index), node.symbols[index]
        case "record":
            parts = [(field.name, draw(payloads(field.node, depth + 1))) for field in node.fields]
            return b"".join(part[0] for _, part in parts), {name: part[1] for name, part in parts}
        case "union":
            return _union(draw, node, depth)
    return _collection(draw, node, depth)


def _union(draw: st.DrawFn, node: Node, depth: int) -> tuple[bytes, Any]:
    numbers = list(range(len(node.members)))
    if depth > 5:
        numbers = [number for number in numbers if node.members[number].kind != "record"] or numbers
    index = draw(st.sampled_from(numbers))
    member = node.members[index]
    raw, value = draw(payloads(member, depth + 1))
    labelled = member.kind != "null" and len(of_values(node)) > 1
    return varint(index) + raw, {member.label: value} if labelled else value


def _collection(draw: st.DrawFn, node: Node, depth: int) -> tuple[bytes, Any]:
    assert node.inner is not None
    count = 0 if depth > 5 else draw(st.integers(0, 3))
    items = [draw(payloads(node.inner, depth + 1)) for _ in range(count)]
    if node.kind == "array":
        raw, value = b"".join(item[0] for item in items), [item[1] for item in items]
    else:
        keys = [f"k{number}" for number in range(count)]
        raw = b"".join(sized(key.encode()) + item[0] for key, item in zip(keys, items, strict=True))
        value = {key: item[1] for key, item in zip(keys, items, strict=True)}
    if not count:
        return b"\0", value
    if draw(st.booleans()):
        return varint(-count) + varint(len(raw)) + raw + b"\0", value
    return varint(count) + raw + b"\0", value


def _logical(draw: st.DrawFn, node: Node) -> tuple[bytes, Any]:
    match node.logical:
        case "date":
            day = draw(st.dates())
            return varint((day - datetime.date(1970, 1, 1)).days), day
        case "time-millis" | "time-micros":
            unit = 1000 if node.logical == "time-millis" else 1
            number = draw(st.integers(0, 86_400_000_000 // unit - 1))
            moment = datetime.datetime(2000, 1, 1) + datetime.timedelta(microseconds=number * unit)
            return varint(number), moment.time()
        case "timestamp-nanos":
            number = draw(st.integers(-(2**63), 2**63 - 1))
            return varint(number), number
        case "uuid":
            value = draw(st.uuids())
            return (value.bytes if node.kind == "fixed" else sized(str(value).encode())), uuid.UUID(str(value))
        case "duration":
            parts = draw(st.tuples(*[st.integers(0, 2**32 - 1)] * 3))
            return struct.pack("<III", *parts), dict(zip(("months", "days", "milliseconds"), parts, strict=True))
        case "big-decimal":
            number, scale = draw(st.integers()), draw(st.integers(-20, 20))
            raw = sized(number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)) + varint(scale)
            return sized(raw), Decimal(f"{number}E{-scale}")
        case "decimal":
            number = draw(st.integers(-(10**node.precision) + 1, 10**node.precision - 1))
            size = node.size or (number.bit_length() + 8) // 8
            raw = number.to_bytes(size, "big", signed=True)
            return (raw if node.kind == "fixed" else sized(raw)), Decimal(f"{number}E-{node.scale}")
    millis = node.logical.endswith("millis")
    moment = draw(st.datetimes())
    if millis:
        moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    micros = (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    value = moment if node.logical.startswith("local") else moment.replace(tzinfo=UTC)
    return varint(micros // 1000 if millis else micros), value


def container(schema: str, records: list[bytes]) -> bytes:
    """An object container file with one block."""
    sync = bytes(range(16))
    body = b"".join(records)
    meta = varint(1) + sized(b"avro.schema") + sized(schema.encode()) + b"\0"
    return b"Obj\x01" + meta + sync + varint(len(records)) + sized(body) + sync
