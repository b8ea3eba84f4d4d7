"""XML documents as columns: the Arrow struct of an element, and how a document becomes a value of it.

Rule 1: names are those that Spark's XML reader gives: a child element by its local name, an attribute with `_` before
it, the value of an element that has attributes as `_VALUE`; they are escaped as `column_names` says.
Rule 2: a child that may occur more than once is a list. Numbers, booleans and binaries are exact; a number without a
bound, and what may have a time zone or not (dates, times), is the text that was written.
Rule 3: what a struct would lose is kept as XML text, whole: mixed content, wildcards, a type that contains itself or
that `xsi:type` may replace, children whose order the schema leaves open, an optional element that may be nil.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from lxml import etree

from signalbook.schemas.format import column_names
from signalbook.schemas.xsd.containment import INTEGERS, elements_of, integer_bounds, occurrences, wildcards_of
from signalbook.schemas.xsd.model import Complex, Components, Element, Group, Particle, Simple, Type, local
from signalbook.schemas.xsd.read import XS

__all__ = ["XsdTable", "table"]

VALUE = "_VALUE"
MOST_COLUMNS = 5000
_DEEPEST = 30
_NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class XsdTable:
    """A type and what makes a value of it."""

    type: pa.DataType
    convert: Convert


def table(components: Components, root: str) -> XsdTable:
    """The struct of a schema's documents."""
    building = _XsdColumns(components)
    roots = [one for name, one in components.elements.items() if root in ("", name) and not one.abstract]
    if len(roots) == 1:
        found = building.element(roots[0], ())
        if pa.types.is_struct(found.type):
            return found
        return XsdTable(pa.struct([pa.field(VALUE, found.type)]), lambda node: {VALUE: found.convert(node)})
    if not roots:
        return XsdTable(pa.struct([pa.field(VALUE, pa.string())]), lambda node: {VALUE: _xml_text(node)})
    # A column for each element that a document may begin with; the others are null.
    names = _columns([one.name for one in roots])
    tables = {one.name: building.element(one, ()) for one in roots}
    fields = [pa.field(names[one.name], tables[one.name].type) for one in roots]
    return XsdTable(pa.struct(fields), lambda node: {names[node.tag]: tables[node.tag].convert(node)})


def _columns(names: list[str]) -> dict[str, str]:
    """The columns of names, of which several may be alike but for their namespace."""
    often = Counter(map(local, names))
    plain = {name: local(name) if often[local(name)] == 1 else name for name in names}
    columns = column_names(plain.values())
    return {name: columns[given] for name, given in plain.items()}


class _XsdColumns:
    """Builds columns until there are too many; what is left then stays text."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self._room = MOST_COLUMNS

    def element(self, element: Element, around: tuple[Type, ...]) -> XsdTable:
        """The column of an element."""
        kind = element.type
        self._room -= 1
        if self._room < 0 or len(around) > _DEEPEST or kind in around or self._is_open(kind):
            return _TEXT
        if isinstance(kind, Simple):
            found = simple_column(kind)
            default = element.fixed if element.default is None else element.default
            return XsdTable(found.type, _value(found.convert, default))
        if kind.simple is None and kind.content is None and not kind.attributes:
            return XsdTable(pa.string(), lambda node: "")
        if element.nillable and kind.attributes:
            return _TEXT
        found = self._struct(kind, element, (*around, kind))
        return found if not element.nillable else XsdTable(found.type, _unless_nil(found.convert))

    def _is_open(self, kind: Type) -> bool:
        """Whether a document may hold what the type does not tell."""
        derived = self._components.derived(kind.name)
        if isinstance(kind, Simple):
            return any(isinstance(self._components.type(name), Complex) for name in derived)
        return bool(
            kind.name == XS + "anyType" or kind.mixed or kind.abstract or derived or kind.wildcard is not None
            or wildcards_of(kind.content) or not _keeps_order(kind.content)
        )  # fmt: skip

    def _struct(self, kind: Complex, element: Element, around: tuple[Type, ...]) -> XsdTable:
        parts: dict[str, XsdTable] = {}
        readers: list[tuple[str, Convert]] = []
        for name, attribute in kind.attributes.items():
            column = simple_column(attribute.type)
            parts[f"_{local(name)}"] = column
            readers.append((f"_{local(name)}", _attribute(name, column.convert)))
        if kind.simple is not None:
            column = simple_column(kind.simple)
            default = element.fixed if element.default is None else element.default
            parts[VALUE] = column
            readers.append((VALUE, _value(column.convert, default)))
        bounds = occurrences(kind.content)
        for name, child in elements_of(kind.content).items():
            low, high = bounds.get(name, (0, 0))
            if high == 0:
                continue
            inner = self.element(child, around)
            many = high is None or high > 1
            if child.nillable and not many and low == 0:
                inner = _TEXT  # that it is nil is not that it is absent
            parts[local(name)] = XsdTable(pa.list_(inner.type), inner.convert) if many else inner
            readers.append((local(name), (_all if many else _first)(name, inner.convert)))
        if len(parts) != len(readers) or not parts:
            return _TEXT  # two of one name
        names = column_names(parts)
        named = [(names[name], read) for name, read in readers]
        fields = [pa.field(names[name], part.type) for name, part in parts.items()]
        return XsdTable(pa.struct(fields), lambda node: {name: read(node) for name, read in named})


def _keeps_order(particle: Particle | None) -> bool:
    """Whether the order of children follows from what they are: no name twice, no group of several that repeats."""
    names = Counter(_names(particle))
    return all(count == 1 for count in names.values()) and not _repeats(particle)


def _names(particle: Particle | None) -> Iterator[str]:
    if particle is not None and particle.high != 0:
        if isinstance(particle.term, Group):
            for part in particle.term.particles:
                yield from _names(part)
        elif isinstance(particle.term, Element):
            yield particle.term.name


def _repeats(particle: Particle | None) -> bool:
    if particle is None or not isinstance(particle.term, Group):
        return False
    if (particle.high is None or particle.high > 1) and len(list(_names(particle))) > 1:
        return True
    return any(_repeats(part) for part in particle.term.particles)


# ---- values


def _xml_text(node: Any) -> str:
    return str(etree.tostring(node, encoding="unicode", with_tail=False))


_TEXT = XsdTable(pa.string(), _xml_text)


def _value(convert: Convert, default: str | None) -> Convert:
    def read(node: Any) -> Any:
        if node.get(_NIL) in ("true", "1"):
            return None
        text = "".join(node.itertext())
        return convert(default if default is not None and not text else text)

    return read


def _unless_nil(convert: Convert) -> Convert:
    return lambda node: None if node.get(_NIL) in ("true", "1") else convert(node)


def _attribute(name: str, convert: Convert) -> Convert:
    def read(node: Any) -> Any:
        text = node.get(name)
        return None if text is None else convert(text)

    return read


def _first(name: str, convert: Convert) -> Convert:
    def read(node: Any) -> Any:
        for child in node.iterchildren(name):
            return convert(child)
        return None

    return read


def _all(name: str, convert: Convert) -> Convert:
    return lambda node: [convert(child) for child in node.iterchildren(name)]


def simple_column(kind: Simple) -> XsdTable:
    """The column of a simple type, and what makes a value of its text."""
    if kind.item is not None:
        item = simple_column(kind.item)
        return XsdTable(pa.list_(item.type), lambda text: [item.convert(one) for one in text.split()])
    if kind.builtin in INTEGERS:
        return _integer(kind)
    if kind.builtin == "decimal":
        digits = [int(kind.facets[facet]) for facet in ("totalDigits", "fractionDigits") if facet in kind.facets]
        if len(digits) == 2 and sum(digits) <= 38:  # all digits may stand before the point, some behind it
            scale = digits[1]
            return XsdTable(pa.decimal128(sum(digits), scale), lambda text: Decimal(text.strip()))
        return XsdTable(pa.string(), str.strip)
    return _COLUMNS.get(kind.builtin, _AS_WRITTEN)


def _integer(kind: Simple) -> XsdTable:
    low, high = integer_bounds(kind)
    if "totalDigits" in kind.facets:
        most = 10 ** min(int(kind.facets["totalDigits"]), 100) - 1
        low, high = max(-most, -most if low is None else low), min(most, most if high is None else high)
    if low is None or high is None:
        return XsdTable(pa.string(), str.strip)
    for bits, found in ((32, pa.int32()), (64, pa.int64())):
        if -(2 ** (bits - 1)) <= low and high < 2 ** (bits - 1):
            return XsdTable(found, int)
    digits = len(str(max(abs(low), abs(high))))
    return XsdTable(pa.decimal128(digits, 0), Decimal) if digits <= 38 else XsdTable(pa.string(), str.strip)


def _number(text: str) -> float:
    return float(text.strip().replace("INF", "inf"))


_AS_WRITTEN = XsdTable(pa.string(), str)
_COLUMNS = {
    "boolean": XsdTable(pa.bool_(), lambda text: text.strip() in ("true", "1")),
    "float": XsdTable(pa.float32(), _number),
    "double": XsdTable(pa.float64(), _number),
    "base64Binary": XsdTable(pa.binary(), lambda text: base64.b64decode("".join(text.split()))),
    "hexBinary": XsdTable(pa.binary(), lambda text: bytes.fromhex(text.strip())),
}
