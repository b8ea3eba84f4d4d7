"""`TypedReader`: payloads of a plain JSON Schema read, judged and made columns by one pass of a typed reader.

Rule 1: what it reads is what the engine accepts of the schema, and has the columns that `convert` gives. What it
refuses may be right all the same: with more members than the schema names, or with a null.
Rule 2: a schema with any keyword that is not known here, or with a column of another type than its values, has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter, or_
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa

from signalbook.schemas.json_schema.columns import ADDITIONAL
from signalbook.schemas.json_schema.schema import JsonSchema

__all__ = ["TypedReader", "reader_of"]

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


def reader_of(schema: object, columns: pa.DataType) -> TypedReader | None:
    """The reader of a schema's payloads into these columns; None where there is none."""
    if not isinstance(schema, JsonSchema) or not schema.standard:
        return None
    try:
        whole = _object(schema.place.schema, columns)
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
