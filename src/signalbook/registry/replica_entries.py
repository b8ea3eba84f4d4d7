"""Groups and resources as they travel between catalogs: all that a user controls, nothing that is a server's own.

Rule 1: an entry is one group without its resources, or one resource with all its versions, its meta and the bytes of
its documents; epochs, addresses and counts stay behind, times of versions go along. With it goes a page of the log of
its snapshots.
Rule 2: an entry names the catalog that has authority over it, what it is called there and how new it is: what came from
elsewhere is passed on under its first owner's name.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.registry import incoming, inlines, rows
from signalbook.registry.flags import Flags
from signalbook.registry.inlines import InlineSet
from signalbook.registry.reads import Limits, make_view
from signalbook.registry.replica_logs import LogPage, page_of
from signalbook.registry.replica_plain import plain_group, plain_resource
from signalbook.registry.requests import Requests
from signalbook.registry.store import Connection, Store
from signalbook.registry.targets import Target, find_target
from signalbook.spec import versions

__all__ = [
    "Bodies",
    "Entry",
    "Origin",
    "base_of",
    "catalog_id",
    "entries_behind",
    "entries_of",
    "keep_base",
    "own_origin",
]

Json = dict[str, Any]

_WHOLE = Flags(inline=("*",), binary=True, raw="inline=*&binary")
_SKEW = 2000  # milliseconds by which the clocks of one catalog's servers may differ
_UNBOUND = Limits(size=1 << 62)  # an entity is what somebody has written, and that was bounded


@dataclass(frozen=True, slots=True)
class Origin:
    """Who has authority over an entity, what it is called there, and how new it is.

    An empty `authority` is the catalog itself. `revision` is the owner's change number and `at` its clock when it was
    read there, in milliseconds: numbers order one history, the clock tells two histories of one owner apart.
    """

    catalog: str
    authority: str
    revision: int
    at: int = 0
    home: str = ""

    def is_older(self, other: Origin, *, is_direct: bool) -> bool:
        """Tell whether this is older than another word of the same owner; `is_direct` is one from the owner itself.

        Where the times are near each other, for clocks may differ, numbers decide; so they do where a clock was set
        back under an owner that is asked itself.
        """
        if not (self.at and other.at) or abs(self.at - other.at) <= _SKEW or (is_direct and self.at < other.at):
            return self.revision < other.revision
        return self.at < other.at

    def may_be(self, home: str) -> bool:
        """Tell whether this may be of the entity that its owner calls so; a copy that came long ago has no name."""
        return not (self.home and home) or self.home.lower() == home.lower()

    def to_dict(self) -> Json:
        """Return the origin as it travels."""
        return {
            "catalog": self.catalog, "authority": self.authority, "revision": self.revision, "at": self.at,
            "home": self.home,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One group or resource at `xid`; without a body it was deleted. `source` is its xid where it was read."""

    xid: str
    origin: Origin
    body: Json | None
    mark: str = ""
    log: LogPage | None = None
    source: str = ""

    def to_dict(self) -> Json:
        """Return the entry as it travels."""
        log = {"log": self.log.to_dict()} if self.log is not None else {}
        return {"xid": self.xid, "origin": self.origin.to_dict(), "body": self.body, "mark": self.mark, **log}

    @classmethod
    def from_dict(cls, value: Any, path: str) -> Entry:
        """Return the entry that came in; `bad_request` where it is none."""
        try:
            origin = value["origin"]
            entry = cls(
                value["xid"],
                Origin(
                    origin["catalog"], origin["authority"], origin["revision"], origin.get("at", 0),
                    origin.get("home", ""),
                ),
                value["body"], value.get("mark", ""), LogPage.from_dict(value["log"]) if value.get("log") else None,
                value.get("source", ""),
            )  # fmt: skip
        except (TypeError, KeyError, AttributeError):
            raise _malformed(path, "it needs xid, origin and body") from None
        except ValueError as error:
            raise _malformed(path, str(error)) from None
        texts = (entry.xid, entry.origin.catalog, entry.origin.authority, entry.origin.home, entry.mark, entry.source)
        if not all(isinstance(text, str) and len(text) <= 2000 for text in texts) or not entry.origin.catalog:
            raise _malformed(path, "its names must be texts of at most 2000 characters")
        if not all(incoming.uinteger(one) and one < 1 << 62 for one in (entry.origin.revision, entry.origin.at)):
            raise _malformed(path, "its revision must be a uinteger")
        if entry.body is not None and not isinstance(entry.body, dict):
            raise _malformed(path, "its body must be an object or null")
        if len(entry.xid.split("/")) not in (3, 5):
            raise _malformed(path, f"'{entry.xid}' is the xid of neither a group nor a resource")
        return entry


def _malformed(path: str, why: str) -> RegistryError:
    return RegistryError("bad_request", path, error_detail=f"an entry is not as it must be: {why}")


def catalog_id(store: Store) -> str:
    """Return the random name that tells this catalog from every other; it is made with the store, or else here."""
    found = store.reader().one("SELECT value FROM settings WHERE name = 'catalogid'")
    if found is not None:
        return str(found[0])

    def job(db: Connection) -> str:
        db.execute(
            "INSERT INTO settings (name, value) VALUES ('catalogid', ?) ON CONFLICT (name) DO NOTHING",
            (secrets.token_hex(12),),
        )
        made = db.one("SELECT value FROM settings WHERE name = 'catalogid'")
        assert made is not None
        return str(made[0])

    return store.write(job)


def keep_base(store: Store, base: str) -> None:
    """Write down the base that an operator gave a catalog's addresses, for who reads the store without its server."""
    if base and base != base_of(store.reader()):
        store.write(
            lambda db: db.execute(
                "INSERT INTO settings (name, value) VALUES ('base', ?)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (base,),
            )
        )


def base_of(db: Connection) -> str:
    """Return the base that the catalog was last given, or an empty text."""
    found = db.one("SELECT value FROM settings WHERE name = 'base'")
    return str(found[0]) if found is not None else ""


def own_origin(db: Connection, catalog: str) -> Origin:
    """Return the origin of what this catalog owns, as new as it is now."""
    found = db.one("SELECT seq FROM changes ORDER BY seq DESC LIMIT 1")
    return Origin(catalog, "", int(found[0]) if found is not None else 0, time.time_ns() // 1_000_000)


# ---- what a source gives


def entries_behind(
    requests: Requests, db: Connection, own: Origin, scope: str, after: str, limit: int, most_bytes: int
) -> tuple[list[Entry], str]:
    """Return the next entries within a scope, groups before resources, and where to go on; empty at the end."""
    found: list[Entry] = []
    size = 0
    last = ""
    bodies = Bodies(requests, db)
    for key, xid in _keys(db, scope, after, limit):
        entry = _entry(bodies, db, own, key, xid)
        found.append(entry)
        size += len(orjson.dumps(entry.to_dict()))
        last = key
        if size > most_bytes:
            return found, last
    return found, (last if len(found) == limit else "")


def _keys(db: Connection, scope: str, after: str, limit: int) -> Iterator[tuple[str, str]]:
    """Return keys and xids of groups and resources within a scope, in order; keys of groups come first."""
    left = limit
    for kind in (rows.GROUP, rows.RESOURCE):
        low, high = _bounds(kind, scope.lower().rstrip("/").split("/")[1:])
        if after < high and left > 0:
            found = db.execute(
                "SELECT key, xid FROM entities WHERE key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?",
                (low, high, after, left),
            )
            left -= len(found)
            yield from found


def _bounds(kind: str, steps: list[str]) -> tuple[str, str]:
    """Return the first key within a scope and the first behind; a resource's scope has its group in it."""
    lone = 2 if kind == rows.GROUP else 4
    key = kind + "".join(f"/{step}" for step in steps[:lone])
    return (key, key + "!") if len(steps) >= lone else (key + "/", key + "0")


def entries_of(requests: Requests, db: Connection, own: Origin, xids: Iterable[str], before: int = 0) -> list[Entry]:
    """Return the entries at these xids, with their logs before a number; one that is not there is told as deleted."""
    found = []
    bodies = Bodies(requests, db)
    for xid in xids:
        key = (rows.GROUP if xid.count("/") == 2 else rows.RESOURCE) + xid.lower()
        found.append(_entry(bodies, db, own, key, xid, before))
    return found


def _entry(bodies: Bodies, db: Connection, own: Origin, key: str, xid: str, before: int = 0) -> Entry:
    known = db.one("SELECT catalog, authority, revision, at, home, gone FROM replicas WHERE key = ?", (key,))
    body = bodies.of(xid)
    is_own = known is None or (known[5] == 1 and body is not None)  # made here, be it after one from elsewhere had gone
    origin = own if is_own or known is None else Origin(*known[:5])
    if not is_own and known is not None and known[5]:
        body = None
    log = page_of(db, key, before) if body is not None and key.startswith(rows.RESOURCE) else None
    return Entry(xid, origin, body, log=log)


# ---- what of an entity travels


class Bodies:
    """What of entities travels, read within one transaction; what only depends on a collection is found once."""

    def __init__(self, requests: Requests, db: Connection) -> None:
        self._requests = requests
        self._db = db
        self._setup = requests.setup(db)
        self._collections: dict[str, tuple[Target, InlineSet] | None] = {}

    def of(self, xid: str) -> Json | None:
        """Return all that travels of the group or resource at an xid; None where there is none."""
        return self._group(xid) if xid.count("/") == 2 else self._resource(xid)

    def _group(self, xid: str) -> Json | None:
        try:
            target = find_target(self._setup.model, xid)
            page = self._requests.page(self._db, self._setup, target, Flags.EMPTY, versions.DEFAULT, "")
        except RegistryError:
            return None
        return plain_group(target.group_type.singular, target.group_type.resources, orjson.loads(page.text))

    def _resource(self, xid: str) -> Json | None:
        path = xid.rpartition("/")[0]
        if path not in self._collections:
            self._collections[path] = self._collection(path)
        found = self._collections[path]
        row = rows.load(self._db, rows.resource_key(xid)) if found is not None else None
        if found is None or row is None or row.xid != xid:
            return None
        if row.xref is not None:
            return {"meta": {"xref": row.xref}}
        target, inline = found
        kind = target.resource_type
        view = make_view(self._db, self._setup, _WHOLE, versions.DEFAULT, "", target, _UNBOUND)
        meta, all_versions = view.meta(kind, row, row), view.versions(kind, row, row, inline, None)
        return plain_resource(
            kind.singular, {"meta": orjson.loads(meta), "versions": orjson.loads(all_versions)}
        )  # fmt: skip

    def _collection(self, path: str) -> tuple[Target, InlineSet] | None:
        """Return a collection, and what is shown of each version in it; None where the model has none such."""
        try:
            target = find_target(self._setup.model, path)
        except RegistryError:
            return None
        if target.kind != "resources":
            return None
        whole = inlines.parse(_WHOLE.inline, inlines.resource_shape(target.resource_type), path)
        return target, whole.child("versions") or InlineSet.NOTHING
