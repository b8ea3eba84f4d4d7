"""Example messages: each matches its own definition, or says why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signalbook.messages.catalog import Catalog
from signalbook.protocols import Message
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
                "time": {},
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


@pytest.mark.parametrize("protocol", [{}, {"protocol": "None"}])
def test_a_sample_without_protocol_and_envelope(protocol: dict[str, Any]) -> None:
    """An example of a definition that names no protocol says which one it was given, and matches over others too."""
    schema = {"dataschemaformat": "JsonSchema/draft-07", "dataschema": {"type": "integer"}}
    catalog = catalog_of({**protocol, **schema})
    made = catalog.message(XID).sample()
    assert made.message is not None
    assert ("HTTP", "HTTP") == (made.carrier, made.to_json()["carrier"])
    over_kafka = Message("KAFKA", {"topic": "t"}, made.message.payload)
    assert [XID, XID] == [catalog.match(message).definition for message in (made.message, over_kafka)]


def test_a_sample_of_a_protocol_has_no_carrier() -> None:
    """An example of a definition that names its protocol or envelope says nothing of a carrier."""
    for definition in ({"protocol": "HTTP"}, {"envelope": "CloudEvents/1.0"}):
        assert "" == catalog_of(definition).message(XID).sample().carrier


def test_no_payload_can_be_found() -> None:
    """Where no payload is found that the schema accepts, the sample says so."""
    never = {"type": "object", "required": ["x"], "properties": {"x": False}}
    made = catalog_of({"dataschemaformat": "JsonSchema/draft-07", "dataschema": never}).message(XID).sample()
    assert [("/data", "payload")] == [(one.path, one.code) for one in made.problems]
    assert "no payload was found" in made.problems[0].message


def test_a_schema_that_cannot_be_had() -> None:
    """A definition whose schema is to be in this catalog and is not has no sample, and the problem says so."""
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}},
        "dataschemaformat": "JsonSchema/draft-07",
        "dataschemauri": "/schemagroups/g/schemas/none",
    }
    made = catalog_of(definition).message(XID).sample()
    assert ["schema_unavailable"] == [one.code for one in made.problems]
    assert (None, None) == (made.cloudevent, made.message)


def test_what_is_inferred_is_in_a_sample() -> None:
    """The content type that the schema's format implies is in a sample, also where it is required without a value."""
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {
            "type": {"value": "t"},
            "datacontenttype": {"required": True},
            "dataschema": {"required": True},
        },
        "dataschemaformat": "XSD/1.0",
        "dataschemauri": "https://example.com/t.xsd",
    }
    catalog = catalog_of(definition)
    made = catalog.message(XID).sample()
    assert made.cloudevent is not None
    assert ((), ()) == (made.problems, made.unchecked)  # it has no payload
    found = made.cloudevent.attributes
    assert ("application/xml", "https://example.com/t.xsd") == (found["datacontenttype"], found["dataschema"])
    assert ("matched", ()) == (catalog.match(made.cloudevent).outcome, catalog.match(made.cloudevent).unchecked)


def test_what_is_inferred_is_in_a_sample_without_payload() -> None:
    """A schema that lies elsewhere leaves a sample without payload, and its format still implies a content type."""
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}},
        "dataschemaformat": "JsonSchema/draft-07",
        "dataschemauri": "https://example.com/t.json",
    }
    made = catalog_of(definition).message(XID).sample()
    assert made.cloudevent is not None
    assert "application/json" == made.cloudevent.attributes["datacontenttype"]


def test_a_framed_payload_has_a_sample() -> None:
    """The sample of a definition that declares Confluent's framing is framed, and matches."""
    for format, text in (
        ("Avro/1.11", {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}),
        ("Protobuf/3", 'syntax = "proto3"; message A { message B { int32 n = 1; } }'),
        ("JsonSchema/draft-07", {"type": "integer"}),
    ):
        definition = {
            "protocol": "KAFKA",
            "protocoloptions": {"topic": "t"},
            "dataschemaformat": format,
            "dataschema": text,
            "dataschemaframing": "confluent",
        }
        catalog = catalog_of(definition)
        made = catalog.message(XID).sample()
        assert made.message is not None, made.problems
        assert b"\0\0\0\0\1" == (made.message.payload or b"")[:5]
        assert 1 == catalog.match(made.message).schemaid


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


@pytest.mark.parametrize("protocol", ["None", "none"])
def test_the_protocol_none_makes_a_bare_event(protocol: str) -> None:
    """A definition whose protocol is "None" has none: it is built as a bare event, which matches it first of all."""
    metadata = {"type": {"value": "a.b"}, "source": {"value": "/s"}}
    base = {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata}
    bound = {**base, "protocol": "KAFKA", "protocoloptions": {"topic": "t"}}
    messages = {"m": {**base, "protocol": protocol}, "bound": bound}
    catalog = Catalog.from_documents({"messagegroups": {"g": {"messages": messages}}})
    made = catalog.message(XID).sample()
    assert made.ok
    assert made.message is None
    assert made.cloudevent is not None
    assert catalog.match(made.cloudevent).definition == XID


def test_a_protocol_that_nobody_knows_is_quoted() -> None:
    """What cannot be built names the protocol in quotes, and those that can be built for."""
    made = catalog_of({"protocol": "BunnyMQ/0.9.1"}).message(XID).build()
    assert made.problems[0].message.startswith('"BunnyMQ/0.9.1" is not a protocol that can be')


@pytest.mark.parametrize("place", ["messagegroups", "endpoints"])
def test_a_sample_has_the_protocol_and_the_envelope_of_its_group(place: str) -> None:
    """The sample of a definition that names neither is a message of its group, which `origins` names."""
    group = {"protocol": "KAFKA", "envelope": "CloudEvents/1.0", "messages": {"m": {}}}
    catalog = Catalog.from_documents({place: {"k": group}})
    handle = catalog.message(f"/{place}/k/messages/m")
    made = handle.sample()
    assert (made.problems, made.message and made.message.protocol) == ((), "KAFKA")
    assert made.message is not None
    assert made.cloudevent is not None
    assert (catalog.match(made.message).definition, catalog.match(made.cloudevent).definition) == (handle.xid,) * 2
    assert handle.definition.origins() == {"/envelope": f"/{place}/k", "/protocol": f"/{place}/k"}
    refused = handle.build(protocol="HTTP", attributes={"source": "/s", "type": "t"})
    assert ("/protocol", "protocol") in [(one.path, one.code) for one in refused.problems]
