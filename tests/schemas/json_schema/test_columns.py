"""The columns of JSON Schema payloads: every accepted payload, and back."""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from signalbook import schemas
from signalbook.schemas.json_schema.columns import MOST_COLUMNS
from signalbook.schemas.json_schema.places import same_key
from tests.cases import Case, cases

D20 = "JsonSchema/draft/2020-12"


def round_trip(schema: Any, payload: bytes) -> Any:
    """A checked value through an Arrow array and back."""
    problems, value = schema.check(payload)
    assert () == problems
    array = pa.array([schema.convert(value)], type=schema.columns())
    array.validate(full=True)
    assert same_key(value) == same_key(schema.restore(array.to_pylist()[0]))
    return array.to_pylist()[0]


@cases("schemas/json_schema_columns")
def test_columns(case: Case) -> None:
    """A schema has the columns of the documented rules, and each payload comes back from them as it was."""
    schema = schemas.read(case.given["format"], case.given["schema"])
    assert case.expect == str(schema.columns())
    for payload in case.given["payloads"]:
        round_trip(schema, payload.encode())


def test_what_a_column_cannot_hold_is_kept_beside_it() -> None:
    """The column has the nearest value where there is one, and `_additional` the original."""
    schema = schemas.read(
        D20,
        {
            "type": "object",
            "properties": {
                "t": {"type": "string", "format": "date-time"},
                "n": {"type": "number"},
                "i": {"type": "integer"},
                "c": {"type": "number", "multipleOf": 0.01},
            },
        },
    )
    row = round_trip(
        schema, b'{"t":"2024-05-01T12:00:00+02:00","n":0.10000000000000000001,"i":1e30,"c":12.5,"new":{"x":1}}'
    )
    assert "2024-05-01T10:00:00+00:00" == row["t"].isoformat()
    assert (0.1, None, Decimal("12.50")) == (row["n"], row["i"], row["c"])
    assert {"t", "n", "i", "new"} == set(json.loads(row["_additional"]))


def test_types_are_those_that_delta_and_spark_hold() -> None:
    """No column is of a type that Delta or Spark lacks."""
    from tests.cases import read_cases

    def leaves(kind: pa.DataType) -> list[pa.DataType]:
        if pa.types.is_struct(kind):
            return [leaf for field in kind for leaf in leaves(field.type)]
        if pa.types.is_list(kind):
            return leaves(kind.value_type)
        if pa.types.is_map(kind):
            return [*leaves(kind.key_type), *leaves(kind.item_type)]
        return [kind]

    allowed = {"string", "int64", "double", "bool", "timestamp[us, tz=UTC]", "date32[day]"}
    for case in read_cases("schemas/json_schema_columns"):
        schema = schemas.read(case.given["format"], case.given["schema"])
        for leaf in leaves(schema.columns()):
            assert str(leaf) in allowed or pa.types.is_decimal128(leaf)


def test_a_schema_with_too_many_properties() -> None:
    """Properties beyond the bound have no column; their members are additional."""
    names = [f"p{number}" for number in range(MOST_COLUMNS + 5)]
    schema = schemas.read(D20, {"type": "object", "properties": {name: {"type": "integer"} for name in names}})
    assert MOST_COLUMNS + 1 == len(schema.columns())
    row = round_trip(schema, json.dumps({names[0]: 1, names[-1]: 2}).encode())
    assert (1, '{"p10004":2}') == (row["p0"], row["_additional"])


@pytest.mark.parametrize("depth", [10, 60, 120])
def test_deep_objects(depth: int) -> None:
    """Objects nested deeper than columns go are JSON text, and come back."""
    schema: Any = {"type": "integer"}
    payload: Any = 1
    for _ in range(depth // 2):
        schema = {"type": "object", "properties": {"a": schema}}
        payload = {"a": payload}
    round_trip(schemas.read(D20, schema), json.dumps(payload).encode())


def test_columns_are_made_once() -> None:
    """The struct of a schema is the same object each time."""
    schema = schemas.read(D20, {"properties": {"a": {"type": "integer"}}})
    assert schema.columns() is schema.columns()
