"""An ASGI application that shows what it received.

`POST /seen` answers with the request as a message on paper, `POST /back` with its headers and body as a response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from signalbook.clients.http import asgi_to_paper, to_asgi
from signalbook.protocols import Message

__all__ = ["app"]

# Headers of the connection, which an application does not repeat.
OWN = frozenset(("host", "content-length", "transfer-encoding", "connection", "accept", "accept-encoding"))


async def app(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Answer one request."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body", False)
    for event in to_asgi(_answer(asgi_to_paper(scope, body))):
        await send(event)


def _answer(request: Message) -> Message:
    if request.get("path") == "/seen":
        return Message("HTTP", {"status": 200}, request.to_bytes())
    headers = tuple((name, value) for name, value in request.get("headers") if name not in OWN)
    return Message("HTTP", {"status": 200, "headers": headers}, request.payload)
