"""The columns of landed payloads hold the payloads, value by value, for each format that has columns of its own."""

import base64
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from google.protobuf import text_format
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from signalbook.pipeline.read.records import Record
from signalbook.pipeline.worker import PackedCatalog, run
from signalbook.schemas.avro import payload as avro
from signalbook.schemas.protobuf import schema as protobuf
from tests.pipeline import json_cells
from tests.pipeline.avro_cells import avro_cells
from tests.pipeline.lakes import job
from tests.pipeline.protobuf_cells import protobuf_cells
from tests.schemas import avro_values, protobuf_values

NAMES = ("Top", "Mid", "Low")


def landed(folder: Path, format_: str, schema: Any, content_type: str, payloads: list[bytes]) -> list[Any]:
    """The column `data` of each payload, read back from the file; each stands as its bytes beside it."""
    moved = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "moved"}},
        "dataschemaformat": format_,
        "dataschema": schema,
    }
    catalog = PackedCatalog.of({"messagegroups": {"fleet": {"messages": {"moved": moved}}}})
    head = b'{"specversion":"1.0","id":"%d","type":"moved","source":"/a","datacontenttype":"' + content_type.encode()
    member = b'","data":%b}' if content_type == "application/json" else b'","data_base64":"%b"}'
    written = payloads if content_type == "application/json" else [base64.b64encode(one) for one in payloads]
    records = [Record(head % at + member % one, "given", at) for at, one in enumerate(written)]
    report = json.loads(run(job(folder, catalog), records))
    assert (len(payloads), 0) == (report["landed"], report["dead"]), report["problems"]
    (file,) = report["files"]
    rows = pq.ParquetFile(folder / file["table"] / file["path"]).read().to_pylist()
    rows.sort(key=lambda row: row["judged"]["position"])
    assert payloads == [row["payload"] for row in rows]
    return [row["data"] for row in rows]


def same(expected: Any, actual: Any) -> bool:
    """Whether a column's value is the one that is expected: no number for a flag, no zero without its sign."""
    if isinstance(expected, tuple) and expected[:1] == ("JSON",):
        return isinstance(actual, str) and same_json(expected[1], json_cells.decoded(actual))
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(same_member(name, expected, actual) for name in expected)
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    if isinstance(expected, float) and isinstance(actual, float):
        return math.isnan(actual) if math.isnan(expected) else (expected, _sign(expected)) == (actual, _sign(actual))
    return type(expected) is type(actual) and bool(expected == actual)


def same_member(name: str, expected: Any, actual: Any) -> bool:
    """Of `_additional` the value counts, not its spelling."""
    if name == "_additional" and expected[name] is not None:
        return actual[name] is not None and same_json(expected[name], json_cells.decoded(actual[name]))
    return same(expected[name], actual[name])


def same_json(expected: Any, actual: Any) -> bool:
    """Whether two JSON values are the same; 1 and 1.0 are."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(same_json(expected[name], actual[name]) for name in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(same_json, expected, actual))
    numbers = (int, Decimal)
    alike = type(expected) is type(actual) or (type(expected) in numbers and type(actual) in numbers)
    return alike and bool(expected == actual)


def _sign(number: float) -> float:
    return math.copysign(1, number)


@given(st.data())
def test_json_schema(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Every member of a payload is in its column, or, where that has none or cannot give it back, in `_additional`."""
    schema = data.draw(json_cells.objects(json_cells.schemas(2)) | json_cells.schemas())
    payloads = data.draw(st.lists(json_cells.fitting(schema), min_size=1, max_size=4))
    # Each twice: what took the general path the first time takes the fast path then.
    texts = [text.encode() for text in payloads * 2]
    rows = landed(tmp_path_factory.mktemp("lake"), "JsonSchema/draft/2020-12", schema, "application/json", texts)
    for text, row in zip(payloads * 2, rows, strict=True):
        expected = json_cells.cells(schema, json_cells.decoded(text))
        assert same(expected, row), (text, expected, row)


OF_MAPS = {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}}
OF_CENTS = {"type": "array", "items": {"type": "number", "multipleOf": 0.01}}
OF_VALUE = {"type": "object", "properties": {"value": {"type": ["integer", "null"]}}, "required": []}
OF_NUMBERS = {"type": "object", "properties": {"n": {"type": "integer"}, "x": {"type": "number"}}, "required": []}


@pytest.mark.parametrize(
    ("schema", "payloads"),
    [
        (OF_MAPS, ["[]", '[{"a":"b"},{}]']),
        (OF_CENTS, ["[]", "[0.01,12.5]"]),
        ({"type": "string"}, ['"value"', '"{}"']),
        (OF_VALUE, ['{"value":1}', "{}", '{"value":null}', '{"value":1.0}']),
        (OF_NUMBERS, ['{"n":-0,"x":-0}', '{"n":1e2,"x":-0.0}', '{"x":9007199254740993}', '{"n":1}', '{"n":1,"n":2}']),
    ],
)
def test_json_schema_of_every_shape(tmp_path: Path, schema: Any, payloads: list[str]) -> None:
    """Arrays and texts are payloads too, and a member may be named as their column is."""
    texts = [text.encode() for text in payloads * 2]
    rows = landed(tmp_path, "JsonSchema/draft/2020-12", schema, "application/json", texts)
    for text, row in zip(payloads * 2, rows, strict=True):
        expected = json_cells.cells(schema, json_cells.decoded(text))
        assert same(expected, row), (text, expected, row)


@given(st.data())
def test_avro(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Every value of a payload is in its column: unions, enums, fixed, decimals, dates, times, maps, text."""
    document = data.draw(avro_values.schemas())
    node = avro.read(json.dumps(document)).node
    payloads = [data.draw(avro_values.payloads(node))[0] for _ in range(data.draw(st.integers(1, 3)))]
    rows = landed(tmp_path_factory.mktemp("lake"), "Avro/1.12.0", json.dumps(document), "application/avro", payloads)
    for payload, row in zip(payloads, rows, strict=True):
        expected = avro_cells(document, payload)
        assert same(expected, row), (payload, expected, row)


@given(st.data(), st.sampled_from(["2", "3"]))
def test_protobuf(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, syntax: str) -> None:
    """Every field of a message is in its column: oneofs, repeated, maps, enums, 64 bits, the well-known types."""
    text = protobuf_values.render(data.draw(protobuf_values.texts()), f"proto{syntax}")
    # A payload is the message that no other refers to.
    held = "".join(
        f" optional {name} {name.lower()} = {at + 1};" for at, name in enumerate(NAMES) if f"message {name} " in text
    )
    text += f"\nmessage Whole {{{held} }}"
    reading = protobuf.read_proto2 if syntax == "2" else protobuf.read_proto3
    schema = reading(text).at(":Whole")
    messages = [data.draw(protobuf_values.messages(schema.message)) for _ in range(data.draw(st.integers(1, 3)))]
    payloads = [message.SerializeToString() for message in messages]
    format_ = f"Protobuf/{syntax}"
    rows = landed(tmp_path_factory.mktemp("lake"), format_, text, "application/protobuf", payloads)
    for payload, row in zip(payloads, rows, strict=True):
        expected = protobuf_cells(GetMessageClass(schema.message).FromString(payload))
        assert same(expected, row), (payload, expected, row)


EVERYTHING = """syntax = "proto2"; package test;
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/any.proto";
message Everything {
  enum Kind { NIL = 0; ONE = 1; UNO = 1; TWO = 2; option allow_alias = true; }
  optional Kind kind = 1 [default = TWO];
  map<int64, Kind> kinds = 2;
  map<bool, bytes> flags = 3;
  map<uint64, google.protobuf.Value> values = 4;
  map<sint32, google.protobuf.UInt64Value> numbers = 5;
  optional google.protobuf.ListValue list = 6;
  optional google.protobuf.FloatValue single = 7;
  optional google.protobuf.BoolValue flag = 8;
  optional google.protobuf.Any any = 9;
  required fixed64 most = 10;
  repeated group Pair = 11 { optional string left = 1; }
  extensions 100 to 200;
}
extend Everything { optional bytes seal = 100; repeated Everything.Kind more = 101; }
"""
MESSAGES = [
    "most: 0",
    "most: 18446744073709551615 kind: ONE kinds { key: -9223372036854775808 value: TWO }",
    'most: 9 flags { key: true value: "\\377" } flags { key: false value: "" }',
    "most: 1 values { key: 18446744073709551615 value { list_value { values { null_value: 0 } } } } single { }",
    "most: 2 numbers { key: -1 value { value: 18446744073709551615 } } flag { value: true } list { }",
    'most: 3 any { type_url: "x/y" value: "\\001" } Pair { left: "a" } Pair { } [test.seal]: "\\000" [test.more]: TWO',
]


def test_protobuf_of_every_kind(tmp_path: Path) -> None:
    """Keys of every kind, closed enums with two names for a number, wrappers, groups, and extensions as text."""
    schema = protobuf.read_proto2(EVERYTHING)
    kind = GetMessageClass(schema.message)
    sent = [text_format.Parse(text, kind(), descriptor_pool=schema.file.pool) for text in MESSAGES]
    payloads = [message.SerializeToString() for message in sent]
    rows = landed(tmp_path, "Protobuf/2", EVERYTHING, "application/protobuf", payloads)
    for message, row in zip(sent, rows, strict=True):
        expected = protobuf_cells(message)
        assert same(expected, row), (message, expected, row)
