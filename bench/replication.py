"""Measure replication against a plain export and load of the same content in one run: `python bench/replication.py`.

A first pull of a whole catalog, and a catch-up of a thousand changes, are set beside what a team would do without
replication: export the catalog and load it anew. `--quick` uses fewer definitions.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parent))
from figures import Figure, serving, show

from registry import GROUP, fill

_CLIENT = [sys.executable, "-m", "signalbook"]


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def run(*arguments: str, output: Path | None = None) -> None:
    """Run one command."""
    with (output or Path("/dev/null")).open("wb") as file:
        subprocess.run([*_CLIENT, *arguments], stdout=file, stderr=subprocess.DEVNULL, check=True)


def change(address: str, definitions: int, changes: int) -> None:
    """Change so many definitions, one request each."""
    with httpx.Client(base_url=address) as client:
        for number in range(changes):
            path = f"{GROUP}/messages/m{number * (definitions // changes)}"
            client.patch(path, json={"description": f"changed {number}"}).raise_for_status()


def measure(folder: Path, definitions: int, changes: int, limit: float | None) -> list[Figure]:
    """Export and load, pull, change, catch up."""
    source = folder / "source.db"
    fill(source, definitions)
    document = folder / "catalog.json"
    with serving(str(source), "--max-body", "1g") as (address, _, _):

        def plainly(name: str) -> None:
            run("export", "--store", str(source), output=document)
            run("load", str(document), "--store", str(folder / name), "--quiet")

        copy = str(folder / "copy.db")
        plain = seconds_of(lambda: plainly("plain.db"))
        pull = seconds_of(lambda: run("replicate", "pull", "--from", address, "--to", copy))
        change(address, definitions, changes)
        again = seconds_of(lambda: plainly("again.db"))
        catch_up = seconds_of(lambda: run("replicate", "pull", "--from", address, "--to", copy))
        idle = seconds_of(lambda: run("replicate", "pull", "--from", address, "--to", copy))
        compared = seconds_of(lambda: run("replicate", "pull", "--from", address, "--to", copy, "--compare"))
    anchor = "an export and load of the same content"
    return [
        Figure(f"first pull of {definitions:,} definitions", pull / plain, None, f"{anchor}, {plain:.1f} s"),
        Figure(
            f"times cheaper: a catch-up of {changes:,} changes", again / catch_up, limit, f"{anchor}, {again:.1f} s",
            at_least=True, note=f"{catch_up:.2f} s, of which {idle:.2f} s with nothing to do",
        ),
        Figure("a comparison in full of equal catalogs", compared / again, None, anchor),
    ]  # fmt: skip


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20,000 definitions and 200 changes")
    # starting the program is a part of every figure, and too large a one of the quick run's
    definitions, changes, limit = (20_000, 200, None) if parser.parse_args().quick else (100_000, 1000, 20)
    with tempfile.TemporaryDirectory(prefix="signalbook-bench-") as folder:
        return 0 if show(measure(Path(folder), definitions, changes, limit)) else 1


if __name__ == "__main__":
    sys.exit(main())
