"""HTTP: httpx requests and responses, and the two ends of an ASGI application.

Rule 1: `path` and `query` on paper are as they went over the wire, percent-encoding and all.
Rule 2: header values are the bytes of the wire, one character each (ISO 8859-1, RFC 9110 section 5.5), in their order.
Rule 3: HTTP does not tell a body of zero bytes from none: it is None on paper.
Rule 4: what speaks of the connection that a message came over, or of its framing there, is not sent over another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from signalbook.clients import MissingLibrary, checked_to_send, required_field, wire_error
from signalbook.errors import UsageError
from signalbook.protocols import Message
from signalbook.protocols.http import connection_headers

try:
    import httpx
except ImportError as error:
    raise MissingLibrary("httpx", "http") from error

__all__ = ["asgi_to_paper", "request_to_paper", "response_to_paper", "to_asgi", "to_request", "to_response"]

_CHARSET = "latin-1"
# What httpx says of a body that it has decoded already would be untrue on paper.
_CODING = frozenset((b"content-encoding", b"content-length"))
_PATH_MARKS = "/:@!$&'()*+,;="
# What an event is made of; no connection may claim it for itself.
_OF_EVENTS = ("ce-", "content-type")
# RFC 9110, sections 6.4.1 and 15.3.6: these have no content.
_BODILESS = frozenset((204, 205, 304))


def request_to_paper(request: httpx.Request) -> Message:
    """The message of a request whose body was read (`request.read()`)."""
    path, _, query = request.url.raw_path.partition(b"?")
    return _request(request.method, path, query, request.headers.raw, request.content)


def asgi_to_paper(scope: Mapping[str, Any], body: bytes) -> Message:
    """The message of a request that an ASGI application was called with: its scope, and the body put together."""
    if scope.get("type") != "http":
        raise wire_error("", f"an ASGI scope of the type {scope.get('type')} is not an HTTP request")
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
    """The request for `client.send`: its path and query below a server's address, POST unless it says another method.

    Headers of the connection that it came over, its length and its host are left out: the client writes its own.
    """
    message = checked_to_send(message, "HTTP")
    method = message.get("method", "POST")
    url = _below(base_url, required_field(message, "path"), message.get("query", ()))
    request = httpx.Request(method, url, headers=_write_headers(message), content=message.payload)
    if request.method != method:
        raise wire_error("/method", f"would be sent as {request.method}")
    return request


def to_response(message: Message) -> httpx.Response:
    """The response as httpx has it, for a mock transport."""
    message = _response(message)
    return httpx.Response(message.get("status"), headers=_write_headers(message), content=message.payload)


def to_asgi(message: Message) -> tuple[dict[str, Any], dict[str, Any]]:
    """The two events that an ASGI application sends for the response."""
    message = _response(message)
    headers = [(name.lower(), value) for name, value in _write_headers(message)]
    start = {"type": "http.response.start", "status": message.get("status"), "headers": headers}
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
    pairs = message.get("headers", ())
    left = connection_headers(pairs)
    for index, (name, _) in enumerate(pairs):
        if name.lower() in left and name.lower().startswith(_OF_EVENTS):
            raise wire_error(f"/headers/{index}", "is claimed for the connection by another header, and would be lost")
    return [(name.encode(), value.encode(_CHARSET)) for name, value in pairs if name.lower() not in left]


def _below(base_url: str, path: str, query: Iterable[tuple[str, str]]) -> httpx.URL:
    """The address of a path below a server's, which may have a path itself."""
    try:
        base = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise UsageError(f"{base_url!r} is not an address: {error}") from None
    if base.scheme not in ("http", "https") or not base.host or base.query or base.fragment:
        raise UsageError(f"{base_url!r} is not a server address; write one such as https://example.com/base")
    whole = base.raw_path.rstrip(b"/") + path.encode()
    asked = "&".join(f"{name}={value}" for name, value in query)
    target = whole + b"?" + asked.encode() if asked else whole
    url = base.copy_with(raw_path=target)
    if url.raw_path != target:
        raise wire_error("/path", f"would be sent as {url.raw_path.decode(_CHARSET)[:80]!r}")
    return url


def _response(message: Message) -> Message:
    message = checked_to_send(message, "HTTP")
    status = message.get("status")
    if status is None or status < 200:
        raise wire_error("/status", "is missing: a response has one, from 200")
    if status in _BODILESS and message.payload:
        raise wire_error("/payload", f"is not sent with the status {status}")
    return message
