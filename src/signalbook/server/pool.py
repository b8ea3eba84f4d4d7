"""The threads that answer what takes longer than a moment.

Rule 1: a thread is started when a job finds all others busy, up to the given number, and stays.
Rule 2: finished jobs wake the event loop once for all that finished meanwhile: when a group of writes commits
together, their threads finish together (measured: docs/decisions/0003-rsgi-and-raw-asgi.md).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["Pool"]

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
