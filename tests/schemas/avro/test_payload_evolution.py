"""What one Avro schema wrote, read as another sees it: compared with fastavro's schema resolution."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook.errors import Problem
from signalbook.schemas.avro import payload as avro
from signalbook.schemas.avro.schema import Node, of_values
from signalbook.schemas.format import Checked

NAMES = ("a", "b", "c", "d", "e")
# Each type with a value of it that JSON can hold as a default, and the types that it may become.
PRIMITIVES: dict[str, tuple[st.SearchStrategy[Any], tuple[str, ...]]] = {
    "int": (st.integers(-(2**31), 2**31 - 1), ("int", "long", "double")),
    "long": (st.integers(-(2**53), 2**53), ("long", "double")),
    "float": (st.integers(-(2**20), 2**20).map(lambda n: n / 8), ("float", "double")),
    "double": (st.floats(allow_nan=False), ("double",)),
    "boolean": (st.booleans(), ("boolean",)),
    "string": (st.text(max_size=5), ("string", "bytes")),
    "bytes": (st.text(max_size=5).map(str.encode), ("bytes", "string")),
}
# Not bytes: fastavro gives their default as the text that it is in JSON.
DEFAULTS: dict[str, Any] = {
    "int": 7, "long": 2**40, "float": 0.5, "double": 1e300, "boolean": True, "string": "new",
}  # fmt: skip


class Evolution:
    """A writer's and a reader's schema, made together, and the strategy of the values that are written."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.named = 0

    def name(self, kind: str) -> str:
        """A name that no other type has."""
        self.named += 1
        return f"{kind}{self.named}"

    def types(self, depth: int) -> tuple[Any, Any, st.SearchStrategy[Any]]:
        """The type that writes, the type that reads, and the values."""
        kinds = ["primitive", "enum", "optional"] + (["record", "array", "map", "choice"] if depth else [])
        return getattr(self, f"_{self.draw(st.sampled_from(kinds))}")(depth)  # type: ignore[no-any-return]

    def _primitive(self, depth: int) -> tuple[Any, Any, st.SearchStrategy[Any]]:
        kind = self.draw(st.sampled_from(sorted(PRIMITIVES)))
        values, becomes = PRIMITIVES[kind]
        return kind, self.draw(st.sampled_from(becomes)), values

    def _enum(self, depth: int) -> tuple[Any, Any, st.SearchStrategy[Any]]:
        name = self.name("E")
        written = self.draw(st.lists(st.sampled_from("PQRS"), min_size=1, unique=True))
        read = self.draw(st.lists(st.sampled_from("PQRSTU"), min_size=1, unique=True))
        writer = {"type": "enum", "name": name, "symbols": written}
        reader = {"type": "enum", "name": name, "symbols": read, "default": read[-1]}
        return writer, reader, st.sampled_from(written)

    def _optional(self, depth: int) -> tuple[Any, Any, st.SearchStrategy[Any]]:
        writer, reader, values = self._primitive(depth)
        was_optional = self.draw(st.booleans())
        return (["null", writer], ["null", reader], st.none() | values) if was_optional else (
            writer, [reader, "null"], values)  # fmt: skip

    def _choice(self, depth: int) -> tuple[Any, Any, st.SearchStrategy[Any]]:
        return (
            ["null", "int", "string"],
            ["string", "null", "long", "boolean"],
            st.none() | st.integers(-9, 9) | st.text(),
        )

    def _array(self, depth: int) -> tuple[Any, Any, st.SearchStrategy[Any]]:
        writer, reader, values = self.types(depth - 1)
        return {"type": "array", "items": writer}, {"type": "array", "items": reader}, st.lists(values, max_size=3)

    def _map(self, depth: int) -> tuple[Any, Any, st.SearchStrategy[Any]]:
        writer, reader, values = self.types(depth - 1)
        entries = st.dictionaries(st.text(max_size=2), values, max_size=3)
        return {"type": "map", "values": writer}, {"type": "map", "values": reader}, entries

    def _record(self, depth: int) -> tuple[Any, Any, st.SearchStrategy[Any]]:
        name = self.name("R")
        written, read, values = [], [], {}
        for field in self.draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True)):
            writer, reader, values[field] = self.types(depth - 1)
            written.append({"name": field, "type": writer})
            fate = self.draw(st.sampled_from(("kept", "kept", "renamed", "gone")))
            if fate == "renamed":
                read.append({"name": f"{field}2", "aliases": [field], "type": reader})
            elif fate == "kept":
                read.append({"name": field, "type": reader})
        for kind in self.draw(st.lists(st.sampled_from(sorted(DEFAULTS)), max_size=2, unique=True)):
            read.append({"name": f"new_{kind}", "type": kind, "default": DEFAULTS[kind]})
        writer = {"type": "record", "name": name, "fields": written}
        reader = {"type": "record", "name": name, "fields": self.draw(st.permutations(read))}
        return writer, reader, st.fixed_dictionaries(values)


def without_labels(node: Node, value: Any) -> Any:
    """A value without the labels of its unions, which fastavro does not give."""
    if node.kind == "union":
        if value is None or len(of_values(node)) == 1:
            return value if value is None else without_labels(of_values(node)[0], value)
        ((label, inner),) = value.items()
        return without_labels(next(one for one in node.members if one.label == label), inner)
    if node.kind == "record":
        assert [field.name for field in node.fields] == list(value)
        return {field.name: without_labels(field.node, value[field.name]) for field in node.fields}
    if node.inner is not None:
        inner_node = node.inner
        if node.kind == "array":
            return [without_labels(inner_node, one) for one in value]
        return {key: without_labels(inner_node, one) for key, one in value.items()}
    return value


def shown(value: Any) -> str:
    """A value with the types of its numbers, whatever the order of its members."""
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{key!r}:{shown(one)}" for key, one in value.items())) + "}"
    return "[" + ",".join(map(shown, value)) + "]" if isinstance(value, list) else repr(value)


def encoded(schema: Any, value: Any) -> bytes:
    """A value as fastavro writes it."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def resolved(writer: Any, reader: Any, payload: bytes) -> Checked:
    """What the reader's schema makes of the bytes that the writer's wrote."""
    read = avro.read(json.dumps(reader)).written_by(avro.read(json.dumps(writer)))
    assert not isinstance(read, Problem)
    return read((), payload, "")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_values_are_those_that_another_library_resolves(data: st.DataObject) -> None:
    """Reordered, added, dropped, renamed and promoted fields have the values that fastavro reads."""
    writer, reader, values = Evolution(data.draw)._record(2)
    value = data.draw(values)
    payload = encoded(writer, value)
    expected = fastavro.schemaless_reader(
        io.BytesIO(payload), fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    )
    found = resolved(writer, reader, payload)
    assert () == found.problems
    node = avro.read(json.dumps(reader)).node
    assert shown(expected) == shown(without_labels(node, found.value))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_same_schema_resolves_to_what_it_reads(data: st.DataObject) -> None:
    """A payload of the schema itself is read alike by the fast path, by the general path and by way of resolution."""
    writer, _, values = Evolution(data.draw)._record(2)
    payload = encoded(writer, data.draw(values))
    schema = avro.read(json.dumps(writer))
    other = {**writer, "doc": "same"}
    assert schema._raw(payload, 0) == resolved(writer, other, payload)
    # With a field more, the general path reads what the fast one reads elsewhere.
    more = {**writer, "fields": [*writer["fields"], {"name": "more", "type": "int", "default": 1}]}
    found = resolved(writer, more, payload)
    assert {**schema._raw(payload, 0).value, "more": 1} == found.value


def test_a_default_of_bytes_is_bytes() -> None:
    """The text that stands for bytes in a schema is not their value."""
    found = resolved({"type": "record", "name": "R", "fields": []}, record(("b", "bytes", "\u00ff")), b"")
    assert ((), {"b": b"\xff"}) == found


def record(*fields: tuple[Any, ...]) -> dict[str, Any]:
    """A record's schema."""
    members = [dict(zip(("name", "type", "default"), one, strict=False)) for one in fields]
    return {"type": "record", "name": "R", "fields": members}


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """A logical type."""
    return {"type": kind, "logicalType": name, **more}


MOMENT = datetime(2024, 5, 17, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("writer", "reader", "number", "expected"),
    [
        (logical("long", "timestamp-millis"), logical("long", "timestamp-micros"), MOMENT, MOMENT),
        (logical("long", "timestamp-micros"), logical("long", "timestamp-millis"), MOMENT, MOMENT),
        (logical("int", "time-millis"), logical("long", "time-micros"), time(1, 2, 3), time(1, 2, 3)),
        ("long", logical("long", "timestamp-millis"), 0, datetime(1970, 1, 1, tzinfo=UTC)),
        (logical("long", "timestamp-millis"), "long", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1000),
        (
            logical("bytes", "decimal", precision=6, scale=2),
            logical("bytes", "decimal", precision=9, scale=4),
            Decimal("12.34"),
            Decimal("12.3400"),
        ),
    ],
)
def test_a_logical_type_means_what_its_writer_meant(writer: Any, reader: Any, number: Any, expected: Any) -> None:
    """A moment stays the moment and a number the number, whatever unit or scale the reader's schema has."""
    found = resolved(record(("x", writer)), record(("x", reader)), encoded(record(("x", writer)), {"x": number}))
    assert ((), {"x": expected}) == found


@pytest.mark.parametrize(
    ("writer", "reader", "number", "words"),
    [
        (logical("int", "date"), logical("long", "timestamp-millis"), 5, "a date cannot be read as a timestamp-millis"),
        (logical("long", "timestamp-nanos"), logical("long", "timestamp-micros"), 5, "cannot be read as"),
        (
            logical("bytes", "decimal", precision=6, scale=4),
            logical("bytes", "decimal", precision=6, scale=2),
            Decimal("1.2345"),
            "more than the 2 decimal places",
        ),
        (
            logical("bytes", "decimal", precision=6, scale=0),
            logical("bytes", "decimal", precision=6, scale=4),
            Decimal(123456),
            "more than the 6 digits",
        ),
    ],
)
def test_another_meaning_is_refused(writer: Any, reader: Any, number: Any, words: str) -> None:
    """What the reader's type cannot mean is a problem at its place, and no number that looks like it."""
    plain = writer["type"] if isinstance(number, int) else writer
    found = resolved(record(("x", writer)), record(("x", reader)), encoded(record(("x", plain)), {"x": number}))
    assert ["/x"] == [one.path for one in found.problems]
    assert words in found.problems[0].message


@pytest.mark.parametrize(
    ("writer", "reader", "payload", "words"),
    [
        (
            record(("a", "int")),
            record(("a", "int"), ("b", "int")),
            b"\2",
            "R was written without b, which has no default",
        ),
        (record(("a", "int")), {**record(("a", "int")), "name": "S"}, b"\2", "a value of type R is not a valid S"),
        (record(("a", "string")), record(("a", "int")), b"\0", "a value of type string is not a valid int"),
        (record(("a", "bytes")), record(("a", "string")), b"\2\xff", "not UTF-8"),
        (record(("a", "int")), record(("a", "long")), b"\2\2", "1 more follow"),
        (record(("a", "int")), record(("a", "long")), b"\xfe\xff\xff\xff\x7f", "does not fit into 32 bits"),
        (record(("a", "boolean"), ("b", "int")), record(("b", "int")), b"\2\2", "a boolean is 0 or 1"),
    ],
)
def test_what_cannot_be_resolved(writer: Any, reader: Any, payload: bytes, words: str) -> None:
    """A payload of a schema that this one cannot read, and one that its writer's schema did not write."""
    found = resolved(writer, reader, payload)
    assert found.value is None
    assert words in found.problems[0].message
