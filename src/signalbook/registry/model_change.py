"""Changing a registry's model or capabilities while it holds entities: MODEL-15, MODEL-16, REG-4 to REG-6.

Rule 1: after a change every stored entity obeys the new model, or the first one that does not refuses the change.
Rule 2: what an entity gains by a change (a new default) is the server's doing and moves no epoch.
"""

from __future__ import annotations

from typing import Any

import orjson

from signalbook.document.include import resolve
from signalbook.document.json_text import AROUND_SETTING, export_text
from signalbook.document.model import GroupType, Model, ResourceType
from signalbook.document.model_read import read_model
from signalbook.errors import RegistryError
from signalbook.registry import capabilities, rows
from signalbook.registry.capabilities import Capabilities
from signalbook.registry.formats import VALIDATED
from signalbook.registry.incoming import document_names
from signalbook.registry.settling import Ask, check_sticky, settle
from signalbook.registry.state import GroupState, ResourceState, VersionState, Work

__all__ = ["write_capabilities", "write_model"]


_JUDGED = frozenset({"formats", "compatibilities"})


def write_capabilities(work: Work, body: Any, *, replace: bool, nested: bool = False) -> None:
    """Change the capabilities; null resets them to what the server starts with.

    `nested` is where they are part of the registry: who may not change them at their own path may not do so there.
    """
    before = work.capabilities
    if body is None:
        after = work.offer.initial()
    else:
        if isinstance(body, dict):
            body = {name: value for name, value in body.items() if name != "$schema"}
        after = capabilities.update(before, body, replace=replace, offer=work.offer)
    old, new = before.to_dict(), after.to_dict()
    work.changed_capabilities = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    if work.changed_capabilities and nested:
        _refuse_locked(before, "capabilities")
    work.capabilities = after
    if not _JUDGED.isdisjoint(work.changed_capabilities):
        _rejudge(work)
    work.new_settings["capabilities"] = after.to_json()
    work.registry.changed.add("capabilities")


def _refuse_locked(known: Capabilities, name: str) -> None:
    if not known.is_mutable(name):
        raise RegistryError("action_not_supported", f"/{name}", action="change", detail=f'"{name}" is not mutable.')


def _rejudge(work: Work) -> None:
    """Have every document judged again by what is now known of formats: what is stored obeys it, or refuses it."""
    for kind in work.model.groups.values():
        judged = [one for one in kind.resources.values() if one.validateformat]
        for group in list(work.groups_of(kind)) if judged else []:
            for state in (one for resource in judged for one in work.resources_of(group, resource)):
                state.recheck = state.rejudge = state.xref is None


def write_model(work: Work, source: Any, *, nested: Capabilities | None = None) -> None:
    """Replace the model.

    `nested` is where it is part of the registry: the capabilities before this request, which say whether it may. What
    the registry itself holds is then checked when it is written after this.
    """
    if not isinstance(source, dict):
        raise RegistryError("model_error", "/model", error_detail="the model must be an object")
    if nested is not None:
        stored = work.db.one("SELECT value FROM settings WHERE name = 'modelsource'")
        if stored is None or orjson.loads(stored[0]) != source:
            _refuse_locked(nested, "modelsource")
    resolved = resolve(source, work.load_include)
    model = read_model(resolved)
    before = work.model
    for plural in model.groups:
        if plural in work.reserved:
            raise RegistryError("model_error", "/model", error_detail=f'"{plural}" is a path of this server itself')
    _refuse_orphans(work, before, model)
    work.model = model
    work.new_settings["modelsource"] = export_text(source, "/modelsource", AROUND_SETTING)
    work.new_settings["resolved"] = export_text(resolved, "/modelsource", AROUND_SETTING)
    work.registry.changed |= {"model", "modelsource"}
    if nested is None:
        _recheck_root(work, before, model)
    _recheck(work, before, model)


def _refuse_orphans(work: Work, before: Model, after: Model) -> None:
    """Refuse to drop or rename a type that has entities."""
    for plural, kind in before.groups.items():
        size = work.registry.counts.get(plural, 0)
        new = after.groups.get(plural)
        if size and (new is None or new.singular != kind.singular):
            raise _in_use(f'Group type "{plural}"', "the model", size, _renaming(kind, new))
        if new is None:
            work.registry.counts.pop(plural, None)
            continue
        for name, resource in kind.resources.items():
            later = new.resources.get(name)
            if later is not None and later.singular == resource.singular:
                continue
            held = sum(group.counts.get(name, 0) for group in work.groups_of(kind))
            if held:
                raise _in_use(f'Resource type "{name}"', f'Group type "{plural}"', held, _renaming(resource, later))


def _renaming(before: GroupType | ResourceType, after: GroupType | ResourceType | None) -> str:
    return f"{before.singular} to {after.singular}" if after is not None else ""


def _in_use(what: str, where: str, size: int, change: str) -> RegistryError:
    """The error for a type that has entities and would go, or change its singular name (ID-10)."""
    doing, done = (f"change the singular of {what} from {change}", "changing") if change else ("", "removing")
    return RegistryError(
        "model_error", "/model",
        error_detail=f"can't {doing or f'remove {what} from {where}'} - it still has {size} entities. "
        f"Delete them before {done} the type",
    )  # fmt: skip


def _recheck_root(work: Work, before: Model, after: Model) -> None:
    registry = work.registry
    if registry.attrs or after.level.names - before.level.names:
        registry.attrs = after.level.normalise(registry.attrs, "/")


def _recheck(work: Work, before: Model, after: Model) -> None:
    registry = work.registry
    work.groups.clear()
    work.resources.clear()
    for plural, kind in after.groups.items():
        if not registry.counts.get(plural):
            continue
        for group in list(work.groups_of(kind)):
            _recheck_group(work, before, group)


def _recheck_group(work: Work, before: Model, group: GroupState) -> None:
    kind: GroupType = group.type
    old = before.groups[kind.plural]
    attrs = kind.level.normalise(group.attrs, group.xid)
    if attrs != group.attrs:
        group.attrs = attrs
        group.refreshed = True
    for resource in kind.resources.values():
        was = old.resources.get(resource.plural)
        for state in list(work.resources_of(group, resource)):
            _recheck_resource(work, was, state)


def _recheck_resource(work: Work, was: ResourceType | None, state: ResourceState) -> None:
    kind = state.type
    if state.xref is not None:
        return
    readonly = {name: state.attrs[name] for name in ("readonly",) if name in state.attrs}
    given = {name: value for name, value in state.attrs.items() if name != "readonly"}
    attrs = {**kind.meta_level.normalise(given, f"{state.xid}/meta"), **readonly}
    if attrs != state.attrs:
        state.attrs = attrs
        state.refreshed = True
    if kind.maxversions == 1 and state.sticky:
        raise RegistryError("setdefaultversionsticky_false", f"{state.xid}/meta")
    check_sticky(state)
    for version in work.complete(state).values():
        _recheck_version(work, was, state, version)
    state.reshuffled = was is None or _lineage_rules(was) != _lineage_rules(kind)
    settle(work, state, Ask(), meta=None, processed=[])
    state.recheck = True
    state.rejudge = was is None or _format_rules(was) != _format_rules(kind)


def _format_rules(kind: ResourceType) -> tuple[object, ...]:
    """Return what a type says about checking documents."""
    return kind.validateformat, kind.validatecompatibility, kind.strictvalidation


def _lineage_rules(kind: ResourceType) -> tuple[object, ...]:
    """Return what a type says about how versions follow each other."""
    return kind.versionmode, kind.maxversions, kind.singleversionroot


def _recheck_version(work: Work, was: ResourceType | None, state: ResourceState, version: VersionState) -> None:
    kind = state.type
    xid = f"{state.xid}/versions/{version.versionid}"
    names = document_names(kind)
    if was is not None and was.hasdocument != kind.hasdocument:
        if was.hasdocument:
            content = rows.load_content(work.db, rows.version_key(state.xid, version.versionid))
            if content:
                raise RegistryError("hasdocument_violation", xid, plural=kind.plural)
        else:
            for name in (*names, kind.singular + "proxyurl"):
                if name in version.attrs:
                    raise RegistryError("hasdocument_enable_violation", xid, name=name)
    kept = {name: value for name, value in version.attrs.items() if kind.hasdocument and name == names[1]}
    given = {name: value for name, value in version.attrs.items() if name not in kept and name not in VALIDATED}
    judged = {name: value for name, value in version.attrs.items() if name in VALIDATED}
    attrs = {**kind.version_level.normalise(given, xid), **kept, **judged}
    if attrs != version.attrs:
        version.attrs = attrs
        version.refreshed = True
