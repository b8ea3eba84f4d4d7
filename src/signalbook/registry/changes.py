"""A log of what resources have said: each change of a default version appends one numbered snapshot.

Rule 1: which types are recorded is given from outside, by their `modelcompatiblewith`; nothing here knows a type.
Rule 2: a snapshot is written in the transaction of its change, never altered, and its number is never given again.
Rule 3: a write that leaves the attributes as they are is not a change; a history written at once adds what the log
does not have of it, so that the same again adds nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.registry import rows
from signalbook.registry.store import Connection, Store

__all__ = [
    "CREATED",
    "DELETED",
    "START",
    "Change",
    "Expand",
    "Position",
    "Snapshot",
    "event",
    "find",
    "forget",
    "forget_below",
    "latest",
    "latest_snapshot",
    "listing",
    "parse_position",
    "read_changes",
    "record",
    "record_line",
    "remove",
    "said_below",
    "trim",
]

# The record of changes, read from any point on: what a follower asks for, and how long it is kept.
#
# Rule 1: a position names the change it stands behind by number and by name. Numbers alone come again where an older
# copy of a store is put in its place; so the position of another catalog, or of a history that was undone, is
# recognised.
# Rule 2: writers are serialised, so numbers grow in the order of the commits: whoever reads behind a position misses
# nothing and sees nothing twice.
# Rule 3: what is trimmed is gone from the front, never from the middle, and the newest change always stays.


Recorded = list[Any]
Expand = Callable[[list[Recorded]], list[Recorded]]
"""From the recorded events of one request, `[type, subject, changed]` each, to those that a reader is shown.

An event may have a fourth part: its own time, where that is not the time of the request.
"""

_TEXT = re.compile(r"([1-9][0-9]{0,17})\.([0-9]{1,9})\.([0-9A-Za-z-]{1,64})")
_ROWS = 50
_TRIMMED = 500


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two events: behind `done` events of the change number `seq`, whose name is `name`."""

    seq: int = 0
    done: int = 0
    name: str = ""

    def __str__(self) -> str:
        return f"{self.seq}.{self.done}.{self.name}" if self.seq else "0"


START = Position()
"""The place before everything."""


@dataclass(frozen=True, slots=True)
class Change:
    """One event as it was recorded; `position` is the place behind it."""

    position: Position
    at: str
    correlation: str
    type: str
    subject: str
    changed: list[str] | None


def parse_position(text: str, path: str) -> Position:
    """Return the position that a text names; `unknown_cursor` where it names none."""
    if text == "0":
        return START
    found = _TEXT.fullmatch(text)
    if found is None:
        raise RegistryError("unknown_cursor", path, cursor=text[:100])
    return Position(int(found[1]), int(found[2]), found[3])


def latest(db: Connection, expand: Expand) -> Position:
    """Return the place behind everything."""
    found = db.one("SELECT seq, correlation, events FROM changes ORDER BY seq DESC LIMIT 1")
    return START if found is None else Position(found[0], len(expand(orjson.loads(found[2]))), found[1])


def read_changes(db: Connection, after: Position, limit: int, expand: Expand, path: str = "/changes") -> list[Change]:
    """Return up to `limit` events behind a position.

    `feed_trimmed` where some of them are not kept any more, `unknown_cursor` where the position is another catalog's.
    """
    _check(db, after, expand, path)
    found: list[Change] = []
    for change in _behind(db, after, expand):
        if len(found) == limit:
            break
        found.append(change)
    return found


def _behind(db: Connection, after: Position, expand: Expand) -> Iterator[Change]:
    low, done = after.seq, after.done
    rows = db.execute("SELECT seq, at, correlation, events FROM changes WHERE seq = ?", (low,))
    while True:
        for seq, at, correlation, text in rows:
            low = seq
            for number, (type_, subject, changed, *own) in enumerate(expand(orjson.loads(text))[done:], done + 1):
                time = own[0] if own else at
                yield Change(Position(seq, number, correlation), time, correlation, type_, subject, changed)
            done = 0
        done = 0
        rows = db.execute(
            "SELECT seq, at, correlation, events FROM changes WHERE seq > ? ORDER BY seq LIMIT ?", (low, _ROWS)
        )
        if not rows:
            return


def _check(db: Connection, after: Position, expand: Expand, path: str) -> None:
    trimmed = _trimmed(db)
    if after == trimmed:
        return
    found = db.one("SELECT correlation, events FROM changes WHERE seq = ?", (after.seq,)) if after.seq else None
    if found is None:
        if after.seq <= trimmed.seq:
            raise RegistryError("feed_trimmed", path, cursor=after)
        raise RegistryError("unknown_cursor", path, cursor=after)
    if found[0] != after.name or after.done > len(expand(orjson.loads(found[1]))):
        raise RegistryError("unknown_cursor", path, cursor=after)


def _trimmed(db: Connection) -> Position:
    """Return the place behind the last change that was trimmed."""
    found = db.one("SELECT value FROM settings WHERE name = 'trimmed'")
    return parse_position(str(found[0]), "/changes") if found is not None else START


def trim(store: Store, before: str, expand: Expand, keep: int | None = None) -> int:
    """Forget the changes made before an instant, and return how many they were.

    Those from number `keep` on stay, for somebody waits for them; so does the newest.
    """
    total = 0
    while True:
        gone = store.write(lambda db: _trim_some(db, before, expand, keep))
        total += gone
        if gone < _TRIMMED:
            return total


def _trim_some(db: Connection, before: str, expand: Expand, keep: int | None) -> int:
    oldest = db.execute("SELECT seq, at, correlation, events FROM changes ORDER BY seq LIMIT ?", (_TRIMMED + 1,))
    doomed = []
    for seq, at, correlation, text in oldest[:-1][:_TRIMMED]:
        if at >= before or (keep is not None and seq >= keep):
            break
        doomed.append((seq, correlation, text))
    if doomed:
        seq, correlation, text = doomed[-1]
        last = Position(seq, len(expand(orjson.loads(text))), correlation)
        db.execute("DELETE FROM changes WHERE seq <= ?", (seq,))
        db.execute(
            "INSERT INTO settings (name, value) VALUES ('trimmed', ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (str(last),),
        )
    return len(doomed)


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
    log = [_sorted_json(doc) for (doc,) in db.execute(_DOCS, (key,))]
    places: dict[bytes, list[int]] = {}
    for number, value in enumerate(log):
        places.setdefault(value, []).append(number)
    line = [
        next(same) for _, same in groupby(docs, _sorted_json)
    ]  # one that says what the one before says is not a change
    values = [_sorted_json(doc) for doc in line]
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


def _sorted_json(doc: str) -> bytes:
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


def latest_snapshot(db: Connection, xid: str) -> Snapshot | None:
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


def said_below(db: Connection, group_xid: str, containing: str = "") -> Iterator[dict[str, Any]]:
    """Yield what the resources of a group say or have said, each once in any of its snapshots that has this text."""
    sql = "SELECT DISTINCT doc FROM snapshots WHERE key > ? AND key < ? AND doc <> '' AND doc LIKE ?"
    for (doc,) in db.execute(sql, (*rows.range_of(rows.RESOURCE, group_xid), f"%{containing}%")):
        yield orjson.loads(doc)
    sql = "SELECT xref FROM entities WHERE key > ? AND key < ? AND xref IS NOT NULL"
    for (xref,) in db.execute(sql, rows.range_of(rows.RESOURCE, group_xid)):
        found = latest_snapshot(db, xref)
        if found is not None:
            yield found.attrs


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
