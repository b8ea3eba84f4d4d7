"""A registry's model as a value: its Group types, their Resource types, and the compiled levels of each.

Rule 1: a `Model` is whole and verified; `model_read.read_model` is the only way to get one.
Rule 2: a Resource type that several Group types have (`ximportresources`) is one object, so `is` says "same type".
Rule 3: the full model (`full`) writes every aspect that has a value, in the order of core/model.md; an imported
Resource type appears as its Group type's own (MODEL-19).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from signalbook.document.attribute import Attributes
from signalbook.document.constraint import Constraint
from signalbook.document.entity import Level
from signalbook.document.spec_attributes import SPECVERSION

__all__ = ["GroupType", "Model", "ResourceType"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResourceType:
    """One Resource type, its aspects under the names of core/model.md; `origin` is the xidtype it is defined at."""

    plural: str
    singular: str
    origin: str
    description: str = ""
    documentation: str = ""
    icon: str = ""
    labels: Mapping[str, str]
    modelversion: str = ""
    modelcompatiblewith: str = ""
    maxversions: int = 0
    setversionid: bool = True
    hasdocument: bool = True
    versionmode: str = "manual"
    singleversionroot: bool = False
    validateformat: bool = False
    validatecompatibility: bool = False
    strictvalidation: bool = False
    typemap: Mapping[str, str]
    attributes: Attributes
    resourceattributes: Attributes
    metaattributes: Attributes
    version_level: Level
    meta_level: Level
    matchversions: tuple[tuple[str, ...], ...] = ()

    def content_kind(self, contenttype: str) -> str:
        """How a document of this media type is shown inside JSON: `json`, `string` or `binary` (DOC-13)."""
        media = contenttype.partition(";")[0].strip().lower()
        for typemap in (self.typemap, _IMPLICIT_TYPEMAP):
            kinds = {kind for pattern, kind in typemap.items() if _wildcard_match(pattern, media)}
            if kinds:
                return kinds.pop() if len(kinds) == 1 else "binary"
        return "binary"

    def full(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Its part of the full model, with Version attributes respelled by `names`."""
        shown = {"plural": self.plural, "singular": self.singular, **_header(self, *_HEADER)}
        shown |= {aspect: getattr(self, aspect) for aspect in _ALWAYS_SHOWN}
        if self.typemap:
            shown["typemap"] = dict(sorted(self.typemap.items()))
        shown["attributes"] = _attributes(self.attributes, names)
        shown["resourceattributes"] = _attributes(self.resourceattributes)
        shown["metaattributes"] = _attributes(self.metaattributes)
        return shown


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupType:
    """One Group type; `resources` holds its own and the imported Resource types, `ximports` names the latter."""

    plural: str
    singular: str
    description: str = ""
    documentation: str = ""
    icon: str = ""
    labels: Mapping[str, str]
    modelversion: str = ""
    modelcompatiblewith: str = ""
    attributes: Attributes
    ximports: tuple[str, ...] = ()
    constraints: Mapping[str, Constraint]
    resources: Mapping[str, ResourceType]
    level: Level

    def full(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Its part of the full model."""
        shown = {"plural": self.plural, "singular": self.singular, **_header(self, *_HEADER)}
        shown["attributes"] = _attributes(self.attributes)
        if self.constraints:
            shown["constraints"] = {key: constraint.to_dict() for key, constraint in self.constraints.items()}
        if self.resources:
            shown["resources"] = {plural: resource.full(names) for plural, resource in self.resources.items()}
        return shown


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """A registry's model."""

    description: str = ""
    documentation: str = ""
    labels: Mapping[str, str]
    attributes: Attributes
    groups: Mapping[str, GroupType]
    level: Level

    def full(self, specversion: str = SPECVERSION, names: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What `GET /model` shows; `names` respells Version attributes, as in {"ancestorid": "ancestor"}."""
        spelling = names or {}
        shown = _header(self, "description", "documentation", "labels")
        shown["attributes"] = _attributes(self.attributes)
        shown["attributes"]["specversion"]["default"] = specversion
        if self.groups:
            shown["groups"] = {plural: group.full(spelling) for plural, group in self.groups.items()}
        return shown


_HEADER = ("description", "documentation", "icon", "labels", "modelversion", "modelcompatiblewith")
_ALWAYS_SHOWN = (
    *("maxversions", "setversionid", "hasdocument", "versionmode"),
    *("singleversionroot", "validateformat", "validatecompatibility", "strictvalidation"),
)


def _header(type_: Model | GroupType | ResourceType, *aspects: str) -> dict[str, Any]:
    values = ((aspect, getattr(type_, aspect)) for aspect in aspects)
    return {aspect: dict(value) if aspect == "labels" else value for aspect, value in values if value}


def _attributes(attributes: Attributes, names: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    shown = {}
    for name, attribute in attributes.items():
        spelling = names.get(name, name)
        shown[spelling] = {**attribute.to_dict(), "name": spelling}
    return shown


# core/model.md 1.0-rc4, `groups.<STRING>.resources.<STRING>.typemap`
_IMPLICIT_TYPEMAP = {"application/json": "json", "*+json": "json", "text/plain": "string"}


def _wildcard_match(pattern: str, text: str) -> bool:
    """Whether `text` is `pattern`, each `*` of which stands for any characters."""
    head, *pieces = pattern.lower().split("*")
    if not pieces:
        return head == text
    tail = pieces.pop()
    if len(text) < len(head) + len(tail) or not (text.startswith(head) and text.endswith(tail)):
        return False
    rest = text[len(head) : len(text) - len(tail)]
    for piece in pieces:
        found = rest.find(piece)
        if found < 0:
            return False
        rest = rest[found + len(piece) :]
    return True
