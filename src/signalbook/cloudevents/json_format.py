"""The JSON event format and the JSON batch format, CloudEvents 1.0.2.

Rule 1: `_decode_fast` reads what most writers write, `_decode_general` everything else; both leave the data as the text
it is, and neither says what is wrong.
Rule 2: where both fail, `_findings` reads the document again and lists every problem; so a good event pays nothing for
the words of an error.
Rule 3: `encode` gives back the data's own text; what was read is written unchanged.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
import orjson

from signalbook.cloudevents import attributes
from signalbook.cloudevents.attributes import (
    MAX_ATTRIBUTES,
    CloudEventError,
    accepted_attributes,
    is_common_timestamp,
    is_name,
    is_timestamp,
    is_uri_reference,
    read_media_type,
)
from signalbook.cloudevents.event import CloudEvent, Kind, made
from signalbook.errors import Problem
from signalbook.jsontext import (
    JsonError,
    JsonObject,
    is_json_text,
    least_length,
    read_pairs,
    refuse_repeated,
    repeated,
    split_members,
)

__all__ = ["count_batch", "decode", "decode_batch", "encode", "encode_batch", "iter_batch", "split_batch"]

Document = bytes | bytearray | memoryview | str

_loads = orjson.loads
_read_text = msgspec.json.Decoder(str).decode
_read_raw = msgspec.json.Decoder(msgspec.Raw).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_unpaired = re.compile("[\ud800-\udfff]").search
_JSON = Kind.JSON
_CLOSES = ord("}")
_WHITE = b" \t\r\n"
# What is remembered of attributes stays small.
_LONGEST_FAST = 2000
_MARK = b"\xef\xbb\xbf"


def decode(document: Document) -> CloudEvent:
    """The event that a JSON text holds; raises `CloudEventError` with everything that is wrong with it."""
    if document.__class__ is bytes:
        try:
            event = _decode_fast(document)
            if event is not None:
                return event
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass  # not in the form that the fast path reads
        text: Any = document
    else:
        text = _bytes(document)
    try:
        return _decode_general(text)
    except (ValueError, RecursionError):
        raise CloudEventError(*_findings(text)) from None


def encode(event: CloudEvent) -> bytes:
    """The event as one JSON text in UTF-8; the data stands in it as it came."""
    head = orjson.dumps(event._attributes, default=_base64)
    if event._data is None:
        return head
    kind, content, checked = event._data
    if kind is _JSON and (checked or is_json_text(content)):
        return b'%b,"data":%b}' % (head[:-1], content)
    if kind is Kind.TEXT:
        return b'%b,"data":%b}' % (head[:-1], orjson.dumps(content.decode()))
    # Bytes; also those that a message called JSON and that are not: so they stay what they are.
    return b'%b,"data_base64":"%b"}' % (head[:-1], b64encode(content))


def decode_batch(document: Document) -> list[CloudEvent]:
    """All events of a JSON batch; raises where an element is bad, and its path begins with the index of the element."""
    events: list[CloudEvent] = []
    wrong: list[Problem] = []
    for index, element in enumerate(split_batch(document)):
        try:
            events.append(decode(bytes(element)))
        except CloudEventError as error:
            wrong += error.within(f"/{index}").problems
    if wrong:
        raise CloudEventError(*wrong)
    return events


def iter_batch(document: Document) -> Iterator[CloudEvent | CloudEventError]:
    """The elements of a JSON batch one by one, each the event or what is wrong with it, in their order.

    A text that is not a JSON array raises `CloudEventError` before the first.
    """
    return _each(split_batch(document))


def encode_batch(events: Iterable[CloudEvent]) -> bytes:
    """The events as one JSON batch."""
    return b"[%b]" % b",".join(map(encode, events))


# Reading -------------------------------------------------------------------------------------------------------------


def _decode_fast(document: bytes) -> CloudEvent | None:
    """The event, where the data stands last and the attributes are strings without escapes; else None, or it raises.

    What comes before the data, closed with a brace, is an object; what comes after it is one value. So the text is an
    event, and the attributes can be read by orjson and checked all together.
    """
    head, mark, tail = document.partition(b',"data":')
    if not mark:
        head, mark, tail = document.partition(b', "data": ')
    if mark:
        head += b"}"
    if len(head) > _LONGEST_FAST:
        return None
    given = _loads(head)
    text, get = "".join(given.values()), given.get
    time = get("time")
    if not (
        (len(head) == _least_length(tuple(given)) + len(text) or _is_plain(head, given))
        # The other characters that no string may have are not ASCII, or not JSON unless escaped.
        and text.isascii()
        and "\x7f" not in text
        and get("id")
        and get("type")
        and get("subject", True)
        and _fit(get("specversion"), get("source"), get("datacontenttype"))
        and (time is None or is_common_timestamp(time) or is_timestamp(time))
    ):
        return None
    if not mark:
        return made(given, None)
    content = tail[:-1].strip(_WHITE)
    _read_raw(content)
    if tail[-1] != _CLOSES or not (content.isascii() or content.decode()):
        return None
    return made(given, (_JSON, content, True))


# Events of one kind have the same names, sources and content types, so the answers to these are mostly remembered.


@lru_cache(1024)
def _least_length(names: tuple[str, ...]) -> int:
    """How long an object of empty strings under these names is; 0 where they are not for the fast path.

    A document just so long, and longer by its values, has no white space, no escapes and no name that occurs twice.
    """
    if "dataschema" in names or "data" in names or not all(map(is_name, names)):
        return 0
    return sum(map(len, names)) + 6 * len(names) + 1


@lru_cache(4096)
def _fit(specversion: str, source: str, named: str | None) -> bool:
    """Whether these are valid, and the content type is JSON or none."""
    media = None if named is None else read_media_type(named)
    is_json = named is None or (media is not None and media.is_json)
    return specversion == "1.0" and bool(source) and is_uri_reference(source) and is_json


def _is_plain(head: bytes, given: dict[str, str]) -> bool:
    """The same of a document with white space: it has no more quotes with a colon after them than names."""
    named = _least_length(tuple(given)) and b"\\" not in head
    return bool(named) and head.translate(None, _WHITE).count(b'":') == len(given)


def _decode_general(document: bytes) -> CloudEvent:
    """The event, whatever it looks like; raises ValueError at the first sign that something is wrong."""
    members = split_members(document)
    count, length = len(members), len("".join(members))
    if count > MAX_ATTRIBUTES:
        raise CloudEventError(attributes.too_many(count))
    data = members.pop("data", None)
    coded = members.pop("data_base64", None)
    values = b",".join(members.values())
    content = b"" if data is None else bytes(data)
    length += len(values) - len(members) + 1 + len(content)
    if coded is not None or len(document) != least_length(count, length):
        refuse_repeated(document, [*members.values(), *(raw for raw in (coded, data) if raw is not None)])
    # Control characters are not JSON and the other forbidden ones not ASCII, unless escaped; but for DEL.
    clean = values.isascii() and b"\\" not in values and b"\x7f" not in values
    accepted = accepted_attributes(zip(members, _loads(b"[%b]" % values), strict=True), clean)
    if accepted is None:
        raise ValueError
    return made(accepted, _data_of(accepted.get("datacontenttype"), content, coded))


def _data_of(named: Any, content: bytes, coded: msgspec.Raw | None) -> tuple[Kind, bytes, bool] | None:
    if coded is not None and bytes(coded) != b"null":
        if content:
            raise ValueError
        return Kind.BINARY, _unbase64(_read_text(coded)), True
    if not content:
        return None
    content.decode()
    media = None if named is None else read_media_type(named)
    if media is None or media.is_json:
        return _JSON, content, True
    return Kind.TEXT, _read_text(content).encode(), True


def _unbase64(text: str) -> bytes:
    """The bytes; raises ValueError unless the text is exactly what a writer would have written for them."""
    written = text.encode("ascii")
    content = binascii.a2b_base64(written)
    if binascii.b2a_base64(content, newline=False) != written:
        raise ValueError
    return content


def split_batch(document: Document) -> list[msgspec.Raw]:
    """The texts of a batch's elements; raises `CloudEventError` where it is not a JSON array."""
    text = document if isinstance(document, bytes) else _bytes(document)
    try:
        return _elements(text)
    except msgspec.ValidationError:
        words = "must be a JSON array of events; a single event is read as an event"
        raise CloudEventError(Problem("", "R35", words)) from None
    except (msgspec.DecodeError, RecursionError):
        raise CloudEventError(_syntax(text)) from None


def count_batch(document: bytes, most: int) -> int:
    """How many elements a JSON batch has; more than `most` where it has more, or a value that nobody reads.

    What is not an array counts as one. Nothing is kept: the texts of an array of zeros take forty times its size.
    """
    if document.count(b",") < most:
        return 1
    counter = _Counter(most)
    try:
        msgspec.json.decode(document, type=list[_Element], dec_hook=counter)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return most + 1 if _is_split(document) else 1
    except _TooManyError:
        pass
    return counter.seen


def _is_split(document: bytes) -> bool:
    """Whether a document is an array whose elements can be told apart, whatever they are."""
    try:
        _read_raw(document)
    except (msgspec.DecodeError, RecursionError):
        return False
    return document.lstrip(_WHITE)[:1] == b"["


class _Element:
    """An element of an array, whatever it is."""


class _TooManyError(Exception):
    """That the rest of an array need not be read."""


class _Counter:
    """Counts elements as they are read, and keeps none."""

    def __init__(self, most: int) -> None:
        self.seen = 0
        self._most = most
        self._any = _Element()

    def __call__(self, kind: type, value: Any) -> _Element:
        self.seen += 1
        if self.seen > self._most:
            raise _TooManyError
        return self._any


def _each(elements: list[msgspec.Raw]) -> Iterator[CloudEvent | CloudEventError]:
    for element in elements:
        try:
            yield decode(bytes(element))
        except CloudEventError as error:
            yield error


def _bytes(document: Document) -> bytes:
    if not isinstance(document, str):
        return bytes(document)
    try:
        return document.encode()
    except UnicodeEncodeError:
        raise CloudEventError(Problem("", "R2", "holds an unpaired surrogate")) from None


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


# Finding out what is wrong -------------------------------------------------------------------------------------------


def _findings(document: bytes) -> list[Problem]:
    """Every problem of a document that could not be read."""
    try:
        found = read_pairs(document)
    except JsonError:
        return [_syntax(document)]
    if isinstance(found, JsonObject):
        # Both readers agree on what JSON is, but for how deep it may go.
        return list(_member_problems(found)) or [Problem("", "R1", "is nested too deeply")]
    if isinstance(found, list):
        return [Problem("", "R37", "must be one JSON object; a batch is read as a batch")]
    return [Problem("", "R1", "must be one JSON object")]


def _syntax(document: bytes) -> Problem:
    """Why the document is not JSON."""
    if document.startswith(_MARK):
        return Problem("", "R2", "begins with a byte order mark, which JSON does not have")
    try:
        read_pairs(document)
    except JsonError as error:
        return Problem("", "R2" if str(error).startswith("not UTF-8") else "R1", f"is not an event: {error}")
    return Problem("", "R1", "is nested too deeply, or holds an unpaired surrogate")


def _member_problems(members: JsonObject) -> Iterator[Problem]:
    for name in repeated(members):
        yield Problem(attributes.pointer(name), "R3", f"{attributes.said(name)} occurs more than once")
    given = dict(members)
    data, coded = given.pop("data", Ellipsis), given.pop("data_base64", None)
    yield from attributes.problems(given)
    if coded is not None:
        yield from _coded_problems(data, coded)
    elif data is not Ellipsis:
        yield from _data_problems(data, given.get("datacontenttype"))


def _coded_problems(data: Any, coded: Any) -> Iterator[Problem]:
    if data is not Ellipsis:
        yield Problem("/data_base64", "R24", "data and data_base64 exclude each other")
    try:
        _unbase64(coded)
    except (AttributeError, ValueError):
        words = "data_base64 must be Base64 text (RFC 4648 section 4), padded and without other characters"
        yield Problem("/data_base64", "R25", words)


def _data_problems(data: Any, named: Any) -> Iterator[Problem]:
    media = read_media_type(named) if isinstance(named, str) else None
    if media is not None and not media.is_json and not isinstance(data, str):
        yield Problem("/data", "R28", f"data must be a string, since its content type {media.name} is not JSON")
    below = [data]
    while below:
        node = below.pop()
        if isinstance(node, str):
            if _unpaired(node):
                yield Problem("/data", "R2", "data holds an unpaired surrogate")
                return
        elif isinstance(node, (list, tuple)):
            below += node
