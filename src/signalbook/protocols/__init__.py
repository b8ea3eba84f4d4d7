"""The protocols: the message on paper, and how CloudEvents go over each of them, one row a protocol.

Rule 1: a message keeps what was observed, byte for byte and in order; nothing is filled in, lower-cased or joined.
Rule 2: one that is to be sent goes through `sendable` first.
Rule 3: what the bindings differ in is in their rows; `from_message` and `to_message` serve all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from signalbook.cloudevents.attributes import CloudEventError
from signalbook.cloudevents.event import CloudEvent
from signalbook.cloudevents.json_format import iter_batch
from signalbook.errors import Problem
from signalbook.jsontext import JsonError, read_members
from signalbook.protocols import binding
from signalbook.protocols.amqp import AMQP, from_amqp, to_amqp
from signalbook.protocols.amqp_values import Typed
from signalbook.protocols.binding import Binding, Mode
from signalbook.protocols.http import HTTP, batch_from_http, batch_to_http, from_http, to_http
from signalbook.protocols.kafka import KAFKA, from_kafka, partition_key, to_kafka
from signalbook.protocols.message import FIELDS, Message, WireError
from signalbook.protocols.mqtt import MQTT3, MQTT5, from_mqtt, to_mqtt
from signalbook.protocols.names import find_protocol
from signalbook.protocols.nats import NATS, from_nats, to_nats
from signalbook.protocols.sending import address_of, sendable, sending_problems

__all__ = [
    "BINDINGS",
    "FIELDS",
    "Binding",
    "JsonError",
    "Message",
    "Mode",
    "Typed",
    "WireError",
    "address_of",
    "batch_from_http",
    "batch_to_http",
    "claims_event",
    "events_of",
    "find_protocol",
    "from_amqp",
    "from_http",
    "from_kafka",
    "from_message",
    "from_mqtt",
    "from_nats",
    "mode_of",
    "partition_key",
    "read_members",
    "sendable",
    "sending_problems",
    "to_amqp",
    "to_http",
    "to_kafka",
    "to_message",
    "to_mqtt",
    "to_nats",
]

BINDINGS: Mapping[str, Binding] = {row.protocol: row for row in (HTTP, KAFKA, AMQP, MQTT5, MQTT3, NATS)}


def mode_of(message: Message) -> Mode:
    """The mode that the message is in, were it an event."""
    return binding.mode_of(BINDINGS[message.protocol], message)


def claims_event(message: Message) -> bool:
    """Whether the message says that it is an event, valid or not; if not, it is a native message."""
    return binding.claims_event(BINDINGS[message.protocol], message)


def from_message(message: Message) -> CloudEvent:
    """The event that the message carries, by its own protocol's binding; raises `CloudEventError`."""
    return binding.read(BINDINGS[message.protocol], message)


def to_message(event: CloudEvent, protocol: str, mode: str | None = None, **fields: Any) -> Message:
    """The event as a message of the protocol, in its first mode unless one is named, with fields of its own.

    Raises `CloudEventError` where the binding cannot carry the event so, `WireError` where there are no such fields.
    """
    row = BINDINGS.get(find_protocol(protocol) or "")
    if row is None:
        raise WireError(Problem("/protocol", "value", f"must be one of {', '.join(BINDINGS)}"))
    return binding.write(row, event, mode or row.modes[0], fields)


def events_of(message: Message) -> Iterator[CloudEvent | CloudEventError]:
    """Each event of a message or what is wrong with it: one, or those of a batch in their order."""
    try:
        if mode_of(message) is Mode.BATCH and Mode.BATCH in BINDINGS[message.protocol].modes:
            yield from iter_batch(message.payload or b"")
        else:
            yield from_message(message)
    except CloudEventError as error:
        yield error
