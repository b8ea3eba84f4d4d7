"""The documents of an XML Schema: read from untrusted text, gathered from the catalog, weighed, compiled by libxml2.

Rule 1: there is no DTD, so there are no entities; no document is ever fetched. What `xs:include` and `xs:import` name
is asked of the catalog, and the compiler sees only that.
Rule 2: what makes libxml2 slow or large (long runs of optional elements, counters within counters, patterns that
backtrack, what types inherit from types) is refused before it sees it.
Rule 3: XSD 1.1 is another language; a text that uses it is rejected with these words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any
from urllib.parse import urljoin

from lxml import etree

from signalbook.budget import spend
from signalbook.errors import Problem
from signalbook.schemas.format import LARGEST, REFERENCE, References, SchemaError, Text, base_of, unreachable, unusable
from signalbook.schemas.xsd.pattern import PatternBudget, danger

__all__ = [
    "MOST_ATTRIBUTES",
    "MOST_COMPARED",
    "MOST_MEMBERS",
    "XS",
    "Inherited",
    "XsdDocument",
    "XsdDocuments",
    "compile_schema",
    "parse_xml",
    "read_documents",
]

# What the types of an XML Schema inherit, weighed before libxml2 compiles them.
#
# Rule: libxml2 holds each attribute of a type against all others of it, inherited ones with them, and each value of an
# enumeration against those of the type that it restricts; a union it writes out to the last member, so that unions of
# unions multiply. The sums over a schema are bounded, whatever its size.


XS = "{http://www.w3.org/2001/XMLSchema}"
MOST_ATTRIBUTES = 20_000
MOST_COMPARED = 20_000_000
MOST_MEMBERS = 20_000
_DEEPEST = 200
_PROBLEMS = 20
_NODES_A_STEP = 4
_ENDLESS = 10**9

_ELEMENT = XS + "element"
_ATTRIBUTE, _ENUMERATION = XS + "attribute", XS + "enumeration"
_COMPLEX, _SIMPLE, _ATTRIBUTES = XS + "complexType", XS + "simpleType", XS + "attributeGroup"
_INSIDE = frozenset(XS + name for name in ("complexContent", "simpleContent", "extension", "restriction", "union"))


class Inherited:
    """The attributes and the enumerations of the types of some documents, by the names of whichever namespace."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self._roots = tuple(roots)
        self._named: dict[tuple[str, str], list[Any]] = {}
        for root in self._roots:
            for node in root.iterchildren(_COMPLEX, _SIMPLE, _ATTRIBUTES):
                self._named.setdefault((node.tag, node.get("name", "")), []).append(node)

    def beyond(self) -> Iterator[tuple[Any, str]]:
        """Yield the type with which a bound is passed, and the words for it."""
        attributes, known, open_ = 0, dict[Any, int](), set[Any]()
        for node in self._all(_COMPLEX, _ATTRIBUTES):
            attributes += _sum(node, self._attributes, known, open_) ** 2
            if attributes > MOST_ATTRIBUTES**2:
                yield node, "the attributes of the types before and of this one, inherited ones counted for each"
                break
        compared, known = 0, {}
        for node in self._all(XS + "restriction"):
            own = len(node.findall(_ENUMERATION))
            if own:
                compared += own * sum(_sum(base, self._values, known, open_) for base in self._bases(node))
            if compared > MOST_COMPARED:
                yield node, "the enumerations that restrict others"
                break
        members, known = 0, {}
        for node in self._all(XS + "union"):
            members += _sum(node, self._members, known, open_)
            if members > MOST_MEMBERS:
                yield node, "the members of the unions before and of this one, those of unions in them counted for each"
                break

    def _all(self, *tags: str) -> Iterator[Any]:
        for root in self._roots:
            yield from root.iter(*tags)

    def _attributes(self, node: Any) -> tuple[int, list[Any]]:
        """The attributes that stand in a node, and the nodes that more come from."""
        parts = [child for child in node if child.tag in _INSIDE]
        for child in node.iterchildren(_ATTRIBUTES):
            parts += self._find(_ATTRIBUTES, child.get("ref"))
        if node.tag in _INSIDE:
            parts += self._find(_COMPLEX, node.get("base"))
        return len(node.findall(_ATTRIBUTE)), parts

    def _values(self, node: Any) -> tuple[int, list[Any]]:
        """The enumerated values of a simple type, or the nodes that they come from."""
        own = len(node.findall(f"{XS}restriction/{_ENUMERATION}"))
        parts = [] if own else [base for child in node if child.tag in _INSIDE for base in self._bases(child)]
        return own, parts

    def _members(self, node: Any) -> tuple[int, list[Any]]:
        """The types that end what a union or a restriction is of, and the nodes that more come from."""
        parts = [child for child in node if child.tag in _INSIDE]
        bases = self._bases(node) if node.tag in _INSIDE else []
        return int(not parts and not bases), parts + bases

    def _bases(self, node: Any) -> list[Any]:
        """The simple types that a restriction or a union is of."""
        found = list(node.iterchildren(_SIMPLE))
        for name in (node.get("base", "") + " " + node.get("memberTypes", "")).split():
            found += self._find(_SIMPLE, name)
        return found

    def _find(self, tag: str, name: str | None) -> list[Any]:
        return self._named.get((tag, (name or "").rpartition(":")[2]), [])


def _sum(node: Any, of: Callable[[Any], tuple[int, list[Any]]], known: dict[Any, int], open_: set[Any]) -> int:
    """What a node holds with all that it takes from others; a circle, which the compiler refuses, adds nothing."""
    if node in known:
        return known[node]
    if node in open_:
        return 0
    if len(open_) > _DEEPEST:
        return _ENDLESS
    open_.add(node)
    own, parts = of(node)
    known[node] = min(own + sum(_sum(part, of, known, open_) for part in parts), _ENDLESS)
    open_.discard(node)
    return known[node]


_VERSIONING = "{http://www.w3.org/2007/XMLSchema-versioning}"
_XML = "http://www.w3.org/XML/1998/namespace"
MOST_DOCUMENTS = 1000

# What one content model may hold: libxml2's time grows with the cube of a run of optional ones, its memory with the
# square of all. The sums over a schema are bounded by the same figures.
MOST_ELEMENTS = 2000
MOST_OPTIONAL = 400
MOST_REPEATS = 10_000
# lxml counts the elements before each one that libxml2 finds a fault with.
MOST_SIBLINGS = 10_000

# XSD 1.1 part 1 and 2, what 1.0 does not have.
_NEWER_ELEMENTS = frozenset(
    XS + name
    for name in (
        *("assert", "assertion", "alternative", "override", "openContent", "defaultOpenContent", "explicitTimezone"),
    )
)
_NEWER_ATTRIBUTES = frozenset(
    {"notNamespace", "notQName", "defaultAttributes", "xpathDefaultNamespace", "inheritable", "defaultAttributesApply"}
)

# The attributes of the namespace `xml`, whose schema documents import from the W3C's site.
_XML_XSD = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="%s">
<xs:attribute name="lang"><xs:simpleType><xs:union memberTypes="xs:language"><xs:simpleType>
<xs:restriction base="xs:string"><xs:enumeration value=""/></xs:restriction></xs:simpleType></xs:union></xs:simpleType>
</xs:attribute>
<xs:attribute name="space"><xs:simpleType><xs:restriction base="xs:NCName"><xs:enumeration value="default"/>
<xs:enumeration value="preserve"/></xs:restriction></xs:simpleType></xs:attribute>
<xs:attribute name="base" type="xs:anyURI"/><xs:attribute name="id" type="xs:ID"/>
<xs:attributeGroup name="specialAttrs"><xs:attribute ref="xml:base"/><xs:attribute ref="xml:lang"/>
<xs:attribute ref="xml:space"/><xs:attribute ref="xml:id"/></xs:attributeGroup></xs:schema>""" % _XML.encode()


def parser(schema: etree.XMLSchema | None = None, *, recover: bool = False) -> etree.XMLParser:
    """A parser that expands nothing, fetches nothing, and keeps to libxml2's limits.

    With a schema it checks what it reads; one that recovers closes what is open where a text ends.
    """
    return etree.XMLParser(**_CAREFUL, schema=schema, recover=recover)


def pull_parser(schema: etree.XMLSchema) -> etree.XMLPullParser:
    """A parser that checks what it reads, and shows each element when it begins."""
    return etree.XMLPullParser(("start",), **_CAREFUL, schema=schema)


_CAREFUL: Mapping[str, bool] = {
    **{"resolve_entities": False, "no_network": True, "load_dtd": False, "dtd_validation": False, "huge_tree": False},
    **{"remove_comments": True, "remove_pis": True},
}


def parse_xml(text: bytes, by: etree.XMLParser) -> Any:
    """The root element of a document; `ValueError` in words where it is not XML, or has a DTD."""
    try:
        root = etree.fromstring(text, by)
    except etree.XMLSyntaxError as error:
        raise ValueError(f"not well-formed XML: {error.msg or error}") from None
    except (etree.LxmlError, ValueError) as error:
        raise ValueError(f"not XML: {error}") from None
    if root is None:
        raise ValueError("not XML: the document is empty")
    if root.getroottree().docinfo.internalDTD is not None:
        raise ValueError("a document type declaration is not supported, nor are the entities it may define")
    return root


@dataclass(frozen=True, slots=True)
class XsdDocument:
    """One schema document: its root, and the namespace that its declarations belong to."""

    root: Any
    target: str


@dataclass(slots=True)
class XsdDocuments:
    """A schema document with all that it includes or imports; `texts` is what the compiler may see, by name."""

    main: XsdDocument
    all: list[XsdDocument] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)


def read_documents(text: Text, references: References | None) -> XsdDocuments:
    """The document and those it refers to; `SchemaError` where one cannot be used."""
    return _Gathering(references).gather(text)


class _Gathering:
    """Reads documents until none is missing."""

    def __init__(self, references: References | None) -> None:
        self._references = references
        self._names: dict[tuple[str, str], str] = {}
        self._room = LARGEST
        self.documents: XsdDocuments | None = None

    def gather(self, text: Text) -> XsdDocuments:
        root = self._parse(text, "")
        found = self.documents = XsdDocuments(XsdDocument(root, root.get("targetNamespace", "")))
        found.all.append(found.main)
        self._follow(found.main, base_of(self._references))
        return found

    def _parse(self, text: Text, name: str) -> Any:
        where = f"{name}: " if name else ""
        if not isinstance(text, str | bytes):
            raise unusable(f"{where}an XML Schema is XML text, not a JSON value")
        by = parser()
        if isinstance(text, str):
            # Whatever the XML declaration says about the encoding, it is that of this text no more.
            text = text.encode("utf-8", "surrogatepass")
            by = etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True, remove_comments=True)
        self._room -= len(text)
        if self._room < 0:
            raise unusable(f"{where}the schema has more than the {LARGEST:,} bytes that are read")
        try:
            root = parse_xml(text, by)
        except ValueError as error:
            raise unusable(f"{where}{error}") from None
        if root.tag != XS + "schema":
            raise unusable(f"{where}the root element is {root.tag}, not schema of {XS[1:-1]}")
        problems = list(_newer(root, where))
        if problems:
            raise SchemaError(problems)
        return root

    def _follow(self, document: XsdDocument, base: str) -> None:
        """Read what a document refers to, and let its references name what the compiler will be given."""
        assert self.documents is not None
        for node in document.root.iterchildren(XS + "include", XS + "import", XS + "redefine"):
            kind = etree.QName(node).localname
            location = node.get("schemaLocation")
            if kind == "redefine":
                raise unusable(f"line {node.sourceline}: xs:redefine is not supported; define a type of another name")
            if location is None:
                continue
            namespace = node.get("namespace", "") if kind == "import" else document.target
            node.set("schemaLocation", self._name(urljoin(base, location), kind, namespace))

    def _name(self, location: str, kind: str, namespace: str) -> str:
        """The name under which the compiler finds a document, which is read with its first mention."""
        assert self.documents is not None
        # A document without a namespace of its own takes that of each one that includes it, so it is one for each.
        key = (location, namespace)
        if key not in self._names:
            if len(self._names) >= MOST_DOCUMENTS:
                raise unusable(f"the schema refers to more than {MOST_DOCUMENTS:,} others")
            name = self._names[key] = f"signalbook-{len(self._names)}.xsd"
            text = self._ask(location, kind, namespace)
            try:
                root = self._parse(text, location)
            except SchemaError as error:
                raise SchemaError(replace(problem, code=REFERENCE) for problem in error.problems) from None
            document = XsdDocument(root, root.get("targetNamespace", "") or (namespace if kind == "include" else ""))
            self.documents.all.append(document)
            self._follow(document, location)
            self.documents.texts[name] = etree.tostring(root)
        return self._names[key]

    def _ask(self, location: str, kind: str, namespace: str) -> Text:
        text = self._references(location) if self._references is not None else None
        if text is None and kind == "import" and namespace == _XML:
            return _XML_XSD
        if text is None:
            raise unreachable(f"the catalog has no schema {location}, and schemas outside it are not fetched")
        return text


def _newer(root: Any, where: str) -> Iterator[Problem]:
    """Yield what belongs to XSD 1.1."""
    for number, node in enumerate(root.iter()):
        if number % _NODES_A_STEP == 0:
            spend()
        if len(node) > MOST_SIBLINGS:
            yield _too_much(node, f"more than {MOST_SIBLINGS:,} elements in one")
            return
        found = ""
        if node.tag in _NEWER_ELEMENTS:
            found = f"xs:{etree.QName(node).localname}"
        elif node.tag.startswith(XS):
            names = [name for name in node.attrib if name in _NEWER_ATTRIBUTES or name.startswith(_VERSIONING)]
            found = f"the attribute {etree.QName(names[0]).localname}" if names else ""
        if found:
            yield Problem("", "schema", f"{where}line {node.sourceline}: {found} is XSD 1.1; XSD 1.0 is read here")


def id_attributes(documents: XsdDocuments) -> frozenset[str]:
    """The names of the attributes that are declared to be of the type `xs:ID`, or of one that is made from it."""
    made: dict[str, set[str]] = {}  # the types made from a type, all by their names without namespaces
    attributes: list[tuple[str, set[str]]] = []
    for document in documents.all:
        for node in document.root.iter(XS + "simpleType", XS + "attribute"):
            name = node.get("name")
            if name is None:
                continue
            mentioned = {
                text.rpartition(":")[2]
                for inner in node.iter("*")
                for place in ("type", "base", "itemType", "memberTypes")
                for text in inner.get(place, "").split()
            }
            if node.tag == XS + "attribute":
                attributes.append((name, mentioned))
            for one in mentioned if node.tag != XS + "attribute" else ():
                made.setdefault(one, set()).add(name)
    types = {"ID"}
    left = ["ID"]
    while left:
        new = made.get(left.pop(), set()) - types
        types |= new
        left += new
    return frozenset(name for name, mentioned in attributes if mentioned & types)


class _Catalog(etree.Resolver):  # type: ignore[misc]  # the library brings no types
    """Gives the compiler the documents that were gathered, and nothing else."""

    def __init__(self, texts: dict[str, bytes]) -> None:
        self.texts = texts

    def resolve(self, url: str | None, pubid: str | None, context: Any) -> Any:
        """The document of that name; an empty one for any other, which is not a schema."""
        return self.resolve_string(self.texts.get((url or "").rpartition("/")[2], b"<nothing/>"), context)


def compile_schema(documents: XsdDocuments) -> etree.XMLSchema:
    """What validates documents; `SchemaError` where the compiler finds the schema wrong, or it is too large for it."""
    problems = list(_Weight(documents).problems())
    problems += [_too_much(node, words) for node, words in Inherited(one.root for one in documents.all).beyond()]
    if problems:
        raise SchemaError(problems)
    by = parser()
    by.resolvers.add(_Catalog(documents.texts))
    root = etree.fromstring(etree.tostring(documents.main.root), by)
    try:
        return etree.XMLSchema(root)
    except etree.XMLSchemaParseError as error:
        wrong = islice((entry for entry in error.error_log if entry.level_name != "WARNING"), _PROBLEMS)
        found = [
            Problem("", _blame(documents, entry), f"line {entry.line}: {_with_prefix(entry.message)}")
            for entry in wrong
        ]
        raise SchemaError(found or [Problem("", "schema", str(error))]) from None


def _blame(documents: XsdDocuments, entry: Any) -> str:
    """The code of what the compiler says: in another document, or of a name that another should have declared."""
    elsewhere = entry.filename.rpartition("/")[2] in documents.texts or "does not resolve to" in entry.message
    return REFERENCE if documents.texts and elsewhere else "schema"


def _with_prefix(message: str) -> str:
    return message.replace(XS, "xs:").strip()


class _Weight:
    """What the content models of a schema hold, groups and substitutes counted wherever they are used."""

    def __init__(self, documents: XsdDocuments) -> None:
        self._documents = documents
        self._named: dict[tuple[str, str], list[Any]] = {}
        self._known: dict[Any, tuple[int, int, int]] = {}
        self._open: set[Any] = set()
        self._substitutes: dict[str, list[Any]] = {}  # by the name of the element that they may stand for
        self._counted: dict[Any, int] = {}
        for document in documents.all:
            for node in document.root.iterchildren(XS + "group", XS + "complexType", _ELEMENT):
                self._named.setdefault((node.tag, node.get("name", "")), []).append(node)
                if node.tag == _ELEMENT and (head := node.get("substitutionGroup")) is not None:
                    self._substitutes.setdefault(head.rpartition(":")[2], []).append(node)

    def problems(self) -> Iterator[Problem]:
        """Yield what is too much."""
        elements = optional = substitutes = 0
        for name in self._substitutes:
            for node in self._named.get((_ELEMENT, name), ()):
                substitutes += self._stands_for(node) ** 2
                if substitutes > MOST_ELEMENTS**2:
                    yield _too_much(node, "the elements that may stand for this one and for those before")
                    return
        budget, known = PatternBudget(), set[str]()
        for document in self._documents.all:
            for node in document.root.iter(XS + "complexType", XS + "pattern"):
                if node.tag == XS + "pattern":
                    pattern = node.get("value", "")
                    why = danger(pattern, budget) if pattern not in known else ""
                    known.add(pattern)
                    if why:
                        yield _too_much(node, f"the pattern {pattern[:100]} {why}")
                    continue
                held, run, repeats = self._weigh(node)
                elements, optional = elements + held * held, optional + run * run * run
                if repeats > MOST_REPEATS and self._is_nested(node):
                    yield _too_much(node, f"occurrences within occurrences make more than {MOST_REPEATS:,}")
                if elements > MOST_ELEMENTS**2 or optional > MOST_OPTIONAL**3:
                    yield _too_much(node, f"the content holds {held:,} elements, {run:,} of them optional in a row")
                    return

    def _weigh(self, node: Any) -> tuple[int, int, int]:
        """How many elements a node may hold, how many of them may be left out together, and how often all may repeat.

        Bounds of occurrence multiply where they lie in one another; one alone costs nothing.
        """
        if node in self._known:
            return self._known[node]
        spend()
        if node in self._open:  # a circle, which the compiler refuses
            return 0, 0, 1
        if len(self._open) > _DEEPEST:
            return 10**9, 10**9, 1
        self._open.add(node)
        held = run = 0
        repeats = 1
        own = max(_bound(node.get("minOccurs")), _bound(node.get("maxOccurs")))
        if node.tag in (_ELEMENT, XS + "any"):
            named = self._named.get((_ELEMENT, node.get("ref", "").rpartition(":")[2]), ())
            held = max(1, sum(self._stands_for(one) for one in named))
            run, repeats = int(node.get("minOccurs") == "0"), own
        else:
            for part in self._parts(node):
                more, loose, often = self._weigh(part)
                held, run, repeats = held + more, run + loose, max(repeats, often)
            repeats *= own
            if node.tag in (XS + "choice", XS + "all"):
                run = min(run, 1)
            elif node.get("minOccurs") == "0":
                run = max(run, 1)
        self._open.discard(node)
        self._known[node] = min(held, 10**9), min(run, 10**9), min(repeats, 10**9)
        return self._known[node]

    def _stands_for(self, node: Any) -> int:
        """How many elements may be where an element is named: itself, and those of its substitution group."""
        return _sum(node, lambda one: (1, self._substitutes.get(one.get("name", ""), [])), self._counted, set())

    def _is_nested(self, node: Any) -> bool:
        """Whether occurrences lie in one another: then the product is more than each of them."""
        bounds = [max(_bound(one.get("minOccurs")), _bound(one.get("maxOccurs"))) for one in self._known]
        return self._known[node][2] > max(bounds, default=1)

    def _parts(self, node: Any) -> Iterator[Any]:
        for attribute, tag in (("ref", XS + "group"), ("base", XS + "complexType")):
            name = node.get(attribute)
            if name is not None and (attribute == "base" or node.tag == XS + "group"):
                yield from self._named.get((tag, name.rpartition(":")[2]), ())  # of whichever namespace
        yield from (child for child in node if child.tag in _HOLDERS)


_HOLDERS = frozenset(
    XS + name
    for name in ("element", "any", "group", "sequence", "choice", "all", "complexContent", "extension", "restriction")
)


def _bound(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() and len(text) < 10 else 1


def _too_much(node: Any, words: str) -> Problem:
    return Problem("", "schema", f"line {node.sourceline}: {words}, which is too much")
