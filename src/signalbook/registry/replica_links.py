"""How far replications have come, and what they could not copy: kept in the target, written with the entries.

Rule: a conflict or a refusal is kept until the entity is written, is as it should be, or is not at the source any more.
So each run can try it again, and none is told once and then forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from signalbook.registry import rows
from signalbook.registry.store import Connection

__all__ = [
    "MOST_PROBLEMS", "Link", "Outcome", "Result", "forget_problems", "key_of", "link_of", "marks_of", "meet", "note",
    "problems_of", "save_link",
]  # fmt: skip

Json = dict[str, Any]
Outcome = Literal["written", "deleted", "same", "ours", "stale", "absent", "conflict", "refused"]
MOST_PROBLEMS = 1000
"""How many problems of a replication are told and tried again at once."""
_PROBLEMS = ("conflict", "refused")
_MOST_WORDS = 1000


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one entry, and why where it was not written.

    `wants` is before which number its log lacks some, `source` its xid at the source.
    """

    xid: str
    outcome: Outcome
    detail: str = ""
    wants: int = 0
    source: str = ""

    def to_dict(self) -> Json:
        """Return the result as JSON values."""
        found: Json = {"xid": self.xid, "outcome": self.outcome, "detail": self.detail}
        return found | {name: one for name, one in (("wants", self.wants), ("source", self.source)) if one}


@dataclass(frozen=True, slots=True)
class Link:
    """How far one replication has come: its cursor at the source, and the number of its latest comparison."""

    name: str
    cursor: str = ""
    number: int = 0


def key_of(xid: str) -> str:
    """Return the key under which an entity is known."""
    return (rows.GROUP if xid.count("/") == 2 else rows.RESOURCE) + xid.lower()


def link_of(db: Connection, name: str) -> Link:
    """Return how far a replication has come."""
    found = db.one("SELECT cursor, pass FROM replica_links WHERE link = ?", (name,))
    return Link(name, *found) if found is not None else Link(name)


def save_link(db: Connection, link: Link) -> None:
    """Write down how far a replication has come."""
    db.execute(
        "INSERT INTO replica_links (link, cursor, pass) VALUES (?, ?, ?)"
        " ON CONFLICT (link) DO UPDATE SET cursor = excluded.cursor, pass = excluded.pass",
        (link.name, link.cursor, link.number),
    )


def marks_of(db: Connection, xids: Iterable[str]) -> dict[str, str]:
    """Return the marks that the source showed when these entities were read there."""
    found = {}
    for xid in xids:
        row = db.one("SELECT mark FROM replicas WHERE key = ? AND gone = 0", (key_of(xid),))
        if row is not None:
            found[xid] = str(row[0])
    return found


def meet(db: Connection, link: Link, xids: Iterable[str]) -> None:
    """Note that a comparison met copies that are as they should be, or that could not be made so."""
    db.executemany(
        "UPDATE replicas SET pass = ? WHERE key = ? AND link = ? AND pass < ?",
        [(link.number, key_of(xid), link.name, link.number) for xid in xids],
    )


# ---- what could not be copied


def note(db: Connection, link: Link, results: Iterable[Result]) -> None:
    """Keep the conflicts and refusals among results, and forget those of entities that had another outcome."""
    wrong, settled = [], []
    for one in results:
        source = one.source or one.xid
        key = key_of(source)
        if one.outcome in _PROBLEMS:
            wrong.append((link.name, key, source, one.outcome, one.detail[:_MOST_WORDS], link.number))
        else:
            settled.append((link.name, key))
    db.executemany(_KEEP, wrong)
    if settled and db.one("SELECT 1 FROM replica_problems WHERE link = ? LIMIT 1", (link.name,)) is not None:
        db.executemany("DELETE FROM replica_problems WHERE link = ? AND key = ?", settled)


def problems_of(db: Connection, name: str) -> list[Json]:
    """Return what a replication could not copy, the first of it, by the xids at the source."""
    found = db.execute(
        "SELECT xid, outcome, detail FROM replica_problems WHERE link = ? ORDER BY key LIMIT ?", (name, MOST_PROBLEMS)
    )
    return [{"xid": xid, "outcome": outcome, "detail": detail} for xid, outcome, detail in found]


def forget_problems(db: Connection, link: Link) -> None:
    """Forget the problems of entities that the latest comparison did not meet."""
    db.execute("DELETE FROM replica_problems WHERE link = ? AND pass < ?", (link.name, link.number))


_KEEP = (
    "INSERT INTO replica_problems (link, key, xid, outcome, detail, pass) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (link, key) DO UPDATE SET xid = excluded.xid, outcome = excluded.outcome,"
    " detail = excluded.detail, pass = excluded.pass"
)
