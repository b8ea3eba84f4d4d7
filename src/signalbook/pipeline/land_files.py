"""Landing files as one batch: those of a source that no run has landed.

Rule 1: one run lands a source into a lake at a time. What a killed run left is carried out or swept first.
Rule 2: run again it goes on where it stopped; what has landed, lands again only where that is asked for.
"""

from __future__ import annotations

import contextlib
import hashlib
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from signalbook.pipeline import worker
from signalbook.pipeline.book import Book
from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.files import is_uri
from signalbook.pipeline.inputs import FILES, Listed, Source, list_files, share_out, stat_of
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import REPORT, Batch, Landing, Result, Watch, reported, result_of
from signalbook.pipeline.landed import Landed, LandedMeanwhile
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
        landed = None if again else Landed(lake)
        if landed is not None:
            fresh = landed.unlanded(source, files)
            if len(fresh) < len(files):
                say(f"{len(files) - len(fresh)} file(s) were landed before; --again lands them once more")
            files = fresh
        about = {"kind": "land", "source": str(source), "digest": book.digest, "within": within}
        with lake.run(about) as run:
            sweep(lake, say)
            landing = Landing(lake, within, say)
            while files:
                batch = file_batch(spark, run.name, 0, source, files, landed)
                try:
                    done.append(landing.land(book, batch))
                    break
                except LandedMeanwhile as error:
                    say(f"{error}; the others are judged again")
                    files = files if landed is None else landed.unlanded(source, files)
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


def file_batch(
    spark: SparkSession, run: str, number: int, source: Source, files: list[Listed], landed: Landed | None
) -> Batch:
    """The batch of some files of a source; it is not committed where one is in `landed` by then."""
    inputs = tuple(one.to_json() for one in files)
    if source.scheme in FILES:
        frame, count = _frame(spark, files), _uncounted
    else:
        counting = parquet_frame(spark, [one.path for one in files])
        frame, count = counting.frame, counting.count

    def counted() -> int | None:
        _refuse_changed(files)
        return count()

    def check() -> None:
        if landed is not None:
            landed.check(source, files)

    return Batch(run, number, str(source), frame, inputs, counted, check=check)


def _uncounted() -> int | None:
    return None


def _refuse_changed(files: Iterable[Listed]) -> None:
    """Raise where a file was written to while it was read: what of it was read would not be known."""
    for one in files:
        found = None if is_uri(one.path) else stat_of(one.path)
        if found is not None and (found.size, found.changed) != (one.size, one.changed):
            raise PipelineError(
                f"'{one.path}' was written to while it was landed; nothing was committed. Put only files there that "
                "are whole: write them under a name that begins with a dot, and rename them"
            )


def _frame(spark: SparkSession, files: Sequence[Listed]) -> Callable[[Job], DataFrame]:
    parts = share_out(files)

    def frame(job: Job) -> DataFrame:
        return spark.range(0, len(parts), 1, len(parts)).mapInArrow(_task(job, parts), REPORT)

    return frame


def _task(job: Job, parts: Sequence[Sequence[Split]]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Ctrl+C in a terminal reaches the workers too; it is the driver who says what becomes of their batch.
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield reported(worker.run(job, _records(parts[number])))

    return task


def _records(splits: Iterable[Split]) -> Iterator[Record]:
    for split in splits:
        yield from read_split(split)
