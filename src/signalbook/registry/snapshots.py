"""A log of what resources have said: each change of a default version appends one numbered snapshot.

Rule 1: which types are recorded is given from outside, by their `modelcompatiblewith`; nothing here knows a type.
Rule 2: a snapshot is written in the transaction of its change, never altered, and its number is never given again.
Rule 3: a write that leaves the attributes as they are is no change; a history that is written at once adds what the log
does not have of it, so that the same again adds nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.registry import rows
from signalbook.registry.store import Connection

__all__ = [
    "CREATED", "DELETED", "Snapshot", "event", "find", "forget", "forget_below", "latest", "listing", "record",
    "record_line", "remove",
]  # fmt: skip

CREATED, DELETED = "snapshot.created", "snapshot.deleted"
"""The types of what is recorded of snapshots. xRegistry has no such events: whoever shows them has words for them."""

# A query as the source of an INSERT into its own table would be put by first; the same as a value is not.
_NUMBER = "(SELECT COALESCE(MAX(number), 0) + 1 FROM snapshots WHERE key = ?)"
_APPEND = f"INSERT INTO snapshots (key, number, at, doc) VALUES (?, {_NUMBER}, ?, ?) RETURNING number"
_COLUMNS = "SELECT number, at, doc FROM snapshots"
_DOCS = "SELECT doc FROM snapshots WHERE key = ? AND doc <> '' ORDER BY number"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a resource's default version said from one instant on."""

    number: int
    at: str
    attrs: dict[str, Any]


def record(db: Connection, key: str, at: str, doc: str) -> int:
    """Append a snapshot of the resource with this key, and return its number."""
    found = db.one(_APPEND, (key, key, at, doc))
    assert found is not None
    return int(found[0])


def record_line(db: Connection, key: str, at: str, docs: list[str]) -> list[int]:
    """Append a history, the oldest first, whose last is what holds now, and return the numbers that are new.

    What the log has of it in this order already stays as it is. From the first that is missing on all are appended, so
    that the log has them in their order, and the same again adds nothing.
    """
    log = [_plain(doc) for (doc,) in db.execute(_DOCS, (key,))]
    places: dict[bytes, list[int]] = {}
    for number, value in enumerate(log):
        places.setdefault(value, []).append(number)
    line = [next(same) for _, same in groupby(docs, _plain)]  # one that says what the one before says is no change
    values = [_plain(doc) for doc in line]
    place = there = 0
    for value in values[:-1]:
        found = places.get(value, [])
        following = bisect_left(found, place)
        if following == len(found):
            break
        place, there = found[following] + 1, there + 1
    numbers = []
    for doc, value in zip(line[there:], values[there:], strict=True):
        if not log or log[-1] != value:
            numbers.append(record(db, key, at, doc))
            log.append(value)
    return numbers


def _plain(doc: str) -> bytes:
    """Return what two texts of one value share: the order of its members is nobody's choice."""
    return orjson.dumps(orjson.loads(doc), option=orjson.OPT_SORT_KEYS)


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


def remove(db: Connection, xid: str, number: int, at: str, correlation: str) -> None:
    """Take one snapshot out of a log, and record that as a change of its own; `readonly` where it is another's log.

    Its number stays taken.
    """
    key = rows.resource_key(xid)
    row = rows.load(db, key)
    if row is not None and orjson.loads(row.doc).get("readonly"):
        raise RegistryError("readonly", xid)
    db.execute("UPDATE snapshots SET doc = '' WHERE key = ? AND number = ?", (key, number))
    events = orjson.dumps([event(DELETED, xid, number)]).decode()
    db.execute("INSERT INTO changes (at, correlation, events) VALUES (?, ?, ?)", (at, correlation, events))


def event(type_: str, xid: str, number: int, at: str = "") -> list[Any]:
    """Return what is recorded of a snapshot that came or went: a type, a subject, no names of attributes.

    `at` is its own time where that is not the time of the write: a copy keeps the one that its owner gave it.
    """
    return [type_, f"{xid}/snapshots/{number}", None, *([at] if at else [])]


def _one(db: Connection, sql: str, xid: str, *more: object) -> Snapshot | None:
    found = db.one(sql, (rows.resource_key(xid), *more))
    return Snapshot(found[0], found[1], orjson.loads(found[2])) if found else None
