"""The webhook of a replication that follows its source: a subscription there, and a small web server here.

Rule 1: a call only wakes the replication. What changed is read from the source: by the cursor of its feed, or by the
names in the events of a catalog of 0.1. So a call that is lost, repeated or forged changes nothing.
Rule 2: only a caller that knows the webhook's secret is accepted; connections are bounded in number, size and time.
Rule 3: a source that cannot call here is not a failure: the replication waits at its feed, and subscribes again later.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from signalbook.client import Client, RemoteError
from signalbook.errors import SignalbookError, UsageError
from signalbook.replication.scope import entity_of

__all__ = ["Catalog01Webhook", "Webhook", "WebhookListener", "check_place"]

_MOST_CONNECTIONS = 8
_MOST_BYTES = 1 << 20
_SECONDS = 10.0
_ASK_AGAIN = 60.0
_WANTED = [{"prefix": {"type": "io.xregistry."}}]
_MEDIA = "application/cloudevents-subscription+json"
_MOST_NAMED = 1000
_NAMELESS = "-"

OnDelivery = Callable[[Mapping[str, str], bytes], object]


class WebhookListener:
    """A web server at `HOST:PORT` that calls `on_call` for each delivery that carries its secret.

    The secret comes as a bearer token, or as `key` in the query of the sink. `on_delivery` is given the headers and the
    body of each delivery.
    """

    def __init__(self, place: str, on_call: Callable[[], object], on_delivery: OnDelivery | None = None) -> None:
        host, port = check_place(place)
        self.secret = secrets.token_urlsafe(24)
        try:
            self._server = _WebhookServer((host, port), _handler(self.secret, on_call, on_delivery or _ignore_delivery))
        except (OSError, OverflowError) as error:
            raise UsageError(f"nothing can listen at '{place}' ({error})") from None
        named = f"[{host}]" if ":" in host else host
        self.address = f"http://{named}:{self._server.server_address[1]}/"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, name="signalbook-webhook", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


def check_place(text: str) -> tuple[str, int]:
    """The host and the port that a text names; a `UsageError` where it names none."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port is None or parts.path or parts.username is not None:
        raise UsageError(f"'{text}' is not a place to listen at; write HOST:PORT, such as 127.0.0.1:9000")
    return host, port


class Webhook:
    """The subscription at a source whose sink is here; `refusal` says why the source does not call, if it does not.

    `sink` is the address by which the source reaches the listener, where that is not the listener's own.
    """

    def __init__(
        self,
        source: Client,
        place: str,
        sink: str = "",
        on_delivery: OnDelivery | None = None,
    ) -> None:
        self._source = source
        self._called = threading.Event()
        self._listener = WebhookListener(place, self._called.set, on_delivery)
        self._sink = sink or self._listener.address
        self._id = ""
        self._next = 0.0
        self.refusal = ""

    def wait(self, seconds: float) -> bool:
        """Wait until the source calls, at most `seconds`; return False at once where it cannot call here.

        The first time it only subscribes: the changes before that have to be read first.
        """
        if not self._id:
            return self._begin()
        called = self._called.wait(seconds)
        self._called.clear()
        if not called and not self._is_well():
            self._id = ""
            return self._begin()
        return True

    def close(self) -> None:
        """End the subscription, and listen no more."""
        if self._id:
            with suppress(SignalbookError):
                self._source.request("DELETE", f"/subscriptions/{self._id}")
        self._listener.close()

    def _begin(self) -> bool:
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + _ASK_AGAIN
        try:
            self._id = self._subscribe()
        except RemoteError as error:
            if not error.status or error.status >= 500:
                self._next = 0.0
                raise  # it does not answer at all
            self.refusal = str(error)
        return bool(self._id)

    def _subscribe(self) -> str:
        """Subscribe, or renew the subscription that an earlier run has left; return its id."""
        body = {
            "protocol": "HTTP",
            "sink": self._sink,
            "filters": _WANTED,
            "sinkcredential": {"credentialtype": "ACCESSTOKEN", "accesstoken": self._listener.secret},
        }
        known = self._source.request("GET", "/subscriptions").value
        listed = [one for one in known if isinstance(one, dict)] if isinstance(known, list) else []
        ids = [str(one.get("id", "")) for one in listed if one.get("sink") == self._sink]
        method, path = ("PUT", f"/subscriptions/{ids[0]}") if ids else ("POST", "/subscriptions")
        made = self._source.request(method, path, body).value
        if not isinstance(made, dict) or not isinstance(made.get("id"), str):
            raise RemoteError(f"{self._source.name} answered a subscription with something else", status=400)
        return str(made["id"])

    def _is_well(self) -> bool:
        """Whether the subscription is there and its deliveries arrive."""
        try:
            status = self._source.request("GET", f"/subscriptions/{self._id}").value["status"]
        except RemoteError as error:
            if error.status == 404:
                self._next = 0.0  # it was deleted, so it can be made again at once
                return False
            raise
        except (KeyError, TypeError):
            return False
        if not isinstance(status, dict):
            return False
        if status.get("state") != "active" or status.get("failures"):
            self.refusal = str(status.get("error", ""))
            return False
        return True


class Catalog01Webhook(Webhook):
    """The subscription at a catalog of 0.1, in the form of its text (seed 004, section 5.5).

    That form has no credential: the sink carries the secret. `subjects` is what the events of a scope begin with.
    """

    def __init__(self, source: Client, place: str, sink: str = "", subjects: str = "/messagecatalog") -> None:
        self._named: dict[str, None] | None = {}
        self._lock = threading.Lock()
        self._subjects = subjects
        super().__init__(source, place, sink, self._keep_subjects)

    def named(self) -> list[str] | None:
        """What changed since this was asked last; None where that is not known, and everything is to be compared."""
        with self._lock:
            found, self._named = self._named, {}
        xids = [entity_of(subject) for subject in found or ()]
        if not xids or any(xid is None or xid.count("/") != 4 for xid in xids):
            return None  # of a group that came or went all has to be looked at
        return list(dict.fromkeys(str(xid) for xid in xids))

    def _keep_subjects(self, headers: Mapping[str, str], body: bytes) -> None:
        """Keep the subjects of the events of a delivery, which is in binary or structured mode, or a batch."""
        binary = {name.lower(): value for name, value in headers.items()}.get("ce-subject")
        try:
            given = orjson.loads(body) if binary is None else {"subject": binary}
        except orjson.JSONDecodeError:
            given = None
        events = given if isinstance(given, list) else [given]
        with self._lock:
            for event in events:
                subject = event.get("subject") if isinstance(event, dict) else None
                if not isinstance(subject, str) or self._named is None or len(self._named) >= _MOST_NAMED:
                    self._named = None
                    return
                self._named[subject] = None

    def _subscribe(self) -> str:
        for one in self._left_behind():
            with suppress(RemoteError):
                self._source.request("DELETE", f"/subscriptions/{one}")
        mark = "&" if "?" in self._sink else "?"
        body = {
            "source": self._source.address,
            "protocol": "HTTPS" if self._sink.lower().startswith("https:") else "HTTP",
            "sink": f"{self._sink}{mark}key={self._listener.secret}",
            "filter": {"prefix": {"subject": self._subjects}},
        }
        answer = self._source.request("POST", "/subscriptions", body, headers={"content-type": _MEDIA})
        given = answer.value
        made = given.get("id") if isinstance(given, dict) else None
        place = answer.headers.get("location", "").rstrip("/").rpartition("/")[2]
        return str(made or place or _NAMELESS)

    def _left_behind(self) -> list[str]:
        """The subscriptions that earlier runs with this sink left, where the catalog lists them."""
        try:
            known = self._source.request("GET", "/subscriptions").value
        except RemoteError as error:
            if error.status in (404, 405, 501):
                return []
            raise
        sinks = [one for one in known if isinstance(one, dict)] if isinstance(known, list) else []
        return [str(one["id"]) for one in sinks if "id" in one and str(one.get("sink")).partition("?")[0] == self._sink]

    def _is_well(self) -> bool:
        """Whether the subscription is there; its state is not in the text, and some catalogs do not show it at all."""
        if self._id == _NAMELESS:
            return True
        try:
            self._source.request("GET", f"/subscriptions/{self._id}")
        except RemoteError as error:
            if error.status == 404:
                self._next = 0.0
            elif error.status not in (405, 501):
                raise
            return error.status != 404
        return True


# ---- the web server


class _WebhookServer(ThreadingHTTPServer):
    """A server that takes a few connections at a time and drops others."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, place: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        self._room = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__(place, handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # that of HTTPServer asks for a host's full name, which may take long
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return self._room.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing where a caller has left."""


def _ignore_delivery(headers: Mapping[str, str], body: bytes) -> None:
    """Leave a delivery unread: that it came is enough."""


def _knows(secret: str, authorization: str, path: str) -> bool:
    """Whether a caller knows the secret: as its token, or in the query of the sink."""
    keys = parse_qs(urlsplit(path).query).get("key", [])
    given = (authorization, *(f"Bearer {key}" for key in keys[:1]))
    return any(hmac.compare_digest(one.encode(), f"Bearer {secret}".encode()) for one in given)


def _handler(secret: str, on_call: Callable[[], object], on_delivery: OnDelivery) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version, sys_version = "Signalbook", ""
        disable_nagle_algorithm = True
        timeout = _SECONDS

        def do_OPTIONS(self) -> None:
            """The validation handshake of cloudevents/http-webhook.md section 4."""
            origin = self.headers.get("webhook-request-origin", "")
            agreed = {"WebHook-Allowed-Origin": origin, "WebHook-Allowed-Rate": "*", "Allow": "OPTIONS, POST"}
            self._answer(200, agreed if origin.isprintable() else {})

        def do_POST(self) -> None:
            self._answer(204, {}, lambda: (on_delivery(dict(self.headers.items()), self._body), on_call()))

        def _answer(
            self, status: int, headers: dict[str, str], done: Callable[[], object] = lambda: None
        ) -> None:  # fmt: skip
            if not self._drain():
                status, headers, done = 413, {}, lambda: None
            elif not _knows(secret, self.headers.get("authorization", ""), self.path):
                status, headers, done = 401, {}, lambda: None
            done()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", "0")
            if status >= 400:
                self.send_header("Connection", "close")
            self.end_headers()

        def _drain(self) -> bool:
            """Read the body; return whether it was within bounds."""
            self._body = b""
            given = self.headers.get("content-length", "0")
            size = int(given) if given.isascii() and given.isdigit() and len(given) < 10 else _MOST_BYTES + 1
            if size > _MOST_BYTES or "transfer-encoding" in self.headers:
                return False
            self._body = self.rfile.read(size)
            return len(self._body) == size

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler
