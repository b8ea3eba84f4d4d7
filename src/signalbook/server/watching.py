"""Waiting for the next change without holding a thread.

Rule: one look at the store every few hundredths of a second, however many wait, and none while nobody does; so changes
of other processes are seen as soon as one's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from signalbook.server.http import Patience

__all__ = ["Watch"]

PAUSE = 0.04


class Watch:
    """Wakes who waits for a change; `sequence` gives the number of the latest."""

    def __init__(self, sequence: Callable[[], int]) -> None:
        self._sequence = sequence
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._looking: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    async def beyond(self, seq: int, seconds: float, patience: Patience) -> bool:
        """Wait until there is a change behind number `seq`, and tell whether there is one."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = seq
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(patience))
        try:
            await asyncio.wait({future}, timeout=seconds)
        finally:
            self._waiting.pop(future, None)
        return future.done() and not patience.closing.is_set()

    async def _look(self, patience: Patience) -> None:
        while self._waiting:
            latest = await patience.run(lambda _: self._sequence(), None)
            for future, seq in list(self._waiting.items()):
                if not future.done() and (latest > seq or patience.closing.is_set()):
                    future.set_result(None)
            await asyncio.sleep(PAUSE)
