"""What a message must be to be sent: one row a field, by protocol.

Rule 1: a message that was observed need not be so; one that is to be sent, and would be cut, changed, refused or
misunderstood by whoever carries it, is a `WireError` before.
Rule 2: only what is there is looked at. Which field a message cannot be sent without is `address_of`; HTTP and AMQP
have none, since a client may have the address from its connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from signalbook.errors import Problem
from signalbook.wire.http_headers import header_problems, is_token
from signalbook.wire.message import Message, WireError

__all__ = ["address_of", "sendable", "sending_problems"]

Check = Callable[[Any, str], Iterator[Problem]]

# RFC 3986, sections 3.3 and 3.4: what stands in a path and in a query; `&` and `=` part the pairs of the latter.
_is_path = re.compile(r"/(?:[/:@!$&'()*+,;=~\-._0-9A-Za-z]|%[0-9A-Fa-f]{2})*").fullmatch
_is_query_name = re.compile(r"(?:[/?:@!$'()*+,;~\-._0-9A-Za-z]|%[0-9A-Fa-f]{2})*").fullmatch
_is_query_value = re.compile(r"(?:[/?:@!$'()*+,;=~\-._0-9A-Za-z]|%[0-9A-Fa-f]{2})*").fullmatch
_is_kafka_topic = re.compile(r"[0-9A-Za-z._-]{1,249}").fullmatch
_LONGEST = 65_535  # bytes of a string or of binary data, MQTT 5.0 sections 1.5.4 and 1.5.6
_LARGEST = 268_435_455  # bytes of a packet, MQTT 5.0 section 2.1.4


def address_of(protocol: str) -> str | None:
    """The field that says where a message goes, where it must be there; None where it need not."""
    return _ADDRESSES.get(protocol)


def sendable(message: Message) -> Message:
    """The message, its fields under their own names and in their own types; raises `WireError` where it is not fit."""
    settled = message.settled()
    wrong = tuple(sending_problems(settled))
    if wrong:
        raise WireError(*wrong)
    return settled


def sending_problems(message: Message) -> Iterator[Problem]:
    """Why a settled message could not be sent as it is."""
    for name, check in _CHECKS[message.protocol].items():
        value = message.get(name)
        if value is not None:
            yield from check(value, f"/{name}")
    if message.protocol.startswith("MQTT") and message.payload is not None:
        yield from _mqtt_payload(message, message.payload)


def _wrong(path: str, words: str) -> Iterator[Problem]:
    yield Problem(path, "value", words)


# HTTP ----------------------------------------------------------------------------------------------------------------


def _method(value: str, path: str) -> Iterator[Problem]:
    if not is_token(value):
        yield from _wrong(path, "is no method: letters, digits and some marks make one")


def _path(value: str, path: str) -> Iterator[Problem]:
    if not _is_path(value):
        yield from _wrong(path, "must begin with a slash and have everything else percent-encoded")


def _query(value: tuple[tuple[str, str], ...], path: str) -> Iterator[Problem]:
    for index, (name, text) in enumerate(value):
        if not (_is_query_name(name) and _is_query_value(text)):
            yield from _wrong(f"{path}/{index}", "must be percent-encoded, & everywhere and = in the name too")


def _http_headers(value: tuple[tuple[str, str], ...], path: str) -> Iterator[Problem]:
    return header_problems(value, "latin-1")


# NATS ----------------------------------------------------------------------------------------------------------------


def _subject(value: str, path: str) -> Iterator[Problem]:
    """A subject is tokens joined by dots; a publisher's holds no wildcard and nothing that ends it on the line."""
    tokens = value.split(".")
    if any(character <= " " or character == "\x7f" for character in value):
        yield from _wrong(path, "holds white space or control characters, which end a subject")
    elif "" in tokens:
        yield from _wrong(path, "has nothing before, after or between its dots")
    elif "*" in tokens or ">" in tokens:
        yield from _wrong(path, "holds a wildcard, which is for subscribers")


def _nats_headers(value: tuple[tuple[str, str], ...], path: str) -> Iterator[Problem]:
    return header_problems(value, "utf-8")


# MQTT ----------------------------------------------------------------------------------------------------------------


def _topic(value: str, path: str) -> Iterator[Problem]:
    """MQTT 5.0 section 4.7: a topic name has a character, and no wildcard."""
    if not value:
        yield from _wrong(path, "is empty, and no topic")
    elif "+" in value or "#" in value:
        yield from _wrong(path, "holds a wildcard, which is for subscribers")
    else:
        yield from _string(value, path)


def _string(value: str, path: str) -> Iterator[Problem]:
    """MQTT 5.0 section 1.5.4."""
    if "\0" in value or len(value.encode()) > _LONGEST:
        yield from _wrong(path, f"holds U+0000, or more than {_LONGEST:,} bytes")


def _user_properties(value: tuple[tuple[str, str], ...], path: str) -> Iterator[Problem]:
    for index, pair in enumerate(value):
        for place, text in enumerate(pair):
            yield from _string(text, f"{path}/{index}/{place}")


def _binary(value: bytes, path: str) -> Iterator[Problem]:
    if len(value) > _LONGEST:
        yield from _wrong(path, f"has more than {_LONGEST:,} bytes")


def _mqtt_payload(message: Message, payload: bytes) -> Iterator[Problem]:
    if len(payload) > _LARGEST:
        yield from _wrong("/payload", f"has more than {_LARGEST:,} bytes")
    elif message.get("payload_format_indicator") == 1 and not _is_utf8(payload):
        yield from _wrong("/payload_format_indicator", "says that the payload is text, and it is not UTF-8")


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


# Kafka ---------------------------------------------------------------------------------------------------------------


def _kafka_topic(value: str, path: str) -> Iterator[Problem]:
    if not _is_kafka_topic(value) or value in (".", ".."):
        yield from _wrong(path, "is no topic: it has 1 to 249 letters, digits, dots, hyphens and underscores")


def _kafka_headers(value: tuple[tuple[str, bytes | None], ...], path: str) -> Iterator[Problem]:
    for index, (name, _) in enumerate(value):
        if "\0" in name:
            yield from _wrong(f"{path}/{index}/0", "holds U+0000, at which clients cut a name")


_ADDRESSES: Mapping[str, str] = {
    "KAFKA": "topic",
    "MQTT/3.1.1": "topic_name",
    "MQTT/5.0": "topic_name",
    "NATS": "subject",
}
_MQTT3: Mapping[str, Check] = {"topic_name": _topic}
_CHECKS: Mapping[str, Mapping[str, Check]] = {
    "HTTP": {"method": _method, "path": _path, "query": _query, "headers": _http_headers},
    "NATS": {"subject": _subject, "reply": _subject, "headers": _nats_headers},
    "MQTT/5.0": {
        **_MQTT3,
        "response_topic": _topic,
        "content_type": _string,
        "correlation_data": _binary,
        "user_properties": _user_properties,
    },
    "MQTT/3.1.1": _MQTT3,
    "KAFKA": {"topic": _kafka_topic, "headers": _kafka_headers},
    # The types of AMQP are the client's to write.
    "AMQP/1.0": {},
}
