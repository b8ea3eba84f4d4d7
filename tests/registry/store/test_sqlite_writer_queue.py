from __future__ import annotations

import threading
from pathlib import Path

import pytest

from signalbook.errors import StoreError
from signalbook.registry.store import StoreBusy
from signalbook.registry.store.sqlite import WriterQueue
from tests.patience import LONG


def test_the_one_who_writes_waits_behind_the_one_who_waits(tmp_path: Path) -> None:
    """A writer that comes back at once does not pass one that was waiting."""
    path = str(tmp_path / "x.db")
    first, second = WriterQueue(path, 5), WriterQueue(path, 5)
    lock = threading.Lock()
    order: list[str] = []
    at_the_gate = threading.Event()

    def take() -> bool:
        at_the_gate.set()
        return lock.acquire(blocking=False)

    def waits() -> None:
        second.enter(take)
        order.append("second")
        lock.release()

    first.enter(lambda: lock.acquire(blocking=False))
    order.append("first")
    thread = threading.Thread(target=waits)
    thread.start()
    assert at_the_gate.wait(LONG)
    lock.release()
    first.enter(lambda: lock.acquire(blocking=False))
    order.append("first again")
    thread.join()
    assert order == ["first", "second", "first again"]
    first.close()
    second.close()
    second.close()


def test_a_lock_that_is_never_free_is_busy(tmp_path: Path) -> None:
    """Who waits too long for the lock gives up, and lets the next one try."""
    path = str(tmp_path / "x.db")
    one, other = WriterQueue(path, 0.1), WriterQueue(path, 0.1)
    with pytest.raises(StoreBusy, match="locked by another writer"):
        one.enter(lambda: False)
    other.enter(lambda: True)
    one.close()
    other.close()


def test_a_place_without_a_queue_is_named(tmp_path: Path) -> None:
    """A lock that cannot be made is a StoreError with its path."""
    with pytest.raises(StoreError, match=r"x\.db-turn['\"] cannot be opened"):
        WriterQueue(str(tmp_path / "none" / "x.db"), 1)
