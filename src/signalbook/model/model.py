"""A registry's model as a value: its Group types, their Resource types, and the compiled levels of each.

Rule 1: a `Model` is whole and verified; `read_model` is the only way to get one.
Rule 2: a Resource type that several Group types have (`ximportresources`) is one object, so `is` says "same type".
Rule 3: the full model (`full`) writes every aspect that has a value, in the order of core/model.md; an imported
Resource type appears as its Group type's own (MODEL-19).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from signalbook.errors import RegistryError
from signalbook.model import attributes as spec_attributes
from signalbook.model.attributes import (
    SPECVERSION,
    DefinitionPlace,
    aspects,
    check_labels,
    model_error,
    read_attributes,
)
from signalbook.model.constraints import AttributeConstraint, read_constraints
from signalbook.model.message_rules import RuleSet
from signalbook.model.normalise import Normaliser, normaliser_for
from signalbook.model.rules import rule_set
from signalbook.model.values import Attributes, Level, compile_level
from signalbook.model.xids import ATTRIBUTE_NAME, TYPE_NAME, must_match
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA
from signalbook.spec.versions import RC2, SpecVersion

__all__ = ["VERSION_MODES", "GroupType", "Model", "ResourceType", "read_model", "resolve", "spell_options"]

# `$include` and `$includes` in a model document, resolved before it is read.
#
# Rule 1: nothing is fetched here; `load` is given an absolute address and gives back a JSON document. Without one a
# document can include parts of itself, and nothing else.
# Rule 2: what is written beside an include wins over what it brings, an earlier include over a later one.
# Rule 3: documents are untrusted: no cycles, bounded depth, bounded size of the result.
#
# core/model.md 1.0-rc4, Includes in the xRegistry Model Data.


MAX_DEPTH = 300
MAX_VALUES = 100_000

Load = Callable[[str], Any]


def resolve(source: Any, load: Load | None = None, base: str = "") -> Any:
    """`source` without its includes; `base` is the address of the document that relative ones start from."""
    return _Resolver(load, base, source).expand(source, base, (), 0)


class _Resolver:
    """One resolution: the documents loaded so far, and how much more may be written."""

    def __init__(self, load: Load | None, base: str, source: Any) -> None:
        self.load = load
        self.documents = {base: source}
        self.left = MAX_VALUES
        # What each include brought, and the values that it took: what is included often is resolved once.
        self.known: dict[tuple[str, str], tuple[dict[str, Any], int, int]] = {}
        self.deepest = 0

    def expand(self, value: Any, base: str, open_: tuple[str, ...], depth: int) -> Any:
        """`value` with everything included that it asks for; `open_` are the includes that led here."""
        self.spend(1, depth)
        if isinstance(value, list):
            return [self.expand(member, base, open_, depth + 1) for member in value]
        if not isinstance(value, dict):
            return value
        own = {
            name: self.expand(member, base, open_, depth + 1)
            for name, member in value.items()
            if name not in ("$include", "$includes")
        }
        for reference in _references(value):
            included = self.include(reference, base, open_, depth)
            own |= {name: member for name, member in included.items() if name not in own}
        return own

    def spend(self, values: int, depth: int) -> None:
        """Count values that are written, the innermost at a depth."""
        self.left -= values
        if self.left < 0:
            raise model_error(f"the model has more than {MAX_VALUES:,} values once its includes are resolved")
        if depth > MAX_DEPTH:
            raise model_error(f"the model is nested deeper than {MAX_DEPTH} levels")
        self.deepest = max(self.deepest, depth)

    def include(self, reference: str, base: str, open_: tuple[str, ...], depth: int) -> dict[str, Any]:
        """The object that one include names, itself resolved."""
        known = self.known.get((base, reference))
        if known is not None:
            found, values, levels = known
            self.spend(values, depth + levels)
            return copy.deepcopy(found)
        address = urljoin(base, reference)
        if address in open_:
            raise model_error(f"includes go in a circle: {' -> '.join((*open_, address))}")
        document, pointer = urldefrag(address)
        if document not in self.documents:
            if self.load is None:
                raise model_error(f'"{reference}" can\'t be included here, send the model with its includes resolved')
            self.documents[document] = self.load(document)
        left, outer, self.deepest = self.left, self.deepest, depth
        found = self.expand(_point(self.documents[document], pointer, address), document, (*open_, address), depth + 1)
        if not isinstance(found, dict):
            raise model_error(f'"{address}" is not an object, so it can\'t be included')
        self.known[base, reference] = found, left - self.left, self.deepest - depth
        self.deepest = max(outer, self.deepest)
        return found


def _references(value: dict[str, Any]) -> list[str]:
    if "$include" in value and "$includes" in value:
        raise model_error('"$include" and "$includes" must not be used at the same place')
    references = [value["$include"]] if "$include" in value else value.get("$includes", [])
    if not isinstance(references, list) or not all(isinstance(one, str) for one in references):
        raise model_error('"$include" must be a string and "$includes" an array of strings')
    return references


def _point(document: Any, pointer: str, address: str) -> Any:
    """What an RFC 6901 pointer leads to; one without its first slash is how the published models write it."""
    for step in unquote(pointer).strip("/").split("/") if pointer.strip("/") else ():
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(document, dict) or name not in document:
            raise model_error(f'"{address}" leads nowhere')
        document = document[name]
    return document


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
    normaliser: Normaliser
    rules: RuleSet  # the named rules that a write of a version has to meet
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
    constraints: Mapping[str, AttributeConstraint]
    resources: Mapping[str, ResourceType]
    level: Level
    normaliser: Normaliser
    rules: RuleSet  # the named rules that a write of a group has to meet

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


# Reading a model document ("modelsource") into a `Model`.
#
# Rule 1: names first: Group types, Resource types and imports are settled before any attribute is read, since
# attributes refer to types.
# Rule 2: the first fault raises; its words name the place by its path in the document.
# Rule 3: aspects of older versions that mean something a newer one also says are rewritten by table, then read.
#
# core/model.md 1.0-rc4.


VERSION_MODES = ("manual", "createdat", "modifiedat", "semver")
CONTENT_KINDS = ("binary", "json", "string")

# Root paths of the HTTP binding that are not attributes of the Registry.
RESERVED_PLURALS = frozenset({"capabilitiesoffered", "export"})

_HEADER_NAME = dict.fromkeys(("description", "documentation", "icon", "modelversion", "modelcompatiblewith"), str)
_MODEL = {
    **{"$schema": str, "description": str, "documentation": str},
    **{"labels": dict, "attributes": dict, "groups": dict},
}
_GROUP = {
    **{"plural": str, "singular": str, **_HEADER_NAME, "labels": dict, "attributes": dict},
    **{"ximportresources": list, "constraints": dict, "resources": dict},
    **{"compatiblewith": str},
}
_FLAGS = (
    *("setversionid", "hasdocument", "singleversionroot"),
    *("validateformat", "validatecompatibility", "strictvalidation"),
)
_ATTRIBUTES = ("attributes", "resourceattributes", "metaattributes")
_RESOURCE = {
    **{"plural": str, "singular": str, **_HEADER_NAME, "labels": dict, "maxversions": int, "versionmode": str},
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
    place = DefinitionPlace({plural: frozenset(resources) for plural, resources in homes.items()})
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


def _read_group(plural: str, given: Given, resources: Mapping[str, ResourceType], place: DefinitionPlace) -> GroupType:
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
        normaliser=normaliser_for(given.get("modelcompatiblewith", ""), attributes.keys(), group=True),
        rules=rule_set(given.get("modelcompatiblewith", ""), "group", "error"),
        **_texts(given),
    )


def _read_resource(home: str, plural: str, given: Given, place: DefinitionPlace) -> ResourceType:
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
        normaliser=normaliser_for(given.get("modelcompatiblewith", ""), version.keys()),
        rules=rule_set(given.get("modelcompatiblewith", ""), "version", "error"),
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
    return {aspect: given[aspect] for aspect in _HEADER_NAME if aspect in given}


def _listed(values: Collection[str]) -> str:
    return ", ".join(values)


# The model that a client is shown, with the option names that its version has for them.
#
# Rule 1: what `normalise` does to entities, this does to their model, so that both agree in every version.
# Rule 2: nothing is changed in place; a model without types of these domains is returned as the same object.
#
# Names of attributes (`ancestorid`, `basemessage`) are spelled where the full model is made.


Options = dict[str, Any]


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


def _with_options(kind: dict[str, Any], change: Callable[[str, Options], Options]) -> dict[str, Any]:
    """The type with each protocol's options changed."""
    protocol = kind.get("attributes", {}).get("protocol", {})
    cases = {value: _case(value, case, change) for value, case in protocol.get("ifvalues", {}).items()}
    if not cases:
        return kind
    return {**kind, "attributes": {**kind["attributes"], "protocol": {**protocol, "ifvalues": cases}}}


def _case(value: str, case: dict[str, Any], change: Callable[[str, Options], Options]) -> dict[str, Any]:
    siblings = case.get("siblingattributes", {})
    options = siblings.get("protocoloptions", {})
    if "attributes" not in options:
        return case
    spelled = {**options, "attributes": change(value, options["attributes"])}
    return {**case, "siblingattributes": {**siblings, "protocoloptions": spelled}}


def _renamed(attributes: Options, names: Mapping[str, str]) -> Options:
    renamed = {}
    for name, attribute in attributes.items():
        spelled = names.get(name, name)
        renamed[spelled] = {**attribute, "name": spelled} if spelled != name and "name" in attribute else attribute
    return renamed


def _addresses(options: Options, address: str) -> Options:
    endpoints = options.get("endpoints", {})
    members = endpoints.get("item", {}).get("attributes")
    if members is None:
        return options
    item = {**endpoints["item"], "attributes": _renamed(members, {"uri": address})}
    return {**options, "endpoints": {**endpoints, "item": item}}
