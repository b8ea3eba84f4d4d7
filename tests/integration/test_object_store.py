"""A lake in an object store: moto's S3 on this machine, reached as any S3 is, by addresses and the environment.

moto comes from PyPI into a virtual environment of its own below `.cache`, once. Where it cannot be had, these tests are
skipped by name.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import fs

from scripts.brokers import Unavailable
from signalbook.pipeline import delta
from signalbook.pipeline.files import Folder, PipelineError
from signalbook.pipeline.lake import Lake
from tests.conftest import ROOT
from tests.integration.conftest import REQUIRED
from tests.integration.processes import free_port, missing, serving
from tests.pipeline.lakes import document, event

pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore")]
MOTO = "5.2.5"
SECONDS = 600
SETTINGS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_ALLOW_HTTP": "true",
}


def moto_server() -> list[str]:
    """The command, fetched the first time; raises `Unavailable`. Older versions fail at what Arrow asks of them."""
    folder = ROOT / ".cache" / f"moto-{MOTO}"
    if not folder.is_dir():
        fetch_moto(folder)
    # By its Python: the program itself names the folder that it was installed in before the renaming.
    return [str(folder / "bin/python"), str(folder / "bin/moto_server")]


def fetch_moto(folder: Path) -> None:
    """Install moto into a virtual environment, which is there as a whole or not at all."""
    aside = folder.with_name(f"{folder.name}-{uuid.uuid4().hex}")
    environment = [sys.executable, "-m", "venv", str(aside)]
    install = [f"{aside}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        for command in (environment, [*install, f"moto[server]=={MOTO}"]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
            if done.returncode != 0:
                words = " ".join((done.stderr or done.stdout).split())[-300:]
                raise Unavailable(f"moto {MOTO} could not be installed: {words}")
        aside.rename(folder)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"moto {MOTO} was not installed within {SECONDS} seconds") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 server."""
    try:
        program = moto_server()
    except Unavailable as reason:
        missing(f"s3: {reason}", required=REQUIRED)
    port = free_port()
    with serving([*program, "-H", "127.0.0.1", "-p", str(port)], port, tmp_path_factory.mktemp("moto")):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty bucket, with the environment that reaches it."""
    for name, value in {**SETTINGS, "AWS_ENDPOINT_URL": endpoint}.items():
        monkeypatch.setenv(name, value)
    name = f"bucket-{uuid.uuid4().hex}"
    assert 200 == httpx.put(f"{endpoint}/{name}", timeout=SECONDS).status_code
    return f"s3://{name}"


def signalbook(*words: str) -> dict[str, Any]:
    """What a command prints as JSON; Spark runs on two processors."""
    command = [sys.executable, "-m", "signalbook", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert 0 == done.returncode, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def put(place: str, *lines: bytes) -> None:
    """A file of lines in the store, put there by Arrow alone."""
    system, path = fs.FileSystem.from_uri(place)
    with system.open_output_stream(path) as file:
        file.write(b"".join(line + b"\n" for line in lines))


def columns(lake: str, table: str) -> pa.Table:
    """A table as Delta's own reader has it."""
    return DeltaTable(f"{lake}/{table}").to_pyarrow_table()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_lake_in_an_object_store(bucket: str, tmp_path: Path) -> None:
    """Input and lake are in the store: landed, landed further and compacted, redriven, reported, read back."""
    lake, source, catalog = f"{bucket}/some/lake", f"events:{bucket}/in", tmp_path / "catalog.json"
    catalog.write_text(json.dumps(document()), encoding="utf-8")
    land = ["land", "--catalog", str(catalog), "--from", source, "--to", lake, "--master", "local[2]"]
    for file in range(2):
        lines = [event(100 * file + number) for number in range(50)]
        put(f"{bucket}/in/{file}.jsonl", *lines, b"oops", event(100 * file + 99, type="later"))
    first = signalbook(*land)
    assert (104, 100, 4) == (first["input"], first["landed"], first["dead"])
    put(f"{bucket}/in/2.jsonl", event(200), event(201))
    second = signalbook(*land, "--compact")
    assert (2, 2, 0) == (second["input"], second["landed"], second["dead"])
    assert 1 == len(DeltaTable(f"{lake}/fleet/moved").file_uris())

    newer = document()
    later = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "later"}}}
    newer["messagegroups"]["fleet"]["messages"]["later"] = later
    catalog.write_text(json.dumps(newer), encoding="utf-8")
    redriven = signalbook("redrive", "--catalog", str(catalog), "--lake", lake, "--master", "local[2]")
    assert (4, 2, 2) == (redriven["input"], redriven["landed"], redriven["dead"])
    report = signalbook("report", "--lake", lake)
    assert (106, 104, 2) == (report["input"], report["landed"], report["dead"])

    moved = columns(lake, "fleet/moved")
    expected = [*range(50), *range(100, 150), 200, 201]
    assert expected == sorted(row["km"] for row in moved.column("data").to_pylist())
    assert ["e199", "e99"] == sorted(columns(lake, "fleet/later").column("id").to_pylist())
    assert [b"oops", b"oops"] == columns(lake, "signalbook/dead_letters").column("record").to_pylist()
    left = {entry.path for entry in Folder.at(f"{lake}/_signalbook").files(recursive=True)}
    assert set() == {path for path in left if "lease" in path or "probes" in path}


def test_commits_beside_each_other(bucket: str) -> None:
    """Writers who overtake each other at one table lose nothing: the store puts a commit only where none is."""
    lake = Folder.at(f"{bucket}/lake")
    delta.prepare(lake, "fleet/moved", "owner", pa.schema([("km", pa.int64())]))

    def write(run: str) -> list[bool]:
        files = [[{"path": f"{run}-{number}.parquet", "bytes": 1, "rows": 1}] for number in range(3)]
        return [delta.commit(lake, "fleet/moved", (run, number), file) for number, file in enumerate(files)]

    with ThreadPoolExecutor(3) as pool:
        assert [[True] * 3] * 3 == list(pool.map(write, ["a", "b", "c"]))
    expected = {f"{run}-{number}.parquet" for run in "abc" for number in range(3)}
    assert expected == {file["path"] for file in delta.files_of(lake, "fleet/moved")}
    assert not delta.commit(lake, "fleet/moved", ("a", 2), [])


def test_the_folder(bucket: str) -> None:
    """Files of a store are listed, read, claimed and removed as those of a disk are."""
    folder = Folder.at(f"{bucket}/a/b/")
    assert (False, [], [], None) == (folder.is_folder(), folder.folders(), list(folder.files()), folder.read("x"))
    folder.write("c/x", b"one")
    assert (True, ["c"], b"one") == (folder.is_folder(), folder.folders(), folder.read("c/x"))
    assert (False, True) == (folder.claim("c/x", b"two"), folder.claim("c/y", b"two"))
    assert [("c/x", 3), ("c/y", 3)] == [(entry.path, entry.size) for entry in folder.files(recursive=True)]
    for _ in range(2):
        folder.delete("c/x")
    assert (None, b"two") == (folder.stat("c/x"), folder.read("c/y"))


def test_what_cannot_be_reached(bucket: str) -> None:
    """A bucket that is not there, and a place that is no lake, are told in a sentence."""
    with pytest.raises(PipelineError, match="is not a lake"):
        Lake.open(f"{bucket}/nothing", create=False)
    with pytest.raises(PipelineError, match=r"'s3://no-such-bucket/lake.*cannot be reached: .*not found"):
        Lake.open("s3://no-such-bucket/lake")


def test_what_is_held_by_another(bucket: str) -> None:
    """A store has no locks: whoever is refused is told which file says so, in case its writer was killed."""
    lake = Lake.open(f"{bucket}/lake")
    with (
        lake.exclusive("x", "wait for it"),
        pytest.raises(PipelineError, match=r"wait for it.*remove s3://.*/lake/_signalbook/leases/x"),
        Lake.open(f"{bucket}/lake").exclusive("x", "wait for it"),
    ):
        pass
    with lake.exclusive("x", "wait for it"):
        pass
