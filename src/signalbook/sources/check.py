"""What is wrong with catalog documents, found without a registry: `signalbook lint`.

Rule 1: an error is what a registry would refuse, by the same model levels and named rules that a write goes through,
and by a registry itself where documents have a format; a warning is what it would take though it is likely a mistake.
Rule 2: every finding is yielded; nothing stops at the first.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from signalbook.document import rules
from signalbook.document.entity import Level
from signalbook.document.model import GroupType, Model, ResourceType
from signalbook.document.model_read import read_model
from signalbook.document.rule import Severity
from signalbook.errors import Problem, RegistryError, UsageError
from signalbook.registry.incoming import (
    GROUP_SYSTEM,
    META_SYSTEM,
    RESOURCE_MEMBERS,
    VERSION_SYSTEM,
    document_names,
    is_id,
)
from signalbook.registry.spellings import canonical as in_spelling
from signalbook.sources.documents import Document
from signalbook.sources.documents import read_model as read_model_file
from signalbook.sources.parts import DEFINING, DESCRIPTIVE, READ_ONLY
from signalbook.sources.trial import refused_documents
from signalbook.spec.builtin import builtin_modelsource
from signalbook.spec.error_types import ERROR_TYPES, title

__all__ = ["Finding", "check", "refusal"]

# Attributes that refer to another entity, in a catalog's own terms: an xid, or a URI that is one.
REFERENCES = ("basemessage", "dataschemauri", "dataschemaxid", "messagegroups", "xref")


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of one entity of a document, and how bad it is; `code` and `args` are those of the error.

    `rule` is what a configuration silences it by: the named rule, or the error's name where the model itself refuses.
    """

    source: str
    severity: Literal["error", "warning", "note"]
    xid: str
    code: str
    message: str
    args: Mapping[str, str] = field(default_factory=dict)
    rule: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", self.rule or self.code)

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Entity:
    """A group, meta or version as the document has it, its attributes in canonical spelling."""

    source: str
    kind: Literal["group", "meta", "version"]
    xid: str
    domain: str
    level: Level
    attrs: Mapping[str, Any]
    group: Mapping[str, Any]


def check(documents: Sequence[Document], model: str = "builtin") -> Iterator[Finding]:
    """Everything wrong with the documents, which are taken as one catalog; `model` is as `lint --model` says."""
    entities: list[_Entity] = []
    catalog: dict[str, Mapping[str, Any]] = {}
    chosen = None if model == "document" else _chosen(model)
    types = None if chosen is None else read_model(chosen)
    judged: list[tuple[Sequence[Document], Mapping[str, Any]]] = [] if chosen is None else [(documents, chosen)]
    for document in documents:
        try:
            own = types or read_model(_own_model(document))
        except RegistryError as error:
            yield refusal(document.source, error)
            continue
        if chosen is None:
            judged.append(((document,), _own_model(document)))
        for found in _Walk(document, own, catalog).entities():
            if isinstance(found, Finding):
                yield found
            else:
                entities.append(found)
    for entity in entities:
        yield from _judge(entity, catalog)
    for together, source in judged:
        yield from (refusal(place, error) for place, error in refused_documents(together, source))


def _judge(entity: _Entity, catalog: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    for problem in entity.level.problems(entity.attrs, entity.xid):
        yield _found(entity, "error", problem)
    if entity.kind == "meta":
        return
    subject = rules.Subject(entity.xid, entity.attrs, entity.group, catalog.get, entity.level.problems)
    severities: tuple[Severity, ...] = ("error", "warning")
    for severity in severities:
        for problem in rules.check(entity.domain, entity.kind, subject, severity):
            yield _found(entity, severity, problem)
    for name in REFERENCES:
        value = entity.attrs.get(name)
        for reference in value if isinstance(value, list) else [value]:
            yield from _dangling(entity, name, reference, catalog)


def _dangling(
    entity: _Entity, name: str, reference: object, catalog: Mapping[str, Mapping[str, Any]]
) -> Iterator[Finding]:
    if not isinstance(reference, str) or not reference.removeprefix("#").startswith("/"):
        return
    # A fragment's rest points into the document of a schema: the entity is what comes before.
    steps = reference.removeprefix("#").split("#")[0].split(":")[0].strip("/").split("/")
    target = "/" + "/".join(steps[: 6 if steps[4:5] == ["versions"] else 4])
    if target not in catalog:
        message = f'The attribute "{name}" for "{entity.xid}" refers to "{target}", which is not in these documents.'
        yield Finding(entity.source, "warning", entity.xid, "dangling_reference", message, {"name": name})
    elif _is_deprecated(catalog, target) and not _is_deprecated(catalog, entity.xid):
        message = f'The attribute "{name}" for "{entity.xid}" refers to "{target}", which is deprecated.'
        yield Finding(entity.source, "warning", entity.xid, "deprecated_reference", message, {"name": name})


def _is_deprecated(catalog: Mapping[str, Mapping[str, Any]], xid: str) -> bool:
    """Whether a group or a resource is, or the resource that a version is of: its meta says so (DEPR-1)."""
    places = (xid, "/".join(xid.split("/")[:5]))
    return any(catalog[place].get("deprecated") is not None for place in places if place in catalog)


class _Walk:
    """The entities of one document in order, with what is wrong in how they are nested and named.

    `catalog` is filled with the attributes of each group, version and resource (those of its default version).
    """

    def __init__(self, document: Document, model: Model, catalog: dict[str, Mapping[str, Any]]) -> None:
        self._source = document.source
        self._content = document.content
        self._model = model
        self._catalog = catalog

    def entities(self) -> Iterator[_Entity | Finding]:
        known = READ_ONLY | DESCRIPTIVE | DEFINING | self._model.level.names
        for name, value in self._content.items():
            kind = self._model.groups.get(name)
            if kind is not None:
                for groupid, group in self._entries(f"/{name}", value):
                    yield from self._group(kind, f"/{name}/{groupid}", groupid, group)
                yield from self._misnamed(f"/{name}", value)
            elif name not in known and not name.endswith(("url", "count")):
                yield self._error("/", "unknown_attribute", name=name)

    def _group(self, kind: GroupType, xid: str, groupid: str, group: dict[str, Any]) -> Iterator[_Entity | Finding]:
        collections = {f"{plural}{suffix}" for plural in kind.resources for suffix in ("", "url", "count")}
        system = GROUP_SYSTEM | collections | {f"{kind.singular}id"}
        domain = kind.modelcompatiblewith
        attrs = self._catalog[xid] = yield from self._own(kind, xid, group, system)
        yield from self._named(xid, group, kind.singular, groupid)
        yield _Entity(self._source, "group", xid, domain, kind.level, attrs, attrs)
        for plural, resource_type in kind.resources.items():
            if plural in group:
                for resourceid, resource in self._entries(f"{xid}/{plural}", group[plural]):
                    yield from self._resource(
                        resource_type, f"{xid}/{plural}/{resourceid}", resourceid, resource, attrs
                    )
                yield from self._misnamed(f"{xid}/{plural}", group[plural])

    def _resource(
        self, kind: ResourceType, xid: str, resourceid: str, resource: dict[str, Any], group: Mapping[str, Any]
    ) -> Iterator[_Entity | Finding]:
        yield from self._named(xid, resource, kind.singular, resourceid)
        documents = set(document_names(kind)) if kind.hasdocument else set()
        system = VERSION_SYSTEM | RESOURCE_MEMBERS | documents | {f"{kind.singular}id"}
        domain = kind.modelcompatiblewith
        self._catalog[xid] = {}
        meta = resource.get("meta")
        if not isinstance(meta, dict):
            meta = {}
        else:
            attrs = {name: value for name, value in meta.items() if name not in META_SYSTEM | {f"{kind.singular}id"}}
            yield _Entity(self._source, "meta", f"{xid}/meta", domain, kind.meta_level, attrs, group)
            if meta.get("xref"):
                return
        given = resource.get("versions") or {}
        yield from self._misnamed(f"{xid}/versions", given)
        versions = [(f"{xid}/versions/{key}", version) for key, version in self._entries(f"{xid}/versions", given)]
        for place, version in versions or [(xid, resource)]:
            attrs = self._catalog[place] = yield from self._own(kind, place, version, system)
            if place in (xid, f"{xid}/versions/{meta.get('defaultversionid')}") or not self._catalog[xid]:
                self._catalog[xid] = attrs
            if place == xid:  # a registry names the only version so, where the document does not
                self._catalog[f"{xid}/versions/{version.get('versionid') or '1'}"] = attrs
            yield _Entity(self._source, "version", place, domain, kind.version_level, attrs, group)
        if meta.get("deprecated") is not None:
            self._catalog[xid] = {**self._catalog[xid], "deprecated": meta["deprecated"]}

    def _own(
        self, kind: GroupType | ResourceType, xid: str, given: Mapping[str, Any], system: frozenset[str] | set[str]
    ) -> Generator[Finding, None, dict[str, Any]]:
        """What of an entity its author controls, in canonical spelling."""
        try:
            canonical = in_spelling(kind, given, xid)
        except RegistryError as error:
            yield refusal(self._source, error)
            canonical = given
        return {name: value for name, value in canonical.items() if name not in system}

    def _entries(self, xid: str, value: object) -> Iterator[tuple[str, dict[str, Any]]]:
        if isinstance(value, dict):
            yield from ((key, entry) for key, entry in value.items() if isinstance(entry, dict) and is_id(key))

    def _misnamed(self, xid: str, value: object) -> Iterator[Finding]:
        if not isinstance(value, dict):
            yield self._error(xid, "invalid_attribute", name=xid.rpartition("/")[2], error_detail="must be a map")
            return
        for key, entry in value.items():
            if not is_id(key):
                yield self._error(f"{xid}/{key}", "malformed_id", id=key, error_detail="it is no legal id")
            elif not isinstance(entry, dict):
                yield self._error(f"{xid}/{key}", "invalid_attribute", name=key, error_detail="must be an object")

    def _named(self, xid: str, entity: Mapping[str, Any], singular: str, expected: str) -> Iterator[Finding]:
        given = entity.get(f"{singular}id")
        if given is not None and given != expected:
            yield self._error(xid, "mismatched_id", singular=singular, invalid_id=given, expected_id=expected)

    def _error(self, xid: str, code: str, /, **args: object) -> Finding:
        error = RegistryError(code, xid)
        error.args_.update({key: str(value) for key, value in args.items()})
        return refusal(self._source, error)


def _chosen(model: str) -> dict[str, Any]:
    return builtin_modelsource() if model == "builtin" else read_model_file(Path(model))


def _own_model(document: Document) -> dict[str, Any]:
    source = document.content.get("modelsource") or document.content.get("model")
    if not isinstance(source, dict):
        raise UsageError(f"{document.source} has no modelsource; check it by --model builtin or by a model file")
    return source


def _found(entity: _Entity, severity: Severity, problem: Problem) -> Finding:
    error = RegistryError(problem.code, entity.xid)
    error.args_.update(problem.args)
    named = _RULE.search(problem.message)
    return replace(refusal(entity.source, error), severity=severity, rule=named[1] if named else problem.code)


# A finding of a named rule ends with the rule's name (`document.rule`).
_RULE = re.compile(r"\[([a-z0-9-]+)\]$")


def refusal(source: str, error: RegistryError) -> Finding:
    """What a registry says where it refuses something of a document."""
    words = title(error) if error.name in ERROR_TYPES else str(error)
    said = f"{words.rstrip('.')}: {error.detail}" if error.detail else words
    return Finding(source, "error", error.subject, error.name, said, dict(error.args_))
