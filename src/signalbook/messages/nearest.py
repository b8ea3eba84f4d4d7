"""The definitions nearest to a message that none expects, with what each of them misses.

Rule 1: a small scope is judged whole; of a large one, a few whose key differs from the message's in one word, or that
share its rarest words. So an unexpected message costs the same in any catalog.
Rule 2: of those with equally many problems, the one whose key is most like the message's comes first.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from signalbook.errors import Problem
from signalbook.messages.answer import UNCHECKED_PAYLOAD, Candidate
from signalbook.messages.compile import Plan
from signalbook.messages.constraint import Constraint, Context, Read
from signalbook.messages.observe import MessageKind, Observed
from signalbook.protocols.values import canonical
from signalbook.schemas import Checked
from signalbook.schemas.framing import FrameOnly

__all__ = ["MOST_JUDGED", "Judged", "Neighbours", "edits", "judge", "key_holds", "may_hold", "segments", "shared"]

# How like two texts are: by the words that they share, and by how many characters have to be changed.
#
# Rule: only the beginning of a long text counts, so that a comparison is short.


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


# `Judged`: what one definition says about one message.


# So few parts of a key are compared one by one.
_FEW = 8


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A plan, what the message captured by it, what is wrong, and what the payload schema made of the payload.

    `is_unchecked` says that the payload was left unchecked.
    """

    plan: Plan
    context: Context
    problems: tuple[Problem, ...]
    checked: Checked | None
    is_unchecked: bool = False

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def confirmed(self) -> bool:
        """Whether a payload schema was applied and holds."""
        return self.checked is not None and not self.checked.problems and not isinstance(self.checked, FrameOnly)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What of the message was not checked."""
        return UNCHECKED_PAYLOAD if self.is_unchecked else ()

    @property
    def xid(self) -> str:
        """The definition's name."""
        return self.plan.compiled.definition.xid

    @property
    def identity(self) -> str:
        """The name of the definition that it is, where it is an alias."""
        return self.plan.compiled.definition.identity

    def candidate(self) -> Candidate:
        """The definition and what is wrong, as answers list it."""
        return Candidate(self.xid, self.problems)


def key_holds(plan: Plan, observed: Observed) -> bool:
    """Whether the plan has a key, and the message has what it says."""
    if not plan.key:
        return False
    context: Context = {}
    return all(part.holds(observed, context, present=True) for part in plan.key)


def may_hold(plan: Plan, observed: Observed) -> bool:
    """Whether the metadata is as the definition says; the payload may still be wrong."""
    context: Context = {}
    return plan.misfit is None and all(test.holds(observed, context) for test in plan.tests)


def judge(plan: Plan, observed: Observed) -> Judged:
    """Everything that the definition says about the message."""
    context: Context = {}
    problems = [] if plan.misfit is None else [plan.misfit]
    key = plan.key if len(plan.key) < _FEW else frozenset(plan.key)
    for test in plan.tests:
        found = test.problem(observed, context, present=test in key)
        if found is not None:
            problems.append(found)
    payload = plan.compiled.payload.judge(observed)
    return Judged(plan, context, (*problems, *payload.problems), payload.checked, payload.unchecked)


# As many definitions are judged whole; of more, the likest few.
MOST_JUDGED = 64
_MOST_LISTED = 5
_LIKEST = 16
# A word that more definitions have says little about any; of definitions that differ in one word so many are looked at.
_COMMON = 200
_BESIDE = 16
_LONGEST_READ = 1000
_MOST_WORDS = 1000
_Text = tuple[str, tuple[str, ...]]


class Neighbours:
    """The plans for one kind of message; `path` is the property that tells them apart (None: each by its key)."""

    __slots__ = ("_by_text", "_by_word", "_path", "_plans", "_reads", "_siblings", "_words")

    def __init__(self, plans: Iterable[Plan], path: str | None = None) -> None:
        self._plans = tuple(plan for plan in plans if not _is_no_event(plan))
        self._path = path
        self._by_word: dict[str, list[int]] | None = None
        self._reads: dict[str, Read] = {}
        self._words: dict[Constraint, tuple[str, ...]] = {}
        self._by_text: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        # By the place and words of a key without one of them: that word, and the plan's number.
        self._siblings: dict[tuple[str, int, tuple[str, ...]], list[tuple[str, int]]] = {}

    def of(self, observed: Observed) -> tuple[Candidate, ...]:
        """The nearest definitions, the one with the fewest problems first."""
        said: dict[str, list[_Text]] = {}
        judged = [judge(plan, observed) for plan in self.near(observed)]
        ranked = [(_wrong(one, observed), self._unlike(one.plan, observed, said), one) for one in judged]
        ranked.sort(key=lambda row: (row[0], row[1], row[2].xid))
        # How many characters differ is counted for those that may be listed.
        close = [(wrong, self._edits(one.plan, said), unlike, one) for wrong, unlike, one in ranked[:_LIKEST]]
        close.sort(key=lambda row: (row[0], row[1], row[2], row[3].xid))
        return tuple(row[3].candidate() for row in close[:_MOST_LISTED])

    def near(self, observed: Observed) -> Sequence[Plan]:
        """All plans where they are few, else those whose key or words are like the message's."""
        if len(self._plans) <= MOST_JUDGED:
            return self._plans
        if self._by_word is None:
            self._by_word = self._filed()
        said: dict[str, list[_Text]] = {}
        found: Counter[int] = Counter()
        for word in dict.fromkeys(_words_of(_said(observed))):
            places = self._by_word.get(word, ())
            if len(places) <= _COMMON:
                found.update(places)
        for place in self._beside(observed):
            found[place] += 1
        if not found:
            found.update(self._around(observed))
        ranked = sorted(
            found, key=lambda place: (self._unlike(self._plans[place], observed, said), -found[place], place)
        )
        return [self._plans[place] for place in ranked[:_LIKEST]]

    def _filed(self) -> dict[str, list[int]]:
        by_word: dict[str, list[int]] = {}
        for place, plan in enumerate(self._plans):
            for word in dict.fromkeys(_words_of(_stated(plan))):
                by_word.setdefault(word, []).append(place)
            told = self._told(plan)
            if told is not None:
                self._reads[told.path] = told.read
                words = segments(_text(told))
                for at, word in enumerate(words):
                    rest = (told.path, at, words[:at] + words[at + 1 :])
                    self._siblings.setdefault(rest, []).append((word, place))
                self._by_text.setdefault(told.path, []).append((words, place))
        for rows in self._siblings.values():
            rows.sort()
        for keys in self._by_text.values():
            keys.sort()
        return by_word

    def _beside(self, observed: Observed) -> Iterator[int]:
        """The plans whose key differs from the message's in one word, those first whose word begins alike."""
        for path, read in self._reads.items():
            for value in read(observed)[:1]:
                words = segments(canonical(value))
                for at, word in enumerate(words):
                    rows = self._siblings.get((path, at, words[:at] + words[at + 1 :]), ())
                    begin = max(0, bisect_left(rows, (word, -1)) - _BESIDE // 2)
                    yield from (place for _, place in rows[begin : begin + _BESIDE])

    def _around(self, observed: Observed) -> Iterator[int]:
        """The plans whose key begins with the same word, those that stand around the message's in the alphabet."""
        for path, read in self._reads.items():
            for value in read(observed)[:1]:
                words, rows = segments(canonical(value)), self._by_text[path]
                begin = max(0, bisect_left(rows, (words, -1)) - _BESIDE // 2)
                yield from (place for own, place in rows[begin : begin + _BESIDE] if own[:1] == words[:1])

    def _told(self, plan: Plan) -> Constraint | None:
        """What a plan says of the property that tells it from others."""
        if self._path is None:
            return plan.key[0] if plan.key else None
        return next((one for one in plan.tests if one.path == self._path), None)

    def _unlike(self, plan: Plan, observed: Observed, said: dict[str, list[_Text]]) -> int:
        """How many words of a plan's key are not those of the message's."""
        told = self._told(plan)
        if told is None:
            return _LONGEST_READ
        if told.path not in said:
            texts = [canonical(value) for value in told.read(observed)[:1]]
            said[told.path] = [(text, segments(text)) for text in texts]
        wanted = self._words.get(told)
        if wanted is None:
            wanted = self._words[told] = segments(_text(told))
        return min(
            (max(len(wanted), len(own)) - shared(wanted, own) for _, own in said[told.path]), default=len(wanted)
        )

    def _edits(self, plan: Plan, said: dict[str, list[_Text]]) -> int:
        told = self._told(plan)
        if told is None:
            return _LONGEST_READ
        return min((edits(_text(told), text) for text, _ in said[told.path]), default=_LONGEST_READ)


def _text(told: Constraint) -> str:
    return told.constant or ("" if told.template is None else told.template.text)


def _wrong(judged: Judged, observed: Observed) -> int:
    """How many things are wrong; what could not be tested over another protocol counts, over another version not."""
    misfit, wanted = judged.plan.misfit, judged.plan.compiled
    elsewhere = (
        misfit is not None and misfit.code == "protocol" and _family(wanted.protocol) != _family(observed.protocol)
    )
    return len(judged.problems) + (len(wanted.on_protocol) if elsewhere else 0)


def _family(protocol: str | None) -> str:
    return (protocol or "").partition("/")[0]


def _is_no_event(plan: Plan) -> bool:
    """Whether the plan is for bare events and the definition has no envelope, so that it is never tested."""
    return plan.kind is MessageKind.BARE and plan.misfit is not None


def _stated(plan: Plan) -> Iterator[str]:
    for constraint in plan.compiled.on_envelope + plan.compiled.on_protocol:
        if constraint.constant is not None:
            yield constraint.constant
        elif constraint.template is not None:
            yield from constraint.template.literals


def _said(observed: Observed) -> Iterator[str]:
    yield from (value for value in observed.attributes.values() if isinstance(value, str))
    if observed.message is not None:
        for value in observed.message.fields.values():
            if isinstance(value, str):
                yield value
            elif isinstance(value, dict):
                yield from (member for member in value.values() if isinstance(member, str))
            elif isinstance(value, tuple):
                yield from (_as_text(text) for _, text in value if text is not None)


def _as_text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value[:_LONGEST_READ].decode(errors="ignore")


def _words_of(texts: Iterable[str]) -> Iterator[str]:
    left = _MOST_WORDS
    for text in texts:
        found = _words(text[:_LONGEST_READ])[:left]
        yield from found
        left -= len(found)
