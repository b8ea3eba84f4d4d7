"""JSON text to values: the one place where a body from outside becomes Python objects.

Rule 1: what cannot be held exactly and given back is refused, not bent: duplicate names, integers beyond 64 bits,
NUL characters (PostgreSQL text has none), numbers out of range, text that is not UTF-8, nesting deeper than 64.
Rule 2: every refusal is the specification's `parsing_data`, and says where in the document it happened.
Rule 3: a good document pays one decode and one walk; the slow scan that finds the place runs only on bad ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec

from signalbook.errors import RegistryError

__all__ = ["MAX_DEPTH", "parse_json"]

MAX_DEPTH = 64

_decode = msgspec.json.Decoder().decode
_WHITESPACE = b" \t\r\n"
_LONGEST_SCANNED = 256 * 1024
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1


def parse_json(body: bytes, subject: str) -> Any:
    """The value that `body` holds; `parsing_data` about `subject` where it holds none that can be kept."""
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse(subject, _where_broken(body, error))
    names, depth, big = _measure([[value]])
    if depth > MAX_DEPTH:
        _refuse(subject, f"nested deeper than {MAX_DEPTH} levels")
    # A name in the text ends with a quote and then, white space aside, a colon: there are at least as many such pairs
    # as names. More of them mean a duplicate or a colon in a string, and only then is it worth a second look.
    if body.translate(None, _WHITESPACE).count(b'":') != names:
        _refuse_duplicates(body, subject)
    if big or b"\\u0000" in body:
        for problem in _unkeepable(value, ""):
            _refuse(subject, problem)
    return value


def _refuse(subject: str, detail: str) -> NoReturn:
    raise RegistryError("parsing_data", subject, error_detail=detail)


def _measure(level: list[Any]) -> tuple[int, int, bool]:
    """How many names all objects have together, how deep they nest, and whether any integer is beyond 64 bits."""
    names, depth, big = 0, -1, False
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            break
        below: list[Any] = []
        for node in level:
            if type(node) is dict:
                names += len(node)
                node = node.values()
            for child in node:
                kind = type(child)
                if kind is dict or kind is list:
                    below.append(child)
                elif kind is int and not _SMALLEST <= child <= _LARGEST:
                    big = True
        level = below
    return names, depth, big


def _refuse_duplicates(body: bytes, subject: str) -> None:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            seen: set[str] = set()
            again = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            _refuse(subject, f'the name "{again}" appears more than once in one object')
        return members

    json.loads(body, object_pairs_hook=unique)


def _unkeepable(value: Any, path: str) -> Iterator[str]:
    """Each integer beyond 64 bits and each text with a NUL character, with its place."""
    where = f"path '{path or '.'}': "
    if isinstance(value, dict):
        for name, member in value.items():
            if "\0" in name:
                yield f"{where}a name holds a NUL character"
            yield from _unkeepable(member, f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unkeepable(item, f"{path}[{index}]")
    elif isinstance(value, str):
        if "\0" in value:
            yield f"{where}a string holds a NUL character"
    elif isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        yield f"{where}an integer beyond 64 bits"


# Finding the place of a syntax error ---------------------------------------------------------------------------------

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![0-9.eE+-])|true|false|null")


class _BrokenError(Exception):
    """Where the text stops being JSON, in words."""


def _where_broken(body: bytes, error: Exception) -> str:
    """The place and reason of the first syntax error in `body`; the decoder's own words where the scan finds none."""
    if isinstance(error, RecursionError):
        return f"nested deeper than {MAX_DEPTH} levels"
    try:
        text = body.decode()
    except UnicodeDecodeError as wrong:
        return f"not UTF-8 at byte {wrong.start}"
    if not text.strip():
        return "no JSON value in the body"
    if len(body) <= _LONGEST_SCANNED:
        try:
            end = _SPACE.match(text, _scan(text, 0, "", 0)).end()  # type: ignore[union-attr]
            if end < len(text):
                return f"unexpected {text[end]!r} after the JSON value"
        except _BrokenError as broken:
            return str(broken)
    return str(error)


def _scan(text: str, at: int, path: str, depth: int) -> int:
    """The position after the value that starts at `at`; raises `_BrokenError` at the first thing that is not JSON."""
    if depth > MAX_DEPTH:
        raise _BrokenError(f"nested deeper than {MAX_DEPTH} levels")
    at = _skip(text, at)
    opening = text[at : at + 1]
    if opening == "{":
        return _scan_members(text, at, path, depth)
    if opening == "[":
        return _scan_items(text, at, path, depth)
    found = (_STRING if opening == '"' else _SCALAR).match(text, at)
    if found is None:
        what = "string" if opening == '"' else "value"
        raise _broken(path, f"parsing {what}", "a well-formed string" if what == "string" else "a JSON value", text, at)
    return found.end()


def _scan_members(text: str, at: int, path: str, depth: int) -> int:
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        name = _STRING.match(text, at)
        if name is None:
            raise _broken(path, "parsing object key", "string starting with '\"'", text, at)
        at = _skip(text, name.end())
        if text[at : at + 1] != ":":
            raise _broken(path, "parsing object", "':' after the key", text, at)
        at = _skip(text, _scan(text, at + 1, f"{path}.{name[0][1:-1]}", depth + 1))
        following = text[at : at + 1]
        if following == "}":
            return at + 1
        if following != ",":
            raise _broken(path, "parsing object", "',' or '}'", text, at)
        at = _skip(text, at + 1)


def _scan_items(text: str, at: int, path: str, depth: int) -> int:
    at = _skip(text, at + 1)
    if text[at : at + 1] == "]":
        return at + 1
    index = 0
    while True:
        at = _skip(text, _scan(text, at, f"{path}[{index}]", depth + 1))
        following = text[at : at + 1]
        if following == "]":
            return at + 1
        if following != ",":
            raise _broken(path, "parsing array", "',' or ']'", text, at)
        at, index = at + 1, index + 1


def _skip(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]


def _broken(path: str, doing: str, expected: str, text: str, at: int) -> _BrokenError:
    got = f"got '{text[at]}' instead" if at < len(text) else "got the end of the text instead"
    return _BrokenError(f"path '{path or '.'}': {doing}: expected {expected}, {got}")
