"""The `inline` flag: which nested collections and large attributes a response shows.

Rule 1: what may be inlined is a tree that the model decides (`Shape`), the same for a collection and for its members.
Rule 2: what is asked for is a tree of the same form (`InlineSet`) that a walk through the response follows downwards:
`child(name)` is None where `name` stays a URL.
Rule 3: `*` stands for everything below except the registry's `model`, `modelsource` and `capabilities` (INLINE-3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from signalbook.document.model import GroupType, Model, ResourceType
from signalbook.errors import RegistryError
from signalbook.registry.paths import PathError, Wild
from signalbook.registry.paths import parse as parse_path

__all__ = [
    "CONFIGURATION", "MAX_PATHS", "MAX_TEXT", "META", "InlineSet", "Shape", "group_shape", "parse", "registry_shape",
    "resource_shape", "version_shape",
]  # fmt: skip

CONFIGURATION: frozenset[str] = frozenset({"capabilities", "model", "modelsource"})
MAX_TEXT = 8192
MAX_PATHS = 256


@dataclass(frozen=True, slots=True)
class Shape:
    """What may be inlined below one place; `wild` where `*` may follow, `explicit` what `*` leaves out."""

    children: Mapping[str, Shape] = field(default_factory=dict)
    wild: bool = True
    explicit: frozenset[str] = frozenset()


_LEAF = Shape(wild=False)
META = _LEAF  # nothing within a meta entity can be inlined


def registry_shape(model: Model) -> Shape:
    """What a request for the registry may inline."""
    groups = {plural: group_shape(group) for plural, group in model.groups.items()}
    return Shape({**dict.fromkeys(CONFIGURATION, _LEAF), **groups}, explicit=CONFIGURATION)


def group_shape(group: GroupType) -> Shape:
    """What a request for a group, or for its collection of groups, may inline."""
    return Shape({plural: resource_shape(resource) for plural, resource in group.resources.items()})


def resource_shape(resource: ResourceType) -> Shape:
    """What a request for a resource, or for its collection of resources, may inline."""
    version = version_shape(resource)
    return Shape({**version.children, "meta": _LEAF, "versions": version})


def version_shape(resource: ResourceType) -> Shape:
    """What a request for a version, or for a collection of versions, may inline."""
    return Shape({resource.singular: _LEAF} if resource.hasdocument else {})


@dataclass(frozen=True, slots=True)
class InlineSet:
    """What is to be inlined below one place of the response."""

    NOTHING: ClassVar[InlineSet]
    EVERYTHING: ClassVar[InlineSet]

    children: Mapping[str, InlineSet] = field(default_factory=dict)
    all: bool = False
    explicit: frozenset[str] = frozenset()

    def child(self, name: str) -> InlineSet | None:
        """What to inline within `name`, or None where `name` itself is not inlined."""
        if self.all and name not in self.explicit:
            return InlineSet.EVERYTHING
        return self.children.get(name)

    def __bool__(self) -> bool:
        return self.all or bool(self.children)


InlineSet.NOTHING = InlineSet(MappingProxyType({}))
InlineSet.EVERYTHING = InlineSet(MappingProxyType({}), all=True)


def parse(values: Sequence[str], shape: Shape, subject: str) -> InlineSet:
    """What the request's `inline` values ask for at a place of this shape; an empty value means `*` (INLINE-1)."""
    if not values:
        return InlineSet.NOTHING
    if sum(map(len, values)) > MAX_TEXT:
        raise _bad(subject, values[0][:60] + "...", f"longer than {MAX_TEXT} characters")
    paths = [path for value in values for path in (value or "*").split(",") if path]
    if len(paths) > MAX_PATHS:
        raise _bad(subject, paths[MAX_PATHS], f"more than {MAX_PATHS} paths")
    return _set([_names(path, shape, subject) for path in paths], shape.explicit)


def _names(text: str, shape: Shape, subject: str) -> tuple[str, ...]:
    """The names along the path `text`, checked; a final `*` is kept."""
    if text == "*":
        return ("*",)
    try:
        steps = parse_path(text)
    except PathError as error:
        raise _bad(subject, text, str(error)) from None
    names: list[str] = []
    for step in steps:
        if step is Wild.MEMBERS and shape.wild and len(names) == len(steps) - 1:
            names.append("*")
        elif step is Wild.MEMBERS and len(names) < len(steps) - 1:
            raise _bad(subject, text, f'Unexpected "*" in "{text}"')
        elif isinstance(step, str) and step in shape.children:
            names.append(step)
            shape = shape.children[step]
        else:
            raise RegistryError("inline_noninlineable", subject, name=text)
    return tuple(names)


def _set(paths: Sequence[tuple[str, ...]], explicit: frozenset[str] = frozenset()) -> InlineSet:
    below: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in (path for path in paths if path):
        below.setdefault(first, []).append(tuple(rest))
    everything = below.pop("*", None) is not None
    return InlineSet({name: _set(rest) for name, rest in below.items()}, everything, explicit)


def _bad(subject: str, value: str, detail: str) -> RegistryError:
    return RegistryError("bad_inline", subject, value=value, error_detail=detail)
