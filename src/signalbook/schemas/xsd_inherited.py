"""What the types of an XML Schema inherit, weighed before libxml2 compiles them.

Rule: libxml2 holds each attribute of a type against all others of it, inherited ones with them, and each value of an
enumeration against those of the type that it restricts. The sums over a schema are bounded, whatever its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["MOST_ATTRIBUTES", "MOST_COMPARED", "Inherited"]

XS = "{http://www.w3.org/2001/XMLSchema}"
MOST_ATTRIBUTES = 20_000
MOST_COMPARED = 20_000_000
_DEEPEST = 200
_ENDLESS = 10**9

_ATTRIBUTE, _ENUMERATION = XS + "attribute", XS + "enumeration"
_COMPLEX, _SIMPLE, _ATTRIBUTES = XS + "complexType", XS + "simpleType", XS + "attributeGroup"
_INSIDE = frozenset(XS + name for name in ("complexContent", "simpleContent", "extension", "restriction", "union"))


class Inherited:
    """The attributes and the enumerations of the types of some documents, by the names of whichever namespace."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self._roots = tuple(roots)
        self._named: dict[tuple[str, str], list[Any]] = {}
        for root in self._roots:
            for node in root.iterchildren(_COMPLEX, _SIMPLE, _ATTRIBUTES):
                self._named.setdefault((node.tag, node.get("name", "")), []).append(node)

    def beyond(self) -> Iterator[tuple[Any, str]]:
        """Yield the type with which a bound is passed, and the words for it."""
        attributes, known, open_ = 0, dict[Any, int](), set[Any]()
        for node in self._all(_COMPLEX, _ATTRIBUTES):
            attributes += _sum(node, self._attributes, known, open_) ** 2
            if attributes > MOST_ATTRIBUTES**2:
                yield node, "the attributes of the types before and of this one, inherited ones counted for each"
                break
        compared, known = 0, {}
        for node in self._all(XS + "restriction"):
            own = len(node.findall(_ENUMERATION))
            if own:
                compared += own * sum(_sum(base, self._values, known, open_) for base in self._bases(node))
            if compared > MOST_COMPARED:
                yield node, "the enumerations that restrict others"
                break

    def _all(self, *tags: str) -> Iterator[Any]:
        for root in self._roots:
            yield from root.iter(*tags)

    def _attributes(self, node: Any) -> tuple[int, list[Any]]:
        """The attributes that stand in a node, and the nodes that more come from."""
        parts = [child for child in node if child.tag in _INSIDE]
        for child in node.iterchildren(_ATTRIBUTES):
            parts += self._find(_ATTRIBUTES, child.get("ref"))
        if node.tag in _INSIDE:
            parts += self._find(_COMPLEX, node.get("base"))
        return len(node.findall(_ATTRIBUTE)), parts

    def _values(self, node: Any) -> tuple[int, list[Any]]:
        """The enumerated values of a simple type, or the nodes that they come from."""
        own = len(node.findall(f"{XS}restriction/{_ENUMERATION}"))
        parts = [] if own else [base for child in node if child.tag in _INSIDE for base in self._bases(child)]
        return own, parts

    def _bases(self, node: Any) -> list[Any]:
        """The simple types that a restriction or a union is of."""
        found = list(node.iterchildren(_SIMPLE))
        for name in (node.get("base", "") + " " + node.get("memberTypes", "")).split():
            found += self._find(_SIMPLE, name)
        return found

    def _find(self, tag: str, name: str | None) -> list[Any]:
        return self._named.get((tag, (name or "").rpartition(":")[2]), [])


def _sum(node: Any, of: Callable[[Any], tuple[int, list[Any]]], known: dict[Any, int], open_: set[Any]) -> int:
    """What a node holds with all that it takes from others; a circle, which the compiler refuses, adds nothing."""
    if node in known:
        return known[node]
    if node in open_:
        return 0
    if len(open_) > _DEEPEST:
        return _ENDLESS
    open_.add(node)
    own, parts = of(node)
    known[node] = min(own + sum(_sum(part, of, known, open_) for part in parts), _ENDLESS)
    open_.discard(node)
    return known[node]
