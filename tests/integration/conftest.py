"""Brokers for tests: marked with their names, started side by side when the first is needed, stopped at the end.

    @pytest.mark.broker("kafka")
    def test_something(kafka_broker: Broker) -> None: ...

A broker that cannot be had skips its tests with the reason; with SIGNALBOOK_REQUIRE=brokers it fails them. What was
skipped is also written into the file that SIGNALBOOK_SKIPPED names, for `make integration` to say at its end.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.brokers import Broker, Fleet, Unavailable
from tests.integration.processes import free_port, serving

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARIES = {"kafka": "confluent_kafka", "mosquitto": "paho", "nats": "nats", "rabbitmq": "proton"}
REQUIRED = "brokers" in os.environ.get("SIGNALBOOK_REQUIRE", "").split(",")


class Brokers:
    """The brokers of a run, with what is to be done about one that cannot be had."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._noted: set[str] = set()

    def get(self, name: str) -> Broker:
        """The broker, or the test ends here."""
        try:
            library = LIBRARIES[name]
            if importlib.util.find_spec(library) is None:
                raise Unavailable(f"the client's library {library} is not installed")
            return self._fleet.get(name)
        except Unavailable as reason:
            self._note(f"{name}: {reason}")
            if REQUIRED:
                pytest.fail(f"{name} is required and cannot be had: {reason}")
            pytest.skip(f"{name}: {reason}")

    def _note(self, line: str) -> None:
        notes = os.environ.get("SIGNALBOOK_SKIPPED")
        if notes and line not in self._noted:
            self._noted.add(line)
            with Path(notes).open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")


@pytest.fixture(scope="session")
def brokers(request: pytest.FixtureRequest) -> Iterator[Brokers]:
    """All brokers that the tests of this run are marked with."""
    marks = (mark for item in request.session.items for mark in item.iter_markers("broker"))
    # A run that is asked to end must stop them like one that is interrupted.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Fleet(name for mark in marks for name in mark.args) as fleet:
            yield Brokers(fleet)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def kafka_broker(brokers: Brokers) -> Broker:
    """Kafka."""
    return brokers.get("kafka")


@pytest.fixture(scope="session")
def mosquitto_broker(brokers: Brokers) -> Broker:
    """Mosquitto, for both versions of MQTT."""
    return brokers.get("mosquitto")


@pytest.fixture(scope="session")
def nats_broker(brokers: Brokers) -> Broker:
    """NATS with JetStream."""
    return brokers.get("nats")


@pytest.fixture(scope="session")
def rabbitmq_broker(brokers: Brokers) -> Broker:
    """RabbitMQ with AMQP 1.0."""
    return brokers.get("rabbitmq")


@pytest.fixture(scope="session")
def http_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `inbox`, served over HTTP."""
    port = free_port()
    command = [sys.executable, "-m", "granian", "--interface", "asgi", "--host", "127.0.0.1", "--port", str(port)]
    known = {**os.environ, "PYTHONPATH": str(ROOT)}
    with serving([*command, "tests.integration.inbox:app"], port, tmp_path_factory.mktemp("inbox"), env=known):
        yield f"http://127.0.0.1:{port}"
