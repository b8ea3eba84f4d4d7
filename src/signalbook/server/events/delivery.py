"""Delivering events to subscribers' sinks.

Rule 1: each subscription is delivered in the order of the changes, one request at a time; so order holds for every
subject. The place reached is written down after what was delivered, so that each event arrives at least once.
Rule 2: a sink that fails is tried again later and later, over restarts; one that has failed for two days, or says that
it is gone (410), is parked with the reason until its owner writes the subscription anew.
Rule 3: of all processes that serve a store one delivers: the one whose name and beat stand in the settings. Another
takes over when the beat has not changed for a while by its own clock.
"""

from __future__ import annotations

import http.client
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from signalbook.cloudevents import CloudEvent
from signalbook.cloudevents.event import ABSENT
from signalbook.errors import RegistryError, SignalbookError, one_line
from signalbook.protocols import to_http
from signalbook.registry.changes import Change, Position, read_changes, trim
from signalbook.registry.store import Connection, Store
from signalbook.server.events import subscriptions as table
from signalbook.server.events.changes import attributes_of, expand
from signalbook.server.events.sinks import Reply, SinkError, Sinks, send
from signalbook.server.events.subscriptions import Filter, Subscription, read_filters

__all__ = ["Courier"]

_log = logging.getLogger("signalbook.delivery")

_TICK, _IDLE_TICK = 0.1, 1.0
_THREADS = 16
_PAGE = 100
_TURN = 2.0  # seconds one subscription may hold a thread while others wait
_REQUEST = 30.0  # seconds one request may take in all
_BEAT, _TAKEOVER = 2.0, 8.0
_TRIM_EVERY = 60.0
LONGEST_PAUSE = 300.0
PATIENCE = 48 * 3600.0


class Courier:
    """Delivers from one store while it is running; `keep_days` is how long changes are kept, 0 for ever."""

    def __init__(self, store: Store, sinks: Sinks, keep_days: float = 0) -> None:
        self._store = store
        self._sinks = sinks
        self._keep_days = keep_days
        self._lease = _Lease(store)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._busy: set[str] = set()
        self._connections: dict[str, tuple[str, http.client.HTTPConnection]] = {}
        self._under_way: dict[str, float] = {}
        self._finished: dict[str, Position] = {}  # where there was nothing more to deliver
        self._trimmed = -_TRIM_EVERY

    def start(self) -> None:
        """Begin to deliver."""
        self._thread = threading.Thread(target=self._run, name="signalbook-courier", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the request under way, and let another process take over."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(15)
            self._thread = None

    def _run(self) -> None:
        with ThreadPoolExecutor(_THREADS, "signalbook-delivery") as pool:
            while not self._stopping.is_set():
                pause = _IDLE_TICK
                try:
                    pause = self._tick(pool)
                except SignalbookError as error:
                    _log.warning("deliveries wait: %s", one_line(str(error)))
                self._stopping.wait(pause)
            for id_ in list(self._connections):
                self._interrupt(id_, after=time.monotonic() - 2)
        for _, connection in self._connections.values():
            connection.close()
        with suppress(SignalbookError):
            self._lease.release()

    def _tick(self, pool: ThreadPoolExecutor) -> float:
        now = time.monotonic()
        db = self._store.reader()
        waiting = table.active(db)
        if self._keep_days and now - self._trimmed > _TRIM_EVERY:
            self._trimmed = now
            self._trim([position.seq for _, position, _ in waiting])
        if not waiting:
            return _IDLE_TICK
        if not self._lease.held():
            return _IDLE_TICK
        newest, moment = self._store.sequence(), _now()
        for id_, position, nextattempt in waiting:
            finished = position.seq >= newest and self._finished.get(id_) == position
            if not finished and nextattempt <= moment and id_ not in self._busy:
                self._busy.add(id_)
                pool.submit(self._turn, id_)
        for id_ in list(self._under_way):
            self._interrupt(id_, after=now - _REQUEST)
        for id_ in self._connections.keys() - self._busy - {id_ for id_, _, _ in waiting}:
            self._connections.pop(id_)[1].close()
            self._finished.pop(id_, None)
        return _TICK

    def _trim(self, positions: list[int]) -> None:
        before = (datetime.now(UTC) - timedelta(days=self._keep_days)).isoformat()[:-6] + "Z"
        trim(self._store, before, expand, min(positions, default=None))

    def _interrupt(self, id_: str, after: float) -> None:
        """End a request that was begun before `after`: a sink that drips would hold its thread for ever."""
        began, known = self._under_way.get(id_), self._connections.get(id_)
        if began is not None and began < after and known is not None:
            with suppress(OSError, AttributeError):
                known[1].sock.shutdown(socket.SHUT_RDWR)

    # ---- one subscription's turn, in a thread of its own

    def _turn(self, id_: str) -> None:
        try:
            one = self._store.read(lambda db: table.find(db, id_))
            if one is not None and one.state == "active":
                self._deliver(one)
        except SignalbookError as error:
            _log.warning("the delivery to subscription %s waits: %s", id_, one_line(str(error)))
        except Exception:
            _log.exception("the delivery to subscription %s failed", id_)
        finally:
            self._busy.discard(id_)

    def _deliver(self, one: Subscription) -> None:
        wanted = _wishes(one)
        until = time.monotonic() + _TURN
        while time.monotonic() < until and not self._stopping.is_set():
            try:
                found = self._behind(one.position)
            except RegistryError as error:
                self._record(replace(one, state="parked", failures=1, failingsince=_now(), error=str(error)))
                return
            if not found:
                self._finished[one.id] = one.position
                return
            before = one
            for change in found:
                one = self._pass_on(one, change, wanted)
                if one.failures or one.nextattempt or self._stopping.is_set():
                    break
            if not self._record(one) or one.failures or one.nextattempt or one.position == before.position:
                return

    def _behind(self, position: Position) -> list[Change]:
        return self._store.read(lambda db: read_changes(db, position, _PAGE, expand))

    def _pass_on(self, one: Subscription, change: Change, wanted: Filter) -> Subscription:
        """The subscription after one event: behind it where it was delivered or not wanted."""
        attributes = attributes_of(change, one.base)
        if not wanted(attributes):
            return replace(one, position=change.position, failures=0, nextattempt=0)
        try:
            reply = self._send(one, attributes, change)
        except SinkError as error:
            return _failed(one, str(error))
        if not 200 <= reply.status < 300:
            return _refused(one, reply)
        pause = _now() + 60_000 // one.rate if one.rate else 0
        return replace(
            one, position=change.position, delivered=one.delivered + 1, failures=0, failingsince=0, error="",
            nextattempt=pause,
        )  # fmt: skip

    def _send(self, one: Subscription, attributes: Mapping[str, str], change: Change) -> Reply:
        event = CloudEvent.create(
            attributes if change.changed is None else {**attributes, "datacontenttype": "application/json"},
            ABSENT if change.changed is None else {"changed": change.changed},
        )
        message = to_http(event, one.body["config"]["mode"])
        settings = one.body["protocolsettings"]
        headers = {**settings.get("headers", {}), **dict(message.get("headers", ())), **one.secret}
        sink = one.body["sink"]
        known = self._connections.get(one.id)
        if known is not None and known[0] != sink:
            known[1].close()
            known = None
        if known is None:
            known = self._connections[one.id] = (sink, self._sinks.open(sink))
        self._under_way[one.id] = time.monotonic()
        try:
            return send(known[1], settings["method"], sink, headers, message.payload or b"")
        finally:
            self._under_way.pop(one.id, None)

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
