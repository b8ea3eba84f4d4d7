"""`Observed`: one message as definitions see it: its protocol, its event where it is one, its payload.

Rule 1: a message is an event, bare or carried by a protocol, or it is native. Which it is the message says itself: by
content type, by its metadata, or as a JSON object with `specversion` where the binding has no content type.
Rule 2: what claims to be an event and is not, and what is not a message at all, is `Unreadable`; nothing that is given
raises.
Rule 3: a batch is a JSON array, or any other iterable of messages. A text that begins like an array and is not one is
one message that cannot be read.
"""

from __future__ import annotations

import enum
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, ClassVar

import brotli
import msgspec
import orjson
import zstandard

from signalbook.budget import BYTES, Budget, spend
from signalbook.cloudevents import CloudEvent, CloudEventError, decode
from signalbook.cloudevents.json_format import count_batch, split_batch
from signalbook.errors import Problem
from signalbook.jsontext import encode_json
from signalbook.protocols import (
    BINDINGS,
    PROTOCOLS,
    JsonError,
    Message,
    Mode,
    WireError,
    claims_event,
    from_message,
    mode_of,
    read_members,
)
from signalbook.protocols.values import ValueForm

__all__ = [
    "LARGEST",
    "MOST_EVENTS",
    "CannotUndo",
    "Given",
    "GivenAll",
    "MessageKind",
    "Observed",
    "UnknownEncoding",
    "Unreadable",
    "content_encodings",
    "each",
    "holds_batch",
    "is_batch",
    "is_label",
    "observe",
    "undo",
]

# Undoing the content encodings of a payload, within a bound.
#
# Rule 1: what cannot be undone, or would become larger than the bound, is a problem in words; nothing else is raised.
# Rule 2: `identity` and the names of character sets, which some senders write here, are labels: there is nothing to
# undo. An encoding that is neither known nor a label is `UnknownEncoding`, and the payload stays as it came.


LARGEST = 64 * 1024 * 1024
# The events of a batch that a message carries; a few bytes that are compressed can hold millions.
MOST_EVENTS = 100_000
# The steps that a message takes, besides those for its length: to read it, and to ask a few definitions.
A_MESSAGE = 10
_MOST_ENCODINGS = 4
_CHUNK = 64 * 1024
_FIRST_STEP = 256


class CannotUndo(Exception):
    """Why a payload stays encoded, in words."""


class UnknownEncoding(CannotUndo):
    """That nobody knows a content encoding."""


def is_label(name: str) -> bool:
    """Whether the name of a content encoding says nothing that would have to be undone.

    >>> [name for name in ("", "identity", "utf-8", "ISO-8859-1", "gzip", "hex", "aes") if is_label(name)]
    ['', 'identity', 'utf-8', 'ISO-8859-1']
    """
    name = name.strip().lower()
    if name in ("", "identity"):
        return True
    try:
        "".encode(name)  # which takes the encodings of texts, and no others
    except (LookupError, ValueError):
        return False
    return True


def undo(encodings: str, payload: bytes, budget: Budget | None = None) -> bytes:
    """The payload before it was encoded; `encodings` is the list of a header, the last applied last.

    `budget` is how many bytes the payloads of several messages may become together.
    """
    names = [name.strip().lower() for name in encodings.split(",")]
    if len(names) > _MOST_ENCODINGS:
        raise CannotUndo(f"{len(names)} content encodings are more than are undone")
    for name in reversed(names):
        undo_one = _ENCODINGS.get(name)
        if undo_one is not None:
            payload = undo_one(payload) if budget is None else _spending(undo_one, payload, budget)
        elif not is_label(name):
            raise UnknownEncoding(f'the content encoding "{name[:40]}" is not known')
    return payload


def _spending(undo_one: Callable[[bytes], bytes], payload: bytes, budget: Budget) -> bytes:
    try:
        found = undo_one(payload)
    except CannotUndo:
        budget.spend(LARGEST)  # which it may have become before it failed
        raise
    budget.spend(len(found))
    return found


def _inflate(window: int) -> Callable[[bytes], bytes]:
    def undo_one(payload: bytes) -> bytes:
        parts: list[bytes] = []
        size = 0
        at = 0
        # A gzip file may have several members one after another. What a reader leaves over is copied, so each gets a
        # little at first: of many small members, each would copy all that follow.
        while at < len(payload):
            reader, step = zlib.decompressobj(window), _FIRST_STEP
            while not reader.eof:
                given = payload[at : at + step]
                if not given:
                    raise CannotUndo("the payload is not what its content encoding says: it ends too early")
                try:
                    parts.append(reader.decompress(given, LARGEST - size + 1))
                except zlib.error as error:
                    raise CannotUndo(f"the payload is not what its content encoding says: {error}") from None
                size += len(parts[-1])
                _bound(size)
                at += len(given) - len(reader.unused_data)
                step *= 2
        return b"".join(parts)

    return undo_one


def _deflate(payload: bytes) -> bytes:
    """RFC 9110 section 8.4.1.2 means zlib's format; some senders leave its header out."""
    has_header = len(payload) > 1 and payload[0] & 15 == 8 and int.from_bytes(payload[:2], "big") % 31 == 0
    return _inflate(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)(payload)


def _zstd(payload: bytes) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        # RFC 9659: a window of 8 MiB is what every reader has.
        with zstandard.ZstdDecompressor(max_window_size=2**23).stream_reader(
            payload, read_across_frames=True
        ) as reader:
            while part := reader.read(_CHUNK):
                parts.append(part)
                size += len(part)
                _bound(size)
    except zstandard.ZstdError as error:
        raise CannotUndo(f"the payload is not what its content encoding says: {error}") from None
    return b"".join(parts)


def _brotli(payload: bytes) -> bytes:
    reader = brotli.Decompressor()
    parts: list[bytes] = []
    size = 0
    try:
        while not reader.is_finished():
            parts.append(reader.process(payload, output_buffer_limit=_CHUNK))
            payload = b""
            size += len(parts[-1])
            _bound(size)
            if not parts[-1] and reader.can_accept_more_data():
                raise CannotUndo("the payload is not what its content encoding says: it ends too early")
    except brotli.error as error:
        raise CannotUndo(f"the payload is not what its content encoding says: {error}") from None
    return b"".join(parts)


def _bound(size: int) -> None:
    if size > LARGEST:
        raise CannotUndo(f"the payload becomes larger than {LARGEST:,} bytes")


_gzip = _inflate(zlib.MAX_WBITS | 16)
_ENCODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
    "br": _brotli,
}


Given = Message | CloudEvent | bytes | str | Mapping[str, Any]
GivenAll = Given | Iterable[Given]
# What is one message, or one document; any other iterable is several.
_ONE = (Message, CloudEvent, bytes, str, Mapping, bytearray, memoryview)
_JSON = (str, int, float, Decimal, type(None))
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


class MessageKind(enum.Enum):
    """How a message is tested: on its envelope alone, on envelope and protocol, or on its protocol."""

    BARE = "bare"
    EVENT = "event"
    NATIVE = "native"


_NOTHING: dict[str, Any] = {}


class Observed:
    """One message; `attributes` are those of its event, in the form in which they were carried.

    A payload that is not what its content encoding says is `unreadable_payload`, in words; one whose encoding nobody
    knows stays as it came, and `unknown_encoding` has the words.
    """

    __slots__ = (
        "attributes", "event", "form", "kind", "message", "mode", "protocol", "unknown_encoding", "unreadable_payload",
    )  # fmt: skip
    # One tuple, so that what another thread reads at the same time is of one message.
    _last_batch: ClassVar[tuple[Message | None, str | None]] = (None, None)

    def __init__(
        self,
        message: Message | None,
        event: CloudEvent | None,
        mode: Mode | None = None,
        unreadable_payload: str | None = None,
        unknown_encoding: str | None = None,
    ) -> None:
        self.message = message
        self.event = event
        self.mode = mode
        self.attributes: dict[str, Any] = _NOTHING if event is None else event._attributes
        self.unreadable_payload = unreadable_payload
        self.unknown_encoding = unknown_encoding
        self.form = ValueForm.JSON
        if message is None:
            self.kind, self.protocol = MessageKind.BARE, None
        else:
            self.kind, self.protocol = MessageKind.NATIVE if event is None else MessageKind.EVENT, message.protocol
            if mode is Mode.BINARY:
                self.form = BINDINGS[message.protocol].form

    def payload(self) -> bytes | None:
        """The bytes that a payload schema judges; None where the message has no payload."""
        if self.event is not None:
            try:
                return self.event.payload() or None
            except CloudEventError:
                # A charset that nobody knows; what came is judged as it is.
                data = self.event.data
                return None if data is None else data.content
        assert self.message is not None
        return PROTOCOLS[self.message.protocol].data(self.message.fields, self.message.payload)

    def is_json(self) -> bool:
        """Whether the payload is known to be JSON already."""
        data = None if self.event is None else self.event._data
        return data is not None and data[0] == "json" and data[2]

    def data_content_type(self) -> str | None:
        """The content type of the payload."""
        return self.transport_content_type() if self.event is None else self.event.content_type

    def transport_content_type(self) -> str | None:
        """The content type that stands at the message itself."""
        message = self.message
        if message is None:
            return None
        if self.mode is not Mode.BATCH:
            return _stated_content_type(message)
        # All events of a batch have the same, in headers that may be as many as they are.
        last, stated = Observed._last_batch
        if last is not message:
            stated = _stated_content_type(message)
            Observed._last_batch = (message, stated)
        return stated


def _stated_content_type(message: Message) -> str | None:
    found = BINDINGS[message.protocol].content_types(message.fields)
    return next((text for text in found if isinstance(text, str)), None)


class Unreadable:
    """What cannot be read, and why; `hint` is a message with as much of its `type` as could be read.

    To find and say what is wrong takes as long again as to read a message, and longer where much is wrong.
    """

    __slots__ = ("hint", "problems")

    def __init__(self, problems: tuple[Problem, ...], hint: Observed | None = None) -> None:
        spend(A_MESSAGE + len(problems))
        self.problems = problems
        self.hint = hint


def each(given: GivenAll) -> Iterator[Given]:
    """The messages that were given: one, or all that an iterable has."""
    if isinstance(given, _ONE) or not isinstance(given, Iterable):
        yield given  # type: ignore[misc]  # whatever it is: what is not a message is unreadable
    else:
        yield from given


def observe(given: Given, budget: Budget | None = None) -> Iterator[Observed | Unreadable]:
    """What was given: one message, or the events of a batch in their order; `budget` is for content encodings."""
    if isinstance(given, CloudEvent):
        spend(A_MESSAGE)
        yield Observed(None, given)
    elif isinstance(given, Message):
        if given.protocol in BINDINGS:
            yield from _observe_message(given, budget)
        else:
            words = f"the message came over {given.protocol}, which is not known"
            yield Unreadable((Problem("/protocol", "malformed", words),))
    else:
        yield from _observe_paper(given, budget)


def is_batch(given: GivenAll) -> bool:
    """Whether what was given is to hold any number of events."""
    if isinstance(given, Message):
        binding = BINDINGS.get(given.protocol)
        return binding is not None and Mode.BATCH in binding.modes and mode_of(given) is Mode.BATCH
    if isinstance(given, bytes | str):
        return given[:1] in (b"[", "[") or given.lstrip()[:1] in (b"[", "[")
    if isinstance(given, bytearray | memoryview):
        return is_batch(bytes(given))
    return not isinstance(given, _ONE) and isinstance(given, Iterable)


def holds_batch(given: GivenAll) -> bool:
    """Whether what was given is a batch indeed: an iterable, or a JSON array that is empty or has an object."""
    if not is_batch(given):
        return False
    document: Any = given
    if not isinstance(given, _ONE):
        return True
    if isinstance(given, Message):
        document = _decoded(given)[0].payload or b""
    try:
        elements = _elements(document)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return not elements or any(bytes(one)[:1] == b"{" for one in elements)


def _observe_paper(given: Any, budget: Budget | None) -> Iterator[Observed | Unreadable]:
    if not isinstance(given, _ONE):
        words = "is not a message; pass a mapping, a text, bytes, a CloudEvent or a Message"
        yield Unreadable((Problem("", "malformed", f"{words}, not {type(given).__name__}"),))
        return
    try:
        text = _written(given)
        spend(A_MESSAGE + len(text) // BYTES)
    except (TypeError, ValueError, RecursionError) as error:
        yield Unreadable((Problem("", "malformed", f"is not JSON: {error}"),))
        return
    if is_batch(text):
        yield from _observe_batch(text)
        return
    try:
        members = read_members(text)
    except JsonError as error:
        words = f"is neither a message written as JSON nor a CloudEvent: {error}"
        yield Unreadable((Problem("", "malformed", words),))
        return
    if "protocol" in members:
        yield from _observe_written(text, budget)
    elif "specversion" in members:
        yield _observe_event(text)
    else:
        words = "is neither a message written as JSON, which has a protocol, nor a CloudEvent, which has a specversion"
        yield Unreadable((Problem("", "malformed", words),), _bare_hint(text))


def _written(given: Any) -> bytes:
    """A document or a mapping as the text of one message; raises where it has none."""
    if isinstance(given, str):
        return given.encode()
    if not isinstance(given, Mapping):
        return bytes(given)
    value = dict(given)
    try:
        text = orjson.dumps(value)
    except TypeError:
        # It has numbers that only a writer of exact numbers takes, or is not JSON; that writer says which.
        text = encode_json(value).encode()
        _check_json_value(value, _JSON)
    # orjson writes NaN and infinity as null.
    if b"null" in text:
        _check_json_value(value)
    return text


def _check_json_value(value: Any, scalars: tuple[type, ...] = (object,)) -> None:
    """Raise where a value has numbers or names that JSON has not, or other scalars, though a writer takes them."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            for name in one:
                if not isinstance(name, str):
                    raise TypeError(f"{name!r} is not a member name; names must be strings")
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one
        elif isinstance(one, float) and not math.isfinite(one):
            raise ValueError(f"{one} is not a JSON number")
        elif not isinstance(one, scalars):
            raise TypeError(f"a {type(one).__name__} is not a JSON value")


def _observe_written(text: bytes, budget: Budget | None) -> Iterator[Observed | Unreadable]:
    try:
        message = Message.from_json(text)
    except WireError as error:
        # What is at a place says what it must be; the whole needs a name.
        named = [one.message if one.path else f"the message {one.message}" for one in error.problems]
        yield Unreadable(
            tuple(Problem(one.path, "malformed", words) for one, words in zip(error.problems, named, strict=True))
        )
        return
    yield from _observe_message(message, budget)


def _observe_event(text: bytes) -> Observed | Unreadable:
    try:
        return Observed(None, decode(text))
    except CloudEventError as error:
        return Unreadable(_malformed(error), _bare_hint(text))


def _observe_batch(text: bytes, message: Message | None = None) -> Iterator[Observed | Unreadable]:
    """The events of a batch in their order, bare or carried by a message."""
    mode = None if message is None else Mode.BATCH
    if message is not None and count_batch(text, MOST_EVENTS) > MOST_EVENTS:
        words = f"the message carries a batch of more than {MOST_EVENTS:,} events; send them in several messages"
        yield Unreadable((Problem("", "malformed", words),))
        return
    try:
        elements = split_batch(text)
    except CloudEventError as error:
        yield Unreadable(_malformed(error))
        return
    for element in elements:
        one = bytes(element)
        spend(A_MESSAGE + len(one) // BYTES)
        try:
            event = decode(one)
        except CloudEventError as error:
            yield Unreadable(_malformed(error), _bare_hint(one, message))
        else:
            yield Observed(message, event, mode)


def _observe_message(message: Message, budget: Budget | None) -> Iterator[Observed | Unreadable]:
    message, unreadable, unknown = _decoded(message, budget)
    spend(A_MESSAGE + len(message.payload or b"") // BYTES)
    if not claims_event(message):
        yield Observed(message, None, None, unreadable, unknown)
        return
    mode = mode_of(message)
    if mode is Mode.BATCH and Mode.BATCH in BINDINGS[message.protocol].modes:
        yield from _observe_batch(message.payload or b"", message)
        return
    try:
        yield Observed(message, from_message(message), mode, unreadable, unknown)
    except CloudEventError as error:
        if _is_native(message):
            yield Observed(message, None, None, unreadable, unknown)
        else:
            yield Unreadable(_malformed(error), _carried_hint(message))


def _is_native(message: Message) -> bool:
    """Whether a message that is not an event claimed to be one only by having the word `specversion` in its payload."""
    if claims_event(Message(message.protocol, message.fields)):
        return False
    try:
        return "specversion" not in read_members(message.payload or b"")
    except JsonError:
        return True


def _decoded(message: Message, budget: Budget | None = None) -> tuple[Message, str | None, str | None]:
    """The message with its payload's content encodings undone, or why that cannot be: it is wrong, or not known."""
    encodings = content_encodings(message)
    if not encodings or not message.payload:
        return message, None, None
    try:
        return Message(message.protocol, message.fields, undo(encodings, message.payload, budget)), None, None
    except UnknownEncoding as error:
        return message, None, str(error)
    except CannotUndo as error:
        return message, str(error), None


def content_encodings(message: Message) -> str:
    """The content encodings that a message states, separated by commas."""
    found = PROTOCOLS[message.protocol].content_encodings(message.fields)
    if not found:
        return ""
    texts = [text.decode(errors="replace") if isinstance(text, bytes) else text for text in found]
    return ",".join(text for text in texts if isinstance(text, str))


# The type of an unreadable message ------------------------------------------------------------------------


def _malformed(error: CloudEventError) -> tuple[Problem, ...]:
    return tuple(Problem(_in_definition(one.path), "malformed", one.message) for one in error.problems)


def _in_definition(path: str) -> str:
    """A place of an event in the words of definitions."""
    if not path or path.startswith("/data/") or path in ("/data", "/data_base64"):
        return "/data" if path else ""
    return f"/envelopemetadata{path}"


def _bare_hint(text: bytes, message: Message | None = None) -> Observed | None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return _hint(message, value.get("type") if isinstance(value, dict) else None)


def _carried_hint(message: Message) -> Observed | None:
    binding = BINDINGS[message.protocol]
    if mode_of(message) is not Mode.BINARY:
        try:
            value = orjson.loads(message.payload or b"")
        except orjson.JSONDecodeError:
            return None
        return _hint(message, value.get("type") if isinstance(value, dict) else None)
    for name, value in binding.carried(message.fields):
        if (name.lower() if binding.any_case else name) in [f"{prefix}type" for prefix in binding.prefixes]:
            try:
                return _hint(message, binding.read_value(value))
            except ValueError:
                return None
    return None


def _hint(message: Message | None, named: Any) -> Observed | None:
    if not isinstance(named, str):
        return None
    hint = Observed(message, None)
    hint.kind = MessageKind.BARE if message is None else MessageKind.EVENT
    hint.attributes = {"type": named}
    return hint
