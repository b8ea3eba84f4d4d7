"""The payload schemas of a catalog: which one a definition names, read when the first payload needs it.

Rule 1: a schema is had inline, or from the catalog itself by xid or by its own URL, with the deep links of the schema
specification after `#` or `:`. Nothing is fetched: one that lies elsewhere, or whose format or version is not
supported, is an `UncheckedSchema`, by which no payload is judged.
Rule 2: a schema of the catalog finds others as it does in a registry (`schemas.references`), and by their own URL. One
that stands in a definition has nothing beside it: there an id will do that only one schema of the catalog has.
Rule 3: what else cannot be had is a `schema_unavailable` problem; whatever a reader does, it stops nobody else.
Rule 4: a schema is read once for all definitions that name it.
Rule 5: the schema that a payload was written with is known by the id of its frame, in the context of the definition's
own schema, or by its guid (`SchemaIds`). An id that the catalog's ids do not have is a problem; where it has no ids at
all, nothing is known of writers.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID
from zlib import crc32

from signalbook import schemas
from signalbook.errors import Problem
from signalbook.jsontext import write_json
from signalbook.messages.definition import Attributes, Entities, Entity
from signalbook.messages.layered import GONE, Changes, Layered
from signalbook.model.message_rules import MAX_CHAIN
from signalbook.schemas import References, Schema, SchemaError
from signalbook.schemas.canonical import NamedReferences, Reference, canonical_text, content_of, type_of
from signalbook.schemas.format import Located, Text
from signalbook.schemas.framing import Mark
from signalbook.schemas.references import look_up, meant, names_of

__all__ = [
    "KnownSchema", "SchemaIds", "SchemaLibrary", "SchemaPolicy", "SchemaSource", "UncheckedSchema", "references_of",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class SchemaPolicy:
    """How the schemas of a catalog are used: whether each one has to be there, and which of Confluent's ids are known.

    `ids` leads from an id to the xid of the schema, or of the version, that payloads with it were written by; `kept`
    finds for the xid of a group and what a frame says the schema that is no longer in the catalog.
    """

    required: bool = False
    ids: Mapping[int, str] = field(default_factory=dict)
    kept: Callable[[str, Mark], KnownSchema | None] = lambda group, mark: None


class UncheckedSchema(Problem):
    """Why a payload schema is not applied: it lies elsewhere, or is not supported; the metadata decide."""


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """Where a definition's schema comes from: its format and text, a deep link into it, and who names it.

    `place` is the xid of the schema in the catalog; empty where it stands in the definition. `named` are the texts that
    the schema means by the names of its references, where it states them; `schemaid` and `guid` are Confluent's.
    """

    path: str
    format: str
    text: Text
    link: str = ""
    place: str = ""
    named: Mapping[str, str] = field(default_factory=dict)
    schemaid: int | None = None
    guid: str | None = None


_SCHEMAS = "/schemagroups/"
_FEWEST_HELD = 1024
# core/spec.md: where a resource's document is kept that is not kept by the registry.
_KEPT = ("schemaurl", "schemaproxyurl")


# The schema versions of a catalog as payloads name them.
#
# Rule 1: ids count within a context, which is a schema group (`confluentcontext`). Those of groups that state none, and
# have no ids of their own, are those of the default context.
# Rule 2: a guid is made of the content, so it means the same everywhere.
# Rule 3: of versions with one id, all have one content; where they have not, none is meant.

_DEFAULT_GROUP = "/schemagroups/confluent"
_DEFAULT_CONTEXT = "."
_MOST_NAMED = 1000
_PARTS = 128


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """A version of a schema that payloads may be written with: the xid of the schema, and the version's attributes."""

    xid: str
    attributes: Attributes

    @property
    def group(self) -> str:
        """The xid of its group."""
        return self.xid.partition("/schemas/")[0]

    @property
    def content(self) -> tuple[str, str]:
        """The type of the schema and its canonical text, which are the same for schemas of one content."""
        text = _bytes(_document(self.attributes) or b"").decode("utf-8", "replace")
        type_ = type_of(str(self.attributes.get("format") or ""))
        try:
            return type_, canonical_text(type_, text)
        except (SchemaError, ValueError, RecursionError):
            return type_, text


class SchemaIds:
    """The versions of a catalog's schemas by Confluent's ids, by guids, and by subject and number.

    `marks` leads from each of these, as `_marks_of` spells it, to the schemas that have such a version.
    """

    __slots__ = ("_default", "_entities", "_has_ids", "_marks")

    def __init__(self, entities: Entities, marks: Mapping[str, frozenset[str]]) -> None:
        self._entities = entities
        self._marks = marks
        self._default: tuple[str, ...] | None = None
        self._has_ids: dict[str, bool] = {}

    def by_id(self, context: str, schemaid: int) -> KnownSchema | None:
        """The version that has an id in a context."""
        if context == _DEFAULT_CONTEXT:
            groups = self._default_groups()
        else:
            groups = tuple(xid for xid, one in self._entities.groups.items() if _context_of(one) == context)
        return _one_content(self._with_id(groups, schemaid))

    def by_guid(self, guid: str, group: str = "") -> KnownSchema | None:
        """The version that has a guid, one of the group before others."""
        found = [one for one, _ in self._marked(f"guid {guid}") if _guid(one.attributes) == guid]
        return next((one for one in found if one.group == group), next(iter(found), None))

    def around(self, place: str) -> tuple[str, ...]:
        """The groups whose ids a frame may have where its payload is judged by the schema at a place."""
        group = place.partition("/schemas/")[0]
        if self._has(group):
            return (group,)
        return () if _context_of(self._entities.groups.get(group)) is not None else self._default_groups()

    def among(self, groups: Iterable[str], schemaid: int) -> list[KnownSchema]:
        """The versions in some groups that have an id."""
        return self._with_id(groups, schemaid)

    def named(self, known: KnownSchema) -> dict[str, str]:
        """The texts that a version means by the names of its references, and after them what those refer to."""
        found: dict[str, str] = {}
        waiting = [(known.group, one) for one in _stated_references(known.attributes)]
        seen: set[tuple[str, Reference]] = set()
        while waiting and len(seen) < _MOST_NAMED:
            group, one = waiting.pop(0)
            if (group, one) in seen:
                continue
            seen.add((group, one))
            group, subject = self._subject(group, one.subject)
            numbered = self._marked(_number_mark(group, subject, one.version))
            other = next((held for held, number in numbered if number == one.version), None)
            text = None if other is None else _document(other.attributes)
            if other is None or text is None:
                continue
            found.setdefault(one.name, _bytes(text).decode("utf-8", "replace"))
            waiting.extend((group, inner) for inner in _stated_references(other.attributes))
        return found

    def _has(self, group: str) -> bool:
        """Whether a schema of a group has an id."""
        found = self._has_ids.get(group)
        if found is None:
            found = self._has_ids[group] = any(f"ids {part} {group}" in self._marks for part in range(_PARTS))
        return found

    def _with_id(self, groups: Iterable[str], schemaid: int) -> list[KnownSchema]:
        found = (one for group in groups for one, _ in self._marked(f"id {schemaid} {group}"))
        return [one for one in found if _schemaid(one.attributes) == schemaid]

    def _marked(self, name: str) -> Iterator[tuple[KnownSchema, int | None]]:
        """The versions of the schemas that a mark leads to, each with its number."""
        for xid in sorted(self._marks.get(name, ())):
            entity = self._entities.schemas.get(xid)
            for versionid, attributes in {} if entity is None else entity.versions.items():
                yield KnownSchema(xid, attributes), _number(versionid, attributes)

    def _default_groups(self) -> tuple[str, ...]:
        """The groups of the default context: the one of its name, else all that have ids and state no context."""
        if self._default is None:
            unstated = (xid for xid, one in self._entities.groups.items() if _context_of(one) is None)
            found = tuple(filter(self._has, unstated))
            self._default = (_DEFAULT_GROUP,) if _DEFAULT_GROUP in found else found
        return self._default

    def _subject(self, group: str, name: str) -> tuple[str, str]:
        """The group and the plain name of a subject, as it is written within a group."""
        context, colon, rest = name[1:].partition(":") if name.startswith(":.") else ("", "", name)
        if not colon:
            return group, name
        if context == _DEFAULT_CONTEXT:
            return next(iter(self._default_groups()), group), rest
        others = (xid for xid, one in self._entities.groups.items() if _context_of(one) == context)
        return next(others, group), rest


def _marks_of(xid: str, entity: Entity | None) -> set[str]:
    """The marks of a schema: what its versions are asked for by."""
    found: set[str] = set()
    group, _, own = xid.partition("/schemas/")
    for versionid, attributes in {} if entity is None else entity.versions.items():
        schemaid, guid, number = _schemaid(attributes), _guid(attributes), _number(versionid, attributes)
        if schemaid is not None:
            # Of many schemas in one row each change would copy it.
            found |= {f"ids {crc32(own.encode()) % _PARTS} {group}", f"id {schemaid} {group}"}
        if guid is not None:
            found.add(f"guid {guid}")
        subject = attributes.get("confluentsubject")
        if number is not None:
            names = (own, subject) if isinstance(subject, str) else (own,)
            found |= {_number_mark(group, name, number) for name in names}
    return found


def _number_mark(group: str, subject: str, number: int) -> str:
    return f"number {number} {group} {subject}"


def _number(versionid: str, attributes: Attributes) -> int | None:
    """The number of a version among those of its subject."""
    stated = attributes.get("confluentversion")
    if type(stated) is int:
        return stated
    return int(versionid) if versionid.isascii() and versionid.isdigit() and len(versionid) <= 10 else None


def _context_of(group: Entity | None) -> str | None:
    """The context that a group states; None where it states none, or the default one."""
    stated = None if group is None else group.attributes.get("confluentcontext")
    return stated if isinstance(stated, str) and stated not in ("", _DEFAULT_CONTEXT) else None


def _one_content(found: Sequence[KnownSchema]) -> KnownSchema | None:
    """The first of versions that have one content; None where there is none, or they have several."""
    if len(found) > 1 and len({one.content for one in found}) > 1:
        return None
    return next(iter(found), None)


def _stated_references(attributes: Attributes) -> tuple[Reference, ...]:
    return content_of("", "", attributes.get("confluentreferences")).references


def _schemaid(attributes: Attributes) -> int | None:
    stated = attributes.get("confluentid")
    return stated if type(stated) is int and 0 < stated < 1 << 32 else None


def _guid(attributes: Attributes) -> str | None:
    stated = attributes.get("confluentguid")
    try:
        return str(UUID(stated)) if isinstance(stated, str) else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _ReadSchema:
    """What came of reading a source, and the documents of the catalog that it asked for on the way."""

    schema: Schema | Problem
    asked: Mapping[str, Text | None]


class _ReadSchemas:
    """What came of reading sources, by their fingerprints; the libraries of all states of a catalog share it.

    Whether the documents that a source asked for are still the same is looked at each time. Where more are held than
    there can be in use, those that were read first are forgotten.
    """

    __slots__ = ("_held", "most")

    def __init__(self) -> None:
        self._held: dict[bytes, _ReadSchema] = {}
        self.most = _FEWEST_HELD

    def get(self, key: bytes) -> _ReadSchema | None:
        """What came of a source."""
        return self._held.get(key)

    def put(self, key: bytes, read: _ReadSchema) -> None:
        """Hold what came of a source."""
        self._held[key] = read
        if len(self._held) > self.most:
            for old in list(self._held)[: self.most // 4]:
                self._held.pop(old, None)


class SchemaLibrary:
    """The schemas of one state of a catalog; what was read for another state and is the same is not read again.

    `state` is another object where any answer may be another.
    """

    __slots__ = ("_entities", "_ids", "_known_ids", "_marks", "_names", "_read", "policy", "state")

    def __init__(
        self,
        entities: Entities,
        before: SchemaLibrary | None = None,
        policy: SchemaPolicy = SchemaPolicy(),  # noqa: B008  # which never changes
    ) -> None:
        # Definitions come and go while the schemas and their groups stay: only these are held.
        self._entities = replace(entities, messages={}, endpoints={})
        self.policy = policy
        self.state = object()
        self._read: _ReadSchemas = _ReadSchemas() if before is None else before._read
        self._read.most = max(self._read.most, 2 * (len(entities.messages) + len(entities.schemas)))
        # The schemas of each id, and those that declare each name; made when they are first asked for.
        self._ids: Layered[str, frozenset[str]] | None = None
        self._names: Layered[str, frozenset[str]] | None = None
        # Those that have a version with each of Confluent's ids, guids and numbers; and what is asked by them.
        self._marks: Layered[str, frozenset[str]] | None = None
        self._known_ids: SchemaIds | None = None

    def changed(self, entities: Entities, schemas: Iterable[str]) -> SchemaLibrary:
        """The library of another state, in which these schemas are not the same."""
        found = SchemaLibrary(entities, self, self.policy)
        for xid in schemas:
            before, after = self._entities.schemas.get(xid), entities.schemas.get(xid)
            if self._ids is not None:
                found._ids = _moved(found._ids or self._ids, xid, _ids_of(xid, before), _ids_of(xid, after))
            if self._names is not None:
                found._names = _moved(found._names or self._names, xid, _names_of(before), _names_of(after))
            if self._marks is not None:
                found._marks = _moved(found._marks or self._marks, xid, _marks_of(xid, before), _marks_of(xid, after))
        return found

    def source(self, document: Attributes) -> SchemaSource | Problem | None:
        """The source of a definition's payload schema; None where it names none."""
        format_name = document.get("dataschemaformat")
        inline = document.get("dataschema")
        if inline is not None:
            if not isinstance(format_name, str):
                return _unavailable("/dataschema", "there is a dataschema but no dataschemaformat")
            if not isinstance(inline, (str, bytes, bool, Mapping)):
                return _unavailable("/dataschema", "the dataschema is not a schema document")
            return SchemaSource("/dataschema", format_name, inline)
        problem: Problem | None = None
        for name, reference in _references(document):
            found = self._referred(f"/{name}", reference, format_name)
            if isinstance(found, SchemaSource):
                return found
            # What is said to be in this very catalog has to be there.
            if problem is None or isinstance(problem, UncheckedSchema):
                problem = found
        return problem

    def are_same(self, one: str, other: str) -> bool:
        """Whether two references name one schema, or one of them a version of the other.

        An address need not be one of the catalog's own: what stands before the xid in it is not compared.
        """
        if one == other:
            return True
        places = [self._place(reference[max(reference.find(_SCHEMAS), 0) :]) for reference in (one, other)]
        (first, link), (second, other_link) = places
        if first is None or second is None or (link and other_link and link != other_link):
            return False
        (xid, _, version), (other_xid, _, other_version) = (
            self._entities.located(place).partition("/versions/") for place in (first, second)
        )
        same_version = not version or not other_version or version == other_version
        return same_version and self._target(xid) == self._target(other_xid)

    @property
    def ids(self) -> SchemaIds:
        """The versions of the catalog's schemas by Confluent's ids."""
        if self._known_ids is None:
            if self._marks is None:
                self._marks = _gathered((xid, _marks_of(xid, entity)) for xid, entity in self._entities.schemas.items())
            self._known_ids = SchemaIds(self._entities, self._marks)
        return self._known_ids

    def knows(self, schemaid: int, source: SchemaSource | None) -> bool:
        """Whether an id of Confluent's framing is known to be one of a definition's schema."""
        if source is None or not source.place:
            return False
        named = self.policy.ids.get(schemaid)
        if named is not None and self.are_same(named, source.place):
            return True
        return any(one.xid == source.place for one in self.ids.among(self.ids.around(source.place), schemaid))

    def has_ids(self, source: SchemaSource | None) -> bool:
        """Whether the catalog has ids among which that of a definition's schema would be."""
        return bool(self.ids.around("" if source is None else source.place))

    def written(self, mark: Mark, source: SchemaSource | None) -> KnownSchema | Problem | None:
        """The version that a payload was written with; None where the catalog has no ids."""
        place = "" if source is None else source.place
        group = place.partition("/schemas/")[0]
        groups = self.ids.around(place)
        if mark.schemaid is None:
            found = self.ids.by_guid(mark.guid or "", group) or self.policy.kept(group, mark)
        else:
            named = self._find(self.policy.ids.get(mark.schemaid, ""))
            same = [KnownSchema(*named)] if named is not None else self.ids.among(groups, mark.schemaid)
            found = _one_content(same) if same else self.policy.kept(group, mark)
            if found is None and same:
                return _unknown_writer(mark, "which schemas of several contents have in the catalog")
        if found is None and groups:
            return _unknown_writer(mark, "which no schema of the catalog has")
        return found

    def writer(self, known: KnownSchema, path: str) -> Schema | Problem:
        """The schema of a version that a payload was written with."""
        text, format_name = _document(known.attributes), known.attributes.get("format")
        if text is None or not isinstance(format_name, str):
            words = f"the schema {known.xid} that the payload was written with has no document, or no format"
            return _unavailable(path, words)
        return self.schema(SchemaSource(path, format_name, text, place=known.xid, named=self.ids.named(known)))

    def schema(self, source: SchemaSource) -> Schema | Problem:
        """The schema that a source holds, read once."""
        try:
            key = _fingerprint(source)
        except ValueError as error:
            return _unavailable(source.path, f"the schema is not a JSON value: {error}")
        known = self._read.get(key)
        if known is None or any(self.text(source, reference) != text for reference, text in known.asked.items()):
            known = self._made(source)
            self._read.put(key, known)
        return known.schema

    def _made(self, source: SchemaSource) -> _ReadSchema:
        asked: dict[str, Text | None] = {}

        stated = NamedReferences(type_of(source.format), source.named) if source.named else None

        def answered(reference: str) -> Text | None:
            found = None if stated is None else stated(reference)
            if found is not None:
                return found
            asked[reference] = self.text(source, reference)
            return asked[reference]

        schema = _schema(source, answered)
        if type(schema) is Problem and any(
            text is None and self._entities.is_elsewhere(one) for one, text in asked.items()
        ):
            schema = UncheckedSchema(schema.path, schema.code, schema.message)
        return _ReadSchema(schema, asked)

    def text(self, source: SchemaSource, reference: str) -> Text | None:
        """The document of the catalog that a source's schema refers to."""
        place = self._entities.located(reference.partition("#")[0])
        found = look_up(place, source.place, self._at, partial(self._declared, source))
        if found is None and not source.place:
            same = self._by_id().get(place.rpartition("/")[2], ())
            found = self._at(next(iter(same))) if len(same) == 1 else None
        return found

    def _at(self, place: str) -> Text | None:
        """The document of the schema version at an xid."""
        found = self._find(place)
        return None if found is None else _document(found[1])

    def _declared(self, source: SchemaSource, name: str) -> Text | None:
        """The document that declares a name in a format like the source's."""
        row = schemas.find(source.format)
        declaring = self._by_name().get(f"{row.family} {name}") if row is not None else None
        everywhere = set(declaring or ()) - {source.place}
        group = source.place.rsplit("/", 1)[0] + "/"
        within = {xid for xid in everywhere if source.place and xid.startswith(group)}
        found = meant((within, everywhere))
        return None if found is None else self._at(found)

    def _by_id(self) -> Mapping[str, frozenset[str]]:
        """The schemas of each id."""
        if self._ids is None:
            self._ids = _gathered((xid, _ids_of(xid, entity)) for xid, entity in self._entities.schemas.items())
        return self._ids

    def _by_name(self) -> Mapping[str, frozenset[str]]:
        """The schemas that declare each name, a format's family before it; of default versions only."""
        if self._names is None:
            self._names = _gathered((xid, _names_of(entity)) for xid, entity in self._entities.schemas.items())
        return self._names

    def _referred(self, path: str, reference: str, format_name: Any) -> SchemaSource | Problem:
        place, link = self._place(reference)
        found = None if place is None else self._find(place)
        if found is None:
            elsewhere = self._entities.is_elsewhere(reference)
            where = "lies elsewhere and is not fetched" if elsewhere else "is not in the catalog"
            return _unavailable(path, f"the schema {_short(reference)} {where}", elsewhere)
        xid, attributes = found
        text = _document(attributes)
        if text is None:
            text = self._document_at(attributes)
        if text is None:
            return self._without_document(path, reference, attributes)
        own = attributes.get("format")
        named = own if isinstance(own, str) and own else format_name
        if not isinstance(named, str):
            return _unavailable(path, f"the schema {_short(reference)} has no format, and there is no dataschemaformat")
        stated = self.ids.named(KnownSchema(xid, attributes)) if attributes.get("confluentreferences") else {}
        return SchemaSource(path, named, text, link, xid, stated, _schemaid(attributes), _guid(attributes))

    def _without_document(self, path: str, reference: str, attributes: Attributes) -> Problem:
        """Why a schema of the catalog has no document there."""
        kept = _kept(attributes)
        if kept and not self._entities.located(kept.partition("#")[0]).startswith("/schemagroups/"):
            return _unavailable(path, f"the document of the schema {_short(reference)} lies elsewhere, at {kept}", True)
        return _unavailable(path, f"the schema {_short(reference)} has no document in the catalog")

    def _document_at(self, attributes: Attributes) -> Any:
        """The document of a schema that has it at the address of another schema of this catalog."""
        place, link = self._place(_kept(attributes))
        found = None if place is None or link else self._find(place)
        return None if found is None else _document(found[1])

    def _place(self, reference: str) -> tuple[str | None, str]:
        """The place of the schema that a reference names, and the deep link into it."""
        reference = reference.removeprefix("#") if reference.startswith("#/") else reference
        place, _, fragment = reference.partition("#")
        head, mark, query = place.partition("?")
        if mark and ":" in query and self._find(head) is not None:
            return head, query[query.index(":") :]
        if self._find(place) is not None:
            return place, fragment
        # A name after a colon, which may stand in an id as well: the longest place that exists is meant.
        end = len(place)
        for _ in range(MAX_CHAIN):
            end = place.rfind(":", 0, end)
            if end <= 0:
                break
            if self._find(place[:end]) is not None:
                return place[:end], place[end:]
        return None, ""

    def _find(self, place: str) -> tuple[str, Attributes] | None:
        """The xid of the schema, and the attributes of its version, at an xid or at an entity's own URL."""
        return self._entities.version(self._entities.schemas, self._target(self._entities.located(place)))

    def _target(self, xid: str) -> str:
        """The xid that cross references lead to from one."""
        for _ in range(MAX_CHAIN):
            entity = self._entities.schemas.get(xid)
            if entity is None or entity.xref is None:
                return xid
            xid = entity.xref
        return ""


def _gathered(rows: Iterable[tuple[str, Iterable[str]]]) -> Layered[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for xid, names in rows:
        for name in names:
            found.setdefault(name, set()).add(xid)
    return Layered({name: frozenset(xids) for name, xids in found.items()})


def _moved(
    held: Layered[str, frozenset[str]], xid: str, before: Iterable[str], after: Iterable[str]
) -> Layered[str, frozenset[str]]:
    changes = Changes(held)
    for name in before:
        changes.set(name, (changes.get(name) or frozenset()) - {xid} or GONE)
    for name in after:
        changes.set(name, (changes.get(name) or frozenset()) | {xid})
    return changes.made()


def _ids_of(xid: str, entity: Entity | None) -> tuple[str, ...]:
    return () if entity is None else (xid.rpartition("/")[2],)


def _names_of(entity: Entity | None) -> list[str]:
    """The names that a schema declares, its format's family before each."""
    row = None if entity is None else schemas.find(str(entity.attributes.get("format") or ""))
    text = None if entity is None or row is None else _document(entity.attributes)
    if row is None or text is None:
        return []
    return [f"{row.family} {name}" for name in names_of(row.family, _bytes(text))]


def _kept(attributes: Attributes) -> str:
    """The address where a schema says that its document is kept."""
    return next((at for name in _KEPT if isinstance(at := attributes.get(name), str)), "")


def _fingerprint(source: SchemaSource) -> bytes:
    text = source.text if isinstance(source.text, bytes) else write_json(source.text)
    names = (source.format.lower(), source.link, source.place)
    stated = (write_json(dict(source.named)),) if source.named else ()
    return hashlib.sha256(b"\0".join((*map(str.encode, names), text, *stated))).digest()


def _bytes(text: Text) -> bytes:
    """A document as bytes; empty where it has none."""
    try:
        return text if isinstance(text, bytes) else text.encode() if isinstance(text, str) else write_json(text)
    except ValueError:
        return b""


def _schema(source: SchemaSource, references: References) -> Schema | Problem:
    try:
        schema = schemas.read(source.format, source.text, Located(references, source.place))
        return schema.at(source.link) if source.link else schema
    except SchemaError as error:
        return _unavailable(source.path, f"the schema cannot be used: {_short(str(error))}", error.is_unsupported)
    except Exception as error:  # a schema is untrusted, and so is what a library does with it
        return _unavailable(source.path, f"the schema cannot be read: {_short(repr(error))}")


def _document(attributes: Attributes) -> Text | None:
    inline = attributes.get("schema")
    if isinstance(inline, (str, bool, Mapping)):
        return inline
    coded = attributes.get("schemabase64")
    if isinstance(coded, str):
        try:
            return base64.b64decode(coded, validate=True)
        except (binascii.Error, ValueError):
            return None
    return None


def references_of(document: Attributes) -> tuple[str, ...]:
    """The references by which a definition names its schema."""
    return tuple(reference for _, reference in _references(document))


def _references(document: Attributes) -> list[tuple[str, str]]:
    """The attributes that refer to a definition's schema, with what they say."""
    stated = [(name, document.get(name)) for name in ("dataschemauri", "dataschemaxid")]
    return [(name, reference) for name, reference in stated if isinstance(reference, str) and reference]


def _unknown_writer(mark: Mark, why: str) -> Problem:
    return Problem("", "schema_unavailable", f"the payload was written with the schema of {mark}, {why}")


def _unavailable(path: str, words: str, unchecked: bool = False) -> Problem:
    return (UncheckedSchema if unchecked else Problem)(path, "schema_unavailable", words)


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}…"
