"""A queue that breaks: nothing that was taken is lost, and the connection is made again."""

from pathlib import Path

import pytest

from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.read import queues
from signalbook.pipeline.read.inputs import list_files, parse_source
from signalbook.pipeline.read.queues import Lost, Queue, Spool
from signalbook.protocols import Message

SOURCE = Queue("fake", "host", 1, "name")


class Broker:
    """Numbers from 0 on; what was not acknowledged is given again to whoever connects next."""

    def __init__(self, *failures: str) -> None:
        self.failures = list(failures)
        self.waiting = list(range(6))
        self.connections = 0
        self.open = False

    def __call__(self, source: Queue) -> "Broker":
        self.connections += 1
        if self._fails("connect"):
            raise PipelineError("host:1 cannot be reached: nobody is there")
        self.open = True
        return self

    def _fails(self, where: str) -> bool:
        found = self.failures[:1] == [where]
        if found:
            self.failures.pop(0)
        return found

    def take(self) -> list[Message]:
        if self._fails("take"):
            raise Lost("taken away")
        return [Message("NATS", {"subject": "s"}, b"%d" % number) for number in self.waiting[:2]]

    def acknowledge(self) -> None:
        if self._fails("acknowledge"):
            raise Lost("not told")
        del self.waiting[:2]

    def close(self) -> None:
        assert self.open
        self.open = False


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(queues, "_STEP_SECONDS", 0.01)


def spooled(folder: Path) -> list[int]:
    """The numbers in the spool, in the order of their coming."""
    files = list_files(parse_source(f"spool:{folder}"))
    return [
        int(Message.from_json(line).payload or b"")
        for file in files
        for line in Path(file.path).read_bytes().splitlines()
    ]


@pytest.mark.parametrize(
    ("failures", "numbers", "connections", "said"),
    [
        ([], [0, 1, 2, 3, 4, 5], 1, []),
        (["take"], [0, 1, 2, 3, 4, 5], 2, ["host:1 is lost: taken away", "host:1 is available again"]),
        (["acknowledge"], [0, 1, 0, 1, 2, 3], 2, ["host:1 is lost: not told", "host:1 is available again"]),
        (
            ["take", "connect", "connect"],
            [0, 1, 2, 3, 4, 5],
            4,
            [
                "host:1 is lost: taken away",
                "host:1 cannot be reached: nobody is there; next try in 0.02 s",
                "host:1 cannot be reached: nobody is there; next try in 0.04 s",
                "host:1 is available again",
            ],
        ),
    ],
)
def test_a_broker_that_is_lost(
    failures: list[str],
    numbers: list[int],
    connections: int,
    said: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is tried again until it is there; what it was not told of comes twice, and nothing is left out."""
    broker = Broker(*failures)
    monkeypatch.setattr(queues, "CONNECTIONS", {"fake": broker})
    told: list[str] = []
    with Spool(str(tmp_path)) as target:
        assert 6 == queues.spool(SOURCE, target, count=6, notice=told.append)
    assert (numbers, connections, said) == (spooled(tmp_path), broker.connections, told)


def test_the_first_connection_must_come_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is wrong is told at once, not tried for ever."""
    monkeypatch.setattr(queues, "CONNECTIONS", {"fake": Broker("connect")})
    with Spool(str(tmp_path)) as target, pytest.raises(PipelineError, match="nobody is there"):
        queues.spool(SOURCE, target)


def test_idle_ends_while_a_broker_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits only so long waits so long for the broker too."""
    monkeypatch.setattr(queues, "CONNECTIONS", {"fake": Broker("take", *["connect"] * 1000)})
    with Spool(str(tmp_path)) as target:
        assert 0 == queues.spool(SOURCE, target, idle=0.2)


def test_stopped_while_a_broker_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is lost was closed, and is not closed again."""

    def stop(words: str) -> None:
        if "next try" in words:
            raise KeyboardInterrupt

    monkeypatch.setattr(queues, "CONNECTIONS", {"fake": Broker("take", "connect")})
    with Spool(str(tmp_path)) as target, pytest.raises(KeyboardInterrupt):
        queues.spool(SOURCE, target, notice=stop)
