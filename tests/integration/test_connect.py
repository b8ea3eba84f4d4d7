"""A real server of Spark Connect on this machine: judged and landed by a client that has no Java and no context."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from signalbook.pipeline.session import find_java
from tests.conftest import ROOT
from tests.integration.conftest import REQUIRED
from tests.integration.processes import free_port, missing, serving
from tests.pipeline.lakes import MOVED, document, event, places, write_lines

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]
HOME = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
SECONDS = 300
LINES = [event(1), event(2, data={"km": "far"}), b"oops", event(3, type="unheard"), event(4, other="x")]
# In a process of its own: one that has a session with Java cannot have another with a server.
PROGRAM = """
import json, sys
from signalbook import spark as sb
from signalbook.pipeline.session import LocalSettings, open_session

address, folder = sys.argv[1:]
spark = open_session(LocalSettings(master=address))
catalog, lake, run = sb.catalog(f"{folder}/catalog.json"), f"{folder}/lake", "00112233aabbccdd"
rows = spark.read.text(f"{folder}/in")
judged = sb.judge(rows, catalog).groupBy("outcome").count().collect()
landed = [sb.land(rows, catalog, lake, run=run, batch=7).to_json() for _ in range(2)]

def land(batch, number):
    sb.land(batch, catalog, f"{folder}/streamed", run=run, batch=number)

stream = spark.readStream.text(f"{folder}/in").writeStream.foreachBatch(land)
stream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start().awaitTermination()
print(json.dumps({
    "session": type(spark).__module__,
    "judged": {row.outcome: row["count"] for row in judged},
    "landed": landed,
    "km": [row.data.km for row in sb.table(spark, lake, "fleet/moved").orderBy("id").collect()],
    "views": sb.views_of(spark, lake),
    "letters": spark.sql("SELECT * FROM signalbook__dead_letters").count(),
    "streamed": sb.table(spark, f"{folder}/streamed", "fleet/moved").count(),
}))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that runs its tasks on two processors."""
    if importlib.util.find_spec("grpc_status") is None:
        missing("spark connect: grpcio-status is not installed (pip install 'pyspark[connect]')", required=REQUIRED)
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [str(HOME / "bin/spark-submit"), "--master", "local[2]", "--class", SERVER, *words]
    java = find_java()
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    known = environment if java is None else {**environment, "JAVA_HOME": java}
    with serving(command, port, tmp_path_factory.mktemp("connect"), seconds=SECONDS, env=known):
        yield f"sc://127.0.0.1:{port}"


def printed(folder: Path, *words: str) -> Any:
    """What a process prints last, as JSON; without Java, as a client needs none."""
    environment = {**os.environ, "JAVA_HOME": str(folder / "no-java"), "PYTHONPATH": os.pathsep.join(_paths())}
    command = [sys.executable, *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert 0 == done.returncode, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def _paths() -> list[str]:
    return [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]


def test_the_functions_over_connect(server: str, tmp_path: Path) -> None:
    """`judge`, `land`, `table` and `views_of` do over Connect what they do in a session, also within `foreachBatch`."""
    (tmp_path / "catalog.json").write_text(json.dumps(document()), encoding="utf-8")
    write_lines(tmp_path / "in/a.txt", LINES)
    found = printed(tmp_path, "-c", PROGRAM, server, str(tmp_path))
    outcomes = {"matched": 2, "nonconformant": 1, "malformed": 1, "unexpected": 1}
    result = {"input": 5, "landed": 2, "dead": 3, "outcomes": outcomes, "messages": {MOVED: 2}, "unchecked": 0}
    expected = {
        "session": "pyspark.sql.connect.session",
        "judged": outcomes,
        "landed": [result, result],
        "km": [1, 4],
        "views": ["fleet__moved", "signalbook__dead_letters"],
        "letters": 3,
        "streamed": 2,
    }
    assert expected == found


def test_the_commands_over_connect(server: str, tmp_path: Path) -> None:
    """`land` and `redrive` take a server's address as their master."""
    (tmp_path / "catalog.json").write_text(json.dumps(document()), encoding="utf-8")
    write_lines(tmp_path / "in/a.jsonl", LINES)
    given = ["--catalog", "catalog.json", "--master", server, "--json"]
    lake = str(tmp_path / "lake")
    landed = printed(tmp_path, "-m", "signalbook", "land", "--from", f"events:{tmp_path}/in", "--to", lake, *given)
    assert (5, 2, 3) == (landed["input"], landed["landed"], landed["dead"])
    newer = document()
    newer["messagegroups"]["fleet"]["messages"]["unheard"] = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "unheard"}},
    }
    (tmp_path / "catalog.json").write_text(json.dumps(newer), encoding="utf-8")
    redriven = printed(tmp_path, "-m", "signalbook", "redrive", "--lake", lake, *given)
    assert (3, 1, 2) == (redriven["input"], redriven["landed"], redriven["dead"])
    found = places(lake)
    assert (5, {1}) == (found.total(), set(found.values()))
