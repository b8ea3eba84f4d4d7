"""Our own paths for messages: `POST /match`, `POST /validate`, `POST /build`, by the registry's own content.

Rule 1: a request has one message, and gets one answer; or, as JSON lines (`application/x-ndjson`, or what is plainly
that), any number of them, and gets one line each, in their order. A batch of events in one request gets an array.
Rule 2: an answer about a message is data, whatever it says: the status is 200. A wrong request is a `RegistryError`.
Rule 3: nothing is written, so whoever may read may ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl

from signalbook.cloudevents.json_value import is_json_text
from signalbook.errors import Problem, RegistryError, UsageError
from signalbook.messages.build import Built
from signalbook.messages.catalog import Catalog, CatalogError
from signalbook.messages.values import read_values
from signalbook.server import cross_origin
from signalbook.server.http import JSON, Request, Response
from signalbook.server.problems import not_supported

__all__ = ["MESSAGE_PATHS", "message_paths"]

LINES = ("content-type", "application/x-ndjson")
_LINE_TYPES = ("application/x-ndjson", "application/jsonl", "application/jsonlines")
_ALLOW = "OPTIONS, POST"
_MOST_SCOPES = 1000
# What one request may ask for: a few bytes of it can make an answer of hundreds.
MOST_MESSAGES = 100_000
LARGEST_ANSWER = 256 << 20

Answers = Callable[[Catalog, bytes, Mapping[str, tuple[str, ...]]], list[bytes]]


def message_paths(catalog: Callable[[], Catalog]) -> dict[str, Callable[[Request], Response]]:
    """What answers each of the paths by the catalog as it is at the time of a request."""

    def path(answers: Answers, flags: frozenset[str]) -> Callable[[Request], Response]:
        return lambda request: _respond(request, catalog, answers, flags)

    return {name: path(answers, flags) for name, (answers, flags) in MESSAGE_PATHS.items()}


def _respond(request: Request, catalog: Callable[[], Catalog], answers: Answers, flags: frozenset[str]) -> Response:
    if request.method == "OPTIONS":
        return cross_origin.options(request, _ALLOW)
    if request.method != "POST":
        raise not_supported(request.path, request.method, _ALLOW)
    asked = _asked(request, flags)
    if not request.body:
        raise RegistryError("missing_body", request.path)
    try:
        if _has_lines(request):
            return Response(200, [LINES], _answered(request, catalog(), answers, asked))
        _bound(request, request.body.count(b"{") if _is_batch(request.body) else 1)
        found = answers(catalog(), request.body, asked)
    except CatalogError as error:
        raise RegistryError("bad_request", request.path, error_detail=str(error)) from None
    return Response(200, [JSON], b"[" + b",".join(found) + b"]" if _is_batch(request.body) else found[0])


def _is_batch(text: bytes) -> bool:
    return text.lstrip()[:1] == b"["


def _answered(request: Request, catalog: Catalog, answers: Answers, asked: Mapping[str, tuple[str, ...]]) -> bytes:
    """The answers to all lines, one a line."""
    _bound(request, request.body.count(b"\n") + 1)
    written = bytearray()
    for line in _lines(request.body):
        if _is_batch(line):
            _bound(request, line.count(b"{"))
        for answer in answers(catalog, line, asked):
            written += answer + b"\n"
        if len(written) > LARGEST_ANSWER:
            raise RegistryError("too_large", request.path)
    return bytes(written)


def _lines(body: bytes) -> Iterator[bytes]:
    return (line.strip() for line in body.split(b"\n") if line.strip())


def _bound(request: Request, messages: int) -> None:
    """Refuse a request that holds, or may hold, more messages than are answered at once."""
    if messages > MOST_MESSAGES:
        words = f"more than {MOST_MESSAGES:,} messages; send them in several requests"
        raise RegistryError("bad_request", request.path, error_detail=words)


def _has_lines(request: Request) -> bool:
    """Whether a request is one of JSON lines: its type says so, or its first line is a document and others follow."""
    media_type = (request.headers.get("content-type") or "").partition(";")[0].strip().lower()
    if media_type in _LINE_TYPES:
        return True
    first, _, rest = request.body.strip().partition(b"\n")
    return bool(rest) and is_json_text(first.strip())


def _asked(request: Request, flags: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """The flags of a request, each with its values; `within=A,B` is `within=A&within=B`."""
    found: dict[str, tuple[str, ...]] = {}
    for name, text in parse_qsl(request.query, keep_blank_values=True):
        if name not in flags:
            raise RegistryError("bad_flag", request.path, flag=name)
        found[name] = (*found.get(name, ()), *(part for part in text.split(",") if part))
        if len(found[name]) > _MOST_SCOPES:
            raise RegistryError("bad_request", request.path, error_detail=f"more than {_MOST_SCOPES} times {name}")
    return found


# One row a path ------------------------------------------------------------------------------------------------------


def _match(catalog: Catalog, text: bytes, asked: Mapping[str, tuple[str, ...]]) -> list[bytes]:
    return [answer.to_bytes() for answer in catalog.match_all(text, asked.get("within", ()))]


def _validate(catalog: Catalog, text: bytes, asked: Mapping[str, tuple[str, ...]]) -> list[bytes]:
    if "definition" not in asked:
        return _match(catalog, text, asked)
    return [answer.to_bytes() for answer in catalog.validate_all(text, _definition(asked))]


def _build(catalog: Catalog, text: bytes, asked: Mapping[str, tuple[str, ...]]) -> list[bytes]:
    try:
        values = read_values(text)
        xid = values.pop("definition", None) or _definition(asked)
        return [catalog.message(str(xid)).build(**values).to_bytes()]
    except UsageError as error:
        return [Built(problems=(Problem("", "malformed", str(error)),)).to_bytes()]


def _definition(asked: Mapping[str, tuple[str, ...]]) -> str:
    named: Any = asked.get("definition", ())
    if len(named) != 1:
        raise CatalogError("name one definition, as ?definition=XID")
    return str(named[0])


MESSAGE_PATHS: Mapping[str, tuple[Answers, frozenset[str]]] = {
    "/match": (_match, frozenset({"within"})),
    "/validate": (_validate, frozenset({"definition", "within"})),
    "/build": (_build, frozenset({"definition"})),
}
