from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import signalbook.clients
from signalbook.clients import MissingLibrary
from signalbook.errors import UsageError

FOLDER = Path(signalbook.clients.__file__).parent


@pytest.mark.parametrize(
    ("module", "package", "client", "extra"),
    [
        ("http", "httpx", "httpx", "http"),
        ("kafka", "confluent_kafka", "confluent-kafka", "kafka"),
        ("amqp", "proton", "python-qpid-proton", "amqp"),
        ("mqtt", "paho.mqtt.client", "paho-mqtt", "mqtt"),
        ("nats", "nats.aio.msg", "nats-py", "nats"),
    ],
)
def test_a_missing_library_is_named(
    module: str, package: str, client: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module without its library says which extra brings it, as a failure of ours and as one of importing."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingLibrary) as missing:
        runpy.run_path(str(FOLDER / f"{module}.py"))
    assert f"the package \"{client}\" is not installed: pip install 'signalbook[{extra}]'" == str(missing.value)
    assert isinstance(missing.value, UsageError)
    assert isinstance(missing.value, ImportError)


def test_the_package_needs_no_library() -> None:
    """`import signalbook.clients` imports none of the clients."""
    program = (
        "import sys, signalbook.clients; print({'httpx', 'confluent_kafka', 'proton', 'paho', 'nats'} & {*sys.modules})"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "set()" == said.strip()
