"""Matching runs of text in which no placeholder crosses a separator (`/ ? #`).

Rule 1: a segment is what stands between two separators. The text before its first placeholder is anchored at the
start, that after the last at the end; texts between are found leftmost, and each placeholder takes at least one
character.
Rule 2: a run is segments with the separators between them; a value has to have the same separators.
Rule 3: nothing is tried twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Run", "pattern_of"]

_separators = re.compile(r"[/?#]")
_next_separator = _separators.search
_Segment = tuple[str, ...]
# A pattern tries the text after a placeholder at each character; a longer text is looked up where it must be.
_LONGEST_STEP_BACK = 32


@dataclass(frozen=True, slots=True)
class Run:
    """The literals of each segment, a placeholder between each two of them, and the separators between segments."""

    segments: tuple[_Segment, ...]
    separators: str

    @classmethod
    def of(cls, literals: Sequence[str]) -> Run:
        """The run of texts with a placeholder between each two."""
        segments: list[_Segment] = []
        current: list[str] = []
        for literal in literals:
            first, *rest = _separators.split(literal)
            current.append(first)
            for part in rest:
                segments.append(tuple(current))
                current = [part]
        segments.append(tuple(current))
        return cls(tuple(segments), "".join("".join(_separators.findall(literal)) for literal in literals))

    def whole(self, value: str, start: int, into: list[str]) -> bool:
        """Whether the value from `start` to its end is the run; what its placeholders stand for goes `into`."""
        at = start
        for literals, separator in zip(self.segments, self.separators, strict=False):
            found = _next_separator(value, at)
            if found is None or found[0] != separator or not _match(literals, value, at, found.start(), into):
                return False
            at = found.end()
        return _next_separator(value, at) is None and _match(self.segments[-1], value, at, len(value), into)

    def ahead(self, value: str, start: int, into: list[str]) -> int:
        """Where the run ends that begins at `start`, as short as can be; -1 where none does."""
        at = start
        for literals, separator in zip(self.segments, self.separators, strict=False):
            found = _next_separator(value, at)
            if found is None or found[0] != separator or not _match(literals, value, at, found.start(), into):
                return -1
            at = found.end()
        return _reach(self.segments[-1], value, at, into)

    def within(self, value: str, start: int, into: list[str]) -> int:
        """The same of the leftmost place from `start` on where the first text of the run stands, one character on."""
        first, into_place = self._first_text(), len(into)
        at = value.find(first, start + 1)
        if at < 0:
            return -1
        into.append(value[start:at])
        end = self.ahead(value, at, into)
        if end < 0:
            del into[into_place:]
        return end

    def behind(self, value: str, start: int, into: list[str]) -> bool:
        """Whether the value ends with the run, after at least one character from `start` on, which go `into` first."""
        places = _from_the_end(value, start)
        end = len(value)
        for separator in reversed(self.separators):
            end = next(places)
            if end < start or value[end] != separator:
                return False
        first = self.segments[0]
        place = _find_end(first, value, max(start, next(places)) + 1, end)
        if place < 0:
            return False
        into.append(value[start:place])
        if not _match(first, value, place, end, into):
            return False
        return not self.separators or Run(self.segments[1:], self.separators[1:]).whole(value, end + 1, into)

    def _first_text(self) -> str:
        """The text that the run begins with, up to its first placeholder."""
        texts = []
        for literals, separator in zip(self.segments, (*self.separators, ""), strict=True):
            texts.append(literals[0])
            if len(literals) > 1:
                break
            texts.append(separator)
        return "".join(texts)


def pattern_of(run: Run, characters: str) -> str | None:
    """A regular expression for the run, with placeholders of such characters; None where it could go back and forth."""
    parts = []
    for literals, separator in zip(run.segments, (*run.separators, ""), strict=True):
        if len(literals) > 2 or (len(literals) == 2 and len(literals[1]) > _LONGEST_STEP_BACK):
            return None
        parts.append(re.escape(literals[0]))
        if len(literals) == 2:
            # What ends at a separator can be taken at once; before a text the pattern steps back, one way only.
            parts.append(rf"({characters}+){re.escape(literals[1])}" if literals[1] else rf"({characters}++)")
        parts.append(re.escape(separator))
    return "".join(parts)


def _match(literals: _Segment, value: str, start: int, end: int, into: list[str]) -> bool:
    """Whether `value[start:end]` is one segment."""
    first = literals[0]
    if len(literals) == 1:
        return end - start == len(first) and value.startswith(first, start)
    last = literals[-1]
    at, stop = start + len(first), end - len(last)
    # One character at least for each placeholder.
    if stop - at < len(literals) - 1 or not (value.startswith(first, start) and value.startswith(last, stop)):
        return False
    for literal in literals[1:-1]:
        found = value.find(literal, at + 1, stop - 1)
        if found < 0:
            return False
        into.append(value[at:found])
        at = found + len(literal)
    into.append(value[at:stop])
    return at < stop


def _reach(literals: _Segment, value: str, start: int, into: list[str]) -> int:
    """Where the shortest text ends that begins at `start` and is one segment."""
    if not value.startswith(literals[0], start):
        return -1
    at = start + len(literals[0])
    bound = _next_separator(value, at)
    stop = len(value) if bound is None else bound.start()
    for literal in literals[1:]:
        found = value.find(literal, at + 1, stop)
        if found < 0:
            return -1
        into.append(value[at:found])
        at = found + len(literal)
    return at


def _from_the_end(value: str, start: int) -> Iterator[int]:
    """The places of the separators from the last to the first one after `start`; then -1, again and again."""
    places = {mark: value.rfind(mark, start) for mark in "/?#"}
    while True:
        mark = max(places, key=places.__getitem__)
        place = places[mark]
        yield place
        if place >= 0:
            places[mark] = value.rfind(mark, start, place)


def _find_end(literals: _Segment, value: str, start: int, end: int) -> int:
    """The leftmost place from `start` on from which the segment can reach to `end`."""
    if len(literals) == 1:
        place = end - len(literals[0])
        return place if place >= start and value.startswith(literals[0], place) else -1
    return value.find(literals[0], start, end)
