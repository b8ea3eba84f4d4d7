"""XML Schema 1.0: one schema, the documents it takes, and its deep links.

Rule 1: libxml2 judges; a document with a DTD is refused, nothing is fetched, and `xsi:schemaLocation` is not followed.
Rule 2: the value of a document is its root element (lxml); `convert` makes of it what the columns hold.
Rule 3: the path of a problem names elements below the root, with an index where several have the name:
`/item/1/price` is the price in the second item. An attribute's problem is at its element.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

from lxml import etree

from signalbook.errors import Problem
from signalbook.schemas.format import Checked, References, Text, pointer, unusable
from signalbook.schemas.xsd_model import Components, local
from signalbook.schemas.xsd_read import Documents, compile_schema, parse_xml, parser, read_documents

if TYPE_CHECKING:
    import pyarrow

    from signalbook.schemas.xsd_columns import Table

__all__ = ["XsdSchema", "read"]

MOST_PROBLEMS = 100

# A parser serves one thread at a time.
_PARSERS = threading.local()


def read(text: Text, references: References | None = None) -> XsdSchema:
    """The schema that a document holds; what it includes or imports is asked of `references` by its location."""
    documents = read_documents(text, references)
    return XsdSchema(documents, compile_schema(documents))


class XsdSchema:
    """One XML Schema; `root` is the only element that a document may begin with, or empty for any that is declared."""

    __slots__ = ("_components", "_documents", "_explaining", "_lock", "_table", "_validate", "root")

    format = "XSD/1.0"

    def __init__(self, documents: Documents, validator: etree.XMLSchema, root: str = "") -> None:
        self._documents = documents
        self._validate = validator.validate
        self.root = root
        # A validator's list of errors is its own, whoever calls it: those who need it take turns, at another validator.
        self._lock = threading.Lock()
        self._explaining: etree.XMLSchema | None = None
        self._components: Components | None = None
        self._table: Table | None = None

    @property
    def components(self) -> Components:
        """What the schema declares."""
        if self._components is None:
            self._components = Components(self._documents)
        return self._components

    def check(self, payload: bytes, contenttype: str = "") -> Checked:
        """The problems of a document, and its root element."""
        try:
            root = parse_xml(payload, _parser())
        except ValueError as error:
            return Checked((Problem("", "payload", str(error)),), None)
        try:
            if self._validate(root) and (not self.root or root.tag == self.root):
                return Checked((), root)
            problems = self._explain(root)
        except etree.LxmlError as error:
            problems = [Problem("", "payload", f"the document could not be judged: {error}")]
        return Checked(tuple(problems), root)

    def _explain(self, root: Any) -> list[Problem]:
        if self.root and root.tag != self.root:
            return [Problem("", "payload", f"the root element is {root.tag}, not {self.root}")]
        with self._lock:
            if self._explaining is None:
                self._explaining = compile_schema(self._documents)
            self._explaining.validate(root)
            entries = [(entry.path, entry.message) for entry in self._explaining.error_log][:MOST_PROBLEMS]
        problems = [Problem(_place(root, path), "payload", _plain(message)) for path, message in entries]
        return problems or [Problem("", "payload", "the document is not valid")]

    def at(self, fragment: str) -> XsdSchema:
        """The schema with one element as the only root, named by an XPath to its declaration."""
        text = fragment.removeprefix("#")
        if text in ("", "/", "/*") or re.fullmatch(r"/\w+:schema", text):
            return self
        found = _XPATH.fullmatch(text)
        if found is None:
            raise unusable(f"{text} is no XPath to a global element, such as /xs:schema/xs:element[@name='order']")
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
            raise unusable(f"{text} leads to no global element; there are: {known}")
        other = XsdSchema.__new__(XsdSchema)
        XsdSchema.__init__(other, self._documents, compile_schema(self._documents), name)
        return other

    def columns(self) -> pyarrow.DataType:
        """The Arrow struct of a document: the content of its root, or a column for each element it may begin with."""
        return self._tabled().type

    def convert(self, value: Any) -> Any:
        """A checked document as the struct holds it."""
        return self._tabled().convert(value)

    def _tabled(self) -> Table:
        if self._table is None:
            from signalbook.schemas.xsd_columns import table  # pyarrow is loaded where tables are

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


def _place(root: Any, path: str | None) -> str:
    """The place of a node that libxml2 names by an XPath of its own making."""
    try:
        found = root.getroottree().xpath(path) if path else []
    except etree.XPathError:
        found = []
    node = found[0] if isinstance(found, list) and found and hasattr(found[0], "getparent") else None
    steps: list[str | int] = []
    while node is not None and node is not root and not isinstance(node, str):
        parent = node.getparent()
        same = [child for child in parent if child.tag == node.tag] if parent is not None else []
        steps += [same.index(node), local(node.tag)] if len(same) > 1 else [local(node.tag)]
        node = parent
    return pointer(reversed(steps))


def _plain(message: str) -> str:
    return re.sub(r"\{http://www\.w3\.org/2001/XMLSchema\}", "xs:", message).strip()
