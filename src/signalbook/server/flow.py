"""What every request goes through, whatever protocol brought it.

Access, the fast path or the general path, the headers that every response has, content coding, log and figures.

Rule 1: the fast path stays on the event loop and adds a few microseconds at most; only reads take it.
Rule 2: nothing escapes: whatever goes wrong becomes a response in `problems`.
Rule 3: `/healthz` needs no token, `/metrics` one for reading; both are answered here, each in a thread of its own, so
that neither waits for the pool.
Rule 4: a service never sees `HEAD`: it is a `GET` whose body the protocol leaves out (HTTP-17).
Rule 5: the work for a request in a thread is within a budget, and ends soon after the client has left.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Protocol, TypeVar

import orjson

from signalbook.budget import Budget, of_bytes, within
from signalbook.errors import RegistryError
from signalbook.server import dispatch, http, problems
from signalbook.server.access import READS, Access
from signalbook.server.answers import LARGE, AnswerLimits
from signalbook.server.coding import SMALLEST, VARY, choose, encode
from signalbook.server.connections import Places
from signalbook.server.http import (
    JSON,
    Headers,
    Request,
    Response,
    Service,
    Stream,
    WaitContext,
    WaitingAnswer,
)
from signalbook.server.metrics import CounterTable, Metrics, RequestLog
from signalbook.settings import is_loopback

__all__ = ["AsgiApp", "Bases", "BodyLimits", "BodySource", "Flow", "Pool", "half_a_body"]


# A host and port of RFC 3986 section 3.2.2, without user information, escapes and the marks no host name has.
_AUTHORITY = re.compile(r"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PORT = re.compile(r":[0-9]{0,5}$")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~:@-]+)*/?")


FORWARDED = "x-forwarded-host, x-forwarded-proto, x-forwarded-prefix"
"""What an answer depends on where a proxy is trusted: its address is in it."""


class Bases:
    """The base URL of a request, from what the client sent or what the operator fixed.

    With `hosts` only requests for these, and for this machine by its own names, are answered: a web page whose name
    leads to this machine (DNS rebinding) sends its own name as `Host`.
    """

    def __init__(self, fixed: str = "", *, trust_proxy: bool = False, hosts: frozenset[str] | None = None) -> None:
        self._fixed = fixed.rstrip("/")
        self._trust_proxy = trust_proxy
        self._hosts = hosts
        self._welcome: set[str] = set()
        self._known: dict[tuple[str, str], str] = {}
        self.varies = FORWARDED if trust_proxy and not fixed else ""

    def find(self, scheme: str, authority: str, headers: Headers, path: str) -> str:
        """The base; `header_error` where the client's `Host` is none."""
        if self._hosts is not None and authority not in self._welcome:
            self._check_host(authority, path)
        if self._fixed:
            return self._fixed
        if self._trust_proxy:
            return self._forwarded(scheme, authority, headers, path)
        base = self._known.get((scheme, authority))
        return base if base is not None else self._learn(scheme, authority, path)

    def _check_host(self, authority: str, path: str) -> None:
        host = _PORT.sub("", authority).lower()
        if self._hosts is not None and host.strip("[]") not in self._hosts and not is_loopback(host):
            words = "it does not name this server, which only this machine reaches; --allow-host adds a name"
            raise RegistryError("header_error", path, name="Host", error_detail=words)
        if len(self._welcome) >= 256:  # as many as are remembered below
            self._welcome.clear()
        self._welcome.add(authority)

    def _learn(self, scheme: str, authority: str, path: str) -> str:
        if not _AUTHORITY.fullmatch(authority):
            raise RegistryError("header_error", path, name="Host", error_detail="it does not name a host")
        if len(self._known) >= 256:  # a client that sends ever new names must not fill the memory
            self._known.clear()
        base = self._known[scheme, authority] = f"{scheme}://{authority}"
        return base

    def _forwarded(self, scheme: str, authority: str, headers: Headers, path: str) -> str:
        def first(name: str) -> str:
            return (headers.get(name) or "").split(",")[0].strip()

        proto = first("x-forwarded-proto").lower()
        prefix = first("x-forwarded-prefix")
        if proto and proto not in ("http", "https"):
            raise RegistryError("header_error", path, name="X-Forwarded-Proto", error_detail="it is not an HTTP scheme")
        if not _PREFIX.fullmatch(prefix):
            raise RegistryError("header_error", path, name="X-Forwarded-Prefix", error_detail="it is not a path")
        host = first("x-forwarded-host") or authority
        base = self._known.get((proto or scheme, host)) or self._learn(proto or scheme, host, path)
        return base + prefix.rstrip("/")


# How much and how long: the size of a body, the time it may take, and what all waiting bodies may hold together.
#
# Rule 1: a body that announces too much is refused before it is read; one that does not announce is cut at the limit.
# Rule 2: a body may take `timeout` seconds and one more for every 16 KiB that did arrive, so neither a client that
# stalls nor one that drips holds a place for long.
# Rule 3: what all bodies being read and answered hold together is bounded; beyond it the server says it is busy.


_RATE = 16 * 1024
_SMALL = 64 * 1024


class BodySource(Protocol):
    """What a protocol knows of a client: its body, which both ways raise `half_a_body` for if it goes away."""

    async def whole(self) -> bytes:
        """All of it at once."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Piece by piece."""
        ...

    async def left(self) -> None:
        """Wait until the client has left; the body was read before."""
        ...


def half_a_body(path: str) -> RegistryError:
    """The error for a body that ends before its end."""
    return RegistryError("bad_request", path, error_detail="the request ended in the middle of its body")


class BodyLimits:
    """The limits of one process and how much of them is in use; `held` is for all bodies together."""

    def __init__(self, *, max_body: int = 16 * 1024 * 1024, timeout: float = 30.0, held: int | None = None) -> None:
        self._max_body = max_body
        self._timeout = timeout
        self._room = held if held is not None else max(16 * max_body, 64 * 1024 * 1024)

    async def read(self, source: BodySource, length: str | None, path: str) -> bytes:
        """The whole body, where `length` is its announced length; `release` gives its room back."""
        announced = self._announced(length, path)
        if announced == 0:
            return b""
        try:
            if announced is not None and announced <= _SMALL:
                async with asyncio.timeout(self._timeout):
                    body = await source.whole()
                self._take(len(body), path)
            else:
                body = await self._gather(source.chunks(), path)
        except TimeoutError:
            raise RegistryError("request_timeout", path) from None
        if announced is not None and len(body) != announced:
            self.release(len(body))
            raise half_a_body(path)
        return body

    def release(self, size: int) -> None:
        """Give back the room of a body that is done with."""
        self._room += size

    def _announced(self, length: str | None, path: str) -> int | None:
        if length is None:
            return None
        if not (length.isascii() and length.isdigit()):
            raise RegistryError("header_error", path, name="Content-Length", error_detail="it is not a number")
        size = int(length[:20])
        if size > self._max_body:
            raise RegistryError("request_too_large", path, limit=self._max_body)
        return size

    async def _gather(self, chunks: AsyncIterator[bytes], path: str) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._timeout) as timer:
                deadline = timer.when() or 0.0
                async for chunk in chunks:
                    self._take(len(chunk), path)
                    size += len(chunk)
                    parts.append(chunk)
                    if size > self._max_body:
                        raise RegistryError("request_too_large", path, limit=self._max_body)
                    timer.reschedule(deadline + size / _RATE)
        except BaseException:
            self.release(size)
            raise
        return b"".join(parts)

    def _take(self, size: int, path: str) -> None:
        if size > self._room:
            raise RegistryError("server_busy", path)
        self._room -= size


# The threads that answer what takes longer than a moment.
#
# Rule 1: a thread is started when a job finds all others busy, up to the given number, and stays.
# Rule 2: finished jobs wake the event loop once for all that finished meanwhile: when a group of writes commits
# together, their threads finish together (measured: docs/decisions/0003-rsgi-and-raw-asgi.md).


T = TypeVar("T")
_Job = tuple["asyncio.Future[Any]", Callable[[Any], Any], Any]


class Pool:
    """Up to `size` threads that work for one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, size: int = 40) -> None:
        self._loop = loop
        self._size = size
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._done: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._waking = False
        self._lock = threading.Lock()
        self._busy = 0
        self._threads: list[threading.Thread] = []

    def run(self, job: Callable[[Any], T], argument: Any) -> asyncio.Future[T]:
        """A future of what `job(argument)` gives or raises; it runs even if nobody waits for it any more."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._busy += 1
        if self._busy > len(self._threads) and len(self._threads) < self._size:
            thread = threading.Thread(target=self._work, name=f"signalbook-{len(self._threads) + 1}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._jobs.put((future, job, argument))
        return future

    @property
    def busy(self) -> int:
        """How many jobs are running or waiting."""
        return self._busy

    def close(self, timeout: float | None = None) -> None:
        """Finish what was begun and end the threads."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout)
        self._threads.clear()

    def _work(self) -> None:
        while (entry := self._jobs.get()) is not None:
            future, job, argument = entry
            try:
                outcome: tuple[Any, Any, BaseException | None] = (future, job(argument), None)
            except BaseException as error:  # the caller decides what it means
                outcome = (future, None, error)
            with self._lock:
                self._done.append(outcome)
                wake, self._waking = not self._waking, True
            if wake:
                try:
                    self._loop.call_soon_threadsafe(self._deliver)
                except RuntimeError:  # the loop is closed: nobody waits
                    return
            del entry, future, job, argument, outcome  # an idle thread holds no request

    def _deliver(self) -> None:
        with self._lock:
            done, self._done, self._waking = self._done, deque(), False
        self._busy -= len(done)
        for future, value, error in done:
            if future.cancelled():
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)


# The steps of work that one request may take, unless the operator says otherwise.
MOST_STEPS = 10_000_000
# Most work is done before it is worth asking whether the client is still there.
_WATCHED_AFTER = 0.1
_FIGURES = ("content-type", "text/plain; version=0.0.4; charset=utf-8")
_Extras = tuple[tuple[str, str], ...]
# What the log shows where nobody was there to be answered, as other servers write it.
_NOBODY = 499


async def _unless_gone(answer: Awaitable[Response | Stream], source: BodySource) -> Response | Stream:
    """An answer that waits, which is given up when its client leaves."""
    waiting, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(source.left())
    try:
        await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return waiting.result() if waiting.done() else Response(_NOBODY)
    finally:
        for one in (waiting, leaving):
            one.cancel()


def _dict_of(headers: Headers) -> dict[str, str]:
    """The same headers in a dict; a value that could not be read is U+FFFD, which no attribute's value may be."""
    found = dispatch.joined(headers.items())
    names = headers.keys()
    return found if len(found) == len(names) else {**dict.fromkeys(names, "\ufffd"), **found}


def _waited_for(request: Request) -> str:
    """Return the name by which `waiting` may know a request: its path, or its method and the first part of its path."""
    return request.path if request.method == "GET" else f"{request.method} /{request.path[1:].partition('/')[0]}"


class Flow:
    """The way of requests through one process."""

    def __init__(
        self,
        service: Service,
        *,
        access: Access | None = None,
        bases: Bases | None = None,
        limits: BodyLimits | None = None,
        answers: AnswerLimits | None = None,
        places: Places | None = None,
        log: RequestLog | None = None,
        table: CounterTable | None = None,
        threads: int = 40,
        max_steps: int = MOST_STEPS,
        any_origin: bool = True,
    ) -> None:
        self._service = service
        self._max_steps = max_steps
        self._quick = service.quick
        self._access = access or Access()
        self._bases = bases or Bases()
        self._limits = limits or BodyLimits()
        self.answers = answers or AnswerLimits()
        self.places = places or Places()
        self._log = log
        self._threads = threads
        self._pool: Pool | None = None
        self._apart: dict[str, Pool] = {}
        self._asks: Callable[[Request], bool] = getattr(service, "asks", lambda request: False)
        self._respond: Callable[[BaseException, str], Response] = getattr(service, "respond", problems.respond)
        self._described: frozenset[str] = getattr(service, "described", frozenset())
        self._waiting: Mapping[str, WaitingAnswer] = getattr(service, "waiting", {})
        self._closing = asyncio.Event()
        self._metrics = Metrics(getattr(service, "measures", None), table)
        judgements = getattr(service, "judgements", None)
        if judgements is not None:
            judgements.tell = self._metrics.judged
        self._any_origin = any_origin  # whether a page of any origin may read
        self._own: Mapping[str, Callable[[Request], Response]] = {"/healthz": self._health, "/metrics": self._figures}
        self._extras: dict[str, tuple[_Extras, _Extras]] = {}

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Get ready on the event loop that will bring the requests."""
        self._pool = Pool(loop, self._threads)
        # Whoever watches the server is answered when all its threads are busy, above all then.
        self._apart = {path: Pool(loop, 1) for path in self._own}
        if self._log is not None:
            self._log.later = loop.call_later
        begin = getattr(self._service, "start", None)
        if begin is not None:
            begin()

    async def run(self, job: Callable[[Any], T], argument: Any) -> T:
        """What `job(argument)` gives, in a thread of the pool."""
        if self._pool is None:
            raise RegistryError("server_busy", "/")
        return await self._pool.run(job, argument)

    def hurry(self) -> None:
        """Let nobody wait any more, because the server is about to stop."""
        self._closing.set()

    def stop(self) -> None:
        """Finish what was begun, write the log out, close the service."""
        for pool in self._apart.values():
            pool.close(timeout=1)
        self._apart = {}
        if self._pool is not None:
            self._pool.close(timeout=30)
            self._pool = None
        if self._log is not None:
            self._log.later = None
            self._log.flush()
        close = getattr(self._service, "close", None)
        if close is not None:
            close()

    # The fast path ---------------------------------------------------------------------------------------------------

    def begin(
        self, method: str, path: str, query: str, headers: Headers, scheme: str, authority: str
    ) -> Request | Response:
        """The response of a read that can be answered at once, or else the request that `answer` takes."""
        if method == "HEAD":
            method = "GET"
        request = Request(method, path, query, headers)
        try:
            request.base = self._bases.find(scheme, authority, headers, path)
            if method not in READS or path in self._own:
                return request
            if not self._access.reading_is_open:
                described = path.rstrip("/") in self._described
                if method == "OPTIONS" and not described and not self._access.may_read(request):
                    return self._finish(request, http.options(request))
                self._access.check(request)
            response = self._quick(request)
        except Exception as error:
            response = self._respond(error, path)
        if response is None:
            return request
        if len(response.body) > SMALLEST:
            if len(response.body) > LARGE:
                return request
            if "accept-encoding" in headers:
                return self._coded(request, self._finish(request, response))
        return self._finish(request, response)

    def done(
        self, method: str, path: str, query: str, response: Response | Stream, started: float, client: str
    ) -> None:
        """Count and log a response that was sent."""
        seconds = perf_counter() - started
        self._metrics.count(method, response.status, seconds)
        if self._log is not None:
            self._log.note(method, path, query, response.status, response.size, seconds, client)

    # The general path ------------------------------------------------------------------------------------------------

    async def answer(self, request: Request, source: BodySource) -> Response | Stream:
        """The response to a request that `begin` gave back."""
        self._metrics.begun()
        held = 0
        request.answers = self.answers
        try:
            if request.path != "/healthz":
                self._access.check(request, asks=request.method == "POST" and self._asks(request))
            request.headers = _dict_of(request.headers)
            if request.method not in READS:
                length = request.headers.get("content-length")
                if length is not None or "transfer-encoding" in request.headers:
                    request.body = await self._limits.read(source, length, request.path)
                    held = len(request.body)
            if self._pool is None:
                raise RegistryError("server_busy", request.path)
            waiting = self._waiting.get(_waited_for(request))
            if waiting is not None:
                return await self._wait(request, waiting, self._pool, source)
            return await self._worked(request, source, self._apart.get(request.path, self._pool))
        except Exception as error:
            return self._finish(request, self._respond(error, request.path))
        finally:
            self._limits.release(held)
            self._metrics.ended()

    async def _wait(
        self, request: Request, waiting: WaitingAnswer, pool: Pool, source: BodySource
    ) -> Response | Stream:
        """The finished response of a path where an answer may wait, as long as its client does."""
        place = self.places.of(request)
        try:
            context = WaitContext(pool.run, self._closing, place.take)
            response = await _unless_gone(waiting(request, context), source)
            if isinstance(response, Stream):
                head = self._finish(request, Response(response.status, response.headers))
                return Stream(response.status, head.headers, response.pieces, close=place.give_back)
            place.give_back()
            return await pool.run(partial(self._coded, request), self._finish(request, response))
        except BaseException:
            place.give_back()
            raise

    async def _worked(self, request: Request, source: BodySource, pool: Pool) -> Response:
        """The response that a thread makes, within the request's budget and for as long as its client stays."""
        budget = Budget(self._max_steps, "This request")
        job = pool.run(partial(self._work, budget), request)
        loop = asyncio.get_running_loop()
        watch = loop.call_later(_WATCHED_AFTER, _watch, loop, source, budget, job)
        try:
            return await job
        except asyncio.CancelledError:
            budget.cancel()
            raise
        finally:
            watch.cancel()

    def _work(self, budget: Budget, request: Request) -> Response:
        """In a thread of the pool: the finished response."""
        own = self._own.get(request.path)
        try:
            if own is None:
                with within(budget):
                    budget.spend(of_bytes(len(request.body)))
                    response = self._service.answer(request)
            elif request.method == "GET":
                response = own(request)
            elif request.method == "OPTIONS":
                response = http.options(request, "GET, OPTIONS")
            else:
                raise problems.not_supported(request.path, request.method, "GET, OPTIONS")
        except Exception as error:
            response = self._respond(error, request.path)
        return self.answers.kept(self._coded(request, self._finish(request, response)), request.path)

    # What every response has -----------------------------------------------------------------------------------------

    def _finish(self, request: Request, response: Response) -> Response:
        """With the root link (HTTP-8), CORS and `Vary`; the service's own response stays as it is."""
        extras = self._extras.get(request.base)
        if extras is None:
            extras = self._learn(request.base)
        headers = [*response.headers, *extras[len(response.body) > SMALLEST or response.spool is not None]]
        if request.method == "OPTIONS":
            headers = [*response.headers, extras[0][0]]
            if not self._any_origin:
                headers = [one for one in headers if not one[0].startswith("access-control-")]
        return Response(response.status, headers, response.body, response.spool)

    def _learn(self, base: str) -> tuple[_Extras, _Extras]:
        if len(self._extras) >= 256:  # as many as `Bases` remembers
            self._extras.clear()
        varies = self._bases.varies
        small: _Extras = (("link", f"<{base}>;rel=xregistry-root"), *(http.ANY_ORIGIN if self._any_origin else ()))
        large = (*small, ("vary", f"{VARY[1]}, {varies}") if varies else VARY)
        extras = self._extras[base] = ((*small, ("vary", varies)) if varies else small, large)
        return extras

    def _coded(self, request: Request, response: Response) -> Response:
        if len(response.body) <= SMALLEST and response.spool is None:
            return response
        coding = choose(request.headers.get("accept-encoding") or "")
        return encode(response, coding, request.answers, request.path) if coding else response

    # Our own paths ---------------------------------------------------------------------------------------------------

    def _health(self, request: Request) -> Response:
        """Whether requests can be answered; why not, only to those whom the operator knows."""
        check = getattr(self._service, "health", None)
        wrong: str = check() if check is not None else ""
        body = {"status": "failing"} if wrong else {"status": "ok"}
        if wrong and self._access.is_known(request):
            body["reason"] = wrong
        return Response(503 if wrong else 200, [JSON, ("cache-control", "no-store")], orjson.dumps(body))

    def _figures(self, request: Request) -> Response:
        return Response(200, [_FIGURES, ("cache-control", "no-store")], self._metrics.text())


def _watch(loop: asyncio.AbstractEventLoop, source: BodySource, budget: Budget, job: asyncio.Future[Any]) -> None:
    """End the work for a client that leaves."""

    async def cancel() -> None:
        await source.left()
        budget.cancel()

    task = loop.create_task(cancel())
    job.add_done_callback(lambda _: task.cancel())


# The flow over ASGI 3.0 (`http` and `lifespan`), for embedding in another server and for tests without a socket.


_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class AsgiApp:
    """A flow as an ASGI application; without `lifespan` it starts with the first request."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Answer one connection event, as ASGI 3.0 asks."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            self._start()
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    def close(self) -> None:
        """Finish what was begun and close the service."""
        if self._loop is not None:
            self._loop = None
            self._flow.hurry()
            self._flow.stop()

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._flow.start(loop)

    async def _lifespan(self, receive: _Receive, send: _Send) -> None:
        while (message := await receive())["type"] != "lifespan.shutdown":
            if message["type"] == "lifespan.startup":
                self._start()
                await send({"type": "lifespan.startup.complete"})
        self.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        started = perf_counter()
        flow = self._flow
        method: str = scope["method"]
        path: str = scope["path"]
        query = scope["query_string"].decode("latin-1")
        headers = dispatch.joined((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        host, port = scope.get("server") or ("localhost", None)
        authority = headers.get("host") or (f"{host}:{port}" if port else host)
        client = f"{scope['client'][0]}:{scope['client'][1]}" if scope.get("client") else ""
        step = flow.begin(method, path, query, headers, scope.get("scheme", "http"), authority)
        if isinstance(step, Response):
            response: Response | Stream = step
        else:
            step.client = client
            response = await flow.answer(step, _AsgiBody(receive, path))
        names = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
        if isinstance(response, Response) and response.status not in (204, 304):
            names.append((b"content-length", str(response.size).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": names})
        body = response.body if isinstance(response, Response) and method != "HEAD" else b""
        try:
            if method != "HEAD":
                async for piece in _pieces_of(response):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            _end(response)
        await send({"type": "http.response.body", "body": body})
        flow.done(method, path, query, response, started, client or "-")


async def _pieces_of(response: Response | Stream) -> AsyncIterator[bytes]:
    """What of a body comes piece by piece; the server waits with each until the client takes it, as ASGI asks."""
    if isinstance(response, Stream):
        async for piece in response.pieces:
            yield piece
    elif response.spool is not None:
        for piece in response.spool.pieces():
            yield piece


def _end(response: Response | Stream) -> None:
    """Give back what a response holds, whether it was sent or not."""
    if isinstance(response, Stream):
        response.close()
    elif response.spool is not None:
        response.spool.close()


class _AsgiBody:
    """A request's body as ASGI gives it."""

    __slots__ = ("_path", "_receive")

    def __init__(self, receive: _Receive, path: str) -> None:
        self._receive = receive
        self._path = path

    async def whole(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise half_a_body(self._path)
            if message.get("body"):
                yield message["body"]
            more = message.get("more_body", False)

    async def left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
