"""Texts that a regular expression or a named format takes: what samples of payloads are made of.

Rule 1: a text is a guess that its maker checks; what no text is found for is None, never an error.
Rule 2: the work is bounded by the pattern: each part of it is written once, a loop as often as it must be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from signalbook.schemas.json_schema.places import PATTERNS

__all__ = ["FORMATS", "text_for"]

# JSON Schema 2020-12 validation, section 7.3.
FORMATS: Mapping[str, str] = {
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
            text = _Writer(repeats).write(parsed)
        except (ValueError, RecursionError):
            return None
        if len(text) < shortest:
            text = text.ljust(shortest, "a")
        if len(text) >= shortest and _takes(pattern, text):
            return text
    return None


def _takes(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text, told by the engine that keeps a bound."""
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


class _Writer:
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
