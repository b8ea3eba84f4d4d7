"""`KafkaRow`: one record of Kafka as its connector's columns have it, and the message that it is.

Rule 1: whole columns become Python values once; a message is made of a row only where somebody asks for it.
Rule 2: only columns of the connector's own types are taken so. Any others are for who reads row by row, and can say of
one what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, pairwise
from typing import Any

import msgspec
import pyarrow as pa

from signalbook.pipeline.reading import Record
from signalbook.wire import Message

__all__ = ["KafkaRow", "kafka_rows", "milliseconds"]

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
# What Arrow raises where a value is not as its type says.
_UNREADABLE = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError)


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
        """The row as an input that is judged."""
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
        stamps = _stamps(held["timestamp"]) if "timestamp" in held else nothing
        headers = _headers(held["headers"]) if "headers" in held else ([()] * batch.num_rows, [()] * batch.num_rows)
    except _UNREADABLE:
        return None
    return None if stamps is None or headers is None else _made(plain, stamps, *headers)


def _made(
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


def _stamps(column: pa.Array) -> list[int | None] | None:
    """The moments as `milliseconds` gives them; None where they are of no known zone, or beyond what Python has."""
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


def _headers(column: pa.Array) -> tuple[list[tuple[str, ...]], list[Any]] | None:
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
