"""`scripts/walk.py` shows the way of a request, a match and a record, as the page on architecture tells it."""

import re
import sys
from pathlib import Path

import pytest

from scripts import walk

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
# The main modules of each walk, in the order of first entry.
MAIN = {
    "read": ["server/flow.py", "server/dispatch.py", "registry/read/render.py"],
    "query": ["server/dispatch.py", "registry/urls.py", "registry/read/reads.py"],
    "write": ["server/dispatch.py", "registry/write/operations.py", "registry/work.py", "registry/write/commit.py"],
    "match": ["messages/catalog.py", "messages/observe.py", "messages/match.py", "messages/index.py"],
    "land": ["pipeline/worker.py", "pipeline/columns/kafka.py", "messages/match.py", "pipeline/tables.py"],
    "land-fast": ["pipeline/worker.py", "pipeline/columns/kafka.py", "pipeline/columns/events.py"],
}


@pytest.mark.parametrize("name", walk.WALKS)
def test_a_walk_passes_its_main_modules(name: str) -> None:
    """Each walk runs, and enters its main modules in this order; the fast path does without the general one."""
    calls = walk.walk(name)
    assert MAIN[name] == [file for file in calls if file in MAIN[name]]
    assert (name == "land") == ("messages/match.py" in calls and "pipeline/worker.py" in calls)


def test_walks_are_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk is printed with its files and counts; an unknown one is refused with the names that there are."""
    monkeypatch.setattr(sys, "argv", ["walk", "read"])
    walk.main()
    printed = capsys.readouterr().out
    assert re.match(r"read: \d+ modules\. ", printed)
    assert re.search(r"^ +\d+  server/flow\.py$", printed, re.MULTILINE)
    monkeypatch.setattr(sys, "argv", ["walk", "stroll"])
    with pytest.raises(SystemExit):
        walk.main()
    assert "'stroll' is not one of read, query" in capsys.readouterr().err


def test_the_page_on_architecture_tells_walks_as_they_are() -> None:
    """Each file that a walk of the page names is passed by that walk, in the order of the page."""
    text = PAGE.read_text(encoding="utf-8")
    told = re.findall(r"^<!-- walk: ([a-z-]+) -->\n```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert {"read", "write", "match", "land"} <= {name for name, _ in told}
    for name, block in told:
        files = re.findall(r"^([a-z_0-9/]+\.py) ", block, re.MULTILINE)
        passed = list(walk.walk(name))
        assert files == [file for file in passed if file in files], name
