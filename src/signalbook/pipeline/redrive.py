"""Redriving: dead letters judged again by a newer catalog; what passes lands, the rest stays as it is.

Rule 1: a file of dead letters of which some land is replaced by one with the others, in the same commit of that table;
a file of which none land is left alone.
Rule 2: only one redrive goes on in a lake at a time, and nobody else replaces dead letters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from signalbook.pipeline import delta
from signalbook.pipeline.book import Book
from signalbook.pipeline.files import Folder
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import REPORT, Batch, Landing, Result, Watch, reported, result_of
from signalbook.pipeline.land_files import carried_out, sweep
from signalbook.pipeline.manifest import Replaced
from signalbook.pipeline.names import DEAD_LETTERS
from signalbook.pipeline.reading import Record
from signalbook.pipeline.worker import Job, Task, without_collector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["redrive"]

_WORDS = "another redrive is going on in this lake; wait for it"
_AT_ONCE = 4096


def redrive(
    spark: SparkSession, book: Book, lake: Lake, *, within: tuple[str, ...] = (), say: Watch = lambda text: None
) -> Result:
    """Judge the dead letters of a lake by a catalog and land what passes; `input` is how many letters there were."""
    with lake.alone("redrive", _WORDS):
        done = [manifest for manifest in carried_out(lake, say) if manifest.kind == "redrive"]
        files = delta.files_of(lake.folder, DEAD_LETTERS)
        with lake.run({"kind": "redrive", "source": DEAD_LETTERS, "digest": book.digest, "within": within}) as run:
            sweep(lake, say)
            if files:
                frame = _frame(spark, files)
                batch = Batch(run.name, 0, DEAD_LETTERS, frame, replaced=_replaced(files), kind="redrive")
                done.append(Landing(lake, within, say).land(book, batch))
    return result_of(done)


def _replaced(files: Sequence[dict[str, Any]]) -> Callable[[list[dict[str, Any]]], tuple[Replaced, ...]]:
    sizes = {file["path"]: file["bytes"] for file in files}

    def replaced(reports: list[dict[str, Any]]) -> tuple[Replaced, ...]:
        return tuple(Replaced(DEAD_LETTERS, path, sizes[path]) for report in reports for path in report["replaced"])

    return replaced


def _frame(spark: SparkSession, files: Sequence[dict[str, Any]]) -> Callable[[Job], DataFrame]:
    paths = [file["path"] for file in files]

    def frame(job: Job) -> DataFrame:
        return spark.range(0, len(paths), 1, len(paths)).mapInArrow(_task(job, paths), REPORT)

    return frame


def _task(job: Job, paths: Sequence[str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with without_collector():
                    yield reported(orjson.dumps(_judge_again(job, paths[number])))

    return task


def _judge_again(job: Job, path: str) -> dict[str, Any]:
    """Land what passes of one file of dead letters; where some did, write the others to a file of their own."""
    task = Task(job)
    with task.writing():
        kept = [batch.filter(pa.array(_stay(task, batch))) for batch in _letters(job.lake.below(DEAD_LETTERS), path)]
        left = pa.Table.from_batches(kept)
        moved = task.tally.input > left.num_rows
        if moved:
            task.writers.copy(DEAD_LETTERS, left)
    return {**task.report(), "untouched": 0 if moved else left.num_rows, "replaced": [path] if moved else []}


def _letters(folder: Folder, path: str) -> Iterator[pa.RecordBatch]:
    with folder.open(path) as file:
        yield from pq.ParquetFile(file).iter_batches(_AT_ONCE)


def _stay(task: Task, letters: pa.RecordBatch) -> list[bool]:
    """Which letters do not land."""
    stay = []
    judged = letters.column("judged")
    for data, place in zip(letters.column("record").to_pylist(), judged.to_pylist(), strict=True):
        reason = None if data is not None else "the record was not kept"
        record = Record(data, place["origin"], place["position"], reason)
        task.tally.input += 1
        refusal = task.land(record)
        if refusal is not None:
            task.lament(record, *refusal)
        stay.append(refusal is not None)
    return stay
