"""Tables as others read them: Spark SQL, and DuckDB by way of `deltalake`, see the same rows."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from signalbook.pipeline.ddl import make_views, table_paths
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land_files import land_files
from signalbook.pipeline.read.inputs import parse_source
from signalbook.pipeline.tables import DEAD_LETTERS
from signalbook.pipeline.worker import PackedCatalog
from signalbook.schemas.protobuf import schema as protobuf
from tests.pipeline.lakes import on_spark, write_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = on_spark

MOVED = {
    "type": "object",
    "properties": {
        "km": {"type": "integer"},
        "price": {"type": "number", "multipleOf": 0.01},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "speeds": {"type": "array", "items": {"type": ["number", "null"]}},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "stops": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "Größe in m": {"type": "number"},
        "any": {},
    },
    "required": ["km"],
}
CHARGED = {
    "type": "record",
    "name": "Charged",
    "fields": [
        {"name": "id", "type": {"type": "fixed", "name": "Id", "size": 3}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["slow", "fast"]}},
        {"name": "cost", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "plug", "type": ["null", "int", "string"]},
        {"name": "levels", "type": {"type": "map", "values": ["null", "double"]}},
        {"name": "raw", "type": ["null", "bytes"]},
    ],
}
ROUTED = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
message Routed {
  message Leg { string to = 1; uint64 metres = 2; }
  enum Mode { ROAD = 0; RAIL = 1; }
  repeated Leg legs = 1;
  map<int32, Leg> by_number = 2;
  Mode mode = 3;
  oneof end { string place = 4; Leg leg = 5; }
  google.protobuf.Timestamp at = 6;
  google.protobuf.Duration took = 7;
  bytes seal = 8;
  optional sint64 shift = 9;
}"""


def definition(kind: str, format_: str, schema: Any) -> dict[str, Any]:
    """A message by its type."""
    return {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {
            "type": {"value": kind},
            "source": {"value": "/cars/{vin}"},
            "since": {"type": "timestamp"},
            "seal": {"type": "binary"},
        },
        "dataschemaformat": format_,
        "dataschema": schema,
    }


CATALOG = {
    "messagegroups": {
        "fleet": {
            "messages": {
                "moved": definition("moved", "JsonSchema/draft/2020-12", MOVED),
                "charged": definition("charged", "Avro/1.12.0", CHARGED),
                "routed": definition("routed", "Protobuf/3", ROUTED),
            }
        }
    }
}
JSON_PAYLOADS: list[Any] = [
    {"km": 1},
    {
        "km": 2**63 - 1,
        "price": 12.5,
        "at": "2024-05-17T12:30:00.123456Z",
        "day": "1969-12-31",
        "speeds": [0.5, None, -1e300],
        "tags": {"b": "2", "a": "", "é": "x"},
        "stops": [{"name": "A"}, {}, {"name": "B", "more": [1]}],
        "Größe in m": 1.75,
        "any": {"x": [1, None]},
        "beyond": True,
    },
    {"km": 2**64, "at": "2024-05-17T14:30:00+02:00", "speeds": [], "tags": {}, "stops": []},
]
CHARGES: list[Any] = [
    {
        "id": b"\0\xff1",
        "kind": "fast",
        "cost": Decimal("-123456789.125"),
        "at": datetime(2024, 5, 17, 12, 30, 0, 123000, UTC),
        "local": datetime(1969, 7, 20, 20, 17, 40, 1),
        "day": date(2024, 2, 29),
        "plug": number,
        "levels": levels,
        "raw": raw,
    }
    for number, levels, raw in [(7, {"a": 0.1, "b": None}, b""), ("type 2", {}, b"\0\1"), (None, {"x": -0.0}, None)]
]
ROUTES: list[dict[str, Any]] = [
    {
        "legs": [{"to": "Bonn", "metres": 2**64 - 1}, {}],
        "byNumber": {"-1": {"to": "Köln"}, "7": {}},
        "mode": "RAIL",
        "place": "here",
        "at": "1969-12-31T23:59:59.123456789Z",
        "took": "-1.500000001s",
        "seal": "AP8=",
        "shift": str(-(2**63)),
    },
    {"leg": {"metres": 5}, "mode": 2, "shift": "0"},
    {},
]
BAD = [b"not JSON", b'{"specversion":"1.0"}', b"\xff\xfe\0"]


def attributes(kind: str, number: int, content_type: str) -> dict[str, str]:
    """The attributes of an event; of some, there are more."""
    found = {"specversion": "1.0", "id": f"{kind}{number}", "type": kind, "source": f"/cars/A{number}"}
    if number % 2:
        found |= {"time": "2024-05-17T14:30:00.5+02:00", "since": "2020-01-01T00:00:00Z", "seal": "AP8=", "note": "ü"}
    return {**found, "datacontenttype": content_type}


def messages() -> Iterator[tuple[dict[str, str], bytes]]:
    """Every payload with its attributes; the last of each kind does not fit its schema."""
    charged = []
    for one in CHARGES:
        file = BytesIO()
        fastavro.schemaless_writer(file, CHARGED, one)
        charged.append(file.getvalue())
    routed = GetMessageClass(protobuf.read_proto3(ROUTED).message)
    kinds = [
        ("moved", "application/json", [json.dumps(one).encode() for one in JSON_PAYLOADS] + [b'{"km":"far"}']),
        ("charged", "application/avro", [*charged, b"\0"]),
        (
            "routed",
            "application/protobuf",
            [*(ParseDict(one, routed()).SerializeToString() for one in ROUTES), b"\xff"],
        ),
    ]
    for kind, content_type, payloads in kinds:
        for number, payload in enumerate(payloads):
            yield attributes(kind, number, content_type), payload


def write_events(folder: Path) -> None:
    """Them as CloudEvents, one a line, twice, so that each path of matching is taken; and some that are none."""
    lines = []
    for head, payload in messages():
        json_ = head["datacontenttype"] == "application/json"
        data = {"data": json.loads(payload)} if json_ else {"data_base64": base64.b64encode(payload).decode()}
        lines.append(json.dumps({**head, **data}).encode())
    write_lines(folder / "a.jsonl", [*lines, *BAD, *lines])


def write_paper(folder: Path) -> None:
    """Them as Kafka's messages on paper, in binary mode."""
    lines = []
    for number, (head, payload) in enumerate(messages()):
        headers = [[f"ce_{name}" if name != "datacontenttype" else "content-type", text] for name, text in head.items()]
        message = {
            "protocol": "KAFKA",
            "topic": "cars",
            "partition": 1,
            "offset": number,
            "key": "k",
            "headers": headers,
        }
        message |= {"payload_base64": base64.b64encode(payload).decode(), "timestamp": 1_715_949_000_123 + number}
        lines.append(json.dumps(message).encode())
    write_lines(folder / "paper.jsonl", lines)


def write_parquet(folder: Path) -> None:
    """Them as rows with the columns of Spark's Kafka connector."""
    rows = []
    for number, (head, payload) in enumerate(messages()):
        pairs = [(f"ce_{name}" if name != "datacontenttype" else "content-type", text) for name, text in head.items()]
        rows.append(
            {
                "key": None if number % 2 else b"\0\xff",
                "value": payload,
                "topic": "cars",
                "partition": 0,
                "offset": 2**40 + number,
                "timestamp": datetime(2024, 5, 17, 12, 30, 0, number, UTC),
                "headers": [{"key": name, "value": text.encode()} for name, text in pairs],
            }
        )
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "kafka.parquet")


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake into which all of that was landed, from three sources."""
    folder = tmp_path_factory.mktemp("read")
    lake, packed = Lake.open(str(folder / "lake")), PackedCatalog.of(CATALOG)
    for scheme, write in (("events", write_events), ("messages", write_paper), ("parquet", write_parquet)):
        write(folder / scheme)
        result = land_files(spark, packed, parse_source(f"{scheme}:{folder / scheme}"), lake)
        assert result.input == result.landed + result.dead
        assert {"moved", "charged", "routed"} == {xid.rpartition("/")[2] for xid in result.messages}
    return lake


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table in the order of where they came from; maps by their keys."""
    rows = [{name: ordered(value) for name, value in row.items()} for row in table.to_pylist()]
    return sorted(rows, key=lambda row: (row["judged"]["origin"], row["judged"]["position"]))


def ordered(value: Any) -> Any:
    """A value as it compares: the pairs of a map are in no order."""
    if isinstance(value, dict):
        return {name: ordered(one) for name, one in value.items()}
    if isinstance(value, list):
        items = [ordered(one) for one in value]
        return sorted(items, key=repr) if items and all(isinstance(one, tuple) for one in items) else items
    return tuple(map(ordered, value)) if isinstance(value, tuple) else value


def by_spark(spark: "SparkSession", lake: Lake, path: str) -> pa.Table:
    """All rows by Spark SQL."""
    make_views(spark, lake)
    return spark.sql(f"SELECT * FROM `{path.replace('/', '__')}`").toArrow()


def by_duckdb(lake: Lake, path: str) -> pa.Table:
    """All rows by DuckDB."""
    dataset = DeltaTable(lake.folder.place(path)).to_pyarrow_dataset()
    return duckdb.from_arrow(dataset).to_arrow_table()


@pytest.mark.parametrize(
    ("path", "count"), [("fleet/moved", 12), ("fleet/charged", 12), ("fleet/routed", 12), (DEAD_LETTERS, 15)]
)
def test_readers_agree(spark: "SparkSession", lake: Lake, path: str, count: int) -> None:
    """Spark SQL and DuckDB read the same rows from every table, column for column and value for value."""
    expected, actual = in_order(by_spark(spark, lake, path)), in_order(by_duckdb(lake, path))
    assert (count, count) == (len(expected), len(actual))
    assert expected == actual


def test_all_tables_are_compared(lake: Lake) -> None:
    """There is no table that the comparison leaves out."""
    assert ["fleet/charged", "fleet/moved", "fleet/routed", DEAD_LETTERS] == sorted(table_paths(lake))


def test_the_payloads_are_there(spark: "SparkSession", lake: Lake) -> None:
    """By either reader the columns hold what was sent, from each of the three sources."""
    for rows in (by_spark(spark, lake, "fleet/charged"), by_duckdb(lake, "fleet/charged")):
        held: dict[str, list[Any]] = {}
        for row in in_order(rows):
            held.setdefault(row["id"], []).append(row["data"])
        assert {"charged0": 4, "charged1": 4, "charged2": 4} == {name: len(some) for name, some in held.items()}
        for number, sent in enumerate(CHARGES):
            plug = sent["plug"]
            union = (
                None
                if plug is None
                else {"int": None, "string": None, type(plug).__name__.replace("str", "string"): plug}
            )
            expected = {**sent, "plug": union, "levels": sorted(sent["levels"].items())}
            assert [expected] * 4 == held[f"charged{number}"]
