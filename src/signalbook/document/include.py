"""`$include` and `$includes` in a model document, resolved before it is read.

Rule 1: nothing is fetched here; `load` is given an absolute address and gives back a JSON document. Without one a
document can include parts of itself, and nothing else.
Rule 2: what is written beside an include wins over what it brings, an earlier include over a later one.
Rule 3: documents are untrusted: no cycles, bounded depth, bounded size of the result.

core/model.md 1.0-rc4, Includes in the xRegistry Model Data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from signalbook.document.attribute import model_error

__all__ = ["resolve"]

MAX_DEPTH = 300
MAX_VALUES = 1_000_000

Load = Callable[[str], Any]


def resolve(source: Any, load: Load | None = None, base: str = "") -> Any:
    """`source` without its includes; `base` is the address of the document that relative ones start from."""
    return _Resolver(load, base, source).expand(source, base, (), 0)


class _Resolver:
    """One resolution: the documents loaded so far, and how much more may be written."""

    def __init__(self, load: Load | None, base: str, source: Any) -> None:
        self.load = load
        self.documents = {base: source}
        self.left = MAX_VALUES

    def expand(self, value: Any, base: str, open_: tuple[str, ...], depth: int) -> Any:
        """`value` with everything included that it asks for; `open_` are the includes that led here."""
        self.left -= 1
        if self.left < 0:
            raise model_error(f"the model has more than {MAX_VALUES} values once its includes are resolved")
        if depth > MAX_DEPTH:
            raise model_error(f"the model is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, list):
            return [self.expand(member, base, open_, depth + 1) for member in value]
        if not isinstance(value, dict):
            return value
        own = {
            name: self.expand(member, base, open_, depth + 1)
            for name, member in value.items()
            if name not in ("$include", "$includes")
        }
        for reference in _references(value):
            included = self.include(reference, base, open_, depth)
            own |= {name: member for name, member in included.items() if name not in own}
        return own

    def include(self, reference: str, base: str, open_: tuple[str, ...], depth: int) -> dict[str, Any]:
        """The object that one include names, itself resolved."""
        address = urljoin(base, reference)
        if address in open_:
            raise model_error(f"includes go in a circle: {' -> '.join((*open_, address))}")
        document, pointer = urldefrag(address)
        if document not in self.documents:
            if self.load is None:
                raise model_error(f'"{reference}" can\'t be included here, send the model with its includes resolved')
            self.documents[document] = self.load(document)
        found = self.expand(_point(self.documents[document], pointer, address), document, (*open_, address), depth + 1)
        if not isinstance(found, dict):
            raise model_error(f'"{address}" is not an object, so it can\'t be included')
        return found


def _references(value: dict[str, Any]) -> list[str]:
    if "$include" in value and "$includes" in value:
        raise model_error('"$include" and "$includes" must not be used at the same place')
    references = [value["$include"]] if "$include" in value else value.get("$includes", [])
    if not isinstance(references, list) or not all(isinstance(one, str) for one in references):
        raise model_error('"$include" must be a string and "$includes" an array of strings')
    return references


def _point(document: Any, pointer: str, address: str) -> Any:
    """What an RFC 6901 pointer leads to; one without its first slash is how the published models write it."""
    for step in unquote(pointer).strip("/").split("/") if pointer.strip("/") else ():
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(document, dict) or name not in document:
            raise model_error(f'"{address}" leads nowhere')
        document = document[name]
    return document
