"""JSON text to values and back: the one reader of JSON from outside.

Which function to use:

    parse_json, check_json      a request's body, or a value given from Python: only what can be stored exactly
    decode_json, encode_json    a payload or a schema, with every digit of its numbers
    read_json, write_json       the data of an event, likewise, with numbers of any size
    read_members                the members of one object, each value left as it stands in the text
    find_flaw                   the first mistake in a text, and where it is

Rule 1: `parse_json` refuses what could not be given back exactly, and never bends it: duplicate names, integers beyond
64 bits, numbers whose digits a double does not keep, NUL characters (PostgreSQL text has none), text that is not UTF-8,
nesting deeper than 64. Its error is the specification's `parsing_data`, with the place in the document.
Rule 2: elsewhere a number keeps its value: an integer is an `int`, another number a `float` where the shortest decimal
of that double is the number in the text, else a `Decimal`.
Rule 3: a good document pays one decode and one walk; the slow scan that finds a place runs only on bad ones.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, DecimalException, InvalidOperation
from typing import Any, NoReturn, TypeAlias

import msgspec
import orjson

from signalbook.errors import RegistryError

__all__ = [
    "AROUND_GROUP",
    "AROUND_META",
    "AROUND_SETTING",
    "AROUND_VERSION",
    "DIGIT_RUNS",
    "LONG_NUMBER",
    "MAX_DEPTH",
    "Json",
    "JsonError",
    "JsonObject",
    "check_json",
    "decode_exact",
    "decode_fast",
    "decode_json",
    "encode_json",
    "export_text",
    "find_flaw",
    "is_deeper",
    "is_json_text",
    "keeps_integer",
    "keeps_number",
    "least_length",
    "parse_json",
    "read_json",
    "read_members",
    "read_pairs",
    "refuse_repeated",
    "repeated",
    "same_json",
    "split_members",
    "write_json",
]

# A JSON object as it is read, written and stored: names to any JSON values.
Json: TypeAlias = dict[str, Any]

MAX_DEPTH = 64
MOST_DIGITS = 4300  # what Python reads an int from

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


class JsonError(ValueError):
    """A text that is not JSON, or not the JSON that is asked for; the words say why."""


def parse_json(body: bytes, subject: str) -> Any:
    """Return the value of `body`; raise `parsing_data` about `subject` where it cannot be kept exactly."""
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
        for problem in _unkeepable(value if marked is None else marked):
            _refuse(subject, problem)
    return value


def check_json(value: Any, subject: str, *, around: int = 0) -> Any:
    """Return a value in plain dicts, lists and scalars; raise `parsing_data` where `parse_json` could not return it.

    A subclass, such as an `OrderedDict` or a `StrEnum`, becomes the plain value that it is.

    `around` is how many levels of that text stand around it.
    """
    read = _round_trip(value)
    text, levels = read[0] if read is not None else None, MAX_DEPTH - around
    if (text is None or text.count(b"{") + text.count(b"[") > levels) and is_deeper(value, levels):
        _refuse(subject, _DEEP)
    if text is None or b"\\u0000" in text:
        for problem in _unkeepable(value):
            _refuse(subject, problem)
    return read[1] if read is not None else json.loads(json.dumps(value))


def export_text(value: Any, subject: str, around: int) -> str:
    """Return the text of a value that has `around` levels around it in an export, if that could be read again.

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


# The names and indexes that lead to a place, the last first: a path is written only where something is wrong, since a
# long name written for each of many values would take the square of the text.
_Steps: TypeAlias = "tuple[Any, _Steps] | None"


def _place(steps: _Steps) -> str:
    found: list[str] = []
    while steps is not None:
        step, steps = steps
        found.append(f"[{step}]" if step.__class__ is int else f".{step[0]}")
    return f"path '{''.join(reversed(found)) or '.'}': "


def _unkeepable(value: Any, steps: _Steps = None) -> Iterator[str]:
    """Each value that is not kept as it is, with its place."""
    if isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str):
                yield f"{_place(steps)}a name is of type {type(name).__name__}, not a string"
            elif wrong := _wrong_text(name):
                yield f"{_place(steps)}a name holds {wrong}"
            if type(member) is not str or _wrong_text(member):
                yield from _unkeepable(member, ((name,), steps))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unkeepable(item, (index, steps))
    elif isinstance(value, str):
        if wrong := _wrong_text(value):
            yield f"{_place(steps)}a string holds {wrong}"
    elif wrong := _wrong_scalar(value):
        yield f"{_place(steps)}{wrong}"


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
        return "" if math.isfinite(value) else f"{value} is not a number that JSON has"
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
        end = _skip(text, _scan(text, 0, None, 0))
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


def _scan(text: str, at: int, path: _Steps, depth: int) -> int:
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
        raise _BrokenError(f"{_place(path)}{wrong}", at)
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


def _scan_members(text: str, at: int, path: _Steps, depth: int) -> int:
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
            raise _BrokenError(f"{_place(path)}{_TWICE.format(plain)}", at)
        if wrong := _wrong_text(plain):
            raise _BrokenError(f"{_place(path)}a name holds {wrong}", at)
        names.add(plain)
        at = _skip(text, name.end())
        if text[at : at + 1] != ":":
            raise _broken(path, "parsing object", "':' after the key", text, at)
        at = _skip(text, _scan(text, at + 1, ((name[0][1:-1],), path), depth + 1))
        following = text[at : at + 1]
        if following == "}":
            return at + 1
        if following != ",":
            raise _broken(path, "parsing object", "',' or '}'", text, at)
        at = _skip(text, at + 1)


def _scan_items(text: str, at: int, path: _Steps, depth: int) -> int:
    at = _skip(text, at + 1)
    if text[at : at + 1] == "]":
        return at + 1
    index = 0
    while True:
        at = _skip(text, _scan(text, at, (index, path), depth + 1))
        following = text[at : at + 1]
        if following == "]":
            return at + 1
        if following != ",":
            raise _broken(path, "parsing array", "',' or ']'", text, at)
        at, index = at + 1, index + 1


def _skip(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]


def _broken_string(path: _Steps, what: str, text: str, at: int) -> _BrokenError:
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


def _broken(path: _Steps, doing: str, expected: str, text: str, at: int) -> _BrokenError:
    got = "the end of the text" if at >= len(text) else f"'{text[at]}'" if text[at] >= " " else f"U+{ord(text[at]):04X}"
    return _BrokenError(f"{_place(path)}{doing}: expected {expected}, got {got} instead", at)


# The members of one object --------------------------------------------------------------------------------------------
#
# A value is not read here, only its end is found; so numbers and white space in it stay as they are. A name that occurs
# twice is refused, however it is escaped (`"id"` and `"\u0069d"` are one name). A document written without white space
# pays a sum of lengths for that; only a suspicious one is read twice.

_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_NAME_ENDS = b'":'


class JsonObject(list[tuple[str, Any]]):
    """The members of an object as they stand, repeated names and all."""


def read_members(document: bytes) -> dict[str, msgspec.Raw]:
    """Return each member's name and the text of its value; raise `JsonError`."""
    members = split_members(document)
    length = len("".join(members)) + len(b"".join(members.values()))
    if len(document) != least_length(len(members), length):
        refuse_repeated(document, list(members.values()))
    return members


def split_members(document: bytes) -> dict[str, msgspec.Raw]:
    """Return the same, with the last value of a name that is repeated; raise `JsonError`."""
    try:
        return _decode_members(document)
    except RecursionError:
        raise JsonError("nested too deeply") from None
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8: {error.reason} in a name") from None
    except msgspec.DecodeError as error:
        raise JsonError(_reword(str(error))) from None


def least_length(members: int, length: int) -> int:
    """Return the length of an object without white space whose names and values have `length` together.

    A document just so long repeats no name: `{"name":value,"name":value}` has no room for another member.
    """
    return length + 4 * members + 1 if members else 2


def refuse_repeated(document: bytes, values: list[msgspec.Raw]) -> None:
    """Raise `JsonError` where a name occurs twice; `values` are those that were found, the longest best last."""
    if _has_room(document, values):
        again = next(repeated(read_pairs(document)), None)
        if again is not None:
            raise JsonError(f'the name "{again}" occurs more than once')


def repeated(members: JsonObject) -> Iterator[str]:
    """Each name that occurs once more."""
    seen: set[str] = set()
    for name, _ in members:
        if name in seen:
            yield name
        seen.add(name)


def read_pairs(document: bytes) -> Any:
    """Return a JSON value whose objects are `JsonObject` and whose long numbers are infinity; raise `JsonError`."""
    try:
        text = document.decode()
        return json.loads(
            text,
            object_pairs_hook=JsonObject,
            parse_int=_short_integer,
            parse_float=float,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 at byte {error.start}: {error.reason}") from None
    except RecursionError:
        raise JsonError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise JsonError(f"not JSON at byte {len(text[: error.pos].encode(errors='replace'))}: {error.msg}") from None


def _has_room(document: bytes, values: list[msgspec.Raw]) -> bool:
    """Whether the document may have more names than values were found.

    Without white space, each name ends in a quote and a colon. Other such pairs are there too, in strings that begin
    with a colon or hold a quote; so there are at least as many pairs outside the values as names.
    """
    body = document.strip(_WHITESPACE)[:-1].rstrip(_WHITESPACE)
    last = bytes(values[-1]) if values else b""
    # The payload mostly stands last and is long: look before it only.
    if body.endswith(last):
        head, rest = body[: len(body) - len(last)], b",".join(values[:-1])
    else:
        head, rest = body, b",".join(values)
    pairs = head.translate(None, _WHITESPACE).count(_NAME_ENDS) - rest.translate(None, _WHITESPACE).count(_NAME_ENDS)
    return pairs != len(values)


def _reword(text: str) -> str:
    if text.startswith("Expected `object`"):
        return "must be one JSON object"
    return "the text ends too early" if "truncated" in text else text.removeprefix("JSON is malformed: ")


def _short_integer(digits: str) -> int | float:
    # Python reads no more than 4,300 digits, and a reader of pairs wants types and places, not values.
    return int(digits) if len(digits) < 20 else float("inf")


def _refuse_constant(name: str) -> Any:
    raise JsonError(f"not JSON: {name} is not a JSON value")


# The data of events ---------------------------------------------------------------------------------------------------
#
# Only what has a JSON form is written; NaN, infinity, unpaired surrogates, names that are not strings and other objects
# are refused.

_raw = msgspec.json.Decoder(msgspec.Raw).decode
_OPTIONS = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def is_json_text(content: bytes) -> bool:
    """Whether the bytes are one JSON text in UTF-8."""
    try:
        _raw(content)
        return content.isascii() or bool(content.decode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def read_json(content: bytes) -> Any:
    """Return the value of a JSON text; raise ValueError where it is not JSON, or has too large an exponent."""
    # Where no number is longer than fifteen digits or has an exponent, every float is exact enough to be written back.
    digits = content.translate(_DIGITS)
    is_long = _LONG_DIGITS in digits or _EXPONENT in digits
    try:
        return _decode_any_size(content, _decode_numbers if is_long else _decode, _exact_number)
    except DecimalException:
        raise ValueError("holds a number with too large an exponent") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def write_json(value: Any) -> bytes:
    """Return the JSON text of a value; raise ValueError where it has none."""
    try:
        written = orjson.dumps(value, option=_OPTIONS)
    except TypeError:
        try:
            return _written(value).encode()
        except RecursionError:
            raise ValueError("is nested too deeply") from None
        except UnicodeEncodeError:
            raise ValueError("holds an unpaired surrogate") from None
    # orjson writes what is not a number as null.
    if b"null" in written and _has_no_number(value):
        raise ValueError("holds NaN or infinity, which JSON does not have")
    return written


def same_json(one: bytes, other: bytes) -> bool:
    """Whether two JSON texts mean the same value; numbers compare by value, objects without order."""
    try:
        pairs = [tuple(_decode_any_size(text, _decode_decimals, Decimal) for text in (one, other))]
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


def _exact_number(text: str) -> float | Decimal:
    """The double that is written as the same number, else the decimal."""
    return float(text) if keeps_number(text) else Decimal(text)


def _whole_number(text: str) -> int | Decimal:
    return int(text) if len(text) <= MOST_DIGITS else Decimal(text)


_decode_numbers = msgspec.json.Decoder(float_hook=_exact_number).decode
_decode_decimals = msgspec.json.Decoder(float_hook=Decimal).decode
# Maps what numbers are made of to 0, their exponent to e and all else to a space.
_DIGITS = bytes(0x30 if chr(byte) in "0123456789.+-" else 0x65 if chr(byte) in "eE" else 0x20 for byte in range(256))
_LONG_DIGITS, _EXPONENT = b"0" * 17, b"0e0"


def _decode_any_size(content: bytes, decode: Callable[[bytes], Any], number: Callable[[str], Any]) -> Any:
    try:
        return decode(content)
    except msgspec.ValidationError:
        # A number with more digits than an int is read from.
        return json.loads(content.decode(), parse_int=_whole_number, parse_float=number)


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
            raise ValueError("holds an object with a name that is not a string")
        return f"{{{','.join(f'{_written(name)}:{_written(item)}' for name, item in value.items())}}}"
    raise ValueError(f"holds a {value.__class__.__name__}, which has no JSON form")


# Payloads and schemas -------------------------------------------------------------------------------------------------
#
# Numbers nearer to zero than 1e-307 are the nearest double. The fast decoder is used unless the text has a run of 16
# digits and points, because only then a number can have more than the 15 digits that a double always keeps; a number
# that it finds infinite is decoded again. Numbers of more than 4,300 digits, written out, are refused, as are texts
# nested about a thousand deep: validators could not bear them.

DIGIT_RUNS = bytes(0x30 if byte in b"0123456789." else 0x20 for byte in range(256))
# In a text that was translated by `DIGIT_RUNS`; `JsonSchema.check` repeats the line of `decode_json`. They are counted,
# because `in` first tries to take bytes for a number.
LONG_NUMBER = b"0" * 16

decode_fast = orjson.loads
_encode = msgspec.json.Encoder(decimal_format="number").encode


def _bounded_number(text: str) -> float | Decimal:
    try:
        number = _exact_number(text)
    except InvalidOperation:
        raise JsonError(f"the number {text[:40]} is out of range") from None
    if isinstance(number, Decimal) and abs(number.adjusted()) > MOST_DIGITS:
        raise JsonError(f"the number {text[:40]} is out of range")
    return number


decode_exact = msgspec.json.Decoder(float_hook=_bounded_number).decode


def decode_json(text: bytes) -> Any:
    """Return the value of a JSON text, with exact numbers; raise `JsonError` where it has none."""
    try:
        return decode_exact(text) if text.translate(DIGIT_RUNS).count(LONG_NUMBER) else decode_fast(text)
    except (ValueError, RecursionError) as error:
        return _decode_again(text, error)


def _decode_again(text: bytes, error: Exception) -> Any:
    """The value of a text that a decoder refused: only the fast one refuses a number beyond the doubles."""
    if "infinity" in str(error):
        try:
            return decode_exact(text)
        except (ValueError, RecursionError) as again:
            error = again
    if isinstance(error, JsonError):
        raise error
    if isinstance(error, UnicodeDecodeError) or "UTF-8" in str(error):
        raise JsonError("the text is not UTF-8") from error
    if isinstance(error, RecursionError) or "depth limit" in str(error):
        raise JsonError("the text is nested too deep") from error
    raise JsonError(str(error)[:1].lower() + str(error)[1:]) from error


def encode_json(value: Any) -> str:
    """Return the JSON text of a value, with all digits of its numbers.

    >>> encode_json({"a": [10**20, Decimal("1.50"), 0.1, None]})
    '{"a":[100000000000000000000,1.50,0.1,null]}'
    """
    return _encode(value).decode()
