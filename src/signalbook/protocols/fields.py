"""What a field of a message on paper holds, one row a kind.

Rule 1: `read` takes the JSON value and gives the Python one, adding what is wrong to a list; `write` is its inverse.
Rule 2: `settle` takes what a caller gives in Python: bytes or text where bytes are held, any sequence or map of pairs.
Rule 3: multi-valued fields are tuples of pairs, in the order observed; a name may occur again.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signalbook.errors import Problem
from signalbook.protocols import amqp_values

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
    "Read",
    "choice",
    "coded",
    "connection_headers",
    "is_token",
    "line_flaw",
    "method_flaw",
    "name_flaw",
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
    settle: Read


def pointer(path: str, name: str) -> str:
    """The JSON Pointer of a member."""
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"


def _wrong(problems: list[Problem], path: str, expected: str) -> None:
    problems.append(Problem(path, "type", f"must be {expected}"))


def _as_it_is(value: Any) -> tuple[str, Any]:
    return "", value


def _alike(name: str, read: Read, write: Callable[[Any], tuple[str, Any]] = _as_it_is) -> Kind:
    """A kind whose JSON form is read as its Python form is."""
    return Kind(name, read, write, read)


def _read_flag(value: Any, path: str, problems: list[Problem]) -> Any:
    if type(value) is not bool:
        _wrong(problems, path, "true or false")
    return value


def _read_text(value: Any, path: str, problems: list[Problem]) -> Any:
    if type(value) is not str:
        _wrong(problems, path, "a text")
    elif not value.isascii():
        _encoded(value, path, problems)
    return value


def _encoded(text: str, path: str, problems: list[Problem]) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        _wrong(problems, path, "a text without unpaired surrogates")
        return b""


def whole(lowest: int, highest: int) -> Kind:
    """An integer between two bounds."""

    def read(value: Any, path: str, problems: list[Problem]) -> Any:
        if type(value) is not int or not lowest <= value <= highest:
            _wrong(problems, path, f"an integer from {lowest} to {highest}")
        return value

    return _alike("integer", read)


def coded(lowest: int, highest: int) -> Kind:
    """The same, which may be written as a text of its digits."""
    plain = whole(lowest, highest)

    def read(value: Any, path: str, problems: list[Problem]) -> Any:
        is_text = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= len(str(highest))
        return plain.read(int(value) if is_text else value, path, problems)

    return _alike("integer", read)


def choice(*names: str) -> Kind:
    """One of a few words."""

    def read(value: Any, path: str, problems: list[Problem]) -> Any:
        if value not in names:
            _wrong(problems, path, f"one of {', '.join(names)}")
        return value

    return _alike("choice", read)


def _read_moment(value: Any, path: str, problems: list[Problem]) -> Any:
    if type(value) not in (int, str):
        _wrong(problems, path, "milliseconds since 1970, or a text")
    return value


def _read_text_bytes(value: Any, path: str, problems: list[Problem]) -> bytes:
    if not isinstance(value, str):
        _wrong(problems, path, "a text")
        return b""
    return _encoded(value, path, problems)


def _settle_bytes(value: Any, path: str, problems: list[Problem]) -> bytes:
    if isinstance(value, (bytes, str)):
        return value if isinstance(value, bytes) else _encoded(value, path, problems)
    _wrong(problems, path, "bytes or a text")
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
        if isinstance(value, Mapping):
            return tuple(
                (_read_text(name, path, problems), read_value(item, pointer(path, str(name)), problems))
                for name, item in value.items()
            )
        if not isinstance(value, (list, tuple)):
            _wrong(problems, path, "an array of [name, value]")
            return ()
        pairs = []
        for index, pair in enumerate(value):
            place = f"{path}/{index}"
            if isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str):
                name = _read_text(pair[0], f"{place}/0", problems)
                pairs.append((name, read_value(pair[1], f"{place}/1", problems)))
            else:
                _wrong(problems, place, "an array of a name and a value")
        return tuple(pairs)

    return read


def _read_header(value: Any, path: str, problems: list[Problem]) -> bytes | None:
    """A Kafka header's value: text, null, or bytes that are not text as {"base64": …}."""
    if value is None:
        return None
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return _read_binary(value["base64"], f"{path}/base64", problems)
    if isinstance(value, dict):
        _wrong(problems, path, 'a text, null or {"base64": …}')
        return None
    return _read_text_bytes(value, path, problems)


def _settle_header(value: Any, path: str, problems: list[Problem]) -> bytes | None:
    return None if value is None else _settle_bytes(value, path, problems)


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


def _settle_section(value: Any, path: str, problems: list[Problem]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        _wrong(problems, path, "a map with texts for names")
        return {}
    return _read_section(_write_section(value)[1], path, problems)


TEXT = _alike("text", _read_text)
FLAG = _alike("boolean", _read_flag)
MOMENT = _alike("moment", _read_moment)
BYTES = Kind("bytes", _read_text_bytes, _write_bytes, _settle_bytes)
BINARY = _alike("base64", _read_binary, _write_bytes)
PAIRS = _alike("pairs", _read_pairs(_read_text), lambda pairs: ("", [[name, value] for name, value in pairs]))
HEADERS = Kind(
    "headers",
    _read_pairs(_read_header),
    lambda pairs: ("", [[name, _write_header(value)] for name, value in pairs]),
    _read_pairs(_settle_header),
)
SECTION = Kind("section", _read_section, _write_section, _settle_section)


# Header lines, as HTTP has them and NATS took them over.
#
# Rule 1: what would end a line early, be trimmed on the way or cannot be written is a problem of a message to be sent.
# Rule 2: some headers speak of one connection or of how a message is framed on it; they do not go along with the
# message
# to another (RFC 9110 sections 7.2, 7.6.1 and 8.6; RFC 9112 section 6).


# RFC 9110, sections 5.1 and 5.5: a name is a token; a value holds no control character but the tab, and no white space
# at its ends.
is_token = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_is_line = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*").fullmatch
_OF_A_CONNECTION = frozenset(
    ("connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings")
)
_OF_THE_FRAME = frozenset(("host", "content-length"))


def name_flaw(name: str) -> str | None:
    """What is wrong with a header's name, in words that follow its place."""
    return (
        None if is_token(name) else f'must have a name of letters, digits and marks, as headers have, not "{name[:80]}"'
    )


def method_flaw(method: str) -> str | None:
    """What is wrong with a method, in words that follow it."""
    return None if is_token(method) else "must be an HTTP method, of letters, digits and some marks"


def line_flaw(charset: str) -> Callable[[str], str | None]:
    """The test of a header's value that is sent in a charset, in words that follow it."""

    def flaw(value: str) -> str | None:
        if not _is_line(value) or value != value.strip():
            return "must not have control characters, nor white space at an end: it would not arrive as it is"
        return None if _fits(value, charset) else f"must be a text that can be written in {charset}"

    return flaw


def connection_headers(pairs: Sequence[tuple[str, str]]) -> frozenset[str]:
    """The names, in lower case, of the headers that are the connection's: those always, and those it names itself."""
    options = ",".join(value for name, value in pairs if name.lower() == "connection")
    return _OF_A_CONNECTION | _OF_THE_FRAME | {option.strip().lower() for option in options.split(",")}


def _fits(text: str, charset: str) -> bool:
    try:
        text.encode(charset)
    except UnicodeEncodeError:
        return False
    return True
