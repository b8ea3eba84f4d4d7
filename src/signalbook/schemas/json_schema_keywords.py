"""Each keyword's part in a containment: what it asks of the wide side, as a table of generators of one signature.

Rule 1: a check gets the comparison, the node of the wide side, the atoms its values can have, and the place of the
narrow side whose keyword it is; it yields what does not follow.
Rule 2: keywords that only have a meaning together (`properties` and `additionalProperties`, …) share a check.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from signalbook.schemas.json_schema_containment import Check, Containment, Finding, short
from signalbook.schemas.json_schema_facts import ATOMS, Node, fraction, types
from signalbook.schemas.json_schema_members import bound, matches, required, stated
from signalbook.schemas.json_schema_objects import CHECKS as OBJECT_CHECKS
from signalbook.schemas.json_schema_places import Place

__all__ = ["CHECKS"]

_NUMBERS = frozenset({"integer", "fraction"})
# Strings that a pattern may refuse; the first that fits the lengths and is refused is the proof.
_SAMPLES = ("", "a", "Z", "0", "-", " ", "é", "\n", "a0_ ~", "zZ9" * 7)


def _names(atoms: frozenset[str]) -> str:
    named = (atoms - _NUMBERS) | ({"number"} if "fraction" in atoms else atoms & {"integer"})
    return "any type" if atoms == ATOMS else " or ".join(sorted(named)) or "nothing"


def _type(_: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
    allowed = types((Place({"type": place.schema["type"]}, ""),))
    if not atoms <= allowed:
        yield Finding("", "type", _names(atoms), _names(allowed))


def _enum(_: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
    # A wide side with a list of values does not come here, so it has more values than any list.
    listed = place.schema["enum"] if "enum" in place.schema else [place.schema["const"]]
    yield Finding("", "enum", _names(atoms), f"one of {short(listed)}")


def _end(side: str, aspect: str, keyword: str) -> Check:
    def check(_: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
        if not atoms & _NUMBERS:
            return
        whole = "fraction" not in atoms
        sign = 1 if side == "Minimum" else -1
        asked = bound((Place({keyword: place.schema[keyword]}, ""),), side, whole)
        given = bound(wide, side, whole)
        assert asked is not None
        if given is None or (sign * given.value, given.open) < (sign * asked.value, asked.open):
            yield Finding("", aspect, _shown(given), _shown(asked))

    return check


def _shown(end: Any) -> str:
    if end is None:
        return "none"
    number = str(int(end.value)) if end.value.denominator == 1 else format(float(end.value), ".15g")
    return number + (" (exclusive)" if end.open else "")


def _multiple(_: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
    if not atoms & _NUMBERS:
        return
    step = fraction(place.schema["multipleOf"])
    steps = [fraction(one) for one in stated(wide, "multipleOf")]
    if "fraction" not in atoms:
        steps.append(fraction(1))
    if not any((one / step).denominator == 1 for one in steps):
        shown = ", ".join(short(one) for one in stated(wide, "multipleOf")) or "none"
        yield Finding("", "multiple_of", shown, short(place.schema["multipleOf"]))


def _least(keyword: str, atom: str, aspect: str) -> Check:
    def check(_: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
        if atom not in atoms:
            return
        given = max([0, *stated(wide, keyword)])
        if keyword == "minProperties":
            given = max(given, len(required(wide)))
        if given < place.schema[keyword]:
            yield Finding("", aspect, str(given), short(place.schema[keyword]))

    return check


def _most(keyword: str, atom: str, aspect: str) -> Check:
    def check(_: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
        if atom not in atoms:
            return
        limits = [*stated(wide, keyword)]
        if keyword == "maxProperties":
            limits += [len(one.schema.get("properties", ())) for one in wide if _is_closed(one.schema)]
        if not limits or min(limits) > place.schema[keyword]:
            yield Finding("", aspect, str(min(limits)) if limits else "none", short(place.schema[keyword]))

    return check


def _is_closed(schema: dict[str, Any]) -> bool:
    return schema.get("additionalProperties") is False and not schema.get("patternProperties")


def _pattern(_: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
    asked = place.schema["pattern"]
    given = stated(wide, "pattern")
    if "string" not in atoms or asked in given:
        return
    low, high = max([0, *stated(wide, "minLength")]), min(stated(wide, "maxLength"), default=1_000_000)
    fits = (text for text in _SAMPLES if low <= len(text) <= high and all(matches(one, text) for one in given))
    certain = any(not matches(asked, text) for text in fits) and not stated(wide, "format")
    yield Finding("", "pattern", " and ".join(given) or "none", asked, certain)


def _asserted(keyword: str, aspect: str) -> Check:
    """A keyword that some drafts assert and others only note; two different values are not compared."""

    def check(comparison: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
        if keyword not in comparison.narrow.draft.asserts or "string" not in atoms:
            return
        given = stated(wide, keyword) if keyword in comparison.wide.draft.asserts else []
        if place.schema[keyword] not in given:
            yield Finding("", aspect, " and ".join(map(str, given)) or "none", short(place.schema[keyword]), False)

    return check


def _union(keyword: str, comparison: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
    branches = [comparison.narrow_node(place, branch) for branch in place.schema[keyword]]
    if comparison.equal_part(wide, place, (keyword,)):
        return
    parts = [wide]
    if len(_kinds(atoms)) > 1:
        parts = [comparison.with_schema(wide, {"type": kind}) for kind in _kinds(atoms)]
    for part in parts:
        yield from _in_one_branch(keyword, comparison, part, branches)


def _kinds(atoms: frozenset[str]) -> list[str]:
    """The types to look at one by one: all numbers together, and any type not at all."""
    if atoms == ATOMS:
        return []
    return sorted((atoms - _NUMBERS) | ({"number"} if "fraction" in atoms else atoms & {"integer"}))


def _in_one_branch(keyword: str, comparison: Containment, wide: Node, branches: list[Node]) -> Iterator[Finding]:
    if comparison.wide.impossible(wide):
        return
    tried = [(at, branch, comparison.findings(wide, branch)) for at, branch in enumerate(branches)]
    holding = [at for at, _, found in tried if not found]
    if keyword == "oneOf":
        for at in holding:
            others = [branch for other, branch, _ in tried if other != at]
            if all(comparison.wide.apart(wide, comparison.narrow, branch) for branch in others):
                return
        if len(holding) > 1:
            yield Finding("", "union", "accepted", "accepted by more than one branch of oneOf")
            return
    elif holding:
        return
    near = [found for _, branch, found in tried if found and not comparison.wide.apart(wide, comparison.narrow, branch)]
    if not near and not holding:
        yield Finding("", "union", "accepted", f"accepted by no branch of {keyword}")
    elif len(near) == 1 and not holding:
        yield from near[0]
    else:
        yield Finding("", "union", "accepted", f"perhaps not by the right branches of {keyword}", False)


def _not(comparison: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
    refused = comparison.narrow_node(place, place.schema["not"])
    if comparison.wide.apart(wide, comparison.narrow, refused) or comparison.equal_part(wide, place, ("not",)):
        return
    certain = not comparison.findings(wide, refused)
    yield Finding("", "not", "accepted", f"not {short(place.schema['not'])}", certain)


def _if(comparison: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
    if comparison.equal_part(wide, place, ("if", "then", "else")):
        return
    asked = comparison.narrow_node(place, place.schema["if"])
    then = comparison.narrow_node(place, place.schema.get("then", True))
    otherwise = comparison.narrow_node(place, place.schema.get("else", True))
    found: list[Finding] = []
    if not comparison.wide.apart(wide, comparison.narrow, asked):
        found += [one.below("then") for one in comparison.findings(wide, then)]
    if comparison.findings(wide, asked):
        found += [one.below("else") for one in comparison.findings(wide, otherwise)]
    yield from (one.doubtful() for one in found)


CHECKS: dict[str, Check] = {
    "type": _type,
    "enum": _enum,
    "const": _enum,
    "minimum": _end("Minimum", "minimum", "minimum"),
    "exclusiveMinimum": _end("Minimum", "minimum", "exclusiveMinimum"),
    "maximum": _end("Maximum", "maximum", "maximum"),
    "exclusiveMaximum": _end("Maximum", "maximum", "exclusiveMaximum"),
    "multipleOf": _multiple,
    "minLength": _least("minLength", "string", "min_length"),
    "maxLength": _most("maxLength", "string", "max_length"),
    "minItems": _least("minItems", "array", "min_items"),
    "maxItems": _most("maxItems", "array", "max_items"),
    "minProperties": _least("minProperties", "object", "min_properties"),
    "maxProperties": _most("maxProperties", "object", "max_properties"),
    "pattern": _pattern,
    "format": _asserted("format", "format"),
    "contentEncoding": _asserted("contentEncoding", "content"),
    "contentMediaType": _asserted("contentMediaType", "content"),
    "anyOf": partial(_union, "anyOf"),
    "oneOf": partial(_union, "oneOf"),
    "not": _not,
    "if": _if,
    **OBJECT_CHECKS,
}
