"""The entities of catalog documents, by xid, in canonical spelling: groups, definitions, schemas, endpoints.

Rule 1: several documents are one catalog; of two entities with one xid the later document's counts.
Rule 2: what the registry says about an entity (epochs, times, counts, its own URLs) is left out, and what it would say
where an author did not is taken as said: a lone version is version 1, and only `meta` holds a cross reference. So a
document means the same read from a file and read back from a server.
Rule 3: the catalog's own addresses (`roots`, and the URLs that its documents state as `self`) lead to its xids, with or
without `$details`; what else has a scheme lies elsewhere.
Rule 4: nothing here is refused: what has a wrong shape is passed over, what cannot be spelled canonically is a problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from signalbook.document.dialects.held import with_held
from signalbook.document.inherited import MAX_CHAIN, SELECTORS
from signalbook.document.spelling import to_canonical
from signalbook.errors import Problem, RegistryError
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA
from signalbook.wire.fields import pointer

__all__ = ["Entities", "Entity", "addresses_of"]

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
class _Kind:
    """A collection of groups: the names of its own id, of its resources, and the domains of both."""

    plural: str
    singular: str
    domain: str
    resources: str
    resource: str
    resource_domain: str


_KINDS = (
    _Kind("schemagroups", "schemagroup", SCHEMA, "schemas", "schema", SCHEMA),
    _Kind("messagegroups", "messagegroup", MESSAGE, "messages", "message", MESSAGE),
    _Kind("endpoints", "endpoint", ENDPOINT, "messages", "message", MESSAGE),
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

    @property
    def group(self) -> str:
        """The xid of the group that a resource is in."""
        return self.xid.rsplit("/", 2)[0]

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

    groups: dict[str, Entity] = field(default_factory=dict)
    messages: dict[str, Entity] = field(default_factory=dict)
    schemas: dict[str, Entity] = field(default_factory=dict)
    endpoints: dict[str, Entity] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    roots: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(cls, *documents: Attributes, roots: Iterable[str] = ()) -> Entities:
        """The entities of the documents, and the addresses that they are reached by."""
        found = cls(roots=dict.fromkeys(map(_root, roots)))
        for document in documents:
            stated = document.get("self")
            if isinstance(stated, str) and _scheme(stated):
                found.roots.setdefault(_root(stated))
            for kind in _KINDS:
                for groupid, group in _members(document, kind.plural):
                    found._add_group(kind, f"/{kind.plural}/{groupid}", group)
        return found

    def at(self, roots: Iterable[str]) -> Entities:
        """The same entities, reached by other addresses."""
        return replace(self, roots=dict.fromkeys(map(_root, roots)))

    def located(self, reference: str) -> str:
        """The xid that a reference without fragment means; itself where it means nothing in the catalog."""
        plain = reference.removeprefix("#") if reference.startswith("#/") else reference
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

    def _add_group(self, kind: _Kind, xid: str, group: Attributes) -> None:
        own = {f"{kind.resources}{suffix}" for suffix in ("", "url", "count")} | {f"{kind.singular}id"}
        attributes, problems = _canonical(kind.domain, group, xid, own, group=True)
        entity = Entity(xid, attributes, problems=problems)
        (self.endpoints if kind.domain == ENDPOINT else self.groups)[xid] = entity
        collection = self.schemas if kind.resource_domain == SCHEMA else self.messages
        for resourceid, resource in _members(group, kind.resources):
            place = f"{xid}/{kind.resources}/{resourceid}"
            collection[place] = self._resource(kind, place, resource)

    def _resource(self, kind: _Kind, xid: str, resource: Attributes) -> Entity:
        meta = resource.get("meta")
        meta = meta if isinstance(meta, Mapping) else {}
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
        stated = resource.get("versionid")
        versionid = stated if isinstance(stated, str) and stated else _FIRST_VERSION
        return Entity(xid, attributes, {versionid: attributes}, problems=problems)

    def _address(self, attributes: Attributes, xid: str) -> None:
        address = attributes.get("self")
        if isinstance(address, str):
            plain = address.removesuffix("$details")
            self.addresses[plain] = xid
            if _scheme(plain) and plain.endswith(xid):
                self.roots.setdefault(_root(plain.removesuffix(xid)))


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
    """What of a message is an object, whatever its envelope and its protocol are, and is none here."""
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
