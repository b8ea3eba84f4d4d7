"""Bringing a resource in order after its versions changed: ancestors, default version, limits.

Rule: the sequence is that of core/spec.md, "Resource Processing Algorithm", steps 3 to 5, 8 and 10; every step sees
what the one before it left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from signalbook.errors import RegistryError
from signalbook.model.attributes import folded
from signalbook.model.normalise import canonical_members
from signalbook.registry.work import (
    META_SYSTEM,
    ResourceState,
    VersionState,
    Work,
    check_epoch,
    check_id_matches,
    created_at,
    is_id,
    modified_at,
    read_texts,
)
from signalbook.registry.write.checks import finish_resource

__all__ = [
    "MODES",
    "Ask",
    "OrderedVersion",
    "arrange_versions",
    "assign_ancestors",
    "check_circles",
    "check_roots",
    "check_sticky",
    "check_writable",
    "drop_version",
    "line_to",
    "newest",
    "oldest_first",
    "refuse_xref",
]

# How the versions of a resource follow each other: the four version modes.
#
# Rule: these functions see only ids, times and ancestors; they change nothing but the ancestors they are asked to find,
# so that the resource's own processing stays one list of steps (core/spec.md, "Resource Processing Algorithm").


class OrderedVersion(Protocol):
    """What a version mode looks at; `ancestor` is None where it is still to be found."""

    versionid: str
    createdat: str
    modifiedat: str
    ancestor: str | None


def _instant(stamp: str) -> str:
    return stamp[:-1]  # without the "Z" a longer fraction sorts after a shorter one


_SEMVER = re.compile(
    r"^v?(0|[1-9]\d{0,17})(?:\.(0|[1-9]\d{0,17}))?(?:\.(0|[1-9]\d{0,17}))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$"
)


def semver_key(versionid: str) -> tuple[object, ...]:
    """Return what orders versionids by semver.org precedence; what is not a semantic version comes first."""
    match = _SEMVER.match(versionid)
    if match is None:
        return (0, 0, 0, 0, (), versionid.lower())
    major, minor, patch, pre = match.groups()
    rank: tuple[object, ...] = ((2,),)  # a release is higher than its pre-releases
    if pre is not None:
        rank = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split("."))
    return (1, int(major), int(minor or 0), int(patch or 0), rank, versionid.lower())


_ORDER: Mapping[str, Callable[[OrderedVersion], tuple[object, ...]]] = {
    "manual": lambda step: (_instant(step.createdat), step.versionid.lower()),
    "createdat": lambda step: (_instant(step.createdat), step.versionid.lower()),
    "modifiedat": lambda step: (_instant(step.modifiedat), step.versionid.lower()),
    "semver": lambda step: semver_key(step.versionid),
}
MODES = tuple(_ORDER)


def newest(steps: Iterable[OrderedVersion], mode: str) -> str:
    """Return the versionid of the newest version: VMODE-1 to VMODE-4."""
    order = _ORDER[mode]
    candidates = list(steps)
    if mode == "manual":
        named = {step.ancestor for step in candidates if step.ancestor != step.versionid}
        # in a full circle nobody is left; whether that may stay is decided at the end of the request
        candidates = [step for step in candidates if step.versionid not in named] or candidates
    return max(candidates, key=order).versionid


def oldest_first(steps: Iterable[OrderedVersion], mode: str) -> list[OrderedVersion]:
    """Return the versions from the first to go, when there are too many, to the last."""
    everything = list(steps)
    if mode != "manual":
        return sorted(everything, key=_ORDER[mode])
    named = {step.ancestor for step in everything if step.ancestor != step.versionid}

    def place(step: OrderedVersion) -> tuple[object, ...]:
        position = 0 if step.ancestor == step.versionid else 1 if step.versionid in named else 2
        return (position, *_ORDER["manual"](step))

    return sorted(everything, key=place)


def line_to(versionid: str | None, ancestors: Mapping[str, str | None]) -> list[str]:
    """Return the versions that lead to one, which is the last; a circle is walked once."""
    line: dict[str, None] = {}
    while versionid is not None and versionid in ancestors and versionid not in line:
        line[versionid] = None
        versionid = ancestors[versionid]
    return list(line)[::-1]


def assign_ancestors(
    steps: Sequence[OrderedVersion], mode: str, subject: str, fresh: Container[str] = frozenset()
) -> dict[str, str]:
    """Return the ancestors that have to change, by versionid; `fresh` are the versions that this request creates.

    In `manual` mode those without an ancestor take their turn by versionid; the others, whose ancestor a request
    took away, by age.
    """
    if mode != "manual":
        chain = sorted(steps, key=_ORDER[mode])
        wanted = {step.versionid: before.versionid for before, step in zip([chain[0], *chain], chain, strict=False)}
        return {step.versionid: wanted[step.versionid] for step in chain if step.ancestor != wanted[step.versionid]}
    known = {step.versionid for step in steps}
    for step in steps:
        if step.ancestor is not None and step.ancestor not in known:
            raise RegistryError("unknown_id", subject, singular="version", id=step.ancestor)
    known_steps = [step for step in steps if step.ancestor is not None]
    previous = newest(known_steps, mode) if known_steps else None

    def turn(step: OrderedVersion) -> tuple[object, ...]:
        new = step.versionid in fresh
        return (new, "" if new else _instant(step.createdat), step.versionid.lower())

    found: dict[str, str] = {}
    for step in sorted((step for step in steps if step.ancestor is None), key=turn):
        found[step.versionid] = previous or step.versionid
        previous = step.versionid
    return found


def check_circles(ancestors: Mapping[str, str], subject: str) -> None:
    """Refuse ancestors that lead back to where they began."""
    sound: set[str] = set()
    stuck: list[str] = []
    for start in ancestors:
        trail: list[str] = []
        at = start
        while at not in sound and at not in trail and ancestors[at] != at:
            trail.append(at)
            at = ancestors[at]
        if at in trail:
            stuck.extend(trail[trail.index(at) :])
            sound.update(trail)
        sound.update(trail)
        sound.add(at)
    if stuck:
        names = sorted(set(stuck), key=str.lower)
        raise RegistryError("ancestor_circular_reference", subject, list=", ".join(names))


def check_roots(ancestors: Mapping[str, str], subject: str, plural: str) -> None:
    """Refuse more than one version without an ancestor: VMODE-6."""
    if sum(1 for name, ancestor in ancestors.items() if name == ancestor) > 1:
        raise RegistryError("multiple_roots", subject, plural=plural)


@dataclass(frozen=True, slots=True)
class Ask:
    """How a request writes: whole or in part, and which version it wants as the default."""

    patch: bool = False
    setdefault: str | None = None  # the flag's value
    from_meta: bool = False  # the request is addressed to the meta
    contenttype: str = "application/json"
    document: bytes | None = None  # a document sent as such, not within JSON
    load: str = ""  # the name of the load that the request is a part of
    texts: bool = False  # attributes come as text, as headers have them
    fault: RegistryError | None = None  # what is wrong with the request if it names nothing unknown


def check_writable(work: Work, state: ResourceState) -> None:
    """Refuse to change a read-only resource; one alone cannot be left out of its own request: META-3, FLAGS-6."""
    if state.attrs.get("readonly"):
        if "readonly" in work.ignore:
            raise RegistryError("bad_flag", state.xid, flag="ignore")
        raise RegistryError("readonly", state.xid)


def refuse_xref(state: ResourceState) -> None:
    """Refuse to write versions to a cross reference, whose versions are its target's: XREF-5."""
    if state.xref is not None:
        raise RegistryError("extra_xref_attribute", state.xid, name="versions", singular=state.type.singular)


def arrange_versions(
    work: Work, state: ResourceState, ask: Ask, *, meta: Mapping[str, Any] | None, processed: list[str]
) -> None:
    """Bring everything that depends on all versions together in order: steps 3 to 5, 8 and 10."""
    mode = state.type.versionmode
    if state.reshuffled:
        _set_ancestors(work, state, mode)
    if meta is not None:
        _apply_meta(work, state, meta, ask)
    _choose_default(work, state, ask, meta, processed, mode)
    _check_matchversions(work, state)
    if state.reshuffled:
        line = _line(state) if len(processed) > 1 else []
        _prune(work, state, mode)
        state.passed = [one for one in line if one.row is None or one.versionid not in state.versions]
        ancestors = {v.versionid: v.ancestor or v.versionid for v in state.versions.values()}
        check_circles(ancestors, state.xid)
        if state.type.singleversionroot:
            check_roots(ancestors, state.xid, state.type.plural)


def _line(state: ResourceState) -> list[VersionState]:
    """Return the versions of this request that lead to the default one."""
    line = line_to(state.default, {name: version.ancestor for name, version in state.versions.items()})
    return [state.versions[name] for name in line[:-1] if state.versions[name].touched]


def _set_ancestors(work: Work, state: ResourceState, mode: str) -> None:
    versions = work.complete(state)
    fresh = {version.versionid for version in versions.values() if version.row is None}
    for versionid, ancestor in assign_ancestors(list(versions.values()), mode, state.xid, fresh).items():
        versions[versionid].ancestor = ancestor
        _touch(work, versions[versionid], mode)


def _touch(work: Work, version: VersionState, mode: str) -> None:
    """Give a version whose ancestor changed a new epoch (EPOCH-7).

    Where `modifiedat` makes the order it rests: else every change would make the versions around it the newest.
    """
    if not version.touched:
        version.touched = True
        if mode != "modifiedat":
            version.modifiedat = work.now


def _apply_meta(work: Work, state: ResourceState, meta: Mapping[str, Any], ask: Ask) -> None:
    """Write the meta's own attributes: META-6."""
    xid = f"{state.xid}/meta"
    kind = state.type
    if work.checks_id(state.xid):
        check_id_matches(meta, kind.singular, state.id, xid)
    if state.row is not None:  # what was a cross reference until now showed its target's epoch
        check_epoch(meta, state.floor or state.row.epoch, xid, work.ignore)
    state.createdat = created_at(meta, state.createdat, work.now, xid)
    state.modifiedat = modified_at(meta, state.row and state.modifiedat, work.now, xid)
    rid = kind.singular + "id"
    meta = canonical_members(meta, work.spec, xid)
    given = {name: value for name, value in meta.items() if name not in META_SYSTEM and name != rid}
    merged = {**state.attrs, **given} if ask.patch else given
    if ask.texts:
        read_texts(kind.meta_level, merged, given)
    readonly = state.attrs.get("readonly")
    merged.pop("readonly", None)
    state.attrs = kind.meta_level.normalise(merged, xid)
    if readonly:
        state.attrs["readonly"] = readonly
    state.touched = True


def _choose_default(
    work: Work, state: ResourceState, ask: Ask, meta: Mapping[str, Any] | None, processed: list[str], mode: str
) -> None:
    """Choose the default version: DEFV-1 to DEFV-8."""
    before = (state.default, state.sticky)
    wanted, sticky = state.default, state.sticky
    xid = f"{state.xid}/meta"
    if meta is not None:
        wanted, sticky = _default_of_meta(work, state, meta, ask, xid)
    elif wanted is None:
        sticky = _sticky_default(state)
    if ask.setdefault is not None:
        wanted, sticky = _default_of_flag(state, ask, processed)
        if wanted is not None and wanted not in work.complete(state):
            known = state.row is not None and meta is None
            raise RegistryError("unknown_id", state.xid if known else xid, singular="version", id=wanted)
    if sticky and wanted is not None and wanted not in state.versions and wanted not in work.complete(state):
        if meta is not None and meta.get("defaultversionid") == wanted:
            raise RegistryError("unknown_id", xid, singular="version", id=wanted)
        wanted, sticky = None, _sticky_default(state)  # the sticky one is gone: DEFV-1, DEFV-8
    moved = state.reshuffled or meta is not None or ask.setdefault is not None or wanted not in state.versions
    if moved and (not sticky or wanted is None):
        wanted = newest(work.complete(state).values(), mode)
    if sticky and state.type.maxversions == 1:
        raise RegistryError("setdefaultversionsticky_false", xid)
    state.default, state.sticky = wanted, sticky
    if state.touched or sticky != before[1]:
        check_sticky(state)
    if (state.default, state.sticky) != before:
        work.touch_meta(state)


def _default_of_meta(
    work: Work, state: ResourceState, meta: Mapping[str, Any], ask: Ask, xid: str
) -> tuple[str | None, bool]:
    ignored = work.ignore
    given = meta.get("defaultversionid") if "defaultversionid" not in ignored else None
    has_id = "defaultversionid" in meta and "defaultversionid" not in ignored
    has_sticky = "defaultversionsticky" in meta and "defaultversionsticky" not in ignored
    sticky = meta.get("defaultversionsticky")
    if has_sticky and sticky is not None and not isinstance(sticky, bool):
        raise RegistryError("invalid_attribute", xid, name="defaultversionsticky", error_detail="must be a boolean")
    if has_id and given is not None and not is_id(given):
        raise RegistryError("invalid_attribute", xid, name="defaultversionid", error_detail="must be a versionid")
    if not ask.patch:  # a full replacement: DEFV-3
        stuck = bool(sticky) if has_sticky and sticky is not None else _sticky_default(state)
        return (given if stuck else None), stuck
    if has_sticky and sticky is None:
        return (given if _sticky_default(state) else None), _sticky_default(state)
    if has_sticky:
        if not sticky:
            return None, False
        return (given if has_id else (state.default if state.row is not None else None)), True
    if has_id:
        return given, given is not None or _sticky_default(state)
    return state.default, state.sticky


def _sticky_default(state: ResourceState) -> bool:
    attribute = state.type.meta_level.system.get("defaultversionsticky")
    return bool(attribute.default) if attribute is not None and attribute.default is not None else False


def _is_pinned(state: ResourceState) -> bool:
    """Tell whether the model allows no default version that is not sticky."""
    attribute = state.type.meta_level.system.get("defaultversionsticky")
    return attribute is not None and not attribute.allows(False)


def check_sticky(state: ResourceState) -> None:
    """Refuse a stickiness that the model does not allow: DEFV-8."""
    state.type.meta_level.check_system("defaultversionsticky", state.sticky, f"{state.xid}/meta")


def _default_of_flag(state: ResourceState, ask: Ask, processed: list[str]) -> tuple[str | None, bool]:
    """Return what the setdefaultversionid flag asks for: DEFV-7, FLAGS-7."""
    if ask.setdefault == "null":  # the newest, and not sticky unless the model has it no other way
        return None, _is_pinned(state)
    if ask.setdefault == "request":
        if len(processed) > 1:
            raise RegistryError("too_many_versions", state.xid)
        if not processed:
            raise RegistryError("defaultversionid_request", f"{state.xid}/versions")
        return processed[0], True
    return ask.setdefault, True


def _prune(work: Work, state: ResourceState, mode: str) -> None:
    """Remove the oldest versions beyond the type's limit, never the default: VER-5."""
    limit = state.type.maxversions
    if limit == 0 or len(state.versions) <= limit:
        return
    finish_resource(work, state)  # steps 6, 7 and 9 come before what is removed here
    while len(state.versions) > limit:
        oldest = next(v for v in oldest_first(state.versions.values(), mode) if v.versionid != state.default)
        drop_version(work, state, oldest.versionid)
    _set_ancestors(work, state, mode)
    if not state.sticky:  # what went may have been part of a circle, which hides the newest
        state.default = newest(state.versions.values(), mode)


def drop_version(work: Work, state: ResourceState, versionid: str) -> None:
    """Remove a version; those that followed it directly become roots, or are chained anew by their mode."""
    work.remove_version(state, versionid)
    state.reshuffled = True
    for other in work.complete(state).values():
        if other.ancestor == versionid:
            other.ancestor = other.versionid
            _touch(work, other, state.type.versionmode)


def _check_matchversions(work: Work, state: ResourceState) -> None:
    """Refuse versions that differ where the type says they must not: MODEL-12."""
    names = state.type.matchversions
    if not names or (len(state.versions) == 1 and state.complete):
        return
    versions = list(work.complete(state).values())
    for path in names:
        values = [folded(path, _value_at(version.attrs, path)) for version in versions]
        if any(value != values[0] for value in values):
            raise RegistryError("mismatched_version_attribute", state.xid, name=".".join(path))


def _value_at(attrs: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = attrs
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value
