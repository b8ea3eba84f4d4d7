import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from signalbook.pipeline import delta
from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import Landing, LandingResult
from signalbook.pipeline.land_files import land_files
from signalbook.pipeline.read.inputs import parse_source
from signalbook.pipeline.stream import StreamOptions, land_stream
from signalbook.pipeline.worker import PackedCatalog
from tests.pipeline.lakes import event, on_spark, packed, places, rows, write_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = on_spark


def stream(
    spark: "SparkSession", folder: Path, current_catalog: list[PackedCatalog], scheme: str = "events", **more: Any
) -> LandingResult:
    """Take what is in the folder `in`, file by file, by these catalogs one after another."""
    waiting = iter(current_catalog)
    last = current_catalog[-1]
    options = StreamOptions(once=True, files=1)
    source = parse_source(f"{scheme}:{folder / 'in'}")
    lake = Lake.open(str(folder / "lake"))
    return land_stream(spark, lambda: next(waiting, last), source, lake, options=options, **more)


def test_a_stream_takes_what_comes(spark: "SparkSession", tmp_path: Path) -> None:
    """Each file is a batch; started again, a stream takes only what is new, by the catalog of that moment."""
    said: list[str] = []
    write_lines(tmp_path / "in/a 1.jsonl", [event(1), b"oops"])
    write_lines(tmp_path / "in/b.jsonl", [event(2)])
    first = stream(spark, tmp_path, [packed(), packed(fuel={"type": "number"})], say=said.append)
    assert (3, 2, 1) == (first.input, first.landed, first.dead)
    assert [True] == [
        f"has changed: {packed(fuel={'type': 'number'}).digest[:12]}" in text for text in said if "catalog" in text
    ]
    assert 2 == sum(text.startswith("batch ") for text in said)
    write_lines(tmp_path / "in/c.jsonl", [event(3)])
    assert (1, 1) == ((second := stream(spark, tmp_path, [packed()])).input, second.landed)
    assert {1} == set(places(tmp_path / "lake").values())


def test_a_stream_knows_what_a_batch_landed(spark: "SparkSession", tmp_path: Path) -> None:
    """Files that a batch run landed are not landed again by a stream, nor the other way round."""
    write_lines(tmp_path / "in/a.jsonl", [event(1)])
    source, lake = parse_source(f"events:{tmp_path / 'in'}"), Lake.open(str(tmp_path / "lake"))
    assert 1 == land_files(spark, packed(), source, lake).input
    write_lines(tmp_path / "in/b.jsonl", [event(2)])
    assert 1 == stream(spark, tmp_path, [packed()]).input
    assert 0 == land_files(spark, packed(), source, lake).input


def test_a_file_that_grew(spark: "SparkSession", tmp_path: Path) -> None:
    """Spark offers a path once: what grew after it was landed is refused as by a batch run, and nothing is doubled."""
    path = write_lines(tmp_path / "in/a.jsonl", [event(1)])
    assert 1 == stream(spark, tmp_path, [packed()]).landed
    write_lines(path, [event(1), event(2)])
    for _ in range(2):
        with pytest.raises(PipelineError, match=r"a\.jsonl' has changed since it was landed"):
            stream(spark, tmp_path, [packed()])
    assert 1 == places(tmp_path / "lake").total()


def test_a_file_that_grew_after_a_batch_run(spark: "SparkSession", tmp_path: Path) -> None:
    """A stream refuses a file that a batch run landed and that is another now."""
    path = write_lines(tmp_path / "in/a.jsonl", [event(1)])
    source = parse_source(f"events:{tmp_path / 'in'}")
    land_files(spark, packed(), source, Lake.open(str(tmp_path / "lake")))
    write_lines(path, [event(1), event(2)])
    with pytest.raises(PipelineError, match="has changed since it was landed"):
        stream(spark, tmp_path, [packed()])
    assert 1 == places(tmp_path / "lake").total()


def test_a_file_that_grows_while_the_stream_runs(spark: "SparkSession", tmp_path: Path) -> None:
    """A running stream looks for files that have changed, and stops with the first."""
    path = write_lines(tmp_path / "in/a.jsonl", [event(1)])

    def grow(text: str) -> None:
        if text.startswith("batch 0"):
            write_lines(path, [event(1), event(2)])

    source, lake = parse_source(f"events:{tmp_path / 'in'}"), Lake.open(str(tmp_path / "lake"))
    options = StreamOptions(look_seconds=0)
    with pytest.raises(PipelineError, match="has changed since it was landed"):
        land_stream(spark, packed, source, lake, options=options, say=grow)
    assert 1 == places(tmp_path / "lake").total()


def test_a_file_that_another_run_landed_meanwhile(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream leaves out what a run of an overlapping source landed while it matched."""
    write_lines(tmp_path / "in/a.jsonl", [event(1)])
    real = Landing.land

    def overtaken(landing: Landing, catalog: PackedCatalog, batch: Any) -> Any:
        monkeypatch.setattr(Landing, "land", real)
        one = parse_source(f"events:{tmp_path / 'in/a.jsonl'}")
        assert 1 == land_files(spark, packed(), one, Lake.open(str(tmp_path / "lake"))).landed
        return real(landing, catalog, batch)

    monkeypatch.setattr(Landing, "land", overtaken)
    assert 0 == stream(spark, tmp_path, [packed()]).input
    assert 1 == places(tmp_path / "lake").total()


def test_an_old_file_that_comes_late(spark: "SparkSession", tmp_path: Path) -> None:
    """A file whose time is long before that of files which have landed lands too."""
    write_lines(tmp_path / "in/a.jsonl", [event(1)])
    stream(spark, tmp_path, [packed()])
    late = write_lines(tmp_path / "in/b.jsonl", [event(2)])
    os.utime(late, (1_000_000_000, 1_000_000_000))
    assert 1 == stream(spark, tmp_path, [packed()]).landed


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_a_stream_that_is_asked_to_stop(spark: "SparkSession", tmp_path: Path, asked: signal.Signals) -> None:
    """Ctrl+C and SIGTERM end a stream after its batch, with what it did; the handlers are then as before."""
    write_lines(tmp_path / "in/a.jsonl", [event(1)])
    said: list[str] = []

    def watch(text: str) -> None:
        said.append(text)
        if text.startswith("batch 0"):
            os.kill(os.getpid(), asked)

    before = signal.getsignal(asked)
    source, lake = parse_source(f"events:{tmp_path / 'in'}"), Lake.open(str(tmp_path / "lake"))
    assert 1 == land_stream(spark, packed, source, lake, say=watch).landed
    assert "stopping after the batch that is going on" == said[-1]
    assert before == signal.getsignal(asked)


@pytest.mark.parametrize("moment", [0, 1, 2])
def test_a_stream_that_dies(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Stopped between two commits and started again by another catalog, a stream has each message once."""
    write_lines(tmp_path / "in/a.jsonl", [event(1), event(2, type="stopped", data=None), b"oops"])
    real, left = delta.commit, [moment]

    def dying(*arguments: Any) -> bool:
        if left[0] == 0:
            raise RuntimeError("killed")
        left[0] -= 1
        return real(*arguments)

    with monkeypatch.context() as killing:
        killing.setattr(delta, "commit", dying)
        with pytest.raises(PipelineError, match="killed"):
            stream(spark, tmp_path, [packed()])
    write_lines(tmp_path / "in/b.jsonl", [event(3)])
    stream(spark, tmp_path, [packed(km={"type": "string"})])
    found = places(tmp_path / "lake")
    assert (4, {1}) == (found.total(), set(found.values()))
    assert ["e1"] == [row["id"] for row in rows(tmp_path / "lake", "fleet/moved")]


def test_a_spool_empties(spark: "SparkSession", tmp_path: Path) -> None:
    """A file of a spool goes once its batch is committed; one that is still written stays."""
    write_lines(tmp_path / "in/a.jsonl", [event(1)])
    write_lines(tmp_path / "in/.b.jsonl.open", [event(2)])
    assert 1 == stream(spark, tmp_path, [packed()], "spool").landed
    assert [".b.jsonl.open"] == [path.name for path in (tmp_path / "in").iterdir()]
