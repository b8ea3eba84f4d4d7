"""The part of the keywords about objects and arrays in a containment: what holds for members follows from what held.

Rule: names that either side declares are compared one by one; all other names together, by pattern and by
`additionalProperties`. The names of the findings tell open from closed content models.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from signalbook.schemas.json_schema_containment import Containment, Finding, short
from signalbook.schemas.json_schema_facts import NOTES, Node, node_of
from signalbook.schemas.json_schema_members import (
    item,
    longest_tuple,
    member,
    names,
    pattern_member,
    patterns,
    required,
    rest,
    stated,
)
from signalbook.schemas.json_schema_places import Place

__all__ = ["CHECKS"]


def _never(node: Node) -> bool:
    return any(place.schema is False for place in node)


def _required(comparison: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
    if "object" in atoms:
        for name in sorted(set(place.schema["required"]) - required(wide)):
            yield Finding("", "required", "optional", "required").below("properties", name)


def _members(comparison: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
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
            yield Finding("/additionalProperties", "additional", "allowed", "not allowed")
        else:
            yield from (one.below("additionalProperties") for one in comparison.findings(given, asked))
    for pattern in patterns(wide):
        if pattern not in place.schema.get("patternProperties", ()):
            given = pattern_member(comparison.wide.index, wide, pattern)
            found = comparison.findings(given, asked) if not _never(given) else ()
            yield from (one.below("patternProperties", pattern).doubtful() for one in found)


def _named_members(comparison: Containment, wide: Node, place: Place) -> Iterator[Finding]:
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
            yield Finding("", "closed", "declared", "not allowed").below("properties", name)
            continue
        found = comparison.findings(given, asked)
        if found and not given and name not in declared:
            certain = any(one.certain for one in found)
            shown = short(place.schema.get("properties", {}).get(name, True))
            yield Finding("", "open", "anything", shown, certain).below("properties", name)
        else:
            yield from (one.below("properties", name) for one in found)


def _pattern_members(comparison: Containment, wide: Node, place: Place) -> Iterator[Finding]:
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


def _property_names(comparison: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
    if "object" not in atoms:
        return
    asked = comparison.narrow_node(place, place.schema["propertyNames"])
    if _never(rest(comparison.wide.index, wide)) and not patterns(wide):
        for name in names(wide):
            given = member(comparison.wide.index, wide, name)
            verdict = True if _never(given) else comparison.narrow.accepts(asked, name)
            if not verdict:
                refused = Finding("", "property_names", "allowed", "not allowed", verdict is False)
                yield refused.below("properties", name)
        return
    places = [one.below(one.schema["propertyNames"]) for one in wide if "propertyNames" in one.schema]
    given = comparison.with_schema(node_of(comparison.wide.index, *places), {"type": "string"})
    found = comparison.findings(given, asked)
    yield from (one._replace(aspect="property_names").below("propertyNames") for one in found)


def _dependent(comparison: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
    if "object" not in atoms:
        return
    for keyword in ("dependentRequired", "dependencies", "dependentSchemas"):
        for name, asked in place.schema.get(keyword, {}).items():
            if not _never(member(comparison.wide.index, wide, name)):
                yield from (
                    one.below(keyword, name) for one in _with_member(comparison, wide, name, asked, keyword, place)
                )


def _with_member(
    comparison: Containment, wide: Node, name: str, asked: Any, keyword: str, place: Place
) -> Iterator[Finding]:
    """What does not follow where a member is there."""
    if isinstance(asked, list):
        given = required(wide)
        for other in ("dependentRequired", "dependencies"):
            for several in stated(wide, other):
                if isinstance(several.get(name), list):
                    given |= set(several[name])
        missing = set(asked) - given - {name}
        if missing:
            yield Finding("", "dependency", "optional", "requires " + ", ".join(sorted(missing)))
        return
    if not any(_same_dependency(comparison, one, place, name, keyword) for one in wide):
        node = comparison.with_schema(wide, {"required": [name]})
        found = comparison.findings(node, comparison.narrow_node(place, asked))
        yield from (one.doubtful() for one in found)


def _same_dependency(comparison: Containment, one: Place, place: Place, name: str, keyword: str) -> bool:
    given = one.schema.get(keyword, {}).get(name)
    if not isinstance(given, dict | bool):
        return False
    node = node_of(comparison.wide.index, one.below(given))
    return not comparison.findings(node, comparison.narrow_node(place, place.schema[keyword][name]))


def _items(comparison: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
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


def _unique(comparison: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
    if "array" in atoms and place.schema["uniqueItems"] is True and True not in stated(wide, "uniqueItems"):
        most = min(stated(wide, "maxItems"), default=2)
        if most > 1:
            yield Finding("", "unique_items", "repeated items", "unique items")


def _contains(comparison: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
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
    yield Finding("", "contains", "accepted", f"contains {short(place.schema['contains'])}", certain)


def _unevaluated(comparison: Containment, wide: Node, atoms: frozenset[str], place: Place) -> Iterator[Finding]:
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
            yield Finding(f"/{keyword}", "unevaluated", "accepted", "perhaps not accepted", False)


CHECKS = {
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
