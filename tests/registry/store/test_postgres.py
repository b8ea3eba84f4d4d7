from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from signalbook.errors import StoreError
from signalbook.registry.store import Connection, Store, StoreBusy, open_store
from tests.conftest import FreshStore

psycopg = pytest.importorskip("psycopg")

from signalbook.registry.store import postgres as module  # noqa: E402
from tests.patience import LONG  # noqa: E402

CHANGE = "INSERT INTO changes(at, correlation, events) VALUES ('2026-01-01T00:00:00Z', 'c', '[]')"


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    """A fresh store on the server."""
    with open_store(postgres_url) as opened:
        yield opened


def end_backend(store: Store, victim: int) -> None:
    """Cut a connection the way a restart of the server does."""
    with psycopg.connect(store.url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (victim,))


def backend(connection: Connection) -> int:
    """The server's process behind `connection`."""
    row = connection.one("SELECT pg_backend_pid()")
    assert row
    return int(row[0])


@pytest.mark.postgres
def test_a_lost_reader_is_replaced(store: Store) -> None:
    """A read on a connection that was cut meanwhile is asked again on a new one."""
    end_backend(store, backend(store.reader()))
    assert store.sequence() == 0
    end_backend(store, backend(store.reader()))
    assert store.read(lambda connection: connection.one("SELECT 1")) == (1,)


@pytest.mark.postgres
def test_a_read_cut_again_and_again_fails_and_the_next_works(store: Store) -> None:
    """A read that is cut each time it is read anew fails in the end."""

    def job(connection: Connection) -> object:
        end_backend(store, backend(connection))
        return connection.one("SELECT 1")

    with pytest.raises(StoreError):
        store.read(job)
    assert store.sequence() == 0


@pytest.mark.postgres
def test_a_writer_lost_while_idle_is_replaced(store: Store) -> None:
    """A write on a connection that was cut while nobody wrote is done on a new one."""
    end_backend(store, store.write(backend))
    store.write(lambda connection: connection.execute(CHANGE))
    assert store.sequence() > 0


@pytest.mark.postgres
def test_a_group_cut_again_and_again_fails_and_the_next_works(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of a group whose connection is lost each time all fail in the end, and nothing of them is there."""
    monkeypatch.setattr("signalbook.registry.store.store.MOST_SECONDS", 60.0)  # however slow this machine is
    inside, go_on = threading.Event(), threading.Event()

    def first(connection: Connection) -> None:
        connection.execute(CHANGE)
        inside.set()
        assert go_on.wait(LONG)

    def cut(connection: Connection) -> None:
        end_backend(store, backend(connection))
        connection.execute(CHANGE)

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(store.write, first)]
        assert inside.wait(LONG)
        futures.append(pool.submit(store.write, cut))
        while not store._writes._waiting:
            pass
        go_on.set()
        assert all(isinstance(future.exception(10), StoreError) for future in futures)
    assert store.sequence() == 0
    store.write(lambda connection: connection.execute(CHANGE))
    assert store.sequence() > 0


@pytest.mark.postgres
def test_a_commit_that_is_cut_says_that_it_does_not_know(store: Store) -> None:
    """When the connection is lost before the commit was answered, the words admit that the outcome is unknown."""
    with pytest.raises(StoreError, match="not known"):
        store.write(lambda connection: end_backend(store, backend(connection)))
    assert store.write(lambda connection: 1) == 1


@pytest.mark.postgres
def test_a_failed_statement_spoils_its_job_alone(store: Store) -> None:
    """A job that hides a failed statement is undone, the jobs before and after it in the group are not."""
    inside, go_on = threading.Event(), threading.Event()

    def first(connection: Connection) -> None:
        connection.execute(CHANGE)
        inside.set()
        assert go_on.wait(LONG)

    def silent(connection: Connection) -> str:
        connection.execute(CHANGE)
        with pytest.raises(StoreError):
            connection.execute("SELECT nothing FROM nowhere")
        return "fine"

    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(store.write, first)]
        assert inside.wait(LONG)
        for number, job in enumerate((silent, lambda connection: connection.execute(CHANGE)), 1):
            futures.append(pool.submit(store.write, job))
            while len(store._writes._waiting) < number:
                pass
        go_on.set()
    assert futures[0].exception() is None
    assert "the transaction with it" in str(futures[1].exception())
    assert futures[2].exception() is None
    assert store.reader().one("SELECT COUNT(*) FROM changes") == (2,)


@pytest.mark.postgres
def test_a_long_writer_makes_others_busy(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write lock held too long by another process is StoreBusy; afterwards all is well."""
    monkeypatch.setattr(module, "_BEGIN_WRITE", module._BEGIN_WRITE.replace("'10s'", "'100ms'"))
    with psycopg.connect(store.url) as other:
        other.execute(f"SELECT pg_advisory_xact_lock({module._WRITE_LOCK})")
        with pytest.raises(StoreBusy):
            store.write(lambda connection: 1)
    assert store.write(lambda connection: 1) == 1


@pytest.mark.postgres
def test_registries_of_one_database_do_not_wait_for_each_other(
    store: Store, fresh_store: FreshStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write, and the making of a new registry, in another schema of the database go on beside a long write."""
    monkeypatch.setattr(module, "_BEGIN_WRITE", module._BEGIN_WRITE.replace("'10s'", "'1s'"))
    with store.writing() as held, open_store(fresh_store()) as other:
        held.execute(CHANGE)
        assert other.write(lambda connection: 1) == 1


@pytest.mark.postgres
def test_a_backup_names_the_tool(store: Store) -> None:
    """PostgreSQL is backed up by its own tool."""
    with pytest.raises(StoreError, match="pg_dump"):
        store.backup("x.dump")


def test_a_server_that_is_not_there_is_named() -> None:
    """A server that cannot be reached is a StoreError with the driver's reason in one line."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        with pytest.raises(StoreError, match="cannot be reached") as caught:
            open_store(f"postgres://nobody@127.0.0.1:{probe.getsockname()[1]}/x")
    assert "\n" not in str(caught.value)
