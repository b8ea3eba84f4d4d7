"""A log of what resources have said: each change of a default version appends one numbered snapshot.

Rule 1: which types are recorded is given from outside, by their `modelcompatiblewith`; nothing here knows a type.
Rule 2: a snapshot is written in the transaction of its change, never altered, and its number is never given again.
Rule 3: a write that leaves the attributes as they are is no change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from signalbook.registry import rows
from signalbook.registry.store import Connection

__all__ = ["Snapshot", "find", "forget", "forget_below", "latest", "listing", "record", "remove"]

_APPEND = (
    "INSERT INTO snapshots (key, number, at, doc)"
    " SELECT ?, COALESCE(MAX(number), 0) + 1, ?, ? FROM snapshots WHERE key = ?"
)
_COLUMNS = "SELECT number, at, doc FROM snapshots"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a resource's default version said from one instant on."""

    number: int
    at: str
    attrs: dict[str, Any]


def record(db: Connection, key: str, at: str, doc: str) -> None:
    """Append a snapshot of the resource with this key."""
    db.execute(_APPEND, (key, at, doc, key))


def forget(db: Connection, key: str) -> None:
    """Empty the log of a resource that is deleted; its last number stays taken."""
    _empty(db, "key = ?", (key,))


def forget_below(db: Connection, group_xid: str) -> None:
    """Empty the logs of all resources of a group that is deleted."""
    _empty(db, "key > ? AND key < ?", rows.range_of(rows.RESOURCE, group_xid))


def _empty(db: Connection, where: str, bounds: tuple[str, ...]) -> None:
    newest = "(SELECT MAX(s.number) FROM snapshots s WHERE s.key = snapshots.key)"
    db.execute(f"DELETE FROM snapshots WHERE {where} AND number < {newest}", bounds)
    db.execute(f"UPDATE snapshots SET doc = '' WHERE {where}", bounds)


def latest(db: Connection, xid: str) -> Snapshot | None:
    """Return the newest snapshot of a resource, or None where there is none."""
    return _one(db, f"{_COLUMNS} WHERE key = ? AND doc <> '' ORDER BY number DESC LIMIT 1", xid)


def find(db: Connection, xid: str, number: int) -> Snapshot | None:
    """Return the snapshot of this number."""
    return _one(db, f"{_COLUMNS} WHERE key = ? AND doc <> '' AND number = ?", xid, number)


def listing(db: Connection, xid: str, after: int, most: int) -> list[Snapshot]:
    """Return the snapshots of a resource behind a number, at most so many, the oldest first."""
    sql = f"{_COLUMNS} WHERE key = ? AND doc <> '' AND number > ? ORDER BY number LIMIT ?"
    found = db.execute(sql, (rows.resource_key(xid), after, most))
    return [Snapshot(number, at, orjson.loads(doc)) for number, at, doc in found]


def remove(db: Connection, xid: str, number: int) -> None:
    """Take one snapshot out of a log."""
    db.execute("DELETE FROM snapshots WHERE key = ? AND number = ?", (rows.resource_key(xid), number))


def _one(db: Connection, sql: str, xid: str, *more: object) -> Snapshot | None:
    found = db.one(sql, (rows.resource_key(xid), *more))
    return Snapshot(found[0], found[1], orjson.loads(found[2])) if found else None
