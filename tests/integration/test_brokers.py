from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts import brokers
from scripts.brokers import Broker, Fleet, Unavailable
from tests.integration import conftest

LISTEN = "import socket, sys, time; held = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(60)"


@contextmanager
def listens() -> Iterator[Broker]:
    """A broker that only listens."""
    with brokers._folder("listens") as folder:
        (port,) = brokers._free_ports(1)
        with brokers._running("listens", [sys.executable, "-c", LISTEN, str(port)], folder, port):
            yield Broker("listens", port, folder)


@contextmanager
def ends() -> Iterator[Broker]:
    """A broker that ends at once."""
    with brokers._folder("ends") as folder:
        (port,) = brokers._free_ports(1)
        with brokers._running("ends", [sys.executable, "-c", "print('no licence')"], folder, port):
            yield Broker("ends", port, folder)


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """A fleet of both."""
    monkeypatch.setattr(brokers, "BROKERS", {"listens": listens, "ends": ends})
    monkeypatch.setattr(conftest, "LIBRARIES", {"listens": "socket", "ends": "socket", "other": "no_such_library"})
    with Fleet(["listens", "ends", "listens"]) as started:
        yield started


def test_a_broker_runs_until_its_block_ends() -> None:
    """It answers meanwhile; afterwards neither its port nor its folder is there."""
    with listens() as broker:
        assert brokers._answers(broker.port)
        assert f"127.0.0.1:{broker.port}" == broker.address
        assert broker.folder.is_dir()
    assert not brokers._answers(broker.port)
    assert not broker.folder.exists()


def test_one_that_does_not_start_says_why(fleet: Fleet) -> None:
    """The others run; asking for this one raises its last words."""
    assert brokers._answers(fleet.get("listens").port)
    with pytest.raises(Unavailable, match="no licence"):
        fleet.get("ends")


def test_what_is_missing_is_noted_by_name(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A test of a broker that cannot be had is skipped and the reason noted once; where it is required, it fails."""
    notes = tmp_path / "notes"
    monkeypatch.setenv("SIGNALBOOK_SKIPPED", str(notes))
    monkeypatch.setattr(conftest, "REQUIRED", False)
    found = conftest.Brokers(fleet)
    for name in ("ends", "ends", "other"):
        with pytest.raises(pytest.skip.Exception, match=name):
            found.get(name)
    lines = notes.read_text(encoding="utf-8").splitlines()
    assert ["ends", "other"] == [line.partition(":")[0] for line in lines]
    monkeypatch.setattr(conftest, "REQUIRED", True)
    with pytest.raises(pytest.fail.Exception, match="ends is required"):
        found.get("ends")


def test_nobody_but_root_installs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to install, a missing program is named with its package."""
    monkeypatch.setattr(brokers.os, "geteuid", lambda: 1000)
    with pytest.raises(Unavailable, match="apt install no-such-package"):
        brokers._program("no-such-program", package="no-such-package")
