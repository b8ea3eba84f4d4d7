"""Signalbook in a Spark program: judge a DataFrame's messages, land them, read the tables back.

    from signalbook import spark as sb
    judged = sb.judge(kafka_rows, sb.catalog("samples"))
    result = sb.land(kafka_rows, sb.catalog("samples"), "/lake")

A DataFrame has a column `value` with one message a row, or the columns of Spark's Kafka connector.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from signalbook.clients import MissingLibrary
from signalbook.sources import Reach, open_source

try:
    from signalbook.pipeline import ddl, judging
    from signalbook.pipeline.catalog import Book
    from signalbook.pipeline.files import PipelineError
    from signalbook.pipeline.lake import Lake
    from signalbook.pipeline.land import Batch, Landing, Result, result_of
    from signalbook.pipeline.rows import CountedFrame
except ModuleNotFoundError as error:
    raise MissingLibrary(error.name or "pyspark", "spark") from error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Book", "PipelineError", "Result", "catalog", "judge", "land", "table", "views_of"]


def catalog(*locations: str, reach: Reach | None = None) -> Book:
    """The catalog that lies at these places: files, folders, addresses of running registries."""
    with open_source(*locations, reach=reach) as source:
        return Book.of_contents(source.read())


def judge(rows: DataFrame, catalog: Book, *, within: tuple[str, ...] = ()) -> DataFrame:
    """The rows with `outcome`, `definition`, `context`, `problems`, `attributes`, `payload` beside their own columns.

    It works on a batch and on a stream alike.
    """
    _check(catalog)
    return judging.judge(rows, catalog, within)


def land(
    rows: DataFrame,
    catalog: Book,
    lake: str,
    *,
    within: tuple[str, ...] = (),
    run: str | None = None,
    batch: int | None = None,
) -> Result:
    """Land the rows of a batch, each in its message's table or among the dead letters; what was counted.

    Within `foreachBatch`, give the same `run` (16 hex digits) each time and Spark's number as `batch`: a batch that is
    done already is then not done again. Without both, the rows land each time they are given.
    """
    _check(catalog)
    if rows.isStreaming:
        raise PipelineError(
            "a stream is landed batch by batch: writeStream.foreachBatch(lambda rows, n: land(…, run=RUN, batch=n))"
        )
    if (run is None) != (batch is None):
        given, other = ("run", "batch") if batch is None else ("batch", "run")
        raise PipelineError(
            f"{given} was given without {other}: a batch is known by both, and one that is done is not done again; "
            "give run=RUN, batch=n within foreachBatch, and neither elsewhere"
        )
    number = batch or 0
    there = Lake.open(lake)
    name = f"stream-{_hex(run)}" if run is not None else None
    with there.run({"kind": "land", "source": "frame", "digest": catalog.digest, "within": within}, name) as started:
        done = there.manifest(started.name, number)
        if done is None:
            frame = CountedFrame(rows, "frame")
            work = Batch(started.name, number, "frame", frame.frame, counted=frame.count)
            done = Landing(there, within).land(catalog, work)
        else:
            there.carry_out(done)
    return result_of([done])


def table(spark: SparkSession, lake: str, path: str) -> DataFrame:
    """A table of a lake, by its path `schema/table`, as it is now."""
    return ddl.read_table(spark, Lake.open(lake, create=False), path)


def views_of(spark: SparkSession, lake: str) -> list[str]:
    """Make a temporary view `schema__table` of each table of a lake, for Spark SQL; their names."""
    return ddl.make_views(spark, Lake.open(lake, create=False))


def _check(catalog: Any) -> None:
    """Refuse here what would fail in a worker only."""
    if not isinstance(catalog, Book):
        raise PipelineError(
            f"the catalog is {type(catalog).__name__}, not Book; signalbook.spark.catalog(LOCATION, …) makes one of "
            "files, folders and addresses of registries"
        )


def _hex(run: Any) -> str:
    text = str(run).lower()
    if len(text) != 16 or any(one not in "0123456789abcdef" for one in text):
        example = secrets.token_hex(8)
        raise PipelineError(f"a run's name is 16 hex digits, as {example}")
    return text
