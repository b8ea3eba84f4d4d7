"""XML Schema 1.0: one schema, the documents it takes, its deep links, and sample documents.

Rule 1: libxml2 validates; a document with a DTD is rejected, nothing is fetched, and `xsi:schemaLocation` is not
followed.
Rule 2: the value of a document is its root element (lxml); `convert` makes of it what the columns hold.
Rule 3: the path of a problem names elements below the root, with an index where several have the name:
`/item/1/price` is the price in the second item. An attribute's problem is at its element.
Rule 4: a payload to build is XML text as it is; samples are made from what the schema declares.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from lxml import etree

from signalbook.errors import Problem
from signalbook.schemas.format import BadValue, Checked, References, Text, pointer, unusable
from signalbook.schemas.xsd.model import Components, Element, Group, Particle, Simple, Wildcard, local
from signalbook.schemas.xsd.read import (
    XsdDocuments,
    compile_schema,
    id_attributes,
    parse_xml,
    parser,
    pull_parser,
    read_documents,
)

if TYPE_CHECKING:
    import pyarrow

    from signalbook.schemas.xsd.columns import XsdTable

__all__ = ["XsdSchema", "encode", "read", "samples"]

MOST_PROBLEMS = 100
# libxml2 writes the path of every node of a tree in which it finds an error, and for that counts the nodes before it. A
# document with more than so many pairs (of a tag, and a tag or attribute where something may be wrong) is validated
# while it is read, where errors have no paths; in its tree only the errors that are listed are looked for.
MOST_PATHS = 10_000_000
_SMALL = 8192  # bytes, which hold no more than that
_CHUNK = 1024
# Documents in an encoding in which a tag begins with the byte of ASCII, as in most; UTF-16 and what states none do.
_is_plain = re.compile(
    rb"""(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\s\0]*<"""
    rb"""(?!\?xml[^>]*encoding\s*=\s*["'](?!utf-8["']|utf-16["']|us-ascii["']|iso-8859-1["']))""",
    re.IGNORECASE,
).match

_INVALID = Problem("", "payload", "the document is not valid")
_OF_ATTRIBUTE = ", attribute '"  # in libxml2's words

# A parser serves one thread at a time.
_PARSERS = threading.local()


def read(text: Text, references: References | None = None) -> XsdSchema:
    """The schema that a document holds; what it includes or imports is asked of `references` by its location."""
    documents = read_documents(text, references)
    return XsdSchema(documents, compile_schema(documents))


class XsdSchema:
    """One XML Schema; `root` is the only element that a document may begin with, or empty for any that is declared."""

    __slots__ = (
        *("_components", "_documents", "_explaining", "_id_names", "_lock", "_table", "_validate", "_validator"),
        "root",
    )

    format = "XSD/1.0"

    def __init__(self, documents: XsdDocuments, validator: etree.XMLSchema, root: str = "") -> None:
        self._documents = documents
        self._validator = validator
        self._validate = validator.validate
        self.root = root
        # A validator's list of errors is its own, whoever calls it: those who need it take turns, at another validator.
        self._lock = threading.Lock()
        self._explaining: etree.XMLSchema | None = None
        self._components: Components | None = None
        self._table: XsdTable | None = None
        self._id_names: frozenset[str] | None = None

    @property
    def components(self) -> Components:
        """What the schema declares."""
        if self._components is None:
            self._components = Components(self._documents)
        return self._components

    def check(self, payload: bytes, contenttype: str = "") -> Checked:
        """The problems of a document, and its root element."""
        try:
            if len(payload) > _SMALL and _may_have_many_paths(payload):
                return self._check_while_reading(payload)
            root = parse_xml(payload, _parser())
        except ValueError as error:
            return Checked((Problem("", "payload", str(error)),), None)
        try:
            is_valid = self._validate(root) and (not self.root or root.tag == self.root)
            problems = [] if is_valid else self._explain(root) or [_INVALID]
        except etree.LxmlError as error:
            problems = [_unchecked(str(error))]
        return Checked(tuple(problems), root)

    def _check_while_reading(self, payload: bytes) -> Checked:
        """Check a document while it is read; raises ValueError where it is not XML.

        libxml2 does not compare the values of type `xs:ID` with each other then: where some may be alike, its tree is
        validated after all.
        """
        is_valid = True
        try:
            root = parse_xml(payload, parser(self._validator))
        except ValueError:  # which may say that it is not valid
            is_valid, root = False, parse_xml(payload, _parser())
        try:
            is_known = is_valid and (not self.root or root.tag == self.root)
            if is_known and not self._may_repeat_ids(root):
                return Checked((), root)
            part = self._wrong_part(payload)
            problems = self._explain(root, part, of_ids=is_known)
        except etree.LxmlError as error:
            part, problems = b"", [_unchecked(str(error))]
        if not problems and not is_valid:
            problems = [_INVALID]
        elif not problems and part:
            problems = [_unchecked("too many values that may be of type xs:ID occur more than once")]
        return Checked(tuple(problems), root)

    @property
    def _ids(self) -> frozenset[str]:
        """The names of the attributes that may be of type `xs:ID`."""
        if self._id_names is None:
            self._id_names = id_attributes(self._documents)
        return self._id_names

    def _may_repeat_ids(self, root: Any) -> bool:
        seen: set[str] = set()
        return any(_repeated(node, self._ids, seen) for node in root.iter("*")) if self._ids else False

    def _wrong_part(self, payload: bytes) -> bytes:
        """The document up to the last of the problems that are listed; empty where it has fewer.

        The errors of a document that is checked while it is read have no paths, so they cost nothing but themselves.
        """
        reading = pull_parser(self._validator) if self._ids else parser(self._validator)
        seen: set[str] = set()
        repeated = 0
        for end in range(_CHUNK, len(payload) + _CHUNK, _CHUNK):
            try:
                reading.feed(payload[end - _CHUNK : end])
            except etree.XMLSyntaxError:
                return b""  # which whoever reads the tree finds out
            if self._ids:
                repeated += sum(_repeated(node, self._ids, seen) for _, node in reading.read_events())
            if len(reading.feed_error_log) + repeated > MOST_PROBLEMS:
                return payload[:end]
        return b""

    def _explain(self, root: Any, part: bytes = b"", *, of_ids: bool = False) -> list[Problem]:
        """The problems of a document, or of the part of it that has those which are listed.

        With `of_ids` only values of attributes are wrong with it, so that nothing else is wrong with its part either.
        """
        if self.root and root.tag != self.root:
            return [Problem("", "payload", f"the root element is {root.tag}, not {self.root}")]
        judged = root if not part else etree.fromstring(part, parser(recover=True))
        with self._lock:
            if self._explaining is None:
                self._explaining = compile_schema(self._documents)
            self._explaining.validate(judged)
            log = self._explaining.error_log
            found = (entry for entry in log if not of_ids or _OF_ATTRIBUTE in entry.message)
            entries = [(entry.path, entry.message) for entry in itertools.islice(found, MOST_PROBLEMS)]
        places = _Places(root)
        return [Problem(places.of(path), "payload", _with_prefix(message)) for path, message in entries]

    def at(self, fragment: str) -> XsdSchema:
        """The schema with one element as the only root, named by an XPath to its declaration."""
        text = fragment.removeprefix("#")
        if text in ("", "/", "/*") or re.fullmatch(r"/\w+:schema", text):
            return self
        found = _XPATH.fullmatch(text)
        if found is None:
            raise unusable(f"{text} is not an XPath to a global element, such as /xs:schema/xs:element[@name='order']")
        if found["position"] is not None:
            nodes = [node for node in self._documents.main.root if node.tag.endswith("}element")]
            place = int(found["position"]) - 1
            wanted = nodes[place].get("name") if 0 <= place < len(nodes) else None
        else:
            wanted = found["name"]
        target = self._documents.main.target
        name = f"{{{target}}}{wanted}" if target else wanted
        if name not in self.components.elements:
            known = ", ".join(sorted(map(local, self.components.elements))) or "none"
            raise unusable(f"{text} does not lead to a global element; there are: {known}")
        other = XsdSchema.__new__(XsdSchema)
        XsdSchema.__init__(other, self._documents, compile_schema(self._documents), name)
        return other

    def columns(self) -> pyarrow.DataType:
        """The Arrow struct of a document: the content of its root, or a column for each element it may begin with."""
        return self._tabled().type

    def convert(self, value: Any) -> Any:
        """A checked document as the struct holds it."""
        return self._tabled().convert(value)

    def _tabled(self) -> XsdTable:
        if self._table is None:
            from signalbook.schemas.xsd.columns import table  # pyarrow is loaded where tables are

            self._table = table(self.components, self.root)
        return self._table


# `/xs:schema/xs:element[@name='order']`, `//xs:element[@name="order"]`, `/*/*[2]`; no more of XPath leads to an element
# by name, and none of it is run.
_XPATH = re.compile(
    r"(?://|/(?:\w+:)?schema/|/\*/)(?:(?:\w+:)?element|\*)"
    r"(?:\[\s*@name\s*=\s*(?P<quote>['\"])(?P<name>[\w.\-]+)(?P=quote)\s*\]|\[\s*(?P<position>[1-9][0-9]{0,5})\s*\])"
)


def _parser() -> etree.XMLParser:
    try:
        return _PARSERS.own
    except AttributeError:
        _PARSERS.own = parser()
        return _PARSERS.own


def _may_have_many_paths(payload: bytes) -> bool:
    if not _is_plain(payload):
        return True
    tags = payload.count(b"<")
    return tags * (tags + payload.count(b"=")) > MOST_PATHS


def _repeated(node: Any, names: frozenset[str], seen: set[str]) -> int:
    """How many attributes of these names have a value that was seen before."""
    found = [value.strip() for name, value in node.attrib.items() if local(name) in names]
    repeated = sum(value in seen for value in found)
    seen.update(found)
    return repeated


def _unchecked(words: str) -> Problem:
    return Problem("", "payload", f"the document could not be checked: {words}")


class _Places:
    """The places of nodes that libxml2 names by XPaths of its own making; the children of a node are counted once."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._tree = root.getroottree()
        self._counted: dict[Any, tuple[dict[Any, int], Counter[str]]] = {}

    def of(self, path: str | None) -> str:
        try:
            found = self._tree.xpath(path) if path else []
        except etree.XPathError:
            found = []
        node = found[0] if isinstance(found, list) and found and hasattr(found[0], "getparent") else None
        steps: list[str | int] = []
        while node is not None and node is not self._root and not isinstance(node, str):
            parent = node.getparent()
            if parent is not None:
                indexes, counts = self._children(parent)
                if counts[node.tag] > 1:
                    steps.append(indexes[node])
            steps.append(local(node.tag))
            node = parent
        return pointer(reversed(steps))

    def _children(self, parent: Any) -> tuple[dict[Any, int], Counter[str]]:
        """The index of each child among those of its name, and how many have each name."""
        if parent not in self._counted:
            indexes, counts = dict[Any, int](), Counter[str]()
            for child in parent:
                indexes[child] = counts[child.tag]
                counts[child.tag] += 1
            self._counted[parent] = indexes, counts
        return self._counted[parent]


def _with_prefix(message: str) -> str:
    return re.sub(r"\{http://www\.w3\.org/2001/XMLSchema\}", "xs:", message).strip()


_DEEPEST = 12
_MOST_ELEMENTS = 5000


def encode(schema: XsdSchema, value: Any, contenttype: str) -> bytes:
    """A document that is given as its text."""
    if not isinstance(value, str):
        raise BadValue("is not a text; an XML document is given as its text or its bytes")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise BadValue("holds half a surrogate pair") from None


def samples(schema: XsdSchema, contenttype: str) -> Iterator[bytes]:
    """Documents to try, for each element that one may begin with: full ones, then bare ones."""
    elements = schema.components.elements
    roots = [elements[schema.root]] if schema.root else [one for one in elements.values() if not one.abstract]
    for root in roots:
        for full in (True, False):
            for choice in range(3):
                made = _XmlWriter(full, choice).element(root, None, 0)
                yield etree.tostring(made, xml_declaration=True, encoding="UTF-8")


class _XmlWriter:
    """One attempt: `full` has all that is optional, `choice` says which branch is taken."""

    def __init__(self, full: bool, choice: int) -> None:
        self.full = full
        self.choice = choice
        self.room = _MOST_ELEMENTS

    def element(self, element: Element, parent: Any, depth: int) -> Any:
        self.room -= 1
        if self.room < 0 or depth > 4 * _DEEPEST:
            raise BadValue("contains itself without an end")
        node = etree.Element(element.name) if parent is None else etree.SubElement(parent, element.name)
        kind = element.type
        stated = element.fixed if element.fixed is not None else element.default
        if isinstance(kind, Simple):
            node.text = stated if stated is not None else _sample_text(kind, self.choice)
            return node
        for attribute in kind.attributes.values():
            if attribute.required or self.full:
                fixed = attribute.fixed
                node.set(attribute.name, fixed if fixed is not None else _sample_text(attribute.type, self.choice))
        if kind.simple is not None:
            node.text = stated if stated is not None else _sample_text(kind.simple, self.choice)
        elif kind.content is not None:
            self.particle(kind.content, node, depth)
        return node

    def particle(self, particle: Particle, parent: Any, depth: int) -> None:
        wanted = 1 if self.full and depth < _DEEPEST and not isinstance(particle.term, Wildcard) else 0
        times = max(particle.low, wanted)
        for _ in range(times if particle.high is None else min(times, particle.high)):
            term = particle.term
            if isinstance(term, Element):
                self.element(term, parent, depth + 1)
            elif isinstance(term, Group):
                self.group(term, parent, depth)
            else:
                etree.SubElement(parent, "any")

    def group(self, group: Group, parent: Any, depth: int) -> None:
        parts = group.particles
        if group.kind == "choice" and parts:
            parts = (_forced(parts[self.choice % len(parts)]),)
        for part in parts:
            self.particle(part, parent, depth)


def _forced(particle: Particle) -> Particle:
    """The branch that a choice takes occurs."""
    return particle if particle.low else Particle(particle.term, 1, particle.high)


# XSD 1.0 part 2, section 3: a text of each built-in type that no other rule gives one.
_TEXTS: Mapping[str, str] = {
    "boolean": "true",
    "float": "1.5",
    "double": "1.5",
    "duration": "PT1H",
    "dateTime": "2024-05-17T12:30:00Z",
    "time": "12:30:00Z",
    "date": "2024-05-17",
    "gYearMonth": "2024-05",
    "gYear": "2024",
    "gMonthDay": "--05-17",
    "gDay": "---17",
    "gMonth": "--05",
    "hexBinary": "61",
    "base64Binary": "YQ==",
    "anyURI": "https://example.com/a",
    "language": "en",
    "negativeInteger": "-1",
    "nonPositiveInteger": "-1",
}
_NUMBERS = frozenset(
    {"decimal", "integer", "nonNegativeInteger", "positiveInteger", "long", "int", "short", "byte"}
    | {"unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte", "negativeInteger", "nonPositiveInteger"}
)
_NAMES = frozenset({"NMTOKEN", "Name", "NCName", "ID", "IDREF", "ENTITY", "QName"})


def _sample_text(kind: Simple, choice: int) -> str:
    """A text of a simple type."""
    if kind.enumeration:
        return kind.enumeration[choice % len(kind.enumeration)]
    if kind.item is not None:
        count = int(kind.facets.get("length", kind.facets.get("minLength", "1")))
        return " ".join(_sample_text(kind.item, choice) for _ in range(min(count, 100)))
    if kind.members:
        return _sample_text(kind.members[choice % len(kind.members)], choice)
    if kind.patterns:
        from signalbook.schemas.json_schema.samples import (
            text_for,
        )  # a schema is read without the engine of JSON Schema
    for patterns in kind.patterns:
        for pattern in patterns:
            text = text_for(f"^(?:{_plain_sample(pattern)})$", int(kind.facets.get("minLength", "0")))
            if text is not None:
                return text
    if kind.builtin in _NUMBERS:
        return _number(kind)
    if kind.builtin in _TEXTS:
        return _TEXTS[kind.builtin]
    return _sized("a" if kind.builtin in _NAMES else "text", kind.facets)


def _plain_sample(pattern: str) -> str:
    r"""An XSD pattern as others write it: `\i` and `\c` are the characters of names."""
    return re.sub(r"\\[ic]", "[A-Za-z]", pattern)


def _sized(text: str, facets: Mapping[str, str]) -> str:
    low = int(facets.get("length", facets.get("minLength", "0")))
    high = int(facets.get("length", facets.get("maxLength", str(max(low, len(text))))))
    return text.ljust(min(low, 10_000), "x")[: min(high, 10_000)]


def _number(kind: Simple) -> str:
    facets = kind.facets
    try:
        if "minInclusive" in facets or "minExclusive" in facets:
            low = Decimal(facets.get("minInclusive", facets.get("minExclusive", "0")))
            return _written(low if "minInclusive" in facets else low + _step(kind))
        if "maxInclusive" in facets or "maxExclusive" in facets:
            high = Decimal(facets.get("maxInclusive", facets.get("maxExclusive", "0")))
            return _written(min(Decimal(1), high if "maxInclusive" in facets else high - _step(kind)))
    except InvalidOperation:
        pass
    return _TEXTS.get(kind.builtin, "1")


def _step(kind: Simple) -> Decimal:
    if kind.builtin != "decimal":
        return Decimal(1)
    return Decimal(1).scaleb(-int(kind.facets.get("fractionDigits", "2")))


def _written(number: Decimal) -> str:
    return format(number, "f")
