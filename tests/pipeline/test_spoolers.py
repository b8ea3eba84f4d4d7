import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.spool import Spool
from signalbook.pipeline.spoolers import parse_queue, spool

pytest.importorskip("nats", reason="the package nats-py is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:.*iscoroutinefunction.*:DeprecationWarning")

INFO = b'INFO {"server_id": "x", "version": "2.10.0", "max_payload": 1024, "auth_required": true}\r\n'
VIOLATION = b"-ERR 'Authorization Violation'\r\n"


def seconds_to_refusal(port: int, folder: Path) -> tuple[float, str]:
    """How long it takes to be told that a broker does not take us, and the words."""
    begun = time.monotonic()
    with Spool(str(folder)) as files, pytest.raises(PipelineError) as told:
        spool(parse_queue(f"nats:127.0.0.1:{port}/fleet"), files, idle=1)
    return time.monotonic() - begun, str(told.value)


def test_nobody_is_there(free_port: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A NATS that is not there is told at once, in one line that says why."""
    seconds, words = seconds_to_refusal(free_port, tmp_path)
    assert (True, True, []) == (seconds < 10, words.startswith(f"127.0.0.1:{free_port} cannot be"), caplog.records)
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


def test_nobody_is_let_in(refusing: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A NATS that refuses the user is not asked for minutes, and its reason is told."""
    seconds, words = seconds_to_refusal(refusing, tmp_path)
    assert (True, True, []) == (seconds < 10, "authorization" in words.lower(), caplog.records)
