"""Example messages: each matches its own definition, or says why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signalbook.messages.catalog import Catalog
from signalbook.sources import open_source

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
XID = "/messagegroups/g/messages/m"


def catalog_of(definition: dict[str, Any]) -> Catalog:
    """A catalog of one definition."""
    return Catalog.from_documents({"messagegroups": {"g": {"messages": {"m": definition}}}})


def test_every_message_of_the_samples_is_found_again() -> None:
    """Each definition of the sample catalog has a sample, which the whole catalog matches with it."""
    with open_source(str(SAMPLES)) as source:
        catalog = source.catalog()
    for xid, definition in catalog.definitions.items():
        made = catalog.message(xid).sample()
        assert made.ok, made
        message = made.message or made.cloudevent
        assert message is not None
        assert definition.identity == catalog.match(message).definition


@pytest.mark.parametrize(
    "definition",
    [
        {},
        {"dataschemaformat": "JsonSchema/draft-07", "dataschema": {"type": "integer"}},
        {"envelope": "CloudEvents/1.0"},
        {
            "protocol": "AMQP/1.0",
            "protocoloptions": {"properties": {"message-id": {"type": "ulong", "required": True}}},
        },
        {"protocol": "MQTT/5.0", "protocoloptions": {"topic_name": "a/{b}{c}/{c}"}},
        {
            "protocol": "KAFKA",
            "protocoloptions": {"topic": "t", "headers": {"n": {"type": "number", "required": True}}},
        },
        {
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {
                **{
                    kind: {"type": kind, "required": True}
                    for kind in ("integer", "boolean", "timestamp", "uri", "uuid")
                },
                "time": {"type": "uritemplate", "value": "{at}"},
                "dataschema": {},
            },
        },
    ],
)
def test_a_sample(definition: dict[str, Any]) -> None:
    """Whatever a definition leaves open is filled in, and the same each time."""
    catalog = catalog_of(definition)
    made = catalog.message(XID).sample()
    assert made.ok, made.problems
    assert made == catalog.message(XID).sample()
    message = made.message or made.cloudevent
    assert message is not None
    assert "matched" == catalog.match(message).outcome.value


def test_no_payload_can_be_found() -> None:
    """Where no payload is found that the schema accepts, the sample says so."""
    never = {"type": "object", "required": ["x"], "properties": {"x": False}}
    made = catalog_of({"dataschemaformat": "JsonSchema/draft-07", "dataschema": never}).message(XID).sample()
    assert [("/data", "payload")] == [(one.path, one.code) for one in made.problems]
    assert "no payload was found" in made.problems[0].message


def test_a_schema_that_cannot_be_had() -> None:
    """The message is there without a payload, beside the problem; match then finds the definition by its key."""
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}},
        "dataschemaformat": "JsonSchema/draft-07",
        "dataschemauri": "/schemagroups/g/schemas/none",
    }
    catalog = catalog_of(definition)
    made = catalog.message(XID).sample()
    assert ["schema_unavailable"] == [one.code for one in made.problems]
    assert made.cloudevent is not None
    answer = catalog.match(made.cloudevent)
    assert ("nonconformant", XID) == (answer.outcome.value, answer.definition)


def test_a_definition_that_cannot_be_used() -> None:
    """A definition with a loop of bases has no sample."""
    made = catalog_of({"basemessage": XID}).message(XID).sample()
    assert [("/basemessage", "malformed")] == [(one.path, one.code) for one in made.problems]
    assert made.message is made.cloudevent is None


def test_a_topic_that_is_no_text_has_no_sample() -> None:
    """A sample is a message that can be read again, or says why there is none."""
    made = catalog_of({"protocol": "KAFKA", "protocoloptions": {"topic": 2024}}).message(XID).sample()
    assert [("/protocoloptions/topic", "type")] == [(one.path, one.code) for one in made.problems]


def test_a_definition_that_leaves_the_address_open() -> None:
    """Where the endpoint has the topic or subject, a sample has one of its own."""
    for protocol, field in (("KAFKA", "topic"), ("NATS", "subject"), ("MQTT/5.0", "topic_name")):
        catalog = catalog_of({"protocol": protocol})
        made = catalog.message(XID).sample().message
        assert made is not None
        assert "sample" == made.get(field)
        assert "matched" == catalog.match(made.to_bytes()).outcome
