"""The NATS binding: JSON as the payload (1.0.2), and binary mode with headers as later texts have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from signalbook.cloudevents.event import CloudEvent
from signalbook.protocols import binding
from signalbook.protocols.binding import Binding, Mode, read_header, write_header
from signalbook.protocols.message import Message

__all__ = ["NATS", "from_nats", "to_nats"]


def _fields(content_type: str | None, pairs: Iterable[tuple[str, Any]] | None) -> Mapping[str, Any]:
    if pairs is None:
        return {}
    stated = () if content_type is None else (("ce-datacontenttype", write_header(content_type)),)
    return {"headers": (*pairs, *stated)}


NATS = Binding(
    protocol="NATS",
    # nats 3 at 1.0.2: always structured. Headers came with NATS 2.2, and with them binary mode (1.0.3-wip, 3.1): it is
    # read where an attribute is among the headers, and written on demand.
    modes=(Mode.STRUCTURED, Mode.BINARY),
    carried=lambda message: message.get("headers", ()),
    content_types=lambda message: message.values("headers", "content-type", any_case=True),
    fields=_fields,
    read_value=read_header,
    write_value=write_header,
    prefixes=("ce-",),
    any_case=True,
    repeats_content_type=True,
)


def from_nats(message: Message) -> CloudEvent:
    """The event of a message."""
    return binding.read(NATS, message)


def to_nats(event: CloudEvent, mode: str = Mode.STRUCTURED, **fields: Any) -> Message:
    """The event as a message; `fields` are `subject`, `reply`, `headers`."""
    return binding.write(NATS, event, mode, fields)
