"""The Arrow struct of a JSON Schema's payloads: every payload that the check accepts, and back, nothing lost.

Rule 1: an object with declared properties is a struct of them; `_additional` in each such struct is JSON text with the
members that have no column, and with those whose column could not hold them exactly. A value that is not an object
is the whole value.
Rule 2: the columns follow from the schema alone. What has no one type (unions, tuples, recursion, anything) is JSON
text. Properties declared within `anyOf`, `oneOf`, `if` and the like have no column: they are additional.
Rule 3: every column may be null. Null is an absent member, or an explicit null where the member is required.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from operator import attrgetter, or_
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa

from signalbook.jsontext import decode_json, encode_json
from signalbook.schemas.format import column_names
from signalbook.schemas.json_schema.places import Index, Node, Subschema, branches, fraction, node_of, types, unfollowed

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
    "TypedReader",
    "columns_of",
    "decimal_cell",
    "reader_of",
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


def columns_of(index: Index, place: Subschema) -> Columns:
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
        named: dict[str, list[Subschema]] = {}
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


# The fast path of landing: payloads of a plain schema become columns without a dictionary for each.
#
# Rule 1: what a `TypedReader` reads is what the engine accepts of the schema, and has the columns that `convert` gives.
# What it rejects may be right all the same: with more members than the schema names, or with a null.
# Rule 2: a schema with any keyword that is not known here, or with a column of another type than its values, has none.


_ANNOTATIONS = frozenset(
    ("$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")
)
_NUMBERS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}
_SIZES = {"minItems": "min_length", "maxItems": "max_length"}
_TEXTS = {"minLength": "min_length", "maxLength": "max_length"}
_TYPED_SCALARS: dict[str, tuple[Any, pa.DataType, dict[str, str]]] = {
    "string": (str, pa.string(), _TEXTS),
    "integer": (int, pa.int64(), _NUMBERS),
    "number": (float, pa.float64(), _NUMBERS),
    "boolean": (bool, pa.bool_(), {}),
}
_LARGEST = 2**53


class _Unknown(Exception):
    """A schema that says something which is not known here."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a payload: the type that its values are read as, and how many of them become a column."""

    type: Any
    column: Callable[[Sequence[Any]], pa.Array]


@dataclass(frozen=True, slots=True)
class TypedReader:
    """How payloads are read: `read` raises ValueError where it does not take one; `column` makes a column of many."""

    read: Callable[[bytes], Any]
    column: Callable[[Sequence[Any]], pa.Array]


def reader_of(schema: Any, columns: pa.DataType) -> TypedReader | None:
    """Return what reads the payloads of a schema, given as JSON, into these columns; None where nothing does."""
    try:
        whole = _object(schema, columns)
    except _Unknown:
        return None
    return TypedReader(msgspec.json.Decoder(whole.type).decode, whole.column)


def _object(schema: Any, columns: pa.DataType) -> _Part:
    stated = _stated_types(schema, ("type", "properties", "required", "additionalProperties"))
    members, required = stated.get("properties"), frozenset(stated.get("required", ()))
    if stated.get("type") != "object" or not pa.types.is_struct(columns) or not isinstance(members, Mapping):
        raise _Unknown
    held = [one.name for one in columns]
    # Every member has its column, under its own name.
    if set(held) != {*members, ADDITIONAL} or ADDITIONAL in members or not required <= members.keys():
        raise _Unknown
    parts = {name: _part(member, columns.field(name).type) for name, member in members.items()}
    fields = {name: f"member{number}" for number, name in enumerate(parts)}
    struct = msgspec.defstruct(
        "Payload",
        [
            (fields[name], one.type) if name in required else (fields[name], one.type, None)
            for name, one in parts.items()
        ],
        rename={field: name for name, field in fields.items()},
        kw_only=True,
        forbid_unknown_fields=True,
        gc=False,
    )
    gets = {name: attrgetter(field) for name, field in fields.items()}

    def column(values: Sequence[Any]) -> pa.Array:
        there = [value for value in values if value is not None]
        if len(there) < len(values):
            return _spread(column(there), values)
        made = [
            pa.nulls(len(values), pa.string())
            if name == ADDITIONAL
            else parts[name].column(list(map(gets[name], values)))
            for name in held
        ]
        return pa.StructArray.from_arrays(made, fields=list(columns))

    return _Part(struct, column)


def _spread(column: pa.Array, values: Sequence[Any]) -> pa.Array:
    """The column of the values that are there, with nulls where there is none."""
    places = iter(range(len(column)))
    return column.take(pa.array([None if value is None else next(places) for value in values], pa.int64()))


def _part(schema: Any, column: pa.DataType) -> _Part:
    """The part that a member or an item is."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind == "object":
        return _object(schema, column)
    if kind == "array":
        return _array(schema, column)
    if not isinstance(kind, str) or kind not in _TYPED_SCALARS:
        raise _Unknown
    type_, held, bounds = _TYPED_SCALARS[kind]
    if held != column:
        raise _Unknown
    stated = _stated_types(schema, ("type", *bounds, *(("enum",) if kind == "string" else ())))
    if "enum" in stated:
        if len(stated) > 2:
            raise _Unknown
        type_ = _one_of(stated["enum"])
    return _Part(_bounded(type_, stated, bounds), lambda values: pa.array(values, column))


def _array(schema: Any, column: pa.DataType) -> _Part:
    """An array of scalars, or of such arrays."""
    stated = _stated_types(schema, ("type", "items", *_SIZES))
    if "items" not in stated or not pa.types.is_list(column) or pa.types.is_struct(column.value_type):
        raise _Unknown
    item = _part(stated["items"], column.value_type)
    return _Part(_bounded(list[item.type], stated, _SIZES), lambda values: pa.array(values, column))  # type: ignore[name-defined]


def _stated_types(schema: Any, known: tuple[str, ...]) -> dict[str, Any]:
    """What a schema says, annotations left out."""
    if not isinstance(schema, Mapping) or not schema.keys() <= _ANNOTATIONS.union(known):
        raise _Unknown
    return {name: value for name, value in schema.items() if name in known}


def _one_of(values: Any) -> Any:
    if not values or not all(type(one) is str for one in values):
        raise _Unknown
    return reduce(or_, (Literal[one] for one in values))


def _bounded(type_: Any, stated: Mapping[str, Any], known: Mapping[str, str]) -> Any:
    """A type with the bounds that a schema states for its values."""
    bounds = {known[name]: _bound(value, type_) for name, value in stated.items() if name in known}
    if {"ge", "gt"} <= bounds.keys() or {"le", "lt"} <= bounds.keys():
        raise _Unknown
    return Annotated[type_, msgspec.Meta(**bounds)] if bounds else type_


def _bound(value: Any, type_: Any) -> Any:
    """A bound that is compared exactly: a number that doubles hold, whole where the values are."""
    if type(value) not in (int, float) or not abs(value) < _LARGEST or (type_ is not float and value != int(value)):
        raise _Unknown
    return float(value) if type_ is float else int(value)
