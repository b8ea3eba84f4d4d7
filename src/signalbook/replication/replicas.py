"""Copies of other catalogs' entities: written as their owner has them, read-only here, and known as copies.

Rule 1: authority decides. What this catalog owns, and what another owner brought, is never overwritten: that is a
conflict where it differs, and is reported, or the copy is kept beside it (`kept_xid`). So is another entity of the
same owner under a name that is taken. What is older than what is here is passed over, unless the owner itself says that
its history went back.
Rule 2: entities, what is known of them, and how far a replication has come are written in one transaction. So it may be
interrupted anywhere: whatever is asked for again is found done.
Rule 3: a resource that came from elsewhere is `readonly`. A group has no such attribute: one that was changed here
keeps its change, and the conflict is reported.
Rule 4: what was deleted leaves a row behind, so that an older copy does not bring it back. A deleted group that still
holds resources lingers until the last of them is deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.jsontext import Json
from signalbook.model.xids import kept_id, kept_of
from signalbook.registry import rows
from signalbook.registry.requests import Requests, now
from signalbook.registry.store import Connection
from signalbook.registry.urls import RequestTarget, find_target
from signalbook.registry.write.versions import Ask
from signalbook.replication import entries as alike
from signalbook.replication.entries import (
    Bodies,
    EntryOrigin,
    ReplicaEntry,
    adapted,
    digest,
    put_page,
    timeless,
    with_authority,
)
from signalbook.replication.links import (
    GONE,
    HERE,
    LINGERING,
    ORIGIN,
    Known,
    Link,
    ReplicaResult,
    beside,
    key_of,
    known_keys,
    known_of,
    meet,
    remember,
    set_readonly,
    source_of,
    taken,
)
from signalbook.spec.builtin import RECORDED

__all__ = ["apply_entries", "beside", "kept_xid", "point_log", "pointed", "referring", "sweep"]

# Copies that are kept beside another entity of the same name: their names, and the references to them.
#
# Rule 1: a copy whose name is taken here is kept, where the replication says so, under its id with `~` and eight hex
# digits of its authority's hash. It is found again by its owner and its name there, so it is never kept twice.
# Rule 2: what its owner says of it by reference (a base, an alias, a schema) means the kept copy, not who has the name.


_REFERENCES = frozenset({"basemessage", "dataschemauri", "dataschemaxid", "xref"})
_RESOURCE = re.compile(r"(/[^/]+/[^/]+/[^/]+/)([^/#?$]+)(.*)", re.DOTALL)


def kept_xid(entry: ReplicaEntry) -> str:
    """Return the name under which an entry is kept where its own is taken."""
    body = entry.body or {}
    stated = [one.get("authority") for one in (body.get("versions") or {}).values() if isinstance(one, dict)]
    authority = next((str(one) for one in reversed(stated) if one), entry.origin.authority)
    collection, _, id_ = entry.xid.rpartition("/")
    return f"{collection}/{kept_id(id_, authority)}"


def pointed(db: Connection, catalog: str, body: Any) -> Any:
    """Return what an owner says with its references to what is kept beside another's name turned to that."""
    if isinstance(body, dict):
        return {
            name: _pointed(db, catalog, value)
            if name in _REFERENCES and isinstance(value, str)
            else pointed(db, catalog, value)
            if name in ("meta", "versions") or (isinstance(value, dict) and "createdat" in value)
            else value
            for name, value in body.items()
        }
    return body


def _pointed(db: Connection, catalog: str, reference: str) -> str:
    found = _RESOURCE.fullmatch(reference)
    if found is None:
        return reference
    collection, id_, rest = found.groups()
    for name in (id_, id_.partition(":")[0]):  # what follows a colon may be the id's, or a message of a schema
        other = beside(db, catalog, collection + name)
        if other is not None:
            return other + id_[len(name) :] + rest
    return reference


def point_log(db: Connection, catalog: str, xid: str) -> None:
    """Do the same in the log of a copy."""
    key = key_of(xid)
    for number, doc in db.execute("SELECT number, doc FROM snapshots WHERE key = ? AND doc <> ''", (key,)):
        said = orjson.loads(doc)
        turned = pointed(db, catalog, said)
        if turned != said:
            text = orjson.dumps(turned).decode()
            db.execute("UPDATE snapshots SET doc = ? WHERE key = ? AND number = ?", (text, key, number))


def referring(db: Connection, catalog: str, xids: set[str]) -> Iterator[str]:
    """Yield the copies of an owner that may refer to one of these names."""
    found = db.execute(
        "SELECT r.xid, e.xref, v.doc FROM replicas r JOIN entities e ON e.key = r.key"
        " LEFT JOIN entities v ON v.key = e.link WHERE r.catalog = ? AND r.gone = 0 AND r.key >= ? AND r.key < ?",
        (catalog, f"{rows.RESOURCE}/", f"{rows.RESOURCE}0"),
    )
    for xid, xref, doc in found:
        if xref in xids or any(one in (doc or "") for one in xids):
            yield str(xid)


def apply_entries(
    requests: Requests, db: Connection, own: str, link: Link, entries: list[ReplicaEntry], *, anew: bool = False,
    keep_both: bool = False, authorities: frozenset[str] = frozenset(),
) -> list[ReplicaResult]:  # fmt: skip
    """Write entries that came over a link; each is written wholly or not at all. `own` is this catalog's id.

    With `anew` the history of the link's source is another than before: what it owns is taken as it says now. With
    `keep_both` a resource whose name is another owner's is kept beside it. `authorities` are this catalog's own: what
    comes back with one of them, by a catalog that knows no owners, is not a conflict.
    """
    applying = _Applying(requests, db, own, link, anew=anew, keep_both=keep_both, authorities=authorities)
    entries = [applying.placed(entry) for entry in entries]
    groups = [entry for entry in entries if entry.body is not None and entry.xid.count("/") == 2]
    resources = [entry for entry in entries if entry.body is not None and entry.xid.count("/") != 2]
    deleted = [entry for entry in entries if entry.body is None]
    deleted.sort(key=lambda entry: -entry.xid.count("/"))
    # groups before their resources, and gone after them
    results = [applying.result(entry) for entry in groups]
    new, others = applying.sorted_out(resources)
    for (collection, _), together in new.items():
        results += applying.created(collection, together)
    results += [applying.result(entry) for entry in (*others, *deleted)]
    applying.point()
    applying.record_changes()
    return results


def sweep(requests: Requests, db: Connection, own: str, link: Link, limit: int) -> list[ReplicaResult]:
    """Delete up to `limit` copies that the latest comparison of a link did not meet, resources first."""
    applying = _Applying(requests, db, own, link, anew=True)
    unmet = db.execute(
        f"SELECT xid, {ORIGIN} FROM replicas WHERE link = ? AND pass < ? AND gone = 0 ORDER BY key DESC LIMIT ?",
        (link.name, link.number, limit),
    )
    # the source did not have them when it was read just now
    read = unmet and db.one(
        "SELECT revision, at FROM replicas WHERE link = ? AND pass = ? AND catalog = ? ORDER BY at DESC LIMIT 1",
        (link.name, link.number, applying.source),
    )
    results = []
    for xid, *known in unmet:
        origin = EntryOrigin(*known)
        if read and origin.catalog == applying.source:
            origin = replace(origin, revision=read[0], at=read[1])
        results.append(applying.result(ReplicaEntry(xid, origin, None)))
    return results


class _Applying:
    """One batch being written; `source` is the catalog that it came from."""

    def __init__(
        self, requests: Requests, db: Connection, own: str, link: Link, *, anew: bool, keep_both: bool = False,
        authorities: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self._requests = requests
        self._db = db
        self._own = own
        self._link = link
        self._anew = anew
        self._keep_both = keep_both
        self._authorities = authorities
        self._kept: set[tuple[str, str]] = set()  # owners, and the names beside which a copy was kept just now
        self._correlation = requests.correlation()
        self._bodies = Bodies(requests, db)
        self._events: list[list[Any]] = []
        self.source = source_of(link.name)

    def result(self, entry: ReplicaEntry) -> ReplicaResult:
        """Write one entry, unless a rule forbids it."""
        if entry.origin.catalog == self._own:
            return ReplicaResult(entry.xid, "ours", source=entry.source)
        events = len(self._events)
        self._db.execute("SAVEPOINT entry")
        try:
            known = known_of(self._db, entry.xid)
            if entry.body is None and known is not None and known.origin.is_of(entry.origin.catalog):
                newer = replace(known.origin, revision=entry.origin.revision, at=entry.origin.at)
                entry = replace(entry, origin=newer) if known.origin.catalog != entry.origin.catalog else entry
            elif known is not None and self._was_named_by_its_place(entry, known):
                known = replace(known, origin=replace(known.origin, catalog=entry.origin.catalog, home=""))
            result = self._forbidden(entry, known)
            if result is None:
                result = self._deleted(entry, known) if entry.body is None else self._written(entry, entry.body, known)
        except RegistryError as error:
            self._db.execute("ROLLBACK TO SAVEPOINT entry")
            del self._events[events:]
            result = ReplicaResult(entry.xid, "refused", str(error))
        self._db.execute("RELEASE SAVEPOINT entry")
        if result.outcome == "conflict" and self._may_keep(entry):
            self._kept.add((entry.origin.catalog, entry.xid))
            return self.result(replace(entry, xid=kept_xid(entry), source=entry.source or entry.xid))
        if result.outcome in ("conflict", "refused", "stale"):
            meet(self._db, self._link, [entry.xid])  # the source has it, so what is here of it is not swept
        return replace(result, source=entry.source)

    def _was_named_by_its_place(self, entry: ReplicaEntry, known: Known) -> bool:
        """Whether a copy was taken for one of what the source itself calls so, when its owner's name was not asked."""
        is_by = known.origin.catalog == self.source and entry.origin.catalog != self.source
        return is_by and entry.origin.is_of(self.source) and known.origin.home.lower() == entry.source.lower()

    def placed(self, entry: ReplicaEntry) -> ReplicaEntry:
        """Return an entry under the name that its copy is kept under here."""
        other = beside(self._db, entry.origin.catalog, entry.xid)
        return entry if other is None else replace(entry, xid=other, source=entry.source or entry.xid)

    def _may_keep(self, entry: ReplicaEntry) -> bool:
        """Whether a conflict is one of two owners, so that both can be kept."""
        known = known_of(self._db, entry.xid)
        is_other = known is None or known.gone == GONE or known.origin.catalog != entry.origin.catalog
        is_kept = kept_of(entry.xid.rpartition("/")[2]) == entry.origin.home.rpartition("/")[2]
        return self._keep_both and is_other and not is_kept and entry.xid.count("/") == 4

    def point(self) -> None:
        """Turn what owners say by reference to what was kept just now."""
        for catalog in {catalog for catalog, _ in self._kept}:
            names = {xid for owner, xid in self._kept if owner == catalog}
            for xid in list(referring(self._db, catalog, names)):
                here = self._bodies.of(xid)
                body = pointed(self._db, catalog, here)
                if here is not None and here != body:
                    self._write_resource(
                        find_target(self._requests.setup(self._db).model, xid), body, here, has_log=True
                    )
                    self._lock(xid)
                point_log(self._db, catalog, xid)

    def record_changes(self) -> None:
        """Record what changed in the logs; only those of message groups are shown, so no others are recorded."""
        if any(event[1].startswith("/messagegroups/") for event in self._events):
            self._db.execute(
                "INSERT INTO changes (at, correlation, events) VALUES (?, ?, ?)",
                (now(), self._correlation, orjson.dumps(self._events).decode()),
            )

    def _forbidden(self, entry: ReplicaEntry, known: Known | None) -> ReplicaResult | None:
        """What a rule says of an entry that must not be written, or None."""
        new, old = entry.origin, known.origin if known is not None else None
        if known is not None and old is not None and known.gone != GONE:
            if old.catalog != new.catalog:
                return self._of_another(entry, known)
            if not old.may_be(new.home):
                return taken(entry, old.home)
        if old is not None and old.catalog == new.catalog:
            is_direct = new.catalog == self.source
            if not (is_direct and self._anew) and new.is_older(old, is_direct=is_direct):
                return ReplicaResult(entry.xid, "stale")
        if entry.xid.count("/") == 4:
            group = known_of(self._db, "/".join(entry.xid.split("/")[:3]))
            home = "/".join(entry.origin.home.split("/")[:3])
            if group is not None and group.gone == HERE and group.origin.catalog == entry.origin.catalog:
                return None if group.origin.may_be(home) else taken(entry, group.origin.home)
        return None

    def _of_another(self, entry: ReplicaEntry, known: Known) -> ReplicaResult:
        """The outcome of an entry whose name another owner's copy has."""
        if entry.body is None:
            return ReplicaResult(entry.xid, "absent")
        if alike.is_alike(self._bodies.of(entry.xid), self._adapted(entry)):
            return ReplicaResult(entry.xid, "same")
        return ReplicaResult(
            entry.xid, "conflict", f"it is a copy from {known.origin.authority or known.origin.catalog}"
        )

    def _adapted(self, entry: ReplicaEntry) -> Json:
        """An entry's body as it is written here."""
        if entry.xid.count("/") == 2:
            return entry.body or {}
        target = find_target(self._requests.setup(self._db).model, entry.xid)
        body = pointed(self._db, entry.origin.catalog, entry.body or {})
        return with_authority(target.resource_type, body, entry.origin.authority)

    # ---- making many at once

    def sorted_out(
        self, entries: list[ReplicaEntry]
    ) -> tuple[dict[tuple[str, bool], list[ReplicaEntry]], list[ReplicaEntry]]:
        """Sort out the resources that nothing is known of, by their collection and whether they have a log."""
        known = known_keys(self._db, {key_of(entry.xid) for entry in entries})
        new: dict[tuple[str, bool], list[ReplicaEntry]] = {}
        others = []
        for entry in entries:
            if key_of(entry.xid) in known or entry.origin.catalog == self._own or self._forbidden(entry, None):
                others.append(entry)
            else:
                known.add(key_of(entry.xid))
                new.setdefault((entry.xid.rpartition("/")[0], entry.log is not None), []).append(entry)
        return new, others

    def created(self, collection: str, entries: list[ReplicaEntry]) -> list[ReplicaResult]:
        """Make new resources of one collection by one write; where that is refused, find out by halves for which."""
        if len(entries) == 1:
            return [self.result(entries[0])]
        events = len(self._events)
        self._db.execute("SAVEPOINT entry")
        try:
            wants = self._create(collection, entries)
        except RegistryError:
            self._db.execute("ROLLBACK TO SAVEPOINT entry")
            self._db.execute("RELEASE SAVEPOINT entry")
            del self._events[events:]
            half = len(entries) // 2
            return [*self.created(collection, entries[:half]), *self.created(collection, entries[half:])]
        self._db.execute("RELEASE SAVEPOINT entry")
        return [
            ReplicaResult(entry.xid, "written", wants=more, source=entry.source)
            for entry, more in zip(entries, wants, strict=True)
        ]

    def _create(self, collection: str, entries: list[ReplicaEntry]) -> list[int]:
        target = find_target(self._requests.setup(self._db).model, collection)
        is_new = rows.load(self._db, key_of(target.group_xid)) is None
        kind = target.resource_type
        bodies = {
            entry.xid.rpartition("/")[2]: with_authority(
                kind, pointed(self._db, entry.origin.catalog, entry.body or {}), entry.origin.authority
            )
            for entry in entries
        }
        self._write("POST", collection, bodies, has_log=entries[0].log is not None)
        set_readonly(self._db, rows.load_members(self._db, rows.RESOURCE, collection, bodies), readonly=True)
        if is_new:
            self._adopt(target.group_xid, entries[0].origin)
        remember(self._db, self._link, entries)
        return [self._put_log(target, entry) for entry in entries]

    # ---- deleting

    def _deleted(self, entry: ReplicaEntry, known: Known | None) -> ReplicaResult:
        if known is None or known.gone == GONE:
            return ReplicaResult(entry.xid, "absent")
        if entry.xid.count("/") == 4:
            if rows.load(self._db, key_of(entry.xid)) is not None:
                self._lock(entry.xid, readonly=False)
                self._write("DELETE", entry.xid)
            self._remember(entry, gone=GONE)
            self._delete_lingering("/".join(entry.xid.split("/")[:3]))
            return ReplicaResult(entry.xid, "deleted")
        self._remember(entry, known.digest, gone=LINGERING)
        if self._delete_lingering(entry.xid):
            return ReplicaResult(entry.xid, "deleted")
        return ReplicaResult(entry.xid, "same", "the group stays while it holds resources")

    def _delete_lingering(self, xid: str) -> bool:
        """Delete a group that lingers and is empty, and return whether it is gone."""
        known = known_of(self._db, xid)
        if known is None or known.gone != LINGERING:
            return False
        here = rows.load(self._db, key_of(xid))
        if here is not None and any(orjson.loads(here.counts).values()):
            return False
        if here is not None:
            self._write("DELETE", xid)
        self._db.execute("UPDATE replicas SET gone = ? WHERE key = ?", (GONE, key_of(xid)))
        return True

    # ---- writing

    def _written(self, entry: ReplicaEntry, body: Json, known: Known | None) -> ReplicaResult:
        target = find_target(self._requests.setup(self._db).model, entry.xid)
        is_group = target.kind == "group"
        given, body = body, self._adapted(entry)
        here = self._bodies.of(entry.xid)
        if here is not None and (known is None or known.gone == GONE):
            if alike.is_alike(here, given) or alike.is_alike(here, body):
                return ReplicaResult(entry.xid, "same")
            if self._authorities.intersection(str(one.get("authority")) for one in body.get("versions", {}).values()):
                return ReplicaResult(entry.xid, "ours")
            return ReplicaResult(entry.xid, "conflict", "there is one of this catalog's own")
        wanted = digest(body)
        events = len(self._events)
        is_same = here is not None and digest(here) == wanted
        if not is_same and is_group:
            if here is not None and known is not None and digest(here) != known.digest:
                return ReplicaResult(entry.xid, "conflict", "the group was changed here")
            self._write("PUT", entry.xid, body)
        elif not is_same:
            is_new = rows.load(self._db, key_of(target.group_xid)) is None
            self._write_resource(target, body, here, has_log=entry.log is not None)
            self._lock(entry.xid)
            if is_new:
                self._adopt(target.group_xid, entry.origin)
        wants = 0 if is_group else self._put_log(target, entry)
        self._remember(entry, wanted if is_group else "")
        is_same = is_same and events == len(self._events)
        return ReplicaResult(entry.xid, "same" if is_same else "written", wants=wants)

    def _put_log(self, target: RequestTarget, entry: ReplicaEntry) -> int:
        """Give a resource its owner's log, as far as it came; return before which number more of it is needed."""
        kind = target.resource_type
        if entry.log is None or kind.modelcompatiblewith not in RECORDED:
            return 0
        origin = entry.origin

        def as_here(said: Json) -> Json:
            return adapted(kind, pointed(self._db, origin.catalog, said), origin.authority, entry.xid)

        events, wants = put_page(self._db, key_of(entry.xid), entry.xid, entry.log, as_here, now())
        self._events += events
        return wants

    def _adopt(self, xid: str, origin: EntryOrigin) -> None:
        """Make a group that was made for a resource a copy like it; its own entry may come later."""
        known = known_of(self._db, xid)
        same = known is not None and known.origin.catalog == origin.catalog
        revision, at = (known.origin.revision, known.origin.at) if known is not None and same else (0, 0)
        home = "/".join(origin.home.split("/")[:3])
        entry = ReplicaEntry(xid, EntryOrigin(origin.catalog, origin.authority, revision, at, home), None)
        self._remember(entry, digest(self._bodies.of(xid) or {}))

    def _write_resource(self, target: RequestTarget, body: Json, here: Json | None, *, has_log: bool) -> None:
        """Make a resource what its owner has, with as few changes of versions as that takes."""
        xid = target.xid
        if here is not None:
            self._lock(xid, readonly=False)
        before, after = (here or {}).get("versions") or {}, body.get("versions") or {}
        if here is not None and before.keys().isdisjoint(after.keys()):
            self._write("DELETE", xid, has_log=has_log)
            here = None
        if here is None:
            self._write("PUT", f"{xid}$details", body, has_log=has_log)
            return
        extra: Json = {vid: {} for vid in before.keys() - after.keys()}
        if extra:
            self._write("DELETE", f"{xid}/versions", extra, has_log=has_log)
        changed = {
            vid: one for vid, one in after.items() if vid not in before or timeless(before[vid]) != timeless(one)
        }
        if changed:
            self._write("POST", f"{xid}/versions", changed, has_log=has_log)
        if here.get("meta") != body.get("meta"):
            self._write("PUT", f"{xid}/meta", body.get("meta") or {}, has_log=has_log)

    def _write(self, method: str, path: str, body: Json | None = None, *, has_log: bool = False) -> None:
        requests, recorded = self._requests, not has_log
        begun = requests.begin_write(self._db, method, path, "", "", self._correlation, recorded=recorded)
        requests.finish_write(begun, body, Ask(from_meta=begun.context.target.kind == "meta"))

    # ---- what is known

    def _remember(self, entry: ReplicaEntry, digest: str = "", *, gone: int = HERE) -> None:
        remember(self._db, self._link, [entry], digest, gone)

    def _lock(self, xid: str, *, readonly: bool = True) -> None:
        row = rows.load(self._db, key_of(xid))
        set_readonly(self._db, [row] if row is not None else [], readonly=readonly)
