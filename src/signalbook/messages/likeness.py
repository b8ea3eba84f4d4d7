"""How like two texts are: by the words that they share, and by how many characters have to be changed.

Rule: only the beginning of a long text counts, so that a comparison is short.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["edits", "segments", "shared"]

_words = re.compile(r"[A-Za-z0-9_]+").findall
_MOST_SEGMENTS = 32
_LONGEST = 64


def segments(text: str) -> tuple[str, ...]:
    """The words of a text, in their order and in lower case."""
    return tuple(_words(text[:1000].lower())[:_MOST_SEGMENTS])


def shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words two texts have alike where they begin, and where they end."""
    shorter = min(len(one), len(other))
    begin = 0
    while begin < shorter and one[begin] == other[begin]:
        begin += 1
    end = 0
    while end < shorter - begin and one[-1 - end] == other[-1 - end]:
        end += 1
    return begin + end


def edits(one: str, other: str) -> int:
    """How many characters have to be put in, left out or replaced to make one text of the other (Myers 1999)."""
    begin = 0
    while begin < len(one) and begin < len(other) and one[begin] == other[begin]:
        begin += 1
    one, other = one[begin : begin + _LONGEST], other[begin : begin + _LONGEST]
    if not one or not other:
        return len(one) + len(other)
    places: dict[str, int] = {}
    for at, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << at
    full, last = (1 << len(one)) - 1, 1 << (len(one) - 1)
    rises, falls, distance = full, 0, len(one)
    for character in other:
        equal = places.get(character, 0)
        across = equal | falls
        equal |= (equal & rises) + rises ^ rises
        up, down = falls | ~(equal | rises) & full, rises & equal
        distance += bool(up & last) - bool(down & last)
        up, down = up << 1 | 1, down << 1
        rises, falls = (down | ~(across | up)) & full, up & across & full
    return distance
