"""Streams: batch after batch of a source that grows, by Structured Streaming, until stopped or until all is there.

Rule 1: Spark's checkpoint says which input a batch has, the manifest whether it was matched: a batch with a manifest is
carried out and never matched again, whatever catalog there is now.
Rule 2: the catalog is looked at between batches; a newer one is taken, and said.
Rule 3: a file of a spool goes once its batch is committed.
Rule 4: Spark offers a path once. A file that changed after it was landed is looked for, and stops the stream.
Rule 5: asked to stop (SIGINT, SIGTERM), a stream ends after the batch that is going on.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import orjson

from signalbook.pipeline.files import Folder, PipelineError
from signalbook.pipeline.lake import Lake, Manifest
from signalbook.pipeline.land import (
    Batch,
    CountedFrame,
    Landing,
    LandingResult,
    Notice,
    carry_out_unfinished,
    result_of,
    sweep,
)
from signalbook.pipeline.land_files import AlreadyLanded, LandedFiles, file_batch, source_lease
from signalbook.pipeline.read.inputs import InputFile, InputSource, stat_of
from signalbook.pipeline.worker import PackedCatalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["StreamOptions", "land_stream"]

# Spark passes over files that are so much older than the newest it has seen; a copied file keeps its old time.
_MAX_AGE = "36500d"
_FILES = "path string, modificationTime timestamp, length long, content binary"


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream runs: until what is there has landed, or for ever with a pause; and how much a batch takes.

    Every `look_seconds` it is looked whether a file has changed since it was landed.
    """

    once: bool = False
    pause: str = "1 second"
    files: int = 1000
    offsets: int = 1_000_000
    look_seconds: float = 10.0


def land_stream(
    spark: SparkSession,
    current_catalog: Callable[[], PackedCatalog],
    source: InputSource,
    lake: Lake,
    *,
    within: tuple[str, ...] = (),
    options: StreamOptions | None = None,
    say: Notice = lambda text: None,
) -> LandingResult:
    """Land a source as it grows; what all batches of this call came to."""
    from pyspark.sql.utils import is_remote

    if is_remote():
        raise PipelineError(
            "over Spark Connect the batches of a stream run at the server; use foreachBatch with "
            "signalbook.spark.land(…, run=RUN, batch=n), or a session with --master local[*] or spark://HOST:PORT"
        )
    options = options or StreamOptions()
    with lake.exclusive(*source_lease(source)):
        carry_out_unfinished(lake, say)
        landed = LandedFiles(lake)
        if source.scheme != "kafka":
            landed.check_unchanged(source)
        # Before the run is alive again, so that what it left itself goes as well.
        sweep(lake, say)
        checkpoint = _checkpoint(lake, source, within)
        name = _run_name(checkpoint)
        with lake.run({"kind": "land", "source": str(source), "stream": True, "within": within}, name) as run:
            steps = _Steps(spark, current_catalog, source, lake, run.name, Landing(lake, within, say), landed, say)
            writer = _read_stream(spark, source, options).writeStream.foreachBatch(steps.step)
            writer = writer.option("checkpointLocation", checkpoint.below("spark").uri)
            writer = writer.trigger(availableNow=True) if options.once else writer.trigger(processingTime=options.pause)
            with _asked_to_stop() as asked:
                _until_stopped(writer.start(), steps, options, asked)
    return result_of(steps.done)


@dataclass(slots=True)
class _Steps:
    """What happens to each batch."""

    spark: SparkSession
    current_catalog: Callable[[], PackedCatalog]
    source: InputSource
    lake: Lake
    run: str
    landing: Landing
    landed: LandedFiles
    say: Notice
    done: list[Manifest] = field(default_factory=list)
    failure: BaseException | None = None
    _digest: str | None = None
    _going: threading.Lock = field(default_factory=threading.Lock)
    _halted: bool = False

    def step(self, rows: DataFrame, number: int) -> None:
        with self._going:
            if self._halted:
                # To return would tell Spark that the batch is done.
                raise PipelineError("the stream is being stopped")
            try:
                self._land(rows, number)
            except BaseException as error:
                self.failure = error
                raise

    def halt(self) -> None:
        """Begin no further batch, and wait for the one that is going on."""
        self._halted = True
        with self._going:
            pass

    def check_unchanged(self) -> None:
        """Raise where a file has changed since it was landed; those of a spool never do."""
        if self.source.scheme not in ("kafka", "spool"):
            self.landed.check_unchanged(self.source)

    def _land(self, rows: DataFrame, number: int) -> None:
        manifest = self.lake.manifest(self.run, number)
        if manifest is None:
            manifest = self._match(rows, number)
            if manifest is None:
                return
        else:
            self.lake.carry_out(manifest)
        self.done.append(manifest)
        if self.source.scheme == "spool":
            for one in manifest.inputs:
                Folder(one["path"].rpartition("/")[0]).delete(one["path"].rpartition("/")[2])
        counts = manifest.counts
        self.say(f"batch {number}: {counts['input']:,} arrived, {counts['landed']:,} landed, {counts['dead']:,} dead")

    def _match(self, rows: DataFrame, number: int) -> Manifest | None:
        while (batch := self._batch(rows, number)) is not None:
            try:
                return self.landing.land(self._catalog(), batch)
            except AlreadyLanded as error:
                self.say(f"{error}; the others are processed again")
        return None

    def _batch(self, rows: DataFrame, number: int) -> Batch | None:
        if self.source.scheme == "kafka":
            counted = CountedFrame(rows, str(self.source))
            return Batch(self.run, number, str(self.source), counted.frame, counted=counted.count)
        files = [_listed(row.path, row.length) for row in rows.select("path", "length").collect()]
        fresh = self.landed.unlanded(self.source, files)
        return file_batch(self.spark, self.run, number, self.source, fresh, self.landed) if fresh else None

    def _catalog(self) -> PackedCatalog:
        packed = self.current_catalog()
        if self._digest is not None and packed.digest != self._digest:
            self.say(f"the catalog has changed: {packed.digest[:12]}")
        self._digest = packed.digest
        return packed


def _read_stream(spark: SparkSession, source: InputSource, options: StreamOptions) -> DataFrame:
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
    files = files.option("maxFilesPerTrigger", options.files).option("maxFileAge", _MAX_AGE)
    return files.load(source.place).select("path", "length")


def _listed(path: str, length: int) -> InputFile:
    place = unquote(path.removeprefix("file:").replace("///", "/", 1)) if path.startswith("file:") else path
    found = stat_of(place)
    return InputFile(place, length if found is None else found.size, 0 if found is None else found.changed)


def _checkpoint(lake: Lake, source: InputSource, within: tuple[str, ...]) -> Folder:
    digest = hashlib.sha256(orjson.dumps([str(source), sorted(within)])).hexdigest()[:16]
    return lake.control.below(f"streams/{digest}")


def _run_name(checkpoint: Folder) -> str:
    """The name of the stream's run; a new checkpoint counts batches from 0 again, so it gets a new name."""
    path = "spark/signalbook.json"
    known = checkpoint.read(path)
    if known is None:
        known = orjson.dumps({"run": f"stream-{secrets.token_hex(8)}"})
        checkpoint.write(path, known)
    about: Any = orjson.loads(known)
    return str(about["run"])


@contextlib.contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """An event that is set when the process is asked to stop; a second request interrupts it."""
    asked = threading.Event()

    def stop(number: int, frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for one, handler in before.items():
            signal.signal(one, signal.SIG_DFL if handler is None else handler)


def _until_stopped(query: StreamingQuery, steps: _Steps, options: StreamOptions, asked: threading.Event) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        _wait_for_end(query, steps, options, asked)
    except (PySparkException, Py4JError, OSError) as error:
        first = str(error).partition("\n")[0]
        if asked.is_set():
            # A signal to all processes ends Java as well. What has no manifest never happened.
            steps.say(f"the batch that was going on is left for the next start: {steps.failure or first}")
            return
        if isinstance(steps.failure, PipelineError):
            raise steps.failure from None
        raise PipelineError(f"the stream has stopped: {steps.failure or first}") from error
    finally:
        steps.halt()
        # A query that has failed already, or whose Java is gone, has nothing left to stop.
        with contextlib.suppress(PySparkException, Py4JError, OSError):
            query.stop()
    if options.once and not asked.is_set():
        steps.check_unchanged()


def _wait_for_end(query: StreamingQuery, steps: _Steps, options: StreamOptions, asked: threading.Event) -> None:
    """Wait until the query ends or is asked to stop, in short steps: signals are handled between them."""
    due = time.monotonic() + options.look_seconds
    while not query.awaitTermination(1):
        if asked.is_set():
            steps.say("stopping after the batch that is going on")
            return
        if time.monotonic() >= due:
            steps.check_unchanged()
            due = time.monotonic() + options.look_seconds
