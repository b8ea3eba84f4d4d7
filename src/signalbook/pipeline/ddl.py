"""The tables of a catalog as Spark SQL, before a row has arrived.

Rule: the statements say what landing would make: the same names, the same columns, in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from signalbook.messages.catalog import Catalog
from signalbook.pipeline.dead import SCHEMA as DEAD_SCHEMA
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
_plain = re.compile("[A-Za-z_][A-Za-z0-9_]*").fullmatch


def statements(catalog: Catalog, within: tuple[str, ...] = (), lake: Folder | None = None) -> Iterator[str]:
    """The statements that make the tables; with a lake, where its tables lie."""
    tables = Tables(lake or Folder("/nowhere/signalbook")).plan(catalog).tables
    wanted = {entry.xid for entry in catalog.scope(within).entries}
    chosen = {xid: path for xid, path in tables.items() if xid in wanted}
    for schema in sorted({path.partition("/")[0] for path in chosen.values()} | {DEAD_LETTERS.partition("/")[0]}):
        yield f"CREATE SCHEMA IF NOT EXISTS {sql_name(schema)};"
    for xid, path in chosen.items():
        yield _table(path, layout_of(catalog, xid).schema, xid, lake)
    yield _table(DEAD_LETTERS, DEAD_SCHEMA, "messages that did not land", lake)


def sql_type(kind: pa.DataType) -> str:
    """A column's type in Spark SQL.

    >>> sql_type(pa.struct([("a", pa.list_(pa.int64()))]))
    'STRUCT<a: ARRAY<BIGINT>>'
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


def _table(path: str, schema: pa.Schema, comment: str, lake: Folder | None) -> str:
    name = ".".join(sql_name(part) for part in path.split("/"))
    columns = ",\n".join(f"  {sql_name(one.name)} {sql_type(one.type)}" for one in schema)
    where = "" if lake is None else f"\nLOCATION {_text(lake.place(path))}"
    return f"CREATE TABLE IF NOT EXISTS {name} (\n{columns}\n) USING DELTA\nCOMMENT {_text(comment)}{where};"


def sql_name(name: str) -> str:
    """A name as Spark SQL takes it."""
    return name if _plain(name) else f"`{name.replace('`', '``')}`"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
