"""The tables of a catalog as Spark SQL, before a row has arrived.

Rule 1: the statements say what landing would make: the same names, the same columns, in the same order. A table that is
in the lake keeps the columns that it has, and what the definition adds comes behind them.
Rule 2: every name is quoted, so no name is ever taken for a word of SQL.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from signalbook.messages.catalog import Catalog
from signalbook.pipeline.dead import SCHEMA as DEAD_SCHEMA
from signalbook.pipeline.delta import table_state
from signalbook.pipeline.files import Folder
from signalbook.pipeline.names import DEAD_LETTERS
from signalbook.pipeline.planning import Tables
from signalbook.pipeline.tables import layout_of

__all__ = ["sql_name", "sql_type", "statements"]

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
    plan = Tables(lake or Folder("/nowhere/signalbook")).plan(catalog)
    wanted = {entry.xid for entry in catalog.scope(within).entries}
    chosen = {xid: path for xid, path in plan.tables.items() if xid in wanted}
    for schema in sorted({path.partition("/")[0] for path in chosen.values()} | {DEAD_LETTERS.partition("/")[0]}):
        yield f"CREATE SCHEMA IF NOT EXISTS {sql_name(schema)};"
    for xid, path in chosen.items():
        made = _table(path, _columns(path, layout_of(catalog, xid).schema, lake), xid, lake)
        yield f"{_remark(f'{xid}: {plan.refused[xid]}')}\n{made}" if xid in plan.refused else made
    yield _table(DEAD_LETTERS, _columns(DEAD_LETTERS, DEAD_SCHEMA, lake), "messages that did not land", lake)


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


def _table(path: str, schema: pa.Schema, comment: str, lake: Folder | None) -> str:
    name = ".".join(sql_name(part) for part in path.split("/"))
    columns = ",\n".join(f"  {sql_name(one.name)} {sql_type(one.type)}" for one in schema)
    where = "" if lake is None else f"\nLOCATION {_text(lake.place(path))}"
    return f"CREATE TABLE IF NOT EXISTS {name} (\n{columns}\n) USING DELTA\nCOMMENT {_text(comment)}{where};"


def sql_name(name: str) -> str:
    """A name as Spark SQL takes it, whatever it is.

    >>> sql_name("order")
    '`order`'
    """
    return f"`{name.replace('`', '``')}`"


def _remark(text: str) -> str:
    """A text as a comment, which it cannot end."""
    return f"-- {' '.join(text.split())}"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
