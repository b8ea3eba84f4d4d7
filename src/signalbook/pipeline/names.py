"""Names of tables: a message's group is the schema, its id the table.

Rule 1: capitals become small letters, whatever is no letter a-z, digit or `_` becomes `_`, and `_` goes from the front.
Rule 2: where that gives two messages one name, or a name is too long or taken, `_` and eight hex digits of the
SHA-256 of the message's xid follow. Who has a table in the lake already keeps its name.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping

__all__ = ["DEAD_LETTERS", "table_names", "table_path"]

DEAD_LETTERS = "signalbook/dead_letters"
_LONGEST = 100
_strange = re.compile("[^a-z0-9_]").sub


def table_names(xids: Iterable[str], owners: Mapping[str, str] | None = None) -> dict[str, str]:
    """The path `schema/table` of each message; `owners` are the messages whose tables a lake has, by their paths.

    >>> table_names(["/messagegroups/Fleet/messages/car.moved"])
    {'/messagegroups/Fleet/messages/car.moved': 'fleet/car_moved'}
    """
    owners = owners or {}
    plain = {xid: table_path(xid) for xid in xids}
    often = Counter(plain.values())
    first: dict[str, str] = {}
    for xid in sorted(plain):
        first.setdefault(plain[xid], xid)
    names = {}
    for xid, path in plain.items():
        owner = owners.get(path, first[path] if often[path] > 1 else xid)
        names[xid] = path if owner == xid and path != DEAD_LETTERS else _with_mark(path, xid, often)
    return names


def table_path(xid: str) -> str:
    """The path of a message's table where nobody else has it."""
    _, _, group, _, message = xid.split("/", 4)
    return f"{_plain(group)}/{_plain(message)}"


def _plain(name: str) -> str:
    simple = _strange("_", name.lower()).lstrip("_") or "x"
    if len(simple) <= _LONGEST:
        return simple
    return f"{simple[:_LONGEST]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _with_mark(path: str, xid: str, taken: Container[str]) -> str:
    digits = hashlib.sha256(xid.encode()).hexdigest()
    return next(name for length in (8, 16, 64) if (name := f"{path}_{digits[:length]}") not in taken)
