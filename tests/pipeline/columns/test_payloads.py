"""Payloads taken to columns at once are those that are converted one by one."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signalbook import schemas
from signalbook.jsontext import DIGIT_RUNS, LONG_NUMBER, decode_fast, encode_json
from signalbook.pipeline.columns.payloads import PayloadColumns
from tests.cases import Case, cases

SCHEMA: Any = schemas.read(
    "JsonSchema/draft/2020-12",
    {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "x": {"type": "number"},
            "s": {"type": "string"},
            "b": {"type": "boolean"},
            "at": {"type": "string", "format": "date-time"},
            "any": {},
            "point": {"type": ["object", "null"], "properties": {"lat": {"type": "number"}}},
            "clash": {"type": "object", "properties": {"a": {"type": "string"}, "A": {"type": "string"}}},
            "free": {"properties": {"a": {"type": "string"}}},
            "many": {"type": "array", "items": {"type": ["integer", "null"]}},
            "steps": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "required": ["n"],
    },
)
# Longer numbers are not for a decode_fast reader, and payloads with such never come here.
WHOLE = st.integers(-(10**14), 10**14) | st.sampled_from([1.0, -0.0, 1e18, 1e300])
NUMBER = WHOLE | st.integers(-(10**9), 10**9).map(lambda number: number / 1000)
TEXT = st.text(max_size=4)
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "x": NUMBER,
    "s": TEXT,
    "b": st.booleans(),
    "at": st.sampled_from(["2024-05-17T12:30:00Z", "2024-05-17T14:30:00+02:00", "2024-05-17T12:30:00.5Z"]),
    "any": st.none() | TEXT | WHOLE | st.just({"a": [1]}),
    "point": st.none() | st.dictionaries(st.sampled_from(["lat", "_additional", "more"]), NUMBER),
    "clash": st.dictionaries(st.sampled_from(["a", "A"]), TEXT),
    "free": TEXT | st.lists(TEXT, max_size=1) | st.dictionaries(st.sampled_from(["a", "b"]), TEXT),
    "many": st.lists(st.none() | WHOLE, max_size=3),
    "steps": st.lists(st.dictionaries(st.sampled_from(["n", "m"]), WHOLE), max_size=2),
    "map": st.dictionaries(TEXT, WHOLE, max_size=2),
    "_additional": TEXT,
    "more": st.none() | TEXT,
}
PAYLOADS = st.lists(st.fixed_dictionaries({"n": WHOLE}, optional=MEMBERS), min_size=1, max_size=4)


def texts_of(values: list[Any]) -> list[bytes]:
    """The values as JSON texts."""
    return [encode_json(value).encode() for value in values]


def is_quick(text: bytes) -> bool:
    """Whether the fast decoder reads the text as it is: the fast path takes no other."""
    try:
        decode_fast(text)
    except ValueError:
        return False
    return LONG_NUMBER not in text.translate(DIGIT_RUNS)


def both_ways(schema: Any, values: list[Any]) -> None:
    """Compare the column of some payloads with the one of their rows."""
    expected = pa.array([schema.convert(value) for value in values], schema.columns())
    columns = PayloadColumns(schema.columns(), schema.convert, schema.accepts, schema.typed_reader(schema.columns()))
    actual, unfit = columns.array(texts_of(values))
    assert [] == unfit
    actual.validate(full=True)
    assert expected.type == actual.type
    assert expected.to_pylist() == actual.to_pylist()


@given(PAYLOADS)
@example([{"n": 1, "x": 1.5, "s": "a", "b": True, "point": {"lat": 1}, "many": [1, None], "steps": [{"n": 1}, {}]}])
@example([{"n": 1, "steps": [{"n": 1, "m": 2}]}, {"n": 2, "steps": [{}, {"n": 3}]}])
@example([{"n": 1, "point": {"lat": 1, "_additional": 2}}])
@example([{"n": 1, "free": {"a": "x"}}, {"n": 1, "free": []}])
@example([{"n": 1}, {"n": 1, "free": {"b": ""}}])
def test_at_once_or_one_by_one(values: list[Any]) -> None:
    """Whatever members payloads have, lack, or have too many, the column is that of the rows."""
    accepted = [value for value in values if SCHEMA.accepts(value)]
    if accepted:
        both_ways(SCHEMA, accepted)


@cases("schemas/json_schema_columns")
def test_every_kind_of_column(case: Case) -> None:
    """The same of every schema and payload that the columns are tested with, together and alone."""
    schema = schemas.read(case.given["format"], case.given["schema"])
    values = [schema.check(payload.encode()).value for payload in case.given["payloads"]]
    values = [value for value in values if is_quick(encode_json(value).encode())]
    for some in ([values] if values else []) + [[value] for value in values]:
        both_ways(schema, some)


def test_what_needs_no_conversion_is_not_converted() -> None:
    """Of payloads whose columns hold the values as they are, none is converted; else only what has to be."""
    seen: list[Any] = []

    def convert(value: Any) -> Any:
        seen.append(value)
        return SCHEMA.convert(value)

    columns = PayloadColumns(SCHEMA.columns(), convert, SCHEMA.accepts)
    seen.clear()
    values = [{"n": 1, "point": {"lat": 0.5}, "at": "2024-05-17T12:30:00Z"}, {"n": 2, "s": "b", "any": 1}]
    assert [1, 2] == [row["n"] for row in columns.array(texts_of(values))[0].to_pylist()]
    assert [{"at": "2024-05-17T12:30:00Z"}, {"any": 1}] == seen


def test_what_no_column_holds_is_raised() -> None:
    """What converting one by one raises is raised."""

    def convert(value: Any) -> Any:
        if value == {"n": 13}:
            raise ValueError("no")
        return SCHEMA.convert(value)

    with pytest.raises(ValueError, match="no"):
        PayloadColumns(SCHEMA.columns(), convert, SCHEMA.accepts).array([b'{"n": 12, "more": 1}', b'{"n": 13}'])
