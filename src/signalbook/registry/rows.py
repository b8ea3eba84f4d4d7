"""The tables of entities: their rows, the keys that order them, and the index of attribute values.

Rule 1: a key is a letter for the kind of entity and the entity's xid in lower case, so that one primary key makes ids
unique without regard to case (ID-2), and every collection is one range of keys in the order of its ids (SORT-4).
Rule 2: a row holds what a user wrote as JSON text (`doc`) and what the server keeps in columns of its own; nothing in a
row depends on the address a client uses, so reading is joining strings.
Rule 3: the index only proposes. A term is a 64-bit number made from type, path and folded value; whoever uses it tests
the entity itself, so two values that share a number cost time, and an entry that is missing would lose an answer.
Rule 4: the values of one entity lie all over `attrs`, a page of the database each. So a small write leaves what it
changes there in one row of `recent`, and every `RECENT_ROWS`th such row enters them all, in order. A large write enters
its own at once, behind those that wait.
Rule 5: a term that a write itself looks for is entered in `attrs` as well by each write (`at_once`): a write reads
nothing of `recent`, which would cost it as much as all the rest.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from signalbook.registry.store import Connection
from signalbook.registry.urls import join_name

__all__ = [
    "AT_ONCE", "BOOLEAN_TEXTS", "COLUMNS", "FEW_ENTRIES", "GROUP", "OWN_COLUMNS", "RECENT_ROWS", "REGISTRY_KEY",
    "RESOURCE", "UNINDEXED", "VERSION", "Ahead", "EntityRow", "IndexEntry", "changed_terms", "child_range",
    "each_member", "enter_recent", "enter_terms", "find_by_terms", "find_candidates", "fold", "folded_text",
    "group_key", "in_batches", "load", "load_ahead", "load_content", "load_members", "load_resource", "range_of",
    "resource_key", "save", "term_number", "term_numbers", "terms_of", "version_key",
]  # fmt: skip

GROUP, RESOURCE, VERSION = "b", "c", "d"
REGISTRY_KEY = "a/"


class EntityRow(NamedTuple):
    """One entity as it is stored; a resource's row holds its meta, its attributes live in its default version."""

    key: str
    xid: str
    type: str  # "registry", "dirs", "dirs/files", "dirs/files/versions"
    epoch: int
    createdat: str
    modifiedat: str
    ancestor: str | None = None  # versions: the ancestor's versionid
    link: str | None = None  # resources: the key of the default version
    xref: str | None = None  # resources: the xid of the resource that this one shows
    size: int = 0  # resources: how many versions
    sticky: int = 0  # resources: 1 where the default version was chosen by a client
    nextid: int = 1  # resources: the next versionid that the server would make
    # versions: "string" where the document came as one, "deep" where JSON is too deep to show, "null" where taken away
    form: str | None = None
    counts: str = "{}"  # registry, groups: the sizes of their collections as JSON
    doc: str = "{}"  # the attributes a user wrote, as JSON


COLUMNS = EntityRow._fields
_LIST = ", ".join(COLUMNS)
_R_LIST = ", ".join(f"r.{name}" for name in COLUMNS)
_V_LIST = ", ".join(f"v.{name}" for name in COLUMNS)
_G_LIST = ", ".join(f"g.{name}" for name in COLUMNS)
_MARKS = ", ".join("?" for _ in COLUMNS)
_SETS = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name != "key")
WIDTH = len(COLUMNS)

SELECT = f"SELECT {_LIST} FROM entities WHERE key = ?"
SELECT_RANGE = f"SELECT {_LIST} FROM entities WHERE key > ? AND key < ? ORDER BY key"
SELECT_IN = f"SELECT {_LIST} FROM entities WHERE key IN ({{}}) ORDER BY key"
SELECT_RESOURCE = f"SELECT {_R_LIST}, {_V_LIST} FROM entities r LEFT JOIN entities v ON v.key = r.link WHERE r.key = ?"
SELECT_RESOURCES = (
    f"SELECT {_R_LIST}, {_V_LIST} FROM entities r LEFT JOIN entities v ON v.key = r.link"
    " WHERE r.key > ? AND r.key < ? ORDER BY r.key"
)
SELECT_RESOURCES_IN = (
    f"SELECT {_R_LIST}, {_V_LIST} FROM entities r LEFT JOIN entities v ON v.key = r.link"
    " WHERE r.key IN ({}) ORDER BY r.key"
)
SELECT_AHEAD = (
    f"SELECT s.value, EXISTS (SELECT 1 FROM entities x WHERE x.xref = ?), {_G_LIST}, {_R_LIST}, {_V_LIST}"
    " FROM settings s LEFT JOIN entities g ON g.key = ? LEFT JOIN entities r ON r.key = ?"
    " LEFT JOIN entities v ON v.key = r.link WHERE s.name = 'generation'"
)
SELECT_CONTENT = "SELECT content FROM entities WHERE key = ?"
UPSERT = f"INSERT INTO entities ({_LIST}) VALUES ({_MARKS}) ON CONFLICT (key) DO UPDATE SET {_SETS}"
UPSERT_CONTENT = (
    f"INSERT INTO entities ({_LIST}, content) VALUES ({_MARKS}, ?)"
    f" ON CONFLICT (key) DO UPDATE SET {_SETS}, content = excluded.content"
)

UPDATE_VERSION = (
    "UPDATE entities SET epoch = ?, createdat = ?, modifiedat = ?, ancestor = ?, form = ?, doc = ? WHERE key = ?"
)


def group_key(xid: str) -> str:
    """Return the key of the group with this xid."""
    return GROUP + xid.lower()


def resource_key(xid: str) -> str:
    """Return the key of the resource with this xid."""
    return RESOURCE + xid.lower()


def version_key(resource_xid: str, versionid: str) -> str:
    """Return the key of one version of the resource with this xid."""
    return f"{VERSION}{resource_xid}/versions/{versionid}".lower()


def range_of(kind: str, prefix: str) -> tuple[str, str]:
    """Return the open bounds of all keys of a kind below a path such as `/dirs/d1`."""
    low = kind + prefix.lower()
    return low + "/", low + "0"  # "0" is the character after "/"


def child_range(kind: str, prefix: str, after: str | None) -> tuple[str, str]:
    """Return the same bounds, beginning behind the child with the id `after`."""
    low, high = range_of(kind, prefix)
    return (low if after is None else low + after.lower()), high


def load(db: Connection, key: str) -> EntityRow | None:
    """Return one row."""
    found = db.one(SELECT, (key,))
    return EntityRow(*found) if found else None


def load_resource(db: Connection, key: str) -> tuple[EntityRow, EntityRow | None] | None:
    """Return a resource with its default version."""
    found = db.one(SELECT_RESOURCE, (key,))
    if not found:
        return None
    return EntityRow(*found[:WIDTH]), (EntityRow(*found[WIDTH:]) if found[WIDTH] is not None else None)


class Ahead(NamedTuple):
    """What a write of one resource begins with, read by one statement."""

    generation: str
    xid: str
    shown: bool  # other resources show this one, be it there or not
    group_key: str
    group: EntityRow | None
    resource_key: str
    resource: EntityRow | None
    default: EntityRow | None


def load_ahead(db: Connection, group_xid: str, resource_xid: str) -> Ahead | None:
    """Return what is stored of a group and a resource, beside the registry's generation; None where it has none."""
    group, resource = group_key(group_xid), resource_key(resource_xid)
    found = db.one(SELECT_AHEAD, (resource_xid, group, resource))
    if found is None:
        return None
    generation, shown, *cells = found
    parts = (cells[:WIDTH], cells[WIDTH : 2 * WIDTH], cells[2 * WIDTH :])
    g, r, v = (EntityRow(*part) if part[0] is not None else None for part in parts)
    return Ahead(generation, resource_xid, bool(shown), group, g, resource, r, v)


def load_content(db: Connection, key: str) -> bytes | None:
    """Return the bytes of a version's document."""
    found = db.one(SELECT_CONTENT, (key,))
    return bytes(found[0]) if found and found[0] is not None else None


def load_members(
    db: Connection, kind: str, path: str, ids: Iterable[str], *, resources: bool = False
) -> list[tuple[Any, ...]]:
    """Return the rows of some members of a collection, with `resources` each beside its default version."""
    return list(each_member(db, kind, path, ids, resources=resources))


def each_member(
    db: Connection, kind: str, path: str, ids: Iterable[str], *, resources: bool = False
) -> Iterator[tuple[Any, ...]]:
    """Yield the same rows, read in batches."""
    low = kind + path.lower() + "/"
    select = SELECT_RESOURCES_IN if resources else SELECT_IN
    keys = [low + id_.lower() for id_ in ids]
    for start in range(0, len(keys), _CHUNK):
        chunk = tuple(keys[start : start + _CHUNK])
        by_key = {one[0]: one for one in db.execute(select.format(", ".join("?" * len(chunk))), chunk)}
        yield from (by_key[key] for key in chunk if key in by_key)


def in_batches(
    db: Connection, select: str, bounds: tuple[str, str], most: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows between two keys, at most so many, read in batches; `select` gives the key first, in its order."""
    low, high = bounds
    left = most
    while left is None or left > 0:
        size = _CHUNK if left is None else min(_CHUNK, left)
        found = db.execute(f"{select} LIMIT ?", (low, high, size))
        yield from found
        if len(found) < size:
            return
        low = found[-1][0]
        left = None if left is None else left - size


_CHUNK = 200
_KEEP = object()


def save(db: Connection, row: EntityRow, content: object = _KEEP) -> None:
    """Write one row, and its document where one is given."""
    if content is _KEEP:
        db.execute(UPSERT, row)
    else:
        db.execute(UPSERT_CONTENT, (*row, content))


# The index: which versions carry an attribute with a value.

# prose, addresses and schemas: hardly ever filtered by equality, and each entry costs a page on every write
UNINDEXED = frozenset({"description", "documentation", "icon", "specurl", "dataschema"})
# what a write itself looks for: the definitions that derive from those it changes
AT_ONCE = frozenset({"basemessage"})
# what the server keeps in columns of its own
OWN_COLUMNS = frozenset(
    {"versionid", "self", "shortself", "xid", "epoch", "isdefault", "createdat", "modifiedat", "ancestorid"}
    | {"metaurl", "meta", "versionsurl", "versionscount"}
)
BOOLEAN_TEXTS = frozenset({"true", "false"})  # half of everything is true: no index helps


_TIMESTAMP = re.compile(
    r"(?P<seconds>[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?P<fraction>\.[0-9]{1,9})?(?P<zone>[Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def folded_text(text: str) -> str:
    """`text` without regard to case and to how its characters are composed."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def fold(value: str | int | float) -> str:
    """The one text that stands for `value` and for every value equal to it."""
    if isinstance(value, str):
        if len(value) >= 20 and value[4] == "-" and value[10] in "Tt":
            return _utc_text(value) or folded_text(value)
        return folded_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)


def _utc_text(text: str) -> str | None:
    """A timestamp in UTC without its zone, so that text order is the order of time."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    seconds = found["seconds"].lower()
    if found["zone"] not in "Zz":
        try:
            utc = datetime.fromisoformat(seconds.upper() + found["zone"]).astimezone(UTC)
        except (ValueError, OverflowError):
            return None
        seconds = utc.replace(tzinfo=None).isoformat().lower()
    return seconds + (found["fraction"] or "").rstrip("0").rstrip(".")


Terms = set[tuple[str, str]]


def term_number(type_: str, path: str, folded: str) -> int:
    """Return the number of one attribute value."""
    digest = blake2b(f"{type_}\n{path}\n{folded}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def terms_of(attrs: Mapping[str, Any]) -> Terms:
    """Return everything in a version that a filter can look up, as paths and folded values."""
    found: Terms = set()
    _collect(found, "", attrs)
    return found


def _collect(found: Terms, prefix: str, attrs: Mapping[str, Any]) -> None:
    for name, value in attrs.items():
        if name in UNINDEXED:
            continue
        kind = value.__class__
        if kind is str:
            folded = fold(value)
            if folded not in BOOLEAN_TEXTS:
                found.add((_joined_name(prefix, name), folded))
        elif kind is dict:
            _collect(found, _joined_name(prefix, name), value)
        elif kind is int or kind is float:
            found.add((_joined_name(prefix, name), fold(value)))


_joined_name = lru_cache(maxsize=8192)(join_name)  # the same few hundred paths, in every version


def changed_terms(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Terms, Terms]:
    """Return what an update takes out of the index and what it enters, looking only at what changed."""
    stale: Terms = set()
    fresh: Terms = set()
    _compare(stale, fresh, "", before, after)
    return stale - fresh, fresh - stale


def _compare(stale: Terms, fresh: Terms, prefix: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    for name, old in before.items():
        new: Any = after.get(name)
        kind = old.__class__
        if kind is new.__class__:  # True equals 1 in Python, and is another value here
            if kind is dict:
                if name not in UNINDEXED:
                    _compare(stale, fresh, _joined_name(prefix, name), old, new)
                continue
            if old == new:
                continue
        _collect(stale, prefix, {name: old})
        if new is not None:
            _collect(fresh, prefix, {name: new})
    for name, new in after.items():
        if name not in before:
            _collect(fresh, prefix, {name: new})


def term_numbers(type_: str, wanted: Terms) -> list[int]:
    """Return the numbers of these values."""
    return [term_number(type_, path, folded) for path, folded in wanted]


RECENT_ROWS = 512
FEW_ENTRIES = 8

_ADD_RECENT = "INSERT INTO recent (key, fresh, stale) VALUES (?, ?, ?) RETURNING seq"
_ADD_TERM = "INSERT INTO attrs (term, key) VALUES (?, ?) ON CONFLICT DO NOTHING"
_REMOVE_TERM = "DELETE FROM attrs WHERE term = ? AND key = ?"


class IndexEntry(NamedTuple):
    """What a write changes in the index for one entity: the terms it has got, and those it has lost.

    Those of `fresh` that are in `at_once` do not wait.
    """

    key: str
    fresh: Sequence[int]
    stale: Sequence[int]
    at_once: Sequence[int] = ()


def enter_terms(db: Connection, entries: Sequence[IndexEntry]) -> None:
    """Take the changes of one request in."""
    if len(entries) > FEW_ENTRIES:
        enter_recent(db)
        _apply_entries(db, entries)
        return
    for key, fresh, stale, at_once in entries:
        if at_once:
            db.executemany(_ADD_TERM, [(term, key) for term in at_once])
        noted = db.one(_ADD_RECENT, (key, _packed(fresh), _packed(stale)))
        if noted is not None and noted[0] % RECENT_ROWS == 0:
            enter_recent(db)


def find_candidates(db: Connection, term: int, low: str, high: str) -> set[str]:
    """Return the keys between two bounds that may have a term."""
    found = {
        key for (key,) in db.execute("SELECT key FROM attrs WHERE term = ? AND key > ? AND key < ?", (term, low, high))
    }
    wanted = _packed([term])
    for key, fresh in db.execute("SELECT key, fresh FROM recent WHERE key > ? AND key < ?", (low, high)):
        if wanted in fresh:
            found.add(key)
    return found


def find_by_terms(db: Connection, terms: Collection[int]) -> set[str]:
    """Return the keys that may have one of these terms, of which all writes enter each at once."""
    wanted = sorted(terms)
    found: set[str] = set()
    for start in range(0, len(wanted), _CHUNK):
        chunk = tuple(wanted[start : start + _CHUNK])
        places = ", ".join("?" * len(chunk))
        found.update(key for (key,) in db.execute(f"SELECT key FROM attrs WHERE term IN ({places})", chunk))
    return found


def enter_recent(db: Connection) -> None:
    """Enter everything that waits in `recent`."""
    waiting = db.execute("SELECT key, fresh, stale FROM recent ORDER BY seq")
    if waiting:
        _apply_entries(db, (IndexEntry(key, _unpacked(fresh), _unpacked(stale)) for key, fresh, stale in waiting))
        db.execute("DELETE FROM recent")


def _apply_entries(db: Connection, entries: Iterable[IndexEntry]) -> None:
    last: dict[tuple[int, str], bool] = {}
    for key, fresh, stale, _ in entries:
        last.update(((term, key), False) for term in stale)
        last.update(((term, key), True) for term in fresh)
    ordered = sorted(last)
    db.executemany(_REMOVE_TERM, [pair for pair in ordered if not last[pair]])
    db.executemany(_ADD_TERM, [pair for pair in ordered if last[pair]])


def _packed(terms: Sequence[int]) -> bytes:
    return array("q", terms).tobytes()


def _unpacked(packed: bytes) -> array[int]:
    numbers = array("q")
    numbers.frombytes(bytes(packed))
    return numbers
