"""What Kafka said about many records, as the column `transport` of their table.

Rule: it is the column that `transport_cells` makes of their messages one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from signalbook.pipeline.cells import MOMENT, TRANSPORT
from signalbook.pipeline.kafka_rows import KafkaRow
from signalbook.pipeline.repeated import Repeated
from signalbook.wire import FIELDS

__all__ = ["kafka_transport"]

_PROTOCOL = Repeated("KAFKA", pa.string())
_NO_SCHEMA = Repeated(None, pa.int64())
_write_headers = FIELDS["KAFKA"]["headers"].kind.write


def kafka_transport(rows: Sequence[KafkaRow]) -> pa.Array:
    """The column of the records; raises what Arrow raises where a value does not fit."""
    count = len(rows)
    stamps = pa.array([row.timestamp for row in rows], pa.int64())
    columns = {
        "protocol": _PROTOCOL.of(count),
        "address": pa.array([row.topic for row in rows], pa.string()),
        "key": pa.array([row.key for row in rows], pa.binary()),
        "partition": pa.array([row.partition for row in rows], pa.int32()),
        "offset": pa.array([row.offset for row in rows], pa.int64()),
        "timestamp": stamps.cast(pa.timestamp("ms", tz="UTC")).cast(MOMENT),
        "schemaid": _NO_SCHEMA.of(count),
        "fields": pa.array(list(map(_fields, rows)), pa.string()),
    }
    return pa.StructArray.from_arrays([columns[one.name] for one in TRANSPORT], fields=list(TRANSPORT))


def _fields(row: KafkaRow) -> bytes | None:
    """The fields that have no column of their own, as they stand on paper."""
    written: dict[str, Any] = {}
    if row.timestamp is not None:
        written["timestamp"] = row.timestamp
    if row.names:
        written["headers"] = _headers(row)
    return orjson.dumps(written) if written else None


def _headers(row: KafkaRow) -> Any:
    try:
        return [(name, value.decode()) for name, value in zip(row.names, row.values, strict=True)]  # type: ignore[union-attr]  # see below
    except (AttributeError, UnicodeDecodeError):  # a header without a value, or one that is no text
        return _write_headers(list(zip(row.names, row.values, strict=True)))[1]
