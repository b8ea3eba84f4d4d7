"""What a landing from Kafka costs, against Spark reading the same topic to a sink that does nothing.

Run: python bench/pipeline_kafka.py [--quick]. The events are those of bench/pipeline.py, in two topics: structured and
in binary mode. In one session, in turn: Spark's read with headers to `noop`, the landing of a DataFrame, and that of a
stream that ends (`land --once`), each into a lake of its own. The broker's own processor time is not counted.
It needs Kafka and Spark's connector, which Maven fetches the first time; where that fails it says SKIPPED, and ends
well.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
from pyspark.sql import DataFrame, SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from figures import Figure, cpu_seconds, show

from pipeline import DEFINITIONS, TYPES, Spent, catalog, measured, write_lines
from scripts.spark_jars import Unfetched, kafka_connector
from signalbook import spark as signalbook
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import LandingResult
from signalbook.pipeline.read.inputs import parse_source
from signalbook.pipeline.session import LocalSettings, open_session
from signalbook.pipeline.stream import StreamOptions, land_stream
from signalbook.pipeline.worker import PackedCatalog

Headers = list[tuple[str, str | bytes | None]]
ROOT = Path(__file__).resolve().parent.parent
PARTITIONS = 4
ROUNDS = 3  # the three take turns, and the least of each counts: other load only makes it worse
STRUCTURED: Headers = [("content-type", b"application/cloudevents+json")]
READ, FRAME, ONCE = "Spark's read to noop", "landing of a DataFrame", "landing with --once"


class Skipped(Exception):
    """Why nothing can be measured here."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker in a process of its own."""

    address: str
    pid: int


@contextmanager
def kafka() -> Iterator[Broker]:
    """Kafka while the block runs; raises `Skipped`."""
    command = [sys.executable, "-m", "scripts.brokers", "kafka"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip().removeprefix("kafka ")
            if not address or address.startswith("SKIPPED"):
                raise Skipped(address.removeprefix("SKIPPED ") or "the broker did not start")
            yield Broker(address, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def fill(broker: Broker, folder: Path, count: int) -> dict[str, str]:
    """Put so many events into two topics; these by their mode."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    topics = {mode: f"{mode}-{count}" for mode in ("structured", "binary")}
    admin = AdminClient({"bootstrap.servers": broker.address})
    made = admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics.values()])
    for one in made.values():
        one.result()
    lines = folder / f"lines-{count}"
    write_lines(lines, count)
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 50, "queue.buffering.max.messages": 10_000})
    for number, line in enumerate(line for file in sorted(lines.iterdir()) for line in file.read_bytes().splitlines()):
        headers, data = binary(orjson.loads(line))
        for topic, value, stated in ((topics["structured"], line, STRUCTURED), (topics["binary"], data, headers)):
            while True:
                try:
                    producer.produce(topic, value, partition=number % PARTITIONS, headers=stated)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    if producer.flush(120):
        raise SystemExit("the broker did not take all events")
    shutil.rmtree(lines)
    return topics


def binary(event: dict[str, Any]) -> tuple[Headers, bytes]:
    """An event in binary mode: headers and value."""
    data = orjson.dumps(event.pop("data"))
    headers: Headers = [("content-type", event.pop("datacontenttype").encode())]
    return headers + [(f"ce_{name}", value.encode()) for name, value in event.items()], data


def rows(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    """The topic as Spark reads it."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.address).option("subscribe", topic)
    return reader.option("includeHeaders", "true").load()


def ways(
    spark: SparkSession, broker: Broker, packed: PackedCatalog, topic: str, count: int, lake: Path
) -> dict[str, Any]:
    """What is compared: each reads the whole topic."""
    source = parse_source(f"kafka:{broker.address}/{topic}")

    def frame() -> None:
        check(signalbook.land(rows(spark, broker, topic), packed, str(lake)), count)

    def once() -> None:
        there = Lake.open(str(lake))
        check(land_stream(spark, lambda: packed, source, there, options=StreamOptions(once=True)), count)

    return {
        READ: lambda: rows(spark, broker, topic).write.format("noop").mode("overwrite").save(),
        FRAME: frame,
        ONCE: once,
    }


def check(result: LandingResult, count: int) -> None:
    """End where a landing is not what it has to be."""
    if not count == result.input == result.landed + result.dead or not result.landed or not result.dead:
        raise SystemExit(f"the landing does not add up: {result}")


def taken(broker: Broker, lake: Path, work: Callable[[], object]) -> Spent:
    """What a piece of work takes without the broker's part, in a new lake."""
    shutil.rmtree(lake, ignore_errors=True)
    before = cpu_seconds(broker.pid)
    spent = measured(work)
    return replace(spent, cpu=spent.cpu - (cpu_seconds(broker.pid) - before))


def compared(
    spark: SparkSession, broker: Broker, packed: PackedCatalog, topic: str, count: int, lake: Path
) -> dict[str, Spent]:
    """The least that each way took, in seconds and of processors."""
    turns = ways(spark, broker, packed, topic, count, lake)
    rounds = [{name: taken(broker, lake, work) for name, work in turns.items()} for _ in range(ROUNDS)]
    return {
        name: Spent(
            min(turn[name].wall for turn in rounds),
            min(turn[name].cpu for turn in rounds),
            max(turn[name].worker_mib for turn in rounds),
        )
        for name in turns
    }


def figures(mode: str, spent: dict[str, Spent], count: int) -> list[Figure]:
    """Messages a second and processor time a message of each, and how many times the read they are; no limit is set."""
    found = []
    for name, one in spent.items():
        found.append(Figure(f"{mode}: {name}, messages a second", count / one.wall, None, "absolute"))
        found.append(Figure(f"{mode}: {name}, CPU µs a message", one.cpu / count * 1e6, None, "absolute"))
    anchor = spent[READ]
    for name in (FRAME, ONCE):
        rate, cpu = anchor.wall / spent[name].wall, spent[name].cpu / anchor.cpu
        found.append(Figure(f"{mode}: {name}, messages a second, ratio", rate, None, READ))
        found.append(Figure(f"{mode}: {name}, CPU a message, ratio", cpu, None, READ))
    return found


def measure(broker: Broker, jars: str, master: str, count: int) -> list[Figure]:
    """Fill the topics, and compare on each."""
    spark = open_session(LocalSettings(master=master, memory="2g", more={"spark.jars": jars}))
    packed = catalog(DEFINITIONS)
    found = []
    try:
        with tempfile.TemporaryDirectory(prefix="signalbook-bench-") as place:
            folder = Path(place)
            few, many = fill(broker, folder, count // 10), fill(broker, folder, count)
            print(f"{count:,} events a topic of {PARTITIONS} partitions, {TYPES} types of {DEFINITIONS:,} definitions")
            for mode, topic in many.items():
                # Once for nothing: the JVM compiles what is hot, and workers compile the catalog.
                for work in ways(spark, broker, packed, few[mode], count // 10, folder / "lake").values():
                    taken(broker, folder / "lake", work)
                spent = compared(spark, broker, packed, topic, count, folder / "lake")
                for name, one in spent.items():
                    print(f"{mode:10} {name:24} {one.wall:8.1f} s  {one.cpu:8.1f} CPU s  {one.worker_mib:6.0f} MiB")
                found += figures(mode, spent, count)
    finally:
        spark.stop()
    return found


def main() -> int:
    """Measure and print; there is no limit to miss."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--messages", type=int, metavar="N", help="so many messages a topic")
    options = parser.parse_args()
    count = options.messages or (50_000 if options.quick else 500_000)
    try:
        jars = kafka_connector()
        with kafka() as broker:
            found = measure(broker, jars, options.master, count)
    except (Unfetched, Skipped) as reason:
        print(f"SKIPPED {' '.join(str(reason).split())}")
        return 0
    return 0 if show(found) else 1


if __name__ == "__main__":
    sys.exit(main())
