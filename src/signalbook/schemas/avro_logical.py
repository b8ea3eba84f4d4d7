"""The values of Avro's logical types in Python.

Rule 1: a value that its logical type cannot have is refused, never bent: a time of day beyond the day, a decimal with
more digits than declared, a date outside of the years 1 to 9999 (no table holds one).
Rule 2: nanoseconds stay the number they are: Python's and Spark's timestamps end at microseconds.

| logical type | value |
|---|---|
| date, time-millis, time-micros | `datetime.date`, `datetime.time` |
| timestamp-millis, timestamp-micros | `datetime.datetime` in UTC; local-timestamp-*: without a zone |
| timestamp-nanos, local-timestamp-nanos | `int` |
| decimal, big-decimal | `decimal.Decimal` |
| uuid | `uuid.UUID` |
| duration | a dictionary of `months`, `days`, `milliseconds` |
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact, Rounded
from typing import Any
from uuid import UUID

from signalbook.schemas.avro_types import Node

__all__ = ["logical_value"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH = datetime(1970, 1, 1)
_DAY_ONE = date(1970, 1, 1).toordinal()
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, Rounded])
_SCALES = 1_000_000


def _time(unit: int) -> Callable[[int], time]:
    per_second = 1_000_000 // unit

    def read(value: int) -> time:
        seconds, rest = divmod(value, per_second)
        if not 0 <= seconds < 86_400:
            raise ValueError(f"{value} is no time of day")
        return time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest * unit)

    return read


def _timestamp(unit: int, epoch: datetime) -> Callable[[int], datetime]:
    def read(value: int) -> datetime:
        try:
            return epoch + timedelta(microseconds=value * unit)
        except OverflowError:
            raise ValueError(f"{value} is no time of the years 1 to 9999") from None

    return read


def _date(value: int) -> date:
    try:
        return date.fromordinal(value + _DAY_ONE)
    except (ValueError, OverflowError):
        raise ValueError(f"{value} is no day of the years 1 to 9999") from None


def _duration(value: bytes) -> dict[str, int]:
    months, days, milliseconds = (int.from_bytes(value[at : at + 4], "little") for at in (0, 4, 8))
    return {"months": months, "days": days, "milliseconds": milliseconds}


def _decimal(precision: int, scale: int) -> Callable[[bytes], Decimal]:
    # Ten to the precision has this many bits at most; a longer number need not be made to see that it is too long.
    bits = precision * 10 // 3 + 1

    def read(value: bytes) -> Decimal:
        unscaled = int.from_bytes(value, "big", signed=True)
        if unscaled.bit_length() <= bits:
            found = Decimal(unscaled)
            if found.adjusted() < precision:
                return found.scaleb(-scale, _EXACT)
        raise ValueError(f"a number has more than the {precision} digits of its type")

    return read


def _big_decimal(value: bytes) -> Decimal:
    """Decode bytes and a scale, each as Avro writes them."""
    size, at = _varint(value, 0)
    if not 0 <= size <= len(value) - at:
        raise ValueError("a big-decimal ends too early")
    scale, end = _varint(value, at + size)
    if end != len(value) or abs(scale) > _SCALES:
        raise ValueError("a big-decimal has a wrong scale")
    return Decimal(int.from_bytes(value[at : at + size], "big", signed=True)).scaleb(-scale, _EXACT)


def _varint(value: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while at < len(value) and shift < 70:
        byte = value[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
        shift += 7
    raise ValueError("a big-decimal ends too early")


def _uuid_of_bytes(value: bytes) -> UUID:
    return UUID(bytes=value)


_READERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("int", "date"): _date,
    ("int", "time-millis"): _time(1000),
    ("long", "time-micros"): _time(1),
    ("long", "timestamp-millis"): _timestamp(1000, _EPOCH),
    ("long", "timestamp-micros"): _timestamp(1, _EPOCH),
    ("long", "local-timestamp-millis"): _timestamp(1000, _LOCAL_EPOCH),
    ("long", "local-timestamp-micros"): _timestamp(1, _LOCAL_EPOCH),
    ("string", "uuid"): UUID,
    ("fixed", "uuid"): _uuid_of_bytes,
    ("fixed", "duration"): _duration,
    ("bytes", "big-decimal"): _big_decimal,
}


def logical_value(node: Node) -> Callable[[Any], Any] | None:
    """What makes a node's value of the decoded one, `ValueError` or `OverflowError` where it is out of range."""
    if node.logical == "decimal":
        return _decimal(node.precision, node.scale)
    return _READERS.get((node.kind, node.logical))
