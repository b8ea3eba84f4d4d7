"""The Arrow struct of a JSON Schema's payloads: every payload that the check accepts, and back, nothing lost.

Rule 1: an object with declared properties is a struct of them; `_additional` in each such struct is JSON text with the
members that have no column, and with those whose column could not hold them exactly. A value that is not an object
is the whole value.
Rule 2: the columns follow from the schema alone. What has no one type (unions, tuples, recursion, anything) is JSON
text. Properties declared within `anyOf`, `oneOf`, `if` and the like have no column: they are additional.
Rule 3: every column may be null. Null is an absent member, or an explicit null where the member is required.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from signalbook.jsontext import decode_json, encode_json
from signalbook.schemas.format import column_names
from signalbook.schemas.json_schema.facts import Node, branches, fraction, node_of, types, unfollowed
from signalbook.schemas.json_schema.places import Index, Place

__all__ = [
    "ADDITIONAL",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "INTEGER",
    "MOST_COLUMNS",
    "STRING",
    "TEXT",
    "TIMESTAMP",
    "Aside",
    "Cell",
    "Columns",
    "columns_of",
    "decimal_cell",
]

# How single JSON values stand in a column: the kinds of cells that have no cells below them.
#
# Rule 1: a cell gives back the value it was given. Where the column's type cannot do that (a timestamp has no offset, a
# double not every digit), the cell answers `Aside`: the nearest value that the type has, or none, and whoever holds
# the cell keeps the original beside it.
# Rule 2: "JSON text" holds anything, null included; every other cell leaves null to its holder.


_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Aside:
    """What a column holds of a value that it cannot give back."""

    near: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """The type of a column, a value as it stands there (or `Aside`), and the value that stands there."""

    type: pa.DataType
    convert: Callable[[Any], Any]
    restore: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _integer(value: Any) -> Any:
    return int(value) if -(2**63) <= value < 2**63 else Aside()


def _double(value: Any) -> Any:
    if type(value) is float:
        return value
    try:
        near = float(value)
    except OverflowError:
        return Aside()
    if near in (float("inf"), float("-inf")):
        return Aside()
    return near if type(value) is int and near == value else Aside(near)


def _timestamp(text: str) -> Any:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return Aside()
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return Aside()
    return moment if _timestamp_text(moment) == text else Aside(moment)


def _timestamp_text(moment: datetime) -> str:
    """The spelling that comes back: in UTC with `Z`, and no, three or six digits of a second as it needs."""
    digits = "microseconds" if moment.microsecond % 1000 else "milliseconds" if moment.microsecond else "seconds"
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=digits) + "Z"


def _date(text: str) -> Any:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return Aside()
    return day if day.isoformat() == text else Aside()


def number_of(exact: Decimal) -> int | float | Decimal:
    """A decimal as JSON text gives it: an integer, a double that has the same shortest decimal, or itself."""
    if exact == exact.to_integral_value():
        return int(exact)
    near = float(exact)
    return near if Decimal(repr(near)) == exact else exact


def decimal_cell(scale: int) -> Cell:
    """Numbers with so many digits after the point, of 38 altogether."""

    def convert(value: Any) -> Any:
        exact = Decimal(repr(value)) if type(value) is float else Decimal(value)
        sign, digits, exponent = exact.as_tuple()
        if not isinstance(exponent, int):  # pragma: no cover: JSON has no infinity
            return Aside()
        shift = exponent + scale
        if shift < 0:
            if any(digits[shift:]):
                return Aside()
            digits = digits[:shift]
        elif exact:
            digits = digits + (0,) * min(shift, _DIGITS + 1)
        return Decimal((sign, digits or (0,), -scale)) if len(digits) <= _DIGITS else Aside()

    return Cell(pa.decimal128(_DIGITS, scale), convert, number_of)


def _from_text(text: str) -> Any:
    return decode_json(text.encode())


TEXT = Cell(pa.string(), encode_json, _from_text)
STRING = Cell(pa.string(), _same, _same)
BOOLEAN = Cell(pa.bool_(), _same, _same)
INTEGER = Cell(pa.int64(), _integer, _same)
DOUBLE = Cell(pa.float64(), _double, _same)
TIMESTAMP = Cell(pa.timestamp("us", tz="UTC"), _timestamp, _timestamp_text)
DATE = Cell(pa.date32(), _date, date.isoformat)


ADDITIONAL = "_additional"
WHOLE = "value"
MOST_COLUMNS = 10_000
_DEEPEST = 32
_SCALARS = {"boolean": BOOLEAN, "integer": INTEGER, "string": STRING}
_INT64 = (-(2**63), 2**63 - 1)
_STRINGS = {"date-time": TIMESTAMP, "date": DATE}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The struct of a payload, and values to it and back."""

    type: pa.StructType
    convert: Callable[[Any], dict[str, Any]]
    restore: Callable[[dict[str, Any]], Any]


def columns_of(index: Index, place: Place) -> Columns:
    """The columns of the payloads that a schema accepts; what is not a struct is the column `value`."""
    cell = _Builder(index).cell(node_of(index, place))
    if pa.types.is_struct(cell.type):
        return Columns(cell.type, cell.convert, cell.restore)

    def convert(value: Any) -> dict[str, Any]:
        held = None if value is None and cell is not TEXT else cell.convert(value)
        if isinstance(held, Aside):
            return {WHOLE: held.near, ADDITIONAL: TEXT.convert(value)}
        return {WHOLE: held, ADDITIONAL: None}

    def restore(row: dict[str, Any]) -> Any:
        if row[ADDITIONAL] is not None:
            return TEXT.restore(row[ADDITIONAL])
        return None if row[WHOLE] is None else cell.restore(row[WHOLE])

    return Columns(pa.struct([(WHOLE, cell.type), (ADDITIONAL, pa.string())]), convert, restore)


@dataclass(slots=True)
class _Builder:
    """One walk over a schema: what it is in, and how many columns are left."""

    index: Index
    inside: list[frozenset[int]] = field(default_factory=list)
    left: int = MOST_COLUMNS

    def cell(self, node: Node) -> Cell:
        """The cell of the values that a node accepts."""
        node = self._without_null_branches(node)
        key = frozenset(id(place.schema) for place in node)
        if len(self.inside) >= _DEEPEST or key in self.inside or self.left <= 0:
            return TEXT
        if any(place.schema is False or unfollowed(self.index, place) for place in node):
            return TEXT
        self.inside.append(key)
        try:
            return self._cell(node)
        finally:
            self.inside.pop()

    def _cell(self, node: Node) -> Cell:
        stated = types(node)
        kinds = stated - {"null"}
        if _declared(node) and (kinds == {"object"} or not any("type" in place.schema for place in node)):
            return self._struct(node)
        for several in branches(self.index, node):
            kinds &= frozenset().union(*(types(branch) for branch in several))
        if len(kinds) == 1:
            kind = next(iter(kinds))
            if kind == "object":
                return self._map(node)
            if kind == "array":
                return self._list(node)
            if kind == "string":
                return next((_STRINGS[at] for at in _stated(node, "format") if at in _STRINGS), STRING)
            if kind != "fraction":
                return _integers(node) if kind == "integer" else _SCALARS[kind]
        return _numbers(node) if kinds and kinds <= {"integer", "fraction"} else TEXT

    def _without_null_branches(self, node: Node) -> Node:
        """A union of something and null is that something: null needs no column of its own."""
        for place in node:
            if place.schema is False:
                return node
            for keyword in ("anyOf", "oneOf"):
                several = place.schema.get(keyword)
                if several is None:
                    continue
                nodes = [node_of(self.index, place.below(branch)) for branch in several]
                real = [branch for branch in nodes if types(branch) - {"null"}]
                if len(real) == 1:
                    known = {id(one.schema) for one in node}
                    node = (*node, *(one for one in real[0] if id(one.schema) not in known))
        return node

    def _struct(self, node: Node) -> Cell:
        required = {name for place in node for name in place.schema.get("required", ())}
        named: dict[str, list[Place]] = {}
        for place in node:
            for name, schema in place.schema.get("properties", {}).items():
                named.setdefault(name, []).append(place.below(schema))
        spelled = column_names(named, reserved=(ADDITIONAL,))
        members: dict[str, tuple[str, Cell, bool]] = {}
        for name, places in named.items():
            if self.left <= 0:
                break
            if all(place.schema is not False for place in places):
                self.left -= 1
                members[name] = (spelled[name], self.cell(node_of(self.index, *places)), name in required)
        struct = pa.struct([*((column, cell.type) for column, cell, _ in members.values()), (ADDITIONAL, pa.string())])
        return Cell(struct, _object_to_row(members), _object_from_row(members))

    def _map(self, node: Node) -> Cell:
        extra = [place.below(place.schema["additionalProperties"]) for place in node if _types_members(place.schema)]
        if len(extra) != 1 or any("patternProperties" in place.schema for place in node):
            return TEXT
        cell = self.cell(node_of(self.index, *extra))
        several = _several(cell)

        def convert(value: dict[str, Any]) -> Any:
            held = several(value.values())
            if isinstance(held, Aside):
                return Aside(list(zip(value, held.near, strict=True)))
            return list(zip(value, held, strict=True))

        def restore(pairs: Any) -> Any:
            return {name: None if held is None else cell.restore(held) for name, held in pairs}

        return Cell(pa.map_(pa.string(), cell.type), convert, restore)

    def _list(self, node: Node) -> Cell:
        items = [place.below(place.schema["items"]) for place in node if isinstance(place.schema.get("items"), dict)]
        tuples = any("prefixItems" in place.schema or isinstance(place.schema.get("items"), list) for place in node)
        if not items or tuples:
            return TEXT
        cell = self.cell(node_of(self.index, *items))

        def restore(held: Any) -> Any:
            return [None if item is None else cell.restore(item) for item in held]

        return Cell(pa.list_(cell.type), _several(cell), restore)


def _declared(node: Node) -> bool:
    return any(place.schema.get("properties") for place in node)


def _stated(node: Node, keyword: str) -> list[Any]:
    return [place.schema[keyword] for place in node if keyword in place.schema]


def _types_members(schema: dict[str, Any]) -> bool:
    return isinstance(schema.get("additionalProperties"), dict) and bool(schema["additionalProperties"])


def _integers(node: Node) -> Cell:
    """Eight bytes, unless both bounds are stated and go beyond: then 38 digits, and beyond those JSON text."""
    low = [fraction(bound) for key in ("minimum", "exclusiveMinimum") for bound in _stated(node, key)]
    high = [fraction(bound) for key in ("maximum", "exclusiveMaximum") for bound in _stated(node, key)]
    if not low or not high or (max(low) >= _INT64[0] and min(high) <= _INT64[1]):
        return INTEGER
    return decimal_cell(0) if max(low) > -(10**38) and min(high) < 10**38 else TEXT


def _numbers(node: Node) -> Cell:
    """A double, unless `multipleOf` states the digits after the point."""
    steps = [Decimal(repr(step)) if isinstance(step, float) else Decimal(step) for step in _stated(node, "multipleOf")]
    scales = [-exponent for step in steps if isinstance(exponent := step.normalize().as_tuple().exponent, int)]
    scale = max(scales, default=0)
    return decimal_cell(scale) if 0 < scale <= 18 else DOUBLE


def _several(cell: Cell) -> Callable[[Any], Any]:
    """All values of a list in one cell's form; one that must go aside takes the list with it."""

    def convert(values: Any) -> Any:
        held = [None if value is None and cell is not TEXT else cell.convert(value) for value in values]
        if any(type(one) is Aside for one in held):
            return Aside([one.near if type(one) is Aside else one for one in held])
        return held

    return convert


def _object_to_row(members: dict[str, tuple[str, Cell, bool]]) -> Callable[[Any], dict[str, Any]]:
    empty = dict.fromkeys([*(column for column, _, _ in members.values()), ADDITIONAL])

    def convert(value: Any) -> dict[str, Any]:
        row = empty.copy()
        if type(value) is not dict:
            row[ADDITIONAL] = TEXT.convert(value)
            return row
        aside: dict[str, Any] = {}
        for name, member in value.items():
            found = members.get(name)
            if found is None:
                aside[name] = member
                continue
            column, cell, required = found
            if member is None and cell is not TEXT:
                if not required:
                    aside[name] = None
                continue
            held = cell.convert(member)
            if type(held) is Aside:
                aside[name] = member
                held = held.near
            row[column] = held
        if aside:
            row[ADDITIONAL] = TEXT.convert(aside)
        return row

    return convert


def _object_from_row(members: dict[str, tuple[str, Cell, bool]]) -> Callable[[dict[str, Any]], Any]:
    def restore(row: dict[str, Any]) -> Any:
        aside = {} if row[ADDITIONAL] is None else TEXT.restore(row[ADDITIONAL])
        if not isinstance(aside, dict):
            return aside
        value = {}
        for name, (column, cell, required) in members.items():
            held = row[column]
            if held is not None:
                value[name] = cell.restore(held)
            elif required:
                value[name] = None
        return value | aside

    return restore
