"""Groups and resources as they travel between catalogs: all that a user controls, nothing that is a server's own.

Rule 1: an entry is one group without its resources, or one resource with all its versions, its meta and the bytes of
its documents; epochs, addresses and counts stay behind, times of versions go along.
Rule 2: an entry names the catalog that has authority over it, and how new it is there: what came from elsewhere is
passed on under its first owner's name.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.registry import incoming, rows
from signalbook.registry.flags import Flags
from signalbook.registry.requests import Requests
from signalbook.registry.store import Connection, Store
from signalbook.registry.targets import find_target
from signalbook.spec import versions

__all__ = ["Entry", "Origin", "catalog_id", "entries_behind", "entries_of", "plain_group", "plain_resource", "shown"]

Json = dict[str, Any]

_WHOLE = Flags(inline=("*",), binary=True, raw="inline=*&binary")
_COUNTS = ("url", "count")


@dataclass(frozen=True, slots=True)
class Origin:
    """Who has authority over an entity, and how new it is there; an empty `authority` is the catalog itself."""

    catalog: str
    authority: str
    revision: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One group or resource at `xid`; without a body it was deleted."""

    xid: str
    origin: Origin
    body: Json | None
    mark: str = ""

    def to_dict(self) -> Json:
        """Return the entry as it travels."""
        origin = {
            "catalog": self.origin.catalog,
            "authority": self.origin.authority,
            "revision": self.origin.revision,
        }
        return {"xid": self.xid, "origin": origin, "body": self.body, "mark": self.mark}

    @classmethod
    def from_dict(cls, value: Any, path: str) -> Entry:
        """Return the entry that came in; `bad_request` where it is none."""
        try:
            origin = value["origin"]
            entry = cls(
                value["xid"], Origin(origin["catalog"], origin["authority"], origin["revision"]), value["body"],
                value.get("mark", ""),
            )  # fmt: skip
        except (TypeError, KeyError, AttributeError):
            raise _malformed(path, "it needs xid, origin and body") from None
        texts = (entry.xid, entry.origin.catalog, entry.origin.authority, entry.mark)
        if not all(isinstance(text, str) and len(text) <= 2000 for text in texts) or not entry.origin.catalog:
            raise _malformed(path, "its names must be texts of at most 2000 characters")
        if not incoming.uinteger(entry.origin.revision) or entry.origin.revision >= 1 << 62:
            raise _malformed(path, "its revision must be a uinteger")
        if entry.body is not None and not isinstance(entry.body, dict):
            raise _malformed(path, "its body must be an object or null")
        if len(entry.xid.split("/")) not in (3, 5):
            raise _malformed(path, f"'{entry.xid}' is the xid of neither a group nor a resource")
        return entry


def _malformed(path: str, why: str) -> RegistryError:
    return RegistryError("bad_request", path, error_detail=f"an entry is not as it must be: {why}")


def catalog_id(store: Store) -> str:
    """Return the random name that tells this catalog from every other, made when first asked for."""
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


# ---- what a source gives


def entries_behind(
    requests: Requests, db: Connection, own: Origin, scope: str, after: str, limit: int, most_bytes: int
) -> tuple[list[Entry], str]:
    """Return the next entries within a scope, groups before resources, and where to go on; empty at the end."""
    found: list[Entry] = []
    size = 0
    last = ""
    for key, xid in _keys(db, scope, after, limit):
        entry = _entry(requests, db, own, key, xid)
        found.append(entry)
        size += len(orjson.dumps(entry.body))
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


def entries_of(requests: Requests, db: Connection, own: Origin, xids: Iterable[str]) -> list[Entry]:
    """Return the entries at these xids; one that is not there is told as deleted."""
    found = []
    for xid in xids:
        key = (rows.GROUP if xid.count("/") == 2 else rows.RESOURCE) + xid.lower()
        found.append(_entry(requests, db, own, key, xid))
    return found


def _entry(requests: Requests, db: Connection, own: Origin, key: str, xid: str) -> Entry:
    known = db.one("SELECT catalog, authority, revision, gone FROM replicas WHERE key = ?", (key,))
    body = shown(requests, db, xid)
    if known is None or (known[3] == 1 and body is not None):  # made here, be it after one from elsewhere had gone
        return Entry(xid, own, body)
    return Entry(xid, Origin(*known[:3]), None if known[3] else body)


# ---- what of an entity travels


def shown(requests: Requests, db: Connection, xid: str) -> Json | None:
    """Return all that travels of the group or resource at an xid; None where there is none."""
    setup = requests.setup(db)
    try:
        target = find_target(setup.model, xid)
        is_group = target.kind == "group"
        flags = Flags.EMPTY if is_group else _WHOLE
        page = requests.page(db, setup, target, flags, versions.DEFAULT, "")
    except RegistryError:
        return None
    value: Json = orjson.loads(page.text)
    if is_group:
        return plain_group(target.group_type.singular, target.group_type.resources, value)
    return plain_resource(target.resource_type.singular, value)


def plain_group(singular: str, plurals: Iterable[str], value: Mapping[str, Any]) -> Json:
    """Return what a user controls of a group that has these collections."""
    nested = {plural + suffix for plural in plurals for suffix in ("", *_COUNTS)}
    left = (incoming.GROUP_SYSTEM - {"createdat"}) | nested | {singular + "id"}
    return {name: one for name, one in value.items() if name not in left}


def plain_resource(singular: str, value: Mapping[str, Any]) -> Json:
    """Return what a user controls of a resource: its meta and its versions."""
    meta = value.get("meta") or {}
    if meta.get("xref"):
        return {"meta": {"xref": meta["xref"]}}
    rid = singular + "id"
    own = {name: one for name, one in meta.items() if name not in incoming.META_SYSTEM and name != rid}
    if meta.get("defaultversionsticky"):
        own |= {"defaultversionid": meta.get("defaultversionid"), "defaultversionsticky": True}
    return {"meta": own, "versions": {vid: _version(rid, one) for vid, one in (value.get("versions") or {}).items()}}


_VERSION = incoming.VERSION_SYSTEM - {"createdat", "modifiedat", "ancestorid"}


def _version(rid: str, value: Mapping[str, Any]) -> Json:
    return {name: one for name, one in value.items() if name not in _VERSION and name != rid}
