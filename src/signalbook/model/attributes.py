"""Reading attribute definitions: the part of the model language that repeats at every level.

Rule 1: what is read is verified; the first fault raises the specification's error with the dotted path of the place.
Rule 2: a definition is untrusted: depth and number of attributes are bounded.
Rule 3: only `read_attributes` and the tables here make an `Attribute`, which is verified by that.

core/model.md 1.0-rc4, from `attributes` to `attributes.<STRING>.ifvalues`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from signalbook.budget import Budget, TooMuch
from signalbook.errors import RegistryError
from signalbook.model.values import MAX_DEPTH, TYPE_ALIASES, VALUE_TYPES, Attribute, Attributes, text_of
from signalbook.model.xids import MAP_KEY, NAME_PATTERNS, TARGET, must_match

__all__ = [
    "FOLDED",
    "RESERVED_FOR_RESOURCES",
    "SPECVERSION",
    "DefinitionPlace",
    "Definitions",
    "aspects",
    "check_labels",
    "folded",
    "group_attributes",
    "meta_attributes",
    "model_error",
    "opaque",
    "read_attributes",
    "registry_attributes",
    "resource_attributes",
    "version_attributes",
]


def model_error(detail: str) -> RegistryError:
    """The error about a model whose definition is wrong."""
    return RegistryError("model_error", "/model", error_detail=detail)


# The attributes that the specification itself defines at each level of a registry.
#
# Rule 1: these tables are the full model of a type that declares nothing (core/sample-model-full.json, 1.0-rc4).
# Rule 2: a model may narrow a row, never remove or widen one; `overlay` holds it to that.
#
# The names a client controls are in `CLIENT`; every other row is the server's to fill and to check.


Definitions = Mapping[str, Mapping[str, Any]]

SPECVERSION = "1.0-rc4"

# CASE-2: specification-defined attributes whose values are the same in any case. Of these `compatibility` alone has an
# enum; a format is whatever its maker calls it.
FOLDED = frozenset({"compatibility", "format"})

# TYPE-14: what a Version cannot have as an extension, since its Resource has it.
RESERVED_FOR_RESOURCES = frozenset({"meta", "metaurl", "versions", "versionsurl", "versionscount"})

_FIXED = {"readonly": True, "immutable": True, "required": True}
_OPEN = {"*": {"name": "*", "type": "any"}}


def folded(path: Sequence[str], value: Any) -> Any:
    """The value at a path in the form in which it is compared with others."""
    return value.lower() if len(path) == 1 and path[0] in FOLDED and isinstance(value, str) else value


def _row(name: str, type_: str, **aspects: Any) -> tuple[str, dict[str, Any]]:
    return name, {"name": name, "type": type_, **aspects}


_SELF = (
    _row("self", "url", **_FIXED),
    _row("shortself", "url", readonly=True, immutable=True),
    _row("xid", "xid", **_FIXED),
)
_EPOCH = _row("epoch", "uinteger", readonly=True, required=True)
_NAME = _row("name", "string")
_TEXTS = (_row("description", "string"), _row("documentation", "url"), _row("icon", "url"))
_LABELS = _row("labels", "map", item={"type": "string"})
_TIMES = (_row("createdat", "timestamp", required=True), _row("modifiedat", "timestamp", required=True))
_DEPRECATED = _row(
    "deprecated",
    "object",
    attributes=dict(
        (
            _row("alternative", "url"),
            _row("documentation", "url"),
            _row("effective", "timestamp"),
            _row("removal", "timestamp"),
            _row("*", "any"),
        )
    ),
)
_CONSTRAINTS = _row(
    "constraints",
    "map",
    item={
        "type": "object",
        "attributes": dict(
            (_row("default", "any"), _row("enum", "array", item={"type": "any"}), _row("equals", "string"))
        ),
    },
)
_COMPATIBILITIES = ["backward", "backward_transitive", "forward", "forward_transitive", "full", "full_transitive"]


def registry_attributes(groups: Iterable[str]) -> Definitions:
    """The Registry's attributes, with the collections of its Group types."""
    return _table(
        "the Registry",
        _row("specversion", "string", readonly=True, required=True, default=SPECVERSION),
        _row("registryid", "string", **_FIXED),
        *_SELF,
        _EPOCH,
        _NAME,
        *_TEXTS,
        _LABELS,
        *_TIMES,
        _row("capabilities", "object", attributes=_OPEN),
        _row("model", "object", readonly=True, attributes=_OPEN),
        _row("modelsource", "object", attributes=_OPEN),
        *(row for plural in groups for row in _collection(plural)),
    )


def group_attributes(plural: str, singular: str, resources: Iterable[str]) -> Definitions:
    """A Group's attributes, with the collections of its Resource types."""
    return _table(
        f'Group type "{plural}"',
        _row(f"{singular}id", "string", immutable=True, required=True),
        *_SELF,
        _EPOCH,
        _NAME,
        *_TEXTS,
        _LABELS,
        *_TIMES,
        _DEPRECATED,
        _CONSTRAINTS,
        *(row for resource in resources for row in _collection(resource)),
    )


def version_attributes(plural: str, singular: str, hasdocument: bool) -> Definitions:
    """A Version's attributes, with those of its document where it has one."""
    document = (_row(f"{singular}url", "url"), _row(singular, "any"), _row(f"{singular}base64", "string"))
    return _table(
        f'Resource type "{plural}"',
        _row(f"{singular}id", "string", immutable=True, required=True),
        _row("versionid", "string", immutable=True, required=True),
        *_SELF,
        _EPOCH,
        _NAME,
        _row("isdefault", "boolean", readonly=True, required=True, default=False),
        *_TEXTS,
        _LABELS,
        *_TIMES,
        _row("ancestorid", "string", required=True),
        _row("contenttype", "string"),
        _row("format", "string"),
        _row("formatvalidated", "boolean", readonly=True),
        _row("formatvalidatedreason", "string", readonly=True),
        _row("compatibilityvalidated", "boolean", readonly=True),
        _row("compatibilityvalidatedreason", "string", readonly=True),
        *(document if hasdocument else ()),
    )


def resource_attributes(plural: str, singular: str) -> Definitions:
    """The attributes a Resource has beside those of its default Version."""
    return _table(
        f'Resource type "{plural}"',
        _row(f"{singular}id", "string", immutable=True, required=True),
        *_SELF,
        _row("metaurl", "url", **_FIXED),
        _row("meta", "object", attributes=_OPEN),
        *_collection("versions"),
    )


def meta_attributes(plural: str, singular: str) -> Definitions:
    """The attributes of a Resource's `meta`."""
    return _table(
        f'Resource type "{plural}"',
        _row(f"{singular}id", "string", immutable=True, required=True),
        *_SELF,
        _row("xref", "url"),
        _EPOCH,
        _LABELS,
        *_TIMES,
        _row("readonly", "boolean", readonly=True, required=True, default=False),
        _row("compatibility", "string", enum=_COMPATIBILITIES, strict=True),
        _DEPRECATED,
        _row("defaultversionid", "string", required=True),
        _row("defaultversionurl", "url", readonly=True, required=True),
        _row("defaultversionsticky", "boolean", required=True, default=False),
    )


def opaque(definition: Mapping[str, Any]) -> bool:
    """Whether the full model says no more of this attribute than "an object" or "a map of objects"."""
    return (definition.get("item") or definition).get("attributes") is _OPEN


def _collection(plural: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    return (
        _row(f"{plural}url", "url", **_FIXED),
        _row(f"{plural}count", "uinteger", readonly=True, required=True),
        _row(plural, "map", item={"type": "object", "attributes": _OPEN}),
    )


def _table(owner: str, *rows: tuple[str, dict[str, Any]]) -> Definitions:
    table: dict[str, Mapping[str, Any]] = {}
    for name, definition in rows:
        if name in table:  # TYPE-15
            raise model_error(f'{owner} would have two attributes called "{name}", choose another type name')
        table[name] = definition
    return MappingProxyType(table)


MAX_ATTRIBUTES = 100_000


_TARGETED = ("xid", "uri", "uriabsolute", "urirelative", "url", "urlabsolute", "urlrelative")

_ITEM = {"type": str, "target": str, "namecharset": str, "attributes": dict, "item": dict}
_ATTRIBUTE = {
    **_ITEM,
    **dict.fromkeys(("name", "description"), str),
    # `matchcase` is an aspect of 1.0-rc2 (text of May 2026) and 1.0-rc3, gone in 1.0-rc4
    **dict.fromkeys(("strict", "matchcase", "matchversions", "readonly", "immutable", "required"), bool),
    **{"enum": list, "ifvalues": dict, "default": object},
}
_KIND_NAMES = {str: "a string", bool: "a boolean", dict: "an object", list: "an array", int: "an integer"}


@dataclass(frozen=True, slots=True)
class DefinitionPlace:
    """Where in the model something is being read.

    `types` are the plural names of the Group types, each with those of its Resource types; `unmatched` says why an
    attribute here cannot have `matchversions`; `exact` that enums here are compared with case.
    """

    types: Mapping[str, Collection[str]]
    path: str = ""
    depth: int = 0
    unmatched: str = ""
    exact: bool = False
    # How many attributes may still be read in this model.
    budget: Budget = field(default_factory=lambda: Budget(MAX_ATTRIBUTES))

    def __truediv__(self, name: str) -> DefinitionPlace:
        depth = self.depth + 1
        if depth > MAX_DEPTH:
            raise model_error(f'"{self.path[:100]}..." is nested deeper than {MAX_DEPTH} levels')
        return replace(self, path=f"{self.path}.{name}" if self.path else name, depth=depth)

    def below(self, reason: str) -> DefinitionPlace:
        """The same place, inside something that has no single value per Version."""
        return replace(self, unmatched=self.unmatched or reason)


def aspects(definition: Any, known: Mapping[str, type], where: str) -> dict[str, Any]:
    """The members of a definition that are not null, each known and of its kind."""
    if not isinstance(definition, dict):
        raise model_error(f'"{where}" must be an object' if definition is not None else f'"{where}" can\'t be empty')
    given = {}
    for name, value in definition.items():
        if name not in known:
            raise model_error(f'"{where}" has an unknown aspect "{name}"' if where else f'unknown aspect "{name}"')
        if value is None:
            continue
        kind = known[name]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            place = f"{where}.{name}" if where else name
            raise model_error(f'"{place}" must be {_KIND_NAMES[kind]}')
        given[name] = value
    return given


def check_labels(labels: Mapping[str, Any], where: str) -> Mapping[str, str]:
    """The labels of a model, Group type or Resource type."""
    for key, value in labels.items():
        if not MAP_KEY.fullmatch(key):
            raise model_error(f'map key name "{key}" in "{where}" {must_match(MAP_KEY)}')
        if not isinstance(value, str):
            raise model_error(f'"{where}.{key}" must be a string')
    return MappingProxyType(dict(labels))


def read_attributes(
    definitions: Mapping[str, Any],
    place: DefinitionPlace,
    base: Definitions = MappingProxyType({}),
    charset: str = "",
    taken: frozenset[str] = frozenset(),
) -> Attributes:
    """The attributes of one level: those of `base`, narrowed where `definitions` names them, and the extensions.

    `taken` are the names that the level already has; only siblings of an `ifvalues` meet any.
    """
    names = taken.union(base, definitions)
    found: dict[str, Attribute] = {}
    for name, row in base.items():
        given = definitions.get(name)
        definition = row if given is None else overlay(row, given, place / name)
        found[name] = _read_attribute(name, definition, place / name, names, spec=True)
    for name, definition in definitions.items():
        if name in base:
            continue
        where = place / name
        if name in taken:
            raise model_error(f"duplicate attribute name ({name}) at: {where.path}")
        if name != "*" and not NAME_PATTERNS[charset].fullmatch(name):
            raise model_error(f'attribute name "{name}" at "{where.path}" {must_match(NAME_PATTERNS[charset])}')
        found[name] = _read_attribute(name, definition, where, names, charset=charset)
    return MappingProxyType(found)


def overlay(row: Mapping[str, Any], definition: Any, place: DefinitionPlace) -> Mapping[str, Any]:
    """A specification-defined attribute as a model narrows it (MODEL-14); aspects it leaves out stay as they are."""
    given = aspects(definition, _ATTRIBUTE, place.path)
    given_type = given.get("type", row["type"])
    if TYPE_ALIASES.get(given_type, given_type) != row["type"]:
        raise model_error(f'"{place.path}" must have a "type" of "{row["type"]}"')
    for aspect in ("required", "readonly"):
        if row.get(aspect) and given.get(aspect) is False:
            raise model_error(f'"{place.path}" must have its "{aspect}" attribute set to "true"')
    if opaque(row):
        return row
    if row.get("enum"):
        outside = [value for value in given.get("enum", ()) if str(value).lower() not in row["enum"]]
        if outside or given.get("strict") is False:
            raise model_error(f'"{place.path}" may only allow values of: {", ".join(row["enum"])}')
    merged = {**row, **given, "immutable": row.get("immutable", False)}
    if "enum" in row and not given.get("enum"):
        merged["enum"] = row["enum"]
    if "item" in row:
        if "item" in given and given["item"].get("type") != row["item"]["type"]:
            raise model_error(f'"{place.path}.item" must have a "type" of "{row["item"]["type"]}"')
        merged["item"] = row["item"]
    if "attributes" in row:
        inner = row["attributes"]
        merged["attributes"] = inner | {
            name: overlay(inner[name], definition, place / name) if name in inner else definition
            for name, definition in given.get("attributes", {}).items()
        }
    return merged


def _read_attribute(
    name: str, definition: Any, place: DefinitionPlace, names: frozenset[str], *, charset: str = "", spec: bool = False
) -> Attribute:
    try:
        place.budget.spend()
    except TooMuch:
        raise model_error(f"the model has more than {MAX_ATTRIBUTES} attributes") from None
    given = aspects(definition, _ATTRIBUTE, place.path)
    if given.get("name", name) != name:
        raise model_error(f'"{place.path}" must have a "name" set to "{name}"')
    if name == "*":
        place = place.below('being in a "*" extension')
    attribute = _read_type(given, place)
    enum = _read_enum(given.get("enum", ()), attribute, place.path)
    attribute = replace(
        attribute,
        name=name,
        description=given.get("description", ""),
        enum=enum,
        strict=given.get("strict", True if enum else None),
        matchcase=given.get("matchcase", False),
        exact=given.get("matchcase", place.exact),
        matchversions=given.get("matchversions", False),
        readonly=given.get("readonly", False),
        immutable=given.get("immutable", False),
        required=given.get("required", False),
    )
    attribute = replace(attribute, default=_read_default(given.get("default"), attribute, place.path))
    attribute = replace(attribute, ifvalues=_read_ifvalues(given.get("ifvalues", {}), attribute, place, names, charset))
    for fault in _faults(attribute, place, spec):
        raise model_error(f'"{place.path}" {fault}')
    return attribute


def _read_type(given: Mapping[str, Any], place: DefinitionPlace) -> Attribute:
    """What attributes and items have in common: the type, and what belongs to it."""
    path = place.path
    if not given.get("type"):
        raise model_error(f'"{path}" is missing a "type"')
    type_ = TYPE_ALIASES.get(given["type"], given["type"])
    if type_ not in VALUE_TYPES:
        raise model_error(f'"{path}" has an invalid type: {type_}')
    charset = given.get("namecharset", "").lower()
    if charset not in NAME_PATTERNS:
        raise model_error(f'"{path}" has an invalid "namecharset" value: {charset}')
    for aspect, types in (("namecharset", ("object",)), ("attributes", ("object",)), ("item", ("array", "map"))):
        if given.get(aspect) and type_ not in types:
            raise model_error(f'"{path}" must not have "{aspect}" since its type is not {" or ".join(types)}')
    item = None
    if type_ in ("array", "map"):
        if "item" not in given:
            raise model_error(f'"{path}" must have an "item" section')
        inner = place.below(f"being in {'an' if type_ == 'array' else 'a'} {type_}") / "item"
        item = _read_type(aspects(given["item"], _ITEM, inner.path), inner)
    return Attribute(
        type=type_,
        target=_read_target(given.get("target", ""), type_, place),
        namecharset=charset,
        attributes=read_attributes(given.get("attributes", {}), place, charset=charset),
        item=item,
    )


def _read_target(target: str, type_: str, place: DefinitionPlace) -> str:
    if not target:
        return ""
    if type_ not in _TARGETED:
        raise model_error(f'"{place.path}" must not have a "target" since its type is not xid, uri or url')
    found = TARGET.fullmatch(target)
    if found is None:
        form = "/GROUPS[/RESOURCES[/versions | \\[/versions\\]]]"
        raise model_error(f'"{place.path}" "target" must be of the form: {form}')
    # A uri or url may lead into another registry, so its target may name types that only exist there.
    if type_ == "xid" and found[1] not in place.types:
        raise model_error(f'"{place.path}" has an unknown Group type: "{found[1]}"')
    if type_ == "xid" and found[2] and found[2] not in place.types[found[1]]:
        raise model_error(f'"{place.path}" has an unknown Resource type: "{found[2]}"')
    return target


def _read_enum(values: Collection[Any], attribute: Attribute, path: str) -> tuple[Any, ...]:
    # MODEL-7 allows scalars only; the published endpoint model sets an array's, which then is its items'. So for a map.
    of = attribute.item or attribute
    if values and not of.scalar:
        raise model_error(f'"{path}" is not a scalar, or an array of scalars, so "enum" is not allowed')
    try:
        return tuple(VALUE_TYPES[of.type].read(value) for value in values)
    except ValueError:
        raise model_error(f'"{path}" enum values must be of type "{of.type}"') from None


def _read_default(value: Any, attribute: Attribute, path: str) -> Any:
    if value is None:
        return None
    if not attribute.scalar:
        raise RegistryError("model_scalar_default", "/model", name=path)
    try:
        value = VALUE_TYPES[attribute.type].read(value)
    except ValueError:
        raise model_error(f'"{path}" "default" value must be of type "{attribute.type}"') from None
    if not attribute.required:
        raise RegistryError("model_required_true", "/model", name=path)
    if not attribute.allows(value):
        listed = ", ".join(map(text_of, attribute.allowed))
        raise model_error(f'"{path}" default value "{text_of(value)}" must be one of the enum values: {listed}')
    return value


def _read_ifvalues(
    ifvalues: Mapping[str, Any], attribute: Attribute, place: DefinitionPlace, names: frozenset[str], charset: str
) -> Mapping[str, Attributes]:
    if not ifvalues:
        return attribute.ifvalues
    if not attribute.scalar or attribute.name == "*":
        raise model_error(f'"{place.path}" must not have "ifvalues" since it is not a named scalar attribute')
    allowed = {text_of(value).casefold() for value in attribute.allowed}
    seen: set[str] = set()
    found = {}
    for value, definition in ifvalues.items():
        folded = value.casefold()
        if not value or value.startswith("^"):
            raise model_error(f'"{place.path}" has an ifvalues key that is empty or starts with "^"')
        if folded in seen:
            raise model_error(f'"{place.path}" has ifvalues that only differ by case ("{value}")')
        if allowed and folded not in allowed:
            raise model_error(f'"{place.path}" has an ifvalues key ("{value}") that is not one of its enum values')
        seen.add(folded)
        inner = place.below('being in an "ifvalues" clause') / "ifvalues" / value
        siblings = aspects(definition, {"siblingattributes": dict}, inner.path).get("siblingattributes", {})
        found[value] = read_attributes(siblings, inner, charset=charset, taken=names)
    return MappingProxyType(found)


def _faults(attribute: Attribute, place: DefinitionPlace, spec: bool) -> Iterator[str]:
    if attribute.name == "*" and (attribute.required or attribute.readonly):
        yield 'must not be "required" or "readonly" since it stands for undefined extensions'
    if attribute.immutable and not spec:
        yield 'must not be "immutable" since it is an extension'
    if attribute.matchversions:
        reason = "" if attribute.scalar else "not being a scalar attribute"
        if reason or place.unmatched:
            yield f'is not allowed to have "matchversions" set to "true" due to it {reason or place.unmatched}'
