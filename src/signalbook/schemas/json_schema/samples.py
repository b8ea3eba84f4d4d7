"""Sample payloads of a JSON Schema, made from what the schema says, and sample texts for patterns and named formats.

Rule 1: what the author gave comes first: `const`, `examples`, `default`, `enum`; then what the types ask for.
Rule 2: several values are tried, the fullest first, and the schema's own check decides; none may be right.
Rule 3: a value is bounded in depth and in size, whatever the schema refers to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

import jsonschema_rs

from signalbook.jsontext import encode_json
from signalbook.schemas.format import BadValue, Schema
from signalbook.schemas.json_schema.places import PATTERNS, Index, Subschema
from signalbook.schemas.json_schema.schema import JsonSchema

__all__ = ["FORMAT_TEXTS", "encode", "samples", "text_for", "values"]

_DEEPEST = 12
_MOST_VALUES = 20_000
_MOST_PARTS = 2000
_MOST_MEMBERS = 100
_MOST_PATTERNS = 100
# What a text for a pattern takes of the room that values have, and each character that it is to have.
_COST_OF_TEXT, _COST_OF_CHARACTER = 100, 20
_ALTERNATIVES = ("oneOf", "anyOf")
_DEPENDENT = ("dependencies", "dependentRequired", "dependentSchemas")
_ORDER = ("object", "array", "string", "integer", "number", "boolean", "null")
_HINTS = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "patternProperties", *_DEPENDENT),
    "array": ("items", "prefixItems", "minItems", "contains"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
}


# JSON Schema 2020-12 validation, section 7.3.
FORMAT_TEXTS: Mapping[str, str] = {
    "date-time": "2024-05-17T12:30:00Z",
    "date": "2024-05-17",
    "time": "12:30:00Z",
    "duration": "PT1H",
    "email": "someone@example.com",
    "idn-email": "someone@example.com",
    "hostname": "host.example.com",
    "idn-hostname": "host.example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/a",
    "uri-reference": "/a",
    "iri": "https://example.com/a",
    "iri-reference": "/a",
    "uuid": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
    "uri-template": "/a/{b}",
    "json-pointer": "/a",
    "relative-json-pointer": "0/a",
    "regex": "^a$",
}


def values(schema: JsonSchema, formats: Callable[[str], str | None] = FORMAT_TEXTS.get) -> Iterator[Any]:
    """Values to try, one for each combination of alternatives and for full, then for bare objects."""
    for full in (True, False):
        for choice in range(8):
            yield _SampleMaker(schema.index, full, choice, formats).value(schema.place, 0)


class _SampleMaker:
    """One attempt: `full` objects have all their members, `choice` says which alternative is taken."""

    def __init__(self, index: Index, full: bool, choice: int, formats: Callable[[str], str | None]) -> None:
        self.index = index
        self.full = full
        self.choice = choice
        self.formats = formats
        self.room = _MOST_VALUES

    def value(self, place: Subschema, depth: int) -> Any:
        self.room -= 1
        if isinstance(place.schema, bool) or self.room < 0:
            return {}
        merged = _MergedSchema(self.index, self.choice, min(self.room, _MOST_PARTS))
        merged.add(place, 0)
        self.room -= merged.parts
        said = merged.said
        for keyword in ("const", "default"):
            # A default need not be a value that the schema takes, so every other attempt does without.
            if keyword in said and (keyword == "const" or self.choice % 2 == 0):
                return said[keyword]
        for keyword in ("examples", "enum"):
            if isinstance(said.get(keyword), list) and said[keyword]:
                return said[keyword][self.choice % len(said[keyword])]
        kind = _kind(said, self.choice)
        return getattr(self, f"_{kind}")(merged, depth)

    def _object(self, merged: _MergedSchema, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name in self._wanted(merged, depth):
            made[name] = self._member(merged, name, depth)
        least = min(int(merged.said.get("minProperties", 0)), _MOST_MEMBERS)
        for name in self._further(merged, least):
            if len(made) >= least:
                break
            if name not in made:
                made[name] = self._member(merged, name, depth)
        return made

    def _wanted(self, merged: _MergedSchema, depth: int) -> list[str]:
        """The members that an object has: those it must have, all that are declared where it is full, and theirs."""
        full = self.full and depth < _DEEPEST // 2
        wanted = dict.fromkeys(
            name for name in merged.members if name in merged.required or (full and not merged.refuses(name))
        )
        wanted |= dict.fromkeys(sorted(merged.required))
        left = list(wanted)
        while left:
            name = left.pop()
            for needed in merged.needed_beside(name):
                if needed not in wanted:
                    wanted[needed] = None
                    left.append(needed)
        return list(wanted)

    def _further(self, merged: _MergedSchema, count: int) -> Iterator[str]:
        """Names for more members: those that are declared, those that a pattern takes, and any."""
        if not count:
            return
        yield from (name for name in merged.members if not merged.refuses(name))
        patterns = [pattern for pattern, place in merged.by_pattern if place.schema is not False]
        for place in merged.names:
            named = _MergedSchema(self.index, self.choice, _MOST_PARTS)
            named.add(place, 0)
            yield from (name for name in _listed(named.said) if isinstance(name, str))
            patterns += named.patterns
            shortest = min(int(named.said.get("minLength", 0)), 1000)
            yield from (f"p{number}".ljust(shortest, "p") for number in range(count if shortest else 0))
        for pattern in patterns:
            for length in range(1, count + 3):  # a loop in the pattern makes a longer text another one
                self.room -= _COST_OF_TEXT + length * _COST_OF_CHARACTER
                if self.room < 0:
                    return
                name = text_for(pattern, length)
                if name is not None:
                    yield name
        yield from (f"property{number}" for number in range(1, count + 1))

    def _member(self, merged: _MergedSchema, name: str, depth: int) -> Any:
        """The value of a member, by all that the schema says about its name."""
        patterns = merged.by_pattern[: min(_MOST_PATTERNS, max(self.room, 0))]
        self.room -= len(patterns)
        places = [*merged.members.get(name, ())]
        places += [place for pattern, place in patterns if _is_found(pattern, name)]
        rest = merged.said.get("additionalProperties", True)
        if not places and isinstance(rest, dict):
            places = [Subschema(rest, merged.base).below(rest)]
        return self.value(_all_of(places), depth + 1) if places and depth < _DEEPEST else "a"

    def _array(self, merged: _MergedSchema, depth: int) -> list[Any]:
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
            made.append("a" if item is True else self.value(Subschema(item, base).below(item), depth + 1))
        return _distinct(made) if said.get("uniqueItems") else made

    def _string(self, merged: _MergedSchema, depth: int) -> str | None:
        said = merged.said
        shortest = min(int(said.get("minLength", 0)), 10_000)
        longest = said.get("maxLength", math.inf)
        another = self.choice if "not" in said else 0
        for pattern in merged.patterns:
            text = text_for(pattern, shortest + another)
            if text is not None and len(text) <= longest:
                return text
        if isinstance(said.get("format"), str):
            text = self.formats(said["format"])
            if text is not None and shortest <= len(text) <= longest:
                return text
        text = f"{another or ''}text".ljust(shortest, "x")
        return text[: int(min(longest, 10_000))]

    def _number(self, merged: _MergedSchema, depth: int) -> int | float:
        return _number(merged.said, whole=False, another=self.choice)

    def _integer(self, merged: _MergedSchema, depth: int) -> int | float:
        return _number(merged.said, whole=True, another=self.choice)

    def _boolean(self, merged: _MergedSchema, depth: int) -> bool:
        return "not" not in merged.said or self.choice % 2 == 0

    def _null(self, merged: _MergedSchema, depth: int) -> None:
        return None


class _MergedSchema:
    """What a schema says together with those it takes in: `$ref`, `allOf`, and one alternative of each choice."""

    def __init__(self, index: Index, choice: int, room: int) -> None:
        self.index = index
        self.choice = choice
        self.room = room
        self.parts = 0
        self.said: dict[str, Any] = {}
        self.members: dict[str, list[Subschema]] = {}
        self.patterns: list[str] = []
        self.by_pattern: list[tuple[str, Subschema]] = []
        self.names: list[Subschema] = []
        self.required: set[str] = set()
        self._fresh: list[str] = []
        self.needs: dict[str, list[list[str] | Subschema]] = {}
        self.base = ""

    def refuses(self, name: str) -> bool:
        """Whether a declared member must not be there."""
        return any(place.schema is False for place in self.members.get(name, ()))

    def needed_beside(self, name: str) -> list[str]:
        """The members that have to be there where one is; what a schema says for that case is taken in."""
        for one in self.needs.pop(name, ()):
            if isinstance(one, Subschema):
                self.add(one, 1)
            else:
                self._fresh += one
        found, self._fresh = self._fresh, []
        return found

    def add(self, place: Subschema, depth: int) -> None:
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

    def _say(self, schema: dict[str, Any], place: Subschema) -> None:
        self.base = place.base
        for name, value in schema.items():
            known = self.said.get(name)
            if self._says_of_members(name, value, place):
                self.said[name] = value
            elif name == "pattern" and isinstance(value, str):
                self.patterns.append(value)
            elif name in _TIGHTEN and known is not None:
                self.said[name] = _TIGHTEN[name](known, value)
            elif name == "enum" and isinstance(known, list):
                self.said[name] = [one for one in known if one in value] or value
            elif name == "type" and known is not None:
                self.said[name] = [one for one in _types(known) if one in _types(value)] or value
            else:
                self.said[name] = value

    def _says_of_members(self, name: str, value: Any, place: Subschema) -> bool:
        """Whether a keyword is about an object's members, which is then noted."""
        if name == "propertyNames":
            self.names.append(place.below(value))
        elif name == "required" and isinstance(value, list):
            self._fresh += [one for one in value if one not in self.required]
            self.required.update(value)
        elif not isinstance(value, dict):
            return False
        elif name == "properties":
            for member, inner in value.items():
                self.members.setdefault(member, []).append(place.below(inner))
        elif name == "patternProperties":
            self.by_pattern += [(pattern, place.below(inner)) for pattern, inner in value.items()]
        elif name in _DEPENDENT:
            for member, inner in value.items():
                needed = list(inner) if isinstance(inner, list) else place.below(inner)
                self.needs.setdefault(member, []).append(needed)
        else:
            return False
        return True


_TIGHTEN: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}


def _all_of(places: list[Subschema]) -> Subschema:
    return places[0] if len(places) == 1 else Subschema({"allOf": [place.schema for place in places]}, places[0].base)


def _is_found(pattern: str, text: str) -> bool:
    """Tell whether a pattern is found in a text, by the engine that keeps a bound."""
    reader = _reader(pattern)
    return reader is not None and reader.is_valid(text)


@lru_cache(maxsize=256)
def _reader(pattern: str) -> jsonschema_rs.Draft202012Validator | None:
    try:
        return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=PATTERNS)
    except ValueError:
        return None


def _listed(said: dict[str, Any]) -> list[Any]:
    """The values that a schema lists."""
    listed = said.get("enum")
    return [said["const"]] if "const" in said else listed if isinstance(listed, list) else []


def _types(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _kind(said: dict[str, Any], choice: int) -> str:
    if "type" in said:
        named = [one for one in _types(said["type"]) if one in _ORDER]
        named.sort(key=_ORDER.index)
        return named[choice % len(named)] if named else "object"
    excluded = said.get("not")
    if isinstance(excluded, dict) and excluded.keys() == {"type"}:
        return next((kind for kind in _ORDER if kind not in _types(excluded["type"])), "object")
    return next((kind for kind, hints in _HINTS.items() if any(hint in said for hint in hints)), "object")


def _number(said: dict[str, Any], *, whole: bool, another: int) -> int | float:
    """A number between the bounds, in steps of `multipleOf`; where some are excluded, so many steps further."""
    step = Decimal(str(said.get("multipleOf", 1 if whole else "0.5")))
    step = step if step > 0 else Decimal(1)
    if whole and step != int(step):
        step = Decimal(step.as_integer_ratio()[0])
    low = _bound(said, "minimum", "exclusiveMinimum", step, math.floor, 1)
    high = _bound(said, "maximum", "exclusiveMaximum", step, math.ceil, -1)
    times = (max(1, low) if low is not None else 1) + (another if "not" in said else 0)
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


def encode(schema: Schema, value: Any, contenttype: str) -> bytes:
    """The value as JSON text."""
    try:
        return encode_json(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadValue(f"is not a JSON value: {error}") from None


def samples(schema: JsonSchema, contenttype: str) -> Iterator[bytes]:
    """JSON texts to try."""
    return (encode_json(value).encode() for value in values(schema))


# Texts that a regular expression or a named format takes.
#
# Rule 1: a text is a guess that its caller checks; what no text is found for is None, never an error.
# Rule 2: the work is bounded by the pattern: each part of it is written once, a loop as often as it must be.


_LONGEST = 10_000
_MOST_REPEATS = 1000
_CATEGORIES = {
    "CATEGORY_DIGIT": "0",
    "CATEGORY_NOT_DIGIT": "a",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_SPACE": "a",
    "CATEGORY_WORD": "a",
    "CATEGORY_NOT_WORD": "-",
}
_PRINTABLE = "a0-_.~ " + "".join(map(chr, range(0x21, 0x7F))) + "é中"


def text_for(pattern: str, shortest: int = 0) -> str | None:
    r"""A text in which the pattern is found, of at least so many characters; None where none is found.

    >>> text_for(r"^[A-Z]{3}-\d+$"), text_for("^a{2}$", 5)
    ('AAA-0', None)
    """
    parsed = _parsed(pattern)
    if parsed is None:
        return None
    for repeats in (0, 1, shortest):
        try:
            text = _TextWriter(repeats).write(parsed)
        except (ValueError, RecursionError):
            return None
        if len(text) < shortest:
            text = text.ljust(shortest, "a")
        if len(text) >= shortest and _takes(pattern, text):
            return text
    return None


def _takes(pattern: str, text: str) -> bool:
    """Tell whether the pattern is found in the text, by the engine that keeps a bound."""
    try:
        return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=PATTERNS).is_valid(text)
    except ValueError:
        return False


def _parsed(pattern: str) -> Any:
    """The parts of a pattern; Python's own reader of patterns takes nearly all that JSON Schema and XSD write."""
    from re import _parser  # type: ignore[attr-defined]  # the only reader there is in the standard library

    if len(pattern) > _LONGEST:
        return None
    try:
        return _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return None


class _TextWriter:
    """Writes a text for the parts of a pattern; a loop that may be left out is taken `repeats` times."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self.groups: dict[int, str] = {}
        self.room = _LONGEST

    def write(self, parts: Any) -> str:
        return "".join(self.part(str(name), value) for name, value in parts)

    def part(self, name: str, value: Any) -> str:
        self.room -= 1
        if self.room < 0:
            raise ValueError("the pattern asks for a longer text than samples have")
        match name:
            case "LITERAL":
                return chr(value)
            case "NOT_LITERAL":
                return next(one for one in _PRINTABLE if ord(one) != value)
            case "ANY":
                return "a"
            case "IN":
                return self.member(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                return self.loop(*value)
            case "SUBPATTERN":
                return self.group(value[0], value[-1])
            case "ATOMIC_GROUP":
                return self.write(value)
            case "BRANCH":
                return self.write(value[1][0])
            case "GROUPREF":
                return self.groups.get(value, "")
            case _:  # anchors and look-around take no room; what they ask is seen when the text is checked
                return ""

    def loop(self, low: int, high: int, inner: Any) -> str:
        """What repeats, as often as it must."""
        times = max(low, min(self.repeats, int(high)))
        if times > _MOST_REPEATS:
            raise ValueError("the pattern repeats more often than samples do")
        return "".join(self.write(inner) for _ in range(times))

    def group(self, number: int | None, inner: Any) -> str:
        """A group's text, kept for those who refer to it."""
        text = self.write(inner)
        if number is not None:
            self.groups[number] = text
        return text

    def member(self, items: Any) -> str:
        """One character of a set."""
        names = [str(name) for name, _ in items]
        if names[0] == "NEGATE":
            excluded = re.compile(_set_text(items[1:]))
            return next(one for one in _PRINTABLE if not excluded.fullmatch(one))
        name, value = names[0], items[0][1]
        if name == "LITERAL":
            return chr(value)
        return chr(value[0]) if name == "RANGE" else _CATEGORIES[str(value)]


_ESCAPES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def _set_text(items: Any) -> str:
    """The members of a set as a pattern again."""
    parts = []
    for name, value in items:
        match str(name):
            case "LITERAL":
                parts.append(re.escape(chr(value)))
            case "RANGE":
                parts.append(f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}")
            case _:
                parts.append(_ESCAPES[str(value)])
    return f"[{''.join(parts)}]"
