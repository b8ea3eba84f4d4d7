"""Measure payload checks of every schema format against the bare library calls, in one run.

`python bench/schemas.py`, or with the names of some: `python bench/schemas.py json`. Each `bench/schemas_*.py` measures
some formats.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bench.figures import Figure, show

__all__ = ["figures"]


def figures(*names: str) -> list[Figure]:
    """The figures of all formats, or of those whose modules are named."""
    modules = sorted(path.stem for path in Path(__file__).parent.glob("schemas_*.py"))
    return [
        figure
        for module in modules
        if not names or module.removeprefix("schemas_") in names
        for figure in import_module(f"bench.{module}").figures()
    ]


if __name__ == "__main__":
    raise SystemExit(not show(figures(*sys.argv[1:])))
