"""Which versions of a request are judged by their format and by the promise of their line, and who else has to be.

Rule 1: a document is judged where the request changes it, its format, or what its type says about formats; nothing else
that is written about an older document can fail because of it.
Rule 2: a schema that refers to another is looked at again where that one comes, changes or goes. It is never refused
for that: it says whether it still has its format, and beyond `MOST_USERS` of them, or where reading those would take
more than `SECOND` steps, that nobody looked. Its epoch stays: what the server says of it is no update of it (TYPE-18).
Rule 3: a document that would take too long to read is kept, and says that nobody checked it (FMT-3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import orjson

from signalbook import schemas
from signalbook.errors import RegistryError
from signalbook.registry import rows
from signalbook.registry.formats import VALIDATED, Judge, Member, Verdict, told
from signalbook.registry.incoming import document_names
from signalbook.registry.schema_names import Asking, document_of, users_of
from signalbook.registry.state import KEEP, ResourceState, VersionState, Work
from signalbook.schemas.budget import Budget, TooMuch
from signalbook.schemas.format import Format
from signalbook.schemas.weight import SECOND, reading_steps, too_large

__all__ = ["MOST_USERS", "judge", "judge_users"]

MOST_USERS = 20
# What all comparisons of one request may take together, while others wait for the registry, and more for each document.
MOST_STEPS, STEPS_EACH = 100_000, 2_000
CHANGED = "A schema that it refers to was changed since it was checked; too much refers to that one to check it again"


def judge(work: Work, state: ResourceState, touched: list[VersionState]) -> None:
    """Set the server's own attributes of what a request changed in a resource, or refuse it."""
    by = _judge_of(work, state)
    compatibility = state.attrs.get("compatibility")
    assert work.budget is not None
    anew = [version for version in touched if state.rejudge or _is_changed(work, state, version)]
    work.budget.add(STEPS_EACH * len(anew))
    affected = _affected(work, state, anew, compatibility) if state.type.validatecompatibility else []
    before = {version.versionid: version.attrs for version in (*touched, *affected)}
    for version in touched:
        version.attrs = _kept(version)
    for version in anew:
        attrs = version.attrs = _without(version.attrs, VALIDATED)
        attrs.update(_judge_format(by, _member(work, state, version), _is_external(state, version)))
    for version in affected:
        attrs = version.attrs = _without(version.attrs, VALIDATED[2:])
        attrs.update(by.judge_compatibility(compatibility, _members(work, state, version), state.xid))
    for versionid, attrs in before.items():
        if state.versions[versionid].attrs != attrs:
            state.versions[versionid].refreshed = True
    _note_uses(work, state, by, anew)


def judge_users(work: Work) -> None:
    """Look again at the schemas that refer to what the request changed."""
    users = [key for key in sorted(users_of(work)) if key not in work.uses]
    budget = Budget(SECOND)
    for number, key in enumerate(users):
        found = _stored(work, key)
        if found is not None:
            _judge_user(work, *found, budget if number < MOST_USERS else Budget(0))


def _judge_user(work: Work, state: ResourceState, version: VersionState, budget: Budget) -> None:
    by = Judge(
        state.type, work.capabilities, partial(Asking, work, state, budget), state.xid, budget, work.offer.trust_unknown
    )
    member = _member(work, state, version, _without(version.attrs, VALIDATED))
    attrs = member.attrs
    verdict = _look_again(by, member, _is_external(state, version))
    seen = verdict != UNSEEN
    attrs.update(told("format", verdict))
    # Nothing is compared with a document that was not found to have its format, so none is loaded for that.
    line = [_member(work, state, one) for one in _line(state, version)][:-1] if seen else []
    attrs.update(told("compatibility", by.look_at_compatibility(state.attrs.get("compatibility"), [*line, member])))
    if attrs != version.attrs:
        version.attrs = attrs
        version.refreshed = True
    if seen:
        _note_uses(work, state, by, [version])


UNSEEN = Verdict("format_unknown", CHANGED)


def _look_again(by: Judge, member: Member, external: bool) -> Verdict | None:
    """Return what is to say of the format of a schema that refers to what changed, as far as the budget goes."""
    row = _checked_by(by, member, external)
    if row is None:
        return by.look_at_format(member, external)
    words = too_large(row.family, member.document)
    if words:
        return Verdict("format_unknown", words)
    try:
        by.budget.spend(reading_steps(row.family, member.document))
    except TooMuch:
        return UNSEEN
    verdict = by.look_at_format(member, external)
    return verdict if by.budget.left >= 0 else UNSEEN


def _judge_format(by: Judge, member: Member, external: bool) -> Iterable[tuple[str, Any]]:
    """Return the attributes that say whether a document has its format, or refuse it: FMT-3, FMT-5, FMT-6."""
    row = _checked_by(by, member, external)
    words = too_large(row.family, member.document) if row is not None else ""
    if not words:
        return by.judge_format(member, external)
    if by.kind.strictvalidation:
        raise RegistryError("format_unknown", member.xid, detail=words, format=member.attrs["format"])
    return told("format", Verdict("format_unknown", words))


def _checked_by(by: Judge, member: Member, external: bool) -> Format | None:
    """Return the format that a document is read by; None where nothing is read."""
    row = schemas.find(member.attrs.get("format") or "")
    if row is None or external or not by.kind.validateformat or row.name.lower() not in by.capabilities.formats:
        return None
    return row


def _stored(work: Work, key: str) -> tuple[ResourceState, VersionState] | None:
    row = rows.load(work.db, key)
    if row is None:
        return None
    parts = row.xid.split("/")
    state = work.by_xid("/".join(parts[:5]))
    version = work.complete(state).get(parts[-1]) if state is not None else None
    return (state, version) if state is not None and version is not None else None


def _judge_of(work: Work, state: ResourceState) -> Judge:
    if work.budget is None:
        work.budget = Budget(MOST_STEPS)
    ask = partial(Asking, work, state, None)
    return Judge(state.type, work.capabilities, ask, state.xid, work.budget, work.offer.trust_unknown)


def _note_uses(work: Work, state: ResourceState, by: Judge, versions: list[VersionState]) -> None:
    for version in versions:
        used = by.uses.get(f"{state.xid}/versions/{version.versionid}", frozenset())
        if used or version.row is not None:
            work.uses[rows.version_key(state.xid, version.versionid)] = (used, version.row is not None)


def _is_changed(work: Work, state: ResourceState, version: VersionState) -> bool:
    """Tell whether a request changes what a version's verdict rests on."""
    before, after = version.before, version.attrs
    url = document_names(state.type)[1]
    if version.row is None or any(before.get(name) != after.get(name) for name in ("format", url)):
        return True
    if version.content is KEEP:
        return False
    stored = rows.load_content(work.db, version.row.key)
    return before.get("formatvalidated") is not True or stored != version.content


def _kept(version: VersionState) -> dict[str, Any]:
    """Return a version's attributes with the server's own as they are stored."""
    stored = {name: value for name, value in version.before.items() if name in VALIDATED}
    return {**_without(version.attrs, VALIDATED), **stored}


def _without(attrs: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in attrs.items() if name not in names}


def _is_external(state: ResourceState, version: VersionState) -> bool:
    return document_names(state.type)[1] in version.attrs


def _affected(
    work: Work, state: ResourceState, anew: list[VersionState], compatibility: str | None
) -> list[VersionState]:
    """Return the versions whose promise has to be looked at again: FMT-8."""
    before = orjson.loads(state.row.doc).get("compatibility") if state.row is not None else None
    if before is None and compatibility is None:
        return []
    versions = work.complete(state)
    if before != compatibility or state.rejudge:
        return list(versions.values())
    changed = {version.versionid for version in anew}
    changed |= {one.versionid for one in versions.values() if one.row is None or one.row.ancestor != one.ancestor}
    depth = None if compatibility is not None and compatibility.lower().endswith("_transitive") else -2
    lines = {name: [one.versionid for one in _line(state, version)] for name, version in versions.items()}
    return [versions[name] for name, line in lines.items() if not changed.isdisjoint(line[depth:])]


def _member(work: Work, state: ResourceState, version: VersionState, attrs: dict[str, Any] | None = None) -> Member:
    document = document_of(work, state, version) or b""
    return Member(f"{state.xid}/versions/{version.versionid}", version.attrs if attrs is None else attrs, document)


def _members(work: Work, state: ResourceState, version: VersionState) -> list[Member]:
    return [_member(work, state, one) for one in _line(state, version)]


def _line(state: ResourceState, version: VersionState) -> Iterator[VersionState]:
    """Return a version behind all its ancestors; a circle, which may yet be refused, ends where it began."""
    line = {version.versionid: version}
    while (ancestor := version.ancestor) is not None and ancestor in state.versions and ancestor not in line:
        version = line[ancestor] = state.versions[ancestor]
    return reversed(line.values())
