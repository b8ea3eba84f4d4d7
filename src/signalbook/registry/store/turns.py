"""Whose turn it is to write, between processes that share a file.

SQLite's lock knows no queue: who finds it taken sleeps and tries again, and a process that writes group after group
takes it back before any sleeper looks (measured: 0.6 s for one write in a hundred, 2 s at worst).
Rule: to reach for the write lock a process must hold the turnstile, a lock on a file of its own, and lets go of it as
soon as it has the write lock. So the one who writes waits behind the one who waits. The kernel frees both locks when a
process dies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from time import monotonic, sleep

from signalbook.errors import StoreError
from signalbook.registry.store.connection import StoreBusy

__all__ = ["Turnstile"]

# A group holds the write lock for a millisecond or two; one that holds it for longer is looked at less often.
_PAUSE, _LONG_PAUSE, _SHORT_WAIT = 0.0001, 0.005, 0.05


class Turnstile:
    """The turnstile beside the database at `path`; `seconds` is how long a writer waits before it gives up."""

    __slots__ = ("_file", "_path", "_seconds")

    def __init__(self, path: str, seconds: float) -> None:
        self._path = path
        self._seconds = seconds
        try:
            self._file = os.open(f"{path}-turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"'{path}-turn' cannot be opened: {error}") from error

    def enter(self, take_lock: Callable[[], bool]) -> None:
        """Return once `take_lock` says it has the write lock; `StoreBusy` when that takes too long."""
        self._until(self._turn)
        try:
            self._until(take_lock)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give the file back; it stays where it is, for another process may be waiting at it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _turn(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _until(self, attempt: Callable[[], bool]) -> None:
        if attempt():
            return
        started = monotonic()
        while not attempt():
            waited = monotonic() - started
            if waited > self._seconds:
                raise StoreBusy(f"{self._path} has been locked by another writer for {waited:.0f} seconds")
            sleep(_PAUSE if waited < _SHORT_WAIT else _LONG_PAUSE)
