"""Reading a model document ("modelsource") into a `Model`.

Rule 1: names first: Group types, Resource types and imports are settled before any attribute is read, since
attributes refer to types.
Rule 2: the first fault raises; its words name the place by its path in the document.
Rule 3: aspects of older versions that mean something a newer one also says are rewritten by table, then read.

core/model.md 1.0-rc4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from signalbook.document import spec_attributes
from signalbook.document.attribute import Attributes, model_error
from signalbook.document.attribute_read import Place, aspects, check_labels, read_attributes
from signalbook.document.constraint import read_constraints
from signalbook.document.entity import compile_level
from signalbook.document.include import resolve
from signalbook.document.model import GroupType, Model, ResourceType
from signalbook.document.xid import ATTRIBUTE_NAME, TYPE_NAME, must_match
from signalbook.errors import RegistryError
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA
from signalbook.spec.versions import RC2

__all__ = ["VERSION_MODES", "read_model"]

VERSION_MODES = ("manual", "createdat", "modifiedat", "semver")
CONTENT_KINDS = ("binary", "json", "string")

# Root paths of the HTTP binding that are no attributes of the Registry.
RESERVED_PLURALS = frozenset({"capabilitiesoffered", "export"})

_HEADER = dict.fromkeys(("description", "documentation", "icon", "modelversion", "modelcompatiblewith"), str)
_MODEL = {
    **{"$schema": str, "description": str, "documentation": str},
    **{"labels": dict, "attributes": dict, "groups": dict},
}
_GROUP = {
    **{"plural": str, "singular": str, **_HEADER, "labels": dict, "attributes": dict},
    **{"ximportresources": list, "constraints": dict, "resources": dict},
    **{"compatiblewith": str},
}
_FLAGS = (
    *("setversionid", "hasdocument", "singleversionroot"),
    *("validateformat", "validatecompatibility", "strictvalidation"),
)
_ATTRIBUTES = ("attributes", "resourceattributes", "metaattributes")
_RESOURCE = {
    **{"plural": str, "singular": str, **_HEADER, "labels": dict, "maxversions": int, "versionmode": str},
    **dict.fromkeys(_FLAGS, bool),
    **{"typemap": dict, **dict.fromkeys(_ATTRIBUTES, dict)},
    **{"compatiblewith": str, "setdefaultversionsticky": bool, "consistentformat": bool},
}
# `ancestorid` as a full model of 1.0-rc2 has it.
_ANCESTOR = {"name": "ancestor", "type": "string", "required": True}

# The specifications whose values are the same in one case only, such as `mode` and the `type` of a property.
DOMAINS = frozenset({ENDPOINT, MESSAGE, SCHEMA})

Given = Mapping[str, Any]


def read_model(source: Given, *, load: Callable[[str], Any] | None = None, base: str = "") -> Model:
    """The model that a document defines, or the specification's error about it.

    `load` fetches what the document at `base` includes; without one, includes are refused.
    """
    document = aspects(resolve(source, load, base), _MODEL, "")
    groups = {plural: _group_given(plural, given) for plural, given in document.get("groups", {}).items()}
    _check_unique("Group types", ((plural, given["singular"]) for plural, given in groups.items()))
    homes = {plural: _homes(plural, groups) for plural in groups}
    place = Place({plural: frozenset(resources) for plural, resources in homes.items()})
    resources = {
        (home, plural): _read_resource(home, plural, given, place)
        for home in groups
        for plural, given in groups[home]["resources"].items()
    }
    unmatched = place.below("not being a Version attribute")
    given = document.get("attributes", {})
    own = spec_attributes.registry_attributes(groups)
    attributes = read_attributes(given, unmatched, own)
    return Model(
        description=document.get("description", ""),
        documentation=document.get("documentation", ""),
        labels=check_labels(document.get("labels", {}), "labels"),
        attributes=attributes,
        groups=MappingProxyType(
            {
                plural: _read_group(
                    plural, group, {name: resources[home, name] for name, home in homes[plural].items()}, unmatched
                )
                for plural, group in groups.items()
            }
        ),
        level=compile_level(attributes, own, given, place.types),
    )


def _group_given(plural: str, definition: Any) -> dict[str, Any]:
    """A Group type's aspects with its name settled, and its Resource types' too."""
    where = f"groups.{plural}"
    given = _current(aspects(definition, _GROUP, where), "attributes")
    _check_names(f'Group type "{plural}"', plural, given, ATTRIBUTE_NAME)
    if plural in RESERVED_PLURALS:
        raise model_error(f'Group type "{plural}" must not be called like a path of the API')
    resources = {}
    for name, definition in given.get("resources", {}).items():
        resources[name] = _current_resource(aspects(definition, _RESOURCE, f"{where}.resources.{name}"))
        _check_names(f'Resource type "{name}"', name, resources[name], TYPE_NAME)
    return {**given, "resources": resources}


def _current(given: dict[str, Any], level: str) -> dict[str, Any]:
    """Aspects of 1.0-rc2 in today's words; `level` has the attributes whose members that version names otherwise."""
    if "compatiblewith" in given:
        given.setdefault("modelcompatiblewith", given.pop("compatiblewith"))
    for name, names in RC2.members.items():
        attribute = given.get(level, {}).get(name)
        members = attribute.get("attributes") if isinstance(attribute, dict) else None
        for today, spelled in names.items():
            if isinstance(members, dict) and spelled in members and today not in members:
                current = {today if one == spelled else one: row for one, row in members.items()}
                if isinstance(current[today], dict) and current[today].get("name") == spelled:
                    current[today] = {**current[today], "name": today}
                given[level] = {**given[level], name: {**attribute, "attributes": current}}
    return given


def _current_resource(given: dict[str, Any]) -> dict[str, Any]:
    given = _current(given, "metaattributes")
    if given.pop("setdefaultversionsticky", True) is False:
        given["metaattributes"] = _narrowed(given, "metaattributes", "defaultversionsticky", {"enum": [False]})
    if given.pop("consistentformat", False):
        given["attributes"] = _narrowed(given, "attributes", "format", {"matchversions": True})
    if given.get("attributes", {}).get("ancestor") == _ANCESTOR:
        given["attributes"] = {name: row for name, row in given["attributes"].items() if name != "ancestor"}
    return given


def _narrowed(given: Given, level: str, name: str, more: Given) -> Given:
    attributes = given.get(level, {})
    own = attributes.get(name, {})
    return {**attributes, name: {**more, **own} if isinstance(own, dict) else own}


def _check_names(what: str, plural: str, given: Given, singular_pattern: re.Pattern[str]) -> None:
    if given.get("plural", plural) != plural:
        raise model_error(f'{what} must have a "plural" value of "{plural}", not "{given["plural"]}"')
    if not given.get("singular"):
        raise model_error(f'{what} is missing a "singular" value')
    for name, pattern in ((plural, TYPE_NAME), (given["singular"], singular_pattern)):
        if not pattern.fullmatch(name):
            raise model_error(f'model type name "{name}" {must_match(pattern)}')


def _check_unique(what: str, names: Iterable[tuple[str, str]]) -> None:
    seen: set[str] = set()
    for pair in names:
        for name in pair:
            if name in seen:
                raise model_error(f'{what} must not share a "plural" or "singular" name: {name}')
            seen.add(name)


def _homes(plural: str, groups: Mapping[str, Given]) -> dict[str, str]:
    """The Resource types of a Group type, each with the Group type that defines it (MODEL-19)."""
    homes = dict.fromkeys(groups[plural]["resources"], plural)
    for reference in groups[plural].get("ximportresources", ()):
        name = str(reference).rpartition("/")[2]
        home = _find_home(plural, reference, groups, (plural,))
        if name in homes:
            raise model_error(f'Group type "{plural}" imports {reference} but already has "{name}"')
        homes[name] = home
    return homes


def _find_home(importer: str, reference: Any, groups: Mapping[str, Given], trail: tuple[str, ...]) -> str:
    parts = reference.split("/") if isinstance(reference, str) else []
    if len(parts) != 3 or parts[0] or not all(parts[1:]):
        raise model_error(f'Group type "{importer}" must import "/GROUP/RESOURCE", not "{reference}"')
    _, group, name = parts
    if group in trail:
        raise model_error(f'Group type "{importer}" imports {reference} in a circle: {" -> ".join((*trail, group))}')
    if name in groups.get(group, {}).get("resources", ()):
        return group
    for further in groups.get(group, {}).get("ximportresources", ()):
        if str(further).rpartition("/")[2] == name:
            return _find_home(group, further, groups, (*trail, group))
    raise model_error(f'Group type "{importer}" references a non-existing Resource type "{reference}"')


def _read_group(plural: str, given: Given, resources: Mapping[str, ResourceType], place: Place) -> GroupType:
    _check_unique(f'Resource types of "{plural}"', ((one.plural, one.singular) for one in resources.values()))
    own = spec_attributes.group_attributes(plural, given["singular"], resources)
    where = replace(place / "groups" / plural, exact=given.get("modelcompatiblewith") in DOMAINS)
    attributes = read_attributes(given.get("attributes", {}), where, own)
    try:
        constraints = read_constraints(
            given.get("constraints", {}), attributes, {name: one.attributes for name, one in resources.items()}
        )
    except ValueError as problem:
        raise model_error(f'Group type "{plural}" {problem}') from None
    return GroupType(
        plural=plural,
        singular=given["singular"],
        labels=check_labels(given.get("labels", {}), f"{where.path}.labels"),
        attributes=attributes,
        ximports=tuple(given.get("ximportresources", ())),
        constraints=constraints,
        resources=MappingProxyType(dict(resources)),
        level=compile_level(attributes, own, given.get("attributes", {}), place.types),
        **_texts(given),
    )


def _read_resource(home: str, plural: str, given: Given, place: Place) -> ResourceType:
    where = place / "groups" / home / "resources" / plural
    where = replace(where, exact=given.get("modelcompatiblewith") in DOMAINS)
    unmatched = where.below("not being a Version attribute")
    singular = given["singular"]
    _check_aspects(plural, given)
    version_given = given.get("attributes", {})
    meta_given = given.get("metaattributes", {})
    version_own = spec_attributes.version_attributes(plural, singular, given.get("hasdocument", True))
    resource_own = spec_attributes.resource_attributes(plural, singular)
    meta_own = spec_attributes.meta_attributes(plural, singular)
    extensions = sorted(given.get("resourceattributes", {}).keys() - resource_own.keys())
    if extensions:  # MODEL-20
        raise model_error(f'extension attributes are not allowed in "resourceattributes": {",".join(extensions)}')
    reserved = spec_attributes.RESERVED_FOR_RESOURCES
    version = read_attributes(version_given, where, version_own, taken=reserved)
    meta = read_attributes(meta_given, unmatched, meta_own)
    return ResourceType(
        plural=plural,
        singular=singular,
        origin=f"/{home}/{plural}",
        labels=check_labels(given.get("labels", {}), f"{where.path}.labels"),
        maxversions=given.get("maxversions", 0),
        versionmode=given.get("versionmode", "manual").lower(),
        typemap=MappingProxyType({key: kind.lower() for key, kind in given.get("typemap", {}).items()}),
        attributes=version,
        resourceattributes=read_attributes(given.get("resourceattributes", {}), unmatched, resource_own),
        metaattributes=meta,
        version_level=compile_level(version, version_own, version_given, place.types, reserved),
        meta_level=compile_level(meta, meta_own, meta_given, place.types),
        matchversions=_matched(version),
        **{flag: given[flag] for flag in _FLAGS if flag in given},
        **_texts(given),
    )


def _check_aspects(plural: str, given: Given) -> None:
    if given.get("maxversions", 0) < 0:
        raise model_error(f'"maxversions"({given["maxversions"]}) must be >= 0')
    if given.get("validatecompatibility") and not given.get("validateformat"):  # FMT-1
        detail = f'Resource "{plural}" must have "validateformat" set to "true" when "validatecompatibility" is "true"'
        raise RegistryError("bad_request", "/model", error_detail=detail)
    if given.get("versionmode", "manual").lower() not in VERSION_MODES:
        raise model_error(f'"versionmode" of Resource type "{plural}" must be one of: {_listed(VERSION_MODES)}')
    for key, kind in given.get("typemap", {}).items():
        if not key or not isinstance(kind, str) or kind.lower() not in CONTENT_KINDS:
            detail = f'has an invalid "typemap" entry "{key}", its value must be one of: {_listed(CONTENT_KINDS)}'
            raise model_error(f'Resource type "{plural}" {detail}')


def _matched(attributes: Attributes) -> tuple[tuple[str, ...], ...]:
    walks = (attribute.walk() for attribute in attributes.values())
    return tuple(path for walk in walks for path, attribute in walk if attribute.matchversions)


def _texts(given: Given) -> dict[str, Any]:
    return {aspect: given[aspect] for aspect in _HEADER if aspect in given}


def _listed(values: Collection[str]) -> str:
    return ", ".join(values)
