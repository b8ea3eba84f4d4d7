"""`GET /changes`: what changed, as CloudEvents, from a cursor on; once, waiting, or as a stream.

Rule 1: an answer is a batch of events (`application/cloudevents-batch+json`); its header `signalbook-cursor`, which is
also the `id` of its last event, is where to go on, and the link `rel=next` goes there.
Rule 2: `wait` holds a request that would be empty until there is something, on the event loop and not in a thread.
Rule 3: a stream (`Accept: text/event-stream`) is the same events, one a message; `Last-Event-ID` is its cursor.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote

import orjson

from signalbook.dialects.rows import from_id
from signalbook.errors import RegistryError, SignalbookError
from signalbook.jsontext import Json
from signalbook.registry import changes
from signalbook.registry.changes import START, Change, Position, latest, parse_position, read_changes
from signalbook.registry.store import Connection, Store
from signalbook.server import http
from signalbook.server.http import Request, Response, Stream, WaitContext
from signalbook.server.problems import not_supported

__all__ = ["CURSOR", "MOST_EVENTS", "MOST_SECONDS", "ChangeFeed", "Watch", "attributes_of", "event_of", "expand"]

# Recorded changes as CloudEvents: those of xRegistry's core/events.md, and those of the 0.1 message catalog.
#
# Rule 1: an event's `id` is the cursor of the place behind it, so a client that knows an event knows where to go on.
# Rule 2: every change of a message group, of a message's shown version or of the log of its versions is an event of
# the 0.1 catalog too (section 5.5 of its text): created or updated, or deleted, with the path of its API as subject
# and without data. The subject of a version ends in `/version/3`, as that text writes it; its `time` is the version's
# own `createdtimeutc`, also where a copy of it came later, and that of a group is its `updatedtimeutc`.


_XREGISTRY = "io.xregistry."
UPDATED = "io.cloudevents.messagecatalog.updated.v1"
DELETED = "io.cloudevents.messagecatalog.deleted.v1"

_CATALOG: Mapping[str, str] = {
    **dict.fromkeys(
        (f"{entity}.{action}" for entity in ("group", "resource") for action in ("created", "updated")), UPDATED
    ),
    **dict.fromkeys(("group.deprecation", "resource.deprecation"), UPDATED),
    **dict.fromkeys(("group.deleted", "resource.deleted"), DELETED),
    changes.CREATED: UPDATED,
    changes.DELETED: DELETED,
}
_SUBJECT = re.compile(r"/messagegroups/([^/]+)(?:/messages/([^/]+)(?:/snapshots/([0-9]+))?)?")
# What is recorded for the 0.1 catalog alone.
_OWN = (changes.CREATED, changes.DELETED)


def expand(recorded: list[list[Any]]) -> list[list[Any]]:
    """Return the recorded events of one request, and behind them those of the 0.1 catalog."""
    catalog_events = {}
    for type_, subject, _, *moment in recorded:
        if type_ in _CATALOG and (path := _catalog_path(subject)) is not None:
            catalog_events[path] = [_CATALOG[type_], path, None, *moment]
    return [*(event[:3] for event in recorded if event[0] not in _OWN), *catalog_events.values()]


def attributes_of(change: Change, source: str) -> Json:
    """Return the context attributes of an event of the registry at `source`."""
    known = change.type if change.type.startswith("io.") else _XREGISTRY + change.type
    found = {
        "specversion": "1.0",
        "type": known,
        "source": source,
        "subject": change.subject,
        "id": str(change.position),
        "time": change.at,
    }
    if known.startswith(_XREGISTRY):
        found["xregcorrelationid"] = change.correlation
    return found


def event_of(change: Change, source: str) -> Json:
    """Return an event in the JSON format."""
    event = attributes_of(change, source)
    if change.changed is not None:
        event["data"] = {"changed": change.changed}
    return event


def _catalog_path(subject: str) -> str | None:
    found = _SUBJECT.fullmatch(subject)
    if found is None:
        return None
    group, message, number = found.groups()
    path = f"/messagecatalog/{from_id(group)}"
    if message is not None:
        path += f"/messagedefinitions/{from_id(message)}"
    return path if number is None else f"{path}/version/{number}"


# Waiting for the next change without holding a thread.
#
# Rule: one look at the store every few hundredths of a second, however many wait, and none while nobody does; so
# changes of other processes are seen as soon as one's own.


PAUSE = 0.04


class Watch:
    """Wakes who waits for a change; `sequence` gives the number of the latest."""

    def __init__(self, sequence: Callable[[], int]) -> None:
        self._sequence = sequence
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._looking: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    async def beyond(self, seq: int, seconds: float, waiting: WaitContext) -> bool:
        """Wait until there is a change after number `seq`; return whether there is one."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = seq
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(waiting))
        try:
            await asyncio.wait({future}, timeout=seconds)
        finally:
            self._waiting.pop(future, None)
        return future.done() and not waiting.closing.is_set()

    async def _look(self, waiting: WaitContext) -> None:
        while self._waiting:
            latest = await waiting.run(lambda _: self._sequence(), None)
            for future, seq in list(self._waiting.items()):
                if not future.done() and (latest > seq or waiting.closing.is_set()):
                    future.set_result(None)
            await asyncio.sleep(PAUSE)


CURSOR = "signalbook-cursor"
MOST_EVENTS = 1000
MOST_SECONDS = 60
_USUAL_EVENTS = 100
_MOST_WAITING = 1000
_HEARTBEAT = 15.0
_BATCH = ("content-type", "application/cloudevents-batch+json")
_STREAM = [("content-type", "text/event-stream"), ("cache-control", "no-store")]


@dataclass(frozen=True, slots=True)
class _FeedQuery:
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
            return http.options(request, "GET, OPTIONS")
        if request.path != "/changes":
            raise RegistryError("api_not_found", request.path)
        if request.method != "GET":
            raise not_supported(request.path, request.method, "GET, OPTIONS")
        asked = _read_query(request)
        after, found = self._first(asked)
        return _batch(request, asked, found[-1].position if found else after, found)

    async def wait(self, request: Request, waiting: WaitContext) -> Response | Stream:
        """Answer a GET; it may take as long as `wait` says, or be a stream."""
        asked = _read_query(request)
        stream = "text/event-stream" in (request.headers.get("accept") or "")
        if stream or asked.wait:
            if self._watch.waiting >= _MOST_WAITING:
                raise RegistryError("server_busy", request.path)
            waiting.admit()
        after, found = await waiting.run(self._first, asked)
        if stream:
            return Stream(200, list(_STREAM), self._pieces(request.base, after, found, asked, waiting))
        until = time.monotonic() + asked.wait
        while not found and (left := until - time.monotonic()) > 0:
            if not await self._watch.beyond(after.seq, left, waiting):
                break
            found = await waiting.run(self._behind, (after, asked.limit))
        return _batch(request, asked, found[-1].position if found else after, found)

    def _first(self, asked: _FeedQuery) -> tuple[Position, list[Change]]:
        def job(db: Connection) -> tuple[Position, list[Change]]:
            if asked.after is None:
                return latest(db, expand), []
            return asked.after, read_changes(db, asked.after, asked.limit, expand)

        return self._store.read(job)

    def _behind(self, asked: tuple[Position, int]) -> list[Change]:
        return self._store.read(lambda db: read_changes(db, *asked, expand))

    async def _pieces(
        self, source: str, after: Position, found: list[Change], asked: _FeedQuery, waiting: WaitContext
    ) -> AsyncGenerator[bytes, None]:
        yield f"retry: 1000\n: from {after}\n\n".encode()
        try:
            while not waiting.closing.is_set():
                if found:
                    yield b"".join(_message(change, source) for change in found)
                    after = found[-1].position
                elif not await self._watch.beyond(after.seq, _HEARTBEAT, waiting):
                    yield b":\n\n"  # a client that has left is noticed by writing to it
                found = await waiting.run(self._behind, (after, asked.limit))
        except SignalbookError:  # trimmed or closed meanwhile: the client comes back, and is told why
            return


def _message(change: Change, source: str) -> bytes:
    return b"id: %s\ndata: %s\n\n" % (str(change.position).encode(), orjson.dumps(event_of(change, source)))


def _batch(request: Request, asked: _FeedQuery, after: Position, found: list[Change]) -> Response:
    body = orjson.dumps([event_of(change, request.base) for change in found])
    wait = f"&wait={asked.wait:g}" if asked.wait else ""
    following = f"{request.base}/changes?since={quote(str(after))}&limit={asked.limit}{wait}"
    headers = [_BATCH, (CURSOR, str(after)), ("link", f"<{following}>;rel=next"), ("cache-control", "no-store")]
    return Response(200, headers, body)


def _read_query(request: Request) -> _FeedQuery:
    given = dict(parse_qsl(request.query, keep_blank_values=True))
    for name in given.keys() - {"since", "limit", "wait"}:
        raise RegistryError("bad_flag", request.path, flag=name)
    since = request.headers.get("last-event-id") or given.get("since", "0")
    return _FeedQuery(
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
