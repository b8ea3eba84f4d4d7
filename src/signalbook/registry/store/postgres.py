"""The server database: PostgreSQL through psycopg 3, an optional dependency.

Rule 1: writers of all processes are serialised by one advisory lock, taken at the start of a transaction and freed by
the server at its end. So a job may read, decide and write as it does on SQLite.
Rule 2: a connection that was lost is replaced. What was under way on it fails; a single read is asked again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from signalbook.budget import spend
from signalbook.errors import StoreError, UsageError
from signalbook.registry.store.connection import A_STATEMENT, ResultRow, StoreBusy, migrate

try:
    import psycopg
except ImportError as error:
    raise UsageError("PostgreSQL needs one more package: pip install 'signalbook[postgres]'") from error

__all__ = ["PostgresDatabase", "PostgresSession", "open_server"]

T = TypeVar("T")

# Seconds a writer waits for the other processes, and a connection for the server.
BUSY_SECONDS = 10
CONNECT_SECONDS = 10

# Any number does, as long as every Signalbook uses the same: the letters "sign", then the table that is written to, for
# one database may hold several registries in schemas of their own; before there is a table, the schema that gets it.
_WRITE_LOCK = (
    f"{0x7369676E << 32} + COALESCE(to_regclass('entities')::oid::bigint,"
    " (SELECT oid::bigint FROM pg_namespace WHERE nspname = current_schema()), 0)"
)

_IN_TRANSACTION = psycopg.pq.TransactionStatus.INTRANS

_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Read committed, so that each statement after the lock sees all that was committed before the lock was had.
_BEGIN_WRITE = (
    f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = '{BUSY_SECONDS}s'; "
    f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})"
)


@lru_cache(maxsize=1024)
def _translated(sql: str) -> str:
    """Our SQL in the driver's form: `%s` for every `?`, and a percent sign that is one doubled."""
    return sql.replace("%", "%%").replace("?", "%s")


def _without_nul(params: Sequence[Any]) -> Sequence[Any]:
    """The parameters without U+0000, which PostgreSQL refuses: it comes in ids that do not exist, never in ours."""
    if any(isinstance(value, str) and "\0" in value for value in params):
        return [value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in params]
    return params


class PostgresSession:
    """A connection to the server; `Session` says what its methods give."""

    __slots__ = ("__weakref__", "_cursor", "_db", "_open", "_owner", "_released", "_url")

    def __init__(self, url: str) -> None:
        self._url = url
        self._owner = 0  # the process that may close the connection; none before there is one, or after close
        self._open = False  # inside a transaction that this session began
        self._released = False
        self._connect()

    def execute(self, sql: str, params: Sequence[Any] = (), /) -> list[ResultRow]:
        """All rows of one statement."""
        text, values = _translated(sql), _without_nul(params)

        def run() -> list[ResultRow]:
            cursor = self._cursor.execute(text, values)
            return cursor.fetchall() if cursor.description is not None else []

        rows = self._attempt(run)
        spend(A_STATEMENT + len(rows))
        return rows

    def one(self, sql: str, params: Sequence[Any] = (), /) -> ResultRow | None:
        """The first row of one statement, or None."""
        rows = self.execute(sql, params)
        return rows[0] if rows else None

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> None:
        """One statement run for each row of parameters, sent in one go."""
        spend(A_STATEMENT * len(rows))
        try:
            self._cursor.executemany(_translated(sql), rows)
        except psycopg.Error as error:
            raise _failure(error) from error

    def begin_read(self) -> None:
        """Begin a snapshot: it is taken by the first statement."""
        self._begin(_BEGIN_READ)

    def begin_write(self) -> None:
        """Take the advisory lock of all writers."""
        self._begin(_BEGIN_WRITE)

    def commit(self) -> None:
        """With the server's `synchronous_commit` on, its log is on the disk when this returns."""
        self._open = False
        try:
            self._simple("COMMIT")
        except psycopg.Error as error:
            unknown = "; whether it was written is not known" if self._db.closed else ""
            raise StoreError(f"PostgreSQL: the commit failed: {_words(error)}{unknown}") from error

    def rollback(self) -> None:
        """Undo the transaction, unless it went with its connection."""
        if self._open:
            self._open = False
            if not self._db.closed:
                self._command("ROLLBACK")

    def savepoint(self) -> None:
        """Begin a part that can be undone alone; the part before it is released in the same message."""
        self._command("RELEASE SAVEPOINT job; SAVEPOINT job" if self._released else "SAVEPOINT job")
        self._released = False

    def check_transaction(self) -> None:
        """After any error PostgreSQL takes no further statement, and answers COMMIT with a rollback, silently."""
        if self._db.pgconn.transaction_status != _IN_TRANSACTION:
            raise StoreError("PostgreSQL: a statement failed, and the transaction with it")

    def release(self) -> None:
        """Keep that part: the next `savepoint`, or the commit, tells the server."""
        self._released = True

    def undo(self) -> None:
        """Undo that part."""
        self._command("ROLLBACK TO SAVEPOINT job; RELEASE SAVEPOINT job")
        self._released = False

    def close(self) -> None:
        """Close the connection for good."""
        self._owner = 0
        self._db.close()

    def __del__(self) -> None:
        # The thread that owned this connection has ended; in a forked child it is still the parent's.
        if os.getpid() == self._owner:
            self._db.close()

    def _connect(self) -> None:
        try:
            self._db = psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_SECONDS)
        except psycopg.Error as error:
            raise StoreError(f"PostgreSQL cannot be reached: {_words(error)}") from error
        self._owner = os.getpid()
        self._cursor = self._db.cursor()

    def _begin(self, command: str) -> None:
        self._released = False
        try:
            self._attempt(lambda: self._simple(command))
        except StoreError:
            self._open = True  # a BEGIN whose lock was not had in time has begun a transaction all the same
            self.rollback()
            raise
        self._open = True

    def _command(self, command: str) -> None:
        try:
            self._simple(command)
        except psycopg.Error as error:
            raise _failure(error) from error

    def _simple(self, command: str) -> None:
        # Several statements in one message are never prepared.
        self._cursor.execute(command, prepare=False)

    def _attempt(self, run: Callable[[], T]) -> T:
        """What `run` gives: on a new connection, if the old one turns out to be lost and nothing was begun on it."""
        try:
            try:
                return run()
            except psycopg.Error:
                if self._open or not self._db.closed or not self._owner:
                    raise
            self._connect()
            return run()
        except psycopg.Error as error:
            raise _failure(error) from error


class PostgresDatabase:
    """A database on a server, in the schema that its URL's user sees first."""

    def __init__(self, url: str) -> None:
        self.url = url

    def session(self) -> PostgresSession:
        """A new connection."""
        return PostgresSession(self.url)

    def backup(self, path: str) -> None:
        """Refused: PostgreSQL has its own tool."""
        raise StoreError(f"PostgreSQL has its own tool for that: pg_dump --format=custom --file={path} DATABASE")

    def close(self) -> None:
        """Nothing is kept besides sessions."""


def open_server(url: str) -> PostgresDatabase:
    """The database at `url`, with its schema up to date."""
    database = PostgresDatabase(url)
    session = database.session()
    try:
        migrate(session, "postgresql", "the PostgreSQL database")
    finally:
        session.close()
    return database


def _failure(error: psycopg.Error) -> StoreError:
    if isinstance(error, (psycopg.errors.LockNotAvailable, psycopg.errors.TooManyConnections)):
        return StoreBusy(f"PostgreSQL is busy: {_words(error)}")
    return StoreError(f"PostgreSQL: {_words(error)}")


def _words(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
