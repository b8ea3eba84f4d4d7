"""RFC 3339 timestamps: what is one, and which moment it means.

Rule 1: a timestamp stays the text it is; nothing is rounded or moved to UTC.
Rule 2: the grammar is RFC 3339 section 5.6 with `T` between date and time. A second 60 is taken where one can be: at
the end of a June or December in UTC, since 1972 (section 5.7).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

__all__ = ["COMMON", "format_timestamp", "instant", "is_common_timestamp", "is_timestamp"]

_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_REST = rf"(?:\.[0-9]+)?(?:[Zz]|[+-]{_CLOCK})"
_DAY = r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
# The days and seconds that every year and minute has; then those that only some have.
COMMON = rf"[0-9]{{4}}-{_DAY}[Tt]{_CLOCK}:[0-5][0-9]{_REST}"
is_common_timestamp = re.compile(COMMON).fullmatch
_rare = re.compile(rf"[0-9]{{4}}-(?:{_DAY}|02-29)[Tt]{_CLOCK}:(?:[0-5][0-9]|60){_REST}").fullmatch
_parts = re.compile(r"(.{4})-(..)-(..).(..):(..):(..)\.?([0-9]*)(?:[Zz]|([+-])(..):(..))").fullmatch
_MINUTES_A_DAY = 24 * 60


def is_timestamp(text: str) -> bool:
    """Whether the text is an RFC 3339 timestamp."""
    return bool(is_common_timestamp(text)) or (bool(_rare(text)) and _can_be(text))


def instant(text: str) -> tuple[int, int, str]:
    """What orders and equates timestamps: minutes in UTC, seconds, and the digits of the fraction."""
    found = _parts(text)
    assert found is not None, "only what `is_timestamp` accepts has an instant"
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = found.groups()
    at = _days(int(year), int(month), int(day)) * _MINUTES_A_DAY + int(hour) * 60 + int(minute)
    if sign:
        offset = int(hours) * 60 + int(minutes)
        at += offset if sign == "-" else -offset
    return at, int(second), fraction.rstrip("0")


def format_timestamp(moment: datetime) -> str:
    """The RFC 3339 text of a moment with a time zone, in that zone; raises ValueError without one."""
    offset = moment.utcoffset()
    if offset is None:
        raise ValueError("has no time zone; which moment it means is not known")
    if offset.total_seconds() % 60:
        moment = moment.astimezone(UTC)
    text = moment.isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def _can_be(text: str) -> bool:
    """Whether the year has that day and the minute that second."""
    year = int(text[:4])
    if text[5:10] == "02-29" and (year % 4 or (not year % 100 and year % 400)):
        return False
    if text[17:19] != "60":
        return True
    days, minute = divmod(instant(text)[0], _MINUTES_A_DAY)
    ends = (_days(near, *end) for near in (year - 1, year, year + 1) for end in ((6, 30), (12, 31)) if near >= 1972)
    return minute == _MINUTES_A_DAY - 1 and days in ends


def _days(year: int, month: int, day: int) -> int:
    """Days since the first of March of year 0, in the Gregorian calendar without end."""
    year, month = (year - 1, month + 9) if month < 3 else (year, month - 3)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1
