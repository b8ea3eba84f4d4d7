"""An attribute's definition as a value, and how the full model writes it.

Rule 1: an `Attribute` is already verified; only `attribute_read` and the tables of `spec_attributes` make one.
Rule 2: an `item` is an `Attribute` without a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from signalbook.document.value_types import VALUE_TYPES
from signalbook.errors import RegistryError

__all__ = ["Attribute", "Attributes", "model_error"]


def model_error(detail: str) -> RegistryError:
    """The error about a model whose definition is wrong."""
    return RegistryError("model_error", "/model", error_detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute (or item) of a model, with the aspects of core/model.md under their own names."""

    name: str = ""
    type: str
    target: str = ""
    namecharset: str = ""
    description: str = ""
    enum: tuple[Any, ...] = ()
    strict: bool | None = None
    matchcase: bool = False
    exact: bool = False  # whether its enum is compared with case: its model says so, or the specification of its type
    matchversions: bool = False
    readonly: bool = False
    immutable: bool = False
    required: bool = False
    default: Any = None
    attributes: Attributes = field(default_factory=lambda: MappingProxyType({}))
    item: Attribute | None = None
    ifvalues: Mapping[str, Attributes] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def scalar(self) -> bool:
        """Whether its values are scalars."""
        return VALUE_TYPES[self.type].scalar

    @property
    def allowed(self) -> tuple[Any, ...]:
        """The only values it may have; empty where the model sets no limit."""
        return () if self.strict is False else self.enum

    def allows(self, value: Any) -> bool:
        """Whether its enum, where it has a strict one, holds a value."""
        return not self.allowed or self.comparable(value) in map(self.comparable, self.allowed)

    def comparable(self, value: Any) -> Any:
        """A value in the form in which it is compared with those of an enum: texts without case, as a rule."""
        return value.lower() if isinstance(value, str) and not self.exact else value

    def to_dict(self) -> dict[str, Any]:
        """Its definition as the full model shows it: aspects in the specification's order, none that says nothing."""
        shown: dict[str, Any] = {}
        for aspect in _PLAIN:
            value = getattr(self, aspect)
            if value or (aspect == "strict" and value is not None):
                shown[aspect] = list(value) if aspect == "enum" else value
        if self.default is not None:
            shown["default"] = self.default
        if self.attributes:
            shown["attributes"] = {name: inner.to_dict() for name, inner in self.attributes.items()}
        if self.item is not None:
            shown["item"] = self.item.to_dict()
        if self.ifvalues:
            shown["ifvalues"] = {
                value: {"siblingattributes": {name: inner.to_dict() for name, inner in siblings.items()}}
                for value, siblings in self.ifvalues.items()
            }
        return shown

    def walk(self) -> Iterator[tuple[tuple[str, ...], Attribute]]:
        """It and every attribute statically nested in it through objects, each with its path."""
        yield (self.name,), self
        for inner in self.attributes.values():
            if inner.name != "*":
                yield from (((self.name, *path), found) for path, found in inner.walk())


Attributes = Mapping[str, Attribute]

_PLAIN = (
    *("name", "type", "target", "namecharset", "description", "enum"),
    *("strict", "matchcase", "matchversions", "readonly", "immutable", "required"),
)
