"""The entities of one request in memory: what it has read, what it changed, and what all of them have in common.

Rule 1: processing changes these objects only; `commit` writes rows, index entries and the record of the change once, at
the end. So an entity's epoch moves by one per request however often it was touched, and an error costs nothing.
Rule 2: everything touched by one request carries the same instant (TIME-4).
Rule 3: id, epoch, times, and which attributes a client may set are read by functions that look at one JSON object of a
request: they raise the specification's error, or return a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from signalbook.budget import spend
from signalbook.errors import RegistryError
from signalbook.model.model import GroupType, Model, ResourceType
from signalbook.model.values import VALUE_TYPES, Level, from_text
from signalbook.model.xids import ID
from signalbook.registry import rows
from signalbook.registry.capabilities import OFFER, Capabilities, Offer
from signalbook.registry.formats import Readings
from signalbook.registry.rows import Ahead, EntityRow, IndexEntry
from signalbook.registry.store import Connection
from signalbook.schemas.format import StepBudget
from signalbook.spec.versions import RC4, SpecVersion

__all__ = [
    "GROUP_SYSTEM", "KEEP", "META_SYSTEM", "RESOURCE_MEMBERS", "VERSION_SYSTEM", "Declared", "GroupState",
    "RegistryState", "ResourceState", "VersionState", "Work", "check_epoch", "check_id_matches", "created_at",
    "epoch_of", "is_id", "is_uinteger", "modified_at", "nested_entries", "object_of", "read_texts",
]  # fmt: skip

KEEP = object()  # a document that the request does not speak of


@dataclass(slots=True, eq=False)
class VersionState:
    """One version; `ancestor` is None while it is still to be found."""

    versionid: str
    row: EntityRow | None
    attrs_: dict[str, Any] | None
    createdat: str
    modifiedat: str
    ancestor: str | None
    content: object = KEEP
    form: str | None = None
    touched: bool = False
    refreshed: bool = False  # the server's own attributes were computed again
    before_: dict[str, Any] | None = None

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes a user wrote, parsed when first asked for."""
        if self.attrs_ is None:
            self.attrs_ = orjson.loads(self.row.doc) if self.row else {}
        return self.attrs_

    @attrs.setter
    def attrs(self, value: dict[str, Any]) -> None:
        self.attrs_ = value

    @property
    def before(self) -> dict[str, Any]:
        """The attributes as they are stored, parsed when first asked for."""
        if self.before_ is None:
            self.before_ = orjson.loads(self.row.doc) if self.row is not None else {}
        return self.before_

    @property
    def epoch(self) -> int:
        """The epoch this version will have."""
        return 1 if self.row is None else self.row.epoch + self.touched


@dataclass(slots=True, eq=False)
class ResourceState:
    """One resource: its meta, and those of its versions that were needed so far."""

    type: ResourceType
    group: GroupState
    id: str
    xid: str
    row: EntityRow | None
    attrs: dict[str, Any]
    createdat: str
    modifiedat: str
    xref: str | None = None
    default: str | None = None
    sticky: bool = False
    nextid: int = 1
    versions: dict[str, VersionState] = field(default_factory=dict)
    complete: bool = False  # every stored version is among `versions`
    gone: dict[str, VersionState] = field(default_factory=dict)
    passed: list[VersionState] = field(default_factory=list)  # written in this request on the way to the default
    touched: bool = False  # the meta itself was written
    deleted: bool = False
    reshuffled: bool = False  # versions came or went, or something that orders them changed
    xref_written: bool = False
    recheck: bool = False  # something its versions depend on changed
    revalidate: bool = False  # what its type says about formats changed
    refreshed: bool = False  # written again without a new epoch
    generated: str | None = None  # the versionid that the server made in this request
    floor: int = 0  # an epoch that the next one has to exceed

    @property
    def epoch(self) -> int:
        """The epoch that the meta will have."""
        if self.row is None:
            return 1
        return max(self.row.epoch, self.floor) + 1 if self.touched else self.row.epoch

    @property
    def typename(self) -> str:
        """The model type, such as `dirs/files`."""
        return f"{self.group.type.plural}/{self.type.plural}"


@dataclass(slots=True, eq=False)
class GroupState:
    """One group and the sizes of its collections."""

    type: GroupType
    id: str
    xid: str
    row: EntityRow | None
    attrs: dict[str, Any]
    createdat: str
    modifiedat: str
    counts: dict[str, int] = field(default_factory=dict)
    touched: bool = False
    written: bool = False  # its own attributes were part of the request
    refreshed: bool = False  # written again without a new epoch
    deleted: bool = False
    resized: set[str] = field(default_factory=set)

    @property
    def epoch(self) -> int:
        """The epoch this group will have."""
        return 1 if self.row is None else self.row.epoch + self.touched


@dataclass(slots=True, eq=False)
class RegistryState:
    """The registry itself."""

    row: EntityRow
    attrs: dict[str, Any]
    createdat: str
    modifiedat: str
    counts: dict[str, int]
    touched: bool = False
    changed: set[str] = field(default_factory=set)
    written: bool = False
    refreshed: bool = False  # written again without a new epoch
    resized: set[str] = field(default_factory=set)

    @property
    def epoch(self) -> int:
        """The epoch the registry will have."""
        return self.row.epoch + self.touched


@dataclass(slots=True, eq=False)
class Declared:
    """The resources whose names for other schemas a request changes, by key, and who has a name after it."""

    keys: set[str] = field(default_factory=set)
    names: dict[str, set[str]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Work:
    """One request's unit of work."""

    db: Connection
    model: Model
    capabilities: Capabilities
    registryid: str
    now: str
    offer: Offer = OFFER
    ignore: frozenset[str] = frozenset()
    spec: SpecVersion = RC4  # the version that the request is made in
    root: str = ""  # the xid of the one entity that the request addresses, if it is one
    load_include: Callable[[str], Any] | None = None
    reserved: frozenset[str] = frozenset()
    recorded: frozenset[str] = frozenset()  # the types whose resources have a log, by `modelcompatiblewith`
    judged: bool = False  # who writes has judged the documents: what is wrong with them is noted, and not refused
    new_settings: dict[str, str] = field(default_factory=dict)
    saved: dict[str, EntityRow] = field(default_factory=dict)  # what `commit` wrote, by key
    entries: list[IndexEntry] = field(default_factory=list)  # what `commit` changes in the index
    # by key, what the documents that were read refer to, and whether the version was there before
    uses: dict[str, tuple[frozenset[str], bool]] = field(default_factory=dict)
    ahead: Ahead | None = None  # what was read of the resource that the request addresses, and of its group
    readings: Readings | None = None  # what checks of schemas came to, in this turn and in those before
    ask_readings: Callable[[], Readings] = Readings  # who has those of the turns before
    budget: StepBudget | None = None  # what comparisons of schemas may still take
    declared: Declared | None = None  # once all entities of the request are in place
    changed_capabilities: set[str] = field(default_factory=set)
    registry_: RegistryState | None = None
    groups: dict[str, GroupState | None] = field(default_factory=dict)
    resources: dict[str, ResourceState | None] = field(default_factory=dict)

    def checks_id(self, xid: str) -> bool:
        """Tell whether an entity's id in the body has to be its own; that of the root may be ignored: FLAGS-6."""
        return "id" not in self.ignore or xid != self.root

    def asked_readings(self) -> Readings:
        """Return what checks of schemas came to; asked for where the first is made."""
        if self.readings is None:
            self.readings = self.ask_readings()
        return self.readings

    # ---- reading

    @property
    def registry(self) -> RegistryState:
        """The registry, read when first asked for."""
        if self.registry_ is None:
            row = rows.load(self.db, rows.REGISTRY_KEY)
            assert row is not None
            self.registry_ = RegistryState(
                row, orjson.loads(row.doc), row.createdat, row.modifiedat, orjson.loads(row.counts)
            )
        return self.registry_

    def group(self, kind: GroupType, id_: str) -> GroupState | None:
        """Return a group, or None where there is none of this id in any case."""
        key = rows.group_key(f"/{kind.plural}/{id_}")
        if key not in self.groups:
            ahead = self.ahead
            row = ahead.group if ahead is not None and ahead.group_key == key else rows.load(self.db, key)
            self.groups[key] = row and self._group(kind, row)
        found = self.groups[key]
        return None if found is None or found.deleted else found

    def _group(self, kind: GroupType, row: EntityRow) -> GroupState:
        id_ = row.xid.rpartition("/")[2]
        attrs, counts = orjson.loads(row.doc), orjson.loads(row.counts)
        return GroupState(kind, id_, row.xid, row, attrs, row.createdat, row.modifiedat, counts)

    def new_group(self, kind: GroupType, id_: str) -> GroupState:
        """Add a group to the registry."""
        xid = f"/{kind.plural}/{id_}"
        state = GroupState(kind, id_, xid, None, {}, self.now, self.now, touched=True)
        before = self.groups.get(rows.group_key(xid))
        if before is not None:  # deleted and made again by one request
            state.row = before.row
        self.groups[rows.group_key(xid)] = state
        self.resize_registry(kind.plural, +1)
        return state

    def resource(self, group: GroupState, kind: ResourceType, id_: str) -> ResourceState | None:
        """Return a resource with its default version, or None where there is none of this id in any case."""
        key = rows.resource_key(f"{group.xid}/{kind.plural}/{id_}")
        if key not in self.resources:
            found = self._stored(key) if group.row is not None else None
            self.resources[key] = self._resource(group, kind, *found) if found else None
        state = self.resources[key]
        return None if state is None or state.deleted else state

    def _stored(self, key: str) -> tuple[EntityRow, EntityRow | None] | None:
        ahead = self.ahead
        if ahead is None or ahead.resource_key != key:
            return rows.load_resource(self.db, key)
        return None if ahead.resource is None else (ahead.resource, ahead.default)

    def _resource(
        self, group: GroupState, kind: ResourceType, row: EntityRow, default: EntityRow | None
    ) -> ResourceState:
        state = ResourceState(
            kind, group, row.xid.rpartition("/")[2], row.xid, row, orjson.loads(row.doc), row.createdat, row.modifiedat,
            row.xref, None, bool(row.sticky), row.nextid,
        )  # fmt: skip
        if default is not None:
            version = _version(default)
            state.versions[version.versionid] = version
            state.default = version.versionid
        state.complete = row.size == len(state.versions)
        return state

    def new_resource(self, group: GroupState, kind: ResourceType, id_: str) -> ResourceState:
        """Add a resource to a group."""
        xid = f"{group.xid}/{kind.plural}/{id_}"
        state = ResourceState(kind, group, id_, xid, None, {}, self.now, self.now, complete=True, touched=True)
        self.resources[rows.resource_key(xid)] = state
        self.resize_group(group, kind.plural, +1)
        return state

    def complete(self, state: ResourceState) -> dict[str, VersionState]:
        """Return all versions of a resource, read when first asked for."""
        if not state.complete:
            low, high = rows.range_of(rows.VERSION, state.xid + "/versions")
            for found in self.db.execute(rows.SELECT_RANGE, (low, high)):
                version = _version(EntityRow(*found))
                if version.versionid not in state.versions and version.versionid not in state.gone:
                    state.versions[version.versionid] = version
            state.complete = True
        return state.versions

    def target_epoch(self, xref: str) -> int:
        """Return the meta epoch of a cross reference's target, 0 where there is none."""
        key = rows.resource_key(xref)
        state = self.resources.get(key)
        if state is not None:
            return state.epoch if state.xid == xref and state.xref is None else 0
        row = rows.load(self.db, key)
        return row.epoch if row is not None and row.xid == xref and row.xref is None else 0

    def resources_of(self, group: GroupState, kind: ResourceType) -> Iterator[ResourceState]:
        """Return every resource of a group, stored or new."""
        if group.row is not None:
            low, high = rows.range_of(rows.RESOURCE, f"{group.xid}/{kind.plural}")
            for found in self.db.execute(rows.SELECT_RESOURCES, (low, high)):
                if found[0] not in self.resources:
                    default = EntityRow(*found[rows.WIDTH :]) if found[rows.WIDTH] is not None else None
                    self.resources[found[0]] = self._resource(group, kind, EntityRow(*found[: rows.WIDTH]), default)
        for state in list(self.resources.values()):
            if state is not None and state.group is group and state.type is kind and not state.deleted:
                yield state

    def groups_of(self, kind: GroupType) -> Iterator[GroupState]:
        """Return every group of a type, stored or new."""
        for found in self.db.execute(rows.SELECT_RANGE, rows.range_of(rows.GROUP, f"/{kind.plural}")):
            if found[0] not in self.groups:
                self.groups[found[0]] = self._group(kind, EntityRow(*found))
        for state in list(self.groups.values()):
            if state is not None and state.type is kind and not state.deleted:
                yield state

    def before(self, group: GroupState) -> dict[str, Any]:
        """Return a group's attributes as they are stored."""
        return orjson.loads(group.row.doc) if group.row is not None else {}

    def by_xid(self, xid: str) -> ResourceState | None:
        """Return the resource that an xid names exactly."""
        _, groups, gid, resources, rid = xid.split("/")
        kind = self.model.groups[groups]
        group = self.group(kind, gid)
        state = self.resource(group, kind.resources[resources], rid) if group is not None else None
        return state if state is not None and state.xid == xid else None

    def sources_of(self, state: ResourceState) -> Iterator[ResourceState]:
        """Return the resources that show this one."""
        ahead = self.ahead
        if ahead is not None and ahead.xid == state.xid and not ahead.shown:
            return
        for (xid,) in self.db.execute("SELECT xid FROM entities WHERE xref = ?", (state.xid,)):
            source = self.by_xid(xid)
            if source is not None and source.xref == state.xid:
                yield source

    # ---- changing

    def resize_registry(self, plural: str, by: int) -> None:
        """Count a group in or out, which is a change of the registry (EPOCH-3, TIME-5)."""
        registry = self.registry
        registry.counts[plural] = registry.counts.get(plural, 0) + by
        registry.resized.add(plural)
        self.touch_registry()

    def touch_registry(self) -> None:
        """Give the registry a new epoch."""
        if not self.registry.touched:
            self.registry.touched = True
            self.registry.modifiedat = self.now

    def resize_group(self, group: GroupState, plural: str, by: int) -> None:
        """Count a resource in or out, which is a change of the group (EPOCH-3, TIME-5)."""
        group.counts[plural] = group.counts.get(plural, 0) + by
        group.resized.add(plural)
        if not group.touched:
            group.touched = True
            group.modifiedat = self.now

    def touch_meta(self, state: ResourceState) -> None:
        """Give a resource's meta a new epoch."""
        if not state.touched:
            state.touched = True
            state.modifiedat = self.now

    def remove_version(self, state: ResourceState, versionid: str) -> None:
        """Take a version away."""
        version = state.versions.pop(versionid)
        if version.row is not None:
            state.gone[versionid] = version
        self.touch_meta(state)


def _version(row: EntityRow) -> VersionState:
    versionid = row.xid.rpartition("/")[2]
    return VersionState(versionid, row, None, row.createdat, row.modifiedat, row.ancestor, form=row.form)


# What every entity in a request has in common: its id, its epoch, its times, and what of it a user controls.

_COMMON = {"self", "shortself", "xid", "epoch", "createdat", "modifiedat", "$schema"}
GROUP_SYSTEM = frozenset(_COMMON)
META_SYSTEM = frozenset(_COMMON | {"xref", "readonly", "defaultversionid", "defaultversionurl", "defaultversionsticky"})
VERSION_SYSTEM = frozenset(
    _COMMON
    | {"versionid", "isdefault", "ancestorid"}
    | {"formatvalidated", "formatvalidatedreason", "compatibilityvalidated", "compatibilityvalidatedreason"}
)
RESOURCE_MEMBERS = frozenset({"meta", "metaurl", "versions", "versionsurl", "versionscount"})


_TIMESTAMP_OF = VALUE_TYPES["timestamp"].read


def is_id(value: object) -> bool:
    """Tell whether a value is a legal id: ID-1."""
    return isinstance(value, str) and ID.fullmatch(value) is not None


def check_id_matches(body: Mapping[str, Any], singular: str, expected: str, subject: str) -> None:
    """Refuse an id in the body that is not the one in the path or key: ID-5."""
    given = body.get(singular + "id")
    if given is not None and given != expected:
        raise RegistryError("mismatched_id", subject, singular=singular, invalid_id=given, expected_id=expected)


def is_uinteger(value: object) -> bool:
    """Tell whether a value is a whole number from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def epoch_of(body: Mapping[str, Any], subject: str, detail: str = "must be a uinteger") -> int | None:
    """Return the epoch that a request asks for, or None where it does not."""
    given = body.get("epoch")
    if given is None:
        return None
    if not is_uinteger(given):
        raise RegistryError("invalid_attribute", subject, name="epoch", error_detail=detail)
    return int(given)


def check_epoch(body: Mapping[str, Any], current: int | None, subject: str, ignore: frozenset[str]) -> None:
    """Refuse a request made on an older state: EPOCH-2; of a new entity any epoch will do, if it is one."""
    if "epoch" in body and "epoch" not in ignore:
        given = epoch_of(body, subject)
        if given is not None and current is not None and given != current:
            raise RegistryError("mismatched_epoch", subject, bad_epoch=given, epoch=current)


def _read_timestamp(value: object, name: str, subject: str) -> str:
    try:
        return str(_TIMESTAMP_OF(value))
    except ValueError as problem:
        raise RegistryError("invalid_attribute", subject, name=name, error_detail=str(problem)) from None


def created_at(body: Mapping[str, Any], before: str | None, now: str, subject: str) -> str:
    """Return an entity's `createdat`: TIME-2."""
    if "createdat" not in body:
        return before or now
    value = body["createdat"]
    return now if value is None else _read_timestamp(value, "createdat", subject)


def modified_at(body: Mapping[str, Any], before: str | None, now: str, subject: str) -> str:
    """Return an entity's `modifiedat`: TIME-3."""
    value = body.get("modifiedat")
    if value is None:
        return now
    stamp = _read_timestamp(value, "modifiedat", subject)
    return now if stamp == before else stamp


def read_texts(level: Level, attrs: dict[str, Any], given: Iterable[str]) -> None:
    """Give attributes that came as text the types they have in an entity with `attrs`, by `ifvalues` too: HDR-1."""
    for name in given:
        value, attribute = attrs.get(name), level.find(name, attrs)
        if isinstance(value, str) and attribute is not None:
            attrs[name] = from_text(attribute.type, value)
        elif isinstance(value, dict) and attribute is not None and attribute.item is not None:
            type_ = attribute.item.type
            attrs[name] = {key: from_text(type_, one) if isinstance(one, str) else one for key, one in value.items()}


def object_of(value: object, name: str, subject: str) -> dict[str, Any]:
    """Return an attribute that has to be an object."""
    if not isinstance(value, dict):
        raise RegistryError("invalid_attribute", subject, name=name, error_detail=f'"{name}" must be an object')
    return value


# The steps to read one entity of a request, and to compare it with the model.
AN_ENTRY = 20


def nested_entries(value: object, plural: str, singular: str, subject: str) -> dict[str, dict[str, Any]]:
    """Return a nested collection of a request: a map of objects, COLL-6."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RegistryError("invalid_attribute", subject, name=plural, error_detail="must be a map")
    spend(AN_ENTRY * len(value))
    for key, entry in value.items():
        if not isinstance(entry, dict):
            where = f'key "{key}" in attribute "versions"' if plural == "versions" else f'Key "{key}"'
            raise RegistryError(
                "invalid_attribute", subject, name=plural,
                error_detail=f"{where} doesn't appear to be of type \"{singular}\"",
            )  # fmt: skip
    return value
