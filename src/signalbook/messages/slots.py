"""Where the properties of a definition stand in a message: the way from a definition to what is sent.

Rule 1: a slot is one place that a definition says something about: its path in the definition, the field of the message
on paper, and the name within that field where it holds several.
Rule 2: a protocol is a row of `OPTIONS`; nothing else here knows one.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from signalbook.cloudevents.timestamp import instant, is_timestamp
from signalbook.messages.property_types import canonical
from signalbook.wire import Typed
from signalbook.wire.fields import pointer

__all__ = ["OPTIONS", "BadSlot", "Slot", "envelope_slots", "lay_out", "protocol_slots"]

# message/spec.md, CloudEvents/1.0: the type of an attribute that the definition does not type.
_EVENT_TYPES: Mapping[str, str] = {"source": "uritemplate", "time": "timestamp", "dataschema": "uritemplate"}
# message/spec.md, `properties` (AMQP 1.0).
_AMQP_TYPES: Mapping[str, str] = {
    "user-id": "binary",
    "absolute-expiry-time": "timestamp",
    "creation-time": "timestamp",
    "group-sequence": "integer",
}
REQUIRED = frozenset({"id", "source", "type"})


@dataclass(frozen=True, slots=True)
class Slot:
    """One property: `value` is None where the definition leaves it open."""

    path: str
    field: str
    name: str
    type: str
    value: Any = None
    required: bool = False

    @property
    def label(self) -> str:
        """What a person calls it."""
        return self.name or self.field


def envelope_slots(document: Mapping[str, Any]) -> Iterator[Slot]:
    """The CloudEvents attributes that a materialised definition declares."""
    for name, member in _members(document.get("envelopemetadata")):
        path = pointer("/envelopemetadata", name)
        kind = str(member.get("type") or _EVENT_TYPES.get(name, "string"))
        yield Slot(path, "", name, kind, member.get("value"), name in REQUIRED or member.get("required") is True)


def protocol_slots(protocol: str, document: Mapping[str, Any]) -> Iterator[Slot]:
    """The properties of a protocol's message that a materialised definition declares."""
    options = document.get("protocoloptions")
    if isinstance(options, Mapping):
        for field, read in OPTIONS.get(protocol, {}).items():
            if options.get(field) is not None:
                yield from read(field, options[field])


def _plain(kind: str, *, address: bool = False) -> Callable[[str, Any], Iterator[Slot]]:
    """A field that is one value, or a property definition of it; without its `address` nothing can be sent."""

    def read(field: str, value: Any) -> Iterator[Slot]:
        member = value if isinstance(value, Mapping) else {"value": value}
        path = pointer("/protocoloptions", field)
        required = address or member.get("required") is True
        yield Slot(path, field, "", str(member.get("type") or kind), member.get("value"), required)

    return read


def _named(types: Mapping[str, str] | None = None) -> Callable[[str, Any], Iterator[Slot]]:
    """A field that holds several properties by name, as an array or as a map."""

    def read(field: str, value: Any) -> Iterator[Slot]:
        for key, member in _members(value):
            name = str(member.get("name") or key)
            path = pointer(f"/protocoloptions/{field}", name)
            kind = str(member.get("type") or (types or {}).get(name, "string"))
            yield Slot(path, field, name, kind, member.get("value"), member.get("required") is True)

    return read


def _sections(field: str, value: Any) -> Iterator[Slot]:
    """The header section of AMQP: plain values by name."""
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        member = inner if isinstance(inner, Mapping) else {"value": inner}
        kind = "boolean" if isinstance(member.get("value"), bool) else "integer"
        path = pointer(f"/protocoloptions/{field}", name)
        yield Slot(path, field, name, kind, member.get("value"), member.get("required") is True)


def _members(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, member in pairs:
        if isinstance(member, Mapping):
            yield str(key), member


_TEXT, _WHOLE, _FLAG, _LIST = _plain("uritemplate"), _plain("integer"), _plain("boolean"), _named()
_ADDRESS = _plain("uritemplate", address=True)
_MQTT3 = {"topic_name": _ADDRESS, "qos": _WHOLE, "retain": _FLAG}
Reader = Callable[[str, Any], Iterator[Slot]]

OPTIONS: Mapping[str, Mapping[str, Reader]] = {
    "HTTP": {"method": _plain("string"), "path": _ADDRESS, "status": _WHOLE, "query": _LIST, "headers": _LIST},
    "AMQP/1.0": {
        "properties": _named(_AMQP_TYPES),
        "application-properties": _LIST,
        "message-annotations": _LIST,
        "delivery-annotations": _LIST,
        "header": _sections,
        "footer": _LIST,
    },
    "MQTT/3.1.1": _MQTT3,
    "MQTT/5.0": {
        **_MQTT3,
        "payload_format_indicator": _WHOLE,
        "message_expiry_interval": _WHOLE,
        "response_topic": _TEXT,
        "correlation_data": _TEXT,
        "content_type": _TEXT,
        "user_properties": _LIST,
    },
    "KAFKA": {"topic": _ADDRESS, "partition": _WHOLE, "key": _TEXT, "key_base64": _plain("binary"), "headers": _LIST},
    "NATS": {"subject": _ADDRESS, "reply": _TEXT, "headers": _LIST},
}


# Laying values into a message ----------------------------------------------------------------------------------------


class BadSlot(ValueError):
    """A value that is none of its property's type."""

    def __init__(self, slot: Slot, words: str) -> None:
        super().__init__(words)
        self.slot = slot


def lay_out(protocol: str, filled: list[tuple[Slot, Any]]) -> dict[str, Any]:
    """The fields of a message that has these values; raises `BadSlot`."""
    fields: dict[str, Any] = {}
    for slot, value in filled:
        try:
            _lay(protocol, fields, slot, value)
        except ValueError as error:
            raise BadSlot(slot, f"value ({canonical(value)}) {error}") from None
    return fields


def _lay(protocol: str, fields: dict[str, Any], slot: Slot, value: Any) -> None:
    if protocol == "AMQP/1.0":
        fields.setdefault(slot.field, {})[slot.name] = _amqp(slot, value)
    elif slot.name:
        text = canonical(value)
        carried = text.encode() if protocol == "KAFKA" else text
        fields[slot.field] = (*fields.get(slot.field, ()), (slot.name, carried))
    elif slot.field == "key_base64":
        fields["key"] = _decoded(value)
    elif slot.field in ("key", "correlation_data"):
        fields[slot.field] = value if isinstance(value, bytes) else canonical(value).encode()
    else:
        fields[slot.field] = typed(slot.type, value)


def typed(kind: str, value: Any) -> Any:
    """A value that a definition may state as text, in its own type; raises ValueError where it is none."""
    if kind in ("integer", "ulong") and isinstance(value, str):
        return _whole(value)
    if kind == "boolean" and isinstance(value, str):
        if value not in ("true", "false"):
            raise ValueError("is not true or false")
        return value == "true"
    return value


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("is no integer") from None


def _amqp(slot: Slot, value: Any) -> Any:
    """A value in the AMQP type that the definition's type means."""
    value = typed(slot.type, value)
    if slot.type == "timestamp" and isinstance(value, str) and is_timestamp(value):
        return Typed("timestamp", _milliseconds(value))
    if slot.type == "uuid" and isinstance(value, str):
        return Typed("uuid", value)
    if slot.type == "ulong" and isinstance(value, int):
        return Typed("ulong", value)
    if slot.type == "number" and isinstance(value, str):
        return float(value)
    return _decoded(value) if slot.type == "binary" else value


def _milliseconds(text: str) -> int:
    minutes, seconds, fraction = instant(text)
    # `instant` counts from March of year 0, which is 719,468 days before 1970.
    return (minutes * 60 - 719_468 * 86_400 + seconds) * 1000 + int(fraction.ljust(3, "0")[:3] or 0)


def _decoded(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(str(value), validate=True)
    except binascii.Error:
        raise ValueError("is no Base64") from None
