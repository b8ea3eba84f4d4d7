"""Ids of schema versions: given with every write in a context, from any API, and bound to their content for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from signalbook.errors import RegistryError
from signalbook.registry import schema_ids
from signalbook.registry.registry import Registry
from signalbook.registry.requests import Requests
from signalbook.registry.schema_ids import Contexts
from signalbook.registry.store import Connection
from signalbook.schemas.canonical import Reference

GROUP = "/schemagroups/confluent"
AVRO = "Avro/1.11.0"


@pytest.fixture
def registry(store_url: str) -> Iterator[Registry]:
    """A new registry."""
    with Registry.open(store_url) as opened:
        yield opened


def put(registry: Registry, name: str, versionid: str, schema: Any, group: str = GROUP, **more: Any) -> Any:
    """Put a version of a schema."""
    body = {"format": AVRO, "schema": schema, **more}
    return registry.put(f"{group}/schemas/{name}/versions/{versionid}", body)


def record(name: str, **more: Any) -> Any:
    """An Avro record."""
    return {"type": "record", "name": name, "fields": [], **more}


def reader(registry: Registry) -> Connection:
    """A connection to look things up."""
    return registry.store.reader()


def test_an_id_stands_for_a_content(registry: Registry) -> None:
    """The same content has the same id in every schema; another spelling of it is the same content."""
    one = put(registry, "a", "1", record("A"))
    two = put(registry, "b", "1", {"fields": [], "name": "A", "type": "record"})
    three = put(registry, "b", "2", record("A", doc="d"))
    assert (1, 1, 2) == (one["confluentid"], two["confluentid"], three["confluentid"])
    found = schema_ids.by_id(reader(registry), ".", 1)
    assert found is not None
    assert ("AVRO", '{"type":"record","name":"A","fields":[]}') == (found.content.type, found.content.text)
    assert one["confluentguid"] == found.guid
    assert 2 == schema_ids.id_of(reader(registry), f"{GROUP}/schemas/b/versions/2")


def test_contents_of_one_guid(registry: Registry) -> None:
    """Metadata and tags of the same letters have the same guid, and ids of their own."""
    one = put(registry, "a", "1", record("A"), confluentmetadata={"properties": {"x": "y"}})
    two = put(registry, "b", "1", record("A"), confluentmetadata={"tags": {"x": ["y"]}})
    assert one["confluentguid"] == two["confluentguid"]
    assert (1, 2) == (one["confluentid"], two["confluentid"])


def test_an_id_outlives_its_versions(registry: Registry) -> None:
    """What was deleted keeps its id, and gets it again; no other content does."""
    put(registry, "a", "1", record("A"))
    registry.delete(GROUP)
    assert schema_ids.by_id(reader(registry), ".", 1) is not None
    assert [] == schema_ids.holders(reader(registry), ".", 1)
    assert 2 == put(registry, "b", "1", record("B"))["confluentid"]
    assert 1 == put(registry, "c", "1", record("A"))["confluentid"]


def test_an_id_travels_with_its_version(registry: Registry) -> None:
    """An id that a version brings is kept where it is free or stands for that content; else it gets another."""
    assert 70 == put(registry, "a", "1", record("A"), confluentid=70)["confluentid"]
    assert 70 == put(registry, "b", "1", record("A"), confluentid=70)["confluentid"]
    assert 71 == put(registry, "c", "1", record("C"), confluentid=70)["confluentid"]
    assert 9 == put(registry, "d", "1", record("A"), confluentid=9)["confluentid"]
    assert 9 == put(registry, "e", "1", record("A"))["confluentid"]
    for wrong in (0, -1, 2**31, "7", True):
        assert 72 > put(registry, "f", "1", record("A"), confluentid=wrong)["confluentid"] > 0


def test_an_id_stays_with_its_version(registry: Registry) -> None:
    """Whoever writes the same content again, with another id or none, changes nothing; another content has its own."""
    put(registry, "a", "1", record("A"))
    assert 1 == put(registry, "a", "1", record("A"), confluentid=50)["confluentid"]
    assert 1 == registry.patch(f"{GROUP}/schemas/a/versions/1", {"name": "A schema"})["confluentid"]
    assert 2 == put(registry, "a", "1", record("A", doc="d"))["confluentid"]
    assert schema_ids.by_id(reader(registry), ".", 1) is not None


def test_numbers_of_versions(registry: Registry) -> None:
    """A positive number is one; any other id gets the next, and keeps it; none is given twice."""
    put(registry, "a", "first", record("A"))
    put(registry, "a", "5", record("B"))
    third = put(registry, "a", "007", record("C"))
    assert 6 == third["confluentversion"]
    registry.delete(f"{GROUP}/schemas/a/versions/007")
    put(registry, "a", "later", record("D"))
    found = schema_ids.versions(reader(registry), ".", "a")
    assert [1, 5, 7] == [one.number for one in found]
    put(registry, "a", "1", record("E"))
    assert [1, 5, 7, 8] == [one.number for one in schema_ids.versions(reader(registry), ".", "a")]


def test_other_formats_have_no_ids(registry: Registry) -> None:
    """What Confluent's registry does not know, or cannot read, has none; it gets one when it becomes a schema."""
    body = {
        "format": "XSD/1.0",
        "schemabase64": "PHg6c2NoZW1hIHhtbG5zOng9Imh0dHA6Ly93d3cudzMub3JnLzIwMDEvWE1MU2NoZW1hIi8+",
    }
    assert "confluentid" not in registry.put(f"{GROUP}/schemas/x/versions/1", body)
    assert "confluentid" not in registry.put(f"{GROUP}/schemas/n/versions/1", {"schema": {"a": 1}})
    assert 1 == registry.put(f"{GROUP}/schemas/n/versions/1", {"format": "JsonSchema", "schema": {}})["confluentid"]
    assert [(".", "n", False)] == schema_ids.subjects(reader(registry))


def test_contexts(registry: Registry) -> None:
    """A group is a context once it says so; then its schemas get ids, and lose their place when it no longer does."""
    put(registry, "a", "1", record("A"), "/schemagroups/g")
    assert "confluentid" not in registry.get("/schemagroups/g/schemas/a")
    registry.patch("/schemagroups/g", {"confluentcontext": ".dock"})
    assert 1 == registry.get("/schemagroups/g/schemas/a")["confluentid"]
    assert [".", ".dock"] == schema_ids.all_contexts(reader(registry))
    with pytest.raises(RegistryError, match="invalid_attribute"):
        registry.put("/schemagroups/h", {"confluentcontext": ".dock"})
    registry.patch("/schemagroups/g", {"confluentcontext": None})
    assert [] == schema_ids.subjects(reader(registry))
    assert schema_ids.by_id(reader(registry), ".dock", 1) is not None


def test_a_store_from_before(registry: Registry) -> None:
    """Groups that were there before they were contexts are entered when a server chooses so, once."""
    put(registry, "a", "1", record("A"), "/schemagroups/g")
    put(registry, "a", "x", record("B"), "/schemagroups/g")
    requests: Requests = registry._requests
    requests.enter_contexts(Contexts(all=True))
    assert [(".g", "a", False)] == schema_ids.subjects(reader(registry))
    assert [1, 2] == [one.number for one in schema_ids.versions(reader(registry), ".g", "a")]
    assert schema_ids.are_entered(reader(registry), Contexts(all=True))
    assert 2 == registry.get("/schemagroups/g/schemas/a/versions/x")["confluentid"]
    requests.enter_contexts(Contexts())
    assert [] == schema_ids.subjects(reader(registry))


def test_a_cross_reference_is_not_a_subject(registry: Registry) -> None:
    """A schema that shows another has no versions of its own."""
    put(registry, "a", "1", record("A"))
    registry.put(f"{GROUP}/schemas/b/meta", {"xref": f"{GROUP}/schemas/a"})
    assert [(".", "a", False)] == schema_ids.subjects(reader(registry))


def test_references(registry: Registry) -> None:
    """Who refers to whom is known, and what a name means is found through others, the nearest first."""
    put(registry, "a", "1", record("A"))
    refers = {"name": "A", "subject": "a", "version": 1}
    field = {"name": "a", "type": "A"}
    user = put(registry, "b", "1", record("B", fields=[field]), confluentreferences=[refers])
    assert user["formatvalidated"] is True
    found = schema_ids.referrers(reader(registry), ".", "a", 1)
    assert [("b", 1)] == [(one.subject, one.number) for one in found]
    texts = schema_ids.texts_of(reader(registry), ".", (Reference("B", "b", 1),))
    assert ["B", "A"] == list(texts)
    registry.delete(f"{GROUP}/schemas/b")
    assert [] == schema_ids.referrers(reader(registry), ".", "a")


def test_a_load_changes_nothing_twice(registry: Registry) -> None:
    """A document that says nothing of ids, loaded again, touches nothing; nor does an export of it."""
    version = {"format": AVRO, "schema": record("A")}
    document = {"schemagroups": {"confluent": {"schemas": {"a": {"versions": {"x": version}}}}}}
    assert (1, 1) == registry.load_part("/", document, "one")
    before = registry.get(f"{GROUP}/schemas/a/versions")
    assert (0, 0) == registry.load_part("/", document, "two")
    exported = registry.export()
    assert (0, 0) == registry.load_part("/", {"schemagroups": exported["schemagroups"]}, "three")
    assert before == registry.get(f"{GROUP}/schemas/a/versions")
    assert (1, 1) == (before["x"]["confluentid"], before["x"]["confluentversion"])


def test_an_export_brings_ids_back(registry: Registry, fresh_store: Callable[[], str]) -> None:
    """What was exported has its ids and numbers elsewhere, too."""
    put(registry, "a", "x", record("A"), confluentid=70, confluentversion=4)
    put(registry, "a", "2", record("B"))
    exported = registry.export()
    with Registry.open(fresh_store()) as other:
        other.load_part("/", {"schemagroups": exported["schemagroups"]}, "one")
        assert schema_ids.versions(reader(registry), ".", "a") == schema_ids.versions(reader(other), ".", "a")


def test_what_is_undone_gives_no_id(registry: Registry) -> None:
    """A write that fails leaves no id behind."""

    def fail() -> None:
        with registry.transaction() as transaction:
            transaction.put(f"{GROUP}/schemas/a/versions/1", {"format": AVRO, "schema": record("A")})
            transaction.put("/nowhere/x", {})

    with pytest.raises(RegistryError):
        fail()
    assert schema_ids.by_id(reader(registry), ".", 1) is None
    assert 1 == put(registry, "b", "1", record("B"))["confluentid"]
