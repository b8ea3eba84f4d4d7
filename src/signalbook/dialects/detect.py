"""Which dialect a document is in: the one that its label names, else the one that its members show.

Rule 1: a label (`specversion`) that is there is believed. Members decide between texts that share a label, and where
there is none; a member that the labelled dialect does not know is an extension attribute of its entity.
Rule 2: an entity is of 1.0 where it has a name of 1.0, and of 0.5 where it has none and has `TELLING` names of 0.5 or
more. A document whose entities are not all of what its label says, or of one dialect, is refused.
Rule 3: a document without any sign fits all of 1.0, and is taken for the default; one that has members, and none of a
catalog, is not a catalog document. A label that is not a text is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from signalbook.errors import Problem, UsageError
from signalbook.jsontext import Json
from signalbook.model.normalise import PROPERTY, is_event
from signalbook.protocols.message import find_protocol
from signalbook.spec.dialects import DIALECTS
from signalbook.spec.dialects.dialect import CANONICAL, Dialect, Sign
from signalbook.spec.versions import DEFAULT, plain_label

__all__ = ["Detection", "ForeignDocument", "detect", "level_of", "relabelled"]

# So many names of 0.5 make an entity one of 0.5 under a label that says otherwise; one alone may be an extension.
TELLING = 2
_SHOWN = 5


class ForeignDocument(UsageError):
    """A document that is not a catalog document; `known` where it is known what it is instead."""

    def __init__(self, words: str, *, known: bool = False) -> None:
        super().__init__(words)
        self.known = known


@dataclass(frozen=True, slots=True)
class Detection:
    """A document's dialect, the label it carries, and where the sign that decided was found."""

    dialect: Dialect
    label: str
    why: str


def detect(document: Any) -> Detection:
    """The dialect of a document, or of a part of one; raises `UsageError` where it has none, or several."""
    label = _label(document)
    named = [dialect for dialect in DIALECTS.values() if dialect.label and dialect.label == plain_label(label)]
    if not named:
        _refuse_foreign(document)
    entities = list(_entities(document))
    members = _members(document, entities)
    older, newer = _sides(entities)
    if named:
        _refuse_relabelled(label, named[-1], older, newer)
        found = _first(named, members, ("name",))
        return found or Detection(_written_dialect(named), label, f"/ has 'specversion' {label}")
    mixed = [one for one in older if len(one.older) >= TELLING] if newer else []
    if mixed:
        raise _mixture(mixed[0], next((one for one in mixed if one.newer), newer[0]))
    known = [dialect for dialect in DIALECTS.values() if not newer or dialect.modern]
    found = _first(known, members, ("name", "shared"))
    return found or Detection(DIALECTS[DEFAULT.name], label, "")


def relabelled(found: Detection) -> Iterator[Problem]:
    """A note where a document has a label that no dialect has: it is taken for something that it does not say."""
    if found.label and plain_label(found.label) not in _LABELS:
        words = f'"{found.label}" is not the label of a known dialect; the document is read as {found.dialect.name}'
        yield Problem("/specversion", "changed", words)


_LABELS = frozenset(dialect.label for dialect in DIALECTS.values() if dialect.label)


def _label(document: Any) -> str:
    """The label of a document, or the one that the members of a list have; raises `UsageError` where it is not one."""
    members = document if isinstance(document, list) else [document]
    labels = [label for one in members if isinstance(one, dict) and (label := one.get("specversion")) is not None]
    for label in labels:
        if not isinstance(label, str) or not label.strip():
            shown = orjson.dumps(label, default=str).decode()
            words = f'must be a text such as "{DEFAULT.name}", and {shown} is not; correct the label, or leave it out'
            raise UsageError(f'the label "specversion" {words}')
        if plain_label(label) != plain_label(labels[0]):
            words = "a document has one; correct the labels, or write a document for each"
            raise UsageError(f'the labels of the list are "{labels[0]}" and "{label}", and {words}')
    return labels[0] if labels else ""


def _written_dialect(named: list[Dialect]) -> Dialect:
    """Of the texts that share a label, the one that is written: the others differ from it by signs."""
    return next((dialect for dialect in named if dialect.written), named[-1])


def _first(dialects: list[Dialect], members: _SeenMembers, ranks: tuple[str, ...]) -> Detection | None:
    for rank in ranks:
        for dialect in dialects:
            for sign in dialect.signs:
                if sign.rank == rank and (place := _seen(sign, members)):
                    return Detection(dialect, members.label, place)
    return None


def _seen(sign: Sign, members: _SeenMembers) -> str:
    if sign.beside and (sign.level, sign.beside) not in members.found:
        return ""
    for value, place in members.found.get((sign.level, sign.name), ()):
        if isinstance(value, sign.kind) and (not sign.text or value == sign.text):
            return f"{place or '/'} has '{sign.name}'" + (f" {sign.text}" if sign.text else "")
    return ""


# --- one dialect, or several ------------------------------------------------------------------------------------------

# Names that one side has and the other has not, for groups and for resources, and what their values look like.
_IDS = frozenset({"xid", "registryid", "messagegroupid", "messageid", "schemagroupid", "schemaid", "endpointid"})
_NEWER: Mapping[str, frozenset[str]] = {
    "registry": _IDS,
    "group": _IDS | {"envelope", "protocol", "protocoloptions", "envelopeoptions"},
    "message": _IDS
    | {"envelope", "envelopemetadata", "envelopeoptions", "protocol", "protocoloptions", "basemessage"}
    | {"basemessageuri", "dataschema", "dataschemaformat", "dataschemauri", "dataschemaxid", "datacontenttype"}
    | {"ancestor", "ancestorid", "meta", "metaurl"},
    "schema": _IDS | {"ancestor", "ancestorid", "meta", "metaurl"},
}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _definitions(value: Any) -> bool:
    """Whether a value is a map of property definitions, or of maps of them."""
    return isinstance(value, dict) and bool(value) and all(isinstance(member, dict) for member in value.values())


def _object(value: Any) -> bool:
    return isinstance(value, dict)


_OLDER: Mapping[str, Mapping[str, Callable[[Any], bool]]] = {
    "registry": {"definitionGroups": _object, "schemaGroups": _object, "definitions": lambda v: isinstance(v, list)},
    "group": {"id": _is_text, "format": _is_text, "binding": _is_text, "config": _object},
    "message": {
        "id": _is_text,
        "format": _is_text,
        "binding": _is_text,
        "metadata": _definitions,
        "message": _object,
        "schemaformat": _is_text,
        "schemaurl": _is_text,
        "definition": _object,
    },
    "schema": {"id": _is_text},
}


@dataclass(frozen=True, slots=True)
class _DetectedEntity:
    """One entity of a document: its place, its kind, its members, and the names that are of one side only."""

    place: str
    kind: str
    content: Json

    @property
    def older(self) -> list[str]:
        """Its names of 0.5 and before."""
        return [name for name, is_so in _OLDER.get(self.kind, {}).items() if is_so(self.content.get(name))]

    @property
    def newer(self) -> list[str]:
        """Its names of 1.0."""
        return sorted(_NEWER.get(self.kind, frozenset()) & self.content.keys())

    def named(self, names: list[str]) -> str:
        """Some of its members, in words."""
        return f"{self.place or '/'} has " + ", ".join(f'"{name}"' for name in names[:_SHOWN])


def _sides(entities: list[_DetectedEntity]) -> tuple[list[_DetectedEntity], list[_DetectedEntity]]:
    """The entities that are of 0.5 or before, and those of 1.0; where one has names of both, the ids tell."""
    newer = [one for one in entities if one.newer]
    certain = {one.place for one in newer if _IDS & set(one.newer) or len(one.older) < TELLING}
    older = [one for one in entities if one.older and one.place not in certain]
    return older, newer


def _refuse_relabelled(label: str, named: Dialect, older: list[_DetectedEntity], newer: list[_DetectedEntity]) -> None:
    """Refuse a document whose label says one thing and whose entities are another."""
    if named.modern:
        wrong = [one for one in older if not one.newer and (len(one.older) >= TELLING or one.kind == "registry")]
        if wrong:
            words = "as documents before 1.0 have; correct the label, or say what it is: signalbook convert --from"
            raise UsageError(f'the label is "{label}", but {_all_named(wrong, "older")}, {words}')
        return
    wrong = [one for one in newer if not one.older and (_IDS & set(one.newer) or len(one.newer) >= TELLING)]
    if wrong:
        words = "as documents of 1.0 have; correct the label, or say what it is: signalbook convert --from"
        raise UsageError(f'the label is "{label}", but {_all_named(wrong, "newer")}, {words}')


def _all_named(entities: list[_DetectedEntity], side: str) -> str:
    """Entities and their members of one side, in words: so many as a reader can do with."""
    words = ", and ".join(one.named(getattr(one, side)) for one in entities[:_SHOWN])
    left = len(entities) - _SHOWN
    return f"{words} (and {left} more entities)" if left > 0 else words


def _mixture(older: _DetectedEntity, newer: _DetectedEntity) -> UsageError:
    words = "which no one dialect has; label it with its specversion, or say what it is: signalbook convert --from"
    if older.place == newer.place:
        return UsageError(f"{older.named(older.older)} beside {_quoted(newer.newer)}, {words}")
    return UsageError(f"{older.named(older.older)}, and {newer.named(newer.newer)}, {words}")


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names[:_SHOWN])


# --- none of ours -----------------------------------------------------------------------------------------------------

# The members that give other kinds of documents away.
_FOREIGN: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"asyncapi"}), "an AsyncAPI document"),
    (frozenset({"openapi"}), "an OpenAPI document"),
    (frozenset({"swagger"}), "an OpenAPI document"),
    (frozenset({"specversion", "type", "source"}), "a CloudEvent"),
    (frozenset({"apiVersion", "kind"}), "a Kubernetes manifest"),
    (frozenset({"type", "name", "fields"}), "an Avro schema"),
    (frozenset({"$schema"}), "a JSON Schema"),
    (frozenset({"$defs"}), "a JSON Schema"),
    (frozenset({"$ref"}), "a JSON Schema"),
    (frozenset({"type", "properties"}), "a JSON Schema"),
    (frozenset({"type", "definitions"}), "a JSON Schema"),
)


def _refuse_foreign(document: Any) -> None:
    """Refuse what has no member of a catalog."""
    members = document if isinstance(document, list) else [document]
    if not members:
        raise ForeignDocument("is not a catalog document: it is an empty list", known=True)
    if not all(isinstance(member, dict) for member in members):
        raise ForeignDocument("is not a catalog document: a catalog document is one JSON object", known=True)
    for member in members:
        if not member or _is_ours(member):
            continue
        for names, kind in _FOREIGN:
            if names <= member.keys():
                raise ForeignDocument(
                    f"is not a catalog document but {kind} (it has {_quoted(sorted(names))})", known=True
                )
        raise ForeignDocument(
            f"is not a catalog document: it has {_quoted(list(member))}, and none of the members that tell a catalog"
        )


def _is_ours(document: Json) -> bool:
    """Whether a document without a label has members that only catalogs have, or two that catalogs have too."""
    if document.keys() & (_TELLING | _IDS | _REGISTRY):
        return True
    if any(names <= document.keys() for names, _ in _FOREIGN):
        return False
    if isinstance(document.get("messages"), dict) or isinstance(document.get("schemas"), dict):
        return True
    if any(isinstance(document.get(name), dict | list) for name in ("definitions", "versions")):
        # which schemas and other documents have too
        return "id" in document or any(map(_is_definition, _below(document, "definitions", "versions")))
    return len(document.keys() & (_MESSAGE | {"id", "usage", "config", "origin", "channel"})) > 1


def _below(document: Json, *names: str) -> Iterator[Any]:
    for name in names:
        value = document.get(name)
        yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _is_definition(value: Any) -> bool:
    """Whether a member of a map or list that schemas have too is one of a catalog."""
    return isinstance(value, dict) and (bool(value.keys() & _DEFINITION) or {"id", "format"} <= value.keys())


# --- the members of a document ----------------------------------------------------------------------------------------


def level_of(document: Any) -> str:
    """What a document holds: a registry, or one entity by itself."""
    if not isinstance(document, dict):
        return "registry"
    if document.get("xid") == "/":
        return "registry"
    for name, level in _LEVELS[:_WITH_ID]:
        if name in document:
            return level
    if any(isinstance(document.get(name), dict) for name in _REGISTRY) or "registryid" in document:
        return "registry"
    for name, level in _LEVELS[_WITH_ID:]:
        if name in document:
            return level
    return "message" if document.keys() & _MESSAGE else "registry"


_REGISTRY = CANONICAL.keys() | {"definitionGroups", "schemaGroups", "registryid"}
_LEVELS = (
    ("messagegroupid", "messagegroup"),
    ("schemagroupid", "schemagroup"),
    ("endpointid", "endpoint"),
    ("schemaid", "schema"),
    ("messageid", "message"),
    ("usage", "endpoint"),
    ("config", "endpoint"),
    ("messages", "messagegroup"),
    ("definitions", "messagegroup"),
    ("schemas", "schemagroup"),
)
_WITH_ID = 5
_TELLING = frozenset(
    {"envelope", "envelopemetadata", "envelopeoptions", "protocoloptions", "basemessage", "basemessageuri"}
    | {"basemessageurl", "dataschema", "dataschemaformat", "dataschemauri", "dataschemaxid", "schemaformat"}
    | {"binding", "modelsource", "capabilities"}
)
_MESSAGE = _TELLING - {"modelsource", "capabilities"} | frozenset(
    {"protocol", "datacontenttype", "ancestorid", "ancestor", "format", "binding", "metadata", "message"}
    | {"schemaurl", "definition", "xref"}
)
_DEFINITION = (_TELLING | _IDS | {"protocol", "metadata", "message", "definition", "schemaurl"}) - {"capabilities"}
_KINDS = {"messagegroup": "group", "schemagroup": "group", "endpoint": "group", "registry": "registry"}
_COLLECTIONS: Mapping[str, Mapping[str, str]] = {
    "registry": dict.fromkeys((*CANONICAL, "definitionGroups", "schemaGroups"), "group"),
    "group": {"messages": "message", "definitions": "message", "schemas": "schema"},
    "message": {"versions": "message"},
    "schema": {"versions": "schema"},
}
# Where property definitions stand, and by which selector they are those of the specification.
_PROPERTIES: Mapping[str, tuple[str, Callable[[Any], object]]] = {
    "metadata": ("format", is_event),
    "envelopemetadata": ("envelope", is_event),
    "message": ("binding", find_protocol),
    "protocoloptions": ("protocol", find_protocol),
}


@dataclass(frozen=True, slots=True)
class _SeenMembers:
    """Every distinct member by level and name; of values of one name, the first of each text or type."""

    label: str
    found: Mapping[tuple[str, str], list[tuple[Any, str]]]


def _members(document: Any, entities: list[_DetectedEntity]) -> _SeenMembers:
    found: dict[tuple[str, str], list[tuple[Any, str]]] = defaultdict(list)
    kept: set[tuple[str, str, object]] = set()
    for root in document if isinstance(document, list) else [document]:
        for name, value in root.items() if isinstance(root, dict) else ():
            found["registry", name].append((value, ""))  # a root's own count as the registry's too: of 0.1, or a label
    for entity in entities:
        for kind, name, value, place in _own(entity):
            mark = (kind, name, value if isinstance(value, str) and len(value) < 32 else type(value))
            if mark not in kept:
                kept.add(mark)
                found[kind, name].append((value, place))
    return _SeenMembers(_label(document), found)


def _entities(document: Any) -> Iterator[_DetectedEntity]:
    for root in document if isinstance(document, list) else [document]:
        if isinstance(root, dict):
            level = level_of(root)
            yield from _walk(root, _KINDS.get(level, level), "")


def _walk(entity: Json, kind: str, place: str) -> Iterator[_DetectedEntity]:
    yield _DetectedEntity(place, kind, entity)
    for name, below in _COLLECTIONS.get(kind, {}).items():
        value = entity.get(name)
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, member in members:
            if isinstance(member, dict):
                yield from _walk(member, below, f"{place}/{name}/{key}")


def _own(entity: _DetectedEntity) -> Iterator[tuple[str, str, Any, str]]:
    for name, value in entity.content.items():
        yield entity.kind, name, value, entity.place
        if entity.kind in ("message", "schema"):
            yield "resource", name, value, entity.place
        if name in _PROPERTIES and entity.kind == "message" and isinstance(value, dict) and _is_known(entity, name):
            yield from _definitions_in(value, f"{entity.place}/{name}", 4)


def _is_known(entity: _DetectedEntity, name: str) -> bool:
    """Whether the message's own selector gives its properties a meaning: those of others tell nothing of a dialect."""
    selector, find = _PROPERTIES[name]
    return bool(find(entity.content.get(selector)))


def _definitions_in(value: Json, place: str, depth: int) -> Iterator[tuple[str, str, Any, str]]:
    for key, member in value.items():
        if isinstance(member, dict):
            if member.keys() <= PROPERTY:
                for name, text in member.items():
                    yield "property", name, text, f"{place}/{key}"
            elif depth:
                yield from _definitions_in(member, f"{place}/{key}", depth - 1)
