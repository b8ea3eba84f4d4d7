"""`KeyIndex`: the definitions of a scope by what their keys say, for one kind of message.

Rule: what it finds is a superset of what holds; finding it costs the same in a small scope and in a large one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from signalbook.document.property_types import canonical
from signalbook.messages.compiled import Plan
from signalbook.messages.constraint import Constraint, Read
from signalbook.messages.header_values import texts_of
from signalbook.messages.nearest import Neighbours
from signalbook.messages.observed import Observed
from signalbook.messages.same_key import SameKey
from signalbook.messages.template_index import TemplateIndex

__all__ = ["KeyIndex"]


class KeyIndex:
    """The plans for one kind of message: by what their keys say, and those without a key."""

    __slots__ = ("_lookups", "keyless", "keyless_at_home", "keyless_derived", "neighbours")

    def __init__(self, plans: Iterable[Plan]) -> None:
        plans = tuple(plans)
        self.keyless = tuple(plan for plan in plans if not plan.key and plan.misfit is None)
        self.keyless_derived = tuple(plan for plan in self.keyless if plan.compiled.definition.bases)
        self.keyless_at_home = tuple(plan for plan in self.keyless if plan.is_at_home)
        self.neighbours = Neighbours(plans)
        self._lookups = tuple(_lookups([plan for plan in plans if plan.key]))

    def alone(self, path: str) -> dict[str, Plan]:
        """The plans that are the only one with their constant at a place, and to which none without a key is preferred.

        Such a one derives from it, or is bound to what carries the message where it is not.
        """
        bases = {base for plan in self.keyless_derived for base in plan.derives_from}
        return {
            constant: same[0].plans[0]
            for lookup in self._lookups
            if lookup.path == path
            for constant, same in lookup.constants.items()
            if len(same) == 1 == len(same[0].plans)
            and same[0].plans[0].compiled.definition.identity not in bases
            and (same[0].plans[0].is_at_home or not self.keyless_at_home)
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

    def find(self, observed: Observed) -> list[SameKey]:
        """Every key that may hold, each once, with its plans."""
        found: list[SameKey] = []
        for lookup in self._lookups:
            lookup.find(observed, found)
        return found if len(found) < 2 else list(dict.fromkeys(found))


class _Lookup:
    """Keys that are looked up by one property."""

    __slots__ = ("_read", "constants", "path", "templates")

    def __init__(self, filed: Sequence[tuple[Constraint, SameKey]]) -> None:
        self._read: Read = filed[0][0].read
        self.path = filed[0][0].path
        self.constants: dict[str, list[SameKey]] = {}
        templates: list[tuple[Any, SameKey]] = []
        for part, same in filed:
            if part.constant is not None:
                self.constants.setdefault(part.constant, []).append(same)
            else:
                templates.append((part.template, same))
        self.templates: TemplateIndex[SameKey] | None = TemplateIndex(templates) if templates else None

    def find(self, observed: Observed, into: list[SameKey]) -> None:
        """Add every key that may hold."""
        values = self._read(observed)
        for text in texts_of(values) if len(values) > 1 else map(canonical, values):
            into += self.constants.get(text, ())
            if self.templates is not None:
                into += self.templates.find(text)


def _lookups(plans: Sequence[Plan]) -> Iterable[_Lookup]:
    """Each key under the part of it that the fewest other keys have; of equal ones under the longest constant."""
    by_key: dict[tuple[Any, ...], list[Plan]] = {}
    for plan in plans:
        by_key.setdefault(tuple(_signature(part) for part in plan.key), []).append(plan)
    counts = Counter(part for parts in by_key for part in parts)
    by_path: dict[str, list[tuple[Constraint, SameKey]]] = {}
    for parts, same in by_key.items():
        of_part = dict(zip(parts, same[0].key, strict=True))
        chosen = of_part[min(of_part, key=lambda part: (counts[part], part[1] is None, -len(part[1] or ""), part[0]))]
        by_path.setdefault(chosen.path, []).append((chosen, SameKey(same)))
    return map(_Lookup, by_path.values())


def _signature(part: Constraint) -> tuple[str, str | None, str, str]:
    """What is the same where two parts of keys say the same."""
    return part.path, part.constant, "" if part.template is None else part.template.text, part.type
