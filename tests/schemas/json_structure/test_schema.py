"""JSON Structure: what is read, which payloads it takes, compatibility, columns, and hostile documents."""

from __future__ import annotations

import json
import random
from datetime import date
from decimal import Decimal
from typing import Any

import json_structure
import pyarrow as pa
import pytest

from signalbook.schemas import Difference, SchemaError, read
from signalbook.schemas.json_structure.compare import compare
from signalbook.schemas.json_structure.schema import JsonStructureSchema
from signalbook.schemas.json_structure.schema import read as read_structure
from tests.cases import Case, cases, read_cases
from tests.schemas.arrow_types import assert_tabular, plain
from tests.schemas.bounds import bounded

HEAD = {"$schema": "https://json-structure.org/meta/core/v0/#", "$id": "https://example.org/x", "name": "X"}
VALIDATION = {"$schema": "https://json-structure.org/meta/validation/v0/#", "$uses": ["JSONStructureValidation"]}
NODE = {"name": "Node", "type": "object", "properties": {"next": {"type": {"$ref": "#/definitions/Node"}}}}
CHOICE = {"name": "C", "type": "choice", "choices": {"a": {"type": "string"}, "b": {"type": "int32"}}}
TUPLE = {"name": "T", "type": "tuple", "properties": {"x": {"type": "int8"}, "y": {"type": "string"}},
         "tuple": ["x", "y"]}  # fmt: skip
ORDER: dict[str, Any] = {
    **HEAD,
    "type": "object",
    "properties": {
        "id": {"type": "int64"},
        "n": {"type": "int32"},
        "price": {"type": "decimal", "precision": 10, "scale": 2},
        "day": {"type": "date"},
        "tags": {"type": "set", "items": {"type": "string"}},
        "map": {"type": "map", "values": {"type": "double"}},
        "choice": CHOICE,
        "tuple": TUPLE,
        "note": {"type": ["string", "null"]},
        "node": {"type": {"$ref": "#/definitions/Node"}},
        "any": {"type": "any"},
        "raw": {"type": "binary"},
        "big": {"type": "uint64"},
    },
    "required": ["id"],
    "definitions": {"Node": NODE},
}
GOOD: dict[str, Any] = {
    "id": "9223372036854775807", "n": -1, "price": "-1.5", "day": "2024-02-29", "tags": ["a"], "map": {"k": 1.5},
    "choice": {"b": 3}, "tuple": [1, "z"], "note": None, "node": {"next": {}}, "any": [1], "raw": "AAE=",
    "big": "18446744073709551615", "extra": True,
}  # fmt: skip


UNITS: dict[str, Any] = {"$schema": "https://json-structure.org/meta/extended/v0/#", "$uses": ["JSONStructureUnits"]}


def structure(body: dict[str, Any]) -> JsonStructureSchema:
    """A schema with the members that every document needs."""
    return read_structure({**HEAD, **body})


def verdict(found: list[Difference], direction: str) -> bool | None:
    """True: compatible; False: broken; None: cannot be decided."""
    broken = [one for one in found if direction in one.breaks]
    return True if not broken else None if all(not one.certain for one in broken) else False


@cases("schemas/compatibility-json_structure")
def test_compatibility(case: Case) -> None:
    """Each change breaks the promises that the rules say, and is named."""
    older, newer = (structure(case.given[which]) for which in ("older", "newer"))
    found = list(compare(older, newer))
    assert case.expect == {
        "backward": verdict(found, "backward"),
        "forward": verdict(found, "forward"),
        "kinds": sorted({one.kind for one in found}),
    }


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("[]", "", "a JSON object"),
        ("{", "", "not a JSON document"),
        ({"type": "string"}, "", "$id"),
        ({**HEAD, "type": "objekt"}, "/type", "not a recognized"),
        ({**HEAD, "type": {"$ref": "#/definitions/No"}}, "/type/$ref", "not found"),
        ({**HEAD, "$root": "#/definitions/A", "definitions": {"A": {**NODE, "$extends": "#/definitions/A"}}},
         "/definitions/A/$extends", "Circular"),
        ({**HEAD, "type": "string", "$import": "http://x.example/a"}, "", "the catalog has no schema http://x.example/a"),
        ({**HEAD, "type": "string", "$import": "file:///etc/passwd"}, "", "the catalog has no schema file:///etc/passwd"),
        ({**HEAD, **VALIDATION, "type": "string", "pattern": "("}, "/pattern", "regular expression"),
        ({**HEAD, "type": "object", "properties": []}, "/properties", "must be"),
    ],
)  # fmt: skip
def test_refused(text: Any, path: str, words: str) -> None:
    """A document that is no JSON Structure is refused with where and why."""
    with pytest.raises(SchemaError) as caught:
        read_structure(text)
    assert any(problem.path == path and words in problem.message for problem in caught.value.problems), caught.value


def test_references() -> None:
    """What a document imports is asked of the catalog, also by what is imported."""
    catalog = {
        "https://x.example/a": {"$id": "urn:a", "name": "A", "type": "object", "properties": {"b": {"type": "int8"}}},
    }
    body = {**HEAD, "$uses": ["JSONStructureImport"], "type": "object", "$import": "https://x.example/a",
            "properties": {"a": {"type": {"$ref": "#/definitions/A"}}}}  # fmt: skip
    schema = read_structure(body, catalog.get)
    assert ["/a/b"] == [problem.path for problem in schema.check(b'{"a":{"b":300}}').problems]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({}, None),
        ({"id": 1}, "/id"),
        ({"id": "9223372036854775808"}, "/id"),
        ({"n": True}, "/n"),
        ({"n": 2**31}, "/n"),
        ({"price": "1.234"}, "/price"),
        ({"price": "123456789.00"}, "/price"),
        ({"price": "nan"}, "/price"),
        ({"day": "2023-02-29"}, "/day"),
        ({"tags": ["a", "a"]}, "/tags"),
        ({"map": {"k": "x"}}, "/map/k"),
        ({"choice": {"a": "x", "b": 1}}, "/choice"),
        ({"choice": {"c": 1}}, "/choice"),
        ({"tuple": [1]}, "/tuple"),
        ({"tuple": [1000, "x"]}, "/tuple/0"),
        ({"note": 1}, "/note"),
        ({"node": {"next": {"next": 1}}}, "/node/next/next"),
        ({"raw": "?"}, "/raw"),
        ({"big": "-1"}, "/big"),
    ],
)
def test_check(change: dict[str, Any], path: str | None) -> None:
    """A payload is taken, or its problem is named with its place."""
    problems = read_structure(ORDER).check(json.dumps({**GOOD, **change}).encode()).problems
    assert ([] if path is None else [path]) == [problem.path for problem in problems]


def test_no_json() -> None:
    """What is no JSON is a problem, and a missing member is one of its parent."""
    schema = read_structure(ORDER)
    assert ["the payload is not JSON"] == [one.message.partition(":")[0] for one in schema.check(b"{").problems]
    assert [""] == [problem.path for problem in schema.check(b"{}").problems]


def test_extensions() -> None:
    """What an extension adds is checked where the document uses it, and nowhere else."""
    kind = {"type": "string", "maxLength": 2, "pattern": "^a"}
    assert ["", ""] == [one.path for one in structure({**VALIDATION, **kind}).check(b'"xyz"').problems]
    assert () == structure({"type": "string", "maxLength": 2}).check(b'"xyz"').problems
    bounded = structure({**VALIDATION, "type": "int64", "minimum": "5"})
    assert (1, 0) == (len(bounded.check(b'"4"').problems), len(bounded.check(b'"5"').problems))


def test_inline_choice() -> None:
    """A choice that extends a base is told by its selector, which the variants need not declare."""
    base = {"name": "B", "type": "object", "abstract": True, "properties": {"kind": {"type": "string"}}}
    dog = {"name": "Dog", "type": "object", "$extends": "#/definitions/B", "properties": {"bark": {"type": "int8"}}}
    schema = structure({
        "type": "choice", "$extends": "#/definitions/B", "selector": "species",
        "choices": {"dog": {"type": {"$ref": "#/definitions/Dog"}}}, "definitions": {"B": base, "Dog": dog},
    })  # fmt: skip
    assert () == schema.check(b'{"species":"dog","bark":1}').problems
    assert ["/bark"] == [one.path for one in schema.check(b'{"species":"dog","bark":1000}').problems]
    assert schema.check(b'{"species":"cat"}').problems
    assert schema.check(b'{"bark":1}').problems


def test_deep_link() -> None:
    """A JSON Pointer leads to a type; one that leads to none is refused."""
    found = read_structure(ORDER).at("#/definitions/Node")
    assert ["/next"] == [problem.path for problem in found.check(b'{"next":1}').problems]
    for link in ("/definitions/No", "/definitions", "Node"):
        with pytest.raises(SchemaError):
            read_structure(ORDER).at(link)


def test_columns() -> None:
    """Each type has its column; what is not declared, and an explicit null, is in `_more`; a circle is JSON text."""
    schema = read_structure(ORDER)
    node = pa.struct([("next", pa.string()), ("_more", pa.string())])
    fields = [
        ("id", pa.int64()), ("n", pa.int32()), ("price", pa.decimal128(10, 2)), ("day", pa.date32()),
        ("tags", pa.list_(pa.string())), ("map", pa.map_(pa.string(), pa.float64())),
        ("choice", pa.struct([("a", pa.string()), ("b", pa.int32())])),
        ("tuple", pa.struct([("x", pa.int32()), ("y", pa.string())])), ("note", pa.string()), ("node", node),
        ("any", pa.string()), ("raw", pa.binary()), ("big", pa.decimal128(20, 0)), ("_more", pa.string()),
    ]  # fmt: skip
    assert pa.struct(fields) == schema.columns()
    assert_tabular(schema.columns())
    row = schema.convert(schema.check(json.dumps(GOOD).encode()).value)
    assert {
        "id": 2**63 - 1, "n": -1, "price": Decimal("-1.5"), "day": date(2024, 2, 29), "tags": ["a"],
        "map": [("k", 1.5)], "choice": {"b": 3}, "tuple": {"x": 1, "y": "z"}, "node": {"next": "{}", "_more": None},
        "any": "[1]", "raw": b"\0\1", "big": Decimal(2**64 - 1), "_more": '{"note":null,"extra":true}',
    } == row  # fmt: skip
    back = pa.array([row], schema.columns()).to_pylist()[0]
    assert plain(schema.columns(), {**row, "price": Decimal("-1.50")}) == plain(schema.columns(), back)


def value_of(schema: JsonStructureSchema, kind: dict[str, Any], chance: random.Random, depth: int = 0) -> Any:
    """A value of a type, at random."""
    found = schema.document.effective(kind)
    if "enum" in found:
        return chance.choice(found["enum"])
    name = found["type"]
    if isinstance(name, list):
        name = chance.choice(name)
        return value_of(schema, {"type": name}, chance, depth)
    if name == "object":
        return {
            key: value_of(schema, one, chance, depth + 1)
            for key, one in found["properties"].items()
            if key in found.get("required", ()) or (depth < 4 and chance.random() < 0.7)
        }
    if name in ("array", "set"):
        return [value_of(schema, found["items"], chance, depth)]
    if name == "map":
        return {"k": value_of(schema, found["values"], chance, depth)}
    if name == "tuple":
        return [value_of(schema, found["properties"][key], chance, depth) for key in found["tuple"]]
    if name == "choice":
        key = chance.choice(list(found["choices"]))
        return {key: value_of(schema, found["choices"][key], chance, depth)}
    return chance.choice(VALUES[name])


VALUES: dict[str, list[Any]] = {
    "string": ["", "a", "é"], "null": [None], "boolean": [True, False], "any": [None, 1, [2.5]],
    "int8": [-128, 127], "int16": [-32768, 300], "uint16": [65535], "int32": [2**31 - 1], "uint32": [2**32 - 1],
    "int64": [str(-(2**63))], "int128": [str(2**127 - 1)], "decimal": ["1.5", "-3"], "float": [1.5, 3],
    "double": [1e300],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000"], "date": ["2024-01-31"], "datetime": ["2024-01-31T00:00:00+02:00"],
}  # fmt: skip
BODIES = [
    (case.given[which], case) for case in read_cases("schemas/compatibility-json_structure") for which in case.given
]


@pytest.mark.parametrize(("body", "case"), BODIES, ids=str)
def test_laws(body: dict[str, Any], case: Case) -> None:
    """A payload made from a schema passes it, and its compatible ones; it fits the columns; the package agrees."""
    if "pattern" in json.dumps(body):
        return
    schema = structure(body)
    other = structure(case.given["newer" if body is case.given["older"] else "older"])
    compatible = case.expect["backward" if body is case.given["older"] else "forward"]
    judge = json_structure.InstanceValidator({**HEAD, **json.loads(json.dumps(body))})
    chance = random.Random(case.name)
    for _ in range(10):
        value = value_of(schema, schema.document.start, chance)
        payload = json.dumps(value).encode()
        assert () == schema.check(payload).problems
        assert [] == judge.validate(json.loads(payload))
        if compatible:
            assert () == other.check(payload).problems
        row = schema.convert(schema.check(payload).value)
        assert len(pa.array([row], schema.columns())) == 1


# ---- hostile documents


def nested(depth: int) -> dict[str, Any]:
    """An array of arrays of arrays."""
    found: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        found = {"type": "array", "items": found}
    return {**HEAD, **found}


@pytest.mark.parametrize(
    "document",
    [
        nested(300),
        {**HEAD, "type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(120_000)}},
        {**HEAD, "$uses": ["JSONStructureConditionalComposition"], "type": {"$ref": "#/definitions/a40"},
         "definitions": {**{f"a{n}": {"type": "any", "allOf": [{"type": {"$ref": f"#/definitions/a{n - 1}"}}] * 2}
                            for n in range(1, 41)}, "a0": {"type": "string"}}},
        '{"a":' * 200_000,
        " " * 11_000_000,
    ],
    ids=["deep", "100,000 fields", "doubling", "deep text", "large"],
)  # fmt: skip
def test_hostile(document: Any) -> None:
    """A hostile document is refused in bounded time."""
    with bounded(20), pytest.raises(SchemaError):
        read_structure(document)


def test_a_pattern_that_blows_up() -> None:
    """A pattern is matched in linear time, or not at all."""
    schema = structure({**VALIDATION, "type": "string", "pattern": "^(a|aa)+$"})
    with bounded(5):
        assert schema.check(json.dumps("a" * 5000 + "!").encode()).problems


def test_names() -> None:
    """The row is found by the names of real catalogs."""
    for name in ("JsonStructure/draft-04", "jsonstructure", "JSONSTRUCTURE/draft4"):
        assert isinstance(read(name, ORDER), JsonStructureSchema)


@pytest.mark.parametrize("keyword", ["unit", "ucumUnit"])
@pytest.mark.parametrize(
    "kind",
    [
        "double", "int8", "uint16", "float8", ["double", "null"], ["null", "int32"], ["int32", "double"],
        {"$ref": "#/definitions/Length"}, [{"$ref": "#/definitions/Length"}, "null"],
    ],
    ids=str,
)  # fmt: skip
def test_what_is_numeric_has_a_unit(kind: Any, keyword: str) -> None:
    """A unit stands at every numeric type: a nullable one, a small one, one that is named elsewhere."""
    definitions = {"Length": {"name": "Length", "type": "double"}}
    properties = {"x": {"type": kind, keyword: "m"}}
    schema = structure({**UNITS, "type": "object", "properties": properties, "definitions": definitions})
    assert schema.check(b'{"x": 1}').problems == ()


@pytest.mark.parametrize("keyword", ["unit", "ucumUnit"])
@pytest.mark.parametrize(
    "kind",
    ["string", "null", ["null"], ["double", "string"], {"$ref": "#/definitions/Text"}, {"$ref": "#/definitions/None"}],
    ids=str,
)
def test_what_is_not_numeric_has_no_unit(kind: Any, keyword: str) -> None:
    """A unit of what may be text, or nothing but null, is refused at its place."""
    definitions = {"Text": {"name": "Text", "type": "string"}}
    properties = {"x": {"type": kind, keyword: "m"}}
    with pytest.raises(SchemaError) as caught:
        structure({**UNITS, "type": "object", "properties": properties, "definitions": definitions})
    assert f"/properties/x/{keyword}" in [problem.path for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        ({"type": ["double", "null"], "minimum": 3}, [None, 3, 4.5], [1, "4"]),
        ({"type": ["null", "int32"], "maximum": 3, "exclusiveMinimum": True, "minimum": 0}, [None, 1, 3], [0, 4]),
        ({"type": ["string", "null"], "maxLength": 2, "pattern": "^a"}, [None, "a", "ab"], ["abc", "b"]),
        ({"type": ["string", "int32"], "maxLength": 2, "minimum": 3}, ["ab", 3], ["abc", 2, None]),
        ({"type": ["int64", "null"], "minimum": "10"}, [None, "10"], ["9", 10]),
        ({"type": ["int64", "int32"], "minimum": "10"}, ["10", 10], ["9", 9]),
        ({"type": ["decimal", "null"], "precision": 3, "scale": 1}, [None, "10.5"], ["10.55", "1000"]),
        ({"type": [{"$ref": "#/definitions/Length"}, "null"], "minimum": 3}, [None, 3, 9], [2, 10]),
        ({"type": "int128", "multipleOf": "7"}, [str(7 * 10**37)], [str(7 * 10**37 + 1)]),
    ],
    ids=str,
)
def test_a_union_keeps_what_is_said_of_its_values(type_: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    """Bounds, lengths and patterns hold for the values of a nullable type as for those of a plain one."""
    definitions = {"Length": {"name": "Length", "type": "double", "maximum": 9}}
    schema = structure({**VALIDATION, "type": "object", "properties": {"x": type_}, "definitions": definitions})
    taken = {value: not schema.check(json.dumps({"x": value}).encode()).problems for value in [*good, *bad]}
    assert taken == {**dict.fromkeys(good, True), **dict.fromkeys(bad, False)}


@pytest.mark.parametrize("kind", ["int64", "decimal", ["int64", "null"]], ids=str)
def test_a_bound_that_is_not_a_number(kind: Any) -> None:
    """A bound that is not a number is refused when the schema is read."""
    with pytest.raises(SchemaError, match='minimum is "many", which is not a number'):
        structure({**VALIDATION, "type": "object", "properties": {"x": {"type": kind, "minimum": "many"}}})


def test_a_nullable_decimal_keeps_its_column() -> None:
    """A decimal that may be null has the column of one that may not."""
    properties = {"x": {"type": ["decimal", "null"], "precision": 5, "scale": 2}}
    schema = structure({**VALIDATION, "type": "object", "properties": properties})
    assert schema.columns().field("x").type == pa.decimal128(5, 2)
