"""JSON Schema documents and the payloads they judge."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from signalbook import schemas
from signalbook.errors import Problem
from signalbook.schemas import SchemaError
from tests.cases import Case, cases

D7, D20 = "JsonSchema/draft-07", "JsonSchema/draft/2020-12"


@cases("schemas/json_schema_read")
def test_documents(case: Case) -> None:
    """A document is read as the draft it is, or every problem says where it is."""
    if "format" in case.expect:
        assert case.expect["format"] == schemas.read(case.given["format"], case.given["text"]).format
        return
    with pytest.raises(SchemaError) as caught:
        schemas.read(case.given["format"], case.given["text"].encode(), lambda uri: None)
    assert case.expect["paths"] == sorted(problem.path for problem in caught.value.problems)
    assert {problem.code for problem in caught.value.problems} <= {"schema", "reference"}


@cases("schemas/json_schema_check")
def test_payloads(case: Case) -> None:
    """A payload is judged exactly, and each problem has its place."""
    schema = schemas.read(case.given["format"], case.given["schema"])
    problems, value = schema.check(case.given["payload"].encode(), "application/json")
    assert case.expect["paths"] == sorted(problem.path for problem in problems)
    assert {problem.code for problem in problems} <= {"payload"}
    if "value" in case.expect:
        assert case.expect["value"] == value


def test_words_are_short() -> None:
    """A problem's message does not repeat a whole payload."""
    schema = schemas.read(D20, {"type": "integer"})
    ((problem,), _) = schema.check(b'"' + b"x" * 100_000 + b'"')
    assert len(problem.message) <= 300


def test_a_document_is_not_shared() -> None:
    """A schema does not change when the object it was read from does."""
    document = {"properties": {"a": {"type": "integer"}}}
    schema = schemas.read(D20, document)
    document["properties"]["a"]["type"] = "string"
    assert () == schema.check(b'{"a":1}').problems
    assert "int64" in str(schema.columns())


def test_values_that_are_no_json() -> None:
    """An inline document that JSON cannot hold is refused."""
    with pytest.raises(SchemaError, match="not a JSON value"):
        schemas.read(D20, {"const": object()})


CATALOG: Mapping[str, Any] = {
    "/schemagroups/g/schemas/money": {"$defs": {"cents": {"type": "integer", "minimum": 0}}, "$ref": "#/$defs/cents"},
    "https://example.com/name": b'{"type":"string"}',
    "https://example.com/loop": {"properties": {"again": {"$ref": "https://example.com/loop"}}},
    "https://example.com/meta": {
        "$id": "https://example.com/meta",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$vocabulary": {
            "https://json-schema.org/draft/2020-12/vocab/core": True,
            "https://json-schema.org/draft/2020-12/vocab/applicator": True,
        },
    },
    "https://example.com/broken": b"{",
    "https://example.com/invalid": {"type": "nope"},
}


@pytest.mark.parametrize(
    ("reference", "good", "bad"),
    [
        ("/schemagroups/g/schemas/money", b"5", b"-1"),
        ("/schemagroups/g/schemas/money#/$defs/cents", b"5", b"-1"),
        ("https://example.com/name", b'"x"', b"1"),
        ("https://example.com/loop", b'{"again":{"again":{}}}', None),
    ],
)
def test_references_into_the_catalog(reference: str, good: bytes, bad: bytes | None) -> None:
    """A reference is answered by the catalog: a path where it is relative, else the URI as it stands."""
    asked = []

    def catalog(uri: str) -> Any:
        asked.append(uri)
        return CATALOG.get(uri)

    schema = schemas.read(D20, {"$ref": reference}, catalog)
    assert () == schema.check(good).problems
    assert bad is None or schema.check(bad).problems
    assert [reference.partition("#")[0]] == asked


def test_a_relative_reference_keeps_the_base() -> None:
    """A reference is relative to the `$id` above it."""
    schema = schemas.read(D20, {"$id": "https://example.com/x/y", "items": {"$ref": "/name"}}, CATALOG.get)
    assert ["/0"] == [problem.path for problem in schema.check(b"[1]").problems]


@pytest.mark.parametrize("name", ["missing", "broken", "invalid"])
def test_what_the_catalog_cannot_give(name: str) -> None:
    """A reference to a schema that is missing or broken makes the schema unusable."""
    with pytest.raises(SchemaError):
        schemas.read(D20, {"$ref": f"https://example.com/{name}"}, CATALOG.get)


def test_a_metaschema_of_the_catalog() -> None:
    """A metaschema of the catalog is obeyed; as its keywords are not known, columns are text and changes unknown."""
    given = {"$schema": "https://example.com/meta", "type": "integer"}
    schema = schemas.read(D20, given, CATALOG.get)
    assert () == schema.check(b'"no validation vocabulary"').problems
    assert "struct<value: string, _additional: string>" == str(schema.columns())
    other = schemas.read(D20, {**given, "title": "x"}, CATALOG.get)
    assert [("metaschema_unknown", False)] == [
        (found.kind, found.certain) for found in schemas.compatible([schema, other], "full")
    ]


DOCUMENT = {
    "$id": "https://example.com/orders",
    "type": "object",
    "$defs": {
        "line": {"type": "object", "properties": {"sku": {"$ref": "#/$defs/a~1b%20%25"}}},
        "a/b %": {"type": "string", "$anchor": "sku"},
        "no": False,
    },
    "properties": {"lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
}


@pytest.mark.parametrize("document", [DOCUMENT, {k: v for k, v in DOCUMENT.items() if k != "$id"}])
@pytest.mark.parametrize(
    ("fragment", "good", "bad"),
    [
        ("/$defs/line", b'{"sku":"x"}', b'{"sku":1}'),
        ("#/$defs/line", b'{"sku":"x"}', b'{"sku":1}'),
        ("#/$defs/a~1b%20%25", b'"x"', b"1"),
        ("#sku", b'"x"', b"1"),
        ("/properties/lines", b"[]", b"{}"),
        ("/properties/lines/items", b'{"sku":"x"}', b'{"sku":1}'),
        ("/$defs/no", None, b"1"),
        ("", b"{}", b"1"),
        ("#", b"{}", b"1"),
    ],
)
def test_deep_links(document: Any, fragment: str, good: bytes | None, bad: bytes) -> None:
    """A fragment leads to a part of the document, which still sees the rest of it: S-8."""
    part = schemas.read(D20, document).at(fragment)
    assert D20 == part.format
    assert good is None or () == part.check(good).problems
    assert part.check(bad).problems
    assert part.at("#/$defs/no").check(b"1").problems


@pytest.mark.parametrize("fragment", ["/$defs/none", "/type", "/properties/lines/items/5", "nobody", "/$defs/line/"])
def test_deep_links_that_lead_nowhere(fragment: str) -> None:
    """A fragment that leads to no schema is a schema error."""
    with pytest.raises(SchemaError, match="does not lead to a schema"):
        schemas.read(D20, DOCUMENT).at(fragment)


def test_columns_and_comparison_of_a_part() -> None:
    """A part has columns of its own and is compared as what it is."""
    part = schemas.read(D20, DOCUMENT).at("/$defs/line")
    assert "struct<sku: string, _additional: string>" == str(part.columns())
    assert [] == list(schemas.compatible([part, schemas.read(D20, DOCUMENT).at("/$defs/line")], "full"))
    other = schemas.read(D20, {"type": "object"})
    assert ["property_removed_from_open_model"] == [one.kind for one in schemas.compatible([part, other], "full")]


def test_many_problems_are_cut() -> None:
    """At most a hundred problems are listed, and only the first where listing them all would be dear."""
    schema = schemas.read(D20, {"items": {"type": "string"}})
    assert 100 == len(schema.check(b"[" + b",".join([b"1"] * 150) + b"]").problems)
    assert ["/0"] == [problem.path for problem in schema.check(b"[" + b",".join([b"1"] * 50_000) + b"]").problems]


def test_a_check_is_safe_in_threads() -> None:
    """One schema judges in many threads at once."""
    schema = schemas.read(D20, {"type": "array", "items": {"type": "integer", "maximum": 5}})
    found: list[tuple[Problem, ...]] = []

    def judge() -> None:
        found.extend(schema.check(b"[1,2,9]").problems for _ in range(200))

    threads = [threading.Thread(target=judge) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {("/2",)} == {tuple(problem.path for problem in problems) for problems in found}
    assert 800 == len(found)
