"""Writing and deleting the registry, its groups, and resources with their meta.

Rule 1: a request is read outside in: registry, groups, resources, each into its state in `Work`; nothing here writes to
the store. `versions.arrange_versions` then brings a resource's ancestors, default version and limits in order.
Rule 2: a missing parent is made with the ids of the path, as if it had been written empty (GROUP-3).
Rule 3: deleting several names each by its id, with the epoch to be met where the request gives one; what is not there
is passed over. Deleting one that is not there is an error, and so is deleting a group with a read-only resource.

core/spec.md, "Resource Processing Algorithm"; DEL-1 to DEL-6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.model.constraints import constraint_defaults
from signalbook.model.model import GroupType, ResourceType
from signalbook.model.normalise import canonical_members
from signalbook.model.xids import Xid, check_id
from signalbook.registry import rows
from signalbook.registry.documents import apply_document, document_names
from signalbook.registry.formats import VALIDATED
from signalbook.registry.work import (
    GROUP_SYSTEM,
    RESOURCE_MEMBERS,
    VERSION_SYSTEM,
    GroupState,
    ResourceState,
    VersionState,
    Work,
    check_epoch,
    check_id_matches,
    created_at,
    epoch_of,
    is_id,
    modified_at,
    nested_entries,
    object_of,
    read_texts,
)
from signalbook.registry.write.versions import (
    Ask,
    arrange_versions,
    check_writable,
    drop_version,
    oldest_first,
    refuse_xref,
)

__all__ = [
    "Ask", "collection_of", "delete_group", "delete_groups", "delete_resource", "delete_resources", "delete_version",
    "delete_versions", "epoch_asked", "need_group", "write_collections", "write_group", "write_groups", "write_meta",
    "write_registry", "write_resource", "write_resources", "write_version", "write_versions",
]  # fmt: skip


def write_registry(work: Work, body: dict[str, Any], *, patch: bool) -> None:
    """Update the registry's own attributes and everything nested: REG-8."""
    registry = work.registry
    registryid = work.registryid
    if work.checks_id("/"):
        check_id_matches(body, "registry", registryid, "/")
    check_epoch(body, registry.row.epoch, "/", work.ignore)
    registry.createdat = created_at(body, registry.createdat, work.now, "/")
    modified = modified_at(body, registry.row.modifiedat, work.now, "/")
    plurals = work.model.groups
    drop = GROUP_SYSTEM | _SETTINGS | _collection_names(plurals)
    given = {name: value for name, value in body.items() if name not in drop}
    merged = {**registry.attrs, **given} if patch else given
    registry.attrs = work.model.level.normalise(merged, "/")
    work.touch_registry()
    registry.modifiedat = modified
    registry.written = True
    for plural, kind in plurals.items():
        if plural in body:
            write_groups(work, kind, collection_of(body[plural], plural, kind.singular, "/"), Ask(patch=patch))


_SETTINGS = frozenset({"registryid", "specversion", "capabilities", "model", "modelsource"})


def write_collections(
    work: Work, kinds: Mapping[str, GroupType], body: dict[str, Any], subject: str, ask: Ask
) -> dict[str, list[GroupState]]:
    """Write several collections of groups, as POST to the registry does: WRITE-3."""
    for name in sorted(body):
        if name not in kinds and name != "$schema":
            raise RegistryError("groups_only", subject, name=name)
    return {
        plural: write_groups(work, kinds[plural], collection_of(value, plural, kinds[plural].singular, subject), ask)
        for plural, value in body.items()
        if plural in kinds
    }


def write_groups(work: Work, kind: GroupType, bodies: Mapping[str, dict[str, Any]], ask: Ask) -> list[GroupState]:
    """Create or update several groups of one type."""
    return [write_group(work, kind, id_, body, ask) for id_, body in bodies.items()]


def write_group(work: Work, kind: GroupType, id_: str, body: Mapping[str, Any], ask: Ask) -> GroupState:
    """Create or update one group and the resources nested in it."""
    group = need_group(work, kind, id_, check=False)
    body = canonical_members(kind.normaliser.read_request(body, group.xid, patch=ask.patch), work.spec, group.xid)
    if work.checks_id(group.xid):
        check_id_matches(body, kind.singular, id_, group.xid)
    check_epoch(body, group.row and group.row.epoch, group.xid, work.ignore)
    group.createdat = created_at(body, group.row and group.createdat, work.now, group.xid)
    modified = modified_at(body, group.row and group.row.modifiedat, work.now, group.xid)
    drop = GROUP_SYSTEM | _collection_names(kind.resources) | {kind.singular + "id"}
    given = {name: value for name, value in body.items() if name not in drop}
    merged = kind.normaliser.patched(group.attrs, given, work.spec, group.xid) if ask.patch else given
    group.attrs = kind.level.normalise(merged, group.xid)
    group.touched = group.written = True
    group.modifiedat = modified
    for plural, resource_kind in kind.resources.items():
        if plural in body:
            nested = nested_entries(body[plural], plural, resource_kind.singular, group.xid)
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


def collection_of(value: object, plural: str, singular: str, subject: str) -> dict[str, dict[str, Any]]:
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


# ---- resources


def write_resource(
    work: Work, group: GroupState, kind: ResourceType, id_: str, body: Mapping[str, Any], ask: Ask
) -> ResourceState:
    """Create or update a resource with everything a request says about it."""
    state = _open(work, group, kind, id_)
    body = kind.normaliser.read_request(body, state.xid, patch=ask.patch)
    if work.checks_id(state.xid):
        check_id_matches(body, kind.singular, id_, state.xid)
    meta: Mapping[str, Any] | None = None
    if body.get("meta") is not None:
        meta = object_of(body["meta"], "meta", state.xid)
    if _becomes_xref(state, meta, ask):
        _write_xref(work, state, body, meta, ask)
        return state
    was_xref = _leave_xref(work, state)
    nested = nested_entries(body.get("versions"), "versions", "version", state.xid)
    fresh = state.row is None or was_xref
    target = _default_target(state, body, meta, nested, ask, fresh=fresh)
    for versionid, entry in nested.items():
        _apply_version(work, state, versionid, entry, ask)
    processed = list(nested)
    if target is not None and target not in nested:
        processed.append(_apply_version(work, state, target or None, body, ask, whole_resource=True).versionid)
    arrange_versions(work, state, ask, meta=meta, processed=processed)
    return state


def write_meta(
    work: Work, group: GroupState, kind: ResourceType, id_: str, body: Mapping[str, Any], ask: Ask
) -> ResourceState:
    """Create or update a resource's meta; a resource that is not there yet gets one empty version."""
    state = _open(work, group, kind, id_)
    if _becomes_xref(state, body, ask):
        _write_xref(work, state, {}, body, ask)
        return state
    if _leave_xref(work, state) or state.row is None:
        _apply_version(work, state, None, {}, Ask())
    arrange_versions(work, state, ask, meta=body, processed=[])
    return state


def write_versions(
    work: Work, group: GroupState, kind: ResourceType, id_: str, bodies: Mapping[str, Mapping[str, Any]], ask: Ask
) -> ResourceState:
    """Create or update several versions."""
    state = _open(work, group, kind, id_)
    refuse_xref(state)
    for versionid, body in bodies.items():
        _apply_version(work, state, versionid, body, ask)
    arrange_versions(work, state, ask, meta=None, processed=list(bodies))
    return state


def write_version(
    work: Work, group: GroupState, kind: ResourceType, id_: str, versionid: str | None, body: Mapping[str, Any],
    ask: Ask,
) -> tuple[ResourceState, VersionState]:  # fmt: skip
    """Create or update one version; without an id in the path the body or the server names it."""
    state = _open(work, group, kind, id_)
    refuse_xref(state)
    if versionid is None:  # WRITE-4: what a GET of the resource gave may be posted as it is
        body = {name: value for name, value in body.items() if name not in _RESOURCE_LEVEL}
    version = _apply_version(work, state, versionid, body, ask)
    arrange_versions(work, state, ask, meta=None, processed=[version.versionid])
    return state, version


_RESOURCE_LEVEL = RESOURCE_MEMBERS - {"meta", "versions"}


# ---- opening


def _open(work: Work, group: GroupState, kind: ResourceType, id_: str) -> ResourceState:
    state = work.resource(group, kind, id_)
    if state is None:
        check_id(id_, f"{group.xid}/{kind.plural}/{id_}")
        return work.new_resource(group, kind, id_)
    if state.id != id_:
        raise RegistryError(
            "bad_request", f"{group.xid}/{kind.plural}/{id_}",
            error_detail=f'"{id_}" differs from the existing "{state.id}" only by case',
        )  # fmt: skip
    check_writable(work, state)
    return state


# ---- cross references


def _becomes_xref(state: ResourceState, meta: Mapping[str, Any] | None, ask: Ask) -> bool:
    """Tell whether the resource is a cross reference after this request."""
    if meta is not None and "xref" in meta:
        return bool(meta["xref"])
    return state.xref is not None and (meta is None or ask.patch)


def _write_xref(
    work: Work, state: ResourceState, body: Mapping[str, Any], meta: Mapping[str, Any] | None, ask: Ask
) -> None:
    """Make the resource show another one: XREF-2, XREF-3."""
    kind, xid = state.type, f"{state.xid}/meta"
    meta = meta or {}
    ids = {kind.singular + "id", "self", "shortself", "xid", "$schema"}
    for extra in sorted(set(body) - ids - {"meta", "metaurl", "versionsurl", "versionscount"}):
        raise RegistryError("extra_xref_attribute", state.xid, name=extra, singular=kind.singular)
    for extra in sorted(set(meta) - ids - {"xref", "epoch"}):
        raise RegistryError("extra_xref_attribute", xid, name=extra, singular=kind.singular)
    if work.checks_id(state.xid):
        check_id_matches(meta, kind.singular, state.id, xid)
    target = meta.get("xref", state.xref)
    if ask.setdefault is not None:
        raise RegistryError("extra_xref_attribute", xid, name="defaultversionid", singular=kind.singular)
    _check_xref(work, kind, target, xid)
    if state.row is not None and state.xref is None:
        check_epoch(meta, state.row.epoch, xid, work.ignore)
    for versionid in list(work.complete(state)):
        work.remove_version(state, versionid)
    state.xref, state.default, state.sticky, state.attrs = target, None, False, {}
    state.touched, state.xref_written = False, True  # its own epoch rests until it is a resource of its own again


def _check_xref(work: Work, kind: ResourceType, target: object, subject: str) -> None:
    """Refuse what is not an xid of a resource of this type; whether it exists does not matter: XREF-1, XREF-8."""
    try:
        xid = Xid.parse(str(target))
    except ValueError as problem:
        raise RegistryError("malformed_xref", subject, xref=target, error_detail=str(problem)) from None
    groups = work.model.groups.get(xid.groups)
    if groups is None or groups.resources.get(xid.resources) is not kind or xid.kind != "resource":
        raise RegistryError(
            "malformed_xref", subject, xref=target, error_detail=f'it is not the xid of a "{kind.singular}" resource'
        )


def _leave_xref(work: Work, state: ResourceState) -> bool:
    """Make a cross reference a resource of its own again: XREF-6."""
    if state.xref is None:
        return False
    state.floor = work.target_epoch(state.xref)
    state.xref = None
    work.touch_meta(state)
    return True


# ---- versions


def _default_target(
    state: ResourceState, body: Mapping[str, Any], meta: Mapping[str, Any] | None, nested: Mapping[str, Any],
    ask: Ask, *, fresh: bool,
) -> str | None:  # fmt: skip
    """Return the version that resource-level attributes go to; "" for a new one, None for nowhere: RES-4, RES-5."""
    given = body.get("versionid")
    if not fresh:
        if given is not None and given != state.default:
            raise RegistryError(
                "mismatched_id", state.xid, singular="version", invalid_id=given, expected_id=state.default
            )
        return state.default
    clue = given or (meta or {}).get("defaultversionid")
    if not clue and not nested and ask.setdefault not in ("null", "request"):
        clue = ask.setdefault
    return str(clue) if clue else None if nested else ""


def _apply_version(
    work: Work, state: ResourceState, versionid: str | None, body: Mapping[str, Any], ask: Ask, *,
    whole_resource: bool = False,
) -> VersionState:  # fmt: skip
    """Create or update one version from one JSON object."""
    kind = state.type
    if not whole_resource:
        body = kind.normaliser.read_request(body, state.xid, patch=ask.patch)
    if versionid is None:
        versionid = _chosen(work, state, body.get("versionid"))
    version = _find(work, state, versionid)
    xid = f"{state.xid}/versions/{versionid}"
    if version is None:
        _check_new_id(state, versionid, body, xid)
    if not whole_resource and work.checks_id(xid):
        if work.checks_id(state.xid):
            check_id_matches(body, kind.singular, state.id, xid)
        check_id_matches(body, "version", versionid, xid)
    if version is None:
        version = VersionState(versionid, None, {}, work.now, work.now, None, content=None)
        state.versions[versionid] = version
        work.touch_meta(state)
        state.reshuffled = True
        check_epoch(body, None, xid, work.ignore)
    else:
        check_epoch(body, version.row.epoch if version.row else 1, xid, work.ignore)
    _apply_ancestor(state, version, body)
    before = version.createdat
    version.createdat = created_at(body, version.row and version.createdat, work.now, xid)
    version.modifiedat = modified_at(body, version.row and version.modifiedat, work.now, xid)
    if version.createdat != before or kind.versionmode == "modifiedat":
        state.reshuffled = True
    drop = VERSION_SYSTEM
    if whole_resource:
        drop = drop | RESOURCE_MEMBERS
    names = document_names(kind) if kind.hasdocument else ()
    rid = kind.singular + "id"
    given = {name: value for name, value in body.items() if name not in drop and name != rid and name not in names}
    merged = dict(kind.normaliser.patched(version.attrs, given, work.spec, xid)) if ask.patch else given
    if names:
        apply_document(kind, version, body, merged, ask, state.xid if whole_resource else xid)
    version.attrs = _checked(state, merged, given, names, ask, xid)
    version.touched = True
    return version


def _checked(
    state: ResourceState, attrs: dict[str, Any], given: Iterable[str], names: Sequence[str], ask: Ask, xid: str
) -> dict[str, Any]:
    """Return a version's attributes with defaults filled in, each of its type; `given` are those of this request."""
    kind, group = state.type, state.group
    if group.type.constraints or "constraints" in group.attrs:
        attrs = dict(constraint_defaults(group.type, group.attrs, kind.plural, attrs, group.xid))
    if ask.texts:
        read_texts(kind.version_level, attrs, given)
    held = {name: attrs.pop(name) for name in (*names[1:2], *VALIDATED) if name in attrs}
    checked = {**kind.version_level.normalise(attrs, xid), **held}
    if ask.fault is not None:
        raise ask.fault
    return checked


def _chosen(work: Work, state: ResourceState, given: object) -> str:
    """Return the id of a version that the path does not name: the body's, or one of the server's own."""
    if given is None:
        return _generate(work, state)
    return given if isinstance(given, str) else check_id(given, f"{state.xid}/versions/{given}")


def _find(work: Work, state: ResourceState, versionid: str) -> VersionState | None:
    version = state.versions.get(versionid)
    if version is None and not state.complete:
        version = work.complete(state).get(versionid)
    return version


def _check_new_id(state: ResourceState, versionid: object, body: Mapping[str, Any], xid: str) -> None:
    if not is_id(versionid):
        check_id(versionid, xid)
    if versionid in ("null", "request"):
        raise RegistryError("malformed_id", xid, id=versionid, error_detail=f'"{versionid}" is a reserved value')
    if not state.type.setversionid and not state.generated == versionid:
        raise RegistryError("versionid_not_allowed", state.xid, plural=state.type.plural)
    lowered = str(versionid).lower()
    for other in state.versions:
        if other.lower() == lowered:
            raise RegistryError(
                "bad_request", xid, error_detail=f'"{versionid}" differs from the existing "{other}" only by case'
            )


def _generate(work: Work, state: ResourceState) -> str:
    """Return the next versionid of the server's own: VER-3."""
    taken = {name.lower() for name in work.complete(state)}
    while str(state.nextid) in taken:
        state.nextid += 1
    state.generated = str(state.nextid)
    state.nextid += 1
    return state.generated


def _apply_ancestor(state: ResourceState, version: VersionState, body: Mapping[str, Any]) -> None:
    if "ancestorid" not in body:
        return
    given = body["ancestorid"]
    if given is not None and not is_id(given):
        raise RegistryError(
            "invalid_attribute", state.xid, name="ancestorid",
            error_detail=f'value "{given}" must match: ^[a-zA-Z0-9_][a-zA-Z0-9_.\\-~:@]{{0,127}}$',
        )  # fmt: skip
    if given == "request":
        given = version.versionid
    if given != version.ancestor:
        version.ancestor = given
        state.reshuffled = True


# ---- deleting

DeleteAsk = Mapping[str, Any] | None  # id -> what the request says of it; None: everything


def _check_epoch_given(subject: str, given: int | None, current: int) -> None:
    if given is not None and given != current:
        raise RegistryError("mismatched_epoch", subject, bad_epoch=given, epoch=current)


def epoch_asked(work: Work, entry: Mapping[str, Any], singular: str, subject: str, *, resource: bool) -> int | None:
    """Return the epoch that a request to delete the entity `subject` asks for; that of a resource is in its meta."""
    id_ = subject.rpartition("/")[2]
    check_id_matches(entry, singular, id_, subject)
    if not resource:
        return _epoch_unless_ignored(
            work, entry, subject, "value must be a uinteger" if singular == "version" else _MUST_BE_UINTEGER
        )
    meta = entry.get("meta")
    if meta is not None and not isinstance(meta, dict):
        raise RegistryError("invalid_attribute", subject, name="meta", error_detail='"meta" must be an object')
    check_id_matches(meta or {}, singular, id_, subject)
    if entry.get("epoch") is not None and "epoch" not in (meta or {}) and "epoch" not in work.ignore:
        raise RegistryError("misplaced_epoch", subject)
    return _epoch_unless_ignored(work, meta or {}, subject + "/meta", _MUST_BE_UINTEGER)


_MUST_BE_UINTEGER = "must be a uinteger"


def _epoch_unless_ignored(work: Work, entry: Mapping[str, Any], subject: str, detail: str) -> int | None:
    return None if "epoch" in work.ignore else epoch_of(entry, subject, detail)


def _entry_of(asked: Mapping[str, Any], id_: str, singular: str, subject: str) -> dict[str, Any]:
    entry = asked[id_]
    if entry is not None and not isinstance(entry, dict):
        path = subject.rpartition("/")[0]
        raise RegistryError("bad_request", path, error_detail=f'Value of "{id_}" must be a "{singular}"')
    return entry or {}


def delete_groups(work: Work, kind: GroupType, asked: DeleteAsk) -> None:
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
        entry = _entry_of(asked, id_, kind.singular, subject)
        delete_group(work, group, epoch_asked(work, entry, kind.singular, subject, resource=False))


def delete_group(work: Work, group: GroupState, epoch: int | None) -> None:
    """Delete a group with all its resources."""
    assert group.row is not None
    _check_epoch_given(group.xid, epoch, group.row.epoch)
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


def delete_resources(work: Work, group: GroupState, kind: ResourceType, asked: DeleteAsk) -> None:
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
        entry = _entry_of(asked, id_, kind.singular, subject)
        delete_resource(work, state, epoch_asked(work, entry, kind.singular, subject, resource=True))


def _is_passed_over(work: Work, state: ResourceState) -> bool:
    """Tell whether a read-only resource is left out of a request to delete several: FLAGS-6."""
    return bool(state.attrs.get("readonly")) and "readonly" in work.ignore


def delete_resource(work: Work, state: ResourceState, epoch: int | None) -> None:
    """Delete a resource with all its versions; the epoch of a cross reference is the one it shows: XREF-4."""
    if state.row is not None:
        shown = work.target_epoch(state.xref) if state.xref is not None else 0
        _check_epoch_given(state.xid + "/meta", epoch, shown or state.row.epoch)
    check_writable(work, state)
    state.deleted = True
    work.resize_group(state.group, state.type.plural, -1)


def delete_versions(work: Work, state: ResourceState, asked: DeleteAsk, ask: Ask) -> None:
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
        entry = _entry_of(asked, id_, "version", subject)
        _check_epoch_given(subject, epoch_asked(work, entry, "version", subject, resource=False), versions[id_].epoch)
        doomed.append(id_)
    _remove_versions(work, state, doomed, ask)


def delete_version(work: Work, state: ResourceState, versionid: str, epoch: int | None, ask: Ask) -> None:
    """Delete one version."""
    version = work.complete(state)[versionid]
    _check_epoch_given(f"{state.xid}/versions/{versionid}", epoch, version.epoch)
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
    for versionid in _newest_first(state, doomed):
        drop_version(work, state, versionid)
    arrange_versions(work, state, ask, meta=None, processed=[])


def _newest_first(state: ResourceState, doomed: list[str]) -> list[str]:
    """Return versions to delete with the newest first, so that nobody becomes a root only to go."""
    chosen = [state.versions[name] for name in doomed]
    return [version.versionid for version in reversed(oldest_first(chosen, state.type.versionmode))]
