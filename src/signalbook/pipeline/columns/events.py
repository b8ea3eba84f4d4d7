"""`EventColumns`: events that the fast path took, as columns of their table.

Rule 1: the columns are those that `Layout` makes row by row. What all events of a shape share is written once; what
differs is in the groups of the shape's pattern already.
Rule 2: a row is an event in parts: what the groups of the pattern took, and where in it the data is.
Rule 3: the data is validated here, that of many events together. Events whose data is not valid are given back.
Rule 4: bare events and those that Kafka carries differ only in where the data is and in their transport. The column
`transport` is the one that `transport_cells` makes of the messages one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from signalbook.pipeline.columns.payloads import PayloadColumns, reader, validated
from signalbook.pipeline.read.records import KafkaRow
from signalbook.pipeline.tables import MOMENT, TEXTS, TRANSPORT, Layout, Repeated, gives_back, moment
from signalbook.protocols import FIELDS
from signalbook.schemas.json_schema.schema import JsonSchema

__all__ = ["BARE", "BINARY", "STRUCTURED", "ColumnShape", "EventCarrier", "EventColumns", "Parts", "kafka_transport"]

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
        "fields": pa.array(list(map(_other_fields, rows)), pa.string()),
    }
    return pa.StructArray.from_arrays([columns[one.name] for one in TRANSPORT], fields=list(TRANSPORT))


def _other_fields(row: KafkaRow) -> bytes | None:
    """The fields that have no column of their own, in the JSON form of messages."""
    written: dict[str, Any] = {}
    if row.timestamp is not None:
        written["timestamp"] = row.timestamp
    if row.names:
        written["headers"] = _header_values(row)
    return orjson.dumps(written) if written else None


def _header_values(row: KafkaRow) -> Any:
    try:
        return [(name, value.decode()) for name, value in zip(row.names, row.values, strict=True)]  # type: ignore[union-attr]  # see below
    except (AttributeError, UnicodeDecodeError):  # a header without a value, or one that is not a text
        return _write_headers(list(zip(row.names, row.values, strict=True)))[1]


# The spellings of moments that a column gives back: not of the year 0, in UTC, with no, three or six digits of which
# the last three are not 000.
_NOT_000 = "(?:[1-9][0-9]{2}|[0-9][1-9][0-9]|[0-9]{2}[1-9])"
_PLAIN = rf"^(?:0{_NOT_000}|[1-9][0-9]{{3}})-[0-9]{{2}}-[0-9]{{2}}T[0-9:]{{8}}(?:\.(?:[0-9]{{3}})?{_NOT_000})?Z$"
_WHITE = b" \t\r\n"
_SPACE = ord(" ")


class ColumnShape(Protocol):
    """What all messages of a shape share; for an event, that of `messages.fast`."""

    @property
    def xid(self) -> str:
        """The definition."""
        ...

    @property
    def accepts(self) -> Callable[[Any], bool]:
        """Whether a value is valid data."""
        ...

    @property
    def schema(self) -> Any:
        """The schema of the data; None where there is none."""
        ...

    @property
    def longest(self) -> int:
        """The longest record that is judged without being counted; a longer one takes the general path."""
        ...

    @property
    def has_data(self) -> bool:
        """Whether there is data."""
        ...

    @property
    def attributes(self) -> tuple[tuple[str, str | int], ...]:
        """The attributes in their order, each with its text or the group that takes it."""
        ...

    @property
    def names(self) -> tuple[tuple[str, int], ...]:
        """The captured names with their groups."""
        ...


# A message that has a shape: the shape, what its groups took, and where in its document the data begins.
Parts = tuple[ColumnShape, tuple[str, ...], int]


@dataclass(frozen=True, slots=True)
class EventCarrier:
    """How events came: their data, given a row, and their transport; whether white space around data is part of it."""

    content: Callable[[tuple[Any, ...]], bytes | None]
    transport: Callable[[Sequence[Any]], pa.Array] | None = None
    keeps_white: bool = False


def _in_document(row: tuple[Any, ...]) -> bytes | None:
    begins = row[0][2]
    return row[1].data[begins:-1] if begins else None


def _in_value(row: tuple[Any, ...]) -> bytes | None:
    begins = row[0][2]
    return row[1].value[begins:-1] if begins else None


BARE = EventCarrier(_in_document)
STRUCTURED = EventCarrier(_in_value, kafka_transport)
BINARY = EventCarrier(lambda row: row[1].value, kafka_transport, keeps_white=True)


class EventColumns:
    """The columns of the events of one shape in their definition's table."""

    __slots__ = (
        "_carrier",
        "_constant",
        "_layout",
        "_left",
        "_names",
        "_parts",
        "_payloads",
        "_shape",
        "definition",
        "schema",
    )  # fmt: skip

    def __init__(self, layout: Layout, shape: ColumnShape, carrier: EventCarrier = BARE) -> None:
        self._carrier = carrier
        self.schema = layout.schema
        self.definition: str | None = layout.definition
        self._layout = layout
        self._payloads: PayloadColumns | None = None
        self._shape = shape
        if shape.has_data and layout.convert is not None:
            kind = layout.schema.field("data").type
            typed = shape.schema.typed_reader(kind) if isinstance(shape.schema, JsonSchema) else None
            self._payloads = PayloadColumns(kind, layout.convert, shape.accepts, typed)
        self._parts = dict(shape.attributes)
        self._left = [name for name, _ in shape.attributes if name not in layout.known]
        self._names = {layout.names[name]: at for name, at in shape.names}
        kinds = {one.name: one.type for one in layout.schema}
        texts = {name: part for name, part in shape.attributes if isinstance(part, str) and name in TEXTS}
        self._constant = {name: Repeated(texts.get(name), kind) for name, kind in kinds.items()}

    def arrays(self, rows: Sequence[tuple[Any, ...]]) -> tuple[list[pa.Array], Sequence[int]]:
        """The columns of the events whose data is valid, without `judged`, and the places of the others."""
        contents = list(map(self._carrier.content, rows))
        data, unfit = self._data(contents)
        if unfit:
            left = set(unfit)
            rows = [row for at, row in enumerate(rows) if at not in left]
            contents = [one for at, one in enumerate(contents) if at not in left]
        count = len(rows)
        if not count:
            return [pa.nulls(0, one.type) for one in self.schema][:-1], unfit
        groups = [parts[1] for parts, _, _ in rows]
        taken = list(zip(*groups, strict=True))
        columns = [self._texts(name, taken, count) for name in TEXTS]
        moments, odd = self._moments(self._values("time", taken, count), count)
        columns.append(moments)
        columns += [self._extension(one, taken, count) for one in self._layout.extensions]
        columns.append(self._left_over(odd, taken, count))
        if self._layout.names:
            columns.append(self._context(taken, count))
        transport = self._carrier.transport
        records = [row[1] for row in rows]
        columns.append(self._constant["transport"].of(count) if transport is None else transport(records))
        if data is not None:
            columns.append(data)
        elif self._layout.convert is not None:
            columns.append(self._constant["data"].of(count))
        as_they_are = self._carrier.keeps_white or not self._shape.has_data
        columns.append(pa.array(contents if as_they_are else _stripped(contents), pa.binary()))
        return columns, unfit

    def _data(self, contents: Sequence[Any]) -> tuple[pa.Array | None, Sequence[int]]:
        """The column of the data, where there is one, and the places of the events whose data is not valid."""
        if self._payloads is not None:
            return self._payloads.array(contents)
        return None, validated(contents, reader(self._shape.accepts))[1] if self._shape.has_data else ()

    def _values(self, name: str, taken: list[Any], count: int) -> Sequence[str] | None:
        """The texts of an attribute; None where the shape has none of that name."""
        part = self._parts.get(name)
        if part is None:
            return None
        return [part] * count if isinstance(part, str) else taken[part]

    def _texts(self, name: str, taken: list[Any], count: int) -> pa.Array:
        part = self._parts.get(name)
        return pa.array(taken[part], pa.string()) if isinstance(part, int) else self._constant[name].of(count)

    def _moments(self, times: Sequence[str] | None, count: int) -> tuple[pa.Array, Sequence[str]]:
        """The column of the times; and the times, where that does not give all of them back."""
        if times is None:
            return self._constant["time"].of(count), ()
        texts = pa.array(times, pa.string())
        if pc.all(pc.match_substring_regex(texts, _PLAIN)).as_py():
            return texts.cast(MOMENT), ()
        return pa.array(list(map(moment, times)), MOMENT), times

    def _extension(self, one: Any, taken: list[Any], count: int) -> pa.Array:
        texts = self._values(one.name, taken, count)
        if texts is None:
            return self._constant[one.column].of(count)
        return pa.array(list(map(one.read, texts)), one.type)

    def _left_over(self, odd: Sequence[str], taken: list[Any], count: int) -> pa.Array:
        """The attributes without a column, and the times that their column cannot give back exactly."""
        kind = self.schema.field("extensions").type
        if not self._left and not odd:
            return self._constant["extensions"].of(count)
        texts = [self._values(name, taken, count) or () for name in self._left]
        pairs = [list(zip(self._left, row, strict=True)) for row in zip(*texts, strict=True)] or [[] for _ in odd]
        for row, time in zip(pairs, odd, strict=False):
            if not gives_back(time, moment(time)):
                row.append(("time", time))
        return pa.array([row or None for row in pairs], kind)

    def _context(self, taken: list[Any], count: int) -> pa.Array:
        kind = self.schema.field("context").type
        if not self._names:
            return pa.nulls(count, kind)
        held = [
            pa.nulls(count, pa.string()) if (at := self._names.get(one.name)) is None else pa.array(taken[at], one.type)
            for one in kind
        ]
        return pa.StructArray.from_arrays(held, fields=list(kind))


def _stripped(contents: Sequence[Any]) -> Sequence[bytes]:
    """The texts without white space around them, which hardly any has."""
    if all(one[0] > _SPACE and one[-1] > _SPACE for one in contents):
        return contents
    return [one.strip(_WHITE) for one in contents]
