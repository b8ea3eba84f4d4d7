from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from signalbook.pipeline import worker
from signalbook.pipeline.files import PipelineError, is_leased
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import REPORT, Batch, Landing, reported
from signalbook.pipeline.read.records import Record
from signalbook.pipeline.worker import Job
from tests.pipeline.lakes import book, data_files, event, on_spark, places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = on_spark
Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def stumbling(job: Job, mark: str) -> Task:
    """A task that fails once, after it closed its files."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        records = [
            Record(event(number), "given", number) for batch in batches for number in batch.column(0).to_pylist()
        ]
        report = worker.run(job, records)
        if not Path(mark).exists():
            Path(mark).touch()
            raise RuntimeError("the machine went away")
        yield reported(report)

    return task


def test_a_task_that_fails_after_it_wrote(spark: "SparkSession", tmp_path: Path) -> None:
    """Only files of the attempt that succeeded are committed; the others are swept."""
    lake = Lake.open(str(tmp_path / "lake"))

    def frame(job: Job) -> "DataFrame":
        return spark.range(0, 40, 1, 2).mapInArrow(stumbling(job, str(tmp_path / "mark")), REPORT)

    with lake.run({"kind": "land", "source": "given"}) as run:
        manifest = Landing(lake).land(book(), Batch(run.name, 0, "given", frame))
    found = places(tmp_path / "lake")
    assert (40, 40, {1}) == (manifest.landed, found.total(), set(found.values()))
    committed = {f"{table}/{one['path']}" for table, files in manifest.files.items() for one in files}
    assert committed < data_files(tmp_path / "lake")
    lake.sweep()
    assert committed == data_files(tmp_path / "lake")


def test_what_does_not_add_up_is_not_committed(spark: "SparkSession", tmp_path: Path) -> None:
    """A batch whose input was counted differently leaves nothing."""
    lake = Lake.open(str(tmp_path / "lake"))
    (tmp_path / "mark").touch()

    def frame(job: Job) -> "DataFrame":
        return spark.range(0, 4, 1, 1).mapInArrow(stumbling(job, str(tmp_path / "mark")), REPORT)

    batch = Batch("20260101T000000-00000000", 0, "given", frame, counted=lambda: 5)
    with pytest.raises(PipelineError, match="Spark gave 5 rows and 4 were judged"):
        Landing(lake).land(book(), batch)
    assert ([], 0) == (list(lake.manifests()), places(tmp_path / "lake").total())


def test_a_batch_is_checked_before_it_is_committed(spark: "SparkSession", tmp_path: Path) -> None:
    """A check that refuses, while nobody else can commit, leaves nothing."""
    lake = Lake.open(str(tmp_path / "lake"))
    (tmp_path / "mark").touch()
    held = []

    def frame(job: Job) -> "DataFrame":
        return spark.range(0, 4, 1, 1).mapInArrow(stumbling(job, str(tmp_path / "mark")), REPORT)

    def check() -> None:
        held.append(is_leased(lake.control, "leases/commit"))
        raise PipelineError("too late")

    with pytest.raises(PipelineError, match="too late"):
        Landing(lake).land(book(), Batch("20260101T000000-00000002", 0, "given", frame, check=check))
    assert ([True], [], 0) == (held, list(lake.manifests()), places(tmp_path / "lake").total())


def test_a_task_that_cannot_be_done(spark: "SparkSession", tmp_path: Path) -> None:
    """What fails each time ends in one sentence, and nothing is committed."""
    lake = Lake.open(str(tmp_path / "lake"))

    def frame(job: Job) -> "DataFrame":
        return spark.range(0, 4, 1, 1).mapInArrow(stumbling(job, str(tmp_path / "gone" / "mark")), REPORT)

    with pytest.raises(PipelineError, match=r"nothing was committed: .*FileNotFoundError"):
        Landing(lake).land(book(), Batch("20260101T000000-00000001", 0, "given", frame))
    assert [] == list(lake.manifests())
