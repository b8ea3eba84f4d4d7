"""What a caller of the store holds in its hands: a connection, and the errors it may raise.

Rule 1: SQL is one text for both databases, with `?` for every parameter and no other question mark.
Rule 2: a database driver's exception never leaves this package: it is a `StoreError` whose cause is the driver's.

    StoreError
    └── StoreBusy     another process held the write lock for too long; the same request may work later
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from signalbook.errors import StoreError

__all__ = ["Connection", "Database", "Job", "Row", "Session", "StoreBusy"]

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]


class StoreBusy(StoreError):
    """The write lock could not be had in time: nothing was written, and the same request may work later."""


class Connection(Protocol):
    """Runs statements; what they see and whether they last is decided by who handed the connection out."""

    def execute(self, sql: str, params: Sequence[Any] = (), /) -> list[Row]:
        """All rows of one statement; an empty list where it returns none."""

    def one(self, sql: str, params: Sequence[Any] = (), /) -> Row | None:
        """The first row of one statement, or None."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """One statement run for each row of parameters."""


Job: TypeAlias = Callable[[Connection], T]


class Session(Connection, Protocol):
    """A connection with its transaction in the hands of the store; `savepoint` guards one job of a group."""

    def begin_read(self) -> None:
        """Every statement until `commit` sees the same state."""

    def begin_write(self) -> None:
        """Take the write lock of the whole store; `StoreBusy` when that takes too long."""

    def commit(self) -> None:
        """Make the transaction last: on return it survives a power cut, unless the store is a temporary one."""

    def rollback(self) -> None:
        """Undo the transaction, if there still is one."""

    def savepoint(self) -> None:
        """Begin a part of the transaction that `undo` can take back alone."""

    def settle(self) -> None:
        """Refuse to go on if a statement failed in a way that leaves nothing to commit, and the job kept silent."""

    def release(self) -> None:
        """Keep the part begun by `savepoint`."""

    def undo(self) -> None:
        """Take back the part begun by `savepoint`, and only that."""

    def close(self) -> None:
        """Give the connection back; a statement another thread is running ends first."""


class Database(Protocol):
    """One place that holds a store: it opens sessions and copies itself."""

    url: str

    def session(self) -> Session:
        """A new connection of its own."""

    def backup(self, path: str) -> None:
        """Write a copy of the current state to `path`."""

    def close(self) -> None:
        """Give back whatever is not a session."""
