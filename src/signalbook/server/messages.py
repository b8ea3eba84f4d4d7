"""Our own paths for messages: `POST /match`, `POST /validate`, `POST /build`, by the registry's own content.

Rule 1: a request has one message, and gets one answer; or, as JSON lines (`application/x-ndjson`, or what is plainly
that), any number of them, and gets one line each, in their order. A batch of events in one request gets an array.
Rule 2: an answer about a message is data, whatever it says: the status is 200. A wrong request is a `RegistryError`.
Of several lines none makes the request wrong.
Rule 3: nothing is written, so whoever may read may ask.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from signalbook.cloudevents.json_value import is_json_text
from signalbook.errors import Problem, RegistryError, UsageError
from signalbook.messages.build import Built
from signalbook.messages.catalog import Catalog, CatalogError
from signalbook.messages.values import read_values
from signalbook.server import cross_origin
from signalbook.server.http import JSON, Request, Response, refuse_coded
from signalbook.server.problems import not_supported

__all__ = ["MESSAGE_PATHS", "message_paths"]

LINES = ("content-type", "application/x-ndjson")
_LINE_TYPES = ("application/x-ndjson", "application/jsonl", "application/jsonlines")
_LINE = re.compile(rb"\S[^\n]*")
_ALLOW = "OPTIONS, POST"
_MOST_SCOPES = 1000
# What one request may ask for: a few bytes of it can make an answer of hundreds.
MOST_MESSAGES = 100_000
LARGEST_ANSWER = 256 << 20

Asked = Mapping[str, tuple[str, ...]]
Answers = Callable[[Catalog, bytes, Asked], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class _Path:
    """What answers a request with one document, what answers one line of several, and the flags of both."""

    one: Answers
    line: Answers
    flags: frozenset[str]


def message_paths(catalog: Callable[[], Catalog]) -> dict[str, Callable[[Request], Response]]:
    """What answers each of the paths by the catalog as it is at the time of a request."""

    def answering(path: _Path) -> Callable[[Request], Response]:
        return lambda request: _respond(request, catalog, path)

    return {name: answering(path) for name, path in MESSAGE_PATHS.items()}


def _respond(request: Request, catalog: Callable[[], Catalog], path: _Path) -> Response:
    if request.method == "OPTIONS":
        return cross_origin.options(request, _ALLOW)
    if request.method != "POST":
        raise not_supported(request.path, request.method, _ALLOW)
    refuse_coded(request)
    asked = _asked(request, path.flags)
    if not request.body:
        raise RegistryError("missing_body", request.path)
    try:
        if _has_lines(request):
            found = _bounded(request, _of_lines(request, catalog(), path.line, asked))
            return Response(200, [LINES], b"".join(answer + b"\n" for answer in found))
        _bound(request, _count(request.body))
        found = _bounded(request, path.one(catalog(), request.body, asked))
    except CatalogError as error:
        raise _bad(request, str(error)) from None
    # A message, too, may carry a batch.
    several = _is_array(request.body) or len(found) != 1
    return Response(200, [JSON], b"[" + b",".join(found) + b"]" if several else found[0])


def _bad(request: Request, words: str) -> RegistryError:
    return RegistryError("bad_request", request.path, error_detail=words)


# How much one request may ask for ------------------------------------------------------------------------------------


def _of_lines(request: Request, catalog: Catalog, answers: Answers, asked: Asked) -> Iterator[bytes]:
    """The answers to all lines, in their order."""
    found = (line[0].strip() for line in _LINE.finditer(request.body))
    lines = list(itertools.islice(found, MOST_MESSAGES + 1))
    _bound(request, len(lines))
    for line in lines:
        _bound(request, _count(line))
        yield from answers(catalog, line, asked)


def _bounded(request: Request, answers: Iterable[bytes]) -> list[bytes]:
    """All answers, unless they are too many or too large to be sent at once."""
    found: list[bytes] = []
    size = 0
    for answer in answers:
        found.append(answer)
        size += len(answer)
        _bound(request, len(found))
        if size > LARGEST_ANSWER:
            raise RegistryError("too_large", request.path)
    return found


def _bound(request: Request, messages: int) -> None:
    """Refuse a request that holds more messages than are answered at once."""
    if messages > MOST_MESSAGES:
        raise _bad(request, f"more than {MOST_MESSAGES:,} messages; send them in several requests")


def _is_array(text: bytes) -> bool:
    return text.lstrip()[:1] == b"["


def _count(text: bytes) -> int:
    """At least how many messages a text holds: exact where they are more than are answered at once."""
    if not _is_array(text) or text.count(b",") < MOST_MESSAGES:
        return 1
    counter = _Counter()
    try:
        msgspec.json.decode(text, type=list[_Element], dec_hook=counter)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # What is no array is one malformed message. An array with a value that nobody reads may hold any number.
        return MOST_MESSAGES + 1 if _is_split(text) else 1
    except _TooManyError:
        pass
    return counter.seen


def _is_split(text: bytes) -> bool:
    """Whether the parts of a JSON text can be told apart, whatever they are."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


class _Element:
    """An element of an array, whatever it is."""


class _TooManyError(Exception):
    """That the rest of an array need not be read."""


class _Counter:
    """Counts elements as they are read, and keeps none: an array of zeros would take forty times its size."""

    def __init__(self) -> None:
        self.seen = 0
        self._any = _Element()

    def __call__(self, kind: type, value: Any) -> _Element:
        self.seen += 1
        if self.seen > MOST_MESSAGES:
            raise _TooManyError
        return self._any


# What a request says -------------------------------------------------------------------------------------------------


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
        named = tuple(part for part in text.split(",") if part)
        if not named:
            raise _bad(request, f"?{name}= names nothing; give it an xid, or leave it out")
        found[name] = (*found.get(name, ()), *named)
        if len(found[name]) > _MOST_SCOPES:
            raise _bad(request, f"more than {_MOST_SCOPES} times {name}")
    return found


# One row a path ------------------------------------------------------------------------------------------------------


def _match(catalog: Catalog, text: bytes, asked: Asked) -> Iterator[bytes]:
    return (answer.to_bytes() for answer in catalog.match_all(text, asked.get("within", ())))


def _validate(catalog: Catalog, text: bytes, asked: Asked) -> Iterator[bytes]:
    if "definition" not in asked:
        return _match(catalog, text, asked)
    if "within" in asked:
        raise CatalogError("?definition= names all there is to look among; leave ?within= out")
    return (answer.to_bytes() for answer in catalog.validate_all(text, _definition(asked)))


def _build(catalog: Catalog, text: bytes, asked: Asked) -> list[bytes]:
    unless_said = _unless_said(catalog, asked)
    return [_built(catalog, text, unless_said).to_bytes()]


def _build_line(catalog: Catalog, text: bytes, asked: Asked) -> list[bytes]:
    unless_said = _unless_said(catalog, asked)
    try:
        built = _built(catalog, text, unless_said)
    except CatalogError as error:
        built = _unbuilt(error)
    return [built.to_bytes()]


def _built(catalog: Catalog, text: bytes, unless_said: str) -> Built:
    try:
        values = read_values(text)
        xid = str(values.pop("definition", None) or unless_said)
        if not xid:
            raise CatalogError('name one definition, as ?definition=XID or with "definition"')
        return catalog.message(xid).build(**values)
    except UsageError as error:
        return _unbuilt(error)


def _unbuilt(error: Exception) -> Built:
    return Built(problems=(Problem("", "malformed", str(error)),))


def _unless_said(catalog: Catalog, asked: Asked) -> str:
    """The definition that the request names, which has to be there; empty where it names none."""
    return catalog.definition(_definition(asked)).xid if "definition" in asked else ""


def _definition(asked: Asked) -> str:
    named = asked.get("definition", ())
    if len(named) != 1:
        raise CatalogError("name one definition, as ?definition=XID")
    return named[0]


MESSAGE_PATHS: Mapping[str, _Path] = {
    "/match": _Path(_match, _match, frozenset({"within"})),
    "/validate": _Path(_validate, _validate, frozenset({"definition", "within"})),
    "/build": _Path(_build, _build_line, frozenset({"definition"})),
}
