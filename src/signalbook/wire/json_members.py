r"""The members of one JSON object, their values left as they stand in the text.

Rule 1: a value is not read here, only its end is found; so numbers, spelling and white space in it stay exact.
Rule 2: a name that occurs twice is refused, in whichever spelling (`"id"` and `"\u0069d"` are one name).
Rule 3: a document written without white space pays a sum of lengths for rule 2; only a suspicious one is read twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = [
    "JsonError",
    "JsonObject",
    "least_length",
    "read_members",
    "read_plainly",
    "refuse_repeated",
    "repeated",
    "split_members",
]

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_WHITE = b" \t\r\n"
_NAME_ENDS = b'":'


class JsonError(ValueError):
    """A text that is not one JSON object with distinct names, in words."""


class JsonObject(list[tuple[str, Any]]):
    """The members of an object as they stand, repeated names and all."""


def read_members(document: bytes) -> dict[str, msgspec.Raw]:
    """Each member's name and the text of its value; raises `JsonError`."""
    members = split_members(document)
    length = len("".join(members)) + len(b"".join(members.values()))
    if len(document) != least_length(len(members), length):
        refuse_repeated(document, list(members.values()))
    return members


def split_members(document: bytes) -> dict[str, msgspec.Raw]:
    """The same, but of a name that is repeated the last value; raises `JsonError`."""
    try:
        return _decode(document)
    except RecursionError:
        raise JsonError("nested too deeply") from None
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8: {error.reason} in a name") from None
    except msgspec.DecodeError as error:
        raise JsonError(_in_own_words(str(error))) from None


def least_length(members: int, length: int) -> int:
    """How long an object is, written without white space, whose names and values are `length` together.

    A document just so long repeats no name: `{"name":value,"name":value}` has no room for another member.
    """
    return length + 4 * members + 1 if members else 2


def refuse_repeated(document: bytes, values: list[msgspec.Raw]) -> None:
    """Raise `JsonError` where a name occurs twice; `values` are those that were found, the longest best last."""
    if _has_room(document, values):
        again = next(repeated(read_plainly(document)), None)
        if again is not None:
            raise JsonError(f'the name "{again}" occurs more than once')


def repeated(members: JsonObject) -> Iterator[str]:
    """Each name that occurs once more."""
    seen: set[str] = set()
    for name, _ in members:
        if name in seen:
            yield name
        seen.add(name)


def read_plainly(document: bytes) -> Any:
    """The JSON value by the patient road: objects are `JsonObject`, long numbers infinity; raises `JsonError`."""
    try:
        text = document.decode()
        return json.loads(
            text, object_pairs_hook=JsonObject, parse_int=_whole, parse_float=float, parse_constant=_refuse_constant
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
    body = document.strip(_WHITE)[:-1].rstrip(_WHITE)
    last = bytes(values[-1]) if values else b""
    # The payload mostly stands last and is long: look before it only.
    if body.endswith(last):
        head, rest = body[: len(body) - len(last)], b",".join(values[:-1])
    else:
        head, rest = body, b",".join(values)
    pairs = head.translate(None, _WHITE).count(_NAME_ENDS) - rest.translate(None, _WHITE).count(_NAME_ENDS)
    return pairs != len(values)


def _in_own_words(text: str) -> str:
    if text.startswith("Expected `object`"):
        return "must be one JSON object"
    return "the text ends too early" if "truncated" in text else text.removeprefix("JSON is malformed: ")


def _whole(digits: str) -> int | float:
    # Python reads no more than 4,300 digits, and whoever reads plainly wants types and places, not values.
    return int(digits) if len(digits) < 20 else float("inf")


def _refuse_constant(name: str) -> Any:
    raise JsonError(f"not JSON: {name} is no JSON value")
