"""Many entities as JSON text, in few statements: what a catalog is compiled of.

Rule 1: entities are read by ranges of keys or by lists of keys, a bounded number at a time, within one transaction. How
many statements that takes grows with the number of pages, not of entities.
Rule 2: an entity is what its author said of it: a group its attributes, a resource its `meta` and its versions with
their documents. What a server adds (addresses, epochs, times, counts) is left out.
Rule 3: names and shapes are those that are stored, the canonical ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import orjson

from signalbook.model.model import GroupType, ResourceType
from signalbook.registry import rows
from signalbook.registry.documents import document_names, render_document
from signalbook.registry.store import Connection

__all__ = ["all_of", "some_groups", "some_resources"]

_PAGE = 200
# So many versions, of resources that have several, are read at once, and so many bytes of documents.
_VERSIONS = 500
_BYTES = 4 << 20
_FEW_RANGES = 50

_GROUP = "SELECT key, xid, doc FROM entities"
_RESOURCE = (
    "SELECT r.key, r.xid, r.type, r.link, r.xref, r.size, v.xid, v.form, v.doc, length(v.content)"
    " FROM entities r LEFT JOIN entities v ON v.key = r.link"
)
_VERSION = "SELECT key, xid, form, doc, length(content) FROM entities"
_GROUPS = f"{_GROUP} WHERE key > ? AND key < ? ORDER BY key"
_GROUPS_IN = f"{_GROUP} WHERE key IN ({{}})"
_RESOURCES = f"{_RESOURCE} WHERE r.key > ? AND r.key < ? ORDER BY r.key"
_RESOURCES_IN = f"{_RESOURCE} WHERE r.key IN ({{}})"
_VERSIONS_OF_ONE = f"{_VERSION} WHERE key > ? AND key < ? ORDER BY key"
_VERSIONS_OF_SOME = f"{_VERSION} WHERE {{}} ORDER BY key"
_CONTENTS = "SELECT key, content FROM entities WHERE key IN ({})"

Entry = tuple[str, str]
Row = tuple[Any, ...]


def all_of(db: Connection, kind: GroupType, resources: str) -> Iterator[Entry]:
    """Yield every group of a type, then every resource of one type in them: its xid and its JSON text."""
    for _, xid, doc in rows.in_batches(db, _GROUPS, rows.range_of(rows.GROUP, f"/{kind.plural}")):
        yield xid, doc
    resource = kind.resources.get(resources)
    if resource is None:
        return
    type_ = f"{kind.plural}/{resources}"
    found = rows.in_batches(db, _RESOURCES, rows.range_of(rows.RESOURCE, f"/{kind.plural}"))
    while page := list(islice(found, _PAGE)):
        yield from _resources(db, resource, [row for row in page if row[2] == type_])


def some_groups(db: Connection, xids: Iterable[str]) -> Iterator[Entry]:
    """Yield those of some groups that are there."""
    for _, xid, doc in _by_keys(db, _GROUPS_IN, rows.group_key, xids):
        yield xid, doc


def some_resources(db: Connection, kind: ResourceType, xids: Iterable[str]) -> Iterator[Entry]:
    """Yield those of some resources, which are of one type, that are there."""
    found = _by_keys(db, _RESOURCES_IN, rows.resource_key, xids)
    while page := list(islice(found, _PAGE)):
        yield from _resources(db, kind, page)


def _by_keys(db: Connection, select: str, key_of: Callable[[str], str], xids: Iterable[str]) -> Iterator[Row]:
    wanted = frozenset(xids)
    keys = sorted(set(map(key_of, wanted)))
    for start in range(0, len(keys), _PAGE):
        chunk = tuple(keys[start : start + _PAGE])
        for row in db.execute(select.format(", ".join("?" * len(chunk))), chunk):
            if row[1] in wanted:  # ids are found without regard to case, and named with it
                yield row


def _resources(db: Connection, kind: ResourceType, page: Sequence[Row]) -> Iterator[Entry]:
    """Yield the resources of a page."""
    several = [(row[1], row[5]) for row in page if row[4] is None and row[5] > 1]
    versions: dict[str, list[Row]] = {}
    for _, xid, _, link, xref, size, default, form, doc, length in page:
        if xref is None and size <= 1 and default is not None:
            versions[xid] = [(link, default, form, doc, length)]
    for xid, row in _versions(db, several):
        versions.setdefault(xid, []).append(row)
    contents = _Contents(db, kind, versions.values())
    for row in page:
        xid, link, xref, default = row[1], row[3], row[4], row[6]
        if xref is not None:
            yield xid, f'{{"meta":{{"xref":"{xref}"}}}}'
            continue
        chosen = (default or link or "").rpartition("/")[2]
        shown = ",".join(f'"{one[1].rpartition("/")[2]}":{contents.shown(one)}' for one in versions.get(xid, ()))
        yield xid, f'{{"meta":{{"defaultversionid":"{chosen}"}},"versions":{{{shown}}}}}'


def _versions(db: Connection, several: Sequence[tuple[str, int]]) -> Iterator[tuple[str, Row]]:
    """Yield the versions of resources that have several, given by their xids and how many those are."""
    few: list[str] = []
    count = 0
    for xid, size in several:
        if size > _VERSIONS:
            found = rows.in_batches(db, _VERSIONS_OF_ONE, rows.range_of(rows.VERSION, f"{xid}/versions"))
            yield from ((xid, row) for row in found)
            continue
        few.append(xid)
        count += size
        if count > _VERSIONS or len(few) == _FEW_RANGES:
            yield from _versions_of(db, few)
            few, count = [], 0
    if few:
        yield from _versions_of(db, few)


def _versions_of(db: Connection, xids: Sequence[str]) -> Iterator[tuple[str, Row]]:
    ranges = [rows.range_of(rows.VERSION, f"{xid}/versions") for xid in xids]
    select = _VERSIONS_OF_SOME.format(" OR ".join("(key > ? AND key < ?)" for _ in ranges))
    owners = {low: xid for (low, _), xid in zip(ranges, xids, strict=True)}
    for row in db.execute(select, tuple(bound for bounds in ranges for bound in bounds)):
        yield owners[f"{row[0].rpartition('/')[0]}/"], row


class _Contents:
    """The documents of versions, read ahead of those that are shown next, in the order in which they are shown."""

    def __init__(self, db: Connection, kind: ResourceType, versions: Iterable[list[Row]]) -> None:
        self._db = db
        self._kind = kind
        self._waiting = [(row[0], row[4]) for held in versions for row in held if row[4] is not None]
        self._waiting.reverse()
        self._read: dict[str, bytes] = {}

    def shown(self, version: Row) -> str:
        """Return a version as JSON text."""
        key, _, form, doc, length = version
        if length is None:
            return str(doc)
        content = self._taken(key)
        attrs = orjson.loads(doc)
        if document_names(self._kind)[1] in attrs:
            return str(doc)
        member = render_document(self._kind, attrs.get("contenttype"), form, content, False)
        return f"{{{member}}}" if doc == "{}" else f"{doc[:-1]},{member}}}"

    def _taken(self, key: str) -> bytes:
        while key not in self._read:
            chunk: list[str] = []
            size = 0
            while self._waiting and size < _BYTES:
                one, length = self._waiting.pop()
                chunk.append(one)
                size += length
            select = _CONTENTS.format(", ".join("?" * len(chunk)))
            self._read |= {one: bytes(content) for one, content in self._db.execute(select, tuple(chunk))}
        return self._read.pop(key)
