"""`SameKey`: the definitions that have one key, told apart by what else they say.

Rule 1: the property that tells the most of them apart is looked up, then the next among those that are left; so a
message is judged by those that it may be one of, however many share its key.
Rule 2: what is found is a superset of what holds: where a message lacks the property, those stay that do not need it.
Rule 3: an index is made when the first message asks for it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from signalbook.messages.compile import Plan
from signalbook.messages.constraint import SPELLED, Constraint, Read, texts_of
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


# So few are judged as fast as they are looked up.
_FEW = 3
# How many properties are looked up one after another.
_DEEPEST = 4
# A property that leaves more than this part of the definitions does not tell them apart.
_WORTH = 0.75


class SameKey:
    """Plans with one key."""

    __slots__ = ("_neighbours", "_split", "_used", "plans")

    def __init__(self, plans: Sequence[Plan], used: frozenset[str] = frozenset()) -> None:
        self.plans = plans
        self._used = used
        self._neighbours: Neighbours | None = None
        self._split: _Split | bool | None = len(plans) > _FEW and len(used) < _DEEPEST

    def open_to(self, observed: Observed) -> Sequence[Plan]:
        """Every plan that may hold."""
        split = self._split and self._made()
        if not split:
            return self.plans
        found: list[Plan] = []
        for part in split.parts(observed):
            found += part.open_to(observed)
        return found

    def nearest(self, observed: Observed) -> Sequence[Plan]:
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
            self._split = _most_telling(self.plans, self._used)
        return self._split or None


class _Split:
    """Plans by the values of one property, those that may be without it, and those that say nothing about it."""

    __slots__ = ("_constants", "_open", "_optional", "_read", "_templates", "path")

    def __init__(self, path: str, plans: Sequence[Plan], used: frozenset[str]) -> None:
        self.path = path
        used |= {path}
        said: dict[tuple[bool, str], list[tuple[Constraint, Plan]]] = {}
        silent: list[Plan] = []
        optional: list[Plan] = []
        for plan in plans:
            one = _telling(plan).get(path)
            if one is None:
                silent.append(plan)
                continue
            self._read = one.read
            said.setdefault(_value(one), []).append((one, plan))
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


def _telling(plan: Plan) -> dict[str, Constraint]:
    """What a plan says that others may say otherwise, by its path; not what has several spellings."""
    return {one.path: one for one in plan.tests if one.is_key and one.type not in SPELLED}


def _value(one: Constraint) -> tuple[bool, str]:
    if one.constant is not None:
        return True, one.constant
    assert one.template is not None
    return False, one.template.text


def _most_telling(plans: Sequence[Plan], used: frozenset[str]) -> _Split | None:
    """The plans by the property that leaves the fewest of them for a message of one; None where none tells enough."""
    sizes: dict[str, dict[tuple[bool, str], int]] = {}
    needed: dict[str, int] = {}
    for plan in plans:
        for path, one in _telling(plan).items():
            if path not in used:
                of_path, value = sizes.setdefault(path, {}), _value(one)
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

    def __init__(self, plans: Iterable[Plan]) -> None:
        plans = tuple(plans)
        self.keyless = tuple(plan for plan in plans if not plan.key and plan.misfit is None)
        self.keyless_derived = tuple(plan for plan in self.keyless if plan.compiled.definition.bases)
        self.keyless_at_home = tuple(plan for plan in self.keyless if plan.is_at_home)
        self.neighbours = Neighbours(plans)
        self._lookups = tuple(_lookups([plan for plan in plans if plan.key]))

    def alone(self, path: str) -> dict[str, Plan]:
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

    def __init__(self, filed: Sequence[tuple[Constraint, SameKey]]) -> None:
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


def _lookups(plans: Sequence[Plan]) -> Iterable[_Lookup]:
    """Each key under the part of it that the fewest other keys have; of equal ones under the longest constant."""
    by_key: dict[tuple[Any, ...], list[Plan]] = {}
    for plan in plans:
        by_key.setdefault(tuple(_signature(part) for part in plan.key), []).append(plan)
    counts = Counter(part for parts in by_key for part in parts)
    by_path: dict[str, list[tuple[Constraint, SameKey]]] = {}
    for parts, same in by_key.items():
        of_part = dict(zip(parts, same[0].key, strict=True))
        chosen = of_part[min(of_part, key=lambda part: (counts[part], part[1] is None, -len(part[1] or ""), part[0]))]
        by_path.setdefault(chosen.path, []).append((chosen, SameKey(same)))
    return map(_Lookup, by_path.values())


def _signature(part: Constraint) -> tuple[str, str | None, str, str]:
    """What is the same where two parts of keys say the same."""
    return part.path, part.constant, "" if part.template is None else part.template.text, part.type
