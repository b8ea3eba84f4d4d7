"""A first look at a .proto text, before the compiler sees it: what it imports, which language it is in, and its bounds.

Rule 1: the compiler recurses without a bound and takes time that grows with the square of the number of blocks and of
reserved numbers; a text beyond these bounds is never compiled. No file that people write comes near them.
Rule 2: places are counted from one, as line and column; what is wrong inside the bounds is the compiler's to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from signalbook.errors import Problem
from signalbook.schemas.format import SchemaError

__all__ = ["MOST_BLOCKS", "Import", "Scan", "place", "scan"]

MOST_BLOCKS = 4_000
MOST_RESERVED = 4_000
MOST_TOKENS = 500_000
DEEPEST = 64

_TOKEN = re.compile(
    r"""//[^\n]*|/\*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_][\w.]*|\.?[0-9][\w.]*|\S""",
    re.ASCII,
)
_OPENS, _CLOSES = frozenset("{[(<"), frozenset("}])>")


@dataclass(frozen=True, slots=True)
class Import:
    """One import, and where its statement stands."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What a text says about itself; `language` is `proto2`, `proto3`, `edition …`, or empty where it says nothing."""

    language: str
    language_at: int
    imports: tuple[Import, ...]
    blocks: int


def place(text: str, at: int) -> str:
    """A position as line and column."""
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"


def scan(text: str) -> Scan:
    """Look through a text; `SchemaError` where it is beyond the bounds."""
    language, language_at = "", 0
    imports: list[Import] = []
    blocks = depth = reserved = 0
    statement: list[str] = []
    begins = 0
    for number, (token, at) in enumerate(_tokens(text)):
        if number > MOST_TOKENS:
            raise _beyond(text, at, f"more than {MOST_TOKENS} words")
        if token in _OPENS:
            depth += 1
            blocks += token == "{"
        elif token in _CLOSES:
            depth -= 1
        elif token == "," and statement and statement[0] in ("reserved", "extensions"):
            reserved += 1
        if depth > DEEPEST or blocks > MOST_BLOCKS or reserved > MOST_RESERVED:
            raise _beyond(
                text, at, f"more than {MOST_BLOCKS} blocks, {DEEPEST} levels or {MOST_RESERVED} reserved numbers"
            )
        if token in ("{", "}", ";"):
            reserved += bool(statement) and statement[0] in ("reserved", "extensions")
            if token == ";" and depth == 0:
                if not language and (language := _language(statement)):
                    language_at = begins
                imports.extend(Import(name, begins) for name in _imported(statement))
            statement = []
        elif len(statement) < 4:
            if not statement:
                begins = at
            statement.append(token)
    return Scan(language, language_at, tuple(imports), blocks)


def _language(statement: list[str]) -> str:
    if len(statement) < 3 or statement[0] not in ("syntax", "edition"):
        return ""
    said = statement[2][1:-1]
    return said if statement[0] == "syntax" else f"edition {said}"


def _imported(statement: list[str]) -> list[str]:
    if statement[:1] != ["import"] or statement[-1][:1] not in ("'", '"'):
        return []
    return [statement[-1][1:-1]]


def _beyond(text: str, at: int, what: str) -> SchemaError:
    return SchemaError([Problem(place(text, at), "schema", f"too large to be compiled: {what}")])


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """The words and signs of a text without its comments."""
    at = 0
    while (found := _TOKEN.search(text, at)) is not None:
        at = found.end()
        token = found.group()
        if token == "/*":
            end = text.find("*/", at)
            if end < 0:
                return
            at = end + 2
        elif not token.startswith("//"):
            yield token, found.start()
