"""The index of attribute values: which entities may have a value that a filter asks for.

Rule 1: it only proposes. An entry too many costs a look at its entity; an entry too few would lose an answer.
Rule 2: the values of one entity lie all over `attrs`, a page of the database each. So a small write leaves what it
changes there in one row of `recent`, and every `FOLD`th such row enters them all, in order. A large write enters its
own at once, behind those that wait.
Rule 3: a term that a write itself looks for is entered in `attrs` as well by each write (`at_once`): a write reads
nothing of `recent`, which would cost it as much as all the rest.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from signalbook.registry.store import Connection

__all__ = ["FOLD", "Entry", "enter", "find", "find_entered", "fold"]

FOLD = 512
FEW = 8
_CHUNK = 200

_NOTE = "INSERT INTO recent (key, fresh, stale) VALUES (?, ?, ?) RETURNING seq"
_ADD = "INSERT INTO attrs (term, key) VALUES (?, ?) ON CONFLICT DO NOTHING"
_REMOVE = "DELETE FROM attrs WHERE term = ? AND key = ?"


class Entry(NamedTuple):
    """What a write changes in the index for one entity: the terms it has got, and those it has lost.

    Those of `fresh` that are in `at_once` do not wait.
    """

    key: str
    fresh: Sequence[int]
    stale: Sequence[int]
    at_once: Sequence[int] = ()


def enter(db: Connection, entries: Sequence[Entry]) -> None:
    """Take the changes of one request in."""
    if len(entries) > FEW:
        fold(db)
        _apply(db, entries)
        return
    for key, fresh, stale, at_once in entries:
        if at_once:
            db.executemany(_ADD, [(term, key) for term in at_once])
        noted = db.one(_NOTE, (key, _bytes(fresh), _bytes(stale)))
        if noted is not None and noted[0] % FOLD == 0:
            fold(db)


def find(db: Connection, term: int, low: str, high: str) -> set[str]:
    """Return the keys between two bounds that may have a term."""
    found = {
        key for (key,) in db.execute("SELECT key FROM attrs WHERE term = ? AND key > ? AND key < ?", (term, low, high))
    }
    wanted = _bytes([term])
    for key, fresh in db.execute("SELECT key, fresh FROM recent WHERE key > ? AND key < ?", (low, high)):
        if wanted in fresh:
            found.add(key)
    return found


def find_entered(db: Connection, terms: Collection[int]) -> set[str]:
    """Return the keys that may have one of these terms, of which all writes enter each at once."""
    wanted = sorted(terms)
    found: set[str] = set()
    for start in range(0, len(wanted), _CHUNK):
        chunk = tuple(wanted[start : start + _CHUNK])
        places = ", ".join("?" * len(chunk))
        found.update(key for (key,) in db.execute(f"SELECT key FROM attrs WHERE term IN ({places})", chunk))
    return found


def fold(db: Connection) -> None:
    """Enter everything that waits in `recent`."""
    waiting = db.execute("SELECT key, fresh, stale FROM recent ORDER BY seq")
    if waiting:
        _apply(db, (Entry(key, _numbers(fresh), _numbers(stale)) for key, fresh, stale in waiting))
        db.execute("DELETE FROM recent")


def _apply(db: Connection, entries: Iterable[Entry]) -> None:
    last: dict[tuple[int, str], bool] = {}
    for key, fresh, stale, _ in entries:
        last.update(((term, key), False) for term in stale)
        last.update(((term, key), True) for term in fresh)
    ordered = sorted(last)
    db.executemany(_REMOVE, [pair for pair in ordered if not last[pair]])
    db.executemany(_ADD, [pair for pair in ordered if last[pair]])


def _bytes(terms: Sequence[int]) -> bytes:
    return array("q", terms).tobytes()


def _numbers(packed: bytes) -> array[int]:
    numbers = array("q")
    numbers.frombytes(bytes(packed))
    return numbers
