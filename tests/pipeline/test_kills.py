"""Real processes, really killed: after a restart each message is in exactly one table exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import LONG
from tests.pipeline.lakes import document, event, places, write_lines

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
KILLS = int(os.environ.get("SIGNALBOOK_TEST_KILLS", "20"))
LINES = 3000
SPECULATION = ("spark.speculation=true", "spark.speculation.interval=50ms", "spark.speculation.multiplier=1")


def command(folder: Path, *more: str) -> list[str]:
    """The landing of the folder `in`, with speculation."""
    words = ["land", "--catalog", str(folder / "catalog.json"), "--from", f"events:{folder / 'in'}"]
    settings = [word for one in SPECULATION for word in ("--conf", one)]
    words += ["--to", str(folder / "lake"), "--json", "--master", "local[2,8]", *settings, *more]
    return [sys.executable, "-m", "signalbook", *words]


def add_input(folder: Path, number: int) -> int:
    """One more file, with every kind of message; how many there are in it."""
    kinds = [event(one, type="stopped", data=None) if one % 3 == 0 else event(one) for one in range(LINES)]
    kinds[::50] = [b"oops"] * len(kinds[::50])
    write_lines(folder / f"in/{number}.jsonl", kinds)
    return LINES


def write_catalog(folder: Path, number: int) -> None:
    """Another catalog each time: one more column."""
    columns = {f"column{one}": {"type": "number"} for one in range(number)}
    (folder / "catalog.json").write_text(json.dumps(document(**columns)), encoding="utf-8")


def killed_at(folder: Path, more: tuple[str, ...], moment: float, between_tables: bool) -> None:
    """Start a landing and kill it, all its processes at once, so long after it began to write."""
    before = _commits(folder) if between_tables else _written(folder)
    process = subprocess.Popen(command(folder, *more), start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            if (_commits(folder) if between_tables else _written(folder)) > before:
                time.sleep(0 if between_tables else moment)
                break
            time.sleep(0.002)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _written(folder: Path) -> int:
    return sum(1 for _ in (folder / "lake").glob("*/*/*.parquet"))


def _commits(folder: Path) -> int:
    return sum(1 for _ in (folder / "lake").glob("*/*/_delta_log/*.json"))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("more", [(), ("--once",)], ids=["batch", "stream"])
def test_a_driver_that_is_killed(tmp_path: Path, more: tuple[str, ...]) -> None:
    """Killed again and again, at any moment and between two tables with another catalog waiting, nothing is lost."""
    chance = random.Random(3)
    total = 0
    for number in range(KILLS):
        total += add_input(tmp_path, number)
        write_catalog(tmp_path, number)
        killed_at(tmp_path, more, chance.uniform(0, 1.5), between_tables=number % 4 == 0)
    done = subprocess.run(command(tmp_path, *more), capture_output=True, text=True, timeout=600)
    assert 0 == done.returncode, done.stderr
    found = places(tmp_path / "lake")
    assert (total, {1}) == (found.total(), set(found.values()))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_driver_that_is_asked_to_stop(tmp_path: Path, number: int, code: int) -> None:
    """All its processes are told at once: it says so in a sentence, and begun again it lands everything."""
    total = add_input(tmp_path, 0)
    write_catalog(tmp_path, 0)
    process = subprocess.Popen(command(tmp_path), start_new_session=True, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not _written(tmp_path):
        time.sleep(0.002)
    os.killpg(process.pid, number)
    _, said = process.communicate(timeout=LONG)
    # Where the landing was done already, there was nothing to stop.
    if process.returncode:
        assert (code, True, False) == (process.returncode, "run the same command again" in said, "Traceback" in said)
    done = subprocess.run(command(tmp_path), capture_output=True, text=True, timeout=600)
    assert 0 == done.returncode, done.stderr
    found = places(tmp_path / "lake")
    assert (total, {1}) == (found.total(), set(found.values()))


@pytest.mark.timeout(3600)
def test_a_worker_that_is_killed(tmp_path: Path) -> None:
    """Python workers that are killed while they write cost their attempt only."""
    write_catalog(tmp_path, 0)
    total, kills = 0, 0
    for number in range(100):
        if kills >= KILLS:
            break
        total += sum(add_input(tmp_path, number * 10 + part) for part in range(4))
        process = subprocess.Popen(command(tmp_path), start_new_session=True, stdout=subprocess.PIPE, text=True)
        begun, killed = _written(tmp_path), 0
        while process.poll() is None:
            time.sleep(0.05)
            # A task may be tried eight times, so no more than that are killed in one run.
            if _written(tmp_path) > begun and killed < 6:
                killed += _kill_a_worker(process.pid)
        assert process.stdout is not None
        assert 0 == process.returncode
        kills += killed
    found = places(tmp_path / "lake")
    assert (total, {1}) == (found.total(), set(found.values()))
    assert kills >= KILLS


def _kill_a_worker(driver: int) -> int:
    """Kill one worker of a driver that was started in a session of its own; whether there was one."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parent, session = int(fields[1]), int(fields[3])
        if session == driver and b"pyspark.daemon" in words and _is_daemon(parent):
            os.kill(int(entry.name), signal.SIGKILL)
            return 1
    return 0


def _is_daemon(pid: int) -> bool:
    """Whether a process is the daemon that workers are forked from."""
    try:
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
