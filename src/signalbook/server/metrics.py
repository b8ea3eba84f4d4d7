"""What a server tells about its requests: figures for `/metrics` in the Prometheus text format, and the request log.

Rule 1: counting one request costs well under a microsecond: a few integers in memory.
Rule 2: the figures are those of all workers together, whichever of them is asked: each counts in a row of its own of a
table that all of them see, and whoever is asked adds the rows up. What a worker that ended has counted stays.
Rule 3: a row has one writer, its process; only a new worker, which takes a row, adds those of the dead to the first.
Rule 4: logging a request only notes a few values; lines are made and handed to the stdlib logger `signalbook.requests`
in batches, at the latest half a second later and when the server stops. A batch is one log record, its lines separated
by line ends.
Rule 5: what a client sent stands in the log as printable ASCII, so it cannot forge a line; tokens never stand in it.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

import orjson

from signalbook.errors import one_line

__all__ = ["DELAY", "CounterTable", "Metrics", "RequestLog", "shared_file"]

_BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_METHODS = ("GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE", "other")
_OUTCOMES = ("matched", "nonconformant", "ambiguous", "unexpected", "malformed")
# The columns of a row, all of them integers: who writes it, since when, and what there is to add up.
_PROCESS, _STARTED, _IN_FLIGHT, _NANOSECONDS = range(4)
_SLOTS = 4
_ANSWERS = _SLOTS + len(_BOUNDS) + 1
_REQUESTS = _ANSWERS + len(_OUTCOMES)
_LOWEST, _HIGHEST = 100, 599
_STATUSES = _HIGHEST - _LOWEST + 1
# One row for the dead, and some for workers that come before the one they follow is known to be dead.
_SPARE = 8
_WIDTH = _REQUESTS + len(_METHODS) * _STATUSES
_METHOD_PLACES = {method: _REQUESTS + number * _STATUSES - _LOWEST for number, method in enumerate(_METHODS)}
_OUTCOME_PLACES = {outcome: _ANSWERS + number for number, outcome in enumerate(_OUTCOMES)}


def shared_file(workers: int) -> int:
    """Return an open file, known to nobody else, for the figures of so many workers; those that are forked have it."""
    with tempfile.TemporaryFile(prefix="signalbook-figures-") as file:
        file.truncate((workers + _SPARE) * _WIDTH * 8)
        return os.dup(file.fileno())


class CounterTable:
    """The rows of all processes, and which of them is this one's; without a file there is one row."""

    def __init__(self, file: int | None = None) -> None:
        self._file = file
        self._memory: bytearray | mmap.mmap = bytearray(2 * _WIDTH * 8)
        if file is not None:
            with contextlib.suppress(OSError, ValueError):  # a process that was not forked has no such file
                self._memory = mmap.mmap(file, 0)
        self._cells = memoryview(self._memory).cast("q")
        self.is_heir = False
        """Whether another process has counted here before this one."""
        with self._locked():
            self.row = self._take()

    def _locked(self) -> AbstractContextManager[None]:
        return _locked(self._file) if isinstance(self._memory, mmap.mmap) else contextlib.nullcontext()

    def _take(self) -> memoryview:
        rows = self.rows()
        self.is_heir = any(rows[0]) or any(row[_PROCESS] for row in rows[1:])
        for row in rows[1:]:
            if row[_PROCESS] and not _lives(row[_PROCESS]):
                for place in range(_NANOSECONDS, _WIDTH):
                    rows[0][place] += row[place]
                row[:] = memoryview(bytes(_WIDTH * 8)).cast("q")
        free = next((row for row in rows[1:] if not row[_PROCESS]), None)
        if free is None:  # more processes than were foreseen: this one counts for itself
            free = memoryview(bytearray(_WIDTH * 8)).cast("q")
        free[_PROCESS], free[_STARTED] = os.getpid(), time.time_ns() // 1_000_000
        return free

    def rows(self) -> list[memoryview]:
        """Every row; the first has what the dead have counted."""
        return [self._cells[start : start + _WIDTH] for start in range(0, len(self._cells), _WIDTH)]


@contextlib.contextmanager
def _locked(file: int | None) -> Iterator[None]:
    import fcntl

    assert file is not None
    fcntl.lockf(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is there, and another user's
        return True
    return True


class Metrics:
    """Counters of a server; `more` gives further figures of this process by name, such as those of a store."""

    def __init__(
        self, more: Callable[[], Mapping[str, float]] | None = None, table: CounterTable | None = None
    ) -> None:
        self._more = more
        self._table = table or CounterTable()
        self._row = self._table.row
        self._lock = threading.Lock()

    def begun(self) -> None:
        """A request was begun on the general path."""
        self._row[_IN_FLIGHT] += 1

    def ended(self) -> None:
        """One of these is answered."""
        self._row[_IN_FLIGHT] -= 1

    def count(self, method: str, status: int, seconds: float) -> None:
        """One request was answered."""
        row = self._row
        place = _METHOD_PLACES.get(method) or _METHOD_PLACES["other"]
        row[place + min(max(status, _LOWEST), _HIGHEST)] += 1
        row[_NANOSECONDS] += int(seconds * 1e9)
        row[_SLOTS + bisect_left(_BOUNDS, seconds)] += 1

    def judged(self, outcome: str) -> None:
        """One message was matched or validated; threads may tell at the same time."""
        place = _OUTCOME_PLACES.get(outcome)
        if place is not None:
            with self._lock:
                self._row[place] += 1

    def text(self) -> bytes:
        """The Prometheus text."""
        return "\n".join([*self._lines(), ""]).encode()

    def _lines(self) -> Iterator[str]:
        rows = self._table.rows()
        if not any(row[_PROCESS] == self._row[_PROCESS] for row in rows):
            rows.append(self._row)
        alive = [row for row in rows if row[_PROCESS] and _lives(row[_PROCESS])]
        total = [sum(column) for column in zip(*(row.tolist() for row in rows), strict=True)]
        yield from _requests(total)
        yield from _seconds(total)
        yield from _head("signalbook_messages_total", "counter", "Messages judged by /match and /validate.")
        for outcome, place in _OUTCOME_PLACES.items():
            yield f'signalbook_messages_total{{outcome="{outcome}"}} {total[place]}'
        yield from _head("signalbook_requests_in_flight", "gauge", "Requests begun and not answered.")
        yield f"signalbook_requests_in_flight {sum(row[_IN_FLIGHT] for row in alive)}"
        yield from _head("signalbook_workers", "gauge", "Processes that answer.")
        yield f"signalbook_workers {len(alive)}"
        yield from _head("signalbook_start_time_seconds", "gauge", "When the oldest of them started, in Unix time.")
        yield f"signalbook_start_time_seconds {min(row[_STARTED] for row in alive) / 1000:.3f}"
        for figure, value in sorted((self._more() if self._more else {}).items()):
            yield f"# TYPE signalbook_{figure} {'counter' if figure.endswith('_total') else 'gauge'}"
            yield f"signalbook_{figure} {value:g}"


def _requests(total: Sequence[int]) -> Iterator[str]:
    name = "signalbook_requests_total"
    yield from _head(name, "counter", "Requests answered.")
    for method, place in sorted(_METHOD_PLACES.items()):
        for status in range(_LOWEST, _HIGHEST + 1):
            if number := total[place + status]:
                yield f'{name}{{method="{method}",status="{status}"}} {number}'


def _seconds(total: Sequence[int]) -> Iterator[str]:
    name = "signalbook_request_seconds"
    yield from _head(name, "histogram", "Time from a request's head to its answer.")
    answered = 0
    for bound, number in zip([f"{bound:g}" for bound in _BOUNDS] + ["+Inf"], total[_SLOTS:_ANSWERS], strict=True):
        answered += number
        yield f'{name}_bucket{{le="{bound}"}} {answered}'
    yield f"{name}_sum {total[_NANOSECONDS] / 1e9:.6f}"
    yield f"{name}_count {answered}"


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"


# The request log: one line a request, as text or JSON.


DELAY = 0.5
_BATCH = 512

_LogEntry = tuple[float, str, str, str, int, int, float, str]


class RequestLog:
    """Notes requests and writes them out; `later` asks the event loop to call `flush` after a delay."""

    def __init__(self, form: str = "text", later: Callable[[float, Callable[[], None]], object] | None = None) -> None:
        self._logger = logging.getLogger("signalbook.requests")
        self._lines = _FORMS[form]
        self.later = later
        self._entries: list[_LogEntry] = []

    def note(self, method: str, path: str, query: str, status: int, size: int, seconds: float, client: str) -> None:
        """Remember one answered request."""
        entries = self._entries
        entries.append((time.time(), method, path, query, status, size, seconds, client))
        if len(entries) >= _BATCH:
            self.flush()
        elif len(entries) == 1 and self.later is not None:
            self.later(DELAY, self.flush)

    def flush(self) -> None:
        """Write out what was remembered."""
        if self._entries:
            entries, self._entries = self._entries, []
            self._logger.info("%s", "\n".join(self._lines(entries)))


def _stamp(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))


def _printable(text: str) -> str:
    """The text in ASCII alone, for whatever reads logs."""
    return one_line(text if text.isascii() and text.isprintable() else ascii(text)[1:-1])


def _text_lines(entries: Iterable[_LogEntry]) -> Iterable[str]:
    second, stamp = 0, ""
    for at, method, path, query, status, size, seconds, client in entries:
        if int(at) != second:
            second, stamp = int(at), _stamp(at)
        target = _printable(f"{path}?{query}" if query else path)
        yield f"{stamp}Z {_printable(client)} {_printable(method)} {target} {status} {size} {seconds * 1000:.2f}ms"


def _json_lines(entries: Iterable[_LogEntry]) -> Iterable[str]:
    for at, method, path, query, status, size, seconds, client in entries:
        line = {
            "time": f"{_stamp(at)}.{int(at % 1 * 1000):03}Z",
            "client": _printable(client),
            "method": _printable(method),
            "path": _printable(path),
            "query": _printable(query),
            "status": status,
            "bytes": size,
            "ms": round(seconds * 1000, 3),
        }
        yield orjson.dumps(line).decode()


_FORMS: dict[str, Callable[[Iterable[_LogEntry]], Iterable[str]]] = {"text": _text_lines, "json": _json_lines}
