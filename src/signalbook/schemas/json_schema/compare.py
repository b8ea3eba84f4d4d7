"""Whether a newer JSON Schema is compatible with an older one: containment of the values that they accept, each way.

Rule 1: backward holds where every payload of the older schema is one of the newer (new readers, old data); forward
where every payload of the newer is one of the older. Annotations, titles and descriptions never matter.
Rule 2: our own walk (`containment`) proves a direction or names what breaks it. The engine's canonical form is asked
for a second opinion where a direction is not proved and the schemas are small; it may prove the direction, or turn
doubt into certainty.
Rule 3: a comparison takes a bounded number of steps; what is not decided by then is unknown.
Rule 4: `CHECKS` says what each keyword of the narrow side asks of the wide side. A check gets the comparison, the node
of the wide side, the atoms its values can have, and the subschema of the narrow side whose keyword it is; it yields
what does not follow. Keywords that only have a meaning together (`properties` and `additionalProperties`) share one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jsonschema_rs

from signalbook.schemas.format import BREAKS_BOTH, MOST_STEPS, Difference, Direction, Schema, StepBudget, TooMuch
from signalbook.schemas.json_schema.containment import (
    Check,
    Containment,
    ContainmentFinding,
    Side,
    encode_sorted,
    short,
)
from signalbook.schemas.json_schema.places import (
    ATOMS,
    NOTES,
    PATTERNS,
    Node,
    Subschema,
    bound,
    fraction,
    item,
    longest_tuple,
    matches,
    member,
    names,
    node_of,
    pattern_member,
    patterns,
    required,
    rest,
    stated,
    types,
)
from signalbook.schemas.json_schema.schema import JsonSchema

__all__ = ["CHECKS", "KINDS", "OBJECT_CHECKS", "compare"]


# Checks of the members of objects and the items of arrays: what holds for members follows from what held. Names that
# either side declares are compared one by one; all other names together, by pattern and by `additionalProperties`. The
# names of the findings tell open from closed content models.


def _never(node: Node) -> bool:
    return any(place.schema is False for place in node)


def _required(
    comparison: Containment, wide: Node, atoms: frozenset[str], place: Subschema
) -> Iterator[ContainmentFinding]:
    if "object" in atoms:
        for name in sorted(set(place.schema["required"]) - required(wide)):
            yield ContainmentFinding("", "required", "optional", "required").below("properties", name)


def _members(
    comparison: Containment, wide: Node, atoms: frozenset[str], place: Subschema
) -> Iterator[ContainmentFinding]:
    if "object" not in atoms:
        return
    yield from _named_members(comparison, wide, place)
    yield from _pattern_members(comparison, wide, place)
    asked = comparison.narrow_node(place, place.schema.get("additionalProperties", True))
    if not asked:
        return
    given = rest(comparison.wide.index, wide)
    if not _never(given):
        if _never(asked):
            yield ContainmentFinding("/additionalProperties", "additional", "allowed", "not allowed")
        else:
            yield from (one.below("additionalProperties") for one in comparison.findings(given, asked))
    for pattern in patterns(wide):
        if pattern not in place.schema.get("patternProperties", ()):
            given = pattern_member(comparison.wide.index, wide, pattern)
            found = comparison.findings(given, asked) if not _never(given) else ()
            yield from (one.below("patternProperties", pattern).doubtful() for one in found)


def _named_members(comparison: Containment, wide: Node, place: Subschema) -> Iterator[ContainmentFinding]:
    declared = set(names(wide))
    alone = (place,)
    for name in dict.fromkeys([*place.schema.get("properties", ()), *names(wide)]):
        asked = member(comparison.narrow.index, alone, name)
        if not asked:
            continue
        given = member(comparison.wide.index, wide, name)
        if _never(given):
            continue
        if _never(asked):
            yield ContainmentFinding("", "closed", "declared", "not allowed").below("properties", name)
            continue
        found = comparison.findings(given, asked)
        if found and not given and name not in declared:
            certain = any(one.certain for one in found)
            shown = short(place.schema.get("properties", {}).get(name, True))
            yield ContainmentFinding("", "open", "anything", shown, certain).below("properties", name)
        else:
            yield from (one.below("properties", name) for one in found)


def _pattern_members(comparison: Containment, wide: Node, place: Subschema) -> Iterator[ContainmentFinding]:
    known = patterns(wide)
    for pattern, schema in place.schema.get("patternProperties", {}).items():
        asked = comparison.narrow_node(place, schema)
        if pattern in known:
            sources = [pattern_member(comparison.wide.index, wide, pattern)]
        else:
            # A name that matches is one of these on the wide side; which of them depends on the name.
            sources = [rest(comparison.wide.index, wide)]
            sources += [pattern_member(comparison.wide.index, wide, one) for one in known]
        for given in sources:
            found = comparison.findings(given, asked) if not _never(given) else ()
            certain = len(sources) == 1
            yield from (
                (one if certain else one.doubtful()).below("patternProperties", pattern) for one in dict.fromkeys(found)
            )


def _property_names(
    comparison: Containment, wide: Node, atoms: frozenset[str], place: Subschema
) -> Iterator[ContainmentFinding]:
    if "object" not in atoms:
        return
    asked = comparison.narrow_node(place, place.schema["propertyNames"])
    if _never(rest(comparison.wide.index, wide)) and not patterns(wide):
        for name in names(wide):
            given = member(comparison.wide.index, wide, name)
            verdict = True if _never(given) else comparison.narrow.accepts(asked, name)
            if not verdict:
                refused = ContainmentFinding("", "property_names", "allowed", "not allowed", verdict is False)
                yield refused.below("properties", name)
        return
    places = [one.below(one.schema["propertyNames"]) for one in wide if "propertyNames" in one.schema]
    given = comparison.with_schema(node_of(comparison.wide.index, *places), {"type": "string"})
    found = comparison.findings(given, asked)
    yield from (one._replace(aspect="property_names").below("propertyNames") for one in found)


def _dependent(
    comparison: Containment, wide: Node, atoms: frozenset[str], place: Subschema
) -> Iterator[ContainmentFinding]:
    if "object" not in atoms:
        return
    for keyword in ("dependentRequired", "dependencies", "dependentSchemas"):
        for name, asked in place.schema.get(keyword, {}).items():
            if not _never(member(comparison.wide.index, wide, name)):
                yield from (
                    one.below(keyword, name) for one in _with_member(comparison, wide, name, asked, keyword, place)
                )


def _with_member(
    comparison: Containment, wide: Node, name: str, asked: Any, keyword: str, place: Subschema
) -> Iterator[ContainmentFinding]:
    """What does not follow where a member is there."""
    if isinstance(asked, list):
        given = required(wide)
        for other in ("dependentRequired", "dependencies"):
            for several in stated(wide, other):
                if isinstance(several.get(name), list):
                    given |= set(several[name])
        missing = set(asked) - given - {name}
        if missing:
            yield ContainmentFinding("", "dependency", "optional", "requires " + ", ".join(sorted(missing)))
        return
    if not any(_same_dependency(comparison, one, place, name, keyword) for one in wide):
        node = comparison.with_schema(wide, {"required": [name]})
        found = comparison.findings(node, comparison.narrow_node(place, asked))
        yield from (one.doubtful() for one in found)


def _same_dependency(comparison: Containment, one: Subschema, place: Subschema, name: str, keyword: str) -> bool:
    given = one.schema.get(keyword, {}).get(name)
    if not isinstance(given, dict | bool):
        return False
    node = node_of(comparison.wide.index, one.below(given))
    return not comparison.findings(node, comparison.narrow_node(place, place.schema[keyword][name]))


def _items(
    comparison: Containment, wide: Node, atoms: frozenset[str], place: Subschema
) -> Iterator[ContainmentFinding]:
    if "array" not in atoms:
        return
    alone = (place,)
    most = min(stated(wide, "maxItems"), default=None)
    first = max(longest_tuple(comparison.wide.index, wide), longest_tuple(comparison.narrow.index, alone))
    for at in range(first + 1):
        if most is not None and at >= most:
            return
        given = item(comparison.wide.index, wide, at)
        if _never(given):
            return
        found = comparison.findings(given, item(comparison.narrow.index, alone, at))
        yield from (one.below("items", at) if at < first else one.below("items") for one in found)


def _unique(
    comparison: Containment, wide: Node, atoms: frozenset[str], place: Subschema
) -> Iterator[ContainmentFinding]:
    if "array" in atoms and place.schema["uniqueItems"] is True and True not in stated(wide, "uniqueItems"):
        most = min(stated(wide, "maxItems"), default=2)
        if most > 1:
            yield ContainmentFinding("", "unique_items", "repeated items", "unique items")


def _contains(
    comparison: Containment, wide: Node, atoms: frozenset[str], place: Subschema
) -> Iterator[ContainmentFinding]:
    keywords = ("contains", "minContains", "maxContains")
    if "array" not in atoms or "contains" not in place.schema or comparison.equal_part(wide, place, keywords):
        return
    asked = comparison.narrow_node(place, place.schema["contains"])
    least = place.schema.get("minContains", 1)
    if "maxContains" not in place.schema:
        if least == 0:
            return
        for one in wide:
            if "contains" in one.schema and one.schema.get("minContains", 1) >= least:
                node = node_of(comparison.wide.index, one.below(one.schema["contains"]))
                if not comparison.findings(node, asked):
                    return
    certain = least > 0 and not stated(wide, "contains") and max([0, *stated(wide, "minItems")]) < least
    yield ContainmentFinding("", "contains", "accepted", f"contains {short(place.schema['contains'])}", certain)


def _unevaluated(
    comparison: Containment, wide: Node, atoms: frozenset[str], place: Subschema
) -> Iterator[ContainmentFinding]:
    for keyword, atom in (("unevaluatedProperties", "object"), ("unevaluatedItems", "array")):
        asked = place.schema.get(keyword, True)
        if asked is True or asked == {} or atom not in atoms:
            continue
        held = comparison.narrow.index.closed.get(id(place.schema), (None, None))[1]
        if keyword == "unevaluatedProperties" and held is not None:
            continue  # it stands as `additionalProperties` in a place of its own
        # All keywords beside it count, so only a schema that is the same as a whole asks the same.
        asking = place.schema.keys() - NOTES
        alike = tuple(one for one in wide if one.schema.keys() - NOTES == asking)
        if not comparison.equal_part(alike, place, tuple(asking)):
            yield ContainmentFinding(f"/{keyword}", "unevaluated", "accepted", "perhaps not accepted", False)


OBJECT_CHECKS = {
    "required": _required,
    "properties": _members,
    "patternProperties": _members,
    "additionalProperties": _members,
    "propertyNames": _property_names,
    "dependentRequired": _dependent,
    "dependentSchemas": _dependent,
    "dependencies": _dependent,
    "items": _items,
    "prefixItems": _items,
    "additionalItems": _items,
    "uniqueItems": _unique,
    "contains": _contains,
    "maxContains": _contains,
    "minContains": _contains,
    "unevaluatedProperties": _unevaluated,
    "unevaluatedItems": _unevaluated,
}


# Checks of single values and of combined schemas.


_NUMBERS = frozenset({"integer", "fraction"})
# Strings that a pattern may refuse; the first that fits the lengths and is refused is the proof.
_SAMPLES = ("", "a", "Z", "0", "-", " ", "é", "\n", "a0_ ~", "zZ9" * 7)


def _names(atoms: frozenset[str]) -> str:
    named = (atoms - _NUMBERS) | ({"number"} if "fraction" in atoms else atoms & {"integer"})
    return "any type" if atoms == ATOMS else " or ".join(sorted(named)) or "nothing"


def _type(_: Containment, wide: Node, atoms: frozenset[str], place: Subschema) -> Iterator[ContainmentFinding]:
    allowed = types((Subschema({"type": place.schema["type"]}, ""),))
    if not atoms <= allowed:
        yield ContainmentFinding("", "type", _names(atoms), _names(allowed))


def _enum(_: Containment, wide: Node, atoms: frozenset[str], place: Subschema) -> Iterator[ContainmentFinding]:
    # A wide side with a list of values does not come here, so it has more values than any list.
    listed = place.schema["enum"] if "enum" in place.schema else [place.schema["const"]]
    yield ContainmentFinding("", "enum", _names(atoms), f"one of {short(listed)}")


def _end(side: str, aspect: str, keyword: str) -> Check:
    def check(_: Containment, wide: Node, atoms: frozenset[str], place: Subschema) -> Iterator[ContainmentFinding]:
        if not atoms & _NUMBERS:
            return
        whole = "fraction" not in atoms
        sign = 1 if side == "Minimum" else -1
        asked = bound((Subschema({keyword: place.schema[keyword]}, ""),), side, whole)
        given = bound(wide, side, whole)
        assert asked is not None
        if given is None or (sign * given.value, given.open) < (sign * asked.value, asked.open):
            yield ContainmentFinding("", aspect, _shown(given), _shown(asked))

    return check


def _shown(end: Any) -> str:
    if end is None:
        return "none"
    number = str(int(end.value)) if end.value.denominator == 1 else format(float(end.value), ".15g")
    return number + (" (exclusive)" if end.open else "")


def _multiple(_: Containment, wide: Node, atoms: frozenset[str], place: Subschema) -> Iterator[ContainmentFinding]:
    if not atoms & _NUMBERS:
        return
    step = fraction(place.schema["multipleOf"])
    steps = [fraction(one) for one in stated(wide, "multipleOf")]
    if "fraction" not in atoms:
        steps.append(fraction(1))
    if not any((one / step).denominator == 1 for one in steps):
        shown = ", ".join(short(one) for one in stated(wide, "multipleOf")) or "none"
        yield ContainmentFinding("", "multiple_of", shown, short(place.schema["multipleOf"]))


def _least(keyword: str, atom: str, aspect: str) -> Check:
    def check(_: Containment, wide: Node, atoms: frozenset[str], place: Subschema) -> Iterator[ContainmentFinding]:
        if atom not in atoms:
            return
        given = max([0, *stated(wide, keyword)])
        if keyword == "minProperties":
            given = max(given, len(required(wide)))
        if given < place.schema[keyword]:
            yield ContainmentFinding("", aspect, str(given), short(place.schema[keyword]))

    return check


def _most(keyword: str, atom: str, aspect: str) -> Check:
    def check(_: Containment, wide: Node, atoms: frozenset[str], place: Subschema) -> Iterator[ContainmentFinding]:
        if atom not in atoms:
            return
        limits = [*stated(wide, keyword)]
        if keyword == "maxProperties":
            limits += [len(one.schema.get("properties", ())) for one in wide if _is_closed(one.schema)]
        if not limits or min(limits) > place.schema[keyword]:
            yield ContainmentFinding("", aspect, str(min(limits)) if limits else "none", short(place.schema[keyword]))

    return check


def _is_closed(schema: dict[str, Any]) -> bool:
    return schema.get("additionalProperties") is False and not schema.get("patternProperties")


def _pattern(_: Containment, wide: Node, atoms: frozenset[str], place: Subschema) -> Iterator[ContainmentFinding]:
    asked = place.schema["pattern"]
    given = stated(wide, "pattern")
    if "string" not in atoms or asked in given:
        return
    low, high = max([0, *stated(wide, "minLength")]), min(stated(wide, "maxLength"), default=1_000_000)
    fits = (text for text in _SAMPLES if low <= len(text) <= high and all(matches(one, text) for one in given))
    certain = any(not matches(asked, text) for text in fits) and not stated(wide, "format")
    yield ContainmentFinding("", "pattern", " and ".join(given) or "none", asked, certain)


def _asserted(keyword: str, aspect: str) -> Check:
    """A keyword that some drafts assert and others only note; two different values are not compared."""

    def check(
        comparison: Containment, wide: Node, atoms: frozenset[str], place: Subschema
    ) -> Iterator[ContainmentFinding]:
        if keyword not in comparison.narrow.draft.asserts or "string" not in atoms:
            return
        given = stated(wide, keyword) if keyword in comparison.wide.draft.asserts else []
        if place.schema[keyword] not in given:
            yield ContainmentFinding(
                "", aspect, " and ".join(map(str, given)) or "none", short(place.schema[keyword]), False
            )

    return check


def _union(
    keyword: str, comparison: Containment, wide: Node, atoms: frozenset[str], place: Subschema
) -> Iterator[ContainmentFinding]:
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


def _in_one_branch(
    keyword: str, comparison: Containment, wide: Node, branches: list[Node]
) -> Iterator[ContainmentFinding]:
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
            yield ContainmentFinding("", "union", "accepted", "accepted by more than one branch of oneOf")
            return
    elif holding:
        return
    near = [found for _, branch, found in tried if found and not comparison.wide.apart(wide, comparison.narrow, branch)]
    if not near and not holding:
        yield ContainmentFinding("", "union", "accepted", f"accepted by no branch of {keyword}")
    elif len(near) == 1 and not holding:
        yield from near[0]
    else:
        yield ContainmentFinding("", "union", "accepted", f"perhaps not by the right branches of {keyword}", False)


def _not(comparison: Containment, wide: Node, atoms: frozenset[str], place: Subschema) -> Iterator[ContainmentFinding]:
    refused = comparison.narrow_node(place, place.schema["not"])
    if comparison.wide.apart(wide, comparison.narrow, refused) or comparison.equal_part(wide, place, ("not",)):
        return
    certain = not comparison.findings(wide, refused)
    yield ContainmentFinding("", "not", "accepted", f"not {short(place.schema['not'])}", certain)


def _if(comparison: Containment, wide: Node, atoms: frozenset[str], place: Subschema) -> Iterator[ContainmentFinding]:
    if comparison.equal_part(wide, place, ("if", "then", "else")):
        return
    asked = comparison.narrow_node(place, place.schema["if"])
    then = comparison.narrow_node(place, place.schema.get("then", True))
    otherwise = comparison.narrow_node(place, place.schema.get("else", True))
    found: list[ContainmentFinding] = []
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


# The comparison of two schemas.


# What the canonical forms are asked about: their time grows with the square of the first, and multiplies with the
# second (docs/decisions/0010).
_MOST_NODES = 120
_MOST_ALTERNATIVES = 256
# How many alternatives a condition is for them. A `not` is one more than the keywords and names in it.
_CONDITIONS = {"if": 4, "contains": 2}
_DEPENDENT = frozenset({"dependentSchemas", "dependencies", "dependentRequired"})

# An aspect: in words, and the kind of a change that makes the schema accept less, and of one that makes it accept more.
KINDS: dict[str, tuple[str, str, str]] = {
    "anything": ("value", "schema_closed", "schema_opened"),
    "type": ("type", "type_narrowed", "type_widened"),
    "enum": ("values", "enum_narrowed", "enum_widened"),
    "minimum": ("minimum", "minimum_raised", "minimum_lowered"),
    "maximum": ("maximum", "maximum_lowered", "maximum_raised"),
    "multiple_of": ("multipleOf", "multiple_of_narrowed", "multiple_of_widened"),
    "min_length": ("minLength", "min_length_raised", "min_length_lowered"),
    "max_length": ("maxLength", "max_length_lowered", "max_length_raised"),
    "min_items": ("minItems", "min_items_raised", "min_items_lowered"),
    "max_items": ("maxItems", "max_items_lowered", "max_items_raised"),
    "min_properties": ("minProperties", "min_properties_raised", "min_properties_lowered"),
    "max_properties": ("maxProperties", "max_properties_lowered", "max_properties_raised"),
    "pattern": ("pattern", "pattern_narrowed", "pattern_widened"),
    "format": ("format", "format_narrowed", "format_widened"),
    "content": ("content", "content_narrowed", "content_widened"),
    "required": ("member", "required_added", "required_removed"),
    "closed": ("property", "property_removed_from_closed_model", "property_added_to_closed_model"),
    "open": ("property", "property_added_to_open_model", "property_removed_from_open_model"),
    "additional": ("additional properties", "additional_properties_removed", "additional_properties_added"),
    "property_names": ("property names", "property_names_narrowed", "property_names_widened"),
    "dependency": ("dependency", "dependency_added", "dependency_removed"),
    "unique_items": ("items", "unique_items_added", "unique_items_removed"),
    "contains": ("contains", "contains_narrowed", "contains_widened"),
    "union": ("alternatives", "union_narrowed", "union_widened"),
    "not": ("not", "not_widened", "not_narrowed"),
    "unevaluated": ("unevaluated", "unevaluated_narrowed", "unevaluated_widened"),
    "reference": ("reference", "reference_unknown", "reference_unknown"),
    "metaschema": ("metaschema", "metaschema_unknown", "metaschema_unknown"),
    "size": ("comparison", "too_large", "too_large"),
    "whole": ("schema", "schema_narrowed", "schema_widened"),
}


def compare(older: Schema, newer: Schema, budget: StepBudget | None = None) -> Iterator[Difference]:
    """Yield what makes the newer schema accept less or more than the older one."""
    budget = budget or StepBudget(MOST_STEPS)
    assert isinstance(older, JsonSchema)
    assert isinstance(newer, JsonSchema)
    if _same(older, newer):
        return
    backward = _findings(older, newer, budget)
    forward = _findings(newer, older, budget)
    also: dict[tuple[str, str], list[ContainmentFinding]] = {}
    for found in forward:
        also.setdefault((found.path, found.aspect), []).append(found)
    for found in backward:
        others = also.get((found.path, found.aspect))
        yield _both_ways(found, others.pop(0)) if others else _difference(found, "backward")
    for several in also.values():
        yield from (_difference(found, "forward") for found in several)


_UNDECIDED = frozenset({"reference", "metaschema", "size"})


def _difference(found: ContainmentFinding, direction: Direction) -> Difference:
    words, narrowed, widened = KINDS[found.aspect]
    old, new = (found.wide, found.narrow) if direction == "backward" else (found.narrow, found.wide)
    kind = narrowed if direction == "backward" else widened
    return Difference(found.path, kind, f"{words}: {old} → {new}", frozenset({direction}), found.certain)


def _both_ways(found: ContainmentFinding, other: ContainmentFinding) -> Difference:
    """One difference for an aspect that accepts less here and more there, with the words of both sides."""
    words, kind, _ = KINDS[found.aspect]
    certain = found.certain and other.certain
    message = f"{words}: {found.wide} → {other.wide if certain else found.narrow}"
    kind = kind if found.aspect in _UNDECIDED else found.aspect + "_changed"
    return Difference(found.path, kind, message, BREAKS_BOTH, certain)


def _same(one: JsonSchema, two: JsonSchema) -> bool:
    """Tell whether two schemas are one text that refers to nothing else."""
    if one.draft is not two.draft or one.library.documents() or two.library.documents():
        return False
    if encode_sorted(one.index.root.schema) != encode_sorted(two.index.root.schema):
        return False
    return one.link == two.link


def _findings(wide: JsonSchema, narrow: JsonSchema, budget: StepBudget) -> list[ContainmentFinding]:
    """What is accepted by the wide schema and not by the narrow one, after the second opinion."""
    if not wide.standard or not narrow.standard:
        return [ContainmentFinding("", "metaschema", "a metaschema", "a metaschema of its own", False)]
    one, two = Side(wide.index, wide.draft, budget), Side(narrow.index, narrow.draft, budget)
    try:
        found = list(
            Containment(one, two, CHECKS).findings(node_of(wide.index, wide.place), node_of(narrow.index, narrow.place))
        )
    except (TooMuch, RecursionError):
        return [ContainmentFinding("", "size", "schemas", "too large to compare", False)]
    if not found:
        return found
    opinion = _opinion(wide, narrow, budget)
    if opinion is True:
        return []
    if opinion is False and not any(one.certain for one in found):
        if len(found) == 1:
            return [found[0]._replace(certain=True)]
        return [ContainmentFinding("", "whole", "accepts more", "accepts less"), *found]
    return found


def _opinion(wide: JsonSchema, narrow: JsonSchema, budget: StepBudget) -> bool | None:
    """Whether the engine's canonical forms show containment, or the opposite; None where they show neither."""
    if wide.link or narrow.link or wide.draft is not narrow.draft:
        return None
    sizes = _canonical_size(wide), _canonical_size(narrow)
    if None in sizes:
        return None
    try:
        budget.spend(max(size or 0 for size in sizes) ** 2)
        one, two = _canonical(wide), _canonical(narrow)
        answer = two.covers(one)
    except TooMuch:
        return None
    except (
        ValueError,
        LookupError,
        jsonschema_rs.ReferencingError,
    ):  # an operand that the canonical form has no form for
        return None
    yes, no = jsonschema_rs.canonical.Containment.YES, jsonschema_rs.canonical.Containment.NO
    return True if answer == yes else False if answer == no else None


def _canonical(schema: JsonSchema) -> Any:
    return jsonschema_rs.canonicalize(
        schema.index.root.schema, draft=schema.draft.number, retriever=schema.library, pattern_options=PATTERNS
    )


def _canonical_size(schema: JsonSchema) -> int | None:
    """The number of nodes of a schema, where its canonical form is sure to stay small; else None."""
    if schema.work > _MOST_NODES or schema.library.documents():
        return None
    nodes, alternatives = 0, 1
    stack: list[Any] = [schema.index.root.schema]
    while stack:
        node = stack.pop()
        nodes += 1
        if isinstance(node, dict):
            for name, value in node.items():
                alternatives *= _alternatives(name, value)
        pairs = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        stack.extend(value for value in pairs if isinstance(value, dict | list))
        if nodes > _MOST_NODES or alternatives > _MOST_ALTERNATIVES:
            return None
    return nodes


def _alternatives(name: str, value: Any) -> int:
    """How many alternatives a keyword is in a canonical form."""
    if name in ("anyOf", "oneOf") and isinstance(value, list):
        return max(1, len(value))
    if name == "not" and isinstance(value, dict):
        required = value.get("required")
        return 1 + len(value) + (len(required) if isinstance(required, list) else 0)
    if name in _DEPENDENT and isinstance(value, dict):
        return int(4 ** min(len(value), 10))
    return _CONDITIONS.get(name, 1)
