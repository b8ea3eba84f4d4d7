"""What a message must be to be sent: one row a field, by protocol.

Rule 1: a message that was observed need not be so; one that is to be sent, and would be cut, changed, refused or
misunderstood by whoever carries it, is a `WireError` before.
Rule 2: only what is there is looked at. Which field a message cannot be sent without is `address_of`; HTTP and AMQP
have none, since a client may have the address from its connection.
Rule 3: what is wrong with a text at a place is said by one test of that place (`text_flaw`, `pair_flaws`): what no
message can be sent with, no definition may demand either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from signalbook.errors import Problem
from signalbook.protocols.fields import line_flaw, method_flaw, name_flaw
from signalbook.protocols.message import Message, WireError

__all__ = ["Flaw", "address_of", "pair_flaws", "sendable", "sending_problems", "text_flaw"]

# What is wrong with a text, in words that follow its name; None where nothing is.
Flaw = Callable[[str], str | None]

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


def text_flaw(protocol: str, field: str) -> Flaw | None:
    """The test of a field that holds one text; None where a protocol sends any."""
    return _TEXTS[protocol].get(field)


def pair_flaws(protocol: str, field: str) -> tuple[Flaw | None, Flaw | None]:
    """The tests of the names and of the values in a field that holds pairs; None where a protocol sends any."""
    return _PAIRS[protocol].get(field, (None, None))


def sending_problems(message: Message) -> Iterator[Problem]:
    """Why a settled message could not be sent as it is."""
    for field, test in _TEXTS[message.protocol].items():
        yield from _wrong(test, message.get(field), f"/{field}")
    for field, tests in _PAIRS[message.protocol].items():
        for index, pair in enumerate(message.get(field) or ()):
            found = [
                problem
                for place, (test_of, text) in enumerate(zip(tests, pair, strict=True))
                for problem in _wrong(test_of, text, f"/{field}/{index}" + ("" if field == "query" else f"/{place}"))
            ]
            yield from found[:1] if field == "query" else found  # a parameter is told as one
    if message.protocol.startswith("MQTT"):
        yield from _mqtt_binary(message)


def _wrong(test: Flaw | None, text: Any, path: str) -> Iterator[Problem]:
    words = test(text) if test is not None and text is not None else None
    if words is not None:
        yield Problem(path, "value", words)


# HTTP ----------------------------------------------------------------------------------------------------------------


def _path(text: str) -> str | None:
    return None if _is_path(text) else "must begin with a slash and have everything else percent-encoded"


def _query_name(text: str) -> str | None:
    return None if _is_query_name(text) else "must have a name that is percent-encoded, & and = too"


def _query_value(text: str) -> str | None:
    return None if _is_query_value(text) else "must be percent-encoded, & too"


# NATS ----------------------------------------------------------------------------------------------------------------


def _subject(text: str) -> str | None:
    """A subject is tokens joined by dots; a publisher's holds no wildcard and nothing that ends it on the line."""
    tokens = text.split(".")
    if any(character <= " " or character == "\x7f" for character in text):
        return "must not have white space or control characters, which end a subject"
    if "" in tokens:
        return "must have something before, after and between its dots"
    return "must not have wildcards, which are for subscribers" if "*" in tokens or ">" in tokens else None


# MQTT ----------------------------------------------------------------------------------------------------------------


def _topic(text: str) -> str | None:
    """MQTT 5.0 section 4.7: a topic name has a character, and no wildcard."""
    if not text:
        return "must not be empty"
    return "must not have wildcards, which are for subscribers" if "+" in text or "#" in text else _string(text)


def _string(text: str) -> str | None:
    """MQTT 5.0 section 1.5.4."""
    return f"must not have U+0000, nor more than {_LONGEST:,} bytes" if "\0" in text or _is_long(text) else None


def _is_long(text: str) -> bool:
    return len(text) > _LONGEST or len(text.encode(errors="replace")) > _LONGEST


def _mqtt_binary(message: Message) -> Iterator[Problem]:
    data, payload = message.get("correlation_data"), message.payload
    if data is not None and len(data) > _LONGEST and message.protocol == "MQTT/5.0":
        yield Problem("/correlation_data", "value", f"must not have more than {_LONGEST:,} bytes")
    if payload is None:
        return
    if len(payload) > _LARGEST:
        yield Problem("/payload", "value", f"has more than {_LARGEST:,} bytes")
    elif message.get("payload_format_indicator") == 1 and not _is_utf8(payload):
        yield Problem("/payload_format_indicator", "value", "says that the payload is text, and it is not UTF-8")


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


# Kafka ---------------------------------------------------------------------------------------------------------------


def _kafka_topic(text: str) -> str | None:
    if _is_kafka_topic(text) and text not in (".", ".."):
        return None
    return "must be a topic, which has 1 to 249 letters, digits, dots, hyphens and underscores"


def _kafka_name(text: str) -> str | None:
    return "must have a name without U+0000, at which clients cut it" if "\0" in text else None


_ADDRESSES: Mapping[str, str] = {
    "KAFKA": "topic",
    "MQTT/3.1.1": "topic_name",
    "MQTT/5.0": "topic_name",
    "NATS": "subject",
}
# The types of AMQP are the client's to write.
_TEXTS: Mapping[str, Mapping[str, Flaw]] = {
    "HTTP": {"method": method_flaw, "path": _path},
    "NATS": {"subject": _subject, "reply": _subject},
    "MQTT/5.0": {"topic_name": _topic, "response_topic": _topic, "content_type": _string},
    "MQTT/3.1.1": {"topic_name": _topic},
    "KAFKA": {"topic": _kafka_topic},
    "AMQP/1.0": {},
}
_PAIRS: Mapping[str, Mapping[str, tuple[Flaw | None, Flaw | None]]] = {
    "HTTP": {"query": (_query_name, _query_value), "headers": (name_flaw, line_flaw("latin-1"))},
    "NATS": {"headers": (name_flaw, line_flaw("utf-8"))},
    "MQTT/5.0": {"user_properties": (_string, _string)},
    "MQTT/3.1.1": {},
    "KAFKA": {"headers": (_kafka_name, None)},
    "AMQP/1.0": {},
}
