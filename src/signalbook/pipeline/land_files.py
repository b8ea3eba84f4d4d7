"""Landing files as one batch: those of a source that no run has landed.

Rule 1: one run lands a source into a lake at a time. What a killed run left is carried out or swept first.
Rule 2: run again it goes on where it stopped; what has landed, lands again only where that is asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from signalbook.pipeline import worker
from signalbook.pipeline.book import Book
from signalbook.pipeline.inputs import FILES, Listed, Source, list_files, share_out, unlanded
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import REPORT, Batch, Landing, Result, Watch, reported, result_of
from signalbook.pipeline.manifest import Manifest
from signalbook.pipeline.reading import Record, Split, read_split
from signalbook.pipeline.rows import parquet_frame
from signalbook.pipeline.worker import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["file_batch", "land_files", "source_lease"]


def land_files(
    spark: SparkSession,
    book: Book,
    source: Source,
    lake: Lake,
    *,
    within: tuple[str, ...] = (),
    again: bool = False,
    say: Watch = lambda text: None,
) -> Result:
    """Land the files of a source that no run has landed; what the run came to."""
    with lake.alone(*source_lease(source)):
        done = [manifest for manifest in carried_out(lake, say) if manifest.source == str(source)]
        files = list_files(source)
        if not again:
            fresh = unlanded(files, (one for manifest in lake.manifests() for one in manifest.inputs))
            if len(fresh) < len(files):
                say(f"{len(files) - len(fresh)} file(s) were landed before; --again lands them once more")
            files = fresh
        about = {"kind": "land", "source": str(source), "digest": book.digest, "within": within}
        with lake.run(about) as run:
            sweep(lake, say)
            if files:
                batch = file_batch(spark, run.name, 0, source, files)
                done.append(Landing(lake, within, say).land(book, batch))
    return result_of(done)


def source_lease(source: Source) -> tuple[str, str]:
    """The name of the lease of who lands a source, and what to say where another has it."""
    digest = hashlib.sha256(str(source).encode()).hexdigest()[:16]
    return f"source-{digest}", f"another run is landing {source} into this lake; wait for it"


def carried_out(lake: Lake, say: Watch) -> list[Manifest]:
    """The batches that ended runs left unfinished, carried out now."""
    finished = lake.roll_forward()
    for manifest in finished:
        say(f"carried out batch {manifest.batch} of run {manifest.run}, which was left unfinished")
    return finished


def sweep(lake: Lake, say: Watch) -> None:
    """Remove what ended runs left and nobody committed."""
    swept = lake.sweep()
    if swept:
        say(f"removed {swept} file(s) that a run left behind")


def file_batch(spark: SparkSession, run: str, number: int, source: Source, files: Sequence[Listed]) -> Batch:
    """The batch of some files of a source."""
    inputs = tuple(one.to_json() for one in files)
    if source.scheme in FILES:
        return Batch(run, number, str(source), _frame(spark, files), inputs)
    counting = parquet_frame(spark, [one.path for one in files])
    return Batch(run, number, str(source), counting.frame, inputs, counting.count)


def _frame(spark: SparkSession, files: Sequence[Listed]) -> Callable[[Job], DataFrame]:
    parts = share_out(files)

    def frame(job: Job) -> DataFrame:
        return spark.range(0, len(parts), 1, len(parts)).mapInArrow(_task(job, parts), REPORT)

    return frame


def _task(job: Job, parts: Sequence[Sequence[Split]]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield reported(worker.run(job, _records(parts[number])))

    return task


def _records(splits: Iterable[Split]) -> Iterator[Record]:
    for split in splits:
        yield from read_split(split)
