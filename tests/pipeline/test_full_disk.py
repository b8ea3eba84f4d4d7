"""A disk that is full: the command says so and fails, and with more space the same command lands all, once."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.processes import missing
from tests.patience import LONG
from tests.pipeline.lakes import data_files, document, event, places, write_lines

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
EACH, FILES = 1000, 3
# A name space of its own, in which anyone may mount: the small disk is seen by the processes in it alone.
APART = ["unshare", "--user", "--map-root-user", "--mount"]
STORY = """
land() {
  "$PYTHON" -m signalbook land --catalog catalog.json --from events:in --to disk/lake --json --master 'local[2]'
}
mount -t tmpfs -o size=1m tmpfs disk
land > first.out 2> first.err; echo $? > first.code
"$PYTHON" -m signalbook report --lake disk/lake --json > report.json
mount -o remount,size=64m disk
land > second.out 2> second.err; echo $? > second.code
cp -r disk/lake lake
"""


def may_mount() -> bool:
    """Whether this system lets anyone have a disk of their own."""
    if shutil.which("unshare") is None:
        return False
    mounting = [*APART, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(mounting, capture_output=True, check=False).returncode == 0


def test_a_full_disk(tmp_path: Path) -> None:
    """Nothing is lost, nothing doubled, the counts add up, and both the command and the report say what happened."""
    if not may_mount():
        missing("full disk: this system lets nobody but root mount a small disk", required=False)
    chance = random.Random(5)
    (tmp_path / "disk").mkdir()
    (tmp_path / "catalog.json").write_text(json.dumps(document()), encoding="utf-8")
    for number in range(FILES):
        lines = [event(at, data={"km": at, "note": chance.randbytes(700).hex()}) for at in range(EACH)]
        write_lines(tmp_path / f"in/{number}.jsonl", [*lines, b"oops"])
    story = [*APART, "sh", "-c", f"PYTHON='{sys.executable}'\n{STORY}"]
    subprocess.run(story, cwd=tmp_path, check=True, timeout=LONG)
    said = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.*") if path.is_file()}

    assert "3\n" == said["first.code"]
    assert "" == said["first.out"]
    assert "No space left on device" in said["first.err"]
    assert "Traceback" not in said["first.err"]
    report = json.loads(said["report.json"])
    assert (0, 0, 0) == (report["input"], report["landed"], report["dead"])
    assert ["No space left on device" in note for note in report["notes"]] == [True]

    assert "0\n" == said["second.code"], said["second.err"]
    result = json.loads(said["second.out"])
    total = FILES * (EACH + 1)
    assert (total, total - FILES, FILES) == (result["input"], result["landed"], result["dead"])
    found = places(tmp_path / "lake")
    assert (total, {1}) == (found.total(), set(found.values()))
    assert 2 == len({Path(name).parent for name in data_files(tmp_path / "lake")})
