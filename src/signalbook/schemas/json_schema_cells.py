"""How single JSON values stand in a column: the kinds of cells that have no cells below them.

Rule 1: a cell gives back the value it was given. Where the column's type cannot do that (a timestamp has no offset, a
double not every digit), the cell answers `Aside`: the nearest value that the type has, or none, and whoever holds
the cell keeps the original beside it.
Rule 2: "JSON text" holds anything, null included; every other cell leaves null to its holder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from signalbook.schemas.json_exact import decode, encode

__all__ = ["BOOLEAN", "DATE", "DOUBLE", "INTEGER", "STRING", "TEXT", "TIMESTAMP", "Aside", "Cell", "decimal_cell"]

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
    return decode(text.encode())


TEXT = Cell(pa.string(), encode, _from_text)
STRING = Cell(pa.string(), _same, _same)
BOOLEAN = Cell(pa.bool_(), _same, _same)
INTEGER = Cell(pa.int64(), _integer, _same)
DOUBLE = Cell(pa.float64(), _double, _same)
TIMESTAMP = Cell(pa.timestamp("us", tz="UTC"), _timestamp, _timestamp_text)
DATE = Cell(pa.date32(), _date, date.isoformat)
