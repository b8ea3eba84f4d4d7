"""An event or a payload laid into a protocol's message, beside the fields that a definition gives it.

Rule: what the definition says about a header or user property that is an attribute of the event by the protocol's
binding (`ce-subject`, or in MQTT any property named like an attribute) is said about that attribute: it is set where
the event has none, and refused where the event's is another.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import brotli
import zstandard

from signalbook.cloudevents import CloudEvent, CloudEventError
from signalbook.cloudevents.attributes import canonical, is_name
from signalbook.cloudevents.bindings import BINDINGS, Binding, Mode, to_message
from signalbook.cloudevents.bindings.binding import attributes_of
from signalbook.cloudevents.media_type import EVENT, read_media_type
from signalbook.errors import Problem
from signalbook.messages.build_data import structured_type
from signalbook.messages.content_encoding import is_label
from signalbook.messages.observed import content_encodings
from signalbook.wire import Message

__all__ = ["carry", "encoded", "native", "sent_as", "together"]

_SEVERAL = ("headers", "user_properties", "application-properties")


def carry(event: CloudEvent, protocol: str, mode: str, fields: Mapping[str, Any]) -> tuple[CloudEvent, Message]:
    """The event as it is carried, and the message of the protocol with these fields; raises `CloudEventError`."""
    if mode == Mode.STRUCTURED:
        return event, to_message(event, protocol, mode, **fields)
    row = BINDINGS[protocol]
    left: dict[str, Any] = dict(fields)
    added: dict[str, Any] = {}
    for field in _SEVERAL:
        if field not in left:
            continue
        section = left[field]
        pairs = list(section.items() if isinstance(section, Mapping) else section)
        added |= dict(_attributes(row, event, pairs))
        # The binding lays the content type itself; that of NATS has a header of its own for it.
        laid = () if protocol == "NATS" else ("content-type",)
        kept = [pair for pair in pairs if _name(row, pair[0]) is None and pair[0].lower() not in laid]
        left[field] = dict(kept) if isinstance(section, Mapping) else tuple(kept)
    carried = event.with_attributes(**added) if added else event
    return carried, to_message(carried, protocol, mode, **left)


def native(protocol: str, fields: dict[str, Any], payload: bytes | None, content_type: str | None) -> Message:
    """A message that is no event, with its content type where its fields do not say one."""
    message = Message(protocol, fields, payload)
    row = BINDINGS[protocol]
    if content_type is None or row.content_types(message):
        return message
    laid = row.fields(content_type, ()) if protocol != "NATS" else {"headers": (("Content-Type", content_type),)}
    return Message(protocol, together(fields, {name: value for name, value in laid.items() if value}), payload)


def sent_as(
    document: Mapping[str, Any], protocol: str, fields: dict[str, Any], context: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """The mode that an event is sent in, and the fields with the content type that the definition has for it then."""
    row = BINDINGS[protocol]
    stated = row.content_types(Message(protocol, fields))
    kind = structured_type(document, context, stated)
    options = document.get("envelopeoptions")
    named = options.get("mode") if isinstance(options, Mapping) else None
    usual = row.modes[0] if kind is None else Mode.STRUCTURED
    if kind is None and Mode.BINARY in row.modes and (stated or any(attributes_of(row, Message(protocol, fields)))):
        usual = Mode.BINARY  # a content type of the data, or an attribute among the fields, is that of a binary event
    mode = str(named or usual)
    media = read_media_type(kind) if kind is not None and mode == Mode.STRUCTURED and not stated else None
    if media is None or media.name != EVENT:
        return mode, fields
    laid = row.fields(kind, None)
    return mode, together(fields, {name: value for name, value in laid.items() if value})


def encoded(message: Message) -> Message:
    """The message with its payload in the content encodings that it states; raises ValueError where one is unknown."""
    stated = [name.strip().lower() for name in content_encodings(message).split(",")]
    payload = message.payload
    for name in stated if payload else ():
        if name in _ENCODERS:
            payload = _ENCODERS[name](payload or b"")
        elif not is_label(name):
            raise ValueError(f'the content encoding "{name}" cannot be applied')
    return message if payload is message.payload else Message(message.protocol, message.fields, payload)


def _gzip(payload: bytes) -> bytes:
    return gzip.compress(payload, mtime=0)


_ENCODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
    "br": brotli.compress,
}


def together(own: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Two sets of fields as one; pairs and sections are put together, of all else the second counts."""
    merged = dict(own)
    for name, value in fields.items():
        given = merged.get(name)
        if isinstance(value, tuple) and isinstance(given, tuple):
            value = (*given, *value)
        elif isinstance(value, Mapping) and isinstance(given, Mapping):
            value = {**given, **value}
        merged[name] = value
    return merged


def _attributes(row: Binding, event: CloudEvent, pairs: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The attributes that the pairs add to the event."""
    for found, raw in pairs:
        name = _name(row, found)
        if name is None or name in ("specversion", "datacontenttype"):
            continue
        try:
            value = row.read_value(raw)
        except ValueError as error:
            raise CloudEventError(Problem(f"/{name}", "R39", f"{found} {error}")) from None
        known = event.get(name)
        if known is None and value is not None:
            yield name, value
        elif known is not None and canonical(known) != canonical(value):
            words = f"{found} is {canonical(value)}, but the event's {name} is {canonical(known)}"
            raise CloudEventError(Problem(f"/{name}", "R39", words))


def _name(row: Binding, found: str) -> str | None:
    """The name of the attribute that a header or property is; None where it is none."""
    plain = found.lower() if row.any_case else found
    for prefix in row.prefixes:
        if prefix and plain.startswith(prefix):
            return plain.removeprefix(prefix)
        if not prefix and is_name(plain):
            return plain
    return None
