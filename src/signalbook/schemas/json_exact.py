"""JSON text to values and back with every number kept: what the JSON formats share.

Rule 1: an integer is an `int` of any size. Any other number is a `float` where the shortest decimal of that double is
the number in the text, else a `Decimal`. So 0.1 is a float, and 0.10000000000000000000001 is not lost. Numbers nearer
to zero than 1e-307 are the nearest double, as everywhere.
Rule 2: the quick parse is used unless the text has a run of 16 digits and points, as only then a number can have more
than the 15 digits that a double always keeps. What that parse finds infinite the careful one looks at again.
Rule 3: numbers of more than 4,300 digits, written out, are refused, as are texts nested about a thousand deep.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import orjson

__all__ = ["LONG", "RUNS", "BadJson", "careful", "decode", "decode_again", "encode", "quick"]

MOST_DIGITS = 4300

RUNS = bytes(0x30 if byte in b"0123456789." else 0x20 for byte in range(256))
# In the text with its runs made visible; `JsonSchema.check` spells the line of `decode` out. They are counted, because
# `in` first tries to take bytes for a number.
LONG = b"0" * 16

quick = orjson.loads
_encode = msgspec.json.Encoder(decimal_format="number").encode


class BadJson(ValueError):
    """A text that holds no JSON value that can be kept; the words say why."""


def _number(text: str) -> float | Decimal:
    try:
        exact = Decimal(text)
    except InvalidOperation:
        raise BadJson(f"the number {text[:40]} is out of range") from None
    if abs(exact.adjusted()) > MOST_DIGITS:
        raise BadJson(f"the number {text[:40]} is out of range")
    near = float(text)
    return near if Decimal(repr(near)) == exact else exact


careful = msgspec.json.Decoder(float_hook=_number).decode


def decode(text: bytes) -> Any:
    """The value of a JSON text; `BadJson` where it has none."""
    try:
        return careful(text) if text.translate(RUNS).count(LONG) else quick(text)
    except (ValueError, RecursionError) as error:
        return decode_again(text, error)


def decode_again(text: bytes, error: Exception) -> Any:
    """The value of a text that a parse refused: a number beyond the doubles is a mistake of the quick one alone."""
    if "infinity" in str(error):
        try:
            return careful(text)
        except (ValueError, RecursionError) as again:
            error = again
    if isinstance(error, BadJson):
        raise error
    if isinstance(error, UnicodeDecodeError) or "UTF-8" in str(error):
        raise BadJson("the text is not UTF-8") from error
    if isinstance(error, RecursionError) or "depth limit" in str(error):
        raise BadJson("the text is nested too deep") from error
    raise BadJson(str(error)[:1].lower() + str(error)[1:]) from error


def encode(value: Any) -> str:
    """The JSON text of a value, with all digits of its numbers.

    >>> encode({"a": [10**20, Decimal("1.50"), 0.1, None]})
    '{"a":[100000000000000000000,1.50,0.1,null]}'
    """
    return _encode(value).decode()
