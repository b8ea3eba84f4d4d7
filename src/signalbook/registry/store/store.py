"""The store: one reading connection for each thread, one writing connection for all of them.

Rule 1: a read never waits for a write, and a write never for a read.
Rule 2: a write is done when it lasts; see `group_commit`.
Rule 3: a store belongs to the process that opened it. After a fork the child is refused, and opens its own.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager
from typing import TypeVar

from signalbook.errors import StoreError
from signalbook.registry.store.connection import Connection, Database, Job, Session
from signalbook.registry.store.group_commit import WriteGroups
from signalbook.registry.store.sqlite import open_file, open_memory

__all__ = ["Store", "open_store"]

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
        session.begin_read()
        threads.reading = True
        try:
            result = job(session)
        except BaseException:
            threads.reading = False
            session.rollback()
            raise
        threads.reading = False
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

    def _abandon(self) -> tuple[threading.local, WriteGroups, tuple[Session, ...]]:
        """In a forked child: refuse from now on; what it returns must be kept, for closing that harms the parent."""
        left = (self._threads, self._writes, tuple(self._readers))
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


def open_store(url: str) -> Store:
    """The store at `url`: `memory:`, a path, `sqlite:PATH` or `postgresql://…`; made and migrated where needed."""
    return Store(_database(url))


def _database(url: str) -> Database:
    if url == "memory:":
        return open_memory()
    if url.startswith(("postgresql://", "postgres://")):
        from signalbook.registry.store.postgres import open_server  # psycopg is an optional dependency

        return open_server(url)
    path = url.removeprefix("sqlite:")
    if not path or "://" in url or path.startswith("//"):
        raise StoreError(f"{url!r} is not a store; write memory:, a path, sqlite:PATH or postgresql://user@host/name")
    return open_file(path)
