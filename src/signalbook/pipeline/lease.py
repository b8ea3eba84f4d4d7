"""`Lease`: that a process is alive, for others to see: a file that it holds locked.

Rule: on a local or shared file system the lock goes with the process, however it ends. In an object store there are no
locks; a lease is then as old as its file, which its holder writes anew while it lives, and counts as held for a quarter
of an hour, or as long as the taker says, unless it was given back.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.files import Folder

__all__ = ["Lease", "is_leased", "take_lease"]

_HELD_SECONDS = 900
# How often in that time its holder says that it lives.
_TIMES = 5


@dataclass(slots=True)
class Lease:
    """A lease that this process has."""

    folder: Folder
    path: str
    handle: int | None
    stop: Callable[[], None] = lambda: None

    def release(self) -> None:
        """Give it back."""
        if self.handle is None:
            self.stop()
            self.folder.delete(self.path)
        else:
            os.close(self.handle)
            self.handle = None


def take_lease(folder: Folder, path: str, held_seconds: float = _HELD_SECONDS) -> Lease | None:
    """The lease of that name, or None where another process has it; in an object store, for so long at most."""
    if not folder.is_local:
        if is_leased(folder, path, held_seconds):
            return None
        return Lease(folder, path, None, _kept_alive(folder, path, held_seconds / _TIMES))
    place = Path(folder.place(path))
    place.parent.mkdir(parents=True, exist_ok=True)
    handle = _locked(place)
    return None if handle is None else Lease(folder, path, handle)


def _kept_alive(folder: Folder, path: str, every_seconds: float) -> Callable[[], None]:
    """Write a lease into an object store, and again and again while this process lives; what ends that."""
    content = f"{socket.gethostname()} {os.getpid()}\n".encode()
    folder.write(path, content)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(every_seconds):
            # A store that does not answer now may do so the next time; there are some left.
            with contextlib.suppress(OSError, PipelineError):
                folder.write(path, content)

    renewing = threading.Thread(target=renew, name=f"lease {path}", daemon=True)
    renewing.start()

    def stop() -> None:
        ended.set()
        renewing.join()

    return stop


def is_leased(folder: Folder, path: str, held_seconds: float = _HELD_SECONDS) -> bool:
    """Whether a process that is alive has the lease."""
    if not folder.is_local:
        found = folder.stat(path)
        return found is not None and time.time() - found.changed / 1e9 < held_seconds
    place = Path(folder.place(path))
    if not place.exists():
        return False
    handle = _locked(place)
    if handle is None:
        return True
    os.close(handle)
    return False


def _locked(place: Path) -> int | None:
    import fcntl  # which Windows lacks, and nothing but a lake needs

    handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
