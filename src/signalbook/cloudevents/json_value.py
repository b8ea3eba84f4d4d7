"""JSON values of the data, exactly: reading, writing and comparing them.

Rule 1: a number keeps its value. Integers are `int` of any length; a fraction is a `float` where writing that float
gives the same number back, else a `Decimal`.
Rule 2: only what has a JSON form is written; NaN, infinity, unpaired surrogates, names that are no strings and other
objects are refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal, DecimalException
from typing import Any

import msgspec
import orjson

__all__ = ["is_json_text", "read_json", "same_json", "write_json"]

_raw = msgspec.json.Decoder(msgspec.Raw).decode
_MOST_DIGITS = 4300  # what Python's int reads
_OPTIONS = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def is_json_text(content: bytes) -> bool:
    """Whether the bytes are one JSON text in UTF-8."""
    try:
        _raw(content)
        return content.isascii() or bool(content.decode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def read_json(content: bytes) -> Any:
    """The value of a JSON text; raises ValueError where it is none or holds a number nobody can."""
    # Where no number is longer than fifteen digits or has an exponent, every float is exact enough to be written back.
    digits = content.translate(_DIGITS)
    exact = _LONG in digits or _EXPONENT in digits
    try:
        return _read(content, _decode if exact else _plainly, _number)
    except DecimalException:
        raise ValueError("holds a number with too large an exponent") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def write_json(value: Any) -> bytes:
    """The JSON text of a value; raises ValueError where it has none."""
    try:
        written = orjson.dumps(value, option=_OPTIONS)
    except TypeError:
        try:
            return _written(value).encode()
        except RecursionError:
            raise ValueError("is nested too deeply") from None
        except UnicodeEncodeError:
            raise ValueError("holds an unpaired surrogate") from None
    # orjson writes what is no number as null.
    if b"null" in written and _has_no_number(value):
        raise ValueError("holds NaN or infinity, which JSON does not have")
    return written


def same_json(one: bytes, other: bytes) -> bool:
    """Whether two JSON texts mean the same value; numbers compare by value, objects without order."""
    try:
        pairs = [(_read(one, _exactly, Decimal), _read(other, _exactly, Decimal))]
    except (ValueError, DecimalException, RecursionError):
        return one == other
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            pairs += [(value, right[name]) for name, value in left.items()]
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif isinstance(left, bool) or isinstance(right, bool):
            if left is not right:
                return False
        elif left != right:
            return False
    return True


def _number(text: str) -> float | Decimal:
    number = float(text)
    # Fifteen significant digits go through a float unchanged.
    if len(text) <= 16 and "e" not in text and "E" not in text:
        return number
    exact = Decimal(text)
    return number if math.isfinite(number) and Decimal(repr(number)) == exact else exact


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) <= _MOST_DIGITS else Decimal(text)


_decode = msgspec.json.Decoder(float_hook=_number).decode
_plainly = msgspec.json.Decoder().decode
# Maps what numbers are made of to 0, their exponent to e and all else to a space.
_DIGITS = bytes(0x30 if chr(byte) in "0123456789.+-" else 0x65 if chr(byte) in "eE" else 0x20 for byte in range(256))
_LONG, _EXPONENT = b"0" * 17, b"0e0"
_exactly = msgspec.json.Decoder(float_hook=Decimal).decode


def _read(content: bytes, decode: Callable[[bytes], Any], number: Callable[[str], Any]) -> Any:
    try:
        return decode(content)
    except msgspec.ValidationError:
        # A number with more digits than an int is read from.
        return json.loads(content.decode(), parse_int=_whole, parse_float=number)


def _has_no_number(value: Any) -> bool:
    """Whether NaN or an infinity is anywhere in the value."""
    below = [value]
    while below:
        node = below.pop()
        if isinstance(node, float):
            if not math.isfinite(node):
                return True
        elif isinstance(node, dict):
            below += node.values()
        elif isinstance(node, (list, tuple)):
            below += node
    return False


def _written(value: Any) -> str:
    """The text of what orjson leaves: long integers, decimals, subclasses, deep nesting."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return json.dumps(str.__str__(value), ensure_ascii=False)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, (float, Decimal)):
        if not (math.isfinite(value) if isinstance(value, float) else value.is_finite()):
            raise ValueError("holds NaN or infinity, which JSON does not have")
        return float.__repr__(value) if isinstance(value, float) else str(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise ValueError("holds an object with a name that is no string")
        return f"{{{','.join(f'{_written(name)}:{_written(item)}' for name, item in value.items())}}}"
    raise ValueError(f"holds a {value.__class__.__name__}, which has no JSON form")
