"""What a write's response shows: the entities it processed, as a GET would show them (WRITE-11, HTTP-15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from signalbook.registry import inlines, rows
from signalbook.registry.flags import Flags
from signalbook.registry.inlines import InlineSet
from signalbook.registry.operations import Outcome
from signalbook.registry.reads import Limits, Page, make_view
from signalbook.registry.render import View, pair
from signalbook.registry.rows import Row
from signalbook.registry.setup import Setup
from signalbook.registry.store import Connection
from signalbook.registry.targets import Target
from signalbook.spec.versions import SpecVersion

__all__ = ["show"]


class Reader(Protocol):
    """Who can show what a GET would show."""

    @property
    def limits(self) -> Limits: ...

    def page(self, db: Connection, setup: Setup, target: Target, flags: Flags, spec: SpecVersion, base: str) -> Page:
        """Return what a GET shows."""
        ...


def show(
    reader: Reader, db: Connection, setup: Setup, target: Target, flags: Flags, spec: SpecVersion, base: str,
    outcome: Outcome,
) -> Page | None:  # fmt: skip
    """Return the body of the response to a write; None where it has none."""
    if outcome.shown is None:
        return None
    if outcome.members is None:
        if outcome.shown == "version":
            xid = f"{target.resource_xid}/versions/{outcome.vid}"
            target = replace(target, kind="version", xid=xid, vid=outcome.vid)
        return reader.page(db, setup, target, _entity_flags(flags), spec, base)
    view = make_view(db, setup, flags, spec, base, target, reader.limits)
    view.filtered = False
    members = outcome.members
    if outcome.shown == "registry":
        inline = inlines.parse(flags.inline, setup.shape, view.subject)
        shown = {plural: _groups(view, setup, plural, ids, inline, nested=True) for plural, ids in members.items()}
        return Page("{" + ",".join(f'"{plural}":{text}' for plural, text in shown.items()) + "}")
    if outcome.shown == "groups":
        ((plural, ids),) = members.items()
        inline = inlines.parse(flags.inline, inlines.group_shape(target.group_type), view.subject)
        return Page(_groups(view, setup, plural, ids, inline))
    if outcome.shown == "group":
        inline = inlines.parse(flags.inline, inlines.group_shape(target.group_type), view.subject)
        return Page(_nested(view, target, members, inline))
    if outcome.shown == "resources":
        inline = inlines.parse(flags.inline, inlines.resource_shape(target.resource_type), view.subject)
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
    return view.join_groups(kind, (Row(*one) for one in found), below, None)


def _nested(view: View, target: Target, members: Mapping[str, tuple[str, ...]], inline: InlineSet) -> str:
    parts = []
    for plural, ids in members.items():
        below = inline.child(plural) or InlineSet.NOTHING
        parts.append(f'"{plural}":{_resources(view, target, plural, ids, below)}')
    return "{" + ",".join(parts) + "}"


def _resources(view: View, target: Target, plural: str, ids: tuple[str, ...], inline: InlineSet) -> str:
    kind = target.group_type.resources[plural]
    path = f"{target.group_xid}/{plural}"
    found = rows.load_members(view.db, rows.RESOURCE, path, ids, resources=True)
    return view.join_resources(kind, map(pair, found), inline, None)


def _versions(view: View, target: Target, ids: tuple[str, ...], flags: Flags) -> str:
    kind = target.resource_type
    inline = inlines.parse(flags.inline, inlines.version_shape(kind), view.subject)
    row = rows.load(view.db, rows.resource_key(target.resource_xid))
    if row is None:
        return "{}"
    path = f"{target.resource_xid}/versions"
    found = rows.load_members(view.db, rows.VERSION, path, ids)  # some may have been pruned at once
    return view.join_versions(kind, row, row, (Row(*one) for one in found), inline, None)
