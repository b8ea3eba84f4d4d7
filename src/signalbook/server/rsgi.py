"""The flow over RSGI, granian's own protocol (docs/decisions/0003-rsgi-and-raw-asgi.md).

Rule 1: no more Python here than taking the head apart and handing the answer over.
Rule 2: granian yields an empty chunk for the end of a body and one more for a body that broke off (src/rsgi/io.rs,
`__anext__`); so a body of unknown length is whole only if exactly one empty chunk came last.
Rule 3: granian waits for answers that were begun before it stops; so who waits for something is told of the signal.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from time import perf_counter
from typing import Any

from granian._granian import RSGIHTTPProtocol, RSGIProtocolClosed
from granian.rsgi import Scope

from signalbook.server.flow import Flow
from signalbook.server.http import Response, Stream
from signalbook.server.limits import half_a_body

__all__ = ["RsgiApp"]


class RsgiApp:
    """A flow as an RSGI application."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._flow.start(loop)
        if threading.current_thread() is threading.main_thread():
            # The loop learns of signals through its wake-up descriptor and goes on doing so; see granian/_signals.py.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self._flow.hurry))
            # A stop that came before the loop ran waits until it does; see `run`.
            loop.call_soon(signal.pthread_sigmask, signal.SIG_UNBLOCK, {signal.SIGTERM})

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._flow.stop()

    async def __rsgi__(self, scope: Scope, protocol: RSGIHTTPProtocol) -> None:
        started = perf_counter()
        flow = self._flow
        method, path, query, headers = scope.method, scope.path, scope.query_string, scope.headers
        authority = headers.get("host") or scope.server
        step = flow.begin(method, path, query, headers, scope.scheme, authority)
        response = step if isinstance(step, Response) else await flow.answer(step, _Body(protocol, path))
        if isinstance(response, Stream):
            await _send(protocol, response, method)
            flow.done(method, path, query, response, started, scope.client)
            return
        # For HEAD hyper sends the length and leaves the body out.
        protocol.response_bytes(response.status, response.headers, response.body)
        flow.done(method, path, query, response, started, scope.client)


async def _send(protocol: RSGIHTTPProtocol, response: Stream, method: str) -> None:
    if method == "HEAD":
        protocol.response_empty(response.status, response.headers)
        return
    transport = protocol.response_stream(response.status, response.headers)
    async with aclosing(response.pieces) as pieces:
        with suppress(RSGIProtocolClosed):  # the client has left
            async for piece in pieces:
                await transport.send_bytes(piece)


class _Body:
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
