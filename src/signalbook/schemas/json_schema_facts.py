"""What holds for every value that a JSON Schema accepts: the ground of its columns and of its comparisons.

Rule 1: a node is all that applies to one value: `allOf` and references are followed in place, so it is a tuple of
places. A keyword that is not understood makes the set of values smaller, never larger, so leaving it out is safe.
Rule 2: a type is an atom: `number` is `integer` and `fraction`, and 1.0 is an integer, as the drafts say.
Rule 3: two values are the same where JSON Schema says so: 1 and 1.0 are, 1 and true are not.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from signalbook.schemas.json_schema_places import Index, Place

__all__ = ["ATOMS", "Node", "atoms_of", "branches", "fraction", "node_of", "same_key", "types", "unfollowed", "values"]

Node: TypeAlias = tuple[Place, ...]

ATOMS = frozenset({"null", "boolean", "integer", "fraction", "string", "array", "object"})
_MEANS = {"number": frozenset({"integer", "fraction"})}


def node_of(index: Index, *places: Place) -> Node:
    """All places that apply where these apply, references and `allOf` followed, each once."""
    found: dict[int, Place] = {}
    stack = list(reversed(places))
    while stack:
        place = stack.pop()
        schema = place.schema
        if schema is True or id(schema) in found:
            continue
        if schema is False:
            return (place,)
        target = index.follow(place, schema["$ref"]) if isinstance(schema.get("$ref"), str) else None
        if target is not None and index.ref_stands_alone:
            stack.append(target)
            continue
        found[id(schema)] = place
        stack.extend(place.below(part) for part in reversed(schema.get("allOf", ())))
        if target is not None:
            stack.append(target)
    return tuple(found.values())


def unfollowed(index: Index, place: Place) -> bool:
    """Tell whether a place refers to what is not known before the payload is there, or not to this catalog."""
    schema = place.schema
    if "$dynamicRef" in schema or "$recursiveRef" in schema:
        return True
    reference = schema.get("$ref")
    return isinstance(reference, str) and index.follow(place, reference) is None


def atoms_of(value: Any) -> str:
    """The atom of a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float | Decimal):
        return "integer" if value == value.__floor__() else "fraction"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


def types(node: Node) -> frozenset[str]:
    """The atoms that the values of a node can have, unions left out of account."""
    found = ATOMS
    for place in node:
        schema = place.schema
        if schema is False:
            return frozenset()
        if "type" in schema:
            stated = schema["type"]
            names = [stated] if isinstance(stated, str) else stated
            found &= frozenset().union(*(_MEANS.get(name, frozenset({name})) for name in names))
        if "const" in schema:
            found &= {atoms_of(schema["const"])}
        if "enum" in schema:
            found &= {atoms_of(value) for value in schema["enum"]}
    return found


def values(node: Node) -> list[Any] | None:
    """The only values that a node can have where `enum`, `const` or the type name them all; else None."""
    lists = [
        *([place.schema["const"]] for place in node if place.schema is not False and "const" in place.schema),
        *(place.schema["enum"] for place in node if place.schema is not False and "enum" in place.schema),
    ]
    allowed = types(node)
    if not lists:
        if allowed <= {"null", "boolean"}:
            return [value for value in (None, False, True) if atoms_of(value) in allowed]
        return None
    shared = set.intersection(*({same_key(value) for value in one} for one in lists))
    return [value for value in lists[0] if same_key(value) in shared and atoms_of(value) in allowed]


def branches(index: Index, node: Node) -> list[list[Node]]:
    """For each `anyOf` and `oneOf` of a node, the nodes of its branches."""
    return [
        [node_of(index, place.below(branch)) for branch in place.schema[keyword]]
        for place in node
        if place.schema is not False
        for keyword in ("anyOf", "oneOf")
        if keyword in place.schema
    ]


def fraction(number: int | float | Decimal) -> Fraction:
    """The number that a JSON text states: for a double, its shortest decimal."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def same_key(value: Any) -> Any:
    """A key that is the same for values that JSON Schema takes for the same."""
    if isinstance(value, bool) or value is None:
        return ("is", value)
    if isinstance(value, int | float | Decimal):
        return ("number", fraction(value))
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ("object", frozenset((name, same_key(member)) for name, member in value.items()))
    return ("array", tuple(same_key(item) for item in value))
