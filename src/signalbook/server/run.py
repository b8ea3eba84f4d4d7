"""Starting and stopping a server process: granian, its workers, TLS, signals.

Rule 1: each worker process builds its own service from the settings; nothing is shared but the port, the store and the
figures. A worker that ends is started again, be it one or several.
Rule 2: the line that says "serving" is printed when a connection is accepted, not before.
Rule 3: SIGTERM and SIGINT stop accepting, finish what was begun, and end; an idle server ends at once. Where the first
process is killed, its workers die with it and leave the port and the store free.
"""

from __future__ import annotations

import asyncio
import contextlib
import encodings.idna  # noqa: F401  # a look-up of an address imports it; a fork in that moment would leave it locked
import logging
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

from granian._granian import RSGIHTTPProtocol, RSGIProtocolClosed
from granian.constants import HTTPModes, Interfaces, Loops, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.rsgi import Scope
from granian.server import Server

from signalbook import __version__
from signalbook.errors import SignalbookError, UsageError, one_line
from signalbook.server.access import access_by
from signalbook.server.answers import AnswerLimits
from signalbook.server.connections import ClientConnection, ClientLost, Connections, Pace, Places
from signalbook.server.flow import Bases, BodyLimits, Flow, half_a_body
from signalbook.server.http import LargeBody, Response, Service, Stream
from signalbook.server.metrics import CounterTable, RequestLog, shared_file
from signalbook.settings import Settings

__all__ = ["RsgiApp", "ServiceFactory", "flow_for", "serve"]

# The flow over RSGI, granian's own protocol (docs/decisions/0003-rsgi-and-raw-asgi.md).
#
# Rule 1: no more Python here than taking the head apart and handing the answer over.
# Rule 2: granian yields an empty chunk for the end of a body and one more for a body that broke off (src/rsgi/io.rs,
# `__anext__`); so a body of unknown length is whole only if exactly one empty chunk came last.
# Rule 3: granian waits for answers that were begun before it stops; so requests that wait are woken by the signal.


class RsgiApp:
    """A flow as an RSGI application; `connections` are those of its port, where they are looked after."""

    def __init__(self, flow: Flow, connections: Connections | None = None) -> None:
        self._flow = flow
        self._connections = connections

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._flow.start(loop)
        if self._connections is not None:
            self._connections.start()
        if threading.current_thread() is threading.main_thread():
            # The loop learns of signals through its wake-up descriptor and goes on doing so; see granian/_signals.py.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self._flow.hurry))
            # A stop that came before the loop ran waits until it does; see `run`.
            loop.call_soon(signal.pthread_sigmask, signal.SIG_UNBLOCK, {signal.SIGTERM})

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._connections is not None:
            self._connections.stop()
        self._flow.stop()

    async def __rsgi__(self, scope: Scope, protocol: RSGIHTTPProtocol) -> None:
        started = perf_counter()
        flow = self._flow
        method, path, query, headers = scope.method, scope.path, scope.query_string, scope.headers
        authority = headers.get("host") or scope.server
        step = flow.begin(method, path, query, headers, scope.scheme, authority)
        if isinstance(step, Response):
            response: Response | Stream = step
        else:
            step.client = scope.client
            response = await flow.answer(step, _RsgiBody(protocol, path))
        if isinstance(response, Stream):
            await _send(protocol, response, method)
        elif response.spool is not None:
            await self._send_spool(protocol, response, response.spool, method, scope.client)
        else:
            # For HEAD hyper sends the length and leaves the body out.
            protocol.response_bytes(response.status, response.headers, response.body)
        flow.done(method, path, query, response, started, scope.client)

    async def _send_spool(
        self, protocol: RSGIHTTPProtocol, response: Response, spool: LargeBody, method: str, client: str
    ) -> None:
        """Send a large answer no faster than its client takes it."""
        headers = [*response.headers, ("content-length", str(spool.size))]
        connection: ClientConnection | None = None
        try:
            if method == "HEAD":
                protocol.response_empty(response.status, headers)
                return
            connection = await self._flow.run(self._connections.find, client) if self._connections else None
            pace = Pace(connection)
            transport = protocol.response_stream(response.status, headers)
            for piece in spool.pieces():
                await transport.send_bytes(piece)
                await pace.sent(len(piece))
            await pace.sent(0, ahead=0)
        except (RSGIProtocolClosed, ClientLost):
            return  # the client has left, or was cut because it took nothing
        except BaseException:
            if connection is not None:
                connection.cut()  # half an answer must not look like a whole one
            raise
        finally:
            spool.close()


async def _send(protocol: RSGIHTTPProtocol, response: Stream, method: str) -> None:
    """Send a stream for as long as its client is there."""
    try:
        if method == "HEAD":
            protocol.response_empty(response.status, response.headers)
            return
        transport = protocol.response_stream(response.status, response.headers)
        sending = asyncio.ensure_future(_send_pieces(transport, response))
        leaving = asyncio.ensure_future(protocol.client_disconnect())
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
    finally:
        response.close()


async def _send_pieces(transport: Any, response: Stream) -> None:
    async with aclosing(response.pieces) as pieces:
        with suppress(RSGIProtocolClosed):  # the client has left
            async for piece in pieces:
                await transport.send_bytes(piece)


class _RsgiBody:
    """A request's body as granian gives it."""

    __slots__ = ("_path", "_protocol")

    def __init__(self, protocol: Any, path: str) -> None:
        self._protocol = protocol
        self._path = path

    async def whole(self) -> bytes:
        try:
            body: bytes = await self._protocol()
        except RSGIProtocolClosed:
            raise half_a_body(self._path) from None
        return body

    async def chunks(self) -> AsyncIterator[bytes]:
        empty = 0
        async for chunk in self._protocol:
            empty = 0 if chunk else empty + 1
            if chunk:
                yield chunk
        if empty != 1:
            raise half_a_body(self._path)

    async def left(self) -> None:
        await self._protocol.client_disconnect()


ServiceFactory = Callable[[Settings], Service]

_STOP_SECONDS = 30
_BACKLOG = 2048
# Open files besides connections: the store's, temporary ones, sinks.
_OTHER_FILES = 256


def flow_for(
    service: Service, settings: Settings, table: CounterTable | None = None, *, listening: bool = False
) -> Flow:
    """The way to a service that the settings describe, for `RsgiApp` or `AsgiApp`; `table` has the figures.

    Only where this server is `listening` itself it is known who reaches it.
    """
    private = listening and settings.is_private
    return Flow(
        service,
        access=access_by(settings),
        bases=Bases(settings.base_url, trust_proxy=settings.trust_proxy, hosts=settings.hosts if private else None),
        limits=BodyLimits(max_body=settings.max_body, timeout=settings.body_timeout),
        answers=AnswerLimits(held=settings.max_answers),
        places=Places(settings.max_waiting, trust_proxy=settings.trust_proxy),
        log=RequestLog(settings.log_format) if settings.log else None,
        table=table,
        max_steps=settings.max_steps,
        any_origin=not private,
    )


def serve(
    service_factory: ServiceFactory, settings: Settings, *, announce: Callable[[str], None] | None = None
) -> None:
    """Serve until a signal says stop; `service_factory` has to be a module's function, so that workers can find it."""
    settings = _with_free_port(settings)
    server = Server(
        target="signalbook",
        address=settings.host,
        port=settings.port,
        interface=Interfaces.RSGI,
        workers=settings.workers,
        loop=Loops.auto,
        http=HTTPModes.http1,  # one protocol to bound; HTTP/2 belongs to the proxy in front
        # hyper counts from when it waits for a head, so this is also how long a connection may be idle
        http1_settings=HTTP1Settings(
            header_read_timeout=max(1, round(settings.head_timeout * 1000)), max_buffer_size=64 * 1024
        ),
        websockets=False,
        backlog=_BACKLOG,
        backpressure=_most_connections(settings.max_connections),
        log_enabled=True,
        log_level=LogLevels.warning,
        ssl_cert=settings.cert,
        ssl_key=settings.key,
        ssl_protocol_min=SSLProtocols.tls12,
        respawn_failed_workers=True,  # one that ends again within seconds ends the server
        workers_kill_timeout=_STOP_SECONDS,
    )
    threading.Thread(target=_announce_when_accepting, args=(settings, announce or _say), daemon=True).start()
    # A worker begins with the handlers of this process, which only note a stop down: it would never learn of one.
    os.register_at_fork(after_in_child=_end_on_stop)
    lifeline = (*os.pipe(), os.getpid())
    figures = shared_file(settings.workers)
    server.serve(target_loader=partial(_load, service_factory, settings, lifeline, figures), wrap_loader=False)


def _most_connections(wanted: int) -> int:
    """How many connections a worker may hold: those wanted, or as many as this process may have open files."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            soft = allowed
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    most = max(soft - _OTHER_FILES, soft // 2, 1)
    sys.stderr.write(
        f"signalbook: a worker may have {soft} open files, so it takes {most} connections and not {wanted}; "
        "raise the limit (ulimit -n), or lower --max-connections\n"
    )
    sys.stderr.flush()
    return most


def _load(service_factory: ServiceFactory, settings: Settings, lifeline: tuple[int, int, int], figures: int) -> Any:
    """In a worker: the application; a failure that was meant for the operator is said in one line."""
    threading.Thread(target=_die_with_parent, args=lifeline, daemon=True).start()
    _log_to_stderr()
    table = CounterTable(figures)
    if table.is_heir and settings.store.startswith("memory:"):
        sys.stderr.write("signalbook: the worker has ended, and its store in memory with it; the new one is empty\n")
        sys.stderr.flush()
    try:
        connections = Connections(settings.port, timeout=settings.answer_timeout, most=settings.max_client_connections)
        made = RsgiApp(flow_for(service_factory(settings), settings, table, listening=True), connections)
        # A loop that does not run yet would miss a stop, and the server wait for this worker; `RsgiApp` lets it in.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        return made
    except SignalbookError as error:
        sys.stderr.write(f"signalbook: {one_line(str(error))}\n")
        sys.stderr.flush()
        os._exit(1)


def _end_on_stop() -> None:
    """Until granian takes over in a worker, a stop finds nothing begun."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


def _die_with_parent(reading: int, writing: int, parent: int) -> None:
    """End this worker when the first process is gone: the pipe that only it keeps open for writing then ends.

    `parent` comes from the first process itself, which may be gone before a worker could ask who its parent is.
    """
    with contextlib.suppress(OSError):  # a worker that was not forked has no such pipe and asks from time to time
        os.close(writing)
        os.read(reading, 1)
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


class _LineFormatter(logging.Formatter):
    """An entry is one line, and each line of a traceback is indented: no text from outside looks like an entry."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return one_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return "\n".join(f"  {one_line(line)}" for line in super().formatException(ei).splitlines())


def _log_to_stderr() -> None:
    for name in ("signalbook.requests", "signalbook"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            handler = logging.StreamHandler()
            words = "%(message)s" if name == "signalbook.requests" else "%(asctime)s %(levelname)s %(name)s %(message)s"
            handler.setFormatter(logging.Formatter(words) if name == "signalbook.requests" else _LineFormatter(words))
            logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel(logging.INFO)


def _with_free_port(settings: Settings) -> Settings:
    """The settings with a port that nobody serves; workers share theirs, so a port in use would go unnoticed."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((settings.host.strip("[]"), settings.port))
            port: int = probe.getsockname()[1]
    except OSError as error:
        why = error.strerror or str(error)
        where = f"{settings.host} port {settings.port}"
        raise UsageError(f"cannot listen at {where}: {why}; choose another --host or --port") from error
    return replace(settings, port=port)


def _announce_when_accepting(settings: Settings, announce: Callable[[str], None]) -> None:
    about = f"store {_shown(settings.store)}, specversion {settings.specversion}"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host.strip("[]"))
    while not _answers(host, settings):
        time.sleep(0.01)
    announce(f"signalbook {__version__} serving {settings.address} ({about})")


def _answers(host: str, settings: Settings) -> bool:
    """Whether a worker answers; the socket takes connections before any does."""
    try:
        with socket.create_connection((host, settings.port), timeout=5) as plain:
            if settings.cert is None:
                return _asks(plain)
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it is ourselves
            with context.wrap_socket(plain) as secure:
                return _asks(secure)
    except OSError:
        return False


def _asks(connection: socket.socket) -> bool:
    connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    return connection.recv(16).startswith(b"HTTP/1.1 ")


def _say(line: str) -> None:
    print(one_line(line), flush=True)


def _shown(store: str) -> str:
    """The store without a password, which the query of an address may hold, too."""
    if "://" not in store:
        return store
    scheme, _, rest = store.partition("://")
    place, mark, _ = rest.partition("?")
    _, at, host = place.rpartition("@")
    return f"{scheme}://{'…@' if at else ''}{host}{'?…' if mark else ''}"
