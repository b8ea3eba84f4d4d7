"""The MQTT binding: binary and structured mode in 5.0, JSON as the payload in 3.1.1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from signalbook.cloudevents.attributes import AttributeValue, CloudEventError, canonical
from signalbook.cloudevents.event import CloudEvent
from signalbook.errors import Problem
from signalbook.protocols import binding
from signalbook.protocols.binding import Binding, Mode
from signalbook.protocols.message import Message
from signalbook.protocols.names import find_protocol

__all__ = ["MQTT3", "MQTT5", "from_mqtt", "to_mqtt"]

_LONGEST = 65_535  # bytes of a string, MQTT 5.0 section 1.5.4


def _fields(content_type: str | None, pairs: Iterable[tuple[str, Any]] | None) -> Mapping[str, Any]:
    return {"content_type": content_type, "user_properties": tuple(pairs or ())}


def _write(value: AttributeValue) -> str:
    text = canonical(value)
    if len(text) > _LONGEST // 4 and len(text.encode()) > _LONGEST:
        raise ValueError(f"is longer than the {_LONGEST:,} bytes of a user property; use structured mode")
    return text


def _content_types(message: Message) -> list[Any]:
    value = message.get("content_type")
    return [] if value is None else [value]


MQTT5 = Binding(
    protocol="MQTT/5.0",
    modes=(Mode.BINARY, Mode.STRUCTURED),
    carried=lambda message: message.get("user_properties", ()),
    content_types=_content_types,
    fields=_fields,
    read_value=lambda text: text,
    write_value=_write,
    # The specification's own example repeats it among the user properties.
    repeats_content_type=True,
    # Without a prefix, id and type may be anybody's.
    marks=("specversion",),
)
MQTT3 = Binding(
    protocol="MQTT/3.1.1",
    modes=(Mode.STRUCTURED,),
    carried=lambda message: (),
    content_types=lambda message: [],
    fields=lambda content_type, pairs: {},
    read_value=lambda text: text,
    write_value=_write,
)
_VERSIONS = {row.protocol: row for row in (MQTT5, MQTT3)}


def from_mqtt(message: Message) -> CloudEvent:
    """The event of a PUBLISH, by the message's own version of MQTT."""
    return binding.read(_VERSIONS.get(message.protocol, MQTT5), message)


def to_mqtt(event: CloudEvent, mode: str | None = None, version: str = "5.0", **fields: Any) -> Message:
    """The event as a PUBLISH, binary where the version has it; `fields` are `topic_name`, `qos` and the like."""
    row = _VERSIONS.get(find_protocol(f"mqtt/{version}") or "")
    if row is None:
        raise CloudEventError(Problem("", "R38", f"MQTT {version} has no CloudEvents binding; use 5.0 or 3.1.1"))
    return binding.write(row, event, mode or row.modes[0], fields)
