"""Schemas as Confluent's registry knows them: types, the one text of a schema, its references by name, and its guid.

Rule 1: the content of a schema is its canonical text, its references in order, its metadata and its rules. The guid is
made of that alone, so the same content has the same guid in every registry.
Rule 2: a schema finds others by the names of its references and in no other way; what those refer to is found with it.
Rule 3: a schema that cannot be read raises `SchemaError`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import md5
from typing import Any
from uuid import UUID

from signalbook import schemas
from signalbook.jsontext import encode_json
from signalbook.schemas.format import Schema, unusable
from signalbook.schemas.references import read_json

__all__ = [
    "TYPES",
    "Content",
    "NamedReferences",
    "Reference",
    "canonical_text",
    "content_of",
    "format_of",
    "guid_of",
    "is_reworded",
    "read_schema",
    "serialised",
    "type_of",
    "written_out",
]

# The types of schemas by the families of the formats.
TYPES = {"avro": "AVRO", "jsonschema": "JSON", "protobuf": "PROTOBUF"}
_SYNTAX = re.compile(r'\bsyntax\s*=\s*["\']proto3["\']')
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference: the name in the text, and the subject and the version that it means."""

    name: str
    subject: str
    version: int

    def shown(self) -> dict[str, Any]:
        """The reference as JSON has it."""
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True, slots=True)
class Content:
    """What an id stands for."""

    type: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rules: Mapping[str, Any] | None = None

    @property
    def guid(self) -> str:
        """The name of the content in every registry."""
        return guid_of(self)

    def beside(self) -> dict[str, Any]:
        """What there is beside the text, as JSON has it; without what is empty."""
        made: dict[str, Any] = {}
        if self.references:
            made["references"] = [one.shown() for one in self.references]
        if self.metadata:
            made["metadata"] = self.metadata
        if self.rules:
            made["ruleSet"] = self.rules
        return made


def type_of(format: str) -> str:
    """The type of schemas of a format; empty where Confluent's registry has none.

    >>> type_of("Avro/1.11.0"), type_of("JsonSchema/draft-07"), type_of("XSD/1.0")
    ('AVRO', 'JSON', '')
    """
    row = schemas.find(format)
    return TYPES.get(row.family, "") if row is not None else ""


def format_of(type_: str, text: str) -> str:
    """The format of a schema of a type, by its text.

    >>> format_of("PROTOBUF", 'syntax = "proto3"; message A {}'), format_of("PROTOBUF", "message A {}")
    ('Protobuf/3', 'Protobuf/2')
    """
    if type_ == "AVRO":
        return "Avro/1.11.0"
    if type_ == "JSON":
        return "JsonSchema"
    return "Protobuf/3" if _SYNTAX.search(_COMMENT.sub(" ", text)) else "Protobuf/2"


# ---- the guid


def guid_of(content: Content) -> str:
    """MD5 over the text, the references, the metadata and the rules, as a UUID.

    >>> guid_of(Content("AVRO", '"string"'))
    '095d71cf-1255-6b9d-5e33-0ad575b3df5d'
    """
    digest = md5(content.text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    for one in content.references:
        digest.update(one.name.encode() + one.subject.encode() + (one.version & 0xFFFFFFFF).to_bytes(4, "big"))
    if content.metadata:
        digest.update(b"\x01")
        _update_metadata(digest, content.metadata)
    if content.rules:
        digest.update(b"\x01")
        for part in ("migrationRules", "domainRules", "encodingRules"):
            for rule in content.rules.get(part) or ():
                digest.update(encode_json(dict(sorted(rule.items()))).encode())
        if content.rules.get("enableAt"):
            digest.update(str(content.rules["enableAt"]).encode())
    return str(UUID(bytes=digest.digest()))


def _update_metadata(digest: Any, metadata: Mapping[str, Any]) -> None:
    for path, tags in sorted((metadata.get("tags") or {}).items()):
        digest.update(path.encode())
        for tag in tags:
            digest.update(str(tag).encode())
    for name, value in sorted((metadata.get("properties") or {}).items()):
        digest.update(name.encode() + str(value).encode())
    for name in metadata.get("sensitive") or ():
        digest.update(str(name).encode())


# ---- references by name


@dataclass
class NamedReferences:
    """The texts that a schema refers to, directly or not, by the names of its references, the nearest first."""

    type: str
    texts: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, uri: str, /) -> str | None:
        """The text that a schema means by a name; None where there is none."""
        if self.type == "AVRO":
            found = self.types.get(uri)
            return encode_json(found) if found is not None else None
        name = uri.partition("#")[0]
        if name in self.texts:
            return self.texts[name]
        if self.type == "JSON":
            plain = name.removeprefix("/")
            for known, text in self.texts.items():
                bare = known.partition("#")[0].removeprefix("./")
                if bare and (bare == plain or name.endswith("/" + bare)):
                    return text
        return None

    def get(self, uri: str) -> bytes | None:
        """The same as bytes."""
        found = self(uri) if self.texts else None
        return found.encode() if found is not None else None

    @cached_property
    def types(self) -> dict[str, Any]:
        """The types that the texts define: Avro finds them by their names, whatever a reference is called."""
        found: dict[str, Any] = {}
        for text in dict.fromkeys(self.texts.values()):
            for name, one in _definitions(_json(text)).items():
                found.setdefault(name, one)
        return found


NOTHING: Mapping[str, str] = {}


def _json(text: str) -> Any:
    return read_json(text)[0]


# ---- texts


def read_schema(type_: str, text: str, texts: Mapping[str, str] = NOTHING) -> Schema:
    """The schema that a canonical text holds, found with what it refers to."""
    if not texts and len(text) <= _LARGEST_KEPT:
        return _read_alone(type_, text)
    return _read(type_, text, texts)


_LARGEST_KEPT = 64 * 1024


@lru_cache(maxsize=256)
def _read_alone(type_: str, text: str) -> Schema:
    return _read(type_, text, NOTHING)


def _read(type_: str, text: str, texts: Mapping[str, str]) -> Schema:
    if is_reworded(type_, f"{text}{''.join(texts.values())}"):
        text, texts = _in_draft_07(text), {name: _in_draft_07(one) for name, one in texts.items()}
    return schemas.read(format_of(type_, text), text, NamedReferences(type_, texts))


def is_reworded(type_: str, text: str) -> bool:
    """Tell whether a text is not read as it stands."""
    return type_ == "JSON" and any(draft in text for draft in _OLDER)


# The drafts before the seventh, which Confluent's registry takes too; they are read in words of the seventh.
_OLDER = ("json-schema.org/draft-03", "json-schema.org/draft-04", "json-schema.org/draft-06")
_DRAFT_07 = "http://json-schema.org/draft-07/schema#"
_BOUNDS = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))


def _in_draft_07(text: str) -> str:
    document = _json(text)
    stated = document.get("$schema") if isinstance(document, dict) else None
    if not isinstance(stated, str) or not any(draft in stated for draft in _OLDER):
        return text
    made = document if "draft-06" in stated else _reworded(document)
    return encode_json({**made, "$schema": _DRAFT_07})


def _reworded(value: Any) -> Any:
    """A schema of draft 4 with the words of draft 7: `$id`, and bounds that exclude as numbers."""
    if isinstance(value, list):
        return [_reworded(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: _reworded(one) for name, one in value.items()}
    if isinstance(made.get("id"), str) and "$id" not in made:
        made["$id"] = made.pop("id")
    for bound, exclusive in _BOUNDS:
        if isinstance(made.get(exclusive), bool):
            excludes = made.pop(exclusive)
            if excludes and bound in made:
                made[exclusive] = made.pop(bound)
    return made


def content_of(
    type_: str, text: str, references: object = None, metadata: object = None, rules: object = None
) -> Content:
    """The content that a stored document and what stands beside it make up; what is of another shape is left out."""
    found = []
    for one in references if isinstance(references, list) else ():
        if isinstance(one, dict) and isinstance(one.get("name"), str) and isinstance(one.get("subject"), str):
            number = one.get("version")
            if isinstance(number, int) and not isinstance(number, bool):
                found.append(Reference(one["name"], one["subject"], number))
    return Content(
        type_, text, tuple(found), metadata if isinstance(metadata, dict) else None,
        rules if isinstance(rules, dict) else None,
    )  # fmt: skip


def canonical_text(type_: str, text: str, texts: Mapping[str, str] = NOTHING, *, normalise: bool = False) -> str:
    """The one text of a schema; normalised, more of what says the same has the same text."""
    if type_ == "AVRO":
        document = _json(text)
        return _printed(_json(_normalised(document)) if normalise else document)
    if type_ == "JSON":
        document = _json(text)
        return encode_json(_sorted(document) if normalise else document)
    if type_ == "PROTOBUF":
        return _proto_text(text, texts, normalise)
    raise unusable(f"{type_} is not one of {', '.join(TYPES.values())}")


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def _proto_text(text: str, texts: Mapping[str, str], normalise: bool) -> str:
    from signalbook.schemas.protobuf import source

    described = _descriptor(text)
    file = source.of_descriptor(described) if described is not None else source.parse(text)
    if normalise:
        return source.resolved(file, _compiled(file.text(), texts)).text()
    return file.text()


def _descriptor(text: str) -> Any:
    """The file that a text is the descriptor of, in base64; None where it is not one."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        raw = base64.b64decode(text, validate=True)
        made = FileDescriptorProto.FromString(raw)
    except (binascii.Error, ValueError, DecodeError):
        return None
    return made if made.message_type or made.enum_type or made.name or made.dependency else None


def _compiled(text: str, texts: Mapping[str, str]) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    schema: Any = read_schema("PROTOBUF", text, texts)
    return FileDescriptorProto.FromString(schema.file.serialized_pb)


def serialised(text: str, texts: Mapping[str, str] = NOTHING) -> str:
    """A Protobuf text as its descriptor, in base64."""
    made = _compiled(text, texts)
    made.name = "default"
    return base64.b64encode(made.SerializeToString()).decode()


def written_out(content: Content, texts: Mapping[str, str]) -> str:
    """An Avro text with the definitions that it refers to written into it."""
    if content.type != "AVRO" or not texts:
        return content.text
    return _printed(_json(content.text), NamedReferences("AVRO", texts).types)


# ---- Avro: as its Java library prints a schema, normalised, and written out
#
# Rule 1: names, not the way they are written, are what a schema says: a dotted name is a name and a namespace, and a
# namespace that is the one around is left out.
# Rule 2: documentation, defaults, aliases and other properties are part of a schema; the order of members is not.
# Rule 3: a type that another document defines is a name here; written out, its definition stands where it comes first.

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_SCHEMA_MEMBERS = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
_FIELD_MEMBERS = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_DEEPEST = 200


def _printed(document: Any, others: Mapping[str, Any] | None = None) -> str:
    """A schema as Java prints it; definitions of `others`, by full name, are written out where they first come."""
    return encode_json(_AvroPrinter(dict(others or {})).schema(document, "", 0))


def _normalised(document: Any) -> str:
    """A schema with full names and its members in a fixed order."""
    return encode_json(_AvroNormaliser().schema(document, "", 0))


def _definitions(document: Any) -> dict[str, Any]:
    """The named types that a schema defines, by full name, each as a schema of its own."""
    found: dict[str, Any] = {}
    waiting: list[tuple[Any, str]] = [(document, "")]
    while waiting:
        one, space = waiting.pop()
        if isinstance(one, list):
            waiting.extend((member, space) for member in one)
        elif isinstance(one, dict):
            kind = one.get("type")
            if isinstance(kind, str) and kind in _NAMED and isinstance(one.get("name"), str):
                name, space = _split_name(one["name"], one.get("namespace"), space)
                found.setdefault(_full(name, space), {**one, "name": name, "namespace": space})
                fields = one.get("fields")
                waiting.extend((field.get("type"), space) for field in fields or () if isinstance(field, dict))
            elif isinstance(kind, list | dict):
                waiting.append((kind, space))
            else:
                waiting.extend((one[part], space) for part in ("items", "values") if part in one)
    return found


def _split_name(name: str, given: Any, around: str) -> tuple[str, str]:
    """The name and the namespace of a named type."""
    space, dot, last = name.rpartition(".")
    if dot:
        return last, space
    return name, given if isinstance(given, str) else around


def _full(name: str, space: str) -> str:
    return f"{space}.{name}" if space else name


def _bound(depth: int) -> None:
    if depth > _DEEPEST:
        raise unusable(f"types are nested more than {_DEEPEST} deep")


class _AvroPrinter:
    """One printing; a definition that came once is a name afterwards."""

    def __init__(self, others: dict[str, Any]) -> None:
        self._others = others

    def schema(self, one: Any, space: str, depth: int) -> Any:
        _bound(depth)
        if isinstance(one, str):
            return self._reference(one, space, depth)
        if isinstance(one, list):
            return [self.schema(member, space, depth + 1) for member in one]
        if not isinstance(one, dict):
            raise unusable("a schema is a name, an object or a list")
        kind = one.get("type")
        if not isinstance(kind, str):
            if kind is None:
                raise unusable("an object has no type")
            return self.schema(kind, space, depth + 1)  # as Java, which takes the type for the whole
        if kind in _NAMED:
            return self._named(one, kind, space, depth)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            inner = self.schema(one.get(part), space, depth + 1)
            return {"type": kind, part: inner, **_properties(one, _SCHEMA_MEMBERS)}
        others = _properties(one, _SCHEMA_MEMBERS)
        if kind in _PRIMITIVES:
            return {"type": kind, **others} if others else kind
        return self._reference(kind, space, depth)

    def _reference(self, name: str, space: str, depth: int) -> Any:
        if name in _PRIMITIVES:
            return name
        full = name if "." in name else _full(name, space)
        for known in (full, name):
            if known in self._others:
                return self.schema(self._others.pop(known), space, depth + 1)
        around, _, last = full.rpartition(".")
        return last if around == space else full if "." in name else name

    def _named(self, one: dict[str, Any], kind: str, around: str, depth: int) -> dict[str, Any]:
        if not isinstance(one.get("name"), str):
            raise unusable(f"a type {kind} has no name")
        name, space = _split_name(one["name"], one.get("namespace"), around)
        self._others.pop(_full(name, space), None)
        made: dict[str, Any] = {"type": kind, "name": name}
        if space != around:
            made["namespace"] = space
        if isinstance(one.get("doc"), str):
            made["doc"] = one["doc"]
        if kind in ("record", "error"):
            made["fields"] = [self._field(field, space, depth) for field in one.get("fields") or ()]
        elif kind == "enum":
            made["symbols"] = one.get("symbols")
            if "default" in one:
                made["default"] = one["default"]
        else:
            made["size"] = one.get("size")
        reserved = _SCHEMA_MEMBERS | {"default"} if kind == "enum" else _SCHEMA_MEMBERS
        made.update(_properties(one, reserved))
        aliases = [_relative(alias, space) for alias in _aliases(one)]
        if aliases:
            made["aliases"] = aliases
        return made

    def _field(self, field: Any, space: str, depth: int) -> dict[str, Any]:
        if not isinstance(field, dict) or "type" not in field:
            raise unusable("a field is an object with a type")
        made: dict[str, Any] = {"name": field.get("name"), "type": self.schema(field["type"], space, depth + 1)}
        if isinstance(field.get("doc"), str):
            made["doc"] = field["doc"]
        if "default" in field:
            made["default"] = field["default"]
        if isinstance(field.get("order"), str) and field["order"].lower() != "ascending":
            made["order"] = field["order"].lower()
        if _aliases(field):
            made["aliases"] = _aliases(field)
        made.update(_properties(field, _FIELD_MEMBERS))
        return made


class _AvroNormaliser:
    """The same with full names and members in the order of the parsing canonical form."""

    def schema(self, one: Any, space: str, depth: int) -> Any:
        _bound(depth)
        if isinstance(one, str):
            return one if one in _PRIMITIVES or "." in one else _full(one, space)
        if isinstance(one, list):
            return [self.schema(member, space, depth + 1) for member in one]
        if not isinstance(one, dict):
            raise unusable("a schema is a name, an object or a list")
        kind = one.get("type")
        if not isinstance(kind, str):
            return self.schema(kind, space, depth + 1)
        others = dict(
            sorted(_properties(one, _SCHEMA_MEMBERS | {"default"} if kind == "enum" else _SCHEMA_MEMBERS).items())
        )
        if kind in _NAMED:
            return self._named(one, kind, space, depth, others)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            return {"type": kind, part: self.schema(one.get(part), space, depth + 1), **others}
        if kind in _PRIMITIVES:
            return {"type": kind, **others} if others else kind
        return kind if "." in kind else _full(kind, space)

    def _named(self, one: dict[str, Any], kind: str, around: str, depth: int, others: dict[str, Any]) -> dict[str, Any]:
        name, space = _split_name(str(one.get("name")), one.get("namespace"), around)
        made: dict[str, Any] = {"name": _full(name, space), "type": kind}
        if isinstance(one.get("doc"), str):
            made["doc"] = one["doc"]
        if kind in ("record", "error"):
            made["fields"] = [self._field(field, space, depth) for field in one.get("fields") or ()]
        elif kind == "enum":
            made["symbols"] = one.get("symbols")
            if "default" in one:
                made["default"] = one["default"]
        else:
            made["size"] = one.get("size")
        if _aliases(one):
            made["aliases"] = sorted({alias if "." in alias else _full(alias, space) for alias in _aliases(one)})
        return {**made, **others}

    def _field(self, field: Any, space: str, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"name": field.get("name"), "type": self.schema(field["type"], space, depth + 1)}
        if isinstance(field.get("doc"), str):
            made["doc"] = field["doc"]
        if "default" in field:
            made["default"] = field["default"]
        if isinstance(field.get("order"), str) and field["order"].lower() != "ascending":
            made["order"] = field["order"].lower()
        if _aliases(field):
            made["aliases"] = sorted(set(_aliases(field)))
        return {**made, **dict(sorted(_properties(field, _FIELD_MEMBERS).items()))}


def _properties(one: Mapping[str, Any], reserved: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name not in reserved}


def _aliases(one: Mapping[str, Any]) -> list[str]:
    given = one.get("aliases")
    return [alias for alias in given if isinstance(alias, str)] if isinstance(given, list) else []


def _relative(alias: str, space: str) -> str:
    around, dot, last = alias.rpartition(".")
    return last if dot and around == space else alias
