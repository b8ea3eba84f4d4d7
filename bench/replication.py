"""Measure replication against a plain export and load of the same content in one run: `python bench/replication.py`.

A first pull of a whole catalog, and a catch-up of a thousand changes, are set beside what a team would do without
replication: export the catalog and load it anew. Every command runs in this process, after a first time on a small
catalog, so no figure holds the start of a program. `--quick` uses fewer definitions.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parent))
from figures import Figure, cpu_seconds, serving, show

from registry import GROUP, fill
from signalbook.cli import main as signalbook


def run(*arguments: str) -> None:
    """Run one command."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = signalbook(list(arguments))
    if code:
        raise SystemExit(f"{' '.join(arguments)}: {said.getvalue()}")


def change(address: str, definitions: int, changes: int) -> None:
    """Change so many definitions, one request each."""
    with httpx.Client(base_url=address) as client:
        for number in range(changes):
            path = f"{GROUP}/messages/m{number * (definitions // changes)}"
            client.patch(path, json={"description": f"changed {number}"}).raise_for_status()


def measure(folder: Path, definitions: int, changes: int, limit: float | None) -> list[Figure]:
    """Export and load, pull, change, catch up."""
    folder.mkdir()
    source, document = folder / "source.db", folder / "catalog.json"
    fill(source, definitions)
    with serving(str(source)) as (address, pid, _):

        def spent(work: Callable[[], object]) -> tuple[float, float]:
            """Return how long something takes, and how long processors work for it, here and at the source."""
            began, worked = time.perf_counter(), time.process_time() + cpu_seconds(pid)
            work()
            return time.perf_counter() - began, time.process_time() + cpu_seconds(pid) - worked

        def plainly(name: str) -> None:
            run("export", "--store", str(source), "--output", str(document))
            run("load", str(document), "--store", str(folder / name), "--quiet")

        def pull(*options: str) -> None:
            run("replicate", "pull", "--from", address, "--to", str(folder / "copy.db"), *options)

        plain = spent(lambda: plainly("plain.db"))
        first = spent(pull)
        change(address, definitions, changes)
        again = spent(lambda: plainly("again.db"))
        catch_up = spent(pull)
        idle = spent(pull)
        compared = spent(lambda: pull("--compare"))
    anchor = "an export and load of the same content, "
    return [
        Figure(
            f"first pull of {definitions:,} definitions", first[0] / plain[0], None, anchor + _said(plain),
            note=_said(first),
        ),
        Figure(
            f"times cheaper: a catch-up of {changes:,} changes", again[0] / catch_up[0], limit, anchor + _said(again),
            at_least=True, note=f"{_said(catch_up)}; {_said(idle)} with nothing to do",
        ),
        Figure(
            "a comparison in full of equal catalogs", compared[0] / again[0], None, anchor + _said(again),
            note=_said(compared),
        ),
    ]  # fmt: skip


def _said(spent: tuple[float, float]) -> str:
    return "{:.2f} s ({:.2f} s of processor time)".format(*spent)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20,000 definitions and 200 changes")
    # a catch-up does not grow with the catalog, so the quick run shows less of what it saves
    definitions, changes, limit = (20_000, 200, None) if parser.parse_args().quick else (100_000, 1000, 20)
    with tempfile.TemporaryDirectory(prefix="signalbook-bench-") as folder:
        measure(Path(folder) / "first", 100, 10, None)
        return 0 if show(measure(Path(folder) / "measured", definitions, changes, limit)) else 1


if __name__ == "__main__":
    sys.exit(main())
