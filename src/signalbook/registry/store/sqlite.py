"""The embedded database: SQLite in WAL mode through the standard library's driver.

Rule 1: one connection, one cursor, one thread at a time; the lock of a connection is only ever contended by `close`.
Rule 2: every statement is read to its end at once. A statement left half read would hold its snapshot, and the
write-ahead log could not be reset.
Rule 3: a store is opened in the process that uses it. SQLite's locks do not survive a fork, so `Store` refuses there.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from signalbook.budget import spend
from signalbook.errors import StoreError
from signalbook.registry.store.connection import A_STATEMENT, LATEST, ResultRow, StoreBusy, migrate

__all__ = [
    "SqliteDatabase",
    "SqliteSession",
    "WriterQueue",
    "backup",
    "make_folder",
    "open_file",
    "open_memory",
    "remove_folder",
    "restore",
    "write_copy",
]

# The folder of a store in memory: made, claimed as long as its process lives, removed; and swept if that was killed.
#
# Rule: a folder belongs to the process that holds a lock on it. The kernel frees the lock of a killed process, so a
# folder that is not new and that nobody holds is removed by the next store in memory.


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


# Who may read a store: whoever made it, and no one else; what the operator has made of its mode stays.
#
# SQLite gives the files beside a database (-wal, -shm, -journal) the mode that the database has.


_OWN = 0o600


def _make(path: str | Path, like: Path | None = None) -> None:
    """Make an empty file unless it is there; others may do with it what they may do with the one it is like.

    A file that is there is not opened: to close it would give up the locks that this process has on it.
    """
    place = os.path.realpath(path)  # whatever a link leads to is made, as SQLite would
    try:
        file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWN)
    except OSError:  # there already, or not to be made, which is said by whoever opens it
        return
    try:
        with suppress(OSError):
            if like is not None and like.exists():
                os.fchmod(file, like.stat().st_mode & 0o666)
    finally:
        os.close(file)


# The queue for the write lock, between processes that share a file.
#
# SQLite's lock has no queue: who finds it taken sleeps and tries again, and a process that writes group after group
# takes it back before any sleeper looks (measured: 0.6 s for one write in a hundred, 2 s at worst).
# Rule: to try for the write lock a process must hold a lock on a file of its own, and lets go of that as soon as it has
# the write lock. So the one who writes waits behind the one who waits. The kernel frees both locks when a process dies.


# A group holds the write lock for a millisecond or two; one that holds it for longer is looked at less often.
_PAUSE, _LONG_PAUSE, _SHORT_WAIT = 0.0001, 0.005, 0.05


class WriterQueue:
    """The lock beside the database at `path`; `seconds` is how long a writer waits before it gives up."""

    __slots__ = ("_file", "_path", "_seconds")

    def __init__(self, path: str, seconds: float) -> None:
        self._path = path
        self._seconds = seconds
        try:
            _make(f"{path}-turn", Path(path))
            self._file = os.open(f"{path}-turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWN)
        except OSError as error:
            raise StoreError(f"'{path}-turn' cannot be opened: {error}") from error

    def enter(self, take_lock: Callable[[], bool]) -> None:
        """Return once `take_lock` says it has the write lock; `StoreBusy` when that takes too long."""
        self._until(self._take_place)
        try:
            self._until(take_lock)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give the file back; it stays where it is, for another process may be waiting at it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _take_place(self) -> bool:
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


# Copies of an SQLite store: made while it is written, checked, and put back.
#
# Rule: a copy appears under its name only when it is complete and has passed SQLite's own integrity check.


def backup(store: Path, path: Path, *, force: bool = False) -> None:
    """Copy the store in a file as it is at one moment; with `force` over an earlier copy, never over a store in use."""
    if force and path.exists():
        if _log_of(path).exists():
            raise StoreError(f"'{path}' is a store in use, not an earlier copy: choose another name")
    elif path.exists():
        raise StoreError(f"'{path}' exists: choose another name, or remove it first")
    with closing(_reading(store)) as source:
        _fill(source.backup, path)


def write_copy(copy_to: Callable[[sqlite3.Connection], None], path: Path) -> None:
    """Let `copy_to` fill a new database, check it, and name it `path`, which must not exist yet."""
    if path.exists():
        raise StoreError(f"{path} exists: choose another name, or remove it first")
    _fill(copy_to, path)


def _fill(copy_to: Callable[[sqlite3.Connection], None], path: Path) -> None:
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        _make(partial, path)
        with closing(sqlite3.connect(partial, isolation_level=None)) as target:
            copy_to(target)
            target.execute("PRAGMA journal_mode = DELETE")  # the copy is one file, with no log beside it
            _check(target, str(path))
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"the copy to '{path}' failed: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def restore(path: Path, into: Path, *, force: bool = False) -> None:
    """Make the store at `into` what the backup at `path` holds; with `force` even if there is one already."""
    log = _log_of(into)
    if not path.is_file():
        raise StoreError(f"there is no backup '{path}'")
    if (into.exists() or log.exists()) and not force:
        raise StoreError(f"{into} exists, and a restore replaces all it holds: choose another name, or force it")
    with closing(_reading(path)) as source:
        _check_backup(source, str(path))
        if into.exists():
            _replace_in_place(source, into)
        else:
            log.unlink(missing_ok=True)  # the log of a store that is gone must not be played into this one
            write_copy(source.backup, into)


def _reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _check_backup(source: sqlite3.Connection, path: str) -> None:
    try:
        _check(source, path)
        (version,) = source.execute("SELECT version FROM schema_version").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"'{path}' is not a backup of a Signalbook store: {error}") from error
    if version > LATEST:
        raise StoreError(f"'{path}' has schema version {version}, and this Signalbook knows versions up to {LATEST}")


def _replace_in_place(source: sqlite3.Connection, path: Path) -> None:
    """One transaction on the existing store, so that processes that have it open see the old state or the new."""
    newest = "SELECT COALESCE(MAX(seq), 0) FROM changes"
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as target:
            _check_store(target, path)
            (before,) = target.execute(newest).fetchone()
            source.backup(target)
            # Numbers of changes that the restore undid are not given out again: a client may have seen them. It is
            # itself a change, one without events.
            (after,) = target.execute(newest).fetchone()
            if before > after:
                row = (before + 1, datetime.now(UTC).isoformat()[:-6] + "Z", secrets.token_hex(8), "[]")
                target.execute("INSERT INTO changes (seq, at, correlation, events) VALUES (?, ?, ?, ?)", row)
            _check(target, str(path))
    except sqlite3.Error as error:
        remedy = "remove it, with its -wal and -shm files, and restore again"
        raise StoreError(f"'{path}' cannot be replaced ({error}): {remedy}") from error


def _check_store(database: sqlite3.Connection, path: Path) -> None:
    """Refuse to replace what somebody else keeps there."""
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    if tables and not tables >= _TABLES:
        shown = ", ".join(sorted(tables)[:5])
        raise StoreError(f"'{path}' is not a Signalbook store (it holds {shown}); choose another name, or remove it")


# Those that stores of every version have.
_TABLES = frozenset({"schema_version", "entities", "changes", "settings"})


def _check(database: sqlite3.Connection, place: str) -> None:
    findings = [row[0] for row in database.execute("PRAGMA integrity_check(3)")]
    if findings != ["ok"]:
        raise StoreError(f"{place} is damaged: {'; '.join(findings)}")


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

    __slots__ = ("__weakref__", "_cursor", "_db", "_lock", "_owner", "_place", "_queue")

    def __init__(self, path: str, synchronous: str) -> None:
        self._place = path
        self._owner = 0  # until there is something to close
        self._lock = threading.Lock()
        self._queue: WriterQueue | None = None
        _make(path)
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

    def execute(self, sql: str, params: Sequence[Any] = (), /) -> list[ResultRow]:
        """All rows of one statement."""
        rows = self._run(sql, params)
        spend(A_STATEMENT + len(rows))
        return rows

    def one(self, sql: str, params: Sequence[Any] = (), /) -> ResultRow | None:
        """The first row of one statement, or None."""
        try:
            with self._lock:
                rows = self._cursor.execute(sql, params).fetchall()
        except sqlite3.Error as error:
            raise _failure(error, self._place) from error
        spend(A_STATEMENT + len(rows))
        return rows[0] if rows else None

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> None:
        """One statement run for each row of parameters."""
        spend(A_STATEMENT * len(rows))
        try:
            with self._lock:
                self._cursor.executemany(sql, rows)
        except sqlite3.Error as error:
            raise _failure(error, self._place) from error

    def _run(self, sql: str, params: Sequence[Any] = ()) -> list[ResultRow]:
        """The rows of a statement that nobody's budget pays for: what ends a transaction always may."""
        try:
            with self._lock:
                return self._cursor.execute(sql, params).fetchall()
        except sqlite3.Error as error:
            raise _failure(error, self._place) from error

    def begin_read(self) -> None:
        """Begin a snapshot: it is taken by the first statement."""
        self._run("BEGIN")

    def begin_write(self) -> None:
        """Take the file's write lock, after the processes that asked for it before."""
        if self._queue is None:
            self._queue = WriterQueue(self._place, BUSY_SECONDS)
            self._run("PRAGMA busy_timeout = 0")
        self._queue.enter(self._take_lock)

    def commit(self) -> None:
        """With `synchronous = FULL` the log is on the disk when this returns."""
        self._run("COMMIT")

    def rollback(self) -> None:
        """Undo the transaction, unless SQLite has done so itself."""
        if self._db.in_transaction:
            self._run("ROLLBACK")

    def savepoint(self) -> None:
        """Begin a part that can be undone alone."""
        self._run("SAVEPOINT job")

    def check_transaction(self) -> None:
        """Some errors, a full disk among them, end the whole transaction."""
        if not self._db.in_transaction:
            raise StoreError(f"{self._place}: a statement failed, and SQLite has undone the transaction")

    def release(self) -> None:
        """Keep that part."""
        self._run("RELEASE job")

    def undo(self) -> None:
        """Undo that part."""
        self._run("ROLLBACK TO job")
        self._run("RELEASE job")

    def close(self) -> None:
        """Close once the statement under way has ended."""
        with self._lock:
            self._db.close()
            if self._queue is not None:
                self._queue.close()

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
