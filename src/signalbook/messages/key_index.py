"""`KeyIndex`: the definitions of a scope by what their keys say, for one kind of message.

Rule: what it finds is a superset of what holds; finding it costs the same in a small scope and in a large one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from signalbook.messages.compiled import Plan
from signalbook.messages.constraint import Constraint, Read
from signalbook.messages.nearest import Neighbours
from signalbook.messages.observed import Observed
from signalbook.messages.property_types import canonical
from signalbook.messages.template_index import TemplateIndex

__all__ = ["KeyIndex"]


class KeyIndex:
    """The plans for one kind of message: by what their keys say, and those without a key."""

    __slots__ = ("_lookups", "keyless", "keyless_derived", "neighbours")

    def __init__(self, plans: Iterable[Plan]) -> None:
        plans = tuple(plans)
        keyed: dict[str, list[Plan]] = {}
        keyless: list[Plan] = []
        for plan in plans:
            if plan.key:
                keyed.setdefault(_first(plan).path, []).append(plan)
            elif plan.misfit is None:
                keyless.append(plan)
        self._lookups = tuple(_Lookup(same) for same in keyed.values())
        self.keyless = tuple(keyless)
        self.neighbours = Neighbours(plans)
        self.keyless_derived = tuple(plan for plan in keyless if plan.compiled.definition.bases)

    def alone(self, path: str) -> dict[str, Plan]:
        """The plans that are the only one with their constant at a place, and from which none without a key derives."""
        bases = {base for plan in self.keyless_derived for base in plan.derives_from}
        return {
            constant: plans[0]
            for lookup in self._lookups
            if lookup.path == path
            for constant, plans in lookup.constants.items()
            if len(plans) == 1 and plans[0].compiled.definition.identity not in bases
        }

    def is_known_beside(self, path: str, value: str, present: Collection[str]) -> bool:
        """Whether a key may hold that is no constant at the place, for a value there and among properties present."""
        for lookup in self._lookups:
            if lookup.path != path:
                if lookup.path in present:
                    return True
            elif lookup.templates is not None and any(True for _ in lookup.templates.find(value)):
                return True
        return False

    def find(self, observed: Observed) -> list[Plan]:
        """Every plan whose key may hold."""
        found: list[Plan] = []
        for lookup in self._lookups:
            lookup.find(observed, found)
        return found


def _first(plan: Plan) -> Constraint:
    """The part of a key that it is filed under: the longest constant, else the template."""
    return max(plan.key, key=lambda one: (one.constant is not None, len(one.constant or ""), one.path))


class _Lookup:
    """Plans whose keys are about one property."""

    __slots__ = ("_read", "constants", "path", "templates")

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._read: Read = _first(plans[0]).read
        self.path = _first(plans[0]).path
        self.constants: dict[str, list[Plan]] = {}
        templates: list[tuple[Any, Plan]] = []
        for plan in plans:
            part = _first(plan)
            if part.constant is not None:
                self.constants.setdefault(part.constant, []).append(plan)
            else:
                templates.append((part.template, plan))
        self.templates: TemplateIndex[Plan] | None = TemplateIndex(templates) if templates else None

    def find(self, observed: Observed, into: list[Plan]) -> None:
        """Add every plan whose key may hold."""
        for value in self._read(observed):
            text = canonical(value)
            into += self.constants.get(text, ())
            if self.templates is not None:
                into += self.templates.find(text)
