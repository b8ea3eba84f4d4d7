"""Is a newer JSON Schema compatible with an older one: containment of the values they accept, each way.

Rule 1: backward holds where every payload of the older schema is one of the newer (new readers, old data); forward
where every payload of the newer is one of the older. Annotations, titles and descriptions never matter.
Rule 2: our own walk (`json_schema_containment`) proves a direction or names what breaks it. The engine's canonical form
is asked for a second opinion where a direction is not proved and the schemas are small; it may prove the direction,
or turn doubt into certainty.
Rule 3: a comparison takes a bounded number of steps; what is not decided by then is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from signalbook.schemas.budget import MOST_STEPS, Budget, TooMuch
from signalbook.schemas.format import BREAKS_BOTH, Difference, Direction, Schema
from signalbook.schemas.json_schema import JsonSchema
from signalbook.schemas.json_schema_accepts import Side
from signalbook.schemas.json_schema_bounds import PATTERNS
from signalbook.schemas.json_schema_containment import Containment, Finding, encode_sorted
from signalbook.schemas.json_schema_facts import node_of
from signalbook.schemas.json_schema_keywords import CHECKS

__all__ = ["KINDS", "compare"]

# What the canonical forms are asked about: their time grows with the square of the first and with the second.
_MOST_NODES = 500
_MOST_ALTERNATIVES = 256

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


def compare(older: Schema, newer: Schema, budget: Budget | None = None) -> Iterator[Difference]:
    """Yield what makes the newer schema accept less or more than the older one."""
    budget = budget or Budget(MOST_STEPS)
    assert isinstance(older, JsonSchema)
    assert isinstance(newer, JsonSchema)
    if _same(older, newer):
        return
    backward = _findings(older, newer, budget)
    forward = _findings(newer, older, budget)
    also: dict[tuple[str, str], list[Finding]] = {}
    for found in forward:
        also.setdefault((found.path, found.aspect), []).append(found)
    for found in backward:
        others = also.get((found.path, found.aspect))
        yield _both_ways(found, others.pop(0)) if others else _difference(found, "backward")
    for several in also.values():
        yield from (_difference(found, "forward") for found in several)


_UNDECIDED = frozenset({"reference", "metaschema", "size"})


def _difference(found: Finding, direction: Direction) -> Difference:
    words, narrowed, widened = KINDS[found.aspect]
    old, new = (found.wide, found.narrow) if direction == "backward" else (found.narrow, found.wide)
    kind = narrowed if direction == "backward" else widened
    return Difference(found.path, kind, f"{words}: {old} → {new}", frozenset({direction}), found.certain)


def _both_ways(found: Finding, other: Finding) -> Difference:
    """One difference for an aspect that accepts less here and more there; each side is told where it accepts more."""
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


def _findings(wide: JsonSchema, narrow: JsonSchema, budget: Budget) -> list[Finding]:
    """What is accepted by the wide schema and not by the narrow one, after the second opinion."""
    if not wide.standard or not narrow.standard:
        return [Finding("", "metaschema", "a metaschema", "a metaschema of its own", False)]
    one, two = Side(wide.index, wide.draft, budget), Side(narrow.index, narrow.draft, budget)
    try:
        found = list(
            Containment(one, two, CHECKS).findings(node_of(wide.index, wide.place), node_of(narrow.index, narrow.place))
        )
    except (TooMuch, RecursionError):
        return [Finding("", "size", "schemas", "too large to compare", False)]
    if not found:
        return found
    opinion = _opinion(wide, narrow)
    if opinion is True:
        return []
    if opinion is False and not any(one.certain for one in found):
        if len(found) == 1:
            return [found[0]._replace(certain=True)]
        return [Finding("", "whole", "accepts more", "accepts less"), *found]
    return found


def _opinion(wide: JsonSchema, narrow: JsonSchema) -> bool | None:
    """Whether the engine's canonical forms show containment, or the opposite; None where they show neither."""
    if wide.link or narrow.link or wide.draft is not narrow.draft:
        return None
    if not (_small(wide) and _small(narrow)):
        return None
    try:
        one, two = _canonical(wide), _canonical(narrow)
        answer = two.covers(one)
    except (
        ValueError,
        LookupError,
        jsonschema_rs.ReferencingError,
    ):  # an operand that the canonical form does not know
        return None
    yes, no = jsonschema_rs.canonical.Containment.YES, jsonschema_rs.canonical.Containment.NO
    return True if answer == yes else False if answer == no else None


def _canonical(schema: JsonSchema) -> Any:
    return jsonschema_rs.canonicalize(
        schema.index.root.schema, draft=schema.draft.number, retriever=schema.library, pattern_options=PATTERNS
    )


def _small(schema: JsonSchema) -> bool:
    """Tell whether the canonical form cannot grow beyond bounds: alternatives multiply in it."""
    if schema.work > _MOST_NODES or schema.library.documents():
        return False
    nodes, alternatives = 0, 1
    stack: list[Any] = [schema.index.root.schema]
    while stack:
        node = stack.pop()
        nodes += 1
        if isinstance(node, dict):
            for name, value in node.items():
                if name in ("anyOf", "oneOf") and isinstance(value, list):
                    alternatives *= len(value)
                elif name in ("not", "if", "dependentSchemas", "dependencies", "dependentRequired", "contains"):
                    alternatives *= 2 + (len(value) if isinstance(value, dict) and name.startswith("depend") else 0)
            stack.extend(value for value in node.values() if isinstance(value, dict | list))
        elif isinstance(node, list):
            stack.extend(value for value in node if isinstance(value, dict | list))
        if nodes > _MOST_NODES or alternatives > _MOST_ALTERNATIVES:
            return False
    return True
