from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from signalbook.errors import StoreError
from signalbook.registry.store import Connection, Store, open_store, restore

CHANGE = "INSERT INTO changes(at, correlation, events) VALUES ('2026-01-01T00:00:00Z', 'c', '[]')"


def change(store: Store) -> None:
    """One more change."""
    store.write(lambda connection: connection.execute(CHANGE))


def test_a_backup_is_a_snapshot_of_a_store_being_written(tmp_path: Path) -> None:
    """Each copy made under write load is sound, holds a state that was committed, and is one file."""
    path = str(tmp_path / "x.db")
    stop = threading.Event()
    with open_store(path) as store:
        store.write(lambda connection: connection.execute("CREATE TABLE pairs (side TEXT, number BIGINT)"))

        def pair(connection: Connection) -> None:
            number = connection.one("SELECT COUNT(*) FROM pairs") or (0,)
            connection.execute("INSERT INTO pairs VALUES ('left', ?)", number)
            connection.execute("INSERT INTO pairs VALUES ('right', ?)", number)

        def writing() -> None:
            while not stop.is_set():
                store.write(pair)

        writer = threading.Thread(target=writing)
        writer.start()
        try:
            for copy in range(5):
                store.backup(str(tmp_path / f"{copy}.db"))
        finally:
            stop.set()
            writer.join()
    assert sorted(file.name for file in tmp_path.iterdir() if file.name[0].isdigit()) == [f"{n}.db" for n in range(5)]
    for copy in range(5):
        with closing(sqlite3.connect(tmp_path / f"{copy}.db")) as database:
            left, right = (
                database.execute("SELECT number FROM pairs WHERE side = ? ORDER BY number", (side,)).fetchall()
                for side in ("left", "right")
            )
            assert left == right


def test_a_backup_replaces_nothing(tmp_path: Path) -> None:
    """A backup goes to a new file, and an impossible place is named."""
    with open_store("memory:") as store:
        store.backup(str(tmp_path / "copy.db"))
        with pytest.raises(StoreError, match="exists"):
            store.backup(str(tmp_path / "copy.db"))
        with pytest.raises(StoreError, match="none"):
            store.backup(str(tmp_path / "none" / "copy.db"))


def test_restore_gives_back_what_was_there(tmp_path: Path) -> None:
    """A restored store is the backup's state; numbers of changes that it undid are not given out again."""
    path, copy = str(tmp_path / "x.db"), str(tmp_path / "copy.db")
    with open_store(path) as store:
        change(store)
        store.backup(copy)
        for _ in range(4):
            change(store)
        with pytest.raises(StoreError, match="force"):
            restore(Path(copy), Path(path))
        restore(Path(copy), Path(path), force=True)
        assert store.sequence() == 6
        change(store)
        assert store.sequence() == 7
    restore(Path(copy), tmp_path / "new.db")
    with open_store(str(tmp_path / "new.db")) as new:
        assert new.sequence() == 1


def test_restore_of_a_store_that_never_changed(tmp_path: Path) -> None:
    """A backup without any change still keeps the numbers of the store it replaces."""
    path, copy = str(tmp_path / "x.db"), str(tmp_path / "copy.db")
    with open_store(path) as store:
        store.backup(copy)
        change(store)
        restore(Path(copy), Path(path), force=True)
        assert store.sequence() == 2
        change(store)
        assert store.sequence() == 3


def test_a_stale_log_is_not_played_into_a_restored_store(tmp_path: Path) -> None:
    """Where only the log of an old store is left, a restore asks for force and removes it."""
    path, copy = tmp_path / "x.db", str(tmp_path / "copy.db")
    with open_store(str(path)) as store:
        change(store)
        store.backup(copy)
    (tmp_path / "x.db-wal").write_bytes(b"old")
    path.unlink()
    with pytest.raises(StoreError, match="exists"):
        restore(Path(copy), path)
    restore(Path(copy), path, force=True)
    with open_store(str(path)) as store:
        assert store.sequence() == 1


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    """A missing, foreign, newer or damaged file is refused before anything is replaced."""
    path = str(tmp_path / "x.db")
    with open_store(path) as store:
        change(store)
        store.backup(str(tmp_path / "newer.db"))
        store.backup(str(tmp_path / "damaged.db"))
    (tmp_path / "text.db").write_text("no database " * 100)
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as database:
        database.execute("CREATE TABLE invoices (number INTEGER)")
    with closing(sqlite3.connect(tmp_path / "newer.db", isolation_level=None)) as database:
        database.execute("UPDATE schema_version SET version = 9999")
    damaged = bytearray((tmp_path / "damaged.db").read_bytes())
    damaged[4096:8192] = b"\xff" * 4096
    (tmp_path / "damaged.db").write_bytes(damaged)
    for name, words in {
        "missing.db": "there is no backup",
        "text.db": "not a backup",
        "foreign.db": "not a backup",
        "newer.db": "schema version 9999",
        "damaged.db": "damaged|malformed",
    }.items():
        with pytest.raises(StoreError, match=words):
            restore(tmp_path / name, Path(path), force=True)
    with open_store(path) as store:
        assert store.sequence() == 1


def test_a_target_that_is_no_database_is_named(tmp_path: Path) -> None:
    """A restore over a file that is no database says what to do."""
    with open_store("memory:") as store:
        store.backup(str(tmp_path / "copy.db"))
    (tmp_path / "x.db").write_text("no database " * 100)
    with pytest.raises(StoreError, match="remove it"):
        restore(tmp_path / "copy.db", tmp_path / "x.db", force=True)


@pytest.mark.parametrize("table", ["invoices", "changes", "schema_version"])
def test_what_somebody_else_keeps_is_not_replaced(tmp_path: Path, table: str) -> None:
    """A restore over another program's database says so and leaves it as it is, whatever its tables are called."""
    with open_store("memory:") as store:
        store.backup(str(tmp_path / "copy.db"))
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        database.execute(f"CREATE TABLE {table} (seq INTEGER)")
    before = (tmp_path / "x.db").read_bytes()
    with pytest.raises(StoreError, match=rf"x.db' is not a Signalbook store \(it holds {table}\)"):
        restore(tmp_path / "copy.db", tmp_path / "x.db", force=True)
    assert before == (tmp_path / "x.db").read_bytes()
