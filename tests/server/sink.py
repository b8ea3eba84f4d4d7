"""A sink that events are delivered to: it agrees, records, fails, hangs and redirects as a test wants."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from signalbook.cloudevents import CloudEvent
from signalbook.protocols import Message, from_http
from tests.patience import until


@dataclass
class Sink:
    """A web server at a port of its own that it keeps over restarts; `answer` is the status of a delivery."""

    answer: Callable[[], int] = lambda: 204
    allowed: str = "*"
    rate: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    received: list[CloudEvent] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0

    def start(self) -> Sink:
        """Begin to listen."""
        self._server = _Server(("127.0.0.1", self.port), _handler(self))
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def stop(self) -> None:
        """Listen no more, and drop every connection."""
        self._server.shutdown()
        self._server.drop()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/events"

    def wait(self, ready: Callable[[], bool]) -> bool:
        """Tell whether something becomes true."""
        return until(ready)

    def ids(self) -> list[str]:
        """The ids of what came, each once, in the order of their first coming."""
        return list(dict.fromkeys(event.id for event in self.received))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.open: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def drop(self) -> None:
        for request in self.open:
            self.shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is no news."""


def _handler(sink: Sink) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_OPTIONS(self) -> None:
            sink.requests.append(("OPTIONS", self._names(), b""))
            self.send_response(200)
            if sink.allowed:
                self.send_header("WebHook-Allowed-Origin", sink.allowed)
            if sink.rate:
                self.send_header("WebHook-Allowed-Rate", sink.rate)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            names = self._names()
            status = sink.answer()
            sink.requests.append(("POST", names, body))
            if 200 <= status < 300:
                sink.received.append(from_http(Message("HTTP", {"headers": tuple(names.items())}, body)))
            self.send_response(status)
            for name, value in sink.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _names(self) -> dict[str, str]:
            return {name.lower(): value for name, value in self.headers.items()}

        def log_message(self, *_: object) -> None:
            pass

    return Handler
