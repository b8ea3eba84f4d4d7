"""The places of a JSON Schema: subschemas found by reference, and what holds for the values that they accept.

Rule 1: a place is a subschema with the base URI that holds there. It is known by the identity of its object, so a walk
that meets a place again can tell.
Rule 2: identifiers and anchors are found by one walk over each document, which does not look into `enum`, `const`,
`default` and `examples`: what is there is data.
Rule 3: a node is all that applies to one value: `allOf` and references are followed in place, so it is a tuple of
places. A keyword that is not understood makes the set of values smaller, never larger, so leaving it out is safe.
Rule 4: a type is an atom: `number` is `integer` and `fraction`, and 1.0 is an integer, as the drafts say.
Rule 5: two values are the same where JSON Schema says so: 1 and 1.0 are, 1 and true are not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urljoin, urlsplit

import jsonschema_rs

from signalbook.budget import spend
from signalbook.schemas.format import pointer

__all__ = [
    "ATOMS",
    "DATA",
    "DYNAMIC",
    "MAPS",
    "MOST_COMPILED",
    "NOTES",
    "PATTERNS",
    "Bound",
    "DraftRules",
    "Index",
    "Node",
    "Subschema",
    "applied",
    "atoms_of",
    "bound",
    "branches",
    "fraction",
    "item",
    "join",
    "longest_tuple",
    "matches",
    "member",
    "multiplies",
    "names",
    "node_of",
    "pattern_member",
    "patterns",
    "required",
    "rest",
    "same_key",
    "stated",
    "subschemas",
    "types",
    "unfollowed",
    "values",
]

# Keywords whose value maps names to schemas.
MAPS = frozenset({"properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies"})
DATA = frozenset({"enum", "const", "default", "examples"})


# The engine is linear but for look-around and back references; those stop after this many steps, about 3 ms.
PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=50_000, size_limit=1024 * 1024, dfa_size_limit=1024 * 1024)

# The steps for a pattern that is compiled, and how many are tried in one.
_COMPILED, _MATCHES_A_STEP = 10, 4

_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
_HERE = frozenset({"not", "if", "then", "else"})
_ITEMS = frozenset({"items", "additionalItems", "contains", "unevaluatedItems", "prefixItems"})
_VALUES = frozenset({"additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames"})


class DraftRules(NamedTuple):
    """What a draft reads in another way.

    Whether keywords beside `$ref` count, which keyword holds a tuple, and which keywords of other drafts it ignores.
    """

    ref_stands_alone: bool
    tuples: str
    ignores: frozenset[str]


class Subschema(NamedTuple):
    """A subschema (an object or a boolean) and the base of the references in it."""

    schema: Any
    base: str

    def below(self, schema: Any) -> Subschema:
        """The place of a subschema written in this one."""
        if isinstance(schema, dict):
            name = schema.get("$id")
            if isinstance(name, str) and not name.startswith("#"):
                return Subschema(schema, join(self.base, name))
        return Subschema(schema, self.base)


def join(base: str, reference: str) -> str:
    """The absolute URI of a reference, for any scheme that has paths; the empty fragment is left out."""
    scheme = urlsplit(base).scheme
    if reference.startswith("#"):
        joined = base.partition("#")[0] + reference
    elif urlsplit(reference).scheme or base.startswith("urn:"):
        joined = reference
    else:
        # `urljoin` joins only for the schemes it has heard of, and paths come out right only below an authority.
        rest = base.removeprefix(f"{scheme}:")
        hollow = rest.startswith("///")
        known = "http:" + ("//hollow" + rest[2:] if hollow else rest)
        joined = urljoin(known, reference).removeprefix("http:")
        if hollow and joined.startswith("//hollow"):
            joined = "//" + joined.removeprefix("//hollow")
        joined = f"{scheme}:{joined}"
    return joined.removesuffix("#")


class Index:
    """The identifiers and anchors of a document and of those it leads to."""

    __slots__ = ("_known", "_library", "_named", "closed", "dialect", "metaschemas", "root")

    def __init__(self, document: Any, base: str, library: Callable[[str], Any], dialect: DraftRules) -> None:
        self._library = library
        self.dialect = dialect
        self.metaschemas: set[str] = set()
        self._known: dict[int, tuple[Any, Subschema]] = {}
        # What `unevaluatedProperties` comes to (`_closed`), by the identity of the schema it stands in; the
        # schema is kept with it, so that no other one gets its identity.
        self.closed: dict[int, tuple[Any, Subschema | None]] = {}
        self._named: dict[str, Subschema] = {}
        self.root = Subschema(document, base).below(document)
        self._add(Subschema(document, base))

    def _add(self, place: Subschema) -> None:
        self._named.setdefault(place.base, place.below(place.schema))
        stack: list[tuple[Subschema, bool]] = [(place.below(place.schema), False)]
        while stack:
            here, is_map = stack.pop()
            spend()
            node = here.schema
            if isinstance(node, dict):
                if not is_map:
                    for name in _names(node, here.base):
                        self._named.setdefault(name, here)
                    if isinstance(metaschema := node.get("$schema"), str):
                        self.metaschemas.add(metaschema)
                for key, child in node.items():
                    if isinstance(child, dict | list) and (is_map or key not in DATA):
                        below = not is_map and key in MAPS
                        stack.append((Subschema(child, here.base) if below else here.below(child), below))
            elif isinstance(node, list):
                stack.extend((here.below(child), False) for child in node if isinstance(child, dict | list))

    def known(self, place: Subschema) -> Subschema:
        """A place without the keywords that its draft ignores."""
        if isinstance(place.schema, bool) or self.dialect.ignores.isdisjoint(place.schema):
            return place
        key = id(place.schema)
        if key not in self._known:
            known = {name: value for name, value in place.schema.items() if name not in self.dialect.ignores}
            self._known[key] = (place.schema, Subschema(known, place.base))
        return self._known[key][1]

    def follow(self, place: Subschema, reference: str) -> Subschema | None:
        """The place that a reference leads to from another; None where there is none in the catalog."""
        target = join(place.base, reference)
        if target in self._named:
            return self._named[target]
        uri, _, fragment = target.partition("#")
        if uri not in self._named:
            try:
                self._add(Subschema(self._library(uri), uri))
            except LookupError:
                return None
            if target in self._named:
                return self._named[target]
        if fragment and not fragment.startswith("/"):
            return None
        return self.at(self._named[uri], unquote(fragment))

    def lost(self) -> bool:
        """Tell whether the document refers to a place in itself that is not there."""
        own = self.root.base.partition("#")[0]
        for here, _ in self._nodes():
            reference = here.schema.get("$ref") if isinstance(here.schema, dict) else None
            if not isinstance(reference, str) or join(here.base, reference).partition("#")[0] != own:
                continue
            if self.follow(here, reference) is None:
                return True
        return False

    def first_uses(self, uris: Collection[str]) -> dict[str, str]:
        """The JSON Pointer of the first reference in the document to each of some others; none where it has none."""
        found: dict[str, str] = {}
        for here, steps in self._nodes():
            reference = here.schema.get("$ref") if isinstance(here.schema, dict) else None
            if isinstance(reference, str):
                uri = join(here.base, reference).partition("#")[0]
                if uri in uris and uri not in found:
                    found[uri] = pointer((*steps, "$ref"))
                    if len(found) == len(uris):
                        break
        return found

    def _nodes(self) -> Iterator[tuple[Subschema, tuple[str | int, ...]]]:
        """Yield every object and list of the document, in its order, with the steps that lead there."""
        stack: list[tuple[Subschema, tuple[str | int, ...]]] = [(self.root, ())]
        while stack:
            here, steps = stack.pop()
            yield here, steps
            node = here.schema
            pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
            children = [(here.below(child), (*steps, key)) for key, child in pairs if isinstance(child, dict | list)]
            stack.extend(reversed(children))

    def at(self, place: Subschema, fragment: str) -> Subschema | None:
        """The place that a JSON Pointer leads to below another; None where it leads to no schema."""
        for step in fragment.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            node = place.schema
            if isinstance(node, dict) and step in node:
                place = place.below(node[step])
            elif isinstance(node, list) and step.isdecimal() and int(step) < len(node):
                place = place.below(node[int(step)])
            else:
                return None
        return place if isinstance(place.schema, dict | bool) else None


def _names(node: dict[str, Any], base: str) -> Iterator[str]:
    """The absolute URIs under which a schema object is known."""
    name = node.get("$id")
    if isinstance(name, str):
        # `#name` is an anchor in draft-07; any other is the base that holds here already, and is not joined again.
        yield join(base, name) if name.startswith("#") else base
    for keyword in ("$anchor", "$dynamicAnchor"):
        anchor = node.get(keyword)
        if isinstance(anchor, str):
            yield f"{base.partition('#')[0]}#{anchor}"


def subschemas(place: Subschema) -> Iterator[tuple[str, str, Subschema]]:
    """Yield each schema written directly in another, with the keyword and the name or index below it."""
    for keyword, value in place.schema.items():
        if keyword in MAPS or keyword == "patternProperties":
            if isinstance(value, dict):
                yield from (
                    (keyword, name, place.below(child))
                    for name, child in value.items()
                    if isinstance(child, dict | bool)
                )
        elif keyword in _LISTS or (keyword in _ITEMS and isinstance(value, list)):
            if isinstance(value, list):
                yield from (
                    (keyword, str(at), place.below(child))
                    for at, child in enumerate(value)
                    if isinstance(child, dict | bool)
                )
        elif (keyword in _HERE or keyword in _ITEMS or keyword in _VALUES) and isinstance(value, dict | bool):
            yield keyword, "", place.below(value)


# What holds for every value that a node accepts. A node is all that applies to one value.


Node: TypeAlias = tuple[Subschema, ...]

ATOMS = frozenset({"null", "boolean", "integer", "fraction", "string", "array", "object"})
_MEANS = {"number": frozenset({"integer", "fraction"})}


# Keywords that say nothing about values. A schema of these and of `$ref` or `allOf` adds nothing itself.
NOTES = frozenset(
    [
        "$id",
        "$schema",
        "$defs",
        "definitions",
        "$anchor",
        "$dynamicAnchor",
        "$recursiveAnchor",
        "$comment",
        "$vocabulary",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
    ]
)
_SILENT = NOTES | {"$ref", "allOf"}
_CONDITIONAL = frozenset(
    ["anyOf", "oneOf", "if", "not", "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef"]
)


def node_of(index: Index, *places: Subschema) -> Node:
    """All places that apply where these apply, references and `allOf` followed, each once."""
    found: list[Subschema] = []
    seen: set[int] = set()
    stack = list(reversed(places))
    while stack:
        place = index.known(stack.pop())
        schema = place.schema
        if schema is True or id(schema) in seen:
            continue
        if schema is False:
            return (place,)
        seen.add(id(schema))
        target = index.follow(place, schema["$ref"]) if isinstance(schema.get("$ref"), str) else None
        if target is not None:
            stack.append(target)
            if index.dialect.ref_stands_alone:
                continue
        stack.extend(place.below(part) for part in reversed(schema.get("allOf", ())))
        if not _SILENT.issuperset(schema) or (target is None and "$ref" in schema):
            found.append(place)
        if "unevaluatedProperties" in schema and (closed := _closed(index, place)) is not None:
            found.append(closed)
    return tuple(found)


def _closed(index: Index, place: Subschema) -> Subschema | None:
    """What `unevaluatedProperties` comes to where nothing beside it depends on the value; else None.

    It is then `additionalProperties` for the names that the schema and its `allOf` and references declare.
    """
    key = id(place.schema)
    if key not in index.closed:
        index.closed[key] = (place.schema, None)
        bare = Subschema(
            {name: value for name, value in place.schema.items() if name != "unevaluatedProperties"}, place.base
        )
        parts = node_of(index, bare)
        if not any(part.schema is False or _CONDITIONAL & part.schema.keys() for part in parts):
            extra = place.schema["unevaluatedProperties"]
            open_again = any(part.schema.keys() & {"additionalProperties", "unevaluatedProperties"} for part in parts)
            closing = {
                "properties": {name: True for part in parts for name in part.schema.get("properties", ())},
                "patternProperties": {
                    name: True for part in parts for name in part.schema.get("patternProperties", ())
                },
                "additionalProperties": True if open_again else extra,
            }
            index.closed[key] = (place.schema, Subschema(closing, place.base))
    return index.closed[key][1]


def unfollowed(index: Index, place: Subschema) -> bool:
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


def values(index: Index, node: Node) -> list[Any] | None:
    """The only values that a node can have where `enum`, `const`, the type or a union of those name them; else None."""
    lists: list[list[Any]] = [
        *([place.schema["const"]] for place in node if place.schema is not False and "const" in place.schema),
        *(place.schema["enum"] for place in node if place.schema is not False and "enum" in place.schema),
    ]
    for several in branches(index, node):
        listed = [values(index, branch) for branch in several if not _has_unions(branch)]
        if len(listed) == len(several) and None not in listed:
            lists.append([value for one in listed for value in one or ()])
    allowed = types(node)
    if not lists:
        if allowed <= {"null", "boolean"}:
            return [value for value in (None, False, True) if atoms_of(value) in allowed]
        return None
    shared = set.intersection(*({same_key(value) for value in one} for one in lists))
    found = {key: value for value in lists[0] if (key := same_key(value)) in shared and atoms_of(value) in allowed}
    return list(found.values())


def _has_unions(node: Node) -> bool:
    return any(place.schema is not False and ("anyOf" in place.schema or "oneOf" in place.schema) for place in node)


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


# What a JSON Schema says of the members of objects, the items of arrays and the bounds of numbers, over a whole node.
#
# Rule: each function answers for all values of the node: a bound is one that every value keeps, a member's node is what
# every such member fulfils.


class Bound(NamedTuple):
    """An end of a range; an open end does not belong to it."""

    value: Fraction
    open: bool


def stated(node: Node, keyword: str) -> list[Any]:
    """The values that a keyword has in a node."""
    return [place.schema[keyword] for place in node if place.schema is not False and keyword in place.schema]


def bound(node: Node, side: str, whole: bool) -> Bound | None:
    """The tightest `Minimum` or `Maximum` of a node; for whole numbers, the whole number at that end."""
    sign = 1 if side == "Minimum" else -1
    ends = [Bound(fraction(value), False) for value in stated(node, side.lower())]
    ends += [Bound(fraction(value), True) for value in stated(node, f"exclusive{side}")]
    if whole:
        ends = [_whole(end, sign) for end in ends]
    return max(ends, key=lambda end: (sign * end.value, end.open), default=None)


def _whole(end: Bound, sign: int) -> Bound:
    inside = ceil(end.value) if sign > 0 else floor(end.value)
    return Bound(Fraction(inside + sign if end.open and inside == end.value else inside), False)


def required(node: Node) -> set[str]:
    """The members that every object of a node has."""
    return {name for names in stated(node, "required") for name in names}


def names(node: Node) -> Iterator[str]:
    """Each name that a node declares, once, in order."""
    return iter(dict.fromkeys(name for properties in stated(node, "properties") for name in properties))


def patterns(node: Node) -> list[str]:
    """Each pattern for names that a node declares, once."""
    return list(dict.fromkeys(pattern for several in stated(node, "patternProperties") for pattern in several))


@lru_cache(maxsize=1024)
def _pattern(pattern: str) -> jsonschema_rs.Validator:
    spend(_COMPILED)
    return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=PATTERNS)


def matches(pattern: str, text: str) -> bool:
    """Tell whether a regular expression of a schema is found in a text."""
    return _pattern(pattern).is_valid(text)


def member(index: Index, node: Node, name: str) -> Node:
    """What the member of this name fulfils."""
    places: list[Subschema] = []
    for place in node:
        schema = place.schema
        if schema is False:
            return (place,)
        here = [schema["properties"][name]] if name in schema.get("properties", ()) else []
        several = schema.get("patternProperties", {})
        spend(len(several) // _MATCHES_A_STEP)
        here += [below for pattern, below in several.items() if matches(pattern, name)]
        if not here and "additionalProperties" in schema:
            here = [schema["additionalProperties"]]
        places.extend(place.below(below) for below in here)
    return node_of(index, *places)


def rest(index: Index, node: Node) -> Node:
    """What a member fulfils whose name the node neither declares nor has a pattern for."""
    return _below(index, node, "additionalProperties")


def _below(index: Index, node: Node, keyword: str) -> Node:
    places = [place.below(place.schema[keyword]) for place in node if keyword in place.schema]
    return node_of(index, *places)


def pattern_member(index: Index, node: Node, pattern: str) -> Node:
    """What a member fulfils whose name matches a pattern that the node declares."""
    places = [
        place.below(place.schema["patternProperties"][pattern])
        for place in node
        if pattern in place.schema.get("patternProperties", ())
    ]
    return node_of(index, *places)


def _tuple(index: Index, schema: dict[str, Any]) -> tuple[list[Any], Any]:
    """The schemas of the first items, and that of all others."""
    first = schema.get(index.dialect.tuples)
    if isinstance(first, list):
        return first, schema.get("additionalItems" if index.dialect.tuples == "items" else "items", True)
    return [], schema.get("items", True)


def longest_tuple(index: Index, node: Node) -> int:
    """How many first items have a schema of their own."""
    return max((len(_tuple(index, place.schema)[0]) for place in node), default=0)


def item(index: Index, node: Node, at: int) -> Node:
    """What the item at a position fulfils."""
    places = []
    for place in node:
        first, others = _tuple(index, place.schema)
        places.append(place.below(first[at] if at < len(first) else others))
    return node_of(index, *places)


# How often the engine would compile the parts of a schema.
#
# Rule: it compiles a part anew for each chain of documents (parts with an `$id` among them) that leads to it: millions,
# where ten documents refer to one another. So they are counted before it is asked, and counting ends at the bound.


# How often each part may be compiled on average, and how many are never too many.
_EACH, FREE = 4, 1_000
# How many parts are compiled of a schema with dynamic references, which cannot be written as one document.
MOST_COMPILED = 10_000
# What a reference to a metaschema, of which the engine has its own copy, counts for.
_METASCHEMA = 200
DYNAMIC = ("$dynamicRef", "$recursiveRef")


class _Visit(NamedTuple):
    place: Subschema
    scope: int
    alias: str
    is_left: bool = False


class _Scopes:
    """Chains of documents, each known by a number."""

    def __init__(self) -> None:
        self._numbers, self._chains = dict[tuple[int, str], int](), [(0, "")]

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
    done, parts, pending = set[tuple[int, int]](), set[int](), set[str]()
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
        if count > free + _EACH * len(parts):
            return True
        if not (index.dialect.ref_stands_alone and "$ref" in place.schema):
            stack.extend(_Visit(child, visit.scope, "") for child in applied(place))
        own = _document(place.base)
        for alias, target in references:
            if target is not None:
                is_same = visit.scope and _document(alias) == own
                stack.append(_Visit(target, visit.scope if is_same else scopes.longer(visit.scope, own), alias))
    return False


def applied(place: Subschema) -> Iterator[Subschema]:
    """Yield the schemas written directly in another that are applied to values."""
    return (child for keyword, _, child in subschemas(place) if keyword not in ("$defs", "definitions"))


def _document(uri: str) -> str:
    return uri.partition("#")[0]


def _references(index: Index, place: Subschema, scope: int, scopes: _Scopes) -> Iterator[tuple[str, Subschema | None]]:
    """Yield where a place refers to, with the name that a part has while it is compiled."""
    for keyword in ("$ref", *DYNAMIC):
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
