"""A server in this process: the whole flow of a request behind httpx's own client, without a socket."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from signalbook import app
from signalbook.server.flow import AsgiApp
from signalbook.settings import Settings

__all__ = ["InProcess", "in_process"]


class InProcess(httpx.BaseTransport):
    """Sends the requests of an `httpx.Client` to an ASGI application, one after the other."""

    def __init__(self, application: AsgiApp) -> None:
        self.app = application
        self._runner = asyncio.Runner()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """One request, its answer read whole."""

        async def run() -> httpx.Response:
            answer = await httpx.ASGITransport(self.app).handle_async_request(
                httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
            )
            assert isinstance(answer.stream, httpx.AsyncByteStream)
            body = b"".join([part async for part in answer.stream])  # still compressed, where it is
            return httpx.Response(answer.status_code, headers=answer.headers, content=body)

        return self._runner.run(run())

    def close(self) -> None:
        """End the threads."""
        self.app.close()
        self._runner.close()


def in_process(application: AsgiApp | None = None, **settings: Any) -> httpx.Client:
    """A client of an application, or of a server with an empty catalog in memory, by some settings."""
    if application is None:
        application = AsgiApp(app.flow(Settings(**{"store": "memory:", "log": False, **settings})))
    return httpx.Client(base_url="http://registry.example:8080", transport=InProcess(application))
