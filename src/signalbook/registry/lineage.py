"""How the versions of a resource follow each other: the four version modes.

Rule: these functions see only ids, times and ancestors; they change nothing but the ancestors they are asked to find,
so that the resource's own processing stays one list of steps (core/spec.md, "Resource Processing Algorithm").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Protocol

from signalbook.errors import RegistryError

__all__ = ["MODES", "Step", "assign_ancestors", "check_circles", "check_roots", "line_to", "newest", "oldest_first"]


class Step(Protocol):
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
    """Return what orders versionids by semver.org precedence; what is no semantic version comes first."""
    match = _SEMVER.match(versionid)
    if match is None:
        return (0, 0, 0, 0, (), versionid.lower())
    major, minor, patch, pre = match.groups()
    rank: tuple[object, ...] = ((2,),)  # a release is higher than its pre-releases
    if pre is not None:
        rank = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split("."))
    return (1, int(major), int(minor or 0), int(patch or 0), rank, versionid.lower())


_ORDER: Mapping[str, Callable[[Step], tuple[object, ...]]] = {
    "manual": lambda step: (_instant(step.createdat), step.versionid.lower()),
    "createdat": lambda step: (_instant(step.createdat), step.versionid.lower()),
    "modifiedat": lambda step: (_instant(step.modifiedat), step.versionid.lower()),
    "semver": lambda step: semver_key(step.versionid),
}
MODES = tuple(_ORDER)


def newest(steps: Iterable[Step], mode: str) -> str:
    """Return the versionid of the newest version: VMODE-1 to VMODE-4."""
    order = _ORDER[mode]
    candidates = list(steps)
    if mode == "manual":
        named = {step.ancestor for step in candidates if step.ancestor != step.versionid}
        # in a full circle nobody is left; whether that may stay is decided at the end of the request
        candidates = [step for step in candidates if step.versionid not in named] or candidates
    return max(candidates, key=order).versionid


def oldest_first(steps: Iterable[Step], mode: str) -> list[Step]:
    """Return the versions from the first to go, when there are too many, to the last."""
    everything = list(steps)
    if mode != "manual":
        return sorted(everything, key=_ORDER[mode])
    named = {step.ancestor for step in everything if step.ancestor != step.versionid}

    def place(step: Step) -> tuple[object, ...]:
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
    steps: Sequence[Step], mode: str, subject: str, fresh: Container[str] = frozenset()
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
    settled = [step for step in steps if step.ancestor is not None]
    previous = newest(settled, mode) if settled else None

    def turn(step: Step) -> tuple[object, ...]:
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
