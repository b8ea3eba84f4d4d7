"""AMQP 1.0 values on paper: the types that JSON has stand as they are, the others as `{"type", "value"}`.

    JSON      boolean  integer  fraction  string  null  array  object
    AMQP      boolean  long     double    string  null  list   map
    Python    bool     int      float     str     None  tuple  dict

`{"type": "binary", "value": "AQID"}` is `bytes` in Python; the remaining types of AMQP 1.0 part 1, section 1.6, are a
`Typed`, so that a value goes out as the type it came in. A map that holds just `type` and `value` is written as
`{"type": "map", "value": {…}}`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from signalbook.errors import Problem

__all__ = ["MAX_DEPTH", "Typed", "read_value", "write_value"]

MAX_DEPTH = 64
_JSON_TYPES = frozenset((bool, int, float, str, type(None)))


@dataclass(frozen=True, slots=True)
class Typed:
    """A value whose AMQP type Python has no type for: `Typed("timestamp", 1522900584000)`, `Typed("symbol", "x")`."""

    type: str
    value: Any


def read_value(value: Any, path: str, problems: list[Problem], depth: int = 0) -> Any:
    """The Python form of a value on paper."""
    if depth > MAX_DEPTH:
        problems.append(Problem(path, "value", f"is nested deeper than {MAX_DEPTH} levels"))
        return None
    if isinstance(value, list):
        return tuple(read_value(item, f"{path}/{index}", problems, depth + 1) for index, item in enumerate(value))
    if isinstance(value, dict):
        return _read_object(value, path, problems, depth)
    if type(value) is int and not -(2**63) <= value < 2**63:
        problems.append(Problem(path, "type", "is beyond 64 bits with a sign; give larger numbers their type"))
    elif type(value) not in _JSON_TYPES or (type(value) is str and not _is_unicode(value)):
        problems.append(Problem(path, "type", "does not have an AMQP type"))
    return value


def _read_object(value: dict[str, Any], path: str, problems: list[Problem], depth: int) -> Any:
    """A map, or a value with its type."""
    kind, inner = str(value.get("type")), value.get("value")
    if value.keys() != {"type", "value"}:
        kind, inner = "map", value
    if kind == "map" and isinstance(inner, dict):
        return {name: read_value(item, f"{path}/{name}", problems, depth + 1) for name, item in inner.items()}
    row = _TYPES.get(kind)
    if row is None:
        problems.append(Problem(f"{path}/type", "value", f"must be one of {', '.join([*_TYPES, 'map'])}"))
        return None
    try:
        return row(kind, inner)
    except (ValueError, binascii.Error):
        problems.append(Problem(f"{path}/value", "type", f"is not a valid {kind}"))
        return None


def _is_unicode(text: str) -> bool:
    """Whether the text is free of unpaired surrogates."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def write_value(value: Any) -> Any:
    """The form on paper of a Python value."""
    if isinstance(value, bytes):
        return {"type": "binary", "value": base64.b64encode(value).decode()}
    if isinstance(value, Typed):
        return {"type": value.type, "value": value.value}
    if isinstance(value, (tuple, list)):
        return [write_value(item) for item in value]
    if isinstance(value, Mapping):
        written = {name: write_value(item) for name, item in value.items()}
        return {"type": "map", "value": written} if written.keys() == {"type", "value"} else written
    return value


def _binary(kind: str, inner: Any) -> bytes:
    inner = _natural(str)(kind, inner)
    return base64.b64decode(inner, validate=True)


def _natural(expected: type) -> Callable[[str, Any], Any]:
    def read(kind: str, inner: Any) -> Any:
        if type(inner) is not expected:
            raise ValueError
        return inner

    return read


def _whole(lowest: int, highest: int) -> Callable[[str, Any], Typed]:
    def read(kind: str, inner: Any) -> Typed:
        if type(inner) is not int or not lowest <= inner <= highest:
            raise ValueError
        return Typed(kind, inner)

    return read


def _long(kind: str, inner: Any) -> int:
    return int(_whole(-(2**63), 2**63 - 1)(kind, inner).value)


def _fraction(kind: str, inner: Any) -> Typed:
    if type(inner) not in (int, float):
        raise ValueError
    return Typed(kind, float(inner))


def _text(pattern: str) -> Callable[[str, Any], Typed]:
    matches = re.compile(pattern).fullmatch

    def read(kind: str, inner: Any) -> Typed:
        if not isinstance(inner, str) or not matches(inner):
            raise ValueError
        return Typed(kind, inner)

    return read


_TYPES: Mapping[str, Callable[[str, Any], Any]] = {
    "binary": _binary,
    "boolean": _natural(bool),
    "long": _long,
    "double": _natural(float),
    "string": _natural(str),
    "ubyte": _whole(0, 2**8 - 1),
    "ushort": _whole(0, 2**16 - 1),
    "uint": _whole(0, 2**32 - 1),
    "ulong": _whole(0, 2**64 - 1),
    "byte": _whole(-(2**7), 2**7 - 1),
    "short": _whole(-(2**15), 2**15 - 1),
    "int": _whole(-(2**31), 2**31 - 1),
    "timestamp": _whole(-(2**63), 2**63 - 1),
    "float": _fraction,
    "decimal32": _text(r"[-+0-9.eE]+"),
    "decimal64": _text(r"[-+0-9.eE]+"),
    "decimal128": _text(r"[-+0-9.eE]+"),
    "char": _text(r"(?s:.)"),
    "symbol": _text(r"[\x00-\x7f]*"),
    "uuid": _text(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
}
