"""What a JSON Schema says of the members of objects, the items of arrays and the bounds of numbers, over a whole node.

Rule: each function answers for all values of the node: a bound is one that every value keeps, a member's node is what
every such member fulfils.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Any, NamedTuple

import jsonschema_rs

from signalbook.schemas.json_schema_bounds import PATTERNS
from signalbook.schemas.json_schema_facts import Node, fraction, node_of
from signalbook.schemas.json_schema_places import Index, Place

__all__ = [
    "Bound",
    "bound",
    "item",
    "longest_tuple",
    "matches",
    "member",
    "names",
    "patterns",
    "required",
    "rest",
    "stated",
]


class Bound(NamedTuple):
    """An end of a range; an open end does not belong to it."""

    value: Fraction
    open: bool


def stated(node: Node, keyword: str) -> list[Any]:
    """The values that a keyword has in a node."""
    return [place.schema[keyword] for place in node if place.schema is not False and keyword in place.schema]


def bound(node: Node, side: str, whole: bool) -> Bound | None:
    """The tightest `Minimum` or `Maximum` of a node; for whole numbers, the whole number at that end."""
    sign = 1 if side == "Minimum" else -1
    ends = [Bound(fraction(value), False) for value in stated(node, side.lower())]
    ends += [Bound(fraction(value), True) for value in stated(node, f"exclusive{side}")]
    if whole:
        ends = [_whole(end, sign) for end in ends]
    return max(ends, key=lambda end: (sign * end.value, end.open), default=None)


def _whole(end: Bound, sign: int) -> Bound:
    inside = ceil(end.value) if sign > 0 else floor(end.value)
    return Bound(Fraction(inside + sign if end.open and inside == end.value else inside), False)


def required(node: Node) -> set[str]:
    """The members that every object of a node has."""
    return {name for names in stated(node, "required") for name in names}


def names(node: Node) -> Iterator[str]:
    """Each name that a node declares, once, in order."""
    return iter(dict.fromkeys(name for properties in stated(node, "properties") for name in properties))


def patterns(node: Node) -> list[str]:
    """Each pattern for names that a node declares, once."""
    return list(dict.fromkeys(pattern for several in stated(node, "patternProperties") for pattern in several))


@lru_cache(maxsize=1024)
def _pattern(pattern: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=PATTERNS)


def matches(pattern: str, text: str) -> bool:
    """Tell whether a regular expression of a schema is found in a text."""
    return _pattern(pattern).is_valid(text)


def member(index: Index, node: Node, name: str) -> Node:
    """What the member of this name fulfils."""
    places: list[Place] = []
    for place in node:
        schema = place.schema
        if schema is False:
            return (place,)
        here = [schema["properties"][name]] if name in schema.get("properties", ()) else []
        here += [below for pattern, below in schema.get("patternProperties", {}).items() if matches(pattern, name)]
        if not here and "additionalProperties" in schema:
            here = [schema["additionalProperties"]]
        places.extend(place.below(below) for below in here)
    return node_of(index, *places)


def rest(index: Index, node: Node) -> Node:
    """What a member fulfils whose name the node neither declares nor has a pattern for."""
    return _below(index, node, "additionalProperties")


def _below(index: Index, node: Node, keyword: str) -> Node:
    places = [place.below(place.schema[keyword]) for place in node if keyword in place.schema]
    return node_of(index, *places)


def pattern_member(index: Index, node: Node, pattern: str) -> Node:
    """What a member fulfils whose name matches a pattern that the node declares."""
    places = [
        place.below(place.schema["patternProperties"][pattern])
        for place in node
        if pattern in place.schema.get("patternProperties", ())
    ]
    return node_of(index, *places)


def _tuple(index: Index, schema: dict[str, Any]) -> tuple[list[Any], Any]:
    """The schemas of the first items, and that of all others."""
    first = schema.get(index.dialect.tuples)
    if isinstance(first, list):
        return first, schema.get("additionalItems" if index.dialect.tuples == "items" else "items", True)
    return [], schema.get("items", True)


def longest_tuple(index: Index, node: Node) -> int:
    """How many first items have a schema of their own."""
    return max((len(_tuple(index, place.schema)[0]) for place in node), default=0)


def item(index: Index, node: Node, at: int) -> Node:
    """What the item at a position fulfils."""
    places = []
    for place in node:
        first, others = _tuple(index, place.schema)
        places.append(place.below(first[at] if at < len(first) else others))
    return node_of(index, *places)
