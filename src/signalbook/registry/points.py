"""The shortest road to one entity: one look-up, one join of strings.

Rule: it answers what needs no flag and no second look-up (a group, a resource, a meta, a version, as metadata) and
returns None for everything else, errors included; the long road then says what is wrong.
"""

from __future__ import annotations

from signalbook.document.model import GroupType, ResourceType
from signalbook.registry import rows
from signalbook.registry.render import View
from signalbook.registry.rows import Row
from signalbook.registry.setup import Setup
from signalbook.registry.store import Connection
from signalbook.registry.targets import DETAILS

__all__ = ["point_read"]

_GENERATION = "(SELECT value FROM settings WHERE name = 'generation')"
_ENTITY = rows.SELECT.replace(" FROM", f", {_GENERATION} FROM", 1)
# only what a plain answer shows: every further column costs
_RESOURCE = (
    "SELECT r.xid, r.epoch, r.size, v.key, v.xid, v.epoch, v.createdat, v.modifiedat, v.ancestor, v.doc,"
    f" {_GENERATION} FROM entities r JOIN entities v ON v.key = r.link WHERE r.key = ?"
)


def point_read(db: Connection, setup: Setup, view: View, path: str) -> tuple[str, str] | None:
    """Return an entity's JSON text and the state that its tag names, or None.

    The time is part of the state: an entity that was deleted and made again has its old epoch.
    """
    details = path.endswith(DETAILS)
    parts = (path[: -len(DETAILS)] if details else path).split("/")
    depth = len(parts)
    if depth < 3:
        return None
    group = setup.model.groups.get(parts[1])
    if group is None:
        return None
    if depth == 3 and not details:
        return _group(db, setup, view, group, path)
    kind = group.resources.get(parts[3]) if depth > 4 else None
    if kind is None:
        return None
    if kind.hasdocument and not details:
        return None
    if depth == 5:
        return _resource(db, setup, view, kind, "/".join(parts) if details else path)
    if depth == 7 and parts[5] == "versions":
        return _version(db, setup, view, kind, "/".join(parts[:5]), parts[6])
    return None


def _group(db: Connection, setup: Setup, view: View, kind: GroupType, path: str) -> tuple[str, str] | None:
    found = db.one(_ENTITY, (rows.group_key(path),))
    if found is None or found[-1] != setup.generation or found[1] != path:
        return None
    row = Row(*found[:-1])
    return view.group(kind, row), f"e{row.epoch}-{row.modifiedat}"


def _found(db: Connection, setup: Setup, xid: str) -> tuple[Row, Row] | None:
    """Return a resource and its default version, unless it shows another one or the setup is outdated."""
    found = db.one(_RESOURCE, (rows.resource_key(xid),))
    if found is None:
        return None
    name, epoch, size, key, version, version_epoch, created, modified, ancestor, doc, generation = found
    if generation != setup.generation or name != xid:
        return None
    row = Row("", xid, "", epoch, "", "", None, key, None, size)
    return row, Row(key, version, "", version_epoch, created, modified, ancestor, doc=doc)


def _resource(db: Connection, setup: Setup, view: View, kind: ResourceType, xid: str) -> tuple[str, str] | None:
    found = _found(db, setup, xid)
    if found is None:
        return None
    row, default = found
    return view.resource(kind, row, default), f"e{row.epoch}.{default.epoch}-{default.modifiedat}"


def _version(
    db: Connection, setup: Setup, view: View, kind: ResourceType, xid: str, versionid: str
) -> tuple[str, str] | None:
    found = _found(db, setup, xid)
    if found is None:
        return None
    row, version = found
    if version.xid.rpartition("/")[2] != versionid:
        other = rows.load(db, rows.version_key(xid, versionid))
        if other is None or other.xid.rpartition("/")[2] != versionid:
            return None
        version = other
    return view.version(kind, row, row, version), f"e{row.epoch}.{version.epoch}-{version.modifiedat}"
