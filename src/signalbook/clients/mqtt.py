"""MQTT 5.0 and 3.1.1: the messages of paho-mqtt.

Rule 1: a message with properties, be they empty, came over 5.0; one without came over 3.1.1.
Rule 2: user properties keep their order, and a name may occur again.
Rule 3: MQTT does not tell a payload of zero bytes from none: it is None on paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signalbook.clients import MissingLibrary, checked_to_send, required_field
from signalbook.protocols import Message

try:
    from paho.mqtt.client import MQTTMessage
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties
except ImportError as error:
    raise MissingLibrary("paho-mqtt", "mqtt") from error

__all__ = ["publish_args", "to_paper"]

# The properties of a PUBLISH that the sender chooses (MQTT 5.0, section 3.3.2.3), on paper and in paho.
_PROPERTIES: Mapping[str, str] = {
    "payload_format_indicator": "PayloadFormatIndicator",
    "message_expiry_interval": "MessageExpiryInterval",
    "response_topic": "ResponseTopic",
    "correlation_data": "CorrelationData",
    "content_type": "ContentType",
    "user_properties": "UserProperty",
}


def to_paper(message: MQTTMessage) -> Message:
    """The message that `on_message` was called with."""
    fields: dict[str, Any] = {"topic_name": message.topic, "qos": message.qos, "retain": bool(message.retain)}
    payload = bytes(message.payload) or None
    if message.properties is None:
        return Message("MQTT/3.1.1", fields, payload)
    for name, attribute in _PROPERTIES.items():
        value = getattr(message.properties, attribute, None)
        if value is not None:
            fields[name] = tuple(map(tuple, value)) if name == "user_properties" else value
    return Message("MQTT/5.0", fields, payload)


def publish_args(message: Message) -> dict[str, Any]:
    """The arguments for `client.publish(**…)`, with properties where the message is one of 5.0."""
    message = checked_to_send(message, "MQTT/5.0", "MQTT/3.1.1")
    args: dict[str, Any] = {
        "topic": required_field(message, "topic_name"),
        "payload": message.payload,
        "qos": message.get("qos", 0),
        "retain": message.get("retain", False),
    }
    if message.protocol == "MQTT/5.0":
        args["properties"] = _write_properties(message)
    return args


def _write_properties(message: Message) -> Properties:
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    for name, attribute in _PROPERTIES.items():
        value = message.get(name)
        if value is not None and value != ():
            setattr(properties, attribute, list(value) if name == "user_properties" else value)
    return properties
