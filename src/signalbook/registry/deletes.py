"""Deleting groups, resources and versions: DEL-1 to DEL-6.

Rule: deleting several names each by its id, with the epoch to be met where the request gives one; what is not there is
passed over. Deleting one that is not there is an error, and so is deleting a group with a read-only resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from signalbook.document.model import GroupType, ResourceType
from signalbook.errors import RegistryError
from signalbook.registry import incoming, lineage, rows
from signalbook.registry.settling import Ask, check_writable, drop_version, refuse_xref, settle
from signalbook.registry.state import GroupState, ResourceState, Work

__all__ = [
    "delete_group", "delete_groups", "delete_resource", "delete_resources", "delete_version", "delete_versions",
    "epoch_asked",
]  # fmt: skip

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
