"""HTTP: httpx requests and responses, and the two ends of an ASGI application.

Rule 1: `path` and `query` on paper are as they went over the wire, percent-encoding and all.
Rule 2: header values are the bytes of the wire, one character each (ISO 8859-1, RFC 9110 section 5.5), in their order.
Rule 3: HTTP does not tell a body of zero bytes from none: it is None on paper.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from signalbook.clients.refusals import MissingLibrary, check_headers, expect_protocol, needed, refusal
from signalbook.wire import Message

try:
    import httpx
except ImportError as error:
    raise MissingLibrary("httpx", "http") from error

__all__ = ["asgi_to_paper", "request_to_paper", "response_to_paper", "to_asgi", "to_request", "to_response"]

_CHARSET = "latin-1"
# What httpx says of a body that it has decoded already would be untrue on paper.
_CODING = frozenset((b"content-encoding", b"content-length"))
_PATH_MARKS = "/:@!$&'()*+,;="
# RFC 3986, sections 3.3 and 3.4: what stands in a path and in a query; `&` and `=` part the pairs of the latter.
_is_path = re.compile(r"/(?:[/:@!$&'()*+,;=~\-._0-9A-Za-z]|%[0-9A-Fa-f]{2})*").fullmatch
_is_query_name = re.compile(r"(?:[/?:@!$'()*+,;~\-._0-9A-Za-z]|%[0-9A-Fa-f]{2})*").fullmatch
_is_query_value = re.compile(r"(?:[/?:@!$'()*+,;=~\-._0-9A-Za-z]|%[0-9A-Fa-f]{2})*").fullmatch


def request_to_paper(request: httpx.Request) -> Message:
    """The message of a request whose body was read (`request.read()`)."""
    path, _, query = request.url.raw_path.partition(b"?")
    return _request(request.method, path, query, request.headers.raw, request.content)


def asgi_to_paper(scope: Mapping[str, Any], body: bytes) -> Message:
    """The message of a request that an ASGI application was called with: its scope, and the body put together."""
    if scope.get("type") != "http":
        raise refusal("", f"an ASGI scope of the type {scope.get('type')} is no HTTP request")
    path = scope.get("raw_path") or quote(scope["path"], safe=_PATH_MARKS).encode()
    return _request(scope["method"], path.partition(b"?")[0], scope.get("query_string", b""), scope["headers"], body)


def response_to_paper(response: httpx.Response) -> Message:
    """The message of a response whose body was read; where httpx has undone a content coding, without its headers."""
    headers: Iterable[tuple[bytes, bytes]] = response.headers.raw
    if "content-encoding" in response.headers:
        headers = [(name, value) for name, value in headers if name.lower() not in _CODING]
    fields = {"status": response.status_code, "headers": _read_headers(headers)}
    return Message("HTTP", fields, response.content or None)


def to_request(message: Message, base_url: str) -> httpx.Request:
    """The request for `client.send`: its path and query at a server's address, POST unless it says another method."""
    headers = _write_headers(message)
    method, path, query = message.get("method") or "POST", needed(message, "path"), _write_query(message)
    if not _is_path(path):
        raise refusal("/path", "must begin with a slash and have everything else percent-encoded")
    url = httpx.URL(base_url).copy_with(raw_path=f"{path}?{query}".removesuffix("?").encode())
    return httpx.Request(method, url, headers=headers, content=message.payload)


def to_response(message: Message) -> httpx.Response:
    """The response as httpx has it, for a mock transport."""
    return httpx.Response(_status(message), headers=_write_headers(message), content=message.payload)


def to_asgi(message: Message) -> tuple[dict[str, Any], dict[str, Any]]:
    """The two events that an ASGI application sends for the response."""
    headers = [(name.lower(), value) for name, value in _write_headers(message)]
    start = {"type": "http.response.start", "status": _status(message), "headers": headers}
    return start, {"type": "http.response.body", "body": message.payload or b""}


def _request(method: str, path: bytes, query: bytes, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Message:
    fields: dict[str, Any] = {"method": method, "path": path.decode(_CHARSET)}
    if query:
        fields["query"] = tuple(_read_pair(part) for part in query.decode(_CHARSET).split("&") if part)
    return Message("HTTP", fields | {"headers": _read_headers(headers)}, body or None)


def _read_pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _read_headers(headers: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    return tuple((name.decode(_CHARSET), value.decode(_CHARSET)) for name, value in headers)


def _write_headers(message: Message) -> list[tuple[bytes, bytes]]:
    expect_protocol(message, "HTTP")
    pairs = message.get("headers", ())
    check_headers(pairs, _CHARSET)
    return [(name.encode(), value.encode(_CHARSET)) for name, value in pairs]


def _write_query(message: Message) -> str:
    for index, (name, value) in enumerate(message.get("query", ())):
        if not (_is_query_name(name) and _is_query_value(value)):
            raise refusal(f"/query/{index}", "must be percent-encoded, & everywhere and = in the name too")
    return "&".join(f"{name}={value}" for name, value in message.get("query", ()))


def _status(message: Message) -> int:
    status = message.get("status")
    if not isinstance(status, int):
        raise refusal("/status", "is missing: a response has one")
    return status
