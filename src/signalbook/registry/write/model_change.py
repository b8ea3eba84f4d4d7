"""Changing a registry's model or capabilities while it holds entities: MODEL-15, MODEL-16, REG-4 to REG-6.

Rule 1: after a change every entity obeys the new model, or the first one that does not refuses the change. Where the
same request writes entities too, those that result are checked: `write_model` puts the model in force, the entities are
written by it, and `recheck` looks at what is there then.
Rule 2: what an entity gains by a change (a new default) is the server's doing and moves no epoch.
"""

from __future__ import annotations

from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.jsontext import AROUND_SETTING, export_text
from signalbook.model.attributes import model_error
from signalbook.model.model import GroupType, Model, ResourceType, read_model, resolve
from signalbook.registry import capabilities, rows
from signalbook.registry.capabilities import Capabilities
from signalbook.registry.documents import document_names
from signalbook.registry.formats import VALIDATED
from signalbook.registry.work import GroupState, ResourceState, VersionState, Work
from signalbook.registry.write.versions import Ask, arrange_versions, check_sticky

__all__ = ["recheck", "write_capabilities", "write_model"]

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
    if not nested:
        _rejudge(work)
    work.new_settings["capabilities"] = after.to_json()
    if work.changed_capabilities:
        work.registry.changed.add("capabilities")


def _refuse_locked(known: Capabilities, name: str) -> None:
    if not known.is_mutable(name):
        raise RegistryError("action_not_supported", f"/{name}", action="change", detail=f'"{name}" is not mutable.')


def _rejudge(work: Work) -> None:
    """Have every document validated again where the known formats changed; a document without its own refuses it."""
    if _JUDGED.isdisjoint(work.changed_capabilities):
        return
    for kind in work.model.groups.values():
        judged = [one for one in kind.resources.values() if one.validateformat]
        for group in list(work.groups_of(kind)) if judged else []:
            for state in (one for resource in judged for one in work.resources_of(group, resource)):
                state.recheck = state.revalidate = state.xref is None


def write_model(work: Work, source: Any, *, nested: Capabilities | None = None) -> None:
    """Replace the model; `recheck` has to follow once all entities of the request are written.

    `nested` is where it is part of the registry: the capabilities before this request, which say whether it may.
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
    for name, shown in (("modelsource", "modelsource"), ("resolved", "model")):
        stored = work.db.one("SELECT value FROM settings WHERE name = ?", (name,))
        if stored is None or stored[0] != work.new_settings[name]:
            work.registry.changed.add(shown)
    work.groups.clear()  # they were read with the types of the model before
    work.resources.clear()


def recheck(work: Work, before: Model) -> None:
    """Check every entity by the model and the capabilities that are in force after a request: MODEL-15, REG-4."""
    after = work.model
    if after is not before:
        if not work.registry.written:
            _recheck_root(work, before, after)
        for plural, kind in after.groups.items():
            if work.registry.counts.get(plural):
                for group in list(work.groups_of(kind)):
                    _recheck_group(work, before, group)
    _rejudge(work)


def _refuse_orphans(work: Work, before: Model, after: Model) -> None:
    """Refuse to drop a type that has entities, or to give any type another singular name (ID-10)."""
    for plural, kind in before.groups.items():
        size = work.registry.counts.get(plural, 0)
        new = after.groups.get(plural)
        _refuse_renaming("Group", kind, new)
        if size and new is None:
            raise _in_use(f'Group type "{plural}"', "the model", size)
        if new is None:
            work.registry.counts.pop(plural, None)
            continue
        for name, resource in kind.resources.items():
            later = new.resources.get(name)
            _refuse_renaming("Resource", resource, later)
            held = sum(group.counts.get(name, 0) for group in work.groups_of(kind)) if later is None else 0
            if held:
                raise _in_use(f'Resource type "{name}"', f'Group type "{plural}"', held)


def _refuse_renaming(level: str, before: GroupType | ResourceType, after: GroupType | ResourceType | None) -> None:
    if after is not None and after.singular != before.singular:
        words = f'changing the singular name of {level} type "{before.plural}" from "{before.singular}" to '
        raise model_error(f'{words}"{after.singular}" is not allowed, add another type instead')


def _in_use(what: str, where: str, size: int) -> RegistryError:
    """The error for a type that has entities and would go."""
    return model_error(
        f"can't remove {what} from {where} - it still has {size} entities. Delete them before removing the type"
    )


def _recheck_root(work: Work, before: Model, after: Model) -> None:
    registry = work.registry
    if registry.attrs or after.level.names - before.level.names:
        registry.attrs = after.level.normalise(registry.attrs, "/")


def _recheck_group(work: Work, before: Model, group: GroupState) -> None:
    kind: GroupType = group.type
    if group.row is None:  # made by this request, so by this model
        return
    old = before.groups[kind.plural]
    attrs = kind.level.normalise(group.attrs, group.xid)
    if attrs != group.attrs:
        group.attrs = attrs
        group.refreshed = True
    for resource in kind.resources.values():
        was = old.resources.get(resource.plural)
        for state in list(work.resources_of(group, resource)):
            if state.row is not None:
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
    for _, version in sorted(work.complete(state).items()):
        _recheck_version(work, was, state, version)
    if not state.reshuffled:  # else this request has arranged it by the new model
        state.reshuffled = was is None or _lineage_rules(was) != _lineage_rules(kind)
        arrange_versions(work, state, Ask(), meta=None, processed=[])
    state.recheck = True
    state.revalidate = was is None or _format_rules(was) != _format_rules(kind)


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
    if was is not None and was.hasdocument != kind.hasdocument and version.row is not None:
        if was.hasdocument:
            content = rows.load_content(work.db, rows.version_key(state.xid, version.versionid))
            if content:
                raise RegistryError("hasdocument_violation", xid, plural=kind.plural)
        elif not version.touched:  # else this request gave it the attributes of the new model
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
