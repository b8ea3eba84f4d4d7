"""What a message must be to be sent."""

from __future__ import annotations

import pytest

from signalbook.protocols import Message, WireError, address_of, sendable, sending_problems
from tests.cases import Case, cases


@cases("wire/sending")
def test_sending(case: Case) -> None:
    """What would be cut, changed, refused or misunderstood on its way is listed, each with its place."""
    message = Message.from_json(case.given)
    assert case.expect == [problem.path for problem in sending_problems(message)]
    if case.expect:
        with pytest.raises(WireError):
            sendable(message)
    else:
        assert message == sendable(message)


@pytest.mark.parametrize(
    ("fields", "payload", "path"),
    [
        ({"topic_name": "t" * 65_536}, None, "/topic_name"),
        ({"user_properties": (("a", "é" * 32_768),)}, None, "/user_properties/0/1"),
        ({"correlation_data": b"x" * 65_536}, None, "/correlation_data"),
        ({}, bytes(268_435_456), "/payload"),
    ],
    ids=["topic", "user property", "correlation data", "payload"],
)
def test_too_long(fields: dict[str, object], payload: bytes | None, path: str) -> None:
    """MQTT counts the bytes of strings and packets, and one too many is refused."""
    assert [path] == [problem.path for problem in sending_problems(Message("MQTT/5.0", fields, payload))]


@pytest.mark.parametrize(
    ("protocol", "field"),
    [
        ("KAFKA", "topic"),
        ("NATS", "subject"),
        ("MQTT/5.0", "topic_name"),
        ("MQTT/3.1.1", "topic_name"),
        ("HTTP", None),
        ("AMQP/1.0", None),
    ],
)
def test_where_a_message_goes(protocol: str, field: str | None) -> None:
    """A message of a topic or a subject cannot be sent without it; a connection may have the address of others."""
    assert field == address_of(protocol)
