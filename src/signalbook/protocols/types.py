"""The types of properties, and how each transport carries a value of them: one row a type.

Rule 1: a value is judged in the form that its transport has. JSON carries numbers and booleans as such, headers and
user properties carry canonical strings, AMQP carries its own types or canonical strings.
Rule 2: what a value is compared by is its canonical string, whatever form it came in.
Rule 3: a definition may state a value as JSON has it or as a header would carry it.

message/spec.md, Property Definitions, `type`; AMQP's `message-id` adds `ulong` and `uuid`. The types in `EXACT` are
those of single fields of a protocol, which a definition states as `integer` or `symbol`.
"""

from __future__ import annotations

import base64
import binascii
import enum
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

from signalbook.cloudevents.timestamp import format_timestamp, instant, is_timestamp
from signalbook.cloudevents.uri import is_uri_reference
from signalbook.protocols.amqp_values import Typed
from signalbook.template import Template

__all__ = ["EXACT", "TEXTS", "TYPES", "Form", "canonical", "is_of", "is_stated", "same", "value_template"]

_Test = Callable[[Any], bool]


class Form(enum.Enum):
    """How a transport carries values."""

    JSON = "json"
    TEXT = "text"
    AMQP = "amqp"


# The types whose values may be templates.
TEXTS = frozenset({"string", "uritemplate", "symbol", "uri", "ascii"})
# The bounds of whole numbers: CloudEvents' `Integer`, and those of single fields of MQTT, AMQP and Kafka.
_BOUNDS: Mapping[str, tuple[int, int]] = {
    "integer": (-(2**31), 2**31 - 1),
    "ulong": (0, 2**64 - 1),
    "bit": (0, 1),
    "qos": (0, 2),
    "ubyte": (0, 2**8 - 1),
    "partition": (0, 2**31 - 1),
    "uint": (0, 2**32 - 1),
}
EXACT: Mapping[str, str] = {
    **dict.fromkeys(("bit", "qos", "ubyte", "partition", "uint"), "integer"),
    "ascii": "symbol",
}
# The attributes of an event, and the types of others, whose value may be one placeholder that stands for all of it.
_WHOLE_ATTRIBUTES = frozenset({"source", "dataschema", "subject"})
_WHOLE_TYPES = frozenset({"uri", "urireference", "uritemplate"})

_WHOLE = frozenset({"ubyte", "ushort", "uint", "ulong", "byte", "short", "int"})
_FRACTIONS = frozenset({"float", "decimal32", "decimal64", "decimal128"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_symbol = re.compile("[A-Za-z0-9_]+").fullmatch
_integer = re.compile("-?(?:0|[1-9][0-9]*)").fullmatch
_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?").fullmatch
# RFC 3339 appendix A: no fractions, and no unit is left out between two others.
_TIME = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DATE = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
_duration = re.compile(f"P(?:[0-9]+W|{_TIME}|{_DATE}(?:{_TIME})?)").fullmatch
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
    return len(text) <= _LONGEST_NUMBER and bool(_number(text)) and isfinite(float(text))


def _whole_text(bounds: tuple[int, int]) -> Callable[[str], bool]:
    low, high = bounds
    return lambda text: _is_integer(text) and low <= int(text) <= high


def _whole(bounds: tuple[int, int]) -> _Test:
    low, high = bounds
    return lambda value: value.__class__ is int and low <= value <= high


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
    "number": _text(_is_number),
    "string": _is_text,
    "symbol": _text(_symbol),
    "timestamp": _text(is_timestamp),
    "uri": _text(is_uri_reference),
    "uritemplate": _is_text,
    "uuid": _text(_uuid),
    "ascii": _text(str.isascii),
    **{name: _text(_whole_text(bounds)) for name, bounds in _BOUNDS.items()},
}
_is_short = _IN_TEXT["integer"]
_IN_JSON: Mapping[str, _Test] = {
    **_IN_TEXT,
    "boolean": lambda value: value.__class__ is bool,
    **{name: _whole(bounds) for name, bounds in _BOUNDS.items()},
    # A fraction, or a number of more than 32 bits, has no other form in an event: CloudEvents knows no type for it but
    # the string.
    "number": lambda value: value.__class__ in (int, float) or (_IN_TEXT["number"](value) and not _is_short(value)),
    "ulong": lambda value: _whole(_BOUNDS["ulong"])(value) or (_IN_TEXT["ulong"](value) and not _is_short(value)),
}


def _symbol_in_amqp(value: Any) -> bool:
    text = value.value if value.__class__ is Typed and value.type == "symbol" else value
    return text.__class__ is str and bool(_symbol(text))


def _whole_in_amqp(name: str) -> _Test:
    number, text = _whole(_BOUNDS[name]), _IN_TEXT[name]

    def holds(value: Any) -> bool:
        if value.__class__ is Typed:
            return value.type in (_WHOLE if name != "ulong" else ("ulong",)) and number(value.value)
        return (name != "ulong" and number(value)) or text(value)

    return holds


def _ascii_in_amqp(value: Any) -> bool:
    text = value.value if value.__class__ is Typed and value.type in _AMQP_TEXTS else value
    return text.__class__ is str and bool(text.isascii())


_AMQP_TEXTS = frozenset({"symbol", "char"})
_IN_AMQP: Mapping[str, _Test] = {
    "any": _any,
    "binary": _amqp(_NONE, _IN_TEXT["binary"], (bytes,)),
    "boolean": _amqp(_NONE, _IN_TEXT["boolean"], (bool,)),
    "duration": _IN_TEXT["duration"],
    "number": _amqp(_WHOLE | _FRACTIONS, _IN_TEXT["number"], (int, float)),
    "string": _amqp(_AMQP_TEXTS, _is_text),
    "symbol": _symbol_in_amqp,
    "timestamp": _amqp(frozenset({"timestamp"}), _IN_TEXT["timestamp"]),
    "uri": _amqp(_AMQP_TEXTS, _IN_TEXT["uri"]),
    "uritemplate": _amqp(_AMQP_TEXTS, _is_text),
    "uuid": _amqp(frozenset({"uuid"}), _IN_TEXT["uuid"]),
    "ascii": _ascii_in_amqp,
    **{name: _whole_in_amqp(name) for name in _BOUNDS},
}
_TESTS: Mapping[Form, Mapping[str, _Test]] = {Form.JSON: _IN_JSON, Form.TEXT: _IN_TEXT, Form.AMQP: _IN_AMQP}


def is_of(type_name: str, form: Form, value: Any) -> bool:
    """Whether a value in a transport's form is of the type; a type that nobody knows takes any."""
    return _TESTS[form].get(type_name, _any)(value)


# Those that a definition may state.
TYPES = frozenset(_IN_TEXT.keys() - EXACT.keys())


def is_stated(type_name: str, value: Any) -> bool:
    """Whether a definition may state the value for a property of the type: as JSON has it, or as a header would."""
    if value.__class__ is float and value.is_integer():  # JSON has one kind of number, and 1.0 is 1
        value = int(value)
    return _IN_TEXT[type_name](value) or _IN_JSON[type_name](value)


def same(type_name: str, one: str, other: str) -> bool:
    """Whether two canonical strings, which are not alike, are the same value of the type."""
    compare = _MEANINGS.get(type_name)
    if compare is None:
        return False
    try:
        return bool(compare(one) == compare(other))
    except ValueError:
        return False


_MEANINGS: Mapping[str, Callable[[str], Any]] = {
    "number": float,
    "binary": lambda text: base64.b64decode(text, validate=True),
    "timestamp": lambda text: instant(text) if is_timestamp(text) else text,
    "uuid": str.lower,
}


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
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return str(value)


def _plain(value: Any) -> Any:
    """A list or a map as JSON has it."""
    if isinstance(value, Mapping):
        return {canonical(name): _plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(member) for member in value]
    return value if value is None or value.__class__ in (str, bool, int, float) else canonical(value)


def _moment(milliseconds: int) -> str:
    try:
        return format_timestamp(_EPOCH + timedelta(milliseconds=milliseconds))
    except OverflowError:
        return str(milliseconds)


def value_template(text: str, type_: str, attribute: str = "", *, is_content_type: bool = False) -> Template:
    """The template that a property's value is; `attribute` is its name where it is one of an event.

    A lone placeholder takes the whole text where it stands for a content type, which always has a slash, or in an event
    for a URI or for `subject`. A content type is not a URI, so nothing in it is percent-encoded.
    """
    template = Template.parse(text)
    if is_content_type:
        return template.as_whole().as_verbatim()
    if attribute and (attribute in _WHOLE_ATTRIBUTES or type_ in _WHOLE_TYPES):
        return template.as_whole()
    return template
