"""How like a message definitions are: the nearest ones, where none is what the message says it is.

Rule 1: `Neighbours` gives the definitions nearest to a message that none expects, with what each of them misses. Of a
small scope all are judged; of a large one a few whose key differs from the message's in one word, or that share its
rarest words. Of those with equally many problems, the one whose key is most like the message's comes first.
Rule 2: what is filed is filed once, when the first message asks for it; others that ask meanwhile wait.
Rule 3: nothing here changes. `changed` gives another at the cost of the plans that differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from signalbook.budget import BYTES, TooMuch
from signalbook.messages.answer import Candidate
from signalbook.messages.compile import Judged, MatchPlan, judge
from signalbook.messages.constraint import JUDGING, PropertyConstraint, Read, judging
from signalbook.messages.layered import GONE, Changes, Layered, Lock, Rows, around, put, rows_of, take
from signalbook.messages.observe import MessageKind, Observed
from signalbook.messages.schema_library import SchemaLibrary
from signalbook.protocols.values import canonical

__all__ = ["MOST_JUDGED", "Neighbours", "edits", "segments", "shared"]

_words = re.compile(r"[A-Za-z0-9_]+").findall

# How like two texts are: by the words that they share, and by how many characters have to be changed.
#
# Rule: only the beginning of a long text counts, so that a comparison is short.


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


# `Neighbours`: the nearest definitions.


# So many definitions are all judged; of more, only those most like the message.
MOST_JUDGED = 64
_MOST_LISTED = 5
_LIKEST = 16
# A word that more definitions have says little about any; of definitions that differ in one word so many are looked at.
_COMMON = 200
_BESIDE = 16
_LONGEST_READ = 1000
_MOST_WORDS_COMPARED = 1000
_Text = tuple[str, tuple[str, ...]]


class Neighbours:
    """The plans for one kind of message; `path` is the property that distinguishes them (None: each by its key)."""

    __slots__ = ("_filed", "_lock", "_path", "_plans", "_words")

    def __init__(self, plans: Layered[str, MatchPlan], path: str | None, lock: Lock) -> None:
        self._plans = plans
        self._path = path
        self._lock = lock
        self._filed: _Filed | None = None
        self._words: dict[PropertyConstraint, tuple[str, ...]] = {}

    @classmethod
    def of_plans(cls, plans: Layered[str, MatchPlan], path: str | None, lock: Lock) -> Neighbours:
        """Those of some plans by their places."""
        if any(map(_is_no_event, plans.values())):
            plans = Layered({place: plan for place, plan in plans.items() if not _is_no_event(plan)})
        return cls(plans, path, lock)

    def changed(self, gone: Iterable[MatchPlan], come: Iterable[MatchPlan]) -> Neighbours:
        """Those without some plans, and with some more."""
        gone = [plan for plan in gone if not _is_no_event(plan)]
        come = [plan for plan in come if not _is_no_event(plan)]
        plans = self._plans.changed({**{plan.place: GONE for plan in gone}, **{plan.place: plan for plan in come}})
        found = Neighbours(plans, self._path, self._lock)
        if self._filed is not None:
            found._filed = self._filed.changed(
                [(plan, self._distinguishing(plan)) for plan in gone],
                [(plan, self._distinguishing(plan)) for plan in come],
            )
        return found

    def of(self, observed: Observed, library: SchemaLibrary) -> tuple[Candidate, ...]:
        """The nearest definitions, the one with the fewest problems first."""
        said: dict[str, list[_Text]] = {}
        judged = self._judged(observed, library)
        ranked = [(_wrong(one, observed), self._unlike(one.plan, observed, said), one) for one in judged]
        ranked.sort(key=lambda row: (row[0], row[1], row[2].xid))
        # How many characters differ is counted for those that may be listed.
        close = [(wrong, self._edits(one.plan, said), unlike, one) for wrong, unlike, one in ranked[:_LIKEST]]
        close.sort(key=lambda row: (row[0], row[1], row[2], row[3].xid))
        return tuple(row[3].candidate() for row in close[:_MOST_LISTED])

    def _judged(self, observed: Observed, library: SchemaLibrary) -> list[Judged]:
        """What the plans near to a message say of it, as far as its budget goes."""
        budget, payload = judging(), len(observed.payload() or b"") // BYTES
        judged: list[Judged] = []
        try:
            for plan in self.near(observed):
                budget.spend(1 + payload)
                judged.append(judge(plan, observed, library))
        except TooMuch as error:
            if error.budget.what is not JUDGING:
                raise
        return judged

    def near(self, observed: Observed) -> Sequence[MatchPlan]:
        """All plans where they are few, else those whose key or words are like the message's."""
        if len(self._plans) <= MOST_JUDGED:
            return sorted(self._plans.values(), key=lambda plan: plan.place)
        filed = self._filed or self._made()
        said: dict[str, list[_Text]] = {}
        found: Counter[str] = Counter()
        for word in dict.fromkeys(_words_of(_message_texts(observed))):
            places = filed.by_word.get(word, ())
            if len(places) <= _COMMON:
                found.update(places)
        for place in filed.beside(observed):
            found[place] += 1
        if not found:
            found.update(filed.around(observed))
        ranked = sorted(
            found, key=lambda place: (self._unlike(self._plans[place], observed, said), -found[place], place)
        )
        return [self._plans[place] for place in ranked[:_LIKEST]]

    def _made(self) -> _Filed:
        with self._lock:
            if self._filed is None:
                self._filed = _Filed.of((plan, self._distinguishing(plan)) for plan in self._plans.values())
            return self._filed

    def _distinguishing(self, plan: MatchPlan) -> PropertyConstraint | None:
        """What a plan says of the property that distinguishes it from others."""
        if self._path is None:
            return plan.key[0] if plan.key else None
        return next((one for one in plan.tests if one.path == self._path), None)

    def _unlike(self, plan: MatchPlan, observed: Observed, said: dict[str, list[_Text]]) -> int:
        """How many words of a plan's key are not those of the message's."""
        property_ = self._distinguishing(plan)
        if property_ is None:
            return _LONGEST_READ
        if property_.path not in said:
            texts = [canonical(value) for value in property_.read(observed)[:1]]
            said[property_.path] = [(text, segments(text)) for text in texts]
        wanted = self._words.get(property_)
        if wanted is None:
            wanted = self._words[property_] = segments(_stated_text(property_))
        return min(
            (max(len(wanted), len(own)) - shared(wanted, own) for _, own in said[property_.path]), default=len(wanted)
        )

    def _edits(self, plan: MatchPlan, said: dict[str, list[_Text]]) -> int:
        property_ = self._distinguishing(plan)
        if property_ is None:
            return _LONGEST_READ
        return min((edits(_stated_text(property_), text) for text, _ in said[property_.path]), default=_LONGEST_READ)


_Rest = tuple[str, int, tuple[str, ...]]
_Named = tuple[MatchPlan, PropertyConstraint | None]


class _Filed:
    """The places of plans by their words, and by what the property says that distinguishes them."""

    __slots__ = ("_by_text", "_reads", "_siblings", "by_word")

    def __init__(self) -> None:
        self.by_word: Layered[str, Rows[str]] = Layered()
        # By the path of the property: how a message's is read, and the words of each plan's with its place.
        self._reads: dict[str, Read] = {}
        self._by_text: dict[str, Rows[tuple[tuple[str, ...], str]]] = {}
        # By the path and words of a key without one of them: that word, and the plan's place.
        self._siblings: Layered[_Rest, Rows[tuple[str, str]]] = Layered()

    @classmethod
    def of(cls, named: Iterable[_Named]) -> _Filed:
        """The places of some plans."""
        found = cls()
        by_word: dict[str, list[str]] = {}
        by_text: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        siblings: dict[_Rest, list[tuple[str, str]]] = {}
        for plan, property_ in named:
            for word in dict.fromkeys(_words_of(_definition_texts(plan))):
                by_word.setdefault(word, []).append(plan.place)
            if property_ is not None:
                found._reads[property_.path] = property_.read
                words = segments(_stated_text(property_))
                by_text.setdefault(property_.path, []).append((words, plan.place))
                for rest, word in _rests(property_.path, words):
                    siblings.setdefault(rest, []).append((word, plan.place))
        found.by_word = Layered({word: rows_of(places) for word, places in by_word.items()})
        found._by_text = {path: rows_of(rows) for path, rows in by_text.items()}
        found._siblings = Layered({rest: rows_of(rows) for rest, rows in siblings.items()})
        return found

    def changed(self, gone: Iterable[_Named], come: Iterable[_Named]) -> _Filed:
        """The places without those of some plans, and with those of some more."""
        found = _Filed()
        found._reads, found._by_text = dict(self._reads), dict(self._by_text)
        by_word, siblings = Changes(self.by_word), Changes(self._siblings)
        for which, change in ((gone, take), (come, put)):
            for plan, property_ in which:
                for word in dict.fromkeys(_words_of(_definition_texts(plan))):
                    by_word.set(word, change(by_word.get(word) or [], plan.place) or GONE)
                if property_ is None:
                    continue
                path, words = property_.path, segments(_stated_text(property_))
                found._reads.setdefault(path, property_.read)
                found._by_text[path] = change(found._by_text.get(path) or [], (words, plan.place))
                for rest, word in _rests(path, words):
                    siblings.set(rest, change(siblings.get(rest) or [], (word, plan.place)) or GONE)
        found.by_word, found._siblings = by_word.made(), siblings.made()
        return found

    def beside(self, observed: Observed) -> Iterator[str]:
        """The plans whose key differs from the message's in one word, those first whose word begins alike."""
        for path, read in self._reads.items():
            for value in read(observed)[:1]:
                for rest, word in _rests(path, segments(canonical(value))):
                    rows = self._siblings.get(rest)
                    if rows is not None:
                        yield from (place for _, place in around(rows, (word, ""), _BESIDE // 2, _BESIDE))

    def around(self, observed: Observed) -> Iterator[str]:
        """The plans whose key begins with the same word, those that stand around the message's in the alphabet."""
        for path, read in self._reads.items():
            for value in read(observed)[:1]:
                words = segments(canonical(value))
                rows = around(self._by_text[path], (words, ""), _BESIDE // 2, _BESIDE)
                yield from (place for own, place in rows if own[:1] == words[:1])


def _rests(path: str, words: tuple[str, ...]) -> Iterator[tuple[_Rest, str]]:
    """The words of a key without each of them, and that one."""
    for at, word in enumerate(words):
        yield (path, at, words[:at] + words[at + 1 :]), word


def _stated_text(constraint: PropertyConstraint) -> str:
    return constraint.constant or ("" if constraint.template is None else constraint.template.text)


def _wrong(judged: Judged, observed: Observed) -> int:
    """How many things are wrong; what could not be tested over another protocol counts, over another version not."""
    misfit, wanted = judged.plan.misfit, judged.plan.compiled
    elsewhere = (
        misfit is not None and misfit.code == "protocol" and _family(wanted.protocol) != _family(observed.protocol)
    )
    return len(judged.problems) + (len(wanted.on_protocol) if elsewhere else 0)


def _family(protocol: str | None) -> str:
    return (protocol or "").partition("/")[0]


def _is_no_event(plan: MatchPlan) -> bool:
    """Whether the plan is for bare events and the definition has no envelope, so that it is never tested."""
    return plan.kind is MessageKind.BARE and plan.misfit is not None


def _definition_texts(plan: MatchPlan) -> Iterator[str]:
    for constraint in plan.compiled.on_envelope + plan.compiled.on_protocol:
        if constraint.constant is not None:
            yield constraint.constant
        elif constraint.template is not None:
            yield from constraint.template.literals


def _message_texts(observed: Observed) -> Iterator[str]:
    yield from (value for value in observed.attributes.values() if isinstance(value, str))
    if observed.message is not None:
        for value in observed.message.fields.values():
            if isinstance(value, str):
                yield value
            elif isinstance(value, dict):
                yield from (member for member in value.values() if isinstance(member, str))
            elif isinstance(value, tuple):
                yield from (_decoded_text(text) for _, text in value if text is not None)


def _decoded_text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value[:_LONGEST_READ].decode(errors="ignore")


def _words_of(texts: Iterable[str]) -> Iterator[str]:
    left = _MOST_WORDS_COMPARED
    for text in texts:
        found = _words(text[:_LONGEST_READ])[:left]
        yield from found
        left -= len(found)
