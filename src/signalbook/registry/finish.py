"""What is checked when a request's entities are all in place: steps 6, 7 and 9 of the algorithm, and the named rules.

Rule: a check here sees the registry as it will be; it raises the error that undoes the request, or changes only the
server's own `*validated*` attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson

from signalbook.document.constraint import check_instance_constraints, constraint_violations
from signalbook.document.inherited import INHERITED, message_of
from signalbook.document.rule import Level
from signalbook.document.rules import Subject, check, rereads
from signalbook.errors import RegistryError
from signalbook.registry import index, judging, rows
from signalbook.registry.filters import fold
from signalbook.registry.schema_names import declared
from signalbook.registry.state import GroupState, ResourceState, VersionState, Work
from signalbook.registry.terms import term
from signalbook.spec.builtin import MESSAGE

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
    _finish_derived(work)
    judging.judge_users(work)


def _finish_group(work: Work, group: GroupState) -> None:
    kind = group.type
    if "constraints" in group.attrs:
        check_instance_constraints(kind, group.attrs["constraints"], group.xid)
    subject = Subject(group.xid, group.attrs, group.attrs, partial(_lookup, work))
    _apply_rules(kind.modelcompatiblewith, "group", subject)
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


def _finish_derived(work: Work) -> None:
    """Check again the definitions that inherit from those which are new or say something else, however far away.

    What derives from one that is deleted is not: a reference may lead nowhere, which lint and matches tell.
    """
    changed = [
        state
        for state in work.resources.values()
        if state is not None and not state.deleted and state.type.modelcompatiblewith == MESSAGE and _bequeaths(state)
    ]
    seen = {state.xid for state in changed}
    while changed:
        derived = []
        for xid in _derived(work, changed):
            state = work.by_xid(xid) if xid not in seen else None
            seen.add(xid)
            if state is not None and not state.deleted and state.xref is None:
                _check_versions(work, state, list(work.complete(state).values()))
                derived.append(state)
        changed = derived


def _bequeaths(state: ResourceState) -> bool:
    """Tell whether a definition has anew, or by a change of its group, what others inherit and rules look at."""
    if state.xref is not None or state.recheck:
        return state.xref_written or state.recheck
    return any(
        version.touched and any(version.before.get(name) != version.attrs.get(name) for name in INHERITED)
        for version in state.versions.values()
    )


def _derived(work: Work, bases: list[ResourceState]) -> Iterator[str]:
    """Return the xids of the definitions that name one of these, or a resource that shows one, as their base."""
    versions = {
        one.xid: base.versions for base in bases for one in (base, *(() if base.xref else work.sources_of(base)))
    }
    names = [fold(name) for xid, of in versions.items() for name in (xid, *(f"{xid}/versions/{id_}" for id_ in of))]
    types = [
        f"{kind.plural}/{resource_kind.plural}"
        for kind in work.model.groups.values()
        for resource_kind in kind.resources.values()
        if resource_kind.modelcompatiblewith == MESSAGE
    ]
    terms = {term(type_, "basemessage", name) for type_ in types for name in names}
    for key in sorted(index.find_entered(work.db, terms)):
        row = rows.load(work.db, key)
        # The index proposes: what is stored names the base.
        if row is not None and message_of(str(orjson.loads(row.doc).get("basemessage"))) in versions:
            yield message_of(row.xid)


def _check_versions(work: Work, state: ResourceState, versions: list[VersionState]) -> None:
    """Check versions as those of a resource, be they its own or those it shows: XREF-10."""
    _check_constraints(work, state, versions)
    for version in versions:
        xid = f"{state.xid}/versions/{version.versionid}"
        subject = Subject(
            xid, version.attrs, state.group.attrs, partial(_lookup, work), state.type.version_level.problems
        )
        _apply_rules(state.type.modelcompatiblewith, "version", subject)


def _apply_rules(domain: str, level: Level, subject: Subject) -> None:
    xid = subject.xid
    for problem in check(domain, level, subject, "error"):
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
