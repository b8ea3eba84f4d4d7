"""A request and a response as plain values, and what a service must be to answer one with the other.

Rule 1: nothing here knows a protocol; `run` and `flow.AsgiApp` make requests and send responses.
Rule 2: `Request.path` is percent-decoded, as both protocols hand it over: an id may hold neither `/` nor `%`, so
nothing is lost. Bytes that are not UTF-8 arrive as U+FFFD, which no id may hold either.
Rule 3: `Request.base` is safe to be spliced into JSON and headers: a `Host` with other characters is refused.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from signalbook.errors import RegistryError

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "ALL_METHODS",
    "ANY_ORIGIN",
    "ATTRIBUTE",
    "JSON",
    "REPEATED",
    "SEQUENCE",
    "Headers",
    "LargeAnswers",
    "LargeBody",
    "Request",
    "Response",
    "Service",
    "Stream",
    "WaitContext",
    "WaitingAnswer",
    "allow_list",
    "options",
    "refuse_coded",
]

# `OPTIONS` and CORS: which methods a path has, and that any web page may read what needs no token (HTTP-9, HTTP-10).
#
# Rule: a page may read; whether it may write is decided in `access`, not by hiding headers.


ALL_METHODS = "DELETE, GET, OPTIONS, PATCH, POST, PUT"
"""Every method some path of the API has, in the form of `Allow`."""

ANY_ORIGIN = (
    ("access-control-allow-origin", "*"),
    ("access-control-allow-methods", ALL_METHODS),
    ("access-control-expose-headers", "*"),
)
"""What the edge adds to a response that does not name its own methods."""

_PREFLIGHT_HEADERS = "authorization, content-type, if-match, if-none-match"
_XREGISTRY = re.compile(r"xregistry-[a-z0-9._-]+")
_EXPOSED = "etag, link, location, content-location, content-disposition, signalbook-sequence"


def allow_list(methods: Iterable[str]) -> str:
    """The value of `Allow`: the methods and `OPTIONS`, in alphabetical order."""
    return ", ".join(sorted({*methods, "OPTIONS"}))


def options(request: Request, allow: str = ALL_METHODS) -> Response:
    """The answer to `OPTIONS`: the same list twice, and for a browser's preflight what a page may send and see."""
    headers = [("allow", allow), ("access-control-allow-origin", "*"), ("access-control-allow-methods", allow)]
    if "access-control-request-method" in request.headers:
        wanted = (request.headers.get("access-control-request-headers") or "").lower().split(",")
        own = sorted({name.strip() for name in wanted if _XREGISTRY.fullmatch(name.strip())})
        headers.append(("access-control-allow-headers", ", ".join([_PREFLIGHT_HEADERS, *own])))
        headers.append(("access-control-expose-headers", _EXPOSED))
        headers.append(("access-control-max-age", "600"))
    return Response(200, headers)


SEQUENCE = "signalbook-sequence"
"""The header with the number of a change: the one that a write made, or that the catalog of an answer stands at."""

ATTRIBUTE = "xregistry-"
REPEATED = "\n"

JSON = ("content-type", "application/json; charset=utf-8")
"""The content type of every metadata response (HTTP-5)."""


class Headers(Protocol):
    """Request headers by lower-case name: a dict, or on the fast path the HTTP server's own object."""

    def __contains__(self, name: str, /) -> bool: ...

    def get(self, name: str, /) -> str | None:
        """The value, on the fast path the first of several."""
        ...

    def keys(self) -> Collection[str]:
        """All names."""
        ...

    def items(self) -> Iterable[tuple[str, str]]:
        """All names and values; granian leaves out a value that is not ASCII."""
        ...


class LargeBody(Protocol):
    """A body that is not in memory; `answers` has it."""

    size: int

    def pieces(self) -> Iterator[bytes]:
        """Yield the whole, piece by piece."""
        ...

    def hold(self) -> bool:
        """Take it once more; return whether it is still there."""
        ...

    def close(self) -> None:
        """Let it go."""
        ...


class LargeAnswers(Protocol):
    """Where large answers are put; `answers` has them."""

    def collect(self, pieces: Iterable[bytes], path: str) -> tuple[bytes, LargeBody | None]:
        """Return these pieces as one body where they are small together, else as a large one."""
        ...

    def shared(self, key: str, make: Callable[[], Response]) -> Response:
        """Return the answer that somebody is being sent under this key, or the one that `make` gives."""
        ...

    def in_memory(self, path: str) -> AbstractContextManager[None]:
        """Make an answer that is in memory as a whole meanwhile."""
        ...


@dataclass(slots=True)
class Request:
    """One request; `base` is the `scheme://host[/prefix]` that the client used, without a slash at the end.

    `client` is the address and port it came from. `answers` is where a large answer may be put, if anywhere.
    """

    method: str
    path: str
    query: str = ""
    headers: Headers = field(default_factory=dict[str, str])
    body: bytes = b""
    base: str = "http://localhost"
    client: str = ""
    answers: LargeAnswers | None = None


def refuse_coded(request: Request) -> None:
    """Refuse a body that is not the content itself: a document would be kept in a coding that nobody undoes."""
    coding = (request.headers.get("content-encoding") or "identity").strip().lower()
    if coding != "identity":
        raise RegistryError("unsupported_content_encoding", request.path, coding=coding)


@dataclass(slots=True)
class Response:
    """One response; the edge adds what every response has (root link, CORS, content length) and never changes these.

    A body that is large is in `spool`; whoever sends it closes that.
    """

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    spool: LargeBody | None = None

    @property
    def size(self) -> int:
        """How many bytes the body has."""
        return len(self.body) if self.spool is None else self.spool.size


@dataclass(slots=True)
class Stream:
    """A response whose body comes piece by piece, for as long as there are pieces and the client stays."""

    status: int
    headers: list[tuple[str, str]]
    pieces: AsyncGenerator[bytes, None]
    size: int = 0  # what is counted and logged of it
    close: Callable[[], None] = lambda: None  # called when it has ended, also if it was never begun


@dataclass(frozen=True, slots=True)
class WaitContext:
    """What an answer that may wait is given: threads for what takes long, and when to stop waiting.

    One that will wait calls `admit` first, which raises `server_busy` where its client has enough that wait.
    """

    run: Callable[[Callable[[Any], Any], Any], Awaitable[Any]]
    closing: asyncio.Event
    admit: Callable[[], None]


WaitingAnswer = Callable[[Request, WaitContext], Awaitable[Response | Stream]]
"""Answers on the event loop, and may wait there without holding a thread."""


class Service(Protocol):
    """What answers requests.

    It may also have `health() -> str` (empty, or why it cannot answer), `measures() -> Mapping[str, float]` (shown
    by `/metrics`), `asks(request) -> bool` (whether a POST writes nothing), `respond(error, path) -> Response` (for
    what went wrong), `described` (the paths whose OPTIONS says more than their methods, to anybody), `waiting`
    (what answers a GET of a path where that may wait, or of a method such as `POST /subscriptions` for all paths
    below), `judgements` (whose `tell` is called with what became of a message), `start()` and `close()`.
    """

    def quick(self, request: Request, /) -> Response | None:
        """An answer within microseconds, on the event loop; `None` sends the request to `answer`."""
        ...

    def answer(self, request: Request, /) -> Response:
        """An answer, from any thread; a `RegistryError` is turned into a response by the caller."""
        ...
