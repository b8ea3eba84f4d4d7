"""Protobuf: texts that are read or refused, payloads, deep links, imports, and use in threads and forked workers."""

import json
import multiprocessing
import pickle
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass

from signalbook.schemas import SchemaError, find, read
from signalbook.schemas.framing import Framed, check
from signalbook.schemas.protobuf import schema as protobuf
from tests.cases import Case, cases


@cases("schemas/protobuf-read")
def test_read(case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    """A text is read, or refused with line and column; the compiler prints nothing."""
    try:
        read(case.given["format"], case.given["text"])
        found = []
    except SchemaError as error:
        found = [(problem.path, problem.message) for problem in error.problems]
    assert [place for place, _ in case.expect] == [place for place, _ in found]
    for (_, words), (_, message) in zip(case.expect, found, strict=True):
        assert words in message
    assert ("", "") == capfd.readouterr()


def jsonable(value: Any) -> Any:
    """A decoded value as a case writes it: bytes as text with one character a byte."""
    if isinstance(value, protobuf.MessageValue):
        value = dict(value)
    return json.loads(json.dumps(value, default=lambda one: one.decode("latin-1")))


@cases("schemas/protobuf-payload")
def test_payload(case: Case) -> None:
    """A payload is decoded, or its problems are told with the path into it."""
    schema = read(case.given["format"], case.given["text"])
    contenttype = case.given["contenttype"]
    payload = case.given["payload"].encode() if contenttype else bytes.fromhex(case.given["payload"])
    checked = check(schema, payload, contenttype)
    assert [path for path, _ in case.expect["problems"]] == [problem.path for problem in checked.problems]
    for (_, words), problem in zip(case.expect["problems"], checked.problems, strict=True):
        assert words in problem.message
    assert case.expect["value"] == jsonable(checked.value)


def test_the_rows() -> None:
    """The table finds both languages."""
    assert ["Protobuf/2", "Protobuf/3", "Protobuf/3"] == [
        row.name for name in ("protobuf/2", "PROTOBUF/3", "Protobuf") if (row := find(name)) is not None
    ]


TEXT = """syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/any.proto";
import "google/protobuf/empty.proto";
enum State { NEW = 0; PAID = 1; }
message Order {
  string id = 1;
  uint64 big = 2;
  uint32 small = 3;
  State state = 4;
  google.protobuf.Timestamp at = 5;
  google.protobuf.Duration took = 6;
  google.protobuf.Struct extra = 7;
  google.protobuf.Int64Value maybe = 8;
  google.protobuf.Any any = 9;
  map<uint64, Line> lines = 10;
  repeated State states = 11;
  oneof pay { string card = 12; int32 cash = 13; }
  Order parent = 14;
  google.protobuf.Empty nothing = 15;
  bytes raw = 16;
  string ID = 17;
  message Line { string sku = 1; sint32 n = 2; }
}
"""


def order() -> tuple[Any, Any]:
    """The schema above and a message with everything set."""
    schema = protobuf.read_proto3(TEXT)
    message = GetMessageClass(schema.message)(id="a", big=2**64 - 1, small=2**32 - 1, state=9, cash=0, raw=b"\xff")
    message.at.seconds, message.at.nanos = 1, 123456789
    message.took.seconds, message.took.nanos = -1, -5
    message.extra["a"] = [1, None]
    message.maybe.value = 0
    message.any.type_url = "x/y"
    message.any.value = b"\x01"
    message.lines[2**64 - 1].sku = "s"
    message.states.extend([1, 0])
    message.parent.id = "p"
    message.nothing.SetInParent()
    return schema, message


def test_values() -> None:
    """A value reads as a dictionary with the names of the text, and survives a pickle as one."""
    schema, message = order()
    checked = schema.check(message.SerializeToString())
    assert () == checked.problems
    expected = {
        "id": "a",
        "big": 2**64 - 1,
        "small": 2**32 - 1,
        "state": 9,
        "at": "1970-01-01T00:00:01.123456789Z",
        "took": "-1.000000005s",
        "extra": {"a": [1.0, None]},
        "maybe": 0,
        "any": {"@type": "x/y", "value": "AQ=="},
        "lines": {2**64 - 1: {"sku": "s", "n": 0}},
        "states": ["PAID", "NEW"],
        "cash": 0,
        "nothing": {},
        "raw": b"\xff",
        "ID": "",
    }
    found = dict(checked.value)
    assert found.pop("parent")["id"] == "p"
    assert expected == found
    assert dict(checked.value) == pickle.loads(pickle.dumps(checked.value)) == checked.value
    assert "a" == checked.value["id"]
    assert len(checked.value) == len(expected) + 1


def test_columns() -> None:
    """Each construct has the columns that the reference page says, and they hold the value."""
    schema, message = order()
    assert (
        "struct<id: string, big: decimal128(20, 0), small: int64, state: string, "
        "at: struct<time: timestamp[us, tz=UTC], nanos: int32>, took: decimal128(21, 9), extra: string, maybe: int64, "
        "any: string, lines: map<decimal128(20, 0), struct<sku: string, n: int32>>, states: list<element: string>, "
        "card: string, cash: int32, parent: string, nothing: string, raw: binary, ~49~44: string>"
    ) == str(schema.columns())
    assert {b"unit": b"s"} == schema.columns().field("took").metadata
    row = schema.convert(schema.check(message.SerializeToString()).value)
    assert '{"id":"p",' == row.pop("parent")[:10]
    assert {
        "id": "a",
        "big": Decimal(2**64 - 1),
        "small": 2**32 - 1,
        "state": "9",
        "at": {"time": datetime(1970, 1, 1, 0, 0, 1, 123456, UTC), "nanos": 789},
        "took": Decimal("-1.000000005"),
        "extra": '{"a":[1.0,null]}',
        "maybe": 0,
        "any": '{"@type":"x/y","value":"AQ=="}',
        "lines": [(Decimal(2**64 - 1), {"sku": "s", "n": 0})],
        "states": ["PAID", "NEW"],
        "card": None,
        "cash": 0,
        "nothing": "{}",
        "raw": b"\xff",
        "~49~44": "",
    } == row
    assert row.items() <= pa.array([row], type=schema.columns()).to_pylist()[0].items()


def test_columns_of_well_known_payloads() -> None:
    """A message that is empty has one column; extensions are JSON text in a column of their own."""
    empty = protobuf.read_proto3('syntax = "proto3"; message M { }')
    assert "struct<value: string>" == str(empty.columns())
    assert {"value": "{}"} == empty.convert(empty.check(b"").value)
    legacy = protobuf.read_proto2(
        "message M { optional int32 a = 1; extensions 100 to 200; } extend M { repeated int32 ext = 100; }"
    )
    assert "struct<a: int32, _extensions: string>" == str(legacy.columns())
    assert {"a": None, "_extensions": '{"[ext]":[5]}'} == legacy.convert(legacy.check(b"\xa0\x06\x05").value)
    assert {"a": 1, "_extensions": None} == legacy.convert(legacy.check(b"\x08\x01").value)


def test_numbers_written_longer_than_needed() -> None:
    """A payload that no writer would write so is right all the same."""
    schema, _ = order()
    assert 5 == schema.check(bytes.fromhex("18 8580 8000".replace(" ", ""))).value["small"]
    assert () == schema.check(bytes.fromhex("1800 1805")).problems


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("message A { }", "A"),
        ("message A { B b = 1; } message B { }", "A"),
        ("message B { } message A { map<string, B> b = 1; }", "A"),
        ("message A { message C { B b = 1; } } message B { }", "A"),
        ("message A { A a = 1; } message B { A a = 1; }", "B"),
        ("message A { } message B { }", None),
        ("message A { B b = 1; } message B { A a = 1; }", None),
        ("enum E { Z = 0; }", None),
    ],
)
def test_which_message_a_payload_is(body: str, expected: str | None) -> None:
    """It is the only message at the top, or the one that no other refers to; else nothing decides."""
    schema = protobuf.read_proto3(f'syntax = "proto3"; {body}')
    assert expected == (schema.message.full_name if schema.message else None)
    if expected is None:
        (problem,) = schema.check(b"").problems
        assert "schema_unavailable" == problem.code
        with pytest.raises(SchemaError, match="nothing says which message"):
            schema.columns()


def test_deep_links() -> None:
    """A fragment names a message, with or without the package; one that leads nowhere says what there is."""
    schema = protobuf.read_proto3(TEXT)
    assert ("shop.v1.Order", "shop.v1.Order.Line") == schema.messages
    for fragment in (":Order.Line", "Order.Line", ":shop.v1.Order.Line", "shop.v1.Order.Line", "#:Order.Line"):
        assert {"sku": "a", "n": 0} == schema.at(fragment).check(b"\x0a\x01a").value
    assert schema.at("") is schema
    with pytest.raises(SchemaError, match=r"no message is named Line; there are: shop\.v1\.Order,"):
        schema.at(":Line")


def test_frames_of_nested_messages() -> None:
    """The indexes of a frame lead to the message of a deep link, and the frame's id is kept."""
    line = protobuf.read_proto3(TEXT).at(":Order.Line")
    for indexes in (b"\x04\x00\x00", b"\x04\x00\x02"):  # without and with the entry of the map before it
        framed = check(line, b"\0\0\0\1\2" + indexes + b"\x0a\x01a")
        assert isinstance(framed, Framed)
        assert (258, "a") == (framed.schemaid, framed.value["sku"])
    assert check(line, b"\0\0\0\1\2" + b"\x0a\x0a").problems
    assert check(line, b"\0\0\0\1\2" + b"\x7e").problems


def test_imports_from_the_catalog() -> None:
    """An import is asked of the catalog by its name, and what it imports in turn as well."""
    texts = {
        "shop/common.proto": 'syntax = "proto3"; package shop; import "shop/money.proto"; message A { Money m = 1; }',
        "shop/money.proto": "package shop; message Money { optional string currency = 1; }",
    }
    asked = []

    def references(name: str) -> str | None:
        asked.append(name)
        return texts.get(name)

    text = 'syntax = "proto3"; import "shop/common.proto"; message Order { shop.A a = 1; }'
    schema = protobuf.read_proto3(text, references)
    assert {"a": {"m": {"currency": "x"}}} == schema.check(b"\x0a\x05\x0a\x03\x0a\x01x").value
    assert ["shop/common.proto", "shop/money.proto"] == asked
    texts["shop/money.proto"] = "package shop; message Money { optional Nope currency = 1; }"
    with pytest.raises(SchemaError, match=r'shop/money.proto:1:\d+: "Nope" is not defined'):
        protobuf.read_proto3(text, references)
    texts["shop/money.proto"] = 'edition = "2023"; package shop; message Money { string currency = 1; }'
    with pytest.raises(SchemaError, match="edition 2023 is not supported"):
        protobuf.read_proto3(text, references)


def test_imports_that_go_round() -> None:
    """Two texts that import each other are refused by the compiler."""
    texts = {"a.proto": 'syntax = "proto3"; import "b.proto";', "b.proto": 'syntax = "proto3"; import "a.proto";'}
    with pytest.raises(SchemaError, match="recursively imports itself"):
        protobuf.read_proto3('syntax = "proto3"; import "a.proto"; message M { }', texts.get)


def test_imports_that_exclude_each_other() -> None:
    """A file and a folder of one name are refused."""
    texts = dict.fromkeys(["a", "a/b"], 'syntax = "proto3";')
    with pytest.raises(SchemaError, match="exclude each other"):
        protobuf.read_proto3('syntax = "proto3"; import "a"; import "a/b"; message M { }', texts.get)


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The private folder of the compiler is gone afterwards, also after a failure."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    protobuf.read_proto3(TEXT)
    with pytest.raises(SchemaError):
        protobuf.read_proto3('syntax = "proto3"; message M { Nope x = 1; }')
    assert [] == list(tmp_path.iterdir())


def test_two_schemas_may_define_the_same_name() -> None:
    """Descriptors of one schema do not meet those of another."""
    first = protobuf.read_proto3('syntax = "proto3"; package p; message M { int32 a = 1; }')
    second = protobuf.read_proto3('syntax = "proto3"; package p; message M { string a = 1; }')
    assert {"a": 5} == first.check(b"\x08\x05").value
    assert {"a": "x"} == second.check(b"\x0a\x01x").value


def test_bytes_and_texts() -> None:
    """A text may come as bytes with a mark of its encoding; anything else is refused."""
    assert protobuf.read_proto3(b"\xef\xbb\xbf" + TEXT.encode()).messages
    for wrong, words in ((b"\xff", "not UTF-8"), ({"a": 1}, "is text"), ('syntax = "proto3";\n\0', "zero character")):
        with pytest.raises(SchemaError, match=words):
            protobuf.read_proto3(wrong)


SHARED = protobuf.read_proto3(TEXT)


def check_many(count: int) -> int:
    """The number of right answers."""
    return sum(SHARED.check(b"\x18" + bytes([number % 128])).value["small"] == number % 128 for number in range(count))


def compile_one(number: int) -> int:
    """Read a schema of its own and a payload."""
    schema = protobuf.read_proto3(f'syntax = "proto3"; message M {{ int32 f{number} = 1; }}')
    return int(schema.check(b"\x08\x05").value[f"f{number}"])


def test_threads_share_a_schema() -> None:
    """Threads that use one schema, and read others, all get right answers."""
    with ThreadPoolExecutor(4) as pool:
        assert [300] * 8 == list(pool.map(check_many, [300] * 8))
        assert [5] * 40 == list(pool.map(compile_one, range(40)))


def test_forked_workers_inherit_a_schema() -> None:
    """A forked worker uses a schema that was read before the fork, and reads others, also while threads compile."""
    with ThreadPoolExecutor(2) as threads:
        busy = threads.map(compile_one, range(60))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert [200] * 4 == pool.map(check_many, [200] * 4)
            assert [5] * 4 == pool.map(compile_one, range(4))
        assert [5] * 60 == list(busy)
