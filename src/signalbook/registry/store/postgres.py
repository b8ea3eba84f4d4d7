"""The server database: PostgreSQL through psycopg 3, an optional dependency.

Rule 1: writers of all processes are serialised by one advisory lock, taken at the start of a transaction and freed by
the server at its end. So a job may read, decide and write as it does on SQLite.
Rule 2: the threads of a process share a bounded number of connections. A session has one for as long as a statement or
a transaction takes; the writer's is another, so that a write never waits for reads.
Rule 3: a connection that was lost is replaced. What had not begun is asked again until the server answers or
`PATIENCE` has passed; a transaction that had begun is `StoreLost`, which says that nothing of it was committed.
Rule 4: a commit whose answer was lost is looked up by its record of the change. It is never repeated blindly.
Rule 5: a server that is away is one line in the log, and one when it is back, however many threads wait for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from time import monotonic
from typing import Any, Protocol, TypeVar

from signalbook.budget import spend
from signalbook.errors import StoreError, UsageError, one_line
from signalbook.registry.store.connection import (
    A_STATEMENT,
    MOST_CONNECTIONS,
    ResultRow,
    StoreBusy,
    StoreLost,
    migrate,
)

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout
except ImportError as error:
    raise UsageError("PostgreSQL needs two more packages: pip install 'signalbook[postgres]'") from error

__all__ = ["PostgresDatabase", "PostgresSession", "open_server"]

T = TypeVar("T")

_log = logging.getLogger("signalbook.store")
if (_pool_log := logging.getLogger("psycopg.pool")).level == logging.NOTSET:
    _pool_log.setLevel(logging.ERROR)  # it has a line for each connection and each attempt; we say it once


class _Server(psycopg.Connection[ResultRow]):
    """A connection that knows when it was made."""

    made = 0.0


# Seconds a writer waits for the other processes, and a connection for the server.
BUSY_SECONDS = 10
CONNECT_SECONDS = 10
# Seconds that a statement or transaction waits for a connection to begin on: for a free one, or for the server to be
# back after a restart or a failover.
PATIENCE = 20.0
# What holds on each connection, unless the address or the server says otherwise.
TIMEOUTS = {"statement_timeout": "60s", "lock_timeout": f"{BUSY_SECONDS}s"}
# A server that vanished without a word is noticed after about half a minute.
_CONNECT = {
    "connect_timeout": CONNECT_SECONDS, "keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 30_000, "application_name": "signalbook",
}  # fmt: skip
# Changes in which a commit whose answer was lost is looked for; others may have written since.
_LOOKED_THROUGH = 10_000

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


class _Lender(Protocol):
    """Where a session has its connection from, for a statement or for a transaction."""

    def lend(self, until: float, *, writes: bool) -> _Server:
        """A connection that is free, or free by `until`."""

    def take_back(self, server: _Server, *, writes: bool) -> None:
        """The same connection, which may have been lost."""

    def tell(self, server: _Server, lost: psycopg.Error | None) -> None:
        """How it went on a connection: it was lost, or it answered."""


class PostgresSession:
    """A connection to the server while there is work for it; `Session` says what its methods give."""

    __slots__ = ("__weakref__", "_before", "_cursor", "_lender", "_recorded", "_released", "_server", "_writes")

    def __init__(self, lender: _Lender) -> None:
        self._lender = lender
        self._server: _Server | None = None  # the connection of the transaction that this session began
        self._writes = False
        self._released = False
        # Names of the latest change that this transaction records, now and at its savepoint.
        self._recorded = ""
        self._before = ""

    def execute(self, sql: str, params: Sequence[Any] = (), /) -> list[ResultRow]:
        """All rows of one statement."""
        text, values = _translated(sql), _without_nul(params)
        if self._writes and values and text.startswith("INSERT INTO changes (at, correlation,"):
            self._recorded = str(values[1])

        if self._server is None:
            rows = self._alone(lambda server: _rows(server.execute(text, values)))
        else:
            try:
                rows = _rows(self._cursor.execute(text, values))
            except psycopg.Error as error:
                raise self._ended(self._server, error) from error
        spend(A_STATEMENT + len(rows))
        return rows

    def one(self, sql: str, params: Sequence[Any] = (), /) -> ResultRow | None:
        """The first row of one statement, or None."""
        rows = self.execute(sql, params)
        return rows[0] if rows else None

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> None:
        """One statement run for each row of parameters, sent in one go."""
        spend(A_STATEMENT * len(rows))

        def run(server: _Server) -> None:
            with server.cursor() as cursor:
                cursor.executemany(_translated(sql), rows)

        return self._alone(run) if self._server is None else self._within(run)

    def begin_read(self) -> None:
        """Begin a snapshot: it is taken by the first statement."""
        self._begin(_BEGIN_READ, writes=False)

    def begin_write(self) -> None:
        """Take the advisory lock of all writers."""
        self._begin(_BEGIN_WRITE, writes=True)

    def commit(self) -> None:
        """With the server's `synchronous_commit` on, its log is on the disk when this returns."""
        server = self._server
        assert server is not None
        try:
            _simple(server, "COMMIT")
        except psycopg.Error as error:
            is_lost, wrote, recorded = server.closed, self._writes, self._recorded
            self._give_back()
            if not is_lost:
                raise StoreError(f"PostgreSQL: the commit failed: {_words(error)}") from error
            self._lender.tell(server, error)
            if wrote and not self._is_committed(recorded, error):
                raise StoreLost(
                    f"PostgreSQL: the connection was lost, and nothing committed: {_words(error)}"
                ) from error
        else:
            self._give_back()

    def rollback(self) -> None:
        """Undo the transaction, unless it went with its connection."""
        if self._server is not None:
            try:
                if not self._server.closed:
                    self._within(lambda server: _simple(server, "ROLLBACK"))
            finally:
                self._give_back()

    def savepoint(self) -> None:
        """Begin a part that can be undone alone; the part before it is released in the same message."""
        self._command("RELEASE SAVEPOINT job; SAVEPOINT job" if self._released else "SAVEPOINT job")
        self._released = False
        self._before = self._recorded

    def check_transaction(self) -> None:
        """After any error PostgreSQL takes no further statement, and answers COMMIT with a rollback, silently."""
        if self._server is None or self._server.closed:
            raise StoreLost("PostgreSQL: the connection was lost, and the transaction with it")
        if self._server.pgconn.transaction_status != _IN_TRANSACTION:
            raise StoreError("PostgreSQL: a statement failed, and the transaction with it")

    def release(self) -> None:
        """Keep that part: the next `savepoint`, or the commit, tells the server."""
        self._released = True

    def undo(self) -> None:
        """Undo that part."""
        self._command("ROLLBACK TO SAVEPOINT job; RELEASE SAVEPOINT job")
        self._released = False
        self._recorded = self._before

    def close(self) -> None:
        """Nothing is held between transactions."""

    def _begin(self, command: str, *, writes: bool) -> None:
        self._server = self._attempt(lambda server: _simple(server, command), writes=writes)[1]
        self._cursor = self._server.cursor()
        self._writes, self._released, self._recorded, self._before = writes, False, "", ""

    def _give_back(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            self._lender.take_back(server, writes=self._writes)
        self._writes = False

    def _command(self, command: str) -> None:
        self._within(lambda server: _simple(server, command))

    def _within(self, run: Callable[[_Server], T]) -> T:
        """What `run` gives on the connection of the transaction."""
        server = self._server
        assert server is not None
        try:
            return run(server)
        except psycopg.Error as error:
            raise self._ended(server, error) from error

    def _ended(self, server: _Server, error: psycopg.Error) -> StoreError:
        """What a failure within a transaction is for the caller."""
        if not server.closed:
            return _failure(error)
        self._lender.tell(server, error)
        return StoreLost(f"PostgreSQL: the connection was lost: {_words(error)}")

    def _alone(self, run: Callable[[_Server], T]) -> T:
        """What `run` gives on any connection."""
        result, server = self._attempt(run, writes=False)
        self._lender.take_back(server, writes=False)
        return result

    def _attempt(self, run: Callable[[_Server], T], *, writes: bool) -> tuple[T, _Server]:
        """What `run` gives on a connection, and that: on another, where one turns out to be lost."""
        until = monotonic() + PATIENCE
        while True:
            server = self._lender.lend(until, writes=writes)
            try:
                result = run(server)
            except psycopg.Error as error:
                if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                    server.close()  # a server that has become the follower of another
                is_lost = server.closed
                if not is_lost:
                    _end(server)
                self._lender.take_back(server, writes=writes)
                if not is_lost:
                    raise _failure(error) from error
                self._lender.tell(server, error)
                if monotonic() >= until:
                    raise _failure(error) from error
            except BaseException:  # a signal's exception: whatever the server is doing, nobody waits for it
                server.close()
                self._lender.take_back(server, writes=writes)
                raise
            else:
                self._lender.tell(server, None)
                return result, server

    def _is_committed(self, recorded: str, cause: psycopg.Error) -> bool:
        """Whether the transaction that recorded this change is there; to have the lock is to know that it has ended."""
        words = f"PostgreSQL: the connection was lost during the commit: {_words(cause)}"
        if not recorded:
            raise StoreError(f"{words}; whether it was written is not known") from cause
        sql = f"SELECT 1 FROM (SELECT correlation FROM changes ORDER BY seq DESC LIMIT {_LOOKED_THROUGH}) AS latest"
        try:
            self.begin_write()
            try:
                return self.one(f"{sql} WHERE correlation = ?", (recorded,)) is not None
            finally:
                self.rollback()
        except StoreError as error:
            raise StoreError(f"{words}; whether it was written is not known ({error})") from error


class _Single:
    """One connection, lent to one session: for the migrations, which take as long as they take."""

    def __init__(self, url: str) -> None:
        try:
            self._server = _Server.connect(**_parameters(url), autocommit=True)
        except psycopg.Error as error:
            raise StoreError(f"PostgreSQL cannot be reached: {_words(error)}") from error

    def lend(self, until: float, *, writes: bool) -> _Server:
        """The connection."""
        return self._server

    def take_back(self, server: _Server, *, writes: bool) -> None:
        """Keep it."""

    def tell(self, server: _Server, lost: psycopg.Error | None) -> None:
        """What was lost is not replaced."""
        if lost is not None:
            raise StoreError(f"PostgreSQL: {_words(lost)}") from lost

    def close(self) -> None:
        """Close it."""
        self._server.close()


class PostgresDatabase:
    """A database on a server, in the schema that its URL's user sees first; `connections` are for reading."""

    def __init__(self, url: str, connections: int = MOST_CONNECTIONS) -> None:
        self.url = url
        self._readers = _pool(url, connections)
        self._writers = _pool(url, 1)
        self._lock = threading.Lock()
        self._away = 0.0  # since when the server does not answer, 0 where it does
        self._back = 0.0  # since when it answers again; what was made before is lost, too, and no news

    def session(self) -> PostgresSession:
        """A new session, which has no connection before it needs one."""
        return PostgresSession(self)

    def lend(self, until: float, *, writes: bool) -> _Server:
        """A connection of the pool, as soon as there is one."""
        pool = self._writers if writes else self._readers
        try:
            return pool.getconn(max(until - monotonic(), 0.001))
        except PoolTimeout as error:
            raise self._no_connection(error) from error
        except PoolClosed as error:
            raise StoreError("the store is closed") from error

    def take_back(self, server: _Server, *, writes: bool) -> None:
        """Put a connection back; one that was lost is replaced in the background."""
        (self._writers if writes else self._readers).putconn(server)

    def tell(self, server: _Server | None, lost: psycopg.Error | None) -> None:
        """Note and log when the server goes away and when it is back."""
        if lost is None and not self._away:
            return
        with self._lock:
            if lost is not None and not self._away and (server is None or server.made > self._back):
                self._away = monotonic()
                words = one_line(_words(lost))
                _log.warning("PostgreSQL: a connection was lost (%s); requests wait up to %g s", words, PATIENCE)
            elif lost is None and self._away and server is not None and server.made > self._away:
                self._back = monotonic()
                _log.warning("PostgreSQL answers again after %.1f s", self._back - self._away)
                self._away = 0.0

    def backup(self, path: str) -> None:
        """Refused: PostgreSQL has its own tool."""
        raise StoreError(f"PostgreSQL has its own tool for that: pg_dump --format=custom --file={path} DATABASE")

    def close(self) -> None:
        """Close every connection; one that is in use, when it is put back."""
        self._readers.close()
        self._writers.close()

    def _no_connection(self, error: PoolTimeout) -> StoreError:
        """Why there was no connection: the server says so itself, or all of ours are in use."""
        try:
            psycopg.connect(**_parameters(self.url) | {"connect_timeout": 2}).close()
        except psycopg.Error as reason:
            self.tell(None, reason)
            return _failure(reason, "PostgreSQL cannot be reached")
        return StoreBusy(f"PostgreSQL: every connection of this process was in use for {PATIENCE:g} s")


def open_server(url: str, connections: int = MOST_CONNECTIONS) -> PostgresDatabase:
    """The database at `url`, with its schema up to date."""
    single = _Single(url)
    try:
        migrate(PostgresSession(single), "postgresql", "the PostgreSQL database")
    finally:
        single.close()
    return PostgresDatabase(url, connections)


def _parameters(url: str) -> dict[str, Any]:
    """What is needed to connect, with our defaults where the address says nothing."""
    try:
        return {**_CONNECT, **conninfo_to_dict(url)}
    except psycopg.ProgrammingError as error:
        raise StoreError(f"the address of the PostgreSQL database is not valid: {_words(error)}") from None


def _pool(url: str, size: int) -> ConnectionPool[_Server]:
    # A pool tries again and again by itself, later and later; ours gives up at once and begins anew, each second.
    return ConnectionPool(
        connection_class=_Server, kwargs={**_parameters(url), "autocommit": True}, configure=_configure, open=True,
        min_size=0, max_size=size, num_workers=2, reconnect_timeout=1.0, reconnect_failed=ConnectionPool.check,
    )  # fmt: skip


def _configure(server: _Server) -> None:
    """Bound what a statement may take, unless somebody has chosen a bound already."""
    server.made = monotonic()
    wanted = ", ".join("(%s, %s)" for _ in TIMEOUTS)
    server.execute(
        f"SELECT set_config(name, wanted.value, false) FROM pg_settings JOIN (VALUES {wanted}) AS wanted (name, value)"
        " USING (name) WHERE source = 'default'",
        [part for pair in TIMEOUTS.items() for part in pair],
    )


def _rows(cursor: psycopg.Cursor[ResultRow]) -> list[ResultRow]:
    return cursor.fetchall() if cursor.description is not None else []


def _simple(server: _Server, command: str) -> None:
    # Several statements in one message are never prepared.
    server.execute(command, prepare=False)


def _end(server: _Server) -> None:
    """Leave the transaction of a BEGIN whose lock was not had in time: it has begun one all the same."""
    if server.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        try:
            _simple(server, "ROLLBACK")
        except psycopg.Error:
            server.close()


def _failure(error: psycopg.Error, words: str = "PostgreSQL") -> StoreError:
    if isinstance(error, (psycopg.errors.LockNotAvailable, psycopg.errors.TooManyConnections)):
        return StoreBusy(f"PostgreSQL is busy: {_words(error)}")
    if isinstance(error, psycopg.errors.QueryCanceled):
        return StoreBusy(f"PostgreSQL took too long for a statement, and it was ended: {_words(error)}")
    return StoreError(f"{words}: {_words(error)}")


def _words(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
