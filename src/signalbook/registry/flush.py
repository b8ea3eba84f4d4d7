"""Writing a request's work down: rows, index entries, and the record of what changed.

Rule 1: only what was touched is written; index entries are compared, so that an update costs what it changes.
Rule 2: one row of `changes` a request, in the same transaction: a change and its effect are seen together or not.
Rule 3: what an export would nest deeper than a load takes is refused, whatever brought it in.
"""

from __future__ import annotations

import orjson

from signalbook.document.json_text import AROUND_GROUP, AROUND_META, AROUND_VERSION, export_text
from signalbook.registry import rows, schema_names, shortnames, snapshots
from signalbook.registry.events import Event, events_of
from signalbook.registry.index import Entry, enter
from signalbook.registry.rows import Row
from signalbook.registry.sameness import forget_same_documents
from signalbook.registry.setup import save_setup
from signalbook.registry.state import KEEP, GroupState, ResourceState, VersionState, Work
from signalbook.registry.terms import AT_ONCE, differences, numbers, terms

__all__ = ["flush"]


def flush(work: Work, correlation: str) -> None:
    """Write everything that the request changed."""
    forget_same_documents(work)
    events = events_of(work)
    for state in work.resources.values():
        if state is not None:
            _flush_resource(work, state, events)
    for group in work.groups.values():
        if group is not None:
            _flush_group(work, group)
    _date(work, events)
    registry = work.registry_
    if registry is not None and (registry.touched or registry.refreshed):
        row = registry.row
        rows.save(
            work.db,
            row._replace(
                epoch=registry.epoch, createdat=registry.createdat, modifiedat=registry.modifiedat,
                counts=_text(registry.counts), doc=_text(registry.attrs),
            ),
        )  # fmt: skip
    enter(work.db, work.entries)
    schema_names.enter(work)
    if work.new_settings:
        save_setup(work.db, work.new_settings)
    if work.capabilities.shortself:
        _name(work)
    if events:
        work.db.execute(
            "INSERT INTO changes (at, correlation, events) VALUES (?, ?, ?)",
            (work.now, correlation, orjson.dumps(events).decode()),
        )


def _date(work: Work, events: list[Event]) -> None:
    """Give the events of groups the times that the groups show, where a client has chosen these."""
    chosen = {group.xid: group.modifiedat for group in work.groups.values() if group is not None and group.touched}
    for event in events:
        if event[0] in ("group.created", "group.updated") and chosen.get(event[1], work.now) != work.now:
            event.append(chosen[event[1]])


def _name(work: Work) -> None:
    """Give everything new its short name; everything there is where the request switched short names on."""
    if "shortself" in work.changed_capabilities:
        shortnames.enter_all(work.db)
        return
    for group in work.groups.values():
        if group is not None and group.row is None and not group.deleted:
            shortnames.enter(work.db, rows.group_key(group.xid), group.xid)
    for state in work.resources.values():
        if state is None or state.deleted:
            continue
        if state.row is None:
            shortnames.enter(work.db, rows.resource_key(state.xid), state.xid)
        for version in state.versions.values():
            if version.row is None:
                xid = f"{state.xid}/versions/{version.versionid}"
                shortnames.enter(work.db, rows.version_key(state.xid, version.versionid), xid)


def _text(value: object) -> str:
    return orjson.dumps(value).decode()


def _flush_group(work: Work, group: GroupState) -> None:
    if group.deleted:
        _delete_subtree(work, group)
    elif group.touched or group.refreshed:
        rows.save(
            work.db,
            Row(
                rows.group_key(group.xid), group.xid, group.type.plural, group.epoch, group.createdat,
                group.modifiedat, counts=_text(group.counts), doc=export_text(group.attrs, group.xid, AROUND_GROUP),
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
        snapshots.forget_below(work.db, group.xid)


def _flush_resource(work: Work, state: ResourceState, events: list[Event]) -> None:
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
                snapshots.forget(work.db, key)
        return
    for version in state.gone.values():
        assert version.row is not None
        _forget(work, [version.row])
        work.db.execute("DELETE FROM entities WHERE key = ?", (version.row.key,))
    for version in state.versions.values():
        if version.touched or version.refreshed:
            _flush_version(work, state, version)
    if state.touched or state.xref_written or state.refreshed:
        assert state.xref is not None or state.default is not None
        link = rows.version_key(state.xid, state.default) if state.default is not None else None
        size = len(work.complete(state)) if state.xref is None else 0
        row = Row(
            key, state.xid, state.typename, state.epoch, state.createdat, state.modifiedat, None, link, state.xref,
            size, int(state.sticky), state.nextid, doc=export_text(state.attrs, f"{state.xid}/meta", AROUND_META),
        )  # fmt: skip
        rows.save(work.db, row)
        work.saved[key] = row
    if state.type.modelcompatiblewith in work.recorded:
        events.extend(snapshots.event(snapshots.CREATED, state.xid, number) for number in _recorded(work, state, key))


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
        return snapshots.record_line(work.db, key, work.now, line)
    if state.row is not None and state.row.link == link and _same(state, row):
        return []
    return [snapshots.record(work.db, key, work.now, row.doc)]


def _same(state: ResourceState, row: Row) -> bool:
    before = state.versions[state.default].row if state.default is not None else None
    return before is not None and before.doc == row.doc


def _flush_version(work: Work, state: ResourceState, version: VersionState) -> None:
    key = rows.version_key(state.xid, version.versionid)
    xid, typename = f"{state.xid}/versions/{version.versionid}", state.typename
    row = Row(
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
    stale, fresh = differences(version.before, version.attrs)
    if version.row is None:
        fresh.add((state.type.singular + "id", state.id.lower()))
    if fresh or stale:
        at_once = {one for one in fresh if one[0] in AT_ONCE}
        work.entries.append(Entry(key, numbers(typename, fresh), numbers(typename, stale), numbers(typename, at_once)))


def _forget(work: Work, found: list[tuple[object, ...]] | list[Row]) -> None:
    """Take versions out of the index."""
    for one in found:
        row = Row(*one)  # type: ignore[arg-type]
        _, group, _, resource, id_, *_ = row.xid.split("/")
        kind = work.model.groups[group].resources[resource]
        stale = terms(orjson.loads(row.doc)) | {(kind.singular + "id", id_.lower())}
        work.entries.append(Entry(row.key, (), numbers(f"{group}/{resource}", stale)))
