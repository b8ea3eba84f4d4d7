"""Whether what one XSD type takes is taken by another: values of simple types, and sequences of child elements.

Rule 1: two simple types are compared facet by facet within one primitive type, or within one family of derived ones
(`int` within `decimal`, `token` within `string`, `float` within `double`). A change from one to another breaks both
promises, even where the texts of the one are texts of the other: who reads the value as what it was is misled.
Rule 2: a content model is a regular expression over element names, and containment of those can be decided: the two
are walked side by side, by derivatives (Brzozowski), as far as `MOST_LANGUAGE_STEPS`.
Rule 3: bounds of occurrence count only by their order: larger ones are replaced by small ones that lie the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from signalbook.schemas.format import BREAKS_BOTH, Difference, Direction, StepBudget, TooMuch
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
_MOVES_A_STEP = 4


class _ContentTooLargeError(Exception):
    """More than is walked."""


def contained(one: Particle | None, other: Particle | None, budget: StepBudget) -> bool | None:
    """Whether all that one model takes is taken by the other; None where it would take too long to say."""
    scale = _scale(one, other)
    try:
        walk = _ContentWalk(_letters(one, other), budget.part(MOST_LANGUAGE_STEPS))
        return walk.contains(walk.expression(one, scale, 0), walk.expression(other, scale, 0))
    except (_ContentTooLargeError, TooMuch, RecursionError):
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
    # Of each name: in how many parts it is, the least and the sum of its lows, the greatest and the sum of its highs.
    sums: dict[str, tuple[int, int, int, int | None, int | None]] = {}
    for part in term.particles:
        for name, (low, high) in occurrences(part).items():
            often, least, lows, most, highs = sums.get(name, (0, low, 0, 0, 0))
            sums[name] = (
                often + 1,
                min(least, low),
                lows + low,
                None if high is None or most is None else max(most, high),
                None if high is None or highs is None else highs + high,
            )
    is_choice, every = term.kind == "choice", len(term.particles)
    found: dict[str, tuple[int, int | None]] = {}
    for name, (often, least, lows, most, highs) in sums.items():
        low, high = ((least if often == every else 0), most) if is_choice else (lows, highs)
        found[name] = low * particle.low, None if high is None or particle.high is None else high * particle.high
    return found


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


class _Expression:
    """An expression over the names of elements; each is made once by a walk, so that it is known by its identity.

    A sequence is its first part and the rest. `low` and `high` are how often the only part of a `rep` occurs.
    """

    __slots__ = ("high", "is_nullable", "kind", "low", "parts", "term")

    def __init__(
        self, kind: str, parts: tuple[_Expression, ...], term: str | Wildcard, low: int, high: int | None
    ) -> None:
        self.kind = kind
        self.parts = parts
        self.term = term
        self.low = low
        self.high = high
        if kind in ("name", "any"):
            self.is_nullable = False
        elif kind == "alt":
            self.is_nullable = any(one.is_nullable for one in parts)
        else:
            self.is_nullable = (kind == "rep" and low == 0) or all(one.is_nullable for one in parts)


# By letter, what can follow once it has been taken.
_Moves = dict[str, dict[_Expression, None]]


class _ContentWalk:
    """Walks two expressions side by side."""

    def __init__(self, letters: list[str], budget: StepBudget) -> None:
        self._letters = letters
        self._budget = budget
        self._made: dict[tuple[object, ...], _Expression] = {}
        self._moves: dict[_Expression, _Moves] = {}
        self._empty = self._make("empty")

    # ---- expressions

    def _make(
        self, kind: str, parts: Iterable[_Expression] = (), term: str | Wildcard = "", low: int = 1,
        high: int | None = 1,
    ) -> _Expression:  # fmt: skip
        parts = tuple(parts)
        key = (kind, term, low, high, *map(id, parts))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = _Expression(kind, parts, term, low, high)
        return found

    def expression(self, particle: Particle | None, scale: Mapping[int, int], depth: int) -> _Expression:
        """What a content model is."""
        if particle is None:
            return self._empty
        if depth > _DEEPEST:
            raise _ContentTooLargeError
        low = scale.get(particle.low, particle.low)
        high = None if particle.high is None else scale.get(particle.high, particle.high)
        term = particle.term
        if isinstance(term, Element):
            return self._repeat(self._make("name", term=term.name), low, high)
        if isinstance(term, Wildcard):
            return self._repeat(self._make("any", term=term), low, high)
        self._budget.spend(1 + len(term.particles) // _MOVES_A_STEP)
        parts = [self.expression(part, scale, depth + 1) for part in term.particles]
        if term.kind == "sequence":
            inner = self._empty
            for part in reversed(parts):
                inner = self._sequence(part, inner)
        elif term.kind == "choice":
            inner = self._choice(parts)
        else:
            inner = self._together(sorted(parts, key=_spelled))
        return self._repeat(inner, low, high)

    def _sequence(self, first: _Expression, rest: _Expression) -> _Expression:
        if first is self._empty or rest is self._empty:
            return rest if first is self._empty else first
        before = []
        while first.kind == "seq":  # the rest comes after all of its parts
            before.append(first.parts[0])
            first = first.parts[1]
        found = self._make("seq", (first, rest))
        for part in reversed(before):
            found = self._make("seq", (part, found))
        return found

    def _choice(self, parts: list[_Expression]) -> _Expression:
        flat = dict.fromkeys(one for part in parts for one in (part.parts if part.kind == "alt" else (part,)))
        return next(iter(flat)) if len(flat) == 1 else self._make("alt", flat)

    def _together(self, parts: Sequence[_Expression]) -> _Expression:
        return self._make("all", parts) if parts else self._empty

    def _repeat(self, inner: _Expression, low: int, high: int | None) -> _Expression:
        if high == 0 or inner is self._empty:
            return self._empty
        return inner if (low, high) == (1, 1) else self._make("rep", (inner,), low=low, high=high)

    # ---- steps

    def contains(self, one: _Expression, other: _Expression) -> bool:
        """Tell whether all that the one takes is taken by the other."""
        # What both begin with is taken by both alike, as long as it is single elements that have to be there.
        while one.kind == other.kind == "seq" and one.parts[0] is other.parts[0] and one.parts[0].kind == "name":
            one, other = one.parts[1], other.parts[1]
        if one is other:
            return True
        if one.kind == other.kind == "all" and (simple := _all_contains(one, other)) is not None:
            return simple
        start = (one, frozenset({other}))
        seen = {start}
        stack = [start]
        while stack:
            left, right = stack.pop()
            if left in right:
                continue
            if left.is_nullable and not any(part.is_nullable for part in right):
                return False
            for letter, lefts in self.moves(left).items():
                self._budget.spend(1 + len(right) // _MOVES_A_STEP)
                rights = frozenset(found for part in right for found in self.moves(part).get(letter, ()))
                if not rights:
                    return False
                for after in lefts:
                    if (after, rights) not in seen:
                        seen.add((after, rights))
                        stack.append((after, rights))
        return True

    def moves(self, one: _Expression) -> _Moves:
        """What can follow each letter that the expression can begin with."""
        found = self._moves.get(one)
        if found is None:
            found = {}
            for letter, after in self._derive(one):
                found.setdefault(letter, {})[after] = None
            self._moves[one] = found
        return found

    def _derive(self, one: _Expression) -> Iterator[tuple[str, _Expression]]:
        self._budget.spend()
        if one.kind == "name":
            yield str(one.term), self._empty
        elif one.kind == "any":
            assert isinstance(one.term, Wildcard)
            self._budget.spend(len(self._letters) // _MOVES_A_STEP)
            yield from ((letter, self._empty) for letter in self._letters if allows(one.term, letter))
        elif one.kind == "rep":
            low, high = max(one.low - 1, 0), None if one.high is None else one.high - 1
            yield from self._before(one.parts[0], self._repeat(one.parts[0], low, high))
        elif one.kind == "alt":
            for part in one.parts:
                yield from self._before(part, self._empty)
        elif one.kind == "all":
            for number, part in enumerate(one.parts):
                self._budget.spend(1 + len(one.parts) // _MOVES_A_STEP)
                yield from self._before(part, self._together(one.parts[:number] + one.parts[number + 1 :]))
        while one.kind == "seq":
            first, rest = one.parts
            yield from self._before(first, rest)
            if not first.is_nullable:
                return
            self._budget.spend()
            if rest.kind != "seq":
                yield from self._before(rest, self._empty)
            one = rest

    def _before(self, part: _Expression, rest: _Expression) -> Iterator[tuple[str, _Expression]]:
        """Yield the moves of a part that something comes after."""
        for number, (letter, afters) in enumerate(self.moves(part).items()):
            if number % _MOVES_A_STEP == 0:
                self._budget.spend()
            for after in afters:
                yield letter, self._sequence(after, rest)


def _spelled(one: _Expression) -> str:
    """What orders the parts of a group in which the order is free."""
    inner = one.parts[0] if one.kind == "rep" else one
    return f"{inner.kind} {inner.term} {one.low} {one.high}"


def _all_contains(one: _Expression, other: _Expression) -> bool | None:
    """Whether a free order of elements takes all that another does; None where they are not single elements."""
    sides: list[dict[str, bool]] = []
    for side in (one, other):
        names: dict[str, bool] = {}
        for part in side.parts:
            name = part.parts[0] if part.kind == "rep" else part
            if name.kind != "name" or part.low > 1 or part.high != 1 or name.term in names:
                return None
            names[str(name.term)] = part.low == 1
        sides.append(names)
    taken, takes = sides
    return taken.keys() <= takes.keys() and all(taken.get(name, False) for name, needed in takes.items() if needed)
