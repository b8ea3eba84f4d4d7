"""Payloads made up, and values written as payloads, for every format."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis_jsonschema._canonicalise import canonicalish

from signalbook import schemas
from signalbook.schemas import SchemaError, payload_of, sample
from signalbook.schemas.avro.encode import encode_value
from signalbook.schemas.format import BadValue
from tests.cases import Case, cases
from tests.schemas import avro_values, protobuf_values
from tests.schemas.bounds import bounded


@cases("schemas/samples")
def test_sample(case: Case) -> None:
    """A sample is found for what can be had, and is what the schema's author suggests."""
    schema = schemas.read(case.given["format"], case.given["schema"])
    found = sample(schema, case.given.get("contenttype", ""))
    if case.expect is None:
        assert found is None
        return
    assert found is not None
    assert not schema.check(found, case.given.get("contenttype", "")).problems
    if case.expect is not True:
        assert case.expect == (json.loads(found) if not isinstance(case.expect, str) else found.decode())


@pytest.mark.parametrize(
    "hostile",
    [
        {
            "type": "object",
            "minProperties": 100,
            "required": [f"x{n}" for n in range(500)],
            "patternProperties": {f"^y{n}(a+)+$": {"minProperties": 100} for n in range(500)},
            "additionalProperties": False,
        },
        {
            "required": ["a0"],
            "dependencies": {f"a{n}": {"required": [f"a{n + 1}"], "not": True} for n in range(2000)},
        },
        {"type": "object", "minProperties": 100, "propertyNames": {"pattern": "^(a|b){50}(c+)+$", "maxLength": 51}},
    ],
    ids=["patterns", "dependencies", "names"],
)
def test_a_schema_that_asks_for_much(hostile: dict[str, Any]) -> None:
    """Looking for a sample that is not found ends within a bound."""
    schema = schemas.read("JsonSchema/draft-07", hostile)
    with bounded(20):
        assert sample(schema) is None


@given(avro_values.schemas(), st.data())
def test_avro_values_come_back(document: Any, data: st.DataObject) -> None:
    """What is encoded by a schema decodes to the value that was given."""
    try:
        schema = schemas.read("Avro/1.12.0", json.dumps(document))
    except SchemaError:
        return
    payload, value = data.draw(avro_values.payloads(schema.node))  # type: ignore[attr-defined]
    checked = schema.check(encode_value(schema.node, value))  # type: ignore[attr-defined]
    assert ((), schema.check(payload).value) == (checked.problems, checked.value)


@given(avro_values.schemas())
def test_every_avro_schema_has_a_sample(document: Any) -> None:
    """A sample is found for every schema that does not contain itself without an end."""
    try:
        schema = schemas.read("Avro/1.12.0", json.dumps(document))
    except SchemaError:
        return
    assert sample(schema) is not None


@given(protobuf_values.texts())
def test_every_protobuf_message_has_a_sample(text: Any) -> None:
    """A sample is found for every message that is the only one of its text."""
    schema = schemas.read("Protobuf/3", protobuf_values.render(text))
    if schema.message is not None:  # type: ignore[attr-defined]
        assert sample(schema) is not None


@given(st.recursive(st.booleans() | st.sampled_from([{"type": "string"}, {"minimum": 3}, {"enum": [1]}]), lambda inner:
    st.dictionaries(st.sampled_from(["not", "if", "then", "contains", "additionalProperties"]), inner, max_size=3)
    | st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"allOf": parts})
    | st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"oneOf": parts}), max_leaves=6))  # fmt: skip
def test_a_json_sample_is_right_or_none(document: Any) -> None:
    """Whatever a JSON Schema asks for, a sample is one that it takes, or there is none; nothing is raised."""
    schema = schemas.read("JsonSchema/draft/2020-12", document)
    found = sample(schema)
    assert found is None or not schema.check(found).problems
    assert canonicalish(document) != {"not": {}} or found is None


@pytest.mark.parametrize(
    ("schema", "value", "path"),
    [
        ("null", 1, ""),
        ("boolean", 1, ""),
        ("int", 2**31, ""),
        ("int", True, ""),
        ("long", "1", ""),
        ("float", "x", ""),
        ("float", 1e300, ""),
        ("bytes", "\u0100", ""),
        ("string", 1, ""),
        ("string", "\ud800", ""),
        ({"type": "fixed", "name": "F", "size": 2}, "a", ""),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", ""),
        ({"type": "array", "items": "int"}, {}, ""),
        ({"type": "array", "items": "int"}, [1, "x"], "/1"),
        ({"type": "map", "values": "int"}, [], ""),
        ({"type": "map", "values": "int"}, {"a/b": "x"}, "/a~1b"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {}, ""),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {"a": 1, "b": 2}, "/b"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "int"]}]}, {"a": "x"}, "/a"),
        (["null", "int", "string"], 1.5, ""),
        (["int", "string"], {"int": "x"}, "/int"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}, Decimal("1.23"), ""),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}, Decimal("NaN"), ""),
    ],
)
def test_avro_values_that_are_refused(schema: Any, value: Any, path: str) -> None:
    """A value that the schema does not take is named with its place; nothing is bent."""
    read = schemas.read("Avro/1.12.0", json.dumps(schema))
    with pytest.raises(BadValue) as caught:
        payload_of(read, value)
    assert path == caught.value.path


def test_values_deeper_than_any_message() -> None:
    """A value that is nested without an end is refused."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}
    value: Any = None
    for _ in range(1000):
        value = {"r": value}
    with pytest.raises(BadValue, match="too deeply"):
        payload_of(schemas.read("Avro/1.12.0", json.dumps(schema)), value)


def test_bytes_are_a_payload_already() -> None:
    """Bytes are sent as they are; a text is XML, and JSON under a JSON content type."""
    avro = schemas.read("Avro/1.12.0", '"int"')
    assert b"anything" == payload_of(avro, b"anything")
    assert b"5" == payload_of(avro, 5, "application/vnd.apache.avro+json")
    proto = schemas.read("Protobuf/3", 'syntax = "proto3"; message M { int32 n = 1; }')
    assert b'{"n":5}' == payload_of(proto, {"n": 5}, "application/json")
    undecided = schemas.read("Protobuf/3", 'syntax = "proto3"; message M { int32 n = 1; } message N {}')
    with pytest.raises(BadValue, match="which message"):
        payload_of(undecided, {})
    assert sample(undecided) is None
    xsd = schemas.read(
        "XSD/1.0",
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a" type="xs:int"/></xs:schema>',
    )
    assert b"<a>1</a>" == payload_of(xsd, "<a>1</a>")
    for value in (5, "\ud800"):
        with pytest.raises(BadValue):
            payload_of(xsd, value)
    with pytest.raises(BadValue, match="not a JSON value"):
        payload_of(schemas.read("JsonSchema/draft-07", "{}"), object())
