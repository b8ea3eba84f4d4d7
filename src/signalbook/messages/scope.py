"""`Scope`: the definitions that a message is tested against, with an index on their keys for each kind of message.

Rule 1: an alias and its target are one definition: the target where it is in scope, else the alias.
Rule 2: an index is made when the first message of its kind comes; what it finds is a superset of what holds.
Rule 3: the order of the definitions changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from signalbook.messages.compiled import Compiled, Limits
from signalbook.messages.key_index import KeyIndex
from signalbook.messages.observed import Kind
from signalbook.messages.swift import SwiftRoad

__all__ = ["Entry", "Scope"]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A definition in a scope, under the limits of an endpoint where it is there through one."""

    compiled: Compiled
    limits: Limits | None = None

    @property
    def xid(self) -> str:
        """The definition's own name, which may be an alias."""
        return self.compiled.definition.xid

    @property
    def identity(self) -> str:
        """The name of the definition that it is."""
        return self.compiled.definition.identity


class Scope:
    """Entries, and an index for each kind of message."""

    __slots__ = ("_indexes", "_swift", "entries")

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(_one_each(entries))
        self._swift: SwiftRoad | None = None
        self._indexes: dict[tuple[Kind, str | None], KeyIndex] = {}

    @property
    def swift(self) -> SwiftRoad:
        """The road for bare events that match."""
        if self._swift is None:
            self._swift = SwiftRoad(self.index(Kind.BARE, None))
        return self._swift

    def index(self, kind: Kind, protocol: str | None) -> KeyIndex:
        """The index for messages of a kind that come over a protocol."""
        found = self._indexes.get((kind, protocol))
        if found is None:
            plans = (entry.compiled.plan(kind, protocol, entry.limits) for entry in self.entries)
            found = self._indexes[kind, protocol] = KeyIndex(plans)
        return found


def _one_each(entries: Iterable[Entry]) -> Iterator[Entry]:
    """One entry for each definition, or for each endpoint's limits where all of its entries have some."""
    known: dict[str, list[Entry]] = {}
    for entry in entries:
        known.setdefault(entry.identity, []).append(entry)
    for identity in sorted(known):
        same = sorted(known[identity], key=lambda entry: (entry.xid != identity, entry.xid))
        free = next((entry for entry in same if entry.limits is None), None)
        if free is not None:
            # What an endpoint would add no longer counts, but the name does: the target's before an alias's.
            yield Entry(same[0].compiled)
        else:
            limited: dict[Limits | None, Entry] = {}
            for entry in same:
                limited.setdefault(entry.limits, Entry(same[0].compiled, entry.limits))
            yield from limited.values()
