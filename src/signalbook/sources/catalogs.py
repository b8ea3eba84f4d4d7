"""A catalog's documents from where they are kept: files, folders, a running registry; read again only where changed.

Rule 1: what has not changed is not read again: a file by its time and size, a registry by its tag (one 304).
Rule 2: nothing is fetched but what was named: a base message elsewhere only from the hosts that `Reach.resolve` lists.
Rule 3: a file may be of any dialect; of a definition that it holds in several versions, the newest counts.
Rule 4: a read that fails leaves the documents of the last one in place; the caller decides whether to go on with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from signalbook.errors import UsageError
from signalbook.messages.catalog import Catalog
from signalbook.messages.entities import addresses_of
from signalbook.messages.schema_library import SchemaPolicy
from signalbook.sources.dialects import Raw, in_canonical, read_raw
from signalbook.sources.documents import SUFFIXES, Document, document_files
from signalbook.sources.external import external_bases
from signalbook.sources.remote import Fetched, Reach, SourceError, Web, is_address

__all__ = ["Contents", "Documents", "Source", "is_store", "open_source"]

_STORE_URLS = ("postgresql://", "postgres://", "sqlite:")
_STORE_MARK = b"SQLite format 3\0"

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a source holds now: its documents, and by address the base messages that they take from elsewhere.

    `roots` are the addresses by which the documents are reached.
    """

    documents: tuple[Document, ...]
    external: Mapping[str, Json] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    schemas_required: bool = False


class Documents(Protocol):
    """A place that catalog documents are read from."""

    def read(self) -> tuple[Document, ...]:
        """The documents as they are now: the same tuple where nothing changed since the last time."""
        ...

    def roots(self) -> tuple[str, ...]:
        """The addresses by which what was read is reached; none for files."""
        ...


@dataclass(slots=True)
class _Files:
    """A file, a folder or standard input."""

    location: str
    _seen: object = None
    _documents: tuple[Document, ...] = ()

    def read(self) -> tuple[Document, ...]:
        state = self._state()
        if state is None or state != self._seen:
            self._documents = tuple(in_canonical(raw)[0][-1] for raw in read_raw(self.location))
            self._seen = state
        return self._documents

    def roots(self) -> tuple[str, ...]:
        return ()

    def _state(self) -> object:
        """What tells that a file changed; None where nothing does (standard input, a file that is not there)."""
        try:
            files = document_files(Path(self.location))
            return tuple((file, found.st_mtime_ns, found.st_size) for file in files for found in (file.stat(),))
        except OSError:
            return None


@dataclass(slots=True)
class _Registry:
    """A running registry, or a document on a web server."""

    address: str
    web: Web
    _last: Fetched | None = None
    _documents: tuple[Document, ...] = ()

    def read(self) -> tuple[Document, ...]:
        fetched = self._fetch()
        if fetched is not self._last:
            self._documents = in_canonical(Raw(self.address, fetched.content))[0][-1:]
            self._last = fetched
        return self._documents

    def roots(self) -> tuple[str, ...]:
        if self.address.partition("?")[0].endswith(SUFFIXES):
            return ()
        own = "" if self._last is None else self._last.root
        stated = (one.rstrip("/") for one in (own, self.address.partition("?")[0]) if one)
        return tuple(dict.fromkeys(root for one in stated for root in addresses_of(one)))

    def _fetch(self) -> Fetched:
        """The document that the address names, or the whole registry as one (core/http.md, `GET /export`)."""
        if self.address.partition("?")[0].endswith(SUFFIXES):
            return self.web.get(self.address, self._last)
        root = self.address.rstrip("/")
        try:
            return self.web.get(f"{root}/export", self._last)
        except SourceError as error:
            if error.status not in _WITHOUT_EXPORT:
                raise
            return self.web.get(f"{root}/?inline=*", self._last)


# A registry need not offer exports; what it inlines is the same catalog.
_WITHOUT_EXPORT = frozenset({400, 404, 405, 501})


class Source:
    """Several places taken as one catalog."""

    def __init__(self, places: tuple[Documents, ...], web: Web, reach: Reach) -> None:
        self._places = places
        self._web = web
        self._reach = reach
        self._contents: Contents | None = None
        self._catalog: Catalog | None = None

    def catalog(self) -> Catalog:
        """The catalog as it is now: the same one where nothing changed, else one that compiles what did."""
        known, contents = self._contents, self.read()
        if self._catalog is None or contents is not known:
            documents = (document.content for document in contents.documents)
            if self._catalog is None:
                policy = SchemaPolicy(required=contents.schemas_required)
                self._catalog = Catalog.from_canonical(
                    *documents, bases=contents.external, roots=contents.roots, schemas=policy
                )
            else:
                self._catalog = self._catalog.updated_canonical(
                    *documents, bases=contents.external, roots=contents.roots
                )
        return self._catalog

    def read(self) -> Contents:
        """What the places hold now: the same value where nothing changed since the last time."""
        documents = tuple(document for place in self._places for document in place.read())
        known = self._contents
        if known is None or not _same(documents, known.documents):
            external = external_bases((document.content for document in documents), self._web, self._reach.resolve)
            roots = tuple(root for place in self._places for root in place.roots())
            known = self._contents = Contents(documents, external, roots, self._reach.schemas_required)
        return known

    def close(self) -> None:
        """Give connections back."""
        self._web.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_source(*locations: str, reach: Reach | None = None) -> Source:
    """The source of a catalog that lies at these places: files, folders, `-`, or addresses of running registries."""
    for location in locations:
        if is_store(location):
            # An address may hold a password, and is not repeated.
            shown = "this" if location.startswith(_STORE_URLS) else f"'{location}'"
            words = "open it with signalbook.Registry.open, and signalbook.app.catalog_of gives its catalog"
            raise UsageError(f"{shown} is a store and no document; {words}")
    reach = reach or Reach()
    web = Web(reach)
    places: Iterator[Documents] = (
        _Registry(location, web) if is_address(location) else _Files(location) for location in locations
    )
    return Source(tuple(places), web, reach)


def is_store(location: str) -> bool:
    """Whether a location is that of a database, which holds a registry: PostgreSQL, or a file of SQLite."""
    if location.startswith(_STORE_URLS):
        return True
    path = Path(location)
    try:
        # A pipe is no store, and what is read of it is gone.
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_STORE_MARK)) == _STORE_MARK
    except (OSError, ValueError):
        return False


def _same(one: tuple[Document, ...], other: tuple[Document, ...]) -> bool:
    return len(one) == len(other) and all(left is right for left, right in zip(one, other, strict=True))
