import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.manifest import Manifest
from signalbook.pipeline.report import Report, read_report, render
from signalbook.pipeline.report_page import page
from signalbook.pipeline.tally import Tally


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in which a run landed two of four messages, and a redrive one more."""
    lake = Lake.open(str(tmp_path))
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
    assert ["land", "redrive"] == [run.kind for run in report.runs]
    assert 4 == json.loads(json.dumps(report.to_json()))["input"]


def test_one_run(lake: Lake) -> None:
    """A run is reported by itself; one that is not there is an error that names those that are."""
    second = read_report(lake).runs[1].run
    assert (2, 1, 1) == ((one := read_report(lake, second)).input, one.landed, one.dead)
    with pytest.raises(PipelineError, match=second):
        read_report(lake, "none")


def test_in_the_terminal(lake: Lake) -> None:
    """The counts come first, and what messages said is no markup."""
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
    assert "<p>none</p>" in page(Report("lake", 0, 0, 0, {}, {}, [], []))


def test_tallies_add_up_within_bounds() -> None:
    """The sum of tallies has all counts and a few samples; kinds of problems beyond a bound are one line."""
    from signalbook.errors import Problem

    one = Tally(input=2, outcomes=Tally().outcomes)
    for number in range(1500):
        one.problem("malformed", None, Problem(f"/{number}", "malformed", "x" * 1000), {"origin": "o", "position": 1})
    whole = Tally.sum([one.to_json(), one.to_json()])
    assert (4, 3000) == (whole.input, whole.problems.total())
    assert len(whole.problems) <= 1001
    assert all(len(samples) <= 3 for samples in whole.samples.values())
