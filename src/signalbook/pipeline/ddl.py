"""The tables of a catalog as Spark SQL, and the tables of a lake: read, as views, and compacted.

Rule 1: the statements say what landing would make: the same names, the same columns, in the same order. A table that is
in the lake keeps the columns that it has, and what the definition adds comes behind them.
Rule 2: every name is quoted, so no name is ever taken for a word of SQL.
Rule 3: a Spark session needs no Delta of its own: a table is read from the files that it consists of. A view shows the
table as it was when the view was made.
Rule 4: compacting leaves dead letters alone, since a redrive may be replacing their files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from signalbook.errors import one_line
from signalbook.messages.catalog import Catalog
from signalbook.pipeline import delta
from signalbook.pipeline.delta import KnownTables, files_of, table_state
from signalbook.pipeline.files import Folder, PipelineError
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import Notice
from signalbook.pipeline.tables import DEAD_LETTER_SCHEMA, DEAD_LETTERS, layout_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["compact_tables", "make_views", "read_table", "sql_name", "sql_type", "statements", "table_paths"]

_SIMPLE: dict[pa.DataType, str] = {
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.binary(): "BINARY",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
}


def statements(catalog: Catalog, within: tuple[str, ...] = (), lake: Folder | None = None) -> Iterator[str]:
    """The statements that make the tables; with a lake, where its tables lie and as they are there.

    A table that refuses its definition is given as it is, below a comment that says why.
    """
    plan = KnownTables(lake or Folder("/nowhere/signalbook")).plan(catalog)
    wanted = {entry.xid for entry in catalog.scope(within).entries}
    chosen = {xid: path for xid, path in plan.tables.items() if xid in wanted}
    for schema in sorted({path.partition("/")[0] for path in chosen.values()} | {DEAD_LETTERS.partition("/")[0]}):
        yield f"CREATE SCHEMA IF NOT EXISTS {sql_name(schema)};"
    for xid, path in chosen.items():
        made = _create_table(path, _columns(path, layout_of(catalog, xid).schema, lake), xid, lake)
        yield f"{_remark(f'{xid}: {plan.refused[xid]}')}\n{made}" if xid in plan.refused else made
    yield _create_table(
        DEAD_LETTERS, _columns(DEAD_LETTERS, DEAD_LETTER_SCHEMA, lake), "messages that did not land", lake
    )


def sql_type(kind: pa.DataType) -> str:
    """A column's type in Spark SQL.

    >>> sql_type(pa.struct([("a", pa.list_(pa.int64()))]))
    'STRUCT<`a`: ARRAY<BIGINT>>'
    """
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{sql_name(one.name)}: {sql_type(one.type)}' for one in kind)}>"
    if pa.types.is_map(kind):
        return f"MAP<{sql_type(kind.key_type)}, {sql_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{sql_type(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _SIMPLE[kind]


def _columns(path: str, wanted: pa.Schema, lake: Folder | None) -> pa.Schema:
    """The columns of a table after the next landing: those that it has, then those that it lacks."""
    state = None if lake is None else table_state(lake, path)
    return wanted if state is None else pa.schema(list(_joined(pa.struct(list(state.schema)), pa.struct(list(wanted)))))


def _joined(held: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """The type with all members of both; where they cannot be joined, the one that is there."""
    if pa.types.is_struct(held) and pa.types.is_struct(wanted):
        asked = {one.name: one for one in wanted}
        kept = [pa.field(one.name, _joined(one.type, asked.pop(one.name, one).type)) for one in held]
        return pa.struct([*kept, *asked.values()])
    if pa.types.is_map(held) and pa.types.is_map(wanted):
        return pa.map_(held.key_type, _joined(held.item_type, wanted.item_type))
    if pa.types.is_list(held) and pa.types.is_list(wanted):
        return pa.list_(_joined(held.value_type, wanted.value_type))
    return held


def _create_table(path: str, schema: pa.Schema, comment: str, lake: Folder | None) -> str:
    name = one_line(".".join(sql_name(part) for part in path.split("/")))
    columns = ",\n".join(f"  {one_line(f'{sql_name(one.name)} {sql_type(one.type)}')}" for one in schema)
    where = "" if lake is None else f"\nLOCATION {_sql_text(lake.place(path))}"
    return f"CREATE TABLE IF NOT EXISTS {name} (\n{columns}\n) USING DELTA\nCOMMENT {_sql_text(comment)}{where};"


def sql_name(name: str) -> str:
    """A name as Spark SQL takes it, whatever it is.

    >>> sql_name("order")
    '`order`'
    """
    return f"`{name.replace('`', '``')}`"


def _remark(text: str) -> str:
    """A text as a comment, which it cannot end."""
    return f"-- {one_line(' '.join(text.split()))}"


def _sql_text(text: str) -> str:
    """A text as Spark SQL reads it back; it knows the escapes of `one_line`."""
    return "'" + one_line(text.replace("\\", "\\\\").replace("'", "\\'")) + "'"


# The tables of a lake in a Spark session.


def table_paths(lake: Lake) -> Iterator[str]:
    """The path of each table of a lake."""
    for schema in lake.folder.folders():
        if not schema.startswith(("_", ".")):
            yield from (f"{schema}/{table}" for table in lake.folder.below(schema).folders())


def read_table(spark: SparkSession, lake: Lake, path: str) -> DataFrame:
    """The table of that path, `schema/table`."""
    state = table_state(lake.folder, path)
    if state is None:
        raise PipelineError(f"the lake has no table {path}")
    columns = ", ".join(f"{sql_name(one.name)} {sql_type(one.type)}" for one in state.schema)
    files = [lake.folder.below(path).place(file["path"]) for file in files_of(lake.folder, path)]
    return spark.read.schema(columns).parquet(*files) if files else spark.createDataFrame([], columns)


def make_views(spark: SparkSession, lake: Lake) -> list[str]:
    """Make a temporary view `schema__table` of each table, for Spark SQL; their names."""
    names = []
    for path in table_paths(lake):
        name = path.replace("/", "__")
        read_table(spark, lake, path).createOrReplaceTempView(sql_name(name))
        names.append(name)
    return names


def compact_tables(lake: Lake, say: Notice = lambda text: None) -> int:
    """Join the small files of each table; how many fewer there are."""
    joined = sum(delta.compact(lake.folder, path) for path in table_paths(lake) if path != DEAD_LETTERS)
    if joined:
        say(f"joined small files: {joined:,} fewer")
    return joined
