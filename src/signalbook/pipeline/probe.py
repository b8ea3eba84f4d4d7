"""A look at the executors before anything is judged: whether they see the lake and have this package.

Rule: what would fail in every task fails here, in one sentence.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from signalbook import __version__
from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.files import Folder
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land import collected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["probe"]

_TASKS = 8


def probe(spark: SparkSession, lake: Lake) -> None:
    """Raise `PipelineError` where an executor cannot do its part; nothing to look at where Spark is this machine."""
    if str(spark.conf.get("spark.master", "")).startswith("local"):
        return
    word = secrets.token_hex(8)
    path = f"probes/{word}"
    lake.control.write(path, word.encode())
    try:
        seen = collected(
            spark.range(0, _TASKS, 1, _TASKS).mapInArrow(_task(lake.control, path, word, __version__), "report binary")
        )
    except PipelineError as error:
        if "No module named" not in str(error):
            raise
        words = "ship it with --conf spark.archives=environment.tar.gz#environment"
        raise PipelineError(f"the executors lack this package ({error}); {words}") from None
    finally:
        lake.control.delete(path)
    complaints = sorted({answer.decode() for answer in seen if answer})
    if complaints:
        raise PipelineError("; ".join(complaints))


def _task(
    folder: Folder, path: str, word: str, version: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            answer = _complaint(folder, path, word, version).encode()
            yield pa.RecordBatch.from_arrays([pa.array([answer], pa.binary())], ["report"])

    return task


def _complaint(folder: Folder, path: str, word: str, version: str) -> str:
    host = socket.gethostname()
    if __version__ != version:
        return (
            f"the executor on {host} has signalbook {__version__}, the driver {version}; give all of them one version"
        )
    found = folder.read(path)
    if found != word.encode():
        return f"the executor on {host} does not see the lake at {folder.uri}; use a shared folder or an object store"
    return ""
