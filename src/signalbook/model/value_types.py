"""The value types of the specification, one row each.

Rule 1: a row's `read` gives back the value in its canonical form, or raises ValueError with what is wrong in words
that follow an attribute's name ("must be a string").
Rule 2: what needs a model to be judged (`xid`, `xidtype`) is checked for syntax here and for its types in `entity`.
Rule 3: a container (`array`, `map`, `object`) is checked for its own kind only; `levels` goes inside.

core/spec.md 1.0-rc4, Data Types; `urireference` and `uri-reference` are how 1.0-rc2 models spell `uri`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite
from types import MappingProxyType
from typing import Any

from signalbook.model.xids import Xid, parse_xidtype

__all__ = ["TYPE_ALIASES", "VALUE_TYPES", "ValueType", "check", "from_text", "moment", "text_of"]

MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class ValueType:
    """One type: its name, whether it is a scalar, and the function that reads a JSON value of it."""

    name: str
    scalar: bool
    read: Callable[[Any], Any]


def check(type_name: str, value: object) -> str | None:
    """What is wrong with `value` as a value of the type, or None."""
    try:
        VALUE_TYPES[type_name].read(value)
    except ValueError as problem:
        return str(problem)
    return None


def text_of(value: object) -> str:
    """The string serialization of a scalar: what `ifvalues` keys and HTTP headers hold."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    # A container has none; writing it out could take any length and depth.
    return f"<{value.__class__.__name__}>" if isinstance(value, (dict, list)) else str(value)


_INTEGER_TEXT = re.compile(r"-?[0-9]{1,20}")
_DECIMAL_TEXT = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,2})?")


def from_text(type_name: str, text: str) -> Any:
    """The value of a type that `text` (of an HTTP header, say) means; `text` itself where it means none."""
    if type_name == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if type_name in ("integer", "uinteger"):
        return int(text) if _INTEGER_TEXT.fullmatch(text) else text
    if type_name == "decimal" and _DECIMAL_TEXT.fullmatch(text):
        return int(text) if _INTEGER_TEXT.fullmatch(text) else float(text)
    return text


def moment(timestamp: str) -> tuple[str, str]:
    """A key that orders normalised timestamps, whatever number of fraction digits each has."""
    return timestamp[:19], timestamp[20:-1].rstrip("0")


def _any(value: Any) -> Any:
    layer = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for container in layer:
            members = container.values() if isinstance(container, dict) else container
            inner += [member for member in members if isinstance(member, (dict, list))]
        if not inner:
            return value
        layer = inner
    raise ValueError(f"must not be nested deeper than {MAX_DEPTH} levels")


def _kind(kind: type, article_and_name: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value.__class__ is not kind:
            raise ValueError(f"must be {article_and_name}")
        return value

    return read


def _integer(lowest: int, highest: int, name: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value.__class__ is float and value.is_integer():
            value = int(value)
        if value.__class__ is not int or not lowest <= value <= highest:
            raise ValueError(f"must be {name}")
        return value

    return read


def _decimal(value: Any) -> Any:
    if value.__class__ is int and -(2**63) <= value < 2**64:
        return value
    if value.__class__ is not float or not isfinite(value):
        raise ValueError("must be a decimal")
    return value


# RFC 3339 section 5.6; the offset may be missing, since the specification only recommends it, and then means UTC.
_TIMESTAMP = re.compile(
    r"([0-9]{4})(-[0-9]{2}-[0-9]{2})[Tt ]((?:[01][0-9]|2[0-3]):[0-5][0-9]):([0-5][0-9]|60)(\.[0-9]+)?"
    r"(?:[Zz]|([+-])((?:[01][0-9]|2[0-3])):([0-5][0-9]))?"
)


def _timestamp(value: Any) -> Any:
    if value.__class__ is not str:
        raise ValueError("must be a timestamp")
    found = _TIMESTAMP.fullmatch(value)
    if found is None:
        raise ValueError("must be an RFC3339 timestamp")
    year, day, minute, second, fraction, sign, hours, minutes = found.groups()
    try:
        # datetime has neither a year 0, which is a leap year like 2000, nor a second 60.
        at = datetime.fromisoformat(f"{year if year != '0000' else '2000'}{day}T{minute}")
        if sign and hours + minutes != "0000":
            if year == "0000":
                raise ValueError
            offset = timedelta(hours=int(hours), minutes=int(minutes))
            at = at - offset if sign == "+" else at + offset
            year, day, minute = f"{at.year:04}", f"-{at.month:02}-{at.day:02}", f"{at.hour:02}:{at.minute:02}"
    except (ValueError, OverflowError):
        raise ValueError("must be an RFC3339 timestamp") from None
    return f"{year}{day}T{minute}:{second}{fraction or ''}Z"


# A reference is taken as people write them: text without control characters. The strict types follow RFC 3986.
_LOOSE = re.compile(r"[^\x00-\x1f\x7f]*")
_CHARACTERS = r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})"
_ABSOLUTE = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*:{_CHARACTERS}+")
_RELATIVE = re.compile(rf"(?![^/?#]*:){_CHARACTERS}*")
# RFC 6570 sections 2.1 to 2.3, every operator and modifier.
_VARIABLE = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*(?:\*|:[1-9][0-9]{0,3})?"
_TEMPLATE = re.compile(rf"(?:[^\x00-\x1f\x7f{{}}]|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*")

_OF_LETTERS = ": a variable in braces is letters, digits, _ and dots"


def _text(pattern: re.Pattern[str], article_and_name: str, hint: str = "") -> Callable[[Any], Any]:
    matches = pattern.fullmatch

    def read(value: Any) -> Any:
        if value.__class__ is not str or not matches(value):
            raise ValueError(f"must be {article_and_name}{hint if isinstance(value, str) else ''}")
        return value

    return read


def _xid(value: Any) -> Any:
    if value.__class__ is not str:
        raise ValueError("must be an xid")
    try:
        Xid.parse(value)
    except ValueError as problem:
        raise ValueError(f"value ({value}) isn't a valid xid, {problem}") from None
    return value


def _xidtype(value: Any) -> Any:
    if value.__class__ is not str:
        raise ValueError("must be an xidtype")
    try:
        parse_xidtype(value)
    except ValueError as problem:
        raise ValueError(f"value ({value}) isn't a valid xidtype, {problem}") from None
    return value


VALUE_TYPES: Mapping[str, ValueType] = MappingProxyType(
    {
        name: ValueType(name, scalar, read)
        for name, scalar, read in (
            ("any", False, _any),
            ("array", False, _kind(list, "an array")),
            ("boolean", True, _kind(bool, "a boolean")),
            ("decimal", True, _decimal),
            ("integer", True, _integer(-(2**63), 2**63 - 1, "an integer")),
            ("map", False, _kind(dict, "a map")),
            ("object", False, _kind(dict, "an object")),
            ("string", True, _kind(str, "a string")),
            ("timestamp", True, _timestamp),
            ("uinteger", True, _integer(0, 2**64 - 1, "a uinteger")),
            ("uri", True, _text(_LOOSE, "a uri")),
            ("uriabsolute", True, _text(_ABSOLUTE, "a uriabsolute")),
            ("urirelative", True, _text(_RELATIVE, "a urirelative")),
            ("uritemplate", True, _text(_TEMPLATE, "a uritemplate", _OF_LETTERS)),
            ("url", True, _text(_LOOSE, "a url")),
            ("urlabsolute", True, _text(_ABSOLUTE, "a urlabsolute")),
            ("urlrelative", True, _text(_RELATIVE, "a urlrelative")),
            ("xid", True, _xid),
            ("xidtype", True, _xidtype),
        )
    }
)

TYPE_ALIASES: Mapping[str, str] = MappingProxyType(
    {"urireference": "uri", "uri-reference": "uri", "urlreference": "url", "url-reference": "url"}
)
