"""Documents made at random from a schema's components, for what must hold of all of them."""

from __future__ import annotations

import random
from decimal import Decimal
from xml.sax.saxutils import escape, quoteattr

from signalbook.schemas.xsd.containment import INTEGERS, integer_bounds
from signalbook.schemas.xsd.model import Complex, Element, Group, Particle, Simple, Wildcard
from signalbook.schemas.xsd.schema import XsdSchema

__all__ = ["WRAP", "document"]

WRAP = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{}</xs:schema>'
_TEXTS = {
    "date": ["2024-02-29", "1999-12-31Z"],
    "dateTime": ["2024-02-29T12:00:00", "2024-02-29T12:00:00.123456789+14:00"],
    "boolean": ["true", "0"],
    "float": ["1.5", "-INF", "NaN", "3e9"],
    "double": ["1.5", "INF", "NaN", "-2.25E-7"],
    "decimal": ["0", "-1.50", "+3", "12345678901234567890.123"],
    "base64Binary": ["", "AAEC", "AA EC"],
    "hexBinary": ["", "00fF"],
    "string": ["", "x", " a & b ", "<é>"],
    "token": ["x", "a b"],
}


def document(schema: XsdSchema, chance: random.Random) -> bytes:
    """One document that the schema takes."""
    roots = [one for one in schema.components.elements.values() if not one.abstract]
    return _element(chance.choice(roots), chance, 0).encode()


def _element(element: Element, chance: random.Random, depth: int) -> str:
    kind = element.type
    name = element.name
    if element.nillable and chance.random() < 0.3 and not (isinstance(kind, Complex) and kind.attributes):
        return f'<{name} xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>'
    if isinstance(kind, Simple):
        return f"<{name}>{escape(element.fixed or simple(kind, chance))}</{name}>"
    attributes = "".join(
        f" {one.name}={quoteattr(one.fixed or simple(one.type, chance))}"
        for one in kind.attributes.values()
        if one.required or chance.random() < 0.5
    )
    if kind.simple is not None:
        return f"<{name}{attributes}>{escape(simple(kind.simple, chance))}</{name}>"
    inner = _particle(kind.content, chance, depth + 1) if kind.content is not None else ""
    return f"<{name}{attributes}>{'text' if kind.mixed else ''}{inner}</{name}>"


def _particle(particle: Particle, chance: random.Random, depth: int) -> str:
    most = particle.low + (0 if depth > 6 else 2)
    high = most if particle.high is None else min(particle.high, most)
    return "".join(_term(particle.term, chance, depth) for _ in range(chance.randint(particle.low, high)))


def _term(term: Element | Group | Wildcard, chance: random.Random, depth: int) -> str:
    if isinstance(term, Element):
        return _element(term, chance, depth)
    if isinstance(term, Wildcard):
        return "<anything/>"
    if term.kind == "choice":
        return _particle(chance.choice(term.particles), chance, depth) if term.particles else ""
    parts = list(term.particles)
    if term.kind == "all":
        chance.shuffle(parts)
    return "".join(_particle(part, chance, depth) for part in parts)


def simple(kind: Simple, chance: random.Random) -> str:
    """A text of a simple type."""
    if kind.enumeration:
        return chance.choice(kind.enumeration)
    if kind.item is not None:
        return " ".join(simple(kind.item, chance) for _ in range(chance.randint(1, 3)))
    if kind.members:
        return simple(chance.choice(kind.members), chance)
    if kind.patterns:
        return "abc"
    if kind.builtin in INTEGERS:
        low, high = integer_bounds(kind)
        low, high = (-(10**30) if low is None else low), (10**30 if high is None else high)
        return str(chance.choice([low, high, chance.randint(low, high)]))
    texts = _TEXTS.get(kind.builtin, ["x"])
    if "maxInclusive" in kind.facets or "maxExclusive" in kind.facets:
        texts = [text for text in texts if Decimal(text) < 10]
    if "totalDigits" in kind.facets:
        texts = ["0", "-1.5", "99.25"]
    return chance.choice([text for text in texts if len(text) <= int(kind.facets.get("maxLength", 100))])
