import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from signalbook.errors import Problem
from signalbook.pipeline import delta
from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.lake import Lake, Manifest
from signalbook.pipeline.report import LakeReport, count_dead_letters, example, page, read_report, render
from signalbook.pipeline.tables import DEAD_LETTER_SCHEMA, DEAD_LETTERS
from signalbook.pipeline.worker import LandingCounts


def letters(lake: Lake, *rows: dict[str, Any]) -> None:
    """Put dead letters into a lake."""
    place = {"origin": "a.jsonl", "position": 7}
    table = pa.Table.from_pylist([{"judged": place, **row} for row in rows], DEAD_LETTER_SCHEMA)
    path = Path(lake.folder.place(DEAD_LETTERS)) / "some.parquet"
    delta.prepare(lake.folder, DEAD_LETTERS, DEAD_LETTERS, DEAD_LETTER_SCHEMA)
    pq.write_table(table, path)
    file = {"path": path.name, "bytes": path.stat().st_size, "rows": len(rows)}
    delta.commit(lake.folder, DEAD_LETTERS, ("test", 0), [file])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in which a run landed two of four messages, and a redrive one more."""
    lake = Lake.open(str(tmp_path))
    left = {"path": "/<b>", "code": "malformed", "message": "<script>alert(1)</script>"}
    letters(lake, {"outcome": "malformed", "problems": [left], "candidates": []})
    problem = {"outcome": "malformed", "definition": "", "code": "malformed", "path": "/<b>", "count": 2}
    problem["samples"] = [{"origin": "a.jsonl", "position": 7, "id": None, "message": "<script>alert(1)</script>"}]
    landed = {"input": 4, "records": 4, "landed": 2, "dead": 2, "outcomes": {"matched": 2, "malformed": 2}}
    again = {"input": 2, "records": 2, "landed": 1, "dead": 1, "outcomes": {"matched": 1, "malformed": 1}}
    for kind, counts, messages in (("land", landed, {"/m": 2}), ("redrive", again, {"/m": 1})):
        with lake.run({"kind": kind, "source": "events:x"}) as run:
            counted = {**counts, "messages": messages, "problems": [problem]}
            lake.write(Manifest(run.name, 0, "d", "events:x", "2026-01-01T00:00:00Z", counted, {}, kind=kind))
    return lake


def test_a_message_counts_where_it_is_now(lake: Lake) -> None:
    """What a redrive landed has arrived once, and is no longer dead."""
    report = read_report(lake)
    assert (4, 3, 1, {"/m": 3}) == (report.input, report.landed, report.dead, report.messages)
    assert ({"matched": 3, "malformed": 1}, 4) == (report.outcomes, sum(report.outcomes.values()))
    assert [("malformed", 1)] == [(one["code"], one["count"]) for one in report.problems]
    assert [] == report.notes
    assert ["land", "redrive"] == [run.kind for run in report.runs]
    assert 4 == json.loads(json.dumps(report.to_json()))["input"]


def test_the_letters_that_are_left(tmp_path: Path) -> None:
    """What is dead now is told by its own columns: its problems, or, where none was meant, what comes near."""
    lake = Lake.open(str(tmp_path))
    found = [{"path": "/data/km", "code": "type", "message": "is no number"}]
    near = [{"definition": "/near", "problems": found}]
    letters(
        lake,
        {"outcome": "nonconformant", "definition": "/m", "problems": found, "candidates": []},
        {"outcome": "unexpected", "problems": [], "candidates": near, "id": "u"},
        {"outcome": "unexpected", "problems": [], "candidates": None},
    )
    counted = count_dead_letters(lake)
    assert (3, {"nonconformant": 1, "unexpected": 2}) == (counted.dead, dict(counted.outcomes))
    assert {("nonconformant", "/m", "type", "/data/km"): 1, ("unexpected", "", "unexpected", ""): 2} == dict(
        counted.problems
    )
    sample = counted.samples["unexpected", "", "unexpected", ""][0]
    assert ("a.jsonl", 7, "u", "/near") == tuple(sample[name] for name in ("origin", "position", "id", "near"))


def test_letters_that_are_not_there_yet(lake: Lake) -> None:
    """Where the table and the manifests differ, the report says so."""
    counts = {"input": 2, "records": 2, "landed": 0, "dead": 2, "outcomes": {}, "messages": {}, "problems": []}
    with lake.run({"kind": "land", "source": "events:y"}) as run:
        lake.write(Manifest(run.name, 0, "d", "events:y", "2026-01-01T00:00:00Z", counts, {}))
    assert ["3 dead by the manifests, 1 in the table of dead letters"] == [
        note.partition(":")[0] for note in read_report(lake).notes
    ]


def ended_by(lake: Lake, error: BaseException) -> str:
    """A run that ended so; its name."""
    with pytest.raises(type(error)), lake.run({"kind": "land", "source": "events:y"}) as run:
        raise error
    return run.name


def test_runs_that_did_not_end_well(lake: Lake) -> None:
    """One that failed is told with its reason; one that was stopped, until another has done its work."""
    failed, stopped = ended_by(lake, OSError("no space left")), ended_by(lake, KeyboardInterrupt())
    assert {failed: "no space left", stopped: "it was stopped on the way"} == {
        note.split()[2]: note.partition(": ")[2].partition(";")[0] for note in read_report(lake).notes
    }
    assert [True] == [stopped in note for note in read_report(lake, stopped).notes]
    with lake.run({"kind": "land", "source": "events:y"}):
        pass
    assert [True] == [failed in note for note in read_report(lake).notes]


def test_one_run(lake: Lake) -> None:
    """A run is reported by itself; one that is not there is an error that names those that are."""
    second = read_report(lake).runs[1].run
    assert (2, 1, 1) == ((one := read_report(lake, second)).input, one.landed, one.dead)
    with pytest.raises(PipelineError, match=second):
        read_report(lake, "none")


def test_in_the_terminal(lake: Lake) -> None:
    """The counts come first, and what messages said is not markup."""
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(render(read_report(lake)))
    console.file.close()
    text = console.export_text()
    assert text.startswith("4 arrived, 3 landed, 1 dead")
    assert "<script>alert(1)</script>" in text


class Tags(HTMLParser):
    """Every tag of a page, and every address it would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [str(value) for name, value in attrs if name in ("src", "href")]


def test_the_page_needs_nothing_else(lake: Lake) -> None:
    """The page has charts, fetches nothing, and what messages said is text on it."""
    found = Tags()
    written = page(read_report(lake))
    found.feed(written)
    assert {"svg", "rect", "table"} < found.tags
    assert ([], False) == (found.addresses, "script" in found.tags)
    assert "&lt;script&gt;" in written


def test_an_empty_report() -> None:
    """A lake in which nothing happened has a page too."""
    assert "<p>none</p>" in page(LakeReport("lake", 0, 0, 0, {}, {}, [], []))


def test_tallies_add_up_within_bounds() -> None:
    """The sum of tallies has all counts and a few samples; kinds of problems beyond a bound are one line."""
    one = LandingCounts(input=2, outcomes=LandingCounts().outcomes)
    for number in range(1500):
        one.problem("malformed", None, Problem(f"/{number}", "malformed", "x" * 1000), {"origin": "o", "position": 1})
    whole = LandingCounts.sum([one.to_json(), one.to_json()])
    assert (4, 3000) == (whole.input, whole.problems.total())
    assert len(whole.problems) <= 1001
    assert all(len(samples) <= 3 for samples in whole.samples.values())


@pytest.mark.parametrize(
    ("outcome", "code", "meant"),
    [
        ("unexpected", "unexpected", False),
        ("ambiguous", "value", False),
        ("nonconformant", "nonconformant", False),
        ("nonconformant", "type", True),
    ],
)
def test_what_comes_near_is_not_what_was_meant(outcome: str, code: str, meant: bool) -> None:
    """A problem belongs to a definition only where the message meant it; else that stands in the sample as near."""
    counts = LandingCounts()
    counts.problem(outcome, "/m", Problem("", code, "no"), {"origin": "o", "position": 1})
    (one,) = counts.to_json()["problems"]
    words = example(one["samples"][0])
    assert ("/m", "no") == (one["definition"], words) if meant else ("", "no; near: /m") == (one["definition"], words)
