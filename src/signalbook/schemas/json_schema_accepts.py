"""Whether a node accepts one value, and whether two nodes have a value in common, without compiling a schema again.

Rule: the answer is True or False where it is certain, and None where it is not. What a keyword says of a single value
the engine answers; what combines schemas is combined here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jsonschema_rs

from signalbook.schemas.budget import Budget
from signalbook.schemas.json_schema import Draft
from signalbook.schemas.json_schema_bounds import PATTERNS
from signalbook.schemas.json_schema_facts import Node, branches, node_of, types, unfollowed, values
from signalbook.schemas.json_schema_members import bound, member, required
from signalbook.schemas.json_schema_places import Index, Place

__all__ = ["Side"]

_PLAIN = frozenset(
    [
        "type",
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "required",
        "minProperties",
        "maxProperties",
        "minItems",
        "maxItems",
        "uniqueItems",
        "dependentRequired",
    ]
)
_OF_OBJECTS = frozenset(
    [
        "properties",
        "patternProperties",
        "additionalProperties",
        "propertyNames",
        "dependentSchemas",
        "dependencies",
        "unevaluatedProperties",
    ]
)
_OF_ARRAYS = frozenset(["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"])
_DEEPEST = 8
_COMPILED = 10  # the steps that a small validator takes


class Side:
    """One of the two schemas of a comparison: its index, its draft, and its small validators."""

    __slots__ = ("_deep", "_facts", "_plain", "budget", "draft", "index")

    def __init__(self, index: Index, draft: Draft, budget: Budget) -> None:
        self.index = index
        self.draft = draft
        self.budget = budget
        self._deep = 0
        self._facts: dict[tuple[int, ...], tuple[Node, frozenset[str], list[Any] | None]] = {}
        self._plain: dict[int, tuple[Place, jsonschema_rs.Validator]] = {}

    def facts(self, node: Node) -> tuple[frozenset[str], list[Any] | None]:
        """The atoms that a node's values can have, unions taken into account, and the values where all are known."""
        key = tuple(id(place.schema) for place in node)
        if key not in self._facts:
            self.budget.spend(sum(map(_weight, node)))
            atoms = types(node)
            for several in branches(self.index, node):
                atoms &= frozenset().union(*(types(branch) for branch in several))
            self._facts[key] = (node, atoms, values(self.index, node))
        return self._facts[key][1:]

    def accepts(self, node: Node, value: Any) -> bool | None:
        """Tell whether a node accepts a value; a union that comes back to itself is not followed for ever."""
        self.budget.spend(1 + len(node))
        if self._deep >= _DEEPEST:
            return None
        self._deep += 1
        try:
            return _all([self._place_accepts(place, value) for place in node])
        finally:
            self._deep -= 1

    def _place_accepts(self, place: Place, value: Any) -> bool | None:
        schema = place.schema
        if schema is False or not self._validator(place).is_valid(value):
            return False
        verdicts: list[bool | None] = [None] if unfollowed(self.index, place) else []
        below = _OF_OBJECTS if isinstance(value, dict) else _OF_ARRAYS if isinstance(value, list) else frozenset()
        if (value or "contains" in schema) and below & schema.keys():
            verdicts.append(None)
        for keyword, combine in (("anyOf", _any), ("oneOf", _one)):
            if keyword in schema:
                verdicts.append(combine([self._below(place, branch, value) for branch in schema[keyword]]))
        if "not" in schema:
            verdicts.append(_not(self._below(place, schema["not"], value)))
        if "if" in schema:
            asked = self._below(place, schema["if"], value)
            then = self._below(place, schema.get("then", True), value)
            otherwise = self._below(place, schema.get("else", True), value)
            verdicts.append(then if asked else otherwise if asked is False else _all([then, otherwise]) or None)
        return _all(verdicts)

    def _below(self, place: Place, schema: Any, value: Any) -> bool | None:
        return self.accepts(node_of(self.index, place.below(schema)), value)

    def _validator(self, place: Place) -> jsonschema_rs.Validator:
        found = self._plain.get(id(place.schema))
        if found is None:
            self.budget.spend(_COMPILED + _weight(place))
            plain = {name: value for name, value in place.schema.items() if name in _PLAIN | self.draft.asserts}
            found = (place, self.draft.validator(plain, pattern_options=PATTERNS))
            self._plain[id(place.schema)] = found
        return found[1]

    def apart(self, node: Node, other: Side, others: Node, depth: int = 0) -> bool:
        """Tell whether it is certain that no value is accepted by both nodes."""
        self.budget.spend(1 + len(node) + len(others))
        mine, theirs = self.facts(node)[0], other.facts(others)[0]
        if not mine & theirs:
            return True
        for one, its, two, twos in ((self, node, other, others), (other, others, self, node)):
            listed = one.facts(its)[1]
            if listed is not None and all(two.accepts(twos, value) is False for value in listed):
                return True
            if one.impossible(its):
                return True
        if depth >= _DEEPEST:
            return False
        if mine == {"object"} == theirs or mine & theirs == {"object"}:
            return any(
                self.apart(member(self.index, node, name), other, member(other.index, others, name), depth + 1)
                for name in required(node) | required(others)
            )
        return mine & theirs <= {"integer", "fraction"} and _ranges_apart(node, others)

    def impossible(self, node: Node) -> bool:
        """Tell whether it is certain that a node accepts nothing."""
        atoms, listed = self.facts(node)
        if not atoms:
            return True
        return listed is not None and all(self.accepts(node, value) is False for value in listed)


def _weight(place: Place) -> int:
    """The steps that a look at all values and branches of a place takes."""
    schema = place.schema
    if schema is False:
        return 1
    return 1 + sum(len(schema[name]) for name in ("enum", "anyOf", "oneOf", "required") if name in schema)


def _ranges_apart(node: Node, others: Node) -> bool:
    for one, two in ((node, others), (others, node)):
        low, high = bound(one, "Minimum", False), bound(two, "Maximum", False)
        if low and high and (low.value > high.value or (low.value == high.value and (low.open or high.open))):
            return True
    return False


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    found: bool | None = True
    for verdict in verdicts:
        if verdict is False:
            return False
        found = found and verdict
    return found


def _any(verdicts: list[bool | None]) -> bool | None:
    return True if True in verdicts else None if None in verdicts else False


def _one(verdicts: list[bool | None]) -> bool | None:
    if verdicts.count(True) > 1:
        return False
    return None if None in verdicts else True in verdicts


def _not(verdict: bool | None) -> bool | None:
    return None if verdict is None else not verdict
