"""The inverted index: which versions carry an attribute with a value.

Rule: an index entry is a 64-bit number made from type, path and folded value. It only proposes candidates; whoever uses
it tests the entity itself, so two values that share a number cost time and never correctness.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from signalbook.registry import filters
from signalbook.registry.filters import Clause

__all__ = ["MAX_TERMS", "UNINDEXED", "lookup", "term", "terms"]

MAX_TERMS = 64
# prose, addresses and schemas: hardly ever filtered by equality, and each entry costs a page on every write
UNINDEXED = frozenset({"description", "documentation", "icon", "specurl", "dataschema"})
# what the server keeps in columns of its own
_COLUMNS = frozenset(
    {"versionid", "self", "shortself", "xid", "epoch", "isdefault", "createdat", "modifiedat", "ancestorid"}
    | {"metaurl", "meta", "versionsurl", "versionscount"}
)
_FLAGS = frozenset({"true", "false"})  # half of everything is true: no index helps


def term(type_: str, path: str, folded: str) -> int:
    """Return the number of one attribute value."""
    digest = blake2b(f"{type_}\n{path}\n{folded}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def terms(type_: str, resource: tuple[str, str], attrs: Mapping[str, Any]) -> set[int]:
    """Return the numbers of everything in a version that a filter can look up; `resource` is its id's name and value."""
    found = {term(type_, resource[0], resource[1].lower())}
    slim = {name: value for name, value in attrs.items() if name not in UNINDEXED}
    for path, folded in filters.terms(slim):
        if folded not in _FLAGS and path.rpartition(".")[2] not in UNINDEXED:
            found.add(term(type_, path, folded))
            if len(found) > MAX_TERMS:
                return found | {term(type_, "", "")}
    return found


def lookup(type_: str, clause: Clause) -> tuple[int, int] | None:
    """Return the number to look a clause up by, and that of versions with too many values; None for a scan."""
    wanted = clause.index_term()
    if wanted is None or clause.head in _COLUMNS or wanted[1] in _FLAGS or not UNINDEXED.isdisjoint(wanted[0].split(".")):
        return None
    return term(type_, *wanted), term(type_, "", "")
