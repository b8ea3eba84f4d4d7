"""What is checked when a request's entities are all in place: steps 6, 7 and 9 of the algorithm, and the named rules.

Rule: a check here sees the registry as it will be; it raises the error that undoes the request, or changes only the
server's own `*validated*` attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from signalbook.document.constraint import check_instance_constraints, constraint_violations
from signalbook.document.rule import Level
from signalbook.document.rules import Subject, check, rereads
from signalbook.errors import RegistryError
from signalbook.registry import judging
from signalbook.registry.schema_names import declared
from signalbook.registry.state import GroupState, ResourceState, VersionState, Work

__all__ = ["finish", "finish_resource"]


def finish(work: Work) -> None:
    """Check every group and resource that a request touched."""
    for group in list(work.groups.values()):
        if group is not None and group.written and not group.deleted:
            _finish_group(work, group)
    work.declared = declared(work)
    for state in list(work.resources.values()):
        if state is not None and not state.deleted:
            finish_resource(work, state)
    judging.judge_users(work)


def _finish_group(work: Work, group: GroupState) -> None:
    kind = group.type
    if "constraints" in group.attrs:
        check_instance_constraints(kind, group.attrs["constraints"], group.xid)
    _apply_rules(work, kind.modelcompatiblewith, "group", group.xid, group.attrs, group.attrs)
    if group.row is None or not _matters(work, group):
        return
    for resource_kind in kind.resources.values():
        for state in list(work.resources_of(group, resource_kind)):
            state.recheck = True


def _matters(work: Work, group: GroupState) -> bool:
    """Tell whether a group changed in a way that its resources have to follow."""
    before = work.before(group)
    changed = {name for name in before.keys() | group.attrs.keys() if before.get(name) != group.attrs.get(name)}
    every = check_instance_constraints(group.type, group.attrs.get("constraints"), group.xid)
    read = {"constraints"} | {one.equals[0] for one in every.values() if one.equals}
    for kind in group.type.resources.values():
        read |= rereads(kind.modelcompatiblewith)
    return not read.isdisjoint(changed)


def finish_resource(work: Work, state: ResourceState) -> None:
    """Check what a request made of one resource: steps 6, 7 and 9."""
    touched = [version for version in state.versions.values() if version.touched]
    if state.xref is not None:
        if state.xref_written or state.recheck:
            _check_versions(work, state, _target_versions(work, state.xref))
        return
    if state.recheck:
        touched = list(work.complete(state).values())
    if not touched and not state.touched:
        return
    _check_versions(work, state, touched)
    for source in work.sources_of(state):
        _check_versions(work, source, touched)
    if state.type.validateformat:  # last, because reading schemas is the dearest of all
        judging.judge(work, state, touched)


def _check_versions(work: Work, state: ResourceState, versions: list[VersionState]) -> None:
    """Check versions as those of a resource, be they its own or those it shows: XREF-10."""
    _check_constraints(work, state, versions)
    for version in versions:
        xid = f"{state.xid}/versions/{version.versionid}"
        _apply_rules(work, state.type.modelcompatiblewith, "version", xid, version.attrs, state.group.attrs)


def _apply_rules(
    work: Work, domain: str, level: Level, xid: str, attrs: Mapping[str, Any], group: Mapping[str, Any]
) -> None:
    for problem in check(
        domain, level, Subject(xid=xid, attrs=attrs, group=group, lookup=partial(_lookup, work)), "error"
    ):
        raise RegistryError(problem.code, xid, **dict(problem.args))


def _lookup(work: Work, xid: str) -> dict[str, Any] | None:
    """Return the attributes of a group, a version, or a resource's default version."""
    parts = xid.split("/")[1:]
    kind = work.model.groups.get(parts[0]) if len(parts) in (2, 4, 6) else None
    group = work.group(kind, parts[1]) if kind is not None else None
    if kind is None or group is None or group.id != parts[1] or len(parts) == 2:
        return group.attrs if group is not None and len(parts) == 2 and group.id == parts[1] else None
    resource_kind = kind.resources.get(parts[2])
    state = work.resource(group, resource_kind, parts[3]) if resource_kind is not None else None
    if state is None or state.id != parts[3]:
        return None
    if state.xref is not None:
        target = work.by_xid(state.xref)
        if target is None or target.xref is not None:
            return None
        state = target
    versionid = parts[5] if len(parts) == 6 else state.default
    version = work.complete(state).get(versionid or "")
    return version.attrs if version is not None else None


def _check_constraints(work: Work, state: ResourceState, versions: list[VersionState]) -> None:
    group = state.group
    if not group.type.constraints and "constraints" not in group.attrs:
        return
    for version in versions:
        for path, kind in constraint_violations(group.type, group.attrs, state.type.plural, version.attrs):
            raise RegistryError("constraint_failure", state.xid, path=path, kind=kind)


def _target_versions(work: Work, xref: str) -> list[VersionState]:
    target = work.by_xid(xref)
    if target is None or target.xref is not None:
        return []
    return list(work.complete(target).values())
