"""Delivering events to subscribers' sinks.

Rule 1: each subscription is delivered in the order of the changes, one request at a time; so order holds for every
subject. The place reached is written down after what was delivered, so that each event arrives at least once.
Rule 2: a sink that fails is tried again later and later, over restarts; one that has failed for two days, or says that
it is gone (410), is parked with the reason until its owner writes the subscription anew.
Rule 3: of all processes that serve a store one delivers: the one whose name and beat stand in the settings. Another
takes over when the beat has not changed for a while by its own clock.
Rule 4: requests wait on an event loop of their own, one at a time for each subscription, and hold no thread; what is
asked of the store goes through a few threads, each time for a moment. So a slow sink delays no other.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from signalbook.cloudevents import CloudEvent
from signalbook.cloudevents.event import ABSENT
from signalbook.errors import RegistryError, SignalbookError, one_line
from signalbook.protocols import to_http
from signalbook.registry.changes import Change, Position, read_changes, trim
from signalbook.registry.store import Connection, Store
from signalbook.server.events import subscriptions as table
from signalbook.server.events.changes import attributes_of, expand
from signalbook.server.events.sinks import Reply, SinkConnection, SinkError, Sinks
from signalbook.server.events.subscriptions import Filter, Subscription, read_filters

__all__ = ["Courier"]

_log = logging.getLogger("signalbook.delivery")

_TICK, _IDLE_TICK = 0.1, 1.0
_THREADS = 4  # for the store
_PAGE = 100
_TURN = 2.0  # seconds after which a subscription is looked up again, for it may have changed
_REQUEST = 30.0  # seconds one request may take in all, from the look-up of the name to the end of the answer
_IDLE = 60.0  # seconds after which a connection that nothing was sent on is closed
_LAST = 2.0  # seconds that requests under way have when the server stops
_BEAT, _TAKEOVER = 2.0, 8.0
_TRIM_EVERY = 60.0
LONGEST_PAUSE = 300.0
PATIENCE = 48 * 3600.0

T = TypeVar("T")


class Courier:
    """Delivers from one store while it is running; `keep_days` is how long changes are kept, 0 for ever."""

    def __init__(self, store: Store, sinks: Sinks, keep_days: float = 0) -> None:
        self._store = store
        self._sinks = sinks
        self._keep_days = keep_days
        self._lease = _Lease(store)
        self._stopping = threading.Event()
        self._hurry: Callable[[], object] = lambda: None
        self._thread: threading.Thread | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._connections: dict[str, tuple[SinkConnection, float]] = {}  # with the time of the last request
        self._finished: dict[str, Position] = {}  # where there was nothing more to deliver
        self._trimmed = -_TRIM_EVERY

    def start(self) -> None:
        """Begin to deliver."""
        self._thread = threading.Thread(target=self._run, name="signalbook-courier", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the request under way, and let another process take over."""
        self._stopping.set()
        with suppress(RuntimeError):  # the loop has ended
            self._hurry()
        if self._thread is not None:
            self._thread.join(15)
            self._thread = None

    def _run(self) -> None:
        with ThreadPoolExecutor(_THREADS, "signalbook-delivery") as self._pool:
            asyncio.run(self._deliver_all())
        with suppress(SignalbookError):
            self._lease.release()

    async def _deliver_all(self) -> None:
        """Give every subscription its turns until it is time to stop."""
        hurried, loop = asyncio.Event(), asyncio.get_running_loop()
        self._hurry = lambda: loop.call_soon_threadsafe(hurried.set)
        while not self._stopping.is_set():
            pause = _IDLE_TICK
            try:
                pause = await self._tick()
            except SignalbookError as error:
                _log.warning("deliveries wait: %s", one_line(str(error)))
            with suppress(TimeoutError):
                await asyncio.wait_for(hurried.wait(), pause)
        if self._turns:
            _, late = await asyncio.wait(self._turns.values(), timeout=_LAST)
            for turn in late:
                turn.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for connection, _ in self._connections.values():
            await connection.close()

    async def _in_thread(self, job: Callable[..., T], *given: object) -> T:
        """What a job gives that asks the store."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, job, *given)

    async def _tick(self) -> float:
        waiting = await self._in_thread(self._find_waiting)
        if waiting is None:
            return _IDLE_TICK
        for id_ in waiting:
            if id_ not in self._turns:
                self._turns[id_] = asyncio.create_task(self._turn(id_))
        idle = time.monotonic() - _IDLE
        for id_ in [id_ for id_, (_, used) in self._connections.items() if used < idle and id_ not in self._turns]:
            await self._connections.pop(id_)[0].close()
        return _TICK

    def _find_waiting(self) -> list[str] | None:
        """The subscriptions that have something to be delivered; None where this process has nothing to deliver."""
        now = time.monotonic()
        active = table.active(self._store.reader())
        if self._keep_days and now - self._trimmed > _TRIM_EVERY:
            self._trimmed = now
            self._trim([position.seq for _, position, _ in active])
        if not active or not self._lease.held():
            return None
        newest, moment = self._store.sequence(), _now()
        for id_ in self._finished.keys() - {id_ for id_, _, _ in active}:
            self._finished.pop(id_, None)
        return [
            id_
            for id_, position, nextattempt in active
            if nextattempt <= moment and not (position.seq >= newest and self._finished.get(id_) == position)
        ]

    def _trim(self, positions: list[int]) -> None:
        before = (datetime.now(UTC) - timedelta(days=self._keep_days)).isoformat()[:-6] + "Z"
        trim(self._store, before, expand, min(positions, default=None))

    # ---- one subscription's turn, in a task of its own

    async def _turn(self, id_: str) -> None:
        try:
            one = await self._in_thread(self._store.read, lambda db: table.find(db, id_))
            if one is not None and one.state == "active":
                await self._deliver(one)
        except SignalbookError as error:
            _log.warning("the delivery to subscription %s waits: %s", id_, one_line(str(error)))
        except Exception:
            _log.exception("the delivery to subscription %s failed", id_)
        finally:
            self._turns.pop(id_, None)

    async def _deliver(self, one: Subscription) -> None:
        wanted = _wishes(one)
        until = time.monotonic() + _TURN
        while time.monotonic() < until and not self._stopping.is_set():
            try:
                found = await self._in_thread(self._behind, one.position)
            except RegistryError as error:
                parked = replace(one, state="parked", failures=1, failingsince=_now(), error=str(error))
                await self._in_thread(self._record, parked)
                return
            if not found:
                self._finished[one.id] = one.position
                return
            before = one
            for change in found:
                one = await self._pass_on(one, change, wanted)
                if one.failures or one.nextattempt or self._stopping.is_set() or time.monotonic() > until:
                    break
            if not await self._in_thread(self._record, one):
                return
            if one.failures or one.nextattempt or one.position == before.position:
                return

    def _behind(self, position: Position) -> list[Change]:
        return self._store.read(lambda db: read_changes(db, position, _PAGE, expand))

    async def _pass_on(self, one: Subscription, change: Change, wanted: Filter) -> Subscription:
        """The subscription after one event: behind it where it was delivered or not wanted."""
        attributes = attributes_of(change, one.base)
        if not wanted(attributes):
            return replace(one, position=change.position, failures=0, nextattempt=0)
        try:
            reply = await self._send(one, attributes, change)
        except SinkError as error:
            return _failed(one, str(error))
        if not 200 <= reply.status < 300:
            return _refused(one, reply)
        pause = _now() + 60_000 // one.rate if one.rate else 0
        return replace(
            one, position=change.position, delivered=one.delivered + 1, failures=0, failingsince=0, error="",
            nextattempt=pause,
        )  # fmt: skip

    async def _send(self, one: Subscription, attributes: Mapping[str, str], change: Change) -> Reply:
        event = CloudEvent.create(
            attributes if change.changed is None else {**attributes, "datacontenttype": "application/json"},
            ABSENT if change.changed is None else {"changed": change.changed},
        )
        message = to_http(event, one.body["config"]["mode"])
        settings = one.body["protocolsettings"]
        headers = {**settings.get("headers", {}), **dict(message.get("headers", ())), **one.secret}
        sink = one.body["sink"]
        known = self._connections.get(one.id)
        if known is not None and known[0].sink != sink:
            await known[0].close()
            known = None
        connection = known[0] if known is not None else self._sinks.open(sink)
        self._connections[one.id] = (connection, time.monotonic())
        return await connection.send(settings["method"], headers, message.payload or b"", _REQUEST)

    def _record(self, one: Subscription) -> bool:
        """Write down how far it came; False where another process delivers by now."""

        def job(db: Connection) -> bool:
            if not self._lease.is_mine(db):
                return False
            table.progress(db, one)
            return True

        return self._store.write(job)


def _now() -> int:
    return int(time.time() * 1000)


def _wishes(one: Subscription) -> Filter:
    types = frozenset(one.body.get("types", ()))
    filtered = read_filters(one.body.get("filters", []), "/subscriptions")
    return lambda event: (not types or event["type"] in types) and filtered(event)


def _failed(one: Subscription, error: str, pause: float = 0) -> Subscription:
    failures = one.failures + 1
    since = one.failingsince or _now()
    pause = max(pause, min(0.25 * 2 ** min(failures, 20), LONGEST_PAUSE))
    state = one.state
    if _now() - since > PATIENCE * 1000:
        state = "parked"
    return replace(
        one, failures=failures, failingsince=since, error=error[:500], nextattempt=_now() + int(pause * 1000),
        state=state,
    )  # fmt: skip


def _refused(one: Subscription, reply: Reply) -> Subscription:
    """The subscription after an answer that is not an acceptance: cloudevents/http-webhook.md section 2.2."""
    if reply.status == 410:
        return replace(_failed(one, "the sink answered 410: it is gone"), state="parked")
    if 300 <= reply.status < 400:
        return _failed(one, f"the sink answered {reply.status}, a redirect, which is not followed")
    after = reply.headers.get("retry-after", "")
    pause = float(after) if after.isascii() and after.isdigit() and len(after) < 6 else 0.0
    return _failed(one, f"the sink answered {reply.status}", pause)


class _Lease:
    """Which process delivers: a name and a beat in the settings."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._name = f"{os.getpid()}-{secrets.token_hex(6)}"
        self._beat = 0
        self._renewed = 0.0
        self._seen = ("", 0.0)

    def held(self) -> bool:
        """Whether this process delivers; it takes over where nobody does."""
        now = time.monotonic()
        found = self._store.reader().one("SELECT value FROM settings WHERE name = 'deliverer'")
        value = str(found[0]) if found is not None else ""
        if value.startswith(self._name + " "):
            return now - self._renewed < _BEAT or self._take(value)
        if value != self._seen[0]:
            self._seen = (value, now)
        if value and now - self._seen[1] < _TAKEOVER:
            return False
        return self._take(value)

    def is_mine(self, db: Connection) -> bool:
        """Whether it still does, within a transaction."""
        found = db.one("SELECT value FROM settings WHERE name = 'deliverer'")
        return found is not None and str(found[0]).startswith(self._name + " ")

    def release(self) -> None:
        """Let another process deliver at once."""

        def job(db: Connection) -> None:
            if self.is_mine(db):
                db.execute("DELETE FROM settings WHERE name = 'deliverer'")

        if self._beat:
            self._store.write(job)

    def _take(self, before: str) -> bool:
        def job(db: Connection) -> bool:
            found = db.one("SELECT value FROM settings WHERE name = 'deliverer'")
            if (str(found[0]) if found is not None else "") != before:
                return False
            db.execute(
                "INSERT INTO settings (name, value) VALUES ('deliverer', ?)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (f"{self._name} {self._beat + 1}",),
            )
            return True

        taken = self._store.write(job)
        if taken:
            self._beat += 1
            self._renewed = time.monotonic()
        return taken
