"""Laws of JSON Schema: what is generated passes, what is proved holds, what has columns comes back."""

import json
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbook import schemas
from signalbook.schemas import SchemaError
from signalbook.schemas.json_schema.compare import compare
from signalbook.schemas.json_schema.places import same_key
from tests.cases import Case, read_cases
from tests.schemas.json_schema_payloads import from_schema
from tests.schemas.json_schema_random import Maker

D7, D20 = "JsonSchema/draft-07", "JsonSchema/draft/2020-12"
SLOW = settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=15)

ORDER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "required": ["id", "lines"],
    "properties": {
        "id": {"type": "string", "minLength": 1},
        "placed": {"type": "string", "format": "date-time"},
        "due": {"type": "string", "format": "date"},
        "total": {"type": "number", "multipleOf": 0.25, "minimum": 0},
        "weight": {"type": "number"},
        "count": {"type": "integer", "minimum": 0, "maximum": 2**64},
        "note": {"type": ["string", "null"]},
        "paid": {"type": "boolean"},
        "state": {"enum": ["open", "shipped", None, 3]},
        "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
        "ref": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "ID": {"type": "integer"},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["sku"],
                "additionalProperties": False,
                "properties": {
                    "sku": {"type": "string", "pattern": "^[A-Z]{3}$"},
                    "price": {"type": ["number", "null"]},
                },
            },
        },
    },
}
# The generator follows no recursion, knows draft-07, and takes products of doubles for multiples of 0.01.
HARD = re.compile(r"#/[$]defs/n|0[.]01|unevaluated")
SOURCES = [
    ORDER,
    *(case.given["schema"] for case in read_cases("schemas/json_schema_columns") if case.given["format"] == D20),
]


def as_draft_07(schema: Any) -> Any:
    """The generator knows draft-07: definitions and tuples have other names there."""
    text = json.dumps(schema).replace("$defs", "definitions").replace('"prefixItems"', '"items"')
    return json.loads(text)


@pytest.mark.parametrize("schema", [as_draft_07(schema) for schema in SOURCES if not HARD.search(json.dumps(schema))])
@SLOW
@given(data=st.data())
def test_a_generated_payload_passes_and_comes_back(schema: Any, data: st.DataObject) -> None:
    """A payload generated from a schema passes its check, its columns hold it, and it comes back as it was."""
    payload = data.draw(from_schema(schema))
    read = schemas.read(D7, schema)
    problems, value = read.check(json.dumps(payload).encode())
    assert () == problems
    array = pa.array([read.convert(value)], type=read.columns())
    assert same_key(payload) == same_key(read.restore(array.to_pylist()[0]))


BACKWARD = [
    case
    for case in read_cases("schemas/compatibility-json")
    if case.expect["backward"] and not HARD.search(json.dumps(case.given["older"]))
]


@pytest.mark.parametrize("case", BACKWARD, ids=[case.name for case in BACKWARD])
@SLOW
@given(data=st.data())
def test_a_payload_of_the_older_schema_passes_the_newer(case: Case, data: st.DataObject) -> None:
    """Where compare says backward, every payload generated from the older schema passes the newer one."""
    older = as_draft_07(case.given["older"])
    payload = data.draw(from_schema(older))
    assert () == schemas.read(D20, case.given["newer"]).check(json.dumps(payload).encode()).problems


def read_all(*documents: Any) -> list[Any] | None:
    """The schemas of random documents; None where one of them is none."""
    try:
        return [schemas.read(D20, document) for document in documents]
    except SchemaError:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_what_compare_proves_holds(seed: int) -> None:
    """Where compare says backward, no payload of the older schema is refused by the newer one; forward likewise."""
    maker = Maker(seed)
    values = maker.values()
    proved = 0
    for _ in range(250):
        pair = maker.pair()
        read = read_all(*pair)
        if read is None:
            continue
        found = list(compare(*read))
        judged = [[schema.validator.is_valid(value) for value in values] for schema in read]
        for one, two, direction in ((*judged, "backward"), (*reversed(judged), "forward")):
            if not any(direction in difference.breaks for difference in found):
                proved += any(one)
                lost = [value for value, was, is_ in zip(values, one, two, strict=True) if was and not is_]
                assert [] == lost, (direction, pair)
    assert proved > 100


@pytest.mark.parametrize("seed", range(4, 8))
def test_columns_hold_every_accepted_payload(seed: int) -> None:
    """Whatever a schema accepts, its columns hold it, and it comes back as it was."""
    maker = Maker(seed)
    values = maker.values()
    for _ in range(60):
        document = maker.document()
        read = read_all(document)
        if read is None:
            continue
        (schema,) = read
        accepted = [value for value in values if schema.validator.is_valid(value)]
        array = pa.array([schema.convert(value) for value in accepted], type=schema.columns())
        restored = [schema.restore(row) for row in array.to_pylist()]
        assert [same_key(value) for value in accepted] == [same_key(value) for value in restored], document


@pytest.mark.parametrize("seed", range(8, 10))
def test_a_schema_is_compatible_with_itself(seed: int) -> None:
    """A schema accepts what it accepts: nothing is certain to break where only a title is new."""
    maker = Maker(seed)
    for _ in range(300):
        document = maker.document()
        read = read_all(document, {**document, "title": "again"})
        if read is not None:
            assert [] == [found for found in compare(*read) if found.certain], document
