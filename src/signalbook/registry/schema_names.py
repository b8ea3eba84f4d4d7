"""How the schemas of a registry find each other: by xid, by a name beside them in their group, by a name they declare.

Rule 1: a look-up (`schemas.lookup`) reads one resource, or one row of the table of declared names; it never goes
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

from signalbook import schemas
from signalbook.document.model import GroupType
from signalbook.registry import rows
from signalbook.registry.state import KEEP, Declared, ResourceState, VersionState, Work
from signalbook.schemas.budget import Budget, TooMuch
from signalbook.schemas.format import Located, SchemaError, unreachable
from signalbook.schemas.lookup import look_up, meant
from signalbook.schemas.names import names_of
from signalbook.schemas.weight import SECOND, reading_steps, too_large

__all__ = ["Asking", "declared", "document_of", "enter", "users_of"]

_CHUNK = 200


@dataclass(slots=True)
class Asking:
    """What one schema asks of the registry, as its request leaves it; `asked` gathers the names and keys.

    `whole` is what several readings may take together, where it is bounded.
    """

    work: Work
    state: ResourceState
    whole: Budget | None
    family: str
    asked: set[str] = field(default_factory=set)
    budget: Budget = field(init=False)

    def __post_init__(self) -> None:
        self.budget = Budget(SECOND, self.whole)

    def __call__(self, uri: str) -> bytes | None:
        """Return the document of a schema that another refers to; None where there is none, or several."""
        found = look_up(uri, self.state.xid, self._at, self._declared)
        if found is not None:
            if too_large(self.family, found):
                raise unreachable(f"{uri} is too large to be read with it")
            try:
                self.budget.spend(reading_steps(self.family, found))
            except TooMuch:
                raise unreachable(f"{uri} and what else it refers to are too large to be read with it") from None
        return found

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
    if state.deleted or state.group.deleted or state.row is None or state.xref_written or state.rejudge:
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
    asking = Asking(work, state, None, row.family)
    with suppress(SchemaError):  # it was judged when it was written
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
