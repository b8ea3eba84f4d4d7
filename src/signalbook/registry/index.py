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
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from signalbook.registry.filters import Clause, fold
from signalbook.registry.flags import join_name
from signalbook.registry.store import Connection

__all__ = [
    "AT_ONCE",
    "FOLD",
    "UNINDEXED",
    "Entry",
    "differences",
    "enter",
    "find",
    "find_entered",
    "fold_recent",
    "lookup",
    "numbers",
    "term",
    "terms",
]

# The inverted index: which versions carry an attribute with a value.
#
# Rule: an index entry is a 64-bit number made from type, path and folded value. It only proposes candidates; whoever
# uses
# it tests the entity itself, so two values that share a number cost time and never correctness.


# prose, addresses and schemas: hardly ever filtered by equality, and each entry costs a page on every write
UNINDEXED = frozenset({"description", "documentation", "icon", "specurl", "dataschema"})
# what a write itself looks for: the definitions that derive from those it changes
AT_ONCE = frozenset({"basemessage"})
# what the server keeps in columns of its own
_COLUMNS = frozenset(
    {"versionid", "self", "shortself", "xid", "epoch", "isdefault", "createdat", "modifiedat", "ancestorid"}
    | {"metaurl", "meta", "versionsurl", "versionscount"}
)
_FLAGS = frozenset({"true", "false"})  # half of everything is true: no index helps


Terms = set[tuple[str, str]]


def term(type_: str, path: str, folded: str) -> int:
    """Return the number of one attribute value."""
    digest = blake2b(f"{type_}\n{path}\n{folded}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def terms(attrs: Mapping[str, Any]) -> Terms:
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
            if folded not in _FLAGS:
                found.add((_joined(prefix, name), folded))
        elif kind is dict:
            _collect(found, _joined(prefix, name), value)
        elif kind is int or kind is float:
            found.add((_joined(prefix, name), fold(value)))


_joined = lru_cache(maxsize=8192)(join_name)  # the same few hundred paths, in every version


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Terms, Terms]:
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
                    _compare(stale, fresh, _joined(prefix, name), old, new)
                continue
            if old == new:
                continue
        _collect(stale, prefix, {name: old})
        if new is not None:
            _collect(fresh, prefix, {name: new})
    for name, new in after.items():
        if name not in before:
            _collect(fresh, prefix, {name: new})


def numbers(type_: str, wanted: Terms) -> list[int]:
    """Return the numbers of these values."""
    return [term(type_, path, folded) for path, folded in wanted]


def lookup(type_: str, clause: Clause) -> int | None:
    """Return the number to look a clause up by; None where no index helps."""
    wanted = clause.index_term()
    if wanted is None or clause.head in _COLUMNS or wanted[1] in _FLAGS:
        return None
    if not UNINDEXED.isdisjoint(step for step in clause.path if isinstance(step, str)):
        return None
    return term(type_, *wanted)


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
        fold_recent(db)
        _apply(db, entries)
        return
    for key, fresh, stale, at_once in entries:
        if at_once:
            db.executemany(_ADD, [(term, key) for term in at_once])
        noted = db.one(_NOTE, (key, _bytes(fresh), _bytes(stale)))
        if noted is not None and noted[0] % FOLD == 0:
            fold_recent(db)


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


def fold_recent(db: Connection) -> None:
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
