from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from signalbook.errors import StoreError
from signalbook.registry.store import Connection, StoreBusy, open_store
from signalbook.registry.store import sqlite as module
from signalbook.registry.store.sqlite import SqliteDatabase, SqliteSession
from tests.patience import LONG


def garbage(path: Path) -> None:
    """A file that is no database."""
    path.write_bytes(b"this is text, and no database at all. " * 200)


def somebody_elses(path: Path) -> None:
    """A database of another program."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE invoices (number INTEGER)")


def from_the_future(path: Path) -> None:
    """A store of a newer Signalbook."""
    open_store(str(path)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE schema_version SET version = 9999")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (garbage, "is not an SQLite database"),
        (somebody_elses, "tables that are not Signalbook's (invoices)"),
        (from_the_future, "schema version 9999"),
        (lambda path: path.mkdir(), "cannot be opened"),
    ],
    ids=["garbage", "another program's", "a newer schema", "a folder"],
)
def test_what_is_not_ours_is_refused(make: Callable[[Path], None], words: str, tmp_path: Path) -> None:
    """A file that is no store of ours, or of a newer Signalbook, is refused by name and left as it was."""
    path = tmp_path / "x.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreError) as caught:
        open_store(str(path))
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    if words.startswith("is not"):
        assert path.read_bytes() == before


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A path into a folder that is not there is refused with the likely reason."""
    with pytest.raises(StoreError, match="is its folder there"):
        open_store(str(tmp_path / "none" / "x.db"))


def test_a_file_is_durable(tmp_path: Path) -> None:
    """A store in a file writes ahead and waits for the disk at every commit, readers and writer alike."""
    with open_store(f"sqlite:{tmp_path}/x.db") as store:
        for ask in (store.read, store.write):
            assert ask(lambda connection: connection.one("PRAGMA journal_mode")) == ("wal",)
            assert ask(lambda connection: connection.one("PRAGMA synchronous")) == (2,)


def test_memory_is_private_and_temporary() -> None:
    """Two stores in memory know nothing of each other, and their files go when they are closed."""
    with open_store("memory:") as one, open_store("memory:") as other:
        one.write(lambda connection: connection.execute("CREATE TABLE notes (name TEXT)"))
        with pytest.raises(StoreError):
            other.reader().execute("SELECT * FROM notes")
        with open_store(one.url) as same:
            assert same.reader().execute("SELECT * FROM notes") == []
        folder = Path(one.url.removeprefix("sqlite:")).parent
        assert folder.is_dir()
    assert not folder.exists()


def test_memory_goes_with_the_process() -> None:
    """A store in memory that was never closed leaves no file behind when its process ends."""
    program = "from signalbook.registry.store import open_store; print(open_store('memory:').url)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LONG, check=True)
    assert not Path(result.stdout.strip().removeprefix("sqlite:")).parent.exists()


def test_a_long_writer_makes_others_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write lock held too long is StoreBusy for all who wait; reads go on; then all is well."""
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.3)
    path = str(tmp_path / "x.db")
    with open_store(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(3) as pool:
            for future in [pool.submit(store.write, lambda connection: 1) for _ in range(3)]:
                with pytest.raises(StoreBusy, match="locked by another writer"):
                    future.result()
        assert store.sequence() == 0
        other.execute("COMMIT")
        assert store.write(lambda connection: 1) == 1


def test_an_open_waits_for_a_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new store whose file is locked by another process is busy, not broken."""
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.2)
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            open_store(str(path))


def test_a_full_disk_fails_the_group_and_not_the_store(tmp_path: Path) -> None:
    """An error that ends the whole transaction is acknowledged to nobody; the store goes on when there is room."""
    with open_store(str(tmp_path / "x.db")) as store:
        store.write(lambda connection: connection.execute("CREATE TABLE notes (name TEXT)"))
        pages = store.write(lambda connection: connection.one("PRAGMA page_count"))
        assert pages
        store.write(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages[0] + 1}"))
        big = lambda connection: connection.execute("INSERT INTO notes VALUES (?)", ("x" * 100_000,))  # noqa: E731
        inside, go_on = threading.Event(), threading.Event()

        def small(connection: Connection) -> None:
            connection.execute("INSERT INTO notes VALUES ('small')")
            inside.set()
            go_on.wait(LONG)

        def silent(connection: Connection) -> None:
            with pytest.raises(StoreError, match="full"):
                big(connection)

        with pytest.raises(StoreError, match="full"):
            store.write(big)
        with pytest.raises(StoreError, match="SQLite has undone the transaction"):
            store.write(silent)
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(store.write, small)
            inside.wait(LONG)
            second = pool.submit(store.write, big)
            while not store._writes._waiting:
                pass
            go_on.set()
            assert isinstance(first.exception(), StoreError)
            assert "full" in str(second.exception())
        assert store.reader().execute("SELECT * FROM notes") == []
        store.write(lambda connection: connection.execute("PRAGMA max_page_count = 100000"))
        store.write(big)
        assert store.reader().one("SELECT COUNT(*) FROM notes") == (1,)


def test_close_waits_for_a_read(tmp_path: Path) -> None:
    """A connection closed by another thread lets the statement under way end, and refuses the next."""
    session = SqliteDatabase(str(tmp_path / "x.db")).session()
    slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT i FROM n"
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(session.execute, slow)
        time.sleep(0.01)
        session.close()
        failure = reading.exception()
        assert len(reading.result()) == 300000 if failure is None else "closed" in str(failure)
    with pytest.raises(StoreError, match="closed"):
        session.one("SELECT 1")


def test_the_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    """A reader that has read keeps no snapshot, so the log is reused and stays near its limit."""
    with open_store(str(tmp_path / "x.db")) as store:
        store.write(lambda connection: connection.execute("CREATE TABLE notes (name TEXT)"))
        store.write(lambda connection: connection.execute("INSERT INTO notes VALUES ('a'), ('b')"))
        for _ in range(25):
            store.write(lambda connection: connection.execute("INSERT INTO notes VALUES (?)", ("x" * 2_000_000,)))
            assert store.reader().one("SELECT name FROM notes")
        assert (tmp_path / "x.db-wal").stat().st_size < 40_000_000


def test_session_that_never_opened_can_be_forgotten(tmp_path: Path) -> None:
    """A connection that could not be opened leaves nothing to close."""
    with pytest.raises(StoreError):
        SqliteSession(str(tmp_path / "none" / "x.db"), "FULL")


@pytest.fixture
def open_to_all() -> Iterator[None]:
    """Files get the mode that they are made with, whatever mask the tests run under."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """The mode of each file."""
    return {one.name: one.stat().st_mode & 0o777 for one in folder.iterdir()}


@pytest.mark.usefixtures("open_to_all")
def test_a_store_is_for_whoever_made_it(tmp_path: Path) -> None:
    """The file, those beside it, a backup and what a backup is restored to: no one else can read them."""
    place = tmp_path / "a.db"
    with open_store(str(place)) as store:
        store.write(lambda db: db.execute("CREATE TABLE t (a)"))
        assert {"a.db", "a.db-wal", "a.db-shm", "a.db-turn"} == modes(tmp_path).keys()
        assert {0o600} == set(modes(tmp_path).values())
        store.backup(str(tmp_path / "copy.db"))
    module.backup(place, tmp_path / "second.db")
    module.restore(tmp_path / "copy.db", tmp_path / "restored.db")
    assert {"copy.db", "second.db", "restored.db"} <= modes(tmp_path).keys()
    assert {0o600} == set(modes(tmp_path).values())


@pytest.mark.usefixtures("open_to_all")
def test_the_mode_that_an_operator_gave_stays(tmp_path: Path) -> None:
    """A store that others share stays theirs, with the files beside it; so does a copy that is written anew."""
    place, copy = tmp_path / "a.db", tmp_path / "copy.db"
    place.touch()
    place.chmod(0o660)
    with open_store(str(place)) as store:
        store.write(lambda db: db.execute("CREATE TABLE t (a)"))
        assert {0o660} == set(modes(tmp_path).values())
    module.backup(place, copy)
    copy.chmod(0o640)
    module.backup(place, copy, force=True)
    assert 0o640 == modes(tmp_path)["copy.db"]


@pytest.mark.usefixtures("open_to_all")
def test_a_link_to_a_store_that_is_not_there_yet(tmp_path: Path) -> None:
    """What it leads to is made as any other store."""
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    open_store(str(tmp_path / "link.db")).close()
    assert 0o600 == modes(tmp_path)["a.db"]
