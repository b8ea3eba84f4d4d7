"""`Writers`: the files that a task writes, one after another for each table, within bounds of memory and open files.

Rule 1: the number of open files and the bytes that wait do not grow with the number of tables.
Rule 2: a file's name is the attempt's alone; a file that no attempt reported belongs to nobody, and is swept.
Rule 3: a value that Arrow refuses costs its own row only: the row is handed back, with the reason.
Rule 4: rows that are written together are in the order of their places.
Rule 5: what is long is compressed by zstd (payloads, records, their texts, ids), all else by snappy: a few hundred
numbers or texts of a dictionary gain nothing by zstd, and each column that it compresses costs about as much as writing
the column. Texts have a dictionary, except those that are hardly ever the same twice.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from signalbook.pipeline.files import Folder
from signalbook.pipeline.read.records import KafkaRow, Record
from signalbook.pipeline.tables import JUDGED, Repeated, Stamp
from signalbook.schemas.json_schema.columns import ADDITIONAL

__all__ = ["MOST_OPEN", "Bounds", "Row", "RowQueue", "TableColumns", "Writers", "Written", "parquet_options"]

# The columns that are long, and those below which every text is.
_LONG = frozenset({"id", "payload", "record", "transport.fields"})
_OPAQUE = frozenset({"payload", "record", "transport.fields"})
_LONG_BELOW = ("data.", "problems.", "candidates.")
_NEVER_THE_SAME = frozenset({"id", "sha256", "_additional", "fields", "message"})


def parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """The options of a Parquet writer for the columns of a schema."""
    leaves = [leaf for one in schema for leaf in _leaves(one.name, one.type)]
    zstd = [path for path, kind in leaves if _is_text(kind) and _is_long(path)]
    return {
        "compression": {path: "snappy" for path, _ in leaves} | dict.fromkeys(zstd, "zstd"),
        "compression_level": dict.fromkeys(zstd, 1),
        # What nobody asks for by its first and last value.
        "write_statistics": [path for path, _ in leaves if path not in _OPAQUE and not path.endswith(ADDITIONAL)],
        "use_dictionary": [
            path for path, kind in leaves if pa.types.is_string(kind) and path.rpartition(".")[2] not in _NEVER_THE_SAME
        ],
    }


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _is_long(path: str) -> bool:
    return path in _LONG or (path.startswith(_LONG_BELOW) and not path.endswith(ADDITIONAL))


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The columns below one, by the paths that Parquet gives them."""
    if pa.types.is_struct(kind):
        for one in kind:
            yield from _leaves(f"{path}.{one.name}", one.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path, kind


MOST_OPEN = 64
_MOST_REPEATED = 4096
# About what an array costs beside its values. Small batches of a table become one, so that there are not many arrays.
_ARRAY_BYTES = 550
_MOST_BATCHES, _LITTLE = 4, 1 << 20
_place = attrgetter("origin", "position")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much waits before it is written: rows that are not columns yet and their bytes, then bytes of columns."""

    rows: int = 32_768
    row_bytes: int = 16 << 20
    column_bytes: int = 96 << 20
    table_bytes: int = 8 << 20
    open_files: int = MOST_OPEN
    file_bytes: int = 256 << 20


# Cells, the record they were made of, and what whoever added the row wants to know where it is handed back. A plain
# tuple, since one is made for each message.
Row = tuple[tuple[Any, ...], Record | KafkaRow, Any]


class TableColumns(Protocol):
    """The layout of a table, as far as writing needs it."""

    @property
    def schema(self) -> pa.Schema:
        """The columns, of which `judged` is the last."""
        ...

    @property
    def definition(self) -> str | None:
        """The definition that rows are marked with; None where each row has its own."""
        ...

    def arrays(self, rows: Sequence[Row]) -> tuple[list[pa.Array], Sequence[int]]:
        """The columns of some rows, without `judged`, and the places of the rows that are not in them."""
        ...


@dataclass(slots=True, eq=False)
class RowQueue:
    """Rows of a table, made into columns in one way, that wait; and how many have waited."""

    table: str
    columns: TableColumns
    rows: list[Row] = field(default_factory=list)
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was closed: its table, its path below the table, rows and bytes."""

    table: str
    path: str
    rows: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """The file as a JSON value."""
        return {"table": self.table, "path": self.path, "rows": self.rows, "bytes": self.bytes}


@dataclass(slots=True)
class _Open:
    """A file that is being written."""

    path: str
    file: Any
    writer: pq.ParquetWriter
    rows: int = 0


@dataclass(slots=True)
class _Table:
    """What of one table waits."""

    schema: pa.Schema
    overhead: int
    batches: list[pa.RecordBatch] = field(default_factory=list)
    bytes: int = 0
    queues: set[RowQueue] = field(default_factory=set)

    @classmethod
    def of(cls, schema: pa.Schema) -> _Table:
        """A table of which nothing waits."""
        return cls(schema, _ARRAY_BYTES * sum(_arrays(one.type) for one in schema))

    def add(self, batches: list[pa.RecordBatch]) -> int:
        """Let rows wait; how many bytes more that makes."""
        before = self.bytes
        self.batches += batches
        if len(self.batches) >= _MOST_BATCHES and before < _LITTLE:
            self.batches = pa.Table.from_batches(self.batches).combine_chunks().to_batches()
            self.bytes = 0
            batches = self.batches
        self.bytes += sum(batch.nbytes + self.overhead for batch in batches)
        return self.bytes - before

    def take(self) -> pa.Table:
        """All rows, which then wait no longer."""
        rows = pa.Table.from_batches(self.batches)
        if len(self.queues) > 1:
            judged = rows["judged"].combine_chunks()
            places = pa.table({name: judged.field(name) for name in ("origin", "position")})
            rows = rows.take(pc.sort_indices(places, [(name, "ascending") for name in places.column_names]))
        self.batches, self.bytes, self.queues = [], 0, set()
        return rows


@dataclass(slots=True)
class Writers:
    """The open files of one attempt; `refused` takes the rows that Arrow does not."""

    folder: Folder
    stamp: Stamp
    attempt: str
    refused: Callable[[RowQueue, Row, str], None]
    bounds: Bounds = field(default_factory=Bounds)
    written: list[Written] = field(default_factory=list)
    _queues: list[RowQueue] = field(default_factory=list)
    _tables: dict[str, _Table] = field(default_factory=dict)
    _open: OrderedDict[str, _Open] = field(default_factory=OrderedDict)
    _rows: int = 0
    _row_bytes: int = 0
    _column_bytes: int = 0
    _files: int = 0
    _repeated: dict[tuple[str, Any], Repeated] = field(default_factory=dict)

    def queue(self, table: str, columns: TableColumns) -> RowQueue:
        """Where rows of a table are added that become columns in one way."""
        queue = RowQueue(table, columns)
        self._queues.append(queue)
        self._tables.setdefault(table, _Table.of(columns.schema))
        return queue

    def add(self, queue: RowQueue, row: Row, size: int) -> None:
        """Take one row; `size` is about how many bytes it holds."""
        queue.rows.append(row)
        self._rows += 1
        self._row_bytes += size
        if self._rows >= self.bounds.rows or self._row_bytes >= self.bounds.row_bytes:
            self._to_columns()

    def copy(self, table: str, rows: pa.Table) -> None:
        """Write rows that are in columns already to a file of their own."""
        if rows.num_rows:
            self._close_if_open(table)
            opened = self._opened(table, rows.schema)
            opened.writer.write_table(rows)
            opened.rows += rows.num_rows
            self._close(table)

    def close(self) -> None:
        """Write all that waits and close every file."""
        # Rows that are refused on the way become rows of another table: hence until nothing waits.
        while self._rows:
            self._to_columns()
        for name, table in self._tables.items():
            self._write(name, table)
        while self._open:
            self._close(next(iter(self._open)))

    def abandon(self) -> None:
        """Close every file without a word about it."""
        for one in self._open.values():
            one.file.close()
        self._open.clear()

    def _to_columns(self) -> None:
        waiting = [(queue, queue.rows.copy()) for queue in self._queues if queue.rows]
        self._rows = self._row_bytes = 0
        for queue, _ in waiting:
            queue.rows.clear()
        for queue, rows in waiting:
            queue.seen += len(rows)
            table = self._tables[queue.table]
            table.queues.add(queue)
            self._column_bytes += table.add(self._batches(queue, rows))
            if table.bytes >= self.bounds.table_bytes:
                self._write(queue.table, table)
        if self._column_bytes >= self.bounds.column_bytes:
            self._write_largest()

    def _batches(self, queue: RowQueue, rows: list[Row]) -> list[pa.RecordBatch]:
        """The rows in columns; where Arrow refuses, in halves, down to the row that it refuses."""
        try:
            arrays, unfit = queue.columns.arrays(rows)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            if len(rows) == 1:
                self.refused(queue, rows[0], str(error))
                return []
            middle = len(rows) // 2
            return [*self._batches(queue, rows[:middle]), *self._batches(queue, rows[middle:])]
        for at in unfit:
            self.refused(queue, rows[at], "")
        if unfit:
            left = set(unfit)
            rows = [row for at, row in enumerate(rows) if at not in left]
        return [self._batch(queue.columns, arrays, [record for _, record, _ in rows])] if rows else []

    def _batch(self, columns: TableColumns, arrays: list[pa.Array], records: list[Record | KafkaRow]) -> pa.RecordBatch:
        count = len(records)
        origins, positions = zip(*map(_place, records), strict=True)
        judged = pa.StructArray.from_arrays(
            [
                self._stamped("digest", self.stamp.digest).of(count),
                self._stamped("definition", columns.definition).of(count),
                self._stamped("run", self.stamp.run).of(count),
                self._stamped("batch", self.stamp.batch).of(count),
                self._origins(origins),
                pa.array(positions, pa.int64()),
            ],
            fields=list(JUDGED),
        )
        return pa.RecordBatch.from_arrays([*arrays, judged], schema=columns.schema)

    def _stamped(self, name: str, value: Any) -> Repeated:
        """A value that many rows share, by the member of `judged` that holds it."""
        found = self._repeated.get((name, value))
        if found is None:
            if len(self._repeated) >= _MOST_REPEATED:
                self._repeated.clear()
            found = self._repeated[name, value] = Repeated(value, JUDGED.field(name).type)
        return found

    def _origins(self, origins: Sequence[str]) -> pa.Array:
        """Where rows came from, which is mostly one place."""
        first = origins[0]
        if origins.count(first) == len(origins):
            return self._stamped("origin", first).of(len(origins))
        return pa.array(origins, pa.string())

    def _write_largest(self) -> None:
        for name, table in sorted(self._tables.items(), key=lambda item: -item[1].bytes):
            self._write(name, table)
            if self._column_bytes <= self.bounds.column_bytes // 2:
                break

    def _write(self, name: str, table: _Table) -> None:
        if not table.batches:
            return
        open_ = self._opened(name, table.schema)
        self._column_bytes -= table.bytes
        rows = table.take()
        open_.writer.write_table(rows, row_group_size=1 << 20)
        open_.rows += rows.num_rows
        if open_.file.tell() >= self.bounds.file_bytes:
            self._close(name)

    def _opened(self, name: str, schema: pa.Schema) -> _Open:
        found = self._open.get(name)
        if found is not None:
            self._open.move_to_end(name)
            return found
        if len(self._open) >= self.bounds.open_files:
            self._close(next(iter(self._open)))
        self._files += 1
        path = f"{self.stamp.run}-{self.stamp.batch}-{self.attempt}-{self._files}.parquet"
        file = self.folder.below(name).create(path)
        writer = pq.ParquetWriter(file, schema, **parquet_options(schema))
        opened = self._open[name] = _Open(path, file, writer)
        return opened

    def _close_if_open(self, name: str) -> None:
        if name in self._open:
            self._close(name)

    def _close(self, name: str) -> None:
        done = self._open.pop(name)
        done.writer.close()
        size = done.file.tell()
        done.file.close()
        folder = self.folder.below(name)
        folder.sync(done.path)
        self.written.append(Written(name, done.path, done.rows, size))


def _arrays(kind: pa.DataType) -> int:
    """How many arrays a column consists of."""
    return 1 + sum(_arrays(kind.field(at).type) for at in range(kind.num_fields))
