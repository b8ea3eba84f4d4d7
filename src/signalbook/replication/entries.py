"""Groups and resources as they travel between catalogs: all that a user controls, nothing that is a server's own.

Rule 1: an entry is one group without its resources, or one resource with all its versions, its meta and the bytes of
its documents; epochs, addresses and counts stay behind, times of versions go along. With it goes a page of the log of
its snapshots.
Rule 2: an entry names the catalog that has authority over it, what it is called there and how new it is: what came from
elsewhere is passed on under its first owner's name.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.jsontext import Json
from signalbook.model.message_rules import Subject
from signalbook.model.model import ResourceType
from signalbook.model.rules import check
from signalbook.registry import changes, rows, urls
from signalbook.registry.read.render import Limits, ReadContext
from signalbook.registry.requests import Requests
from signalbook.registry.store import Connection, Store
from signalbook.registry.urls import Flags, InlineSet, RequestTarget, find_target
from signalbook.registry.work import GROUP_SYSTEM, META_SYSTEM, VERSION_SYSTEM, is_uinteger
from signalbook.spec import versions

__all__ = [
    "Bodies",
    "EntryOrigin",
    "LogPage",
    "ReplicaEntry",
    "adapted",
    "base_of",
    "catalog_id",
    "digest",
    "entries_behind",
    "entries_of",
    "is_alike",
    "keep_base",
    "log_digest",
    "own_origin",
    "owner_by",
    "page_of",
    "plain_group",
    "plain_resource",
    "put_page",
    "timeless",
    "with_authority",
]

# What of a group or a resource travels between catalogs: all that a user controls, nothing that is a server's own.


_COUNTS = ("url", "count")


def plain_group(singular: str, plurals: Iterable[str], value: Mapping[str, Any]) -> Json:
    """Return what a user controls of a group that has these collections."""
    nested = {plural + suffix for plural in plurals for suffix in ("", *_COUNTS)}
    left = (GROUP_SYSTEM - {"createdat"}) | nested | {singular + "id"}
    return {name: one for name, one in value.items() if name not in left}


def plain_resource(singular: str, value: Mapping[str, Any]) -> Json:
    """Return what a user controls of a resource: its meta and its versions."""
    meta = value.get("meta") or {}
    if meta.get("xref"):
        return {"meta": {"xref": meta["xref"]}}
    rid = singular + "id"
    own = {name: one for name, one in meta.items() if name not in META_SYSTEM and name != rid}
    if meta.get("defaultversionsticky"):
        own |= {"defaultversionid": meta.get("defaultversionid"), "defaultversionsticky": True}
    return {"meta": own, "versions": {vid: _version(rid, one) for vid, one in (value.get("versions") or {}).items()}}


_VERSION = VERSION_SYSTEM - {"createdat", "modifiedat", "ancestorid"}


def _version(rid: str, value: Mapping[str, Any]) -> Json:
    return {name: one for name, one in value.items() if name not in _VERSION and name != rid}


# Whether two entities are the same, as far as a copy can be: what is compared, and what a copy adds.


def with_authority(kind: ResourceType, body: Json, authority: str) -> Json:
    """Return a resource whose versions name their authority, where its type has that attribute (seed 004, 2.2.4)."""
    if "authority" not in kind.attributes or "versions" not in body or not authority:
        return body
    versions = {
        vid: version if version.get("authority") else {**version, "authority": authority}
        for vid, version in body["versions"].items()
        if isinstance(version, dict)
    }
    return {**body, "versions": versions}


def timeless(version: Mapping[str, Any]) -> Json:
    """Return a version without the time that a write may move."""
    return {name: value for name, value in version.items() if name != "modifiedat"}


def digest(body: Json) -> str:
    """Return a name for what an entity is, whatever the order of its members."""
    return _name(dict(_parts(body, ("modifiedat",))))


def is_alike(here: Json | None, other: Json) -> bool:
    """Whether two entities that were made apart say the same, whenever that was."""
    if here is None:
        return False
    first, second = ({**dict(_parts(one, ("createdat", "modifiedat"))), "createdat": None} for one in (here, other))
    return _name(first) == _name(second)


def _parts(body: Json, left: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, value in body.items():
        if name == "versions" and isinstance(value, dict):
            yield (
                name,
                {
                    vid: {name: value for name, value in one.items() if name not in left}
                    for vid, one in value.items()
                    if isinstance(one, dict)
                },
            )
        else:
            yield name, value


def _name(value: Json) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


# Logs of snapshots as they travel between catalogs: page by page, with the numbers that the owner gave.
#
# Rule 1: a snapshot has the same number at every copy, so a version URI names the same document wherever it is asked
# for.
# Rule 2: a page is bounded by number and by bytes. The newest comes first, with its resource; a target that lacks more
# says before which number, so that a change of a long log costs one page.
# Rule 3: a digest of its numbers and times identifies what a log holds: a snapshot is never altered, and one to which
# an undone history gave the same number has another time.


_MOST_SNAPSHOTS = 200
_MOST_BYTES = 256 << 10
_BEHIND_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class LogPage:
    """The snapshots of a resource before a number (0: the newest), the oldest first; the `end` is where none are older.

    Each is its number, its time and what it says; None where it was taken away and its number stays taken.
    """

    digest: str
    before: int
    end: bool
    snapshots: tuple[tuple[int, str, Json | None], ...]

    def to_dict(self) -> Json:
        """Return the page as it travels."""
        return {"digest": self.digest, "before": self.before, "end": self.end, "snapshots": list(self.snapshots)}

    @classmethod
    def from_dict(cls, value: Any) -> LogPage:
        """Return the page that came in; raise `ValueError` where it is not valid."""
        try:
            page = cls(
                value["digest"], value["before"], value["end"],
                tuple((number, at, said) for number, at, said in value["snapshots"]),
            )  # fmt: skip
        except (TypeError, KeyError, ValueError):
            raise ValueError("its log needs digest, before, end and snapshots") from None
        numbers = [number for number, _, _ in page.snapshots]
        texts = (page.digest, *(at for _, at, _ in page.snapshots))
        if not all(isinstance(text, str) and len(text) <= 100 for text in texts) or not isinstance(page.end, bool):
            raise ValueError("the times of its log must be short texts")
        if not all(is_uinteger(number) and number < _BEHIND_ALL for number in (page.before, *numbers)):
            raise ValueError("the numbers of its log must be uintegers")
        if numbers != sorted(set(numbers)) or (page.before and numbers and numbers[-1] >= page.before):
            raise ValueError("its log must be in the order of its numbers")
        if not (numbers or page.end) or not all(said is None or isinstance(said, dict) for *_, said in page.snapshots):
            raise ValueError("its log must hold objects or nulls")
        return page


def page_of(db: Connection, key: str, before: int = 0) -> LogPage | None:
    """Return the page of a log that ends before a number; None where the resource has no log."""
    found = db.execute(
        "SELECT number, at, doc FROM snapshots WHERE key = ? AND number < ? ORDER BY number DESC LIMIT ?",
        (key, before or _BEHIND_ALL, _MOST_SNAPSHOTS + 1),
    )
    if not found and not before:
        return None
    shown: list[tuple[int, str, Json | None]] = []
    size = 0
    for number, at, doc in found[:_MOST_SNAPSHOTS]:
        size += len(doc)
        if shown and size > _MOST_BYTES:
            break
        shown.append((number, at, orjson.loads(doc) if doc else None))
    shown.reverse()
    end = len(shown) == len(found)
    digest = log_digest((number, at, said is not None) for number, at, said in shown) if end and not before else None
    return LogPage(digest or _digest_of(db, key), before, end, tuple(shown))


def adapted(kind: ResourceType, said: Json, authority: str, xid: str) -> Json:
    """Return what a snapshot says as it says it here: it names its authority, and keeps the rules of its type.

    Rules that look at other entities are not asked: what is said of those was so once.
    """
    named = with_authority(kind, {"versions": {"": said}}, authority)["versions"][""]
    attrs = kind.version_level.normalise(kind.normaliser.to_canonical(named, xid), xid)
    for problem in check(kind.modelcompatiblewith, "version", Subject(xid=xid, attrs=attrs), "error"):
        raise RegistryError(problem.code, xid, **dict(problem.args))
    return attrs


def put_page(
    db: Connection, key: str, xid: str, page: LogPage, as_here: Callable[[Json], Json], now: str
) -> tuple[list[list[Any]], int]:
    """Make a part of a log what its owner has; return the events of that, and before which number more is needed.

    `as_here` makes of what a snapshot says what it says here; one without a time has the one that it came at, `now`.
    """
    wanted = {
        number: (at, "" if said is None else orjson.dumps(as_here(said)).decode())
        for number, at, said in page.snapshots
    }
    low = 0 if page.end else min(wanted)
    here: dict[int, tuple[str, str]] = {
        number: (at, doc)
        for number, at, doc in db.execute(
            "SELECT number, at, doc FROM snapshots WHERE key = ? AND number >= ? AND number < ?",
            (key, low, page.before or _BEHIND_ALL),
        )
    }
    for number in [number for number, (at, _) in wanted.items() if not at]:
        wanted[number] = (here[number][0] if number in here else now, wanted[number][1])
    gone = [number for number in here if number not in wanted]
    changed = [number for number, one in wanted.items() if number not in here or not _is_same(here[number], one)]
    db.executemany("DELETE FROM snapshots WHERE key = ? AND number = ?", [(key, number) for number in gone])
    db.executemany(_PUT, [(key, number, *wanted[number]) for number in changed])
    events = [changes.event(changes.DELETED, xid, number) for number in gone if here[number][1]]
    events += [
        changes.event(changes.CREATED, xid, number, wanted[number][0]) for number in changed if wanted[number][1]
    ]
    if page.end:
        return events, 0
    rewritten = any(number in here for number in changed)
    return events, low if rewritten or _digest_of(db, key) != page.digest else 0


_PUT = (
    "INSERT INTO snapshots (key, number, at, doc) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (key, number) DO UPDATE SET at = excluded.at, doc = excluded.doc"
)


def _is_same(here: tuple[str, str], wanted: tuple[str, str]) -> bool:
    if here == wanted:
        return True
    if here[0] != wanted[0] or not (here[1] and wanted[1]):
        return False
    return bool(orjson.loads(here[1]) == orjson.loads(wanted[1]))


def _digest_of(db: Connection, key: str) -> str:
    found = db.execute(
        "SELECT number, at, CASE WHEN doc = '' THEN 0 ELSE 1 END FROM snapshots WHERE key = ? ORDER BY number", (key,)
    )
    return log_digest((number, at, bool(is_there)) for number, at, is_there in found)


def log_digest(parts: Iterable[tuple[int, str, bool]]) -> str:
    """Return a name for what a log holds: its numbers, their times and whether they are still there."""
    text = "".join(f"{number} {at} {int(is_there)}\n" for number, at, is_there in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


_WHOLE = Flags(inline=("*",), binary=True, raw="inline=*&binary")
_SKEW = 2000  # milliseconds by which the clocks of one catalog's servers may differ
_UNBOUND = Limits(size=1 << 62)  # an entity is what somebody has written, and that was bounded


@dataclass(frozen=True, slots=True)
class EntryOrigin:
    """Who has authority over an entity, what it is called there, and how new it is.

    An empty `authority` is the catalog itself. `revision` is the owner's change number and `at` its clock when it was
    read there, in milliseconds: numbers order one history, the clock tells two histories of one owner apart.
    """

    catalog: str
    authority: str
    revision: int
    at: int = 0
    home: str = ""

    def is_older(self, other: EntryOrigin, *, is_direct: bool) -> bool:
        """Tell whether this is older than another word of the same owner; `is_direct` is one from the owner itself.

        Where the times are near each other, for clocks may differ, numbers decide; so they do where a clock was set
        back under an owner that is asked itself.
        """
        if not (self.at and other.at) or abs(self.at - other.at) <= _SKEW or (is_direct and self.at < other.at):
            return self.revision < other.revision
        return self.at < other.at

    def is_of(self, catalog: str) -> bool:
        """Tell whether the owner is a catalog, or is known by it alone."""
        return self.catalog.partition("#")[0] == catalog

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
class ReplicaEntry:
    """One group or resource at `xid`; without a body it was deleted. `source` is its xid where it was read."""

    xid: str
    origin: EntryOrigin
    body: Json | None
    mark: str = ""
    log: LogPage | None = None
    source: str = ""

    def to_dict(self) -> Json:
        """Return the entry as it travels."""
        log = {"log": self.log.to_dict()} if self.log is not None else {}
        return {"xid": self.xid, "origin": self.origin.to_dict(), "body": self.body, "mark": self.mark, **log}

    @classmethod
    def from_dict(cls, value: Any, path: str) -> ReplicaEntry:
        """Return the entry that came in; raise `bad_request` where it is not valid."""
        try:
            origin = value["origin"]
            entry = cls(
                value["xid"],
                EntryOrigin(
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
        if not all(is_uinteger(one) and one < 1 << 62 for one in (entry.origin.revision, entry.origin.at)):
            raise _malformed(path, "its revision must be a uinteger")
        if entry.body is not None and not isinstance(entry.body, dict):
            raise _malformed(path, "its body must be an object or null")
        if len(entry.xid.split("/")) not in (3, 5):
            raise _malformed(path, f"'{entry.xid}' is the xid of neither a group nor a resource")
        return entry


def _malformed(path: str, why: str) -> RegistryError:
    return RegistryError("bad_request", path, error_detail=f"an entry is not valid: {why}")


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


def owner_by(catalog: str, authority: str) -> str:
    """Return the owner that a catalog which tells no owners has a copy of: all that is known is its authority."""
    return f"{catalog}#{authority}"


def own_origin(db: Connection, catalog: str) -> EntryOrigin:
    """Return the origin of what this catalog owns, as new as it is now."""
    found = db.one("SELECT seq FROM changes ORDER BY seq DESC LIMIT 1")
    return EntryOrigin(catalog, "", int(found[0]) if found is not None else 0, time.time_ns() // 1_000_000)


# ---- what a source gives


def entries_behind(
    requests: Requests, db: Connection, own: EntryOrigin, scope: str, after: str, limit: int, most_bytes: int
) -> tuple[list[ReplicaEntry], str]:
    """Return the next entries within a scope, groups before resources, and where to go on; empty at the end."""
    found: list[ReplicaEntry] = []
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


def entries_of(
    requests: Requests, db: Connection, own: EntryOrigin, xids: Iterable[str], before: int = 0
) -> list[ReplicaEntry]:
    """Return the entries at these xids, with their logs before a number; one that is not there is a deleted entry."""
    found = []
    bodies = Bodies(requests, db)
    for xid in xids:
        key = (rows.GROUP if xid.count("/") == 2 else rows.RESOURCE) + xid.lower()
        found.append(_entry(bodies, db, own, key, xid, before))
    return found


def _entry(bodies: Bodies, db: Connection, own: EntryOrigin, key: str, xid: str, before: int = 0) -> ReplicaEntry:
    known = db.one("SELECT catalog, authority, revision, at, home, gone FROM replicas WHERE key = ?", (key,))
    body = bodies.of(xid)
    is_own = known is None or (known[5] == 1 and body is not None)  # made here, be it after one from elsewhere had gone
    origin = own if is_own or known is None else EntryOrigin(*known[:5])
    if not is_own and known is not None and known[5]:
        body = None
    log = page_of(db, key, before) if body is not None and key.startswith(rows.RESOURCE) else None
    return ReplicaEntry(xid, origin, body, log=log)


# ---- what of an entity travels


class Bodies:
    """What of entities travels, read within one transaction; what only depends on a collection is found once."""

    def __init__(self, requests: Requests, db: Connection) -> None:
        self._requests = requests
        self._db = db
        self._setup = requests.setup(db)
        self._collections: dict[str, tuple[RequestTarget, InlineSet] | None] = {}

    def of(self, xid: str) -> Json | None:
        """Return all that travels of the group or resource at an xid; None where there is none."""
        return self._group(xid) if xid.count("/") == 2 else self._resource(xid)

    def _group(self, xid: str) -> Json | None:
        try:
            target = find_target(self._setup.model, xid)
            page = self._requests.page(self._context(target, Flags.EMPTY, self._requests.limits))
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
        view = self._context(target, _WHOLE, _UNBOUND).view()
        meta, all_versions = view.meta(kind, row, row), view.versions(kind, row, row, inline, None)
        return plain_resource(
            kind.singular, {"meta": orjson.loads(meta), "versions": orjson.loads("".join(all_versions))}
        )  # fmt: skip

    def _context(self, target: RequestTarget, flags: Flags, limits: Limits) -> ReadContext:
        return ReadContext(self._db, self._setup, target, flags, versions.DEFAULT, "", limits)

    def _collection(self, path: str) -> tuple[RequestTarget, InlineSet] | None:
        """Return a collection, and what is shown of each version in it; None where the model has none such."""
        try:
            target = find_target(self._setup.model, path)
        except RegistryError:
            return None
        if target.kind != "resources":
            return None
        whole = urls.parse_inline(_WHOLE.inline, urls.resource_shape(target.resource_type), path)
        return target, whole.child("versions") or InlineSet.NOTHING
