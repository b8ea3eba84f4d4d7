"""Finding the templates that a value may match, without trying each.

Rule 1: a template is filed under one word of its text that stands there whole, the rarest one: whatever matches the
template has that word. One without such a word is filed under the text before its first placeholder.
Rule 2: the index may give a template that does not match; it never misses one that does.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from signalbook.template import Template

__all__ = ["TemplateIndex"]

T = TypeVar("T")
_words = re.compile(r"[A-Za-z0-9_]+").findall
# Words of a literal that nothing before or after can make longer.
_whole_words = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z0-9_]+(?![A-Za-z0-9_])").finditer
# A value with more words than this is looked up by all of them once; each is cheap, but the list need not be long.
_MOST_WORDS = 10_000


class TemplateIndex(Generic[T]):
    """What belongs to templates, by the values that they match."""

    __slots__ = ("_by_word", "_parents", "_prefixed", "_prefixes")

    def __init__(self, entries: Iterable[tuple[Template, T]]) -> None:
        filed = [(template, entry, tuple(_certain_words(template))) for template, entry in entries]
        counts = Counter(word for _, _, words in filed for word in set(words))
        self._by_word: dict[str, list[T]] = {}
        self._prefixed: dict[str, list[T]] = {}
        for template, entry, words in filed:
            if words:
                rarest = min(words, key=lambda word: (counts[word], word))
                self._by_word.setdefault(rarest, []).append(entry)
            else:
                self._prefixed.setdefault(template.literals[0], []).append(entry)
        self._prefixes = sorted(self._prefixed)
        self._parents = _parents(self._prefixes)

    def find(self, value: str) -> Iterator[T]:
        """What belongs to the templates that the value may match."""
        if self._by_word:
            for word in dict.fromkeys(_words(value)[:_MOST_WORDS]):
                yield from self._by_word.get(word, ())
        at = bisect_right(self._prefixes, value) - 1
        while at >= 0:
            prefix = self._prefixes[at]
            if value.startswith(prefix):
                yield from self._prefixed[prefix]
            at = self._parents[at]


def _certain_words(template: Template) -> Iterator[str]:
    last = len(template.literals) - 1
    for place, literal in enumerate(template.literals):
        for found in _whole_words(literal):
            touches_before = found.start() == 0 and place > 0
            touches_after = found.end() == len(literal) and place < last
            if not touches_before and not touches_after:
                yield found[0]


def _parents(prefixes: list[str]) -> list[int]:
    """For each text of a sorted list, the place of the longest other one that it begins with; -1 where none is."""
    parents: list[int] = []
    open_places: list[int] = []
    for place, prefix in enumerate(prefixes):
        while open_places and not prefix.startswith(prefixes[open_places[-1]]):
            open_places.pop()
        parents.append(open_places[-1] if open_places else -1)
        open_places.append(place)
    return parents
