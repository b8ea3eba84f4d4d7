from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from signalbook.pipeline import delta, worker
from signalbook.pipeline.files import PipelineError, is_leased
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import Batch, CountedFrame, Landing, redrive
from signalbook.pipeline.land_files import land_files
from signalbook.pipeline.read.inputs import parse_source
from signalbook.pipeline.read.records import Record
from signalbook.pipeline.report import read_report
from signalbook.pipeline.tables import DEAD_LETTERS
from signalbook.pipeline.worker import REPORT, Job, report_row
from tests.pipeline.lakes import data_files, dead, event, on_spark, packed, places, write_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        yield report_row(report)

    return task


def test_a_task_that_fails_after_it_wrote(spark: "SparkSession", tmp_path: Path) -> None:
    """Only files of the attempt that succeeded are committed; the others are swept."""
    lake = Lake.open(str(tmp_path / "lake"))

    def frame(job: Job) -> "DataFrame":
        return spark.range(0, 40, 1, 2).mapInArrow(stumbling(job, str(tmp_path / "mark")), REPORT)

    with lake.run({"kind": "land", "source": "given"}) as run:
        manifest = Landing(lake).land(packed(), Batch(run.name, 0, "given", frame))
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
    with pytest.raises(PipelineError, match="Spark gave 5 rows and 4 were read"):
        Landing(lake).land(packed(), batch)
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
        Landing(lake).land(packed(), Batch("20260101T000000-00000002", 0, "given", frame, check=check))
    assert ([True], [], 0) == (held, list(lake.manifests()), places(tmp_path / "lake").total())


def test_a_task_that_cannot_be_done(spark: "SparkSession", tmp_path: Path) -> None:
    """What fails each time ends in one sentence, and nothing is committed."""
    lake = Lake.open(str(tmp_path / "lake"))

    def frame(job: Job) -> "DataFrame":
        return spark.range(0, 4, 1, 1).mapInArrow(stumbling(job, str(tmp_path / "gone" / "mark")), REPORT)

    with pytest.raises(PipelineError, match=r"nothing was committed: .*FileNotFoundError"):
        Landing(lake).land(packed(), Batch("20260101T000000-00000001", 0, "given", frame))
    assert [] == list(lake.manifests())


FUEL = {"type": "number", "maximum": 1}


@pytest.fixture
def lake(spark: "SparkSession", tmp_path: Path) -> Lake:
    """A lake with three dead letters, of which a newer catalog takes two."""
    for name, numbers in (("a", (1, 2)), ("b", (3, 4)), ("c", (5,))):
        fuel = [event(number, data={"km": number, "fuel": number}) for number in numbers]
        write_lines(tmp_path / f"in/{name}.jsonl", fuel)
        there = Lake.open(str(tmp_path / "lake"))
        land_files(spark, packed(fuel=FUEL), parse_source(f"events:{tmp_path / 'in'}"), there)
    return there


def test_what_passes_lands(spark: "SparkSession", lake: Lake) -> None:
    """Dead letters that a newer catalog takes land; the rest stays as it is; a second time changes nothing."""
    before = {letter["record"]: letter for letter in dead(lake.folder.uri)}
    newer = packed(fuel={"type": "number", "maximum": 3})
    result = redrive(spark, newer, lake)
    assert (4, 2, 2) == (result.input, result.landed, result.dead)
    assert [before[letter["record"]] for letter in dead(lake.folder.uri)] == dead(lake.folder.uri)
    assert [0, 0] == [redrive(spark, newer, lake).landed for _ in range(2)]
    assert {1} == set(places(lake.folder.uri).values())
    report = read_report(lake)
    assert (5, 3, 2) == (report.input, report.landed, report.dead)
    assert {"matched": 3, "nonconformant": 2} == report.outcomes
    assert ([2], []) == ([one["count"] for one in report.problems], report.notes)
    redrive(spark, packed(fuel={"type": "number"}), lake)
    report = read_report(lake)
    assert (5, 5, 0) == (report.input, report.landed, report.dead)
    assert ({"matched": 5}, [], []) == (report.outcomes, report.problems, report.notes)


@pytest.mark.parametrize("moment", [0, 1, 2])
def test_a_redrive_that_dies(spark: "SparkSession", lake: Lake, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    """Killed before, between or after its commits, and done again by a catalog that takes less: each message once."""
    real, left = delta.commit, [moment]

    def dying(*arguments: Any) -> bool:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        result = real(*arguments)
        if arguments[1] == DEAD_LETTERS:
            raise KeyboardInterrupt
        return result

    with monkeypatch.context() as killing:
        killing.setattr(delta, "commit", dying)
        with pytest.raises(KeyboardInterrupt):
            redrive(spark, packed(fuel={"type": "number", "maximum": 9}), lake)
    redrive(spark, packed(fuel=FUEL), lake)
    found = places(lake.folder.uri)
    assert (5, {1}) == (found.total(), set(found.values()))
    assert [] == dead(lake.folder.uri)


def test_a_frame_of_numbers(spark: "SparkSession") -> None:
    """A DataFrame whose values are not messages is refused at once."""
    with pytest.raises(PipelineError, match="of the type long; a message is text or bytes"):
        CountedFrame(spark.range(1).withColumnRenamed("id", "value"), "frame")
