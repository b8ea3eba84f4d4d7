"""What only shows at the edge of the server, with the whole way from ASGI to the store: HTTP-8, HTTP-17, INLINE-6."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from signalbook import app
from signalbook.registry.read.reads import Limits
from signalbook.server.flow import AsgiApp
from signalbook.settings import Settings
from tests.registry.conftest import MakeApi

Send = Callable[..., httpx.Response]
BASE = "http://registry.example:8080"
MODEL = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}
FILE = "/dirs/d1/files/f1"
PLAIN = {"accept-encoding": "identity"}


@pytest.fixture
def send(store_url: str) -> Iterator[Send]:
    """Requests to a whole server, without a socket."""
    edge = AsgiApp(app.flow(Settings(store=store_url, model="empty", specversion="1.0-rc4", log=False)))
    with asyncio.Runner() as runner:

        def one(method: str, path: str, **options: Any) -> httpx.Response:
            async def run() -> httpx.Response:
                async with httpx.AsyncClient(transport=httpx.ASGITransport(edge), base_url=BASE) as client:
                    return await client.request(method, path, **options)

            return runner.run(run())

        assert 200 == one("PUT", "/modelsource", json=MODEL).status_code
        assert 201 == one("PUT", FILE, content=b"hello", headers={"xRegistry-name": "x"}).status_code
        yield one
        edge.close()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/model"),
        ("GET", "/dirs"),
        ("GET", FILE),
        ("GET", "/dirs/none"),
        ("DELETE", "/"),
        ("OPTIONS", "/dirs"),
        ("PUT", "/dirs/d2"),
        ("DELETE", FILE),
        ("GET", "/.xregistry"),
    ],
)
def test_every_response_names_the_root(send: Send, method: str, path: str) -> None:
    """HTTP-8: every response, also an error, has the link to the registry."""
    response = send(method, path, headers=PLAIN)
    assert f"<{BASE}>;rel=xregistry-root" in response.headers.get_list("link", split_commas=True)


@pytest.mark.parametrize("path", ["/", "/dirs", "/dirs/d1", FILE, f"{FILE}$details", "/model", "/dirs/none"])
def test_head(send: Send, path: str) -> None:
    """HTTP-17: HEAD has the status and the headers of GET, and no body."""
    get, head = send("GET", path), send("HEAD", path)
    assert (get.status_code, b"") == (head.status_code, head.content)
    ignored = {"content-length", "date"}
    assert {**get.headers}.keys() - ignored == {**head.headers}.keys() - ignored


def test_a_tag_and_no_body(send: Send) -> None:
    """A client that has the state is told so, by the same tag, until the state changes."""
    for path in ("/", "/dirs", "/dirs/d1", f"{FILE}$details", FILE, f"{FILE}/versions/1$details", "/export"):
        tag = send("GET", path, headers=PLAIN).headers["etag"]
        again = send("GET", path, headers={**PLAIN, "if-none-match": tag})
        assert (304, b"", tag) == (again.status_code, again.content, again.headers["etag"]), path
        send("PATCH", f"{FILE}$details", json={"description": path})
        if path != "/dirs/d1":  # a lone group does not show its resource's versions
            assert 200 == send("GET", path, headers={"if-none-match": tag}).status_code, path


def test_a_tag_of_a_read_is_good_for_a_write(send: Send) -> None:
    """`If-Match` takes the tag that a read gave, once."""
    tag = send("GET", f"{FILE}$details").headers["etag"]
    assert 200 == send("PATCH", f"{FILE}$details", json={}, headers={"if-match": tag}).status_code
    assert 412 == send("PATCH", f"{FILE}$details", json={}, headers={"if-match": tag}).status_code


@pytest.mark.parametrize(
    ("name", "error", "subject"),
    [
        ("foo", "unknown_attribute", f"{FILE}/versions/1"),
        ("name", "header_error", FILE),
        ("self", "header_error", FILE),
    ],
)
def test_a_repeated_header(send: Send, name: str, error: str, subject: str) -> None:
    """HDR-1: a header that is given twice is wrong, and where there is no such attribute that is what is wrong."""
    twice = [(f"xRegistry-{name}", "a"), (f"xRegistry-{name}", "b")]
    answer = send("PUT", FILE, content=b"x", headers=twice).json()
    assert (error, subject) == (answer["type"].rpartition("#")[2], answer["subject"])


def test_too_large(make_api: MakeApi) -> None:
    """INLINE-6: what does not fit into one answer is refused by name, and read in parts."""
    api = make_api(model="empty", specversion="1.0-rc4")
    api("PUT", "/modelsource", MODEL)
    api("POST", "/dirs", {f"d{n}": {"description": "x" * 1000, "files": {"f": {}}} for n in range(50)})
    api.service._requests.limits = Limits(size=40_000)
    for path in ("/?inline=dirs", "/?inline", "/export", "/dirs?inline=files"):
        reply = api("GET", path)
        assert (406, "too_large") == (reply.status, reply.error), path
    assert 200 == api("GET", "/").status
    assert 200 == api("GET", "/dirs?limit=10").status


def test_an_answer_that_is_too_large_undoes_the_write(make_api: MakeApi) -> None:
    """HTTP-7: an error while the answer is made leaves nothing behind."""
    api = make_api(model="empty", specversion="1.0-rc4")
    api("PUT", "/modelsource", MODEL)
    api.service._requests.limits = Limits(size=20_000)
    assert "too_large" == api("POST", "/dirs", {f"d{n}": {"description": "x" * 1000} for n in range(50)}).error
    assert {} == api("GET", "/dirs").json
