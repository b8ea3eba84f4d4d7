"""Kafka to tables with Spark's own connector: streamed, killed, started again, each record once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from scripts.brokers import Broker
from scripts.spark_jars import Unfetched, kafka_connector
from tests.integration.conftest import REQUIRED
from tests.integration.processes import missing
from tests.patience import until
from tests.pipeline.lakes import document, event, places

pytestmark = [pytest.mark.broker("kafka"), pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
COUNT = 3000


def connector() -> str:
    """The jars of Spark's connector; where they cannot be had, the test is skipped by name, or fails if required."""
    try:
        return kafka_connector()
    except Unfetched as reason:
        line = f"spark-sql-kafka: {' '.join(str(reason).split())}"
        missing(line, required=REQUIRED)


def land(broker: Broker, topic: str, folder: Path, *more: str) -> list[str]:
    """The command."""
    source = f"kafka:{broker.address}/{topic}"
    words = [
        "land",
        "--catalog",
        str(folder / "catalog.json"),
        "--from",
        source,
        "--to",
        str(folder / "lake"),
        "--json",
    ]
    jars = connector()
    return [sys.executable, "-m", "signalbook", *words, "--master", "local[2]", "--conf", f"spark.jars={jars}", *more]


def produce(broker: Broker, topic: str, numbers: range) -> None:
    """Put events into a topic, some of them bad."""
    import confluent_kafka

    producer = confluent_kafka.Producer({"bootstrap.servers": broker.address})
    headers = [("content-type", b"application/cloudevents+json")]
    for number in numbers:
        value = b"oops" if number % 10 == 0 else event(number)
        producer.produce(topic, value, key=b"%d" % number, headers=headers)
        producer.poll(0)
    assert 0 == producer.flush(60)


def test_kafka_to_tables(kafka_broker: Broker, tmp_path: Path) -> None:
    """Records that come while a stream runs, dies and runs again are in the tables exactly once."""
    topic = f"cars-{uuid.uuid4().hex}"
    (tmp_path / "catalog.json").write_text(json.dumps(document()), encoding="utf-8")
    produce(kafka_broker, topic, range(COUNT))
    once = subprocess.run(land(kafka_broker, topic, tmp_path), capture_output=True, text=True, timeout=600)
    assert 0 == once.returncode, once.stderr
    result: dict[str, Any] = json.loads(once.stdout.splitlines()[-1])
    assert (COUNT, COUNT * 9 // 10, COUNT // 10) == (result["input"], result["landed"], result["dead"])
    for turn in range(2):
        stream = subprocess.Popen(land(kafka_broker, topic, tmp_path, "--stream"), start_new_session=True)
        try:
            produce(kafka_broker, topic, range(COUNT * (turn + 1), COUNT * (turn + 2)))
            wait_for(tmp_path / "lake", COUNT * (turn + 1) + 1)
        finally:
            os.killpg(stream.pid, signal.SIGKILL)
            stream.wait()
    subprocess.run(land(kafka_broker, topic, tmp_path), check=True, stdout=subprocess.DEVNULL, timeout=600)
    found = places(tmp_path / "lake")
    assert (COUNT * 3, {1}) == (found.total(), set(found.values()))


def wait_for(lake: Path, count: int) -> None:
    """Wait until so many records are in the tables."""
    assert until(lambda: places(lake).total() >= count), "the stream does not land anything"
