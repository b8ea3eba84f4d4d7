"""How values compare: the one place that says when two are equal and which comes first.

Rule 1: text is compared without regard to case, timestamps as instants, numbers as numbers (FILTER-5).
Rule 2: `fold` decides equality and may be stored; `collated` decides order and agrees with `fold` on equality.

core/spec.md 1.0-rc4 "Filter Flag" and "Sort Flag".
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime

__all__ = ["collated", "fold", "folded_text", "number_in"]

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?")
_MAX_NUMBER = 400  # digits; longer text is no number that JSON readers agree on
_TIMESTAMP = re.compile(
    r"(?P<seconds>[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?P<fraction>\.[0-9]{1,9})?(?P<zone>[Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def number_in(text: str) -> int | float | None:
    """The number that `text` is in JSON, or None."""
    found = _NUMBER.fullmatch(text) if 0 < len(text) <= _MAX_NUMBER else None
    if found is None:
        return None
    return float(text) if found["fraction"] or found["exponent"] else int(text)


def folded_text(text: str) -> str:
    """`text` without regard to case and to how its characters are composed."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def fold(value: str | int | float) -> str:
    """The one text that stands for `value` and for every value equal to it."""
    if isinstance(value, str):
        if len(value) >= 20 and value[4] == "-" and value[10] in "Tt":
            return _instant(value) or folded_text(value)
        return folded_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)


def _instant(text: str) -> str | None:
    """A timestamp in UTC without its zone, so that text order is the order of time."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    seconds = found["seconds"].lower()
    if found["zone"] not in "Zz":
        try:
            utc = datetime.fromisoformat(seconds.upper() + found["zone"]).astimezone(UTC)
        except (ValueError, OverflowError):
            return None
        seconds = utc.replace(tzinfo=None).isoformat().lower()
    return seconds + (found["fraction"] or "").rstrip("0").rstrip(".")


def collated(text: str) -> tuple[str, str]:
    """A key that sorts text as a reader of English expects: letters first, then accents, never case."""
    folded = fold(text)
    if folded.isascii():
        return folded, folded
    plain = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    return plain, folded
