"""The types of properties, and how each transport carries a value of them: one row a type.

Rule 1: a value is judged in the form that its transport has. JSON carries numbers and booleans as such, headers and
user properties carry canonical strings, AMQP carries its own types or canonical strings.
Rule 2: what a value is compared by is its canonical string, whatever form it came in.

message/spec.md, Property Definitions, `type`; AMQP's `message-id` adds `ulong` and `uuid`.
"""

from __future__ import annotations

import base64
import binascii
import enum
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from signalbook.cloudevents.timestamp import format_timestamp, is_timestamp
from signalbook.cloudevents.uri import is_uri_reference
from signalbook.wire import Typed

__all__ = ["TEXTS", "Form", "canonical", "is_of", "type_of"]

_Test = Callable[[Any], bool]


class Form(enum.Enum):
    """How a transport carries values."""

    JSON = "json"
    TEXT = "text"
    AMQP = "amqp"


# The types whose values may be templates.
TEXTS = frozenset({"string", "uritemplate", "symbol", "uri"})

_WHOLE = frozenset({"ubyte", "ushort", "uint", "ulong", "byte", "short", "int"})
_FRACTIONS = frozenset({"float", "decimal32", "decimal64", "decimal128"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_symbol = re.compile("[A-Za-z0-9_]+").fullmatch
_integer = re.compile("-?(?:0|[1-9][0-9]*)").fullmatch
_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?").fullmatch
# RFC 3339 appendix A
_duration = re.compile(
    r"P(?:[0-9]+W|(?=[0-9T])(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?"
    r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?)"
).fullmatch
_uuid = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
_LONGEST_NUMBER = 1000


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_integer(text: str) -> bool:
    return len(text) <= _LONGEST_NUMBER and bool(_integer(text))


def _is_number(text: str) -> bool:
    return len(text) <= _LONGEST_NUMBER and bool(_number(text))


def _text(test: Callable[[str], Any]) -> _Test:
    """A test of a string, which a JSON value and a header both are."""
    return lambda value: value.__class__ is str and bool(test(value))


def _amqp(kinds: frozenset[str], test: _Test, natural: tuple[type, ...] = ()) -> _Test:
    """A test of an AMQP value: of one of these AMQP types, of a Python type that stands for one, or a string."""

    def holds(value: Any) -> bool:
        if value.__class__ is Typed:
            return value.type in kinds
        return value.__class__ in natural or test(value)

    return holds


def _any(value: Any) -> bool:
    return True


_NONE: frozenset[str] = frozenset()
_is_text = _text(_any)
_IN_TEXT: Mapping[str, _Test] = {
    "any": _any,
    "binary": lambda value: value.__class__ is bytes or (value.__class__ is str and _is_base64(value)),
    "boolean": lambda value: value in ("true", "false"),
    "duration": _text(_duration),
    "integer": _text(_is_integer),
    "number": _text(_is_number),
    "string": _is_text,
    "symbol": _text(_symbol),
    "timestamp": _text(is_timestamp),
    "ulong": _text(lambda text: _is_integer(text) and 0 <= int(text) < 2**64),
    "uri": _text(is_uri_reference),
    "uritemplate": _is_text,
    "uuid": _text(_uuid),
}
_IN_JSON: Mapping[str, _Test] = {
    **_IN_TEXT,
    "boolean": lambda value: value.__class__ is bool,
    "integer": lambda value: value.__class__ is int,
    # A fraction has no other form in an event: CloudEvents knows no type for it but the string.
    "number": lambda value: (
        value.__class__ in (int, float) or (value.__class__ is str and _is_number(value) and not _is_integer(value))
    ),
    "ulong": lambda value: value.__class__ is int and 0 <= value < 2**64,
}


def _symbol_in_amqp(value: Any) -> bool:
    text = value.value if value.__class__ is Typed and value.type == "symbol" else value
    return text.__class__ is str and bool(_symbol(text))


_AMQP_TEXTS = frozenset({"symbol", "char"})
_IN_AMQP: Mapping[str, _Test] = {
    "any": _any,
    "binary": _amqp(_NONE, _IN_TEXT["binary"], (bytes,)),
    "boolean": _amqp(_NONE, _IN_TEXT["boolean"], (bool,)),
    "duration": _IN_TEXT["duration"],
    "integer": _amqp(_WHOLE, _IN_TEXT["integer"], (int,)),
    "number": _amqp(_WHOLE | _FRACTIONS, _IN_TEXT["number"], (int, float)),
    "string": _amqp(_AMQP_TEXTS, _is_text),
    "symbol": _symbol_in_amqp,
    "timestamp": _amqp(frozenset({"timestamp"}), _IN_TEXT["timestamp"]),
    "ulong": _amqp(frozenset({"ulong"}), _IN_TEXT["ulong"]),
    "uri": _amqp(_AMQP_TEXTS, _IN_TEXT["uri"]),
    "uritemplate": _amqp(_AMQP_TEXTS, _is_text),
    "uuid": _amqp(frozenset({"uuid"}), _IN_TEXT["uuid"]),
}
_TESTS: Mapping[Form, Mapping[str, _Test]] = {Form.JSON: _IN_JSON, Form.TEXT: _IN_TEXT, Form.AMQP: _IN_AMQP}


def is_of(type_name: str, form: Form, value: Any) -> bool:
    """Whether a value in a transport's form is of the type; a type that nobody knows takes any."""
    return _TESTS[form].get(type_name, _any)(value)


def type_of(value: Any) -> str:
    """The type that a definition's value shows where none is declared: `string` unless JSON says another."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number" if isinstance(value, float) else "string"


def canonical(value: Any) -> str:
    """The canonical string of a value, in whichever form it came."""
    if value.__class__ is str:
        return value
    if value.__class__ is bool:
        return "true" if value else "false"
    if value.__class__ is bytes:
        return base64.b64encode(value).decode()
    if value.__class__ is float and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if value.__class__ is Typed:
        return _moment(value.value) if value.type == "timestamp" else canonical(value.value)
    return str(value)


def _moment(milliseconds: int) -> str:
    try:
        return format_timestamp(_EPOCH + timedelta(milliseconds=milliseconds))
    except OverflowError:
        return str(milliseconds)
