"""A real cluster of two workers on this machine: `spark-submit` lands, and an executor that lacks the lake is told."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from signalbook.pipeline.session import find_java
from tests.patience import LONG, until
from tests.pipeline.lakes import document, event, places, write_lines

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
HOME = Path(pyspark.__file__).parent
PROGRAM = 'import sys\nfrom signalbook.cli import main\nsys.exit(main(["land", *sys.argv[1:]]))\n'
SECONDS = 300


def environment() -> dict[str, str]:
    """What the processes of a cluster are started with."""
    java = find_java()
    found = {**os.environ, "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return found if java is None else {**found, "JAVA_HOME": java}


@contextmanager
def running(log: Path, *words: str) -> Iterator[None]:
    """A daemon of Spark's, until the block ends."""
    with log.open("wb") as output:
        command = [str(HOME / "bin/spark-class"), *words]
        process = subprocess.Popen(command, env=environment(), stdout=output, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.terminate()
        process.wait(LONG)


def free_port() -> int:
    """A port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait_for(log: Path, words: str, times: int = 1) -> None:
    """Wait until a daemon has said something so often."""
    said = until(lambda: log.exists() and log.read_text(errors="replace").count(words) >= times)
    assert said, log.read_text(errors="replace")[-2000:]


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master with two workers."""
    folder = tmp_path_factory.mktemp("cluster")
    port, page = free_port(), free_port()
    address = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:
        words = (f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page))
        stack.enter_context(running(folder / "master.log", *words))
        wait_for(folder / "master.log", "I have been elected leader")
        for number in range(2):
            options = ("--cores", "1", "--memory", "1g", "--webui-port", str(free_port()), "--work-dir", str(folder))
            words = (f"{deploy}.worker.Worker", "--host", "127.0.0.1", *options, address)
            stack.enter_context(running(folder / f"worker{number}.log", *words))
        wait_for(folder / "master.log", "Registering worker", 2)
        yield address


def submit(master: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The landing of the folder `in`, by `spark-submit`."""
    (folder / "land.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "catalog.json").write_text(json.dumps(document()), encoding="utf-8")
    settings = ["--master", master, "--driver-memory", "1g", "--executor-memory", "800m", *more]
    settings += ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"]
    words = ["--catalog", "catalog.json", "--from", f"events:{folder / 'in'}", "--to", str(folder / "lake"), "--json"]
    command = [str(HOME / "bin/spark-submit"), *settings, "land.py", *words]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=SECONDS, check=False
    )


@pytest.mark.timeout(900)
def test_a_landing_on_two_workers(master: str, tmp_path: Path) -> None:
    """Both executors write into the shared lake, and each message is there once."""
    for number in range(4):
        write_lines(tmp_path / f"in/{number}.jsonl", [event(one) for one in range(20_000)] + [b"oops"])
    done = submit(master, tmp_path)
    assert 0 == done.returncode, done.stderr[-3000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert (80_004, 80_000, 4) == (result["input"], result["landed"], result["dead"])
    found = places(tmp_path / "lake")
    assert (80_004, {1}) == (found.total(), set(found.values()))
