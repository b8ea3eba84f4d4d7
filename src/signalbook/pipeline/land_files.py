"""Landing files: those of a source that no run has landed, as one batch.

Rule 1: one run lands a source into a lake at a time. What a killed run left is carried out or swept first.
Rule 2: run again it goes on where it stopped; what has landed, lands again only where that is asked for.
Rule 3: a file is known by its place without links, its size and its time. A file that has changed since it was landed
is refused: nothing says which part of it is new.
"""

from __future__ import annotations

import contextlib
import hashlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from signalbook.pipeline import worker
from signalbook.pipeline.files import PipelineError, is_uri, real_folder
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import (
    Batch,
    Landing,
    LandingResult,
    Notice,
    ParquetFrame,
    carry_out_unfinished,
    result_of,
    sweep,
)
from signalbook.pipeline.read.inputs import FILES, InputFile, InputSource, list_files, share_out, stat_of
from signalbook.pipeline.read.lines import Split, read_split
from signalbook.pipeline.read.records import Record
from signalbook.pipeline.worker import REPORT, ArrowTask, Job, PackedCatalog, report_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["AlreadyLanded", "LandedFiles", "file_batch", "land_files", "source_lease"]


class AlreadyLanded(PipelineError):
    """Another run landed some of a batch's files while the batch was matched."""


class LandedFiles:
    """The files that the manifests of a lake name; threads may share it. A manifest never changes and is read once."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._read: set[tuple[str, int]] = set()
        self._files: dict[str, set[tuple[int, int]]] = {}
        self._folders: dict[str, str] = {}
        self._lock = threading.Lock()

    def unlanded(self, source: InputSource, files: Iterable[InputFile]) -> list[InputFile]:
        """Those of a source's files that no batch landed; raises `PipelineError` where one has changed since it was."""
        with self._lock:
            self._refresh()
            return self._fresh(source, files)

    def check_unchanged(self, source: InputSource) -> None:
        """Raise `PipelineError` where a file of the source has changed since it was landed."""
        with self._lock:
            # In this order: a file that is landed while the others are listed is then new, and not another.
            self._refresh()
            self._fresh(source, list_files(source))

    def check(self, source: InputSource, files: list[InputFile]) -> None:
        """Raise `AlreadyLanded` where one of these files has been landed."""
        left = len(self.unlanded(source, files))
        if left < len(files):
            raise AlreadyLanded(f"another run landed {len(files) - left} of these files meanwhile")

    def _fresh(self, source: InputSource, files: Iterable[InputFile]) -> list[InputFile]:
        fresh, changed = [], []
        for one in files:
            known = self._files.get(self._real_path(one.path))
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
                    self._files.setdefault(self._real_path(one["path"]), set()).add((one["size"], one["changed"]))

    def _real_path(self, path: str) -> str:
        above, _, name = path.rpartition("/")
        if above not in self._folders:
            self._folders[above] = real_folder(above or "/")
        return f"{self._folders[above]}/{name}"


def land_files(
    spark: SparkSession,
    packed: PackedCatalog,
    source: InputSource,
    lake: Lake,
    *,
    within: tuple[str, ...] = (),
    again: bool = False,
    say: Notice = lambda text: None,
) -> LandingResult:
    """Land the files of a source that no run has landed; what the run came to."""
    with lake.exclusive(*source_lease(source)):
        done = [manifest for manifest in carry_out_unfinished(lake, say) if manifest.source == str(source)]
        files = list_files(source)
        landed = None if again else LandedFiles(lake)
        if landed is not None:
            fresh = landed.unlanded(source, files)
            if len(fresh) < len(files):
                say(f"{len(files) - len(fresh)} file(s) were landed before; --again lands them once more")
            files = fresh
        about = {"kind": "land", "source": str(source), "digest": packed.digest, "within": within}
        with lake.run(about) as run:
            sweep(lake, say)
            landing = Landing(lake, within, say)
            while files:
                batch = file_batch(spark, run.name, 0, source, files, landed)
                try:
                    done.append(landing.land(packed, batch))
                    break
                except AlreadyLanded as error:
                    say(f"{error}; the others are processed again")
                    files = files if landed is None else landed.unlanded(source, files)
    return result_of(done)


def source_lease(source: InputSource) -> tuple[str, str]:
    """The name of the lock of a source, and the words of the error where another process holds it."""
    digest = hashlib.sha256(str(source).encode()).hexdigest()[:16]
    return f"source-{digest}", f"another run is landing {source} into this lake; wait for it"


def file_batch(
    spark: SparkSession, run: str, number: int, source: InputSource, files: list[InputFile], landed: LandedFiles | None
) -> Batch:
    """The batch of some files of a source; it is not committed where one is in `landed` by then."""
    inputs = tuple(one.to_json() for one in files)
    if source.scheme in FILES:
        frame, count = _frame(spark, files), _uncounted
    else:
        counting = ParquetFrame(spark, [one.path for one in files])
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


def _refuse_changed(files: Iterable[InputFile]) -> None:
    """Raise where a file was written to while it was read: what of it was read would not be known."""
    for one in files:
        found = None if is_uri(one.path) else stat_of(one.path)
        if found is not None and (found.size, found.changed) != (one.size, one.changed):
            raise PipelineError(
                f"'{one.path}' was written to while it was landed; nothing was committed. Put only files there that "
                "are whole: write them under a name that begins with a dot, and rename them"
            )


def _frame(spark: SparkSession, files: Sequence[InputFile]) -> Callable[[Job], DataFrame]:
    parts = share_out(files)

    def frame(job: Job) -> DataFrame:
        return spark.range(0, len(parts), 1, len(parts)).mapInArrow(_files_task(job, parts), REPORT)

    return frame


def _files_task(job: Job, parts: Sequence[Sequence[Split]]) -> ArrowTask:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Ctrl+C in a terminal reaches the workers too; it is the driver who says what becomes of their batch.
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield report_row(worker.run(job, _records(parts[number])))

    return task


def _records(splits: Iterable[Split]) -> Iterator[Record]:
    for split in splits:
        yield from read_split(split)
