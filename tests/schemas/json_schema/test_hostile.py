"""Hostile JSON Schemas and payloads: no network, no file, bounded time and memory, a clear problem."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from signalbook import schemas
from signalbook.schemas import SchemaError
from signalbook.schemas.format import LARGEST
from signalbook.schemas.json_schema.compare import compare
from tests.schemas.bounds import bounded

D7, D20 = "JsonSchema/draft-07", "JsonSchema/draft/2020-12"


@pytest.fixture(autouse=True)
def _nothing_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here may open a socket or a file."""

    def refuse(*args: object, **kwargs: object) -> Any:
        raise AssertionError("something outside was asked")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


def doubling(steps: int, combine: str = "allOf", below: str = "") -> dict[str, Any]:
    """Definitions of which each asks for the next one twice."""

    def twice(at: int) -> dict[str, Any]:
        both = {combine: [{"$ref": f"#/$defs/d{at + 1}"}, {"$ref": f"#/$defs/d{at + 1}"}]}
        return {below: both} if below else both

    return {
        "$defs": {**{f"d{at}": twice(at) for at in range(steps)}, f"d{steps}": {"type": "integer"}},
        "$ref": "#/$defs/d0",
    }


def nested(depth: int, keyword: str = "items") -> dict[str, Any]:
    """Schemas within schemas."""
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {keyword: schema}
    return schema


REFUSED: dict[str, tuple[Any, str]] = {
    "a remote reference": ({"$ref": "https://example.com/s"}, "schemas outside it are not fetched|not present"),
    "a file": ({"$ref": "file:///etc/hostname"}, "schemas outside it are not fetched|not present"),
    "a metaschema elsewhere": ({"$schema": "https://example.com/meta"}, "not one of"),
    "eleven mebibytes": (b'{"title":"' + b"x" * (11 * 1024 * 1024) + b'"}', "more than the 10,485,760"),
    "references that double": (doubling(40), "references multiply"),
    "references that double below items": (doubling(40, below="items"), "references multiply"),
    "alternatives that double": (doubling(40, "anyOf"), "references multiply"),
    "two hundred levels": (nested(200), "nested too deep"),
    "a hundred thousand levels": (b'{"items":' * 100_000 + b"{}" + b"}" * 100_000, "nested too deep"),
    "a pattern that is huge": ({"pattern": "((((a{99}){99}){99}){99}){99}"}, "regex"),
    "a thousand large patterns": (
        {"allOf": [{"pattern": f"(x{{500}}{n}y{{500}}){{20}}"} for n in range(1000)]},
        "patterns",
    ),
    "six thousand patterns": (
        {"allOf": [{"pattern": f"^{number}$"} for number in range(6000)]},
        "5,000 different patterns",
    ),
    "a number of ten thousand digits": (b'{"const":' + b"9" * 10_000 + b"}", "not a JSON document"),
    "an exponent beyond all": (b'{"multipleOf":1e-999999999}', "minimum"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """A schema that would reach outside or work without bound is refused in words, quickly."""
    document, words = REFUSED[name]
    with bounded(10), pytest.raises(SchemaError, match=words):
        schemas.read(D20, document)


def test_a_large_document_is_read() -> None:
    """Ten mebibytes of annotations and a hundred thousand properties are read, judged, compared and get columns."""
    text = b'{"title":"' + b"x" * (LARGEST - 20) + b'"}'
    with bounded(10):
        assert () == schemas.read(D20, text).check(b"1").problems
    fields = {"type": "object", "properties": {f"field{number}": {"type": "integer"} for number in range(100_000)}}
    with bounded(60, 900):
        older, newer = schemas.read(D20, fields), schemas.read(D20, {**fields, "required": ["field7"]})
        assert ["/field9"] == [problem.path for problem in older.check(b'{"field9":"x"}').problems]
        found = list(compare(older, newer))
        assert {True} <= {"backward" in difference.breaks for difference in found}
        assert 10_001 == len(older.columns())


def test_recursion() -> None:
    """Schemas that contain themselves are read, judge, have columns and are compared; endless loops end."""
    with bounded(10):
        for document in (
            {"$ref": "#"},
            {"allOf": [{"$ref": "#"}]},
            {"anyOf": [{"$ref": "#"}, {"type": "string"}]},
            {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
            {"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}},
            {"items": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, "type": ["array", "integer"]},
            {"not": {"not": {"$ref": "#"}}},
            {"if": {"$ref": "#"}, "then": {"$ref": "#"}},
        ):
            schema = schemas.read(D20, document)
            schema.check(b"[" * 300 + b"]" * 300)
            schema.columns()
            list(compare(schema, schemas.read(D20, {**document, "title": "x"})))
            list(compare(schema, schemas.read(D20, {**document, "maxLength": 3})))


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "(x+x+)+y", "^(?=(a+)+$)", r"(a|a)*\1b", r"^(\w+\s?)*$"])
def test_patterns_that_blow_up(pattern: str) -> None:
    """A pattern that other engines choke on is matched in linear time, or stops and is a problem."""
    schema = schemas.read(D20, {"pattern": pattern})
    with bounded(2):
        schema.check(b'"' + b"a" * 5000 + b'!"')


def test_hostile_payloads() -> None:
    """A payload costs what its size says, whatever it holds."""
    schema = schemas.read(D20, {"type": "array", "uniqueItems": True, "items": {"type": "integer", "multipleOf": 0.1}})
    with bounded(20, 900):
        assert 1 == len(schema.check(b"[" + b",".join([b'"x"'] * 1_000_000) + b"]").problems)
        assert schema.check(b"[" * 1_000_000).problems
        assert schema.check(b"1" * 1_000_000).problems
        assert schema.check(b"[1e999999999]").problems
        assert schema.check(b"[" + b"1" * 4000 + b"]").problems == ()
    wide = schemas.read(D20, {"allOf": [{"items": {"type": "string", "minLength": number}} for number in range(300)]})
    with bounded(5):
        assert wide.check(b"[" + b",".join([b"1"] * 3000) + b"]").problems


def test_comparisons_are_bounded() -> None:
    """Two schemas whose alternatives multiply are compared in bounded time; what is not decided is unknown."""

    def alternatives(count: int, name: str) -> dict[str, Any]:
        return {"allOf": [{"anyOf": [{"required": [f"a{n}"]}, {"required": [f"{name}{n}"]}]} for n in range(count)]}

    with bounded(30):
        for count in (3, 12, 40):
            found = list(compare(*(schemas.read(D20, alternatives(count, name)) for name in "bc")))
            assert found
        trees = [doubling(15, "anyOf"), {**doubling(15, "anyOf"), "maximum": 5}]
        assert list(compare(*(schemas.read(D20, tree) for tree in trees)))
        large = {"properties": {f"p{n}": {"oneOf": [{"const": k} for k in range(50)]} for n in range(100)}}
        other = json.loads(json.dumps(large).replace("49", "51"))
        assert list(compare(schemas.read(D20, large), schemas.read(D20, other)))


BEYOND_THE_CANONICAL_FORM: dict[str, Any] = {
    "patterns": {"allOf": [{"pattern": f"^[a-z]*{n}[a-z]{{1,20}}$"} for n in range(240)]},
    "dependencies": {"dependentRequired": {f"a{n}": [f"b{n}", f"c{n}"] for n in range(20)}},
    "alternatives": {"anyOf": [{"required": [f"a{n}"], "properties": {f"a{n}": {"minimum": n}}} for n in range(240)]},
    "exclusions": {"allOf": [{"not": {"required": [f"a{n}", f"b{n}"]}} for n in range(8)]},
    "conditions": {"allOf": [{"if": {"required": [f"a{n}"]}, "then": {"required": [f"b{n}"]}} for n in range(8)]},
    "data": {"const": {"not": {"required": 5}, "dependencies": {"a": 1}, "anyOf": []}},
}


@pytest.mark.parametrize("name", BEYOND_THE_CANONICAL_FORM)
def test_the_canonical_form_is_not_asked_for_much(name: str) -> None:
    """Schemas whose canonical forms would take seconds are compared without them."""
    older = BEYOND_THE_CANONICAL_FORM[name]
    newer = {**older, "maxProperties": 5, "maxLength": 5}
    with bounded(5):
        assert list(compare(schemas.read(D20, older), schemas.read(D20, newer))) or name == "data"


def test_too_many_documents() -> None:
    """A catalog whose schemas refer to each other without end is not followed without end."""

    def catalog(uri: str) -> Any:
        number = int(uri.rpartition("/")[2])
        return {"items": {"$ref": f"/s/{number + 1}"}}

    with bounded(20), pytest.raises(SchemaError, match="more than 1,000 others"):
        schemas.read(D20, {"$ref": "/s/0"}, catalog)

    def heavy(uri: str) -> Any:
        return {"title": "x" * 4_000_000, "items": {"$ref": f"{uri}x"}}

    with bounded(20), pytest.raises(SchemaError, match="bytes together"):
        schemas.read(D20, {"$ref": "/s"}, heavy)


def test_nothing_is_opened(tmp_path: Path) -> None:
    """A reference to a file that exists is not followed."""
    target = tmp_path / "s.json"
    target.write_text("{}")
    with pytest.raises(SchemaError):
        schemas.read(D20, {"$ref": target.as_uri()}, lambda uri: None)
