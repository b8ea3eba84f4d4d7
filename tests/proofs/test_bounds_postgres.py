"""On PostgreSQL: connections are bounded, a restart is waited for, and a commit whose answer was lost is looked up."""

from __future__ import annotations

import logging
import select
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from signalbook import Registry
from signalbook.errors import StoreError
from signalbook.registry.store import Connection, Store, StoreBusy, open_store
from tests.conftest import StartServer
from tests.patience import LONG, until

psycopg = pytest.importorskip("psycopg")

from signalbook.registry.store import postgres  # noqa: E402

pytestmark = pytest.mark.postgres

CHANGE = "INSERT INTO changes (at, correlation, events) VALUES (?, ?, ?)"

OTHERS = "FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()"


def record(name: str) -> Callable[[Connection], str]:
    """A job that records one change."""

    def job(db: Connection) -> str:
        db.execute(CHANGE, ("2026-01-01T00:00:00Z", name, "[]"))
        return name

    return job


def names(store: Store) -> list[str]:
    """The names of the changes that are there."""
    return [row[0] for row in store.reader().execute("SELECT correlation FROM changes ORDER BY seq")]


def connections(url: str, name: str) -> int:
    """How many connections of an application the server has."""
    with psycopg.connect(url, autocommit=True) as other:
        row = other.execute(f"SELECT COUNT(*) {OTHERS}", (name,)).fetchone()
    return int(row[0])


def end_all(url: str, name: str) -> None:
    """Cut all connections of an application, the way a restart of the server does."""
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(f"SELECT pg_terminate_backend(pid, 5000) {OTHERS}", (name,))


@pytest.fixture
def named(postgres_url: str, request: pytest.FixtureRequest) -> tuple[str, str]:
    """The address of a fresh store, and the name that its connections have."""
    name = f"proof-{abs(hash((postgres_url, request.node.name))) % 10**8}"
    return f"{postgres_url}&application_name={name}", name


# Bounds --------------------------------------------------------------------------------------------------------------


def test_threads_share_few_connections(named: tuple[str, str]) -> None:
    """Sixty threads read by four connections, all at once as far as they see, and a write does not wait for them."""
    url, name = named
    lock, most, inside, now = threading.Lock(), 0, threading.Event(), 0
    go_on = threading.Event()

    def job(db: Connection) -> object:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
            if now == 4:
                inside.set()
        assert go_on.wait(LONG)
        row = db.one("SELECT 1")
        with lock:
            now -= 1
        return row

    with open_store(url, connections=4) as store, ThreadPoolExecutor(60) as threads:
        found = [threads.submit(store.read, job) for _ in range(60)]
        assert inside.wait(LONG)
        assert "a" == store.write(record("a"))
        held = connections(url, name)
        go_on.set()
        assert [(1,)] * 60 == [one.result(LONG) for one in found]
        assert [(1,)] * 60 == list(threads.map(lambda _: store.reader().one("SELECT 1"), range(60)))
        assert (4, True) == (most, held <= 5)
        assert connections(url, name) <= 5


def test_a_thread_that_reads_within_a_read_needs_one_connection(postgres_url: str) -> None:
    """What reads within a read, or by the thread's own connection, is in the same snapshot and waits for nobody."""
    with open_store(postgres_url, connections=1) as store:
        inner = store.read(lambda db: store.read(lambda _: store.reader().one("SELECT pg_backend_pid()")))
        outer = store.read(
            lambda db: (db.one("SELECT pg_backend_pid()"), store.reader().one("SELECT pg_backend_pid()"))
        )
        assert (inner, inner) == outer


def test_every_connection_used_is_busy(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that finds no free connection in time is refused as one that may work later."""
    with open_store(postgres_url, connections=1) as store, ThreadPoolExecutor(1) as threads:

        def second(db: Connection) -> None:
            monkeypatch.setattr(postgres, "PATIENCE", 0.01)
            with pytest.raises(StoreBusy, match="in use"):
                threads.submit(store.sequence).result(LONG)

        store.read(second)


def test_statements_and_locks_are_bounded(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement ends by itself after a while, and says so in words; what the address chooses counts more."""
    shown = "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"
    with open_store(postgres_url) as store:
        assert ("1min", "10s") == store.reader().one(shown)
        assert ("1min", "10s") == store.write(lambda db: db.one(shown))
    own = postgres_url.replace("options=", "options=-cstatement_timeout%3D50%20")
    with open_store(own) as store:
        assert ("50ms", "10s") == store.reader().one(shown)
        with pytest.raises(StoreBusy, match="took too long"):
            store.read(lambda db: db.one("SELECT pg_sleep(60)"))
        assert (1,) == store.reader().one("SELECT 1")


@pytest.mark.timeout(600)
def test_three_workers_and_many_clients(named: tuple[str, str], start_server: StartServer) -> None:
    """150 clients of three workers are all answered, by at most 17 connections a worker."""
    url, name = named
    address = start_server("--workers", "3", "--no-log", store=url)
    statuses: list[int] = []
    most = 0
    started = threading.Barrier(150)

    def client(number: int) -> None:
        with httpx.Client(base_url=address, timeout=LONG) as http:
            started.wait(LONG)
            group = f"/messagegroups/g{number}"
            statuses.append(http.put(group, json={}).status_code)
            statuses.extend(http.get(path).status_code for path in (group, "/messagegroups?limit=5", "/"))

    with ThreadPoolExecutor(150) as threads:
        running = [threads.submit(client, number) for number in range(150)]
        while not all(one.done() for one in running):
            most = max(most, connections(url, name))
        for one in running:
            one.result()
    assert {200, 201} == set(statuses)
    assert 600 == len(statuses)
    assert most <= 3 * 17


# Restarts ------------------------------------------------------------------------------------------------------------


class Proxy:
    """A way to the server that can be shut, as a restart shuts it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self.port = 0
        self.start()
        self.url = url.replace(f":{self._to[1]}/", f":{self.port}/").replace(parts.hostname or "", "127.0.0.1")

    def start(self) -> None:
        """Let connections through."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def shut(self) -> None:
        """Drop every connection and take no more."""
        assert self._listener is not None
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._to) as far, suppress(OSError):
            with self._lock:
                self._open += [near, far]
            try:
                while ready := select.select([near, far], [], [])[0]:
                    data = ready[0].recv(65536)
                    if not data:
                        return
                    (far if ready[0] is near else near).sendall(data)
            finally:
                with self._lock:
                    self._open.remove(near)
                    self._open.remove(far)


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    """A way to a fresh store."""
    made = Proxy(postgres_url)
    yield made
    made.shut()


def test_a_restart_is_waited_for(proxy: Proxy, caplog: pytest.LogCaptureFixture) -> None:
    """Reads and writes that come while the server is away are answered when it is back, with two lines in the log."""
    with open_store(proxy.url) as store, ThreadPoolExecutor(30) as threads, caplog.at_level(logging.INFO):
        store.write(record("before"))
        assert [1] * 30 == list(threads.map(lambda _: len(names(store)), range(30)))
        caplog.clear()
        proxy.shut()
        reads = [threads.submit(store.read, lambda db: db.one("SELECT 1")) for _ in range(20)]
        writes = [threads.submit(store.write, record(f"w{number}")) for number in range(10)]
        assert until(lambda: caplog.records)
        proxy.start()
        assert [(1,)] * 20 == [one.result(LONG) for one in reads]
        assert [f"w{number}" for number in range(10)] == [one.result(LONG) for one in writes]
        assert sorted(["before", *(f"w{number}" for number in range(10))]) == sorted(names(store))
        lines = [one.getMessage() for one in caplog.records if one.name == "signalbook.store"]
        assert 2 == len(lines), lines
        assert "lost" in lines[0]
        assert "answers again" in lines[1]


def test_a_server_that_stays_away_is_said_once(
    proxy: Proxy, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that waited in vain say why, and the log has one line for all of them."""
    monkeypatch.setattr(postgres, "PATIENCE", 0.2)
    with open_store(proxy.url) as store, ThreadPoolExecutor(20) as threads:
        caplog.clear()
        proxy.shut()
        waiting = [threads.submit(store.sequence) for _ in range(20)]
        found = [one.exception(LONG) for one in waiting]
        assert {True} == {isinstance(one, StoreError) and "cannot be reached" in str(one) for one in found}
        assert 1 == len([one for one in caplog.records if one.name == "signalbook.store"])
        assert not [one for one in caplog.records if one.name.startswith("psycopg")]
        monkeypatch.setattr(postgres, "PATIENCE", LONG)
        proxy.start()
        assert 0 == store.sequence()


def test_a_read_that_is_cut_is_read_again(named: tuple[str, str]) -> None:
    """A read whose connection is lost in the middle is read anew, in one snapshot."""
    url, name = named
    runs = 0

    def job(db: Connection) -> object:
        nonlocal runs
        runs += 1
        first = db.one("SELECT 1")
        if runs == 1:
            end_all(url, name)
        return first, db.one("SELECT pg_backend_pid() = pg_backend_pid()")

    with open_store(url) as store:
        assert ((1,), (True,)) == store.read(job)
        assert 2 == runs


def test_a_read_that_is_cut_each_time_fails(named: tuple[str, str]) -> None:
    """A read is not repeated for ever."""
    url, name = named
    runs = 0

    def job(db: Connection) -> object:
        nonlocal runs
        runs += 1
        end_all(url, name)
        return db.one("SELECT 1")

    with open_store(url) as store, pytest.raises(StoreError):
        store.read(job)
    assert 4 == runs


def test_a_group_that_is_cut_is_written_once(named: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All jobs of a group whose connection is lost before its commit are run again, and are there once."""
    monkeypatch.setattr("signalbook.registry.store.store.MOST_SECONDS", 60.0)  # however slow this machine is
    url, name = named
    inside, go_on, cuts = threading.Event(), threading.Event(), iter([True])

    def first(db: Connection) -> str:
        inside.set()
        assert go_on.wait(LONG)
        return record("first")(db)

    def cut(db: Connection) -> str:
        if next(cuts, False):
            end_all(url, name)
        return record("second")(db)

    def wrong(db: Connection) -> None:
        record("wrong")(db)
        raise ValueError("a wrong request")

    with open_store(url) as store, ThreadPoolExecutor(3) as threads:
        found: list[Any] = [threads.submit(store.write, first)]
        assert inside.wait(LONG)
        for number, job in enumerate((wrong, cut), 1):
            found.append(threads.submit(store.write, job))
            assert until(lambda: len(store._writes._waiting) >= number)
        go_on.set()
        assert ["first", "second"] == [found[0].result(LONG), found[2].result(LONG)]
        assert isinstance(found[1].exception(LONG), ValueError)
        assert ["first", "second"] == names(store)


# Commits whose answer was lost ---------------------------------------------------------------------------------------


def lose_commit(monkeypatch: pytest.MonkeyPatch, *, done: bool) -> list[str]:
    """Cut the connection at the first COMMIT of a write, after or before the server has carried it out."""
    seen: list[str] = []
    simple = postgres._simple

    def losing(server: Any, command: str) -> None:
        writes = command == "COMMIT" and server.execute("SHOW transaction_read_only").fetchone() == ("off",)
        if not writes or seen:
            return simple(server, command)
        seen.append(command)
        if done:
            simple(server, command)
        server.close()
        raise psycopg.OperationalError("the connection was cut")

    monkeypatch.setattr(postgres, "_simple", losing)
    return seen


@pytest.mark.parametrize("done", [True, False])
def test_a_commit_whose_answer_is_lost(postgres_url: str, monkeypatch: pytest.MonkeyPatch, done: bool) -> None:
    """What was committed is not done again, what was not is: the record of the change says which."""
    runs: list[str] = []
    with open_store(postgres_url) as store:
        seen = lose_commit(monkeypatch, done=done)

        def job(db: Connection) -> str:
            runs.append("run")
            return record("once")(db)

        assert "once" == store.write(job)
        assert (["COMMIT"], 1 if done else 2, ["once"]) == (seen, len(runs), names(store))


@pytest.mark.parametrize("done", [True, False])
def test_a_commit_without_a_record(postgres_url: str, monkeypatch: pytest.MonkeyPatch, done: bool) -> None:
    """Where nothing tells whether it was committed, the words say so and nothing is done again."""
    runs: list[str] = []
    with open_store(postgres_url) as store:
        lose_commit(monkeypatch, done=done)

        def job(db: Connection) -> None:
            runs.append("run")
            db.execute("INSERT INTO settings (name, value) VALUES ('x', 'y')")

        with pytest.raises(StoreError, match="whether it was written is not known"):
            store.write(job)
        assert ["run"] == runs


def test_a_record_that_was_undone_does_not_count(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record that is looked up is one that the commit keeps, not that of a job that failed in its group."""
    monkeypatch.setattr("signalbook.registry.store.store.MOST_SECONDS", 60.0)
    inside, go_on = threading.Event(), threading.Event()

    def first(db: Connection) -> str:
        inside.set()
        assert go_on.wait(LONG)
        return record("kept")(db)

    def wrong(db: Connection) -> None:
        record("undone")(db)
        raise ValueError("a wrong request")

    with open_store(postgres_url) as store, ThreadPoolExecutor(2) as threads:
        lose_commit(monkeypatch, done=True)
        found: list[Any] = [threads.submit(store.write, first)]
        assert inside.wait(LONG)
        found.append(threads.submit(store.write, wrong))
        assert until(lambda: store._writes._waiting)
        go_on.set()
        assert "kept" == found[0].result(LONG)
        assert isinstance(found[1].exception(LONG), ValueError)
        assert ["kept"] == names(store)


def test_a_registry_writes_over_a_restart(proxy: Proxy) -> None:
    """Every write of a registry is there once, with its epoch, although the server goes away again and again."""
    with Registry.open(proxy.url) as registry:
        for number in range(6):
            shaken = threading.Thread(target=lambda: (proxy.shut(), proxy.start()))
            shaken.start()
            registry.put("/messagegroups/g", {"name": f"n{number}"})
            shaken.join()
        found = registry.get("/messagegroups/g")
        assert (6, "n5") == (found["epoch"], found["name"])
        assert 6 == len([one for one in names(registry.store) if one])
