"""Payload checks of Avro and Protobuf against the bare library calls under them; `bench/schemas.py` prints the figures.

Rule: a check may cost 1.3 times the bare call, or one microsecond more: the limit of each ratio is the larger of both.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable

from bench.figures import Figure, call_seconds, check_limit

__all__ = ["figures"]


AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "customer", "type": "string"},
        {"name": "number", "type": "int"},
        {"name": "total", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID", "SENT"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
                },
            },
        },
    ],
}
PROTOBUF = """syntax = "proto3"; package shop;
message Flat {
  string id = 1; string customer = 2; int32 number = 3; double total = 4; int64 at = 5; repeated string tags = 6;
}
message Order { Flat head = 1; repeated Line lines = 2; }
message Line { string sku = 1; int32 count = 2; }
"""


def _figure(name: str, ours: float, bare: float, anchor: str) -> Figure:
    limit = check_limit(bare)
    note = f"{1 / ours:,.0f} checks a second, {ours * 1e6:.2f} µs; the bare call {bare * 1e6:.2f} µs"
    return Figure(name, ours / bare, limit, anchor, note=note)


def _avro() -> list[Figure]:
    import fastavro

    from signalbook.schemas.avro import payload as avro

    schema, parsed = avro.read(json.dumps(AVRO)), fastavro.parse_schema(json.loads(json.dumps(AVRO)))
    stream = io.BytesIO()
    order = {
        "id": "2026-000017",
        "customer": "c-4711",
        "number": 17,
        "total": 129.5,
        "note": "by noon",
        "state": "PAID",
        "at": 1_790_000_000_000_000,
        "tags": ["a", "b"],
        "lines": [{"sku": f"sku-{number}", "count": number} for number in range(3)],
    }
    fastavro.schemaless_writer(stream, parsed, order)
    payload = stream.getvalue()

    def bare() -> object:
        opened = io.BytesIO(payload)
        fastavro.schemaless_reader(opened, parsed, None)
        return opened.read(1)

    framed = b"\0\0\0\0\1" + payload
    calls: list[Callable[[], object]] = [bare, lambda: schema.check(payload), lambda: schema.check(framed)]
    other = _pure_python(payload)
    spent = call_seconds([*calls, *other], rounds=100)
    found = [
        _figure("Avro: check, to fastavro", spent[1], spent[0], "times schemaless_reader"),
        Figure("Avro: check with Confluent's frame", spent[2] / spent[0], None, "times schemaless_reader"),
    ]
    if other:
        found.append(Figure("Avro: check, to the avro package", spent[3] / spent[1], 2, "times as fast", at_least=True))
    return found


def _pure_python(payload: bytes) -> list[Callable[[], object]]:
    try:
        import avro.io
        import avro.schema
    except ModuleNotFoundError:
        return []
    reader = avro.io.DatumReader(avro.schema.parse(json.dumps(AVRO)))
    return [lambda: reader.read(avro.io.BinaryDecoder(io.BytesIO(payload)))]


def _protobuf() -> list[Figure]:
    from google.protobuf import json_format
    from google.protobuf.message_factory import GetMessageClass

    from signalbook.schemas.protobuf import schema as protobuf

    text = protobuf.read_proto3(PROTOBUF)
    flat, order = text.at(":Flat"), text.at(":Order")
    head = {
        "id": "2026-000017",
        "customer": "c-4711",
        "number": 17,
        "total": 129.5,
        "at": 1_790_000_000,
        "tags": ["a", "b"],
    }
    flat_class, order_class = GetMessageClass(flat.message), GetMessageClass(order.message)
    payload = flat_class(**head).SerializeToString()
    lines = [{"sku": f"sku-{number}", "count": number} for number in range(3)]
    nested = order_class(head=head, lines=lines).SerializeToString()
    spent = call_seconds(
        [
            lambda: flat_class.FromString(payload),
            lambda: flat.check(payload),
            lambda: order_class.FromString(nested),
            lambda: order.check(nested),
            lambda: json_format.MessageToDict(flat_class.FromString(payload), preserving_proto_field_name=True),
            lambda: dict(flat.check(payload).value),
        ],
        rounds=150,
        times=1000,
    )
    return [
        _figure("Protobuf: check, to the bare parser", spent[1], spent[0], "times FromString"),
        Figure(
            "Protobuf: check of messages in a message",
            spent[3] / spent[2],
            None,
            "times FromString",
            note=f"{spent[3] * 1e6:.2f} µs to {spent[2] * 1e6:.2f}: looks for fields that the parser put aside",
        ),
        Figure("Protobuf: check and dictionary", spent[5] / spent[4], 1.3, "times FromString and MessageToDict"),
    ]


def figures() -> list[Figure]:
    """The figures of Avro and Protobuf."""
    return [*_avro(), *_protobuf()]


if __name__ == "__main__":
    from bench.figures import show

    raise SystemExit(not show(figures()))
