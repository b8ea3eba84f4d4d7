"""`Definition`: one message definition as it stands once its bases are merged into it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from signalbook.dialects.forms import with_held
from signalbook.errors import Problem, RegistryError
from signalbook.messages.layered import GONE, Layered
from signalbook.model.message_rules import MAX_CHAIN, SELECTORS, chosen, derived, merge
from signalbook.model.normalise import to_canonical
from signalbook.protocols.message import stated_protocol
from signalbook.protocols.protocol import pointer
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA

__all__ = [
    "ENTITIES", "Absolute", "Definition", "Entities", "Entity", "addresses_of", "consulted", "materialise",
    "schema_address",
]  # fmt: skip

# The entities of catalog documents, by xid, in canonical spelling: groups, definitions, schemas, endpoints.
#
# Rule 1: several documents are one catalog; of two entities with one xid the later document's counts.
# Rule 2: what the registry says about an entity (epochs, times, counts, its own URLs) is left out, and what it would
# say where an author did not is taken as said: a lone version is version 1, and only `meta` holds a cross reference.
# So a document means the same read from a file and read back from a server.
# Rule 3: the catalog's own addresses (`roots`, and the URLs that its documents state as `self`) lead to its xids,
# with or without `$details`; what else has a scheme lies elsewhere.
# Rule 4: nothing is rejected: what has a wrong shape is skipped, what has no canonical spelling is a problem.


Attributes = Mapping[str, Any]

# core/spec.md, `versionid`: the id that a server gives to the first version where nobody names one.
_FIRST_VERSION = "1"
_USUAL_PORTS = {"http": ":80", "https": ":443"}
# The names by which a machine reaches itself, and those of a server that listens to all its networks.
_THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")
_LISTENS_HERE = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"})
_COLLECTIONS = ("schemagroups/", "messagegroups/", "endpoints/")
# RFC 3986, section 3.1.
_scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:").match
# core/spec.md: what a server manages, of any entity.
_SYSTEM = frozenset(
    {
        *("self", "shortself", "xid", "epoch", "createdat", "modifiedat"),
        *("versionid", "isdefault", "ancestor", "ancestorid", "meta", "metaurl"),
        *("versions", "versionsurl", "versionscount", "defaultversionid", "defaultversionurl", "defaultversionsticky"),
        *("contenttype", "formatvalidated", "formatvalidatedreason"),
        *("compatibilityvalidated", "compatibilityvalidatedreason"),
    }
)


@dataclass(frozen=True, slots=True)
class _GroupKind:
    """A collection of groups: the names of its own id, of its resources, and the domains of both."""

    plural: str
    singular: str
    domain: str
    resources: str
    resource: str
    resource_domain: str

    @property
    def groups(self) -> str:
        """Where groups of the kind are held."""
        return "endpoints" if self.domain == ENDPOINT else "groups"

    @property
    def members(self) -> str:
        """Where their resources are held."""
        return "schemas" if self.resource_domain == SCHEMA else "messages"


ENTITIES = ("groups", "messages", "schemas", "endpoints")
_GROUP_KINDS = (
    _GroupKind("schemagroups", "schemagroup", SCHEMA, "schemas", "schema", SCHEMA),
    _GroupKind("messagegroups", "messagegroup", MESSAGE, "messages", "message", MESSAGE),
    _GroupKind("endpoints", "endpoint", ENDPOINT, "messages", "message", MESSAGE),
)


@dataclass(frozen=True, slots=True)
class Entity:
    """A group, or the default version of a resource: what its author said of it.

    `versions` are the attributes of each version of a resource by its id; `xref` is the resource it stands for.
    """

    xid: str
    attributes: Attributes
    versions: Mapping[str, Attributes] = field(default_factory=dict)
    xref: str | None = None
    problems: tuple[Problem, ...] = ()

    def content(self) -> dict[str, Any]:
        """What a digest of the catalog is made of."""
        if self.xref is not None:
            return {"xref": self.xref}
        return {**self.attributes, **({"versions": dict(self.versions)} if len(self.versions) > 1 else {})}


@dataclass(frozen=True, slots=True)
class Entities:
    """Everything that catalog documents hold, by xid; `addresses` leads from an entity's own URL to its xid.

    `roots` are the addresses by which the catalog is reached, each without a slash at its end.
    """

    groups: Mapping[str, Entity] = field(default_factory=dict)
    messages: Mapping[str, Entity] = field(default_factory=dict)
    schemas: Mapping[str, Entity] = field(default_factory=dict)
    endpoints: Mapping[str, Entity] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    roots: Mapping[str, None] = field(default_factory=dict)

    @classmethod
    def of(cls, *documents: Attributes, roots: Iterable[str] = ()) -> Entities:
        """The entities of the documents, and the addresses that they are reached by."""
        reading = _EntityReading(dict.fromkeys(map(_root, roots)))
        for document in documents:
            stated = document.get("self")
            if isinstance(stated, str) and _scheme(stated):
                reading.roots.setdefault(_root(stated))
            for kind in _GROUP_KINDS:
                for groupid, group in _members(document, kind.plural):
                    reading.add_group(kind, f"/{kind.plural}/{groupid}", group)
        return reading.made()

    @classmethod
    def of_entries(cls, entries: Iterable[tuple[str, Attributes]]) -> Entities:
        """The entities that are given one by one with their xids: a group without its resources, and resources."""
        return _EntityReading({}, entries).made()

    def changed(self, changes: Mapping[str, Attributes | None]) -> tuple[Entities, frozenset[str]] | None:
        """The entities where some are not as they were, and the xids of those that differ.

        `changes` has by its xid what each group, without its resources, and each resource is by now; None where it is
        gone, and with a group what it held. None is given where a change moves the addresses of the catalog.
        """
        reading = _EntityReading(dict(self.roots))
        gone: dict[str, dict[str, Entity]] = {name: {} for name in ENTITIES}
        for xid, document in changes.items():
            kind, is_group = _kind_of(xid)
            if kind is None:
                continue
            collection = kind.groups if is_group else kind.members
            if document is not None:
                reading.add(xid, document)
                continue
            gone[collection][xid] = GONE
            held = getattr(self, kind.members) if is_group and xid in getattr(self, collection) else ()
            within = f"{xid}/{kind.resources}/"
            gone[kind.members] |= {one: GONE for one in held if one.startswith(within)}
        if self.addresses.keys() & self._named(gone) or reading.addresses or reading.roots != self.roots:
            return None
        collections: dict[str, Layered[str, Entity]] = {}
        differing: set[str] = set()
        for name in ENTITIES:
            before: Layered[str, Entity] = getattr(self, name)
            come = {xid: one for xid, one in reading.found[name].items() if before.get(xid) != one}
            left = {xid: one for xid, one in gone[name].items() if xid in before and xid not in reading.found[name]}
            differing |= come.keys() | left.keys()
            collections[name] = before.changed({**left, **come})
        return replace(self, **collections), frozenset(differing)  # type: ignore[arg-type]

    def _named(self, gone: Mapping[str, Mapping[str, Entity]]) -> set[str]:
        """The addresses that lead to what is gone."""
        if not self.addresses:
            return set()
        left = {xid for collection in gone.values() for xid in collection}
        return {address for address, xid in self.addresses.items() if xid.partition("/versions/")[0] in left}

    def differing(self, other: Entities) -> frozenset[str] | None:
        """The xids of what is not the same in both; None where their addresses are not."""
        if self.roots != other.roots or self.addresses != other.addresses:
            return None
        found: set[str] = set()
        for name in ENTITIES:
            one: Mapping[str, Entity] = getattr(self, name)
            two: Mapping[str, Entity] = getattr(other, name)
            found.update(xid for xid, entity in one.items() if two.get(xid) != entity)
            found.update(xid for xid in two if xid not in one)
        return frozenset(found)

    def at(self, roots: Iterable[str]) -> Entities:
        """The same entities, reached by other addresses."""
        return replace(self, roots=dict.fromkeys(map(_root, roots)))

    def located(self, reference: str) -> str:
        """The xid that a reference without fragment means; itself where it means nothing in the catalog.

        A query says how an entity is shown, and not which it is.
        """
        plain = reference.removeprefix("#") if reference.startswith("#/") else reference
        if "?" in plain and plain not in self.addresses:
            own = self.located(plain.partition("?")[0])
            return own if own.startswith("/") else reference
        plain = plain.removesuffix("$details")
        known = self.addresses.get(plain)
        if known is not None or plain.startswith("/"):
            return known or plain
        if not _scheme(plain):
            return f"/{plain}" if plain.startswith(_COLLECTIONS) else plain
        address = _root(plain)
        for root in self.roots:
            if address.startswith(f"{root}/"):
                return unquote(address[len(root) :])
        return plain

    def is_elsewhere(self, reference: str) -> bool:
        """Whether a reference leads out of the catalog; one that begins with a host does."""
        if reference.startswith("//"):
            return True
        return bool(_scheme(reference)) and not self.located(reference.partition("#")[0]).startswith("/")

    def address(self, reference: str) -> str | None:
        """The absolute form of a reference; None where it is relative and the catalog has no address."""
        if _scheme(reference):
            return reference
        root = next(iter(self.roots), None)
        if root is None:
            return None
        path = reference.removeprefix("#") if reference.startswith("#/") else reference
        is_xid = path.startswith("/") and not path.startswith("//")
        return root + path if is_xid else urljoin(f"{root}/", path)

    def version(self, collection: Mapping[str, Entity], xid: str) -> tuple[str, Attributes] | None:
        """The xid of the resource that an xid of it or of its version names, and that version's attributes.

        A cross reference has the versions of what it stands for, so the resource is that one.
        """
        entity = collection.get(xid)
        if entity is not None:
            return xid, entity.attributes
        resource, mark, versionid = xid.partition("/versions/")
        entity = _shown(collection, resource) if mark else None
        if entity is None or versionid not in entity.versions:
            return None
        return entity.xid, entity.versions[versionid]


class _EntityReading:
    """The entities of documents that are being read, by xid."""

    def __init__(self, roots: dict[str, None], entries: Iterable[tuple[str, Attributes]] = ()) -> None:
        self.found: dict[str, dict[str, Entity]] = {name: {} for name in ENTITIES}
        self.addresses: dict[str, str] = {}
        self.roots = roots
        for xid, document in entries:
            self.add(xid, document)

    def made(self) -> Entities:
        """What was read."""
        groups, messages, schemas, endpoints = (Layered(self.found[name]) for name in ENTITIES)
        return Entities(groups, messages, schemas, endpoints, self.addresses, self.roots)

    def add(self, xid: str, document: Attributes) -> None:
        """Add a group without its resources, or a resource; nothing where it is neither."""
        kind, is_group = _kind_of(xid)
        if kind is not None and is_group:
            self.add_group(kind, xid, {**document, kind.resources: None})
        elif kind is not None:
            self.found[kind.members][xid] = self.resource(kind, xid, document)

    def add_group(self, kind: _GroupKind, xid: str, group: Attributes) -> None:
        """Add a group and its resources."""
        own = {f"{kind.resources}{suffix}" for suffix in ("", "url", "count")} | {f"{kind.singular}id"}
        attributes, problems = _canonical(kind.domain, group, xid, own, group=True)
        self.found[kind.groups][xid] = Entity(xid, attributes, problems=problems)
        collection = self.found[kind.members]
        for resourceid, resource in _members(group, kind.resources):
            place = f"{xid}/{kind.resources}/{resourceid}"
            collection[place] = self.resource(kind, place, resource)

    def resource(self, kind: _GroupKind, xid: str, resource: Attributes) -> Entity:
        """The entity that a resource is."""
        meta = found if isinstance(found := resource.get("meta"), Mapping) else {}
        xref = meta.get("xref")
        self._address(resource, xid)
        if isinstance(xref, str) and xref:
            return Entity(xid, {}, xref=xref.removeprefix("#"))
        own = {f"{kind.resource}id"}
        versions: dict[str, Attributes] = {}
        problems: tuple[Problem, ...] = ()
        for versionid, version in _members(resource, "versions"):
            versions[versionid], found = _canonical(kind.resource_domain, version, xid, own)
            problems += found
            self._address(version, f"{xid}/versions/{versionid}")
        if versions:
            default = _default_version(versions, meta.get("defaultversionid"), resource.get("versionid"))
            return Entity(xid, versions[default], versions, problems=problems)
        attributes, problems = _canonical(kind.resource_domain, resource, xid, own)
        versionid = stated if isinstance(stated := resource.get("versionid"), str) and stated else _FIRST_VERSION
        return Entity(xid, attributes, {versionid: attributes}, problems=problems)

    def _address(self, attributes: Attributes, xid: str) -> None:
        address = attributes.get("self")
        # What stands below the document itself is found by its xid.
        if isinstance(address, str) and not address.startswith("#/"):
            plain = address.removesuffix("$details")
            self.addresses[plain] = xid
            if _scheme(plain) and plain.endswith(xid):
                self.roots.setdefault(_root(plain.removesuffix(xid)))


def _kind_of(xid: str) -> tuple[_GroupKind | None, bool]:
    """The collection that an xid stands in, and whether it is a group's."""
    _, plural, *rest = xid.split("/")
    kind = next((one for one in _GROUP_KINDS if one.plural == plural), None)
    if kind is None or not (len(rest) == 1 or (len(rest) == 3 and rest[1] == kind.resources)):
        return None, False
    return kind, len(rest) == 1


Absolute = Callable[[str], str | None]
"""The absolute form of a reference, where the catalog has an address."""


def schema_address(document: Attributes, absolute: Absolute) -> str | None:
    """The absolute address of the schema that a definition names by its URI, or by its xid (seed 000, L451)."""
    named = (document.get(name) for name in ("dataschemauri", "dataschemaxid"))
    found = (absolute(reference) for reference in named if isinstance(reference, str) and reference)
    return next((address for address in found if address is not None), None)


@lru_cache(256)
def addresses_of(base: str) -> tuple[str, ...]:
    """An address, and the others of the same server: what is reached at this machine has several names.

    >>> addresses_of("http://127.0.0.1:8080")
    ('http://127.0.0.1:8080', 'http://localhost:8080', 'http://[::1]:8080')
    """
    try:
        parts = urlsplit(base)
        host, port = parts.hostname, "" if parts.port is None else f":{parts.port}"
    except ValueError:  # what a client sent need not be an address
        return (base,)
    if host not in _LISTENS_HERE:
        return (base,)
    return tuple(dict.fromkeys((base, *(urlunsplit(parts._replace(netloc=f"{one}{port}")) for one in _THIS_MACHINE))))


def _root(address: str) -> str:
    """An address without a slash at its end, with the scheme and host as all spell them: in lower case, no usual port.

    >>> _root("HTTP://Example.com:80/Registry/")
    'http://example.com/Registry'
    """
    scheme, mark, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    host = host.lower().removesuffix(_USUAL_PORTS.get(scheme.lower(), "//"))
    return f"{scheme.lower()}{mark}{host}{slash}{path}".rstrip("/")


def _shown(collection: Mapping[str, Entity], xid: str) -> Entity | None:
    """The entity at an xid, or the one that its cross references lead to."""
    for _ in range(MAX_CHAIN):
        entity = collection.get(xid)
        if entity is None or entity.xref is None:
            return entity
        xid = entity.xref
    return None


def _members(attributes: Attributes, name: str) -> Iterator[tuple[str, Attributes]]:
    collection = attributes.get(name)
    if isinstance(collection, Mapping):
        yield from ((key, member) for key, member in collection.items() if isinstance(member, Mapping))


def _canonical(
    domain: str, given: Attributes, xid: str, own: set[str], *, group: bool = False
) -> tuple[Attributes, tuple[Problem, ...]]:
    problems: tuple[Problem, ...] = ()
    try:
        given = to_canonical(domain, given, xid, group=group)
        if domain == MESSAGE and not group:
            given = with_held(given)
    except RegistryError as error:
        name = error.args_.get("name", "")
        problems = (Problem(pointer("", name), "malformed", f"{name} {error.args_.get('error_detail', '')}"),)
    if domain == MESSAGE and not group:
        problems += tuple(_misshapen(given))
    return {name: value for name, value in given.items() if name not in _SYSTEM and name not in own}, problems


def _misshapen(message: Attributes) -> Iterator[Problem]:
    """The attributes that have to be objects, whatever the envelope and protocol are, and are not."""
    for _, metadata in SELECTORS:
        for name in sorted(metadata):
            if not isinstance(message.get(name), Mapping | None):
                yield Problem(f"/{name}", "malformed", f"{name} must be an object")


def _default_version(versions: Mapping[str, Attributes], *said: Any) -> str:
    """The id of the version that a resource shows: the one that is said, else the newest by its id."""
    for versionid in said:
        if isinstance(versionid, str) and versionid in versions:
            return versionid
    return max(versions, key=lambda versionid: (len(versionid) if versionid.isdigit() else 0, versionid))


@dataclass(frozen=True, slots=True)
class Definition:
    """A message definition, materialised.

    `bases` are the definitions it derives from, the nearest first, each with the document it adds; `target` is the
    definition that this one is an alias of; `implied` is what groups give it, each with the group's xid. `notes` are
    bases that could not be followed; with `problems` the definition cannot be used and never matches.
    """

    xid: str
    document: Mapping[str, Any]
    own: Mapping[str, Any] = field(repr=False)
    bases: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=(), repr=False)
    target: str | None = None
    notes: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()
    implied: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=(), repr=False)

    @property
    def group(self) -> str:
        """The xid of its group: a message group or an endpoint."""
        return self.xid.rsplit("/", 2)[0]

    @property
    def identity(self) -> str:
        """Its xid, or that of the definition it is an alias of."""
        return self.target or self.xid

    @property
    def derives_from(self) -> tuple[str, ...]:
        """The xids of the definitions it derives from, the nearest first."""
        return tuple(xid for xid, _ in self.bases)

    @property
    def protocol(self) -> str | None:
        """The protocol it is bound to, as definitions spell it."""
        return stated_protocol(self.document.get("protocol"))

    @property
    def envelope(self) -> str | None:
        """The envelope it has."""
        envelope = self.document.get("envelope")
        return envelope if isinstance(envelope, str) and envelope else None

    def origins(self) -> dict[str, str]:
        """The xid of the definition, or of the group, that each value comes from, by JSON Pointer."""
        layers = ((self.identity, self.own), *self.bases, *self.implied)
        return {path: _origin(steps, layers) for path, steps in _leaves(self.document, "", ())}


def _leaves(value: Any, path: str, steps: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """Every value that is not a map or an empty one; a payload schema is one value."""
    if not isinstance(value, Mapping) or not value or steps == ("dataschema",):
        return [(path, steps)]
    return [leaf for name, member in value.items() for leaf in _leaves(member, pointer(path, name), (*steps, name))]


def _origin(steps: tuple[str, ...], layers: tuple[tuple[str, Mapping[str, Any]], ...]) -> str:
    for xid, layer in layers:
        value: Any = layer
        for step in steps:
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is not None:
            return xid
    return layers[0][0]


# Materialising a definition: its `xref` followed, then its `basemessage` chain, then everything merged upward.
#
# Rule 1: what is merged with what, and what a group adds, is said in `model.message_rules`.
# Rule 2: a chain that comes back to itself, or that is too long, makes the definition unusable; a base that is
# missing or lies in another registry is a note (message/spec.md, `basemessage`). The problem of an unusable definition
# is part of answers, so its code is one of theirs.
# Rule 3: materialising what is materialised changes nothing.
# Rule 4: a definition that names no envelope or no protocol, and has none from its bases, has its group's: that of the
# group it stands in, then those of what it is an alias of or derives from, the nearest first (message/spec.md: all
# messages inside a group use the same envelope and the same protocol).


# Of the codes that answers have: it is the definition that cannot be read.
_UNUSABLE = "malformed"
_TOO_LONG = f"leads through more than {MAX_CHAIN} definitions"


def materialise(
    entities: Entities, bases: Mapping[str, Attributes] | None = None, only: Iterable[str] | None = None
) -> dict[str, Definition]:
    """Each definition of a catalog, or `only` some, by its xid; `bases` are those of other registries by their URI."""
    external = {uri: to_canonical(MESSAGE, attributes, uri) for uri, attributes in (bases or {}).items()}
    return _Chains(entities, external).definitions(entities.messages if only is None else only)


def consulted(entities: Entities, bases: Mapping[str, Attributes], xid: str) -> set[str]:
    """The other definitions and groups that a definition is made of, also those that are not there.

    It may become another with each of these, with itself and with its group, and with nothing else.
    """
    entity = entities.messages.get(xid)
    if entity is None or (entity.xref is None and "basemessage" not in entity.attributes):
        return set()
    chains, found, seen = _Chains(entities, bases), set[str](), set[str]()
    place: str | None = xid
    for step in range(MAX_CHAIN + 2):
        if place is None or place in seen:
            break
        seen.add(place)
        if step or entity.xref is None:
            reference = chains.attributes(place).get("basemessage")
            if not isinstance(reference, str) or not reference:
                break
            place = reference if reference in bases else entities.located(reference)
        place = _followed(entities, place, found)
    return found


def _followed(entities: Entities, place: str, found: set[str]) -> str | None:
    """The place that cross references lead to from one; each on the way, and its group, is added."""
    for _ in range(MAX_CHAIN + 2):
        message = _message_of(place)
        found |= {message, message.rsplit("/", 2)[0]}
        entity = entities.messages.get(message)
        if entity is None or entity.xref is None:
            return place
        place = entity.xref + place.removeprefix(message)
    return None


class _Chains:
    """The definitions of one catalog, each materialised once, bases before what derives from them."""

    def __init__(self, entities: Entities, external: Mapping[str, Attributes]) -> None:
        self._entities = entities
        self._external = external
        self._done: dict[str, Definition] = {}

    def definitions(self, xids: Iterable[str]) -> dict[str, Definition]:
        found = {}
        for xid in xids:
            entity = self._entities.messages.get(xid)
            if entity is None:
                continue
            found[xid] = self._in_group(self._aliased(entity) if entity.xref is not None else self._materialised(xid))
        return found

    def _in_group(self, definition: Definition) -> Definition:
        """The definition with the envelope and the protocol that its group gives it."""
        document = definition.document
        absent = [one for one in SELECTORS if one[0] not in document]
        if not absent or definition.problems:
            return definition
        implied: list[tuple[str, Attributes]] = []
        is_spelled = True
        for selector, metadata in absent:
            found = self._implied(definition, selector)
            if found is not None:
                implied.append((found[0], {selector: found[1]}))
                is_spelled = is_spelled and metadata.isdisjoint(document)
        if not implied:
            return definition
        document = {**document, **{name: value for _, stated in implied for name, value in stated.items()}}
        try:
            document = document if is_spelled else to_canonical(MESSAGE, document, definition.xid)
        except RegistryError as error:
            return replace(definition, document={}, problems=(Problem("/protocoloptions", _UNUSABLE, str(error)),))
        return replace(definition, document=document, implied=tuple(implied))

    def _implied(self, definition: Definition, selector: str) -> tuple[str, str] | None:
        """The group from which a definition has its envelope or its protocol, and which one that is."""
        for place in dict.fromkeys((definition.xid, definition.identity, *definition.derives_from)):
            stated = self._group(place).get(selector)
            if isinstance(stated, str) and stated:
                # A group may say that it has none.
                return None if stated_protocol(stated) is None else (place.rsplit("/", 2)[0], stated)
        return None

    def _aliased(self, alias: Entity) -> Definition:
        """The definition that an alias shows."""
        seen = [alias.xid]
        entity: Entity | None = alias
        while entity is not None and entity.xref is not None:
            if entity.xref in seen:
                words = f"leads back to itself: {_shown_chain([*seen, entity.xref])}"
                return Definition(alias.xid, {}, {}, problems=(Problem("/meta/xref", _UNUSABLE, words),))
            seen.append(entity.xref)
            entity = self._entities.messages.get(entity.xref) if len(seen) <= MAX_CHAIN else None
        if entity is None:
            words = f"{seen[-1]} is not in the catalog"
            return Definition(alias.xid, {}, {}, problems=(Problem("/meta/xref", _UNUSABLE, words),))
        shown = self._materialised(entity.xid)
        return Definition(alias.xid, shown.document, shown.own, shown.bases, shown.xid, shown.notes, shown.problems)

    def _materialised(self, place: str) -> Definition:
        """The definition at a place, which is not an alias; each on the way to the end of its chain is made with it."""
        path: dict[str, None] = {}
        at: str | None = place
        note: Problem | None = None
        while at is not None and at not in self._done:
            if at in path:
                places = list(path)
                begin = places.index(at)
                self._mark_unusable(places[begin:])
                path = dict.fromkeys(places[:begin])
                break
            path[at] = None
            at, note = self._base(at)
        below = None if at is None else self._done[at]
        for at in reversed(path):
            below = self._done[at] = self._derived(at, below, () if note is None else (note,))
            note = None
        return self._done[place]

    def _mark_unusable(self, circle: list[str]) -> None:
        """Say of definitions that lead to each other, the last to the first, that none of them has an end."""
        for number, place in enumerate(circle):
            words = _TOO_LONG
            if len(circle) <= MAX_CHAIN:
                words = f"leads back to itself: {_shown_chain([*circle[number:], *circle[:number], place])}"
            problem = Problem("/basemessage", _UNUSABLE, words)
            self._done[place] = Definition(place, {}, self.attributes(place), problems=(problem,))

    def _derived(self, place: str, base: Definition | None, notes: tuple[Problem, ...]) -> Definition:
        own, problems = self.attributes(place), self._problems(place)
        if base is None:
            try:
                document = chosen(merge({}, own), self._group(place), place)
            except RegistryError as error:
                return Definition(place, {}, own, problems=(Problem("/protocoloptions", _UNUSABLE, str(error)),))
            return Definition(place, document, own, notes=notes, problems=problems)
        bases = ((_message_of(base.xid), base.own), *base.bases)
        if len(bases) >= MAX_CHAIN:
            problem = Problem("/basemessage", _UNUSABLE, _TOO_LONG)
            return Definition(place, {}, own, bases[:MAX_CHAIN], problems=(problem,))
        try:
            own, document = derived(base.document, own, self._group(place), place)
        except RegistryError as error:
            return Definition(place, {}, own, bases, problems=(Problem("/protocoloptions", _UNUSABLE, str(error)),))
        return Definition(place, document, own, bases, None, (*base.notes, *notes), (*base.problems, *problems))

    def _group(self, place: str) -> Attributes:
        xid = _message_of(place).rsplit("/", 2)[0]
        group = self._entities.groups.get(xid) or self._entities.endpoints.get(xid)
        return {} if group is None else group.attributes

    def _base(self, place: str) -> tuple[str | None, Problem | None]:
        """The place of a definition's base, or why it cannot be found."""
        reference = self.attributes(place).get("basemessage")
        if not isinstance(reference, str) or not reference:
            return None, None
        if reference in self._external:
            return reference, None
        found = self._entities.located(reference)
        resolved = self._target(found)
        if resolved is not None:
            return resolved, None
        if found.startswith("/"):
            return None, Problem("/basemessage", "dangling", f"{found} is not in the catalog")
        return None, Problem("/basemessage", "external", f"{found} lies outside the catalog and is not followed")

    def _target(self, reference: str) -> str | None:
        """The place that an xid means once aliases are followed."""
        for _ in range(MAX_CHAIN):
            entity = self._entities.messages.get(reference)
            if entity is None:
                found = self._entities.version(self._entities.messages, reference)
                return None if found is None else f"{found[0]}/versions/{reference.rpartition('/')[2]}"
            if entity.xref is None:
                return reference
            reference = entity.xref
        return None

    def attributes(self, place: str) -> Attributes:
        """What is said at a place itself."""
        if place in self._external:
            return self._external[place]
        found = self._entities.version(self._entities.messages, place)
        return {} if found is None else found[1]

    def _problems(self, place: str) -> tuple[Problem, ...]:
        entity = self._entities.messages.get(_message_of(place))
        return () if entity is None else entity.problems


def _message_of(place: str) -> str:
    """The xid of the message that a place is, or is a version of."""
    return place.partition("/versions/")[0] if place.startswith("/") else place


def _shown_chain(places: list[str]) -> str:
    """A chain in words, its middle left out where it is long."""
    return " -> ".join(places if len(places) <= 10 else [*places[:5], "...", *places[-4:]])
