"""The entities of catalog documents, by xid, in canonical spelling: groups, definitions, schemas, endpoints.

Rule 1: several documents are one catalog; of two entities with one xid the later document's counts.
Rule 2: what the registry says about an entity (epochs, times, counts, its own URLs) is left out, and what it would say
where an author did not is taken as said: a lone version is version 1, and only `meta` holds a cross reference. So a
document means the same read from a file and read back from a server.
Rule 3: nothing here is refused: what has a wrong shape is passed over, what cannot be spelled canonically is a problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from signalbook.document.message_checks import MAX_CHAIN
from signalbook.document.spelling import to_canonical
from signalbook.errors import Problem, RegistryError
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA
from signalbook.wire.fields import pointer

__all__ = ["Entities", "Entity"]

Attributes = Mapping[str, Any]

# core/spec.md, `versionid`: the id that a server gives to the first version where nobody names one.
_FIRST_VERSION = "1"
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
    """Everything that catalog documents hold, by xid; `addresses` leads from an entity's own URL to its xid."""

    groups: dict[str, Entity] = field(default_factory=dict)
    messages: dict[str, Entity] = field(default_factory=dict)
    schemas: dict[str, Entity] = field(default_factory=dict)
    endpoints: dict[str, Entity] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, *documents: Attributes) -> Entities:
        """The entities of the documents."""
        found = cls()
        for document in documents:
            for kind in _KINDS:
                for groupid, group in _members(document, kind.plural):
                    found._add_group(kind, f"/{kind.plural}/{groupid}", group)
        return found

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
        attributes, problems = _canonical(kind.domain, group, xid, own)
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
            self.addresses[address.removesuffix("$details")] = xid


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


def _canonical(domain: str, given: Attributes, xid: str, own: set[str]) -> tuple[Attributes, tuple[Problem, ...]]:
    problems: tuple[Problem, ...] = ()
    try:
        given = to_canonical(domain, given, xid)
    except RegistryError as error:
        name = error.args_.get("name", "")
        problems = (Problem(pointer("", name), "malformed", f"{name} {error.args_.get('error_detail', '')}"),)
    return {name: value for name, value in given.items() if name not in _SYSTEM and name not in own}, problems


def _default_version(versions: Mapping[str, Attributes], *said: Any) -> str:
    """The id of the version that a resource shows: the one that is said, else the newest by its id."""
    for versionid in said:
        if isinstance(versionid, str) and versionid in versions:
            return versionid
    return max(versions, key=lambda versionid: (len(versionid) if versionid.isdigit() else 0, versionid))
