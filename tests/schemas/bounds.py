"""How much time and memory a hostile case may take."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["bounded"]


@contextmanager
def bounded(seconds: float, mebibytes: int = 400) -> Iterator[None]:
    """Fail where a block takes more processor time, or more new memory at its peak, than it may.

    Of processor time, because the machine may have other things to do.
    """
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    yield
    assert time.process_time() - began < seconds
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < mebibytes
