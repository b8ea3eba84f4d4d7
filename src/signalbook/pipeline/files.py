"""Files: a `Folder` on this machine, on a shared mount or in an object store, and a `Lease` on a name in one.

Rule 1: a path is a plain path or a URI (s3, gs, abfss, file); everything below a folder is named relative to it.
Rule 2: `write` is all or nothing: a reader sees the whole content or no file. On a local disk it is also synced.
Rule 3: `claim` succeeds for one of several who try it, as far as the file system can say so.
Rule 4: a lease shows other processes that its holder is alive. On a local or shared file system it is a lock, which
ends with the process. An object store has no locks: there the holder writes the file of the lease again and again, and
a lease counts as held for a quarter of an hour after that, or as long as the taker says, unless it was given back.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signalbook.errors import SignalbookError

if TYPE_CHECKING:
    from pyarrow import fs

__all__ = [
    "FileEntry",
    "Folder",
    "Lease",
    "PipelineError",
    "is_leased",
    "is_uri",
    "real_folder",
    "real_place",
    "take_lease",
]


class PipelineError(SignalbookError):
    """A landing that cannot begin or go on, in one sentence with the likely remedy."""


def is_uri(path: str) -> bool:
    """Whether a path names its file system."""
    return "://" in path


def real_folder(path: str) -> str:
    """A folder by the one name that it has without links; a URI as it is."""
    return path if is_uri(path) else os.path.realpath(path)


def real_place(path: str) -> str:
    """A file or a folder without links on the way to it; a file that is a link keeps its name, which says its kind."""
    if is_uri(path) or Path(path).is_dir():
        return real_folder(path)
    above, _, name = path.rpartition("/")
    return f"{real_folder(above or '/').rstrip('/')}/{name}"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file that a listing found: its path below the folder, its size, and when it was changed, in nanoseconds."""

    path: str
    size: int
    changed: int


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder on a disk or in an object store; a worker gets it as the text that names it."""

    uri: str

    @classmethod
    def at(cls, path: str | Path) -> Folder:
        """The folder of that name; a local one by its absolute path."""
        text = str(path)
        if text.startswith("file://"):
            text = text.removeprefix("file://")
        return cls(text.rstrip("/") if is_uri(text) else os.path.abspath(text))  # noqa: PTH100  # keeps links as they are

    @property
    def is_local(self) -> bool:
        """Whether the folder is reached through this machine's file system."""
        return not is_uri(self.uri)

    def below(self, path: str) -> Folder:
        """A folder in this one."""
        return Folder(self.place(path))

    def place(self, path: str) -> str:
        """The full name of what has this path here."""
        return f"{self.uri}/{path}" if path else self.uri

    def files(self, *, recursive: bool = False) -> Iterator[FileEntry]:
        """The files here, in the order of their paths; none where there is no such folder."""
        root, found = self._list(recursive)
        for info in sorted(found, key=lambda info: info.path):
            if info.is_file:
                yield FileEntry(info.path[len(root) :].lstrip("/"), info.size, info.mtime_ns or 0)

    def folders(self) -> list[str]:
        """The names of the folders directly in this one."""
        _, found = self._list(recursive=False)
        return sorted(info.base_name for info in found if info.type.name == "Directory")

    def stat(self, path: str = "") -> FileEntry | None:
        """The file of that path, or None."""
        system, root = self._file_system()
        info = system.get_file_info(_join(root, path))
        return FileEntry(path, info.size, info.mtime_ns or 0) if info.is_file else None

    def is_folder(self) -> bool:
        """Whether there is such a folder."""
        system, root = self._file_system()
        with self._reached():
            return bool(system.get_file_info(root).type.name == "Directory")

    def make(self) -> None:
        """Create the folder, and those above it."""
        system, root = self._file_system()
        with self._reached():
            system.create_dir(root, recursive=True)

    def read(self, path: str) -> bytes | None:
        """The content of a file, or None where there is none."""
        try:
            with self.open(path) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def open(self, path: str) -> Any:
        """A file to read from, with random access."""
        system, root = self._file_system()
        return system.open_input_file(_join(root, path))

    def create(self, path: str) -> Any:
        """A file to write to; its folder is made where it is missing."""
        system, root = self._file_system()
        place = _join(root, path)
        if self.is_local:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
        return system.open_output_stream(place)

    def write(self, path: str, content: bytes) -> None:
        """Put a whole file there, at once."""
        if not self.is_local:
            with self.create(path) as file:
                file.write(content)
            return
        target = Path(self.place(path))
        aside = _written_aside(target, content)
        aside.replace(target)
        sync_folder(target.parent)

    def claim(self, path: str, content: bytes) -> bool:
        """Put a whole file there unless there is one; whether it was put."""
        if not self.is_local:
            if self.stat(path) is not None:
                return False
            self.write(path, content)
            return True
        target = Path(self.place(path))
        aside = _written_aside(target, content)
        try:
            os.link(aside, target)
        except FileExistsError:
            return False
        finally:
            aside.unlink()
        sync_folder(target.parent)
        return True

    def delete(self, path: str) -> None:
        """Remove a file; it is not an error where there is none."""
        system, root = self._file_system()
        with contextlib.suppress(FileNotFoundError):
            system.delete_file(_join(root, path))

    def sync(self, path: str) -> None:
        """Wait until a file that was written is on a local disk; an object store has said so already."""
        if self.is_local:
            with Path(self.place(path)).open("rb") as file:
                os.fsync(file.fileno())

    def _list(self, recursive: bool) -> tuple[str, list[fs.FileInfo]]:
        """The path of this folder in its file system, and what is in it."""
        from pyarrow import fs

        system, root = self._file_system()
        return root, system.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=recursive))

    def _file_system(self) -> tuple[fs.FileSystem, str]:
        from pyarrow import fs  # here, because a spool has folders and is written without pyarrow

        if self.is_local:
            return fs.LocalFileSystem(), self.uri
        scheme, _, rest = self.uri.partition("://")
        bucket, slash, path = rest.partition("/")
        with self._reached():
            system, root = _store(f"{scheme}://{bucket}")
        return system, root.rstrip("/") + slash + path

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        """Raise `PipelineError` where an object store cannot be reached, or does not know the bucket or the user."""
        try:
            yield
        except (ValueError, OSError) as error:
            if self.is_local:
                raise
            raise PipelineError(f"'{self.uri}' cannot be reached: {error}") from None


@lru_cache(16)
def _store(uri: str) -> tuple[fs.FileSystem, str]:
    """The store that a bucket is in, and the bucket's name there; kept, because each has connections of its own."""
    from pyarrow import fs

    return fs.FileSystem.from_uri(uri)  # type: ignore[no-any-return]


def sync_folder(folder: Path) -> None:
    """Wait until the names in a local folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _written_aside(target: Path, content: bytes) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        # A full disk should not be filled further by what is of no use.
        aside.unlink(missing_ok=True)
        raise
    return aside


def _join(root: str, path: str) -> str:
    return f"{root}/{path}" if path else root


# Leases.


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
