"""Whether every value that one JSON Schema accepts is accepted by another, and where not.

Rule 1: `wide` is to be contained in `narrow`. Each keyword of `narrow` must follow from what holds for `wide`; each one
that does not is a finding. No finding is a proof.
Rule 2: a finding is certain where a value can be named that makes the difference, as far as single keywords go.
Rule 3: a union on the wide side is taken apart, one branch at a time, when the rest of it does not suffice. A branch
of the narrow side must contain the whole of what is left.
Rule 4: a pair that is met again inside itself is taken to hold: values are finite, so a difference shows elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import jsonschema_rs
import msgspec

from signalbook.jsontext import encode_json
from signalbook.schemas.format import StepBudget, pointer
from signalbook.schemas.json_schema.places import (
    PATTERNS,
    Index,
    Node,
    Subschema,
    bound,
    branches,
    member,
    node_of,
    required,
    same_key,
    types,
    unfollowed,
    values,
)
from signalbook.schemas.json_schema.schema import Draft

__all__ = ["Check", "Containment", "ContainmentFinding", "Side"]

# Whether a node accepts one value, and whether two nodes have a value in common, without compiling a schema again.
#
# Rule: the answer is True or False where it is certain, and None where it is not. What a keyword says of a single value
# the engine answers; what combines schemas is combined here.


_PLAIN = frozenset(
    [
        "type",
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
_VALUES_A_STEP = 4
_COMPILED = 10  # the steps that a small validator takes


class Side:
    """One of the two schemas of a comparison: its index, its draft, and its small validators."""

    __slots__ = ("_deep", "_facts", "_listed", "_plain", "budget", "draft", "index")

    def __init__(self, index: Index, draft: Draft, budget: StepBudget) -> None:
        self.index = index
        self.draft = draft
        self.budget = budget
        self._deep = 0
        self._facts: dict[tuple[int, ...], tuple[Node, frozenset[str], list[Any] | None]] = {}
        self._listed: dict[int, tuple[Subschema, frozenset[Any]]] = {}
        self._plain: dict[int, tuple[Subschema, jsonschema_rs.Validator]] = {}

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

    def _place_accepts(self, place: Subschema, value: Any) -> bool | None:
        schema = place.schema
        if schema is False or not self._is_listed(place, value) or not self._validator(place).is_valid(value):
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

    def _is_listed(self, place: Subschema, value: Any) -> bool:
        """Tell whether a value is one of a place's `enum`, which is not gone through for each value."""
        if "enum" not in place.schema:
            return True
        found = self._listed.get(id(place.schema))
        if found is None:
            self.budget.spend(1 + len(place.schema["enum"]) // _VALUES_A_STEP)
            found = (place, frozenset(map(same_key, place.schema["enum"])))
            self._listed[id(place.schema)] = found
        return same_key(value) in found[1]

    def _below(self, place: Subschema, schema: Any, value: Any) -> bool | None:
        return self.accepts(node_of(self.index, place.below(schema)), value)

    def _validator(self, place: Subschema) -> jsonschema_rs.Validator:
        found = self._plain.get(id(place.schema))
        if found is None:
            self.budget.spend(_COMPILED + _weight(place))
            known = _PLAIN | self.draft.asserts
            plain = {name: value for name, value in place.schema.items() if name in known}
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


def _weight(place: Subschema) -> int:
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


_UNIONS = ("anyOf", "oneOf")
_LEAF = frozenset({"type", "title", "description", "minLength", "maxLength", "minimum", "maximum", "pattern"})
# How many unions are taken apart within each other.
_MOST_SPLITS = 6
_sorted = msgspec.json.Encoder(order="deterministic", decimal_format="number").encode


class ContainmentFinding(NamedTuple):
    """A place where the wide side accepts more: the aspect, and what each side says there."""

    path: str
    aspect: str
    wide: str
    narrow: str
    certain: bool = True

    def below(self, *steps: str | int) -> ContainmentFinding:
        """The finding, seen from further up."""
        return self._replace(path=pointer(steps) + self.path)

    def doubtful(self) -> ContainmentFinding:
        """The finding, without certainty."""
        return self._replace(certain=False)


# What a keyword of the narrow side asks of the wide one: the comparison, the wide node, its atoms, the narrow place.
Check: TypeAlias = "Callable[[Containment, Node, frozenset[str], Subschema], Iterator[ContainmentFinding]]"


class Containment:
    """One comparison in one direction."""

    def __init__(self, wide: Side, narrow: Side, checks: Mapping[str, Check]) -> None:
        self.wide = wide
        self.narrow = narrow
        self._checks = checks
        self._done: dict[tuple[frozenset[int], frozenset[int]], tuple[ContainmentFinding, ...]] = {}
        self._open: dict[tuple[frozenset[int], frozenset[int]], int] = {}
        self._relied = 0
        self._splits = 0
        self._made: dict[Any, Subschema] = {}

    def findings(self, wide: Node, narrow: Node) -> tuple[ContainmentFinding, ...]:
        """Where `wide` accepts what `narrow` does not."""
        self.wide.budget.spend((1 + len(wide)) * (1 + len(narrow)))
        if not narrow or _same_leaf(wide, narrow):
            return ()
        key = (frozenset(id(place.schema) for place in wide), frozenset(id(place.schema) for place in narrow))
        if key in self._done:
            return self._done[key]
        if key in self._open:
            self._relied = min(self._relied, self._open[key])
            return ()
        depth = self._open[key] = len(self._open)
        outer, self._relied = self._relied, depth
        try:
            found = tuple(dict.fromkeys(self._compare(wide, narrow)))
        finally:
            del self._open[key]
            relied, self._relied = self._relied, min(outer, self._relied)
        if relied >= depth:  # what rests on a pair that is still open is not known yet
            self._done[key] = found
        return found

    def _compare(self, wide: Node, narrow: Node) -> Iterator[ContainmentFinding]:
        if self.wide.impossible(wide):
            return
        found = list(self._direct(wide, narrow))
        if not found:
            return
        if self.wide.facts(wide)[1] is not None:  # each value was looked at
            yield from found
            return
        if self._splits >= _MOST_SPLITS:  # what holds for all branches together is not certain for any
            yield from (one.doubtful() for one in found)
            return
        branches = self._split(wide)
        if branches is None:
            yield from found
            return
        self._splits += 1
        try:
            for branch in branches:
                yield from self.findings(branch, narrow)
        finally:
            self._splits -= 1

    def _direct(self, wide: Node, narrow: Node) -> Iterator[ContainmentFinding]:
        atoms, listed = self.wide.facts(wide)
        if listed is not None:
            yield from self._each_value(wide, narrow, listed)
            return
        for place in narrow:
            if place.schema is False:
                yield ContainmentFinding("", "anything", "something is accepted", "nothing is accepted")
                return
            if unfollowed(self.narrow.index, place):
                yield ContainmentFinding("", "reference", "any value", "a reference that cannot be followed", False)
            done = set()
            for keyword in place.schema:
                check = self._checks.get(keyword)
                if check is not None and check not in done:
                    done.add(check)
                    yield from check(self, wide, atoms, place)

    def _each_value(self, wide: Node, narrow: Node, listed: list[Any]) -> Iterator[ContainmentFinding]:
        lost: dict[bool, list[str]] = {True: [], False: []}
        for value in listed:
            accepted = self.narrow.accepts(narrow, value)
            before = None if accepted else self.wide.accepts(wide, value)
            if not accepted and before is not False:
                lost[accepted is False and before is True].append(short(value))
        for certain, shown in lost.items():
            if shown:
                text = ", ".join(shown[:10]) + (", …" if len(shown) > 10 else "")
                yield ContainmentFinding("", "enum", f"{text} accepted", f"{text} not accepted", certain)

    def _split(self, node: Node) -> list[Node] | None:
        """The branches of a node's first union, each with all that holds beside it; None where there is no union."""
        for at, place in enumerate(node):
            for keyword in _UNIONS:
                if keyword in place.schema:
                    left = self._without(place, keyword)
                    others = (*node[:at], left, *node[at + 1 :])
                    return [
                        self._joined(others, node_of(self.wide.index, place.below(branch)))
                        for branch in place.schema[keyword]
                    ]
        return None

    @staticmethod
    def _joined(node: Node, more: Node) -> Node:
        if any(place.schema is False for place in more):
            return more
        known = {id(place.schema) for place in node}
        return (*node, *(place for place in more if id(place.schema) not in known))

    def _without(self, place: Subschema, keyword: str) -> Subschema:
        key = (id(place.schema), keyword)
        if key not in self._made:
            left = {name: value for name, value in place.schema.items() if name not in (keyword, "allOf", "$ref")}
            self._made[key] = Subschema(left, place.base)
        return self._made[key]

    def with_schema(self, node: Node, schema: dict[str, Any]) -> Node:
        """A node and one more plain schema; the same schema is the same place each time."""
        key = encode_json(schema)
        if key not in self._made:
            self._made[key] = Subschema(schema, "")
        return self._joined(node, (self._made[key],))

    def narrow_node(self, place: Subschema, schema: Any) -> Node:
        """The node of a schema written in a place of the narrow side."""
        return node_of(self.narrow.index, place.below(schema))

    def equal_part(self, wide: Node, place: Subschema, keywords: tuple[str, ...]) -> bool:
        """Tell whether some place of the wide side says the same as a narrow one with these keywords."""
        self.wide.budget.spend(1 + len(wide))
        wanted = {name: place.schema[name] for name in keywords if name in place.schema}
        text = encode_sorted(wanted)
        return any(
            text == encode_sorted({name: one.schema[name] for name in keywords if name in one.schema})
            and self._same_references(one, place, keywords, set())
            for one in wide
        )

    def _same_references(
        self, one: Subschema, two: Subschema, keywords: tuple[str, ...], seen: set[tuple[int, int]]
    ) -> bool:
        """Tell whether equal texts mean the same: what they refer to must be the same again."""
        for name in keywords:
            if name not in one.schema:
                continue
            for here, there, reference in _references(one, two, one.schema[name], two.schema[name]):
                self.wide.budget.spend()
                if not reference:  # where a dynamic reference leads depends on the whole document
                    return False
                mine = self.wide.index.follow(here, reference)
                theirs = self.narrow.index.follow(there, reference)
                if mine is None or theirs is None:
                    if mine is not theirs:
                        return False
                    continue
                pair = (id(mine.schema), id(theirs.schema))
                if pair in seen:
                    continue
                seen.add(pair)
                if encode_sorted(mine.schema) != encode_sorted(theirs.schema):
                    return False
                if isinstance(mine.schema, dict) and not self._same_references(mine, theirs, tuple(mine.schema), seen):
                    return False
        return True


def _same_leaf(wide: Node, narrow: Node) -> bool:
    """Tell at little cost that two nodes are one simple schema each, and the same: most members do not change."""
    if len(wide) != 1 or len(narrow) != 1:
        return False
    one = wide[0].schema
    return isinstance(one, dict) and _LEAF.issuperset(one) and one == narrow[0].schema


def _references(one: Subschema, two: Subschema, first: Any, second: Any) -> Iterator[tuple[Subschema, Subschema, str]]:
    """Yield each reference in two values of the same text, with the places it stands in."""
    stack = [(one, two, first, second)]
    while stack:
        here, there, mine, theirs = stack.pop()
        if isinstance(mine, dict):
            here, there = here.below(mine), there.below(theirs)
            stack.extend((here, there, child, theirs[name]) for name, child in mine.items())
            for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
                if isinstance(mine.get(keyword), str):
                    yield here, there, mine[keyword] if keyword == "$ref" else ""
        elif isinstance(mine, list):
            stack.extend((here, there, child, other) for child, other in zip(mine, theirs, strict=True))


def encode_sorted(value: Any) -> str:
    """A text that is the same for the same JSON value, whatever the order of its members."""
    return _sorted(value).decode()


def short(value: Any) -> str:
    """A value in words."""
    text = encode_json(value)
    return text if len(text) <= 60 else text[:59] + "…"
