"""Where subschemas are: references, identifiers and anchors followed without copying anything.

Rule 1: a place is a subschema with the base URI that holds there. It is known by the identity of its object, so a walk
that meets a place again can tell.
Rule 2: identifiers and anchors are found by one walk over each document, which does not look into `enum`, `const`,
`default` and `examples`: what is there is data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import jsonschema_rs

from signalbook.errors import Problem
from signalbook.schemas.format import pointer

__all__ = [
    "DEEPEST",
    "MAPS",
    "MOST_WORK",
    "PATTERNS",
    "Dialect",
    "Index",
    "Place",
    "join",
    "subschemas",
    "too_deep",
    "too_many_patterns",
    "work",
]

# Keywords whose value maps names to schemas.
MAPS = frozenset({"properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies"})
_DATA = frozenset({"enum", "const", "default", "examples"})


class Dialect(NamedTuple):
    """What a draft reads in another way.

    Whether keywords beside `$ref` count, which keyword holds a tuple, and which keywords of other drafts it ignores.
    """

    ref_stands_alone: bool
    tuples: str
    ignores: frozenset[str]


class Place(NamedTuple):
    """A subschema (an object or a boolean) and the base of the references in it."""

    schema: Any
    base: str

    def below(self, schema: Any) -> Place:
        """The place of a subschema written in this one."""
        if isinstance(schema, dict):
            name = schema.get("$id")
            if isinstance(name, str) and not name.startswith("#"):
                return Place(schema, join(self.base, name))
        return Place(schema, self.base)


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

    def __init__(self, document: Any, base: str, library: Callable[[str], Any], dialect: Dialect) -> None:
        self._library = library
        self.dialect = dialect
        self.metaschemas: set[str] = set()
        self._known: dict[int, tuple[Any, Place]] = {}
        # What `unevaluatedProperties` comes to (`facts`), by the identity of the schema it stands in; the
        # schema is kept with it, so that no other one gets its identity.
        self.closed: dict[int, tuple[Any, Place | None]] = {}
        self._named: dict[str, Place] = {}
        self.root = Place(document, base).below(document)
        self._add(Place(document, base))

    def _add(self, place: Place) -> None:
        self._named.setdefault(place.base, place.below(place.schema))
        stack: list[tuple[Place, bool]] = [(place.below(place.schema), False)]
        while stack:
            here, is_map = stack.pop()
            node = here.schema
            if isinstance(node, dict):
                if not is_map:
                    for name in _names(node, here.base):
                        self._named.setdefault(name, here)
                    if isinstance(metaschema := node.get("$schema"), str):
                        self.metaschemas.add(metaschema)
                for key, child in node.items():
                    if isinstance(child, dict | list) and (is_map or key not in _DATA):
                        below = not is_map and key in MAPS
                        stack.append((Place(child, here.base) if below else here.below(child), below))
            elif isinstance(node, list):
                stack.extend((here.below(child), False) for child in node if isinstance(child, dict | list))

    def known(self, place: Place) -> Place:
        """A place without the keywords that its draft ignores."""
        if isinstance(place.schema, bool) or self.dialect.ignores.isdisjoint(place.schema):
            return place
        key = id(place.schema)
        if key not in self._known:
            known = {name: value for name, value in place.schema.items() if name not in self.dialect.ignores}
            self._known[key] = (place.schema, Place(known, place.base))
        return self._known[key][1]

    def follow(self, place: Place, reference: str) -> Place | None:
        """The place that a reference leads to from another; None where there is none in the catalog."""
        target = join(place.base, reference)
        if target in self._named:
            return self._named[target]
        uri, _, fragment = target.partition("#")
        if uri not in self._named:
            try:
                self._add(Place(self._library(uri), uri))
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

    def where(self, uri: str) -> str:
        """The JSON Pointer of the first reference in the document to another one; empty where it stands elsewhere."""
        for here, steps in self._nodes():
            reference = here.schema.get("$ref") if isinstance(here.schema, dict) else None
            if isinstance(reference, str) and join(here.base, reference).partition("#")[0] == uri:
                return pointer((*steps, "$ref"))
        return ""

    def _nodes(self) -> Iterator[tuple[Place, tuple[str | int, ...]]]:
        """Yield every object and list of the document, in its order, with the steps that lead there."""
        stack: list[tuple[Place, tuple[str | int, ...]]] = [(self.root, ())]
        while stack:
            here, steps = stack.pop()
            yield here, steps
            node = here.schema
            pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
            children = [(here.below(child), (*steps, key)) for key, child in pairs if isinstance(child, dict | list)]
            stack.extend(reversed(children))

    def at(self, place: Place, fragment: str) -> Place | None:
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
        yield join(base, name)  # `#name` is an anchor in draft-07; any other is the base that holds here already
    for keyword in ("$anchor", "$dynamicAnchor"):
        anchor = node.get(keyword)
        if isinstance(anchor, str):
            yield f"{base.partition('#')[0]}#{anchor}"


# How much work a JSON Schema can make, judged before it is compiled.
#
# Rule 1: no schema nests deeper than `DEEPEST`, has more than `MOST_PATTERNS` different regular expressions, or more
# than
# `MOST_LARGE_PATTERNS` whose compiled form is large.
# Rule 2: references that lead to references multiply: a few lines of `allOf` can ask for 2**30 evaluations of one
# value.
# The evaluations of a single value are counted over the graph of references, each once, and held to `MOST_WORK`.
# Recursion counts once: the engine remembers it.


DEEPEST = 128
MOST_PATTERNS = 5_000
MOST_LARGE_PATTERNS = 100
MOST_SECONDS = 5.0
MOST_WORK = 1_000_000

# The engine is linear but for look-around and back references; those stop after this many steps, about 3 ms.
PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=50_000, size_limit=1024 * 1024, dfa_size_limit=1024 * 1024)
_SMALL = jsonschema_rs.FancyRegexOptions(backtrack_limit=50_000, size_limit=16 * 1024, dfa_size_limit=1024 * 1024)

_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
_HERE = frozenset({"not", "if", "then", "else"})
_ITEMS = frozenset({"items", "additionalItems", "contains", "unevaluatedItems", "prefixItems"})
_VALUES = frozenset({"additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames"})


def too_deep(document: Any) -> bool:
    """Tell whether a document nests deeper than is read."""
    level = [document]
    for _ in range(DEEPEST):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def too_many_patterns(documents: Iterable[Any]) -> Iterator[Problem]:
    """Yield a problem where compiling the regular expressions would take too much; what is not a pattern is skipped."""
    patterns = {pattern for document in documents for pattern in _patterns(document)}
    if len(patterns) > MOST_PATTERNS:
        yield Problem("", "schema", f"more than {MOST_PATTERNS:,} different patterns")
        return
    large, until = 0, time.monotonic() + MOST_SECONDS
    for pattern in patterns:
        large += not _compiles(pattern)
        if large > MOST_LARGE_PATTERNS:
            yield Problem("", "schema", f"more than {MOST_LARGE_PATTERNS} patterns that are very large or broken")
            return
        if time.monotonic() > until:
            yield Problem("", "schema", "patterns that take too long to compile")
            return


def _patterns(document: Any) -> Iterator[str]:
    stack = [document]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(pattern := node.get("pattern"), str):
                yield pattern
            if isinstance(named := node.get("patternProperties"), dict):
                yield from named
            stack.extend(child for child in node.values() if isinstance(child, dict | list))
        else:
            stack.extend(child for child in node if isinstance(child, dict | list))


def _compiles(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=_SMALL)
    except ValueError:
        return False
    return True


def subschemas(place: Place) -> Iterator[tuple[str, str, Place]]:
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


def work(index: Index, start: Place) -> int:
    """The most evaluations that one value and one path of values below it can cause, at most `MOST_WORK` + 1."""
    known: dict[int, int] = {}
    under_way: set[int] = set()
    # Depth first with a stack of its own: references can make a chain longer than Python's.
    stack: list[tuple[Place, bool]] = [(start, False)]
    while stack:
        place, done = stack.pop()
        key = id(place.schema)
        if not isinstance(place.schema, dict) or (key in known and not done):
            continue
        if done:
            under_way.discard(key)
            known[key] = _sum(index, place, known)
        elif key not in under_way:
            under_way.add(key)
            stack.append((place, True))
            stack.extend((child, False) for _, _, child in _applied(index, place) if id(child.schema) not in under_way)
    return known.get(id(start.schema), 1)


def _applied(index: Index, place: Place) -> Iterator[tuple[str, str, Place]]:
    for keyword, name, child in subschemas(place):
        if keyword not in ("definitions", "$defs"):
            yield keyword, name, child
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        reference = place.schema.get(keyword)
        if isinstance(reference, str):
            target = index.follow(place, reference)
            if target is not None:
                yield keyword, "", target


def _sum(index: Index, place: Place, known: dict[int, int]) -> int:
    """One for itself, all that applies to the value or to any member, and the worst of the named members."""
    total, worst = 1, 0
    for keyword, _, child in _applied(index, place):
        cost = known.get(id(child.schema), 1)
        if keyword == "properties":
            worst = max(worst, cost)
        else:
            total += cost
    return min(total + worst, MOST_WORK + 1)
