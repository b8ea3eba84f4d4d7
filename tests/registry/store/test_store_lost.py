"""Connections that are lost before a commit: what was under way is run again."""

from __future__ import annotations

from typing import Any

import pytest

from signalbook.errors import StoreError
from signalbook.registry.store import Connection, Store
from signalbook.registry.store.connection import StoreLost
from signalbook.registry.store.store import MOST_LOST, WriteGroups


def lose(store: Store, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Lose the connection at the end of the next so many attempts of a group's first job."""
    plain = WriteGroups._first
    left = [times]

    def first(groups: WriteGroups, queued: Any, kept: Any) -> None:
        plain(groups, queued, kept)
        if left[0]:
            left[0] -= 1
            raise StoreLost("the connection was lost")

    monkeypatch.setattr(WriteGroups, "_first", first)


@pytest.mark.parametrize("times", [1, MOST_LOST])
def test_a_job_that_was_lost_is_run_again(store: Store, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """A job whose connection was lost before the commit is run again, and what it did is there once."""
    lose(store, monkeypatch, times)
    runs = 0

    def job(db: Connection) -> str:
        nonlocal runs
        runs += 1
        db.execute("INSERT INTO notes VALUES ('a', ?)", (runs,))
        return "done"

    assert ("done", times + 1) == (store.write(job), runs)
    assert [("a", times + 1)] == store.reader().execute("SELECT name, value FROM notes")


def test_a_job_is_not_run_for_ever(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many times it has failed, with nothing of it left, and the next job works."""
    lose(store, monkeypatch, MOST_LOST + 1)
    with pytest.raises(StoreError, match="lost"):
        store.write(lambda db: db.execute("INSERT INTO notes VALUES ('a', 1)"))
    store.write(lambda db: db.execute("INSERT INTO notes VALUES ('b', 1)"))
    assert [("b",)] == store.reader().execute("SELECT name FROM notes")


def test_a_read_that_was_lost_is_read_again(store: Store) -> None:
    """So is a read, from its beginning."""
    runs: list[int] = []

    def job(db: Connection) -> int:
        runs.append(1)
        if len(runs) <= MOST_LOST:
            raise StoreLost("the connection was lost")
        return len(runs)

    assert MOST_LOST + 1 == store.read(job)
