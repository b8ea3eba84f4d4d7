"""`PayloadColumns`: many payloads as the struct of their schema, most of them without a step of Python each.

Rule 1: the struct is the one that `convert` gives value by value; what is certain to be the same is taken at once.
Rule 2: a column is taken at once where `convert` leaves values as they are, which is asked of it once, and where no
member of a payload is left out: the members of all payloads are as many as the values that the columns hold.
Rule 3: everything else is converted value by value, and what that raises is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from signalbook.schemas.json_schema_columns import ADDITIONAL

__all__ = ["PayloadColumns"]

# A value of each type that `convert` gives back as it is, where the column holds values and not their JSON text.
_SAMPLES: dict[pa.DataType, Any] = {pa.int64(): 1, pa.float64(): 1.5, pa.bool_(): True, pa.string(): "a"}
_REFUSED = (pa.ArrowException, TypeError, ValueError, OverflowError)


class PayloadColumns:
    """How the payloads of one JSON Schema become a column; `convert` makes the row of one value."""

    __slots__ = ("_at_once", "_convert", "_rest", "_type")

    def __init__(self, type_: pa.StructType, convert: Callable[[Any], Any]) -> None:
        self._type = type_
        self._convert = convert
        named = [one for one in type_ if one.name != ADDITIONAL] if type_.get_field_index(ADDITIONAL) >= 0 else []
        at_once = [one for one in named if _stays(one.type, _member(convert, one.name))]
        self._at_once = pa.struct(at_once) if at_once else None
        self._rest = [one for one in named if one not in at_once]

    def array(self, values: Sequence[Any]) -> pa.Array:
        """The column of some payloads that the schema accepts."""
        if self._at_once is not None:
            try:
                found = self._quickly(values, self._at_once)
            except _REFUSED:
                found = None
            if found is not None:
                return found
        return pa.array(list(map(self._convert, values)), self._type)

    def _quickly(self, values: Sequence[Any], at_once: pa.StructType) -> pa.Array | None:
        if set(map(type, values)) != {dict}:
            return None
        taken = pa.array(values, at_once)
        columns = {one.name: taken.field(at) for at, one in enumerate(at_once)}
        columns |= self._converted(values)
        held = sum(len(values) - column.null_count for column in columns.values())
        whole = all(_is_whole(columns[one.name], _below(values, one)) for one in at_once)
        if not whole or held != sum(map(len, values)):
            return None
        columns[ADDITIONAL] = pa.nulls(len(values), pa.string())
        return pa.StructArray.from_arrays([columns[one.name] for one in self._type], fields=list(self._type))

    def _converted(self, values: Sequence[dict[str, Any]]) -> dict[str, pa.Array]:
        """The columns of the members that have to be converted."""
        names = [one.name for one in self._rest]
        if not names:
            return {}
        rows = [self._convert({name: value[name] for name in names if name in value}) for value in values]
        if any(row[ADDITIONAL] is not None for row in rows):
            raise ValueError("a member goes aside, and stands there in its order among all that do")
        return {one.name: pa.array([row[one.name] for row in rows], one.type) for one in self._rest}


def _member(convert: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    return lambda value: convert({name: value})[name]


def _item(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: convert([value])[0]


def _stays(kind: pa.DataType, convert: Callable[[Any], Any]) -> bool:
    """Whether what stands in a column of a type is the value itself."""
    if pa.types.is_struct(kind):
        members = [one for one in kind if one.name != ADDITIONAL]
        return all(_stays(one.type, _member(convert, one.name)) for one in members)
    if pa.types.is_list(kind):
        return _stays(kind.value_type, _item(convert))
    sample = _SAMPLES.get(kind)
    try:
        held = convert(sample)
    except (ValueError, TypeError, KeyError, IndexError):
        return False
    return sample is not None and type(held) is type(sample) and bool(held == sample)


def _below(values: Sequence[dict[str, Any]], one: pa.Field) -> list[Any]:
    """The values of a member; none where its type has no members below it to be looked at."""
    return [value.get(one.name) for value in values] if _has_members(one.type) else []


def _has_members(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) or (pa.types.is_list(kind) and _has_members(kind.value_type))


def _is_whole(column: pa.Array, values: list[Any]) -> bool:
    """Whether a column that was taken at once holds every member of the objects in it."""
    kind = column.type
    if not _has_members(kind):
        return True
    there = [value for value in values if value is not None]
    if pa.types.is_list(kind):
        return _is_whole(column.flatten(), list(chain.from_iterable(there)))
    if any(type(value) is not dict for value in there):
        return False
    # Flattened, a member is null where the object is; in the member itself anything may stand there.
    flat = zip(kind, column.flatten(), strict=True)
    members = {one.name: member for one, member in flat if one.name != ADDITIONAL}
    held = sum(len(values) - member.null_count for member in members.values())
    below = ((members[one.name], _below(there, one)) for one in kind if one.name in members)
    return held == sum(map(len, there)) and all(_is_whole(*one) for one in below)
