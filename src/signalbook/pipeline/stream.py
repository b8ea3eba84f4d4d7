"""Streams: batch after batch of a source that grows, by Structured Streaming, until stopped or until all is there.

Rule 1: Spark's checkpoint says which input a batch has, the manifest whether it was judged: a batch with a manifest is
carried out and never judged again, by whatever catalog there is now.
Rule 2: the catalog is looked at between batches; a newer one is taken, and said.
Rule 3: a file of a spool goes once its batch is committed.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import orjson

from signalbook.pipeline.book import Book
from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.files import Folder
from signalbook.pipeline.inputs import Listed, Source
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import Batch, Landing, Result, Watch, result_of
from signalbook.pipeline.land_files import carried_out, file_batch, source_lease, sweep
from signalbook.pipeline.manifest import Manifest
from signalbook.pipeline.rows import CountedFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["StreamOptions", "land_stream"]

_FILES = "path string, modificationTime timestamp, length long, content binary"


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream runs: until what is there has landed, or for ever with a pause; and how much a batch takes."""

    once: bool = False
    pause: str = "1 second"
    files: int = 1000
    offsets: int = 1_000_000


def land_stream(
    spark: SparkSession,
    books: Callable[[], Book],
    source: Source,
    lake: Lake,
    *,
    within: tuple[str, ...] = (),
    options: StreamOptions | None = None,
    say: Watch = lambda text: None,
) -> Result:
    """Land a source as it grows; what all batches of this call came to."""
    options = options or StreamOptions()
    with lake.alone(*source_lease(source)):
        carried_out(lake, say)
        # Before the run is alive again, so that what it left itself goes as well.
        sweep(lake, say)
        checkpoint = _checkpoint(lake, source, within)
        name = _name(checkpoint)
        with lake.run({"kind": "land", "source": str(source), "stream": True, "within": within}, name) as run:
            steps = _Steps(spark, books, source, lake, run.name, Landing(lake, within, say), say)
            writer = _read(spark, source, options).writeStream.foreachBatch(steps.step)
            writer = writer.option("checkpointLocation", checkpoint.below("spark").uri)
            writer = writer.trigger(availableNow=True) if options.once else writer.trigger(processingTime=options.pause)
            _until_stopped(writer.start(), steps, say)
    return result_of(steps.done)


@dataclass(slots=True)
class _Steps:
    """What happens to each batch."""

    spark: SparkSession
    books: Callable[[], Book]
    source: Source
    lake: Lake
    run: str
    landing: Landing
    say: Watch
    done: list[Manifest] = field(default_factory=list)
    failure: BaseException | None = None
    _digest: str | None = None

    def step(self, rows: DataFrame, number: int) -> None:
        try:
            self._land(rows, number)
        except BaseException as error:
            self.failure = error
            raise

    def _land(self, rows: DataFrame, number: int) -> None:
        manifest = self.lake.manifest(self.run, number)
        if manifest is None:
            batch = self._batch(rows, number)
            if batch is None:
                return
            manifest = self.landing.land(self._book(), batch)
        else:
            self.lake.carry_out(manifest)
        self.done.append(manifest)
        if self.source.scheme == "spool":
            for one in manifest.inputs:
                Folder(one["path"].rpartition("/")[0]).delete(one["path"].rpartition("/")[2])
        counts = manifest.counts
        self.say(f"batch {number}: {counts['input']:,} arrived, {counts['landed']:,} landed, {counts['dead']:,} dead")

    def _batch(self, rows: DataFrame, number: int) -> Batch | None:
        if self.source.scheme == "kafka":
            counted = CountedFrame(rows, str(self.source))
            return Batch(self.run, number, str(self.source), counted.frame, counted=counted.count)
        files = [_listed(row.path, row.length) for row in rows.select("path", "length").collect()]
        landed = {(one["path"], one["size"], one["changed"]) for other in self.lake.manifests() for one in other.inputs}
        fresh = [one for one in files if (one.path, one.size, one.changed) not in landed]
        return file_batch(self.spark, self.run, number, self.source, fresh) if fresh else None

    def _book(self) -> Book:
        book = self.books()
        if self._digest is not None and book.digest != self._digest:
            self.say(f"the catalog is another now: {book.digest[:12]}")
        self._digest = book.digest
        return book


def _read(spark: SparkSession, source: Source, options: StreamOptions) -> DataFrame:
    reader = spark.readStream
    if source.scheme == "kafka":
        servers, _, topics = source.place.partition("/")
        return (
            reader.format("kafka")
            .option("kafka.bootstrap.servers", servers)
            .option("subscribe", topics)
            .option("startingOffsets", "earliest")
            .option("includeHeaders", "true")
            .option("maxOffsetsPerTrigger", options.offsets)
            .load()
        )
    # The files' names are all that is read here; their content is read by the tasks.
    files = reader.format("binaryFile").schema(_FILES).option("recursiveFileLookup", "true")
    return files.option("maxFilesPerTrigger", options.files).load(source.place).select("path", "length")


def _listed(path: str, length: int) -> Listed:
    place = unquote(path.removeprefix("file:").replace("///", "/", 1)) if path.startswith("file:") else path
    above, _, name = place.rpartition("/")
    found = Folder(above or "/").stat(name)
    return Listed(place, length if found is None else found.size, 0 if found is None else found.changed)


def _checkpoint(lake: Lake, source: Source, within: tuple[str, ...]) -> Folder:
    digest = hashlib.sha256(orjson.dumps([str(source), sorted(within)])).hexdigest()[:16]
    return lake.control.below(f"streams/{digest}")


def _name(checkpoint: Folder) -> str:
    """The name of the stream's run; a checkpoint that is made anew counts from 0 again, and gets another."""
    path = "spark/signalbook.json"
    known = checkpoint.read(path)
    if known is None:
        known = orjson.dumps({"run": f"stream-{secrets.token_hex(8)}"})
        checkpoint.write(path, known)
    about: Any = orjson.loads(known)
    return str(about["run"])


def _until_stopped(query: StreamingQuery, steps: _Steps, say: Watch) -> None:
    from pyspark.errors import StreamingQueryException

    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        say("stopping after the batch that is going on")
        query.stop()
    except StreamingQueryException as error:
        if isinstance(steps.failure, PipelineError):
            raise steps.failure from None
        first = str(error).partition("\n")[0]
        raise PipelineError(f"the stream has stopped: {steps.failure or first}") from error
