"""Avro: schemas that are read or refused, payloads, deep links, references, and use in threads and forked workers."""

import bz2
import json
import lzma
import multiprocessing
import struct
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from signalbook.schemas import SchemaError, find, read
from signalbook.schemas.avro import payload as avro
from signalbook.schemas.framing import Framed, Records, check
from tests.cases import Case, cases
from tests.schemas.avro_values import container, varint


@cases("schemas/avro-read")
def test_read(case: Case) -> None:
    """A schema is read, or refused with every problem at its place."""
    try:
        avro.read(json.dumps(case.given))
        found = []
    except SchemaError as error:
        found = [(problem.path, problem.message) for problem in error.problems]
    assert [path for path, _ in case.expect] == [path for path, _ in found]
    for (_, words), (_, message) in zip(case.expect, found, strict=True):
        assert words in message


def jsonable(value: Any) -> Any:
    """A decoded value as a case writes it: bytes as text with one character a byte."""
    return json.loads(json.dumps(value, default=lambda one: one.decode("latin-1")))


@cases("schemas/avro-payload")
def test_payload(case: Case) -> None:
    """A payload is decoded, or its problems are told with the path into it."""
    schema = avro.read(json.dumps(case.given["schema"]))
    contenttype = case.given["contenttype"]
    payload = case.given["payload"].encode() if contenttype else bytes.fromhex(case.given["payload"])
    checked = check(schema, payload, contenttype)
    assert [path for path, _ in case.expect["problems"]] == [problem.path for problem in checked.problems]
    for (_, words), problem in zip(case.expect["problems"], checked.problems, strict=True):
        assert words in problem.message
        assert problem.code == "payload"
    assert case.expect["value"] == jsonable(checked.value)


def test_the_row() -> None:
    """The table finds Avro by name, release and case, and reads with it."""
    row = find("avro/1.11.0")
    assert row is not None
    assert row.name == "Avro/*"
    assert "Avro/*" == read("AVRO", '"string"').format


def test_logical_values() -> None:
    """Dates, times, timestamps and decimals are Python's own."""
    fields = [
        ("d", {"type": "int", "logicalType": "date"}, varint(1), date(1970, 1, 2)),
        ("t", {"type": "int", "logicalType": "time-millis"}, varint(1500), time(0, 0, 1, 500000)),
        ("m", {"type": "long", "logicalType": "timestamp-millis"}, varint(1), datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)),
        ("l", {"type": "long", "logicalType": "local-timestamp-micros"}, varint(1), datetime(1970, 1, 1, 0, 0, 0, 1)),
        ("n", {"type": "long", "logicalType": "timestamp-nanos"}, varint(123), 123),
        ("p", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, b"\x02\x7b", Decimal("1.23")),
        ("b", {"type": "bytes", "logicalType": "big-decimal"}, b"\x06\x02\x7b\x04", Decimal("1.23")),
        (
            "x",
            {"type": "fixed", "name": "X", "size": 12, "logicalType": "duration"},
            struct.pack("<III", 1, 2, 3),
            {"months": 1, "days": 2, "milliseconds": 3},
        ),
    ]
    schema = avro.read({"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t, _, _ in fields]})
    payload = b"".join(raw for _, _, raw, _ in fields)
    expected = {name: value for name, _, _, value in fields}
    assert ((), expected) == schema.check(payload)
    assert ((), expected) == schema._check_general(payload)
    assert (
        pa.struct(
            [
                ("d", pa.date32()),
                ("t", pa.int32()),
                ("m", pa.timestamp("us", "UTC")),
                ("l", pa.timestamp("us")),
                ("n", pa.int64()),
                ("p", pa.decimal128(4, 2)),
                ("b", pa.string()),
                ("x", pa.struct([("months", pa.int64()), ("days", pa.int64()), ("milliseconds", pa.int64())])),
            ]
        )
        == schema.columns()
    )
    assert schema.columns().field("t").metadata == {b"unit": b"ms"}
    assert schema.convert(expected)["t"] == 1500
    assert schema.convert(expected)["b"] == "1.23"


def test_columns_of_constructs() -> None:
    """Unions, enums, maps, recursion and names have the columns that the reference page says."""
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    fields = [
        {"name": "u", "type": ["null", "int", {"type": "enum", "name": "a.E", "symbols": ["A"]}]},
        {"name": "m", "type": {"type": "map", "values": ["null", "long"]}},
        {"name": "list", "type": node},
        {"name": "id", "type": "string"},
        {"name": "ID", "type": "null"},
        {"name": "wide", "type": {"type": "bytes", "logicalType": "decimal", "precision": 39}},
        {"name": "empty", "type": {"type": "record", "name": "Empty", "fields": []}},
    ]
    schema = avro.read({"type": "record", "name": "R", "fields": fields})
    assert (
        "struct<u: struct<int: int32, a~2eE: string>, m: map<string, int64>, list: struct<next: string>, id: string, "
        "~49~44: string, wide: string, empty: string>"
    ) == str(schema.columns())
    value = {
        "u": {"a.E": "A"},
        "m": {"k": None},
        "list": {"next": {"next": None}},
        "id": "x",
        "ID": None,
        "wide": Decimal("1E+38"),
        "empty": {},
    }
    assert {
        "u": {"a~2eE": "A"},
        "m": [("k", None)],
        "list": {"next": '{"next":null}'},
        "id": "x",
        "~49~44": None,
        "wide": "1" + "0" * 38,
        "empty": "{}",
    } == schema.convert(value)


def test_a_payload_that_is_no_record() -> None:
    """A schema that is no record has one column."""
    schema = avro.read('{"type": "array", "items": "long"}')
    assert str(schema.columns()) == "struct<value: list<element: int64>>"
    assert schema.convert([1]) == {"value": [1]}


def test_a_frame_keeps_its_id() -> None:
    """The id of Confluent's frame is part of the answer, on the fast road and on the strict one."""
    schema = avro.read('{"type": "record", "name": "R", "fields": [{"name": "s", "type": "string"}]}')
    for payload in (b"\0\0\0\1\2\2a", b"\0\0\0\1\2\2\xff"):
        checked = check(schema, payload)
        assert isinstance(checked, Framed) == (not checked.problems)
    framed = check(schema, b"\0\0\0\1\2\2a")
    assert isinstance(framed, Framed)
    assert (258, {"s": "a"}) == (framed.schemaid, framed.value)


def test_a_container_of_an_older_schema() -> None:
    """The records of a file are resolved to the schema; a wrong one is told by its number."""
    older = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "x", "type": "string"}]}'
    newer = avro.read(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "b", "type": ["null", "string"], "default": None},
                {"name": "A", "type": ["null", "double", "string"], "aliases": ["a"]},
            ],
        }
    )
    checked = newer.check(container(older, [b"\x02\x02x", b"\x04\x00"]))
    assert ((), [{"b": None, "A": {"double": 1.0}}, {"b": None, "A": {"double": 2.0}}]) == checked
    assert isinstance(checked.value, Records)
    assert [{"b": None, "A": {"double": 1.0, "string": None}}] == pa.array(
        newer.convert(checked.value)[:1], type=newer.columns()
    ).to_pylist()
    (problem,) = newer.check(container(older, [b"\x02\x02x", b"\x04\x0a"])).problems
    assert "/1/x" == problem.path


def test_what_is_wrong_with_a_container() -> None:
    """A file with a wrong marker, codec, schema or count is refused."""
    schema = avro.read('"int"')
    right = container('"int"', [b"\x02"])
    assert ((), [1]) == schema.check(right)
    wrong = {
        "sync marker": right[:-1] + b"x",
        "announced": right[:-3],
        "own schema is wrong": container('"nope"', [b"\x02"]),
        "is not a valid int": container('"string"', [b"\x02a"]),
        "bytes too many": container('"int"', [b"\x02\x02"]).replace(b"\x04\x04\x02\x02", b"\x02\x04\x02\x02"),
        "which is not supported": b"Obj\x01"
        + varint(2)
        + b"\x14avro.codec\x0csnappy"
        + b'\x16avro.schema\x0a"int"\0'
        + bytes(16),
    }
    for words, payload in wrong.items():
        (problem,) = schema.check(payload).problems
        assert words in problem.message


def test_packed_containers() -> None:
    """A block of each codec is unpacked; one that is damaged or cut off is refused."""
    schema = avro.read('"int"')
    for codec, pack in ((b"bzip2", bz2.compress), (b"xz", lzma.compress), (b"zstandard", zstandard.compress)):
        meta = varint(2) + b"\x14avro.codec" + varint(len(codec)) + codec + b'\x16avro.schema\x0a"int"\0'
        for block, right in ((pack(b"\x02"), True), (pack(b"\x02")[:-4], False), (b"nonsense", False)):
            body = varint(1) + varint(len(block)) + block + bytes(16)
            checked = schema.check(b"Obj\x01" + meta + bytes(16) + body)
            assert ([1] if right else None) == checked.value


def test_deep_links() -> None:
    """A fragment names a type, with or without the namespace; one that leads nowhere says what there is."""
    inner = {"type": "record", "name": "Line", "fields": [{"name": "n", "type": "int"}]}
    schema = avro.read({"type": "record", "name": "a.b.Order", "fields": [{"name": "lines", "type": inner}]})
    for fragment in (":a.b.Line", "a.b.Line", ":Line", "Line", "#:Line"):
        assert ((), {"n": 1}) == schema.at(fragment).check(b"\x02")
    assert schema.at("") is schema
    with pytest.raises(SchemaError, match=r"no type is named Nope; there are: a\.b\.Line, a\.b\.Order"):
        schema.at(":Nope")


def test_references() -> None:
    """A name that the document does not define is asked of the catalog by its full name, once."""
    asked = []

    def references(name: str) -> Any:
        asked.append(name)
        return {"type": "record", "name": "a.Address", "fields": []} if name == "a.Address" else None

    fields = [{"name": "x", "type": "Address"}, {"name": "y", "type": ["null", "Address"]}]
    avro.read({"type": "record", "name": "a.R", "fields": fields}, references)
    assert ["a.Address"] == asked
    with pytest.raises(SchemaError, match=r"no type is named b\.Other"):
        avro.read('["null", "b.Other"]', references)


SHARED = avro.read('{"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "int", "string"]}]}')


def check_many(count: int) -> int:
    """The number of right answers."""
    return sum(SHARED.check(b"\x02" + varint(number)).value["n"]["int"] == number for number in range(count))


def test_threads_share_a_schema() -> None:
    """Threads that use one schema at once all get right answers."""
    with ThreadPoolExecutor(4) as pool:
        assert [500] * 8 == list(pool.map(check_many, [500] * 8))


def test_forked_workers_inherit_a_schema() -> None:
    """A forked worker uses a schema that was read before the fork, and reads others."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert [200] * 4 == pool.map(check_many, [200] * 4)
        assert ["Avro/*"] == [one.format for one in pool.map(_read_one, ['"int"'])]


class _Told:
    def __init__(self, format: str) -> None:
        self.format = format


def _read_one(text: str) -> _Told:
    return _Told(avro.read(text).format)
