"""What every request goes through, whatever protocol brought it.

Access, the quick road or the long one, the headers that every response has, content coding, log and figures.

Rule 1: the quick road stays on the event loop and adds a few microseconds at most; only reads take it.
Rule 2: nothing escapes: whatever goes wrong becomes a response in `problems`.
Rule 3: `/healthz` needs no token, `/metrics` one for reading; both are answered here.
Rule 4: a service never sees `HEAD`: it is a `GET` whose body the protocol leaves out (HTTP-17).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter

import orjson

from signalbook.errors import RegistryError
from signalbook.server import cross_origin, encoding, problems
from signalbook.server.access import READS, Access
from signalbook.server.http import (
    JSON,
    Bases,
    Headers,
    Patience,
    Patient,
    Request,
    Response,
    Service,
    Stream,
    joined,
)
from signalbook.server.limits import BodySource, Limits
from signalbook.server.metrics import Metrics, Table
from signalbook.server.pool import Pool
from signalbook.server.request_log import RequestLog

__all__ = ["Flow"]

_FIGURES = ("content-type", "text/plain; version=0.0.4; charset=utf-8")
_CODED_AT_ONCE = 256 * 1024
_Extras = tuple[tuple[str, str], ...]


def _dict_of(headers: Headers) -> dict[str, str]:
    """The same headers in a dict; a value that could not be read is U+FFFD, which no attribute's value may be."""
    found = joined(headers.items())
    names = headers.keys()
    return found if len(found) == len(names) else {**dict.fromkeys(names, "\ufffd"), **found}


class Flow:
    """The way of requests through one process."""

    def __init__(
        self,
        service: Service,
        *,
        access: Access | None = None,
        bases: Bases | None = None,
        limits: Limits | None = None,
        log: RequestLog | None = None,
        table: Table | None = None,
        threads: int = 40,
    ) -> None:
        self._service = service
        self._quick = service.quick
        self._access = access or Access()
        self._bases = bases or Bases()
        self._limits = limits or Limits()
        self._log = log
        self._threads = threads
        self._pool: Pool | None = None
        self._asking: frozenset[str] = getattr(service, "asking", frozenset())
        self._described: frozenset[str] = getattr(service, "described", frozenset())
        self._patient: Mapping[str, Patient] = getattr(service, "patient", {})
        self._closing = asyncio.Event()
        self._metrics = Metrics(getattr(service, "measures", None), table)
        judgements = getattr(service, "judgements", None)
        if judgements is not None:
            judgements.tell = self._metrics.judged
        self._own: Mapping[str, Callable[[], Response]] = {"/healthz": self._health, "/metrics": self._figures}
        self._extras: dict[str, tuple[_Extras, _Extras]] = {}

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Get ready on the event loop that will bring the requests."""
        self._pool = Pool(loop, self._threads)
        if self._log is not None:
            self._log.later = loop.call_later
        begin = getattr(self._service, "start", None)
        if begin is not None:
            begin()

    def hurry(self) -> None:
        """Let nobody wait any more, because the server is about to stop."""
        self._closing.set()

    def stop(self) -> None:
        """Finish what was begun, write the log out, close the service."""
        if self._pool is not None:
            self._pool.close(timeout=30)
            self._pool = None
        if self._log is not None:
            self._log.later = None
            self._log.flush()
        close = getattr(self._service, "close", None)
        if close is not None:
            close()

    # The quick road --------------------------------------------------------------------------------------------------

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
                told = path.rstrip("/") in self._described
                if method == "OPTIONS" and not told and not self._access.may_read(request):
                    return self._finish(request, cross_origin.options(request))
                self._access.check(request)
            response = self._quick(request)
        except Exception as error:
            response = problems.respond(error, path)
        if response is None:
            return request
        if len(response.body) > encoding.SMALLEST and "accept-encoding" in headers:
            if len(response.body) > _CODED_AT_ONCE:
                return request
            return self._coded(request, self._finish(request, response))
        return self._finish(request, response)

    def done(
        self, method: str, path: str, query: str, response: Response | Stream, started: float, client: str
    ) -> None:
        """Count and log a response that was sent."""
        seconds = perf_counter() - started
        self._metrics.count(method, response.status, seconds)
        if self._log is not None:
            self._log.note(method, path, query, response.status, len(response.body), seconds, client)

    # The long road ---------------------------------------------------------------------------------------------------

    async def answer(self, request: Request, source: BodySource) -> Response | Stream:
        """The response to a request that `begin` gave back."""
        self._metrics.begun()
        held = 0
        try:
            if request.path != "/healthz":
                self._access.check(request, asks=request.path in self._asking)
            request.headers = _dict_of(request.headers)
            if request.method not in READS:
                length = request.headers.get("content-length")
                if length is not None or "transfer-encoding" in request.headers:
                    request.body = await self._limits.read(source, length, request.path)
                    held = len(request.body)
            if self._pool is None:
                raise RegistryError("server_busy", request.path)
            patient = self._patient.get(request.path) if request.method == "GET" else None
            if patient is not None:
                return await self._wait(request, patient, self._pool)
            return await self._pool.run(self._work, request)
        except Exception as error:
            return self._finish(request, problems.respond(error, request.path))
        finally:
            self._limits.release(held)
            self._metrics.ended()

    async def _wait(self, request: Request, patient: Patient, pool: Pool) -> Response | Stream:
        """The finished response of a path where an answer may wait."""
        response = await patient(request, Patience(pool.run, self._closing))
        if isinstance(response, Stream):
            head = self._finish(request, Response(response.status, response.headers))
            return Stream(response.status, head.headers, response.pieces)
        return await pool.run(partial(self._coded, request), self._finish(request, response))

    def _work(self, request: Request) -> Response:
        """In a thread of the pool: the finished response."""
        own = self._own.get(request.path)
        try:
            if own is None:
                response = self._service.answer(request)
            elif request.method == "GET":
                response = own()
            elif request.method == "OPTIONS":
                response = cross_origin.options(request, "GET, OPTIONS")
            else:
                raise problems.not_supported(request.path, request.method, "GET, OPTIONS")
        except Exception as error:
            response = problems.respond(error, request.path)
        return self._coded(request, self._finish(request, response))

    # What every response has -----------------------------------------------------------------------------------------

    def _finish(self, request: Request, response: Response) -> Response:
        """With the root link (HTTP-8), CORS and `Vary`; the service's own response stays as it is."""
        extras = self._extras.get(request.base)
        if extras is None:
            extras = self._learn(request.base)
        headers = [*response.headers, *extras[len(response.body) > encoding.SMALLEST]]
        if request.method == "OPTIONS":
            headers = [*response.headers, extras[0][0]]
        return Response(response.status, headers, response.body)

    def _learn(self, base: str) -> tuple[_Extras, _Extras]:
        if len(self._extras) >= 256:  # as many as `Bases` remembers
            self._extras.clear()
        small = (("link", f"<{base}>;rel=xregistry-root"), *cross_origin.ANY_ORIGIN)
        extras = self._extras[base] = (small, (*small, encoding.VARY))
        return extras

    def _coded(self, request: Request, response: Response) -> Response:
        if len(response.body) <= encoding.SMALLEST:
            return response
        coding = encoding.choose(request.headers.get("accept-encoding") or "")
        return encoding.encode(response, coding) if coding else response

    # Our own paths ---------------------------------------------------------------------------------------------------

    def _health(self) -> Response:
        check = getattr(self._service, "health", None)
        wrong: str = check() if check is not None else ""
        body = {"status": "failing", "reason": wrong} if wrong else {"status": "ok"}
        return Response(503 if wrong else 200, [JSON, ("cache-control", "no-store")], orjson.dumps(body))

    def _figures(self) -> Response:
        return Response(200, [_FIGURES, ("cache-control", "no-store")], self._metrics.text())
