"""The typed reader says what the engine says, and its columns are those of the schema."""

import json
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from signalbook import schemas

FORMAT = "JsonSchema/draft/2020-12"
NAMES = st.sampled_from(["a", "b-c", "größe", "class", "_x", ""])
SMALL = st.integers(-3, 3)
SIZES = st.integers(0, 3)


def bounded(kind: str, **bounds: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of a type with some of these bounds."""
    return st.fixed_dictionaries({"type": st.just(kind)}, optional={"title": st.just("t"), **bounds})


NUMBERS = {name: SMALL | st.just(0.5) for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")}
SCALARS = (
    bounded("string", minLength=SIZES, maxLength=SIZES)
    | st.just({"type": "string", "enum": ["x", "yy", "é"]})
    | bounded("integer", **NUMBERS)
    | bounded("number", **NUMBERS)
    | bounded("boolean")
)
ARRAYS = st.builds(
    lambda items, more: {**more, "items": items}, SCALARS, bounded("array", minItems=SIZES, maxItems=SIZES)
)


@st.composite
def objects(draw: st.DrawFn, members: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Schemas of objects with these members, some of which are required."""
    properties = draw(st.dictionaries(NAMES.filter(bool), members, min_size=1, max_size=4))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    return {"type": "object", "properties": properties, "required": required}


SCHEMAS = objects(SCALARS | ARRAYS | objects(SCALARS | objects(SCALARS)))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | SMALL
    | st.sampled_from([0.5, 1.0, -2.5])
    | st.sampled_from(["", "x", "yy", "é", "long text"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=6,
)


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit a schema, or nearly so."""
    kind = schema["type"]
    if kind == "object":
        members = {name: fitting(member) for name, member in schema["properties"].items()}
        needed = {name: members.pop(name) for name in schema["required"]}
        return st.fixed_dictionaries(needed, optional=members)
    if kind == "array":
        return st.lists(fitting(schema["items"]), max_size=4)
    known = {
        "string": st.sampled_from(["", "x", "yy", "é", "abc", "abcd"]),
        "integer": SMALL,
        "number": SMALL | st.sampled_from([0.5, -0.25, 2.75]),
        "boolean": st.booleans(),
    }
    return known[kind]


@given(st.data())
def test_what_is_read_is_what_the_engine_accepts(data: st.DataObject) -> None:
    """Of values that have no more members than the schema names, and no null, those are read that are accepted."""
    document = data.draw(SCHEMAS)
    schema: Any = schemas.read(FORMAT, document)
    reader = schema.typed_reader(schema.columns())
    assume(reader is not None)
    assert reader is not None
    values = data.draw(st.lists(fitting(document), min_size=1, max_size=6))
    read = []
    for value in values:
        text = json.dumps(value, ensure_ascii=data.draw(st.booleans())).encode()
        try:
            read.append((value, reader.read(text)))
        except ValueError:
            assert not schema.accepts(value)
        else:
            assert schema.accepts(value)
    column = reader.column([typed for _, typed in read])
    column.validate(full=True)
    expected = pa.array([schema.convert(value) for value, _ in read], schema.columns())
    assert (expected.type, expected.to_pylist()) == (column.type, column.to_pylist())


@given(SCHEMAS, VALUES)
def test_whatever_is_read_is_accepted(document: dict[str, Any], value: Any) -> None:
    """Of any value at all, only what the engine accepts is read, and into its own columns."""
    schema: Any = schemas.read(FORMAT, document)
    reader = schema.typed_reader(schema.columns())
    assume(reader is not None)
    assert reader is not None
    try:
        typed = reader.read(json.dumps(value).encode())
    except ValueError:
        return
    assert schema.accepts(value)
    assert [schema.convert(value)] == reader.column([typed]).to_pylist()


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": "object"},
        {"type": ["object", "null"], "properties": {"a": {"type": "string"}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a"}}},
        {"type": "object", "properties": {"a": {"type": "string", "format": "date-time"}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"a": {"type": "number", "multipleOf": 0.1}}},
        {"type": "object", "properties": {"a": {"type": "number", "minimum": 2**53}}},
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0.5}}},
        {"type": "object", "properties": {"a": {"type": "number", "minimum": 1, "exclusiveMinimum": 1}}},
        {"type": "object", "properties": {"a": {"enum": ["x"]}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"type": "string"}, "A": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}]},
    ],
    ids=str,
)
def test_what_is_not_plain_has_no_reader(schema: Any) -> None:
    """Every keyword that the reader does not know leaves payloads to the engine."""
    read: Any = schemas.read(FORMAT, schema)
    assert read.typed_reader(read.columns()) is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            b'{"n":1.0}',
            b'{"n":1e2}',
            b'{"n":true}',
            b'{"n":"1"}',
            b'{"n":null}',
            b'{"n":01}',
            b'{"n":1}}',
            b'{"n":1} {}',
        ),
        *(
            b'{"x":NaN}',
            b'{"x":1e400}',
            b'{"x":1.}',
            b'{"s":"\x01"}',
            b'{"s":"\xff"}',
            b'{"s":"\\ud800"}',
            b'{"more":1}',
        ),
        *(b"[]", b"", b"null", b'{"n":1,}'),
    ],
    ids=str,
)
def test_what_is_left_to_the_engine(text: bytes) -> None:
    """What is not JSON, is of another type or has more members is not read."""
    kinds = {"n": {"type": "integer"}, "x": {"type": "number"}, "s": {"type": "string"}}
    schema: Any = schemas.read(FORMAT, {"type": "object", "properties": kinds})
    reader = schema.typed_reader(schema.columns())
    assert reader is not None
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        reader.read(text)
