"""The record of changes, read from any point on: what a follower asks for, and how long it is kept.

Rule 1: a position names the change it stands behind by number and by name. Numbers alone come again where an older copy
of a store is put in its place; so the position of another catalog, or of a history that was undone, is recognised.
Rule 2: writers are serialised, so numbers grow in the order of the commits: whoever reads behind a position misses
nothing and sees nothing twice.
Rule 3: what is trimmed is gone from the front, never from the middle, and the newest change always stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.registry.store import Connection, Store

__all__ = ["START", "Change", "Expand", "Position", "latest", "parse_position", "read_changes", "trim"]

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
