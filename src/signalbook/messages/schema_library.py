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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from signalbook import schemas
from signalbook.errors import Problem
from signalbook.jsontext import write_json
from signalbook.messages.definition import Attributes, Entities
from signalbook.model.message_rules import MAX_CHAIN
from signalbook.schemas import References, Schema, SchemaError
from signalbook.schemas.canonical import NamedReferences, Reference, canonical_text, content_of, type_of
from signalbook.schemas.format import Located, Text
from signalbook.schemas.framing import Mark
from signalbook.schemas.references import look_up, meant, names_of

__all__ = ["KnownSchema", "SchemaIds", "SchemaLibrary", "SchemaPolicy", "SchemaSource", "UncheckedSchema"]


@dataclass(frozen=True, slots=True)
class SchemaPolicy:
    """How the schemas of a catalog are used: whether each one has to be there, and which of Confluent's ids are known.

    `ids` leads from an id to the xid of the schema, or of the version, that payloads with it were written by.
    """

    required: bool = False
    ids: Mapping[int, str] = field(default_factory=dict)


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
    """The versions of a catalog's schemas by Confluent's ids, by guids, and by subject and number."""

    __slots__ = ("_by_group", "_by_guid", "_contexts", "_default", "_numbers")

    def __init__(self, entities: Entities) -> None:
        self._by_group: dict[str, dict[int, list[KnownSchema]]] = {}
        self._by_guid: dict[str, list[KnownSchema]] = {}
        self._numbers: dict[tuple[str, str, int], KnownSchema] = {}
        for xid, entity in entities.schemas.items():
            for versionid, attributes in entity.versions.items():
                self._add(KnownSchema(xid, attributes), versionid)
        self._contexts = {xid: _context_of(entity.attributes) for xid, entity in entities.groups.items()}
        unstated = [xid for xid in self._by_group if self._contexts.get(xid) is None]
        default: dict[int, list[KnownSchema]] = {}
        for group in [_DEFAULT_GROUP] if _DEFAULT_GROUP in unstated else unstated:
            for schemaid, found in self._by_group[group].items():
                default.setdefault(schemaid, []).extend(found)
        self._default = default

    def _add(self, known: KnownSchema, versionid: str) -> None:
        attributes = known.attributes
        schemaid, guid = _schemaid(attributes), _guid(attributes)
        if schemaid is not None:
            self._by_group.setdefault(known.group, {}).setdefault(schemaid, []).append(known)
        if guid is not None:
            self._by_guid.setdefault(guid, []).append(known)
        stated = attributes.get("confluentversion")
        number = stated if type(stated) is int else int(versionid) if _is_number(versionid) else None
        if number is not None:
            subject = attributes.get("confluentsubject")
            own = known.xid.rpartition("/")[2]
            for name in (own, subject) if isinstance(subject, str) else (own,):
                self._numbers[known.group, name, number] = known

    def by_id(self, context: str, schemaid: int) -> KnownSchema | None:
        """The version that has an id in a context."""
        if context == _DEFAULT_CONTEXT:
            return _one_content(self._default.get(schemaid, ()))
        groups = [xid for xid, one in self._contexts.items() if one == context]
        return _one_content([one for xid in groups for one in self._by_group.get(xid, {}).get(schemaid, ())])

    def by_guid(self, guid: str, group: str = "") -> KnownSchema | None:
        """The version that has a guid, one of the group before others."""
        found = self._by_guid.get(guid, ())
        return next((one for one in found if one.group == group), next(iter(found), None))

    def around(self, place: str) -> Mapping[int, Sequence[KnownSchema]]:
        """The ids that a frame may have whose payload is judged by the schema at a place."""
        group = place.partition("/schemas/")[0]
        own = self._by_group.get(group)
        if own is not None or self._contexts.get(group) is not None:
            return own or {}
        return self._default

    def knows_guids(self) -> bool:
        """Whether any version has a guid."""
        return bool(self._by_guid)

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
            other = self._numbers.get((group, subject, one.version))
            text = None if other is None else _document(other.attributes)
            if other is None or text is None:
                continue
            found.setdefault(one.name, _bytes(text).decode("utf-8", "replace"))
            waiting.extend((group, inner) for inner in _stated_references(other.attributes))
        return found

    def _subject(self, group: str, name: str) -> tuple[str, str]:
        """The group and the plain name of a subject, as it is written within a group."""
        context, colon, rest = name[1:].partition(":") if name.startswith(":.") else ("", "", name)
        if not colon:
            return group, name
        wanted = None if context == _DEFAULT_CONTEXT else context
        return next((xid for xid, one in self._contexts.items() if one == wanted), group), rest


def _context_of(attributes: Attributes) -> str | None:
    """The context that a group states; None where it states none, or the default one."""
    stated = attributes.get("confluentcontext")
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


def _is_number(versionid: str) -> bool:
    return versionid.isascii() and versionid.isdigit() and len(versionid) <= 10


@dataclass(frozen=True, slots=True)
class _ReadSchema:
    """What came of reading a source, and the documents of the catalog that it asked for on the way."""

    schema: Schema | Problem
    asked: Mapping[str, Text | None]


class SchemaLibrary:
    """The schemas of one catalog; of the one `before`, what is still the same is not read again."""

    __slots__ = ("_before", "_entities", "_ids", "_known_ids", "_names", "_read", "policy")

    def __init__(
        self,
        entities: Entities,
        before: SchemaLibrary | None = None,
        policy: SchemaPolicy = SchemaPolicy(),  # noqa: B008  # which never changes
    ) -> None:
        self._entities = entities
        self.policy = policy
        self._read: dict[bytes, _ReadSchema] = {}
        self._ids: dict[str, set[str]] | None = None
        self._names: dict[str, set[str]] | None = None
        self._known_ids: SchemaIds | None = None
        self._before: Mapping[bytes, _ReadSchema] = {} if before is None else before._known()

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

    def references(self, document: Attributes) -> tuple[str, ...]:
        """The references by which a definition names its schema."""
        return tuple(reference for _, reference in _references(document))

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
            self._known_ids = SchemaIds(self._entities)
        return self._known_ids

    def knows(self, schemaid: int, source: SchemaSource | None) -> bool:
        """Whether an id of Confluent's framing is known to be one of a definition's schema."""
        if source is None or not source.place:
            return False
        named = self.policy.ids.get(schemaid)
        if named is not None and self.are_same(named, source.place):
            return True
        return any(one.xid == source.place for one in self.ids.around(source.place).get(schemaid, ()))

    def has_ids(self, source: SchemaSource | None) -> bool:
        """Whether the catalog has ids among which that of a definition's schema would be."""
        return bool(self.ids.around("" if source is None else source.place))

    def written(self, mark: Mark, source: SchemaSource | None) -> KnownSchema | Problem | None:
        """The version that a payload was written with; None where the catalog has no ids, or no guids."""
        place = "" if source is None else source.place
        if mark.schemaid is None:
            if not self.ids.knows_guids():
                return None
            found = self.ids.by_guid(mark.guid or "", place.partition("/schemas/")[0])
            return _unknown_writer(mark, "which no schema of the catalog has") if found is None else found
        named = self._find(self.policy.ids.get(mark.schemaid, ""))
        if named is not None:
            return KnownSchema(*named)
        ids = self.ids.around(place)
        if not ids:
            return None
        same = ids.get(mark.schemaid, ())
        if not same:
            return _unknown_writer(mark, "which no schema of the catalog has (confluentid)")
        known = _one_content(same)
        return (
            _unknown_writer(mark, "which schemas of several contents have in the catalog") if known is None else known
        )

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
        known = self._read.get(key) or self._before.get(key)
        if known is None or any(self.text(source, reference) != text for reference, text in known.asked.items()):
            known = self._made(source)
        self._read[key] = known
        return known.schema

    def _known(self) -> Mapping[bytes, _ReadSchema]:
        """What was read here or before; no longer what was before, where that is much more than there are schemas."""
        most = 2 * (len(self._entities.messages) + len(self._entities.schemas))
        return {**self._before, **self._read} if len(self._before) <= most else self._read

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
        everywhere = self._by_name().get(f"{row.family} {name}", set()) - {source.place} if row is not None else set()
        group = source.place.rsplit("/", 1)[0] + "/"
        within = {xid for xid in everywhere if source.place and xid.startswith(group)}
        found = meant((within, everywhere))
        return None if found is None else self._at(found)

    def _by_id(self) -> dict[str, set[str]]:
        """The schemas of each id."""
        if self._ids is None:
            self._ids = {}
            for xid in self._entities.schemas:
                self._ids.setdefault(xid.rpartition("/")[2], set()).add(xid)
        return self._ids

    def _by_name(self) -> dict[str, set[str]]:
        """The schemas that declare each name, a format's family before it; of default versions only."""
        if self._names is None:
            found: dict[str, set[str]] = {}
            for xid, entity in self._entities.schemas.items():
                row = schemas.find(str(entity.attributes.get("format") or ""))
                text = _document(entity.attributes) if row is not None else None
                if row is not None and text is not None:
                    for name in names_of(row.family, _bytes(text)):
                        found.setdefault(f"{row.family} {name}", set()).add(xid)
            self._names = found
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
