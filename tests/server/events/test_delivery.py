"""What deliveries keep in order beside the sinks: who delivers, and what is kept."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from signalbook import Registry
from signalbook.registry.store import open_store
from signalbook.server.events import delivery
from signalbook.server.events.delivery import Courier, _Lease
from signalbook.server.events.sinks import Sinks
from tests.patience import until


def test_one_process_delivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first has it and keeps it; another takes over when it is released, or when its beat stands still."""
    clock = itertools.count(step=delivery._TAKEOVER / 8)  # it goes on by a little each time it is looked at
    monkeypatch.setattr(delivery.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(delivery, "_BEAT", 0)
    with open_store(str(tmp_path / "s.db")) as one, open_store(str(tmp_path / "s.db")) as other:
        first, second = _Lease(one), _Lease(other)
        assert (True, False) == (first.held(), second.held())
        for _ in range(20):
            assert (True, False) == (first.held(), second.held())
        assert [False] * 3 == [second.held() for _ in range(3)]
        assert until(second.held)
        assert not first.held()
        assert (False, True) == (first.is_mine(one.reader()), second.is_mine(one.reader()))
        second.release()
        assert first.held()


def test_old_changes_are_trimmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A running server forgets changes that are older than it was told to keep, all but the newest."""
    monkeypatch.setattr(delivery, "_TRIM_EVERY", 0.05)
    monkeypatch.setattr(delivery, "_IDLE_TICK", 0.05)
    with Registry.open(tmp_path / "s.db") as registry:
        for number in range(5):
            registry.put(f"/messagegroups/g{number}", {})
        courier = Courier(registry.store, Sinks(), keep_days=1e-9)
        courier.start()
        assert until(lambda: registry.store.reader().one("SELECT COUNT(*) FROM changes") == (1,))
        courier.stop()


@pytest.mark.parametrize(("failures", "least", "most"), [(0, 0.4, 1), (3, 3, 5), (30, 299, 301)])
def test_pauses_grow(failures: int, least: float, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause doubles with each failure, up to five minutes."""
    monkeypatch.setattr(delivery, "_now", lambda: 1_000_000)
    one = delivery.Subscription("x", "http://a", {}, {}, failures=failures)
    after = delivery._failed(one, "no")
    assert least < (after.nextattempt - 1_000_000) / 1000 < most
