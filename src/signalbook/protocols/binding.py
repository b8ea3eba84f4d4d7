"""What a protocol binding is, and how events go through any of them.

Rule 1: a binding is a row: where attributes are carried and under which prefix, how a value is written there, where the
content type stands, which modes there are. `read` and `write` are the same for all.
Rule 2: the content type says the mode, never the presence of attributes (http 3 and its like).
Rule 3: what a binding cannot carry so that it comes back the same is a `CloudEventError`, not a near thing.
Rule 4: the caller's own fields go along as they are; one that the protocol does not have is a `WireError`, one that
would change the event or be hidden by it a `CloudEventError`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from signalbook.cloudevents.attributes import (
    AttributeValue,
    CloudEventError,
    canonical,
    is_name,
    pointer,
    problems,
    said,
    settle_quickly,
)
from signalbook.cloudevents.event import CloudEvent, Kind, made
from signalbook.cloudevents.json_format import decode, encode
from signalbook.cloudevents.media_type import EVENT, read_media_type
from signalbook.errors import Problem
from signalbook.protocols.message import Message

__all__ = [
    "Binding",
    "Mode",
    "attributes_of",
    "claims_event",
    "expect_media_type",
    "mode_of",
    "read",
    "read_header",
    "with_fields",
    "write",
    "write_header",
]

_EVENT_PREFIX = "application/cloudevents"
_BATCH_PREFIX = "application/cloudevents-batch"


class Mode(enum.StrEnum):
    """How an event is laid into a message."""

    BINARY = "binary"
    STRUCTURED = "structured"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Binding:
    """One protocol's row.

    `modes` begins with the one that holds where no content type says another. `carried` gives the metadata of a message
    that can be attributes, `content_types` what stands where the content type is; `read_value` and `write_value`
    convert one value and raise ValueError; `fields` lays out a message of a content type and pairs (None of them in
    structured mode).
    """

    protocol: str
    modes: tuple[Mode, ...]
    carried: Callable[[Message], Iterable[tuple[str, Any]]]
    content_types: Callable[[Message], list[Any]]
    fields: Callable[[str | None, Iterable[tuple[str, Any]] | None], Mapping[str, Any]]
    read_value: Callable[[Any], AttributeValue | None]
    write_value: Callable[[AttributeValue], Any]
    prefixes: tuple[str, ...] = ("",)
    any_case: bool = False
    # Whether datacontenttype may stand among the attributes too (it must then be the same), or only there.
    repeats_content_type: bool = False
    # The attributes that make a message without content type an event, or a broken one.
    marks: tuple[str, ...] = ("specversion", "id", "source", "type")
    # Whether zero bytes are another thing than no payload.
    tells_empty: bool = False


def mode_of(binding: Binding, message: Message) -> Mode:
    """The mode that the message is in, were it an event."""
    stated = _stated_mode(binding, message)
    if stated is not None:
        return stated
    implied = binding.modes[0]
    if implied is Mode.STRUCTURED and Mode.BINARY in binding.modes and _has_mark(binding, message):
        return Mode.BINARY
    return implied


def claims_event(binding: Binding, message: Message) -> bool:
    """Whether the message says that it is an event: by content type, metadata, or as JSON with `specversion`."""
    if _stated_mode(binding, message) is not None or _has_mark(binding, message):
        return True
    payload = (message.payload or b"").lstrip(b" \t\r\n")
    return binding.modes[0] is Mode.STRUCTURED and payload.startswith(b"{") and b'"specversion"' in payload


def read(binding: Binding, message: Message) -> CloudEvent:
    """The event that the message carries; raises `CloudEventError`."""
    if message.get("body", "data") != "data":
        raise CloudEventError(Problem("/data", "R41", "an event's body is a data section"))
    mode = mode_of(binding, message)
    if mode is Mode.BINARY:
        return _read_binary(binding, message)
    if mode is Mode.BATCH:
        words = "is a batch, and is to be read as one" if Mode.BATCH in binding.modes else "the binding has no batches"
        raise CloudEventError(Problem("", "R37", words))
    if _stated_mode(binding, message) is not None:
        expect_media_type(binding, message, EVENT)
    return decode(message.payload or b"")


def write(binding: Binding, event: CloudEvent, mode: str, fields: Mapping[str, Any]) -> Message:
    """The event in a message; `fields` are the protocol's others, such as a topic."""
    if mode not in binding.modes or mode == Mode.BATCH:
        offered = " or ".join(known for known in binding.modes if known is not Mode.BATCH)
        raise CloudEventError(Problem("", "R38", f"{binding.protocol} carries one event in {offered} mode, not {mode}"))
    if mode == Mode.STRUCTURED:
        return with_fields(binding, fields, EVENT, encode(event))
    named = event.content_type
    wrong = list(_cannot_carry(binding, event, named))
    pairs = []
    for name, value in event.attributes.items():
        if name != "datacontenttype":
            try:
                pairs.append((binding.prefixes[0] + name, binding.write_value(value)))
            except ValueError as error:
                wrong.append(Problem(f"/{name}", "R39", f"{name} {error}"))
    if wrong:
        raise CloudEventError(*wrong)
    return with_fields(binding, fields, named, event.payload(), pairs)


def with_fields(
    binding: Binding,
    fields: Mapping[str, Any],
    content_type: str | None,
    payload: bytes | None,
    pairs: Iterable[tuple[str, Any]] | None = None,
) -> Message:
    """The message of a content type, and in binary mode its pairs, beside the caller's own fields."""
    if not fields:
        laid = binding.fields(content_type, pairs)
        return Message(binding.protocol, _merged(binding, {}, laid), payload)
    own = Message(binding.protocol, fields, payload).settled()
    wrong = list(_content_type_differs(binding, own, content_type, is_event=pairs is None))
    if pairs is not None or binding.modes[0] is Mode.STRUCTURED:
        wrong += _would_add(binding, own)
    if wrong:
        raise CloudEventError(*wrong)
    stated = next(iter(binding.content_types(own)), content_type)
    return Message(binding.protocol, _merged(binding, own.fields, binding.fields(stated, pairs)), payload)


def expect_media_type(binding: Binding, message: Message, expected: str) -> None:
    """Refuse a content type of another event format than JSON."""
    stated = binding.content_types(message)
    media = read_media_type(stated[0].strip(" "))
    if media is None or media.name != expected:
        words = f"the event format {stated[0][:80]!r} is not read; {expected} is"
        raise CloudEventError(Problem("/datacontenttype", "R4", words))
    if len(stated) > 1:
        raise CloudEventError(Problem("/datacontenttype", "R3", "the content type occurs more than once"))


def _merged(binding: Binding, fields: Mapping[str, Any], laid: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's fields with those of the event, pairs and sections put together."""
    together = dict(fields)
    for name, value in laid.items():
        given = together.get(name)
        if given is not None and isinstance(value, tuple):
            value = (*_beside(binding, given, value), *value)
        elif given is not None and isinstance(value, Mapping):
            value = {**given, **value}
        together[name] = _set(value) if isinstance(value, Mapping) else value
    return {name: value for name, value in together.items() if value is not None and value != () and value != {}}


def _beside(
    binding: Binding, given: Iterable[tuple[str, Any]], laid: Iterable[tuple[str, Any]]
) -> Iterator[tuple[str, Any]]:
    """The caller's pairs, but for a content type that is laid again."""
    is_laid = any(name == "content-type" for name, _ in laid)
    for name, value in given:
        if not (is_laid and (name.lower() if binding.any_case else name) == "content-type"):
            yield name, value


def _set(section: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in section.items() if value is not None}


def _stated_mode(binding: Binding, message: Message) -> Mode | None:
    """The mode that the content type says: "prefixed with the CloudEvents media type" (http 3)."""
    named = next(iter(binding.content_types(message)), None)
    text = named.lower() if isinstance(named, str) else ""
    if text.startswith(_BATCH_PREFIX):
        return Mode.BATCH
    return Mode.STRUCTURED if text.startswith(_EVENT_PREFIX) else None


def _has_mark(binding: Binding, message: Message) -> bool:
    return any(name in binding.marks for name, _ in attributes_of(binding, message))


def _would_add(binding: Binding, own: Message) -> Iterator[Problem]:
    """What of the caller's own fields would be read as an attribute of the event."""
    for name, _ in attributes_of(binding, own):
        yield Problem(
            f"/{name}", "R39", f"{name} among the message's own fields would become an attribute of the event"
        )


def _content_type_differs(
    binding: Binding, own: Message, content_type: str | None, *, is_event: bool
) -> Iterator[Problem]:
    """A content type among the caller's own fields that says another thing than the event's."""
    for text in binding.content_types(own):
        if text != content_type and not (is_event and _is_spelling(text, content_type)):
            shown = content_type or "none"
            words = f"the content type {str(text)[:80]!r} among the message's own fields is not the event's, {shown}"
            yield Problem("/datacontenttype", "R39", words)
    if len(binding.content_types(own)) > 1:
        yield Problem("/datacontenttype", "R3", "the content type occurs more than once")


def _is_spelling(text: Any, content_type: str | None) -> bool:
    """Whether the text is another spelling of an event's media type: its JSON is UTF-8, said or not."""
    media = read_media_type(text) if isinstance(text, str) else None
    return media is not None and media.name == content_type and (media.charset or "utf-8").lower() == "utf-8"


def attributes_of(binding: Binding, message: Message) -> Iterator[tuple[str, Any]]:
    """The names and values of what is carried as attributes."""
    for found, value in binding.carried(message):
        name = found.lower() if binding.any_case else found
        for prefix in binding.prefixes:
            if prefix:
                if name.startswith(prefix):
                    yield name.removeprefix(prefix), value
            elif is_name(name):
                # Without a prefix, whatever cannot be an attribute is not meant as one.
                yield name, value


def _read_binary(binding: Binding, message: Message) -> CloudEvent:
    given: dict[str, Any] = {}
    wrong: list[Problem] = list(_mixed(binding, message))
    for name, raw in attributes_of(binding, message):
        if name in given:
            wrong.append(Problem(pointer(name), "R3", f"{said(name)} occurs more than once"))
        try:
            given[name] = binding.read_value(raw)
        except ValueError as error:
            wrong.append(Problem(pointer(name), "R40", f"{said(name)} {error}"))
    _take_content_type(binding, message, given, wrong)
    settled = None if wrong else settle_quickly(given.items(), clean=False)
    if settled is None:
        placed = {problem.path for problem in wrong}
        raise CloudEventError(*wrong, *(found for found in problems(given) if found.path not in placed))
    payload = message.payload
    if payload is None or not (payload or binding.tells_empty):
        return made(settled, None)
    named: Any = settled.get("datacontenttype")
    media = None if named is None else read_media_type(named)
    if media is not None and media.is_json:
        return made(settled, (Kind.JSON, payload, False))
    return made(settled, (Kind.BINARY, payload, True))


def _mixed(binding: Binding, message: Message) -> Iterator[Problem]:
    if len(binding.prefixes) == 1:
        return
    used = {prefix for found, _ in binding.carried(message) for prefix in binding.prefixes if found.startswith(prefix)}
    if len(used) > 1:
        yield Problem("", "R39", f"mixes the prefixes {' and '.join(sorted(used))}")


def _take_content_type(binding: Binding, message: Message, given: dict[str, Any], wrong: list[Problem]) -> None:
    stated = [text for text in binding.content_types(message) if text is not None]
    repeated = given.get("datacontenttype")
    path = "/datacontenttype"
    if repeated is not None and not binding.repeats_content_type:
        wrong.append(Problem(path, "R39", "datacontenttype must be the content type and not an attribute beside it"))
    elif repeated is not None and stated and repeated != stated[0]:
        wrong.append(Problem(path, "R39", "datacontenttype and the content type differ"))
    if len(stated) > 1:
        wrong.append(Problem(path, "R3", "the content type occurs more than once"))
    if stated:
        given["datacontenttype"] = stated[0]


def _cannot_carry(binding: Binding, event: CloudEvent, named: str | None) -> Iterator[Problem]:
    if named is not None and named.lower().startswith(_EVENT_PREFIX):
        words = f"data of the type {named} would be taken for the event itself; use structured mode"
        yield Problem("/datacontenttype", "R38", words)
    if not binding.tells_empty and event.payload() == b"":
        yield Problem("/data", "R41", "zero bytes of data cannot be told from no data; use structured mode")


# Attribute values in headers of HTTP and NATS: percent-encoded, as http 3.1.3.2 says.
#
# Rule: whatever an attribute may hold goes through printable ASCII and comes back the same; nothing ends a line.


# Space, double quote, percent, and everything outside U+0021 to U+007E.
_encoded = re.compile(r"[^!#$&-~]")
_quoted = re.compile(r'"((?:[^"\\]|\\.)*)"').fullmatch
_malformed = re.compile(r"%(?![0-9A-Fa-f]{2})").search
_printable = re.compile(r"[ -~]*").fullmatch


def write_header(value: AttributeValue) -> str:
    """The header's text for an attribute's value."""
    return _encoded.sub(_escape, canonical(value))


def read_header(text: str) -> str:
    """The attribute's text of a header's; raises ValueError."""
    if not isinstance(text, str) or not _printable(text):
        raise ValueError("must be printable ASCII in a header, other characters percent-encoded")
    found = _quoted(text)
    if found:
        text = re.sub(r"\\(.)", r"\1", found[1])
    if "%" not in text:
        return text
    if _malformed(text):
        raise ValueError("holds a % that is not followed by two hexadecimal digits")
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 after percent-decoding") from None


def _escape(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())
