"""`PayloadColumns`: many payloads validated by their schema and made a column of it, with few steps of Python.

Rule 1: a payload holds where the engine says so of its value, and the struct is the one that `convert` gives value by
value; what is certain to be the same is found in other ways.
Rule 2: where the schema is plain, a typed reader reads, validates and makes columns of all payloads that it takes.
Rule 3: what it does not take is read and validated one by one. A column is then taken at once where `convert` leaves
values as they are, which is asked of it once, and where no member of a payload is left out: the members of all payloads
are as many as the values that the columns hold.
Rule 4: everything else is converted value by value, and what that raises is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from signalbook.jsontext import decode_fast
from signalbook.messages.fast import is_plain
from signalbook.schemas.json_schema.columns import ADDITIONAL, TypedReader

__all__ = ["PayloadColumns", "reader", "validated"]

# A value of each type that `convert` gives back as it is, where the column holds values and not their JSON text.
_SAMPLES: dict[pa.DataType, Any] = {pa.int64(): 1, pa.float64(): 1.5, pa.bool_(): True, pa.string(): "a"}
# What `convert` raises of a value that its schema does not allow.
_UNFIT = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
_REFUSED = (pa.ArrowException, TypeError, ValueError, OverflowError)


def validated(texts: Sequence[bytes], read: Callable[[bytes], Any]) -> tuple[list[Any], list[int]]:
    """The values of the texts that `read` takes, and the places of the others; it says ValueError of those."""
    take = map(read if is_plain(b"\n".join(texts)) else _only_plain(read), texts)
    values: list[Any] = []
    others: list[int] = []
    while True:
        try:
            values.extend(take)
            return values, others
        except (ValueError, RecursionError):  # it is not JSON, or too much of it, or does not hold
            others.append(len(values) + len(others))


def _only_plain(read: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def careful(text: bytes) -> Any:
        if not is_plain(text):
            raise ValueError("a number is too long for a fast reader")
        return read(text)

    return careful


def reader(accepts: Callable[[Any], bool]) -> Callable[[bytes], Any]:
    """What reads a payload if it is accepted."""

    def read(text: bytes) -> Any:
        value = decode_fast(text)
        if not accepts(value):
            raise ValueError("the payload is not valid")
        return value

    return read


class PayloadColumns:
    """How the payloads of one JSON Schema become a column.

    `accepts` validates a value and `convert` makes the row of one; `typed` reads those that it takes.
    """

    __slots__ = ("_at_once", "_convert", "_read", "_rest", "_type", "_typed")

    def __init__(
        self,
        type_: pa.StructType,
        convert: Callable[[Any], Any],
        accepts: Callable[[Any], bool],
        typed: TypedReader | None = None,
    ) -> None:
        self._type = type_
        self._convert = convert
        self._read = reader(accepts)
        self._typed = typed
        named = [one for one in type_ if one.name != ADDITIONAL] if _is_of_objects(type_, convert) else []
        at_once = [one for one in named if _stays(one.type, _convert_member(convert, one.name))]
        self._at_once = pa.struct(at_once) if at_once else None
        self._rest = [one for one in named if one not in at_once]

    def array(self, texts: Sequence[bytes]) -> tuple[pa.Array, list[int]]:
        """The column of the payloads that hold, and the places of those that do not."""
        if self._typed is None:
            values, unfit = validated(texts, self._read)
            return self._of_values(values), unfit
        typed, others = validated(texts, self._typed.read)
        column = self._typed.column(typed)
        if not others:
            return column, []
        if 2 * len(others) > len(texts):
            self._typed = None  # such payloads are not what it is for
        values, left = validated([texts[at] for at in others], self._read)
        unfit = [others[at] for at in left]
        return self._merged(column, values, others, unfit, len(texts)), unfit

    def _merged(self, column: pa.Array, values: list[Any], others: list[int], unfit: list[int], count: int) -> pa.Array:
        """The column with those values that only the engine took, each in its place."""
        if not values:
            return column
        aside, gone = set(others), set(unfit)
        places = [at for at in range(count) if at not in aside] + [at for at in others if at not in gone]
        order = sorted(range(len(places)), key=places.__getitem__)
        return pa.concat_arrays([column, self._of_values(values)]).take(pa.array(order, pa.int64()))

    def _of_values(self, values: list[Any]) -> pa.Array:
        if self._at_once is not None:
            try:
                found = self._columns_at_once(values, self._at_once)
            except _REFUSED:
                found = None
            if found is not None:
                return found
        return pa.array(list(map(self._convert, values)), self._type)

    def _columns_at_once(self, values: Sequence[Any], at_once: pa.StructType) -> pa.Array | None:
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
            raise ValueError("a member belongs to the additional ones, whose order is that of the payload")
        return {one.name: pa.array([row[one.name] for row in rows], one.type) for one in self._rest}


def _is_of_objects(type_: pa.StructType, convert: Callable[[Any], Any]) -> bool:
    """Whether the columns are the members of an object, and not one column for the whole value."""
    if type_.get_field_index(ADDITIONAL) < 0:
        return False
    try:
        return all(held is None for held in convert({}).values())
    except _UNFIT:
        return False


def _convert_member(convert: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    return lambda value: convert({name: value})[name]


def _convert_item(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: convert([value])[0]


def _stays(kind: pa.DataType, convert: Callable[[Any], Any]) -> bool:
    """Whether a column of this type holds the value itself."""
    if pa.types.is_struct(kind):
        members = [one for one in kind if one.name != ADDITIONAL]
        return all(_stays(one.type, _convert_member(convert, one.name)) for one in members)
    if pa.types.is_list(kind):
        return _stays(kind.value_type, _convert_item(convert))
    sample = _SAMPLES.get(kind)
    try:
        held = convert(sample)
    except _UNFIT:
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
    # Flattened, a member is null where the object is; in the member itself there may be anything.
    flat = zip(kind, column.flatten(), strict=True)
    members = {one.name: member for one, member in flat if one.name != ADDITIONAL}
    held = sum(len(values) - member.null_count for member in members.values())
    below = ((members[one.name], _below(there, one)) for one in kind if one.name in members)
    return held == sum(map(len, there)) and all(_is_whole(*one) for one in below)
