"""`Book`: a catalog as it travels to workers: its JSON documents, compiled on first use there.

Rule 1: what travels is text and its digest, never compiled objects, so a worker needs only the same package.
Rule 2: a process compiles a digest once, and keeps the two it used last: a stream changes from one to the next.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from signalbook.messages.catalog import Catalog, in_canonical
from signalbook.messages.schema_library import SchemaPolicy
from signalbook.sources import Contents

__all__ = ["Book"]


@dataclass(frozen=True, slots=True)
class Book:
    """The documents of one catalog, and its digest.

    `roots` are the addresses by which it is reached; `schemas_required` says that a payload schema which cannot be
    applied is a problem, wherever it lies.
    """

    digest: str
    text: bytes = field(repr=False, compare=False)
    roots: tuple[str, ...] = ()
    schemas_required: bool = False

    @classmethod
    def of(
        cls,
        *documents: Any,
        bases: Mapping[str, Mapping[str, Any]] | None = None,
        roots: tuple[str, ...] = (),
        schemas_required: bool = False,
    ) -> Book:
        """The catalog of these documents, each read by its dialect."""
        return cls._of(in_canonical(*documents), bases, roots, schemas_required)

    @classmethod
    def _of(
        cls,
        documents: Sequence[Mapping[str, Any]],
        bases: Mapping[str, Mapping[str, Any]] | None,
        roots: tuple[str, ...],
        schemas_required: bool,
    ) -> Book:
        catalog = Catalog.from_canonical(*documents, bases=bases)
        text = orjson.dumps({"documents": documents, "bases": bases or {}}, default=_plain)
        return cls(catalog.digest, zlib.compress(text, 1), roots, schemas_required)

    @classmethod
    def of_contents(cls, contents: Contents) -> Book:
        """The catalog that a source holds."""
        documents = [document.content for document in contents.documents]
        return cls._of(documents, contents.external, contents.roots, contents.schemas_required)

    def catalog(self) -> Catalog:
        """The catalog, compiled."""
        return _compiled(self)


@lru_cache(2)
def _compiled(book: Book) -> Catalog:
    held = orjson.loads(zlib.decompress(book.text))
    policy = SchemaPolicy(required=book.schemas_required)
    return Catalog.from_canonical(*held["documents"], bases=held["bases"], roots=book.roots, schemas=policy)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)
