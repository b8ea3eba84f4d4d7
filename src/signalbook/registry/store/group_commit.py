"""Group commit: the jobs of many threads, one transaction, one wait for the disk.

Rule 1: the first thread to come leads. It runs its own job, then those that queued up behind it, commits once, wakes
their threads, and hands the lead to the next in the queue. A lone writer meets no queue and no other thread.
Rule 2: a job that raises is undone alone. The first job of a transaction is undone with the whole of it; every
further one runs in a savepoint.
Rule 3: nobody hears of success before COMMIT has returned; if it fails, every job of the group has failed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from time import monotonic
from typing import Any, TypeVar

from signalbook.errors import StoreError
from signalbook.registry.store.connection import Connection, Job, Session, StoreBusy

__all__ = ["MOST_JOBS", "MOST_SECONDS", "WriteGroups"]

T = TypeVar("T")

# A group takes in late comers until it is this large or this old, so that the first in it does not wait for ever.
MOST_JOBS = 256
MOST_SECONDS = 0.05


class _Turn:
    """One job in the queue, and the gate its thread waits at: opened when the job is done, or when it is to lead.

    Whoever is let through opens the gate of the turn `after` it. Thirty threads woken at once would fight the next
    leader for the interpreter; woken one by one they cost a fifth less.
    """

    __slots__ = ("after", "alone", "error", "gate", "gone", "job", "leads", "result", "thread", "woken")

    def __init__(self, job: Job[Any], thread: int, *, alone: bool = False) -> None:
        self.job = job
        self.alone = alone  # it runs in its own thread and transaction, so nobody takes it into a group
        self.thread = thread
        self.gate: threading.Lock | None = None
        self.after: _Turn | None = None
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
        self._waiting: deque[_Turn] = deque()
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
        turn = _Turn(job, threading.get_ident())
        self._queue(turn)
        if turn.gate is None:
            self._lead(turn)
        else:
            self._wait(turn, turn.gate)
        # An exception that its own frames refer to would wait for the garbage collector.
        error, turn.error = turn.error, None
        if error is None:
            result: T = turn.result
            return result
        try:
            raise error
        finally:
            del error

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """A transaction of this thread's own, committed when the block ends and undone where it raises."""
        turn = _Turn(_nothing, threading.get_ident(), alone=True)
        self._queue(turn)
        if turn.gate is not None:
            self._wait(turn, turn.gate)
        session = self._session
        try:
            session.begin_write()
            yield session
            session.settle()
            session.commit()
        except BaseException:
            with suppress(StoreError):  # the transaction may be gone already; the error that ended it is being reported
                session.rollback()
            raise
        finally:
            self._hand_over()

    def _queue(self, turn: _Turn) -> None:
        """Take the lead, or a place in the queue, which is when the turn has a gate."""
        with self._mutex:
            if self._leader == turn.thread:
                raise StoreError("a write inside a write: use the connection that the outer one was given")
            if self._refusal:
                raise StoreError(self._refusal)
            if self._leader is None:
                self._leader = turn.thread
            else:
                turn.gate = threading.Lock()
                turn.gate.acquire()
                self._waiting.append(turn)

    def close(self) -> None:
        """Finish what is queued, then close the session; later jobs are refused."""
        with self._mutex:
            if self._leader == threading.get_ident():
                raise StoreError("a write cannot close its own store")
            self._refusal = "the store is closed"
            while self._leader is not None:
                self._idle.wait()
        self._session.close()

    def _wait(self, turn: _Turn, gate: threading.Lock) -> None:
        try:
            gate.acquire()
        except BaseException:  # a signal's exception: leave the queue, and take neither the lead nor the relay along
            with self._mutex:
                turn.gone = True
                if turn in self._waiting:
                    self._waiting.remove(turn)
            if turn.leads:
                self._hand_over()
            elif turn.woken:
                self._wake(turn.after)
            raise
        if not turn.leads:
            self._wake(turn.after)
        elif not turn.alone:
            self._lead(turn)

    def _lead(self, own: _Turn) -> None:
        taken: list[_Turn] = []
        try:
            self._run_group(own, taken)
        finally:
            self._hand_over()
            for turn, after in pairwise(taken):
                turn.after = after
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

    def _wake(self, turn: _Turn | None) -> None:
        with self._mutex:
            while turn is not None and turn.gone:
                turn = turn.after
            if turn is not None:
                _open(turn)

    def _run_group(self, own: _Turn, taken: list[_Turn]) -> None:
        """Run `own` and what waits behind it; every turn begun is in `taken`, with its result or its error."""
        session = self._session
        kept: list[_Turn] = []
        last = monotonic() + MOST_SECONDS
        turn: _Turn | None = own
        try:
            while turn is not None:
                taken.append(turn)
                if not kept:
                    self._begin(taken)
                    self._first(turn, kept)
                else:
                    self._further(turn, kept)
                turn = self._next() if len(taken) < MOST_JOBS and self._waiting and monotonic() < last else None
            if kept:
                session.commit()
        except BaseException as error:
            with suppress(StoreError):  # the transaction may be gone already; the error that ended it is being reported
                session.rollback()
            for each in taken:
                if each.error is None:
                    each.error = _failure(error)
            if not isinstance(error, Exception):
                raise

    def _begin(self, taken: list[_Turn]) -> None:
        try:
            self._session.begin_write()
        except Exception:
            # Whoever waits behind has waited for the same lock: to try again for each would add up the time-outs.
            while (turn := self._next()) is not None:
                taken.append(turn)
            raise

    def _first(self, turn: _Turn, kept: list[_Turn]) -> None:
        try:
            turn.result = turn.job(self._session)
            self._session.settle()
        except Exception as error:
            turn.error = error
            self._session.rollback()
        else:
            kept.append(turn)

    def _further(self, turn: _Turn, kept: list[_Turn]) -> None:
        session = self._session
        session.savepoint()
        try:
            turn.result = turn.job(session)
            session.settle()
        except Exception as error:
            turn.error = error
            session.undo()
        else:
            session.release()
            kept.append(turn)

    def _next(self) -> _Turn | None:
        with self._mutex:
            if not self._waiting or self._waiting[0].alone:
                return None
            return self._waiting.popleft()


def _nothing(_: Connection) -> None:
    """Do nothing."""


def _open(turn: _Turn) -> None:
    turn.woken = True
    if turn.gate is not None:
        turn.gate.release()


def _failure(error: BaseException) -> StoreError:
    """A failure of the whole group, one exception for each thread."""
    kind = StoreBusy if isinstance(error, StoreBusy) else StoreError
    words = str(error) if isinstance(error, StoreError) else f"the write was not committed: {error!r}"
    failure = kind(words)
    failure.__cause__ = error
    return failure
