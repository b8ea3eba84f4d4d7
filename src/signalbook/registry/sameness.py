"""What a request leaves as it is stored: which values are the same, and how a part of a load writes only what is new.

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

from signalbook.document.model import ResourceType
from signalbook.errors import RegistryError
from signalbook.registry import incoming, rows
from signalbook.registry.documents import given_bytes
from signalbook.registry.spellings import canonical, canonical_members
from signalbook.registry.state import KEEP, GroupState, RegistryState, ResourceState, VersionState, Work
from signalbook.registry.store import Connection

__all__ = ["Load", "differing", "forget_same_documents", "leave_same", "open_load", "refuse_other"]

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
                drop = incoming.GROUP_SYSTEM | collections | {kind.singular + "id"}
                said = canonical_members(canonical(kind, entry, state.xid), work.spec, state.xid)
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
    drop = incoming.META_SYSTEM - {"xref"} | {state.type.singular + "id"}
    _refuse_other(canonical_members(meta, work.spec, xid), {**state.attrs, "xref": state.xref}, drop, xid)


def _refuse_other_versions(kind: ResourceType, entry: Mapping[str, Any], state: ResourceState) -> None:
    """Refuse versions that are not what was sent; those that their type does not keep are told elsewhere."""
    documents = set(incoming.document_names(kind)) if kind.hasdocument else set()
    drop = incoming.VERSION_SYSTEM | incoming.RESOURCE_MEMBERS | documents | {kind.singular + "id"}
    given = entry.get("versions") or {str(state.default): entry}
    for versionid, said in given.items():
        version = state.versions.get(versionid)
        if version is not None:
            xid = f"{state.xid}/versions/{versionid}"
            _refuse_other(canonical(kind, said, xid), version.attrs, drop, xid)
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
