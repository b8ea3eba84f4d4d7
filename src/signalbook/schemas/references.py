"""The other documents that a schema refers to: asked of the catalog once each, within a bound, and of nobody else.

Rule: a `Library` answers from what the caller's `References` gave; whatever else a URI may name, it is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signalbook.schemas.format import LARGEST, References, SchemaError, Text, unmarked, unusable
from signalbook.schemas.json_exact import BadJson, decode, encode

__all__ = ["MOST_DOCUMENTS", "ROOT", "Library", "read_json"]

# The base of a document that states none. A relative reference in it reaches the catalog as a path: "/schemagroups/…".
ROOT = "json-schema:///"
MOST_DOCUMENTS = 1000


def read_json(text: Text) -> tuple[Any, int]:
    """The JSON value of a schema document, with its size in bytes; `SchemaError` where it holds none."""
    if isinstance(text, Mapping | bool):
        # The caller's value may still change, and may hold what JSON cannot: read it as if it had come as text.
        try:
            text = encode(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise unusable(f"not a JSON value: {error}") from error
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(raw) > LARGEST:
        raise unusable(f"the document has {len(raw):,} bytes, more than the {LARGEST:,} that are read")
    try:
        return decode(unmarked(raw)), len(raw)
    except BadJson as error:
        raise unusable(f"not a JSON document: {error}") from error


class Library:
    """The documents that one schema reaches, by absolute URI without a fragment."""

    __slots__ = ("_documents", "_references", "_room", "refused")

    def __init__(self, references: References | None) -> None:
        self._references = references
        self._documents: dict[str, Any] = {}
        self._room = LARGEST
        self.refused: dict[str, str] = {}  # by URI, why it is not there

    def __call__(self, uri: str) -> Any:
        """The document at a URI; `LookupError` in words where the catalog has none, or too many were asked for."""
        uri = uri.partition("#")[0]
        if uri in self.refused:
            raise LookupError(self.refused[uri])
        if uri not in self._documents:
            try:
                self._documents[uri] = self._ask(uri)
            except (LookupError, SchemaError) as error:
                self.refused[uri] = str(error.args[0] if isinstance(error, LookupError) else error)
                raise LookupError(self.refused[uri]) from error
        return self._documents[uri]

    def documents(self) -> list[Any]:
        """The documents that were asked for so far."""
        return [document for document in self._documents.values() if isinstance(document, dict)]

    def _ask(self, uri: str) -> Any:
        name = "/" + uri.removeprefix(ROOT) if uri.startswith(ROOT) else uri
        text = self._references(name) if self._references else None
        if text is None:
            raise LookupError(f"the catalog has no schema {name}, and nothing outside it is asked")
        if len(self._documents) >= MOST_DOCUMENTS:
            raise LookupError(f"the schema refers to more than {MOST_DOCUMENTS:,} others")
        value, size = read_json(text)
        self._room -= size
        if self._room < 0:
            raise LookupError(f"the schema refers to others of more than {LARGEST:,} bytes together")
        return value
