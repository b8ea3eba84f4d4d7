"""The protocols: how each property of `protocoloptions` is read from a message, one row a protocol.

Rule 1: an option is a plain value; a collection holds named properties. A row says how either is read, which of them
is the key a consumer would route by, and which belong to that key.
Rule 2: names compare with case, but for HTTP's headers.
Rule 3: what a definition states besides the options of its protocol says nothing about a message.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from signalbook.messages.constraint import Constraint, Property
from signalbook.messages.header_values import Named
from signalbook.messages.observed import Observed
from signalbook.messages.property_types import Form
from signalbook.wire import Message
from signalbook.wire.fields import pointer

__all__ = ["PROTOCOLS", "Protocol", "protocol_constraints"]

_OPTIONS = "/protocoloptions"
ReadOption = Callable[[Message], Sequence[Any]]
ReadMember = Callable[[Message, str], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Collection:
    """Named properties: how the values of a name are read, in which form, and the types of names that have one."""

    read: ReadMember
    form: Form = Form.TEXT
    types: Mapping[str, str | None] = field(default_factory=dict)
    default: str | None = "string"
    # The name, in lower case, under which a content type stands.
    content_type: str = "content-type"


@dataclass(frozen=True, slots=True)
class Protocol:
    """One row: plain options, collections, the places of the key in their order, and what belongs to a key."""

    options: Mapping[str, ReadOption]
    collections: Mapping[str, Collection] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    beside_key: tuple[str, ...] = ()
    content_type: str = ""
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


def _section(section: str) -> ReadMember:
    def read(message: Message, name: str) -> Sequence[Any]:
        members = message.fields.get(section)
        value = None if members is None else members.get(name)
        return () if value is None else (value,)

    return read


def _options(*names: str, **special: ReadOption) -> dict[str, ReadOption]:
    return {**{name: _single(name) for name in names}, **special}


_AMQP_PROPERTIES: Mapping[str, str | None] = {
    # Of several types where none is declared: an id is a ulong, a uuid, bytes or a string; so is its echo.
    "message-id": None,
    "correlation-id": None,
    "user-id": None,
    "absolute-expiry-time": "timestamp",
    "creation-time": "timestamp",
    "group-sequence": "integer",
}
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
            "query": Collection(_pairs("query", Named()), content_type=""),
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
        options={},
        collections={
            "properties": Collection(_section("properties"), Form.AMQP, _AMQP_PROPERTIES),
            **{
                name: Collection(_section(name), Form.AMQP, content_type="")
                for name in ("application-properties", "message-annotations", "delivery-annotations", "footer")
            },
            "header": Collection(_section("header"), Form.AMQP, default=None, content_type=""),
        },
        keys=(f"{_OPTIONS}/properties/subject", f"{_OPTIONS}/properties/to"),
    ),
    "MQTT/5.0": Protocol(
        options=_MQTT5,
        collections={"user_properties": Collection(_pairs("user_properties", Named()), content_type="")},
        keys=(f"{_OPTIONS}/topic_name",),
        content_type="content_type",
    ),
    "MQTT/3.1.1": Protocol(options=_MQTT3, keys=(f"{_OPTIONS}/topic_name",)),
    "KAFKA": Protocol(
        options=_options("topic", "partition", key=_key, key_base64=_key_base64),
        collections={"headers": Collection(_pairs("headers", Named(_text)))},
        keys=(f"{_OPTIONS}/topic", f"{_OPTIONS}/key"),
    ),
    "NATS": Protocol(
        options=_options("subject", "reply"),
        collections={"headers": Collection(_pairs("headers", Named()))},
        keys=(f"{_OPTIONS}/subject",),
    ),
}


def protocol_constraints(row: Protocol, stated: Any) -> Iterator[Constraint]:
    """What `protocoloptions` says about a message of a protocol, in the order in which it stands there."""
    for name, value in stated.items() if isinstance(stated, Mapping) else ():
        if name in row.options:
            constraint = _option(row, name, value)
            if constraint is not None:
                yield constraint
        elif name in row.collections:
            collection = row.collections[name]
            for member, given in _named(value):
                yield _member(collection, pointer(f"{_OPTIONS}/{name}", member), member, given)


def _message(observed: Observed) -> Message:
    assert observed.message is not None, "protocol constraints are tested on messages only"
    return observed.message


def _option(row: Protocol, name: str, value: Any) -> Constraint | None:
    given = Property.of(value)
    if given.value is None and not given.required:
        return None
    read = row.options[name]
    code = "content_type" if name == row.content_type else "value"
    path = f"{_OPTIONS}/{name}"
    made = Constraint.of(
        path, lambda observed: read(_message(observed)), given, form=Form.JSON, default=None, code=code
    )
    return replace(made, needed=row.needed[name]) if name in row.needed else made


def _member(collection: Collection, path: str, name: str, given: Any) -> Constraint:
    read = collection.read
    code = "content_type" if name.lower() == collection.content_type else "value"
    return Constraint.of(
        path,
        lambda observed: read(_message(observed), name),
        Property.of(given),
        form=collection.form,
        default=collection.types.get(name, collection.default),
        code=code,
    )


def _named(value: Any) -> Iterator[tuple[str, Any]]:
    """The names and definitions of a list of named properties, or of a map whose keys name them."""
    if isinstance(value, Mapping):
        for key, given in value.items():
            if given is not None:
                own = given.get("name") if isinstance(given, Mapping) else None
                yield (own if isinstance(own, str) else key), given
    elif isinstance(value, list):
        for given in value:
            own = given.get("name") if isinstance(given, Mapping) else None
            if isinstance(own, str):
                yield own, given
