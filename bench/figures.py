"""What the benchmarks share: figures with their anchors and limits, and processes that are measured from outside.

Rule: a figure is a ratio of two things measured in the same run; it names its anchor and the limit it is held to.
"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Figure", "cpu_seconds", "free_port", "median_seconds", "memory_mib", "serving", "show"]

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Figure:
    """One result: `value` is held to `limit`, from above or (with `at_least`) from below."""

    name: str
    value: float
    limit: float | None
    anchor: str
    at_least: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        """Tell whether the limit is kept."""
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def show(figures: list[Figure]) -> bool:
    """Print the figures; tell whether all limits are kept."""
    print()
    for figure in figures:
        bound = "" if figure.limit is None else f"{'at least' if figure.at_least else 'at most'} {figure.limit:g}"
        verdict = "" if figure.limit is None else "ok" if figure.holds else "MISSED"
        print(f"{figure.name:58} {figure.value:10.2f}  {bound:16} {verdict:7} {figure.anchor}")
        if figure.note:
            print(f"{'':58} {figure.note}")
    return all(figure.holds for figure in figures)


def median_seconds(work: Callable[[int], object], times: int) -> float:
    """Return the median time of one call."""
    spent = []
    for turn in range(times):
        began = time.perf_counter()
        work(turn)
        spent.append(time.perf_counter() - began)
    return statistics.median(spent)


def race(ways: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """The least seconds that each way took, all of them run in turn."""
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(turns):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            least[name] = min(least[name], time.perf_counter() - began)
    return least


def each(work: Callable[[Any], object], items: list[Any]) -> Callable[[], object]:
    """The work done on every item."""

    def run() -> None:
        for item in items:
            work(item)

    return run


def call_seconds(calls: list[Callable[[], object]], rounds: int = 40, times: int = 200) -> list[float]:
    """The processor time of one call of each, best of many short rounds in turn."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for number, call in enumerate(calls):
            began = time.thread_time()
            for _ in range(times):
                call()
            best[number] = min(best[number], (time.thread_time() - began) / times)
    return best


def check_limit(bare: float) -> float:
    """How many times the bare call a payload's check may cost: 1.3, or one microsecond more."""
    return round(max(1.3, (bare + 1e-6) / bare), 2)


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def _family(pid: int) -> list[int]:
    return [pid, *(member for child in _children(pid) for member in _family(child))]


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process and its children have used so far."""
    total = 0
    for member in _family(pid):
        fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def memory_mib(pid: int) -> float:
    """Return the memory that a process and its children hold themselves, in MiB."""
    total = 0
    for member in _family(pid):
        for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def free_port() -> int:
    """Return a port nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(store: str, *options: str) -> Iterator[tuple[str, int, float]]:
    """Start a server; give its address, its process, and the seconds until it accepted."""
    port = free_port()
    command = [sys.executable, "-m", "signalbook", "serve", "--port", str(port), "--store", store, "--no-log", *options]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        yield f"http://127.0.0.1:{port}", process.pid, time.perf_counter() - began
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until somebody accepts at a port."""
    while True:
        if process.poll() is not None:
            raise SystemExit("a process that was to be measured has ended")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.005)
