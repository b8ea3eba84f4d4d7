"""The rows of the `entities` table and the keys that order them.

Rule 1: a key is a letter for the kind of entity and the entity's xid in lower case, so that one primary key makes ids
unique without regard to case (ID-2), and every collection is one range of keys in the order of its ids (SORT-4).
Rule 2: a row holds what a user wrote as JSON text (`doc`) and what the server keeps in columns of its own; nothing in a
row depends on the address a client uses, so reading is joining strings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from signalbook.registry.store import Connection

__all__ = [
    "COLUMNS", "GROUP", "REGISTRY_KEY", "RESOURCE", "VERSION", "Ahead", "Row", "child_range", "group_key", "load",
    "load_ahead", "load_content", "load_members", "load_resource", "range_of", "resource_key", "save", "version_key",
]  # fmt: skip

GROUP, RESOURCE, VERSION = "b", "c", "d"
REGISTRY_KEY = "a/"


class Row(NamedTuple):
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


COLUMNS = Row._fields
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


def load(db: Connection, key: str) -> Row | None:
    """Return one row."""
    found = db.one(SELECT, (key,))
    return Row(*found) if found else None


def load_resource(db: Connection, key: str) -> tuple[Row, Row | None] | None:
    """Return a resource with its default version."""
    found = db.one(SELECT_RESOURCE, (key,))
    if not found:
        return None
    return Row(*found[:WIDTH]), (Row(*found[WIDTH:]) if found[WIDTH] is not None else None)


class Ahead(NamedTuple):
    """What a write of one resource begins with, read by one statement."""

    generation: str
    xid: str
    shown: bool  # other resources show this one, be it there or not
    group_key: str
    group: Row | None
    resource_key: str
    resource: Row | None
    default: Row | None


def load_ahead(db: Connection, group_xid: str, resource_xid: str) -> Ahead | None:
    """Return what is stored of a group and a resource, beside the registry's generation; None where it has none."""
    group, resource = group_key(group_xid), resource_key(resource_xid)
    found = db.one(SELECT_AHEAD, (resource_xid, group, resource))
    if found is None:
        return None
    generation, shown, *cells = found
    parts = (cells[:WIDTH], cells[WIDTH : 2 * WIDTH], cells[2 * WIDTH :])
    g, r, v = (Row(*part) if part[0] is not None else None for part in parts)
    return Ahead(generation, resource_xid, bool(shown), group, g, resource, r, v)


def load_content(db: Connection, key: str) -> bytes | None:
    """Return the bytes of a version's document."""
    found = db.one(SELECT_CONTENT, (key,))
    return bytes(found[0]) if found and found[0] is not None else None


def load_members(
    db: Connection, kind: str, path: str, ids: Iterable[str], *, resources: bool = False
) -> list[tuple[Any, ...]]:
    """Return the rows of some members of a collection, with `resources` each beside its default version."""
    low = kind + path.lower() + "/"
    select = SELECT_RESOURCES_IN if resources else SELECT_IN
    keys = [low + id_.lower() for id_ in ids]
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(keys), _CHUNK):
        chunk = tuple(keys[start : start + _CHUNK])
        by_key = {one[0]: one for one in db.execute(select.format(", ".join("?" * len(chunk))), chunk)}
        found.extend(by_key[key] for key in chunk if key in by_key)
    return found


_CHUNK = 200
_KEEP = object()


def save(db: Connection, row: Row, content: object = _KEEP) -> None:
    """Write one row, and its document where one is given."""
    if content is _KEEP:
        db.execute(UPSERT, row)
    else:
        db.execute(UPSERT_CONTENT, (*row, content))
