"""Whether anybody has committed to an SQLite file since: the header of its WAL index, read where it lies in memory.

Every commit, of this process or another, changes that header, and SQLite's own readers begin by comparing it with the
copy they remember (https://sqlite.org/walformat.html, section 2). To look at it costs no system call, while
`PRAGMA data_version` takes and gives back a file lock: a fifth of a whole point read.
"""

from __future__ import annotations

import mmap
import os

__all__ = ["WalIndex"]

_HEADER = 48  # bytes, and a second copy behind it: they differ while a commit is on its way


class WalIndex:
    """The WAL index beside a database that somebody keeps open as long as this object is used."""

    __slots__ = ("_map", "_path")

    def __init__(self, path: str) -> None:
        self._path = f"{path}-shm"
        self._map: mmap.mmap | None = None

    def state(self) -> bytes | None:
        """A name for the latest commit; None where it cannot be told just now."""
        if self._map is None and not self._open():
            return None
        assert self._map is not None
        both = self._map[: 2 * _HEADER]
        first = both[:_HEADER]
        return first if first == both[_HEADER:] else None

    def close(self) -> None:
        """Give the memory back."""
        if self._map is not None:
            self._map.close()
            self._map = None

    def _open(self) -> bool:
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            if os.fstat(file).st_size < 2 * _HEADER:
                return False
            self._map = mmap.mmap(file, 2 * _HEADER, prot=mmap.PROT_READ)
        finally:
            os.close(file)
        return True
