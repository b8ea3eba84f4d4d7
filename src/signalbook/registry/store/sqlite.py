"""The embedded database: SQLite in WAL mode through the standard library's driver.

Rule 1: one connection, one cursor, one thread at a time; the lock of a connection is only ever contended by `close`.
Rule 2: every statement is read to its end at once. A statement left half read would hold its snapshot, and the
write-ahead log could not be reset.
Rule 3: a store is opened in the process that uses it. SQLite's locks do not survive a fork, so `Store` refuses there.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from signalbook.errors import StoreError
from signalbook.registry.store.backup import write_copy
from signalbook.registry.store.connection import Row, StoreBusy
from signalbook.registry.store.migrate import migrate
from signalbook.registry.store.temporary import make_folder, remove_folder
from signalbook.registry.store.turns import Turnstile

__all__ = ["SqliteDatabase", "SqliteSession", "open_file", "open_memory"]

# Seconds a writer waits for another process before it gives up.
BUSY_SECONDS = 10.0

_SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA mmap_size = 2147418112",  # the most SQLite maps; a third off a point read, half off a listing
    "PRAGMA cache_size = -8000",  # kibibytes for each connection; with the file mapped, more gives nothing
    "PRAGMA temp_store = MEMORY",
    "PRAGMA journal_size_limit = 67108864",  # a log grown by one large load is cut back
    "PRAGMA wal_autocheckpoint = 8000",  # pages, 32 MiB; a checkpoint each 8 MiB costs a fifth of the grouped rate
)


class SqliteSession:
    """A connection to the file; `Session` says what its methods give."""

    __slots__ = ("__weakref__", "_cursor", "_db", "_lock", "_owner", "_place", "_turnstile")

    def __init__(self, path: str, synchronous: str) -> None:
        self._place = path
        self._owner = 0  # until there is something to close
        self._lock = threading.Lock()
        self._turnstile: Turnstile | None = None
        try:
            self._db = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=512
            )
        except sqlite3.Error as error:
            raise StoreError(
                f"{path} cannot be opened ({error}): is its folder there, and may it be written?"
            ) from error
        self._owner = os.getpid()
        self._cursor = self._db.cursor()
        try:
            for setting in (*_SETTINGS, f"PRAGMA synchronous = {synchronous}"):
                self._cursor.execute(setting).fetchall()
        except sqlite3.Error as error:
            self._db.close()
            raise _failure(error, path) from error

    def execute(self, sql: str, params: Sequence[Any] = (), /) -> list[Row]:
        """All rows of one statement."""
        try:
            with self._lock:
                return self._cursor.execute(sql, params).fetchall()
        except sqlite3.Error as error:
            raise _failure(error, self._place) from error

    def one(self, sql: str, params: Sequence[Any] = (), /) -> Row | None:
        """The first row of one statement, or None."""
        try:
            with self._lock:
                rows = self._cursor.execute(sql, params).fetchall()
        except sqlite3.Error as error:
            raise _failure(error, self._place) from error
        return rows[0] if rows else None

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """One statement run for each row of parameters."""
        try:
            with self._lock:
                self._cursor.executemany(sql, rows)
        except sqlite3.Error as error:
            raise _failure(error, self._place) from error

    def begin_read(self) -> None:
        """Begin a snapshot: it is taken by the first statement."""
        self.execute("BEGIN")

    def begin_write(self) -> None:
        """Take the file's write lock, in turn with the other processes."""
        if self._turnstile is None:
            self._turnstile = Turnstile(self._place, BUSY_SECONDS)
            self.execute("PRAGMA busy_timeout = 0")
        self._turnstile.enter(self._take_lock)

    def commit(self) -> None:
        """With `synchronous = FULL` the log is on the disk when this returns."""
        self.execute("COMMIT")

    def rollback(self) -> None:
        """Undo the transaction, unless SQLite has done so itself."""
        if self._db.in_transaction:
            self.execute("ROLLBACK")

    def savepoint(self) -> None:
        """Begin a part that can be undone alone."""
        self.execute("SAVEPOINT job")

    def settle(self) -> None:
        """Some errors, a full disk among them, end the whole transaction."""
        if not self._db.in_transaction:
            raise StoreError(f"{self._place}: a statement failed, and SQLite has undone the transaction")

    def release(self) -> None:
        """Keep that part."""
        self.execute("RELEASE job")

    def undo(self) -> None:
        """Undo that part."""
        self.execute("ROLLBACK TO job")
        self.execute("RELEASE job")

    def close(self) -> None:
        """Close once the statement under way has ended."""
        with self._lock:
            self._db.close()
            if self._turnstile is not None:
                self._turnstile.close()

    def copy_to(self, target: sqlite3.Connection) -> None:
        """Copy one snapshot of the whole database into `target`, while others go on writing."""
        try:
            with self._lock:
                self._db.backup(target)
        except sqlite3.Error as error:
            raise _failure(error, self._place) from error

    def _take_lock(self) -> bool:
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                return False
            raise _failure(error, self._place) from error
        return True

    def __del__(self) -> None:
        # The thread that owned this connection has ended; in a forked child it is still the parent's.
        if os.getpid() == self._owner:
            self.close()


class SqliteDatabase:
    """A file; with `folder` a temporary one that goes when the database is closed or the process ends."""

    def __init__(self, path: str, *, synchronous: str = "FULL", folder: tuple[str, int] | None = None) -> None:
        self.url = f"sqlite:{path}"
        self._path = path
        self._synchronous = synchronous
        self._remove = weakref.finalize(self, remove_folder, *folder, os.getpid()) if folder else None

    def session(self) -> SqliteSession:
        """A new connection with this store's settings."""
        return SqliteSession(self._path, self._synchronous)

    def backup(self, path: str) -> None:
        """Write a checked copy of the current state to `path`, which must not exist yet."""
        session = self.session()
        try:
            write_copy(session.copy_to, Path(path))
        finally:
            session.close()

    def close(self) -> None:
        """Remove a temporary database."""
        if self._remove is not None:
            self._remove()


def open_file(path: str) -> SqliteDatabase:
    """The database in the file at `path`, made if it is missing, with its schema up to date."""
    return _ready(SqliteDatabase(str(Path(path).absolute())), path)


def open_memory() -> SqliteDatabase:
    """A private database that goes with the process: a file in memory, so that threads share it like any other."""
    folder, claim = make_folder()
    return _ready(SqliteDatabase(f"{folder}/memory.db", synchronous="OFF", folder=(folder, claim)), "memory:")


def _ready(database: SqliteDatabase, place: str) -> SqliteDatabase:
    try:
        session = database.session()
        try:
            migrate(session, "sqlite", place)
        finally:
            session.close()
    except BaseException:
        database.close()
        raise
    return database


def _failure(error: sqlite3.Error, place: str) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(f"{place} is being written by another process ({error})")
    if code == sqlite3.SQLITE_NOTADB:
        return StoreError(f"{place} is not an SQLite database")
    return StoreError(f"{place}: {error}")
