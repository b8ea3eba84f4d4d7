"""All that `signalbook lint` finds: unreadable files, what a registry would refuse, what the whole catalog shows.

Rule 1: every finding is yielded, in the order of the files, then of the catalog; a file that cannot be read is one
finding, and the others are checked.
Rule 2: a configuration silences findings by rule and xid, and says how bad a rule's are; nothing else is hidden.
Rule 3: a document of an older dialect is checked as a load would write it, each of its versions; what it loses on the
way is a finding. The whole catalog is what its newest versions make.
"""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from signalbook.dialects.convert import check as check_dialect
from signalbook.dialects.convert import is_lone, level_of, relabelled, respellings
from signalbook.errors import Problem, RegistryError, UsageError
from signalbook.messages.catalog import Catalog
from signalbook.messages.compile import payload_check
from signalbook.messages.definition import Entities, materialise
from signalbook.messages.lint import RULES as LINT_RULES
from signalbook.messages.lint import Subjects
from signalbook.messages.lint import lint as lint_definitions
from signalbook.messages.schema_library import SchemaLibrary, UncheckedSchema
from signalbook.model import rules
from signalbook.model.message_rules import Severity
from signalbook.model.model import GroupType, Model, ResourceType, read_model
from signalbook.model.rules import RULES as NAMED_RULES
from signalbook.model.values import Level
from signalbook.registry.documents import document_names
from signalbook.registry.registry import Registry
from signalbook.registry.work import GROUP_SYSTEM, META_SYSTEM, RESOURCE_MEMBERS, VERSION_SYSTEM, is_id
from signalbook.sources.documents import (
    DEFINING,
    DESCRIPTIVE,
    READ_ONLY,
    Document,
    Raw,
    UnreadableDocument,
    in_canonical,
    read_each,
    recognise,
)
from signalbook.sources.documents import read_model as read_model_file
from signalbook.spec.builtin import builtin_modelsource
from signalbook.spec.dialects import Dialect
from signalbook.spec.error_types import ERROR_TYPES, title

__all__ = [
    "CONFIG",
    "NOTED",
    "TWICE",
    "UNREADABLE",
    "Config",
    "Finding",
    "broken",
    "check",
    "defined_twice",
    "each_once",
    "lint",
    "noted",
    "refusal",
    "refused_documents",
    "whole_catalog",
]

# Which schema documents of a catalog a registry would refuse, found by writing them into one in memory.
#
# Rule 1: the registry that a load meets judges, so lint and load say the same of formats, references and compatibility.
# Rule 2: each resource is checked with the documents of all others there, so neither their order nor a fault of another
# matters.
# Rule 3: what is refused for another reason than its document is not judged here: the other checks tell it.


_JUDGED = frozenset(
    {"compatibility_unknown", "compatibility_violation", "format_external", "format_unknown", "format_violation"}
)


@dataclass(frozen=True, slots=True)
class _Schema:
    """A resource whose documents claim a format."""

    source: str
    xid: str
    resource: Mapping[str, Any]


def refused_documents(
    documents: Sequence[Document], modelsource: Mapping[str, Any]
) -> Iterator[tuple[str, RegistryError]]:
    """Each refusal of a document, with the source that holds it."""
    found = list(_schemas(documents, read_model(modelsource)))
    if not found:
        return
    with Registry.open(model=modelsource) as registry:
        for schema in found:
            with contextlib.suppress(RegistryError):
                registry.put(f"{schema.xid}?ignore=epoch", _unjudged(schema.resource))
        refused: list[tuple[_Schema, RegistryError]] = []
        while found:
            refused = [(schema, error) for schema in found if (error := _judge(registry, schema)) is not None]
            if len(refused) == len(found):
                break
            found = [schema for schema, _ in refused]  # what they refer to may have its format only now
    yield from ((schema.source, error) for schema, error in refused if error.name in _JUDGED)


def _judge(registry: Registry, schema: _Schema) -> RegistryError | None:
    """Why the registry does not take a resource that it has no format of yet."""
    try:
        with registry.transaction() as tx:
            with contextlib.suppress(RegistryError):
                tx.delete(schema.xid)
            tx.put(f"{schema.xid}?ignore=epoch", schema.resource)
    except RegistryError as error:
        return error
    return None


def _schemas(documents: Sequence[Document], model: Model) -> Iterator[_Schema]:
    for document in documents:
        for plural, group_type in model.groups.items():
            for groupid, group in _entries(document.content.get(plural)):
                for collection, kind in group_type.resources.items():
                    if kind.hasdocument and kind.validateformat:
                        for resourceid, resource in _entries(group.get(collection)):
                            if any("format" in version for version in _versions(resource)):
                                yield _Schema(
                                    document.source, f"/{plural}/{groupid}/{collection}/{resourceid}", resource
                                )


def _entries(value: object) -> list[tuple[str, dict[str, Any]]]:
    if not isinstance(value, dict):
        return []
    return [(key, entry) for key, entry in value.items() if isinstance(entry, dict) and is_id(key)]


def _versions(resource: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [resource, *(version for _, version in _entries(resource.get("versions")))]


def _unjudged(resource: Mapping[str, Any]) -> dict[str, Any]:
    """A resource that claims no format, so that nobody looks at its documents."""
    plain = {name: value for name, value in resource.items() if name != "format"}
    if "versions" in resource:
        plain["versions"] = {key: _unjudged(version) for key, version in _entries(resource["versions"])}
    return plain


# What is wrong with documents: an error is what a registry would refuse, by model levels and named rules that a write
# goes through, and by a registry itself where documents have a format; a warning is what it takes though it is likely a
# mistake.


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
        yield from _judge_entity(entity, catalog)
    for together, source in judged:
        yield from (refusal(place, error) for place, error in refused_documents(together, source))


def _judge_entity(entity: _Entity, catalog: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
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
            canonical = kind.normaliser.to_canonical(given, xid)
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
                yield self._error(f"{xid}/{key}", "malformed_id", id=key, error_detail="it is not a valid id")
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
    found = refusal(entity.source, error)
    # What a registry would take is valid all the same.
    words = found.message if severity == "error" else found.message.replace('" is not valid: ', '": ', 1)
    return replace(found, severity=severity, message=words, rule=named[1] if named else problem.code)


# A finding of a named rule ends with the rule's name (`model.message_rules`).
_RULE = re.compile(r"\[([a-z0-9-]+)\]$")


def refusal(source: str, error: RegistryError) -> Finding:
    """What a registry says where it refuses something of a document."""
    words = title(error) if error.name in ERROR_TYPES else str(error)
    said = f"{words.rstrip('.')}: {error.detail}" if error.detail else words
    return Finding(source, "error", error.subject, error.name, said, dict(error.args_))


CONFIG = ".signalbook-lint.toml"
UNREADABLE = "unreadable_document"
TWICE = "defined_twice"
FindingLevel = Literal["error", "warning", "note", "off"]
# What reading a document tells (`dialects.convert`); what a server gives anew is not news.
NOTED: Mapping[str, Literal["error", "warning", "note"]] = {
    "invalid": "error",
    "changed": "warning",
    "lost": "warning",
    "held": "note",
    "respelled": "note",
}


@dataclass(frozen=True, slots=True)
class Silence:
    """Findings that are known and accepted: of a rule, about xids; both may be patterns."""

    rule: str = "*"
    xid: str = "*"
    reason: str = ""

    def covers(self, finding: Finding) -> bool:
        """Whether a finding is meant."""
        return fnmatchcase(finding.rule, self.rule) and fnmatchcase(finding.xid, self.xid)


@dataclass(frozen=True, slots=True)
class Config:
    """What a project has decided about findings."""

    silences: tuple[Silence, ...] = ()
    severities: Mapping[str, FindingLevel] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path | None) -> Config:
        """The configuration in a file; without one, that of the current folder where it has one."""
        found = path or Path(CONFIG)
        try:
            return cls.from_dict(tomllib.loads(found.read_text(encoding="utf-8")), str(found))
        except FileNotFoundError:
            if path is None:
                return cls()
            raise UsageError(f"there is no file '{path}'") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"'{found}' is not TOML: {error}") from None

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], source: str = "the configuration") -> Config:
        """The configuration that a TOML document means."""
        unknown = given.keys() - {"silence", "severity"}
        if unknown:
            raise UsageError(f"{source} has '{min(unknown)}'; it may have [[silence]] and [severity]")
        severities = given.get("severity", {})
        if not isinstance(severities, dict) or not all(
            level in get_args(FindingLevel) for level in severities.values()
        ):
            raise UsageError(f"{source}: a severity is one of {', '.join(get_args(FindingLevel))}")
        for rule in severities:
            _check_rule(rule, source)
        rows = given.get("silence", [])
        return cls(tuple(_silence(row, source) for row in (rows if isinstance(rows, list) else [rows])), severities)

    def errors(self) -> frozenset[str]:
        """The rules whose findings can be errors, less those that a registry refuses by itself."""
        levels: dict[str, str] = {**{rule.name: rule.severity for rule in LINT_RULES}, **self.severities}
        return frozenset(rule for rule, level in levels.items() if level == "error")

    def apply(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings that are left, as bad as the project says."""
        for finding in findings:
            level = self.severities.get(finding.rule, finding.severity)
            if level != "off" and not any(silence.covers(finding) for silence in self.silences):
                yield finding if level == finding.severity else replace(finding, severity=level)


def _silence(row: Any, source: str) -> Silence:
    if not isinstance(row, dict) or row.keys() - {"rule", "xid", "reason"} or not {"rule", "xid"} & row.keys():
        raise UsageError(f"{source}: a [[silence]] has a rule, an xid or both, and perhaps a reason")
    if not all(isinstance(value, str) for value in row.values()):
        raise UsageError(f"{source}: what a [[silence]] says is text, in quotes")
    _check_rule(row.get("rule", "*"), source)
    return Silence(**row)


def _check_rule(pattern: str, source: str) -> None:
    """Refuse the name of a rule, or a pattern of names, that no finding will ever have."""
    if not any(fnmatchcase(rule, pattern) for rule in _RULES):
        near = get_close_matches(pattern, _RULES, 1)
        hint = f"did you mean '{near[0]}'?" if near else "docs/reference/lint-rules.md has the names"
        raise UsageError(f"{source}: there is no rule '{pattern}'; {hint}")


_RULES = frozenset(
    {UNREADABLE, TWICE, "dangling_reference", "deprecated_reference", *NOTED, *ERROR_TYPES}
    | {rule.name for rule in LINT_RULES}
    | {rule.name for rule in NAMED_RULES}
)


def lint(
    locations: Sequence[str],
    model: str = "builtin",
    seen: Callable[[Raw | UnreadableDocument], object] = lambda _: None,
    *,
    group: str = "",
) -> Iterator[Finding]:
    """Every finding about the catalog that lies at these places; `model` is as `lint --model` says.

    `seen` is given each document that was looked at, as it was read. `group` is for definitions that have none.
    """
    documents: list[Document] = []
    newest: list[Document] = []
    for location in locations:
        for found in read_each(location):
            seen(found)
            if isinstance(found, UnreadableDocument):
                yield Finding(found.source, "error", "/", UNREADABLE, found.reason)
                continue
            try:
                versions, notes = _documents(found, model, group)
            except UsageError as error:
                yield Finding(found.source, "error", "/", UNREADABLE, str(error))
            except RegistryError as error:
                yield Finding(found.source, "error", error.subject or "/", error.name, title(error), error.args_)
            else:
                documents.extend(versions)
                newest.append(versions[-1])
                yield from noted(versions[-1], notes)
    yield from each_once(check(documents, model))
    yield from defined_twice(newest)
    yield from whole_catalog(newest)


def _documents(raw: Raw, model: str, group: str) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    """What a registry takes for a document; by another model than the built-in one, which dialects have not, itself."""
    if model != "builtin" and isinstance(raw.value, dict):
        return (Document(raw.source, raw.value),), ()
    found = recognise(raw, any_model=True)
    documents, notes = in_canonical(raw, found.dialect, group=group)
    # by the text of its own dialect; what is of today is checked by its model and rules alone
    wrong = check_dialect(raw.value, found.dialect) if found.dialect.spec is None else ()
    spelled = respellings(raw.value, found.dialect, level_of(raw.value)) if found.dialect.modern else ()
    return documents, (*wrong, *relabelled(found), *notes, *spelled)


def broken(raw: Raw, dialect: Dialect) -> Iterator[Problem]:
    """What of a document a registry would refuse, by its own model where it has one, at its place.

    In a document of 1.0 that is `invalid`; in an older one, whose own text may allow it, it is `changed`. What a
    schema's document says is not judged.
    """
    older, nested = dialect.spec is None, dialect.form == "registry"
    if not isinstance(raw.value, dict) and nested:
        return
    level = level_of(raw.value) if nested else "message" if is_lone(raw.value, dialect) else "registry"
    own = "document" if not older and isinstance(raw.value.get("modelsource"), dict) else "builtin"
    name = "id" if older else f"{level}id"
    id_ = (raw.value.get(name) if level != "registry" else "") or _LONE
    root = {"registry": "", "message": f"/messagegroups/{_LONE}/messages/{id_}"}.get(level, f"/{level}s/{id_}")
    given = raw.value if level == "registry" else {**raw.value, name: id_}
    try:
        documents, _ = in_canonical(Raw(raw.source, given), dialect, group=_LONE)
        found = list(each_once(check(documents, own)))
    except (RegistryError, UsageError):  # for its reader to refuse
        return
    for one in found:
        if one.severity == "error" and one.code not in _JUDGED and one.xid.startswith(root):
            name = re.sub(r"\[(\d+)\]", r"/\1", one.args.get("name", "")).replace(".", "/")
            place = one.xid.removeprefix(root).rstrip("/") + (f"/{_in_dialect(name, dialect)}" if name else "")
            code, before = ("changed", "is refused by a registry: ") if older else ("invalid", "")
            yield Problem(place, code, before + (one.args.get("error_detail") or one.message))


def _in_dialect(name: str, dialect: Dialect) -> str:
    """The place of an attribute of a message, by the name that a dialect has for the attribute."""
    first, slash, rest = name.partition("/")
    rows = (row for level, table in dialect.tables.items() if level == "message" for row in table.rows)
    return next((row.there for row in rows if row.here == first and row.there), first) + slash + rest


_LONE = "group"  # stands for the ids that an entity by itself has not


def noted(document: Document, notes: Sequence[Problem]) -> Iterator[Finding]:
    """What is wrong by an older dialect or did not come along from it, at the entity where that is."""
    known = _sources([document])
    for note in notes:
        if note.code in NOTED:
            steps = note.path.split("/")
            deepest = (
                len(steps) if steps[3:4] in (["messages"], ["schemas"]) else 3
            )  # a group's own members are not an entity
            places = ("/".join(steps[:length]) for length in range(deepest, 1, -1))
            xid = next((place for place in places if place in known), "/")
            words = f"{note.path or '/'} {note.message}."
            yield Finding(document.source, NOTED[note.code], xid, note.code, words, {"path": note.path})


def each_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings without those that an older version of a definition, or its group, has given already."""
    given: set[tuple[str, ...]] = set()
    for finding in findings:
        mark = (finding.source, finding.severity, finding.xid, finding.code, finding.message)
        if mark not in given:
            given.add(mark)
            yield finding


def defined_twice(documents: Sequence[Document]) -> Iterator[Finding]:
    """Resources that two documents define differently: only the last would be kept."""
    first: dict[str, tuple[str, Any]] = {}
    for document in documents:
        for xid, resource in _resources(document):
            source, before = first.setdefault(xid, (document.source, resource))
            if _contradict(before, resource):
                words = f"{xid} is defined here and, differently, in {source}; only the last definition is kept."
                yield Finding(document.source, "warning", xid, TWICE, words, {"other": source})


def _contradict(before: Any, after: Any) -> bool:
    """Whether two definitions of one resource cannot both be kept; each may have other versions."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return False  # no resource, but a label of a group
    one, other = before.get("versions"), after.get("versions")
    if isinstance(one, dict) and isinstance(other, dict):
        return any(one[version] != other[version] for version in one.keys() & other.keys())
    return before != after


def whole_catalog(
    documents: Sequence[Document], only: Collection[str] | None = None, beside: Sequence[Document] = ()
) -> Iterator[Finding]:
    """What only the documents together show, by all rules or `only` these; `beside` them there may be others."""
    sources = _sources(documents)
    entities = Entities.of(*(document.content for document in (*beside, *documents)))
    for finding in lint_definitions(_subjects(entities), only):
        if beside and finding.xid not in sources:
            continue
        place = finding.xid + (f" at {finding.path}" if finding.path else "")
        words = f"{place}: {finding.message}."
        source = sources.get(finding.xid, documents[0].source)
        args = {"path": finding.path}
        yield Finding(source, finding.severity, finding.xid, finding.rule, words, args, finding.rule)


def _subjects(entities: Entities) -> Subjects:
    """What is linted; definitions are compiled once a rule asks for that, since a load runs rules that do not."""
    definitions = materialise(entities)
    library = SchemaLibrary(entities)
    payload_of = cache(lambda xid: payload_check(definitions[xid]))
    catalog = cache(lambda: Catalog(entities))

    def schema_problem(xid: str) -> str:
        schema = payload_of(xid).schema(library)
        if schema is None or isinstance(schema, Problem):
            return schema.message if schema is not None and not schema_unchecked(xid) else ""
        # A schema that was read may still not say which of its types a payload is; its check then says so.
        undecided = (one.message for one in schema.check(b"").problems if one.code == "schema_unavailable")
        return next(undecided, "")

    def schema_unchecked(xid: str) -> str:
        payload = payload_of(xid)
        schema = payload.schema(library)
        is_unchecked = isinstance(schema, UncheckedSchema) and payload.may_be_unchecked(library)
        return schema.message if isinstance(schema, UncheckedSchema) and is_unchecked else ""

    def sample_problem(xid: str) -> str:
        return "; ".join(problem.message for problem in catalog().message(xid).sample().problems)

    endpoints = {xid: endpoint.attributes for xid, endpoint in entities.endpoints.items()}
    return Subjects(definitions, endpoints, schema_problem, sample_problem, schema_unchecked)


def _sources(documents: Sequence[Document]) -> dict[str, str]:
    """The file that each group and resource is in, by xid."""
    found: dict[str, str] = {}
    for document in documents:
        for xid, _ in _groups(document):
            found[xid] = document.source
        for xid, _ in _resources(document):
            found[xid] = document.source
    return found


def _groups(document: Document) -> Iterator[tuple[str, Any]]:
    for plural, groups in document.content.items():
        for groupid, group in groups.items() if isinstance(groups, dict) else ():
            yield f"/{plural}/{groupid}", group


def _resources(document: Document) -> Iterator[tuple[str, Any]]:
    """What may be a resource: the members of the maps in a group, labels among them."""
    for place, group in _groups(document):
        for plural, resources in group.items() if isinstance(group, dict) else ():
            for resourceid, resource in resources.items() if isinstance(resources, dict) else ():
                yield f"{place}/{plural}/{resourceid}", resource
