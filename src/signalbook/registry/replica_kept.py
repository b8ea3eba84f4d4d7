"""Copies that are kept beside another entity of the same name: their names, and the references to them.

Rule 1: a copy whose name is taken here is kept, where the replication says so, under its id with `~` and eight hex
digits of its authority's hash. It is found again by its owner and its name there, so it is never kept twice.
Rule 2: what its owner says of it by reference (a base, an alias, a schema) means the kept copy, not who has the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from signalbook.document.xid import kept_id
from signalbook.registry import rows
from signalbook.registry.replica_entries import Entry
from signalbook.registry.replica_links import beside, key_of
from signalbook.registry.store import Connection

__all__ = ["beside", "kept_xid", "point_log", "pointed", "referring"]

Json = dict[str, Any]
_REFERENCES = frozenset({"basemessage", "dataschemauri", "dataschemaxid", "xref"})
_RESOURCE = re.compile(r"(/[^/]+/[^/]+/[^/]+/)([^/#?$]+)(.*)", re.DOTALL)


def kept_xid(entry: Entry) -> str:
    """Return the name under which an entry is kept where its own is taken."""
    body = entry.body or {}
    stated = [one.get("authority") for one in (body.get("versions") or {}).values() if isinstance(one, dict)]
    authority = next((str(one) for one in reversed(stated) if one), entry.origin.authority)
    collection, _, id_ = entry.xid.rpartition("/")
    return f"{collection}/{kept_id(id_, authority)}"


def pointed(db: Connection, catalog: str, body: Any) -> Any:
    """Return what an owner says with its references to what is kept beside another's name turned to that."""
    if isinstance(body, dict):
        return {
            name: _pointed(db, catalog, value)
            if name in _REFERENCES and isinstance(value, str)
            else pointed(db, catalog, value)
            if name in ("meta", "versions") or (isinstance(value, dict) and "createdat" in value)
            else value
            for name, value in body.items()
        }
    return body


def _pointed(db: Connection, catalog: str, reference: str) -> str:
    found = _RESOURCE.fullmatch(reference)
    if found is None:
        return reference
    collection, id_, rest = found.groups()
    for name in (id_, id_.partition(":")[0]):  # what follows a colon may be the id's, or a message of a schema
        other = beside(db, catalog, collection + name)
        if other is not None:
            return other + id_[len(name) :] + rest
    return reference


def point_log(db: Connection, catalog: str, xid: str) -> None:
    """Do the same in the log of a copy."""
    key = key_of(xid)
    for number, doc in db.execute("SELECT number, doc FROM snapshots WHERE key = ? AND doc <> ''", (key,)):
        said = orjson.loads(doc)
        turned = pointed(db, catalog, said)
        if turned != said:
            text = orjson.dumps(turned).decode()
            db.execute("UPDATE snapshots SET doc = ? WHERE key = ? AND number = ?", (text, key, number))


def referring(db: Connection, catalog: str, xids: set[str]) -> Iterator[str]:
    """Yield the copies of an owner that may refer to one of these names."""
    found = db.execute(
        "SELECT r.xid, e.xref, v.doc FROM replicas r JOIN entities e ON e.key = r.key"
        " LEFT JOIN entities v ON v.key = e.link WHERE r.catalog = ? AND r.gone = 0 AND r.key >= ? AND r.key < ?",
        (catalog, f"{rows.RESOURCE}/", f"{rows.RESOURCE}0"),
    )
    for xid, xref, doc in found:
        if xref in xids or any(one in (doc or "") for one in xids):
            yield str(xid)
