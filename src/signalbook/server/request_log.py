"""The request log: one line a request, as text or JSON, to the stdlib logger `signalbook.requests`.

Rule 1: answering only notes a few values; lines are made and handed to the logger in batches, at the latest half a
second later and when the server stops. A batch is one log record, its lines separated by line ends.
Rule 2: what a client sent stands in the log as printable ASCII, so it cannot forge a line; tokens never stand in it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

import orjson

__all__ = ["DELAY", "RequestLog"]

DELAY = 0.5
_BATCH = 512

_Entry = tuple[float, str, str, str, int, int, float, str]


class RequestLog:
    """Notes requests and writes them out; `later` asks the event loop to call `flush` after a delay."""

    def __init__(self, form: str = "text", later: Callable[[float, Callable[[], None]], object] | None = None) -> None:
        self._logger = logging.getLogger("signalbook.requests")
        self._lines = _FORMS[form]
        self.later = later
        self._entries: list[_Entry] = []

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
    return text if text.isascii() and text.isprintable() else ascii(text)[1:-1]


def _text(entries: Iterable[_Entry]) -> Iterable[str]:
    second, stamp = 0, ""
    for at, method, path, query, status, size, seconds, client in entries:
        if int(at) != second:
            second, stamp = int(at), _stamp(at)
        target = _printable(f"{path}?{query}" if query else path)
        yield f"{stamp}Z {client} {_printable(method)} {target} {status} {size} {seconds * 1000:.2f}ms"


def _json(entries: Iterable[_Entry]) -> Iterable[str]:
    for at, method, path, query, status, size, seconds, client in entries:
        line = {
            "time": f"{_stamp(at)}.{int(at % 1 * 1000):03}Z",
            "client": client,
            "method": _printable(method),
            "path": _printable(path),
            "query": _printable(query),
            "status": status,
            "bytes": size,
            "ms": round(seconds * 1000, 3),
        }
        yield orjson.dumps(line).decode()


_FORMS: dict[str, Callable[[Iterable[_Entry]], Iterable[str]]] = {"text": _text, "json": _json}
