"""Where subschemas are: references, identifiers and anchors followed without copying anything.

Rule 1: a place is a subschema with the base URI that holds there. It is known by the identity of its object, so a walk
that meets a place again can tell.
Rule 2: identifiers and anchors are found by one walk over each document, which does not look into `enum`, `const`,
`default` and `examples`: what is there is data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from signalbook.schemas.format import pointer

__all__ = ["MAPS", "Dialect", "Index", "Place", "join"]

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
        # What `unevaluatedProperties` comes to (`json_schema_facts`), by the identity of the schema it stands in; the
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
