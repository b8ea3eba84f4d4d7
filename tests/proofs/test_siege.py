"""scripts/siege.py can tell: what it must not let pass is told as wrong, what a kill has cut is not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from scripts import siege
from scripts.crash import Wrong
from scripts.siege import Client, Figures, Siege


class Fake(Siege):
    """A siege of a server that closes each connection after what it is told to say."""

    def __init__(self, *answers: bytes) -> None:
        self.figures = Figures()
        self._lock = threading.Lock()
        self._down: list[tuple[float, float]] = []
        self._answers = list(answers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for answer in self._answers:
            with self._listener.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(answer)

    def close(self) -> None:
        """End."""
        self._thread.join()
        self._listener.close()


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
BUSY = b"HTTP/1.1 503 Busy\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"


@pytest.fixture
def fake(request: pytest.FixtureRequest) -> Iterator[Fake]:
    """A server that gives these answers."""
    made = Fake(*request.param)
    yield made
    made.close()


@pytest.mark.parametrize("fake", [(OK,)], indirect=True)
def test_an_answer_is_noted(fake: Fake) -> None:
    """An answer counts, with the time it took."""
    assert {} == Client(fake, "read").ask("GET", "/")
    assert (1, 1) == (fake.figures.answered["read"], len(fake.figures.latencies["read"]))


@pytest.mark.parametrize("fake", [(BUSY,)], indirect=True)
def test_a_refusal_is_wrong(fake: Fake) -> None:
    """An honest request that is refused, for whatever reason, is told."""
    with pytest.raises(Wrong, match="503"):
        Client(fake, "read").ask("GET", "/")


@pytest.mark.parametrize("fake", [(b"",)], indirect=True)
def test_a_cut_without_a_kill_is_wrong(fake: Fake) -> None:
    """A connection that is dropped while nobody was killed is told."""
    with pytest.raises(Wrong, match="was cut"):
        Client(fake, "read").ask("GET", "/")


@pytest.mark.parametrize("fake", [(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", OK)], indirect=True)
def test_what_a_kill_cuts_is_sent_again(fake: Fake) -> None:
    """An answer that a kill has cut is no answer, and its time does not count."""
    fake._down = [(0.0, float("inf"))]
    assert {} == Client(fake, "read").ask("GET", "/")
    assert (1, 1, []) == (fake.figures.cut["read"], fake.figures.answered["read"], fake.figures.latencies["read"])
    assert any("1 answered" in line for line in fake.figures.lines())


def test_what_was_lost_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that is not there, and an event that a subscriber lacks, are told."""
    monkeypatch.setattr(siege, "_PATIENCE", 0.0)

    class Answers:
        def ask(self, method: str, path: str, *_: Any) -> Any:
            if not path.startswith("/changes"):
                return {"name": "old"}
            return [{"id": "1"}, {"id": "2"}] if "since=0&" in path else []

    fake = Fake()
    fake._threads, fake.done = [], threading.Event()
    monkeypatch.setattr(siege.time, "sleep", lambda _: None)
    with siege.Sink() as sink:
        sink.seen["1"] = None
        siege._finish(fake, Answers(), [{"/x": "new"}], [["1"]], "0", [sink])  # type: ignore[arg-type]
        sink.close()
    fake.close()
    assert 3 == len(fake.figures.wrong), fake.figures.wrong
    assert ["'new'", "a follower", "a sink lacks 1"] == [
        one for one in ("'new'", "a follower", "a sink lacks 1") if any(one in line for line in fake.figures.wrong)
    ]
