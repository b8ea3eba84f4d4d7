"""The dead letters that a lake holds now, counted: what a report says of them once a redrive has landed some.

Rule: only the columns that are counted are read, some letters at a time; the records stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from signalbook.errors import Problem
from signalbook.pipeline import delta
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.names import DEAD_LETTERS
from signalbook.pipeline.tally import Tally

__all__ = ["count_letters"]

_COLUMNS = ["outcome", "definition", "problems", "candidates", "id", "judged"]
_AT_ONCE = 4096
_UNDECIDED = "no single definition of the catalog is the one that the message means"


def count_letters(lake: Lake) -> Tally:
    """The outcomes and problems of the dead letters as they are now."""
    found = Tally()
    for batch in _batches(lake):
        nearest = _nearest(batch.column("candidates"))
        rows = batch.drop_columns(["candidates"]).to_pylist()
        for row, near in zip(rows, nearest, strict=True):
            found.dead += 1
            found.outcomes[row["outcome"]] += 1
            place = {"origin": row["judged"]["origin"], "position": row["judged"]["position"], "id": row["id"]}
            for problem in _problems(row):
                found.problem(row["outcome"], row["definition"] or near, problem, place)
    return found


def _problems(row: dict[str, Any]) -> list[Problem]:
    return [Problem(**one) for one in row["problems"] or ()] or [Problem("", row["outcome"], _UNDECIDED)]


def _batches(lake: Lake) -> Iterator[pa.RecordBatch]:
    folder = lake.folder.below(DEAD_LETTERS)
    for entry in delta.files_of(lake.folder, DEAD_LETTERS):
        with folder.open(entry["path"]) as file:
            yield from pq.ParquetFile(file).iter_batches(_AT_ONCE, columns=_COLUMNS)


def _nearest(candidates: pa.ListArray) -> list[str | None]:
    """The first candidate of each letter, without a look at the problems of all."""
    names, ends = candidates.values.field("definition"), candidates.offsets.to_pylist()
    return [names[start].as_py() if end > start else None for start, end in pairwise(ends)]
