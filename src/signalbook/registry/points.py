"""The shortest road to one entity: one look-up, one join of strings.

Rule: it answers what needs no flag and no second look-up (a group, a resource, a meta, a version, as metadata) and
returns None for everything else, errors included; the long road then says what is wrong.
"""

from __future__ import annotations

from signalbook.document.model import GroupType, ResourceType
from signalbook.registry import rows
from signalbook.registry.render import View, pair
from signalbook.registry.rows import Row
from signalbook.registry.setup import Setup
from signalbook.registry.store import Connection
from signalbook.registry.targets import DETAILS

__all__ = ["point_read"]

_GENERATION = "(SELECT value FROM settings WHERE name = 'generation')"
_ENTITY = rows.SELECT.replace(" FROM", f", {_GENERATION} FROM", 1)
_RESOURCE = rows.SELECT_RESOURCE.replace(" FROM", f", {_GENERATION} FROM", 1)


def point_read(db: Connection, setup: Setup, view: View, path: str) -> tuple[str, str] | None:
    """Return an entity's JSON text and the state that its tag names, or None."""
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
    if depth == 5:
        return _resource(db, setup, view, kind, parts, details or not kind.hasdocument)
    if depth == 7 and parts[5] == "versions" and (details or not kind.hasdocument):
        return _version(db, setup, view, kind, parts)
    return None


def _group(db: Connection, setup: Setup, view: View, kind: GroupType, path: str) -> tuple[str, str] | None:
    found = db.one(_ENTITY, (rows.group_key(path),))
    if found is None or found[-1] != setup.generation or found[1] != path:
        return None
    row = Row(*found[:-1])
    return view.group(kind, row), f"e{row.epoch}"


def _resource(
    db: Connection, setup: Setup, view: View, kind: ResourceType, parts: list[str], metadata: bool
) -> tuple[str, str] | None:
    if not metadata:
        return None
    xid = "/".join(parts)
    found = db.one(_RESOURCE, (rows.resource_key(xid),))
    if found is None or found[-1] != setup.generation or found[1] != xid:
        return None
    row, default = pair(found[:-1])
    if default is None:
        return None
    return view.resource(kind, row, default), f"e{row.epoch}.{default.epoch}"


def _version(db: Connection, setup: Setup, view: View, kind: ResourceType, parts: list[str]) -> tuple[str, str] | None:
    xid = "/".join(parts[:5])
    found = db.one(_RESOURCE, (rows.resource_key(xid),))
    if found is None or found[-1] != setup.generation or found[1] != xid:
        return None
    row, default = pair(found[:-1])
    if default is None:
        return None
    version = default
    if default.xid.rpartition("/")[2] != parts[6]:
        other = rows.load(db, rows.version_key(xid, parts[6]))
        if other is None or other.xid.rpartition("/")[2] != parts[6]:
            return None
        version = other
    return view.version(kind, row, row, version), f"e{row.epoch}.{version.epoch}"
