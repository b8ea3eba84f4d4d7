"""What a request changed, as the specification's events: core/events.md.

Rule: an event is `[type, subject, changed]`; one for each subject at most of created, updated and deleted (EVENTS-7),
`changed` only on updates and deprecations. They are recorded with the write; delivering them is not this module's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from signalbook.registry import rows
from signalbook.registry.sameness import differing
from signalbook.registry.state import KEEP, GroupState, RegistryState, ResourceState, VersionState, Work
from signalbook.spec import versions
from signalbook.spec.versions import SpecVersion

__all__ = ["Event", "events_of"]

Event = list[Any]


def events_of(work: Work) -> list[Event]:
    """Return the events of everything a request changed, outermost first."""
    found: list[Event] = []
    registry = work.registry_
    if registry is not None and registry.touched:
        before = orjson.loads(registry.row.doc)
        changed = {*_updated(registry), *differing(before, registry.attrs), *registry.changed}
        changed.update(name for plural in registry.resized for name in (plural, plural + "count"))
        for name in sorted(registry.changed & {"model", "modelsource", "capabilities"}):
            names = sorted(work.changed_capabilities) if name == "capabilities" else None
            found.append([name + ".updated", "/" + name, names])
        found.append(["registry.updated", "/", sorted(changed)])
    for group in work.groups.values():
        if group is not None:
            found.extend(_group_events(work, group))
    for state in work.resources.values():
        if state is not None:
            found.extend(_resource_events(work, state))
    return [_spelled(event, versions.VERSIONS.get(work.offer.current, versions.DEFAULT)) for event in found]


def _spelled(event: Event, spec: SpecVersion) -> Event:
    """Return an event whose `changed` names attributes as `spec`, the version that the server answers in, does."""
    type_, subject, changed = event
    names = spec.members.get("deprecated", {}) if type_.endswith(".deprecation") else {"ancestorid": spec.ancestor}
    if changed is None or names.keys().isdisjoint(changed):
        return event
    return [type_, subject, sorted(names.get(name, name) for name in changed)]


def _updated(entity: RegistryState | GroupState | ResourceState | VersionState) -> set[str]:
    """Return what the server keeps of an entity and is another than stored."""
    row = entity.row
    if row is None:
        return set()
    names = ("epoch", "createdat", "modifiedat")
    return {name for name in names if getattr(row, name) != getattr(entity, name)}


def _deprecation(kind: str, subject: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Event]:
    old, new = before.get("deprecated"), after.get("deprecated")
    if old == new:
        return []
    return [[f"{kind}.deprecation", subject, sorted(differing(old or {}, new or {}))]]


def _group_events(work: Work, group: GroupState) -> list[Event]:
    if group.deleted:
        return [] if group.row is None else [["group.deleted", group.xid, None], *_lost(work, group.xid)]
    if not group.touched:
        return []
    before = work.before(group)
    noted = _deprecation("group", group.xid, before, group.attrs)
    if group.row is None:
        return [["group.created", group.xid, None], *noted]
    changed = {*_updated(group), *differing(before, group.attrs)}
    changed.update(name for plural in group.resized for name in (plural, plural + "count"))
    return [["group.updated", group.xid, sorted(changed)], *noted]


def _lost(work: Work, prefix: str) -> list[Event]:
    """Return the events of everything stored below a deleted group or resource: EVENTS-13."""
    found: list[Event] = []
    for kind, word in (("c", "resource"), ("d", "version")):
        low = f"{kind}{prefix.lower()}"
        for (xid,) in work.db.execute(
            "SELECT xid FROM entities WHERE key > ? AND key < ? ORDER BY key", (low + "/", low + "0")
        ):
            found.append([f"{word}.deleted", xid, None])
    return found


def _resource_events(work: Work, state: ResourceState) -> list[Event]:
    if state.group.deleted:
        return []
    if state.deleted:
        return [] if state.row is None else [["resource.deleted", state.xid, None], *_lost(work, state.xid)]
    versions = [_version_event(state, version) for version in state.versions.values() if version.touched]
    versions += [["version.deleted", f"{state.xid}/versions/{name}", None] for name in state.gone]
    if state.row is None:
        noted = _deprecation("resource", state.xid, {}, state.attrs)
        return [["resource.created", state.xid, None], *noted, *versions]
    changed: set[str] = set()
    before = orjson.loads(state.row.doc)
    if state.touched or state.xref_written:
        changed |= {f"meta.{name}" for name in differing(before, state.attrs) | _updated(state)}
        if state.row.xref != state.xref:
            changed |= {"meta.xref", "meta.epoch", "meta.modifiedat"}  # shown are those of another
        if state.row.sticky != state.sticky:
            changed.add("meta.defaultversionsticky")
    if state.gone or any(version.row is None for version in state.versions.values()):
        changed |= {"versions", "versionscount"}
    changed |= _default_changes(work, state)
    noted = _deprecation("resource", state.xid, before, state.attrs)
    events: list[Event] = [["resource.updated", state.xid, sorted(changed)]] if changed else []
    return [*events, *noted, *versions]


def _default_changes(work: Work, state: ResourceState) -> set[str]:
    """Return the resource-level names that changed because of the default version: EVENTS-10, EVENTS-11."""
    default = state.versions.get(state.default) if state.default is not None else None
    was = (state.row.link or "").rpartition("/")[2] if state.row is not None else ""
    if default is None:
        return set()
    if default.versionid.lower() == was:
        return _version_changes(state, default) if default.touched else set()
    names = set(default.attrs)
    both = [default]
    for left in (*state.versions.values(), *state.gone.values()):
        if left.versionid.lower() == was and left.row is not None:
            names |= set(left.before)
            both.append(left)
    if state.type.hasdocument and any(_has_document(work, one) for one in both):
        names.add(state.type.singular)
    return names | {"meta.defaultversionid", "versionid", "epoch", "createdat", "modifiedat", "ancestorid"}


def _has_document(work: Work, version: VersionState) -> bool:
    if version.content is not KEEP:
        return version.content is not None
    return version.row is not None and rows.load_content(work.db, version.row.key) is not None


def _version_changes(state: ResourceState, version: VersionState) -> set[str]:
    found = {*differing(version.before, version.attrs), *_updated(version)}
    if version.row is not None and version.row.ancestor != version.ancestor:
        found.add("ancestorid")
    if version.content is not KEEP:  # another than is stored
        found.add(state.type.singular)
    return found


def _version_event(state: ResourceState, version: VersionState) -> Event:
    xid = f"{state.xid}/versions/{version.versionid}"
    if version.row is None:
        return ["version.created", xid, None]
    return ["version.updated", xid, sorted(_version_changes(state, version))]
