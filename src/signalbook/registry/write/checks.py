"""How the schemas of a registry find each other: by xid, by a name beside them in their group, by a name they declare.

Rule 1: a look-up (`schemas.references`) reads one resource, or one row of the table of declared names; it never goes
through a catalog.
Rule 2: only a resource's default version is known by the names it declares.
Rule 3: what a document asked for is written down with it, found or not, so that who depends on a schema is known.
Rule 4: what an older Signalbook stored is entered by the first request that asks, before it does.
Rule 5: others wait while a schema is read: no document is given out that would not be checked itself, and all that one
reading is given are within a budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from signalbook import schemas
from signalbook.budget import current, spend
from signalbook.errors import RegistryError
from signalbook.model.constraints import check_instance_constraints, constraint_violations
from signalbook.model.message_rules import INHERITED, RuleSet, Subject, message_of
from signalbook.model.model import GroupType
from signalbook.model.rules import rereads
from signalbook.registry import rows, schema_ids
from signalbook.registry.documents import document_names
from signalbook.registry.formats import (
    VALIDATED,
    DocumentValidator,
    Verdict,
    VersionDocument,
    verdict_attributes,
)
from signalbook.registry.rows import fold, term_number
from signalbook.registry.work import KEEP, Declared, GroupState, ResourceState, VersionState, Work
from signalbook.schemas.canonical import NamedReferences
from signalbook.schemas.format import (
    SECOND,
    Format,
    Located,
    SchemaError,
    StepBudget,
    TooMuch,
    reading_steps,
    too_large,
    unreachable,
)
from signalbook.schemas.references import look_up, meant, names_of
from signalbook.spec.builtin import MESSAGE

__all__ = [
    "MOST_USERS", "StoredReferences", "check_work", "declared", "document_of", "enter", "finish_resource", "users_of",
    "validate_documents", "validate_users",
]  # fmt: skip

_CHUNK = 200
# The steps that the rules take for one version.
A_VERSION = 20


@dataclass(slots=True)
class StoredReferences:
    """What one schema asks of the registry, as its request leaves it; `asked` gathers the names and keys.

    `whole` is what several readings may take together, where it is bounded.
    """

    work: Work
    state: ResourceState
    whole: StepBudget | None
    family: str
    asked: set[str] = field(default_factory=set)
    named: NamedReferences = field(default_factory=partial(NamedReferences, ""))
    budget: StepBudget = field(init=False)

    def __post_init__(self) -> None:
        self.budget = StepBudget(SECOND, whole=self.whole or current())

    def __call__(self, uri: str) -> bytes | None:
        """Return the document of a schema that another refers to; None where there is none, or several."""
        found = self.named.get(uri) or look_up(uri, self.state.xid, self._at, self._declared)
        if found is not None:
            if too_large(self.family, found):
                raise unreachable(f"{uri} is too large to be read with it")
            try:
                self.budget.spend(reading_steps(self.family, found))
            except TooMuch:
                raise unreachable(f"{uri} and what else it refers to are too large to be read with it") from None
        return found

    def begin(self, attrs: dict[str, Any]) -> None:
        """Begin with a version: the references that it states (`confluentreferences`) are looked at first."""
        self.named = schema_ids.stated_references(self.work.db, self.state.group.xid, attrs)

    def _declared(self, name: str) -> bytes | None:
        """Return the document that declares a name."""
        full = f"{self.family} {name}"
        self.asked.add(full)
        held = self.work.declared if self.work.declared is not None else declared(self.work)
        within = rows.range_of(rows.RESOURCE, f"{self.state.group.xid}/{self.state.type.plural}")
        found = meant(self._holders(full, held, *span) for span in (within, ("", "\U0010ffff")))
        return self._at(_xid(self.work, found)) if found is not None else None

    def _holders(self, full: str, held: Declared, low: str, high: str) -> set[str]:
        """Return the keys of the others within a span that declare a name."""
        stored = self.work.db.execute(
            "SELECT key FROM schema_names WHERE name = ? AND key > ? AND key < ? LIMIT ?",
            (full, low, high, 3 + len(held.keys)),
        )
        found = {key for (key,) in stored if key not in held.keys}
        found |= {key for key in held.names.get(full, ()) if low < key < high}
        return found - {rows.resource_key(self.state.xid)}

    def _at(self, path: str) -> bytes | None:
        """Return the document at an xid, with or without a version."""
        parts = path.strip("/").split("/")
        kind = self.work.model.groups.get(parts[0])
        if kind is None or len(parts) not in (4, 6) or parts[4:5] not in ([], ["versions"]):
            return None
        if parts[2] not in kind.resources:
            return None
        xid = "/" + "/".join(parts[:4])
        self.asked.add(rows.resource_key(xid))
        state = self.work.by_xid(xid)
        if state is not None and state.xref is not None:
            self.asked.add(rows.resource_key(state.xref))
            state = self.work.by_xid(state.xref)
        if state is None or state.xref is not None:
            return None
        version = self.work.complete(state).get(parts[5] if len(parts) == 6 else state.default or "")
        return document_of(self.work, state, version) if version is not None else None


def _xid(work: Work, key: str) -> str:
    state = work.resources.get(key)
    if state is not None:
        return state.xid
    row = rows.load(work.db, key)
    return row.xid if row is not None else ""


def document_of(work: Work, state: ResourceState, version: VersionState) -> bytes | None:
    """Return a version's document as the request leaves it."""
    if version.content is KEEP:
        return rows.load_content(work.db, rows.version_key(state.xid, version.versionid))
    return version.content  # type: ignore[return-value]


# ---- what is declared


def declared(work: Work) -> Declared:
    """Return the resources whose names the request may change, and the names that they will have."""
    if any(_is_about_schemas(group.type) for group in work.groups.values() if group is not None):
        _catch_up(work)
    found = Declared()
    for key, state in work.resources.items():
        if state is not None and state.type.validateformat and _is_renamed(state):
            found.keys.add(key)
            for name in _names(work, state):
                found.names.setdefault(name, set()).add(key)
    return found


def _is_renamed(state: ResourceState) -> bool:
    """Tell whether the default version, its document or its format is another than stored."""
    if state.deleted or state.group.deleted or state.row is None or state.xref_written or state.revalidate:
        return True
    version = state.versions.get(state.default or "")
    if version is None:
        return False
    moved = state.row.link != rows.version_key(state.xid, version.versionid)
    return moved or version.content is not KEEP or version.attrs.get("format") != version.before.get("format")


def _names(work: Work, state: ResourceState) -> Iterator[str]:
    version = state.versions.get(state.default or "")
    if version is None or state.deleted or state.group.deleted or state.xref is not None:
        return
    row = schemas.find(version.attrs.get("format") or "")
    document = document_of(work, state, version) if row is not None else None
    if row is not None and document:
        yield from (f"{row.family} {name}" for name in names_of(row.family, document))


# ---- who depends on whom


def users_of(work: Work) -> set[str]:
    """Return the keys of the stored versions that refer to what the request adds, changes or takes away."""
    found: set[str] = set()
    wanted: set[str] = set()
    for key, state in work.resources.items():
        if state is None or not state.type.validateformat or not _is_changed(state):
            continue
        wanted.add(key)
        wanted.update(_names(work, state))
        if state.row is not None:
            wanted.update(name for (name,) in work.db.execute("SELECT name FROM schema_names WHERE key = ?", (key,)))
    for group in work.groups.values():
        if group is not None and group.deleted and _is_about_schemas(group.type):
            low, high = rows.range_of(rows.RESOURCE, group.xid)
            names = work.db.execute("SELECT name FROM schema_names WHERE key > ? AND key < ?", (low, high))
            wanted.update(name for (name,) in names)
            users = work.db.execute("SELECT key FROM schema_uses WHERE name > ? AND name < ?", (low, high))
            found.update(key for (key,) in users)
    ordered = sorted(wanted)
    for start in range(0, len(ordered), _CHUNK):
        chunk = tuple(ordered[start : start + _CHUNK])
        marks = ", ".join("?" * len(chunk))
        found.update(k for (k,) in work.db.execute(f"SELECT key FROM schema_uses WHERE name IN ({marks})", chunk))
    return found


def _is_about_schemas(kind: GroupType) -> bool:
    return any(one.validateformat for one in kind.resources.values())


def _is_changed(state: ResourceState) -> bool:
    return _is_renamed(state) or bool(state.gone) or any(one.content is not KEEP for one in state.versions.values())


# ---- what an older Signalbook stored


def _catch_up(work: Work) -> None:
    """Enter what the versions of the table `schema_due` declare, and then what they refer to."""
    due = [key for (key,) in work.db.execute("SELECT key FROM schema_due ORDER BY key")]
    if not due:
        return
    work.db.execute("DELETE FROM schema_due")
    # It is the stored state that is entered; what this request changes of it comes after, as ever.
    stored = Work(work.db, work.model, work.capabilities, work.registryid, work.now, work.offer)
    stored.declared = Declared()
    for key in due:
        for state, version in _versions(stored, key):
            if state.default == version.versionid:
                _replace(stored, "schema_names", rows.resource_key(state.xid), _names(stored, state), known=True)
    for key in due:
        for state, version in _versions(stored, key):
            _replace(stored, "schema_uses", key, _refers_to(stored, state, version), known=True)


def _versions(work: Work, key: str) -> Iterator[tuple[ResourceState, VersionState]]:
    """Yield the version of a key with its resource, where formats are checked."""
    row = rows.load(work.db, key)
    parts = row.xid.split("/") if row is not None else []
    kind = work.model.groups.get(parts[1]) if parts else None
    if kind is None or parts[3] not in kind.resources or not kind.resources[parts[3]].validateformat:
        return
    state = work.by_xid("/".join(parts[:5]))
    version = work.complete(state).get(parts[-1]) if state is not None and state.xref is None else None
    if state is not None and version is not None:
        yield state, version


# What stands in every document that refers to another one, where that can be told; most have none.
_SIGNS = {"protobuf": b"import", "xsd": b"schemaLocation", "jsonstructure": b"$import"}


def _refers_to(work: Work, state: ResourceState, version: VersionState) -> set[str]:
    row = schemas.find(version.attrs.get("format") or "")
    document = document_of(work, state, version)
    if row is None or not document or too_large(row.family, document) or _SIGNS.get(row.family, b"") not in document:
        return set()
    asking = StoredReferences(work, state, None, row.family)
    with suppress(SchemaError):  # it was validated when it was written
        row.read(document, Located(asking, state.xid))
    return asking.asked


# ---- writing down


def enter(work: Work) -> None:
    """Write down what the request's schemas declare, and what they refer to."""
    for group in work.groups.values():
        if group is not None and group.deleted and group.row is not None:
            for table, kind in (("schema_names", rows.RESOURCE), ("schema_uses", rows.VERSION)):
                work.db.execute(f"DELETE FROM {table} WHERE key > ? AND key < ?", rows.range_of(kind, group.xid))
    for key, state in work.resources.items():
        if state is None or not state.type.validateformat or state.group.deleted:
            continue
        if state.deleted and state.row is not None:
            low, high = rows.range_of(rows.VERSION, state.xid)
            work.db.execute("DELETE FROM schema_uses WHERE key > ? AND key < ?", (low, high))
        for version in state.gone.values():
            _replace(work, "schema_uses", rows.version_key(state.xid, version.versionid), (), known=True)
        if _is_renamed(state):
            _replace(work, "schema_names", key, _names(work, state), known=state.row is not None)
    for key, (names, known) in work.uses.items():
        _replace(work, "schema_uses", key, names, known=known)


def _replace(work: Work, table: str, key: str, names: Iterable[str], *, known: bool) -> None:
    if known:
        work.db.execute(f"DELETE FROM {table} WHERE key = ?", (key,))
    fresh = [(name, key) for name in sorted(set(names))]
    if fresh:
        work.db.executemany(f"INSERT INTO {table} (name, key) VALUES (?, ?) ON CONFLICT DO NOTHING", fresh)


# Which versions must be validated after a write: by their format, and by the compatibility that their resource states.
#
# Rule 1: a document is validated where the request changes it, its format, or what its type says about formats;
# nothing else that is written about an older document can fail because of it.
# Rule 2: a schema that refers to another is looked at again where that one comes, changes or goes. It is never refused
# for that: it says whether it still has its format, and beyond `MOST_USERS` of them, or where reading those would take
# more than `SECOND` steps, that nobody looked. Its epoch stays: what the server says of it is not an update of it
# (TYPE-18).
# Rule 3: a document that would take too long to read is kept, and says that nobody checked it (FMT-3).


MOST_USERS = 20
# What all comparisons of one request may take together, while others wait for the registry, and more for each document.
MOST_STEPS, STEPS_EACH = 100_000, 2_000
CHANGED = "A schema that it refers to was changed since it was checked; too much refers to that one to check it again"


def validate_documents(work: Work, state: ResourceState, touched: list[VersionState]) -> None:
    """Set the server's own attributes of what a request changed in a resource, or refuse it."""
    by = _validator_of(work, state)
    compatibility = state.attrs.get("compatibility")
    assert work.budget is not None
    anew = [version for version in touched if state.revalidate or _is_validated_again(work, state, version)]
    work.budget.add(STEPS_EACH * len(anew))
    affected = _affected(work, state, anew, compatibility) if state.type.validatecompatibility else []
    before = {version.versionid: version.attrs for version in (*touched, *affected)}
    for version in touched:
        version.attrs = _kept(version)
    for version in anew:
        attrs = version.attrs = _without(version.attrs, VALIDATED)
        attrs.update(_validate_format(by, _member(work, state, version), _is_external(state, version)))
    for version in affected:
        attrs = version.attrs = _without(version.attrs, VALIDATED[2:])
        member, line = _member(work, state, version), partial(_before, work, state, version)
        attrs.update(by.validate_compatibility(compatibility, member, line, state.xid))
    for versionid, attrs in before.items():
        if state.versions[versionid].attrs != attrs:
            state.versions[versionid].refreshed = True
    _note_uses(work, state, by, anew)


def validate_users(work: Work) -> None:
    """Look again at the schemas that refer to what the request changed."""
    users = [key for key in sorted(users_of(work)) if key not in work.uses]
    budget = StepBudget(SECOND) if users else None
    for number, key in enumerate(users):
        found = _stored(work, key)
        if found is not None:
            _validate_user(work, *found, budget if budget is not None and number < MOST_USERS else StepBudget(0))


def _validate_user(work: Work, state: ResourceState, version: VersionState, budget: StepBudget) -> None:
    by = _validator(work, state, budget, budget)
    member = _member(work, state, version, _without(version.attrs, VALIDATED))
    attrs = member.attrs
    verdict = _look_again(by, member, _is_external(state, version))
    seen = verdict != UNSEEN
    attrs.update(verdict_attributes("format", verdict))
    compatibility = state.attrs.get("compatibility")
    promise = by.find_compatibility_verdict(compatibility, member, partial(_before, work, state, version))
    attrs.update(verdict_attributes("compatibility", promise))
    if attrs != version.attrs:
        version.attrs = attrs
        version.refreshed = True
    if seen:
        _note_uses(work, state, by, [version])


UNSEEN = Verdict("format_unknown", CHANGED)


def _look_again(by: DocumentValidator, member: VersionDocument, external: bool) -> Verdict | None:
    """Return what is to say of the format of a schema that refers to what changed, as far as the budget goes."""
    row = _checked_by(by, member, external)
    if row is None:
        return by.find_format_verdict(member, external)
    words = too_large(row.family, member.document)
    if words:
        return Verdict("format_unknown", words)
    try:
        by.budget.spend(reading_steps(row.family, member.document))
    except TooMuch:
        return UNSEEN
    verdict = by.find_format_verdict(member, external)
    return verdict if by.budget.left >= 0 else UNSEEN


def _validate_format(by: DocumentValidator, member: VersionDocument, external: bool) -> Iterable[tuple[str, Any]]:
    """Return the attributes that say whether a document has its format, or refuse it: FMT-3, FMT-5, FMT-6."""
    row = _checked_by(by, member, external)
    words = too_large(row.family, member.document) if row is not None else ""
    if not words:
        return by.validate_format(member, external)
    if by.kind.strictvalidation:
        raise RegistryError("format_unknown", member.xid, detail=words, format=member.attrs["format"])
    return verdict_attributes("format", Verdict("format_unknown", words))


def _checked_by(by: DocumentValidator, member: VersionDocument, external: bool) -> Format | None:
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


def _validator_of(work: Work, state: ResourceState) -> DocumentValidator:
    if work.budget is None:
        work.budget = current().part(MOST_STEPS)
    return _validator(work, state, work.budget, None)


def _validator(work: Work, state: ResourceState, budget: StepBudget, whole: StepBudget | None) -> DocumentValidator:
    """What judges versions within a budget; `whole` is what their references may take together, where it is bounded."""
    return DocumentValidator(
        state.type,
        work.capabilities,
        partial(StoredReferences, work, state, whole),
        state.xid,
        budget,
        work.asked_readings(),
        partial(setattr, work, "db"),
        work.offer.trust_unknown,
        work.judged,
    )


def _note_uses(work: Work, state: ResourceState, by: DocumentValidator, versions: list[VersionState]) -> None:
    for version in versions:
        used = by.uses.get(f"{state.xid}/versions/{version.versionid}", frozenset())
        if used or version.row is not None:
            work.uses[rows.version_key(state.xid, version.versionid)] = (used, version.row is not None)


def _is_validated_again(work: Work, state: ResourceState, version: VersionState) -> bool:
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
    own = {name: version.before[name] for name in schema_ids.OWN if name in version.before}
    return {**own, **_without(version.attrs, VALIDATED), **stored}


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
    if before != compatibility or state.revalidate:
        return list(versions.values())
    changed = {version.versionid for version in anew}
    changed |= {one.versionid for one in versions.values() if one.row is None or one.row.ancestor != one.ancestor}
    transitive = compatibility is not None and compatibility.lower().endswith("_transitive")
    found = _descendants(versions, changed, transitive)
    return [version for name, version in versions.items() if name in found]


def _descendants(versions: dict[str, VersionState], changed: set[str], transitive: bool) -> set[str]:
    """Return the versions that are, or come after, one of those that changed; all of them or only the next."""
    children: dict[str, list[str]] = {}
    for version in versions.values():
        if version.ancestor is not None and version.ancestor != version.versionid:
            children.setdefault(version.ancestor, []).append(version.versionid)
    found = set(changed)
    waiting = list(changed)
    while waiting:
        fresh = [name for name in children.get(waiting.pop(), ()) if name not in found]
        found.update(fresh)
        if transitive:
            waiting.extend(fresh)
    return found


def _member(
    work: Work, state: ResourceState, version: VersionState, attrs: dict[str, Any] | None = None
) -> VersionDocument:
    return VersionDocument(
        f"{state.xid}/versions/{version.versionid}",
        version.attrs if attrs is None else attrs,
        partial(document_of, work, state, version),
    )


def _before(work: Work, state: ResourceState, version: VersionState, transitive: bool) -> list[VersionDocument]:
    """Return what comes before a version, oldest first, or only the one that it comes after.

    A circle, which may yet be refused, ends where it began.
    """
    line = {version.versionid: version}
    while (ancestor := version.ancestor) is not None and ancestor in state.versions and ancestor not in line:
        version = line[ancestor] = state.versions[ancestor]
        if not transitive:
            break
    return [_member(work, state, one) for one in reversed(list(line.values())[1:])]


# What is checked when a request's entities are all in place: steps 6, 7 and 9 of the algorithm, and the named rules.
#
# Rule: a check here sees the registry as it will be; it raises the error that undoes the request, or changes only the
# server's own `*validated*` attributes.


def check_work(work: Work) -> None:
    """Check every group and resource that a request touched."""
    for group in list(work.groups.values()):
        if group is not None and group.written and not group.deleted:
            _finish_group(work, group)
    work.declared = declared(work)
    for state in list(work.resources.values()):
        if state is not None and not state.deleted:
            finish_resource(work, state)
    _finish_derived(work)
    validate_users(work)


def _finish_group(work: Work, group: GroupState) -> None:
    kind = group.type
    if "constraints" in group.attrs:
        check_instance_constraints(kind, group.attrs["constraints"], group.xid)
    subject = Subject(group.xid, group.attrs, group.attrs, partial(_lookup, work))
    _apply_rules(kind.rules, subject)
    if group.row is None or not _matters(work, group):
        return
    for resource_kind in kind.resources.values():
        for state in list(work.resources_of(group, resource_kind)):
            state.recheck = True


def _matters(work: Work, group: GroupState) -> bool:
    """Tell whether a group changed in a way that its resources have to follow."""
    before = work.before(group)
    changed = {name for name in before.keys() | group.attrs.keys() if before.get(name) != group.attrs.get(name)}
    every = check_instance_constraints(group.type, group.attrs.get("constraints"), group.xid)
    read = {"constraints"} | {one.equals[0] for one in every.values() if one.equals}
    for kind in group.type.resources.values():
        read |= rereads(kind.modelcompatiblewith)
    return not read.isdisjoint(changed)


def finish_resource(work: Work, state: ResourceState) -> None:
    """Check what a request made of one resource: steps 6, 7 and 9."""
    touched = [version for version in state.versions.values() if version.touched]
    if state.xref is not None:
        if state.xref_written or state.recheck:
            _check_versions(work, state, _target_versions(work, state.xref))
        return
    if state.recheck:
        touched = list(work.complete(state).values())
    if not touched and not state.touched:
        return
    _check_versions(work, state, touched)
    for source in work.sources_of(state):
        _check_versions(work, source, touched)
    if state.type.validateformat:  # last, because reading schemas is the dearest of all
        validate_documents(work, state, touched)


def _finish_derived(work: Work) -> None:
    """Check again the definitions that inherit from those which are new or say something else, however far away.

    What derives from one that is deleted is not: a reference may lead nowhere, which lint and matches tell.
    """
    changed = [
        state
        for state in work.resources.values()
        if state is not None and not state.deleted and state.type.modelcompatiblewith == MESSAGE and _bequeaths(state)
    ]
    seen = {state.xid for state in changed}
    while changed:
        derived = []
        for xid in _derived(work, changed):
            state = work.by_xid(xid) if xid not in seen else None
            seen.add(xid)
            if state is not None and not state.deleted and state.xref is None:
                _check_versions(work, state, list(work.complete(state).values()))
                derived.append(state)
        changed = derived


def _bequeaths(state: ResourceState) -> bool:
    """Tell whether a definition has anew, or by a change of its group, what others inherit and rules look at."""
    if state.xref is not None or state.recheck:
        return state.xref_written or state.recheck
    return any(
        version.touched and any(version.before.get(name) != version.attrs.get(name) for name in INHERITED)
        for version in state.versions.values()
    )


def _derived(work: Work, bases: list[ResourceState]) -> Iterator[str]:
    """Return the xids of the definitions that name one of these, or a resource that shows one, as their base."""
    versions = {
        one.xid: base.versions for base in bases for one in (base, *(() if base.xref else work.sources_of(base)))
    }
    names = [fold(name) for xid, of in versions.items() for name in (xid, *(f"{xid}/versions/{id_}" for id_ in of))]
    types = [
        f"{kind.plural}/{resource_kind.plural}"
        for kind in work.model.groups.values()
        for resource_kind in kind.resources.values()
        if resource_kind.modelcompatiblewith == MESSAGE
    ]
    terms = {term_number(type_, "basemessage", name) for type_ in types for name in names}
    for key in sorted(rows.find_by_terms(work.db, terms)):
        row = rows.load(work.db, key)
        # The index proposes: what is stored names the base.
        if row is not None and message_of(str(orjson.loads(row.doc).get("basemessage"))) in versions:
            yield message_of(row.xid)


def _check_versions(work: Work, state: ResourceState, versions: list[VersionState]) -> None:
    """Check versions as those of a resource, be they its own or those it shows: XREF-10."""
    _check_constraints(work, state, versions)
    for version in versions:
        spend(A_VERSION)
        xid = f"{state.xid}/versions/{version.versionid}"
        subject = Subject(
            xid, version.attrs, state.group.attrs, partial(_lookup, work), state.type.version_level.problems
        )
        _apply_rules(state.type.rules, subject)


def _apply_rules(rules: RuleSet, subject: Subject) -> None:
    xid = subject.xid
    for problem in rules.check(subject):
        raise RegistryError(problem.code, xid, **dict(problem.args))


def _lookup(work: Work, xid: str) -> dict[str, Any] | None:
    """Return the attributes of a group, a version, or a resource's default version."""
    parts = xid.split("/")[1:]
    kind = work.model.groups.get(parts[0]) if len(parts) in (2, 4, 6) else None
    group = work.group(kind, parts[1]) if kind is not None else None
    if kind is None or group is None or group.id != parts[1] or len(parts) == 2:
        return group.attrs if group is not None and len(parts) == 2 and group.id == parts[1] else None
    resource_kind = kind.resources.get(parts[2])
    state = work.resource(group, resource_kind, parts[3]) if resource_kind is not None else None
    if state is None or state.id != parts[3]:
        return None
    if state.xref is not None:
        target = work.by_xid(state.xref)
        if target is None or target.xref is not None:
            return None
        state = target
    versionid = parts[5] if len(parts) == 6 else state.default
    version = work.complete(state).get(versionid or "")
    return version.attrs if version is not None else None


def _check_constraints(work: Work, state: ResourceState, versions: list[VersionState]) -> None:
    group = state.group
    if not group.type.constraints and "constraints" not in group.attrs:
        return
    for version in versions:
        for path, kind in constraint_violations(group.type, group.attrs, state.type.plural, version.attrs):
            raise RegistryError("constraint_failure", state.xid, path=path, kind=kind)


def _target_versions(work: Work, xref: str) -> list[VersionState]:
    target = work.by_xid(xref)
    if target is None or target.xref is not None:
        return []
    return list(work.complete(target).values())
