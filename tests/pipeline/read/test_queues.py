import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from signalbook.errors import UsageError
from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.read import queues
from signalbook.pipeline.read.inputs import list_files, parse_source
from signalbook.pipeline.read.queues import BrokerQueue, ConnectionLost, Spool, connect, parse_queue
from signalbook.protocols import Message

pytest.importorskip("nats", reason="the package nats-py is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:.*iscoroutinefunction.*:DeprecationWarning")

INFO = b'INFO {"server_id": "x", "version": "2.10.0", "max_payload": 1024, "auth_required": true}\r\n'
VIOLATION = b"-ERR 'Authorization Violation'\r\n"


@pytest.mark.parametrize("text", ["mqtt:host/topic", "kafka:h:1/t", "nats:h:4222", "amqp:h:x/q"])
def test_what_names_no_queue(text: str) -> None:
    """A queue has a broker that we know, host, port and name."""
    with pytest.raises(UsageError, match="does not name a queue"):
        parse_queue(text)


def refusal(queue: str) -> str:
    """The words in which one is told that a broker does not take us."""
    with pytest.raises(PipelineError) as told:
        connect(parse_queue(queue))
    return str(told.value)


@pytest.mark.parametrize("scheme", ["mqtt", "nats"])
def test_nobody_is_there(free_port: int, scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    """A broker that is not there is told at once, in one line that says why."""
    words = refusal(f"{scheme}:127.0.0.1:{free_port}/fleet")
    assert (True, []) == (words.startswith(f"127.0.0.1:{free_port} cannot be"), caplog.records)
    assert "refused" in words.lower() or "connect call failed" in words.lower()
    assert 1 == len(words.splitlines())


@pytest.fixture
def refusing() -> Iterator[int]:
    """The port of a NATS that takes no user."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_refuse, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def _refuse(server: socket.socket) -> None:
    try:
        while True:
            client, _ = server.accept()
            with client:
                client.sendall(INFO)
                client.recv(4096)
                client.sendall(VIOLATION)
    except OSError:
        return


def test_nobody_is_let_in(refusing: int, caplog: pytest.LogCaptureFixture) -> None:
    """A NATS that refuses the user is not asked for minutes, and its reason is told."""
    words = refusal(f"nats:127.0.0.1:{refusing}/fleet")
    assert (True, []) == ("authorization" in words.lower(), caplog.records)


# What Mosquitto answers to CONNECT: not authorized (MQTT 5.0, 3.2.2.2).
NOT_AUTHORIZED = bytes([0x20, 3, 0, 0x87, 0])


def test_mqtt_lets_nobody_in() -> None:
    """A broker that refuses the user by MQTT is told at once; it used to be asked for ever, in silence."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse() -> None:
            client, _ = server.accept()
            with client:
                client.recv(4096)
                client.sendall(NOT_AUTHORIZED)

        threading.Thread(target=refuse, daemon=True).start()
        words = refusal(f"mqtt:127.0.0.1:{server.getsockname()[1]}/fleet")
    assert words.endswith("refuses the login: Not authorized")


MESSAGES = [Message("NATS", {"subject": f"s{number}"}, b"%d" % number) for number in range(3)]


def lines(folder: Path) -> list[bytes]:
    """What a landing would read."""
    files = list_files(parse_source(f"spool:{folder}"))
    return [line for file in files for line in Path(file.path).read_bytes().splitlines()]


def test_messages_are_named_when_a_file_is_full(tmp_path: Path) -> None:
    """A file that is being written is hidden; full, or closed, it is there."""
    with Spool(str(tmp_path)), pytest.raises(PipelineError, match="another process"):
        Spool(str(tmp_path))
    with Spool(str(tmp_path), roll_bytes=1, roll_seconds=999) as full:
        full.append(MESSAGES[:1])
        assert [MESSAGES[0].to_bytes()] == lines(tmp_path)
    with Spool(str(tmp_path), roll_seconds=999) as slow:
        slow.append(MESSAGES[1:])
        assert 1 == len(lines(tmp_path))
    assert {message.to_bytes() for message in MESSAGES} == set(lines(tmp_path))


def test_a_spool_is_for_whoever_spools(tmp_path: Path) -> None:
    """Its files are made so that no one else can read them."""
    before = os.umask(0)
    try:
        with Spool(str(tmp_path)) as spool:
            spool.append(MESSAGES[:1])
            assert {0o600} == {one.stat().st_mode & 0o777 for one in tmp_path.glob(".*.open")}
    finally:
        os.umask(before)
    assert [0o600] == [one.stat().st_mode & 0o777 for one in tmp_path.glob("*.jsonl")]


def test_an_old_file_is_named(tmp_path: Path) -> None:
    """A file does not wait for more messages for ever."""
    with Spool(str(tmp_path), roll_seconds=0) as spool:
        spool.append(MESSAGES[:1])
        spool.roll_if_due()
        assert 1 == len(lines(tmp_path))


def test_what_a_killed_spooler_left(tmp_path: Path) -> None:
    """Whole lines are kept; one that was begun was never acknowledged, and goes."""
    whole = MESSAGES[0].to_bytes()
    (tmp_path / ".20260101T000000-0000.jsonl.open").write_bytes(whole + b"\n" + whole[:9])
    (tmp_path / ".20260101T000001-0000.jsonl.open").write_bytes(whole[:9])
    with Spool(str(tmp_path)):
        assert [whole] == lines(tmp_path)


SOURCE = BrokerQueue("fake", "host", 1, "name")


class Broker:
    """Numbers from 0 on; what was not acknowledged is given again to whoever connects next."""

    def __init__(self, *failures: str) -> None:
        self.failures = list(failures)
        self.waiting = list(range(6))
        self.connections = 0
        self.open = False

    def __call__(self, source: BrokerQueue) -> "Broker":
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
            raise ConnectionLost("taken away")
        return [Message("NATS", {"subject": "s"}, b"%d" % number) for number in self.waiting[:2]]

    def acknowledge(self) -> None:
        if self._fails("acknowledge"):
            raise ConnectionLost("not told")
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
