"""`shortself`: a short address for every entity, where the capability is on (ATTR-3).

Rule: a short name is made from the xid alone, so it is the same whenever the capability is switched on again; the index
of attribute values holds it, beside the key of its entity. A name that outlives its entity leads nowhere.
"""

from __future__ import annotations

from hashlib import blake2b

from signalbook.registry import rows
from signalbook.registry.store import Connection

__all__ = ["PREFIX", "enter", "enter_all", "resolve", "short_name"]

PREFIX = "/.s/"  # no group type can have a dot in its name
_INSERT = "INSERT INTO attrs (term, key) VALUES (?, ?) ON CONFLICT DO NOTHING"


def _number(xid: str) -> int:
    digest = blake2b(xid.encode(), digest_size=8, person=b"shortself").digest()
    return int.from_bytes(digest, "big", signed=True)


def short_name(xid: str) -> str:
    """Return the short name of an entity."""
    return f"{_number(xid) & (1 << 64) - 1:016x}"


def _entries(key: str, xid: str) -> list[tuple[int, str]]:
    entries = [(_number(xid), key)]
    if key.startswith(rows.RESOURCE):
        entries.append((_number(xid + "/meta"), key))
    return entries


def enter(db: Connection, key: str, xid: str) -> None:
    """Make an entity known by its short name."""
    db.executemany(_INSERT, _entries(key, xid))


def enter_all(db: Connection) -> None:
    """Make every entity known by its short name."""
    for key, xid in db.execute("SELECT key, xid FROM entities"):
        enter(db, key, xid)


def resolve(db: Connection, name: str) -> str | None:
    """Return the xid that a short name stands for."""
    if len(name) != 16 or not all(character in "0123456789abcdef" for character in name):
        return None
    number = int(name, 16)
    signed = number - (1 << 64) if number >> 63 else number
    for (key,) in db.execute("SELECT key FROM attrs WHERE term = ?", (signed,)):
        row = rows.load(db, key)
        if row is not None:
            for xid in (row.xid, row.xid + "/meta"):
                if short_name(xid) == name:
                    return xid
    return None
