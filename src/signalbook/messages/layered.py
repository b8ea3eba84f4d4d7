"""Maps and sorted rows of which another state is made at the cost of what differs, while the one before stays as it is.

Rule 1: nothing here changes once it is made. `changed`, `put` and `take` give another, and both share what is the same.
Rule 2: a map is one large dictionary, a smaller one above it with what differs, and above that a small one. Where one
is no longer small it becomes one with the next: each change bears a part of that cost, which grows with the root of the
size.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import chain, islice
from math import isqrt
from typing import Any, Generic, TypeVar, overload

__all__ = ["GONE", "Changes", "Layered", "Lock", "Rows", "around", "duplicate", "place_in", "put", "rows_of", "take"]

Lock = AbstractContextManager[Any]
"""What is held while something is made once; whoever asks from several threads gives one that threads wait for."""

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class _Mark:
    """A value that nobody else has."""

    __slots__ = ()


GONE: Any = _Mark()
"""In the changes of a map: the key has no value any more."""

T = TypeVar("T")


def duplicate(one: T) -> T:
    """Another object with the same attributes, which are not copied; `copy.copy` does that in five times the time."""
    found = object.__new__(one.__class__)
    if hasattr(one, "__dict__"):
        found.__dict__.update(one.__dict__)
    for name in getattr(one, "__slots__", ()):
        setattr(found, name, getattr(one, name))
    return found


_UNKNOWN: Any = _Mark()
_SMALL = 256
_FEW = 32


class Layered(Mapping[K, V]):
    """A map that never changes."""

    __slots__ = ("_above", "_below", "_between", "_size")

    def __init__(self, below: dict[K, V] | None = None) -> None:
        """The map of a dictionary, which is handed over: whoever gave it changes it no more."""
        self._below: dict[K, V] = {} if below is None else below
        self._between: dict[K, V] = {}
        self._above: dict[K, V] = {}
        self._size = len(self._below)

    def changed(self, changes: Mapping[K, V]) -> Layered[K, V]:
        """The map with other values for some keys; `GONE` leaves a key out."""
        if not changes:
            return self
        found: Layered[K, V] = Layered(self._below)
        found._size = self._size
        for key, value in changes.items():
            found._size += (value is not GONE) - (key in self)
        found._between = self._between
        found._above = {**self._above, **changes}
        if len(found._above) > _FEW:
            found._between = {**self._between, **found._above}
            found._above = {}
        if len(found._between) > max(_SMALL, 4 * isqrt(len(self._below))):
            found._below = {**self._below, **found._between}
            for key in [key for key, value in found._between.items() if value is GONE]:
                del found._below[key]
            found._between = {}
        return found

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...
    def get(self, key: K, /, default: Any = None) -> Any:
        """The value of a key."""
        found = self._above.get(key, _UNKNOWN) if self._above else _UNKNOWN
        if found is _UNKNOWN and self._between:
            found = self._between.get(key, _UNKNOWN)
        if found is _UNKNOWN:
            return self._below.get(key, default)
        return default if found is GONE else found

    def __getitem__(self, key: K) -> V:
        found = self.get(key, _UNKNOWN)
        if found is _UNKNOWN:
            raise KeyError(key)
        return found

    def __contains__(self, key: Any) -> bool:
        return self.get(key, _UNKNOWN) is not _UNKNOWN

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[K]:
        below = self._below
        above = {**self._between, **self._above}
        if not above:
            return iter(below)
        return chain(
            (key for key in below if above.get(key) is not GONE),
            (key for key, value in above.items() if value is not GONE and key not in below),
        )


class Changes(Generic[K, V]):
    """Changes of a map that are not made yet."""

    __slots__ = ("_of", "changes")

    def __init__(self, of: Layered[K, V]) -> None:
        self._of = of
        self.changes: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value that a key is going to have."""
        found = self.changes.get(key)
        return self._of.get(key) if found is None else None if found is GONE else found

    def set(self, key: K, value: V) -> None:
        """Give a key another value; `GONE` takes it out."""
        self.changes[key] = value

    def made(self) -> Layered[K, V]:
        """The map with the changes."""
        return self._of.changed(self.changes)


# Rows in their order: a list where they are few, else many lists.
#
# Rule: a row is a tuple, or a text. Rows that begin alike stand together, and `take` and `around` are told a beginning.


Row = TypeVar("Row")
_CHUNK = 256


class Chunks(Generic[Row]):
    """Many rows: lists, each of which begins where the one before it ends."""

    __slots__ = ("lasts", "lists", "size")

    def __init__(self, lists: list[list[Row]], lasts: list[Row], size: int) -> None:
        self.lists = lists
        self.lasts = lasts
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(self.lists)

    def list_of(self, row: Any) -> int:
        """The number of the list in which a row stands, or would."""
        return min(bisect_left(self.lasts, row), len(self.lists) - 1)

    def with_list(self, number: int, held: list[Row]) -> Rows[Row]:
        """The same rows with another list in the place of one."""
        size = self.size + len(held) - len(self.lists[number])
        if size <= _CHUNK:
            return [*chain(chain.from_iterable(self.lists[:number]), held, *self.lists[number + 1 :])]
        half = len(held) // 2
        new = [held] if len(held) <= 2 * _CHUNK else [held[:half], held[half:]]
        new = [one for one in new if one]
        lists = [*self.lists[:number], *new, *self.lists[number + 1 :]]
        lasts = [*self.lasts[:number], *(one[-1] for one in new), *self.lasts[number + 1 :]]
        return Chunks(lists, lasts, size)


Rows = list[Row] | Chunks[Row]
"""Rows in their order; nobody changes the list."""


def rows_of(rows: Iterable[Row]) -> Rows[Row]:
    """The rows in their order."""
    found: list[Row] = sorted(rows)  # type: ignore[type-var]
    if len(found) <= 2 * _CHUNK:
        return found
    lists = [found[begin : begin + _CHUNK] for begin in range(0, len(found), _CHUNK)]
    return Chunks(lists, [one[-1] for one in lists], len(found))


def put(rows: Rows[Row], row: Row) -> Rows[Row]:
    """The rows with one more."""
    if isinstance(rows, list):
        found = _with(rows, row)
        return found if len(found) <= 2 * _CHUNK else rows_of(found)
    number = rows.list_of(row)
    return rows.with_list(number, _with(rows.lists[number], row))


def take(rows: Rows[Row], row: Any) -> Rows[Row]:
    """The rows without the one that is this, or begins with it; the same where there is none."""
    if isinstance(rows, list):
        return _without(rows, row)
    number = rows.list_of(row)
    held = rows.lists[number]
    left = _without(held, row)
    return rows if left is held else rows.with_list(number, left)


def place_in(rows: Rows[Row], row: Any) -> Row | None:
    """The row that is this, or begins with it."""
    held = rows if isinstance(rows, list) else rows.lists[rows.list_of(row)]
    at = bisect_left(held, row)
    return held[at] if at < len(held) and _begins(held[at], row) else None


def around(rows: Rows[Row], row: Any, before: int, most: int) -> list[Row]:
    """At most so many rows that stand about where a row would, of them so many before it."""
    if isinstance(rows, list):
        begin = max(0, bisect_left(rows, row) - before)
        return rows[begin : begin + most]
    number = rows.list_of(row)
    at = bisect_left(rows.lists[number], row)
    ahead = chain(
        reversed(rows.lists[number][:at]), *map(reversed, reversed(rows.lists[max(0, number - before) : number]))
    )
    found = list(islice(ahead, before))[::-1]
    behind = chain(rows.lists[number][at:], *rows.lists[number + 1 : number + 1 + most])
    return [*found, *islice(behind, most - len(found))]


def _with(held: list[Row], row: Row) -> list[Row]:
    at = bisect_left(held, row)  # type: ignore[call-overload]
    return [*held[:at], row, *held[at:]]


def _without(held: list[Row], row: Any) -> list[Row]:
    at = bisect_left(held, row)
    return [*held[:at], *held[at + 1 :]] if at < len(held) and _begins(held[at], row) else held


def _begins(held: Any, row: Any) -> bool:
    return bool(held[: len(row)] == row if isinstance(row, tuple) else held == row)
