"""A stand-in for a Spark session that runs every task in this process: for tests of the driver and of the tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass
class ReportRow:
    """A row of a plan's result."""

    report: bytes


@dataclass
class LocalPlan:
    """Some batches of rows, and the task over them."""

    batches: list[pa.RecordBatch]
    task: Task | None = None

    def mapInArrow(self, task: Task, schema: str) -> LocalPlan:  # Spark's name
        """The plan with a task."""
        return LocalPlan(self.batches, task)

    def collect(self) -> list[ReportRow]:
        """Run the task on each batch, as Spark does with a partition."""
        assert self.task is not None
        parts = (part for one in self.batches for part in self.task(iter([one])))
        return [ReportRow(row["report"]) for part in parts for row in part.to_pylist()]


@dataclass
class LocalSpark:
    """A session without Java; `conf` are its settings."""

    conf: dict[str, Any] = field(default_factory=dict)

    def range(self, start: int, end: int, step: int, partitions: int) -> LocalPlan:
        """A batch for each number."""
        return LocalPlan([pa.RecordBatch.from_pydict({"id": [number]}) for number in range(start, end, step)])
