"""`Spool`: a folder of files that messages are appended to before their broker is told that they arrived.

Rule 1: `append` returns once the messages are on disk; only then may they be acknowledged.
Rule 2: the file that is being written is hidden (`.NAME.open`); it gets its name when it is full or old enough, and
nobody reads it before. What a killed spooler left is given its name by the next one, without the line it had begun.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.files import Folder, sync_folder
from signalbook.pipeline.lease import take_lease
from signalbook.wire import Message

__all__ = ["Spool"]

_ENDING = ".jsonl"
_OPEN = ".open"


class Spool:
    """The writing end of a spool; one process has it at a time."""

    def __init__(self, path: str, *, roll_bytes: int = 64 << 20, roll_seconds: float = 10) -> None:
        self._folder = Path(Folder.at(path).uri)
        self._roll_bytes = roll_bytes
        self._roll_seconds = roll_seconds
        self._file: IO[bytes] | None = None
        self._name = ""
        self._opened = 0.0
        lease = take_lease(Folder(str(self._folder)), ".lease")
        if lease is None:
            raise PipelineError(f"another process writes to the spool '{path}'")
        self._lease = lease
        self._recover()

    def append(self, messages: Iterable[Message]) -> None:
        """Put messages into the spool; they are on disk when this returns."""
        lines = b"".join(message.to_bytes() + b"\n" for message in messages)
        if lines:
            file = self._file or self._open()
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        self.roll_if_due()

    def roll_if_due(self) -> None:
        """Give the file its name where it is full or old enough."""
        if self._file is not None:
            full = self._file.tell() >= self._roll_bytes
            if full or time.monotonic() - self._opened >= self._roll_seconds:
                self._roll()

    def close(self) -> None:
        """Give the file its name, and the spool to others."""
        self._roll()
        self._lease.release()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> IO[bytes]:
        self._name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}{_ENDING}"
        self._opened = time.monotonic()
        self._file = (self._folder / f".{self._name}{_OPEN}").open("wb")
        sync_folder(self._folder)
        return self._file

    def _roll(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._file = None
        self._named(self._folder / f".{self._name}{_OPEN}")

    def _recover(self) -> None:
        for left in sorted(self._folder.glob(f".*{_ENDING}{_OPEN}")):
            content = left.read_bytes()
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                # The line was not on disk in whole, so nobody was told that its message arrived.
                os.truncate(left, whole)
            if whole:
                self._named(left)
            else:
                left.unlink()

    def _named(self, file: Path) -> None:
        file.replace(file.with_name(file.name.removeprefix(".").removesuffix(_OPEN)))
        sync_folder(self._folder)
