"""How far replications have come, and what they could not copy: kept in the target, written with the entries.

Rule: a conflict or a refusal is kept until the entity is written, is as it should be, or is not at the source any more.
So each run can try it again and report it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from signalbook.jsontext import Json
from signalbook.model.xids import kept_of
from signalbook.registry import rows
from signalbook.registry.store import Connection
from signalbook.replication.entries import EntryOrigin, ReplicaEntry

__all__ = [
    "GONE",
    "HERE",
    "LINGERING",
    "MOST_PROBLEMS",
    "ORIGIN",
    "Known",
    "Link",
    "Outcome",
    "ReplicaResult",
    "authority_of",
    "beside",
    "forget_problems",
    "home_of",
    "key_of",
    "known_keys",
    "known_of",
    "link_of",
    "marks_of",
    "meet",
    "note",
    "problems_of",
    "remember",
    "save_link",
    "set_readonly",
    "source_of",
    "taken",
]

Outcome = Literal["written", "deleted", "same", "ours", "stale", "absent", "conflict", "refused"]
MOST_PROBLEMS = 1000
"""How many problems of a replication are reported and tried again at once."""
HERE, GONE, LINGERING = 0, 1, 2  # the values of the column `gone`
ORIGIN = "catalog, authority, revision, at, home"
_PROBLEMS = ("conflict", "refused")
_MOST_WORDS = 1000
_CHUNK = 200


@dataclass(frozen=True, slots=True)
class ReplicaResult:
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
class Known:
    """What is known of a copy."""

    origin: EntryOrigin
    digest: str
    gone: int


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


def beside(db: Connection, catalog: str, xid: str) -> str | None:
    """Return the xid of the copy that is kept beside an entity's own name; None where there is none of this owner."""
    if xid.count("/") != 4:
        return None
    key, name = key_of(xid), xid.rpartition("/")[2].lower()
    found = db.execute(
        "SELECT xid, home FROM replicas WHERE key > ? AND key < ? AND catalog = ? AND gone = 0",
        (f"{key}~", f"{key}~g", catalog),
    )
    for other, home in found:
        id_ = other.rpartition("/")[2]
        if (kept_of(id_) or "").lower() == name and home.rpartition("/")[2].lower() == name:
            return str(other)
    return None


def place_of(db: Connection, catalog: str, xid: str) -> str:
    """Return where an owner's entity of this name is: there, or kept beside who has the name."""
    return beside(db, catalog, xid) or xid


def source_of(name: str) -> str:
    """Return the catalog that a replication reads from, which its name begins with."""
    return name.partition(" ")[0]


def authority_of(db: Connection, name: str) -> str:
    """Return the authority under which a replication's source is known here; empty where nothing came from it."""
    source = source_of(name)
    sql = "SELECT authority FROM replicas WHERE {} AND catalog = ? AND gone = 0 LIMIT 1"
    found = db.one(sql.format("link = ?"), (name, source)) or db.one(sql.format("1 = 1"), (source,))
    return str(found[0]) if found is not None else ""


def marks_of(db: Connection, name: str, xids: Iterable[str]) -> dict[str, str]:
    """Return the marks that a replication's source showed when these entities were read there."""
    found = {}
    for xid in xids:
        place = place_of(db, source_of(name), xid)
        row = db.one(f"SELECT mark, {ORIGIN} FROM replicas WHERE key = ? AND gone = 0", (key_of(place),))
        if row is not None and EntryOrigin(*row[1:]).is_of(source_of(name)):
            found[xid] = str(row[0])
    return found


def meet(db: Connection, link: Link, xids: Iterable[str]) -> None:
    """Note that a comparison met copies that are as they should be, or that could not be made so."""
    source = source_of(link.name)
    db.executemany(
        "UPDATE replicas SET pass = ? WHERE key = ? AND link = ? AND pass < ?",
        [(link.number, key_of(place_of(db, source, xid)), link.name, link.number) for xid in xids],
    )


def known_of(db: Connection, xid: str) -> Known | None:
    """Return what is known of the copy at an xid; None where there never was one."""
    found = db.one(f"SELECT {ORIGIN}, digest, gone FROM replicas WHERE key = ?", (key_of(xid),))
    return None if found is None else Known(EntryOrigin(*found[:5]), found[5], found[6])


def remember(db: Connection, link: Link, entries: Iterable[ReplicaEntry], digest: str = "", gone: int = HERE) -> None:
    """Write down what is known of copies now."""
    db.executemany(_REMEMBER, [_row(link, entry, digest, gone) for entry in entries])


def _row(link: Link, entry: ReplicaEntry, digest: str, gone: int) -> tuple[str | int, ...]:
    origin = entry.origin
    return (
        key_of(entry.xid), entry.xid, origin.catalog, origin.authority, origin.revision, origin.at, origin.home,
        link.name, link.number, entry.mark, digest, gone,
    )  # fmt: skip


_REMEMBER = (
    f"INSERT INTO replicas (key, xid, {ORIGIN}, link, pass, mark, digest, gone)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET xid = excluded.xid,"
    " catalog = excluded.catalog, authority = excluded.authority, revision = excluded.revision, at = excluded.at,"
    " home = excluded.home, link = excluded.link, pass = excluded.pass, mark = excluded.mark,"
    " digest = excluded.digest, gone = excluded.gone"
)


def home_of(db: Connection, xid: str) -> str:
    """Return what the entity at an xid is called at its owner; where it is not a copy, that is its xid."""
    found = db.one("SELECT home FROM replicas WHERE key = ? AND gone <> ?", (key_of(xid), GONE))
    return str(found[0]) if found is not None and found[0] else xid


def set_readonly(db: Connection, found: Iterable[tuple[Any, ...]], *, readonly: bool) -> None:
    """Set on the rows of resources what only the server may: META-3."""
    changed = []
    for row in (rows.EntityRow(*one) for one in found):
        if row.xref is None:
            doc = {name: value for name, value in orjson.loads(row.doc).items() if name != "readonly"}
            changed.append((orjson.dumps({**doc, "readonly": True} if readonly else doc).decode(), row.key))
    db.executemany("UPDATE entities SET doc = ? WHERE key = ?", changed)


def known_keys(db: Connection, keys: set[str]) -> set[str]:
    """Return which of these keys are those of entities, or of copies that were here."""
    found: set[str] = set()
    left = list(keys)
    for start in range(0, len(left), _CHUNK):
        some = left[start : start + _CHUNK]
        marks = ", ".join("?" * len(some))
        for table in ("entities", "replicas"):
            found.update(key for (key,) in db.execute(f"SELECT key FROM {table} WHERE key IN ({marks})", some))
    return found


# ---- what could not be copied


def taken(entry: ReplicaEntry, home: str) -> ReplicaResult:
    """Return the outcome of an entry whose name is taken by another entity of the same owner."""
    if entry.body is None:
        return ReplicaResult(entry.xid, "absent")
    return ReplicaResult(entry.xid, "conflict", f"the name is taken here by the copy of {home}")


def note(db: Connection, link: Link, results: Iterable[ReplicaResult]) -> None:
    """Keep the conflicts and refusals among results, and forget those of entities that had another outcome."""
    wrong, ended = [], []
    for one in results:
        source = one.source or one.xid
        key = key_of(source)
        if one.outcome in _PROBLEMS:
            wrong.append((link.name, key, source, one.outcome, one.detail[:_MOST_WORDS], link.number))
        else:
            ended.append((link.name, key))
    db.executemany(_KEEP, wrong)
    if ended and db.one("SELECT 1 FROM replica_problems WHERE link = ? LIMIT 1", (link.name,)) is not None:
        db.executemany("DELETE FROM replica_problems WHERE link = ? AND key = ?", ended)


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
