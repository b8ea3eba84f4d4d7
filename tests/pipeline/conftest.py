"""One Spark session for all tests that need one; they run in one process: mark their modules with `on_spark`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from signalbook.pipeline.session import LocalSettings, open_session
from signalbook.pipeline.worker import PackedCatalog
from signalbook.spark import catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two processors; a failed task is tried again, as on a cluster."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = open_session(LocalSettings(master="local[2,3]"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def samples() -> PackedCatalog:
    """The sample catalogs of the project."""
    return catalog(str(ROOT / "samples"))
