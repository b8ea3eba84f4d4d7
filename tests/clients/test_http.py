from __future__ import annotations

import gzip
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.clients import http
from signalbook.cloudevents import CloudEvent
from signalbook.errors import UsageError
from signalbook.protocols import Message, Mode, WireError, batch_from_http, batch_to_http
from tests.cases import Case, cases
from tests.clients.round_trips import arrives, modes, rejects
from tests.cloudevents.strategies import events

SERVER = "http://127.0.0.1:1"
NAMES = st.from_regex(r"x-[A-Za-z0-9]{1,8}", fullmatch=True)
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_categories=("Cc",))).filter(
    lambda text: text == text.strip()
)
HEADERS = st.lists(st.tuples(NAMES, VALUES), max_size=4).map(tuple)
# A segment of dots alone would be resolved by httpx, and is rejected.
TOKENS = st.from_regex(r"(?:[A-Za-z0-9._~!$'()*,;:@+-]|%[0-9A-F]{2}){1,6}", fullmatch=True).filter(
    lambda text: text not in (".", "..")
)
REQUESTS = st.builds(
    Message,
    st.just("HTTP"),
    st.fixed_dictionaries(
        {
            "method": st.sampled_from(["GET", "POST", "PUT"]),
            "path": st.lists(TOKENS, max_size=3).map(lambda parts: "/" + "/".join(parts)),
            "headers": HEADERS,
        },
        optional={"query": st.lists(st.tuples(TOKENS, TOKENS | st.just("")), min_size=1, max_size=3).map(tuple)},
    ),
    st.none() | st.binary(min_size=1),
)
# What httpx adds by itself.
OWN = ("host", "content-length", "transfer-encoding")


def without_own(message: Message) -> Message:
    """The message without the headers that every request gets."""
    headers = tuple((name, value) for name, value in message.get("headers") if name.lower() not in OWN)
    return Message("HTTP", {**message.fields, "headers": headers}, message.payload)


def by_request(message: Message) -> Message:
    """What is shown of a request."""
    return http.request_to_paper(http.to_request(message, SERVER))


def by_asgi(message: Message) -> Message:
    """What an application is shown of a request."""
    request = http.to_request(message, SERVER)
    path, _, query = request.url.raw_path.partition(b"?")
    headers = [(name.lower(), value) for name, value in request.headers.raw]
    scope = {"type": "http", "method": request.method, "raw_path": path, "query_string": query, "headers": headers}
    return http.asgi_to_paper(scope, request.content)


def by_response(message: Message) -> Message:
    """What is shown of a response."""
    return http.response_to_paper(http.to_response(message))


def by_asgi_response(message: Message) -> Message:
    """What a client is shown of an application's response."""
    start, body = http.to_asgi(message)
    return http.response_to_paper(httpx.Response(start["status"], headers=start["headers"], content=body["body"]))


@given(REQUESTS)
def test_a_request_comes_back(message: Message) -> None:
    """Method, path, query, headers with their case, order and repeats, and body are the same after httpx had them."""
    assert message == without_own(by_request(message))


@given(REQUESTS)
def test_a_request_reaches_an_application(message: Message) -> None:
    """An ASGI application sees the same, the names of headers in lower case."""
    lower = tuple((name.lower(), value) for name, value in message.get("headers"))
    assert Message("HTTP", {**message.fields, "headers": lower}, message.payload) == without_own(by_asgi(message))


@given(
    st.integers(200, 599).filter(lambda status: status not in (204, 205, 304)),
    HEADERS,
    st.none() | st.binary(min_size=1),
)
def test_a_response_comes_back(status: int, headers: Any, payload: bytes | None) -> None:
    """Status, headers and body are the same after httpx had them."""
    message = Message("HTTP", {"status": status, "headers": headers}, payload)
    assert message == without_own(by_response(message))


@modes("HTTP")
@given(event=events())
def test_an_event_comes_back(mode: Mode, event: CloudEvent) -> None:
    """An event is the same after a request or a response, seen from a client or an application."""
    for through_client in (by_request, by_asgi):
        arrives(event, "HTTP", mode, through_client, method="POST", path="/inbox")
    for through_client in (by_response, by_asgi_response):
        arrives(event, "HTTP", mode, through_client, status=200)  # type: ignore[arg-type]


@given(st.lists(events(), max_size=3))
def test_a_batch_comes_back(batch: list[CloudEvent]) -> None:
    """A batch is the same after a request."""
    assert batch == batch_from_http(by_request(batch_to_http(batch, method="POST", path="/inbox")))


def test_a_decoded_response() -> None:
    """Where httpx has undone a content coding, the headers that spoke of it go."""
    coded = httpx.Response(200, headers={"Content-Encoding": "gzip", "A": "b"}, content=gzip.compress(b"x"))
    assert Message("HTTP", {"status": 200, "headers": (("A", "b"),)}, b"x") == http.response_to_paper(coded)


def test_a_scope_without_its_raw_path() -> None:
    """A server that gives no raw path gives the decoded one, which is encoded again."""
    scope = {"type": "http", "method": "GET", "path": "/é b", "headers": []}
    fields = {"method": "GET", "path": "/%C3%A9%20b", "headers": ()}
    assert Message("HTTP", fields) == http.asgi_to_paper(scope, b"")
    with pytest.raises(WireError, match="websocket"):
        http.asgi_to_paper({"type": "websocket"}, b"")


@cases("clients/http_refused")
def test_refused(case: Case) -> None:
    """What would not arrive as it is on paper is rejected before it is sent, with its place."""
    rejects(lambda message: http.to_request(message, SERVER), case.given, case.expect)


@cases("clients/http_responses_refused")
def test_no_response(case: Case) -> None:
    """A message without a final status is not a response, and some responses have no content."""
    for send in (http.to_response, http.to_asgi):
        rejects(send, case.given, case.expect)


@pytest.mark.parametrize("fields", [{"query": "x=1"}, {"query": {"a": 1}}, {"headers": "a"}, {"path": 5}])
def test_fields_of_another_type(fields: dict[str, Any]) -> None:
    """A message whose fields are not of their types is rejected as such."""
    with pytest.raises(WireError, match=f"/{next(iter(fields))}"):
        http.to_request(Message("HTTP", {"path": "/", **fields}), SERVER)


def test_a_query_may_be_a_map() -> None:
    """Pairs may be given as a map."""
    request = http.to_request(Message("HTTP", {"path": "/", "query": {"a": "1"}}), SERVER)
    assert b"/?a=1" == request.url.raw_path


def test_what_is_the_connections_stays_there() -> None:
    """A received request that is sent on takes no length, coding of the transfer, host or hop-by-hop header with it."""
    received = [
        (b"host", b"front"), (b"transfer-encoding", b"chunked"), (b"content-length", b"3"), (b"te", b"trailers"),
        (b"connection", b"keep-alive, x-hop"), (b"keep-alive", b"timeout=5"), (b"x-hop", b"1"), (b"x-end", b"2"),
    ]  # fmt: skip
    scope = {"type": "http", "method": "POST", "path": "/in", "headers": received}
    message = http.asgi_to_paper(scope, b"abcdef")
    sent = [(b"Host", b"127.0.0.1:1"), (b"x-end", b"2"), (b"Content-Length", b"6")]
    assert sorted(sent) == sorted(http.to_request(message, SERVER).headers.raw)
    answer = Message("HTTP", {**message.fields, "status": 200}, b"abcdef")
    assert [(b"x-end", b"2")] == http.to_asgi(answer)[0]["headers"]
    assert [(b"x-end", b"2"), (b"Content-Length", b"6")] == http.to_response(answer).headers.raw


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h:9/base", "http://h:9/base/in?a=1"),
        ("http://h:9/base/", "http://h:9/base/in?a=1"),
        ("https://h", "https://h/in?a=1"),
    ],
)
def test_a_server_may_have_a_path(base: str, url: str) -> None:
    """The message's path stands below that of the address."""
    message = Message("HTTP", {"path": "/in", "query": (("a", "1"),)})
    assert url == str(http.to_request(message, base).url)


@pytest.mark.parametrize("base", ["h", "ftp://h", "http://", "http://h?a=1", "http://h#a", "http://h\0"])
def test_no_address(base: str) -> None:
    """What is not an address of a server is a wrong argument."""
    with pytest.raises(UsageError, match="is not a"):
        http.to_request(Message("HTTP", {"path": "/"}), base)
