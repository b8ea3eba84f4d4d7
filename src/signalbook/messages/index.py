"""Which definitions of a scope a message may be one of, by their keys.

Rule 1: `KeyIndex` finds the definitions whose key may hold, `SameKey` those of one key that may hold by what else they
say. Both find a superset of what holds, and at the same cost in a small scope and in a large one.
Rule 2: a part of an index is made once, when the first message asks for it; others that ask meanwhile wait.
Rule 3: an index never changes. `changed` gives another at the cost of the plans that differ, and it finds what one made
anew would find.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Any, Generic, TypeVar

from signalbook.messages.compile import MatchPlan
from signalbook.messages.constraint import SPELLED, PropertyConstraint, Read, texts_of
from signalbook.messages.layered import GONE, Changes, Layered, Lock, Rows, duplicate, put, rows_of, take
from signalbook.messages.nearest import MOST_JUDGED, Neighbours
from signalbook.messages.observe import Observed
from signalbook.protocols.values import canonical
from signalbook.template import Template

__all__ = ["KeyIndex", "SameKey", "TemplateIndex"]

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

    __slots__ = ("_by_word", "_counts", "_lengths", "_prefixed")

    def __init__(self, entries: Iterable[tuple[Template, T]]) -> None:
        filed = [(template, entry, tuple(_certain_words(template))) for template, entry in entries]
        counts = Counter(word for _, _, words in filed for word in set(words))
        by_word: dict[str, tuple[T, ...]] = {}
        prefixed: dict[str, tuple[T, ...]] = {}
        for template, entry, words in filed:
            if words:
                _append(by_word, _rarest(words, counts), entry)
            else:
                _append(prefixed, template.literals[0], entry)
        # How many templates have each word, and how many texts before a placeholder each length.
        self._counts: Layered[str, int] = Layered(dict(counts))
        self._by_word: Layered[str, tuple[T, ...]] = Layered(by_word)
        self._prefixed: Layered[str, tuple[T, ...]] = Layered(prefixed)
        self._lengths: dict[int, int] = dict(Counter(map(len, prefixed)))

    def changed(self, gone: Iterable[tuple[Template, T]], come: Iterable[tuple[Template, T]]) -> TemplateIndex[T]:
        """The index without some templates, and with some more."""
        found: TemplateIndex[T] = TemplateIndex(())
        counts, by_word, prefixed = Changes(self._counts), Changes(self._by_word), Changes(self._prefixed)
        for template, entry in gone:
            words = dict.fromkeys(_certain_words(template))
            for word in words:
                counts.set(word, (counts.get(word) or 0) - 1 or GONE)
                _leave_out(by_word, word, entry)
            if not words:
                _leave_out(prefixed, template.literals[0], entry)
        for template, entry in come:
            words = dict.fromkeys(_certain_words(template))
            for word in words:
                counts.set(word, (counts.get(word) or 0) + 1)
            into, text = (
                (by_word, min(words, key=lambda word: (counts.get(word) or 0, word)))
                if words
                else (prefixed, template.literals[0])
            )
            into.set(text, (*(into.get(text) or ()), entry))
        found._counts, found._by_word, found._prefixed = counts.made(), by_word.made(), prefixed.made()
        found._lengths = dict(self._lengths)
        for prefix in prefixed.changes:
            more = (prefix in found._prefixed) - (prefix in self._prefixed)
            found._lengths[len(prefix)] = found._lengths.get(len(prefix), 0) + more
        return found

    def find(self, value: str) -> Iterator[T]:
        """What belongs to the templates that the value may match."""
        if self._by_word:
            for word in dict.fromkeys(_words(value)[:_MOST_WORDS]):
                yield from self._by_word.get(word, ())
        for length, texts in self._lengths.items():
            if texts and length <= len(value):
                yield from self._prefixed.get(value[:length], ())


def _append(into: dict[str, tuple[T, ...]], text: str, entry: T) -> None:
    into[text] = (*into.get(text, ()), entry)


def _rarest(words: Iterable[str], counts: Mapping[str, int]) -> str:
    return min(words, key=lambda word: (counts[word], word))


def _leave_out(into: Changes[str, tuple[T, ...]], text: str, entry: T) -> None:
    held = into.get(text)
    if held and entry in held:
        into.set(text, tuple(one for one in held if one is not entry) or GONE)


def _certain_words(template: Template) -> Iterator[str]:
    last = len(template.literals) - 1
    for place, literal in enumerate(template.literals):
        for found in _whole_words(literal):
            touches_before = found.start() == 0 and place > 0
            touches_after = found.end() == len(literal) and place < last
            if not touches_before and not touches_after:
                yield found[0]


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

    __slots__ = ("_held", "_lock", "_neighbours", "_sizes", "_split", "_used", "first")

    def __init__(self, held: Rows[tuple[str, MatchPlan]], lock: Lock, used: frozenset[str] = frozenset()) -> None:
        self._held = held
        self._lock = lock
        self._used = used
        self._neighbours: Neighbours | None = None
        self._sizes: _Sizes | None = None
        self._split: _Split | bool | None = len(held) > _FEW and len(used) < _DEEPEST
        self.first: MatchPlan | None = next((plan for _, plan in held), None)
        """One of them; None where there is none."""

    @classmethod
    def of_plans(cls, plans: Iterable[MatchPlan], lock: Lock, used: frozenset[str] = frozenset()) -> SameKey:
        """Some plans that have one key."""
        return cls(rows_of((plan.place, plan) for plan in plans), lock, used)

    def __len__(self) -> int:
        return len(self._held)

    @property
    def plans(self) -> Sequence[MatchPlan]:
        """All of them, in the order of their places."""
        return [plan for _, plan in self._held]

    def changed(self, gone: Iterable[MatchPlan], come: Iterable[MatchPlan]) -> SameKey:
        """The same key without some plans, and with some more."""
        gone, come, held = list(gone), list(come), self._held
        for plan in gone:
            held = take(held, (plan.place,))
        for plan in come:
            held = put(held, (plan.place, plan))
        found = SameKey(held, self._lock, self._used)
        if self._sizes is None or len(held) <= MOST_JUDGED:
            return found
        found._sizes = self._sizes.changed(gone, come)
        if isinstance(self._split, _Split) and self._split.path == found._sizes.best():
            found._split = self._split.changed(gone, come)
            if self._neighbours is not None:
                found._neighbours = self._neighbours.changed(gone, come)
        return found

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
        if len(self) <= MOST_JUDGED:
            return [plan for _, plan in self._held]
        split = self._made()
        said = [] if split is None else list(split.said(observed))
        if said:
            return [plan for part in said for plan in part.nearest(observed)][:MOST_JUDGED]
        if self._neighbours is None:
            with self._lock:
                if self._neighbours is None:
                    path = None if split is None else split.path
                    self._neighbours = Neighbours.of_plans(
                        Layered({plan.place: plan for plan in self.plans}), path, self._lock
                    )
        return self._neighbours.near(observed) or [plan for _, plan in islice(self._held, MOST_JUDGED)]

    def _made(self) -> _Split | None:
        if self._split is True:
            with self._lock:
                if self._split is True:
                    sizes = self._sizes or _Sizes.of(self.plans, self._used)
                    best = sizes.best()
                    self._sizes = sizes if len(self) > MOST_JUDGED else None
                    self._split = None if best is None else _Split.of(best, self.plans, self._lock, self._used)
        return self._split or None


class _Split:
    """Plans by the values of one property, those that may be without it, and those that say nothing about it."""

    __slots__ = ("_by_template", "_constants", "_lock", "_open", "_optional", "_read", "_templates", "_used", "path")

    def __init__(self, path: str, lock: Lock, used: frozenset[str]) -> None:
        self.path = path
        self._lock = lock
        self._used = used | {path}
        self._read: Read = lambda observed: ()
        self._constants: Layered[str, SameKey] = Layered()
        # Those of templates by their text, and to find them by a value.
        self._by_template: Layered[str, tuple[Template, SameKey]] = Layered()
        self._templates: TemplateIndex[SameKey] | None = None
        self._open = SameKey([], lock, self._used)
        self._optional = SameKey([], lock, self._used)

    @classmethod
    def of(cls, path: str, plans: Iterable[MatchPlan], lock: Lock, used: frozenset[str]) -> _Split:
        """The plans by the property at a path."""
        found = cls(path, lock, used)
        said: dict[tuple[bool, str], list[tuple[PropertyConstraint, MatchPlan]]] = {}
        silent: list[MatchPlan] = []
        optional: list[MatchPlan] = []
        for plan in plans:
            one = _distinguishing_constraints(plan).get(path)
            if one is None:
                silent.append(plan)
                continue
            found._read = one.read
            said.setdefault(_constant_or_template(one), []).append((one, plan))
            if _may_lack(one, plan):
                optional.append(plan)
        constants: dict[str, SameKey] = {}
        templates: dict[str, tuple[Template, SameKey]] = {}
        for (is_constant, text), rows in said.items():
            same = SameKey.of_plans((plan for _, plan in rows), lock, found._used)
            template = rows[0][0].template
            if is_constant:
                constants[text] = same
            elif template is not None:
                templates[text] = (template, same)
        found._constants, found._by_template = Layered(constants), Layered(templates)
        found._templates = TemplateIndex(templates.values()) if templates else None
        found._open = SameKey.of_plans(silent, lock, found._used)
        found._optional = SameKey.of_plans(optional, lock, found._used)
        return found

    def changed(self, gone: Iterable[MatchPlan], come: Iterable[MatchPlan]) -> _Split:
        """The same without some plans, and with some more."""
        found = duplicate(self)
        silent, optional = _Moved(), _Moved()
        said: dict[tuple[bool, str], _Moved] = {}
        templates: dict[str, Template] = {}
        for plan, is_gone in (*((plan, True) for plan in gone), *((plan, False) for plan in come)):
            one = _distinguishing_constraints(plan).get(self.path)
            if one is None:
                silent.add(plan, is_gone)
                continue
            value = _constant_or_template(one)
            said.setdefault(value, _Moved()).add(plan, is_gone)
            if one.template is not None:
                templates[value[1]] = one.template
            if _may_lack(one, plan):
                optional.add(plan, is_gone)
        found._open = silent.applied(self._open)
        found._optional = optional.applied(self._optional)
        constants: dict[str, SameKey] = {}
        by_template: dict[str, tuple[Template, SameKey]] = {}
        for (is_constant, text), moved in said.items():
            known = self._by_template.get(text) if not is_constant else None
            before = self._constants.get(text) if is_constant else known and known[1]
            same = moved.applied(before or SameKey([], self._lock, self._used))
            if is_constant:
                constants[text] = same if len(same) else GONE
            else:
                by_template[text] = (templates[text], same) if len(same) else GONE
        found._constants = self._constants.changed(constants)
        found._by_template = self._by_template.changed(by_template)
        if by_template:
            found._templates = (self._templates or TemplateIndex(())).changed(
                [row for text in by_template if (row := self._by_template.get(text)) is not None],
                [row for text in by_template if (row := found._by_template.get(text)) is not None],
            )
        return found

    def parts(self, observed: Observed) -> Iterator[SameKey]:
        """Where every plan that may hold is."""
        if len(self._open):
            yield self._open
        if self._read(observed):
            yield from self.said(observed)
        elif len(self._optional):
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


class _Moved:
    """Plans that leave some with one key, and plans that come to them."""

    __slots__ = ("come", "gone")

    def __init__(self) -> None:
        self.gone: list[MatchPlan] = []
        self.come: list[MatchPlan] = []

    def add(self, plan: MatchPlan, is_gone: bool) -> None:
        """Note a plan."""
        (self.gone if is_gone else self.come).append(plan)

    def applied(self, same: SameKey) -> SameKey:
        """The same key after that."""
        return same.changed(self.gone, self.come) if self.gone or self.come else same


def _distinguishing_constraints(plan: MatchPlan) -> dict[str, PropertyConstraint]:
    """What a plan says that others may say otherwise, by its path; not what has several spellings."""
    return {one.path: one for one in plan.tests if one.is_key and one.type not in SPELLED}


def _may_lack(one: PropertyConstraint, plan: MatchPlan) -> bool:
    """Whether a message of a plan may be without a property."""
    return not (one.required or one in plan.key)


def _constant_or_template(one: PropertyConstraint) -> tuple[bool, str]:
    if one.constant is not None:
        return True, one.constant
    assert one.template is not None
    return False, one.template.text


class _Sizes:
    """How many plans say what, by the property: which of them distinguishes plans best."""

    __slots__ = ("_needed", "_said", "_squares", "_used", "_values", "count")

    def __init__(self, used: frozenset[str]) -> None:
        self._used = used
        self.count = 0
        # By the path: how many plans say each value, how many say any, the sum of the squares, how many need it.
        self._values: dict[str, Layered[tuple[bool, str], int]] = {}
        self._said: dict[str, int] = {}
        self._squares: dict[str, int] = {}
        self._needed: dict[str, int] = {}

    @classmethod
    def of(cls, plans: Iterable[MatchPlan], used: frozenset[str]) -> _Sizes:
        """The sizes of some plans, without the properties that are used already."""
        return cls(used).changed((), plans)

    def changed(self, gone: Iterable[MatchPlan], come: Iterable[MatchPlan]) -> _Sizes:
        """The sizes without some plans, and with some more."""
        found = _Sizes(self._used)
        found.count = self.count
        found._said, found._squares, found._needed = dict(self._said), dict(self._squares), dict(self._needed)
        values: dict[str, Changes[tuple[bool, str], int]] = {}
        for which, step in ((gone, -1), (come, 1)):
            for plan in which:
                found.count += step
                for path, one in _distinguishing_constraints(plan).items():
                    if path in self._used:
                        continue
                    value = _constant_or_template(one)
                    changes = values.get(path)
                    if changes is None:
                        changes = values[path] = Changes(self._values.get(path) or Layered())
                    size = changes.get(value) or 0
                    changes.set(value, size + step or GONE)
                    found._said[path] = found._said.get(path, 0) + step
                    found._squares[path] = found._squares.get(path, 0) + (size + step) ** 2 - size**2
                    found._needed[path] = found._needed.get(path, 0) + step * (not _may_lack(one, plan))
        found._values = {**self._values, **{path: changes.made() for path, changes in values.items()}}
        return found

    def best(self) -> str | None:
        """The property that leaves the fewest plans for one message; None where all leave too many."""
        left = {path: self._squares[path] / said + self.count - said for path, said in self._said.items() if said}
        best = min(left, key=lambda path: (left[path], -self._needed[path], path), default=None)
        return None if best is None or left[best] > _WORTH * self.count else best


# `KeyIndex`: the definitions of a scope by what their keys say, for one kind of message.
#
# Rule: what it finds is a superset of what holds; finding it costs the same in a small scope and in a large one.


class KeyIndex:
    """The plans for one kind of message: by what their keys say, and those without a key."""

    __slots__ = ("_counts", "_lock", "_lookups", "keyless", "keyless_at_home", "keyless_derived", "neighbours", "plans")

    def __init__(self, plans: Iterable[MatchPlan], lock: Lock | None = None) -> None:
        self._lock: Lock = lock or nullcontext()
        plans = tuple(plans)
        self.plans: Layered[str, MatchPlan] = Layered({plan.place: plan for plan in plans})
        self.neighbours = Neighbours.of_plans(self.plans, None, self._lock)
        self._without_key(plan for plan in plans if not plan.key and plan.misfit is None)
        by_key: dict[tuple[Any, ...], list[MatchPlan]] = {}
        for plan in plans:
            if plan.key:
                by_key.setdefault(_signatures(plan), []).append(plan)
        counts = Counter(part for parts in by_key for part in parts)
        filed: dict[str, list[tuple[PropertyConstraint, SameKey]]] = {}
        for parts, held in by_key.items():
            chosen = _chosen(parts, held[0], counts)
            filed.setdefault(chosen.path, []).append((chosen, SameKey.of_plans(held, self._lock)))
        # How many keys have each part, of those that have several: under the rarest of them a key is looked up.
        several = {part: counts[part] for parts in by_key if len(parts) > 1 for part in parts}
        self._counts: Layered[_Signature, int] = Layered(several)
        self._lookups: dict[str, _Lookup] = {path: _Lookup.of(rows) for path, rows in filed.items()}

    def _without_key(self, plans: Iterable[MatchPlan]) -> None:
        self.keyless = tuple(plans)
        self.keyless_derived = tuple(plan for plan in self.keyless if plan.compiled.definition.bases)
        self.keyless_at_home = tuple(plan for plan in self.keyless if plan.is_at_home)

    def changed(self, gone: Sequence[MatchPlan], come: Sequence[MatchPlan]) -> KeyIndex:
        """The index without some of its plans, and with some more."""
        found = duplicate(self)
        found.plans = self.plans.changed({**{plan.place: GONE for plan in gone}, **{plan.place: plan for plan in come}})
        found.neighbours = self.neighbours.changed(gone, come)
        if any(not plan.key for plan in (*gone, *come)):
            left = set(gone)
            kept = [plan for plan in self.keyless if plan not in left]
            found._without_key((*kept, *(plan for plan in come if not plan.key and plan.misfit is None)))
        moved: dict[tuple[_Signature, ...], _Moved] = {}
        for plan, is_gone in (*((plan, True) for plan in gone), *((plan, False) for plan in come)):
            if plan.key:
                moved.setdefault(_signatures(plan), _Moved()).add(plan, is_gone)
        counts = Changes(self._counts)
        changes: dict[str, list[tuple[PropertyConstraint, SameKey | None, SameKey | None]]] = {}
        for parts, plans in moved.items():
            one = (plans.gone or plans.come)[0]
            before = self._with_key(parts, one)
            if before is None:
                self._count(counts, parts, 1)
                part = _chosen(parts, one, _Read(counts))
                same: SameKey | None = SameKey.of_plans(plans.come, self._lock)
                changes.setdefault(part.path, []).append((part, None, same))
                continue
            part, known = before
            same = plans.applied(known)
            if not len(same):
                self._count(counts, parts, -1)
                same = None
            changes.setdefault(part.path, []).append((part, known, same))
        found._counts = counts.made()
        found._lookups = dict(self._lookups)
        for path, rows in changes.items():
            lookup = self._lookups.get(path)
            found._lookups[path] = (lookup or _Lookup(rows[0][0])).changed(rows)
        return found

    def _with_key(self, parts: tuple[_Signature, ...], plan: MatchPlan) -> tuple[PropertyConstraint, SameKey] | None:
        """The plans that have a key, and the part under which they are looked up."""
        for part in plan.key:
            lookup = self._lookups.get(part.path)
            for same in () if lookup is None else lookup.of_part(part):
                if same.first is not None and _signatures(same.first) == parts:
                    return part, same
        return None

    def _count(self, counts: Changes[_Signature, int], parts: tuple[_Signature, ...], step: int) -> None:
        for part in parts if len(parts) > 1 else ():
            counts.set(part, max(0, (counts.get(part) or 0) + step) or GONE)

    def alone(self, path: str, constant: str) -> MatchPlan | None:
        """The plan that is the only one with a constant at a place, and to which none without a key is preferred.

        Such a one derives from it, or is bound to what carries the message where it is not.
        """
        lookup = self._lookups.get(path)
        same = () if lookup is None else lookup.constants.get(constant, ())
        plan = same[0].first if len(same) == 1 == len(same[0]) else None
        if plan is None or not (plan.is_at_home or not self.keyless_at_home):
            return None
        identity = plan.compiled.definition.identity
        return None if any(identity in one.derives_from for one in self.keyless_derived) else plan

    def is_known_beside(self, path: str, value: str, present: Collection[str]) -> bool:
        """Whether a key that is not a constant at the place may hold, for a value there and the properties present."""
        for lookup in self._lookups.values():
            if not lookup:
                continue
            if lookup.path != path:
                if lookup.path in present:
                    return True
            elif lookup.templates is not None and any(True for _ in lookup.templates.find(value)):
                return True
        return False

    def find(self, observed: Observed) -> list[SameKey]:
        """Every key that may hold, each once, with its plans."""
        found: list[SameKey] = []
        for lookup in self._lookups.values():
            lookup.find(observed, found)
        return found if len(found) < 2 else list(dict.fromkeys(found))


class _Lookup:
    """Keys that are looked up by one property."""

    __slots__ = ("_read", "_texts", "constants", "path", "templates")

    def __init__(self, part: PropertyConstraint) -> None:
        self._read: Read = part.read
        self.path = part.path
        self.constants: Layered[str, tuple[SameKey, ...]] = Layered()
        # Those of templates by their text, and to find them by a value.
        self._texts: Layered[str, tuple[SameKey, ...]] = Layered()
        self.templates: TemplateIndex[SameKey] | None = None

    @classmethod
    def of(cls, filed: Sequence[tuple[PropertyConstraint, SameKey]]) -> _Lookup:
        """The keys that have some parts."""
        found = cls(filed[0][0])
        constants: dict[str, tuple[SameKey, ...]] = {}
        texts: dict[str, tuple[SameKey, ...]] = {}
        templates: list[tuple[Template, SameKey]] = []
        for part, same in filed:
            if part.constant is not None:
                _append(constants, part.constant, same)
            elif part.template is not None:
                _append(texts, part.template.text, same)
                templates.append((part.template, same))
        found.constants, found._texts = Layered(constants), Layered(texts)
        found.templates = TemplateIndex(templates) if templates else None
        return found

    def __len__(self) -> int:
        return len(self.constants) + len(self._texts)

    def changed(self, rows: Iterable[tuple[PropertyConstraint, SameKey | None, SameKey | None]]) -> _Lookup:
        """The same with other plans for some keys, without some keys, or with some more."""
        found = duplicate(self)
        constants, texts = Changes(self.constants), Changes(self._texts)
        gone: list[tuple[Template, SameKey]] = []
        come: list[tuple[Template, SameKey]] = []
        for part, before, after in rows:
            is_constant = part.constant is not None
            text = part.constant if part.constant is not None else part.template.text if part.template else ""
            into = constants if is_constant else texts
            held = [one for one in into.get(text) or () if one is not before]
            into.set(text, (*held, *(() if after is None else (after,))) or GONE)
            if part.template is not None and not is_constant:
                gone += [] if before is None else [(part.template, before)]
                come += [] if after is None else [(part.template, after)]
        found.constants, found._texts = constants.made(), texts.made()
        if gone or come:
            found.templates = (self.templates or TemplateIndex(())).changed(gone, come)
        return found

    def of_part(self, part: PropertyConstraint) -> tuple[SameKey, ...]:
        """The keys that are looked up by what a part says."""
        if part.constant is not None:
            return self.constants.get(part.constant, ())
        return () if part.template is None else self._texts.get(part.template.text, ())

    def find(self, observed: Observed, into: list[SameKey]) -> None:
        """Add every key that may hold."""
        values = self._read(observed)
        for text in texts_of(values) if len(values) > 1 else map(canonical, values):
            into += self.constants.get(text, ())
            if self.templates is not None:
                into += self.templates.find(text)


_Signature = tuple[str, str | None, str, str]


class _Read:
    """Changes as a map to look numbers up in; what is not known is none."""

    __slots__ = ("_of",)

    def __init__(self, of: Changes[_Signature, int]) -> None:
        self._of = of

    def __getitem__(self, key: _Signature) -> int:
        return self._of.get(key) or 0


def _chosen(
    parts: tuple[_Signature, ...], plan: MatchPlan, counts: Mapping[_Signature, int] | _Read
) -> PropertyConstraint:
    """The part of a key that the fewest other keys have; of equal ones the longest constant."""
    of_part = dict(zip(parts, plan.key, strict=True))
    if len(of_part) == 1:
        return plan.key[0]
    return of_part[min(of_part, key=lambda part: (counts[part], part[1] is None, -len(part[1] or ""), part[0]))]


def _signatures(plan: MatchPlan) -> tuple[_Signature, ...]:
    return tuple(_signature(part) for part in plan.key)


def _signature(part: PropertyConstraint) -> _Signature:
    """What is the same where two parts of keys say the same."""
    return part.path, part.constant, "" if part.template is None else part.template.text, part.type
