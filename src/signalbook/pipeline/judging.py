"""Judging rows in place: a DataFrame's own columns, and beside them what the catalog says.

Rule: a row stays a row; nothing is filtered, and nothing is written anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from signalbook.cloudevents import CloudEvent
from signalbook.messages.answer import Answer
from signalbook.pipeline.catalog import Book
from signalbook.pipeline.ddl import sql_type
from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.rows import records_of
from signalbook.pipeline.tables import attribute_text
from signalbook.pipeline.worker import Judge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ANSWER", "judge"]

_TEXT = pa.string()
ANSWER = pa.schema(
    [
        ("outcome", _TEXT),
        ("definition", _TEXT),
        ("context", pa.map_(_TEXT, _TEXT)),
        ("problems", pa.list_(pa.struct([("path", _TEXT), ("code", _TEXT), ("message", _TEXT)]))),
        ("attributes", pa.map_(_TEXT, _TEXT)),
        ("payload", pa.binary()),
    ]
)


def judge(rows: DataFrame, book: Book, within: tuple[str, ...] = ()) -> DataFrame:
    """The rows, each with its outcome, definition, context, problems, the attributes of its event and its payload."""
    from pyspark.sql.types import StructType

    if "value" not in rows.columns:
        raise PipelineError("the DataFrame has no column value; it holds the message, or Kafka's value beside topic")
    taken = [name for name in ANSWER.names if name in rows.columns]
    if taken:
        raise PipelineError(f"the DataFrame has a column {taken[0]} already; rename it before it is judged")
    added = ", ".join(f"{one.name} {sql_type(one.type)}" for one in ANSWER)
    schema = StructType([*rows.schema.fields, *StructType.fromDDL(added)])  # type: ignore[misc]  # a struct, as it says
    return rows.mapInArrow(_task(book, within), schema)


def _task(book: Book, within: tuple[str, ...]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        judge = Judge(book.catalog(), within)
        for batch in batches:
            answers = [_row(*judge.answer(record)) for record in records_of([batch], "")]
            columns = zip(*answers, strict=True) if answers else [()] * len(ANSWER)
            arrays = [pa.array(values, one.type) for values, one in zip(columns, ANSWER, strict=True)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *arrays], names=[*batch.schema.names, *ANSWER.names])

    return task


def _row(answer: Answer, observed: Any) -> tuple[Any, ...]:
    problems = [{"path": one.path, "code": one.code, "message": one.message} for one in answer.problems]
    payload = None if observed is None else observed.payload()
    context = list(answer.context.items())
    return answer.outcome.value, answer.definition, context, problems, _attributes(answer.cloudevent), payload


def _attributes(event: CloudEvent | None) -> list[tuple[str, str]] | None:
    return None if event is None else [(name, attribute_text(value)) for name, value in event.attributes.items()]
