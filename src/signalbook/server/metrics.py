"""What a process counts about itself, and `/metrics` in the Prometheus text format.

Rule 1: counting one request costs well under a microsecond: two integers and one slot of a histogram.
Rule 2: the figures are those of one process. With several workers each scrape meets one of them, told apart by the
label `process`; their sum needs `sum without (process)` over the series that several scrapes have gathered.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping

__all__ = ["Metrics"]

_BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE"})


class Metrics:
    """Counters of one process; `more` gives further figures by name, such as those of a store."""

    def __init__(self, more: Callable[[], Mapping[str, float]] | None = None) -> None:
        self._more = more
        self._started = time.time()
        self._requests: dict[tuple[str, int], int] = {}
        self._slots = [0] * (len(_BOUNDS) + 1)
        self._seconds = 0.0
        self.in_flight = 0
        """Requests that were begun on the long road and are not answered yet."""

    def count(self, method: str, status: int, seconds: float) -> None:
        """One request was answered."""
        key = (method, status)
        try:
            self._requests[key] += 1
        except KeyError:
            key = (method if method in _METHODS else "other", status)
            self._requests[key] = self._requests.get(key, 0) + 1
        self._seconds += seconds
        self._slots[bisect_left(_BOUNDS, seconds)] += 1

    def text(self) -> bytes:
        """The Prometheus text."""
        return "\n".join([*self._lines(), ""]).encode()

    def _lines(self) -> Iterator[str]:
        process = f'process="{os.getpid()}"'
        yield from _head("signalbook_requests_total", "counter", "Requests answered.")
        for (method, status), number in sorted(self._requests.items()):
            labels = f'{process},method="{method}",status="{status}"'
            yield f"signalbook_requests_total{{{labels}}} {number}"
        name = "signalbook_request_seconds"
        yield from _head(name, "histogram", "Time from a request's head to its answer.")
        total = 0
        for bound, number in zip(_BOUNDS, self._slots, strict=False):
            total += number
            yield f'{name}_bucket{{{process},le="{bound:g}"}} {total}'
        total += self._slots[-1]
        yield f'{name}_bucket{{{process},le="+Inf"}} {total}'
        yield f"{name}_sum{{{process}}} {self._seconds:.6f}"
        yield f"{name}_count{{{process}}} {total}"
        yield from _head("signalbook_requests_in_flight", "gauge", "Requests begun and not answered.")
        yield f"signalbook_requests_in_flight{{{process}}} {self.in_flight}"
        yield from _head("signalbook_start_time_seconds", "gauge", "When this process started, in Unix time.")
        yield f"signalbook_start_time_seconds{{{process}}} {self._started:.3f}"
        for figure, value in sorted((self._more() if self._more else {}).items()):
            yield f"# TYPE signalbook_{figure} {'counter' if figure.endswith('_total') else 'gauge'}"
            yield f"signalbook_{figure}{{{process}}} {value:g}"


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"
