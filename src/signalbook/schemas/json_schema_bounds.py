"""How much work a JSON Schema can make, judged before it is compiled.

Rule 1: no schema nests deeper than `DEEPEST`, has more than `MOST_PATTERNS` different regular expressions, or more than
`MOST_LARGE_PATTERNS` whose compiled form is large.
Rule 2: references that lead to references multiply: a few lines of `allOf` can ask for 2**30 evaluations of one value.
The evaluations of a single value are counted over the graph of references, each once, and held to `MOST_WORK`.
Recursion counts once: the engine remembers it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import jsonschema_rs

from signalbook.errors import Problem
from signalbook.schemas.json_schema_places import MAPS, Index, Place

__all__ = ["DEEPEST", "MOST_WORK", "PATTERNS", "subschemas", "too_deep", "too_many_patterns", "work"]

DEEPEST = 128
MOST_PATTERNS = 5_000
MOST_LARGE_PATTERNS = 100
MOST_SECONDS = 5.0
MOST_WORK = 1_000_000

# The engine is linear but for look-around and back references; those stop after this many steps, about 3 ms.
PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=50_000, size_limit=1024 * 1024, dfa_size_limit=1024 * 1024)
_SMALL = jsonschema_rs.FancyRegexOptions(backtrack_limit=50_000, size_limit=16 * 1024, dfa_size_limit=1024 * 1024)

_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
_HERE = frozenset({"not", "if", "then", "else"})
_ITEMS = frozenset({"items", "additionalItems", "contains", "unevaluatedItems", "prefixItems"})
_VALUES = frozenset({"additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames"})


def too_deep(document: Any) -> bool:
    """Tell whether a document nests deeper than is read."""
    level = [document]
    for _ in range(DEEPEST):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def too_many_patterns(documents: Iterable[Any]) -> Iterator[Problem]:
    """Yield a problem where compiling the regular expressions would take too much; what is no pattern is not judged."""
    patterns = {pattern for document in documents for pattern in _patterns(document)}
    if len(patterns) > MOST_PATTERNS:
        yield Problem("", "schema", f"more than {MOST_PATTERNS:,} different patterns")
        return
    large, until = 0, time.monotonic() + MOST_SECONDS
    for pattern in patterns:
        large += not _compiles(pattern)
        if large > MOST_LARGE_PATTERNS:
            yield Problem("", "schema", f"more than {MOST_LARGE_PATTERNS} patterns that are very large or broken")
            return
        if time.monotonic() > until:
            yield Problem("", "schema", "patterns that take too long to compile")
            return


def _patterns(document: Any) -> Iterator[str]:
    stack = [document]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(pattern := node.get("pattern"), str):
                yield pattern
            if isinstance(named := node.get("patternProperties"), dict):
                yield from named
            stack.extend(child for child in node.values() if isinstance(child, dict | list))
        else:
            stack.extend(child for child in node if isinstance(child, dict | list))


def _compiles(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=_SMALL)
    except ValueError:
        return False
    return True


def subschemas(place: Place) -> Iterator[tuple[str, str, Place]]:
    """Yield each schema written directly in another, with the keyword and the name or index below it."""
    for keyword, value in place.schema.items():
        if keyword in MAPS or keyword == "patternProperties":
            if isinstance(value, dict):
                yield from (
                    (keyword, name, place.below(child))
                    for name, child in value.items()
                    if isinstance(child, dict | bool)
                )
        elif keyword in _LISTS or (keyword in _ITEMS and isinstance(value, list)):
            if isinstance(value, list):
                yield from (
                    (keyword, str(at), place.below(child))
                    for at, child in enumerate(value)
                    if isinstance(child, dict | bool)
                )
        elif (keyword in _HERE or keyword in _ITEMS or keyword in _VALUES) and isinstance(value, dict | bool):
            yield keyword, "", place.below(value)


def work(index: Index, start: Place) -> int:
    """The most evaluations that one value and one path of values below it can cause, at most `MOST_WORK` + 1."""
    known: dict[int, int] = {}
    under_way: set[int] = set()
    # Depth first with a stack of its own: references can make a chain longer than Python's.
    stack: list[tuple[Place, bool]] = [(start, False)]
    while stack:
        place, done = stack.pop()
        key = id(place.schema)
        if not isinstance(place.schema, dict) or (key in known and not done):
            continue
        if done:
            under_way.discard(key)
            known[key] = _sum(index, place, known)
        elif key not in under_way:
            under_way.add(key)
            stack.append((place, True))
            stack.extend((child, False) for _, _, child in _applied(index, place) if id(child.schema) not in under_way)
    return known.get(id(start.schema), 1)


def _applied(index: Index, place: Place) -> Iterator[tuple[str, str, Place]]:
    for keyword, name, child in subschemas(place):
        if keyword not in ("definitions", "$defs"):
            yield keyword, name, child
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        reference = place.schema.get(keyword)
        if isinstance(reference, str):
            target = index.follow(place, reference)
            if target is not None:
                yield keyword, "", target


def _sum(index: Index, place: Place, known: dict[int, int]) -> int:
    """One for itself, all that applies to the value or to any member, and the worst of the named members."""
    total, worst = 1, 0
    for keyword, _, child in _applied(index, place):
        cost = known.get(id(child.schema), 1)
        if keyword == "properties":
            worst = max(worst, cost)
        else:
            total += cost
    return min(total + worst, MOST_WORK + 1)
