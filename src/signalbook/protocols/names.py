"""The names of the protocols that the message specification defines, and every other name each one is known by.

Rule: this is the only table of them. A definition, a message on paper, an endpoint and a document of an older dialect
mean the same by the same name; a name that is not here belongs to a protocol that somebody else defines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["PROTOCOLS", "find_protocol", "stated_protocol"]

# message/spec.md and endpoint/spec.md, `protocol`: any case; "AMQP" and "MQTT" stand for AMQP/1.0 and MQTT/5.0.
PROTOCOLS: Mapping[str, str] = MappingProxyType(
    {
        **{name.lower(): name for name in ("HTTP", "AMQP/1.0", "MQTT/3.1.1", "MQTT/5.0", "KAFKA", "NATS")},
        "amqp": "AMQP/1.0",
        "amqp/1": "AMQP/1.0",
        "mqtt": "MQTT/5.0",
        "mqtt/5": "MQTT/5.0",
        "mqtt/3": "MQTT/3.1.1",
    }
)
# What public catalogs write (clemensv/real-time-sources) where a message has no protocol.
_NO_PROTOCOL = frozenset({"", "none"})
# A protocol that has no version in its name stands for all its versions: HTTP/1.1, HTTP/3.0, Kafka/0.11, NATS/2.10.
_VERSIONED = re.compile(r"(http|kafka|nats)/[0-9]+(?:\.[0-9]+)*", re.ASCII)


def find_protocol(name: object) -> str | None:
    """The specification's name of a protocol, from any spelling of it; None where it is not one of those."""
    if not isinstance(name, str) or not name.isascii():
        return None
    lower = name.lower()
    if (found := PROTOCOLS.get(lower)) is not None:
        return found
    versioned = _VERSIONED.fullmatch(lower)
    return PROTOCOLS[versioned[1]] if versioned else None


def stated_protocol(value: object) -> str | None:
    """The protocol that a definition states; `None`, which public catalogs write, is a word for having none."""
    return None if value is None or str(value).lower() in _NO_PROTOCOL else str(value)
