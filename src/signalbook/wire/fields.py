"""What a field of a message on paper holds, one row a kind.

Rule: `read` takes the JSON value and gives the Python one, adding what is wrong to a list; `write` is its inverse.
Multi-valued fields are tuples of pairs, in the order observed; a name may occur again.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from signalbook.errors import Problem
from signalbook.wire import amqp_values

__all__ = [
    "BINARY",
    "BYTES",
    "FLAG",
    "HEADERS",
    "MOMENT",
    "PAIRS",
    "SECTION",
    "TEXT",
    "Kind",
    "choice",
    "pointer",
    "whole",
]

Read = Callable[[Any, str, list[Problem]], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """How a field is read from paper and written to it; `write` gives the ending of its name there and the value."""

    name: str
    read: Read
    write: Callable[[Any], tuple[str, Any]]


def pointer(path: str, name: str) -> str:
    """The JSON Pointer of a member."""
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"


def _wrong(problems: list[Problem], path: str, expected: str) -> None:
    problems.append(Problem(path, "type", f"must be {expected}"))


def _as_it_is(value: Any) -> tuple[str, Any]:
    return "", value


def _plain(expected: type, words: str) -> Read:
    def read(value: Any, path: str, problems: list[Problem]) -> Any:
        if type(value) is not expected:
            _wrong(problems, path, words)
        return value

    return read


def whole(lowest: int, highest: int) -> Kind:
    """An integer between two bounds."""

    def read(value: Any, path: str, problems: list[Problem]) -> Any:
        if type(value) is not int or not lowest <= value <= highest:
            _wrong(problems, path, f"an integer from {lowest} to {highest}")
        return value

    return Kind("integer", read, _as_it_is)


def choice(*names: str) -> Kind:
    """One of a few words."""

    def read(value: Any, path: str, problems: list[Problem]) -> Any:
        if value not in names:
            _wrong(problems, path, f"one of {', '.join(names)}")
        return value

    return Kind("choice", read, _as_it_is)


def _read_moment(value: Any, path: str, problems: list[Problem]) -> Any:
    if type(value) not in (int, str):
        _wrong(problems, path, "milliseconds since 1970, or a text")
    return value


def _read_text_bytes(value: Any, path: str, problems: list[Problem]) -> bytes:
    if not isinstance(value, str):
        _wrong(problems, path, "a text")
        return b""
    try:
        return value.encode()
    except UnicodeEncodeError:
        _wrong(problems, path, "a text without unpaired surrogates")
        return b""


def _read_binary(value: Any, path: str, problems: list[Problem]) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        _wrong(problems, path, "Base64 text")
        return b""


def _write_bytes(value: bytes) -> tuple[str, Any]:
    try:
        return "", value.decode()
    except UnicodeDecodeError:
        return "_base64", base64.b64encode(value).decode()


def _read_pairs(read_value: Read) -> Read:
    def read(value: Any, path: str, problems: list[Problem]) -> tuple[tuple[str, Any], ...]:
        if isinstance(value, dict):
            return tuple((name, read_value(item, pointer(path, name), problems)) for name, item in value.items())
        if not isinstance(value, list):
            _wrong(problems, path, "an array of [name, value]")
            return ()
        pairs = []
        for index, pair in enumerate(value):
            place = f"{path}/{index}"
            if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str):
                pairs.append((pair[0], read_value(pair[1], f"{place}/1", problems)))
            else:
                _wrong(problems, place, "an array of a name and a value")
        return tuple(pairs)

    return read


def _read_header(value: Any, path: str, problems: list[Problem]) -> bytes | None:
    """A Kafka header's value: text, null, or bytes that are no text as {"base64": …}."""
    if value is None:
        return None
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return _read_binary(value["base64"], f"{path}/base64", problems)
    if isinstance(value, dict):
        _wrong(problems, path, 'a text, null or {"base64": …}')
        return None
    return _read_text_bytes(value, path, problems)


def _write_header(value: bytes | None) -> Any:
    if value is None:
        return None
    ending, written = _write_bytes(value)
    return {"base64": written} if ending else written


def _read_section(value: Any, path: str, problems: list[Problem]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        _wrong(problems, path, "an object")
        return {}
    return {name: amqp_values.read_value(item, pointer(path, name), problems) for name, item in value.items()}


def _write_section(value: Mapping[str, Any]) -> tuple[str, Any]:
    return "", {name: amqp_values.write_value(item) for name, item in value.items()}


TEXT = Kind("text", _plain(str, "a text"), _as_it_is)
FLAG = Kind("boolean", _plain(bool, "true or false"), _as_it_is)
MOMENT = Kind("moment", _read_moment, _as_it_is)
BYTES = Kind("bytes", _read_text_bytes, _write_bytes)
BINARY = Kind("base64", _read_binary, _write_bytes)
PAIRS = Kind("pairs", _read_pairs(_plain(str, "a text")), lambda pairs: ("", [[name, value] for name, value in pairs]))
HEADERS = Kind(
    "headers", _read_pairs(_read_header), lambda pairs: ("", [[name, _write_header(value)] for name, value in pairs])
)
SECTION = Kind("section", _read_section, _write_section)
