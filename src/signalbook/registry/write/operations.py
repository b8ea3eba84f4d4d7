"""What each method does at each level: the table of WRITE-6 to WRITE-9, on one request's work.

Rule 1: an operation changes the work in progress and says what the response shows; it neither writes nor renders.
Rule 2: a pair of method and level that is not in the table is `action_not_supported`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from signalbook.errors import RegistryError
from signalbook.registry import rows, urls
from signalbook.registry.capabilities import Setup
from signalbook.registry.read.reads import Page, refuse_collections
from signalbook.registry.read.render import ReadContext, View, pair
from signalbook.registry.rows import EntityRow
from signalbook.registry.urls import Flags, InlineSet, RequestTarget, TargetKind, epoch_value
from signalbook.registry.work import GroupState, ResourceState, VersionState, Work
from signalbook.registry.write import model_change, resources
from signalbook.registry.write.versions import Ask, refuse_xref

__all__ = ["ALLOWED", "WriteOutcome", "perform", "show"]


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What a write leads to: the entities to show, and whether the one addressed is new.

    `shown` is the address of the answer's outermost value; `members` are the ids to show of a collection, by its name
    where the answer holds several.
    """

    created: bool = False
    shown: TargetKind | None = None
    members: Mapping[str, tuple[str, ...]] | None = None
    vid: str = ""  # the version that was written, where one was
    new_version: bool = False


@dataclass(frozen=True, slots=True)
class _Call:
    work: Work
    target: RequestTarget
    body: Any
    flags: Flags
    ask: Ask

    def group(self) -> GroupState:
        """Return the group addressed, made where it is missing."""
        return resources.need_group(self.work, self.target.group_type, self.target.gid)

    def existing_group(self) -> GroupState:
        """Return the group addressed, which has to be there."""
        group = self.work.group(self.target.group_type, self.target.gid)
        if group is None or group.id != self.target.gid:
            raise RegistryError("not_found", self.target.group_xid)
        return group

    def existing_resource(self, missing: str) -> ResourceState:
        """Return the resource addressed, which has to be there."""
        group = self.work.group(self.target.group_type, self.target.gid)
        state = None
        if group is not None and group.id == self.target.gid:
            state = self.work.resource(group, self.target.resource_type, self.target.rid)
        if state is None or state.id != self.target.rid:
            raise RegistryError("not_found", missing)
        return state

    def epoch(self, singular: str, subject: str) -> int | None:
        """Return the epoch that the DELETE of one entity asks for, by its flag or as a DELETE of several would say it.

        A body that says anything else was meant for another path, and what is deleted does not come back.
        """
        body, ids = self.body or {}, {f"{singular}id", *(("versionid",) if self.target.vid else ())}
        for name in sorted(body.keys() - {"epoch", "meta"} - ids):
            words = f'a DELETE of one entity takes its "epoch" and no "{name}"; several are deleted at their collection'
            raise RegistryError("bad_request", self.target.path, error_detail=words)
        given = resources.epoch_asked(self.work, body, singular, subject, resource=self.target.kind == "resource")
        text = self.flags.epoch
        return given if text is None or "epoch" in self.work.ignore else epoch_value(text, self.target.xid)

    def refuse_epoch(self) -> None:
        """Refuse the flag where several entities are deleted: each may have an epoch of its own (FLAGS-5)."""
        if self.flags.epoch is not None and "epoch" not in self.work.ignore:
            raise RegistryError("bad_flag", self.target.path, flag="epoch")


def perform(work: Work, method: str, target: RequestTarget, body: Any, flags: Flags, ask: Ask) -> WriteOutcome:
    """Do what a request asks for."""
    operation = _OPERATIONS.get((method, target.kind))
    if operation is None:
        raise RegistryError("action_not_supported", target.path, action=method)
    if flags.setdefaultversionid is not None and target.kind not in _ONE_RESOURCE:
        raise RegistryError("bad_flag", target.path, flag="setdefaultversionid")
    if target.kind in _SINGLE:
        work.root = target.resource_xid if target.kind == "meta" else target.xid
    return operation(_Call(work, target, body, flags, ask))


_SINGLE = frozenset({"registry", "group", "resource", "meta", "version"})
_ONE_RESOURCE = frozenset({"resource", "meta", "versions", "version"})


# ---- the registry


def _write_registry(call: _Call) -> WriteOutcome:
    work, body = call.work, call.body
    known, before = work.capabilities, work.model
    if "capabilities" in body and "capabilities" not in work.ignore:
        model_change.write_capabilities(work, body["capabilities"], replace=not call.ask.patch, nested=True)
    if "modelsource" in body and "modelsource" not in work.ignore:
        source = body["modelsource"]
        model_change.write_model(work, {} if source is None else source, nested=known)
    resources.write_registry(work, body, patch=call.ask.patch)
    model_change.recheck(work, before)
    return WriteOutcome(shown="registry")


def _post_registry(call: _Call) -> WriteOutcome:
    found = resources.write_collections(call.work, call.work.model.groups, call.body, call.target.path, call.ask)
    return WriteOutcome(
        shown="registry", members={plural: tuple(group.id for group in groups) for plural, groups in found.items()}
    )


def _put_capabilities(call: _Call) -> WriteOutcome:
    model_change.write_capabilities(call.work, call.body, replace=not call.ask.patch)
    call.work.touch_registry()
    return WriteOutcome(shown="capabilities")


def _put_modelsource(call: _Call) -> WriteOutcome:
    before = call.work.model
    model_change.write_model(call.work, call.body)
    model_change.recheck(call.work, before)
    call.work.touch_registry()
    return WriteOutcome(shown="modelsource")


# ---- groups


def _write_groups(call: _Call) -> WriteOutcome:
    kind = call.target.group_type
    bodies = resources.collection_of(call.body, kind.plural, kind.singular, call.target.path)
    groups = resources.write_groups(call.work, kind, bodies, call.ask)
    return WriteOutcome(shown="groups", members={kind.plural: tuple(group.id for group in groups)})


def _delete_groups(call: _Call) -> WriteOutcome:
    call.refuse_epoch()
    resources.delete_groups(call.work, call.target.group_type, call.body)
    return WriteOutcome()


def _write_group(call: _Call) -> WriteOutcome:
    kind, gid = call.target.group_type, call.target.gid
    group = resources.write_group(call.work, kind, gid, call.body, call.ask)
    return WriteOutcome(created=group.row is None, shown="group")


def _post_group(call: _Call) -> WriteOutcome:
    kind = call.target.group_type
    group = call.group()
    members = {}
    for name in sorted(call.body):
        if name not in kind.resources and name != "$schema":
            raise RegistryError("resources_only", group.xid, name=name)
    for plural, value in call.body.items():
        if plural in kind.resources:
            resource = kind.resources[plural]
            bodies = resources.collection_of(value, plural, resource.singular, call.target.path)
            states = resources.write_resources(call.work, group, resource, bodies, call.ask)
            members[plural] = tuple(state.id for state in states)
    return WriteOutcome(shown="group", members=members)


def _delete_group(call: _Call) -> WriteOutcome:
    group = call.work.group(call.target.group_type, call.target.gid)
    if group is None or group.id != call.target.gid:
        raise RegistryError("not_found", call.target.xid)
    epoch = call.epoch(group.type.singular, group.xid)
    resources.delete_group(call.work, group, epoch)
    return WriteOutcome()


# ---- resources


def _write_resources(call: _Call) -> WriteOutcome:
    kind = call.target.resource_type
    bodies = resources.collection_of(call.body, kind.plural, kind.singular, call.target.path)
    group = call.group() if bodies else None
    states = resources.write_resources(call.work, group, kind, bodies, call.ask) if group is not None else []
    return WriteOutcome(shown="resources", members={kind.plural: tuple(state.id for state in states)})


def _delete_resources(call: _Call) -> WriteOutcome:
    call.refuse_epoch()
    resources.delete_resources(call.work, call.existing_group(), call.target.resource_type, call.body)
    return WriteOutcome()


def _write_resource(call: _Call) -> WriteOutcome:
    target = call.target
    state = resources.write_resource(call.work, call.group(), target.resource_type, target.rid, call.body, call.ask)
    fresh = any(version.row is None for version in state.versions.values())
    return WriteOutcome(created=state.row is None, shown="resource", vid=state.default or "", new_version=fresh)


def _post_resource(call: _Call) -> WriteOutcome:
    target = call.target
    group = call.group()
    state, version = resources.write_version(
        call.work, group, target.resource_type, target.rid, None, call.body, call.ask
    )
    _refuse_pruned(state, version)
    return WriteOutcome(version.row is None, "version", vid=version.versionid, new_version=version.row is None)


def _delete_resource(call: _Call) -> WriteOutcome:
    state = call.existing_resource(call.target.xid)
    resources.delete_resource(call.work, state, call.epoch(state.type.singular, state.xid))
    return WriteOutcome()


def _write_meta(call: _Call) -> WriteOutcome:
    target = call.target
    state = resources.write_meta(call.work, call.group(), target.resource_type, target.rid, call.body, call.ask)
    return WriteOutcome(created=state.row is None, shown="meta")


# ---- versions


def _write_versions(call: _Call) -> WriteOutcome:
    target, body = call.target, call.body
    bodies = resources.collection_of(body, "versions", "", target.path)
    known = call.work.group(target.group_type, target.gid)
    state = call.work.resource(known, target.resource_type, target.rid) if known is not None else None
    if not bodies and (state is None or state.xid != target.resource_xid):
        raise RegistryError("missing_versions", target.path)
    if not bodies and call.ask.setdefault is None:
        return WriteOutcome(shown="versions", members={"versions": ()})
    resources.write_versions(call.work, call.group(), target.resource_type, target.rid, bodies, call.ask)
    return WriteOutcome(shown="versions", members={"versions": tuple(bodies)})


def _delete_versions(call: _Call) -> WriteOutcome:
    call.refuse_epoch()
    resources.delete_versions(call.work, call.existing_resource(call.target.resource_xid), call.body, call.ask)
    return WriteOutcome()


def _write_version(call: _Call) -> WriteOutcome:
    target = call.target
    state, version = resources.write_version(
        call.work, call.group(), target.resource_type, target.rid, target.vid, call.body, call.ask
    )
    _refuse_pruned(state, version)
    fresh = version.row is None
    return WriteOutcome(created=fresh, shown="version", vid=version.versionid, new_version=fresh)


def _refuse_pruned(state: ResourceState, version: VersionState) -> None:
    """Refuse to write a version that goes at once because it is older than those that are kept: VER-5."""
    if version.versionid not in state.versions:
        raise RegistryError(
            "bad_request", f"{state.xid}/versions/{version.versionid}",
            error_detail=f"it is older than the {state.type.maxversions} Versions that are kept",
        )  # fmt: skip


def _delete_version(call: _Call) -> WriteOutcome:
    target = call.target
    state = call.existing_resource(target.xid)
    refuse_xref(state)
    if target.vid not in call.work.complete(state):
        raise RegistryError("not_found", target.xid)
    resources.delete_version(call.work, state, target.vid, call.epoch("version", target.xid), call.ask)
    return WriteOutcome()


_OPERATIONS: Mapping[tuple[str, TargetKind], Callable[[_Call], WriteOutcome]] = {
    ("PUT", "registry"): _write_registry,
    ("PATCH", "registry"): _write_registry,
    ("POST", "registry"): _post_registry,
    ("PUT", "capabilities"): _put_capabilities,
    ("PATCH", "capabilities"): _put_capabilities,
    ("PUT", "modelsource"): _put_modelsource,
    ("POST", "groups"): _write_groups,
    ("PATCH", "groups"): _write_groups,
    ("DELETE", "groups"): _delete_groups,
    ("PUT", "group"): _write_group,
    ("PATCH", "group"): _write_group,
    ("POST", "group"): _post_group,
    ("DELETE", "group"): _delete_group,
    ("POST", "resources"): _write_resources,
    ("PATCH", "resources"): _write_resources,
    ("DELETE", "resources"): _delete_resources,
    ("PUT", "resource"): _write_resource,
    ("PATCH", "resource"): _write_resource,
    ("POST", "resource"): _post_resource,
    ("DELETE", "resource"): _delete_resource,
    ("PUT", "meta"): _write_meta,
    ("PATCH", "meta"): _write_meta,
    ("POST", "versions"): _write_versions,
    ("PATCH", "versions"): _write_versions,
    ("DELETE", "versions"): _delete_versions,
    ("PUT", "version"): _write_version,
    ("PATCH", "version"): _write_version,
    ("DELETE", "version"): _delete_version,
}

ALLOWED: Mapping[TargetKind, str] = {
    kind: ", ".join(sorted({"GET", "OPTIONS", *(method for method, level in _OPERATIONS if level == kind)}))
    for kind in TargetKind.__args__  # type: ignore[attr-defined]
}


# What a write's response shows: the entities it processed, as a GET would show them (WRITE-11, HTTP-15).


class Reader(Protocol):
    """Who can show what a GET would show."""

    def page(self, context: ReadContext) -> Page:
        """Return what a GET shows."""
        ...


def show(reader: Reader, context: ReadContext, outcome: WriteOutcome) -> Page | None:
    """Return the body of the response to a write; None where it has none."""
    if outcome.shown is None:
        return None
    setup, target, flags = context.setup, context.target, context.flags
    if outcome.members is None:
        if outcome.shown == "version":
            xid = f"{target.resource_xid}/versions/{outcome.vid}"
            target = replace(target, kind="version", xid=xid, vid=outcome.vid)
        return reader.page(replace(context, target=target, flags=_entity_flags(flags)))
    refuse_collections(target, flags)
    view = context.view()
    view.filtered = False
    members = outcome.members
    if outcome.shown == "registry":
        inline = urls.parse_inline(flags.inline, setup.shape, view.subject)
        shown = {plural: _groups(view, setup, plural, ids, inline, nested=True) for plural, ids in members.items()}
        return Page("{" + ",".join(f'"{plural}":{text}' for plural, text in shown.items()) + "}")
    if outcome.shown == "groups":
        ((plural, ids),) = members.items()
        inline = urls.parse_inline(flags.inline, urls.group_shape(target.group_type), view.subject)
        return Page(_groups(view, setup, plural, ids, inline))
    if outcome.shown == "group":
        inline = urls.parse_inline(flags.inline, urls.group_shape(target.group_type), view.subject)
        return Page(_nested(view, target, members, inline))
    if outcome.shown == "resources":
        inline = urls.parse_inline(flags.inline, urls.resource_shape(target.resource_type), view.subject)
        return Page(_resources(view, target, target.resource_type.plural, members[target.resource_type.plural], inline))
    return Page(_versions(view, target, members["versions"], flags))


def _entity_flags(flags: Flags) -> Flags:
    """Return the flags that shape the one entity which was written, whatever it would be filtered by."""
    return replace(flags, filters=(), sort=None) if flags.filters or flags.sort else flags


def _groups(
    view: View, setup: Setup, plural: str, ids: tuple[str, ...], inline: InlineSet, *, nested: bool = False
) -> str:
    kind = setup.model.groups[plural]
    below = (inline.child(plural) or InlineSet.NOTHING) if nested else inline
    found = rows.load_members(view.db, rows.GROUP, f"/{plural}", ids)
    return "".join(view.show_groups(kind, (EntityRow(*one) for one in found), below, None))


def _nested(view: View, target: RequestTarget, members: Mapping[str, tuple[str, ...]], inline: InlineSet) -> str:
    parts = []
    for plural, ids in members.items():
        below = inline.child(plural) or InlineSet.NOTHING
        parts.append(f'"{plural}":{_resources(view, target, plural, ids, below)}')
    return "{" + ",".join(parts) + "}"


def _resources(view: View, target: RequestTarget, plural: str, ids: tuple[str, ...], inline: InlineSet) -> str:
    kind = target.group_type.resources[plural]
    path = f"{target.group_xid}/{plural}"
    found = rows.load_members(view.db, rows.RESOURCE, path, ids, resources=True)
    return "".join(view.show_resources(kind, map(pair, found), inline, None))


def _versions(view: View, target: RequestTarget, ids: tuple[str, ...], flags: Flags) -> str:
    kind = target.resource_type
    inline = urls.parse_inline(flags.inline, urls.version_shape(kind), view.subject)
    row = rows.load(view.db, rows.resource_key(target.resource_xid))
    if row is None:
        return "{}"
    path = f"{target.resource_xid}/versions"
    found = rows.load_members(view.db, rows.VERSION, path, ids)  # some may have been pruned at once
    return "".join(view.show_versions(kind, row, row, (EntityRow(*one) for one in found), inline, None))
