"""XML Schema compatibility: which documents of the one schema are documents of the other.

Rule 1: backward holds where every document that the older schema takes is taken by the newer one, forward where the
reverse does. No registry publishes rules for XSD, so it is XSD's own idea of restriction that is followed: contained
content, contained values, element by element. What does not show in a document (defaults, annotations, the names of
types) is not a difference.
Rule 2: what cannot be decided is said to be uncertain, in each direction it might break.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from signalbook.schemas.format import BREAKS_BOTH, MOST_STEPS, Difference, Direction, StepBudget
from signalbook.schemas.xsd.containment import allows, compare_simple, contained, elements_of, occurrences, wildcards_of
from signalbook.schemas.xsd.model import Complex, Components, Element, Particle, Simple, Type, XsdAttribute, local
from signalbook.schemas.xsd.read import XS

if TYPE_CHECKING:
    from signalbook.schemas.xsd.schema import XsdSchema

__all__ = ["compare"]

_BACKWARD: frozenset[Direction] = frozenset({"backward"})
_FORWARD: frozenset[Direction] = frozenset({"forward"})
_EACH_TYPE = 20
_NAMES_A_STEP = 4
_ANY = XS + "anyType"


def compare(older: XsdSchema, newer: XsdSchema, budget: StepBudget | None = None) -> Iterator[Difference]:
    """Yield what differs between two schemas, and which promise each difference breaks."""
    return _XsdComparison(older.components, newer.components, budget or StepBudget(MOST_STEPS)).roots(
        older.root, newer.root
    )


class _XsdComparison:
    """Walks two schemas from the elements that a document may begin with; each pair of types is looked at once."""

    def __init__(self, old: Components, new: Components, budget: StepBudget) -> None:
        self._old, self._new = old, new
        self._budget = budget
        self._seen: set[tuple[int, int]] = set()
        self._substituted: set[tuple[str, str]] = set()
        self._kept: list[Type] = []  # so that no id is given twice
        self._stack: list[tuple[Type, Type, str]] = []

    def roots(self, old_root: str, new_root: str) -> Iterator[Difference]:
        before = {name: one for name, one in self._old.elements.items() if old_root in ("", name) and not one.abstract}
        after = {name: one for name, one in self._new.elements.items() if new_root in ("", name) and not one.abstract}
        for name in before.keys() - after.keys():
            words = f"no document may begin with {name} any more"
            yield Difference(f"/{local(name)}", "root_removed", words, _BACKWARD)
        for name in after.keys() - before.keys():
            yield Difference(f"/{local(name)}", "root_added", f"a document may begin with {name} now", _FORWARD)
        for name in sorted(before.keys() & after.keys()):
            yield from self._elements(before[name], after[name], f"/{local(name)}")
        while self._stack:
            yield from self._types(*self._stack.pop())

    # ---- elements

    def _elements(self, old: Element, new: Element, path: str) -> Iterator[Difference]:
        if old.nillable != new.nillable:
            words = f"the element may {'now' if new.nillable else 'no longer'} be nil"
            yield Difference(path, "nillable_changed", words, _FORWARD if new.nillable else _BACKWARD)
        if old.fixed != new.fixed:
            yield _fixed(old.fixed, new.fixed, path)
        for texts, kind, breaks in (
            (set(new.constraints) - set(old.constraints), "added", _BACKWARD),
            (set(old.constraints) - set(new.constraints), "removed", _FORWARD),
        ):
            if texts:
                yield Difference(path, f"constraint_{kind}", f"an identity constraint is {kind}", breaks, certain=False)
        yield from self._substitutions(old.type, new.type, path)
        self._stack.append((old.type, new.type, path))

    def _substitutions(self, old: Type, new: Type, path: str) -> Iterator[Difference]:
        """Yield which types `xsi:type` may name in the one and not in the other."""
        if (old.name, new.name) in self._substituted:
            return
        self._substituted.add((old.name, new.name))
        before, after = self._old.derived(old.name), self._new.derived(new.name)
        self._budget.spend((len(before) + len(after)) // _NAMES_A_STEP)
        for names, kind, breaks in ((before - after, "removed", _BACKWARD), (after - before, "added", _FORWARD)):
            if names and isinstance(old, Complex) and isinstance(new, Complex):
                words = f"a derived type that xsi:type may name is {kind}: {', '.join(sorted(map(local, names)))}"
                yield Difference(path, f"derived_type_{kind}", words, breaks, certain=False)
        for name in sorted(before & after):
            self._stack.append((self._old.type(name), self._new.type(name), f"{path}/({local(name)})"))

    # ---- types

    def _types(self, old: Type, new: Type, path: str) -> Iterator[Difference]:
        pair = (id(old), id(new))
        if pair in self._seen:
            return
        self._seen.add(pair)
        self._budget.spend(_EACH_TYPE + (_size(old) + _size(new)) // _NAMES_A_STEP)
        self._kept += (old, new)
        if old.name == new.name == _ANY:
            return
        if _ANY in (old.name, new.name):
            wider = new.name == _ANY
            words = "the type becomes xs:anyType" if wider else "the type is no longer xs:anyType"
            yield Difference(
                path, "type_widened" if wider else "type_narrowed", words, _FORWARD if wider else _BACKWARD
            )
        elif isinstance(old, Simple) and isinstance(new, Simple):
            yield from compare_simple(old, new, path)
        else:
            yield from self._complex(_as_complex(old), _as_complex(new), path)

    def _complex(self, old: Complex, new: Complex, path: str) -> Iterator[Difference]:
        if old.abstract != new.abstract:
            words = f"the type is {'now' if new.abstract else 'no longer'} abstract"
            yield Difference(path, "abstract_changed", words, _BACKWARD if new.abstract else _FORWARD, certain=False)
        yield from self._attributes(old, new, path)
        if (old.simple is None) != (new.simple is None):
            yield Difference(path, "content_kind_changed", "a value becomes elements, or the reverse", BREAKS_BOTH)
            return
        if old.simple is not None and new.simple is not None:
            yield from compare_simple(old.simple, new.simple, path)
            return
        if old.mixed != new.mixed:
            words = f"text is {'now' if new.mixed else 'no longer'} taken among the elements"
            yield Difference(path, "mixed_changed", words, _FORWARD if new.mixed else _BACKWARD)
        yield from self._contents(old.content, new.content, path)

    # ---- attributes

    def _attributes(self, old: Complex, new: Complex, path: str) -> Iterator[Difference]:
        for name in sorted(old.attributes.keys() | new.attributes.keys()):
            before, after = old.attributes.get(name), new.attributes.get(name)
            place = f"{path}/@{local(name)}"
            if before is not None and after is not None:
                yield from _attribute(before, after, place)
            elif after is not None:
                yield from _one_sided(after, old, place, "added", _FORWARD, _BACKWARD)
            elif before is not None:
                yield from _one_sided(before, new, place, "removed", _BACKWARD, _FORWARD)
        if old.wildcard == new.wildcard:
            return
        if old.wildcard is None or new.wildcard is None:
            wider = old.wildcard is None
            words = f"attributes that are not declared are {'now' if wider else 'no longer'} taken"
            yield Difference(path, "wildcard_" + ("added" if wider else "removed"), words,
                             _FORWARD if wider else _BACKWARD)  # fmt: skip
        else:
            words = "which attributes are taken without a declaration changes"
            yield Difference(path, "wildcard_changed", words, BREAKS_BOTH, certain=False)

    # ---- content

    def _contents(self, old: Particle | None, new: Particle | None, path: str) -> Iterator[Difference]:
        broken: set[Direction] = set()
        unknown: set[Direction] = set()
        sides: list[tuple[Direction, bool | None]] = [
            ("backward", contained(old, new, self._budget)),
            ("forward", contained(new, old, self._budget)),
        ]
        for direction, holds in sides:
            (unknown if holds is None else broken if not holds else set()).add(direction)
        named: set[Direction] = set()
        for found in _occurrences(old, new, path):
            breaks = found.breaks & frozenset(broken)
            if breaks:
                named |= breaks
                yield Difference(found.path, found.kind, found.message, breaks)
        if broken - named:
            words = "the order or the grouping of the elements changes"
            yield Difference(path, "content_changed", words, frozenset(broken - named))
        if unknown:
            words = "the content model is too large to be compared"
            yield Difference(path, "content_unknown", words, frozenset(unknown), certain=False)
        yield from self._wildcards(old, new, path)
        before, after = elements_of(old), elements_of(new)
        for name, element in before.items():
            if name in after:
                yield from self._elements(element, after[name], f"{path}/{local(name)}")

    def _wildcards(self, old: Particle | None, new: Particle | None, path: str) -> Iterator[Difference]:
        """Yield where the one declares what the other takes without a declaration: what it holds may not fit."""
        sides: list[tuple[Particle | None, Particle | None, frozenset[Direction], frozenset[Direction]]] = [
            (old, new, _BACKWARD, _FORWARD),
            (new, old, _FORWARD, _BACKWARD),
        ]
        for loose, strict, there, back in sides:
            declared = elements_of(strict).keys() - elements_of(loose).keys()
            for wildcard in sorted(wildcards_of(loose), key=str):
                for name in sorted(name for name in declared if allows(wildcard, name)):
                    words = f"{local(name)} is declared on one side and taken undeclared on the other"
                    breaks = there if wildcard.process == "skip" else there | back  # else it may be declared elsewhere
                    yield Difference(f"{path}/{local(name)}", "wildcard_declared", words, breaks, certain=False)
        before = {one.process for one in wildcards_of(old)}
        after = {one.process for one in wildcards_of(new)}
        if before and after and before != after:
            words = "how strictly undeclared elements are judged changes"
            yield Difference(path, "wildcard_changed", words, BREAKS_BOTH, certain=False)


def _size(one: Type) -> int:
    if isinstance(one, Complex):
        return len(one.attributes)
    return len(one.enumeration or ()) + len(one.members) + sum(map(len, one.patterns))


def _as_complex(one: Type) -> Complex:
    return one if isinstance(one, Complex) else Complex(one.name, simple=one)


def _fixed(old: str | None, new: str | None, path: str) -> Difference:
    if old is None:
        return Difference(path, "fixed_added", f"the value is fixed to {new!r}", _BACKWARD)
    if new is None:
        return Difference(path, "fixed_removed", "the value is no longer fixed", _FORWARD)
    return Difference(path, "fixed_changed", f"the fixed value changes from {old!r} to {new!r}", BREAKS_BOTH)


def _attribute(old: XsdAttribute, new: XsdAttribute, path: str) -> Iterator[Difference]:
    if old.required != new.required:
        words = f"the attribute becomes {'required' if new.required else 'optional'}"
        kind = "attribute_required" if new.required else "attribute_optional"
        yield Difference(path, kind, words, _BACKWARD if new.required else _FORWARD)
    if old.fixed != new.fixed:
        yield _fixed(old.fixed, new.fixed, path)
    yield from compare_simple(old.type, new.type, path)


def _one_sided(
    one: XsdAttribute,
    other: Complex,
    path: str,
    kind: str,
    without: frozenset[Direction],
    needing: frozenset[Direction],
) -> Iterator[Difference]:
    """An attribute that only one side declares: the other takes it by a wildcard, or not at all."""
    taken = other.wildcard is not None and allows(other.wildcard, one.name)
    breaks = (frozenset() if taken else without) | (needing if one.required else frozenset())
    what = f"{'a required' if one.required else 'an optional'} attribute is {kind}"
    if breaks:
        yield Difference(path, f"attribute_{kind}", what, breaks)
    if taken and not one.required:
        words = f"{what}; the other side takes any value for it"
        yield Difference(path, "wildcard_declared", words, needing, certain=False)


def _occurrences(old: Particle | None, new: Particle | None, path: str) -> Iterator[Difference]:
    """Yield the elements that come, go, or may occur more or less often."""
    before, after = occurrences(old), occurrences(new)
    for name in dict.fromkeys((*before, *after)):
        low, high = before.get(name, (0, 0))
        new_low, new_high = after.get(name, (0, 0))
        place = f"{path}/{local(name)}"
        if name not in before:
            what = "a required" if new_low else "an optional"
            yield Difference(place, "element_added", f"{what} element is added", BREAKS_BOTH if new_low else _FORWARD)
        elif name not in after:
            what = "a required" if low else "an optional"
            yield Difference(place, "element_removed", f"{what} element is removed", BREAKS_BOTH if low else _BACKWARD)
        else:
            breaks: frozenset[Direction] = frozenset()
            if new_low > low or _less(new_high, high):
                breaks |= _BACKWARD
            if new_low < low or _less(high, new_high):
                breaks |= _FORWARD
            if breaks:
                words = f"it occurs {_often(low, high)} times, and now {_often(new_low, new_high)}"
                yield Difference(place, "occurrence_changed", words, breaks)


def _less(one: int | None, two: int | None) -> bool:
    return one is not None and (two is None or one < two)


def _often(low: int, high: int | None) -> str:
    return f"{low} to {'any number of' if high is None else high}" if low != high else str(low)
