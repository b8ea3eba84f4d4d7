"""Writing the registry and its groups, and everything nested in one request: PUT, PATCH and POST above resources.

Rule 1: a request is read outside in: registry, groups, resources; `finish` then checks what only the whole shows, and
`flush` writes it. Any error leaves nothing behind.
Rule 2: a missing parent is made with the ids of the path, as if it had been written empty (GROUP-3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from signalbook.document.model import GroupType, ResourceType
from signalbook.document.xid import check_id
from signalbook.errors import RegistryError
from signalbook.registry import incoming
from signalbook.registry.resources import Ask, write_resource
from signalbook.registry.spellings import canonical_members, patched, read_request
from signalbook.registry.state import GroupState, ResourceState, Work

__all__ = [
    "map_of", "need_group", "write_collections", "write_group", "write_groups", "write_registry", "write_resources",
]  # fmt: skip


def write_registry(work: Work, body: dict[str, Any], *, patch: bool) -> None:
    """Update the registry's own attributes and everything nested: REG-8."""
    registry = work.registry
    registryid = work.registryid
    if work.checks_id("/"):
        incoming.check_id_matches(body, "registry", registryid, "/")
    incoming.check_epoch(body, registry.row.epoch, "/", work.ignore)
    registry.createdat = incoming.created(body, registry.createdat, work.now, "/")
    modified = incoming.modified(body, registry.row.modifiedat, work.now, "/")
    plurals = work.model.groups
    drop = incoming.GROUP_SYSTEM | _SETTINGS | _collection_names(plurals)
    given = {name: value for name, value in body.items() if name not in drop}
    merged = {**registry.attrs, **given} if patch else given
    registry.attrs = work.model.level.normalise(merged, "/")
    work.touch_registry()
    registry.modifiedat = modified
    registry.written = True
    for plural, kind in plurals.items():
        if plural in body:
            write_groups(work, kind, map_of(body[plural], plural, kind.singular, "/"), Ask(patch=patch))


_SETTINGS = frozenset({"registryid", "specversion", "capabilities", "model", "modelsource"})


def write_collections(
    work: Work, kinds: Mapping[str, GroupType], body: dict[str, Any], subject: str, ask: Ask
) -> dict[str, list[GroupState]]:
    """Write several collections of groups, as POST to the registry does: WRITE-3."""
    for name in sorted(body):
        if name not in kinds and name != "$schema":
            raise RegistryError("groups_only", subject, name=name)
    return {
        plural: write_groups(work, kinds[plural], map_of(value, plural, kinds[plural].singular, subject), ask)
        for plural, value in body.items()
        if plural in kinds
    }


def write_groups(work: Work, kind: GroupType, bodies: Mapping[str, dict[str, Any]], ask: Ask) -> list[GroupState]:
    """Create or update several groups of one type."""
    return [write_group(work, kind, id_, body, ask) for id_, body in bodies.items()]


def write_group(work: Work, kind: GroupType, id_: str, body: Mapping[str, Any], ask: Ask) -> GroupState:
    """Create or update one group and the resources nested in it."""
    group = need_group(work, kind, id_, check=False)
    body = canonical_members(read_request(kind, body, group.xid, patch=ask.patch), work.spec, group.xid)
    if work.checks_id(group.xid):
        incoming.check_id_matches(body, kind.singular, id_, group.xid)
    if group.row is not None:
        incoming.check_epoch(body, group.row.epoch, group.xid, work.ignore)
    group.createdat = incoming.created(body, group.row and group.createdat, work.now, group.xid)
    modified = incoming.modified(body, group.row and group.row.modifiedat, work.now, group.xid)
    drop = incoming.GROUP_SYSTEM | _collection_names(kind.resources) | {kind.singular + "id"}
    given = {name: value for name, value in body.items() if name not in drop}
    merged = patched(kind, group.attrs, given, work.spec, group.xid) if ask.patch else given
    group.attrs = kind.level.normalise(merged, group.xid)
    group.touched = group.written = True
    group.modifiedat = modified
    for plural, resource_kind in kind.resources.items():
        if plural in body:
            nested = incoming.entries(body[plural], plural, resource_kind.singular, group.xid)
            write_resources(work, group, resource_kind, nested, ask)
    return group


def write_resources(
    work: Work, group: GroupState, kind: ResourceType, bodies: Mapping[str, dict[str, Any]], ask: Ask
) -> list[ResourceState]:
    """Create or update several resources of one type; read-only ones are passed over where the request says so."""
    written = []
    for id_, body in bodies.items():
        state = work.resource(group, kind, id_)
        if state is not None and state.attrs.get("readonly") and "readonly" in work.ignore:
            continue  # FLAGS-6
        written.append(write_resource(work, group, kind, id_, body, ask))
    return written


def need_group(work: Work, kind: GroupType, id_: str, *, check: bool = True) -> GroupState:
    """Return a group, made empty where it is not there yet."""
    group = work.group(kind, id_)
    if group is None:
        check_id(id_, f"/{kind.plural}/{id_}")
        group = work.new_group(kind, id_)
        if check:
            group.attrs = kind.level.normalise({}, group.xid)
    elif group.id != id_:
        raise RegistryError(
            "bad_request", f"/{kind.plural}/{id_}",
            error_detail=f'"{id_}" differs from the existing "{group.id}" only by case',
        )  # fmt: skip
    return group


def _collection_names(plurals: Iterable[str]) -> frozenset[str]:
    return frozenset(name for plural in plurals for name in (plural, plural + "url", plural + "count"))


def map_of(value: object, plural: str, singular: str, subject: str) -> dict[str, dict[str, Any]]:
    """Return a collection at the top of a request: COLL-6."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RegistryError("bad_request", subject, error_detail=f'Value of "{plural}" must be a map')
    if "$schema" in value:
        value = {key: entry for key, entry in value.items() if key != "$schema"}
    for key, entry in value.items():
        if not isinstance(entry, dict):
            what = f'"{singular}"' if singular else "version"
            raise RegistryError("bad_request", subject, error_detail=f'Value of "{key}" must be a {what}')
    return value
