"""Deleting groups, resources and versions: DEL-1 to DEL-6.

Rule: deleting several names each by its id, with the epoch to be met where the request gives one; what is not there is
passed over. Deleting one that is not there is an error, and so is deleting a group with a read-only resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.model.model import GroupType, ResourceType
from signalbook.model.xids import check_id
from signalbook.registry import incoming, rows
from signalbook.registry.setup import canonical_members, patched, read_request
from signalbook.registry.work import GroupState, ResourceState, Work
from signalbook.registry.write import versions as lineage
from signalbook.registry.write.resources import write_resource
from signalbook.registry.write.versions import Ask, check_writable, drop_version, refuse_xref, settle

__all__ = [
    "delete_group",
    "delete_groups",
    "delete_resource",
    "delete_resources",
    "delete_version",
    "delete_versions",
    "epoch_asked",
    "map_of",
    "need_group",
    "write_collections",
    "write_group",
    "write_groups",
    "write_registry",
    "write_resources",
]

# Writing the registry and its groups, and everything nested in one request: PUT, PATCH and POST above resources.
#
# Rule 1: a request is read outside in: registry, groups, resources; `finish` then checks what only the whole shows, and
# `flush` writes it. Any error leaves nothing behind.
# Rule 2: a missing parent is made with the ids of the path, as if it had been written empty (GROUP-3).


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


Asked = Mapping[str, Any] | None  # id -> what the request says of it; None: everything


def _mismatch(subject: str, given: int | None, current: int) -> None:
    if given is not None and given != current:
        raise RegistryError("mismatched_epoch", subject, bad_epoch=given, epoch=current)


def epoch_asked(work: Work, entry: Mapping[str, Any], singular: str, subject: str, *, resource: bool) -> int | None:
    """Return the epoch that a request to delete the entity `subject` asks for; that of a resource is in its meta."""
    id_ = subject.rpartition("/")[2]
    incoming.check_id_matches(entry, singular, id_, subject)
    if not resource:
        return _epoch(work, entry, subject, "value must be a uinteger" if singular == "version" else _NUMBER)
    meta = entry.get("meta")
    if meta is not None and not isinstance(meta, dict):
        raise RegistryError("invalid_attribute", subject, name="meta", error_detail='"meta" must be an object')
    incoming.check_id_matches(meta or {}, singular, id_, subject)
    if entry.get("epoch") is not None and "epoch" not in (meta or {}) and "epoch" not in work.ignore:
        raise RegistryError("misplaced_epoch", subject)
    return _epoch(work, meta or {}, subject + "/meta", _NUMBER)


_NUMBER = "must be a uinteger"


def _epoch(work: Work, entry: Mapping[str, Any], subject: str, detail: str) -> int | None:
    return None if "epoch" in work.ignore else incoming.epoch_of(entry, subject, detail)


def _entry(asked: Mapping[str, Any], id_: str, singular: str, subject: str) -> dict[str, Any]:
    entry = asked[id_]
    if entry is not None and not isinstance(entry, dict):
        path = subject.rpartition("/")[0]
        raise RegistryError("bad_request", path, error_detail=f'Value of "{id_}" must be a "{singular}"')
    return entry or {}


def delete_groups(work: Work, kind: GroupType, asked: Asked) -> None:
    """Delete the named groups, or all."""
    if asked is None:
        for each in list(work.groups_of(kind)):
            if "readonly" not in work.ignore or _locked(work, each) is None:
                _remove_group(work, each)
        return
    for id_ in asked:
        subject = f"/{kind.plural}/{id_}"
        group = work.group(kind, id_)
        if group is None or group.id != id_ or ("readonly" in work.ignore and _locked(work, group) is not None):
            continue
        entry = _entry(asked, id_, kind.singular, subject)
        delete_group(work, group, epoch_asked(work, entry, kind.singular, subject, resource=False))


def delete_group(work: Work, group: GroupState, epoch: int | None) -> None:
    """Delete a group with all its resources."""
    assert group.row is not None
    _mismatch(group.xid, epoch, group.row.epoch)
    _remove_group(work, group)


def _remove_group(work: Work, group: GroupState) -> None:
    locked = _locked(work, group)
    if locked is not None:  # META-3: what goes with its group is written too
        raise RegistryError("readonly", locked)
    group.deleted = True
    work.resize_registry(group.type.plural, -1)


def _locked(work: Work, group: GroupState) -> str | None:
    """Return the xid of a read-only resource of a group, where it has one."""
    low, high = rows.range_of(rows.RESOURCE, group.xid)
    maybe = "SELECT xid, doc FROM entities WHERE key > ? AND key < ? AND doc LIKE '%\"readonly\":true%' ORDER BY key"
    return next((xid for xid, doc in work.db.execute(maybe, (low, high)) if orjson.loads(doc).get("readonly")), None)


def delete_resources(work: Work, group: GroupState, kind: ResourceType, asked: Asked) -> None:
    """Delete the named resources of a group, or all."""
    if asked is None:
        for each in list(work.resources_of(group, kind)):
            if not _is_passed_over(work, each):
                delete_resource(work, each, None)
        return
    for id_ in asked:
        subject = f"{group.xid}/{kind.plural}/{id_}"
        state = work.resource(group, kind, id_)
        if state is None or state.id != id_ or _is_passed_over(work, state):
            continue
        entry = _entry(asked, id_, kind.singular, subject)
        delete_resource(work, state, epoch_asked(work, entry, kind.singular, subject, resource=True))


def _is_passed_over(work: Work, state: ResourceState) -> bool:
    """Tell whether a read-only resource is left out of a request to delete several: FLAGS-6."""
    return bool(state.attrs.get("readonly")) and "readonly" in work.ignore


def delete_resource(work: Work, state: ResourceState, epoch: int | None) -> None:
    """Delete a resource with all its versions; the epoch of a cross reference is the one it shows: XREF-4."""
    if state.row is not None:
        shown = work.target_epoch(state.xref) if state.xref is not None else 0
        _mismatch(state.xid + "/meta", epoch, shown or state.row.epoch)
    check_writable(work, state)
    state.deleted = True
    work.resize_group(state.group, state.type.plural, -1)


def delete_versions(work: Work, state: ResourceState, asked: Asked, ask: Ask) -> None:
    """Delete the named versions of a resource, or all, which is the resource: VER-8."""
    refuse_xref(state)
    versions = work.complete(state)
    if asked is None:
        delete_resource(work, state, None)
        return
    doomed = []
    for id_ in asked:
        if id_ not in versions:
            continue
        subject = f"{state.xid}/versions/{id_}"
        entry = _entry(asked, id_, "version", subject)
        _mismatch(subject, epoch_asked(work, entry, "version", subject, resource=False), versions[id_].epoch)
        doomed.append(id_)
    _remove_versions(work, state, doomed, ask)


def delete_version(work: Work, state: ResourceState, versionid: str, epoch: int | None, ask: Ask) -> None:
    """Delete one version."""
    version = work.complete(state)[versionid]
    _mismatch(f"{state.xid}/versions/{versionid}", epoch, version.epoch)
    _remove_versions(work, state, [versionid], ask)


def _remove_versions(work: Work, state: ResourceState, doomed: list[str], ask: Ask) -> None:
    check_writable(work, state)
    if ask.setdefault in doomed:
        raise RegistryError(
            "bad_request", f"{state.xid}/versions/{ask.setdefault}",
            error_detail='Can\'t set "defaultversionid" to a Version that is being deleted',
        )  # fmt: skip
    if len(doomed) == len(state.versions):
        delete_resource(work, state, None)
        return
    for versionid in lineage_order(state, doomed):
        drop_version(work, state, versionid)
    settle(work, state, ask, meta=None, processed=[])


def lineage_order(state: ResourceState, doomed: list[str]) -> list[str]:
    """Return versions to delete with the newest first, so that nobody becomes a root only to go."""
    chosen = [state.versions[name] for name in doomed]
    return [version.versionid for version in reversed(lineage.oldest_first(chosen, state.type.versionmode))]
