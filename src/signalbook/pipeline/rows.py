"""Rows of a DataFrame as records: those of Kafka's connector, or any that have a column `value`.

Rule 1: rows that have the columns `topic` and `value` are Kafka's records; else `value` is the whole input, as a line
of a file would be.
Rule 2: Spark counts the rows on its own side, and the count must be that of the records which were judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from signalbook.pipeline import worker
from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.land import REPORT, reported
from signalbook.pipeline.reading import Record
from signalbook.pipeline.worker import Job
from signalbook.wire import Message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CountedFrame", "parquet_frame", "records_of"]

_KAFKA = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
_ORIGIN, _POSITION = "_signalbook_origin", "_signalbook_position"


class CountedFrame:
    """A DataFrame that is judged, and counted by Spark on the way."""

    def __init__(self, rows: DataFrame, origin: str) -> None:
        if "value" not in rows.columns:
            raise PipelineError("the input has no column value; it holds the message, or Kafka's value beside topic")
        self._rows = rows
        self._origin = origin
        self._count: Callable[[], int | None] = lambda: None

    def frame(self, job: Job) -> DataFrame:
        """The plan that judges and writes."""
        from pyspark.sql import Observation, functions

        observation = Observation()
        self._count = lambda: int(observation.get["rows"])
        wanted = [name for name in (*_KAFKA, _ORIGIN, _POSITION) if name in self._rows.columns]
        counted = self._rows.select(*wanted).observe(observation, functions.count(functions.lit(1)).alias("rows"))
        return counted.mapInArrow(_task(job, self._origin), REPORT)

    def count(self) -> int | None:
        """How many rows Spark gave, once the plan has run."""
        return self._count()


def parquet_frame(spark: SparkSession, paths: Sequence[str]) -> CountedFrame:
    """The rows of Parquet files, each with its file and number."""
    rows = spark.read.parquet(*paths)
    return CountedFrame(
        rows.select("*", rows["_metadata.file_path"].alias(_ORIGIN), rows["_metadata.row_index"].alias(_POSITION)),
        "parquet",
    )


def records_of(batches: Iterable[pa.RecordBatch], origin: str) -> Iterator[Record]:
    """The records that rows hold."""
    number = 0
    for batch in batches:
        names = batch.schema.names
        if "topic" in names:
            yield from (_kafka_record(row) for row in batch.to_pylist())
            continue
        values = batch.column(names.index("value")).to_pylist()
        origins = batch.column(_ORIGIN).to_pylist() if _ORIGIN in names else [origin] * len(values)
        positions = batch.column(_POSITION).to_pylist() if _POSITION in names else range(number, number + len(values))
        number += len(values)
        for value, place, position in zip(values, origins, positions, strict=True):
            data = value.encode() if isinstance(value, str) else value
            yield Record(data, place, position, None if data is not None else "the value is null")


def _kafka_record(row: dict[str, Any]) -> Record:
    value = row["value"]
    stated = row.get("timestamp")
    fields = {
        "topic": row["topic"],
        "partition": row.get("partition"),
        "offset": row.get("offset"),
        "timestamp": None if stated is None else round(stated.timestamp() * 1000),
        "key": _octets(row.get("key")),
        "headers": tuple((one["key"], one["value"]) for one in row.get("headers") or ()),
    }
    present = {name: held for name, held in fields.items() if held is not None and held != ()}
    message = Message("KAFKA", present, _octets(value))
    return Record(None, f"{row['topic']}/{row.get('partition')}", row.get("offset") or 0, message=message)


def _octets(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _task(job: Job, origin: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield reported(worker.run(job, records_of(batches, origin)))

    return task
