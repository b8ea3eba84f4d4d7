"""JSON text to values and back with every number kept: what the JSON formats share.

Rule 1: an integer is an `int` of any size. Any other number is a `float` where the shortest decimal of that double is
the number in the text, else a `Decimal`. So 0.1 is a float, and 0.10000000000000000000001 is not lost.
Rule 2: the quick parse is used unless the text may hold a number that a double cannot: a run of 16 characters of which
numbers are made, or an exponent below -99. A shorter one has at most 15 digits and is exact.
Rule 3: numbers of more than 4,300 digits, written out, are refused, as are texts nested about a thousand deep.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

__all__ = ["BadJson", "decode", "encode"]

MOST_DIGITS = 4300

_NUMBER = b"0123456789.+"
_CLASSES = bytes(
    0x30 if byte in _NUMBER else 0x65 if byte in b"eE" else 0x2D if byte == 0x2D else 0x20 for byte in range(256)
)
_LONG = b"0" * 16
_SMALL = b"e-000"

_quick = msgspec.json.Decoder().decode
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


_careful = msgspec.json.Decoder(float_hook=_number).decode


def decode(text: bytes) -> Any:
    """The value of a JSON text; `BadJson` where it has none."""
    classes = text.translate(_CLASSES)
    try:
        if _LONG in classes or _SMALL in classes:
            return _careful(text)
        return _quick(text)
    except msgspec.DecodeError as error:
        return _decode_again(text, error)
    except UnicodeDecodeError as error:
        raise BadJson("the text is not UTF-8") from error
    except RecursionError as error:
        raise BadJson("the text is nested too deep") from error


def _decode_again(text: bytes, error: msgspec.DecodeError) -> Any:
    """A number beyond the doubles is one error of the quick parse that the careful one may not have."""
    if isinstance(error, msgspec.ValidationError) and "Number out of range" in str(error):
        try:
            return _careful(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as again:
            raise BadJson(str(again)) from again
    raise BadJson(str(error)[:1].lower() + str(error)[1:]) from error


def encode(value: Any) -> str:
    """The JSON text of a value, with all digits of its numbers.

    >>> encode({"a": [10**20, Decimal("1.50"), 0.1, None]})
    '{"a":[100000000000000000000,1.50,0.1,null]}'
    """
    return _encode(value).decode()
