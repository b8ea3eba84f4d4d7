"""The folder of a store in memory: made, claimed as long as its process lives, removed; and swept if that was killed.

Rule: a folder belongs to the process that holds a lock on it. The kernel frees the lock of a killed process, so a
folder that is not new and that nobody holds is removed by the next store in memory.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["make_folder", "remove_folder"]

_PREFIX = "signalbook-"
_IN_MEMORY = Path("/dev/shm")

# Seconds a folder is left alone: between its making and its lock another process may look.
_NEW = 60.0


def make_folder() -> tuple[str, int]:
    """A new private folder, in memory where the machine has a place for that, and the lock that claims it."""
    parent = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    _sweep(parent)
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    claim = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return folder, claim


def remove_folder(folder: str, claim: int, owner: int) -> None:
    """Remove the folder, unless this is a forked child of the process that made it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(claim)


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another user's, or gone meanwhile
            if not folder.is_dir() or time.time() - folder.stat().st_mtime < _NEW:
                continue
            claim = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(claim)
