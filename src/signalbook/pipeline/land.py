"""Landing: the driver's part. Share out, have it judged and written, prepare tables, write the manifest, commit.

Rule 1: there is one action over the judged plan, and only what it returns is committed.
Rule 2: `input` is what was read; landed and dead are rows in files. Where they do not add up nothing is committed.
Rule 3: a table that another run changed meanwhile makes the batch be judged again, before its manifest is there.
Rule 4: whether another run landed its input meanwhile is looked at once more, alone, right before the manifest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from signalbook.pipeline import delta
from signalbook.pipeline.catalog import Book
from signalbook.pipeline.delta import Overtaken
from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.manifest import Manifest, Replaced, Tally
from signalbook.pipeline.planning import Plan, Tables
from signalbook.pipeline.tables import DEAD_LETTERS, Stamp, layout_of
from signalbook.pipeline.tables import SCHEMA as DEAD_SCHEMA
from signalbook.pipeline.worker import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["REPORT", "Batch", "Landing", "Result", "Watch", "collected", "reported", "result_of"]

_TRIES = 5
REPORT = "report binary"

Watch = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Result:
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


def result_of(manifests: Iterable[Manifest]) -> Result:
    """What some batches come to."""
    whole = Tally.sum(manifest.counts for manifest in manifests)
    messages = {xid: count for xid, count in sorted(whole.messages.items()) if count}
    return Result(whole.input, whole.landed, whole.dead, dict(whole.outcomes), messages, whole.unchecked)


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: what it is part of, where its input came from, and how the judged plan is made of a job.

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
    """The way of batches into a lake."""

    lake: Lake
    within: tuple[str, ...] = ()
    say: Watch = lambda text: None
    _tables: Tables | None = None

    def land(self, book: Book, batch: Batch) -> Manifest:
        """Judge a batch, write its manifest, and carry it out."""
        tables = self._tables or Tables(self.lake.folder)
        self._tables = tables
        self.lake.keep(book)
        for _ in range(_TRIES):
            plan = tables.plan(book.catalog())
            manifest = self._judged(book, batch, plan)
            try:
                self._prepare(book, manifest, plan)
            except Overtaken as error:
                self.say(f"{error}; the batch is processed again")
                tables.forget()
                continue
            with self.lake.committing():
                batch.check()
                self.lake.write(manifest)
            self.lake.carry_out(manifest)
            return manifest
        raise PipelineError("other runs change the same tables all the time; try again when they are done")

    def _judged(self, book: Book, batch: Batch, plan: Plan) -> Manifest:
        stamp = Stamp(book.digest, batch.run, batch.number)
        job = Job(book, self.lake.folder, stamp, plan.tables, plan.refused, self.within)
        reports = [orjson.loads(report) for report in collected(batch.frame(job))]
        tally = Tally.sum(reports)
        files: dict[str, list[dict[str, Any]]] = {}
        for report in reports:
            for file in report["files"]:
                files.setdefault(file["table"], []).append(file)
        counted = batch.counted()
        if counted is not None and counted != tally.records:
            raise PipelineError(f"Spark gave {counted:,} rows and {tally.records:,} were judged; nothing was committed")
        self._add_up(tally, files, sum(report.get("untouched", 0) for report in reports))
        return Manifest(
            run=batch.run,
            batch=batch.number,
            digest=book.digest,
            source=batch.source,
            written=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            counts=tally.to_json(),
            files=files,
            inputs=batch.inputs,
            replaced=batch.replaced(reports),
            kind=batch.kind,
            notes=tuple(f"{xid}: {reason}" for xid, reason in plan.refused.items()),
        )

    def _add_up(self, tally: Tally, files: Mapping[str, Sequence[Mapping[str, Any]]], untouched: int) -> None:
        """`untouched` are dead letters that stay where they are."""
        rows = {table: sum(file["rows"] for file in some) for table, some in files.items()}
        written, buried = sum(rows.values()) + untouched, rows.get(DEAD_LETTERS, 0) + untouched
        if not tally.input == written == tally.landed + tally.dead or buried != tally.dead:
            raise PipelineError(
                f"the batch does not add up: {tally.input:,} read, {tally.landed:,} landed and {tally.dead:,} dead, "
                f"but {written:,} rows in files; nothing was committed"
            )

    def _prepare(self, book: Book, manifest: Manifest, plan: Plan) -> None:
        owners = {table: xid for xid, table in plan.tables.items()}
        catalog = book.catalog()
        for table in manifest.files:
            if table == DEAD_LETTERS:
                delta.prepare(self.lake.folder, table, DEAD_LETTERS, DEAD_SCHEMA)
            else:
                delta.prepare(self.lake.folder, table, owners[table], layout_of(catalog, owners[table]).schema)


def collected(frame: DataFrame) -> list[bytes]:
    """What the tasks of a judged plan report: the one action over it."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return [bytes(row.report) for row in frame.collect()]
    except (PySparkException, Py4JError) as error:
        raise PipelineError(f"Spark could not finish the batch, and nothing was committed: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    """The line of a long message that says what happened: a Python worker's last, else the first."""
    # Over Spark Connect, Java's stack stands below the words.
    words = str(error).partition("\n\nJVM stacktrace:")[0]
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    ends = [line for line in lines if re.match(r"(?:[a-zA-Z_]+\.)*[A-Z][A-Za-z]*(?:Error|Exception|Interrupt)\b", line)]
    return (ends or lines or [type(error).__name__])[-1 if ends else 0][:500]


def reported(report: bytes) -> pa.RecordBatch:
    """A task's report as the row that it gives back."""
    return pa.RecordBatch.from_arrays([pa.array([report], pa.binary())], ["report"])
