"""Landing, redriving and checking with tasks that run in this process: what they do does not depend on Spark."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from signalbook import __version__
from signalbook.pipeline import session
from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import redrive
from signalbook.pipeline.land_files import land_files
from signalbook.pipeline.read.inputs import parse_source
from signalbook.pipeline.report import read_report
from signalbook.pipeline.session import check_executors
from signalbook.spark import _match_task
from tests.pipeline.lakes import MOVED, dead, event, packed, rows, write_lines, write_parquet
from tests.pipeline.local_spark import LocalSpark

# `fuel` is a text for the catalog without it, and has to be a number for the one that describes it.
STRICT = {"fuel": {"type": "number"}}


@pytest.fixture(autouse=True)
def _interrupted_as_before() -> Iterator[None]:
    """A task ignores Ctrl+C, which here would outlive it."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_dead_letters_land_by_a_newer_catalog(tmp_path: Path) -> None:
    """A redrive lands what passes, leaves the rest among the dead letters, and counts each letter once."""
    spark: Any = LocalSpark()
    lake = Lake.open(str(tmp_path / "lake"))
    write_lines(tmp_path / "in" / "a.jsonl", [event(1), event(2, data={"km": 2, "fuel": "full"}), b"not JSON"])
    landed = land_files(spark, packed(**STRICT), parse_source(f"events:{tmp_path / 'in'}"), lake)
    assert (3, 1, 2) == (landed.input, landed.landed, landed.dead)
    again = redrive(spark, packed(), lake)
    assert (2, 1, 1) == (again.input, again.landed, again.dead)
    assert [b"not JSON"] == [letter["record"] for letter in dead(tmp_path / "lake")]
    assert 2 == len(rows(tmp_path / "lake", "fleet/moved"))
    found = read_report(lake)
    assert (3, 2, 1) == (found.input, found.landed, found.dead)
    rest = redrive(spark, packed(), lake)
    assert (1, 0, 1) == (rest.input, rest.landed, rest.dead)


def test_parquet_files_land(tmp_path: Path) -> None:
    """The rows of Parquet files land, each file by its own schema."""
    spark: Any = LocalSpark()
    (tmp_path / "in").mkdir()
    write_parquet(tmp_path / "in" / "a.parquet", {"value": [event(1), event(2)]})
    (tmp_path / "in" / "b.parquet").write_bytes(b"garbage")
    source = parse_source(f"parquet:{tmp_path / 'in'}")
    result = land_files(spark, packed(), source, Lake.open(str(tmp_path / "lake")))
    assert (3, 2, 1, {MOVED: 2}) == (result.input, result.landed, result.dead, result.messages)


def test_rows_are_matched_in_place() -> None:
    """Each row keeps its columns and gets the answer of the catalog beside them; a batch without rows stays one."""
    task = _match_task(packed(), ())
    given = pa.RecordBatch.from_pydict({"n": [1, 2], "value": [event(1), b"not JSON"]})
    both, none = task(iter([given, given.slice(0, 0)]))
    assert [(1, "matched", MOVED), (2, "malformed", None)] == [
        (row["n"], row["outcome"], row["definition"]) for row in both.to_pylist()
    ]
    assert [event(1), b"not JSON"] == both.column("value").to_pylist()
    assert (0, both.schema.names) == (none.num_rows, none.schema.names)


@pytest.mark.parametrize(
    ("version", "seen", "words"),
    [
        (__version__, True, None),
        ("0.0", True, f"has signalbook {__version__}, the driver 0.0"),
        (__version__, False, "does not see the lake"),
    ],
)
def test_executors_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, seen: bool, words: str | None
) -> None:
    """An executor of another version, or one that does not see the lake, is named before anything is matched."""
    spark: Any = LocalSpark({"spark.master": "spark://elsewhere:7077"})
    lake = Lake.open(str(tmp_path / "lake"))
    made = session._check_task
    elsewhere = lake.control if seen else lake.folder.below("elsewhere")
    monkeypatch.setattr(session, "_check_task", lambda folder, path, word, _: made(elsewhere, path, word, version))
    if words is None:
        check_executors(spark, lake)
    else:
        with pytest.raises(PipelineError, match=words):
            check_executors(spark, lake)
    assert [] == list(lake.control.below("probes").files())
    check_executors(LocalSpark({"spark.master": "local[2]"}), lake)  # type: ignore[arg-type]  # not looked at
