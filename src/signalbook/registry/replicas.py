"""Copies of other catalogs' entities: written as their owner has them, read-only here, and known as copies.

Rule 1: authority decides. What this catalog owns, and what another owner brought, is never overwritten: that is a
conflict, and is reported. What is older than what is here is passed over.
Rule 2: entities, what is known of them, and how far a replication has come are written in one transaction. So it may be
interrupted anywhere: whatever is asked for again is found done.
Rule 3: a resource that came from elsewhere is `readonly`. A group has no such attribute: one that was changed here
keeps its change, and the conflict is reported.
Rule 4: what was deleted leaves a row behind, so that an older copy does not bring it back. A deleted group that still
holds resources lingers until the last of them is deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from signalbook.errors import RegistryError
from signalbook.registry import rows
from signalbook.registry.flags import Flags
from signalbook.registry.replica_entries import Entry, Origin, shown
from signalbook.registry.requests import Requests
from signalbook.registry.resources import Ask
from signalbook.registry.store import Connection
from signalbook.registry.targets import Target, find_target

__all__ = ["Link", "Outcome", "Result", "apply_entries", "link_of", "marks_of", "meet", "save_link", "sweep"]

Json = dict[str, Any]
HERE, GONE, LINGERING = 0, 1, 2  # the values of the column `gone`
Outcome = Literal["written", "deleted", "same", "ours", "stale", "absent", "conflict", "refused"]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one entry, and why where it was not written."""

    xid: str
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """How far one replication has come: its cursor at the source, and the number of its latest comparison."""

    name: str
    cursor: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a copy."""

    origin: Origin
    digest: str
    gone: int


def link_of(db: Connection, name: str) -> Link:
    """Return how far a replication has come."""
    found = db.one("SELECT cursor, pass FROM replica_links WHERE link = ?", (name,))
    return Link(name, *found) if found is not None else Link(name)


def save_link(db: Connection, link: Link) -> None:
    """Write down how far a replication has come."""
    db.execute(
        "INSERT INTO replica_links (link, cursor, pass) VALUES (?, ?, ?)"
        " ON CONFLICT (link) DO UPDATE SET cursor = excluded.cursor, pass = excluded.pass",
        (link.name, link.cursor, link.number),
    )


def marks_of(db: Connection, xids: Iterable[str]) -> dict[str, str]:
    """Return the marks that the source showed when these entities were read there."""
    found = {}
    for xid in xids:
        row = db.one("SELECT mark FROM replicas WHERE key = ? AND gone = 0", (_key(xid),))
        if row is not None:
            found[xid] = str(row[0])
    return found


def meet(db: Connection, link: Link, xids: Iterable[str]) -> None:
    """Note that a comparison met copies that are as they should be."""
    db.executemany(
        "UPDATE replicas SET pass = ? WHERE key = ? AND link = ? AND pass < ?",
        [(link.number, _key(xid), link.name, link.number) for xid in xids],
    )


def apply_entries(
    requests: Requests, db: Connection, own: str, link: str, number: int, entries: list[Entry]
) -> list[Result]:
    """Write entries that came over a link; each is written wholly or not at all. `own` is this catalog's id."""
    applying = _Applying(requests, db, own, link, number, requests.correlation())
    written = [entry for entry in entries if entry.body is not None]
    deleted = [entry for entry in entries if entry.body is None]
    # groups before their resources, and gone after them
    written.sort(key=lambda entry: entry.xid.count("/"))
    deleted.sort(key=lambda entry: -entry.xid.count("/"))
    return [applying.result(entry) for entry in (*written, *deleted)]


def sweep(requests: Requests, db: Connection, own: str, link: Link, limit: int) -> list[Result]:
    """Delete up to `limit` copies that the latest comparison of a link did not meet, resources first."""
    applying = _Applying(requests, db, own, link.name, link.number, requests.correlation())
    doomed = db.execute(
        "SELECT xid, catalog, authority, revision FROM replicas WHERE link = ? AND pass < ? AND gone = 0"
        " ORDER BY key DESC LIMIT ?",
        (link.name, link.number, limit),
    )
    return [applying.result(Entry(xid, Origin(*origin), None)) for xid, *origin in doomed]


def _key(xid: str) -> str:
    return (rows.GROUP if xid.count("/") == 2 else rows.RESOURCE) + xid.lower()


class _Applying:
    """One batch being written."""

    def __init__(
        self, requests: Requests, db: Connection, own: str, link: str, number: int, correlation: str
    ) -> None:  # fmt: skip
        self._requests = requests
        self._db = db
        self._own = own
        self._link = link
        self._number = number
        self._correlation = correlation

    def result(self, entry: Entry) -> Result:
        """Write one entry, unless a rule forbids it."""
        known = self._known(entry.xid)
        if entry.origin.catalog == self._own:
            return Result(entry.xid, "ours")
        if known is not None and known.origin.catalog != entry.origin.catalog and known.gone != GONE:
            return Result(entry.xid, "conflict", f"it is a copy from {known.origin.authority or known.origin.catalog}")
        mine = known is not None and known.origin.catalog == entry.origin.catalog
        if mine and known is not None and entry.origin.revision < known.origin.revision:
            meet(self._db, Link(self._link, "", self._number), [entry.xid])
            return Result(entry.xid, "stale")
        self._db.execute("SAVEPOINT entry")
        try:
            result = self._deleted(entry, known) if entry.body is None else self._written(entry, entry.body, known)
        except RegistryError as error:
            self._db.execute("ROLLBACK TO SAVEPOINT entry")
            result = Result(entry.xid, "refused", str(error))
        self._db.execute("RELEASE SAVEPOINT entry")
        return result

    # ---- deleting

    def _deleted(self, entry: Entry, known: _Known | None) -> Result:
        if known is None or known.gone == GONE:
            return Result(entry.xid, "absent")
        if entry.xid.count("/") == 4:
            if rows.load(self._db, _key(entry.xid)) is not None:
                self._unlock(entry.xid)
                self._write("DELETE", entry.xid)
            self._remember(entry, gone=GONE)
            self._leave("/".join(entry.xid.split("/")[:3]))
            return Result(entry.xid, "deleted")
        self._remember(entry, known.digest, gone=LINGERING)
        if self._leave(entry.xid):
            return Result(entry.xid, "deleted")
        return Result(entry.xid, "same", "the group stays while it holds resources")

    def _leave(self, xid: str) -> bool:
        """Delete a group that lingers and is empty, and tell whether it has gone."""
        known = self._known(xid)
        if known is None or known.gone != LINGERING:
            return False
        here = rows.load(self._db, _key(xid))
        if here is not None and any(orjson.loads(here.counts).values()):
            return False
        if here is not None:
            self._write("DELETE", xid)
        self._db.execute("UPDATE replicas SET gone = ? WHERE key = ?", (GONE, _key(xid)))
        return True

    # ---- writing

    def _written(self, entry: Entry, body: Json, known: _Known | None) -> Result:
        target = find_target(self._requests.setup(self._db).model, entry.xid)
        is_group = target.kind == "group"
        if not is_group:
            body = _with_authority(target, body, entry.origin)
        here = shown(self._requests, self._db, entry.xid)
        wanted = _digest(body)
        if here is not None and _digest(here) == wanted:
            if known is not None and known.gone != GONE:
                self._remember(entry, wanted if is_group else "")
            return Result(entry.xid, "same")
        if here is not None and (known is None or known.gone == GONE):
            return Result(entry.xid, "conflict", "there is one of this catalog's own")
        if is_group:
            if here is not None and known is not None and _digest(here) != known.digest:
                return Result(entry.xid, "conflict", "the group was changed here")
            self._write("PUT", entry.xid, body)
        else:
            is_new = rows.load(self._db, _key(target.group_xid)) is None
            self._write_resource(target, body, here)
            self._lock(entry.xid)
            if is_new:
                self._adopt(target.group_xid, entry.origin)
        self._remember(entry, wanted if is_group else "")
        return Result(entry.xid, "written")

    def _adopt(self, xid: str, origin: Origin) -> None:
        """Make a group that was made for a resource a copy like it; its own entry may come later."""
        known = self._known(xid)
        revision = known.origin.revision if known is not None and known.origin.catalog == origin.catalog else 0
        entry = Entry(xid, Origin(origin.catalog, origin.authority, revision), None)
        self._remember(entry, _digest(shown(self._requests, self._db, xid) or {}))

    def _write_resource(self, target: Target, body: Json, here: Json | None) -> None:
        """Make a resource what its owner has, with as few changes of versions as that takes."""
        xid = target.xid
        if here is not None:
            self._unlock(xid)
        before, after = (here or {}).get("versions") or {}, body.get("versions") or {}
        if here is not None and before.keys().isdisjoint(after.keys()):
            self._write("DELETE", xid)
            here = None
        if here is None:
            self._write("PUT", f"{xid}$details", body)
            return
        extra: Json = {vid: {} for vid in before.keys() - after.keys()}
        if extra:
            self._write("DELETE", f"{xid}/versions", extra)
        changed = {
            vid: one for vid, one in after.items() if vid not in before or _timeless(before[vid]) != _timeless(one)
        }
        if changed:
            self._write("POST", f"{xid}/versions", changed)
        if here.get("meta") != body.get("meta"):
            self._write("PUT", f"{xid}/meta", body.get("meta") or {})

    def _write(self, method: str, path: str, body: Json | None = None) -> None:
        self._requests.write_in(
            self._db, method, path, lambda setup: Flags.EMPTY, "",
            lambda setup, target, flags: (body, Ask(from_meta=target.kind == "meta")), self._correlation,
        )  # fmt: skip

    # ---- what is known

    def _known(self, xid: str) -> _Known | None:
        found = self._db.one(
            "SELECT catalog, authority, revision, digest, gone FROM replicas WHERE key = ?", (_key(xid),)
        )
        return None if found is None else _Known(Origin(*found[:3]), found[3], found[4])

    def _remember(self, entry: Entry, digest: str = "", *, gone: int = HERE) -> None:
        origin = entry.origin
        self._db.execute(
            "INSERT INTO replicas (key, xid, catalog, authority, revision, link, pass, mark, digest, gone)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET xid = excluded.xid,"
            " catalog = excluded.catalog, authority = excluded.authority, revision = excluded.revision,"
            " link = excluded.link, pass = excluded.pass, mark = excluded.mark, digest = excluded.digest,"
            " gone = excluded.gone",
            (
                _key(entry.xid), entry.xid, origin.catalog, origin.authority, origin.revision, self._link,
                self._number, entry.mark, digest, gone,
            ),
        )  # fmt: skip

    def _lock(self, xid: str) -> None:
        self._set_readonly(xid, readonly=True)

    def _unlock(self, xid: str) -> None:
        self._set_readonly(xid, readonly=False)

    def _set_readonly(self, xid: str, *, readonly: bool) -> None:
        """Set what only the server may: META-3."""
        row = rows.load(self._db, _key(xid))
        if row is None or row.xref is not None:
            return
        doc = {name: value for name, value in orjson.loads(row.doc).items() if name != "readonly"}
        if readonly:
            doc["readonly"] = True
        self._db.execute("UPDATE entities SET doc = ? WHERE key = ?", (orjson.dumps(doc).decode(), row.key))


def _with_authority(target: Target, body: Json, origin: Origin) -> Json:
    """Return a resource whose versions name their authority, where its type has that attribute (seed 004, 2.2.4)."""
    if "authority" not in target.resource_type.attributes or "versions" not in body or not origin.authority:
        return body
    versions = {
        vid: version if version.get("authority") else {**version, "authority": origin.authority}
        for vid, version in body["versions"].items()
        if isinstance(version, dict)
    }
    return {**body, "versions": versions}


def _timeless(version: Any) -> Any:
    """Return a version without the time that a write may move."""
    return {name: value for name, value in version.items() if name != "modifiedat"}


def _parts(body: Json) -> Iterator[tuple[str, Any]]:
    for name, value in body.items():
        if name == "versions" and isinstance(value, dict):
            yield name, {vid: _timeless(one) for vid, one in value.items() if isinstance(one, dict)}
        else:
            yield name, value


def _digest(body: Json) -> str:
    """Return a name for what an entity is, whatever the order of its members."""
    text = orjson.dumps(dict(_parts(body)), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()
