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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

__all__ = [
    "NAME_IN_BRACES", "Placeholder", "Template", "TemplateRun", "decode", "encode", "encode_reserved", "pattern_of",
]  # fmt: skip

# What a template can have in its braces, in words that follow what is wrong.
NAME_IN_BRACES = "in braces stands a name of letters, digits and underscores"

# Percent-encoding as templates use it (RFC 3986 section 2, RFC 6570 section 1.5).
#
# Rule: what is not an escape, or not UTF-8 once decoded, stays as it is.


_escapes = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
# Bytes that are not UTF-8, as the error handler `surrogateescape` leaves them; no UTF-8 decodes to those.
_not_text = re.compile("[\udc80-\udcff]+")
# RFC 6570 section 3.2.3: reserved expansion keeps reserved characters and escapes that are there already.
_foreign = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]")


def decode(text: str) -> str:
    """The text with its escapes undone.

    >>> decode("a%20b"), decode("100%"), decode("%41%ff")
    ('a b', '100%', 'A%ff')
    """
    return _escapes.sub(_decoded, text) if "%" in text else text


def encode(text: str) -> str:
    """The text with everything escaped that is not unreserved."""
    return quote(text, safe="", errors="surrogatepass")


def encode_reserved(text: str) -> str:
    """The text with only that escaped which a URI cannot hold."""
    return _foreign.sub(lambda found: encode(found[0]), text)


def _decoded(found: re.Match[str]) -> str:
    escapes = found[0]
    raw = bytes.fromhex(escapes.replace("%", ""))
    text = raw.decode(errors="surrogateescape")
    done: list[str] = []
    at, place = 0, 0  # where in the text, and at which byte
    for bad in _not_text.finditer(text):
        known = text[at : bad.start()]
        place += len(known.encode())
        end = place + bad.end() - bad.start()
        done += (known, escapes[3 * place : 3 * end])
        at, place = bad.end(), end
    return "".join((*done, text[at:]))


# Matching runs of text in which no placeholder crosses a separator (`/ ? #`).
#
# Rule 1: a segment is what stands between two separators. The text before its first placeholder is anchored at the
# start, that after the last at the end; texts between are found leftmost, and each placeholder takes at least one
# character.
# Rule 2: a run is segments with the separators between them; a value has to have the same separators.
# Rule 3: nothing is tried twice.


_separators = re.compile(r"[/?#]")
_next_separator = _separators.search
_Segment = tuple[str, ...]
# A pattern tries the text after a placeholder at each character; a longer text is looked up where it must be.
_LONGEST_STEP_BACK = 32


@dataclass(frozen=True, slots=True)
class TemplateRun:
    """The literals of each segment, a placeholder between each two of them, and the separators between segments."""

    segments: tuple[_Segment, ...]
    separators: str

    @classmethod
    def of(cls, literals: Sequence[str]) -> TemplateRun:
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

    def ahead(self, value: str, start: int, into: list[str], stops: _Stops) -> int:
        """Where the run ends that begins at `start`, as short as can be; -1 where none does."""
        at = start
        for literals, separator in zip(self.segments, self.separators, strict=False):
            found = _next_separator(value, at)
            if found is None or found[0] != separator or not _match(literals, value, at, found.start(), into):
                return -1
            at = found.end()
        return _reach(self.segments[-1], value, at, into, stops)

    def within(self, value: str, start: int, into: list[str], stops: _Stops) -> int:
        """The same of the leftmost place from `start` on where the first text of the run stands, one character on."""
        first, into_place = self._first_text(), len(into)
        at = value.find(first, start + 1)
        if at < 0:
            return -1
        into.append(value[start:at])
        end = self.ahead(value, at, into, stops)
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
        return not self.separators or TemplateRun(self.segments[1:], self.separators[1:]).whole(value, end + 1, into)

    def _first_text(self) -> str:
        """The text that the run begins with, up to its first placeholder."""
        texts = []
        for literals, separator in zip(self.segments, (*self.separators, ""), strict=True):
            texts.append(literals[0])
            if len(literals) > 1:
                break
            texts.append(separator)
        return "".join(texts)


def pattern_of(run: TemplateRun, characters: str) -> str | None:
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


class _Stops:
    """The next separator of a value, looked for once by all runs that end before it."""

    __slots__ = ("_place", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        self._place = -1

    def after(self, at: int) -> int:
        """The place of the first separator from `at` on, which is never before one that was asked for earlier."""
        if self._place < at:
            found = _next_separator(self._value, at)
            self._place = len(self._value) if found is None else found.start()
        return self._place


def _reach(literals: _Segment, value: str, start: int, into: list[str], stops: _Stops) -> int:
    """Where the shortest text ends that begins at `start` and is one segment."""
    if not value.startswith(literals[0], start):
        return -1
    at = start + len(literals[0])
    if len(literals) == 1:
        return at
    stop = stops.after(at)
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


_placeholder = re.compile(r"\{(\+?)([A-Za-z0-9_]+)\}")
_template_separators = re.compile(r"[/?#]").search
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
    _runs: tuple[TemplateRun, ...] = field(repr=False, compare=False)
    # Whether its one placeholder takes the whole text.
    whole: bool = False
    # Whether texts are taken and given as they stand, never percent-encoded.
    verbatim: bool = False
    # Made with the first match: most templates of a large catalog never see one.
    _matcher: Any = field(default=_UNKNOWN, repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Template:
        """The template that the text is; every text is one, perhaps without placeholders."""
        return _parse_cached(text) if len(text) <= _LONGEST_KEPT else _parse(text)

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
        """Whether two placeholders stand side by side, so that it is not known where one ends."""
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
        matcher = self._matcher
        if matcher is _UNKNOWN:
            pattern = self.as_pattern()
            matcher = None if pattern is None else re.compile(pattern).fullmatch
            object.__setattr__(self, "_matcher", matcher)
        if matcher is not None:
            found = matcher(value)
            if found is None:
                return None
            into: Sequence[str] = found.groups()
        else:
            into = []
            if not self._walk(value, into):
                return None
        if "%" not in value or self.verbatim or (self.whole and _template_separators(value)):
            return into
        return [text if one.reserved else decode(text) for one, text in zip(self.placeholders, into, strict=True)]

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
            parts += (encode_reserved(value) if one.reserved else encode(value), literal)
        return "".join(parts)

    def given_back(self, values: Mapping[str, str]) -> dict[str, str]:
        """What a match of the expanded text has to give: the values, those of `{+name}` as they were expanded."""
        return {
            one.name: encode_reserved(values[one.name]) if one.reserved and not self.verbatim else values[one.name]
            for one in self.placeholders
        }

    def _walk(self, value: str, into: list[str]) -> bool:
        """Whether a value matches runs with a `{+name}` between each two."""
        first, *middle = self._runs
        if not middle:
            return first.whole(value, 0, into)
        stops = _Stops(value)
        at = first.ahead(value, 0, into, stops)
        for run in middle[:-1]:
            if at < 0:
                return False
            at = run.within(value, at, into, stops)
        return at >= 0 and middle[-1].behind(value, at, into)


def _whole(value: str) -> str:
    """A value as the whole of a text that gives it back: a URI as it is, anything else encoded as elsewhere."""
    stays = encode_reserved(value) == value and (_template_separators(value) or decode(value) == value)
    return value if stays else encode(value)


def _parse(text: str) -> Template:
    literals: list[str] = []
    placeholders: list[Placeholder] = []
    runs: list[TemplateRun] = []
    pieces: list[str] = []
    at = 0
    for found in _placeholder.finditer(text):
        pieces.append(text[at : found.start()])
        literals.append(text[at : found.start()])
        placeholders.append(Placeholder(found[2], bool(found[1])))
        at = found.end()
        if found[1]:
            runs.append(TemplateRun.of(pieces))
            pieces = []
    pieces.append(text[at:])
    literals.append(text[at:])
    runs.append(TemplateRun.of(pieces))
    return Template(text, tuple(literals), tuple(placeholders), tuple(runs))


_parse_cached = lru_cache(4096)(_parse)
