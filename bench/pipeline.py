"""What a landing costs on Spark, against a bare copy and against the designs that people write by hand.

Run: python bench/pipeline.py [--quick]. The messages are CloudEvents of about 500 bytes as JSON lines, of fifty types
out of 10,000 definitions; each definition has a constant type, a template and a JSON Schema. A landing matches them,
validates payloads, writes a typed table each and dead letters, and commits. The anchor is Spark's own copy of the same
lines to Parquet, in the same session. By hand: staged by type and each type rewritten with its columns; and cached with
one filtered write a type. Neither of those matches templates, validates, keeps what is bad, or commits.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from pyspark.sql import DataFrame, SparkSession, functions

sys.path.insert(0, str(Path(__file__).resolve().parent))
from figures import Figure, show

from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land_files import land_files
from signalbook.pipeline.read.inputs import parse_source
from signalbook.pipeline.session import LocalSettings, open_session
from signalbook.pipeline.worker import PackedCatalog

TYPES = 50
DEFINITIONS = 10_000
FILES = 16
ROUNDS = 3  # copy and landing take turns, and the cheapest of each counts: other load only makes it worse
DATA = "vin STRING, speed DOUBLE, km BIGINT, at STRING, position STRUCT<lat: DOUBLE, lon: DOUBLE>, note STRING"
EVENT = f"id STRING, type STRING, source STRING, time STRING, data STRUCT<{DATA}>"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Spent:
    """What something took: seconds on the clock, of all processors, and the most memory that a worker held."""

    wall: float
    cpu: float
    worker_mib: float


def schema() -> dict[str, Any]:
    """The payload of every definition."""
    number = {"type": "number"}
    return {
        "type": "object",
        "properties": {
            "vin": {"type": "string", "minLength": 3},
            "speed": {"type": "number", "minimum": 0},
            "km": {"type": "integer"},
            "at": {"type": "string"},
            "position": {"type": "object", "properties": {"lat": number, "lon": number}, "required": ["lat", "lon"]},
            "note": {"type": "string"},
        },
        "required": ["vin", "speed", "km"],
    }


def catalog(count: int) -> PackedCatalog:
    """So many definitions, of which the first fifty are in use."""
    messages = {
        f"t{number}": {
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {
                "type": {"value": f"com.example.t{number}"},
                "source": {"value": "/fleet/{vin}/unit"},
            },
            "dataschemaformat": "JsonSchema/draft-07",
            "dataschema": schema(),
        }
        for number in range(count)
    }
    return PackedCatalog.of({"messagegroups": {"bench": {"messages": messages}}})


def write_lines(folder: Path, count: int) -> None:
    """So many events in files, one in fifty of them bad."""
    folder.mkdir(parents=True)
    chance = random.Random(1)
    for part in range(FILES):
        with (folder / f"{part}.jsonl").open("wb") as file:
            for number in range(count * part // FILES, count * (part + 1) // FILES):
                file.write(orjson.dumps(_event(number, chance)) + b"\n")


def _event(number: int, chance: random.Random) -> dict[str, Any]:
    vin = f"VIN{number % 5000:06}"
    data = {
        "vin": vin,
        "speed": round(chance.random() * 130, 1) if number % 50 else -1,
        "km": number,
        "at": "2024-05-17T12:30:00Z",
        "position": {"lat": round(chance.random() * 90, 6), "lon": round(chance.random() * 90, 6)},
        "note": "a few words about the way, the weather and the load " * 4,
    }
    return {
        "specversion": "1.0",
        "id": f"{number:012}",
        "type": f"com.example.t{chance.randrange(TYPES)}",
        "source": f"/fleet/{vin}/unit",
        "time": "2024-05-17T12:30:00Z",
        "datacontenttype": "application/json",
        "data": data,
    }


def measured(work: Callable[[], object]) -> Spent:
    """What a piece of work takes, in this process and all below it, those included that end meanwhile."""
    meter, stop = _Meter(), threading.Event()

    def watch() -> None:
        while not stop.wait(0.1):
            meter.look()

    watcher = threading.Thread(target=watch, daemon=True)
    before = meter.look()
    watcher.start()
    began = time.perf_counter()
    work()
    wall = time.perf_counter() - began
    stop.set()
    watcher.join()
    return Spent(wall, meter.look() - before, meter.peak)


class _Meter:
    """The processor time of every process that was ever seen, and the most memory of a worker."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self.peak = 0.0

    def look(self) -> float:
        for pid in _family(os.getpid()):
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            self._seen[pid] = int(fields[11]) + int(fields[12])
            if _is_worker(pid):
                self.peak = max(self.peak, _resident(pid))
        return sum(self._seen.values()) / _TICKS


def _family(pid: int) -> list[int]:
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [member for child in task.read_text().split() for member in _family(int(child))]
        except OSError:
            continue
    return found


def _is_worker(pid: int) -> bool:
    try:
        return pid != os.getpid() and b"python" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return False


def _resident(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20
    except OSError:
        return 0


def copy(spark: SparkSession, lines: Path, target: Path) -> None:
    """The anchor: the lines as one column of Parquet."""
    _written(spark.read.text(str(lines)), target / "copy")


def staged(spark: SparkSession, lines: Path, target: Path) -> None:
    """By hand: staged by type, then each type read back and written with its columns."""
    rows = spark.read.text(str(lines)).select("value", functions.get_json_object("value", "$.type").alias("type"))
    rows.write.mode("overwrite").option("compression", "zstd").partitionBy("type").parquet(str(target / "stage"))
    for number in range(TYPES):
        part = spark.read.parquet(str(target / "stage" / f"type=com.example.t{number}"))
        _written(_typed(part), target / f"staged-{number}")


def filtered(spark: SparkSession, lines: Path, target: Path) -> None:
    """By hand: parsed and cached, then one filtered write a type."""
    rows = _typed(spark.read.text(str(lines))).cache()
    for number in range(TYPES):
        _written(rows.where(rows["type"] == f"com.example.t{number}"), target / f"filtered-{number}")
    rows.unpersist(blocking=True)


def _typed(rows: DataFrame) -> DataFrame:
    return rows.select(functions.from_json("value", EVENT).alias("event"), "value").select("event.*", "value")


def _written(rows: DataFrame, target: Path) -> None:
    rows.write.mode("overwrite").option("compression", "zstd").parquet(str(target))


def land(spark: SparkSession, packed: PackedCatalog, lines: Path, target: Path) -> None:
    """Ours: matched, validated, typed tables, dead letters, committed."""
    lake = target / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    result = land_files(spark, packed, parse_source(f"events:{lines}"), Lake.open(str(lake)))
    if result.input != result.landed + result.dead or not result.landed or not result.dead:
        raise SystemExit(f"the landing does not add up: {result}")


def main() -> int:
    """Measure and print; 0 where every limit is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages, and no filtered writes")
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    large = 200_000 if options.quick else 2_000_000
    spark = open_session(LocalSettings(master=options.master, memory="2g"))
    with tempfile.TemporaryDirectory(prefix="signalbook-bench-") as name:
        folder = Path(name)
        few, many = folder / "few", folder / "many"
        write_lines(few, large // 10)
        write_lines(many, large)
        bytes_each = sum(file.stat().st_size for file in many.iterdir()) / large
        print(f"{large:,} events of {bytes_each:.0f} bytes, {TYPES} types of {DEFINITIONS:,} definitions")
        catalogs = {count: catalog(count) for count in (TYPES, DEFINITIONS)}
        # Once for nothing: the JVM compiles what is hot, and workers compile the catalog.
        copy(spark, few, folder)
        for packed in catalogs.values():
            land(spark, packed, few, folder)
        turns = {
            "copy": lambda: copy(spark, many, folder),
            "land": lambda: land(spark, catalogs[DEFINITIONS], many, folder),
        }
        taken = [{name: measured(work) for name, work in turns.items()} for _ in range(ROUNDS)]
        spent = {
            **{name: min((turn[name] for turn in taken), key=lambda one: one.cpu) for name in turns},
            "land, 50 definitions": measured(lambda: land(spark, catalogs[TYPES], many, folder)),
            "land, a tenth": measured(lambda: land(spark, catalogs[DEFINITIONS], few, folder)),
            "staged": measured(lambda: staged(spark, many, folder)),
        }
        if not options.quick:
            spent["filtered"] = measured(lambda: filtered(spark, many, folder))
    spark.stop()
    for name, one in spent.items():
        print(f"{name:24} {one.wall:8.1f} s  {one.cpu:8.1f} CPU s  worker {one.worker_mib:6.0f} MiB")
    return 0 if show(figures(spent, large)) else 1


def figures(spent: dict[str, Spent], large: int) -> list[Figure]:
    """What the measurements are held to."""
    ours, anchor = spent["land"], spent["copy"]
    found = [
        Figure("landing, CPU", ours.cpu / anchor.cpu, 8, "Spark's copy of the lines to Parquet"),
        Figure("landing, wall", ours.wall / anchor.wall, 8, "Spark's copy of the lines to Parquet"),
        Figure("10,000 definitions", ours.cpu / spent["land, 50 definitions"].cpu, 1.25, "50 definitions, CPU"),
        Figure("ten times the messages", ours.cpu / spent["land, a tenth"].cpu / 10, 1.15, "a tenth of them, CPU"),
        Figure("staged and rewritten", spent["staged"].wall / ours.wall, 1.3, "our landing, wall", at_least=True),
        Figure("memory of a worker, MiB", ours.worker_mib, 512, "absolute"),
        Figure("messages a second", large / ours.wall, None, "absolute"),
    ]
    if "filtered" in spent:
        found.append(
            Figure("one filtered write a type", spent["filtered"].wall / ours.wall, 3, "our landing, wall", True)
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
