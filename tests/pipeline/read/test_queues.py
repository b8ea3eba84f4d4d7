import socket
import threading
from collections.abc import Iterator

import pytest

from signalbook.errors import UsageError
from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.read.queues import connect, parse_queue

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
