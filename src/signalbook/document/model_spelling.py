"""The model that a client is shown, with the option names that its version has for them.

Rule 1: what `spelling` does to entities, this does to their model, so that both agree in every version.
Rule 2: nothing is changed in place; a model without types of these domains is returned as the same object.

Names of attributes (`ancestorid`, `basemessage`) are spelled where the full model is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from signalbook.spec.builtin import ENDPOINT, MESSAGE
from signalbook.spec.versions import SpecVersion

__all__ = ["spell_options"]

Attributes = dict[str, Any]


def spell_options(model: dict[str, Any], spec: SpecVersion) -> dict[str, Any]:
    """A full model with the members of `protocoloptions` named as `spec` names them, and aspects that it has."""
    if not spec.matchcase:
        model = _without_matchcase(model)
    groups = {
        plural: _group(_members(group, "attributes", spec), spec) for plural, group in model.get("groups", {}).items()
    }
    if all(group is model["groups"][plural] for plural, group in groups.items()):
        return model
    return {**model, "groups": groups}


def _without_matchcase(value: Any) -> Any:
    """A part of a model without that aspect; an attribute of this name, whose definition is an object, stays."""
    if not isinstance(value, dict):
        return value
    return {name: _without_matchcase(one) for name, one in value.items() if (name, one) != ("matchcase", True)}


def _group(group: dict[str, Any], spec: SpecVersion) -> dict[str, Any]:
    if group.get("modelcompatiblewith") == ENDPOINT and spec.address != "uri":
        group = _with_options(group, lambda _, options: _addresses(options, spec.address))
    resources = group.get("resources", {})
    spelled = {
        plural: _resource(_members(resource, "metaattributes", spec), spec) for plural, resource in resources.items()
    }
    if all(resource is resources[plural] for plural, resource in spelled.items()):
        return group
    return {**group, "resources": spelled}


def _resource(resource: dict[str, Any], spec: SpecVersion) -> dict[str, Any]:
    if resource.get("modelcompatiblewith") != MESSAGE or not spec.options:
        return resource
    return _with_options(resource, lambda protocol, options: _renamed(options, spec.options.get(protocol, {})))


def _members(kind: dict[str, Any], level: str, spec: SpecVersion) -> dict[str, Any]:
    """The type with the members of its groups' or metas' attributes named as `spec` names them."""
    for name, names in spec.members.items():
        attribute = kind.get(level, {}).get(name, {})
        if not names.keys().isdisjoint(attribute.get("attributes", {})):
            renamed = {**attribute, "attributes": _renamed(attribute["attributes"], names)}
            kind = {**kind, level: {**kind[level], name: renamed}}
    return kind


def _with_options(kind: dict[str, Any], change: Callable[[str, Attributes], Attributes]) -> dict[str, Any]:
    """The type with each protocol's options changed."""
    protocol = kind.get("attributes", {}).get("protocol", {})
    cases = {value: _case(value, case, change) for value, case in protocol.get("ifvalues", {}).items()}
    if not cases:
        return kind
    return {**kind, "attributes": {**kind["attributes"], "protocol": {**protocol, "ifvalues": cases}}}


def _case(value: str, case: dict[str, Any], change: Callable[[str, Attributes], Attributes]) -> dict[str, Any]:
    siblings = case.get("siblingattributes", {})
    options = siblings.get("protocoloptions", {})
    if "attributes" not in options:
        return case
    spelled = {**options, "attributes": change(value, options["attributes"])}
    return {**case, "siblingattributes": {**siblings, "protocoloptions": spelled}}


def _renamed(attributes: Attributes, names: Mapping[str, str]) -> Attributes:
    renamed = {}
    for name, attribute in attributes.items():
        spelled = names.get(name, name)
        renamed[spelled] = {**attribute, "name": spelled} if spelled != name and "name" in attribute else attribute
    return renamed


def _addresses(options: Attributes, address: str) -> Attributes:
    endpoints = options.get("endpoints", {})
    members = endpoints.get("item", {}).get("attributes")
    if members is None:
        return options
    item = {**endpoints["item"], "attributes": _renamed(members, {"uri": address})}
    return {**options, "endpoints": {**endpoints, "item": item}}
