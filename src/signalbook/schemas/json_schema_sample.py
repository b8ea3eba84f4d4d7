"""A JSON value that a JSON Schema takes, made from what the schema says.

Rule 1: what the author gave comes first: `const`, `examples`, `default`, `enum`; then what the types ask for.
Rule 2: several values are tried, the fullest first, and the schema's own check decides; none may be right.
Rule 3: a value is bounded in depth and in size, whatever the schema refers to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from signalbook.schemas.json_schema import JsonSchema
from signalbook.schemas.json_schema_places import Index, Place
from signalbook.schemas.text_sample import FORMATS, text_for

__all__ = ["values"]

_DEEPEST = 12
_MOST_VALUES = 20_000
_MOST_PARTS = 2000
_ALTERNATIVES = ("oneOf", "anyOf")
_ORDER = ("object", "array", "string", "integer", "number", "boolean", "null")
_HINTS = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "patternProperties"),
    "array": ("items", "prefixItems", "minItems", "contains"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
}


def values(schema: JsonSchema, formats: Callable[[str], str | None] = FORMATS.get) -> Iterator[Any]:
    """Values to try, one for each combination of alternatives and for full, then for bare objects."""
    for full in (True, False):
        for choice in range(8):
            yield _Making(schema.index, full, choice, formats).value(schema.place, 0)


class _Making:
    """One attempt: `full` objects have all their members, `choice` says which alternative is taken."""

    def __init__(self, index: Index, full: bool, choice: int, formats: Callable[[str], str | None]) -> None:
        self.index = index
        self.full = full
        self.choice = choice
        self.formats = formats
        self.room = _MOST_VALUES

    def value(self, place: Place, depth: int) -> Any:
        self.room -= 1
        if isinstance(place.schema, bool) or self.room < 0:
            return {}
        merged = _Merged(self.index, self.choice, min(self.room, _MOST_PARTS))
        merged.add(place, 0)
        self.room -= merged.parts
        said = merged.said
        for keyword in ("const", "default"):
            if keyword in said:
                return said[keyword]
        for keyword in ("examples", "enum"):
            if isinstance(said.get(keyword), list) and said[keyword]:
                return said[keyword][self.choice % len(said[keyword])]
        kind = _kind(said, self.choice)
        return getattr(self, f"_{kind}")(merged, depth)

    def _object(self, merged: _Merged, depth: int) -> dict[str, Any]:
        required = set(merged.said.get("required", ()))
        made: dict[str, Any] = {}
        for name, places in merged.members.items():
            wanted = name in required or (self.full and depth < _DEEPEST // 2)
            if wanted and depth < _DEEPEST and not any(place.schema is False for place in places):
                made[name] = self.value(_all_of(places), depth + 1)
        rest = merged.said.get("additionalProperties", True)
        for name in sorted(required - made.keys()):
            made[name] = self._further(merged, rest, depth)
        number = 0
        while len(made) < min(int(merged.said.get("minProperties", 0)), 100):
            number += 1
            made.setdefault(f"property{number}", self._further(merged, rest, depth))
        return made

    def _further(self, merged: _Merged, rest: Any, depth: int) -> Any:
        """The value of a member that is not declared."""
        if isinstance(rest, dict) and depth < _DEEPEST:
            return self.value(Place(rest, merged.base).below(rest), depth + 1)
        return "a"

    def _array(self, merged: _Merged, depth: int) -> list[Any]:
        said, base = merged.said, merged.base
        low = min(int(said.get("minItems", 0)), 1000)
        high = said.get("maxItems", math.inf)
        tuples = self.index.dialect.tuples
        first = said.get(tuples) if isinstance(said.get(tuples), list) else []
        rest = said.get("items") if tuples != "items" or not isinstance(said.get("items"), list) else None
        rest = said.get("contains", True) if rest is None else rest
        wanted = max(low, 1 if self.full and depth < _DEEPEST // 2 else 0, "contains" in said)
        count = int(min(max(wanted, len(first or ()) if self.full else 0), high))
        made = []
        for number in range(count if depth < _DEEPEST else 0):
            item = first[number] if first and number < len(first) else rest
            made.append("a" if item is True else self.value(Place(item, base).below(item), depth + 1))
        return _distinct(made) if said.get("uniqueItems") else made

    def _string(self, merged: _Merged, depth: int) -> str | None:
        said = merged.said
        shortest = min(int(said.get("minLength", 0)), 10_000)
        longest = said.get("maxLength", math.inf)
        for pattern in merged.patterns:
            text = text_for(pattern, shortest)
            if text is not None and len(text) <= longest:
                return text
        if isinstance(said.get("format"), str):
            text = self.formats(said["format"])
            if text is not None and shortest <= len(text) <= longest:
                return text
        return "text".ljust(shortest, "x")[: int(min(longest, 10_000))]

    def _number(self, merged: _Merged, depth: int) -> int | float:
        return _number(merged.said, whole=False)

    def _integer(self, merged: _Merged, depth: int) -> int | float:
        return _number(merged.said, whole=True)

    def _boolean(self, merged: _Merged, depth: int) -> bool:
        return True

    def _null(self, merged: _Merged, depth: int) -> None:
        return None


class _Merged:
    """What a schema says together with those it takes in: `$ref`, `allOf`, and one alternative of each choice."""

    def __init__(self, index: Index, choice: int, room: int) -> None:
        self.index = index
        self.choice = choice
        self.room = room
        self.parts = 0
        self.said: dict[str, Any] = {}
        self.members: dict[str, list[Place]] = {}
        self.patterns: list[str] = []
        self.base = ""

    def add(self, place: Place, depth: int) -> None:
        place = self.index.known(place)
        schema = place.schema
        self.parts += 1
        if isinstance(schema, bool) or depth > _DEEPEST or self.parts > self.room:
            return
        reference = schema.get("$ref", schema.get("$dynamicRef", schema.get("$recursiveRef")))
        target = self.index.follow(place, reference) if isinstance(reference, str) else None
        if target is not None:
            self.add(target, depth + 1)
            if self.index.dialect.ref_stands_alone:
                return
        self._say(schema, place)
        for part in schema.get("allOf") or ():
            self.add(place.below(part), depth + 1)
        for keyword in _ALTERNATIVES:
            parts = schema.get(keyword)
            if isinstance(parts, list) and parts:
                self.add(place.below(parts[self.choice % len(parts)]), depth + 1)
        branch = schema.get("then" if self.choice % 2 == 0 else "else")
        if "if" in schema and branch is not None:
            if self.choice % 2 == 0:
                self.add(place.below(schema["if"]), depth + 1)
            self.add(place.below(branch), depth + 1)

    def _say(self, schema: dict[str, Any], place: Place) -> None:
        self.base = place.base
        for name, value in schema.items():
            known = self.said.get(name)
            if name == "properties" and isinstance(value, dict):
                for member, inner in value.items():
                    self.members.setdefault(member, []).append(place.below(inner))
            elif name == "pattern" and isinstance(value, str):
                self.patterns.append(value)
            elif name == "required" and isinstance(known, list):
                self.said[name] = [*known, *value]
            elif name in _TIGHTEN and known is not None:
                self.said[name] = _TIGHTEN[name](known, value)
            elif name == "enum" and isinstance(known, list):
                self.said[name] = [one for one in known if one in value] or value
            elif name == "type" and known is not None:
                self.said[name] = [one for one in _types(known) if one in _types(value)] or value
            else:
                self.said[name] = value
        if schema.get("properties"):
            self.said.setdefault("properties", True)


_TIGHTEN: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}


def _all_of(places: list[Place]) -> Place:
    return places[0] if len(places) == 1 else Place({"allOf": [place.schema for place in places]}, places[0].base)


def _types(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _kind(said: dict[str, Any], choice: int) -> str:
    if "type" in said:
        named = [one for one in _types(said["type"]) if one in _ORDER]
        named.sort(key=_ORDER.index)
        return named[choice % len(named)] if named else "object"
    return next((kind for kind, hints in _HINTS.items() if any(hint in said for hint in hints)), "object")


def _number(said: dict[str, Any], *, whole: bool) -> int | float:
    """A number between the bounds, in steps of `multipleOf`."""
    step = Decimal(str(said.get("multipleOf", 1 if whole else "0.5")))
    step = step if step > 0 else Decimal(1)
    if whole and step != int(step):
        step = Decimal(step.as_integer_ratio()[0])
    low = _bound(said, "minimum", "exclusiveMinimum", step, math.floor, 1)
    high = _bound(said, "maximum", "exclusiveMaximum", step, math.ceil, -1)
    times = max(1, low) if low is not None else 1
    if high is not None:
        times = min(times, high)
    if low is not None and times < low:
        times = low
    found = step * times
    return int(found) if found == int(found) else float(found)


def _bound(
    said: dict[str, Any], inclusive: str, exclusive: str, step: Decimal, beyond: Callable[[Decimal], int], by: int
) -> int | None:
    """The first multiple of a step within a bound, in steps; None where there is no bound."""
    found: list[int] = []
    if isinstance(said.get(inclusive), int | float | Decimal):
        edge = Decimal(str(said[inclusive])) / step
        found.append(-beyond(-edge))
    if isinstance(said.get(exclusive), int | float | Decimal) and said[exclusive] is not True:
        edge = Decimal(str(said[exclusive])) / step
        found.append(beyond(edge) + by)
    return None if not found else max(found) if by > 0 else min(found)


def _distinct(items: list[Any]) -> list[Any]:
    """Items of which no two are the same."""
    made: list[Any] = []
    for number, item in enumerate(items):
        if item in made and isinstance(item, str):
            item = f"{item}{number}"
        elif item in made and isinstance(item, int | float) and not isinstance(item, bool):
            item = item + number
        made.append(item)
    return made
