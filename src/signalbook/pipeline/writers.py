"""`Writers`: the files that a task writes, one after another for each table, within bounds of memory and open files.

Rule 1: the number of open files and the bytes that wait do not grow with the number of tables.
Rule 2: a file's name is the attempt's alone; what an attempt did not report is nobody's file, and is swept.
Rule 3: a value that Arrow refuses costs its own row only: the row is handed back, with the reason.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from signalbook.pipeline.files import Folder
from signalbook.pipeline.tables import JUDGED, Stamp

__all__ = ["MOST_OPEN", "Bounds", "Columns", "Waiting", "Writers", "Written"]

MOST_OPEN = 64


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much waits before it is written: rows that are no columns yet and their bytes, then bytes of columns."""

    rows: int = 16_384
    row_bytes: int = 16 << 20
    column_bytes: int = 96 << 20
    table_bytes: int = 8 << 20
    open_files: int = MOST_OPEN
    file_bytes: int = 256 << 20


class Columns(Protocol):
    """The layout of a table, as far as writing needs it."""

    @property
    def schema(self) -> pa.Schema:
        """The columns, of which `judged` is the last."""
        ...

    @property
    def definition(self) -> str | None:
        """The definition that rows are marked with; None where each row has its own."""
        ...

    def arrays(self, rows: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
        """The columns of some rows, without `judged`."""
        ...


class Waiting(NamedTuple):
    """A row with the place it came from and the record it was made of; a tuple, since one is made for each message."""

    cells: tuple[Any, ...]
    origin: str
    position: int
    record: Any = None


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

    columns: Columns
    rows: list[Waiting] = field(default_factory=list)
    batches: list[pa.RecordBatch] = field(default_factory=list)
    bytes: int = 0


@dataclass(slots=True)
class Writers:
    """The open files of one attempt; `refused` takes the rows that Arrow does not."""

    folder: Folder
    stamp: Stamp
    attempt: str
    refused: Callable[[str, Waiting, str], None]
    bounds: Bounds = field(default_factory=Bounds)
    written: list[Written] = field(default_factory=list)
    _tables: dict[str, _Table] = field(default_factory=dict)
    _open: OrderedDict[str, _Open] = field(default_factory=OrderedDict)
    _rows: int = 0
    _row_bytes: int = 0
    _column_bytes: int = 0
    _files: int = 0

    def add(self, table: str, columns: Columns, row: Waiting, size: int) -> None:
        """Take one row of a table; `size` is about how many bytes it holds."""
        waiting = self._tables.get(table)
        if waiting is None:
            waiting = self._tables[table] = _Table(columns)
        waiting.rows.append(row)
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
        waiting = [(name, table, table.rows) for name, table in self._tables.items() if table.rows]
        self._rows = self._row_bytes = 0
        for _, table, _ in waiting:
            table.rows = []
        for name, table, rows in waiting:
            for batch in self._batches(name, table.columns, rows):
                table.batches.append(batch)
                table.bytes += batch.nbytes
                self._column_bytes += batch.nbytes
            if table.bytes >= self.bounds.table_bytes:
                self._write(name, table)
        if self._column_bytes >= self.bounds.column_bytes:
            self._write_largest()

    def _batches(self, name: str, columns: Columns, rows: list[Waiting]) -> list[pa.RecordBatch]:
        """The rows in columns; where Arrow refuses, in halves, down to the row that it refuses."""
        try:
            return [self._batch(columns, rows)]
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            if len(rows) == 1:
                self.refused(name, rows[0], str(error))
                return []
            middle = len(rows) // 2
            return [*self._batches(name, columns, rows[:middle]), *self._batches(name, columns, rows[middle:])]

    def _batch(self, columns: Columns, rows: list[Waiting]) -> pa.RecordBatch:
        arrays = columns.arrays([row.cells for row in rows])
        count = len(rows)
        definition = pa.scalar(columns.definition, pa.string())
        judged = pa.StructArray.from_arrays(
            [
                pa.repeat(pa.scalar(self.stamp.digest), count),
                pa.repeat(definition, count),
                pa.repeat(pa.scalar(self.stamp.run), count),
                pa.repeat(pa.scalar(self.stamp.batch, pa.int64()), count),
                pa.array([row.origin for row in rows], pa.string()),
                pa.array([row.position for row in rows], pa.int64()),
            ],
            fields=list(JUDGED),
        )
        return pa.RecordBatch.from_arrays([*arrays, judged], schema=columns.schema)

    def _write_largest(self) -> None:
        for name, table in sorted(self._tables.items(), key=lambda item: -item[1].bytes):
            self._write(name, table)
            if self._column_bytes <= self.bounds.column_bytes // 2:
                break

    def _write(self, name: str, table: _Table) -> None:
        if not table.batches:
            return
        open_ = self._opened(name, table.columns.schema)
        rows = pa.Table.from_batches(table.batches)
        open_.writer.write_table(rows, row_group_size=1 << 20)
        open_.rows += rows.num_rows
        self._column_bytes -= table.bytes
        table.batches, table.bytes = [], 0
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
        writer = pq.ParquetWriter(file, schema, compression="zstd", compression_level=1)
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
