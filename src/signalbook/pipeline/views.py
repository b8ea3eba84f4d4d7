"""The tables of a lake in a Spark session that has no Delta of its own: read from the files that each consists of.

Rule: a view shows the table as it is when the view is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from signalbook.pipeline.ddl import sql_name, sql_type
from signalbook.pipeline.delta import files_of, table_state
from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["make_views", "read_table", "table_paths"]


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
