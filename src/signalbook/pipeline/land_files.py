"""Landing files as one batch: those of a source that no run has landed.

Rule 1: one run lands a source into a lake at a time. What a killed run left is carried out or swept first.
Rule 2: run again it goes on where it stopped; what has landed, lands again only where that is asked for.
"""

from __future__ import annotations

import contextlib
import hashlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from signalbook.pipeline import delta, worker
from signalbook.pipeline.catalog import Book
from signalbook.pipeline.files import Folder, PipelineError, is_uri, real_folder
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import REPORT, Batch, Landing, Result, Watch, reported, result_of
from signalbook.pipeline.manifest import Manifest, Replaced
from signalbook.pipeline.read.inputs import FILES, Listed, Source, list_files, share_out, stat_of
from signalbook.pipeline.read.records import Record, Split, read_split
from signalbook.pipeline.rows import parquet_frame
from signalbook.pipeline.tables import DEAD_LETTERS
from signalbook.pipeline.worker import Job, Task, without_collector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Landed", "LandedMeanwhile", "file_batch", "land_files", "redrive", "source_lease"]

# `Landed`: which files the runs of a lake have landed, so that none lands twice and none is passed over.
#
# Rule 1: a file is known by its place without links, its size and its time; landing it again has to be asked for.
# Rule 2: one that was landed and is another now is refused: what is new in it cannot be told from what has landed.
# Rule 3: a manifest never changes, so each is read once.


class LandedMeanwhile(PipelineError):
    """Another run landed some of a batch's files while it was judged."""


class Landed:
    """The files that the manifests of a lake name; threads may share it."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._read: set[tuple[str, int]] = set()
        self._files: dict[str, set[tuple[int, int]]] = {}
        self._folders: dict[str, str] = {}
        self._lock = threading.Lock()

    def unlanded(self, source: Source, files: Iterable[Listed]) -> list[Listed]:
        """Those of a source's files that no batch landed; raises `PipelineError` where one has changed since it was."""
        with self._lock:
            self._refresh()
            return self._fresh(source, files)

    def look(self, source: Source) -> None:
        """Raise `PipelineError` where a file of the source has changed since it was landed."""
        with self._lock:
            # In this order: a file that is landed while the others are listed is then new, and not another.
            self._refresh()
            self._fresh(source, list_files(source))

    def check(self, source: Source, files: list[Listed]) -> None:
        """Raise `LandedMeanwhile` where one of these files has been landed."""
        left = len(self.unlanded(source, files))
        if left < len(files):
            raise LandedMeanwhile(f"another run landed {len(files) - left} of these files meanwhile")

    def _fresh(self, source: Source, files: Iterable[Listed]) -> list[Listed]:
        fresh, changed = [], []
        for one in files:
            known = self._files.get(self._place(one.path))
            if known is None:
                fresh.append(one)
            elif (one.size, one.changed) not in known:
                changed.append(one.path)
        if changed:
            others = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
            raise PipelineError(
                f"'{changed[0]}'{others} has changed since it was landed; what is in it would land twice. Take it "
                "away and put what is new into a new file, or land all that is in it once more: "
                f"--from {source.scheme}:{changed[0]} --again"
            )
        return fresh

    def _refresh(self) -> None:
        for name in self._lake.manifest_names():
            manifest = None if name in self._read else self._lake.manifest(*name)
            if manifest is not None:
                self._read.add(name)
                for one in manifest.inputs:
                    self._files.setdefault(self._place(one["path"]), set()).add((one["size"], one["changed"]))

    def _place(self, path: str) -> str:
        above, _, name = path.rpartition("/")
        if above not in self._folders:
            self._folders[above] = real_folder(above or "/")
        return f"{self._folders[above]}/{name}"


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
                    say(f"{error}; the others are processed again")
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


# Redriving: dead letters judged again by a newer catalog; what passes lands, the rest stays as it is.
#
# Rule 1: a file of dead letters of which some land is replaced by one with the others, in the same commit of that
# table;
# a file of which none land is left alone.
# Rule 2: only one redrive goes on in a lake at a time, and nobody else replaces dead letters.


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
                frame = _redrive_frame(spark, files)
                batch = Batch(run.name, 0, DEAD_LETTERS, frame, replaced=_replaced(files), kind="redrive")
                done.append(Landing(lake, within, say).land(book, batch))
    return result_of(done)


def _replaced(files: Sequence[dict[str, Any]]) -> Callable[[list[dict[str, Any]]], tuple[Replaced, ...]]:
    sizes = {file["path"]: file["bytes"] for file in files}

    def replaced(reports: list[dict[str, Any]]) -> tuple[Replaced, ...]:
        return tuple(Replaced(DEAD_LETTERS, path, sizes[path]) for report in reports for path in report["replaced"])

    return replaced


def _redrive_frame(spark: SparkSession, files: Sequence[dict[str, Any]]) -> Callable[[Job], DataFrame]:
    paths = [file["path"] for file in files]

    def frame(job: Job) -> DataFrame:
        return spark.range(0, len(paths), 1, len(paths)).mapInArrow(_redrive_task(job, paths), REPORT)

    return frame


def _redrive_task(job: Job, paths: Sequence[str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
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
