"""Landing: the driver's part. Share the input out to tasks, have it matched and written, and commit what they report.

`Landing` takes a `Batch` into a lake; `redrive` is a landing whose input is the dead letters.

Rule 1: there is one action over the plan of a batch, and only what it returns is committed.
Rule 2: `input` is what was read; landed and dead are rows in files. Where they do not add up nothing is committed.
Rule 3: Spark counts the rows of a DataFrame on its own side, and the count must be that of the records which were read.
Rule 4: a table that another run changed meanwhile makes the batch be processed again, before its manifest is there.
Rule 5: right before the manifest is written, under a lock, the batch checks that no other run landed its input.
Rule 6: a redrive replaces a file of dead letters of which some land by one with the others, in one commit of that
table. One redrive goes on in a lake at a time, and nothing else replaces dead letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from signalbook.pipeline import delta, worker
from signalbook.pipeline.delta import KnownTables, Replaced, TableChanged, TablePlan
from signalbook.pipeline.files import Folder, PipelineError
from signalbook.pipeline.lake import Lake, Manifest
from signalbook.pipeline.read.records import (
    CONNECTOR_COLUMNS,
    NO_VALUE,
    ParquetPart,
    Record,
    inputs_of,
    read_parquet,
    share_parquet,
)
from signalbook.pipeline.tables import DEAD_LETTER_SCHEMA, DEAD_LETTERS, Stamp, layout_of
from signalbook.pipeline.worker import (
    REPORT,
    ArrowTask,
    Job,
    LandingCounts,
    PackedCatalog,
    Task,
    report_row,
    without_garbage_collection,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "Batch",
    "CountedFrame",
    "Landing",
    "LandingResult",
    "Notice",
    "ParquetFrame",
    "carry_out_unfinished",
    "collect_reports",
    "redrive",
    "result_of",
    "sweep",
]

_TRIES = 5

Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LandingResult:
    """What came of a landing, in the one form that `--json` prints."""

    input: int = 0
    landed: int = 0
    dead: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    messages: Mapping[str, int] = field(default_factory=dict)
    unchecked: int = 0

    def to_json(self) -> dict[str, Any]:
        """The result as a JSON value."""
        return {
            "input": self.input,
            "landed": self.landed,
            "dead": self.dead,
            "outcomes": dict(self.outcomes),
            "messages": dict(self.messages),
            "unchecked": self.unchecked,
        }


def result_of(manifests: Iterable[Manifest]) -> LandingResult:
    """The result of several batches together."""
    whole = LandingCounts.sum(manifest.counts for manifest in manifests)
    messages = {xid: count for xid, count in sorted(whole.messages.items()) if count}
    return LandingResult(whole.input, whole.landed, whole.dead, dict(whole.outcomes), messages, whole.unchecked)


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: what it is part of, where its input came from, and how a job becomes a plan of Spark.

    `check` raises where the batch may not be committed any more.
    """

    run: str
    number: int
    source: str
    frame: Callable[[Job], DataFrame]
    inputs: tuple[Mapping[str, Any], ...] = ()
    counted: Callable[[], int | None] = lambda: None
    replaced: Callable[[list[dict[str, Any]]], tuple[Replaced, ...]] = lambda reports: ()
    kind: str = "land"
    check: Callable[[], None] = lambda: None


@dataclass(slots=True)
class Landing:
    """Batches on their way into a lake; what is known of its tables is kept from one to the next."""

    lake: Lake
    within: tuple[str, ...] = ()
    say: Notice = lambda text: None
    _tables: KnownTables | None = None

    def land(self, packed: PackedCatalog, batch: Batch) -> Manifest:
        """Match a batch, write its manifest, and carry it out."""
        tables = self._tables or KnownTables(self.lake.folder)
        self._tables = tables
        self.lake.keep_catalog(packed.digest, packed.text)
        for _ in range(_TRIES):
            plan = tables.plan(packed.catalog())
            manifest = self._match(packed, batch, plan)
            try:
                self._prepare(packed, manifest, plan)
            except TableChanged as error:
                self.say(f"{error}; the batch is processed again")
                tables.forget()
                continue
            with self.lake.commit_lock():
                batch.check()
                self.lake.write(manifest)
            self.lake.carry_out(manifest)
            return manifest
        raise PipelineError("other runs change the same tables all the time; try again when they are done")

    def _match(self, packed: PackedCatalog, batch: Batch, plan: TablePlan) -> Manifest:
        stamp = Stamp(packed.digest, batch.run, batch.number)
        job = Job(packed, self.lake.folder, stamp, plan.tables, plan.refused, self.within)
        reports = [orjson.loads(report) for report in collect_reports(batch.frame(job))]
        counts = LandingCounts.sum(reports)
        files: dict[str, list[dict[str, Any]]] = {}
        for report in reports:
            for file in report["files"]:
                files.setdefault(file["table"], []).append(file)
        counted = batch.counted()
        if counted is not None and counted != counts.records:
            raise PipelineError(f"Spark gave {counted:,} rows and {counts.records:,} were read; nothing was committed")
        self._add_up(counts, files, sum(report.get("untouched", 0) for report in reports))
        return Manifest(
            run=batch.run,
            batch=batch.number,
            digest=packed.digest,
            source=batch.source,
            written=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            counts=counts.to_json(),
            files=files,
            inputs=batch.inputs,
            replaced=batch.replaced(reports),
            kind=batch.kind,
            notes=tuple(f"{xid}: {reason}" for xid, reason in plan.refused.items()),
        )

    def _add_up(self, counts: LandingCounts, files: Mapping[str, Sequence[Mapping[str, Any]]], untouched: int) -> None:
        """`untouched` are dead letters that stay where they are."""
        rows = {table: sum(file["rows"] for file in some) for table, some in files.items()}
        written, dead = sum(rows.values()) + untouched, rows.get(DEAD_LETTERS, 0) + untouched
        if not counts.input == written == counts.landed + counts.dead or dead != counts.dead:
            raise PipelineError(
                f"the batch does not add up: {counts.input:,} read, {counts.landed:,} landed and {counts.dead:,} dead, "
                f"but {written:,} rows in files; nothing was committed"
            )

    def _prepare(self, packed: PackedCatalog, manifest: Manifest, plan: TablePlan) -> None:
        owners = {table: xid for xid, table in plan.tables.items()}
        catalog = packed.catalog()
        for table in manifest.files:
            if table == DEAD_LETTERS:
                delta.prepare(self.lake.folder, table, DEAD_LETTERS, DEAD_LETTER_SCHEMA)
            else:
                delta.prepare(self.lake.folder, table, owners[table], layout_of(catalog, owners[table]).schema)


def collect_reports(frame: DataFrame) -> list[bytes]:
    """Run the plan, and return what its tasks report."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return [bytes(row.report) for row in frame.collect()]
    except (PySparkException, Py4JError) as error:
        raise PipelineError(f"Spark could not finish the batch, and nothing was committed: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    """The line of a long message that says what happened: a Python worker's last, else the first."""
    # Over Spark Connect, Java's stack follows the words.
    words = str(error).partition("\n\nJVM stacktrace:")[0]
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    ends = [line for line in lines if re.match(r"(?:[a-zA-Z_]+\.)*[A-Z][A-Za-z]*(?:Error|Exception|Interrupt)\b", line)]
    return (ends or lines or [type(error).__name__])[-1 if ends else 0][:500]


def carry_out_unfinished(lake: Lake, say: Notice) -> list[Manifest]:
    """The batches that ended runs left unfinished, carried out now."""
    finished = lake.roll_forward()
    for manifest in finished:
        say(f"carried out batch {manifest.batch} of run {manifest.run}, which was left unfinished")
    return finished


def sweep(lake: Lake, say: Notice) -> None:
    """Remove what ended runs left and nobody committed."""
    swept = lake.sweep()
    if swept:
        say(f"removed {swept} file(s) that a run left behind")


# The rows of a batch as a plan of Spark.


class CountedFrame:
    """A DataFrame whose rows are landed, and counted by Spark on the way."""

    def __init__(self, rows: DataFrame, origin: str) -> None:
        if "value" not in rows.columns:
            raise PipelineError(NO_VALUE)
        held = rows.schema["value"].dataType.typeName()
        if held not in ("string", "binary", "varchar", "char", "void"):
            raise PipelineError(f"the column value is of the type {held}; a message is text or bytes")
        self._rows = rows
        self._origin = origin
        self._count: Callable[[], int | None] = lambda: None

    def frame(self, job: Job) -> DataFrame:
        """The plan that matches and writes the rows."""
        from pyspark.sql import Observation, functions

        observation = Observation()
        self._count = lambda: int(observation.get["rows"])
        wanted = [name for name in CONNECTOR_COLUMNS if name in self._rows.columns]
        counted = self._rows.select(*wanted).observe(observation, functions.count(functions.lit(1)).alias("rows"))
        return counted.mapInArrow(_rows_task(job, self._origin), REPORT)

    def count(self) -> int | None:
        """How many rows Spark gave, once the plan has run."""
        return self._count()


class ParquetFrame:
    """Parquet files whose rows are landed, each file by its own schema."""

    def __init__(self, spark: SparkSession, paths: Sequence[str]) -> None:
        self._spark = spark
        self._tasks = share_parquet(paths)

    def frame(self, job: Job) -> DataFrame:
        """The plan that matches and writes the rows."""
        tasks = self._tasks
        return self._spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(_parquet_task(job, tasks), REPORT)

    def count(self) -> int | None:
        """Nothing: the rows of each file are counted where it is read."""
        return None


def _rows_task(job: Job, origin: str) -> ArrowTask:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield report_row(worker.run(job, inputs_of(batches, origin)))

    return task


def _parquet_task(job: Job, tasks: Sequence[Sequence[ParquetPart]]) -> ArrowTask:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                parts = tasks[number]
                records = (record for one in parts for record in read_parquet(one.path, one.number, one.parts))
                yield report_row(worker.run(job, records))

    return task


# Redriving: dead letters are matched again by a newer catalog. What passes lands, the rest stays as it is.


_WORDS = "another redrive is going on in this lake; wait for it"
_AT_ONCE = 4096


def redrive(
    spark: SparkSession,
    packed: PackedCatalog,
    lake: Lake,
    *,
    within: tuple[str, ...] = (),
    say: Notice = lambda text: None,
) -> LandingResult:
    """Match the dead letters of a lake again and land what passes; `input` is how many there were."""
    with lake.exclusive("redrive", _WORDS):
        done = [manifest for manifest in carry_out_unfinished(lake, say) if manifest.kind == "redrive"]
        files = delta.files_of(lake.folder, DEAD_LETTERS)
        with lake.run({"kind": "redrive", "source": DEAD_LETTERS, "digest": packed.digest, "within": within}) as run:
            sweep(lake, say)
            if files:
                frame = _redrive_frame(spark, files)
                batch = Batch(run.name, 0, DEAD_LETTERS, frame, replaced=_replaced(files), kind="redrive")
                done.append(Landing(lake, within, say).land(packed, batch))
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


def _redrive_task(job: Job, paths: Sequence[str]) -> ArrowTask:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with without_garbage_collection():
                    yield report_row(orjson.dumps(_redrive_file(job, paths[number])))

    return task


def _redrive_file(job: Job, path: str) -> dict[str, Any]:
    """Land what passes of one file of dead letters; where some did, write the others to a file of their own."""
    task = Task(job)
    with task.writing():
        kept = [
            batch.filter(pa.array(_stays(task, batch))) for batch in _dead_letters(job.lake.below(DEAD_LETTERS), path)
        ]
        left = pa.Table.from_batches(kept)
        moved = task.counts.input > left.num_rows
        if moved:
            task.writers.copy(DEAD_LETTERS, left)
    return {**task.report(), "untouched": 0 if moved else left.num_rows, "replaced": [path] if moved else []}


def _dead_letters(folder: Folder, path: str) -> Iterator[pa.RecordBatch]:
    with folder.open(path) as file:
        yield from pq.ParquetFile(file).iter_batches(_AT_ONCE)


def _stays(task: Task, letters: pa.RecordBatch) -> list[bool]:
    """Say of each dead letter whether it stays one."""
    stay = []
    judged = letters.column("judged")
    for data, place in zip(letters.column("record").to_pylist(), judged.to_pylist(), strict=True):
        reason = None if data is not None else "the record was not kept"
        record = Record(data, place["origin"], place["position"], reason)
        task.counts.input += 1
        refusal = task.land(record)
        if refusal is not None:
            task.count_dead_letter(record, *refusal)
        stay.append(refusal is not None)
    return stay
