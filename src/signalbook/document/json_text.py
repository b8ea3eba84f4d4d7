"""JSON text to values: the one place where a body from outside becomes Python objects.

Rule 1: what cannot be held exactly and given back is refused, not bent: duplicate names, integers beyond 64 bits,
other numbers whose digits a double does not keep, NUL characters (PostgreSQL text has none), text that is not UTF-8,
nesting deeper than 64.
Rule 2: every refusal is the specification's `parsing_data`, and says where in the document it happened.
Rule 3: a good document pays one decode and one walk, and a second decode where it has fractions; the slow scan that
finds the place runs only on bad ones.
Rule 4: values that are given as Python objects obey the same rules, and one of a subclass (an `OrderedDict`, a
`StrEnum`) is taken as the plain value that it is (`check_json`).
Rule 5: what is kept can be exported and read again: the levels that stand around it then count too (`export_text`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

import msgspec
import orjson

from signalbook.errors import RegistryError

__all__ = [
    "AROUND_GROUP", "AROUND_META", "AROUND_SETTING", "AROUND_VERSION", "MAX_DEPTH", "check_json", "export_text",
    "find_flaw", "is_deeper", "keeps_integer", "keeps_number", "parse_json",
]  # fmt: skip

MAX_DEPTH = 64

# Levels that an export has around each: {modelsource: {}, dirs: {d1: {files: {f1: {meta: {}, versions: {v1: {}}}}}}}
AROUND_SETTING, AROUND_GROUP, AROUND_META, AROUND_VERSION = 1, 2, 5, 6

_decode = msgspec.json.Decoder().decode
_WHITESPACE = b" \t\r\n"
_LONGEST_SCANNED = 256 * 1024
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_ALWAYS_KEPT = 15  # digits that every double keeps (IEEE 754)

_BIG = "an integer beyond 64 bits"
_LONG = "a number with more digits or a larger exponent than a double keeps"
_TWICE = 'the name "{}" appears more than once in one object'
_DEEP = f"nested deeper than {MAX_DEPTH} levels"


def parse_json(body: bytes, subject: str) -> Any:
    """The value that `body` holds; `parsing_data` about `subject` where it holds none that can be kept."""
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse(subject, _where_broken(body, error))
    names, depth, big, fractions = _measure([[value]])
    if depth > MAX_DEPTH:
        _refuse(subject, _DEEP)
    # A name in the text ends with a quote and then, white space aside, a colon: there are at least as many such pairs
    # as names. More of them mean a duplicate or a colon in a string, and only then is it worth a second look.
    if body.translate(None, _WHITESPACE).count(b'":') != names:
        _refuse_duplicates(body, subject)
    marked = _marked(body) if fractions else None
    if big or marked is not None or b"\\u0000" in body:
        for problem in _unkeepable(value if marked is None else marked, ""):
            _refuse(subject, problem)
    return value


def check_json(value: Any, subject: str, *, around: int = 0) -> Any:
    """The same value in plain dicts, lists and scalars; `parsing_data` where no JSON text could have brought it in.

    `around` is how many levels of that text stand around it.
    """
    read = _round_trip(value)
    text, levels = read[0] if read is not None else None, MAX_DEPTH - around
    if (text is None or text.count(b"{") + text.count(b"[") > levels) and is_deeper(value, levels):
        _refuse(subject, _DEEP)
    if text is None or b"\\u0000" in text:
        for problem in _unkeepable(value, ""):
            _refuse(subject, problem)
    return read[1] if read is not None else json.loads(json.dumps(value))


def export_text(value: Any, subject: str, around: int) -> str:
    """The text of what an export has so many levels around; `parsing_data` where that could not be read again.

    A request may carry it with fewer levels around it, and it may be kept one level deeper than it was given.
    """
    text, levels = orjson.dumps(value), MAX_DEPTH - around
    if text.count(b"{") + text.count(b"[") > levels and is_deeper(value, levels):
        _refuse(subject, f"{_DEEP}, with the {around} that stand around it in an export of the registry")
    return text.decode()


def _round_trip(value: Any) -> tuple[bytes, Any] | None:
    """The text of a value that comes back from it as it was, which is a quick proof that it is kept, and what came.

    None of others, and of those whose names are of a subclass of `str`: they may be kept too.
    """
    try:
        text = orjson.dumps(value)
        read = orjson.loads(text)
        return (text, read) if read == value else None
    except (TypeError, ValueError, RecursionError):
        return None


def keeps_integer(number: int) -> bool:
    """Whether an integer is within the 64 bits that are kept."""
    return _SMALLEST <= number <= _LARGEST


def keeps_number(text: str) -> bool:
    """Whether the double nearest to the number in a text is written with the same digits.

    >>> [keeps_number(text) for text in ("0.1", "1E5", "0.10000000000000000000001", "1e-400", "1e400")]
    [True, True, False, False, False]
    """
    if len(text) <= _ALWAYS_KEPT and "e" not in text and "E" not in text:
        return True
    near = float(text)
    return math.isfinite(near) and Decimal(repr(near)) == Decimal(text)


@dataclass(frozen=True, slots=True)
class _Lost:
    """Stands for a number that would be changed."""

    text: str


def _marked(body: bytes) -> Any:
    """The value again with the numbers marked that would be changed; None where none would."""
    lost: list[_Lost] = []

    def number(text: str) -> float | _Lost:
        if keeps_number(text):
            return float(text)
        lost.append(_Lost(text))
        return lost[-1]

    value = msgspec.json.Decoder(float_hook=number).decode(body)
    return value if lost else None


def is_deeper(value: Any, levels: int) -> bool:
    """Whether objects and arrays nest deeper in a value than so many levels."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(levels):
        if not level:
            return False
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, _CONTAINERS)
        ]
        if len(level) > _MANY:  # a value may hold itself, even twice
            level = list({id(child): child for child in level}.values())
    return bool(level)


_CONTAINERS = (dict, list)
_MANY = 1000


def _refuse(subject: str, detail: str) -> NoReturn:
    raise RegistryError("parsing_data", subject, error_detail=detail)


def _measure(level: list[Any]) -> tuple[int, int, bool, bool]:
    """How many names all objects have together, how deep they nest, any integer beyond 64 bits, any fraction."""
    names, depth, big, fractions = 0, -1, False, False
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
                elif kind is float:
                    fractions = True
                elif kind is int and not _SMALLEST <= child <= _LARGEST:
                    big = True
        level = below
    return names, depth, big, fractions


def _refuse_duplicates(body: bytes, subject: str) -> None:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            seen: set[str] = set()
            again = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            _refuse(subject, _TWICE.format(again))
        return members

    json.loads(body, object_pairs_hook=unique)


def _unkeepable(value: Any, path: str) -> Iterator[str]:
    """Each value that is not kept as it is, with its place."""
    where = f"path '{path or '.'}': "
    if isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str):
                yield f"{where}a name is of type {type(name).__name__}, not a string"
            elif wrong := _wrong_text(name):
                yield f"{where}a name holds {wrong}"
            if type(member) is not str or _wrong_text(member):
                yield from _unkeepable(member, f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unkeepable(item, f"{path}[{index}]")
    elif isinstance(value, str):
        if wrong := _wrong_text(value):
            yield f"{where}a string holds {wrong}"
    elif wrong := _wrong_scalar(value):
        yield f"{where}{wrong}"


def _wrong_text(text: str) -> str:
    if "\0" in text:
        return "a NUL character"
    return "" if text.isascii() or not _SURROGATE.search(text) else "half a surrogate pair"


_SURROGATE = re.compile("[\ud800-\udfff]")


def _wrong_scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return "" if keeps_integer(value) else _BIG
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{value} is no number that JSON has"
    return _LONG if isinstance(value, _Lost) else f"JSON has no {type(value).__name__}"


# Finding the place of a syntax error ---------------------------------------------------------------------------------

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_STRING_BEGUN = re.compile(_STRING.pattern[:-1])
_ESCAPE_BEGUN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![0-9.eE+-])|true|false|null")


class _BrokenError(Exception):
    """Where the text stops being JSON that is kept, in words and as a position."""

    def __init__(self, words: str, at: int) -> None:
        super().__init__(words)
        self.at = at


def find_flaw(text: str) -> tuple[str, int] | None:
    """The first thing in a text that is not JSON or would not be kept, in words, and the position where it begins."""
    try:
        end = _skip(text, _scan(text, 0, "", 0))
    except _BrokenError as broken:
        return str(broken), broken.at
    return (f"unexpected {text[end]!r} after the JSON value", end) if end < len(text) else None


def _where_broken(body: bytes, error: Exception) -> str:
    """The place and reason of the first syntax error in `body`; the decoder's own words where the scan finds none."""
    if isinstance(error, RecursionError):
        return _DEEP
    try:
        text = body.decode()
    except UnicodeDecodeError as wrong:
        return f"not UTF-8 at byte {wrong.start}"
    if not text.strip():
        return "no JSON value in the body"
    flaw = find_flaw(text) if len(body) <= _LONGEST_SCANNED else None
    return flaw[0] if flaw is not None else str(error)


def _scan(text: str, at: int, path: str, depth: int) -> int:
    """The position after the value that starts at `at`; raises `_BrokenError` at the first thing that is not JSON."""
    if depth > MAX_DEPTH:
        raise _BrokenError(_DEEP, at)
    at = _skip(text, at)
    opening = text[at : at + 1]
    if opening == "{":
        return _scan_members(text, at, path, depth)
    if opening == "[":
        return _scan_items(text, at, path, depth)
    found = (_STRING if opening == '"' else _SCALAR).match(text, at)
    if found is None and opening == '"':
        raise _broken_string(path, "string", text, at)
    if found is None:
        raise _broken(path, "parsing value", "a JSON value", text, at)
    wrong = _flaw_of_string(found[0]) if opening == '"' else _flaw_of_scalar(found[0])
    if wrong:
        raise _BrokenError(f"path '{path or '.'}': {wrong}", at)
    return found.end()


def _flaw_of_string(raw: str) -> str:
    wrong = _wrong_text(json.loads(raw)) if "\\u" in raw else ""
    return f"a string holds {wrong}" if wrong else ""


def _flaw_of_scalar(raw: str) -> str:
    if raw in ("true", "false", "null"):
        return ""
    if raw.lstrip("-").isdigit():
        return "" if len(raw) <= _LONGEST_INTEGER and keeps_integer(int(raw)) else _BIG
    return "" if keeps_number(raw) else _LONG


_LONGEST_INTEGER = 20


def _scan_members(text: str, at: int, path: str, depth: int) -> int:
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        return at + 1
    names: set[str] = set()
    while True:
        name = _STRING.match(text, at)
        if name is None:
            raise _broken_string(path, "object key", text, at)
        plain = json.loads(name[0])
        if plain in names:
            raise _BrokenError(f"path '{path or '.'}': {_TWICE.format(plain)}", at)
        if wrong := _wrong_text(plain):
            raise _BrokenError(f"path '{path or '.'}': a name holds {wrong}", at)
        names.add(plain)
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


def _broken_string(path: str, what: str, text: str, at: int) -> _BrokenError:
    """What is wrong with the string that should begin here: it does not, it holds what none may, or the text ends."""
    begun = _STRING_BEGUN.match(text, at)
    if begun is None:
        return _broken(path, f"parsing {what}", "string starting with '\"'", text, at)
    end = begun.end()
    if _ESCAPE_BEGUN.fullmatch(text, end):
        end = len(text)
    return _broken(
        path, f"parsing {what}", "its closing '\"'" if end == len(text) else "a well-formed string", text, end
    )


def _broken(path: str, doing: str, expected: str, text: str, at: int) -> _BrokenError:
    got = "the end of the text" if at >= len(text) else f"'{text[at]}'" if text[at] >= " " else f"U+{ord(text[at]):04X}"
    return _BrokenError(f"path '{path or '.'}': {doing}: expected {expected}, got {got} instead", at)
