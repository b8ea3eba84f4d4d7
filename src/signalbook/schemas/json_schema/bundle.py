"""A JSON Schema as the engine compiles it: how often it compiles each part, and the same schema as one document.

Rule 1: the engine compiles a part anew for each chain of documents (parts with an `$id` among them) that leads to it,
because a dynamic reference may mean something else there. Ten documents that refer to one another have millions of such
chains. So they are counted before the engine is asked, and counting ends at the bound.
Rule 2: without dynamic references the chain makes no difference: the schema is then written as one document in which
each part that is referred to stands once. Nothing multiplies in it, and it accepts the same values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from signalbook.budget import spend
from signalbook.schemas.json_schema.places import DATA, MAPS, Index, Subschema, join, subschemas

__all__ = ["EACH", "FREE", "MOST_COMPILED", "bundled", "multiplies"]

# How often each part may be compiled on average, and how many are never too many.
EACH, FREE = 4, 1_000
# How many parts are compiled of a schema with dynamic references, which cannot be written as one document.
MOST_COMPILED = 10_000
# What a reference to a metaschema, of which the engine has its own copy, counts for.
_METASCHEMA = 200
_DYNAMIC = ("$dynamicRef", "$recursiveRef")
_NAMES = frozenset({"$id", "$schema", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"})


class _Visit(NamedTuple):
    place: Subschema
    scope: int
    alias: str
    is_left: bool = False


class _Scopes:
    """Chains of documents, each known by a number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}
        self._chains: list[tuple[int, str]] = [(0, "")]

    def longer(self, scope: int, base: str) -> int:
        """The chain with one more document."""
        number = self._numbers.setdefault((scope, base), len(self._chains))
        if number == len(self._chains):
            self._chains.append((scope, base))
        return number

    def inmost_first(self, scope: int) -> Iterator[str]:
        """The documents of a chain."""
        while scope:
            scope, base = self._chains[scope]
            yield base


def multiplies(index: Index, start: Subschema, free: int = FREE) -> bool:
    """Whether the engine would compile the parts of a schema far more often than once each, and more than are free."""
    scopes = _Scopes()
    done: set[tuple[int, int]] = set()
    parts: set[int] = set()
    pending: set[str] = set()
    count = 0
    stack = [_Visit(start, 0, "")]
    while stack:
        visit = stack.pop()
        if visit.is_left:
            pending.discard(visit.alias)
            continue
        if visit.alias in pending:
            continue
        spend()
        place = index.known(visit.place)
        key = (id(place.schema), visit.scope)
        if not isinstance(place.schema, dict) or key in done:
            continue
        done.add(key)
        parts.add(key[0])
        count += 1
        if visit.alias:
            pending.add(visit.alias)
            stack.append(visit._replace(is_left=True))
        references = list(_references(index, place, visit.scope, scopes))
        count += sum(_METASCHEMA for _, target in references if target is None)
        if count > free + EACH * len(parts):
            return True
        if not (index.dialect.ref_stands_alone and "$ref" in place.schema):
            stack.extend(_Visit(child, visit.scope, "") for child in _applied(place))
        own = _document(place.base)
        for alias, target in references:
            if target is not None:
                is_same = visit.scope and _document(alias) == own
                stack.append(_Visit(target, visit.scope if is_same else scopes.longer(visit.scope, own), alias))
    return False


def _applied(place: Subschema) -> Iterator[Subschema]:
    return (child for keyword, _, child in subschemas(place) if keyword not in ("$defs", "definitions"))


def _document(uri: str) -> str:
    return uri.partition("#")[0]


def _references(index: Index, place: Subschema, scope: int, scopes: _Scopes) -> Iterator[tuple[str, Subschema | None]]:
    """Yield where a place refers to, with the name that a part has while it is compiled."""
    for keyword in ("$ref", *_DYNAMIC):
        reference = place.schema.get(keyword)
        if isinstance(reference, str):
            target = index.follow(place, reference)
            if keyword == "$dynamicRef":
                target = _outermost(index, place, reference, scope, scopes) or target
            elif keyword == "$recursiveRef":
                target = _recursive(index, place, scope, scopes)
                yield f"{keyword} {place.base}", target  # the engine looks for it under a name of its own
                continue
            yield join(place.base, reference), target


def _outermost(index: Index, place: Subschema, reference: str, scope: int, scopes: _Scopes) -> Subschema | None:
    """What a dynamic reference means at the end of a chain: the anchor of the first document that has it."""
    found = None
    anchor = reference.partition("#")[2]
    if anchor and not anchor.startswith("/"):
        for base in scopes.inmost_first(scope):
            target = index.follow(Subschema(place.schema, base), f"#{anchor}")
            if target is not None and isinstance(target.schema, dict) and target.schema.get("$dynamicAnchor") == anchor:
                found = target
    return found


def _recursive(index: Index, place: Subschema, scope: int, scopes: _Scopes) -> Subschema | None:
    found = index.follow(place, "#")
    for base in ("", *scopes.inmost_first(scope)):
        target = index.follow(Subschema(place.schema, base), "#") if base else found
        if target is None or not isinstance(target.schema, dict) or target.schema.get("$recursiveAnchor") is not True:
            break
        found = target
    return found


def bundled(index: Index, start: Subschema) -> dict[str, Any] | None:
    """A schema and all that it refers to as one document; None where references depend on the documents."""
    targets: dict[int, tuple[str, Subschema]] = {}
    seen: set[int] = set()
    stack = [start]
    while stack:
        place = index.known(stack.pop())
        if not isinstance(place.schema, dict) or id(place.schema) in seen:
            continue
        spend()
        seen.add(id(place.schema))
        if any(keyword in place.schema for keyword in _DYNAMIC):
            return None
        if index.dialect.ref_stands_alone and {"$ref", "$id"} <= place.schema.keys():
            return None  # the name counts for nothing beside a reference, but `index` goes by it
        stack.extend(_applied(place))
        reference = place.schema.get("$ref")
        target = index.follow(place, reference) if isinstance(reference, str) else None
        if target is not None:
            targets.setdefault(id(target.schema), (f"t{len(targets)}", target))
            stack.append(target)
    named = {key: name for key, (name, _) in targets.items()}
    where = "definitions" if index.dialect.ref_stands_alone else "$defs"
    definitions = {name: _written(index, target, named, where) for name, target in targets.values()}
    return {where: definitions, "allOf": [_written(index, start, named, where)]}


def _written(index: Index, place: Subschema, named: dict[int, str], where: str) -> Any:
    """A part without names of its own, its references to parts by their place in the one document."""
    schema = index.known(place).schema
    if not isinstance(schema, dict):
        return schema
    spend()

    def below(child: Any) -> Any:
        if isinstance(child, list):
            return [below(one) for one in child]
        if not isinstance(child, dict):
            return child
        if id(child) in named:
            return {"$ref": f"#/{where}/{named[id(child)]}"}
        return _written(index, place.below(child), named, where)

    written: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in DATA:
            written[keyword] = value
        elif keyword == "$ref" and isinstance(value, str):
            target = index.follow(place, value)
            absolute = join(place.base, value)
            written[keyword] = absolute if target is None else f"#/{where}/{named[id(target.schema)]}"
        elif keyword in MAPS and isinstance(value, dict):
            if keyword not in ("$defs", "definitions"):
                written[keyword] = {name: below(child) for name, child in value.items()}
        elif keyword not in _NAMES:
            written[keyword] = below(value)
    return written
