"""Constraints: what a Group (its type, or one instance) demands of the Resources in it.

Rule 1: a constraint only narrows; it is verified against static scalar attributes when it is read (CONS-1 to CONS-4).
Rule 2: an instance's constraint is laid over its type's aspect by aspect; an absent aspect changes nothing.

core/model.md 1.0-rc4, `groups.<STRING>.constraints`; core/spec.md 1.0-rc4, `constraints` Attribute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

from signalbook.errors import RegistryError
from signalbook.model.attributes import folded
from signalbook.model.values import VALUE_TYPES, Attribute, Attributes, text_of

__all__ = [
    "AttributeConstraint",
    "check_instance_constraints",
    "constraint_defaults",
    "constraint_violations",
    "effective_constraints",
    "read_constraints",
]

Path = tuple[str, ...]

# core/spec.md 1.0-rc4, xRegistry Dot Notation, without array indices and wildcards.
_STEP = re.compile(r"""\.?([a-z0-9_:\-]+)|\['([^']+)'\]|\["([^"]+)"\]""")


@dataclass(frozen=True, slots=True)
class AttributeConstraint:
    """What one attribute of one Resource type must be; `key` is `RESOURCES.PATH`."""

    key: str
    resources: str
    path: Path
    default: Any = None
    enum: tuple[Any, ...] = ()
    equals: Path = ()
    equals_text: str = ""
    exact: bool = False  # whether the enum is compared with case

    def allows(self, value: Any) -> bool:
        """Whether its enum, where it has one, holds a value."""
        return not self.enum or _comparable(value, self.exact) in (_comparable(one, self.exact) for one in self.enum)

    @property
    def path_text(self) -> str:
        """The path as an error names it, relative to the Resource."""
        return self.key.partition(".")[2]

    def to_dict(self) -> dict[str, Any]:
        """The constraint as a model document writes it."""
        shown = {"default": self.default, "enum": list(self.enum) or None, "equals": self.equals_text or None}
        return {aspect: value for aspect, value in shown.items() if value is not None}


class Attributed(Protocol):
    """A Resource type, as constraints see it."""

    @property
    def attributes(self) -> Attributes:
        """The attributes of its Versions."""
        ...


class Constrained(Attributed, Protocol):
    """A Group type, as constraints see it."""

    @property
    def plural(self) -> str:
        """Its name."""
        ...

    @property
    def constraints(self) -> Mapping[str, AttributeConstraint]:
        """Those of the type itself."""
        ...

    @property
    def resources(self) -> Mapping[str, Attributed]:
        """Its Resource types."""
        ...


def read_constraints(
    definitions: Mapping[str, Any],
    group: Attributes,
    resources: Mapping[str, Attributes],
    inherited: Mapping[str, AttributeConstraint] = MappingProxyType({}),
) -> Mapping[str, AttributeConstraint]:
    """The constraints of a definition by key, those of `inherited` narrowed by them; a ValueError says what is wrong.

    `group` are the Group's attributes, `resources` the Version attributes of each of its Resource types.
    """
    found = dict(inherited)
    for key, definition in definitions.items():
        try:
            found[key] = _read_constraint(key, definition, group, resources, inherited.get(key))
        except ValueError as problem:
            raise ValueError(f'constraint "{key}" {problem}') from None
    return MappingProxyType(found)


def check_instance_constraints(
    group_type: Constrained, constraints: Mapping[str, Any] | None, subject: str
) -> Mapping[str, AttributeConstraint]:
    """The constraints of one Group: its type's, narrowed by its own attribute `constraints`."""
    if not constraints:
        return group_type.constraints
    resources = {plural: resource.attributes for plural, resource in group_type.resources.items()}
    try:
        return read_constraints(constraints, group_type.attributes, resources, group_type.constraints)
    except ValueError as problem:
        raise RegistryError("bad_request", subject, error_detail=f'Group "{subject}" {problem}') from None


def effective_constraints(
    group_type: Constrained, group_attrs: Mapping[str, Any], resources: str, subject: str = ""
) -> tuple[AttributeConstraint, ...]:
    """The constraints that hold for a Resource type in a Group with these attributes; `subject` is the Group's xid."""
    every = check_instance_constraints(group_type, group_attrs.get("constraints"), subject)
    return tuple(constraint for constraint in every.values() if constraint.resources == resources)


def constraint_defaults(
    group_type: Constrained,
    group_attrs: Mapping[str, Any],
    resources: str,
    version_attrs: Mapping[str, Any],
    subject: str = "",
) -> Mapping[str, Any]:
    """A Version's attributes with its Group's defaults filled in; the same object where there are none."""
    filled = version_attrs
    for constraint in effective_constraints(group_type, group_attrs, resources, subject):
        if constraint.default is not None:
            filled = _fill(filled, constraint.path, constraint.default)
    return filled


def constraint_violations(
    group_type: Constrained, group_attrs: Mapping[str, Any], resources: str, version_attrs: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Each constraint that a Version breaks: the attribute's path, and `equals` or `enum` (CONS-5)."""
    for constraint in effective_constraints(group_type, group_attrs, resources):
        value = _get(version_attrs, constraint.path)
        wanted = _get(group_attrs, constraint.equals) if constraint.equals else None
        same = folded(constraint.path, value)
        if wanted is not None and same != folded(constraint.path, wanted):
            yield constraint.path_text, "equals"
        if value is not None and not constraint.allows(value):
            yield constraint.path_text, "enum"


def _comparable(value: Any, exact: bool) -> Any:
    return value.lower() if isinstance(value, str) and not exact else value


def _get(attrs: Any, path: Path) -> Any:
    for name in path:
        attrs = attrs.get(name) if isinstance(attrs, Mapping) else None
    return attrs


def _fill(attrs: Mapping[str, Any], path: Path, default: Any) -> Mapping[str, Any]:
    """`attrs` with the default at `path`, if nothing is there and the object that would own it is."""
    name, *rest = path
    value = attrs.get(name)
    if not rest:
        return {**attrs, name: default} if value is None else attrs
    if not isinstance(value, Mapping):
        return attrs
    inner = _fill(value, tuple(rest), default)
    return attrs if inner is value else {**attrs, name: inner}


def _read_constraint(
    key: str,
    definition: Any,
    group: Attributes,
    resources: Mapping[str, Attributes],
    inherited: AttributeConstraint | None,
) -> AttributeConstraint:
    plural, dot, path_text = key.partition(".")
    if not dot or not path_text:
        raise ValueError('has an invalid key, it must be of the form "<RESOURCES>.<PATH>"')
    if plural not in resources:
        raise ValueError(f'has an unknown Resource type "{plural}"')
    if not isinstance(definition, Mapping):
        raise ValueError("must be an object")  # noqa: TRY004 - a fault of the document, in words
    unknown = sorted(definition.keys() - {"default", "enum", "equals"})
    if unknown:
        raise ValueError(f'has an unknown aspect "{unknown[0]}"')
    path, attribute = _resolve(path_text, resources[plural])
    above = inherited or AttributeConstraint(key, plural, path)
    enum = _read_enum(definition.get("enum"), attribute, above)
    equals_text, equals = _read_equals(definition.get("equals"), attribute, group, above)
    constraint = AttributeConstraint(
        key=key,
        resources=plural,
        path=path,
        default=_read_default(definition.get("default"), attribute, enum, above),
        enum=enum or above.enum,
        equals=equals or above.equals,
        equals_text=equals_text or above.equals_text,
        exact=attribute.exact,
    )
    inherits = above.default if above.default is not None else attribute.default
    if enum and definition.get("default") is None and inherits is not None and not constraint.allows(inherits):
        raise ValueError(f"has an enum set ({_listed(enum)}) without the inherited default value ({text_of(inherits)})")
    return constraint


def _resolve(text: str, attributes: Attributes) -> tuple[Path, Attribute]:
    """The static scalar attribute that a dot path leads to."""
    path: list[str] = []
    at = 0
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise ValueError(f"has an invalid path ({text})")
        path.append(step[1] or step[2] or step[3])
        at = step.end()
    attribute = None
    for name in path:
        if attribute is not None:
            if attribute.type in ("array", "map"):
                raise ValueError(f"has a path ({text}) through the {attribute.type} {attribute.name}")
            attributes = attribute.attributes
        attribute = attributes.get(name) if name != "*" else None
        if attribute is None:
            raise ValueError(f'has an invalid path ({text}): attribute "{name}" can not be found')
    if attribute is None or not attribute.scalar:
        raise ValueError(f"has an invalid path ({text}): it must lead to a scalar")
    return tuple(path), attribute


def _read_enum(values: Any, attribute: Attribute, above: AttributeConstraint) -> tuple[Any, ...]:
    if values is None:
        return ()
    if not isinstance(values, list):
        raise ValueError('has an "enum" that is not an array')  # noqa: TRY004
    enum = tuple(_typed(value, attribute, "an enum") for value in values)
    limit = above.enum or attribute.allowed
    allows = replace(attribute, enum=limit, strict=True).allows
    outside = [value for value in enum if not allows(value)]
    if outside:
        raise ValueError(f"has an enum value ({text_of(outside[0])}) that is not one of: {_listed(limit)}")
    return enum


def _read_default(value: Any, attribute: Attribute, enum: tuple[Any, ...], above: AttributeConstraint) -> Any:
    if value is None:
        return above.default
    value = _typed(value, attribute, "a default")
    limit = enum or above.enum or attribute.allowed
    if not replace(attribute, enum=limit, strict=True).allows(value):
        raise ValueError(f"has a default value ({text_of(value)}) that is not one of: {_listed(limit)}")
    return value


def _read_equals(text: Any, attribute: Attribute, group: Attributes, above: AttributeConstraint) -> tuple[str, Path]:
    if text is None or text == "":
        return "", ()
    if not isinstance(text, str):
        raise ValueError('has an "equals" that is not a string')  # noqa: TRY004
    if above.equals_text and text != above.equals_text:
        raise ValueError(f'has an "equals" value ({text}) that differs from its Group type\'s ({above.equals_text})')
    path, found = _resolve(text, group)
    if found.type != attribute.type:
        raise ValueError(f'has an "equals" ({text}) of type "{found.type}" where it needs "{attribute.type}"')
    return text, path


def _typed(value: Any, attribute: Attribute, what: str) -> Any:
    try:
        return VALUE_TYPES[attribute.type].read(value)
    except ValueError:
        raise ValueError(f'has {what} value ({text_of(value)}) that must be of type "{attribute.type}"') from None


def _listed(values: tuple[Any, ...]) -> str:
    return ", ".join(map(text_of, values))
