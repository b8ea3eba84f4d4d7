"""MQTT 5.0 and 3.1.1: packets to a topic; 5.0 has properties, in 3.1.1 an event is its payload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from signalbook.cloudevents.attributes import AttributeValue
from signalbook.cloudevents.attributes import canonical as attribute_text
from signalbook.errors import Problem
from signalbook.protocols.protocol import (
    BYTES,
    FLAG,
    PAIRS,
    TEXT,
    Binding,
    Fields,
    Mode,
    Option,
    Protocol,
    as_text,
    on_paper,
    route,
    values_in,
    whole,
)
from signalbook.protocols.values import CONTENT_TYPE, TEXTS, PropertyPlace, PropertySection, canonical, decoded

__all__ = ["MQTT3", "MQTT5"]

_LONGEST = 65_535  # bytes of a string or of binary data, MQTT 5.0 sections 1.5.4 and 1.5.6
_LARGEST = 268_435_455  # bytes of a packet, MQTT 5.0 section 2.1.4


def _topic_flaw(text: str) -> str | None:
    """MQTT 5.0 section 4.7: a topic name has a character, and no wildcard."""
    if not text:
        return "must not be empty"
    return "must not have wildcards, which are for subscribers" if "+" in text or "#" in text else _string_flaw(text)


def _string_flaw(text: str) -> str | None:
    """MQTT 5.0 section 1.5.4."""
    return f"must not have U+0000, nor more than {_LONGEST:,} bytes" if "\0" in text or _is_long(text) else None


def _is_long(text: str) -> bool:
    return len(text) > _LONGEST or len(text.encode(errors="replace")) > _LONGEST


def _problems(fields: Fields, payload: bytes | None) -> Iterator[Problem]:
    """What is wrong with the binary data of a packet."""
    data = fields.get("correlation_data")
    if data is not None and len(data) > _LONGEST:
        yield Problem("/correlation_data", "value", f"must not have more than {_LONGEST:,} bytes")
    if payload is None:
        return
    if len(payload) > _LARGEST:
        yield Problem("/payload", "value", f"has more than {_LARGEST:,} bytes")
    elif fields.get("payload_format_indicator") == 1 and isinstance(as_text(payload), bytes):
        yield Problem("/payload_format_indicator", "value", "says that the payload is text, and it is not UTF-8")


def _fields(content_type: str | None, pairs: Iterable[tuple[str, Any]] | None) -> Fields:
    return {"content_type": content_type, "user_properties": tuple(pairs or ())}


def _content_types(fields: Fields) -> list[Any]:
    value = fields.get("content_type")
    return [] if value is None else [value]


def _write_attribute(value: AttributeValue) -> str:
    text = attribute_text(value)
    if len(text) > _LONGEST // 4 and len(text.encode()) > _LONGEST:
        raise ValueError(f"is longer than the {_LONGEST:,} bytes of a user property; use structured mode")
    return text


_FIELDS = on_paper(topic_name=TEXT, qos=whole(0, 2), retain=FLAG)
_FIELDS5 = _FIELDS | on_paper(
    payload_format_indicator=whole(0, 1),
    message_expiry_interval=whole(0, 2**32 - 1),
    response_topic=TEXT,
    correlation_data=BYTES,
    content_type=TEXT,
    user_properties=PAIRS,
)
_OPTIONS: dict[str, PropertyPlace | PropertySection] = {
    "topic_name": route(_topic_flaw),
    "qos": PropertyPlace("qos", is_json=True),
    "retain": PropertyPlace("boolean", is_json=True),
}
_SCHEMES = ("mqtt", "mqtts", "tcp", "ssl", "ws", "wss")

MQTT5 = Protocol(
    name="MQTT/5.0",
    aliases=("mqtt", "mqtt/5"),
    fields=_FIELDS5 | {"payload_format": _FIELDS5["payload_format_indicator"]},
    options={
        **_OPTIONS,
        "payload_format_indicator": PropertyPlace("bit", is_json=True),
        "message_expiry_interval": PropertyPlace("uint", is_json=True),
        "response_topic": route(_topic_flaw),
        # Base64 by the text, a template by the published model: a value with placeholders is one of what the bytes say.
        "correlation_data": PropertyPlace("binary", is_text_with_placeholders=True),
        "content_type": CONTENT_TYPE,
        "user_properties": PropertySection(other=PropertyPlace(test=_string_flaw), name=_string_flaw),
    },
    # The text's prose has the hyphen, its table the underscore.
    option_aliases={"user-properties": "user_properties"},
    special={
        "correlation_data": Option(
            "correlation_data",
            read=lambda type_, value: (as_text(value) if type_ in TEXTS else value,),
            write=lambda type_, value: (
                decoded(value) if isinstance(value, bytes) or type_ not in TEXTS else canonical(value).encode()
            ),
        )
    },
    keys=(("topic_name", ""),),
    target=lambda fields: fields.get("topic_name"),
    content_encodings=values_in("user_properties", "content-encoding"),
    address="topic_name",
    endpoint_address="topic",
    schemes=_SCHEMES,
    texts={"topic_name": _topic_flaw, "response_topic": _topic_flaw, "content_type": _string_flaw},
    pairs={"user_properties": (_string_flaw, _string_flaw)},
    problems=_problems,
    of_payload=frozenset({"payload_format_indicator"}),
    binding=Binding(
        protocol="MQTT/5.0",
        modes=(Mode.BINARY, Mode.STRUCTURED),
        attributes_in="user_properties",
        content_types=_content_types,
        fields=_fields,
        read_value=lambda text: text,
        write_value=_write_attribute,
        # The specification's own example repeats it among the user properties.
        repeats_content_type=True,
        # Without a prefix, id and type may be anybody's.
        marks=("specversion",),
    ),
)
MQTT3 = Protocol(
    name="MQTT/3.1.1",
    aliases=("mqtt/3",),
    fields=_FIELDS,
    options=_OPTIONS,
    keys=(("topic_name", ""),),
    target=lambda fields: fields.get("topic_name"),
    address="topic_name",
    endpoint_address="topic",
    schemes=_SCHEMES,
    texts={"topic_name": _topic_flaw},
    problems=_problems,
    binding=Binding(
        protocol="MQTT/3.1.1",
        modes=(Mode.STRUCTURED,),
        attributes_in="",
        content_types=lambda fields: [],
        fields=lambda content_type, pairs: {},
        read_value=lambda text: text,
        write_value=_write_attribute,
    ),
)
