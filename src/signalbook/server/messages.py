"""Our own paths for messages: `POST /match`, `POST /validate`, `POST /build`, by the registry's own content.

Rule 1: a request has one message, and gets one answer; or, as JSON lines (`application/x-ndjson`, or what is plainly
that), any number of them, and gets one line each, in their order. A batch of events in one request gets an array.
An event may also be the request itself, in binary mode of HTTP: `ce-` headers, and the data as its body. What is said
to be one event and is a batch, or the reverse, is refused.
Rule 2: an answer about a message is data, whatever it says: the status is 200. A wrong request is a `RegistryError`.
Of several lines none makes the request wrong.
Rule 3: nothing is written, so whoever may read may ask.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from signalbook.budget import Budget, TooMuch, of_bytes, spend
from signalbook.cloudevents import CloudEvent, CloudEventError
from signalbook.cloudevents.json_format import count_batch
from signalbook.errors import Problem, RegistryError, UsageError
from signalbook.jsontext import is_json_text
from signalbook.messages.answer import Answer
from signalbook.messages.build import read_values
from signalbook.messages.carry import Built
from signalbook.messages.catalog import Catalog, CatalogError
from signalbook.messages.observe import A_MESSAGE, Given
from signalbook.protocols import Message, claims_event, from_message
from signalbook.server import http
from signalbook.server.answers import PIECE
from signalbook.server.catalog import AskedCatalog
from signalbook.server.http import JSON, SEQUENCE, Request, Response, refuse_coded
from signalbook.server.problems import not_supported

__all__ = ["MESSAGE_PATHS", "Judgements", "message_paths"]

LINES = ("content-type", "application/x-ndjson")
_LINE_TYPES = ("application/x-ndjson", "application/jsonl", "application/jsonlines")
_LINE = re.compile(rb"\S[^\n]*")
_ALLOW = "OPTIONS, POST"
_MOST_SCOPES = 1000
# What one request may ask for: a few bytes of it can make an answer of hundreds.
MOST_MESSAGES = 100_000
LARGEST_ANSWER = 256 << 20
# What the payloads of a request may become together once their content encodings are undone.
LARGEST_UNDONE = 256 << 20

Asked = Mapping[str, tuple[str, ...]]
AskCatalog = Callable[[str, str, int, str], AskedCatalog]
"""The catalog for the address by which a request came, the host it named, a change it demands, and its path."""

Answers = Callable[[Catalog, bytes, Asked, Budget], Iterable[Answer | Built]]
AnswersAboutEvent = Callable[[Catalog, Given, Asked, Budget], Iterable[Answer]]
_EVENT, _BATCH = "application/cloudevents", "application/cloudevents-batch"
_SENT_AS = {"one event": f"{_EVENT}+json", "a batch": f"{_BATCH}+json", "several lines": LINES[1]}


@dataclass(frozen=True, slots=True)
class _Path:
    """What answers a request with one document, what answers one line of several, and the flags of both.

    `event` answers a request that is itself an event in binary mode.
    """

    one: Answers
    line: Answers
    flags: frozenset[str]
    event: AnswersAboutEvent | None = None


class Judgements:
    """Receives the outcome of each message, for the metrics."""

    def __init__(self) -> None:
        self.tell: Callable[[str], object] = lambda outcome: None


def message_paths(
    catalog: AskCatalog, judgements: Judgements | None = None
) -> dict[str, Callable[[Request], Response]]:
    """What answers each of the paths by the catalog as it is at the time of a request, given the address it came by."""
    told = judgements or Judgements()

    def answering(path: _Path) -> Callable[[Request], Response]:
        return lambda request: _respond(request, catalog, path, told)

    return {name: answering(path) for name, path in MESSAGE_PATHS.items()}


def _respond(request: Request, catalog: AskCatalog, path: _Path, told: Judgements) -> Response:
    if request.method == "OPTIONS":
        return http.options(request, _ALLOW)
    if request.method != "POST":
        raise not_supported(request.path, request.method, _ALLOW)
    refuse_coded(request)
    asked = _asked(request, path.flags)
    undone = Budget(LARGEST_UNDONE)
    stands_at: list[tuple[str, str]] = []

    def reached() -> Catalog:
        since = _since(request, asked)
        found = catalog(request.base, request.headers.get("host") or "", since, request.path)
        stands_at.append((SEQUENCE, str(found.sequence)))
        return found.catalog

    try:
        event = _binary_event(request) if path.event is not None else None
        if event is not None and path.event is not None:
            found = _bounded(request, path.event(reached(), event, asked, undone), told)
            return _response(request, [JSON, *stands_at], found)
        if not request.body:
            raise RegistryError("missing_body", request.path)
        if path.event is not None:
            _refuse_misnamed(request)
        if _has_lines(request):
            found = _bounded(request, _of_lines(request, reached(), path.line, asked, undone), told)
            return _response(request, [LINES, *stands_at], (part for answer in found for part in (answer, b"\n")))
        _bound(request, _count(request.body))
        found = _bounded(request, path.one(reached(), request.body, asked, undone), told)
        return _response(request, [JSON, *stands_at], _as_json(found, is_array=_is_array(request.body)))
    except CatalogError as error:
        raise _bad(request, str(error)) from None
    except TooMuch as error:
        if error.budget is not undone:
            raise
        words = f"the payloads become larger than {LARGEST_UNDONE:,} bytes together once they are decompressed"
        raise _bad(request, f"{words}; send them in several requests") from None


def _as_json(found: Iterator[bytes], *, is_array: bool) -> Iterator[bytes]:
    """The answers as one JSON text: an array of them where they are asked for as such, or are not exactly one."""
    first = list(itertools.islice(found, 2))
    # A message, too, may carry a batch.
    if not is_array and len(first) == 1:
        yield first[0]
        return
    before = b"["
    for answer in itertools.chain(first, found):
        yield before
        yield answer
        before = b","
    yield b"[]" if not first else b"]"


def _response(request: Request, headers: list[tuple[str, str]], parts: Iterable[bytes]) -> Response:
    """The response with these parts as its body, which is in a spool where it is large."""
    pieces = _pieces(parts)
    if request.answers is None:
        return Response(200, headers, b"".join(pieces))
    return Response(200, headers, *request.answers.collect(pieces, request.path))


def _pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same content in pieces of which each is worth a write.

    The parts are copied: what orjson writes keeps a buffer that is many times larger than a short answer.
    """
    waiting = bytearray()
    for part in parts:
        waiting += part
        if len(waiting) >= PIECE:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)


def _bad(request: Request, words: str) -> RegistryError:
    return RegistryError("bad_request", request.path, error_detail=words)


# How much one request may ask for ------------------------------------------------------------------------------------


def _of_lines(
    request: Request, catalog: Catalog, answers: Answers, asked: Asked, budget: Budget
) -> Iterator[Answer | Built]:
    """The answers to all lines, in their order."""
    found = (line[0].strip() for line in _LINE.finditer(request.body))
    lines = list(itertools.islice(found, MOST_MESSAGES + 1))
    _bound(request, len(lines))
    for line in lines:
        _bound(request, _count(line))
        yield from answers(catalog, line, asked, budget)


def _bounded(request: Request, answers: Iterable[Answer | Built], told: Judgements) -> Iterator[bytes]:
    """All answers, each written when it is asked for, unless they are too many or too large to be sent at once."""
    size = 0
    for count, answer in enumerate(answers, 1):
        if isinstance(answer, Answer):
            told.tell(answer.outcome)
        written = answer.to_bytes()
        spend(of_bytes(len(written)))
        size += len(written)
        _bound(request, count)
        if size > LARGEST_ANSWER:
            raise RegistryError("too_large", request.path)
        yield written


def _bound(request: Request, messages: int) -> None:
    """Refuse a request that holds more messages than are answered at once."""
    if messages > MOST_MESSAGES:
        raise _bad(request, f"more than {MOST_MESSAGES:,} messages; send them in several requests")


def _is_array(text: bytes) -> bool:
    return text.lstrip()[:1] == b"["


def _count(text: bytes) -> int:
    """At least how many messages a text holds: exact where they are more than are answered at once."""
    return count_batch(text, MOST_MESSAGES) if _is_array(text) else 1


# What a request says -------------------------------------------------------------------------------------------------


def _media_type(request: Request) -> str:
    return (request.headers.get("content-type") or "").partition(";")[0].strip().lower()


def _has_lines(request: Request) -> bool:
    """Whether a request is one of JSON lines: its type says so, or its first line is a document and others follow."""
    if _media_type(request) in _LINE_TYPES:
        return True
    first, _, rest = request.body.strip().partition(b"\n")
    return bool(rest) and is_json_text(first.strip())


def _binary_event(request: Request) -> CloudEvent | Message | None:
    """The event that a request is, in binary mode; as the message that it is where it is not a valid one.

    It is a bare event to the definitions: that it was sent to this path says nothing about it.
    """
    if not any(name.lower().startswith("ce-") for name, _ in request.headers.items()) or _media_type(
        request
    ).startswith(_EVENT):
        return None
    message = Message("HTTP", {"method": "POST", "headers": tuple(request.headers.items())}, request.body or None)
    if not claims_event(message):
        return None
    try:
        return from_message(message)
    except CloudEventError:
        return message


def _refuse_misnamed(request: Request) -> None:
    """Refuse a batch, or several lines, that are said to be one event, and what is said to be a batch and is not."""
    media_type = _media_type(request)
    if not media_type.startswith(_EVENT):
        return
    is_batch = media_type == _BATCH or media_type.startswith(f"{_BATCH}+")
    held = "several lines" if _has_lines(request) else "a batch" if _is_array(request.body) else "one event"
    if held != ("a batch" if is_batch else "one event"):
        words = f'the content type is "{media_type}", but the body is {held}; send it as {_SENT_AS[held]}'
        raise _bad(request, words)


def _asked(request: Request, flags: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """The flags of a request, each with its values; `within=A,B` is `within=A&within=B`."""
    found: dict[str, tuple[str, ...]] = {}
    for name, text in parse_qsl(request.query, keep_blank_values=True):
        if name not in flags:
            raise RegistryError("bad_flag", request.path, flag=name)
        named = tuple(part for part in text.split(",") if part)
        if not named:
            raise _bad(request, f"?{name}= is empty; give it a value, or leave it out")
        found[name] = (*found.get(name, ()), *named)
        if len(found[name]) > _MOST_SCOPES:
            raise _bad(request, f"more than {_MOST_SCOPES} times {name}")
    return found


def _since(request: Request, asked: Asked) -> int:
    """The number of the change that the catalog has to stand at; 0 where none is demanded."""
    stated = asked.get("since", ("0",))
    if len(stated) != 1 or not (stated[0].isascii() and stated[0].isdigit() and len(stated[0]) <= 18):
        raise _bad(request, f"?since= is one number, which the header {SEQUENCE} of an answer has")
    return int(stated[0])


# One row a path ------------------------------------------------------------------------------------------------------


def _match(catalog: Catalog, text: Given, asked: Asked, budget: Budget) -> Iterable[Answer]:
    return catalog.match_each(text, asked.get("within", ()), budget)


def _validate(catalog: Catalog, text: Given, asked: Asked, budget: Budget) -> Iterable[Answer]:
    if "definition" not in asked:
        return _match(catalog, text, asked, budget)
    if "within" in asked:
        raise CatalogError("?definition= already names the only definition; leave ?within= out")
    return catalog.validate_each(text, _definition(asked), budget)


def _build(catalog: Catalog, text: bytes, asked: Asked, budget: Budget) -> list[Built]:
    unless_said = _unless_said(catalog, asked)
    return [_built(catalog, text, unless_said)]


def _build_line(catalog: Catalog, text: bytes, asked: Asked, budget: Budget) -> list[Built]:
    unless_said = _unless_said(catalog, asked)
    try:
        built = _built(catalog, text, unless_said)
    except CatalogError as error:
        built = _unbuilt(error)
    return [built]


def _built(catalog: Catalog, text: bytes, unless_said: str) -> Built:
    try:
        spend(A_MESSAGE)
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
    "/match": _Path(_match, _match, frozenset({"since", "within"}), _match),
    "/validate": _Path(_validate, _validate, frozenset({"definition", "since", "within"}), _validate),
    "/build": _Path(_build, _build_line, frozenset({"definition", "since"})),
}
