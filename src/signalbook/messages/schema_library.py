"""The payload schemas of a catalog: which one a definition names, read when the first payload needs it.

Rule 1: a schema is had inline, or from the catalog itself by xid or by its own URL, with the deep links of the schema
specification after `#` or `:`. Nothing is fetched: one that lies elsewhere, or whose format or version is not
supported, is an `UncheckedSchema`, by which no payload is judged.
Rule 2: a schema of the catalog finds others as it does in a registry (`schemas.references`), and by their own URL. One
that stands in a definition has nothing beside it: there an id will do that only one schema of the catalog has.
Rule 3: what else cannot be had is a `schema_unavailable` problem; whatever a reader does, it stops nobody else.
Rule 4: a schema is read once for all definitions that name it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from signalbook import schemas
from signalbook.errors import Problem
from signalbook.jsontext import write_json
from signalbook.messages.definition import Attributes, Entities, Entity
from signalbook.messages.layered import GONE, Changes, Layered
from signalbook.model.message_rules import MAX_CHAIN
from signalbook.schemas import References, Schema, SchemaError
from signalbook.schemas.format import Located, Text
from signalbook.schemas.references import look_up, meant, names_of

__all__ = ["SchemaLibrary", "SchemaPolicy", "SchemaSource", "UncheckedSchema", "references_of"]


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

    `place` is the xid of the schema in the catalog; empty where it stands in the definition.
    """

    path: str
    format: str
    text: Text
    link: str = ""
    place: str = ""


_SCHEMAS = "/schemagroups/"
_FEWEST_HELD = 1024
# core/spec.md: where a resource's document is kept that is not kept by the registry.
_KEPT = ("schemaurl", "schemaproxyurl")


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

    __slots__ = ("_entities", "_ids", "_names", "_read", "policy", "state")

    def __init__(
        self,
        entities: Entities,
        before: SchemaLibrary | None = None,
        policy: SchemaPolicy = SchemaPolicy(),  # noqa: B008  # which never changes
    ) -> None:
        # Definitions come and go while the schemas stay: only these are held.
        self._entities = replace(entities, groups={}, messages={}, endpoints={})
        self.policy = policy
        self.state = object()
        self._read: _ReadSchemas = _ReadSchemas() if before is None else before._read
        self._read.most = max(self._read.most, 2 * (len(entities.messages) + len(entities.schemas)))
        # The schemas of each id, and those that declare each name; made when they are first asked for.
        self._ids: Layered[str, frozenset[str]] | None = None
        self._names: Layered[str, frozenset[str]] | None = None

    def changed(self, entities: Entities, schemas: Iterable[str]) -> SchemaLibrary:
        """The library of another state, in which these schemas are not the same."""
        found = SchemaLibrary(entities, self, self.policy)
        for xid in schemas:
            before, after = self._entities.schemas.get(xid), entities.schemas.get(xid)
            if self._ids is not None:
                found._ids = _moved(found._ids or self._ids, xid, _ids_of(xid, before), _ids_of(xid, after))
            if self._names is not None:
                found._names = _moved(found._names or self._names, xid, _names_of(before), _names_of(after))
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

    def knows(self, schemaid: int, source: SchemaSource | None) -> bool:
        """Whether an id of Confluent's framing is known to be one of a definition's schema."""
        named = self.policy.ids.get(schemaid)
        if named is None or source is None or not source.place:
            return False
        return self.are_same(named, source.place)

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

        def answered(reference: str) -> Text | None:
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
        return SchemaSource(path, named, text, link, xid)

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
    return hashlib.sha256(b"\0".join((*map(str.encode, names), text))).digest()


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


def _unavailable(path: str, words: str, unchecked: bool = False) -> Problem:
    return (UncheckedSchema if unchecked else Problem)(path, "schema_unavailable", words)


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}…"
