"""The components of an XML Schema, as comparisons and columns need them: elements, types, particles, attributes.

Rule 1: they are built from documents that libxml2 has compiled, so what is wrong with a schema has been said before.
Rule 2: names are in Clark's notation, `{namespace}local`; what is anonymous has none.
Rule 3: references are resolved and derivations applied: a type holds its whole content and all its attributes. A type
that contains itself is met again as the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from lxml import etree

from signalbook.budget import spend
from signalbook.schemas.format import unusable
from signalbook.schemas.xsd.read import XS, XsdDocument, XsdDocuments

__all__ = [
    "Complex",
    "Components",
    "Element",
    "Group",
    "Particle",
    "Simple",
    "Type",
    "Wildcard",
    "XsdAttribute",
    "local",
]

_SIMPLE_FACETS = frozenset(
    {"length", "minLength", "maxLength", "totalDigits", "fractionDigits", "whiteSpace"}
    | {"minInclusive", "maxInclusive", "minExclusive", "maxExclusive"}
)
_DEEPEST = 100
_EACH_TYPE, _NODES_A_STEP = 2, 4


@dataclass(frozen=True, slots=True, eq=False)
class Simple:
    """A simple type: the built-in one at its bottom, and what was said on the way to it.

    `patterns` has the patterns of each step, any of which may hold; each step's must. `enumeration` is None where any
    value may be. A list has its `item`, a union its `members`.
    """

    name: str
    builtin: str
    facets: dict[str, str] = field(default_factory=dict)
    patterns: tuple[tuple[str, ...], ...] = ()
    enumeration: tuple[str, ...] | None = None
    item: Simple | None = None
    members: tuple[Simple, ...] = ()


@dataclass(frozen=True, slots=True)
class XsdAttribute:
    """An attribute that an element may, or must, have."""

    name: str
    type: Simple
    required: bool = False
    fixed: str | None = None


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Elements, or attributes, that are not declared: of which namespaces, and how strictly they are judged."""

    namespace: str
    process: str


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """An element declaration; its type is found when it is asked for, because it may hold the element itself."""

    name: str
    find_type: Callable[[], Type]
    nillable: bool = False
    default: str | None = None
    fixed: str | None = None
    abstract: bool = False
    constraints: tuple[str, ...] = ()

    @property
    def type(self) -> Type:
        """The type of its content."""
        return self.find_type()


@dataclass(frozen=True, slots=True)
class Group:
    """A model group: `sequence`, `choice` or `all`."""

    kind: str
    particles: tuple[Particle, ...] = ()


@dataclass(frozen=True, slots=True)
class Particle:
    """A term and how often it occurs; `high` is None where there is no bound."""

    term: Element | Group | Wildcard
    low: int = 1
    high: int | None = 1


@dataclass(slots=True, eq=False)
class Complex:
    """A complex type: `simple` for simple content, `content` for elements, neither for none at all."""

    name: str
    content: Particle | None = None
    simple: Simple | None = None
    mixed: bool = False
    attributes: dict[str, XsdAttribute] = field(default_factory=dict)
    wildcard: Wildcard | None = None
    abstract: bool = False


Type = Simple | Complex

_ANY_TYPE = Complex(
    XS + "anyType", Particle(Wildcard("##any", "lax"), 0, None), mixed=True, wildcard=Wildcard("##any", "lax")
)


class Components:
    """All components of a schema; `elements` are the declarations that a document may begin with."""

    def __init__(self, documents: XsdDocuments) -> None:
        self._nodes: dict[tuple[str, str], tuple[Any, XsdDocument]] = {}
        self._types: dict[Any, Type] = {}
        self._substitutes: dict[str, list[str]] = {}
        self._direct: dict[str, set[str]] = {}  # the types that come at once of a named one
        self._depth = 0
        for document in documents.all:
            for node in document.root:
                name = node.get("name")
                if name is not None and node.tag.startswith(XS):
                    kind = node.tag[len(XS) :].replace("simpleType", "type").replace("complexType", "type")
                    self._nodes.setdefault((kind, _qualified(document.target, name)), (node, document))
        self._find_derived()
        self.elements: dict[str, Element] = {
            name: self._declared(*found) for (kind, name), found in self._nodes.items() if kind == "element"
        }

    def _find_derived(self) -> None:
        for (kind, name), (node, document) in self._nodes.items():
            if kind == "element" and node.get("substitutionGroup"):
                head = self._name(node, node.get("substitutionGroup"), document)
                self._substitutes.setdefault(head, []).append(name)
            if kind == "type":
                for step in node.iter(XS + "extension", XS + "restriction"):
                    if step.get("base") and _owner(step) is node:
                        self._direct.setdefault(self._name(step, step.get("base"), document), set()).add(name)

    def derived(self, base: str) -> set[str]:
        """The types that come of a named one, at once or through others."""
        seen: set[str] = set()
        stack = list(self._direct.get(base, ()))
        while stack:
            name = stack.pop()
            if name not in seen:
                seen.add(name)
                stack.extend(self._direct.get(name, ()))
        return seen

    # ---- names

    def _name(self, node: Any, text: str, document: XsdDocument) -> str:
        """The name that a QName in a node's attribute stands for."""
        prefix, _, plain = text.strip().rpartition(":")
        namespace = node.nsmap.get(prefix or None, "")
        if not namespace and not prefix and not document.root.get("targetNamespace"):
            namespace = document.target  # a document without a namespace, included into one
        return _qualified(namespace, plain)

    def _find(self, kind: str, node: Any, text: str, document: XsdDocument) -> tuple[Any, XsdDocument]:
        name = self._name(node, text, document)
        found = self._nodes.get((kind, name))
        if found is None:
            raise unusable(f"line {node.sourceline}: the {kind} {name} is not there")
        return found

    # ---- elements

    def _declared(self, node: Any, document: XsdDocument) -> Element:
        is_global = node.getparent() is document.root
        form = node.get("form", document.root.get("elementFormDefault", "unqualified"))
        target = document.target if is_global or form == "qualified" else ""
        return Element(
            _qualified(target, node.get("name", "")), lambda: self._type_of(node, document),
            node.get("nillable") in ("true", "1"), node.get("default"), node.get("fixed"),
            node.get("abstract") in ("true", "1"),
            tuple(sorted(etree.tostring(part, method="c14n").decode() for part in node
                         if part.tag in (XS + "unique", XS + "key", XS + "keyref"))),
        )  # fmt: skip

    def _element(self, node: Any, document: XsdDocument) -> Element | Group:
        """A local declaration, or what a reference stands for: the element, or a choice of all that may replace it."""
        if node.get("ref") is None:
            return self._declared(node, document)
        found, home = self._find("element", node, node.get("ref"), document)
        names = [_qualified(home.target, found.get("name", ""))]
        for name in names:
            names.extend(other for other in self._substitutes.get(name, ()) if other not in names)
        choices = [self._declared(*self._nodes["element", name]) for name in names]
        choices = [one for one in choices if not one.abstract] or choices
        if len(choices) == 1:
            return choices[0]
        return Group("choice", tuple(Particle(one) for one in choices))

    # ---- types

    def _type_of(self, node: Any, document: XsdDocument) -> Type:
        """The type of an element or attribute declaration."""
        if node.get("type") is not None:
            return self.type(self._name(node, node.get("type"), document))
        for part in node.iterchildren(XS + "simpleType", XS + "complexType"):
            return self._build(part, document)
        head = node.get("substitutionGroup")
        if head is not None:
            return self._type_of(*self._find("element", node, head, document))
        return _ANY_TYPE if node.tag == XS + "element" else Simple(XS + "anySimpleType", "anySimpleType")

    def type(self, name: str) -> Type:
        """The type of a name, built in or of the schema."""
        if name == XS + "anyType":
            return _ANY_TYPE
        if name.startswith(XS):
            return _builtin(name[len(XS) :])
        found = self._nodes.get(("type", name))
        if found is None:
            raise unusable(f"the type {name} is not there")
        return self._build(*found)

    def _build(self, node: Any, document: XsdDocument) -> Type:
        if node not in self._types:
            spend(_EACH_TYPE + len(node) // _NODES_A_STEP)
            self._depth += 1
            if self._depth > _DEEPEST:
                raise unusable(f"line {node.sourceline}: types are derived from one another too deeply")
            name = _qualified(document.target, node.get("name")) if node.get("name") else ""
            if node.tag == XS + "simpleType":
                self._types[node] = self._simple(node, document, name)
            else:
                self._complex(node, document, name)
            self._depth -= 1
        return self._types[node]

    def _simple(self, node: Any, document: XsdDocument, name: str) -> Simple:
        for part in node.iterchildren(XS + "restriction", XS + "list", XS + "union"):
            inner = [self._simple_type(one, document) for one in part.iterchildren(XS + "simpleType")]
            if part.tag == XS + "restriction":
                base = inner[0] if inner else self._named_simple(part, part.get("base"), document)
                return _restricted(base, part, name)
            if part.tag == XS + "list":
                item = inner[0] if inner else self._named_simple(part, part.get("itemType"), document)
                return Simple(name, "list", item=item)
            named = [self._named_simple(part, one, document) for one in (part.get("memberTypes") or "").split()]
            return Simple(name, "union", members=(*named, *inner))
        return _builtin("anySimpleType")

    def _simple_type(self, node: Any, document: XsdDocument) -> Simple:
        found = self._build(node, document)
        assert isinstance(found, Simple)
        return found

    def _named_simple(self, node: Any, text: str, document: XsdDocument) -> Simple:
        found = self.type(self._name(node, text, document))
        return found if isinstance(found, Simple) else _builtin("anySimpleType")

    def _complex(self, node: Any, document: XsdDocument, name: str) -> None:
        found = self._types[node] = Complex(name, mixed=node.get("mixed") in ("true", "1"))
        found.abstract = node.get("abstract") in ("true", "1")
        step, own = node, node
        for part in node.iterchildren(XS + "simpleContent", XS + "complexContent"):
            found.mixed = part.get("mixed", node.get("mixed")) in ("true", "1")
            own = part
            for step in part.iterchildren(XS + "extension", XS + "restriction"):
                self._derive(found, step, document)
        particle = self._content(step, document)
        if own.tag != XS + "simpleContent" and particle is not None:
            base = found.content if step.tag == XS + "extension" else None
            found.content = particle if base is None else Particle(Group("sequence", (base, particle)))
        elif step.tag == XS + "restriction" and own.tag == XS + "complexContent":
            found.content = None
        self._attributes(found, step, document)

    def _derive(self, found: Complex, step: Any, document: XsdDocument) -> None:
        """Take over what the base has; a restriction repeats its content but not its attributes."""
        base = self.type(self._name(step, step.get("base"), document))
        if isinstance(base, Simple):
            found.simple = base
        else:
            found.simple, found.content = base.simple, base.content
            found.attributes = dict(base.attributes)
            found.wildcard = base.wildcard if step.tag == XS + "extension" else None
            if step.tag == XS + "extension":
                found.mixed = found.mixed or base.mixed
        if found.simple is not None and step.tag == XS + "restriction":
            inner = [self._simple_type(one, document) for one in step.iterchildren(XS + "simpleType")]
            found.simple = _restricted(inner[0] if inner else found.simple, step, "")

    def _content(self, node: Any, document: XsdDocument) -> Particle | None:
        for part in node.iterchildren(XS + "sequence", XS + "choice", XS + "all", XS + "group"):
            return self._particle(part, document)
        return None

    def _particle(self, node: Any, document: XsdDocument) -> Particle:
        low = int(node.get("minOccurs", "1"))
        bound = node.get("maxOccurs", "1")
        high = None if bound == "unbounded" else int(bound)
        if node.tag == XS + "element":
            return Particle(self._element(node, document), low, high)
        if node.tag == XS + "any":
            return Particle(_wildcard(node, document), low, high)
        if node.tag == XS + "group":
            found, home = self._find("group", node, node.get("ref"), document)
            inner = self._content(found, home)
            return Particle(inner.term if inner is not None else Group("sequence"), low, high)
        parts = [part for part in node if part.tag in _PARTICLES]
        spend(1 + len(parts))
        return Particle(Group(node.tag[len(XS) :], tuple(self._particle(one, document) for one in parts)), low, high)

    # ---- attributes

    def _attributes(self, found: Complex, node: Any, document: XsdDocument, depth: int = 0) -> None:
        for part in node.iterchildren(XS + "attribute", XS + "attributeGroup", XS + "anyAttribute"):
            if part.tag == XS + "anyAttribute":
                found.wildcard = _wildcard(part, document)
            elif part.tag == XS + "attribute":
                self._attribute(found, part, document)
            elif part.get("ref") is not None and depth < _DEEPEST:
                self._attributes(found, *self._find("attributeGroup", part, part.get("ref"), document), depth + 1)

    def _attribute(self, found: Complex, node: Any, document: XsdDocument) -> None:
        home, owner, is_global = node, document, False
        if node.get("ref") is not None:
            home, owner = self._find("attribute", node, node.get("ref"), document)
            is_global = True
        form = home.get("form", owner.root.get("attributeFormDefault", "unqualified"))
        name = _qualified(owner.target if is_global or form == "qualified" else "", home.get("name", ""))
        if node.get("use") == "prohibited":
            found.attributes.pop(name, None)
            return
        kind = self._type_of(home, owner)
        simple = kind if isinstance(kind, Simple) else _builtin("anySimpleType")
        fixed = node.get("fixed", home.get("fixed"))
        found.attributes[name] = XsdAttribute(name, simple, node.get("use") == "required", fixed)


_PARTICLES = frozenset(XS + name for name in ("element", "any", "group", "sequence", "choice", "all"))


def local(name: str) -> str:
    """The name without its namespace."""
    return name.rpartition("}")[2]


def _qualified(namespace: str, name: str) -> str:
    return f"{{{namespace}}}{name}" if namespace else name


def _owner(node: Any) -> Any:
    """The nearest type around a node."""
    while node is not None and node.tag not in (XS + "simpleType", XS + "complexType"):
        node = node.getparent()
    return node


def _wildcard(node: Any, document: XsdDocument) -> Wildcard:
    names = {
        {"##targetNamespace": document.target, "##local": ""}.get(one, one)
        for one in node.get("namespace", "##any").split()
    }
    if names == {"##other"}:
        names = {"##other", document.target}
    return Wildcard(" ".join(sorted(names)), node.get("processContents", "strict"))


_BUILTINS: dict[str, Simple] = {}
_LISTS = {"NMTOKENS": "NMTOKEN", "IDREFS": "IDREF", "ENTITIES": "ENTITY"}


def _builtin(name: str) -> Simple:
    if name not in _BUILTINS:
        item = Simple(XS + _LISTS[name], _LISTS[name]) if name in _LISTS else None
        _BUILTINS[name] = Simple(XS + name, "list" if item else name, {"minLength": "1"} if item else {}, item=item)
    return _BUILTINS[name]


def _restricted(base: Simple, step: Any, name: str) -> Simple:
    """A type with the facets of one more restriction."""
    facets = dict(base.facets)
    for node in _children(step):
        kind = node.tag[len(XS) :]
        if kind in _SIMPLE_FACETS:
            facets[kind] = node.get("value", "")
    patterns = tuple(node.get("value", "") for node in step.iterchildren(XS + "pattern"))
    values = tuple(node.get("value", "") for node in step.iterchildren(XS + "enumeration"))
    return replace(
        base, name=name, facets=facets, patterns=(*base.patterns, patterns) if patterns else base.patterns,
        enumeration=values or base.enumeration,
    )  # fmt: skip


def _children(node: Any) -> Iterator[Any]:
    return (child for child in node if isinstance(child.tag, str) and child.tag.startswith(XS))
