"""The HTTP binding: binary, structured and batch mode, in requests and responses alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from signalbook.cloudevents.attributes import CloudEventError
from signalbook.cloudevents.event import CloudEvent
from signalbook.cloudevents.json_format import decode_batch, encode_batch
from signalbook.cloudevents.media_type import EVENT_BATCH
from signalbook.errors import Problem
from signalbook.protocols import binding
from signalbook.protocols.binding import Binding, Mode, expect_media_type, mode_of, read_header, write_header
from signalbook.protocols.message import Message

__all__ = ["HTTP", "batch_from_http", "batch_to_http", "from_http", "to_http"]


def _fields(content_type: str | None, pairs: Iterable[tuple[str, Any]] | None) -> Mapping[str, Any]:
    stated = () if content_type is None else (("content-type", content_type),)
    return {"headers": (*stated, *(pairs or ()))}


HTTP = Binding(
    protocol="HTTP",
    modes=(Mode.BINARY, Mode.STRUCTURED, Mode.BATCH),
    carried=lambda message: message.get("headers", ()),
    content_types=lambda message: message.values("headers", "content-type", any_case=True),
    fields=_fields,
    read_value=read_header,
    write_value=write_header,
    prefixes=("ce-",),
    any_case=True,
)


def from_http(message: Message) -> CloudEvent:
    """The event of a request or response in binary or structured mode."""
    return binding.read(HTTP, message)


def to_http(event: CloudEvent, mode: str = Mode.BINARY, **fields: Any) -> Message:
    """The event as a message; `fields` are `method`, `path`, `query`, `headers`, `status`."""
    return binding.write(HTTP, event, mode, fields)


def batch_from_http(message: Message) -> list[CloudEvent]:
    """The events of a batch; one bad event refuses all."""
    if mode_of(HTTP, message) is not Mode.BATCH:
        raise CloudEventError(Problem("", "R37", "is not a batch, and is to be read as one event"))
    expect_media_type(HTTP, message, EVENT_BATCH)
    return decode_batch(message.payload or b"")


def batch_to_http(events: Iterable[CloudEvent], **fields: Any) -> Message:
    """The events in one message; send it only to who has asked for batches (http 3)."""
    return binding.with_fields(HTTP, fields, EVENT_BATCH, encode_batch(events))
