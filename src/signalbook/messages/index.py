"""Which definitions of a scope a message may be one of: by their keys, and the nearest where none holds.

Rule 1: `KeyIndex` finds the definitions whose key may hold, `SameKey` those of one key that may hold by what else they
say. Both find a superset of what holds, and at the same cost in a small scope and in a large one.
Rule 2: `Neighbours` gives the definitions nearest to a message that none expects, with what each of them misses. Of a
small scope all are judged; of a large one a few whose key differs from the message's in one word, or that share its
rarest words. Of those with equally many problems, the one whose key is most like the message's comes first.
Rule 3: an index is made when the first message asks for it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from signalbook.budget import BYTES, TooMuch
from signalbook.messages.answer import Candidate
from signalbook.messages.compile import Judged, MatchPlan, judge
from signalbook.messages.constraint import JUDGING, SPELLED, PropertyConstraint, Read, judging, texts_of
from signalbook.messages.observe import MessageKind, Observed
from signalbook.protocols.values import canonical
from signalbook.template import Template

__all__ = ["MOST_JUDGED", "KeyIndex", "Neighbours", "SameKey", "TemplateIndex", "edits", "segments", "shared"]

# Finding the templates that a value may match, without trying each.
#
# Rule 1: a template is filed under one word of its text that stands there whole, the rarest one: whatever matches the
# template has that word. One without such a word is filed under the text before its first placeholder.
# Rule 2: the index may give a template that does not match; it never misses one that does.


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

    __slots__ = ("_by_text", "_by_word", "_path", "_plans", "_reads", "_siblings", "_words")

    def __init__(self, plans: Iterable[MatchPlan], path: str | None = None) -> None:
        self._plans = tuple(plan for plan in plans if not _is_no_event(plan))
        self._path = path
        self._by_word: dict[str, list[int]] | None = None
        self._reads: dict[str, Read] = {}
        self._words: dict[PropertyConstraint, tuple[str, ...]] = {}
        self._by_text: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        # By the place and words of a key without one of them: that word, and the plan's number.
        self._siblings: dict[tuple[str, int, tuple[str, ...]], list[tuple[str, int]]] = {}

    def of(self, observed: Observed) -> tuple[Candidate, ...]:
        """The nearest definitions, the one with the fewest problems first."""
        said: dict[str, list[_Text]] = {}
        judged = self._judged(observed)
        ranked = [(_wrong(one, observed), self._unlike(one.plan, observed, said), one) for one in judged]
        ranked.sort(key=lambda row: (row[0], row[1], row[2].xid))
        # How many characters differ is counted for those that may be listed.
        close = [(wrong, self._edits(one.plan, said), unlike, one) for wrong, unlike, one in ranked[:_LIKEST]]
        close.sort(key=lambda row: (row[0], row[1], row[2], row[3].xid))
        return tuple(row[3].candidate() for row in close[:_MOST_LISTED])

    def _judged(self, observed: Observed) -> list[Judged]:
        """What the plans near to a message say of it, as far as its budget goes."""
        budget, payload = judging(), len(observed.payload() or b"") // BYTES
        judged: list[Judged] = []
        try:
            for plan in self.near(observed):
                budget.spend(1 + payload)
                judged.append(judge(plan, observed))
        except TooMuch as error:
            if error.budget.what is not JUDGING:
                raise
        return judged

    def near(self, observed: Observed) -> Sequence[MatchPlan]:
        """All plans where they are few, else those whose key or words are like the message's."""
        if len(self._plans) <= MOST_JUDGED:
            return self._plans
        if self._by_word is None:
            self._by_word = self._filed()
        said: dict[str, list[_Text]] = {}
        found: Counter[int] = Counter()
        for word in dict.fromkeys(_words_of(_message_texts(observed))):
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
            for word in dict.fromkeys(_words_of(_definition_texts(plan))):
                by_word.setdefault(word, []).append(place)
            property_ = self._distinguishing(plan)
            if property_ is not None:
                self._reads[property_.path] = property_.read
                words = segments(_stated_text(property_))
                for at, word in enumerate(words):
                    rest = (property_.path, at, words[:at] + words[at + 1 :])
                    self._siblings.setdefault(rest, []).append((word, place))
                self._by_text.setdefault(property_.path, []).append((words, place))
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


# `SameKey`: the definitions that have one key, distinguished by what else they say.
#
# Rule 1: the property that distinguishes the most of them is looked up, then the next among those that are left.
# Rule 2: where a message lacks the property, those stay that do not need it.


# So few are judged as fast as they are looked up.
_FEW = 3
# How many properties are looked up one after another.
_DEEPEST = 4
# A property that leaves more than this part of the definitions does not distinguish them.
_WORTH = 0.75


class SameKey:
    """Plans with one key."""

    __slots__ = ("_neighbours", "_split", "_used", "plans")

    def __init__(self, plans: Sequence[MatchPlan], used: frozenset[str] = frozenset()) -> None:
        self.plans = plans
        self._used = used
        self._neighbours: Neighbours | None = None
        self._split: _Split | bool | None = len(plans) > _FEW and len(used) < _DEEPEST

    def open_to(self, observed: Observed) -> Sequence[MatchPlan]:
        """Every plan that may hold."""
        split = self._split and self._made()
        if not split:
            return self.plans
        found: list[MatchPlan] = []
        for part in split.parts(observed):
            found += part.open_to(observed)
        return found

    def nearest(self, observed: Observed) -> Sequence[MatchPlan]:
        """Where none holds, the plans that say most like what the message says; at most `MOST_JUDGED`."""
        if len(self.plans) <= MOST_JUDGED:
            return self.plans
        split = self._made()
        said = [] if split is None else list(split.said(observed))
        if said:
            return [plan for part in said for plan in part.nearest(observed)][:MOST_JUDGED]
        if self._neighbours is None:
            self._neighbours = Neighbours(self.plans, None if split is None else split.path)
        return self._neighbours.near(observed) or self.plans[:MOST_JUDGED]

    def _made(self) -> _Split | None:
        if self._split is True:
            self._split = _best_split(self.plans, self._used)
        return self._split or None


class _Split:
    """Plans by the values of one property, those that may be without it, and those that say nothing about it."""

    __slots__ = ("_constants", "_open", "_optional", "_read", "_templates", "path")

    def __init__(self, path: str, plans: Sequence[MatchPlan], used: frozenset[str]) -> None:
        self.path = path
        used |= {path}
        said: dict[tuple[bool, str], list[tuple[PropertyConstraint, MatchPlan]]] = {}
        silent: list[MatchPlan] = []
        optional: list[MatchPlan] = []
        for plan in plans:
            one = _distinguishing_constraints(plan).get(path)
            if one is None:
                silent.append(plan)
                continue
            self._read = one.read
            said.setdefault(_constant_or_template(one), []).append((one, plan))
            if not (one.required or one in plan.key):
                optional.append(plan)
        templates = []
        self._constants: dict[str, SameKey] = {}
        for (is_constant, text), rows in said.items():
            same = SameKey([plan for _, plan in rows], used)
            if is_constant:
                self._constants[text] = same
            else:
                templates.append((rows[0][0].template, same))
        self._templates: TemplateIndex[SameKey] | None = (
            TemplateIndex([(one, same) for one, same in templates if one is not None]) if templates else None
        )
        self._open = SameKey(silent, used)
        self._optional = SameKey(optional, used)

    def parts(self, observed: Observed) -> Iterator[SameKey]:
        """Where every plan that may hold is."""
        if self._open.plans:
            yield self._open
        if self._read(observed):
            yield from self.said(observed)
        elif self._optional.plans:
            yield self._optional

    def said(self, observed: Observed) -> Iterable[SameKey]:
        """Where the plans are that say of the property what the message says."""
        found: dict[SameKey, Any] = {}
        for text in texts_of(self._read(observed)):
            same = self._constants.get(text)
            if same is not None:
                found[same] = None
            if self._templates is not None:
                found |= dict.fromkeys(self._templates.find(text))
        return found


def _distinguishing_constraints(plan: MatchPlan) -> dict[str, PropertyConstraint]:
    """What a plan says that others may say otherwise, by its path; not what has several spellings."""
    return {one.path: one for one in plan.tests if one.is_key and one.type not in SPELLED}


def _constant_or_template(one: PropertyConstraint) -> tuple[bool, str]:
    if one.constant is not None:
        return True, one.constant
    assert one.template is not None
    return False, one.template.text


def _best_split(plans: Sequence[MatchPlan], used: frozenset[str]) -> _Split | None:
    """The plans by the property that leaves the fewest of them for one message; None where all leave too many."""
    sizes: dict[str, dict[tuple[bool, str], int]] = {}
    needed: dict[str, int] = {}
    for plan in plans:
        for path, one in _distinguishing_constraints(plan).items():
            if path not in used:
                of_path, value = sizes.setdefault(path, {}), _constant_or_template(one)
                of_path[value] = of_path.get(value, 0) + 1
                needed[path] = needed.get(path, 0) + (one.required or one in plan.key)
    left = {}
    for path, of_path in sizes.items():
        said = sum(of_path.values())
        left[path] = sum(size * size for size in of_path.values()) / said + len(plans) - said
    best = min(left, key=lambda path: (left[path], -needed[path], path), default=None)
    return None if best is None or left[best] > _WORTH * len(plans) else _Split(best, plans, used)


# `KeyIndex`: the definitions of a scope by what their keys say, for one kind of message.
#
# Rule: what it finds is a superset of what holds; finding it costs the same in a small scope and in a large one.


class KeyIndex:
    """The plans for one kind of message: by what their keys say, and those without a key."""

    __slots__ = ("_lookups", "keyless", "keyless_at_home", "keyless_derived", "neighbours")

    def __init__(self, plans: Iterable[MatchPlan]) -> None:
        plans = tuple(plans)
        self.keyless = tuple(plan for plan in plans if not plan.key and plan.misfit is None)
        self.keyless_derived = tuple(plan for plan in self.keyless if plan.compiled.definition.bases)
        self.keyless_at_home = tuple(plan for plan in self.keyless if plan.is_at_home)
        self.neighbours = Neighbours(plans)
        self._lookups = tuple(_lookups([plan for plan in plans if plan.key]))

    def alone(self, path: str) -> dict[str, MatchPlan]:
        """The plans that are the only one with their constant at a place, and to which none without a key is preferred.

        Such a one derives from it, or is bound to what carries the message where it is not.
        """
        bases = {base for plan in self.keyless_derived for base in plan.derives_from}
        return {
            constant: same[0].plans[0]
            for lookup in self._lookups
            if lookup.path == path
            for constant, same in lookup.constants.items()
            if len(same) == 1 == len(same[0].plans)
            and same[0].plans[0].compiled.definition.identity not in bases
            and (same[0].plans[0].is_at_home or not self.keyless_at_home)
        }

    def is_known_beside(self, path: str, value: str, present: Collection[str]) -> bool:
        """Whether a key that is not a constant at the place may hold, for a value there and the properties present."""
        for lookup in self._lookups:
            if lookup.path != path:
                if lookup.path in present:
                    return True
            elif lookup.templates is not None and any(True for _ in lookup.templates.find(value)):
                return True
        return False

    def find(self, observed: Observed) -> list[SameKey]:
        """Every key that may hold, each once, with its plans."""
        found: list[SameKey] = []
        for lookup in self._lookups:
            lookup.find(observed, found)
        return found if len(found) < 2 else list(dict.fromkeys(found))


class _Lookup:
    """Keys that are looked up by one property."""

    __slots__ = ("_read", "constants", "path", "templates")

    def __init__(self, filed: Sequence[tuple[PropertyConstraint, SameKey]]) -> None:
        self._read: Read = filed[0][0].read
        self.path = filed[0][0].path
        self.constants: dict[str, list[SameKey]] = {}
        templates: list[tuple[Any, SameKey]] = []
        for part, same in filed:
            if part.constant is not None:
                self.constants.setdefault(part.constant, []).append(same)
            else:
                templates.append((part.template, same))
        self.templates: TemplateIndex[SameKey] | None = TemplateIndex(templates) if templates else None

    def find(self, observed: Observed, into: list[SameKey]) -> None:
        """Add every key that may hold."""
        values = self._read(observed)
        for text in texts_of(values) if len(values) > 1 else map(canonical, values):
            into += self.constants.get(text, ())
            if self.templates is not None:
                into += self.templates.find(text)


def _lookups(plans: Sequence[MatchPlan]) -> Iterable[_Lookup]:
    """Each key under the part of it that the fewest other keys have; of equal ones under the longest constant."""
    by_key: dict[tuple[Any, ...], list[MatchPlan]] = {}
    for plan in plans:
        by_key.setdefault(tuple(_signature(part) for part in plan.key), []).append(plan)
    counts = Counter(part for parts in by_key for part in parts)
    by_path: dict[str, list[tuple[PropertyConstraint, SameKey]]] = {}
    for parts, same in by_key.items():
        of_part = dict(zip(parts, same[0].key, strict=True))
        chosen = of_part[min(of_part, key=lambda part: (counts[part], part[1] is None, -len(part[1] or ""), part[0]))]
        by_path.setdefault(chosen.path, []).append((chosen, SameKey(same)))
    return map(_Lookup, by_path.values())


def _signature(part: PropertyConstraint) -> tuple[str, str | None, str, str]:
    """What is the same where two parts of keys say the same."""
    return part.path, part.constant, "" if part.template is None else part.template.text, part.type
