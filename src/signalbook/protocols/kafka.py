"""The Kafka binding: binary and structured mode; no data is a null value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from signalbook.cloudevents.attributes import AttributeValue, canonical
from signalbook.cloudevents.event import CloudEvent
from signalbook.protocols import binding
from signalbook.protocols.binding import Binding, Mode
from signalbook.protocols.message import Message

__all__ = ["KAFKA", "from_kafka", "partition_key", "to_kafka"]


def _fields(content_type: str | None, pairs: Iterable[tuple[str, Any]] | None) -> Mapping[str, Any]:
    stated = () if content_type is None else (("content-type", content_type.encode()),)
    return {"headers": (*stated, *(pairs or ()))}


def _read(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None


def _content_types(message: Message) -> list[Any]:
    # What is not a text is not a media type either, and is refused as such.
    return [value.decode(errors="replace") for value in message.values("headers", "content-type") if value is not None]


def _write(value: AttributeValue) -> bytes:
    return canonical(value).encode()


KAFKA = Binding(
    protocol="KAFKA",
    modes=(Mode.BINARY, Mode.STRUCTURED),
    carried=lambda message: message.get("headers", ()),
    content_types=_content_types,
    fields=_fields,
    read_value=_read,
    write_value=_write,
    prefixes=("ce_",),
    repeats_content_type=True,
    tells_empty=True,
)


def from_kafka(message: Message) -> CloudEvent:
    """The event of a record."""
    return binding.read(KAFKA, message)


def to_kafka(
    event: CloudEvent,
    mode: str = Mode.BINARY,
    key_mapper: Callable[[CloudEvent], bytes | None] | None = None,
    **fields: Any,
) -> Message:
    """The event as a record; `fields` are `topic`, `key` (bytes), `headers`, …; a mapper makes the key instead."""
    if key_mapper is not None:
        fields["key"] = key_mapper(event)
    return binding.write(KAFKA, event, mode, fields)


def partition_key(event: CloudEvent) -> bytes | None:
    """The key mapper of the partitioning extension (kafka 3.1): `partitionkey` as it is, and it stays an attribute."""
    value = event.get("partitionkey")
    return None if value is None else canonical(value).encode()
