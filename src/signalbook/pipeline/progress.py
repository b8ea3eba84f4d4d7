"""How far a landing is: a bar in a terminal, lines elsewhere.

Rule: progress goes to standard error, so that standard output is the result alone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["shown"]

_EVERY_SECONDS = 0.3


@contextlib.contextmanager
def shown(spark: SparkSession, console: Console) -> Iterator[None]:
    """Show the tasks that are done, of those that were begun, while the block runs; nothing without a terminal."""
    tracker = _tracker(spark)
    if not console.is_terminal or tracker is None:
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f} tasks"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task, stop = bar.add_task("landing", total=1), threading.Event()

        def watch() -> None:
            while not stop.wait(_EVERY_SECONDS):
                for number in tracker.getActiveStageIds():
                    stage = tracker.getStageInfo(number)
                    if stage is not None:
                        bar.update(task, completed=stage.numCompletedTasks, total=stage.numTasks)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()


def _tracker(spark: SparkSession):  # type: ignore[no-untyped-def]  # Spark Connect has none, and no type for it
    try:
        return spark.sparkContext.statusTracker()
    except Exception:  # whatever a session without a context raises
        return None
