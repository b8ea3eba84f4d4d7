"""Keeping tables in order: joining small files, beside whoever lands messages meanwhile.

Rule: dead letters are left alone, since a redrive may be replacing their files.
"""

from __future__ import annotations

from signalbook.pipeline import delta
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import Watch
from signalbook.pipeline.names import DEAD_LETTERS
from signalbook.pipeline.views import table_paths

__all__ = ["compact_tables"]


def compact_tables(lake: Lake, say: Watch = lambda text: None) -> int:
    """Join the small files of each table; how many fewer there are."""
    joined = sum(delta.compact(lake.folder, path) for path in table_paths(lake) if path != DEAD_LETTERS)
    if joined:
        say(f"joined small files: {joined:,} fewer")
    return joined
