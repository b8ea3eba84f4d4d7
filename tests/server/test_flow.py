"""The flow through `AsgiApp`, without a socket: what every request and response goes through."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator

import httpx
import pytest

from signalbook.server import flow
from signalbook.server.access import Access
from signalbook.server.flow import AsgiApp, Bases, BodyLimits, Flow
from signalbook.server.metrics import RequestLog
from tests.patience import LONG
from tests.server.fake_service import DOCUMENT, FakeService

Client = Callable[..., httpx.Response]


class Edge:
    """A flow around a fake service, and a client for it."""

    def __init__(self) -> None:
        self.service = FakeService()
        self._runner = asyncio.Runner()
        self._apps: list[AsgiApp] = []
        self.app = self.around()

    def around(self, **options: object) -> AsgiApp:
        """Set the flow's options."""
        self.app = AsgiApp(Flow(self.service, **options))  # type: ignore[arg-type]
        self._apps.append(self.app)
        return self.app

    def send(self, method: str, path: str, **options: object) -> httpx.Response:
        """One request."""

        async def run() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://registry.example:8080") as client:
                return await client.request(method, path, **options)  # type: ignore[arg-type]

        return self._runner.run(run())

    def close(self) -> None:
        """End the threads."""
        for app in self._apps:
            app.close()
        self._runner.close()


@pytest.fixture
def edge() -> Iterator[Edge]:
    """A fresh edge."""
    made = Edge()
    yield made
    made.close()


def name_of(response: httpx.Response) -> str:
    """The name of the error a response holds."""
    return str(response.json()["type"].rpartition("#")[2])


@pytest.mark.parametrize("path", ["/quick", "/echo", "/missing", "/failure", "/quick-failure", "/healthz"])
def test_every_response_links_to_the_root(edge: Edge, path: str) -> None:
    """HTTP-8: all responses, errors too, have the root link; and any page may read them."""
    headers = edge.send("GET", path).headers
    assert "<http://registry.example:8080>;rel=xregistry-root" == headers["link"]
    assert "*" == headers["access-control-allow-origin"]
    assert "DELETE, GET, OPTIONS, PATCH, POST, PUT" == headers["access-control-allow-methods"]


@pytest.mark.parametrize(
    ("method", "path", "status", "name"),
    [
        ("GET", "/missing", 404, "not_found"),
        ("GET", "/busy", 503, "server_busy"),
        ("GET", "/failure", 500, "server_error"),
        ("GET", "/quick-failure", 500, "server_error"),
        ("PUT", "/healthz", 405, "action_not_supported"),
    ],
)
def test_errors(edge: Edge, method: str, path: str, status: int, name: str) -> None:
    """Whatever a service raises, on either road, becomes the specification's form."""
    response = edge.send(method, path)
    assert (status, name) == (response.status_code, name_of(response))
    assert "secret" not in response.text


@pytest.mark.parametrize("path", ["/quick", "/document", "/echo", "/missing"])
def test_head(edge: Edge, path: str) -> None:
    """HTTP-17: HEAD is GET without the body, and the service never sees it."""
    get = edge.send("GET", path, headers={"accept-encoding": "identity"})
    head = edge.send("HEAD", path, headers={"accept-encoding": "identity"})
    assert (get.status_code, get.headers, b"") == (head.status_code, head.headers, head.content)
    assert "HEAD" not in get.text


def test_not_modified(edge: Edge) -> None:
    """A tag that still holds is answered with 304 and no body; the tag of a coded response holds as well."""
    first = edge.send("GET", "/document", headers={"accept-encoding": "gzip"})
    assert ('"7-gzip"', DOCUMENT) == (first.headers["etag"], first.content)
    for tag in ('"7"', 'W/"7"', '"7-gzip"'):
        second = edge.send("GET", "/document", headers={"if-none-match": tag})
        assert (304, b"", '"7"') == (second.status_code, second.content, second.headers["etag"])
        assert "content-length" not in second.headers


def test_coding(edge: Edge) -> None:
    """A body over 1 KiB is coded where asked, and `Vary` says so either way; a small one never is."""
    coded = edge.send("GET", "/document", headers={"accept-encoding": "zstd"})
    plain = edge.send("GET", "/document", headers={"accept-encoding": "identity"})
    small = edge.send("GET", "/quick", headers={"accept-encoding": "zstd"})
    assert ("zstd", "accept-encoding") == (coded.headers["content-encoding"], coded.headers["vary"])
    assert int(coded.headers["content-length"]) < 200
    assert ("accept-encoding", DOCUMENT) == (plain.headers["vary"], plain.content)
    assert "content-encoding" not in plain.headers
    assert {"vary", "content-encoding"}.isdisjoint(small.headers)


def test_a_large_quick_answer_takes_the_long_road(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coding a large body would hold the event loop up, and sending it memory: it is left to a thread."""
    monkeypatch.setattr("signalbook.server.flow.LARGE", 1024)
    assert "GET" == edge.send("GET", "/document", headers={"accept-encoding": "gzip"}).json()["method"]


def test_options(edge: Edge) -> None:
    """HTTP-9: the same list in both headers; a preflight is told what it may send."""
    response = edge.send("OPTIONS", "/echo")
    assert (200, b"") == (response.status_code, response.content)
    assert "GET, OPTIONS, PUT" == response.headers["allow"] == response.headers["access-control-allow-methods"]
    assert "access-control-allow-headers" not in response.headers
    preflight = edge.send(
        "OPTIONS",
        "/echo",
        headers={
            "origin": "https://x.example",
            "access-control-request-method": "PUT",
            "access-control-request-headers": "content-type,xRegistry-name,x y",
        },
    )
    allowed = preflight.headers["access-control-allow-headers"]
    assert "authorization, content-type, if-match, if-none-match, xregistry-name" == allowed
    assert "GET, OPTIONS" == edge.send("OPTIONS", "/metrics").headers["allow"]


def test_tokens(edge: Edge) -> None:
    """With tokens only `/healthz` and a preflight need none, and a preflight learns nothing about paths."""
    edge.around(access=Access(read_tokens=("r",), write_tokens=("w",)))
    for path in ("/quick", "/echo", "/metrics", "/nothing"):
        response = edge.send("GET", path)
        assert (401, "unauthorized") == (response.status_code, name_of(response))
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert 200 == edge.send("GET", path, headers={"authorization": "Bearer r"}).status_code
        anyone = edge.send("OPTIONS", path)
        assert path == "/metrics" or "DELETE, GET, OPTIONS, PATCH, POST, PUT" == anyone.headers["allow"]
    assert 200 == edge.send("GET", "/healthz").status_code
    assert 403 == edge.send("PUT", "/echo", headers={"authorization": "Bearer r"}).status_code
    assert 200 == edge.send("PUT", "/echo", headers={"authorization": "Bearer w"}).status_code


def test_health(edge: Edge) -> None:
    """`/healthz` says whether the service can answer."""
    assert {"status": "ok"} == edge.send("GET", "/healthz").json()
    edge.service.failing = "the store is gone"
    response = edge.send("GET", "/healthz")
    assert (503, {"status": "failing", "reason": "the store is gone"}) == (response.status_code, response.json())


def test_figures(edge: Edge) -> None:
    """`/metrics` counts by method and status, shows latencies and what the service adds."""
    edge.send("GET", "/quick")
    edge.send("GET", "/missing")
    edge.send("BREW", "/echo")
    response = edge.send("GET", "/metrics")
    assert "text/plain; version=0.0.4; charset=utf-8" == response.headers["content-type"]
    lines = response.text.splitlines()
    assert 'signalbook_requests_total{method="GET",status="200"} 1' in lines
    assert 'signalbook_requests_total{method="GET",status="404"} 1' in lines
    assert 'signalbook_requests_total{method="other",status="200"} 1' in lines
    assert 'signalbook_request_seconds_bucket{le="+Inf"} 3' in lines
    assert "signalbook_request_seconds_count 3" in lines
    assert "signalbook_write_groups_total" in response.text
    assert "signalbook_requests_in_flight 1" in lines
    assert "signalbook_workers 1" in lines


@pytest.mark.parametrize(
    ("host", "status"),
    [("registry.example", 200), ("127.0.0.1:80", 200), ("[::1]:80", 200), ('a"b', 400), ("a b", 400), ("a<b", 400),
     ("a@b", 400), ("x:99999999", 400), ("a/b", 400)],
)  # fmt: skip
def test_a_host_is_a_host(edge: Edge, host: str, status: int) -> None:
    """The base of all links is what the client named, if that is a host at all."""
    response = edge.send("GET", "/quick", headers={"host": host})
    assert status == response.status_code
    if status == 200:
        assert f"http://{host}" == response.json()["base"]
    else:
        assert ("header_error", "Host") == (name_of(response), response.json()["args"]["name"])


def test_ever_new_hosts_are_forgotten(edge: Edge) -> None:
    """A client that makes up names does not fill the memory."""
    bases = Bases()
    edge.around(bases=bases)
    for number in range(600):
        edge.send("GET", "/quick", headers={"host": f"h{number}"})
    assert len(bases._known) <= 256


FORWARDED = {"x-forwarded-proto": "https", "x-forwarded-host": "pub.example", "x-forwarded-prefix": "/reg/"}


@pytest.mark.parametrize(
    ("bases", "headers", "expected"),
    [
        (Bases(), FORWARDED, "http://registry.example:8080"),
        (Bases(trust_proxy=True), FORWARDED, "https://pub.example/reg"),
        (Bases(trust_proxy=True), {"x-forwarded-proto": "https, http"}, "https://registry.example:8080"),
        (Bases(trust_proxy=True), {}, "http://registry.example:8080"),
        (Bases(trust_proxy=True), {"x-forwarded-proto": "javascript"}, None),
        (Bases(trust_proxy=True), {"x-forwarded-prefix": '/"x'}, None),
        (Bases(trust_proxy=True), {"x-forwarded-host": "a b"}, None),
        (Bases("https://fixed.example/r/"), FORWARDED, "https://fixed.example/r"),
    ],
)
def test_behind_a_proxy(edge: Edge, bases: Bases, headers: dict[str, str], expected: str | None) -> None:
    """What a proxy says counts only where the operator trusts it; a fixed base always wins."""
    edge.around(bases=bases)
    response = edge.send("GET", "/quick", headers=headers)
    if expected is None:
        assert "header_error" == name_of(response)
    else:
        assert expected == response.json()["base"]


async def drip(*chunks: bytes, pause: float = 0.0) -> AsyncIterator[bytes]:
    """A body that arrives in pieces."""
    for chunk in chunks:
        await asyncio.sleep(pause)
        yield chunk


def test_the_size_of_a_body(edge: Edge) -> None:
    """A body over the limit is refused, announced or not, and one at the limit is read."""
    edge.around(limits=BodyLimits(max_body=100_000))
    assert 100_000 == edge.send("PUT", "/echo", content=b"x" * 100_000).json()["size"]
    for content in (b"x" * 100_001, drip(b"x" * 60_000, b"x" * 60_000)):
        response = edge.send("PUT", "/echo", content=content)
        assert (413, "request_too_large") == (response.status_code, name_of(response))
        assert {"limit": "100000"} == response.json()["args"]


@pytest.mark.parametrize("length", ["x", "-1", "1e3", "²"])
def test_a_length_that_is_no_number(edge: Edge, length: str) -> None:
    """A length that cannot be one is an error, not a crash."""
    response = edge.send("PUT", "/echo", content=drip(b"x"), headers={"content-length": length.encode("latin-1")})  # type: ignore[dict-item]
    assert "header_error" == name_of(response)


def test_all_bodies_together_are_bounded(edge: Edge) -> None:
    """When waiting bodies hold all the room there is, the server says it is busy, and takes the next when there is."""
    edge.around(limits=BodyLimits(max_body=1000, held=500))
    for content in (b"x" * 600, drip(b"x" * 600)):
        response = edge.send("PUT", "/echo", content=content)
        assert (503, "server_busy") == (response.status_code, name_of(response))
    for _ in range(3):
        assert 200 == edge.send("PUT", "/echo", content=b"x" * 500).status_code


@pytest.mark.parametrize("content", [{"content-length": "10"}, {}], ids=["announced", "chunked"])
def test_a_body_that_stalls(edge: Edge, content: dict[str, str]) -> None:
    """A body that does not come in time is refused."""
    edge.around(limits=BodyLimits(timeout=0.05))
    response = edge.send("PUT", "/echo", content=drip(b"x", b"y", pause=1), headers=content)
    assert (408, "request_timeout") == (response.status_code, name_of(response))


def test_a_slow_body_that_keeps_coming(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """What did arrive buys time: a long body on a slow line is read."""
    monkeypatch.setattr(flow, "_RATE", 4096 / LONG)

    async def slow() -> AsyncIterator[bytes]:
        yield b"x" * 4096
        await asyncio.sleep(1)
        yield b"x" * 4096

    edge.around(limits=BodyLimits(timeout=0.5))
    assert 8192 == edge.send("PUT", "/echo", content=slow()).json()["size"]


def test_half_a_request(edge: Edge) -> None:
    """A client that goes away in the middle of a body changes nothing."""

    async def talk(length: bytes | None) -> list[object]:
        messages = iter([{"type": "http.request", "body": b"{}", "more_body": True}, {"type": "http.disconnect"}])
        sent: list[object] = []

        async def receive() -> dict[str, object]:
            return dict(next(messages))

        async def send(message: object) -> None:
            sent.append(message)

        given = [(b"content-length", length)] if length else [(b"transfer-encoding", b"chunked")]
        scope = {"type": "http", "method": "PUT", "path": "/echo", "query_string": b"", "headers": given}
        await edge.app(scope, receive, send)  # type: ignore[arg-type]
        return sent

    for length in (b"10", None, b"100000"):
        start, body = edge._runner.run(talk(length))
        assert 400 == start["status"]  # type: ignore[index]
        assert "bad_request" in json.loads(body["body"])["type"]  # type: ignore[index]


def test_the_log(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    """One line a request, in text or JSON, in which a client cannot write a line of its own."""
    with caplog.at_level(logging.INFO, "signalbook.requests"):
        logging.getLogger("signalbook.requests").propagate = True
        logging.getLogger("signalbook").propagate = True
        for form in ("text", "json"):
            edge.around(log=RequestLog(form))
            edge.send("GET", "/echo?a=b")
            edge.send("GET", "/x%0Ay%C3%A9")
            edge.app.close()
    text, lines = (record.getMessage().splitlines() for record in caplog.records)
    assert ["GET /echo?a=b 200", "GET /x\\ny\\xe9 200"] == [" ".join(line.split()[2:5]) for line in text]
    assert ["/echo", "/x\\ny\\xe9"] == [json.loads(line)["path"] for line in lines]
    assert {"time", "client", "method", "path", "query", "status", "bytes", "ms"} == set(json.loads(lines[0]))


def test_a_long_log_is_written_in_between(caplog: pytest.LogCaptureFixture) -> None:
    """Lines do not pile up: a full batch is written at once."""
    log = RequestLog()
    with caplog.at_level(logging.INFO, "signalbook.requests"):
        logging.getLogger("signalbook.requests").propagate = True
        logging.getLogger("signalbook").propagate = True
        for _ in range(600):
            log.note("GET", "/", "", 200, 1, 0.001, "-")
    assert 1 == len(caplog.records)
    assert 512 == len(caplog.records[0].getMessage().splitlines())


def test_lifespan(edge: Edge) -> None:
    """A server that has `lifespan` starts and stops the flow by it."""

    async def live() -> list[str]:
        messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
        sent: list[str] = []

        async def receive() -> dict[str, object]:
            return dict(next(messages))

        async def send(message: dict[str, str]) -> None:
            sent.append(message["type"])

        await edge.app({"type": "lifespan"}, receive, send)  # type: ignore[arg-type]
        return sent

    assert ["lifespan.startup.complete", "lifespan.shutdown.complete"] == edge._runner.run(live())
    assert edge.service.closed
