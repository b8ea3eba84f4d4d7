"""The AMQP 1.0 binding: binary and structured mode, values in their own AMQP types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from signalbook.cloudevents.attributes import AttributeValue
from signalbook.cloudevents.event import CloudEvent
from signalbook.cloudevents.timestamp import format_timestamp
from signalbook.protocols import binding
from signalbook.protocols.amqp_values import Typed
from signalbook.protocols.binding import Binding, Mode
from signalbook.protocols.message import Message

__all__ = ["AMQP", "from_amqp", "to_amqp"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE = frozenset(("ubyte", "ushort", "uint", "ulong", "byte", "short", "int"))
_TEXTS = frozenset(("symbol", "uuid", "char"))


def _fields(content_type: str | None, pairs: Iterable[tuple[str, Any]] | None) -> Mapping[str, Any]:
    return {"properties": {"content-type": content_type}, "application-properties": dict(pairs or ())}


def _read(value: Any) -> AttributeValue | None:
    """The attribute's value: native or canonical string, both must be read (amqp 3.1.3.2)."""
    if not isinstance(value, Typed):
        return value  # type: ignore[no-any-return]
    if value.type in _WHOLE or value.type in _TEXTS:
        return value.value  # type: ignore[no-any-return]
    if value.type == "timestamp":
        try:
            return format_timestamp(_EPOCH + timedelta(milliseconds=value.value))
        except OverflowError:
            raise ValueError("is a timestamp beyond the year 9999") from None
    raise ValueError(f"is of the AMQP type {value.type}, which an attribute cannot have")


def _write(value: AttributeValue) -> Any:
    # Boolean, long, string and binary in their own types. A timestamp stays the text it is: AMQP's has milliseconds and
    # no offset, and the event would come back changed.
    return value


def _content_types(message: Message) -> list[Any]:
    value = message.get("properties", {}).get("content-type")
    return [value.value if isinstance(value, Typed) else value] if value is not None else []


AMQP = Binding(
    protocol="AMQP/1.0",
    modes=(Mode.BINARY, Mode.STRUCTURED),
    carried=lambda message: message.get("application-properties", {}).items(),
    content_types=_content_types,
    fields=_fields,
    read_value=_read,
    write_value=_write,
    # 1.0.2 has the colon; brokers that do not take it made later texts prefer the underscore.
    prefixes=("cloudEvents:", "cloudEvents_"),
)


def from_amqp(message: Message) -> CloudEvent:
    """The event of a message whose body is a data section."""
    return binding.read(AMQP, message)


def to_amqp(event: CloudEvent, mode: str = Mode.BINARY, **fields: Any) -> Message:
    """The event as a message; `fields` are the sections, `application_properties` for `application-properties`."""
    return binding.write(AMQP, event, mode, fields)
