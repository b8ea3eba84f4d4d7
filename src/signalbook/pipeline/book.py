"""`Book`: a catalog as it travels to workers: its JSON documents, compiled on first use there.

Rule 1: what travels is text and its digest, never compiled objects, so a worker needs only the same package.
Rule 2: a process compiles a digest once, and keeps the two it used last: a stream changes from one to the next.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from signalbook.messages.catalog import Catalog

__all__ = ["Book"]


@dataclass(frozen=True, slots=True)
class Book:
    """The documents of one catalog, and its digest."""

    digest: str
    text: bytes = field(repr=False, compare=False)

    @classmethod
    def of(cls, *documents: Mapping[str, Any], bases: Mapping[str, Mapping[str, Any]] | None = None) -> Book:
        """The catalog of these documents."""
        catalog = Catalog.from_documents(*documents, bases=bases)
        text = orjson.dumps({"documents": documents, "bases": bases or {}}, default=_plain)
        return cls(catalog.digest, zlib.compress(text, 1))

    def catalog(self) -> Catalog:
        """The catalog, compiled."""
        return _compiled(self)


@lru_cache(2)
def _compiled(book: Book) -> Catalog:
    held = orjson.loads(zlib.decompress(book.text))
    return Catalog.from_documents(*held["documents"], bases=held["bases"])


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)
