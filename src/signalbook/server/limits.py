"""How much and how long: the size of a body, the time it may take, and what all waiting bodies may hold together.

Rule 1: a body that announces too much is refused before it is read; one that does not announce is cut at the limit.
Rule 2: a body may take `timeout` seconds and one more for every 16 KiB that did arrive, so neither a client that
stalls nor one that drips holds a place for long.
Rule 3: what all bodies being read and answered hold together is bounded; beyond it the server says it is busy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from signalbook.errors import RegistryError

__all__ = ["BodySource", "Limits", "half_a_body"]

_RATE = 16 * 1024
_SMALL = 64 * 1024


class BodySource(Protocol):
    """Where a protocol gets a request's body from; both ways raise `half_a_body` if the client goes away."""

    async def whole(self) -> bytes:
        """All of it at once."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Piece by piece."""
        ...


def half_a_body(path: str) -> RegistryError:
    """The error for a body that ends before its end."""
    return RegistryError("bad_request", path, error_detail="the request ended in the middle of its body")


class Limits:
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
