from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from signalbook.pipeline import delta
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land_files import land_files, redrive
from signalbook.pipeline.read.inputs import parse_source
from signalbook.pipeline.report import read_report
from signalbook.pipeline.tables import DEAD_LETTERS
from tests.pipeline.lakes import book, dead, event, on_spark, places, write_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = on_spark
FUEL = {"type": "number", "maximum": 1}


@pytest.fixture
def lake(spark: "SparkSession", tmp_path: Path) -> Lake:
    """A lake with three dead letters, of which a newer catalog takes two."""
    for name, numbers in (("a", (1, 2)), ("b", (3, 4)), ("c", (5,))):
        fuel = [event(number, data={"km": number, "fuel": number}) for number in numbers]
        write_lines(tmp_path / f"in/{name}.jsonl", fuel)
        there = Lake.open(str(tmp_path / "lake"))
        land_files(spark, book(fuel=FUEL), parse_source(f"events:{tmp_path / 'in'}"), there)
    return there


def test_what_passes_lands(spark: "SparkSession", lake: Lake) -> None:
    """Dead letters that a newer catalog takes land; the rest stays as it is; a second time changes nothing."""
    before = {letter["record"]: letter for letter in dead(lake.folder.uri)}
    newer = book(fuel={"type": "number", "maximum": 3})
    result = redrive(spark, newer, lake)
    assert (4, 2, 2) == (result.input, result.landed, result.dead)
    assert [before[letter["record"]] for letter in dead(lake.folder.uri)] == dead(lake.folder.uri)
    assert [0, 0] == [redrive(spark, newer, lake).landed for _ in range(2)]
    assert {1} == set(places(lake.folder.uri).values())
    report = read_report(lake)
    assert (5, 3, 2) == (report.input, report.landed, report.dead)
    assert {"matched": 3, "nonconformant": 2} == report.outcomes
    assert ([2], []) == ([one["count"] for one in report.problems], report.notes)
    redrive(spark, book(fuel={"type": "number"}), lake)
    report = read_report(lake)
    assert (5, 5, 0) == (report.input, report.landed, report.dead)
    assert ({"matched": 5}, [], []) == (report.outcomes, report.problems, report.notes)


@pytest.mark.parametrize("moment", [0, 1, 2])
def test_a_redrive_that_dies(spark: "SparkSession", lake: Lake, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    """Killed before, between or after its commits, and done again by a catalog that takes less: each message once."""
    real, left = delta.commit, [moment]

    def dying(*arguments: Any) -> bool:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        result = real(*arguments)
        if arguments[1] == DEAD_LETTERS:
            raise KeyboardInterrupt
        return result

    with monkeypatch.context() as killing:
        killing.setattr(delta, "commit", dying)
        with pytest.raises(KeyboardInterrupt):
            redrive(spark, book(fuel={"type": "number", "maximum": 9}), lake)
    redrive(spark, book(fuel=FUEL), lake)
    found = places(lake.folder.uri)
    assert (5, {1}) == (found.total(), set(found.values()))
    assert [] == dead(lake.folder.uri)
