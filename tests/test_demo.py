import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from examples.demo.walk import Step, Unexpected, check

from tests.patience import LONG

ROOT = Path(__file__).resolve().parent.parent


def run_demo(folder: Path, temporary: Path) -> subprocess.CompletedProcess[str]:
    """The demo, run as `make demo` does."""
    environment = {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), "PATH": "/usr/bin:/bin", "HOME": str(temporary)}
    environment["SPARK_SUBMIT_OPTS"] = os.environ["SPARK_SUBMIT_OPTS"]
    command = [sys.executable, "-m", "examples.demo", "--messages", "2000"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONG)


@pytest.mark.slow
def test_the_demo_walks_through(tmp_path: Path) -> None:
    """The demo shows each request with its answer, says how to go on, and leaves nothing behind."""
    done = run_demo(ROOT, tmp_path)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert 8 <= done.stdout.count("$ curl ")
    assert "make serve" in done.stdout
    assert [] == list(tmp_path.iterdir())


def test_the_demo_needs_its_samples(tmp_path: Path) -> None:
    """Run elsewhere, it says where to run it."""
    done = run_demo(tmp_path, tmp_path)
    assert (1, True) == (done.returncode, "make demo" in done.stdout)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Step("x", "GET", "/", 201), "answered 200, not 201"),
        (Step("x", "GET", "/", shows="other"), "did not show other"),
    ],
)
def test_an_unexpected_answer_fails_the_demo(step: Step, words: str) -> None:
    """An answer that is not what the walk says is a failure."""
    with pytest.raises(Unexpected, match=words):
        check(step, httpx.Response(200, text="something"))
