from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from signalbook.errors import StoreError
from signalbook.registry.store import connection as module
from signalbook.registry.store import open_store
from signalbook.registry.store.connection import LATEST, WORDS, scripts
from tests.patience import LONG


def test_migrations_are_numbered_without_gaps() -> None:
    """Migrations are 1, 2, 3, and so on, and the last is the version of a new store."""
    assert [number for number, *_ in scripts()] == list(range(1, LATEST + 1))


def test_both_databases_have_every_word() -> None:
    """The tables of words have the same keys."""
    assert WORDS["sqlite"].keys() == WORDS["postgresql"].keys()


def test_a_new_store_is_at_the_latest_version(url: str) -> None:
    """A fresh store has the tables of the registry and says its version; opening it again changes nothing."""
    with open_store(url) as store:
        assert store.reader().execute("SELECT version FROM schema_version") == [(LATEST,)]
        for table in ("entities", "attrs", "changes", "settings"):
            assert store.reader().execute(f"SELECT * FROM {table}") == []
        with open_store(store.url) as again:
            assert again.reader().execute("SELECT version FROM schema_version") == [(LATEST,)]


def test_a_newer_migration_runs_once(shared_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of an older version gets what it lacks, and keeps what it has."""
    open_store(shared_url).close()
    more = (*scripts(), (LATEST + 1, "", "-- one more; a comment\nCREATE TABLE more (name {text_key});\n"))
    monkeypatch.setattr(module, "scripts", lambda: more)
    monkeypatch.setattr(module, "LATEST", LATEST + 1)
    for _ in range(2):
        with open_store(shared_url) as store:
            assert store.reader().execute("SELECT * FROM more") == []
            assert store.reader().execute("SELECT version FROM schema_version") == [(LATEST + 1,)]
    monkeypatch.undo()
    with pytest.raises(StoreError, match="written by a newer one"):
        open_store(shared_url)


def test_a_migration_that_fails_leaves_the_store_as_it_was(shared_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration runs whole or not at all."""
    open_store(shared_url).close()
    broken = (*scripts(), (LATEST + 1, "", "CREATE TABLE more (name TEXT);\nCREATE NONSENSE;\n"))
    monkeypatch.setattr(module, "scripts", lambda: broken)
    monkeypatch.setattr(module, "LATEST", LATEST + 1)
    with pytest.raises(StoreError):
        open_store(shared_url)
    monkeypatch.undo()
    with open_store(shared_url) as store:
        assert store.reader().execute("SELECT version FROM schema_version") == [(LATEST,)]
        with pytest.raises(StoreError):
            store.reader().execute("SELECT * FROM more")


def test_many_may_open_a_new_store_at_once(shared_url: str) -> None:
    """Threads and processes that open the same new store at the same moment all find it ready."""
    program = "import sys; from signalbook.registry.store import open_store; print(open_store(sys.argv[1]).sequence())"
    processes = [
        subprocess.Popen([sys.executable, "-c", program, shared_url], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    with ThreadPoolExecutor(4) as pool:
        for store in pool.map(open_store, [shared_url] * 4):
            assert store.sequence() == 0
            store.close()
    assert [process.communicate(timeout=LONG)[0] for process in processes] == ["0\n"] * 4


@pytest.mark.parametrize(("undone", "following"), [(False, 3), (True, 8)])
def test_numbers_of_changes_go_on(
    undone: bool, following: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store of the time when SQLite kept the last number apart goes on with the next, after a restore too."""
    url = str(tmp_path / "old.db")
    monkeypatch.setattr(module, "scripts", lambda: scripts()[:8])
    monkeypatch.setattr(module, "LATEST", 8)
    with open_store(url) as old:
        add = "INSERT INTO changes (at, correlation, events) VALUES ('2026', ?, '[]')"
        for name in ("a", "b"):
            old.write(lambda db, name=name: db.execute(add, (name,)))
        if undone:  # as a restore left it
            old.write(lambda db: db.execute("UPDATE sqlite_sequence SET seq = 7 WHERE name = 'changes'"))
    monkeypatch.undo()
    with open_store(url) as store:
        store.write(lambda db: db.execute(add, ("c",)))
        named = "SELECT seq, correlation FROM changes WHERE length(correlation) = 1 ORDER BY seq"
        assert [(1, "a"), (2, "b"), (following, "c")] == store.reader().execute(named)
