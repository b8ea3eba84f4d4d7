"""Large answers: kept in files without a name until their clients have taken them, and counted.

Rule 1: a large answer is made whole before its first byte is sent, piece by piece into a file: an error on the way is
an ordinary error, and a client that reads slowly holds no snapshot of the store and no memory.
Rule 2: what all large answers hold together is bounded, as it is for bodies; beyond it the server says it is busy.
Rule 3: clients that ask for the same (the same entity tag in the same coding) share one file, and while it is made the
others wait for it: sixty exports cost as much as one.
Rule 4: what can only be made in memory, an answer in an older dialect, is made by few at a time.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO

from signalbook.errors import RegistryError
from signalbook.server.http import Response

__all__ = ["LARGE", "PIECE", "AnswerFile", "AnswerLimits", "encoded"]

LARGE = 256 * 1024
"""Answers up to this size travel as they are, from memory."""

PIECE = 128 * 1024
"""How much of a large answer is read, coded or sent at a time."""


_MOST_IN_MEMORY = 2
_PATIENCE = 5.0


class AnswerFile:
    """One large answer in a file that nobody else can find; it is gone when its last holder has closed it."""

    def __init__(self, limits: AnswerLimits) -> None:
        self._limits = limits
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="signalbook-answer-", buffering=0)  # noqa: SIM115
        self._holders = 1
        self.size = 0

    def write(self, piece: bytes, path: str) -> None:
        """Append a piece; `server_busy` where there is no room for it."""
        self._limits.take(len(piece), path)
        self.size += len(piece)
        view = memoryview(piece)
        while view:
            view = view[self._file.write(view) :]

    def read(self, start: int) -> bytes:
        """Return a piece from a place on; several threads may read."""
        piece = os.pread(self._file.fileno(), min(PIECE, self.size - start), start)
        if not piece and start < self.size:
            raise OSError("a large answer is shorter than it was when it was made")
        return piece

    def pieces(self) -> Iterator[bytes]:
        """Yield the whole, piece by piece."""
        start = 0
        while start < self.size:
            piece = self.read(start)
            start += len(piece)
            yield piece

    def hold(self) -> bool:
        """Take it once more; return whether it is still there."""
        with self._limits.lock:
            if self._holders:
                self._holders += 1
                return True
        return False

    def close(self) -> None:
        """Let it go; the last to do so gives its room back."""
        with self._limits.lock:
            self._holders -= 1
            if self._holders:
                return
        self._file.close()
        self._limits.release(self)

    def __del__(self) -> None:
        if self._holders > 0:  # the request that held it has ended without an answer
            self._holders = 1
            self.close()


class _Turn:
    """Whose turn it is to make an answer, how many want it, and the one that was made if it is small."""

    __slots__ = ("lock", "small", "wanted")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.wanted = 0
        self.small: Response | None = None


class AnswerLimits:
    """The large answers of one process: how many bytes they hold, and which can be shared."""

    def __init__(self, *, held: int = 1024 * 1024 * 1024) -> None:
        self._most = held
        self._held = 0
        # Entered again where the garbage collector closes a spool in the middle of a call.
        self.lock = threading.RLock()
        self._shared: dict[str, Response] = {}
        self._turns: dict[str, _Turn] = {}
        self._in_memory = threading.BoundedSemaphore(_MOST_IN_MEMORY)

    @property
    def held(self) -> int:
        """How many bytes all large answers have in files."""
        return self._held

    def take(self, size: int, path: str) -> None:
        """Take room for some bytes."""
        with self.lock:
            if self._held + size > self._most:
                raise RegistryError("server_busy", path)
            self._held += size

    def release(self, spool: AnswerFile) -> None:
        """Give the room of a spool back, which is closed."""
        with self.lock:
            self._held -= spool.size
            for key in [key for key, kept in self._shared.items() if kept.spool is spool]:
                del self._shared[key]

    def collect(self, pieces: Iterable[bytes], path: str) -> tuple[bytes, AnswerFile | None]:
        """Return these pieces as one body where they are small together, else in a spool."""
        small: list[bytes] = []
        size = 0
        spool: AnswerFile | None = None
        try:
            for piece in pieces:
                if spool is None:
                    small.append(piece)
                    size += len(piece)
                    if size > LARGE:
                        spool = AnswerFile(self)
                        spool.write(b"".join(small), path)
                        small.clear()
                else:
                    spool.write(piece, path)
        except BaseException:
            if spool is not None:
                spool.close()
            raise
        return b"".join(small), spool

    def kept(self, response: Response, path: str) -> Response:
        """Return the same response, with a body that is large in a spool."""
        if response.spool is not None or len(response.body) <= LARGE:
            return response
        body, spool = self.collect([response.body], path)
        return replace(response, body=body, spool=spool)

    @contextmanager
    def in_memory(self, path: str) -> Iterator[None]:
        """Make an answer that is in memory as a whole meanwhile; `server_busy` where others are long at it."""
        if not self._in_memory.acquire(timeout=_PATIENCE):
            raise RegistryError("server_busy", path)
        try:
            yield
        finally:
            self._in_memory.release()

    def shared(self, key: str, make: Callable[[], Response]) -> Response:
        """Return the answer that somebody is being sent under this key, or the one that `make` gives."""
        with self.lock:
            turn = self._turns.setdefault(key, _Turn())
            turn.wanted += 1
        try:
            with turn.lock:
                kept = self._shared.get(key)
                if kept is not None and kept.spool is not None and kept.spool.hold():
                    return replace(kept)
                if turn.small is not None:
                    return replace(turn.small)
                made = make()
                if made.spool is None:
                    turn.small = made
                else:
                    with self.lock:
                        self._shared[key] = made
                return made
        finally:
            with self.lock:
                turn.wanted -= 1
                if not turn.wanted:
                    del self._turns[key]


def encoded(pieces: Iterable[str]) -> Iterator[bytes]:
    """Yield a text's pieces as bytes, of which each is worth a write."""
    waiting: list[str] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= PIECE // 2:
            yield "".join(waiting).encode()
            waiting.clear()
            size = 0
    yield "".join(waiting).encode()
