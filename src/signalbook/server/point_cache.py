"""Answers to point reads, kept while nothing is written.

Rule 1: SQLite says in one word whether anybody, in this process or another, has committed since it was last asked
(`PRAGMA data_version`); then everything kept is forgotten. So an answer is never older than the look-up it saves.
Rule 2: it is used on the event loop alone, with that thread's own connection, and holds a bounded number of bytes.
"""

from __future__ import annotations

from signalbook.registry.store import Connection
from signalbook.server.http import Response

__all__ = ["MOST_BYTES", "PointCache"]

MOST_BYTES = 32 << 20


class PointCache:
    """Responses and their tags by address."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._left = most_bytes
        self._version = -1
        self._kept: dict[tuple[str, str], tuple[Response, str]] = {}

    def find(self, db: Connection, address: tuple[str, str]) -> tuple[Response, str] | None:
        """Return a response that is still right."""
        found = db.one("PRAGMA data_version")
        version = found[0] if found is not None else -1
        if version != self._version:
            self._version = version
            self._forget()
            return None
        return self._kept.get(address)

    def keep(self, address: tuple[str, str], response: Response, etag: str) -> None:
        """Keep a response that was made after `find` returned None."""
        self._left -= len(response.body) + 1000
        if self._left < 0:
            self._forget()
        self._kept[address] = (response, etag)

    def _forget(self) -> None:
        self._kept.clear()
        self._left = self._most_bytes
