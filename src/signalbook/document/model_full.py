"""The full model: what `GET /model` shows.

Rule: every aspect that has a value is written, aspects with a default always, in the order of core/model.md; imported
Resource types appear as their own, and `ximportresources` does not (MODEL-19).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from signalbook.document.attribute import Attributes

if TYPE_CHECKING:
    from signalbook.document.model import GroupType, Model, ResourceType

__all__ = ["full_model"]

_HEADER = ("description", "documentation", "icon", "labels", "modelversion", "modelcompatiblewith")
_ALWAYS = (
    *("maxversions", "setversionid", "hasdocument", "versionmode"),
    *("singleversionroot", "validateformat", "validatecompatibility", "strictvalidation"),
)


def full_model(model: Model, specversion: str, names: Mapping[str, str]) -> dict[str, Any]:
    """The full model in the spelling of one specification version."""
    shown = _header(model, ("description", "documentation", "labels"))
    shown["attributes"] = _attributes(model.attributes)
    shown["attributes"]["specversion"]["default"] = specversion
    if model.groups:
        shown["groups"] = {plural: _group(group, names) for plural, group in model.groups.items()}
    return shown


def _group(group: GroupType, names: Mapping[str, str]) -> dict[str, Any]:
    shown = {"plural": group.plural, "singular": group.singular, **_header(group, _HEADER)}
    shown["attributes"] = _attributes(group.attributes)
    if group.constraints:
        shown["constraints"] = {key: constraint.to_dict() for key, constraint in group.constraints.items()}
    if group.resources:
        shown["resources"] = {plural: _resource(resource, names) for plural, resource in group.resources.items()}
    return shown


def _resource(resource: ResourceType, names: Mapping[str, str]) -> dict[str, Any]:
    shown = {"plural": resource.plural, "singular": resource.singular, **_header(resource, _HEADER)}
    shown |= {aspect: getattr(resource, aspect) for aspect in _ALWAYS}
    if resource.typemap:
        shown["typemap"] = dict(sorted(resource.typemap.items()))
    shown["attributes"] = _attributes(resource.attributes, names)
    shown["resourceattributes"] = _attributes(resource.resourceattributes)
    shown["metaattributes"] = _attributes(resource.metaattributes)
    return shown


def _header(type_: Model | GroupType | ResourceType, aspects: tuple[str, ...]) -> dict[str, Any]:
    values = ((aspect, getattr(type_, aspect)) for aspect in aspects)
    return {aspect: dict(value) if aspect == "labels" else value for aspect, value in values if value}


def _attributes(attributes: Attributes, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    shown = {}
    for name, attribute in attributes.items():
        spelling = (names or {}).get(name, name)
        shown[spelling] = {**attribute.to_dict(), "name": spelling}
    return shown
