"""Records: the one form that every input has, and how rows become records.

Rows come from a DataFrame, from Spark's Kafka connector or from Parquet files.

Rule 1: rows that have the columns `topic` and `value` are Kafka's records; else `value` is the whole input, as a line
of a file would be. It is text or bytes; a row with anything else is a record that says so.
Rule 2: whole columns become Python values once; a message is made of a row of Kafka only where somebody asks for it.
Only columns of the connector's own types are read so; any others are read row by row, which can say of one row what is
wrong with it.
Rule 3: each Parquet file is read by its own schema. What cannot be read of one is a record; the others are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, pairwise
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from signalbook.pipeline.files import Folder
from signalbook.protocols import Message

__all__ = [
    "CONNECTOR_COLUMNS",
    "LARGEST",
    "NO_VALUE",
    "KafkaRow",
    "ParquetPart",
    "Record",
    "inputs_of",
    "kafka_rows",
    "milliseconds",
    "read_parquet",
    "records_of",
    "share_parquet",
]

LARGEST = 64 << 20
CONNECTOR_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
NO_VALUE = "the input has no column value; it holds the message, or Kafka's value beside topic"
_AT_ONCE = 4096
# About how many bytes of Parquet files a task reads.
_PART = 32 << 20
_CHUNK = 1 << 20
_MOST_ROWS = 1 << 60
_TEXTS = frozenset({"string", "large_string", "string_view", "binary", "large_binary", "binary_view", "null"})
# What Arrow raises where a file, or a value in it, is not as it has to be.
_UNREADABLE = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError)
_TYPES: Mapping[str, Callable[[pa.DataType], bool]] = {
    "key": pa.types.is_binary,
    "value": pa.types.is_binary,
    "topic": pa.types.is_string,
    "partition": pa.types.is_integer,
    "offset": pa.types.is_integer,
}
_UNITS = {"s": 1_000_000, "ms": 1000, "us": 1}
# Of the years 2 to 9998: a moment of any zone is then one that Python has.
_FIRST, _LAST = -62_100_000_000_000_000, 253_360_000_000_000_000


class Record(msgspec.Struct, gc=False):
    """One input: its bytes, or a message that a client gave; or why it cannot be read, with what could be.

    `length` and `sha256` are those of what was too long to keep. One is made for each message, hence no dataclass.
    """

    data: bytes | None
    origin: str
    position: int
    reason: str | None = None
    length: int = 0
    sha256: str | None = None
    message: Message | None = None

    @property
    def given(self) -> bytes | Message:
        """What is matched."""
        return self.message if self.message is not None else self.data or b""

    @property
    def size(self) -> int:
        """How many bytes it holds, or held."""
        held = self.data if self.message is None else self.message.payload
        return self.length or len(held or b"")

    def kept(self) -> bytes | None:
        """The bytes that a dead letter keeps: as they came, or the message in its JSON form."""
        return self.data if self.message is None else self.message.to_bytes()


# One is made for each message, hence no dataclass.
class KafkaRow(msgspec.Struct, gc=False):
    """The fields of a record, the names and the values of its headers, and the place that it came from."""

    value: bytes | None
    key: bytes | None
    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int | None
    names: tuple[str, ...]
    values: Sequence[bytes | None]
    origin: str
    position: int

    def message(self) -> Message:
        """The message that the row is."""
        fields = {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "key": self.key,
            "headers": tuple(zip(self.names, self.values, strict=True)) or None,
        }
        return Message("KAFKA", {name: held for name, held in fields.items() if held is not None}, self.value)

    def record(self) -> Record:
        """The row as a record."""
        return Record(None, self.origin, self.position, message=self.message())


def milliseconds(moment: datetime) -> int:
    """A moment as Kafka counts it."""
    return round(moment.timestamp() * 1000)


def kafka_rows(batch: pa.RecordBatch) -> list[KafkaRow] | None:
    """The rows of a batch; None where its columns are not those of the connector, or a value is not as they say."""
    held = dict(zip(batch.schema.names, batch.columns, strict=True))
    if len(held) < batch.num_columns or not {"topic", "value"} <= held.keys():
        return None
    if not all(fits(held[name].type) for name, fits in _TYPES.items() if name in held):
        return None
    nothing: list[Any] = [None] * batch.num_rows
    try:
        plain = [held[name].to_pylist() if name in held else nothing for name in _TYPES]
        stamps = _timestamps(held["timestamp"]) if "timestamp" in held else nothing
        headers = (
            _header_columns(held["headers"]) if "headers" in held else ([()] * batch.num_rows, [()] * batch.num_rows)
        )
    except _UNREADABLE:
        return None
    return None if stamps is None or headers is None else _zip_rows(plain, stamps, *headers)


def _zip_rows(
    plain: Sequence[list[Any]], stamps: list[int | None], names: list[tuple[str, ...]], values: list[Any]
) -> list[KafkaRow]:
    keys, contents, topics, partitions, offsets = plain
    origins: dict[tuple[Any, Any], str] = {}
    rows = []
    for value, key, topic, partition, offset, stamp, named, held in zip(
        contents, keys, topics, partitions, offsets, stamps, names, values, strict=True
    ):
        place = (topic, partition)
        origin = origins.get(place)
        if origin is None:
            origin = origins[place] = f"{topic}/{partition}"
        rows.append(KafkaRow(value, key, topic, partition, offset, stamp, named, held, origin, offset or 0))
    return rows


def _timestamps(column: pa.Array) -> list[int | None] | None:
    """The moments as `milliseconds` gives them; None where one has no known zone or a year that Python lacks."""
    kind = column.type
    if not pa.types.is_timestamp(kind) or kind.tz is None or kind.unit not in _UNITS:
        return None
    pa.scalar(0, kind).as_py()  # it raises of a zone that nobody knows
    factor = _UNITS[kind.unit]
    counts = column.cast(pa.int64()).to_pylist()
    known = [count for count in counts if count is not None]
    if known and not _FIRST <= min(known) * factor <= max(known) * factor <= _LAST:
        return None
    return [None if count is None else round(count * factor / 1_000_000 * 1000) for count in counts]


def _header_columns(column: pa.Array) -> tuple[list[tuple[str, ...]], list[Any]] | None:
    """The names of each row's headers, and their values; None where they are not pairs of a text and bytes."""
    kind = column.type
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return None
    pairs = column.flatten()
    at, beside = (pairs.type.get_field_index(name) for name in ("key", "value"))
    if at < 0 or beside < 0 or pairs.null_count:
        return None
    members = pairs.flatten()
    keys, values = members[at], members[beside]
    if not pa.types.is_string(keys.type) or keys.null_count or not pa.types.is_binary(values.type):
        return None
    names, held = keys.to_pylist(), values.to_pylist()
    lengths = column.value_lengths().to_pylist()
    spans = list(pairwise(accumulate((length or 0 for length in lengths), initial=0)))
    return _shared([tuple(names[begin:end]) for begin, end in spans]), [held[begin:end] for begin, end in spans]


def _shared(names: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The same tuple where the names are the same, so that comparing them is short."""
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    return [known.setdefault(one, one) for one in names]


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
        yield Record(_as_text(values, position - start), origin, position, words)


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


def _as_text(values: pa.Array, at: int) -> bytes | None:
    """A value that is not a message, as text for the dead letter."""
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
        return Record(_as_text(row.column("value"), 0), origin, position, words)


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


# Parquet files.


@dataclass(frozen=True, slots=True)
class ParquetPart:
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


def share_parquet(paths: Sequence[str]) -> list[list[ParquetPart]]:
    """Share Parquet files out to tasks: the parts that each task reads."""
    tasks: list[list[ParquetPart]] = []
    current: list[ParquetPart] = []
    filled = 0
    for path in paths:
        folder, name = _folder_and_name(path)
        entry = folder.stat(name)
        size = 0 if entry is None else entry.size
        parts = max(1, -(-size // _PART))
        for number in range(parts):
            if current and filled + size // parts > _PART:
                tasks.append(current)
                current, filled = [], 0
            current.append(ParquetPart(path, number, parts))
            filled += size // parts
    return [*tasks, current] if current else tasks


def _folder_and_name(path: str) -> tuple[Folder, str]:
    above, _, name = path.rpartition("/")
    return Folder(above or "/"), name


def read_parquet(path: str, number: int = 0, parts: int = 1) -> Iterator[Record]:
    """The records of a Parquet file, or of one of so many parts of it."""
    folder, name = _folder_and_name(path)
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
        raise _Unread(NO_VALUE)
    return opened, [column for column in CONNECTOR_COLUMNS if column in names], groups


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
    """The records of a row group; where some cannot be read, one record in their place."""
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
    folder, name = _folder_and_name(path)
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
