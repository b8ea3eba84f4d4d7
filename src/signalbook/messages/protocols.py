"""The protocols: how each property of `protocoloptions` is read from a message, one row a protocol.

Rule 1: an option is a plain value; a collection holds named properties. A row says how either is read, which of them
is the key a consumer would route by, and which belong to that key; `document.property_places` says their types.
Rule 2: names compare with case, but for HTTP's headers.
Rule 3: what a definition states besides the options of its protocol says nothing about a message.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from signalbook.cloudevents.timestamp import is_timestamp
from signalbook.document.property_places import PROTOCOLS as PLACES
from signalbook.document.property_places import Place, Property, Section, name_fault, named_members, section_fault
from signalbook.document.property_types import Form
from signalbook.messages.constraint import Constraint
from signalbook.messages.header_values import Named
from signalbook.messages.observed import Observed
from signalbook.messages.slots import milliseconds
from signalbook.wire import Message
from signalbook.wire.fields import pointer

__all__ = ["PROTOCOLS", "Protocol", "protocol_constraints"]

_OPTIONS = "/protocoloptions"
ReadOption = Callable[[Message], Sequence[Any]]
ReadMember = Callable[[Message, str], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Collection:
    """Named properties: how the values of a name are read, and in which form."""

    read: ReadMember
    form: Form = Form.TEXT


@dataclass(frozen=True, slots=True)
class Protocol:
    """One row: plain options, collections, the places of the key in their order, and what belongs to a key."""

    options: Mapping[str, ReadOption]
    collections: Mapping[str, Collection] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    beside_key: tuple[str, ...] = ()
    # Options that must be there whenever a message says so.
    needed: Mapping[str, Callable[[Observed], bool]] = field(default_factory=dict)


def _single(name: str) -> ReadOption:
    def read(message: Message) -> Sequence[Any]:
        value = message.fields.get(name)
        return () if value is None else (value,)

    return read


def _pairs(field_name: str, named: Named) -> ReadMember:
    def read(message: Message, name: str) -> Sequence[Any]:
        return named(message.fields.get(field_name, ()), name)

    return read


def _text(value: bytes | None) -> Any:
    """Bytes as the text they are, or as they are."""
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def _key(message: Message) -> Sequence[Any]:
    value = message.fields.get("key")
    return () if value is None else (_text(value),)


def _key_base64(message: Message) -> Sequence[Any]:
    value = message.fields.get("key")
    return () if value is None else (base64.b64encode(value).decode(),)


def _correlation_data(message: Message) -> Sequence[Any]:
    """The text, where it is one, and Base64: the text of the specification has bytes, its model file a text."""
    value = message.fields.get("correlation_data")
    if value is None:
        return ()
    coded = base64.b64encode(value).decode()
    text = _text(value)
    return (text, coded) if isinstance(text, str) else (coded,)


def _timestamp(message: Message) -> Sequence[Any]:
    """Kafka's timestamp, in milliseconds since 1970."""
    value = message.fields.get("timestamp")
    if isinstance(value, str) and is_timestamp(value):
        return (milliseconds(value),)
    return () if value is None else (value,)


def _body(message: Message) -> Sequence[Any]:
    return (message.get("body", "data"),)


def _section(section: str) -> ReadMember:
    def read(message: Message, name: str) -> Sequence[Any]:
        members = message.fields.get(section)
        value = None if members is None else members.get(name)
        return () if value is None else (value,)

    return read


def _options(*names: str, **special: ReadOption) -> dict[str, ReadOption]:
    return {**{name: _single(name) for name in names}, **special}


_MQTT3 = _options("topic_name", "qos", "retain")
_MQTT5 = {
    **_MQTT3,
    **_options(
        "payload_format_indicator",
        "message_expiry_interval",
        "response_topic",
        "content_type",
        correlation_data=_correlation_data,
    ),
}

PROTOCOLS: Mapping[str, Protocol] = {
    "HTTP": Protocol(
        options=_options("path", "method", "status"),
        collections={
            "headers": Collection(_pairs("headers", Named(fold=str.lower))),
            "query": Collection(_pairs("query", Named())),
        },
        keys=(f"{_OPTIONS}/path",),
        beside_key=(f"{_OPTIONS}/method", f"{_OPTIONS}/status"),
        # A status makes the definition one of a response; a request has a method.
        needed={
            "status": lambda observed: True,
            "method": lambda observed: _message(observed).get("status") is not None,
        },
    ),
    "AMQP/1.0": Protocol(
        options=_options(body=_body),
        collections={
            name: Collection(_section(name), Form.AMQP)
            for name in (
                *("properties", "application-properties", "message-annotations", "delivery-annotations"),
                *("header", "footer"),
            )
        },
        keys=(f"{_OPTIONS}/properties/subject", f"{_OPTIONS}/properties/to"),
    ),
    "MQTT/5.0": Protocol(
        options=_MQTT5,
        collections={"user_properties": Collection(_pairs("user_properties", Named()))},
        keys=(f"{_OPTIONS}/topic_name",),
    ),
    "MQTT/3.1.1": Protocol(options=_MQTT3, keys=(f"{_OPTIONS}/topic_name",)),
    "KAFKA": Protocol(
        options=_options("topic", "partition", key=_key, key_base64=_key_base64, timestamp=_timestamp),
        collections={"headers": Collection(_pairs("headers", Named(_text)))},
        keys=(f"{_OPTIONS}/topic", f"{_OPTIONS}/key"),
    ),
    "NATS": Protocol(
        options=_options("subject", "reply"),
        collections={"headers": Collection(_pairs("headers", Named()))},
        keys=(f"{_OPTIONS}/subject",),
    ),
}


def protocol_constraints(protocol: str, stated: Any, *, held: bool = False) -> Iterator[Constraint]:
    """What `protocoloptions` says about a message of a protocol, in the order in which it stands there.

    With `held` a property definition may stand where 1.0 has a plain value, see `dialects.held`.
    """
    row = PROTOCOLS.get(protocol)
    if row is None or not isinstance(stated, Mapping):
        return
    for name, value in stated.items():
        place = PLACES[protocol].get(name)
        if isinstance(place, Place):
            constraint = _option(row, name, place, _plain(value, held))
            if constraint is not None:
                yield constraint
        elif place is not None:
            yield from _members(row.collections[name], name, place, value, held)


def _members(collection: Collection, field_name: str, section: Section, value: Any, held: bool) -> Iterator[Constraint]:
    path = f"{_OPTIONS}/{field_name}"
    wrong = section_fault(value)
    if wrong is not None:
        yield Constraint(path, lambda observed: _single(field_name)(_message(observed)), fault=wrong)
    for _, name, member in named_members(value):
        given = _plain(member, held) if section.plain else Property.of(member)
        made = _member(collection, section.place(name), pointer(path, name), name, given)
        wrong = None if section.plain else name_fault(section, name)
        yield made if wrong is None else replace(made, fault=made.fault or wrong)


def _plain(value: Any, held: bool) -> Property:
    return Property.of(value) if held and isinstance(value, Mapping) else Property.plain(value)


def _message(observed: Observed) -> Message:
    assert observed.message is not None, "protocol constraints are tested on messages only"
    return observed.message


def _option(row: Protocol, name: str, place: Place, given: Property) -> Constraint | None:
    if given.value is None and not given.required:
        return None
    read = row.options[name]
    made = Constraint.of(f"{_OPTIONS}/{name}", lambda observed: read(_message(observed)), given, place, Form.JSON)
    return replace(made, needed=row.needed[name]) if name in row.needed else made


def _member(collection: Collection, place: Place, path: str, name: str, given: Property) -> Constraint:
    read = collection.read
    return Constraint.of(path, lambda observed: read(_message(observed), name), given, place, collection.form)
