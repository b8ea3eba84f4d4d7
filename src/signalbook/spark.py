"""Signalbook in a Spark program: match a DataFrame's messages, land them, read the tables back.

    from signalbook import spark as sb
    matched = sb.judge(kafka_rows, sb.catalog("samples"))
    result = sb.land(kafka_rows, sb.catalog("samples"), "/lake")

A DataFrame has a column `value` with one message a row, or the columns of Spark's Kafka connector.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from signalbook.clients import MissingLibrary
from signalbook.cloudevents import CloudEvent
from signalbook.messages.answer import Answer
from signalbook.sources import Reach, open_source

try:
    import pyarrow as pa

    from signalbook.pipeline import ddl
    from signalbook.pipeline.files import PipelineError
    from signalbook.pipeline.lake import Lake
    from signalbook.pipeline.land import Batch, CountedFrame, Landing, result_of
    from signalbook.pipeline.land import LandingResult as Result
    from signalbook.pipeline.read.records import records_of
    from signalbook.pipeline.tables import attribute_text
    from signalbook.pipeline.worker import ArrowTask, RecordMatcher
    from signalbook.pipeline.worker import PackedCatalog as Book
except ModuleNotFoundError as error:
    raise MissingLibrary(error.name or "pyspark", "spark") from error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Book", "PipelineError", "Result", "catalog", "judge", "land", "table", "views_of"]

_TEXT = pa.string()
_ANSWER = pa.schema(
    [
        ("outcome", _TEXT),
        ("definition", _TEXT),
        ("context", pa.map_(_TEXT, _TEXT)),
        ("problems", pa.list_(pa.struct([("path", _TEXT), ("code", _TEXT), ("message", _TEXT)]))),
        ("attributes", pa.map_(_TEXT, _TEXT)),
        ("payload", pa.binary()),
    ]
)


def catalog(*locations: str, reach: Reach | None = None) -> Book:
    """The catalog that lies at these places: files, folders, addresses of running registries."""
    with open_source(*locations, reach=reach) as source:
        return Book.of_contents(source.read())


def judge(rows: DataFrame, catalog: Book, *, within: tuple[str, ...] = ()) -> DataFrame:
    """The rows with `outcome`, `definition`, `context`, `problems`, `attributes`, `payload` beside their own columns.

    It works on a batch and on a stream alike.
    """
    _check_catalog(catalog)
    from pyspark.sql.types import StructType

    if "value" not in rows.columns:
        raise PipelineError("the DataFrame has no column value; it holds the message, or Kafka's value beside topic")
    taken = [name for name in _ANSWER.names if name in rows.columns]
    if taken:
        raise PipelineError(f"the DataFrame has a column {taken[0]} already; rename it first")
    added = ", ".join(f"{one.name} {ddl.sql_type(one.type)}" for one in _ANSWER)
    schema = StructType([*rows.schema.fields, *StructType.fromDDL(added)])  # type: ignore[misc]  # a struct, as it says
    return rows.mapInArrow(_match_task(catalog, within), schema)


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
    _check_catalog(catalog)
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
    name = f"stream-{_run_digits(run)}" if run is not None else None
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


def _check_catalog(catalog: Any) -> None:
    """Refuse here what would fail in a worker only."""
    if not isinstance(catalog, Book):
        raise PipelineError(
            f"the catalog is {type(catalog).__name__}, not Book; signalbook.spark.catalog(LOCATION, …) makes one of "
            "files, folders and addresses of registries"
        )


def _run_digits(run: Any) -> str:
    text = str(run).lower()
    if len(text) != 16 or any(one not in "0123456789abcdef" for one in text):
        example = secrets.token_hex(8)
        raise PipelineError(f"a run's name is 16 hex digits, as {example}")
    return text


def _match_task(catalog: Book, within: tuple[str, ...]) -> ArrowTask:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = RecordMatcher(catalog.catalog(), within)
        for batch in batches:
            answers = [_answer_row(*matcher.answer(record)) for record in records_of([batch], "")]
            columns = zip(*answers, strict=True) if answers else [()] * len(_ANSWER)
            arrays = [pa.array(values, one.type) for values, one in zip(columns, _ANSWER, strict=True)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *arrays], names=[*batch.schema.names, *_ANSWER.names])

    return task


def _answer_row(answer: Answer, observed: Any) -> tuple[Any, ...]:
    problems = [{"path": one.path, "code": one.code, "message": one.message} for one in answer.problems]
    payload = None if observed is None else observed.payload()
    context = list(answer.context.items())
    return answer.outcome.value, answer.definition, context, problems, _attributes(answer.cloudevent), payload


def _attributes(event: CloudEvent | None) -> list[tuple[str, str]] | None:
    return None if event is None else [(name, attribute_text(value)) for name, value in event.attributes.items()]
