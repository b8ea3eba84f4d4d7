"""Writing resources, their meta and their versions: core/spec.md, "Resource Processing Algorithm".

Rule 1: the entry points (`write_resource`, `write_meta`, `write_versions`, `write_version`) read a request into a
`ResourceState`; `versions.settle` then brings ancestors, default version and limits in order.
Rule 2: nothing here writes to the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from signalbook.errors import RegistryError
from signalbook.model.constraints import constraint_defaults
from signalbook.model.model import ResourceType
from signalbook.model.xids import Xid, check_id
from signalbook.registry import incoming
from signalbook.registry.formats import VALIDATED
from signalbook.registry.incoming import apply_document
from signalbook.registry.setup import patched, read_request
from signalbook.registry.work import GroupState, ResourceState, VersionState, Work
from signalbook.registry.write.versions import Ask, check_writable, refuse_xref, settle

__all__ = ["Ask", "write_meta", "write_resource", "write_version", "write_versions"]


def write_resource(
    work: Work, group: GroupState, kind: ResourceType, id_: str, body: Mapping[str, Any], ask: Ask
) -> ResourceState:
    """Create or update a resource with everything a request says about it."""
    state = _open(work, group, kind, id_)
    body = read_request(kind, body, state.xid, patch=ask.patch)
    if work.checks_id(state.xid):
        incoming.check_id_matches(body, kind.singular, id_, state.xid)
    meta: Mapping[str, Any] | None = None
    if body.get("meta") is not None:
        meta = incoming.object_of(body["meta"], "meta", state.xid)
    if _becomes_xref(state, meta, ask):
        _write_xref(work, state, body, meta, ask)
        return state
    was_xref = _leave_xref(work, state)
    nested = incoming.entries(body.get("versions"), "versions", "version", state.xid)
    fresh = state.row is None or was_xref
    target = _default_target(state, body, meta, nested, ask, fresh=fresh)
    for versionid, entry in nested.items():
        _apply_version(work, state, versionid, entry, ask)
    processed = list(nested)
    if target is not None and target not in nested:
        processed.append(_apply_version(work, state, target or None, body, ask, whole_resource=True).versionid)
    settle(work, state, ask, meta=meta, processed=processed)
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
    settle(work, state, ask, meta=body, processed=[])
    return state


def write_versions(
    work: Work, group: GroupState, kind: ResourceType, id_: str, bodies: Mapping[str, Mapping[str, Any]], ask: Ask
) -> ResourceState:
    """Create or update several versions."""
    state = _open(work, group, kind, id_)
    refuse_xref(state)
    for versionid, body in bodies.items():
        _apply_version(work, state, versionid, body, ask)
    settle(work, state, ask, meta=None, processed=list(bodies))
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
    settle(work, state, ask, meta=None, processed=[version.versionid])
    return state, version


_RESOURCE_LEVEL = incoming.RESOURCE_MEMBERS - {"meta", "versions"}


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
        incoming.check_id_matches(meta, kind.singular, state.id, xid)
    target = meta.get("xref", state.xref)
    if ask.setdefault is not None:
        raise RegistryError("extra_xref_attribute", xid, name="defaultversionid", singular=kind.singular)
    _check_xref(work, kind, target, xid)
    if state.row is not None and state.xref is None:
        incoming.check_epoch(meta, state.row.epoch, xid, work.ignore)
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
        body = read_request(kind, body, state.xid, patch=ask.patch)
    if versionid is None:
        versionid = _chosen(work, state, body.get("versionid"))
    version = _find(work, state, versionid)
    xid = f"{state.xid}/versions/{versionid}"
    if version is None:
        _check_new_id(state, versionid, body, xid)
    if not whole_resource and work.checks_id(xid):
        if work.checks_id(state.xid):
            incoming.check_id_matches(body, kind.singular, state.id, xid)
        incoming.check_id_matches(body, "version", versionid, xid)
    if version is None:
        version = VersionState(versionid, None, {}, work.now, work.now, None, content=None)
        state.versions[versionid] = version
        work.touch_meta(state)
        state.reshuffled = True
    else:
        incoming.check_epoch(body, version.row.epoch if version.row else 1, xid, work.ignore)
    _apply_ancestor(state, version, body)
    before = version.createdat
    version.createdat = incoming.created(body, version.row and version.createdat, work.now, xid)
    version.modifiedat = incoming.modified(body, version.row and version.modifiedat, work.now, xid)
    if version.createdat != before or kind.versionmode == "modifiedat":
        state.reshuffled = True
    drop = incoming.VERSION_SYSTEM
    if whole_resource:
        drop = drop | incoming.RESOURCE_MEMBERS
    names = incoming.document_names(kind) if kind.hasdocument else ()
    rid = kind.singular + "id"
    given = {name: value for name, value in body.items() if name not in drop and name != rid and name not in names}
    merged = dict(patched(kind, version.attrs, given, work.spec, xid)) if ask.patch else given
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
        incoming.read_texts(kind.version_level, attrs, given)
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
    if not incoming.is_id(versionid):
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
    if given is not None and not incoming.is_id(given):
        raise RegistryError(
            "invalid_attribute", state.xid, name="ancestorid",
            error_detail=f'value "{given}" must match: ^[a-zA-Z0-9_][a-zA-Z0-9_.\\-~:@]{{0,127}}$',
        )  # fmt: skip
    if given == "request":
        given = version.versionid
    if given != version.ancestor:
        version.ancestor = given
        state.reshuffled = True
