"""`GET /changes`: what changed, as CloudEvents, from a cursor on; once, waiting, or as a stream.

Rule 1: an answer is a batch of events (`application/cloudevents-batch+json`); its header `signalbook-cursor`, which is
also the `id` of its last event, is where to go on, and the link `rel=next` goes there.
Rule 2: `wait` holds a request that would be empty until there is something, on the event loop and not in a thread.
Rule 3: a stream (`Accept: text/event-stream`) is the same events, one a message; `Last-Event-ID` is its cursor.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote

import orjson

from signalbook.errors import RegistryError, SignalbookError
from signalbook.registry.change_feed import START, Change, Position, latest, parse_position, read_changes
from signalbook.registry.store import Connection, Store
from signalbook.server import cross_origin
from signalbook.server.change_events import event_of, expand
from signalbook.server.http import Patience, Request, Response, Stream
from signalbook.server.problems import not_supported
from signalbook.server.watching import Watch

__all__ = ["CURSOR", "MOST_EVENTS", "MOST_SECONDS", "ChangeFeed"]

CURSOR = "signalbook-cursor"
MOST_EVENTS = 1000
MOST_SECONDS = 60
_USUAL_EVENTS = 100
_MOST_WAITING = 1000
_HEARTBEAT = 15.0
_BATCH = ("content-type", "application/cloudevents-batch+json")
_STREAM = [("content-type", "text/event-stream"), ("cache-control", "no-store")]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request asks for; no position means from the newest on."""

    after: Position | None
    limit: int
    wait: float


class ChangeFeed:
    """Answers `/changes` from one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watch = Watch(store.sequence)

    def answer(self, request: Request) -> Response:
        """Answer at once, without waiting."""
        if request.method == "OPTIONS" and request.path == "/changes":
            return cross_origin.options(request, "GET, OPTIONS")
        if request.path != "/changes":
            raise RegistryError("api_not_found", request.path)
        if request.method != "GET":
            raise not_supported(request.path, request.method, "GET, OPTIONS")
        asked = _read(request)
        after, found = self._first(asked)
        return _batch(request, asked, found[-1].position if found else after, found)

    async def wait(self, request: Request, patience: Patience) -> Response | Stream:
        """Answer a GET; it may take as long as `wait` says, or be a stream."""
        asked = _read(request)
        stream = "text/event-stream" in (request.headers.get("accept") or "")
        if (stream or asked.wait) and self._watch.waiting >= _MOST_WAITING:
            raise RegistryError("server_busy", request.path)
        after, found = await patience.run(self._first, asked)
        if stream:
            return Stream(200, list(_STREAM), self._pieces(request.base, after, found, asked, patience))
        until = time.monotonic() + asked.wait
        while not found and (left := until - time.monotonic()) > 0:
            if not await self._watch.beyond(after.seq, left, patience):
                break
            found = await patience.run(self._behind, (after, asked.limit))
        return _batch(request, asked, found[-1].position if found else after, found)

    def _first(self, asked: _Asked) -> tuple[Position, list[Change]]:
        def job(db: Connection) -> tuple[Position, list[Change]]:
            if asked.after is None:
                return latest(db, expand), []
            return asked.after, read_changes(db, asked.after, asked.limit, expand)

        return self._store.read(job)

    def _behind(self, asked: tuple[Position, int]) -> list[Change]:
        return self._store.read(lambda db: read_changes(db, *asked, expand))

    async def _pieces(
        self, source: str, after: Position, found: list[Change], asked: _Asked, patience: Patience
    ) -> AsyncGenerator[bytes, None]:
        yield f"retry: 1000\n: from {after}\n\n".encode()
        try:
            while not patience.closing.is_set():
                if found:
                    yield b"".join(_message(change, source) for change in found)
                    after = found[-1].position
                elif not await self._watch.beyond(after.seq, _HEARTBEAT, patience):
                    yield b":\n\n"  # a client that has left is noticed by writing to it
                found = await patience.run(self._behind, (after, asked.limit))
        except SignalbookError:  # trimmed or closed meanwhile: the client comes back, and is told why
            return


def _message(change: Change, source: str) -> bytes:
    return b"id: %s\ndata: %s\n\n" % (str(change.position).encode(), orjson.dumps(event_of(change, source)))


def _batch(request: Request, asked: _Asked, after: Position, found: list[Change]) -> Response:
    body = orjson.dumps([event_of(change, request.base) for change in found])
    wait = f"&wait={asked.wait:g}" if asked.wait else ""
    following = f"{request.base}/changes?since={quote(str(after))}&limit={asked.limit}{wait}"
    headers = [_BATCH, (CURSOR, str(after)), ("link", f"<{following}>;rel=next"), ("cache-control", "no-store")]
    return Response(200, headers, body)


def _read(request: Request) -> _Asked:
    given = dict(parse_qsl(request.query, keep_blank_values=True))
    for name in given.keys() - {"since", "limit", "wait"}:
        raise RegistryError("bad_flag", request.path, flag=name)
    since = request.headers.get("last-event-id") or given.get("since", "0")
    return _Asked(
        None if since == "latest" else START if since == "0" else parse_position(since, request.path),
        int(_number(request, given, "limit", _USUAL_EVENTS, 1, MOST_EVENTS)),
        _number(request, given, "wait", 0, 0, MOST_SECONDS),
    )


def _number(request: Request, given: dict[str, str], name: str, usual: float, least: float, most: float) -> float:
    text = given.get(name)
    if text is None:
        return usual
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        detail = f'value ({text[:40]}) of "{name}" must be a whole number from {least:g} to {most:g}'
        raise RegistryError("bad_request", request.path, error_detail=detail)
    return int(text)
