"""A catalog's documents from where they are kept: files, folders, a running registry; read again only where changed.

Rule 1: what has not changed is not read again: a file by its time and size, a registry by its tag (one 304).
Rule 2: nothing is fetched but what was named: a base message elsewhere only from the hosts that `Reach.resolve` lists.
Rule 3: a file may be of any dialect; of a definition that it holds in several versions, the newest counts.
Rule 4: a read that fails leaves the documents of the last one in place; the caller decides whether to go on with them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from signalbook.client import MEBIBYTE, Call, HttpTransport, RegistryReply, RemoteError, ReplyBounds, is_address
from signalbook.errors import SignalbookError, UsageError, one_line
from signalbook.messages.catalog import Catalog
from signalbook.messages.definition import Entities, addresses_of
from signalbook.messages.schema_library import SchemaPolicy
from signalbook.sources.documents import (
    SUFFIXES,
    YAML_SUFFIXES,
    Document,
    Raw,
    document_files,
    in_canonical,
    parse_document,
    read_raw,
)

__all__ = [
    "MOST",
    "Contents",
    "Fetched",
    "Fetcher",
    "Reach",
    "Source",
    "external_bases",
    "is_store",
    "open_source",
    "place_of",
]

# Documents over HTTP: asked for once, and after that only whether they changed.
#
# Rule 1: the token goes to the host of the catalog alone, never to one that a document names.
# Rule 2: whatever goes wrong is one `RemoteError` that names the address and what to do.


@dataclass(frozen=True, slots=True)
class Reach:
    """How a catalog is asked, and how far: `resolve` names the hosts whose base messages are fetched.

    `schemas_required` says that a payload schema which cannot be applied is a problem, wherever it lies.
    """

    token: str = field(default="", repr=False)
    ca: Path | None = None
    timeout: float = 30.0
    largest: int = 256 * MEBIBYTE
    resolve: frozenset[str] = frozenset()
    schemas_required: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document, the tag under which its server knows it, and the address that the server says it has."""

    content: dict[str, Any]
    etag: str = ""
    root: str = ""


class Fetcher:
    """Fetches the documents of one source over HTTP."""

    def __init__(self, reach: Reach) -> None:
        self._transport = HttpTransport(
            token=reach.token, ca=reach.ca, bounds=ReplyBounds(reach.timeout, reach.largest)
        )

    def get(self, address: str, known: Fetched | None = None, *, trusted: bool = True) -> Fetched:
        """The document at an address, or `known` where it has not changed; only a `trusted` server gets the token."""
        headers = {"if-none-match": known.etag} if known is not None and known.etag else {}
        reply = self._transport.answer(Call("GET", address, headers=headers, anonymous=not trusted))
        if reply.status == 304 and known is not None:
            return known
        if reply.status != 200:
            raise _refused(address, reply)
        in_yaml = address.endswith(YAML_SUFFIXES)
        document = parse_document(reply.content, address, yaml_allowed=in_yaml, answered=True)
        # The address of a registry by its own words (core/http.md: the link to its root).
        return Fetched(document, reply.headers.get("etag", ""), reply.find_link("xregistry-root")[0])

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


_REDIRECTED = "it redirects elsewhere; name that address instead"
_REMEDIES: Mapping[int, str] = {
    **dict.fromkeys((301, 302, 303, 307, 308), _REDIRECTED),
    401: "give the token with --token, --token-file or SIGNALBOOK_TOKEN",
    403: "this token may not read it",
    404: "is it the root of an xRegistry server?",
}


def _refused(address: str, reply: RegistryReply) -> RemoteError:
    remedy = _REMEDIES.get(reply.status, "is it an xRegistry server?")
    return RemoteError(f"{address} answered {reply.status}; {remedy}", status=reply.status)


# Base messages that are kept elsewhere: followed only to the hosts that were allowed, and to an end.
#
# Rule 1: an absolute `basemessage` is looked up where its host is allowed; all others stay the notes they are.
# Rule 2: what is fetched may itself have a base; a relative one belongs to the registry that it came from.
# Rule 3: how many are fetched is bounded; what cannot be had, or is not a message, is left out and said, for a dangling
# base
# is not an error (M-5).
# Rule 4: of a message that is fetched only that counts which its author said, as of those in the catalog itself.


MOST = 1000
# The spellings of the attribute, by version: 1.0-rc2, 1.0-rc4, 0.5.
SPELLINGS = ("basemessage", "basemessageuri", "basemessageurl")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"(?:[\w.~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
# A message, or a version of one; and what only other entities have.
_XID = re.compile(r"/[^/]+/[^/]+/messages/[^/]+(?:/versions/[^/]+)?")
_OTHER_IDS = ("registryid", "messagegroupid", "endpointid", "schemagroupid", "schemaid")
_log = logging.getLogger("signalbook.sources")


def external_bases(
    documents: Iterable[Mapping[str, Any]], fetcher: Fetcher, hosts: frozenset[str]
) -> dict[str, Mapping[str, Any]]:
    """By address, the base messages that these documents take from hosts that are allowed, and their bases in turn."""
    if not hosts:
        return {}
    allowed = frozenset(_allowed(host) for host in hosts)
    found: dict[str, Mapping[str, Any]] = {}
    waiting = [address for document in documents for address in _bases(document)]
    asked: set[str] = set()
    passed: set[str] = set()
    while waiting:
        address = waiting.pop()
        if address in asked or address in passed:
            continue
        if place_of(address) not in allowed:
            passed.add(address)
            _pass_over(address, allowed)
            continue
        if len(asked) >= MOST:
            raise RemoteError(f"the catalog takes more than {MOST:,} base messages from elsewhere")
        asked.add(address)
        try:
            message = _message(fetcher.get(address, trusted=False).content, address)
        except SignalbookError as error:
            _log.warning("the base message %s is left out: %s", one_line(address), one_line(str(error)))
            continue
        found[address] = message
        waiting += _of_message(message)
    return found


# Who may be asked ----------------------------------------------------------------------------------------------------


def place_of(address: str) -> str:
    """The host of an address as `Reach.resolve` names it, with its port where that is not the usual one; or nothing.

    >>> place_of("http://base.example:80/a"), place_of("http://[::1]:8080/a"), place_of("/messagegroups/g")
    ('base.example', '[::1]:8080', '')
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return ""
    host = parts.hostname or ""
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return ""
    host = f"[{host}]" if ":" in host else host
    return host if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"


def _allowed(host: str) -> str:
    """A host that was named, as `place_of` has it; `UsageError` where it is none."""
    place = place_of(f"http://{host}") if _HOST.fullmatch(host) else ""
    if not place:
        meant = place_of(host) or "base.example:8080"
        raise UsageError(f"'{host}' is not a host that base messages can be fetched from; write it as in {meant}")
    return place


def _pass_over(address: str, allowed: frozenset[str]) -> None:
    """Say it where the host of an address is allowed, and only its port is not."""
    place = place_of(address)
    if _without_port(place) in {_without_port(one) for one in allowed}:
        words = "the base message %s is not followed: only the host %s would allow it"
        _log.warning(words, one_line(address), one_line(place))


def _without_port(place: str) -> str:
    return re.sub(r":[0-9]+$", "", place)


# What there is to ask for --------------------------------------------------------------------------------------------


def _bases(document: Mapping[str, Any]) -> Iterator[str]:
    """The absolute bases that the messages of a document state."""
    for groups in _objects(document):
        for group in _objects(groups):
            messages = group.get("messages")
            for message in _objects(messages) if isinstance(messages, Mapping) else ():
                yield from _of_message(message)


def _of_message(message: Mapping[str, Any]) -> Iterator[str]:
    versions = message.get("versions")
    for entity in (message, *(_objects(versions) if isinstance(versions, Mapping) else ())):
        yield from (value for name in SPELLINGS if isinstance(value := entity.get(name), str) and is_address(value))


def _objects(parent: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (value for value in parent.values() if isinstance(value, Mapping))


# What came -----------------------------------------------------------------------------------------------------------


def _message(content: dict[str, Any], address: str) -> Mapping[str, Any]:
    """What the author of a message said; its relative base names the registry it came from."""
    words = _other_than_message(content)
    if words:
        raise RemoteError(f"it is {words}")
    meta = content.get("meta")
    if isinstance(meta, Mapping):
        # Who borrows a message shows its attributes, too.
        content = {**content, "meta": {name: value for name, value in meta.items() if name != "xref"}}
    (entity,) = Entities.of({"messagegroups": {"g": {"messages": {"m": content}}}}).messages.values()
    for problem in entity.problems:
        raise RemoteError(problem.message)
    stated = entity.attributes.get("basemessage")
    if isinstance(stated, str) and stated.startswith("/"):
        return {**entity.attributes, "basemessage": f"{_root(content, address)}{stated}"}
    return entity.attributes


def _other_than_message(content: Mapping[str, Any]) -> str:
    """What it is that came, where that is plainly not a message."""
    if not content:
        return "empty"
    if all(isinstance(value, Mapping) and ("xid" in value or "messageid" in value) for value in content.values()):
        return "a collection; name one of its messages"
    xid = content.get("xid")
    if (isinstance(xid, str) and not _XID.fullmatch(xid)) or any(name in content for name in _OTHER_IDS):
        return "not a message, but another entity of a registry"
    return ""


def _root(message: Mapping[str, Any], address: str) -> str:
    """The address of the registry that a message lies in: what comes before its xid."""
    plain = address.partition("?")[0].partition("#")[0].removesuffix("$details")
    xid = message.get("xid")
    if isinstance(xid, str) and xid and plain.endswith(xid):
        return plain.removesuffix(xid)
    steps = plain.split("/")
    return "/".join(steps[:-4]) if len(steps) > 6 else "/".join(steps[:3])


_STORE_URLS = ("postgresql://", "postgres://", "sqlite:")
_STORE_MARK = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Contents:
    """What a source holds now: its documents, and by address the base messages that they take from elsewhere.

    `roots` are the addresses by which the documents are reached.
    """

    documents: tuple[Document, ...]
    external: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    schemas_required: bool = False


class _Place(Protocol):
    """Where catalog documents are read from."""

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
    fetcher: Fetcher
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
            return self.fetcher.get(self.address, self._last)
        root = self.address.rstrip("/")
        try:
            return self.fetcher.get(f"{root}/export", self._last)
        except RemoteError as error:
            if error.status not in _WITHOUT_EXPORT:
                raise
            return self.fetcher.get(f"{root}/?inline=*", self._last)


# A registry need not offer exports; what it inlines is the same catalog.
_WITHOUT_EXPORT = frozenset({400, 404, 405, 501})


class Source:
    """Several places taken as one catalog."""

    def __init__(self, places: tuple[_Place, ...], fetcher: Fetcher, reach: Reach) -> None:
        self._places = places
        self._fetcher = fetcher
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
            external = external_bases((document.content for document in documents), self._fetcher, self._reach.resolve)
            roots = tuple(root for place in self._places for root in place.roots())
            known = self._contents = Contents(documents, external, roots, self._reach.schemas_required)
        return known

    def close(self) -> None:
        """Give connections back."""
        self._fetcher.close()

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
            raise UsageError(f"{shown} is a store, not a document; {words}")
    reach = reach or Reach()
    fetcher = Fetcher(reach)
    places: Iterator[_Place] = (
        _Registry(location, fetcher) if is_address(location) else _Files(location) for location in locations
    )
    return Source(tuple(places), fetcher, reach)


def is_store(location: str) -> bool:
    """Whether a location is that of a database, which holds a registry: PostgreSQL, or a file of SQLite."""
    if location.startswith(_STORE_URLS):
        return True
    path = Path(location)
    try:
        # A pipe is not a store, and what is read of it is gone.
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_STORE_MARK)) == _STORE_MARK
    except (OSError, ValueError):
        return False


def _same(one: tuple[Document, ...], other: tuple[Document, ...]) -> bool:
    return len(one) == len(other) and all(left is right for left, right in zip(one, other, strict=True))
