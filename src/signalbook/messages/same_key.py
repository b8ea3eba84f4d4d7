"""`SameKey`: the definitions that have one key, told apart by what else they say.

Rule 1: the property that tells the most of them apart is looked up, then the next among those that are left; so a
message is judged by those that it may be one of, however many share its key.
Rule 2: what is found is a superset of what holds: where a message lacks the property, those stay that do not need it.
Rule 3: an index is made when the first message asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from signalbook.messages.compiled import Plan
from signalbook.messages.constraint import SPELLED, Constraint
from signalbook.messages.header_values import texts_of
from signalbook.messages.nearest import MOST_JUDGED, Neighbours
from signalbook.messages.observed import Observed
from signalbook.messages.template_index import TemplateIndex

__all__ = ["SameKey"]

# So few are judged as fast as they are looked up.
_FEW = 3
# How many properties are looked up one after another.
_DEEPEST = 4
# A property that leaves more than this part of the definitions does not tell them apart.
_WORTH = 0.75


class SameKey:
    """Plans with one key."""

    __slots__ = ("_neighbours", "_split", "_used", "plans")

    def __init__(self, plans: Sequence[Plan], used: frozenset[str] = frozenset()) -> None:
        self.plans = plans
        self._used = used
        self._neighbours: Neighbours | None = None
        self._split: _Split | bool | None = len(plans) > _FEW and len(used) < _DEEPEST

    def open_to(self, observed: Observed) -> Sequence[Plan]:
        """Every plan that may hold."""
        split = self._split and self._made()
        if not split:
            return self.plans
        found: list[Plan] = []
        for part in split.parts(observed):
            found += part.open_to(observed)
        return found

    def nearest(self, observed: Observed) -> Sequence[Plan]:
        """Where none holds, the plans that say most like what the message says; at most `MOST_JUDGED`."""
        if len(self.plans) <= MOST_JUDGED:
            return self.plans
        split = self._made()
        said = [] if split is None else list(split.said(observed))
        if said:
            return [plan for part in said for plan in part.nearest(observed)][:MOST_JUDGED]
        if self._neighbours is None:
            self._neighbours = Neighbours(self.plans, None if split is None else split.path)
        return self._neighbours.near(observed) or self.plans[:MOST_JUDGED]

    def _made(self) -> _Split | None:
        if self._split is True:
            self._split = _most_telling(self.plans, self._used)
        return self._split or None


class _Split:
    """Plans by the values of one property, those that may be without it, and those that say nothing about it."""

    __slots__ = ("_constants", "_open", "_optional", "_read", "_templates", "path")

    def __init__(self, path: str, plans: Sequence[Plan], used: frozenset[str]) -> None:
        self.path = path
        used |= {path}
        said: dict[tuple[bool, str], list[tuple[Constraint, Plan]]] = {}
        silent: list[Plan] = []
        optional: list[Plan] = []
        for plan in plans:
            one = _telling(plan).get(path)
            if one is None:
                silent.append(plan)
                continue
            self._read = one.read
            said.setdefault(_value(one), []).append((one, plan))
            if not (one.required or one in plan.key):
                optional.append(plan)
        templates = []
        self._constants: dict[str, SameKey] = {}
        for (is_constant, text), rows in said.items():
            same = SameKey([plan for _, plan in rows], used)
            if is_constant:
                self._constants[text] = same
            else:
                templates.append((rows[0][0].template, same))
        self._templates: TemplateIndex[SameKey] | None = (
            TemplateIndex([(one, same) for one, same in templates if one is not None]) if templates else None
        )
        self._open = SameKey(silent, used)
        self._optional = SameKey(optional, used)

    def parts(self, observed: Observed) -> Iterator[SameKey]:
        """Where every plan that may hold is."""
        if self._open.plans:
            yield self._open
        if self._read(observed):
            yield from self.said(observed)
        elif self._optional.plans:
            yield self._optional

    def said(self, observed: Observed) -> Iterable[SameKey]:
        """Where the plans are that say of the property what the message says."""
        found: dict[SameKey, Any] = {}
        for text in texts_of(self._read(observed)):
            same = self._constants.get(text)
            if same is not None:
                found[same] = None
            if self._templates is not None:
                found |= dict.fromkeys(self._templates.find(text))
        return found


def _telling(plan: Plan) -> dict[str, Constraint]:
    """What a plan says that others may say otherwise, by its path; not what has several spellings."""
    return {one.path: one for one in plan.tests if one.is_key and one.type not in SPELLED}


def _value(one: Constraint) -> tuple[bool, str]:
    if one.constant is not None:
        return True, one.constant
    assert one.template is not None
    return False, one.template.text


def _most_telling(plans: Sequence[Plan], used: frozenset[str]) -> _Split | None:
    """The plans by the property that leaves the fewest of them for a message of one; None where none tells enough."""
    sizes: dict[str, dict[tuple[bool, str], int]] = {}
    needed: dict[str, int] = {}
    for plan in plans:
        for path, one in _telling(plan).items():
            if path not in used:
                of_path, value = sizes.setdefault(path, {}), _value(one)
                of_path[value] = of_path.get(value, 0) + 1
                needed[path] = needed.get(path, 0) + (one.required or one in plan.key)
    left = {}
    for path, of_path in sizes.items():
        said = sum(of_path.values())
        left[path] = sum(size * size for size in of_path.values()) / said + len(plans) - said
    best = min(left, key=lambda path: (left[path], -needed[path], path), default=None)
    return None if best is None or left[best] > _WORTH * len(plans) else _Split(best, plans, used)
