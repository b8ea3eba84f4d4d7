"""`Template`: a text with placeholders, as definitions have them.

Rule 1: `{name}` stands for one or more characters other than `/ ? #`, and is percent-decoded; `{+name}` stands for any
characters, as few as the text after it allows, and is taken as it stands. A name is made of letters, digits and `_`;
braces that hold anything else are text.
A template that is one `{name}` and nothing else may be asked for the whole text (`as_whole`): then it stands for all of
it, `/ ? #` included, which is taken as it stands where it has one of those. What is not a URI, such as a content type,
is neither percent-encoded nor decoded (`as_verbatim`).
Rule 2: matching takes time in proportion to the value, whatever the template is; nothing backtracks.
Rule 3: what `match` gives, `expand` takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from signalbook.template import percent
from signalbook.template.segment import Run, pattern_of

__all__ = ["Placeholder", "Template"]

_placeholder = re.compile(r"\{(\+?)([A-Za-z0-9_]+)\}")
_separators = re.compile(r"[/?#]").search
_LONGEST_KEPT = 500
_UNKNOWN: Final = ...


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One place of a template; `reserved` is `{+name}`."""

    name: str
    reserved: bool = False

    def __str__(self) -> str:
        return f"{{{'+' if self.reserved else ''}{self.name}}}"


@dataclass(frozen=True, slots=True)
class Template:
    """A text with placeholders between its `literals`, of which there is one more than of `placeholders`.

    >>> template = Template.parse("/vehicles/{vin}/systems/{system}")
    >>> template.match("/vehicles/A%20B/systems/brakes")
    {'vin': 'A B', 'system': 'brakes'}
    >>> template.expand({"vin": "A B", "system": "brakes"})
    '/vehicles/A%20B/systems/brakes'
    """

    text: str
    literals: tuple[str, ...] = field(repr=False)
    placeholders: tuple[Placeholder, ...] = field(repr=False)
    _runs: tuple[Run, ...] = field(repr=False, compare=False)
    # Whether its one placeholder takes the whole text.
    whole: bool = False
    # Whether texts are taken and given as they stand, never percent-encoded.
    verbatim: bool = False
    # Made with the first match: most templates of a large catalog never see one.
    _matcher: Any = field(default=_UNKNOWN, repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Template:
        """The template that the text is; every text is one, perhaps without placeholders."""
        return _remembered(text) if len(text) <= _LONGEST_KEPT else _parse(text)

    def as_whole(self) -> Template:
        """The same template, for a text that its one placeholder takes whole; itself where it has more than that.

        >>> Template.parse("{feed}").as_whole().match("https://example.com/a%20b?c")
        {'feed': 'https://example.com/a%20b?c'}
        """
        if len(self.placeholders) != 1 or self.placeholders[0].reserved or self.has_literal_text:
            return self
        return replace(self, whole=True, _matcher=re.compile("(.+)", re.DOTALL).fullmatch)

    def as_verbatim(self) -> Template:
        """The same template, for a text that is not a URI: nothing in it is percent-encoded.

        >>> Template.parse("application/{kind}").as_verbatim().expand({"kind": "vnd.acme+json"})
        'application/vnd.acme+json'
        """
        return replace(self, verbatim=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the placeholders, each once, in their order."""
        return tuple(dict.fromkeys(one.name for one in self.placeholders))

    @property
    def literal(self) -> bool:
        """Whether there is no placeholder."""
        return not self.placeholders

    @property
    def has_literal_text(self) -> bool:
        """Whether there is any text besides placeholders."""
        return any(self.literals)

    @property
    def adjacent(self) -> bool:
        """Whether two placeholders stand side by side, so that nothing tells where one ends."""
        return not all(self.literals[1:-1])

    def as_pattern(self, characters: str = "[^/?#]") -> str | None:
        """A regular expression that captures the same, not yet decoded; None where none can without going back."""
        return pattern_of(self._runs[0], characters) if len(self._runs) == 1 else None

    def match(self, value: str) -> dict[str, str] | None:
        """What each name stands for in the value; None where it does not match, or one name would mean two things."""
        found = self.captures(value)
        if found is None:
            return None
        names: dict[str, str] = {}
        for one, text in zip(self.placeholders, found, strict=True):
            if names.setdefault(one.name, text) != text:
                return None
        return names

    def captures(self, value: str) -> Sequence[str] | None:
        """What each placeholder in its order stands for in the value; None where it does not match."""
        quick = self._matcher
        if quick is _UNKNOWN:
            pattern = self.as_pattern()
            quick = None if pattern is None else re.compile(pattern).fullmatch
            object.__setattr__(self, "_matcher", quick)
        if quick is not None:
            found = quick(value)
            if found is None:
                return None
            into: Sequence[str] = found.groups()
        else:
            into = []
            if not self._walk(value, into):
                return None
        if "%" not in value or self.verbatim or (self.whole and _separators(value)):
            return into
        return [
            text if one.reserved else percent.decode(text) for one, text in zip(self.placeholders, into, strict=True)
        ]

    def expand(self, values: Mapping[str, str]) -> str:
        """The text with each name's value in its place, encoded as RFC 6570 says; a name without one is a KeyError."""
        parts = [self.literals[0]]
        for one, literal in zip(self.placeholders, self.literals[1:], strict=True):
            value = values[one.name]
            if self.whole and not self.verbatim:
                return _whole(value)
            if self.verbatim:
                parts += (value, literal)
                continue
            parts += (percent.encode_reserved(value) if one.reserved else percent.encode(value), literal)
        return "".join(parts)

    def given_back(self, values: Mapping[str, str]) -> dict[str, str]:
        """What a match of the expanded text has to give: the values, those of `{+name}` as they were expanded."""
        return {
            one.name: percent.encode_reserved(values[one.name])
            if one.reserved and not self.verbatim
            else values[one.name]
            for one in self.placeholders
        }

    def _walk(self, value: str, into: list[str]) -> bool:
        """Whether a value matches runs with a `{+name}` between each two."""
        first, *middle = self._runs
        if not middle:
            return first.whole(value, 0, into)
        at = first.ahead(value, 0, into)
        for run in middle[:-1]:
            if at < 0:
                return False
            at = run.within(value, at, into)
        return at >= 0 and middle[-1].behind(value, at, into)


def _whole(value: str) -> str:
    """A value as the whole of a text that gives it back: a URI as it is, anything else encoded as elsewhere."""
    stays = percent.encode_reserved(value) == value and (_separators(value) or percent.decode(value) == value)
    return value if stays else percent.encode(value)


def _parse(text: str) -> Template:
    literals: list[str] = []
    placeholders: list[Placeholder] = []
    runs: list[Run] = []
    pieces: list[str] = []
    at = 0
    for found in _placeholder.finditer(text):
        pieces.append(text[at : found.start()])
        literals.append(text[at : found.start()])
        placeholders.append(Placeholder(found[2], bool(found[1])))
        at = found.end()
        if found[1]:
            runs.append(Run.of(pieces))
            pieces = []
    pieces.append(text[at:])
    literals.append(text[at:])
    runs.append(Run.of(pieces))
    return Template(text, tuple(literals), tuple(placeholders), tuple(runs))


_remembered = lru_cache(4096)(_parse)
