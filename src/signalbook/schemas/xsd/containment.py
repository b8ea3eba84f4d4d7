"""Whether what one XSD type takes is taken by another: values of simple types, and sequences of child elements.

Rule 1: two simple types are compared facet by facet within one primitive type, or within one family of derived ones
(`int` within `decimal`, `token` within `string`, `float` within `double`). A change from one to another breaks both
promises, even where the texts of the one are texts of the other: who reads the value as what it was is misled.
Rule 2: a content model is a regular expression over element names, and containment of those can be decided: the two
are walked side by side, by derivatives (Brzozowski), as far as `MOST_LANGUAGE_STEPS`.
Rule 3: bounds of occurrence count only by their order: larger ones are replaced by small ones that lie the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from signalbook.schemas.format import BREAKS_BOTH, Difference, Direction
from signalbook.schemas.xsd.model import Element, Group, Particle, Simple, Wildcard, local

__all__ = [
    "INTEGERS",
    "allows",
    "compare_simple",
    "contained",
    "elements_of",
    "integer_bounds",
    "occurrences",
    "wildcards_of",
]

# XSD 1.0 part 2, section 3.3: the built-in types that are derived from another one.
_PARENTS = {
    "normalizedString": "string",
    "token": "normalizedString",
    **dict.fromkeys(("language", "NMTOKEN", "Name"), "token"),
    "NCName": "Name",
    **dict.fromkeys(("ID", "IDREF", "ENTITY"), "NCName"),
    "float": "double",  # not derived, but each text of a float is one of a double
}
INTEGERS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    **{name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in (("long", 64), ("int", 32), ("short", 16))},
    "byte": (-128, 127),
    **{name: (0, 2**bits - 1) for name, bits in (("unsignedLong", 64), ("unsignedInt", 32), ("unsignedShort", 16))},
    "unsignedByte": (0, 255),
}
_NUMBERS = frozenset({"decimal", *INTEGERS, "float", "double"})
_BACKWARD: frozenset[Direction] = frozenset({"backward"})
_FORWARD: frozenset[Direction] = frozenset({"forward"})
_NONE: frozenset[Direction] = frozenset()


def compare_simple(old: Simple, new: Simple, path: str) -> Iterator[Difference]:
    """Yield how the values that a newer type takes differ from those of an older one."""
    if old is new:
        return
    if (old.builtin == "list") != (new.builtin == "list") or (old.builtin == "union") != (new.builtin == "union"):
        yield _changed(old, new, path)
    elif old.builtin == "union":
        yield from _unions(old, new, path)
    else:
        if old.item is not None and new.item is not None:
            yield from compare_simple(old.item, new.item, path)
        else:
            breaks = _bases(old.builtin, new.builtin)
            if breaks == BREAKS_BOTH:
                yield _changed(old, new, path)
                return
            if breaks:
                kind = "type_narrowed" if breaks == _BACKWARD else "type_widened"
                yield Difference(path, kind, f"the type changes from {_name(old)} to {_name(new)}", breaks)
        yield from _ranges(old, new, path)
        yield from _lengths(old, new, path)
        yield from _patterns(old, new, path)
        yield from _enumerations(old, new, path)


def _name(one: Simple) -> str:
    return f"xs:{one.builtin}" if one.builtin not in ("list", "union") else local(one.name) or f"a {one.builtin}"


def _changed(old: Simple, new: Simple, path: str) -> Difference:
    return Difference(path, "type_changed", f"the type changes from {_name(old)} to {_name(new)}", BREAKS_BOTH)


def _chain(name: str) -> list[str]:
    found = [name]
    while found[-1] in _PARENTS:
        found.append(_PARENTS[found[-1]])
    return found


def _bases(old: str, new: str) -> frozenset[Direction]:
    """Which promises the change of the built-in type breaks; bounds of integers are looked at with the other bounds."""
    if old == new:
        return _NONE
    if old in INTEGERS or new in INTEGERS:
        if old in INTEGERS and new in INTEGERS:
            return _NONE
        return _FORWARD if new == "decimal" else _BACKWARD if old == "decimal" else BREAKS_BOTH
    if new in _chain(old) or new == "anySimpleType":
        return _FORWARD
    return _BACKWARD if old in _chain(new) or old == "anySimpleType" else BREAKS_BOTH


def integer_bounds(one: Simple) -> tuple[int | None, int | None]:
    """The least and the greatest value of an integer type."""
    low, high = INTEGERS[one.builtin]
    for facet, by in (("minInclusive", 0), ("minExclusive", 1)):
        if facet in one.facets:
            found = int(one.facets[facet]) + by
            low = found if low is None else max(low, found)
    for facet, by in (("maxInclusive", 0), ("maxExclusive", -1)):
        if facet in one.facets:
            found = int(one.facets[facet]) + by
            high = found if high is None else min(high, found)
    return low, high


def _limits(one: Simple) -> tuple[tuple[Decimal, bool] | None, tuple[Decimal, bool] | None]:
    """The bounds of a number, each with whether it is excluded; a greater one is stricter for the lower bound."""
    low: list[tuple[Decimal, bool]] = []
    high: list[tuple[Decimal, bool]] = []
    if one.builtin in INTEGERS:
        low_, high_ = integer_bounds(one)
        return (
            None if low_ is None else (Decimal(low_), False),
            None if high_ is None else (Decimal(high_), False),
        )
    for facet, out, excluded in (
        ("minInclusive", low, False), ("minExclusive", low, True),
        ("maxInclusive", high, False), ("maxExclusive", high, True),
    ):  # fmt: skip
        if facet in one.facets:
            out.append((Decimal(one.facets[facet].strip().replace("INF", "Infinity")), excluded))
    return max(low, default=None), min(high, key=lambda bound: (bound[0], not bound[1]), default=None)


def _ranges(old: Simple, new: Simple, path: str) -> Iterator[Difference]:
    names = ("minInclusive", "maxInclusive", "minExclusive", "maxExclusive")
    if old.builtin not in _NUMBERS or new.builtin not in _NUMBERS:
        if [old.facets.get(name) for name in names] != [new.facets.get(name) for name in names]:
            yield Difference(path, "range_changed", "the bounds of the value change", BREAKS_BOTH, certain=False)
        return
    try:
        (old_low, old_high), (new_low, new_high) = _limits(old), _limits(new)
    except (InvalidOperation, ValueError):
        yield Difference(path, "range_changed", "the bounds of the value change", BREAKS_BOTH, certain=False)
        return
    lower = _stricter(old_low, new_low)
    upper = _stricter(_mirrored(old_high), _mirrored(new_high))
    for word, breaks, before, after in (("least", lower, old_low, new_low), ("greatest", upper, old_high, new_high)):
        if breaks:
            kind = "range_narrowed" if breaks == _BACKWARD else "range_widened"
            yield Difference(path, kind, f"the {word} value changes from {_bound(before)} to {_bound(after)}", breaks)
    for facet in ("totalDigits", "fractionDigits"):
        yield from _facet(path, facet, _digits(old, facet), _digits(new, facet), larger_is_wider=True)


def _digits(one: Simple, facet: str) -> int | None:
    if facet == "fractionDigits" and one.builtin in INTEGERS:
        return None  # said by the type itself
    return int(one.facets[facet]) if facet in one.facets else None


def _mirrored(bound: tuple[Decimal, bool] | None) -> tuple[Decimal, bool] | None:
    return None if bound is None else (-bound[0], bound[1])


def _stricter(old: tuple[Decimal, bool] | None, new: tuple[Decimal, bool] | None) -> frozenset[Direction]:
    if old == new:
        return _NONE
    if old is None:
        return _BACKWARD
    return _FORWARD if new is None or new < old else _BACKWARD


def _bound(bound: tuple[Decimal, bool] | None) -> str:
    return "none" if bound is None else f"{'beyond ' if bound[1] else ''}{bound[0]}"


def _facet(path: str, facet: str, old: int | None, new: int | None, *, larger_is_wider: bool) -> Iterator[Difference]:
    if old == new:
        return
    narrowed = old is None if old is None or new is None else (new < old) is larger_is_wider
    words = f"{facet} changes from {'none' if old is None else old} to {'none' if new is None else new}"
    kind = "length_" if "ength" in facet else "digits_"
    yield Difference(
        path, kind + ("narrowed" if narrowed else "widened"), words, _BACKWARD if narrowed else _FORWARD
    )  # fmt: skip


def _lengths(old: Simple, new: Simple, path: str) -> Iterator[Difference]:
    for facet, wider in (("minLength", False), ("maxLength", True)):
        before = old.facets.get(facet, old.facets.get("length"))
        after = new.facets.get(facet, new.facets.get("length"))
        pair = tuple(None if one is None or (one == "0" and not wider) else int(one) for one in (before, after))
        yield from _facet(path, facet, *pair, larger_is_wider=wider)


def _patterns(old: Simple, new: Simple, path: str) -> Iterator[Difference]:
    before, after = set(map(frozenset, old.patterns)), set(map(frozenset, new.patterns))
    if before == after:
        return
    if before < after:
        yield Difference(path, "pattern_added", "a pattern is added", _BACKWARD)
    elif after < before:
        yield Difference(path, "pattern_removed", "a pattern is removed", _FORWARD)
    else:
        only, added = before - after, after - before
        if len(only) == len(added) == 1 and (
            next(iter(only)) < next(iter(added)) or next(iter(added)) < next(iter(only))
        ):
            wider = next(iter(only)) < next(iter(added))
            words = f"a pattern that may hold instead is {'added' if wider else 'removed'}"
            yield Difference(path, "pattern_changed", words, _FORWARD if wider else _BACKWARD)
        else:
            yield Difference(path, "pattern_changed", "the pattern changes", BREAKS_BOTH, certain=False)


def _enumerations(old: Simple, new: Simple, path: str) -> Iterator[Difference]:
    before, after = _values(old), _values(new)
    if before == after:
        return
    if before is None or after is None:
        removed = before is None
        words = "the values are enumerated" if removed else "the values are no longer enumerated"
        yield Difference(path, "enumeration_" + ("added" if removed else "removed"), words,
                         _BACKWARD if removed else _FORWARD)  # fmt: skip
        return
    for values, kind, breaks in ((before - after, "removed", _BACKWARD), (after - before, "added", _FORWARD)):
        if values:
            shown = ", ".join(sorted(map(str, values))[:10])
            yield Difference(path, f"enumeration_value_{kind}", f"values are {kind}: {shown}", breaks)


def _values(one: Simple) -> frozenset[object] | None:
    if one.enumeration is None:
        return None
    if one.builtin in ("decimal", *INTEGERS):
        return frozenset(Decimal(value.strip()) for value in one.enumeration)
    keep = one.builtin in ("string", "normalizedString")
    return frozenset(value if keep else " ".join(value.split()) for value in one.enumeration)


def _unions(old: Simple, new: Simple, path: str) -> Iterator[Difference]:
    if len(old.members) != len(new.members):
        shorter = min(len(old.members), len(new.members))
        pairs = zip(old.members[:shorter], new.members[:shorter], strict=True)
        if all(not list(compare_simple(one, two, path)) for one, two in pairs):
            more = len(new.members) > len(old.members)
            words = f"members of the union are {'added' if more else 'removed'}"
            yield Difference(
                path, "union_widened" if more else "union_narrowed", words, _FORWARD if more else _BACKWARD
            )
        else:
            yield Difference(path, "union_changed", "the members of the union change", BREAKS_BOTH, certain=False)
        return
    for one, two in zip(old.members, new.members, strict=True):
        for found in compare_simple(one, two, path):
            # Another member may take what this one no longer takes.
            yield Difference(found.path, found.kind, f"a member of the union: {found.message}", found.breaks, False)
    yield from _enumerations(old, new, path)
    yield from _patterns(old, new, path)


# Content models.


MOST_LANGUAGE_STEPS = 20_000
_LARGEST_EXACT = 8
_DEEPEST = 100

# An expression is a tuple: ("name", n), ("any", Wildcard), ("seq", …), ("alt", …), ("all", …), ("rep", e, low, high).
Expression = tuple[Any, ...]
EMPTY: Expression = ("seq",)


class _ContentTooLargeError(Exception):
    """More than is walked."""


def contained(one: Particle | None, other: Particle | None) -> bool | None:
    """Whether all that one model takes is taken by the other; None where it would take too long to say."""
    scale = _scale(one, other)
    try:
        walk = _ContentWalk(_letters(one, other))
        return walk.contains(_expression(one, scale, 0), _expression(other, scale, 0))
    except (_ContentTooLargeError, RecursionError):
        return None


def allows(wildcard: Wildcard, name: str) -> bool:
    """Whether a wildcard is for names of this one's namespace."""
    namespace = name[1:].partition("}")[0] if name.startswith("{") else ""
    words = wildcard.namespace.split(" ")
    if "##any" in words:
        return True
    if "##other" in words:
        return namespace != "" and namespace not in words
    return namespace in words


# ---- what a model holds


def _terms(particle: Particle | None) -> Iterator[Element | Wildcard]:
    stack: list[Element | Group | Wildcard] = [particle.term] if particle is not None else []
    seen: set[int] = set()
    while stack:
        term = stack.pop()
        if isinstance(term, Group):
            if id(term) not in seen:
                seen.add(id(term))
                stack.extend(part.term for part in reversed(term.particles))
        else:
            yield term


def elements_of(particle: Particle | None) -> dict[str, Element]:
    """The elements that a model names; one name has one type within it, as XSD demands."""
    found: dict[str, Element] = {}
    for term in _terms(particle):
        if isinstance(term, Element):
            found.setdefault(term.name, term)
    return found


def wildcards_of(particle: Particle | None) -> set[Wildcard]:
    """The wildcards of a model."""
    return {term for term in _terms(particle) if isinstance(term, Wildcard)}


def occurrences(particle: Particle | None) -> dict[str, tuple[int, int | None]]:
    """How often, at least and at most, each element occurs in what a model takes."""
    if particle is None or particle.high == 0:
        return {}
    term = particle.term
    if isinstance(term, Wildcard):
        return {}
    if isinstance(term, Element):
        return {term.name: (particle.low, particle.high)}
    parts = [occurrences(part) for part in term.particles]
    found: dict[str, tuple[int, int | None]] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        ranges = [part.get(name, (0, 0)) for part in parts]
        lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
        high = None if None in highs else [one for one in highs if one is not None]
        if term.kind == "choice":
            found[name] = min(lows), (None if high is None else max(high))
        else:
            found[name] = sum(lows), (None if high is None else sum(high))
    return {
        name: (low * particle.low, None if high is None or particle.high is None else high * particle.high)
        for name, (low, high) in found.items()
    }


# ---- from particles to expressions


def _bounds(particle: Particle | None) -> Iterator[int]:
    if particle is None:
        return
    yield particle.low
    if particle.high is not None:
        yield particle.high
    if isinstance(particle.term, Group):
        for part in particle.term.particles:
            yield from _bounds(part)


def _scale(*models: Particle | None) -> dict[int, int]:
    large = sorted({bound for model in models for bound in _bounds(model) if bound > _LARGEST_EXACT})
    return {bound: _LARGEST_EXACT + 1 + index for index, bound in enumerate(large)}


def _expression(particle: Particle | None, scale: Mapping[int, int], depth: int) -> Expression:
    if particle is None:
        return EMPTY
    if depth > _DEEPEST:
        raise _ContentTooLargeError
    low = scale.get(particle.low, particle.low)
    high = None if particle.high is None else scale.get(particle.high, particle.high)
    term = particle.term
    inner: Expression
    if isinstance(term, Element):
        inner = ("name", term.name)
    elif isinstance(term, Wildcard):
        inner = ("any", term)
    else:
        parts = tuple(_expression(part, scale, depth + 1) for part in term.particles)
        inner = {"sequence": _sequence, "choice": _choice, "all": _together}[term.kind](parts)
    return _repeat(inner, low, high)


def _sequence(parts: tuple[Expression, ...]) -> Expression:
    flat = [one for part in parts for one in (part[1:] if part[0] == "seq" else (part,))]
    return flat[0] if len(flat) == 1 else ("seq", *flat)


def _choice(parts: tuple[Expression, ...]) -> Expression:
    flat = dict.fromkeys(one for part in parts for one in (part[1:] if part[0] == "alt" else (part,)))
    return next(iter(flat)) if len(flat) == 1 else ("alt", *flat)


def _together(parts: tuple[Expression, ...]) -> Expression:
    return ("all", *sorted(parts, key=repr)) if parts else EMPTY


def _repeat(inner: Expression, low: int, high: int | None) -> Expression:
    if high == 0 or inner == EMPTY:
        return EMPTY
    return inner if (low, high) == (1, 1) else ("rep", inner, low, high)


# ---- walking


def _letters(*models: Particle | None) -> list[str]:
    """A name for each element, and one that nothing declares for each namespace that a wildcard can tell apart."""
    names = {name for model in models for name in elements_of(model)}
    wildcards = {one for model in models for one in wildcards_of(model)}
    if wildcards:
        spaces = {word for one in wildcards for word in one.namespace.split(" ") if not word.startswith("##")}
        spaces |= {name[1:].partition("}")[0] for name in names if name.startswith("{")} | {"", "\0any"}
        names |= {f"{{{space}}}\0" if space else "\0" for space in spaces}
    return sorted(names)


class _ContentWalk:
    """Walks two expressions side by side."""

    def __init__(self, letters: list[str]) -> None:
        self._letters = letters
        self._steps = 0
        self._nullable: dict[Expression, bool] = {}
        self._after: dict[tuple[Expression, str], frozenset[Expression]] = {}

    def contains(self, one: Expression, other: Expression) -> bool:
        start = (one, frozenset({other}))
        seen = {start}
        stack = [start]
        while stack:
            left, right = stack.pop()
            if self.nullable(left) and not any(map(self.nullable, right)):
                return False
            for letter in self._letters:
                lefts = self.after(left, letter)
                if not lefts:
                    continue
                rights = frozenset(found for part in right for found in self.after(part, letter))
                if not rights:
                    return False
                for after in lefts:
                    if (after, rights) not in seen:
                        seen.add((after, rights))
                        stack.append((after, rights))
        return True

    def nullable(self, one: Expression) -> bool:
        if one not in self._nullable:
            kind = one[0]
            if kind in ("name", "any"):
                found = False
            elif kind == "alt":
                found = any(map(self.nullable, one[1:]))
            elif kind == "rep":
                found = one[2] == 0 or self.nullable(one[1])
            else:
                found = all(map(self.nullable, one[1:]))
            self._nullable[one] = found
        return self._nullable[one]

    def after(self, one: Expression, letter: str) -> frozenset[Expression]:
        """What can follow once a letter has been taken; nothing where it cannot be."""
        key = (one, letter)
        if key not in self._after:
            self._steps += 1
            if self._steps > MOST_LANGUAGE_STEPS:
                raise _ContentTooLargeError
            self._after[key] = frozenset(self._derive(one, letter))
        return self._after[key]

    def _derive(self, one: Expression, letter: str) -> Iterator[Expression]:
        kind = one[0]
        if kind in ("name", "any"):
            if one[1] == letter if kind == "name" else allows(one[1], letter):
                yield EMPTY
        elif kind == "alt":
            for part in one[1:]:
                yield from self.after(part, letter)
        elif kind == "rep":
            rest = _repeat(one[1], max(one[2] - 1, 0), None if one[3] is None else one[3] - 1)
            yield from (_sequence((found, rest)) for found in self.after(one[1], letter))
        else:
            for index, part in enumerate(one[1:], 1):
                rest = ("seq", *one[index + 1 :]) if kind == "seq" else _together(one[1:index] + one[index + 1 :])
                yield from (_sequence((found, rest)) for found in self.after(part, letter))
                if kind == "seq" and not self.nullable(part):
                    return
