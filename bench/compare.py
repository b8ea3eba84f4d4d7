"""Measure two trees in turn in one run, and print the ratio of each figure.

    python bench/compare.py OLD NEW BENCH... [--rounds 3] [--args=--quick]

OLD and NEW are folders with the whole project, or commits of this one. Each bench is run from its own tree, on the
sources of that tree, with this Python: old, new, new, old, and so on, so that what else the machine does meets both.
Of each figure the median of the rounds counts. A ratio that is off by more than 5 % is marked; whether that is better
or worse depends on the figure.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A line of `figures.show`: the name, the value, the limit and whether it is kept.
LINE = re.compile(r"^(?P<name>\S.*?) +(?P<value>-?\d+\.\d\d)  (?:at most |at least |  )")


def tree(text: str, folder: Path) -> Path:
    """The folder of a tree; a commit is unpacked into one."""
    if Path(text).is_dir():
        return Path(text).resolve()
    archive = subprocess.run(["git", "archive", text], cwd=ROOT, check=True, capture_output=True).stdout
    place = folder / re.sub(r"\W", "_", text)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(place, filter="data")
    return place


def run(place: Path, bench: str, options: list[str]) -> dict[str, float]:
    """The figures that one bench of a tree prints, by their names."""
    environment = {**os.environ, "PYTHONPATH": f"{place / 'src'}{os.pathsep}{place}"}
    command = [sys.executable, str(place / "bench" / f"{bench}.py"), *options]
    done = subprocess.run(command, cwd=place, env=environment, stdout=subprocess.PIPE, text=True)
    found = {line["name"]: float(line["value"]) for line in map(LINE.match, done.stdout.splitlines()) if line}
    if not found:
        raise SystemExit(f"{' '.join(command)} printed no figures and ended with {done.returncode}:\n{done.stdout}")
    return found


def show(name: str, old: list[float], new: list[float]) -> None:
    """Print one figure of both trees."""
    if not old or not new:
        print(f"{name:60} {'only in the ' + ('old tree' if old else 'new tree')}")
        return
    one, other = statistics.median(old), statistics.median(new)
    ratio = other / one if one else float("nan")
    print(f"{name:60} {one:12.2f} {other:12.2f} {ratio:7.3f}{'' if 0.95 <= ratio <= 1.05 else '  *'}")


def main() -> int:
    """Run the benches and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("bench", nargs="+", help="its name, as of bench/match.py: match")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--args", default="", help="options for each bench, as --args=--quick")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="signalbook-compare-") as name:
        trees = {"old": tree(chosen.old, Path(name)), "new": tree(chosen.new, Path(name))}
        for bench in chosen.bench:
            values: dict[str, dict[str, list[float]]] = {side: defaultdict(list) for side in trees}
            for turn in range(chosen.rounds):
                for side in trees if turn % 2 == 0 else reversed(trees):
                    for figure, value in run(trees[side], bench, chosen.args.split()).items():
                        values[side][figure].append(value)
            print(f"{'== ' + bench:60} {'old':>12} {'new':>12} {'new/old':>7}")
            for figure in {**values["old"], **values["new"]}:
                show(figure, values["old"][figure], values["new"][figure])
    return 0


if __name__ == "__main__":
    sys.exit(main())
