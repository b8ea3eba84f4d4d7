"""What a schema of a catalog refers to: found as a registry finds it."""

from __future__ import annotations

from typing import Any

import pytest

from signalbook import Catalog, Registry, schemas
from signalbook.errors import Problem
from signalbook.messages.definition import Entities
from signalbook.messages.schema_library import SchemaLibrary, SchemaSource
from tests.cases import Case, cases

USER = "/schemagroups/g/schemas/user"


def groups_of(case: Case) -> dict[str, Any]:
    """A catalog with the schemas of a case, and the one that refers to them."""
    groups: dict[str, Any] = {}
    for place, document in {"g/user": case.given["schema"], **case.given["others"]}.items():
        group, id_ = place.split("/")
        members = groups.setdefault(group, {"schemas": {}})["schemas"]
        members[id_] = {"format": case.given["format"], "schema": document}
    return {"schemagroups": groups}


def library_of(*documents: dict[str, Any]) -> SchemaLibrary:
    """The schemas of catalog documents."""
    return SchemaLibrary(Entities.of(*documents))


def schema_at(library: SchemaLibrary, **definition: Any) -> schemas.Schema | Problem:
    """What a definition's schema is, or why there is none."""
    source = library.source(definition)
    assert source is not None
    return source if isinstance(source, Problem) else library.schema(source)


@cases("registry/schema_references")
def test_a_catalog_agrees_with_a_registry(case: Case) -> None:
    """A schema that a registry can read with what it refers to, a catalog of the same documents can, and no other."""
    given = groups_of(case)
    with Registry.open() as registry:
        registry.post("/", given)
        assert case.expect is registry.get(USER)["formatvalidated"]
        served = registry.export()
    for document in (given, served):
        found = schema_at(library_of(document), dataschemaxid=USER)
        assert case.expect is not isinstance(found, Problem), found


FAR = {"schemagroups": {"h": {"schemas": {"base": {"format": "JsonSchema/draft-07", "schema": {"type": "integer"}}}}}}
REFERS = {"$ref": "base"}


def test_what_stands_in_a_definition_has_nothing_beside_it() -> None:
    """A schema in a definition finds the only one of an id; one of the catalog only what is beside it."""
    inline = schema_at(library_of(FAR), dataschema=REFERS, dataschemaformat="JsonSchema/draft-07")
    assert not isinstance(inline, Problem)
    assert [True, False] == [not inline.check(payload).problems for payload in (b"1", b'"x"')]
    user = {"schemagroups": {"g": {"schemas": {"user": {"format": "JsonSchema/draft-07", "schema": REFERS}}}}}
    placed = schema_at(library_of(FAR, user), dataschemaxid=USER)
    assert isinstance(placed, Problem)
    assert "/schemagroups/g/schemas/base" in placed.message


def test_the_same_text_in_two_places() -> None:
    """What a name means depends on where the text that says it stands."""
    text = {"format": "JsonSchema/draft-07", "schema": REFERS}
    groups = {
        name: {"schemas": {"user": text, "base": {"format": "JsonSchema/draft-07", "schema": {"type": kind}}}}
        for name, kind in (("g", "integer"), ("h", "string"))
    }
    library = library_of({"schemagroups": groups})
    for group, right in (("g", b"1"), ("h", b'"x"')):
        found = schema_at(library, dataschemaxid=f"/schemagroups/{group}/schemas/user")
        assert not isinstance(found, Problem)
        assert [right] == [payload for payload in (b"1", b'"x"') if not found.check(payload).problems]


@pytest.mark.parametrize(("kind", "right"), [("integer", b"1"), ("string", b'"x"')])
def test_a_newer_catalog_reads_again_what_changed(kind: str, right: bytes) -> None:
    """Of a schema that was read before, what it refers to is looked at again."""
    before = library_of(FAR)
    schema_at(before, dataschema=REFERS, dataschemaformat="JsonSchema/draft-07")
    newer = {"format": "JsonSchema/draft-07", "schema": {"type": kind}}
    after = SchemaLibrary(Entities.of({"schemagroups": {"h": {"schemas": {"base": newer}}}}), before)
    found = schema_at(after, dataschema=REFERS, dataschemaformat="JsonSchema/draft-07")
    assert not isinstance(found, Problem)
    assert [right] == [payload for payload in (b"1", b'"x"') if not found.check(payload).problems]


def test_a_schema_by_its_own_address() -> None:
    """A reference may be the URL that a server gave a schema."""
    address = "https://registry.example/schemagroups/h/schemas/base"
    schema = {"format": "JsonSchema/draft-07", "schema": {"type": "integer"}, "self": f"{address}$details"}
    user = {"format": "JsonSchema/draft-07", "schema": {"$ref": address}}
    groups = {"h": {"schemas": {"base": schema}}, "g": {"schemas": {"user": user}}}
    found = schema_at(library_of({"schemagroups": groups}), dataschemaxid=USER)
    assert not isinstance(found, Problem)
    assert found.check(b'"x"').problems


@pytest.mark.parametrize(
    ("url", "outcome", "unchecked"),
    [
        ("/schemagroups/s/schemas/x", "nonconformant", ()),
        ("/docs/x.json", "matched", ("payload",)),
        ("https://elsewhere.example/x.json", "matched", ("payload",)),
        ("/schemagroups/s/schemas/nowhere", "nonconformant", ()),
    ],
)
def test_a_document_that_is_kept_at_an_address(url: str, outcome: str, unchecked: tuple[str, ...]) -> None:
    """A `schemaurl` of another schema of the catalog is followed; one that leads out leaves the payload unchecked."""
    schema = {"format": "JsonSchema/draft-07", "schema": {"type": "object", "required": ["a"]}}
    kept = {"format": "JsonSchema/draft-07", "schemaurl": url}
    message = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}},
        "dataschemaformat": "JsonSchema/draft-07",
        "dataschemauri": "/schemagroups/s/schemas/kept",
    }
    catalog = Catalog.from_documents(
        {
            "schemagroups": {"s": {"schemas": {"x": schema, "kept": kept}}},
            "messagegroups": {"g": {"messages": {"m": message}}},
        }
    )
    event = {"specversion": "1.0", "id": "1", "type": "t", "source": "/x", "data": {"b": 1}}
    answer = catalog.match(event)
    assert (outcome, unchecked) == (answer.outcome, answer.unchecked)


@pytest.mark.parametrize(
    ("reference", "link"),
    [
        ("https://r.example/schemagroups/h/schemas/base?specversion=1.0-rc4", ""),
        ("https://r.example/schemagroups/h/schemas/base$details?specversion=1.0-rc4&doc", ""),
        ("https://r.example/schemagroups/h/schemas/base/versions/1?binary", ""),
        ("https://r.example/schemagroups/h/schemas/base?specversion=1.0-rc4#/definitions/a", "/definitions/a"),
        ("https://r.example/schemagroups/h/schemas/base?specversion=1.0-rc4:Name", ":Name"),
        ("/schemagroups/h/schemas/base?doc", ""),
        ("schemagroups/h/schemas/base?doc", ""),
        ("#/schemagroups/h/schemas/base?doc", ""),
    ],
)
def test_an_own_address_with_a_query(reference: str, link: str) -> None:
    """A query says how a schema is shown, not which it is."""
    library = SchemaLibrary(Entities.of(FAR, roots=["https://r.example"]))
    source = library.source({"dataschemauri": reference})
    assert isinstance(source, SchemaSource)
    assert ("/schemagroups/h/schemas/base", link) == (source.place, source.link)
    assert library.are_same(reference, "/schemagroups/h/schemas/base")


@pytest.mark.parametrize("reference", ["https://other.example/schemagroups/h/schemas/base?doc", "urn:a:b?doc"])
def test_an_address_elsewhere_with_a_query(reference: str) -> None:
    """One that is not the catalog's stays what it is."""
    entities = Entities.of(FAR, roots=["https://r.example"])
    assert (reference, True) == (entities.located(reference), entities.is_elsewhere(reference))


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ({"dataschema": {}}, "no dataschemaformat"),
        ({"dataschema": 7, "dataschemaformat": "JsonSchema/draft-07"}, "not a schema document"),
        (
            {"dataschemauri": "https://other.example/x", "dataschemaxid": "/schemagroups/g/schemas/x"},
            "not in the catalog",
        ),
        (
            {"dataschemaxid": "/schemagroups/g/schemas/x", "dataschemauri": "https://other.example/x"},
            "not in the catalog",
        ),
        ({"dataschemaxid": "/schemagroups/g/schemas/loop"}, "not in the catalog"),
        ({"dataschemaxid": "/schemagroups/g/schemas/none"}, "has no document"),
        ({"dataschemaxid": "/schemagroups/g/schemas/coded"}, "has no document"),
        ({"dataschemaxid": "/schemagroups/g/schemas/far"}, "lies elsewhere"),
        ({"dataschemaxid": "/schemagroups/g/schemas/plain"}, "has no format"),
        ({"dataschemaxid": "/schemagroups/g/schemas/" + "a:" * 200}, "not in the catalog"),
    ],
)
def test_why_a_schema_is_not_available(definition: dict[str, Any], words: str) -> None:
    """A schema that is not there, or that has no document or format, is a problem that says so."""
    schemas_ = {
        "loop": {"meta": {"xref": "/schemagroups/g/schemas/loop"}},
        "none": {"format": "JsonSchema/draft-07"},
        "coded": {"format": "JsonSchema/draft-07", "schemabase64": "%"},
        "far": {"format": "JsonSchema/draft-07", "schemaurl": "https://other.example/x"},
        "plain": {"schema": {"type": "integer"}},
    }
    library = library_of({"schemagroups": {"g": {"schemas": schemas_}}})
    found = schema_at(library, **definition)
    assert isinstance(found, Problem)
    assert words in found.message


def test_a_schema_that_breaks_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a reader of schemas raises is a problem of that schema alone."""
    monkeypatch.setattr("signalbook.schemas.read", lambda *_: 1 / 0)
    found = schema_at(library_of(), dataschema={}, dataschemaformat="JsonSchema/draft-07")
    assert isinstance(found, Problem)
    assert "cannot be read" in found.message
