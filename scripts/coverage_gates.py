"""Hold what the tests cover to its gates; `make test COVERAGE=1` does so at its end.

Rules:
1. The gates stand here and nowhere else: a row for a package or a module at the top, with the least percentage of
   its lines and branches. What has no row is held to `OTHERS`.
2. Every gate is checked before the verdict, so that one run names all that is missing.
3. Only what runs in the tests' own process is measured, not the servers and the workers of Spark that they start.

    python scripts/coverage_gates.py          which gates are kept, and the lines that a missed one lacks
    python scripts/coverage_gates.py --all    the lines that never ran, of every package
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coverage import Coverage

__all__ = ["GATES", "OTHERS", "Part", "main", "parts"]

OTHERS = 95
GATES = {
    "__main__": 0,  # runs in processes of its own alone
    "cloudevents": 100,
    "messages": 98,
    "model": 98,
    "__init__": 90,
    "app": 90,
    "cli": 90,
    "client": 90,
    "pipeline": 90,
    "replication": 90,
    "server": 90,
    "settings": 90,
    "sources": 90,
    "spark": 90,
}


@dataclass(slots=True)
class Part:
    """A package or a module at the top: how many lines and branches it has, how many ran, and where some did not."""

    gate: int
    total: int = 0
    ran: int = 0
    missing: dict[str, list[int]] = field(default_factory=dict)

    @property
    def percent(self) -> float:
        """What ran, of a hundred; a hundred where there is nothing to run."""
        return 100 * self.ran / self.total if self.total else 100.0

    @property
    def lacking(self) -> int:
        """How many lines and branches more have to run until the gate is kept."""
        return max(0, -(-self.gate * self.total // 100) - self.ran)


def parts(files: Mapping[str, Mapping[str, Any]]) -> dict[str, Part]:
    """The packages, and the modules at the top, of a report of coverage by file."""
    found: dict[str, Part] = {}
    for path, file in sorted(files.items()):
        inside = path.replace("\\", "/").partition("src/signalbook/")[2]
        name = inside.partition("/")[0].removesuffix(".py")
        part = found.setdefault(name, Part(GATES.get(name, OTHERS)))
        summary = file["summary"]
        part.total += summary["num_statements"] + summary.get("num_branches", 0)
        part.ran += summary["covered_lines"] + summary.get("covered_branches", 0)
        lines = {*file["missing_lines"], *(begin for begin, _ in file.get("missing_branches", []))}
        if lines:
            part.missing[inside] = sorted(lines)
    return found


def spans(lines: list[int]) -> str:
    """Numbers of lines, those in a row as one span: `3-5, 9`."""
    ends: list[list[int]] = []
    for line in lines:
        if ends and line == ends[-1][1] + 1:
            ends[-1][1] = line
        else:
            ends.append([line, line])
    return ", ".join(str(begin) if begin == end else f"{begin}-{end}" for begin, end in ends)


def main() -> int:
    """Print what is covered beside what has to be; 1 where a gate is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--all", action="store_true", help="show the lines that never ran, of every package")
    chosen = options.parse_args()
    data = Coverage()
    data.load()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        data.json_report(outfile=str(report))
        found = parts(json.loads(report.read_text(encoding="utf-8"))["files"])
    missed = [name for name, part in found.items() if part.lacking]
    print(f"{'covered':14} {'percent':>8} {'gate':>5}")
    for name, part in found.items():
        verdict = f"  MISSED by {part.lacking} of {part.total} lines and branches" if part.lacking else ""
        print(f"{name:14} {part.percent:8.2f} {part.gate:5}{verdict}")
    for name in found if chosen.all else missed:
        for file, lines in found[name].missing.items():
            print(f"  {file}: {spans(lines)}")
    if missed:
        print(f"coverage is below its gate in: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
