"""MQTT with QoS 1, JetStream and AMQP to a spool: whatever is killed, what was sent is there."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts.brokers import Broker

COUNT, KILLS = 400, 5
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
    connection = BlockingConnection(f"amqp://guest:guest@{broker.address}", timeout=30, **options)
    sender = connection.create_sender(address)
    yield lambda number: sender.send(proton.Message(body=b"%d" % number, durable=True, inferred=True)) and None
    connection.close()


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


@pytest.mark.parametrize(
    ("fixture", "send", "source"),
    [
        pytest.param("mosquitto_broker", _mqtt, "mqtt:{}/spooled/all", marks=pytest.mark.broker("mosquitto")),
        pytest.param("nats_broker", _jetstream, "nats:{}/spooled", marks=pytest.mark.broker("nats")),
        pytest.param("rabbitmq_broker", _amqp, "amqp:{}//queue/spooled", marks=pytest.mark.broker("rabbitmq")),
    ],
)
def test_nothing_is_lost(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    fixture: str,
    send: Callable[[Broker, str], Iterator[Send]],
    source: str,
) -> None:
    """While messages are sent, the spooler is killed again and again; each message is in the spool in the end."""
    broker: Broker = request.getfixturevalue(fixture)
    place = source.format(broker.address)
    name = source.partition("/")[2]
    # The first one makes the subscription or the queue, from when on nothing may be lost.
    sender = send(broker, name)
    publish = next(sender)
    with spooler(place, tmp_path):
        publish(0)
        deadline = time.monotonic() + 60
        while 0 not in spooled(tmp_path):
            assert time.monotonic() < deadline
            time.sleep(0.1)
            if name.startswith("spooled/"):
                publish(0)
    numbers = iter(range(1, COUNT))
    for _ in range(KILLS):
        with spooler(place, tmp_path):
            for number in itertools.islice(numbers, COUNT // (KILLS + 1)):
                publish(number)
                time.sleep(0.005)
    for number in numbers:
        publish(number)
    with spooler(place, tmp_path) as last:
        deadline = time.monotonic() + 60
        while set(range(COUNT)) - set(spooled(tmp_path)) and time.monotonic() < deadline:
            assert last.poll() is None
            time.sleep(0.2)
    next(sender, None)
    assert set() == set(range(COUNT)) - set(spooled(tmp_path))
