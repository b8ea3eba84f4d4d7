"""Entities as JSON text, joined from stored fragments.

Rule 1: text is joined, not built: what a user wrote is stored as JSON and forwarded as it is; only what depends on the
request (address, view, flags) is put around it.
Rule 2: a view never writes, and reads nested collections only where they are shown.
Rule 3: what may be large (the registry, a group, a collection) is given piece by piece, and its rows are read in
batches, so that an answer is never in memory as a whole; the pieces are joined where a text is wanted.
Rule 4: what a filter picked is a `Picked` tree made beforehand (`queries`); None means everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b

import orjson

from signalbook.budget import of_bytes, spend
from signalbook.errors import RegistryError
from signalbook.model.model import GroupType, Model, ResourceType
from signalbook.model.normalise import spelled_members
from signalbook.registry import rows
from signalbook.registry.capabilities import Setup
from signalbook.registry.documents import TAKEN_AWAY, document_names, render_document
from signalbook.registry.formats import VALIDATED
from signalbook.registry.rows import EntityRow
from signalbook.registry.store import Connection
from signalbook.registry.urls import DETAILS, Flags, InlineSet, RequestTarget
from signalbook.spec.versions import VERSIONS, SpecVersion

__all__ = [
    "PREFIX",
    "Limits",
    "Picked",
    "ReadContext",
    "View",
    "enter",
    "enter_all",
    "point_read",
    "resolve",
    "short_name",
]

# `shortself`: a short address for every entity, where the capability is on (ATTR-3).
#
# Rule: a short name is made from the xid alone, so it is the same whenever the capability is switched on again; the
# index of attribute values holds it, beside the key of its entity. A name that outlives its entity leads nowhere.


PREFIX = "/.s/"  # no group type can have a dot in its name
_INSERT = "INSERT INTO attrs (term, key) VALUES (?, ?) ON CONFLICT DO NOTHING"


def _number(xid: str) -> int:
    digest = blake2b(xid.encode(), digest_size=8, person=b"shortself").digest()
    return int.from_bytes(digest, "big", signed=True)


def short_name(xid: str) -> str:
    """Return the short name of an entity."""
    return f"{_number(xid) & (1 << 64) - 1:016x}"


def _entries(key: str, xid: str) -> list[tuple[int, str]]:
    entries = [(_number(xid), key)]
    if key.startswith(rows.RESOURCE):
        entries.append((_number(xid + "/meta"), key))
    return entries


def enter(db: Connection, key: str, xid: str) -> None:
    """Make an entity known by its short name."""
    db.executemany(_INSERT, _entries(key, xid))


def enter_all(db: Connection) -> None:
    """Make every entity known by its short name."""
    for key, xid in db.execute("SELECT key, xid FROM entities"):
        enter(db, key, xid)


def resolve(db: Connection, name: str) -> str | None:
    """Return the xid that a short name stands for."""
    if len(name) != 16 or not all(character in "0123456789abcdef" for character in name):
        return None
    number = int(name, 16)
    signed = number - (1 << 64) if number >> 63 else number
    for (key,) in db.execute("SELECT key FROM attrs WHERE term = ?", (signed,)):
        row = rows.load(db, key)
        if row is not None:
            for xid in (row.xid, row.xid + "/meta"):
                if short_name(xid) == name:
                    return xid
    return None


NOTHING = InlineSet.NOTHING


@dataclass(slots=True)
class Picked:
    """What a filter left of one entity: by collection the members it left, and the filter that asks for them again."""

    members: dict[str, dict[str, Picked | None]] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)


def _pointer(path: str) -> str:
    """Return a place in the response: RFC 6901 writes a tilde as `~0`; ids hold no slash that is not one."""
    return "#" + (path.replace("~", "~0") or "/")


@dataclass(slots=True)
class View:
    """How one response looks, and the means to make it."""

    db: Connection
    model: Model
    spec: SpecVersion
    base: str
    registryid: str
    doc: bool = False
    binary: bool = False
    collections: bool = False
    filtered: bool = False
    shortself: bool = False
    root: str = ""  # document view: the path of the response's outermost value
    room: int = 1 << 62  # characters that may still be shown
    subject: str = "/"
    extras: Mapping[str, Callable[[], str]] = field(default_factory=dict)  # capabilities, model, modelsource

    # ---- addresses

    def link(self, xid: str, details: str = "") -> str:
        """Return the address of an entity that is part of this response."""
        if self.doc:
            return _pointer(xid[len(self.root) :])
        return self.base + xid + details

    def collection(
        self, xid: str, plural: str, size: int, inlined: Iterator[str] | None, picked: Picked | None
    ) -> Iterator[str]:
        """Yield a collection's members of its parent: COLL-1 to COLL-8."""
        path = f"{xid}/{plural}" if xid != "/" else f"/{plural}"
        if inlined is not None and self.doc:
            url = _pointer(path[len(self.root) :])
        else:
            url = self.base + path
            if self.filtered:
                query = "filter=excludeall" if size == 0 else picked.queries.get(plural) if picked else None
                url += f"?{query}" if query else ""
        if inlined is None:
            yield self.spend(f',"{plural}url":{_quoted(url)},"{plural}count":{size}')
            return
        yield self.spend(f',"{plural}url":{_quoted(url)},"{plural}":')
        yield from inlined
        yield self.spend(f',"{plural}count":{size}')

    def spend(self, text: str) -> str:
        """Return a text that becomes part of the response, as long as there is room: INLINE-6."""
        spend(of_bytes(len(text)))
        self.room -= len(text)
        if self.room < 0:
            raise RegistryError("too_large", self.subject)
        return text

    # ---- the registry and its groups

    def registry(self, row: EntityRow, inline: InlineSet, picked: Picked | None) -> Iterator[str]:
        """Yield the registry."""
        if self.collections:
            yield from _without_comma(self._group_collections(row, inline, picked))
            return
        head = (
            f'{{"specversion":"{self.spec.name}","registryid":"{self.registryid}","self":"{self._registry_self()}"'
            f'{self._short("/")},"xid":"/","epoch":{row.epoch}'
        )
        extras = "".join(f',"{name}":{make()}' for name, make in self.extras.items() if inline.child(name) is not None)
        times = f',"createdat":"{row.createdat}","modifiedat":"{row.modifiedat}"'
        yield self.spend(head + _inner(row.doc) + times + extras)
        yield from self._group_collections(row, inline, picked)
        yield self.spend("}")

    def _group_collections(self, row: EntityRow, inline: InlineSet, picked: Picked | None) -> Iterator[str]:
        counts = orjson.loads(row.counts)
        for plural, kind in self.model.groups.items():
            members = picked.members.get(plural, {}) if picked is not None else None
            size = len(members) if members is not None else counts.get(plural, 0)
            below = inline.child(plural)
            shown = None if below is None else self.groups(kind, below, members)
            yield from self.collection("/", plural, size, shown, picked)

    def _registry_self(self) -> str:
        return "#/" if self.doc else self.base + "/"

    def groups(self, kind: GroupType, inline: InlineSet, members: Mapping[str, Picked | None] | None) -> Iterator[str]:
        """Yield a collection of groups."""
        path = f"/{kind.plural}"
        if members is None:
            found = rows.in_batches(self.db, rows.SELECT_RANGE, rows.range_of(rows.GROUP, path))
        else:
            found = rows.each_member(self.db, rows.GROUP, path, members)
        return self.show_groups(kind, map(_row, found), inline, members)

    def show_groups(
        self,
        kind: GroupType,
        found: Iterable[EntityRow],
        inline: InlineSet,
        members: Mapping[str, Picked | None] | None,
    ) -> Iterator[str]:
        """Yield these groups as a map."""
        before = "{"
        for row in found:
            id_ = row.xid.rpartition("/")[2]
            if members is None or id_ in members:
                yield self.spend(f'{before}"{id_}":')
                yield from self.show_group(kind, row, inline, members.get(id_) if members else None)
                before = ","
        yield self.spend("}" if before == "," else "{}")

    def group(self, kind: GroupType, row: EntityRow, inline: InlineSet = NOTHING, picked: Picked | None = None) -> str:
        """Return one group."""
        return "".join(self.show_group(kind, row, inline, picked))

    def show_group(
        self, kind: GroupType, row: EntityRow, inline: InlineSet = NOTHING, picked: Picked | None = None
    ) -> Iterator[str]:
        """Yield one group."""
        xid = row.xid
        if self.collections and xid == self.root:
            yield from _without_comma(self._resource_collections(kind, row, inline, picked))
            return
        id_ = xid.rpartition("/")[2]
        yield self.spend(
            f'{{"{kind.singular}id":"{id_}","self":"{self.link(xid)}"{self._short(xid)},"xid":"{xid}"'
            f',"epoch":{row.epoch}{self._user(kind, self._members(row.doc))}'
            f',"createdat":"{row.createdat}","modifiedat":"{row.modifiedat}"'
        )
        yield from self._resource_collections(kind, row, inline, picked)
        yield self.spend("}")

    def _resource_collections(
        self, kind: GroupType, row: EntityRow, inline: InlineSet, picked: Picked | None
    ) -> Iterator[str]:
        counts = orjson.loads(row.counts)
        for plural, resource_kind in kind.resources.items():
            members = picked.members.get(plural, {}) if picked is not None else None
            size = len(members) if members is not None else counts.get(plural, 0)
            below = inline.child(plural)
            shown = None if below is None else self.resources(resource_kind, f"{row.xid}/{plural}", below, members)
            yield from self.collection(row.xid, plural, size, shown, picked)

    # ---- resources

    def resources(
        self, kind: ResourceType, path: str, inline: InlineSet, members: Mapping[str, Picked | None] | None
    ) -> Iterator[str]:
        """Yield a collection of resources."""
        if members is None:
            found = rows.in_batches(self.db, rows.SELECT_RESOURCES, rows.range_of(rows.RESOURCE, path))
        else:
            found = rows.each_member(self.db, rows.RESOURCE, path, members, resources=True)
        return self.show_resources(kind, map(pair, found), inline, members)

    def show_resources(
        self, kind: ResourceType, found: Iterable[tuple[EntityRow, EntityRow | None]], inline: InlineSet,
        members: Mapping[str, Picked | None] | None,
    ) -> Iterator[str]:  # fmt: skip
        """Yield these resources as a map."""
        before = "{"
        for row, default in found:
            id_ = row.xid.rpartition("/")[2]
            if members is None or id_ in members:
                picked = members.get(id_) if members else None
                yield self.spend(f'{before}"{id_}":')
                yield from self.show_resource(kind, row, default, inline, picked)
                before = ","
        yield self.spend("}" if before == "," else "{}")

    def target(self, row: EntityRow) -> tuple[EntityRow, EntityRow | None] | None:
        """Return what a resource shows: itself, or the target of its cross reference, or None where that dangles."""
        if row.xref is None:
            return rows.load_resource(self.db, row.key)
        found = rows.load_resource(self.db, rows.resource_key(row.xref))
        return found if found is not None and found[0].xid == row.xref and found[0].xref is None else None

    def resource(
        self, kind: ResourceType, row: EntityRow, default: EntityRow | None, inline: InlineSet = NOTHING,
        picked: Picked | None = None,
    ) -> str:  # fmt: skip
        """Return one resource: its own ids, the attributes of its default version, and what is inlined."""
        if inline is NOTHING and default is not None and not (self.doc or self.filtered or self.shortself):
            return self.spend(self._plain_resource(kind, row, default))
        return "".join(self.show_resource(kind, row, default, inline, picked))

    def show_resource(
        self, kind: ResourceType, row: EntityRow, default: EntityRow | None, inline: InlineSet = NOTHING,
        picked: Picked | None = None,
    ) -> Iterator[str]:  # fmt: skip
        """Yield one resource."""
        if inline is NOTHING and default is not None and not (self.doc or self.filtered or self.shortself):
            yield self.spend(self._plain_resource(kind, row, default))
            return
        xid = row.xid
        id_ = xid.rpartition("/")[2]
        real: EntityRow | None = row
        if row.xref is not None:
            found = None if self.doc else self.target(row)
            real, default = found if found is not None else (None, None)
        details = "$details" if kind.hasdocument else ""
        head = f'{{"{kind.singular}id":"{id_}"'
        own = f',"self":"{self.link(xid, details)}"{self._short(xid)},"xid":"{xid}"'
        if self.doc or default is None:
            body = head + own
        else:
            versionid = default.xid.rpartition("/")[2]
            body = f'{head},"versionid":"{versionid}"{own}{self._version_body(kind, default, True)}'
            if inline.child(kind.singular) is not None and kind.hasdocument:
                body += self._document(kind, default, named=kind.singular in inline.children)
        meta_inlined = inline.child("meta") is not None
        meta_url = self.link(xid + "/meta") if meta_inlined or not self.doc else f"{self.base}{xid}/meta"
        body += f',"metaurl":"{meta_url}"'
        below = inline.child("versions")
        members = picked.members.get("versions", {}) if picked is not None else None
        if meta_inlined:
            shown_ids = None if below is None else members if members is not None else _EVERY
            body += f',"meta":{self.meta(kind, row, real, shown_ids)}'
        yield self.spend(body)
        if real is not None and not (self.doc and row.xref is not None):
            size = len(members) if members is not None else real.size
            shown = None if below is None else self.versions(kind, row, real, below, members)
            yield from self.collection(xid, "versions", size, shown, picked)
        yield self.spend("}")

    def _plain_resource(self, kind: ResourceType, row: EntityRow, default: EntityRow) -> str:
        """Return what most requests ask for: a resource without anything inlined."""
        xid = row.xid
        address = self.base + xid
        details = "$details" if kind.hasdocument else ""
        return (
            f'{{"{kind.singular}id":"{xid.rpartition("/")[2]}","versionid":"{default.xid.rpartition("/")[2]}"'
            f',"self":"{address}{details}","xid":"{xid}"{self._version_body(kind, default, True)}'
            f',"metaurl":"{address}/meta","versionsurl":"{address}/versions","versionscount":{row.size}}}'
        )

    def meta(
        self, kind: ResourceType, row: EntityRow, real: EntityRow | None, shown: Mapping[str, object] | None = None
    ) -> str:
        """Return a resource's meta; `shown` are the versions that the response holds too."""
        xid = row.xid
        id_ = xid.rpartition("/")[2]
        head = f'{{"{kind.singular}id":"{id_}","self":"{self.link(xid + "/meta")}"{self._short(xid + "/meta")}'
        head += f',"xid":"{xid}/meta"'
        if row.xref is not None:
            head += f',"xref":"{row.xref}"'
        if real is None or (self.doc and row.xref is not None):
            return head + "}"
        default = (real.link or "").rpartition("/")[2]
        found = self.db.one("SELECT xid FROM entities WHERE key = ?", (real.link,))
        if found is not None:
            default = found[0].rpartition("/")[2]
        url = f"{xid}/versions/{default}"
        inside = self.doc and shown is not None and (shown is _EVERY or default in shown)
        address = self.link(url) if inside else self.base + url + ("$details" if kind.hasdocument else "")
        readonly = "" if '"readonly":' in real.doc else ',"readonly":false'
        return (
            f'{head},"epoch":{real.epoch},"createdat":"{real.createdat}","modifiedat":"{real.modifiedat}"{readonly}'
            f'{self._user(None, self._members(real.doc))},"defaultversionid":"{default}"'
            f',"defaultversionurl":"{address}","defaultversionsticky":{"true" if real.sticky else "false"}}}'
        )

    # ---- versions

    def versions(
        self, kind: ResourceType, row: EntityRow, real: EntityRow, inline: InlineSet,
        members: Mapping[str, Picked | None] | None,
    ) -> Iterator[str]:  # fmt: skip
        """Yield the versions of a resource under the resource's own address."""
        found = rows.in_batches(self.db, rows.SELECT_RANGE, rows.range_of(rows.VERSION, real.xid + "/versions"))
        return self.show_versions(kind, row, real, map(_row, found), inline, members)

    def show_versions(
        self, kind: ResourceType, row: EntityRow, real: EntityRow, found: Iterable[EntityRow], inline: InlineSet,
        members: Mapping[str, Picked | None] | None,
    ) -> Iterator[str]:  # fmt: skip
        """Yield these versions as a map."""
        before = "{"
        for version in found:
            id_ = version.xid.rpartition("/")[2]
            if members is None or id_ in members:
                yield f'{before}"{id_}":{self.version(kind, row, real, version, inline)}'
                before = ","
        yield "}" if before == "," else "{}"

    def version(
        self, kind: ResourceType, row: EntityRow, real: EntityRow, version: EntityRow, inline: InlineSet = NOTHING
    ) -> str:
        """Return one version under the address of the resource it is asked for by."""
        versionid = version.xid.rpartition("/")[2]
        xid = f"{row.xid}/versions/{versionid}"
        id_ = row.xid.rpartition("/")[2]
        details = "$details" if kind.hasdocument else ""
        body = (
            f'{{"{kind.singular}id":"{id_}","versionid":"{versionid}","self":"{self.link(xid, details)}"'
            f'{self._short(xid)},"xid":"{xid}"{self._version_body(kind, version, version.key == real.link)}'
        )
        if kind.hasdocument and inline.child(kind.singular) is not None:
            body += self._document(kind, version, named=kind.singular in inline.children)
        return self.spend(body + "}")

    def _version_body(self, kind: ResourceType, version: EntityRow, isdefault: bool) -> str:
        return (
            f',"epoch":{version.epoch},"isdefault":{"true" if isdefault else "false"}'
            f"{self._user(kind, version.doc)}"
            f',"createdat":"{version.createdat}","modifiedat":"{version.modifiedat}"'
            f',"{self.spec.ancestor}":"{version.ancestor}"'
        )

    def _document(self, kind: ResourceType, version: EntityRow, *, named: bool) -> str:
        """Return a version's document; of one that was never given, that it is empty, where it is asked for by name."""
        attrs = orjson.loads(version.doc)
        if document_names(kind)[1] in attrs:
            return ""
        content = rows.load_content(self.db, version.key)
        if content is None:
            return f',"{kind.singular}base64":""' if named and version.form != TAKEN_AWAY else ""
        return "," + render_document(kind, attrs.get("contenttype"), version.form, content, self.binary)

    # ---- what a user wrote

    def _user(self, kind: GroupType | ResourceType | None, doc: str) -> str:
        if doc == "{}":
            return ""
        if self.doc and '"formatvalidated":' in doc:
            kept = {name: value for name, value in orjson.loads(doc).items() if name not in VALIDATED}
            doc = orjson.dumps(kept).decode()
        for name in _respelled(self.spec.name) if kind is not None else ():
            if name in doc and kind is not None:
                doc = orjson.dumps(kind.normaliser.from_canonical(orjson.loads(doc), self.spec)).decode()
                break
        return "," + doc[1:-1]

    def _members(self, doc: str) -> str:
        """Return what a user wrote about a group or a meta, with the version's names of its attributes' members."""
        for name in _membered(self.spec.name):
            if name in doc:
                return orjson.dumps(spelled_members(orjson.loads(doc), self.spec)).decode()
        return doc

    def _short(self, xid: str) -> str:
        return f',"shortself":"{self.base}{PREFIX}{short_name(xid)}"' if self.shortself and not self.doc else ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one answer may cost."""

    page: int = 10_000  # members of a collection in one answer, unless the client asks for fewer
    size: int = 256 << 20  # characters of one answer
    filtering: int = 1_000_000  # steps that a filter may take


@dataclass(slots=True)
class ReadContext:
    """What an answer is made in: a transaction, the setup in force, what is addressed, and how it is to be shown."""

    db: Connection
    setup: Setup
    target: RequestTarget
    flags: Flags
    spec: SpecVersion
    base: str
    limits: Limits
    piecewise: bool = False  # whether the answer may be given piece by piece, to be taken within the transaction

    def view(self) -> View:
        """Return the view that the request's flags ask for."""
        setup, target, flags, spec = self.setup, self.target, self.flags, self.spec
        root = "" if target.kind in ("registry", "export") else target.xid
        return View(
            self.db, setup.model, spec, self.base, setup.registryid, flags.doc, flags.binary, flags.collections,
            bool(flags.filters), setup.capabilities.shortself, root, self.limits.size,
            f"{target.path}?{flags.raw}" if flags.raw else target.path,
            {
                "capabilities": lambda: orjson.dumps(setup.capabilities.to_dict(spec.name)).decode(),
                "model": lambda: setup.full_model(spec),
                "modelsource": lambda: setup.source,
            },
        )  # fmt: skip


_EVERY: Mapping[str, object] = {}


def _without_comma(pieces: Iterator[str]) -> Iterator[str]:
    """Yield the members of an object, of which each begins with a comma, as the whole object."""
    yield "{" + next(pieces, ",")[1:]
    yield from pieces
    yield "}"


@cache
def _respelled(version: str) -> tuple[str, ...]:
    """Return the members, as JSON text has them, that a version of the specification may spell differently."""
    spec = VERSIONS[version]
    names = {*spec.attributes, *(name for renames in spec.options.values() for name in renames)} - {"ancestorid"}
    return tuple(f'"{name}":' for name in sorted(names | ({"uri"} if spec.address != "uri" else set())))


@cache
def _membered(version: str) -> tuple[str, ...]:
    """Return the attributes, as JSON text has them, whose members a version may spell differently."""
    return tuple(f'"{name}":' for name in VERSIONS[version].members)


def _row(found: tuple[object, ...]) -> EntityRow:
    return EntityRow(*found)  # type: ignore[arg-type]


def pair(found: tuple[object, ...]) -> tuple[EntityRow, EntityRow | None]:
    """Return a resource and its default version from one joined row."""
    width = rows.WIDTH
    return _row(found[:width]), (_row(found[width:]) if found[width] is not None else None)


def _inner(doc: str) -> str:
    return "," + doc[1:-1] if doc != "{}" else ""


def _quoted(text: str) -> str:
    return f'"{text}"' if '"' not in text and "\\" not in text else orjson.dumps(text).decode()


# The fast path to one entity: one look-up, one join of strings.
#
# Rule: it answers what needs no flag and no second look-up (a group, a resource, a meta, a version, as metadata) and
# returns None for everything else, errors included; the general path then says what is wrong.


_GENERATION = "(SELECT value FROM settings WHERE name = 'generation')"
_ENTITY = rows.SELECT.replace(" FROM", f", {_GENERATION} FROM", 1)
# only what a plain answer shows: every further column costs
_RESOURCE = (
    "SELECT r.xid, r.epoch, r.size, v.key, v.xid, v.epoch, v.createdat, v.modifiedat, v.ancestor, v.doc,"
    f" {_GENERATION} FROM entities r JOIN entities v ON v.key = r.link WHERE r.key = ?"
)


def point_read(db: Connection, setup: Setup, view: View, path: str) -> tuple[str, str] | None:
    """Return an entity's JSON text and the state that its tag names, or None.

    The time is part of the state: an entity that was deleted and made again has its old epoch.
    """
    details = path.endswith(DETAILS)
    parts = (path[: -len(DETAILS)] if details else path).split("/")
    depth = len(parts)
    if depth < 3:
        return None
    group = setup.model.groups.get(parts[1])
    if group is None:
        return None
    if depth == 3 and not details:
        return _group(db, setup, view, group, path)
    kind = group.resources.get(parts[3]) if depth > 4 else None
    if kind is None:
        return None
    if kind.hasdocument and not details:
        return None
    if depth == 5:
        return _resource(db, setup, view, kind, "/".join(parts) if details else path)
    if depth == 7 and parts[5] == "versions":
        return _version(db, setup, view, kind, "/".join(parts[:5]), parts[6])
    return None


def _group(db: Connection, setup: Setup, view: View, kind: GroupType, path: str) -> tuple[str, str] | None:
    found = db.one(_ENTITY, (rows.group_key(path),))
    if found is None or found[-1] != setup.generation or found[1] != path:
        return None
    row = EntityRow(*found[:-1])
    return view.group(kind, row), f"e{row.epoch}-{row.modifiedat}"


def _found(db: Connection, setup: Setup, xid: str) -> tuple[EntityRow, EntityRow] | None:
    """Return a resource and its default version, unless it shows another one or the setup is outdated."""
    found = db.one(_RESOURCE, (rows.resource_key(xid),))
    if found is None:
        return None
    name, epoch, size, key, version, version_epoch, created, modified, ancestor, doc, generation = found
    if generation != setup.generation or name != xid:
        return None
    row = EntityRow("", xid, "", epoch, "", "", None, key, None, size)
    return row, EntityRow(key, version, "", version_epoch, created, modified, ancestor, doc=doc)


def _resource(db: Connection, setup: Setup, view: View, kind: ResourceType, xid: str) -> tuple[str, str] | None:
    found = _found(db, setup, xid)
    if found is None:
        return None
    row, default = found
    return view.resource(kind, row, default), f"e{row.epoch}.{default.epoch}-{default.modifiedat}"


def _version(
    db: Connection, setup: Setup, view: View, kind: ResourceType, xid: str, versionid: str
) -> tuple[str, str] | None:
    found = _found(db, setup, xid)
    if found is None:
        return None
    row, version = found
    if version.xid.rpartition("/")[2] != versionid:
        other = rows.load(db, rows.version_key(xid, versionid))
        if other is None or other.xid.rpartition("/")[2] != versionid:
            return None
        version = other
    return view.version(kind, row, row, version), f"e{row.epoch}.{version.epoch}-{version.modifiedat}"
