"""Files and memory do not grow with the number of types."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from signalbook.pipeline.writers import MOST_OPEN
from tests.pipeline.conftest import ROOT

MOST_BYTES = 512 << 20


@pytest.mark.parametrize(
    ("types", "messages"), [(300, 3000), pytest.param(2000, 80_000, marks=pytest.mark.slow)], ids=["300", "2000"]
)
def test_many_types_in_one_task(tmp_path: Path, types: int, messages: int) -> None:
    """One task lands messages of many types with 64 open files at most, in less than 512 MB, and counts them all."""
    command = [sys.executable, "-m", "tests.pipeline.many_types", str(tmp_path), str(types), str(messages)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert (messages, messages - messages // 100, messages // 100) == (found["input"], found["landed"], found["dead"])
    assert (MOST_OPEN, 64) == (found["open"], MOST_OPEN)
    assert found["memory"] < MOST_BYTES
