"""Writing what a request changed: rows, index entries, events, and one record of the change; and the parts of a load.

Rule 1: values are the same where they are the same JSON; Python would take `true` for 1.
Rule 2: a part of a load touches what says something new, and nothing else; what other requests say again they write
again (EPOCH-1).
Rule 3: a load is one interaction however many requests it takes: everything it touches has the instant of its first
part, and a group or the registry that an earlier part touched gets no other epoch for what a later part adds to it.
Rule 4: what a part of a load stores means what it says, or none of it is stored: each attribute that was sent is there,
in canonical spelling; beside it there may be what a model fills in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.jsontext import AROUND_GROUP, AROUND_META, AROUND_VERSION, export_text
from signalbook.model.model import ResourceType
from signalbook.model.normalise import canonical_members
from signalbook.registry import changes, rows, schema_ids
from signalbook.registry.capabilities import save_setup
from signalbook.registry.documents import document_names, given_bytes
from signalbook.registry.read import render
from signalbook.registry.rows import AT_ONCE, EntityRow, IndexEntry, changed_terms, enter_terms, term_numbers, terms_of
from signalbook.registry.store import Connection
from signalbook.registry.work import (
    GROUP_SYSTEM,
    KEEP,
    META_SYSTEM,
    RESOURCE_MEMBERS,
    VERSION_SYSTEM,
    GroupState,
    RegistryState,
    ResourceState,
    VersionState,
    Work,
)
from signalbook.registry.write import checks
from signalbook.spec import versions
from signalbook.spec.versions import SpecVersion

__all__ = [
    "Event",
    "Load",
    "commit",
    "differing",
    "events_of",
    "forget_same_documents",
    "leave_same",
    "open_load",
    "refuse_other",
]

_SORTED = orjson.OPT_SORT_KEYS
_SETTING = "load"


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """Return the names whose values are not the same."""
    return {name for name in before.keys() | after.keys() if not _same(before.get(name), after.get(name))}


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or one != other:
        return False
    return not isinstance(one, dict | list) or orjson.dumps(one, option=_SORTED) == orjson.dumps(other, option=_SORTED)


def forget_same_documents(work: Work) -> None:
    """Take no document for a new one that is stored already, byte for byte."""
    for state in work.resources.values():
        for version in state.versions.values() if state is not None and not state.deleted else ():
            if version.row is None or version.content is KEEP:
                continue
            if version.content == rows.load_content(work.db, version.row.key):
                version.content = KEEP


@dataclass(frozen=True, slots=True)
class Load:
    """A load under way: its name, the instant of its first part, and the groups and the registry touched so far."""

    name: str
    at: str
    touched: frozenset[str] = frozenset()


def open_load(db: Connection, name: str, now: str) -> Load:
    """Return the load that a part belongs to; the first part begins it."""
    found = db.one("SELECT value FROM settings WHERE name = ?", (_SETTING,))
    known = orjson.loads(found[0]) if found is not None else {}
    if known.get("name") == name:
        return Load(name, known["at"], frozenset(known["touched"]))
    return Load(name, now)


def leave_same(work: Work, load: Load) -> tuple[int, int]:
    """Touch nothing that says nothing new, and remember what the load has touched.

    Returns how many groups and how many resources say something new.
    """
    forget_same_documents(work)
    touched = set(load.touched)
    groups = resources = 0
    for state in work.resources.values():
        if state is not None and not state.deleted:
            if state.row is not None:
                _leave_resource(work, state)
            resources += _is_written(state)
    for group in work.groups.values():
        if group is not None and not group.deleted:
            groups += _says_new(work, group)
            _leave_parent(work, group, group.xid in load.touched)
            if group.touched:
                touched.add(group.xid)
    registry = work.registry_
    if registry is not None:
        _leave_parent(work, registry, "/" in load.touched)
        if registry.touched:
            touched.add("/")
    if touched != load.touched or not load.touched:
        value = orjson.dumps({"name": load.name, "at": load.at, "touched": sorted(touched)}).decode()
        work.db.execute(
            "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (_SETTING, value),
        )
    return groups, resources


def _is_written(state: ResourceState) -> bool:
    """Tell whether a resource is new, or it or a version of it is touched."""
    own = state.row is None or state.touched or state.xref_written
    return own or any(version.touched for version in state.versions.values())


def _leave_resource(work: Work, state: ResourceState) -> None:
    for version in state.versions.values():
        if version.touched and version.row is not None and _says_the_same(work, version):
            version.touched, version.modifiedat = False, version.row.modifiedat
    row = state.row
    assert row is not None
    link = rows.version_key(state.xid, state.default) if state.default is not None else None
    kept = (row.xref, row.link, bool(row.sticky), row.nextid) == (state.xref, link, state.sticky, state.nextid)
    moved = bool(state.gone) or any(version.row is None for version in state.versions.values())
    if kept and not moved and _rests(work, state) and not differing(orjson.loads(row.doc), state.attrs):
        state.touched, state.xref_written, state.modifiedat = False, False, row.modifiedat


def _says_the_same(work: Work, version: VersionState) -> bool:
    row = version.row
    assert row is not None
    same = (row.ancestor, row.form) == (version.ancestor, version.form) and version.content is KEEP
    return same and _rests(work, version) and not differing(version.before, version.attrs)


def _leave_parent(work: Work, parent: GroupState | RegistryState, known: bool) -> None:
    """Leave a group or the registry, or only count anew what it holds where the load has touched it before."""
    row = parent.row
    if row is None or not parent.touched or _says_new(work, parent):
        return
    if isinstance(parent, RegistryState) and parent.changed:
        return
    resized = bool(differing(orjson.loads(row.counts), parent.counts))
    if resized and not known:
        return
    parent.touched, parent.refreshed, parent.modifiedat = False, resized, row.modifiedat


def _says_new(work: Work, parent: GroupState | RegistryState) -> bool:
    """Tell whether a group or the registry is new or is said to be other than it is stored."""
    row = parent.row
    return row is None or not _rests(work, parent) or bool(differing(orjson.loads(row.doc), parent.attrs))


def _rests(work: Work, entity: VersionState | ResourceState | GroupState | RegistryState) -> bool:
    """Tell whether the times of an entity are those it has, but for the one that every write brings."""
    row = entity.row
    assert row is not None
    return entity.createdat == row.createdat and entity.modifiedat in (row.modifiedat, work.now)


def refuse_other(work: Work, body: Mapping[str, Any], group: GroupState | None = None) -> None:
    """Refuse a part of a load that would store something else than it says."""
    for plural, kind in work.model.groups.items() if group is None else ():
        for id_, entry in (body.get(plural) or {}).items():
            state = work.groups.get(rows.group_key(f"/{plural}/{id_}"))
            if state is not None:
                collections = {f"{name}{end}" for name in kind.resources for end in ("", "url", "count")}
                drop = GROUP_SYSTEM | collections | {kind.singular + "id"}
                said = canonical_members(kind.normaliser.to_canonical(entry, state.xid), work.spec, state.xid)
                _refuse_other(said, state.attrs, drop, state.xid)
                refuse_other(work, entry, state)
    for plural, resource_kind in group.type.resources.items() if group is not None else ():
        for id_, entry in (body.get(plural) or {}).items():
            resource = work.resources.get(rows.resource_key(f"{group.xid}/{plural}/{id_}")) if group else None
            if resource is not None and not resource.attrs.get("readonly"):
                _refuse_other_meta(work, entry, resource)
                if resource.xref is None:
                    _refuse_other_versions(resource_kind, entry, resource)


def _refuse_other_meta(work: Work, entry: Mapping[str, Any], state: ResourceState) -> None:
    """Refuse a meta that is not what was sent; which version is the default, and its times, the registry decides."""
    meta, xid = entry.get("meta") or {}, f"{state.xid}/meta"
    drop = META_SYSTEM - {"xref"} | {state.type.singular + "id"}
    _refuse_other(canonical_members(meta, work.spec, xid), {**state.attrs, "xref": state.xref}, drop, xid)


def _refuse_other_versions(kind: ResourceType, entry: Mapping[str, Any], state: ResourceState) -> None:
    """Refuse versions that are not what was sent; those that their type does not keep are told elsewhere."""
    documents = set(document_names(kind)) if kind.hasdocument else set()
    drop = VERSION_SYSTEM | RESOURCE_MEMBERS | documents | {kind.singular + "id"}
    given = entry.get("versions") or {str(state.default): entry}
    for versionid, said in given.items():
        version = state.versions.get(versionid)
        if version is not None:
            xid = f"{state.xid}/versions/{versionid}"
            _refuse_other(kind.normaliser.to_canonical(said, xid), version.attrs, drop, xid)
            if kind.hasdocument and version.content is not KEEP and version.content != given_bytes(kind, said, xid):
                raise _other(xid, kind.singular)


def _refuse_other(said: Mapping[str, Any], stored: Mapping[str, Any], drop: Collection[str], xid: str) -> None:
    for name, value in said.items():
        if name not in drop and not _holds(stored.get(name), value):
            raise _other(xid, name)


def _other(xid: str, name: str) -> RegistryError:
    words = f'would not be stored as it stands in the document, so nothing of it is: the attribute "{name}"'
    return RegistryError("bad_request", xid, error_detail=f"{xid} {words}")


def _holds(stored: Any, said: Any) -> bool:
    """Tell whether a value that is stored says what was said; it may say more."""
    if said is None or stored == said:
        return True
    if isinstance(said, Mapping):
        if not isinstance(stored, Mapping):
            return stored is None and not any(value is not None for value in said.values())
        return all(_holds(stored.get(name), value) for name, value in said.items())
    if isinstance(said, list):
        left = isinstance(stored, list) and len(stored) == len(said)
        return left and all(_holds(one, other) for one, other in zip(stored, said, strict=True))
    return isinstance(stored, str) and isinstance(said, str) and _moment(stored) == _moment(said) is not None


def _moment(text: str) -> Any:
    """The instant that a text names, which may be stored in another zone; None where it names none."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


# What a request changed, as the specification's events: core/events.md.
#
# Rule: an event is `[type, subject, changed]`; one for each subject at most of created, updated and deleted (EVENTS-7),
# `changed` only on updates and deprecations. They are recorded with the write; delivering them is not this module's.


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


# Writing a request's work down: rows, index entries, and the record of what changed.
#
# Rule 1: only what was touched is written; index entries are compared, so that an update costs what it changes.
# Rule 2: one row of `changes` a request, in the same transaction: a change and its effect are seen together or not.
# Rule 3: what an export would nest deeper than a load takes is refused, whatever brought it in.


def commit(work: Work, correlation: str) -> int | None:
    """Write everything that the request changed, and return the number of the change; None where there is none."""
    forget_same_documents(work)
    schema_ids.assign(work)
    events = events_of(work)
    for state in work.resources.values():
        if state is not None:
            _commit_resource(work, state, events)
    for group in work.groups.values():
        if group is not None:
            _commit_group(work, group)
    _date(work, events)
    registry = work.registry_
    if registry is not None and (registry.touched or registry.refreshed):
        row = registry.row
        rows.save(
            work.db,
            row._replace(
                epoch=registry.epoch, createdat=registry.createdat, modifiedat=registry.modifiedat,
                counts=_json_text(registry.counts), doc=_json_text(registry.attrs),
            ),
        )  # fmt: skip
    enter_terms(work.db, work.entries)
    checks.enter(work)
    if work.new_settings:
        save_setup(work.db, work.new_settings)
    if work.capabilities.shortself:
        _name(work)
    if not events:
        return None
    found = work.db.one(
        "INSERT INTO changes (at, correlation, events) VALUES (?, ?, ?) RETURNING seq",
        (work.now, correlation, orjson.dumps(events).decode()),
    )
    assert found is not None
    return int(found[0])


def _date(work: Work, events: list[Event]) -> None:
    """Give the events of groups the times that the groups show, where a client has chosen these."""
    chosen = {group.xid: group.modifiedat for group in work.groups.values() if group is not None and group.touched}
    for event in events:
        if event[0] in ("group.created", "group.updated") and chosen.get(event[1], work.now) != work.now:
            event.append(chosen[event[1]])


def _name(work: Work) -> None:
    """Give everything new its short name; everything there is where the request switched short names on."""
    if "shortself" in work.changed_capabilities:
        render.enter_all(work.db)
        return
    for group in work.groups.values():
        if group is not None and group.row is None and not group.deleted:
            render.enter(work.db, rows.group_key(group.xid), group.xid)
    for state in work.resources.values():
        if state is None or state.deleted:
            continue
        if state.row is None:
            render.enter(work.db, rows.resource_key(state.xid), state.xid)
        for version in state.versions.values():
            if version.row is None:
                xid = f"{state.xid}/versions/{version.versionid}"
                render.enter(work.db, rows.version_key(state.xid, version.versionid), xid)


def _json_text(value: object) -> str:
    return orjson.dumps(value).decode()


def _commit_group(work: Work, group: GroupState) -> None:
    if group.deleted:
        _delete_subtree(work, group)
    elif group.touched or group.refreshed:
        rows.save(
            work.db,
            EntityRow(
                rows.group_key(group.xid), group.xid, group.type.plural, group.epoch, group.createdat,
                group.modifiedat, counts=_json_text(group.counts),
                doc=export_text(group.attrs, group.xid, AROUND_GROUP),
            ),
        )  # fmt: skip


def _delete_subtree(work: Work, group: GroupState) -> None:
    if group.row is None:
        return
    low, high = rows.range_of(rows.VERSION, group.xid)
    _forget(work, work.db.execute(rows.SELECT_RANGE, (low, high)))
    for kind in (rows.RESOURCE, rows.VERSION):
        work.db.execute("DELETE FROM entities WHERE key > ? AND key < ?", rows.range_of(kind, group.xid))
    work.db.execute("DELETE FROM entities WHERE key = ?", (rows.group_key(group.xid),))
    if any(kind.modelcompatiblewith in work.recorded for kind in group.type.resources.values()):
        changes.forget_below(work.db, group.xid)


def _commit_resource(work: Work, state: ResourceState, events: list[Event]) -> None:
    if state.group.deleted:
        return  # goes with its group
    key = rows.resource_key(state.xid)
    if state.deleted:
        if state.row is not None:
            low, high = rows.range_of(rows.VERSION, state.xid)
            _forget(work, work.db.execute(rows.SELECT_RANGE, (low, high)))
            work.db.execute("DELETE FROM entities WHERE key > ? AND key < ?", (low, high))
            work.db.execute("DELETE FROM entities WHERE key = ?", (key,))
            if state.type.modelcompatiblewith in work.recorded:
                changes.forget(work.db, key)
        return
    for version in state.gone.values():
        assert version.row is not None
        _forget(work, [version.row])
        work.db.execute("DELETE FROM entities WHERE key = ?", (version.row.key,))
    for version in state.versions.values():
        if version.touched or version.refreshed:
            _commit_version(work, state, version)
    if state.touched or state.xref_written or state.refreshed:
        assert state.xref is not None or state.default is not None
        link = rows.version_key(state.xid, state.default) if state.default is not None else None
        size = len(work.complete(state)) if state.xref is None else 0
        row = EntityRow(
            key, state.xid, state.typename, state.epoch, state.createdat, state.modifiedat, None, link, state.xref,
            size, int(state.sticky), state.nextid, doc=export_text(state.attrs, f"{state.xid}/meta", AROUND_META),
        )  # fmt: skip
        rows.save(work.db, row)
        work.saved[key] = row
    if state.type.modelcompatiblewith in work.recorded:
        events.extend(changes.event(changes.CREATED, state.xid, number) for number in _recorded(work, state, key))


def _recorded(work: Work, state: ResourceState, key: str) -> list[int]:
    """Take a snapshot of a default version that says something else than the one before, and of what led to it."""
    link = rows.version_key(state.xid, state.default) if state.default is not None else None
    row = work.saved.get(link) if link is not None else None
    if row is None:
        return []
    if state.passed:
        xids = f"{state.xid}/versions/"
        passed = (export_text(one.attrs, xids + one.versionid, AROUND_VERSION) for one in state.passed)
        line = [*passed, row.doc]
        return changes.record_line(work.db, key, work.now, line)
    if state.row is not None and state.row.link == link and _same_row(state, row):
        return []
    return [changes.record(work.db, key, work.now, row.doc)]


def _same_row(state: ResourceState, row: EntityRow) -> bool:
    before = state.versions[state.default].row if state.default is not None else None
    return before is not None and before.doc == row.doc


def _commit_version(work: Work, state: ResourceState, version: VersionState) -> None:
    key = rows.version_key(state.xid, version.versionid)
    xid, typename = f"{state.xid}/versions/{version.versionid}", state.typename
    row = EntityRow(
        key, xid, typename + "/versions", version.epoch, version.createdat, version.modifiedat, version.ancestor,
        form=version.form, doc=export_text(version.attrs, xid, AROUND_VERSION),
    )  # fmt: skip
    if version.content is not KEEP:
        rows.save(work.db, row, version.content)
    elif version.row is None:
        rows.save(work.db, row)
    else:
        new = (row.epoch, row.createdat, row.modifiedat, row.ancestor, row.form, row.doc, key)
        work.db.execute(rows.UPDATE_VERSION, new)
    work.saved[key] = row
    if version.row is not None and version.row.doc == row.doc:
        return
    stale, fresh = changed_terms(version.before, version.attrs)
    if version.row is None:
        fresh.add((state.type.singular + "id", state.id.lower()))
    if fresh or stale:
        at_once = {one for one in fresh if one[0] in AT_ONCE}
        work.entries.append(
            IndexEntry(
                key, term_numbers(typename, fresh), term_numbers(typename, stale), term_numbers(typename, at_once)
            )
        )


def _forget(work: Work, found: list[tuple[object, ...]] | list[EntityRow]) -> None:
    """Take versions out of the index."""
    for one in found:
        row = EntityRow(*one)  # type: ignore[arg-type]
        _, group, _, resource, id_, *_ = row.xid.split("/")
        kind = work.model.groups[group].resources[resource]
        stale = terms_of(orjson.loads(row.doc)) | {(kind.singular + "id", id_.lower())}
        work.entries.append(IndexEntry(row.key, (), term_numbers(f"{group}/{resource}", stale)))
