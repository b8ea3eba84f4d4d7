"""What a constraint says, in words."""

from __future__ import annotations

from typing import Any

import pytest

from signalbook.messages import Catalog

EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


def said(stated: dict[str, Any], value: Any) -> list[str]:
    """The words about an extension attribute."""
    metadata = {"type": {"value": "t"}, "x": stated}
    document = {"m": {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata}}
    catalog = Catalog.from_documents({"messagegroups": {"g": {"messages": document}}})
    return [one.message for one in catalog.match({**EVENT, "x": value}).problems]


@pytest.mark.parametrize(
    ("stated", "value", "expected"),
    [
        ({"type": "string"}, 5, "x is 5, which is not a valid string"),
        ({"type": "string"}, True, "x is true, which is not a valid string"),
        ({"type": "integer"}, "5", 'x is "5", which is not a valid integer'),
        ({"type": "integer", "value": 5}, 6, "x must be 5, not 6"),
        ({"type": "boolean", "value": True}, False, "x must be true, not false"),
        ({"type": "string", "value": "5"}, "6", 'x must be "5", not "6"'),
    ],
)
def test_words(stated: dict[str, Any], value: Any, expected: str) -> None:
    """A text stands in quotes, a number or a boolean as JSON has it."""
    assert [expected] == said(stated, value)


@pytest.mark.parametrize(
    ("paper", "expected"),
    [
        ({"protocol": "KAFKA", "topic": 5}, [("/topic", "must be a text")]),
        (
            {"protocol": "SMTP"},
            [("/protocol", '"SMTP" is not a protocol; use one of HTTP, AMQP/1.0, MQTT/5.0, MQTT/3.1.1, KAFKA, NATS')],
        ),
        (
            {"protocol": "NATS", "topik": "a"},
            [("/topik", "is not a field of NATS; it has subject, reply, headers")],
        ),
    ],
)
def test_words_about_paper(paper: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    """What is wrong with a field of a message on paper is said of that field."""
    answer = Catalog.from_documents({}).match(paper)
    assert ("malformed", expected) == (answer.outcome, [(one.path, one.message) for one in answer.problems])
