"""The protocols, one module each: their names, messages, options, and how CloudEvents go over them.

Rule 1: a message keeps what was observed, byte for byte and in order; nothing is filled in, lower-cased or joined.
Rule 2: one that is to be sent goes through `sendable` first.
Rule 3: what protocols differ in is in their values of `Protocol`; everything else serves all of them.
"""

from __future__ import annotations

from signalbook.jsontext import JsonError, read_members
from signalbook.protocols.binding import (
    batch_from_http,
    batch_to_http,
    claims_event,
    events_of,
    from_amqp,
    from_http,
    from_kafka,
    from_message,
    from_mqtt,
    from_nats,
    mode_of,
    partition_key,
    to_amqp,
    to_http,
    to_kafka,
    to_message,
    to_mqtt,
    to_nats,
)
from signalbook.protocols.message import (
    BINDINGS,
    FIELDS,
    PROTOCOLS,
    Message,
    WireError,
    address_of,
    find_protocol,
    sendable,
    sending_problems,
)
from signalbook.protocols.protocol import Binding, Mode, Protocol
from signalbook.protocols.values import Typed

__all__ = [
    "BINDINGS",
    "FIELDS",
    "PROTOCOLS",
    "Binding",
    "JsonError",
    "Message",
    "Mode",
    "Protocol",
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
