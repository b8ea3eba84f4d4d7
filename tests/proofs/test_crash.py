"""Whatever the server acknowledged is there after a SIGKILL, whole: scripts/crash.py, and that it can tell."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from scripts import crash

KILLS = int(os.environ.get("SIGNALBOOK_KILLS", "3"))
# The same for the same code, so that a change is taken or refused for what it changes; `make soak` looks further.
FURTHER = random.randrange(1 << 32) if os.environ.get("SIGNALBOOK_TEST_PROFILE") == "random" else 20_261_115
SEED = int(os.environ.get("SIGNALBOOK_SEED", "0")) or FURTHER


def torture(store: str, kills: int) -> None:
    """Kill so often, and say how to do it again."""
    print(f"SIGNALBOOK_SEED={SEED}")
    acknowledged, _ = crash.torture(store, kills, seed=SEED, workers=2)
    assert acknowledged > kills


def test_killed_on_sqlite(tmp_path: Path) -> None:
    """No acknowledged write is lost, none is half there, no epoch goes back; the file stays sound."""
    torture(str(tmp_path / "signalbook.db"), KILLS)
    with closing(sqlite3.connect(tmp_path / "signalbook.db")) as database:
        assert [("ok",)] == database.execute("PRAGMA integrity_check").fetchall()


@pytest.mark.postgres
def test_killed_on_postgres(postgres_url: str) -> None:
    """The same on PostgreSQL."""
    torture(postgres_url, KILLS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_fifty_times_on_sqlite(tmp_path: Path) -> None:
    """The same fifty times."""
    torture(str(tmp_path / "signalbook.db"), 50)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(1800)
def test_killed_fifty_times_on_postgres(postgres_url: str) -> None:
    """The same fifty times on PostgreSQL."""
    torture(postgres_url, 50)


# Servers that are broken on purpose: one acknowledges and commits a little later, one commits row by row.
EARLY = """
import threading
import time
from signalbook.registry.store import store
from signalbook.cli import main
write = store.Store.write
turn = threading.Lock()

class Back(Exception):
    pass

def early(self, job):
    if threading.current_thread() is threading.main_thread():
        return write(self, job)
    kept = []
    def dry(db):
        kept.append(job(db))
        raise Back
    def later():
        time.sleep(0.02)
        write(self, job)
        turn.release()
    turn.acquire()
    try:
        write(self, dry)
    except Back:
        threading.Thread(target=later).start()
    return kept[0]

store.Store.write = early
main()
"""
PIECEMEAL = """
import time
from signalbook.registry import rows
from signalbook.cli import main
save = rows.save

def piecemeal(db, row, *content):
    save(db, row, *content)
    if row.key[0] == "c":
        db.execute("COMMIT")
        time.sleep(0.05)
        db.execute("BEGIN IMMEDIATE")

rows.save = piecemeal
main()
"""


@pytest.mark.parametrize("program", [EARLY, PIECEMEAL], ids=["acknowledged too early", "written piece by piece"])
def test_it_can_fail(tmp_path: Path, program: str) -> None:
    """A server that acknowledges before it commits, or commits half a request, is found out."""
    with pytest.raises(crash.Wrong, match=r"acknowledged|count is|the index finds"):
        crash.torture(str(tmp_path / "signalbook.db"), 30, seed=SEED, writers=1, command=("-c", program))


def test_forgetting_is_found_out() -> None:
    """A server that keeps everything in memory is found out at the first kill."""
    with pytest.raises(crash.Wrong, match="acknowledged"):
        crash.torture("memory:", 1, seed=SEED)
