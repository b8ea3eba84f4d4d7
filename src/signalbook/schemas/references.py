"""The other documents that a schema refers to: asked of the catalog once each, within a bound, and of nobody else.

Rule: a `Library` answers from what the caller's `References` gave; whatever else a URI may name, it is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import unquote, urljoin, urlsplit

import orjson

from signalbook.jsontext import JsonError, decode_json, encode_json
from signalbook.schemas.format import LARGEST, References, SchemaError, Text, unmarked, unusable

__all__ = [
    "MOST_DOCUMENTS",
    "MOST_NAMES",
    "ROOT",
    "Library",
    "is_absolute",
    "look_up",
    "meant",
    "names_of",
    "read_json",
]

# The names by which other schemas may refer to a schema, read from its text alone.
#
# Rule 1: JSON Schema and JSON Structure are known by the absolute `$id` of the document, Avro by the full names of the
# types at its top. Protobuf and XML Schema are files, known by where they are and by nothing in their text.
# Rule 2: a text that cannot be read has no names; whether it has its format others judge.


MOST_NAMES = 100
_LONGEST = 1000


def names_of(family: str, text: bytes) -> tuple[str, ...]:
    """The names of a document of a format's family.

    >>> names_of("avro", b'{"type": "record", "name": "Address", "namespace": "com.x", "fields": []}')
    ('com.x.Address',)
    >>> names_of("jsonschema", b'{"$id": "https://x.example/address#"}')
    ('https://x.example/address',)
    """
    declared = _DECLARED.get(family)
    if declared is None:
        return ()
    try:
        document = orjson.loads(unmarked(text))
    except orjson.JSONDecodeError:
        return ()
    return tuple(name for name in islice(declared(document), MOST_NAMES) if len(name) <= _LONGEST)


def _id(document: Any) -> Iterator[str]:
    name = document.get("$id") if isinstance(document, dict) else None
    if isinstance(name, str) and is_absolute(name):
        yield name.partition("#")[0]


def is_absolute(name: str) -> bool:
    """Whether a name is an absolute URI."""
    try:
        return bool(urlsplit(name).scheme)
    except ValueError:
        return False


def _full_names(document: Any) -> Iterator[str]:
    for one in document if isinstance(document, list) else [document]:
        name = one.get("name") if isinstance(one, dict) and one.get("type") in _NAMED else None
        if isinstance(name, str):
            namespace = one.get("namespace")
            yield f"{namespace}.{name}" if "." not in name and isinstance(namespace, str) and namespace else name


_NAMED = ("record", "error", "enum", "fixed")
_DECLARED: dict[str, Callable[[Any], Iterator[str]]] = {
    "jsonschema": _id,
    "jsonstructure": _id,
    "avro": _full_names,
}


# How a schema of a catalog finds another: by its xid, by a name that it declares, by its id beside the one that asks.
#
# Rule 1: the order is the same for everybody who holds a catalog, be it a registry or documents in memory; they say
# what is at a place, and who declares a name.
# Rule 2: of those that declare a name the one in the group of the schema that asks is meant, else the only one there
# is; of several, none.


T = TypeVar("T")


def look_up(uri: str, own: str, at: Callable[[str], T], declared: Callable[[str], T]) -> T | None:
    """What a schema at the xid `own` means by a URI or a name; None where there is none, or several.

    >>> documents = {"/schemagroups/g/schemas/a": 1, "/schemagroups/h/schemas/a": 2}
    >>> names = {"com.x.A": 3}
    >>> own = "/schemagroups/g/schemas/b"
    >>> [look_up(uri, own, documents.get, names.get) for uri in ("/schemagroups/h/schemas/a", "com.x.A", "x/a", "c")]
    [2, 3, 1, None]
    """
    name = uri.partition("#")[0]
    path = _path(name)
    found = at(path) if path is not None else None
    if found is not None or name.startswith("/"):
        return found
    found = declared(name)
    if found is not None or not own or is_absolute(name):
        return found
    return at(urljoin(own, name.rpartition("/")[2]))


def meant(holders: Iterable[set[T]]) -> T | None:
    """Of sets of those that declare a name, the nearest first: the only one of the first set that has any."""
    for found in holders:
        if found:
            return next(iter(found)) if len(found) == 1 else None
    return None


def _path(name: str) -> str | None:
    """A name as the path of an entity; None where it is none. A Protobuf import begins without the slash."""
    if name.startswith("/"):
        return unquote(name)
    return f"/{name}" if name.count("/") in (3, 5) and not is_absolute(name) else None


# The base of a document that states none. A relative reference in it reaches the catalog as a path: "/schemagroups/…".
ROOT = "json-schema:///"
MOST_DOCUMENTS = 1000


def read_json(text: Text) -> tuple[Any, int]:
    """The JSON value of a schema document, with its size in bytes; `SchemaError` where it holds none."""
    if isinstance(text, Mapping | bool):
        # The caller's value may still change, and may hold what JSON cannot: read it as if it had come as text.
        try:
            text = encode_json(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise unusable(f"not a JSON value: {error}") from error
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(raw) > LARGEST:
        raise unusable(f"the document has {len(raw):,} bytes, more than the {LARGEST:,} that are read")
    try:
        return decode_json(unmarked(raw)), len(raw)
    except JsonError as error:
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
        if len(self._documents) + len(self.refused) >= MOST_DOCUMENTS:
            raise LookupError(f"the schema refers to more than {MOST_DOCUMENTS:,} others")
        name = "/" + uri.removeprefix(ROOT) if uri.startswith(ROOT) else uri
        text = self._references(name) if self._references else None
        if text is None:
            raise LookupError(f"the catalog has no schema {name}, and schemas outside it are not fetched")
        value, size = read_json(text)
        self._room -= size
        if self._room < 0:
            raise LookupError(f"the schema refers to others of more than {LARGEST:,} bytes together")
        return value
