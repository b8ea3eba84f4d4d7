"""Whether every value that one JSON Schema accepts is accepted by another, and where not.

Rule 1: `wide` is to be contained in `narrow`. Each keyword of `narrow` must follow from what holds for `wide`; each one
that does not is a finding. No finding is a proof.
Rule 2: a finding is certain where a value can be named that makes the difference, as far as single keywords go.
Rule 3: a union on the wide side is taken apart, one branch at a time, when the rest of it does not suffice. A branch
of the narrow side must contain the whole of what is left.
Rule 4: a pair that is met again inside itself is taken to hold: values are finite, so a difference shows elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from signalbook.schemas.format import pointer
from signalbook.schemas.json_exact import encode
from signalbook.schemas.json_schema_accepts import Side
from signalbook.schemas.json_schema_facts import Node, node_of, unfollowed
from signalbook.schemas.json_schema_places import Place

__all__ = ["Check", "Containment", "Finding"]

_UNIONS = ("anyOf", "oneOf")
_LEAF = frozenset({"type", "title", "description", "minLength", "maxLength", "minimum", "maximum", "pattern"})
# How many unions are taken apart within each other.
_MOST_SPLITS = 6
_sorted = msgspec.json.Encoder(order="deterministic", decimal_format="number").encode


class Finding(NamedTuple):
    """A place where the wide side accepts more: the aspect, and what each side says there."""

    path: str
    aspect: str
    wide: str
    narrow: str
    certain: bool = True

    def below(self, *steps: str | int) -> Finding:
        """The finding, seen from further up."""
        return self._replace(path=pointer(steps) + self.path)

    def doubtful(self) -> Finding:
        """The finding, without certainty."""
        return self._replace(certain=False)


# What a keyword of the narrow side asks of the wide one: the comparison, the wide node, its atoms, the narrow place.
Check: TypeAlias = "Callable[[Containment, Node, frozenset[str], Place], Iterator[Finding]]"


class Containment:
    """One comparison in one direction."""

    def __init__(self, wide: Side, narrow: Side, checks: Mapping[str, Check]) -> None:
        self.wide = wide
        self.narrow = narrow
        self._checks = checks
        self._done: dict[tuple[frozenset[int], frozenset[int]], tuple[Finding, ...]] = {}
        self._open: dict[tuple[frozenset[int], frozenset[int]], int] = {}
        self._relied = 0
        self._splits = 0
        self._made: dict[Any, Place] = {}

    def findings(self, wide: Node, narrow: Node) -> tuple[Finding, ...]:
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

    def _compare(self, wide: Node, narrow: Node) -> Iterator[Finding]:
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

    def _direct(self, wide: Node, narrow: Node) -> Iterator[Finding]:
        atoms, listed = self.wide.facts(wide)
        if listed is not None:
            yield from self._each_value(wide, narrow, listed)
            return
        for place in narrow:
            if place.schema is False:
                yield Finding("", "anything", "something is accepted", "nothing is accepted")
                return
            if unfollowed(self.narrow.index, place):
                yield Finding("", "reference", "any value", "a reference that cannot be followed", False)
            done = set()
            for keyword in place.schema:
                check = self._checks.get(keyword)
                if check is not None and check not in done:
                    done.add(check)
                    yield from check(self, wide, atoms, place)

    def _each_value(self, wide: Node, narrow: Node, listed: list[Any]) -> Iterator[Finding]:
        lost: dict[bool, list[str]] = {True: [], False: []}
        for value in listed:
            accepted = self.narrow.accepts(narrow, value)
            before = None if accepted else self.wide.accepts(wide, value)
            if not accepted and before is not False:
                lost[accepted is False and before is True].append(short(value))
        for certain, shown in lost.items():
            if shown:
                text = ", ".join(shown[:10]) + (", …" if len(shown) > 10 else "")
                yield Finding("", "enum", f"{text} accepted", f"{text} not accepted", certain)

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

    def _without(self, place: Place, keyword: str) -> Place:
        key = (id(place.schema), keyword)
        if key not in self._made:
            left = {name: value for name, value in place.schema.items() if name not in (keyword, "allOf", "$ref")}
            self._made[key] = Place(left, place.base)
        return self._made[key]

    def with_schema(self, node: Node, schema: dict[str, Any]) -> Node:
        """A node and one more plain schema; the same schema is the same place each time."""
        key = encode(schema)
        if key not in self._made:
            self._made[key] = Place(schema, "")
        return self._joined(node, (self._made[key],))

    def narrow_node(self, place: Place, schema: Any) -> Node:
        """The node of a schema written in a place of the narrow side."""
        return node_of(self.narrow.index, place.below(schema))

    def equal_part(self, wide: Node, place: Place, keywords: tuple[str, ...]) -> bool:
        """Tell whether some place of the wide side says the same as a narrow one with these keywords."""
        self.wide.budget.spend(1 + len(wide))
        wanted = {name: place.schema[name] for name in keywords if name in place.schema}
        text = encode_sorted(wanted)
        return any(
            text == encode_sorted({name: one.schema[name] for name in keywords if name in one.schema})
            and self._same_references(one, place, keywords, set())
            for one in wide
        )

    def _same_references(self, one: Place, two: Place, keywords: tuple[str, ...], seen: set[tuple[int, int]]) -> bool:
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


def _references(one: Place, two: Place, first: Any, second: Any) -> Iterator[tuple[Place, Place, str]]:
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
    text = encode(value)
    return text if len(text) <= 60 else text[:59] + "…"
