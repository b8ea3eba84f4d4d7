"""The values of AMQP 1.0 as python-qpid-proton has them, and as they are on paper: one row a type.

Rule 1: a value keeps its type both ways; a list is a tuple on paper, and bytes are bytes.
Rule 2: an array is read as the list of its values, and a described value as the value alone: paper has neither.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from signalbook.clients.decimal_bits import FORMATS
from signalbook.clients.refusals import MissingLibrary, refusal
from signalbook.wire import Typed

try:
    import proton
except ImportError as error:
    raise MissingLibrary("python-qpid-proton", "amqp") from error

__all__ = ["read_value", "write_value"]

_MAX_DEPTH = 64

_PLAIN = frozenset((str, bool, int, float, bytes, type(None)))
# The name of the type on paper, proton's class for it, and how the value inside is read from that.
_READ: Mapping[type, tuple[str, Callable[[Any], Any]]] = {
    proton.symbol: ("symbol", str),
    proton.char: ("char", str),
    proton.timestamp: ("timestamp", int),
    proton.ubyte: ("ubyte", int),
    proton.ushort: ("ushort", int),
    proton.uint: ("uint", int),
    proton.ulong: ("ulong", int),
    proton.byte: ("byte", int),
    proton.short: ("short", int),
    proton.int32: ("int", int),
    proton.float32: ("float", float),
    uuid.UUID: ("uuid", str),
    proton.decimal32: ("decimal32", FORMATS["decimal32"].read),
    proton.decimal64: ("decimal64", FORMATS["decimal64"].read),
    proton.decimal128: ("decimal128", lambda value: FORMATS["decimal128"].read(int.from_bytes(value, "big"))),
}
_WRITE: Mapping[str, Callable[[Any], Any]] = {name: kind for kind, (name, _) in _READ.items()} | {
    "decimal32": lambda text: proton.decimal32(FORMATS["decimal32"].write(text)),
    "decimal64": lambda text: proton.decimal64(FORMATS["decimal64"].write(text)),
    "decimal128": lambda text: proton.decimal128(FORMATS["decimal128"].write(text).to_bytes(16, "big")),
}


def read_value(value: Any, path: str, depth: int = 0) -> Any:
    """The value on paper of one that proton has decoded; raises `WireError` where it has no form there."""
    _check_depth(path, depth)
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is memoryview:
        return bytes(value)
    if kind is proton.Described:
        return read_value(value.value, path, depth + 1)
    if kind in (list, proton.Array):
        return tuple(read_value(item, f"{path}/{index}", depth + 1) for index, item in enumerate(value))
    if isinstance(value, dict):
        return {_name(name, path): read_value(item, f"{path}/{name}", depth + 1) for name, item in value.items()}
    name, read = _READ[kind]
    try:
        return Typed(name, read(value))
    except ValueError as error:
        raise refusal(path, f"{error}, which has no form on paper") from None


def write_value(value: Any, path: str, depth: int = 0) -> Any:
    """The value for proton to encode of one on paper; raises `WireError` where it is none of its type."""
    _check_depth(path, depth)
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {name: write_value(item, f"{path}/{name}", depth + 1) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [write_value(item, f"{path}/{index}", depth + 1) for index, item in enumerate(value)]
    try:
        return _WRITE[value.type](value.value)
    except (AttributeError, KeyError):
        raise refusal(path, "is of no AMQP type") from None
    except (AssertionError, TypeError, ValueError) as error:
        raise refusal(path, f"is no {value.type}: {error}") from None


def _name(name: Any, path: str) -> str:
    """A key on paper: a text, or the number of a reserved annotation."""
    if isinstance(name, str) and not isinstance(name, proton.char):
        return str(name)
    if isinstance(name, proton.ulong):
        return str(int(name))
    raise refusal(path, f"is a map with a key that is no text: {name!r}")


def _check_depth(path: str, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise refusal(path, f"is nested deeper than {_MAX_DEPTH} levels")
