"""Logs of snapshots as they travel between catalogs: page by page, with the numbers that the owner gave.

Rule 1: a snapshot has the same number at every copy, so a version URI names the same document wherever it is asked for.
Rule 2: a page is bounded by number and by bytes. The newest comes first, with its resource; a target that lacks more
says before which number, so that a change of a long log costs one page.
Rule 3: what a log holds is told by a digest of its numbers and times: a snapshot is never altered, and one to which an
undone history gave the same number has another time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from signalbook.document.model import ResourceType
from signalbook.document.rules import Subject, check
from signalbook.errors import RegistryError
from signalbook.registry import incoming, snapshots
from signalbook.registry.replica_alike import with_authority
from signalbook.registry.spellings import canonical
from signalbook.registry.store import Connection

__all__ = ["LogPage", "adapted", "log_digest", "page_of", "put_page"]

Json = dict[str, Any]
_MOST_SNAPSHOTS = 200
_MOST_BYTES = 256 << 10
_BEHIND_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class LogPage:
    """The snapshots of a resource before a number (0: the newest), the oldest first; the `end` is where none are older.

    Each is its number, its time and what it says; None where it was taken away and its number stays taken.
    """

    digest: str
    before: int
    end: bool
    snapshots: tuple[tuple[int, str, Json | None], ...]

    def to_dict(self) -> Json:
        """Return the page as it travels."""
        return {"digest": self.digest, "before": self.before, "end": self.end, "snapshots": list(self.snapshots)}

    @classmethod
    def from_dict(cls, value: Any) -> LogPage:
        """Return the page that came in; `ValueError` where it is none."""
        try:
            page = cls(
                value["digest"], value["before"], value["end"],
                tuple((number, at, said) for number, at, said in value["snapshots"]),
            )  # fmt: skip
        except (TypeError, KeyError, ValueError):
            raise ValueError("its log needs digest, before, end and snapshots") from None
        numbers = [number for number, _, _ in page.snapshots]
        texts = (page.digest, *(at for _, at, _ in page.snapshots))
        if not all(isinstance(text, str) and len(text) <= 100 for text in texts) or not isinstance(page.end, bool):
            raise ValueError("the times of its log must be short texts")
        if not all(incoming.uinteger(number) and number < _BEHIND_ALL for number in (page.before, *numbers)):
            raise ValueError("the numbers of its log must be uintegers")
        if numbers != sorted(set(numbers)) or (page.before and numbers and numbers[-1] >= page.before):
            raise ValueError("its log must be in the order of its numbers")
        if not (numbers or page.end) or not all(said is None or isinstance(said, dict) for *_, said in page.snapshots):
            raise ValueError("its log must hold objects or nulls")
        return page


def page_of(db: Connection, key: str, before: int = 0) -> LogPage | None:
    """Return the page of a log that ends before a number; None where the resource has no log."""
    found = db.execute(
        "SELECT number, at, doc FROM snapshots WHERE key = ? AND number < ? ORDER BY number DESC LIMIT ?",
        (key, before or _BEHIND_ALL, _MOST_SNAPSHOTS + 1),
    )
    if not found and not before:
        return None
    shown: list[tuple[int, str, Json | None]] = []
    size = 0
    for number, at, doc in found[:_MOST_SNAPSHOTS]:
        size += len(doc)
        if shown and size > _MOST_BYTES:
            break
        shown.append((number, at, orjson.loads(doc) if doc else None))
    shown.reverse()
    end = len(shown) == len(found)
    digest = log_digest((number, at, said is not None) for number, at, said in shown) if end and not before else None
    return LogPage(digest or _digest_of(db, key), before, end, tuple(shown))


def adapted(kind: ResourceType, said: Json, authority: str, xid: str) -> Json:
    """Return what a snapshot says as it says it here: it names its authority, and keeps the rules of its type.

    Rules that look at other entities are not asked: what is said of those was so once.
    """
    named = with_authority(kind, {"versions": {"": said}}, authority)["versions"][""]
    attrs = kind.version_level.normalise(canonical(kind, named, xid), xid)
    for problem in check(kind.modelcompatiblewith, "version", Subject(xid=xid, attrs=attrs), "error"):
        raise RegistryError(problem.code, xid, **dict(problem.args))
    return attrs


def put_page(
    db: Connection, key: str, xid: str, page: LogPage, as_here: Callable[[Json], Json], now: str
) -> tuple[list[list[Any]], int]:
    """Make a part of a log what its owner has; return the events of that, and before which number more is needed.

    `as_here` makes of what a snapshot says what it says here; one without a time has the one that it came at, `now`.
    """
    wanted = {
        number: (at, "" if said is None else orjson.dumps(as_here(said)).decode())
        for number, at, said in page.snapshots
    }
    low = 0 if page.end else min(wanted)
    here: dict[int, tuple[str, str]] = {
        number: (at, doc)
        for number, at, doc in db.execute(
            "SELECT number, at, doc FROM snapshots WHERE key = ? AND number >= ? AND number < ?",
            (key, low, page.before or _BEHIND_ALL),
        )
    }
    for number in [number for number, (at, _) in wanted.items() if not at]:
        wanted[number] = (here[number][0] if number in here else now, wanted[number][1])
    gone = [number for number in here if number not in wanted]
    changed = [number for number, one in wanted.items() if number not in here or not _is_same(here[number], one)]
    db.executemany("DELETE FROM snapshots WHERE key = ? AND number = ?", [(key, number) for number in gone])
    db.executemany(_PUT, [(key, number, *wanted[number]) for number in changed])
    events = [snapshots.event(snapshots.DELETED, xid, number) for number in gone if here[number][1]]
    events += [
        snapshots.event(snapshots.CREATED, xid, number, wanted[number][0]) for number in changed if wanted[number][1]
    ]
    if page.end:
        return events, 0
    rewritten = any(number in here for number in changed)
    return events, low if rewritten or _digest_of(db, key) != page.digest else 0


_PUT = (
    "INSERT INTO snapshots (key, number, at, doc) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (key, number) DO UPDATE SET at = excluded.at, doc = excluded.doc"
)


def _is_same(here: tuple[str, str], wanted: tuple[str, str]) -> bool:
    if here == wanted:
        return True
    if here[0] != wanted[0] or not (here[1] and wanted[1]):
        return False
    return bool(orjson.loads(here[1]) == orjson.loads(wanted[1]))


def _digest_of(db: Connection, key: str) -> str:
    found = db.execute(
        "SELECT number, at, CASE WHEN doc = '' THEN 0 ELSE 1 END FROM snapshots WHERE key = ? ORDER BY number", (key,)
    )
    return log_digest((number, at, bool(is_there)) for number, at, is_there in found)


def log_digest(parts: Iterable[tuple[int, str, bool]]) -> str:
    """Return a name for what a log holds: its numbers, their times and whether they are still there."""
    text = "".join(f"{number} {at} {int(is_there)}\n" for number, at, is_there in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
