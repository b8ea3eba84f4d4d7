"""Where the properties of a definition stand in a message: the way from a definition to what is sent.

Rule 1: a slot is one place that a definition says something about: its path in the definition, the field of the message
on paper, and the name within that field where it holds several.
Rule 2: which places a protocol has, and of which types, is the table of `document.property_places`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from signalbook.cloudevents.attributes import ATTRIBUTE_TYPES
from signalbook.cloudevents.timestamp import instant, is_timestamp
from signalbook.document.property_places import ENVELOPE, PROTOCOLS, Place, Section, named_members
from signalbook.document.property_types import TEXTS, Form, canonical, is_of
from signalbook.wire import Typed, address_of
from signalbook.wire.fields import pointer

__all__ = ["BadSlot", "Slot", "envelope_slots", "in_event", "lay_out", "milliseconds", "protocol_slots"]

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
    is_content_type: bool = False

    @property
    def label(self) -> str:
        """What a person calls it."""
        return self.name or self.field

    @property
    def is_plain(self) -> bool:
        """Whether it is a field with one value or a member of AMQP's header: old dialects have templates there."""
        return self.field == "header" or bool(self.field and not self.name)


def envelope_slots(document: Mapping[str, Any]) -> Iterator[Slot]:
    """The CloudEvents attributes that a materialised definition declares."""
    metadata = document.get("envelopemetadata")
    for name, member in metadata.items() if isinstance(metadata, Mapping) else ():
        if not isinstance(member, Mapping):
            continue
        path = pointer("/envelopemetadata", name)
        place = ENVELOPE.place(name)
        kind = str(member.get("type") or place.name)
        required = name in REQUIRED or member.get("required") is True
        yield Slot(path, "", name, kind, member.get("value"), required, place.is_content_type)


def protocol_slots(protocol: str, document: Mapping[str, Any]) -> Iterator[Slot]:
    """The properties of a protocol's message that a materialised definition declares."""
    options = document.get("protocoloptions")
    if isinstance(options, Mapping):
        for name, place in PROTOCOLS.get(protocol, {}).items():
            stated = options.get(name)
            if isinstance(place, Section):
                yield from _named(name, place, stated)
            elif stated is not None:
                # Without its address nothing can be sent.
                yield _slot(name, "", place, stated, required=name == address_of(protocol))


def _named(field: str, section: Section, value: Any) -> Iterator[Slot]:
    """The properties by name that a field holds, as an array or as a map."""
    for _, name, member in named_members(value):
        if name and (isinstance(member, Mapping) or section.plain):  # a write takes no name that is empty
            yield _slot(field, name, section.place(name), member)


def _slot(field: str, name: str, place: Place, stated: Any, *, required: bool = False) -> Slot:
    """The slot of a property definition, or of a plain value in its place."""
    member = stated if isinstance(stated, Mapping) else {"value": stated}
    path = pointer("/protocoloptions", field)
    named = member.get("type")
    return Slot(
        pointer(path, name) if name else path,
        field,
        name,
        place.name if named is None or (named == "any" and place.type not in TEXTS) else str(named),
        member.get("value"),
        required or member.get("required") is True,
        place.is_content_type,
    )


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
    if protocol == "AMQP/1.0" and slot.name:
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
        fields[slot.field] = typed("integer" if slot.field == "status" else slot.type, value)


def in_event(slot: Slot, value: Any) -> Any:
    """A value as an event has it: a string for an attribute of CloudEvents' own, and for a number that no integer is.

    Raises ValueError where the value is not of the property's type.
    """
    found = typed(slot.type, value)
    if slot.type == "number" and is_of("integer", Form.TEXT, found):
        found = int(found)
    if found.__class__ not in (bool, int, float):
        return found
    if slot.name in ATTRIBUTE_TYPES:
        return found if slot.type in TEXTS else canonical(found)
    if slot.type not in _NUMBERS or found.__class__ is bool:
        return found
    whole = isinstance(found, int) or found.is_integer()
    return int(found) if whole and is_of("integer", Form.JSON, int(found)) else canonical(found)


_NUMBERS = frozenset({"number", "ulong", "any"})


def typed(kind: str, value: Any) -> Any:
    """A value that a definition may state as text, in its own type; raises ValueError where it is none."""
    if kind in ("integer", "ulong") and isinstance(value, str):
        return _whole(value)
    if kind in ("integer", "ulong") and value.__class__ is float and value.is_integer():
        return int(value)
    if kind == "boolean" and isinstance(value, str):
        if value not in ("true", "false"):
            raise ValueError("is not true or false")
        return value == "true"
    return value


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("is not a valid integer") from None


def _amqp(slot: Slot, value: Any) -> Any:
    """A value in the AMQP type that the definition's type means."""
    value = typed(slot.type, value)
    if slot.type == "timestamp" and isinstance(value, str) and is_timestamp(value):
        return Typed("timestamp", milliseconds(value))
    if slot.type == "uuid" and isinstance(value, str):
        return Typed("uuid", value)
    if value.__class__ is int and (slot.type == "ulong" or value > _LONGEST):
        return Typed("ulong", value)
    if slot.type == "number" and isinstance(value, str):
        return float(value)
    return _decoded(value) if slot.type == "binary" else value


_LONGEST = 2**63 - 1  # of the numbers that need no type of their own


def milliseconds(text: str) -> int:
    """A timestamp in milliseconds since 1970."""
    minutes, seconds, fraction = instant(text)
    # `instant` counts from March of year 0, which is 719,468 days before 1970.
    return (minutes * 60 - 719_468 * 86_400 + seconds) * 1000 + int(fraction.ljust(3, "0")[:3] or 0)


def _decoded(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(str(value), validate=True)
    except binascii.Error:
        raise ValueError("is not valid Base64") from None
