"""Rows as records: of a DataFrame or of Parquet files, those of Kafka's connector or any that have a column `value`.

Rule 1: rows that have the columns `topic` and `value` are Kafka's records; else `value` is the whole input, as a line
of a file would be. It is text or bytes; a row with anything else is a record that says so.
Rule 2: Spark counts the rows of a DataFrame on its own side, and the count must be that of the records which were
judged. A Parquet file says itself how many rows it has.
Rule 3: each Parquet file is read by its own schema. What cannot be read of one is a record; the others are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from signalbook.pipeline import worker
from signalbook.pipeline.files import Folder, PipelineError
from signalbook.pipeline.land import REPORT, reported
from signalbook.pipeline.read.records import LARGEST, KafkaRow, Record, kafka_rows, milliseconds
from signalbook.pipeline.worker import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CountedFrame", "ParquetFrame", "inputs_of", "parquet_frame", "read_parquet", "records_of"]

_KAFKA = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
_NO_VALUE = "the input has no column value; it holds the message, or Kafka's value beside topic"
_AT_ONCE = 4096
# About how many bytes of Parquet files a task reads.
_PART = 32 << 20
_CHUNK = 1 << 20
_MOST_ROWS = 1 << 60
_TEXTS = frozenset({"string", "large_string", "string_view", "binary", "large_binary", "binary_view", "null"})
# What Arrow raises where a file, or a value in it, is not as it has to be.
_UNREADABLE = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError)


class CountedFrame:
    """A DataFrame that is judged, and counted by Spark on the way."""

    def __init__(self, rows: DataFrame, origin: str) -> None:
        if "value" not in rows.columns:
            raise PipelineError(_NO_VALUE)
        held = rows.schema["value"].dataType.typeName()
        if held not in ("string", "binary", "varchar", "char", "void"):
            raise PipelineError(f"the column value is of the type {held}; a message is text or bytes")
        self._rows = rows
        self._origin = origin
        self._count: Callable[[], int | None] = lambda: None

    def frame(self, job: Job) -> DataFrame:
        """The plan that judges and writes."""
        from pyspark.sql import Observation, functions

        observation = Observation()
        self._count = lambda: int(observation.get["rows"])
        wanted = [name for name in _KAFKA if name in self._rows.columns]
        counted = self._rows.select(*wanted).observe(observation, functions.count(functions.lit(1)).alias("rows"))
        return counted.mapInArrow(_task(job, self._origin), REPORT)

    def count(self) -> int | None:
        """How many rows Spark gave, once the plan has run."""
        return self._count()


@dataclass(frozen=True, slots=True)
class _Part:
    """Every row group of a file whose number leaves this one when it is divided by how many parts there are."""

    path: str
    number: int = 0
    parts: int = 1


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group: its number, that of its first row, and how many it says that it has."""

    number: int
    start: int
    count: int


class _Unread(Exception):
    """A part of a Parquet file that cannot be read, in words."""


class ParquetFrame:
    """Parquet files that are judged, each by itself."""

    def __init__(self, spark: SparkSession, paths: Sequence[str]) -> None:
        self._spark = spark
        self._tasks = _shared_out(paths)

    def frame(self, job: Job) -> DataFrame:
        """The plan that judges and writes."""
        tasks = self._tasks
        return self._spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(_parquet_task(job, tasks), REPORT)

    def count(self) -> int | None:
        """Nothing: the rows of each file are counted where it is read."""
        return None


def parquet_frame(spark: SparkSession, paths: Sequence[str]) -> ParquetFrame:
    """The rows of Parquet files, each with its file and number."""
    return ParquetFrame(spark, paths)


def _shared_out(paths: Sequence[str]) -> list[list[_Part]]:
    tasks: list[list[_Part]] = []
    current: list[_Part] = []
    filled = 0
    for path in paths:
        folder, name = _place(path)
        entry = folder.stat(name)
        size = 0 if entry is None else entry.size
        parts = max(1, -(-size // _PART))
        for number in range(parts):
            if current and filled + size // parts > _PART:
                tasks.append(current)
                current, filled = [], 0
            current.append(_Part(path, number, parts))
            filled += size // parts
    return [*tasks, current] if current else tasks


def _place(path: str) -> tuple[Folder, str]:
    above, _, name = path.rpartition("/")
    return Folder(above or "/"), name


def read_parquet(path: str, number: int = 0, parts: int = 1) -> Iterator[Record]:
    """The records of a Parquet file, or of one of so many parts of it."""
    folder, name = _place(path)
    try:
        file = folder.open(name)
    except FileNotFoundError:
        if number == 0:
            yield Record(None, path, 0, "the file is gone")
        return
    with file:
        try:
            opened, wanted, groups = _opened(file)
        except _Unread as error:
            whole = _kept(path, 0, f"the Parquet file cannot be read: {error}")
            if number == 0:
                yield whole
            return
        for group in groups[number::parts]:
            yield from _read_group(opened, path, group, wanted)


def _opened(file: Any) -> tuple[pq.ParquetFile, list[str], list[_Group]]:
    try:
        opened = pq.ParquetFile(file)
        names = opened.schema_arrow.names
        groups = _groups(opened)
    except _UNREADABLE as error:
        raise _Unread(_first_line(error)) from None
    if "value" not in names:
        raise _Unread(_NO_VALUE)
    return opened, [column for column in _KAFKA if column in names], groups


def _groups(opened: pq.ParquetFile) -> list[_Group]:
    """The row groups of a file."""
    found, start = [], 0
    for number in range(opened.num_row_groups):
        count = opened.metadata.row_group(number).num_rows
        if not 0 <= count <= _MOST_ROWS - start:
            raise ValueError(f"it says that it has {count:,} rows")
        found.append(_Group(number, start, count))
        start += count
    return found


def _read_group(opened: pq.ParquetFile, path: str, group: _Group, wanted: list[str]) -> Iterator[Record]:
    """The records of a row group; where some cannot be read, one that stands for them."""
    read = 0
    batches = opened.iter_batches(_AT_ONCE, [group.number], columns=wanted, use_threads=False)
    try:
        while (batch := _next(batches)) is not None:
            yield from map(_record, _inputs(batch, path, group.start + read))
            read += batch.num_rows
        words = f"the Parquet file says that it has {group.count:,} rows there, and {read:,} were read"
    except _Unread as error:
        words = f"the Parquet file cannot be read from here on: {error}"
    if read != group.count:
        whole = _kept(path, group.start + read, words)
        yield whole if group.count == opened.metadata.num_rows and read == 0 else replace(whole, data=None)


def _next(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    try:
        return next(batches, None)
    except _UNREADABLE as error:
        raise _Unread(_first_line(error)) from None


def _kept(path: str, position: int, words: str) -> Record:
    """A file that cannot be read, as it is; raises where it cannot even be copied: then it is not the file's fault."""
    folder, name = _place(path)
    kept: list[bytes] | None = []
    length, digest = 0, hashlib.sha256()
    with folder.open(name) as file:
        while part := bytes(file.read(_CHUNK)):
            length += len(part)
            digest.update(part)
            kept = None if kept is None or length > LARGEST else [*kept, part]
    data = None if kept is None else b"".join(kept)
    return Record(data or None, path, position, words, length, digest.hexdigest())


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0][:500] if lines else type(error).__name__


def records_of(batches: Iterable[pa.RecordBatch], origin: str) -> Iterator[Record]:
    """The records that rows hold."""
    return map(_record, inputs_of(batches, origin))


def inputs_of(batches: Iterable[pa.RecordBatch], origin: str) -> Iterator[Record | KafkaRow]:
    """The same, with what Kafka's connector gave as it is: a record is made of it where one is needed."""
    number = 0
    for batch in batches:
        yield from _inputs(batch, origin, number)
        number += batch.num_rows


def _record(one: Record | KafkaRow) -> Record:
    return one if isinstance(one, Record) else one.record()


def _inputs(batch: pa.RecordBatch, origin: str, start: int) -> Iterator[Record | KafkaRow]:
    batch = _in_bytes(batch)
    if "topic" in batch.schema.names:
        yield from kafka_rows(batch) or _kafka_records(batch, origin, start)
        return
    values = batch.column("value")
    if pa.types.is_binary(values.type):
        for position, data in enumerate(values.to_pylist(), start):
            yield Record(data, origin, position, None if data is not None else "the value is null")
        return
    words = f"the value is of the type {values.type}; a message is text or bytes"
    for position in range(start, start + batch.num_rows):
        yield Record(_text(values, position - start), origin, position, words)


def _in_bytes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with texts as the bytes that they are: what says that it is UTF-8 need not be."""
    for at, name in enumerate(batch.schema.names):
        column = batch.column(at)
        if name not in ("value", "key"):
            continue
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if str(kind) in _TEXTS or pa.types.is_fixed_size_binary(kind):
            plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            batch = batch.set_column(at, name, plain.cast(pa.binary()))
    return batch


def _text(values: pa.Array, at: int) -> bytes | None:
    """A value that is not a message, as a text for whoever looks at the dead letter."""
    try:
        value = values[at].as_py()
    except _UNREADABLE:
        return None
    return None if value is None else str(value).encode("utf-8", "replace")


def _kafka_records(batch: pa.RecordBatch, origin: str, start: int) -> Iterator[Record]:
    try:
        found = [_kafka_record(row) for row in batch.to_pylist()]
    except (*_UNREADABLE, AttributeError):
        found = [_kafka_row(batch.slice(at, 1), origin, start + at) for at in range(batch.num_rows)]
    yield from found


def _kafka_row(row: pa.RecordBatch, origin: str, position: int) -> Record:
    """The record of one row, or why there is none."""
    try:
        return _kafka_record(row.to_pylist()[0])
    except (*_UNREADABLE, AttributeError) as error:
        words = f"the row is not a Kafka record: {_first_line(error)}"
        return Record(_text(row.column("value"), 0), origin, position, words)


def _kafka_record(row: dict[str, Any]) -> Record:
    stated = row.get("timestamp")
    for name, kind in (("value", bytes), ("key", bytes), ("topic", str), ("partition", int), ("offset", int)):
        if not isinstance(row.get(name), (kind, type(None))):
            raise TypeError(f"the column {name} holds {row[name]!r}")
    headers = [(one["key"], _octets(one["value"])) for one in row.get("headers") or ()]
    topic, partition, offset = row["topic"], row.get("partition"), row.get("offset")
    return KafkaRow(
        value=row["value"],
        key=row.get("key"),
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=None if stated is None else milliseconds(stated),
        names=tuple(name for name, _ in headers),
        values=[value for _, value in headers],
        origin=f"{topic}/{partition}",
        position=offset or 0,
    ).record()


def _octets(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _task(job: Job, origin: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield reported(worker.run(job, inputs_of(batches, origin)))

    return task


def _parquet_task(
    job: Job, tasks: Sequence[Sequence[_Part]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                parts = tasks[number]
                records = (record for one in parts for record in read_parquet(one.path, one.number, one.parts))
                yield reported(worker.run(job, records))

    return task
