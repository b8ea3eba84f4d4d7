"""The flow over ASGI, for embedding in another server and for tests without a socket.

Rule: raw ASGI 3.0, `http` and `lifespan`; no framework.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any

from signalbook.server.flow import Flow, half_a_body
from signalbook.server.http import Response, Stream, joined

__all__ = ["AsgiApp"]

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
        headers = joined((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        host, port = scope.get("server") or ("localhost", None)
        authority = headers.get("host") or (f"{host}:{port}" if port else host)
        step = flow.begin(method, path, query, headers, scope.get("scheme", "http"), authority)
        response = step if isinstance(step, Response) else await flow.answer(step, _Body(receive, path))
        names = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
        if isinstance(response, Response) and response.status not in (204, 304):
            names.append((b"content-length", str(len(response.body)).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": names})
        if isinstance(response, Stream) and method != "HEAD":
            async for piece in response.pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else response.body})
        client = scope.get("client")
        flow.done(method, path, query, response, started, f"{client[0]}:{client[1]}" if client else "-")


class _Body:
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
