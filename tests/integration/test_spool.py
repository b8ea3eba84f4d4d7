"""MQTT with QoS 1, JetStream and AMQP to a spool: whatever is killed or cut, what was sent is there."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.brokers import Broker
from tests.patience import LONG

COUNT, KILLS, CUTS = 400, 5, 3
Send = Callable[[int], None]


def _mqtt(broker: Broker, topic: str) -> Iterator[Send]:
    from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5

    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    yield lambda number: client.publish(topic, b"%d" % number, qos=1).wait_for_publish(30)
    client.disconnect()
    client.loop_stop()


def _jetstream(broker: Broker, subject: str) -> Iterator[Send]:
    import nats

    loop = asyncio.new_event_loop()
    client = loop.run_until_complete(nats.connect(f"nats://{broker.address}"))
    stream = client.jetstream()
    loop.run_until_complete(stream.add_stream(name=subject, subjects=[subject]))
    yield lambda number: loop.run_until_complete(stream.publish(subject, b"%d" % number)) and None
    loop.run_until_complete(client.close())
    loop.close()


def _amqp(broker: Broker, address: str) -> Iterator[Send]:
    import proton
    from proton.utils import BlockingConnection

    options = {"allowed_mechs": "PLAIN", "allow_insecure_mechs": True}
    connection = BlockingConnection(f"amqp://guest:guest@{broker.address}", timeout=LONG, **options)
    sender = connection.create_sender(address)
    yield lambda number: sender.send(proton.Message(body=b"%d" % number, durable=True, inferred=True)) and None
    connection.close()


class Wire:
    """A way to a broker that can be cut: whoever talks over it is hung up on, and nobody gets through meanwhile."""

    def __init__(self, port: int) -> None:
        self._broker = port
        self._ends: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.whole = True
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                near, _ = self._server.accept()
                if not self.whole:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._broker))
                self._ends += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    @staticmethod
    def _carry(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while found := one.recv(65536):
                other.sendall(found)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self, seconds: float) -> None:
        """Nobody gets through for so long."""
        self.whole = False
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        time.sleep(seconds)
        self.whole = True

    def close(self) -> None:
        self.cut(0)
        self._server.close()
        for end in self._ends:
            end.close()


@contextlib.contextmanager
def spooler(source: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command, as a process."""
    words = ["spool", "--from", source, "--to", str(folder), "--roll-seconds", "0.5"]
    environment = {**os.environ, "SIGNALBOOK_SPOOL_USER": "guest", "SIGNALBOOK_SPOOL_PASSWORD": "guest"}
    if not source.startswith("amqp"):
        del environment["SIGNALBOOK_SPOOL_USER"]
    process = subprocess.Popen([sys.executable, "-m", "signalbook", *words], env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def spooled(folder: Path) -> list[int]:
    """The numbers that are in the spool, in files with a name and in those being written."""
    found = []
    for file in [*folder.glob(".*.open"), *folder.glob("*.jsonl")]:
        with contextlib.suppress(FileNotFoundError):  # it has got its name meanwhile
            found += [line for line in file.read_bytes().split(b"\n") if line.endswith(b"}")]
    return [int(json.loads(line)["payload"]) for line in found]


@dataclass(frozen=True)
class Sent:
    """A queue of a real broker, and who sends to it; `source` names it at an address, by a name."""

    broker: Broker
    send: Callable[[Broker, str], Iterator[Send]]
    source: str


@pytest.fixture(
    params=[
        pytest.param(("mosquitto_broker", _mqtt, "mqtt:{}/{}/all"), id="mqtt", marks=pytest.mark.broker("mosquitto")),
        pytest.param(("nats_broker", _jetstream, "nats:{}/{}"), id="jetstream", marks=pytest.mark.broker("nats")),
        pytest.param(("rabbitmq_broker", _amqp, "amqp:{}//queue/{}"), id="amqp", marks=pytest.mark.broker("rabbitmq")),
    ]
)
def sent(request: pytest.FixtureRequest) -> Sent:
    """Each broker that spools are made of."""
    fixture, send, source = request.param
    return Sent(request.getfixturevalue(fixture), send, source)


def until_it_reads(publish: Send, folder: Path) -> None:
    """The first one makes the subscription or the queue, from when on nothing may be lost."""
    publish(0)
    while 0 not in spooled(folder):
        time.sleep(0.1)
        publish(0)


def test_nothing_is_lost(sent: Sent, tmp_path: Path) -> None:
    """While messages are sent, the spooler is killed again and again; each message is in the spool in the end."""
    place = sent.source.format(sent.broker.address, "killed")
    sender = sent.send(sent.broker, place.partition("/")[2])
    publish = next(sender)
    with spooler(place, tmp_path):
        until_it_reads(publish, tmp_path)
    numbers = iter(range(1, COUNT))
    for _ in range(KILLS):
        with spooler(place, tmp_path):
            for number in itertools.islice(numbers, COUNT // (KILLS + 1)):
                publish(number)
                time.sleep(0.005)
    for number in numbers:
        publish(number)
    with spooler(place, tmp_path) as last:
        while set(range(COUNT)) - set(spooled(tmp_path)):
            assert last.poll() is None
            time.sleep(0.2)
    next(sender, None)
    assert set() == set(range(COUNT)) - set(spooled(tmp_path))


def test_a_connection_that_breaks(sent: Sent, tmp_path: Path) -> None:
    """While messages are sent, the way to the broker is cut again and again; the one spooler goes on to the last."""
    with contextlib.closing(Wire(sent.broker.port)) as wire:
        place = sent.source.format(f"127.0.0.1:{wire.port}", "cut")
        sender = sent.send(sent.broker, place.partition("/")[2])
        publish = next(sender)
        with spooler(place, tmp_path) as process:
            until_it_reads(publish, tmp_path)
            for number in range(1, COUNT):
                publish(number)
                if number % (COUNT // CUTS) == 0:
                    wire.cut(1)
                time.sleep(0.005)
            while set(range(COUNT)) - set(spooled(tmp_path)):
                assert process.poll() is None
                time.sleep(0.2)
            process.terminate()
            assert 0 == process.wait(LONG)
    next(sender, None)
    assert set() == set(range(COUNT)) - set(spooled(tmp_path))
    assert [] == list(tmp_path.glob(".*.open"))
