"""Content types as constraints: what a definition states, and whether a message's satisfies it.

Rule: type, subtype and parameter names compare without case, `charset` values too; order and white space of parameters
do not matter, quoted equals unquoted. Every parameter of the definition must be there, more are allowed (RFC 2045
section 5.1; message/spec.md, `datacontenttype`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["ContentType", "is_json", "satisfies"]

_TOKEN = r"[!#$%&'*+\-.^_`{|}~0-9A-Za-z]+"
_head = re.compile(rf"[ \t]*({_TOKEN}/{_TOKEN})[ \t]*").match
_parameter = re.compile(rf'[ \t]*;[ \t]*(?:({_TOKEN})[ \t]*=[ \t]*({_TOKEN}|"(?:[^"\\]|\\.)*")[ \t]*)?').match
_LONGEST_KEPT = 200


@dataclass(frozen=True, slots=True)
class ContentType:
    """A content type: its name in lower case, and its parameters."""

    name: str
    parameters: frozenset[tuple[str, str]]

    @classmethod
    def parse(cls, text: str) -> ContentType | None:
        """The content type that a text is; None where it is none."""
        return _remembered(text) if len(text) <= _LONGEST_KEPT else _parse(text)

    @property
    def is_event(self) -> bool:
        """Whether it is one of an event or a batch of events."""
        return self.name.startswith("application/cloudevents")

    @property
    def is_json(self) -> bool:
        """Whether it is JSON or made of JSON."""
        return self.name.endswith(("/json", "+json"))


def satisfies(found: str, expected: str) -> bool:
    """Whether a message's content type is what a definition wants."""
    if found == expected:
        return True
    one, other = ContentType.parse(found), ContentType.parse(expected)
    return one is not None and other is not None and one.name == other.name and other.parameters <= one.parameters


def is_json(text: str) -> bool:
    """Whether a text is a content type of JSON."""
    parsed = ContentType.parse(text)
    return parsed is not None and parsed.is_json


def _parse(text: str) -> ContentType | None:
    head = _head(text)
    if head is None:
        return None
    parameters = set()
    at = head.end()
    while at < len(text):
        found = _parameter(text, at)
        if found is None:
            return None
        if found[1] is not None:
            name, value = found[1].lower(), found[2]
            if value[0] == '"':
                value = re.sub(r"\\(.)", r"\1", value[1:-1])
            parameters.add((name, value.lower() if name == "charset" else value))
        at = found.end()
    return ContentType(head[1].lower(), frozenset(parameters))


_remembered = lru_cache(4096)(_parse)
