"""The inverted index: which versions carry an attribute with a value.

Rule: an index entry is a 64-bit number made from type, path and folded value. It only proposes candidates; whoever uses
it tests the entity itself, so two values that share a number cost time and never correctness.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from signalbook.registry.filters import Clause, fold
from signalbook.registry.paths import join_name

__all__ = ["AT_ONCE", "UNINDEXED", "differences", "lookup", "numbers", "term", "terms"]

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
