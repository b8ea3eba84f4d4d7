"""Exchanges over HTTP: proxies, failures by their names, bounds; what a hostile server does is in proofs."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import httpcore
import httpx
import pytest

from signalbook.exchange import Excess, Exchange, _named_by_httpx, _proxy_for

BOUNDS = {"silence": 10.0, "seconds": 60.0, "largest": 1000}


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with the request line that it was sent."""

    def do_GET(self) -> None:
        body = self.requestline.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def echo() -> Iterator[str]:
    """The address of a server that echoes."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def exchange() -> Iterator[Exchange]:
    """Connections of one's own."""
    made = Exchange(httpx.create_ssl_context)
    yield made
    made.close()


def test_an_answer(echo: str, exchange: Exchange) -> None:
    """The status, the headers and the body come back; a second exchange has bounds of its own."""
    for _ in range(2):
        status, headers, body = exchange.ask("GET", f"{echo}/a%2Fb?c=d", None, {}, **BOUNDS)
        assert (200, b"GET /a%2Fb?c=d HTTP/1.1") == (status, body)
        assert str(len(body)) == headers["content-length"]
    with pytest.raises(Excess, match="sends more than 5 bytes in one answer"):
        exchange.ask("GET", echo, None, {}, silence=10.0, seconds=60.0, largest=5)


def test_a_proxy_of_the_environment_is_used(echo: str, exchange: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment names is asked, unless it names the host as one to be asked directly."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert "" == _proxy_for(httpx.URL("http://far.example/"))
    monkeypatch.setenv("http_proxy", echo.removeprefix("http://"))
    monkeypatch.setenv("no_proxy", "near.example")
    assert ("", echo) == (_proxy_for(httpx.URL("http://near.example/")), _proxy_for(httpx.URL("http://far.example:8/")))
    _, _, body = exchange.ask("GET", "http://far.example/x", None, {}, **BOUNDS)
    assert b"GET http://far.example/x HTTP/1.1" == body


def test_failures_have_the_names_of_httpx() -> None:
    """A failure of the connection is that of httpx, which callers know."""
    for failure, named in (
        (httpcore.ConnectError("a"), httpx.ConnectError),
        (httpcore.ReadTimeout("a"), httpx.ReadTimeout),
        (httpcore.RemoteProtocolError("a"), httpx.RemoteProtocolError),
        (httpcore.ProxyError("a"), httpx.ProxyError),
    ):
        with pytest.raises(named, match="a"), _named_by_httpx():
            raise failure
