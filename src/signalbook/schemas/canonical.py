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

    @cached_property
    def types(self) -> dict[str, Any]:
        """The types that the texts define: Avro finds them by their names, whatever a reference is called."""
        from signalbook.schemas.avro import source

        found: dict[str, Any] = {}
        for text in dict.fromkeys(self.texts.values()):
            for name, one in source.definitions(_json(text)).items():
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
    if type_ == "JSON" and any(draft in f"{text}{''.join(texts.values())}" for draft in _OLDER):
        text, texts = _in_draft_07(text), {name: _in_draft_07(one) for name, one in texts.items()}
    return schemas.read(format_of(type_, text), text, NamedReferences(type_, texts))


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
        from signalbook.schemas.avro import source

        document = _json(text)
        return source.printed(_json(source.normalised(document)) if normalise else document)
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
    from signalbook.schemas.avro import source

    if content.type != "AVRO" or not texts:
        return content.text
    return source.printed(_json(content.text), NamedReferences("AVRO", texts).types)
