"""What is checked when a request's entities are all in place: steps 6, 7 and 9 of the algorithm, and the named rules.

Rule: a check here sees the registry as it will be; it raises the error that undoes the request, or changes only the
server's own `*validated*` attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import orjson

from signalbook.document.constraint import check_instance_constraints, constraint_violations
from signalbook.document.rule import Level
from signalbook.document.rules import Subject, check, rereads
from signalbook.errors import RegistryError
from signalbook.registry import rows
from signalbook.registry.formats import VALIDATED, Judge, Member
from signalbook.registry.incoming import document_names
from signalbook.registry.state import KEEP, GroupState, ResourceState, VersionState, Work

__all__ = ["finish", "finish_resource"]


def finish(work: Work) -> None:
    """Check every group and resource that a request touched."""
    for group in list(work.groups.values()):
        if group is not None and group.written and not group.deleted:
            _finish_group(work, group)
    for state in list(work.resources.values()):
        if state is not None and not state.deleted:
            finish_resource(work, state)


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
        _judge(work, state, touched)


def _check_versions(work: Work, state: ResourceState, versions: list[VersionState]) -> None:
    """Check versions as those of a resource, be they its own or those it shows: XREF-10."""
    _check_constraints(work, state, versions)
    for version in versions:
        xid = f"{state.xid}/versions/{version.versionid}"
        _apply_rules(work, state.type.modelcompatiblewith, "version", xid, version.attrs, state.group.attrs)


def _apply_rules(
    work: Work, domain: str, level: Level, xid: str, attrs: Mapping[str, Any], group: Mapping[str, Any]
) -> None:
    for problem in check(domain, level, Subject(xid=xid, attrs=attrs, group=group, lookup=work.lookup), "error"):
        raise RegistryError(problem.code, xid, **dict(problem.args))


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


# ---- formats


def _judge(work: Work, state: ResourceState, versions: list[VersionState]) -> None:
    kind = state.type
    judge = Judge(kind, work.capabilities, partial(_referred, work), work.offer.trust_unknown)
    url = document_names(kind)[1]
    compatibility = state.attrs.get("compatibility")
    if kind.validatecompatibility:
        versions = _affected(work, state, versions, compatibility)
    before = [version.attrs for version in versions]
    for version in versions:
        attrs = {name: value for name, value in version.attrs.items() if name not in VALIDATED}
        version.attrs = attrs
        attrs.update(judge.judge_format(_member(work, state, version), url in attrs))
    for version, attrs in zip(versions, before, strict=True):
        if kind.validatecompatibility and compatibility:
            line = [_member(work, state, one) for one in _line(state, version)]
            version.attrs.update(judge.judge_compatibility(compatibility, line, state.xid))
        if version.attrs != attrs:
            version.refreshed = True


def _affected(
    work: Work, state: ResourceState, touched: list[VersionState], compatibility: str | None
) -> list[VersionState]:
    """Return the versions whose promise has to be looked at again: FMT-8."""
    before = orjson.loads(state.row.doc).get("compatibility") if state.row is not None else None
    if before is None and compatibility is None:
        return touched
    versions = work.complete(state)
    if before != compatibility:
        return list(versions.values())
    changed = {version.versionid for version in touched}
    changed |= {one.versionid for one in versions.values() if one.row is None or one.row.ancestor != one.ancestor}
    depth = None if compatibility is not None and compatibility.lower().endswith("_transitive") else -2
    lines = {name: [one.versionid for one in _line(state, version)] for name, version in versions.items()}
    return [versions[name] for name, line in lines.items() if not changed.isdisjoint(line[depth:])]


def _member(work: Work, state: ResourceState, version: VersionState) -> Member:
    document = _document(work, state, version) or b""
    return Member(f"{state.xid}/versions/{version.versionid}", version.attrs, document)


def _referred(work: Work, uri: str) -> bytes | None:
    """Return the document that a schema refers to by its xid, with or without a version; None where there is none."""
    parts = uri.partition("#")[0].strip("/").split("/")
    kind = work.model.groups.get(parts[0])
    if kind is None or len(parts) not in (4, 6) or parts[4:5] not in ([], ["versions"]):
        return None
    state = work.by_xid("/" + "/".join(parts[:4])) if parts[2] in kind.resources else None
    if state is not None and state.xref is not None:
        state = work.by_xid(state.xref)
    if state is None or state.xref is not None:
        return None
    version = work.complete(state).get(parts[5] if len(parts) == 6 else state.default or "")
    return _document(work, state, version) if version is not None else None


def _line(state: ResourceState, version: VersionState) -> Iterator[VersionState]:
    """Return a version behind all its ancestors; a circle, which may yet be refused, ends where it began."""
    line = {version.versionid: version}
    while (ancestor := version.ancestor) is not None and ancestor in state.versions and ancestor not in line:
        version = line[ancestor] = state.versions[ancestor]
    return reversed(line.values())


def _document(work: Work, state: ResourceState, version: VersionState) -> bytes | None:
    if version.content is KEEP:
        return rows.load_content(work.db, rows.version_key(state.xid, version.versionid))
    return version.content  # type: ignore[return-value]
