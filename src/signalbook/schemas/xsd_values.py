"""Which values a simple type takes, compared with another one: facet by facet.

Rule: two types are compared within one primitive type, or within one family of derived ones (`int` within `decimal`,
`token` within `string`, `float` within `double`). A change from one to another breaks both promises, even where the
texts of the one are texts of the other: who reads the value as what it was is misled.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from signalbook.schemas.format import BREAKS_BOTH, Difference, Direction
from signalbook.schemas.xsd_model import Simple, local

__all__ = ["INTEGERS", "compare_simple", "integer_bounds"]

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
