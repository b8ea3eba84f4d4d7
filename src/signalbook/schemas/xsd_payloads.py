"""XML payloads: texts as they are, and documents made up from what a schema declares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from lxml import etree

from signalbook.schemas.bad_value import BadValue
from signalbook.schemas.text_sample import text_for
from signalbook.schemas.xsd import XsdSchema
from signalbook.schemas.xsd_model import Element, Group, Particle, Simple, Wildcard

__all__ = ["encode", "samples"]

_DEEPEST = 12
_MOST_ELEMENTS = 5000


def encode(schema: XsdSchema, value: Any, contenttype: str) -> bytes:
    """A document that is given as its text."""
    if not isinstance(value, str):
        raise BadValue("is no text; an XML document is given as its text or its bytes")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise BadValue("holds half a surrogate pair") from None


def samples(schema: XsdSchema, contenttype: str) -> Iterator[bytes]:
    """Documents to try, for each element that one may begin with: full ones, then bare ones."""
    elements = schema.components.elements
    roots = [elements[schema.root]] if schema.root else [one for one in elements.values() if not one.abstract]
    for root in roots:
        for full in (True, False):
            for choice in range(3):
                made = _Writer(full, choice).element(root, None, 0)
                yield etree.tostring(made, xml_declaration=True, encoding="UTF-8")


class _Writer:
    """One attempt: `full` has all that is optional, `choice` says which branch is taken."""

    def __init__(self, full: bool, choice: int) -> None:
        self.full = full
        self.choice = choice
        self.room = _MOST_ELEMENTS

    def element(self, element: Element, parent: Any, depth: int) -> Any:
        self.room -= 1
        if self.room < 0 or depth > 4 * _DEEPEST:
            raise BadValue("contains itself without an end")
        node = etree.Element(element.name) if parent is None else etree.SubElement(parent, element.name)
        kind = element.type
        stated = element.fixed if element.fixed is not None else element.default
        if isinstance(kind, Simple):
            node.text = stated if stated is not None else _text(kind, self.choice)
            return node
        for attribute in kind.attributes.values():
            if attribute.required or self.full:
                fixed = attribute.fixed
                node.set(attribute.name, fixed if fixed is not None else _text(attribute.type, self.choice))
        if kind.simple is not None:
            node.text = stated if stated is not None else _text(kind.simple, self.choice)
        elif kind.content is not None:
            self.particle(kind.content, node, depth)
        return node

    def particle(self, particle: Particle, parent: Any, depth: int) -> None:
        wanted = 1 if self.full and depth < _DEEPEST and not isinstance(particle.term, Wildcard) else 0
        times = max(particle.low, wanted)
        for _ in range(times if particle.high is None else min(times, particle.high)):
            term = particle.term
            if isinstance(term, Element):
                self.element(term, parent, depth + 1)
            elif isinstance(term, Group):
                self.group(term, parent, depth)
            else:
                etree.SubElement(parent, "any")

    def group(self, group: Group, parent: Any, depth: int) -> None:
        parts = group.particles
        if group.kind == "choice" and parts:
            parts = (_forced(parts[self.choice % len(parts)]),)
        for part in parts:
            self.particle(part, parent, depth)


def _forced(particle: Particle) -> Particle:
    """The branch that a choice takes occurs."""
    return particle if particle.low else Particle(particle.term, 1, particle.high)


# XSD 1.0 part 2, section 3: a text of each built-in type that no other rule gives one.
_TEXTS: Mapping[str, str] = {
    "boolean": "true",
    "float": "1.5",
    "double": "1.5",
    "duration": "PT1H",
    "dateTime": "2024-05-17T12:30:00Z",
    "time": "12:30:00Z",
    "date": "2024-05-17",
    "gYearMonth": "2024-05",
    "gYear": "2024",
    "gMonthDay": "--05-17",
    "gDay": "---17",
    "gMonth": "--05",
    "hexBinary": "61",
    "base64Binary": "YQ==",
    "anyURI": "https://example.com/a",
    "language": "en",
    "negativeInteger": "-1",
    "nonPositiveInteger": "-1",
}
_NUMBERS = frozenset(
    {"decimal", "integer", "nonNegativeInteger", "positiveInteger", "long", "int", "short", "byte"}
    | {"unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte", "negativeInteger", "nonPositiveInteger"}
)
_NAMES = frozenset({"NMTOKEN", "Name", "NCName", "ID", "IDREF", "ENTITY", "QName"})


def _text(kind: Simple, choice: int) -> str:
    """A text of a simple type."""
    if kind.enumeration:
        return kind.enumeration[choice % len(kind.enumeration)]
    if kind.item is not None:
        count = int(kind.facets.get("length", kind.facets.get("minLength", "1")))
        return " ".join(_text(kind.item, choice) for _ in range(min(count, 100)))
    if kind.members:
        return _text(kind.members[choice % len(kind.members)], choice)
    for patterns in kind.patterns:
        for pattern in patterns:
            text = text_for(f"^(?:{_plain(pattern)})$", int(kind.facets.get("minLength", "0")))
            if text is not None:
                return text
    if kind.builtin in _NUMBERS:
        return _number(kind)
    if kind.builtin in _TEXTS:
        return _TEXTS[kind.builtin]
    return _sized("a" if kind.builtin in _NAMES else "text", kind.facets)


def _plain(pattern: str) -> str:
    r"""An XSD pattern as others write it: `\i` and `\c` are the characters of names."""
    return re.sub(r"\\[ic]", "[A-Za-z]", pattern)


def _sized(text: str, facets: Mapping[str, str]) -> str:
    low = int(facets.get("length", facets.get("minLength", "0")))
    high = int(facets.get("length", facets.get("maxLength", str(max(low, len(text))))))
    return text.ljust(min(low, 10_000), "x")[: min(high, 10_000)]


def _number(kind: Simple) -> str:
    facets = kind.facets
    try:
        if "minInclusive" in facets or "minExclusive" in facets:
            low = Decimal(facets.get("minInclusive", facets.get("minExclusive", "0")))
            return _written(low if "minInclusive" in facets else low + _step(kind))
        if "maxInclusive" in facets or "maxExclusive" in facets:
            high = Decimal(facets.get("maxInclusive", facets.get("maxExclusive", "0")))
            return _written(min(Decimal(1), high if "maxInclusive" in facets else high - _step(kind)))
    except InvalidOperation:
        pass
    return _TEXTS.get(kind.builtin, "1")


def _step(kind: Simple) -> Decimal:
    if kind.builtin != "decimal":
        return Decimal(1)
    return Decimal(1).scaleb(-int(kind.facets.get("fractionDigits", "2")))


def _written(number: Decimal) -> str:
    return format(number, "f")
