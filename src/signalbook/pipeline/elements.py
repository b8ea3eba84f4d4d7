"""`Elements`: the elements of JSON arrays out of chunks of bytes, without reading the values.

Rule 1: only brackets, commas and strings are looked at; whether an element is JSON is for its reader to say.
Rule 2: arrays may follow one another. What is left when the bytes end, or follows an array and is none, is the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["Elements"]

# A whole string, a mark outside of strings, or the quote of a string whose end has not come.
_tokens = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},"]', re.DOTALL).finditer
_WHITE = b" \t\r\n"


class Elements:
    """A scanner that is fed chunks and gives elements with their positions."""

    def __init__(self, largest: int, begin: int = 0) -> None:
        self._rest = b""
        self._scanned = 0
        self._depth = 0
        self._longest = 2 * largest
        self._fault: str | None = None
        self.position = begin

    def take(self, chunk: bytes) -> Iterator[tuple[bytes, int]]:
        """The elements that end in this chunk."""
        if self._is_faulty():
            return
        text = self._rest + chunk
        start, scanned = 0, len(text)
        for token in _tokens(text, self._scanned):
            mark, at = token[0], token.start()
            if mark == b'"':
                scanned = at
                break
            if len(mark) > 1:
                continue
            ends = self._step(mark, text[start:at])
            if self._is_faulty():
                break
            if ends is not None:
                element = text[start:at].strip(_WHITE)
                if ends and (element or mark == b","):
                    yield element, self.position + start
                start = token.end()
        self._rest, self._scanned = text[start:], scanned - start
        self.position += start
        if len(self._rest) > self._longest and not self._is_faulty():
            self._fault = f"an element is longer than {self._longest:,} bytes"

    def _is_faulty(self) -> bool:
        return self._fault is not None

    def finish(self) -> tuple[bytes, int, str] | None:
        """The bytes that belong to no element, where they begin and why; None where all were read."""
        rest = self._rest.strip(_WHITE)
        if self._fault is None and self._depth == 0 and not rest:
            return None
        return rest, self.position, self._fault or "the batch ends too early"

    def _step(self, mark: bytes, before: bytes) -> bool | None:
        """What a mark ends: an element (true), what stands before an array (false), or nothing (None)."""
        if mark in b"[{":
            self._depth += 1
            if self._depth > 1:
                return None
            if mark != b"[" or before.strip(_WHITE):
                self._fault = "something that is no batch stands outside of one"
            return False
        if mark == b",":
            if self._depth == 0:
                self._fault = "something that is no batch stands outside of one"
            return True if self._depth == 1 else None
        self._depth -= 1
        if self._depth < 0 or (self._depth == 0 and mark != b"]"):
            self._fault = "the brackets of the batch do not fit"
        return True if self._depth == 0 else None
