"""`Lease`: that a process is alive, for others to see: a file that it holds locked.

Rule: on a local or shared file system the lock goes with the process, however it ends. In an object store there are no
locks; a lease is then as old as its file, and counts as held for a day, or as long as the taker says, unless it was
given back.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from signalbook.pipeline.files import Folder

__all__ = ["Lease", "is_leased", "take_lease"]

_HELD_SECONDS = 24 * 3600


@dataclass(slots=True)
class Lease:
    """A lease that this process has."""

    folder: Folder
    path: str
    handle: int | None

    def release(self) -> None:
        """Give it back."""
        if self.handle is None:
            self.folder.delete(self.path)
        else:
            os.close(self.handle)
            self.handle = None


def take_lease(folder: Folder, path: str, held_seconds: float = _HELD_SECONDS) -> Lease | None:
    """The lease of that name, or None where another process has it; in an object store, for so long at most."""
    if not folder.is_local:
        if is_leased(folder, path, held_seconds):
            return None
        folder.write(path, f"{socket.gethostname()} {os.getpid()}\n".encode())
        return Lease(folder, path, None)
    place = Path(folder.place(path))
    place.parent.mkdir(parents=True, exist_ok=True)
    handle = _locked(place)
    return None if handle is None else Lease(folder, path, handle)


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
