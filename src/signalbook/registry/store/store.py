"""The store: one reading session for each thread, one writing session for all of them.

Rule 1: a read never waits for a write, and a write never for a read.
Rule 2: writes commit in groups. The first thread to come leads: it runs its own job, then those that queued up behind
it, commits once, wakes their threads, and hands the lead to the next in the queue. A lone writer meets no queue and no
other thread.
Rule 3: a job that raises is undone alone. The first job of a transaction is undone with the whole of it; every further
one runs in a savepoint.
Rule 4: nobody hears of success before COMMIT has returned; if it fails, every job of the group has failed.
Rule 5: a job whose connection was lost before its commit is run again by the store; so a job decides by what it reads,
and leaves nothing behind but its result. What a `with` block does is not run again.
Rule 6: a store belongs to the process that opened it. After a fork the child is refused, and opens its own.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from signalbook.budget import Budget, current, within
from signalbook.errors import StoreError
from signalbook.registry.store.connection import (
    MOST_CONNECTIONS,
    Connection,
    Database,
    Job,
    Session,
    StoreBusy,
    StoreLost,
)
from signalbook.registry.store.sqlite import open_file, open_memory

__all__ = [
    "MOST_JOBS",
    "MOST_LOST",
    "MOST_SECONDS",
    "PROBE_BYTES",
    "Store",
    "WriteGroups",
    "open_store",
    "why_unwritable",
]

T = TypeVar("T")


class Store:
    """Reads and writes of one registry; `url` opens the same store in another process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.url = database.url
        self._threads = threading.local()
        self._readers: weakref.WeakSet[Session] = weakref.WeakSet()
        self._mutex = threading.Lock()
        self._refusal = ""
        self._writes = WriteGroups(database.session())
        _OPEN.add(self)

    def reader(self) -> Connection:
        """This thread's connection for single statements, each of which sees the latest commit."""
        try:
            return self._threads.reader  # type: ignore[no-any-return]
        except AttributeError:
            return self._new_reader()

    def read(self, job: Job[T]) -> T:
        """What `job` returns; all its statements see the same state."""
        threads = self._threads
        try:
            session: Session = threads.reader
        except AttributeError:
            session = self._new_reader()
        if threads.reading:
            return job(session)
        for _ in range(MOST_LOST):
            with suppress(StoreLost):
                return self._read_once(session, job)
        return self._read_once(session, job)

    def _read_once(self, session: Session, job: Job[T]) -> T:
        session.begin_read()
        self._threads.reading = True
        try:
            result = job(session)
        except BaseException:
            self._threads.reading = False
            session.rollback()
            raise
        self._threads.reading = False
        session.commit()
        return result

    def write(self, job: Job[T]) -> T:
        """What `job` returns, once all it did is durable; if it raises, nothing it did is left."""
        return self._writes.run(job)

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction for a `with` block: what it does lasts once the block has ended, and is undone if it raises."""
        return self._writes.alone()

    def sequence(self) -> int:
        """The number of the latest change, 0 before the first: two equal numbers mean nothing was written between."""
        row = self.reader().one("SELECT MAX(seq) FROM changes")
        return (row and row[0]) or 0

    def backup(self, path: str) -> None:
        """Write a checked copy of the current state to the new file `path`, while others go on writing."""
        self._database.backup(path)

    def close(self) -> None:
        """Finish the writes under way, then give back every connection; using the store afterwards is refused."""
        if self._refusal:
            return
        self._writes.close()
        with self._mutex:
            self._refusal = "the store is closed"
            self._threads = threading.local()
            for session in tuple(self._readers):
                session.close()
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _abandon(self) -> tuple[object, ...]:
        """In a forked child: refuse from now on; what it returns must be kept, for closing that harms the parent."""
        left = (self._threads, self._writes, tuple(self._readers), self._database)
        self._refusal = "the store was opened before this process was forked: open it anew in each process"
        self._mutex = threading.Lock()
        self._threads = threading.local()
        self._writes = WriteGroups.refusing(self._refusal)
        return left

    def _new_reader(self) -> Session:
        self._check_open()
        session = self._database.session()
        try:
            with self._mutex:
                self._check_open()  # closed meanwhile?
                self._readers.add(session)
        except StoreError:
            session.close()
            raise
        self._threads.reading = False
        self._threads.reader = session
        return session

    def _check_open(self) -> None:
        if self._refusal:
            raise StoreError(self._refusal)


_OPEN: weakref.WeakSet[Store] = weakref.WeakSet()
_LEFT_BEHIND: list[object] = []


def _after_fork() -> None:
    for store in tuple(_OPEN):
        _LEFT_BEHIND.append(store._abandon())


os.register_at_fork(after_in_child=_after_fork)


# From the text a user gives for a store to the store.


def open_store(url: str, *, connections: int = MOST_CONNECTIONS) -> Store:
    """The store at `url`: `memory:`, a path, `sqlite:PATH` or `postgresql://…`; made and migrated where needed.

    `connections` are those that this process reads by, where the store is on a server.
    """
    return Store(_database(url, connections))


def _database(url: str, connections: int) -> Database:
    if url == "memory:":
        return open_memory()
    if url.startswith(("postgresql://", "postgres://")):
        from signalbook.registry.store.postgres import open_server  # psycopg is an optional dependency

        return open_server(url, connections)
    path = url.removeprefix("sqlite:")
    if not path or "://" in url or path.startswith("//"):
        raise StoreError(f"{url!r} is not a store; write memory:, a path, sqlite:PATH or postgresql://user@host/name")
    return open_file(path)


# How often a job is run again whose connection was lost; each time it waits for the server to be back.
MOST_LOST = 3

# Group commit: the jobs of many threads, one transaction, one wait for the disk.

# A group takes in late comers until it is this large or this old, so that the first in it does not wait for ever.
MOST_JOBS = 256
MOST_SECONDS = 0.05


class _QueuedJob:
    """One job in the queue, and the gate its thread waits at: opened when the job is done, or when it is to lead.

    Whoever is let through opens the gate of the job `after` it. Thirty threads woken at once would fight the next
    leader for the interpreter; woken one by one they cost a fifth less.
    """

    __slots__ = ("after", "alone", "budget", "error", "gate", "gone", "job", "leads", "result", "thread", "woken")

    def __init__(self, job: Job[Any], thread: int, *, alone: bool = False) -> None:
        self.job = job
        self.budget: Budget = current()  # whoever leads runs the job, and each spends its own
        self.alone = alone  # it runs in its own thread and transaction, so nobody takes it into a group
        self.thread = thread
        self.gate: threading.Lock | None = None
        self.after: _QueuedJob | None = None
        self.leads = False
        self.woken = False
        self.gone = False
        self.result: Any = None
        self.error: BaseException | None = None


class WriteGroups:
    """Runs jobs on one session, grouped; nobody else may use that session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._mutex = threading.Lock()
        self._idle = threading.Condition(self._mutex)
        self._waiting: deque[_QueuedJob] = deque()
        self._leader: int | None = None
        self._refusal = ""

    @classmethod
    def refusing(cls, refusal: str) -> WriteGroups:
        """Groups that take no job and have no session, for the same reason every time."""
        groups = cls.__new__(cls)
        groups._mutex = threading.Lock()
        groups._leader = None
        groups._refusal = refusal
        return groups

    def run(self, job: Job[T]) -> T:
        """What `job` returned, once it is committed; what it raised, once it is undone."""
        queued = _QueuedJob(job, threading.get_ident())
        self._queue(queued)
        if queued.gate is None:
            self._lead(queued)
        else:
            self._wait(queued, queued.gate)
        # An exception that its own frames refer to would wait for the garbage collector.
        error, queued.error = queued.error, None
        if error is None:
            result: T = queued.result
            return result
        try:
            raise error
        finally:
            del error

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """A transaction of this thread's own, committed when the block ends and undone where it raises."""
        queued = _QueuedJob(_nothing, threading.get_ident(), alone=True)
        self._queue(queued)
        if queued.gate is not None:
            self._wait(queued, queued.gate)
        session = self._session
        try:
            session.begin_write()
            yield session
            session.check_transaction()
            session.commit()
        except BaseException:
            with suppress(StoreError):  # the transaction may be gone already; the error that ended it is being reported
                session.rollback()
            raise
        finally:
            self._hand_over()

    def _queue(self, queued: _QueuedJob) -> None:
        """Take the lead, or a place in the queue, which is when the job has a gate."""
        with self._mutex:
            if self._leader == queued.thread:
                raise StoreError("a write inside a write: use the connection that the outer one was given")
            if self._refusal:
                raise StoreError(self._refusal)
            if self._leader is None:
                self._leader = queued.thread
            else:
                queued.gate = threading.Lock()
                queued.gate.acquire()
                self._waiting.append(queued)

    def close(self) -> None:
        """Finish what is queued, then close the session; later jobs are refused."""
        with self._mutex:
            if self._leader == threading.get_ident():
                raise StoreError("a write cannot close its own store")
            self._refusal = "the store is closed"
            while self._leader is not None:
                self._idle.wait()
        self._session.close()

    def _wait(self, queued: _QueuedJob, gate: threading.Lock) -> None:
        try:
            gate.acquire()
        except BaseException:  # a signal's exception: leave the queue, and take neither the lead nor the relay along
            with self._mutex:
                queued.gone = True
                if queued in self._waiting:
                    self._waiting.remove(queued)
            if queued.leads:
                self._hand_over()
            elif queued.woken:
                self._wake(queued.after)
            raise
        if not queued.leads:
            self._wake(queued.after)
        elif not queued.alone:
            self._lead(queued)

    def _lead(self, own: _QueuedJob) -> None:
        taken: list[_QueuedJob] = []
        try:
            self._run_group(own, taken)
        finally:
            self._hand_over()
            for queued, after in pairwise(taken):
                queued.after = after
            self._wake(own.after)

    def _hand_over(self) -> None:
        with self._mutex:
            if self._waiting:
                heir = self._waiting.popleft()
                heir.leads = True
                self._leader = heir.thread
                _open(heir)
            else:
                self._leader = None
                if self._refusal:
                    self._idle.notify_all()

    def _wake(self, queued: _QueuedJob | None) -> None:
        with self._mutex:
            while queued is not None and queued.gone:
                queued = queued.after
            if queued is not None:
                _open(queued)

    def _run_group(self, own: _QueuedJob, taken: list[_QueuedJob]) -> None:
        """Run `own` and what waits behind it; every job begun is in `taken`, with its result or its error."""
        taken.append(own)
        try:
            for _ in range(MOST_LOST):
                with suppress(StoreLost):
                    return self._attempt(taken)
            self._attempt(taken)
        except BaseException as error:
            for each in taken:
                if each.error is None:
                    each.error = _failure(error)
            if not isinstance(error, Exception):
                raise

    def _attempt(self, taken: list[_QueuedJob]) -> None:
        """Run the jobs that were taken, for the first time or anew, and those that come meanwhile; then commit."""
        kept: list[_QueuedJob] = []
        last = monotonic() + MOST_SECONDS
        for each in taken:
            each.result = each.error = None
        try:
            for queued in self._coming(taken, last):
                if not kept:
                    self._begin(taken)
                    self._first(queued, kept)
                else:
                    self._further(queued, kept)
            if kept:
                self._session.commit()
        except BaseException:
            with suppress(StoreError):  # the transaction may be gone already; the error that ended it is being reported
                self._session.rollback()
            raise

    def _coming(self, taken: list[_QueuedJob], last: float) -> Iterator[_QueuedJob]:
        """The jobs that were taken, then those that wait, which are taken now."""
        yield from tuple(taken)
        while len(taken) < MOST_JOBS and self._waiting and monotonic() < last:
            queued = self._next()
            if queued is None:
                return
            taken.append(queued)
            yield queued

    def _begin(self, taken: list[_QueuedJob]) -> None:
        try:
            self._session.begin_write()
        except Exception:
            # Whoever waits behind has waited for the same lock: to try again for each would add up the time-outs.
            while (queued := self._next()) is not None:
                taken.append(queued)
            raise

    def _first(self, queued: _QueuedJob, kept: list[_QueuedJob]) -> None:
        try:
            with within(queued.budget):
                queued.result = queued.job(self._session)
            self._session.check_transaction()
        except StoreLost:
            raise
        except Exception as error:
            queued.error = error
            self._session.rollback()
        else:
            kept.append(queued)

    def _further(self, queued: _QueuedJob, kept: list[_QueuedJob]) -> None:
        session = self._session
        session.savepoint()
        try:
            with within(queued.budget):
                queued.result = queued.job(session)
            session.check_transaction()
        except StoreLost:
            raise
        except Exception as error:
            queued.error = error
            session.undo()
        else:
            session.release()
            kept.append(queued)

    def _next(self) -> _QueuedJob | None:
        with self._mutex:
            if not self._waiting or self._waiting[0].alone:
                return None
            return self._waiting.popleft()


def _nothing(_: Connection) -> None:
    """Do nothing."""


def _open(queued: _QueuedJob) -> None:
    queued.woken = True
    if queued.gate is not None:
        queued.gate.release()


def _failure(error: BaseException) -> StoreError:
    """A failure of the whole group, one exception for each thread."""
    kind = StoreBusy if isinstance(error, StoreBusy) else StoreError
    words = str(error) if isinstance(error, StoreError) else f"the write was not committed: {error!r}"
    failure = kind(words)
    failure.__cause__ = error
    return failure


# Whether a store could be written now, found out without a write and without waiting for one.
#
# Rule 1: what is in memory can; a file can where it and its folder may be written and the disk takes a little more; a
# PostgreSQL server can unless it is a standby or its transactions are read-only.
# Rule 2: nothing here waits for the write lock: who asks is a health check.


PROBE_BYTES = 64 * 1024
"""What has to fit on the disk beside a store: more than the commit of a small write needs."""


def why_unwritable(store: Store) -> str:
    """Why the store cannot be written; empty where it can."""
    if store.url.startswith("postgres"):
        return _standby(store)
    return "" if store.url.startswith("memory:") else _full_or_read_only(store.url.removeprefix("sqlite:"))


def _standby(store: Store) -> str:
    try:
        found = store.reader().one("SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only')")
    except StoreError as error:
        return str(error)
    if found is not None and found[0]:
        return "the PostgreSQL server is in recovery: it is a standby, and takes no writes"
    return "PostgreSQL's transactions are read-only here" if found is not None and found[1] == "on" else ""


def _full_or_read_only(path: str) -> str:
    if not os.access(path, os.W_OK):
        return f"the file '{path}' is not there, or may not be written"
    try:
        with tempfile.TemporaryFile(dir=Path(path).resolve().parent, prefix=".signalbook-probe-") as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
    except OSError as error:
        return f"nothing can be written beside '{path}': {error.strerror or error}"
    return ""
