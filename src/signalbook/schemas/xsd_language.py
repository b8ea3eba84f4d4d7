"""Whether every sequence of children that one content model takes is taken by another as well.

Rule 1: a content model is a regular expression over element names, and containment of those can be decided: the two are
walked side by side, by derivatives (Brzozowski), as far as `MOST_STEPS`.
Rule 2: bounds of occurrence count only by their order: larger ones are replaced by small ones that lie the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from signalbook.schemas.xsd_model import Element, Group, Particle, Wildcard

__all__ = ["allows", "contained", "elements_of", "occurrences", "wildcards_of"]

MOST_STEPS = 20_000
_LARGEST_EXACT = 8
_DEEPEST = 100

# An expression is a tuple: ("name", n), ("any", Wildcard), ("seq", …), ("alt", …), ("all", …), ("rep", e, low, high).
Expression = tuple[Any, ...]
EMPTY: Expression = ("seq",)


class _TooLargeError(Exception):
    """More than is walked."""


def contained(one: Particle | None, other: Particle | None) -> bool | None:
    """Whether all that one model takes is taken by the other; None where it would take too long to say."""
    scale = _scale(one, other)
    try:
        walk = _Walk(_letters(one, other))
        return walk.contains(_expression(one, scale, 0), _expression(other, scale, 0))
    except (_TooLargeError, RecursionError):
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
        raise _TooLargeError
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


class _Walk:
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
            if self._steps > MOST_STEPS:
                raise _TooLargeError
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
