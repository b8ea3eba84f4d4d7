"""Many entities read in few statements say what an export says of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from signalbook import Registry
from signalbook.messages.definition import ENTITIES, Entities
from signalbook.registry.read import queries
from signalbook.registry.requests import Requests
from signalbook.registry.store import Connection
from signalbook.spec import versions

KINDS = {"schemagroups": "schemas", "messagegroups": "messages", "endpoints": "messages"}
MESSAGE = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "a"}}}


class Counting:
    """A connection that counts its statements."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self.statements = 0

    def execute(self, *args: Any) -> Any:
        """Run a statement."""
        self.statements += 1
        return self._db.execute(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


def read(registry: Registry) -> tuple[Entities, int]:
    """All entities of a registry, and how many statements that took."""

    def job(db: Connection) -> tuple[Entities, int]:
        groups = Requests(registry.store, versions.DEFAULT).setup(db).model.groups
        counting: Any = Counting(db)

        def entries() -> Iterator[tuple[str, Any]]:
            for plural, resources in KINDS.items():
                for xid, text in queries.all_of(counting, groups[plural], resources):
                    yield xid, orjson.loads(text)

        return Entities.of_entries(entries()), counting.statements

    return registry.store.read(job)


def fill(registry: Registry) -> None:
    """Write entities of every kind and shape."""
    registry.put(
        "/messagegroups/G", {"envelope": "CloudEvents/1.0", "labels": {"a": "b"}, "messages": {"Plain": MESSAGE}}
    )
    registry.put(
        "/messagegroups/G-1/messages/plain",
        {**MESSAGE, "dataschemaformat": "JsonSchema/draft-07", "dataschema": {"type": "object"}},
    )
    registry.put("/messagegroups/G-1/messages/plain-2", {**MESSAGE, "basemessage": "/messagegroups/G/messages/Plain"})
    registry.put("/messagegroups/G-1/messages/alias", {"meta": {"xref": "/messagegroups/G/messages/Plain"}})
    registry.put("/endpoints/e", {"usage": ["consumer"], "messages": {"own": MESSAGE}})
    schemas = "/schemagroups/s/schemas"
    for number in (1, 2, 3):
        details = {"versionid": f"V{number}", "format": "JsonSchema/draft-07", "schema": {"maximum": number}}
        registry.put(f"{schemas}/several/versions/V{number}$details", details)
        registry.put(f"{schemas}/several-more/versions/v{number}$details", {**details, "versionid": f"v{number}"})
    registry.patch(f"{schemas}/several/meta", {"defaultversionid": "V2", "defaultversionsticky": True})
    text = {"format": "Protobuf/3", "contenttype": "text/plain", "schema": 'syntax = "proto3";'}
    registry.put(f"{schemas}/text$details", text)
    registry.put(f"{schemas}/bytes$details", {"schemabase64": "/wD+", "contenttype": "application/octet-stream"})
    registry.put(f"{schemas}/elsewhere$details", {"format": "XSD/1.1", "schemaurl": "https://example.com/s.xsd"})
    registry.put(f"{schemas}/none$details", {"name": "without a document"})
    registry.put(f"{schemas}/alias$details", {"meta": {"xref": f"{schemas}/several"}})


@pytest.mark.parametrize("bound", [None, 1])
def test_what_is_read_is_what_an_export_says(monkeypatch: pytest.MonkeyPatch, bound: int | None) -> None:
    """Every entity is the same, read in large pages or in pages of one."""
    for name in ("_PAGE", "_VERSIONS", "_BYTES", "_FEW_RANGES") if bound is not None else ():
        monkeypatch.setattr(queries, name, bound)
    with Registry.open("memory:") as registry:
        fill(registry)
        found, _ = read(registry)
        expected = Entities.of(registry.get("/?doc&inline=*"))
        for name in ENTITIES:
            assert dict(getattr(expected, name)) == dict(getattr(found, name))
        assert 3 == len(found.schemas["/schemagroups/s/schemas/several"].versions)


def test_some_are_read_by_their_names() -> None:
    """Of some entities those are given that are there, in exactly this spelling."""
    with Registry.open("memory:") as registry:
        fill(registry)
        found, _ = read(registry)
        kind = Requests(registry.store, versions.DEFAULT).setup(registry.store.reader()).model.groups["messagegroups"]

        def job(db: Connection) -> list[tuple[str, str]]:
            groups = queries.some_groups(db, ["/messagegroups/G", "/messagegroups/g-1", "/messagegroups/none"])
            xids = [*found.messages, "/messagegroups/G/messages/PLAIN", "/messagegroups/none/messages/m"]
            within = [xid for xid in xids if xid.startswith("/messagegroups/")]
            return [*groups, *queries.some_resources(db, kind.resources["messages"], within)]

        entries = registry.store.read(job)
    some = Entities.of_entries((xid, orjson.loads(text)) for xid, text in entries)
    assert {"/messagegroups/G": found.groups["/messagegroups/G"]} == dict(some.groups)
    assert {xid: one for xid, one in found.messages.items() if xid.startswith("/m")} == dict(some.messages)


def test_statements_grow_with_pages() -> None:
    """Many entities take a statement for each page, not for each entity: also those with several versions."""
    counted = []
    for size in (200, 800):
        with Registry.open("memory:") as registry:
            messages = {f"m{number}": MESSAGE for number in range(size)}
            registry.put("/messagegroups/g", {"messages": messages})
            document = {"format": "JsonSchema/draft-07", "schema": {}}
            two = {"versions": {"1": document, "2": document}}
            registry.put("/schemagroups/s", {"schemas": {f"s{number}": two for number in range(size)}})
            found, statements = read(registry)
            assert (size, size) == (len(found.messages), len(found.schemas))
            counted.append(statements)
    assert counted[0] <= 20
    assert counted[1] <= 5 * counted[0]
