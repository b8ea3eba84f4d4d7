"""`/subscriptions`: the CloudEvents Subscriptions API (subscriptions/spec.md on cloudevents/spec main, 0.1-wip).

Rule 1: a sink has to agree before anything is sent to it: the validation handshake of cloudevents/http-webhook.md
section 4. It is asked when a subscription is made, and again when its sink changes or it was parked.
Rule 2: a subscription begins with what changes after it was made.
Rule 3: the headers that a delivery carries may be keys to its sink: their names are shown, their values never.
"""

from __future__ import annotations

import secrets
import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import orjson

from signalbook.document.json_text import parse_json
from signalbook.errors import RegistryError
from signalbook.registry.change_feed import latest
from signalbook.registry.store import Connection, Store
from signalbook.server import cross_origin
from signalbook.server import subscription_table as table
from signalbook.server.change_events import expand
from signalbook.server.http import JSON, Request, Response
from signalbook.server.problems import not_supported
from signalbook.server.sinks import SinkError, Sinks, send
from signalbook.server.subscription_body import read_subscription
from signalbook.server.subscription_table import Subscription

__all__ = ["MASK", "MOST_SUBSCRIPTIONS", "Subscriptions"]

MOST_SUBSCRIPTIONS = 1000
_HANDSHAKE_SECONDS = 20.0
MASK = "********"
"""What stands for a value that is not shown; sent back, it leaves the value as it is."""

_ALL, _ONE = "GET, OPTIONS, POST", "DELETE, GET, OPTIONS, PUT"


class Subscriptions:
    """Answers `/subscriptions` and what is below for one store."""

    def __init__(self, store: Store, sinks: Sinks) -> None:
        self._store = store
        self._sinks = sinks

    def answer(self, request: Request) -> Response:
        """Answer one request."""
        _, _, id_ = request.path.strip("/").partition("/")
        allow = _ONE if id_ else _ALL
        if request.method == "OPTIONS":
            return cross_origin.options(request, allow)
        if request.method not in allow.split(", "):
            raise not_supported(request.path, request.method, allow)
        if request.method == "POST":
            return self._create(request)
        if not id_:
            return _json(200, [_shown(one) for one in table.every(self._store.reader())])
        if request.method == "PUT":
            return self._update(request, id_)
        if request.method == "DELETE":
            return self._delete(request, id_)
        return _json(200, _shown(self._find(self._store.reader(), request, id_)))

    def _find(self, db: Connection, request: Request, id_: str) -> Subscription:
        found = table.find(db, id_)
        if found is None:
            raise RegistryError("not_found", request.path)
        return found

    def _create(self, request: Request) -> Response:
        body, secret = read_subscription(_body(request), request.base, request.path)
        _unmask(body, {}, request.path)
        if table.count(self._store.reader()) >= MOST_SUBSCRIPTIONS:
            detail = f"there are {MOST_SUBSCRIPTIONS} subscriptions, which is the most"
            raise RegistryError("bad_request", request.path, error_detail=detail)
        rate = self._handshake(request, body["sink"], secret)

        def job(db: Connection) -> Subscription:
            one = Subscription(secrets.token_hex(12), request.base, body, secret, rate, latest(db, expand))
            table.save(db, one)
            return one

        made = self._store.write(job)
        response = _json(201, _shown(made))
        response.headers.append(("location", f"{request.base}/subscriptions/{made.id}"))
        return response

    def _update(self, request: Request, id_: str) -> Response:
        before = self._find(self._store.reader(), request, id_)
        body, secret = read_subscription(_body(request), request.base, request.path)
        if "sinkcredential" not in body and body["sink"] == before.body["sink"]:
            secret = before.secret  # what is not shown cannot be sent back; another sink never gets it
            body |= {name: before.body[name] for name in ("sinkcredential",) if name in before.body}
        _unmask(body, before.body if body["sink"] == before.body["sink"] else {}, request.path)
        rate = before.rate
        if body["sink"] != before.body["sink"] or before.state == "parked":
            rate = self._handshake(request, body["sink"], secret)

        def job(db: Connection) -> Subscription:
            one = self._find(db, request, id_).renewed(body, secret, rate)
            table.save(db, one)
            return one

        return _json(200, _shown(self._store.write(job)))

    def _delete(self, request: Request, id_: str) -> Response:
        def job(db: Connection) -> Subscription:
            found = self._find(db, request, id_)
            table.delete(db, id_)
            return found

        return _json(200, _shown(self._store.write(job)))

    def _handshake(self, request: Request, sink: str, secret: dict[str, str]) -> int:
        """Ask a sink whether it wants deliveries from here, and return how many a minute, 0 for any number."""
        origin = urlsplit(request.base).netloc
        try:
            connection = self._sinks.open(sink)
            timer = threading.Timer(_HANDSHAKE_SECONDS, _shut, [connection])
            timer.start()
            try:
                reply = send(connection, "OPTIONS", sink, {"WebHook-Request-Origin": origin, **secret})
            finally:
                timer.cancel()
                connection.close()
        except SinkError as error:
            raise RegistryError("sink_refused", request.path, sink=sink, error_detail=error) from None
        allowed = reply.headers.get("webhook-allowed-origin", "").strip().lower()
        if not 200 <= reply.status < 300 or allowed not in ("*", origin.lower()):
            detail = (
                f"it answered {reply.status} to the validation request (OPTIONS with WebHook-Request-Origin: {origin}) "
                "and did not agree with WebHook-Allowed-Origin"
            )
            raise RegistryError("sink_refused", request.path, sink=sink, error_detail=detail)
        rate = reply.headers.get("webhook-allowed-rate", "*").strip()
        return min(int(rate), 1_000_000) if rate.isascii() and rate.isdigit() and len(rate) < 10 else 0


def _shown(one: Subscription) -> dict[str, Any]:
    """What a client sees of a subscription."""
    shown = one.shown()
    settings = shown.get("protocolsettings") or {}
    if "headers" not in settings:
        return shown
    return {**shown, "protocolsettings": {**settings, "headers": dict.fromkeys(settings["headers"], MASK)}}


def _unmask(body: dict[str, Any], before: dict[str, Any], path: str) -> None:
    """Put the values that a subscription has in the places where they are masked; another sink never gets them."""
    headers = body["protocolsettings"].get("headers", {})
    known = before.get("protocolsettings", {}).get("headers", {})
    for name in [name for name, value in headers.items() if value == MASK]:
        if name not in known:
            detail = f'the header "{name}" has the value that stands for one that is not shown; give its own'
            raise RegistryError("bad_request", path, error_detail=detail)
        headers[name] = known[name]


def _shut(connection: Any) -> None:
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def _body(request: Request) -> Any:
    if not request.body:
        raise RegistryError("missing_body", request.path)
    return parse_json(request.body, request.path)


def _json(status: int, value: Any) -> Response:
    return Response(status, [JSON, ("cache-control", "no-store")], orjson.dumps(value))
