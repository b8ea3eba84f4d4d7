"""A first look at a .proto text, before the compiler sees it: what it imports, which language it is in, and its bounds.

Rule 1: the compiler recurses without a bound and takes time that grows with the square of the number of blocks, of
reserved numbers, and of numbers used twice; a text beyond these bounds is never compiled. No file that people write
comes near them.
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
MOST_STATEMENTS = 20_000
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
    counts = _Counts()
    statement: list[str] = []
    begins = 0
    for token, at in _tokens(text):
        beyond = counts.beyond(token, statement[0] if statement else "")
        if beyond:
            raise _refused(text, at, f"too large to be compiled: {beyond}")
        if token in ("{", "}", ";"):
            if token == ";" and counts.depth == 0:
                if not language and (language := _language(statement)):
                    language_at = begins
                imports.extend(Import(name, begins) for name in _imported(statement))
            statement = []
        elif len(statement) < 4:
            if not statement:
                begins = at
            statement.append(token)
    return Scan(language, language_at, tuple(imports), counts.blocks)


class _Counts:
    """What a text has used up of its bounds."""

    __slots__ = ("blocks", "depth", "reserved", "statements", "tokens")

    def __init__(self) -> None:
        self.blocks = self.depth = self.reserved = self.statements = self.tokens = 0

    def beyond(self, token: str, first: str) -> str:
        """Count one word or sign of a statement that begins with `first`; the words for what is too much."""
        self.tokens += 1
        if token in _OPENS:
            self.depth += 1
            self.blocks += token == "{"
        elif token in _CLOSES:
            self.depth -= 1
        elif token in (",", ";"):
            self.statements += token == ";"
            self.reserved += first in ("reserved", "extensions")
        for used, most, what in (
            (self.depth, DEEPEST, "levels"),
            (self.blocks, MOST_BLOCKS, "blocks"),
            (self.statements, MOST_STATEMENTS, "statements"),
            (self.reserved, MOST_RESERVED, "reserved numbers"),
            (self.tokens, MOST_TOKENS, "words"),
        ):
            if used > most:
                return f"more than {most} {what}"
        return ""


def _language(statement: list[str]) -> str:
    if len(statement) < 3 or statement[0] not in ("syntax", "edition"):
        return ""
    said = statement[2][1:-1]
    return said if statement[0] == "syntax" else f"edition {said}"


def _imported(statement: list[str]) -> list[str]:
    if statement[:1] != ["import"] or statement[-1][:1] not in ("'", '"'):
        return []
    return [statement[-1][1:-1]]


def _refused(text: str, at: int, words: str) -> SchemaError:
    return SchemaError([Problem(place(text, at), "schema", words)])


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """The words and signs of a text without its comments."""
    at = 0
    while (found := _TOKEN.search(text, at)) is not None:
        at = found.end()
        token = found.group()
        if token == "/*":
            end = text.find("*/", at)
            # The compiler would tell about each of them.
            if end < 0 or text.find("/*", at, end) >= 0:
                raise _refused(text, found.start(), "a comment does not end, or holds the beginning of another")
            at = end + 2
        elif not token.startswith("//"):
            yield token, found.start()
