"""A name for the latest commit: it changes with every one, whoever made it, and with nothing else."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from signalbook.registry.store import Connection, open_store
from signalbook.registry.store.wal_index import WalIndex


def write(db: Connection) -> None:
    """One row more."""
    db.execute("INSERT INTO changes (at, correlation, events) VALUES ('', '', '')")


def test_every_commit_changes_the_name(tmp_path: Path) -> None:
    """Commits of this store, of another one on the file, and of another process; a read and a rollback do not."""
    path = str(tmp_path / "x.db")
    with open_store(path) as store, open_store(path) as other:
        store.write(write)
        seen = [store.state()]
        assert seen[0] is not None
        store.read(lambda db: db.execute("SELECT * FROM changes"))
        other.read(lambda db: db.execute("SELECT * FROM changes"))
        assert seen[0] == store.state()
        store.write(write)
        seen.append(store.state())
        other.write(write)
        seen.append(store.state())
        script = f"import sqlite3; c = sqlite3.connect({path!r}); c.execute('DELETE FROM changes'); c.commit()"
        subprocess.run([sys.executable, "-c", script], check=True)
        seen.append(store.state())
        with closing(sqlite3.connect(path, isolation_level=None)) as plain:
            plain.execute("BEGIN IMMEDIATE")
            plain.execute("DELETE FROM settings")
            plain.execute("ROLLBACK")
        assert seen[3] == store.state()
        assert 4 == len(set(seen))


def test_a_checkpoint_loses_no_commit(tmp_path: Path) -> None:
    """The log may begin anew; the next commit still has another name."""
    with open_store(str(tmp_path / "x.db")) as store:
        seen = set()
        for _ in range(5):
            store.write(write)
            seen.add(store.state())
            with closing(sqlite3.connect(tmp_path / "x.db")) as plain:
                plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert 5 == len(seen)


def test_what_cannot_be_told_is_none(tmp_path: Path) -> None:
    """No index, one that is too short, and one in the middle of a commit."""
    index = WalIndex(str(tmp_path / "x.db"))
    assert index.state() is None
    shm = tmp_path / "x.db-shm"
    shm.write_bytes(b"short")
    assert index.state() is None
    shm.write_bytes(b"a" * 48 + b"b" * 48)
    assert index.state() is None
    shm.write_bytes(b"a" * 96)
    assert b"a" * 48 == index.state()
    index.close()
    index.close()
