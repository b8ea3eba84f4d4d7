"""Avro schemas and payloads that mean harm: bounded time and memory, a clear problem, no crash."""

import json
import sys
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from signalbook import schemas
from signalbook.schemas import SchemaError
from signalbook.schemas.avro import payload as avro
from signalbook.schemas.avro.compare import compare
from signalbook.schemas.avro.decode import MOST_VALUES
from tests.schemas.avro_values import varint
from tests.schemas.bounds import bounded

SECONDS = 20.0 if sys.gettrace() is None else 6 * 20.0  # measuring coverage costs several times as much
MEBIBYTES = 1500


@pytest.fixture(autouse=True)
def _bounds() -> Iterator[None]:
    """Each case ends within its time, and the process grows by no more than its memory."""
    with bounded(SECONDS, MEBIBYTES):
        yield


def refused(schema: Any, words: str) -> None:
    """The schema is refused with these words."""
    with pytest.raises(SchemaError, match=words):
        avro.read(schema if isinstance(schema, str | bytes) else json.dumps(schema))


LIST = {"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L"]}]}


def test_a_long_list() -> None:
    """A payload nested a million levels deep is refused; the library alone would end the process."""
    (problem,) = avro.read(LIST).check(b"\x02" * 1_000_000 + b"\0").problems
    assert "nested deeper than 100" in problem.message


def test_deep_json() -> None:
    """The same as JSON encoding."""
    payload = b'{"n":{"L":' * 5000 + b"null" + b"}}" * 5000
    assert avro.read(LIST).check(payload, "application/avro+json").problems
    payload = b'{"n":{"L":' * 300 + b'{"n":null}' + b"}}" * 300
    assert avro.read(LIST).check(payload, "application/avro+json").problems


@pytest.mark.parametrize(
    "items",
    ["null", {"type": "fixed", "name": "F", "size": 0}, {"type": "record", "name": "E", "fields": []}],
    ids=["null", "fixed", "record"],
)
def test_items_that_take_no_bytes(items: Any) -> None:
    """Ten bytes that announce an endless array of nothing are refused."""
    (problem,) = avro.read({"type": "array", "items": items}).check(varint(2**60) + b"\0").problems
    assert f"more than {MOST_VALUES} values" in problem.message


def test_values_that_take_few_bytes() -> None:
    """A megabyte that announces a thousand empty values a byte is refused."""
    fields = [{"name": f"f{number}", "type": "null"} for number in range(1000)] + [{"name": "b", "type": "boolean"}]
    schema = avro.read({"type": "array", "items": {"type": "record", "name": "R", "fields": fields}})
    (problem,) = schema.check(varint(1_000_000) + bytes(1_000_000) + b"\0").problems
    assert f"more than {MOST_VALUES} values" in problem.message


def test_a_tree_of_nothing() -> None:
    """A value that doubles with each of sixty levels without a byte is refused."""
    inner: Any = {"type": "record", "name": "T0", "fields": [{"name": "n", "type": "null"}]}
    for level in range(1, 60):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"T{level - 1}"}]
        inner = {"type": "record", "name": f"T{level}", "fields": fields}
    schema = avro.read(json.dumps(inner))
    (problem,) = schema.check(b"").problems
    assert "values" in problem.message
    assert str(schema.columns()) == "struct<a: string, b: string>"
    assert [] == list(compare(schema, avro.read(json.dumps(inner))))


def test_announced_sizes() -> None:
    """Lengths and counts beyond the payload cost nothing."""
    assert avro.read('"bytes"').check(varint(2**62) + b"x").problems
    assert avro.read('{"type": "array", "items": "long"}').check(varint(2**62) + b"x").problems
    assert avro.read('{"type": "map", "values": "long"}').check(varint(-(2**62)) + varint(5) + b"x").problems


def test_a_huge_decimal() -> None:
    """A number of a million bytes is compared with its precision before it is made."""
    schema = avro.read({"type": "bytes", "logicalType": "decimal", "precision": 10})
    (problem,) = schema.check(varint(1_000_000) + b"\x7f" * 1_000_000).problems
    assert "more than the 10 digits" in problem.message


def test_a_container_that_unpacks_without_end() -> None:
    """A file of a few kilobytes that unpacks to more than a quarter of a gibibyte is refused."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    block = b"".join(packer.compress(bytes(1 << 20)) for _ in range(260)) + packer.flush()
    meta = varint(2) + b"\x14avro.codec\x0edeflate" + b'\x16avro.schema\x0e"bytes"\0'
    payload = b"Obj\x01" + meta + bytes(16) + varint(1) + varint(len(block)) + block + bytes(16)
    (problem,) = avro.read('"bytes"').check(payload).problems
    assert "decompresses to more than" in problem.message


def test_a_schema_that_is_too_large() -> None:
    """A schema of more than ten mebibytes is not read."""
    refused(b'"' + b"x" * (11 * 1024 * 1024) + b'"', "larger than")


def test_a_hundred_thousand_fields() -> None:
    """A record with a hundred thousand fields is read, checked and has its columns; a comparison ends as unknown."""
    fields = [{"name": f"f{number}", "type": "long"} for number in range(100_000)]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    schema = avro.read(text)
    assert () == schema.check(bytes(100_000)).problems
    assert schema.columns().num_fields == 100_000
    assert ["too_large"] == [found.kind for found in schemas.compatible([schema, avro.read(text)], "full")]


def test_a_deep_schema() -> None:
    """A schema nested ten thousand levels deep is refused."""
    refused('{"type":"array","items":' * 10_000 + '"int"' + "}" * 10_000, "not JSON|nested deeper")
    refused('{"type":"array","items":' * 900 + '"int"' + "}" * 900, "nested deeper")


def chain(count: int) -> list[Any]:
    """Records of which each holds the one before it, by its name."""
    return [
        {"type": "record", "name": f"R{n}", "fields": [{"name": "x", "type": ["null", f"R{n - 1}"] if n else "int"}]}
        for n in range(count)
    ]


def test_a_chain_of_records() -> None:
    """Twenty thousand records, each within the next by its name, are read; one of them alone is refused where deep."""
    schema = avro.read(json.dumps({"type": "record", "name": "Top", "fields": [{"name": "u", "type": chain(20_000)}]}))
    assert ((), {"u": {"R1": {"x": None}}}) == schema.check(b"\x02\x00")
    with pytest.raises(SchemaError, match="nested too deeply"):
        schema.at(":R19999")
    assert () == schema.at(":R50").check(b"\0").problems


def test_a_chain_from_the_top() -> None:
    """The same from its end is refused when it is read: all that is made of it recurses."""
    records = {record["name"]: record for record in chain(20_000)}
    with pytest.raises(SchemaError, match="nested deeper than 100"):
        avro.read('["null", "R19999"]', records.get)


def test_a_default_that_is_tried_without_end() -> None:
    """A default of nested unions, each of which could be several records, is given up."""
    fields = [{"name": "x", "type": ["A", "B", "null"]}]
    both = [{"type": "record", "name": "A", "fields": fields}, {"type": "record", "name": "B", "fields": fields}]
    default: Any = {"x": 5}
    for _ in range(40):
        default = {"x": default}
    records = {"type": "record", "name": "R", "fields": [{"name": "r", "type": both, "default": default}]}
    refused(records, "no type is named B|default")


def test_types_against_types() -> None:
    """Two unions of a thousand records each are compared name by name; where each may be any other, they are not."""

    def union(extra: str, **more: Any) -> str:
        fields = [{"name": "x", "type": "int"}, {"name": extra, "type": "int"}]
        return json.dumps([{"type": "record", "name": f"R{n}", "fields": fields, **more} for n in range(1000)])

    found = compare(avro.read(union("a")), avro.read(union("b")))
    assert {"field_added"} == {one.kind for one in found}  # and as many removed, which are not listed any more
    others = {"aliases": [f"R{n}" for n in range(1000)]}
    (one,) = schemas.compatible([avro.read(union("a")), avro.read(union("b", **others))], "full")
    assert ("too_large", False) == (one.kind, one.certain)


def test_references_that_never_end() -> None:
    """A catalog whose every schema refers to one more is asked a bounded number of times."""
    asked = []

    def references(name: str) -> str:
        asked.append(name)
        other = f"N{len(asked)}"
        return json.dumps({"type": "record", "name": name, "fields": [{"name": "x", "type": ["null", other]}]})

    with pytest.raises(SchemaError):
        avro.read('["null", "N0"]', references)
    assert len(asked) <= 200
