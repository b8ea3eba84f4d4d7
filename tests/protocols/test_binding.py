from __future__ import annotations

import json
from typing import Any

import pytest

from signalbook.cloudevents import CloudEvent, CloudEventError, Data, Kind, decode, encode_batch
from signalbook.protocols import (
    Message,
    Mode,
    WireError,
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
from tests.cases import Case, cases

BASE = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
EVENT = CloudEvent.create({**BASE, "n": 5, "partitionkey": "é"}, {"a": 1})


@cases("cloudevents/messages")
def test_messages(case: Case) -> None:
    """A message on paper is the event it says, in the mode its content type says, or has these problems."""
    message = Message.from_json(case.given)
    if "problems" in case.expect:
        with pytest.raises(CloudEventError) as rejected:
            from_message(message)
        assert case.expect["problems"] == [[problem.path, problem.code] for problem in rejected.value.problems]
        return
    event = from_message(message)
    assert case.expect["attributes"] == dict(event.attributes)
    assert str(case.expect["attributes"]) == str({name: event[name] for name in case.expect["attributes"]})
    found = ("absent", "") if event.data is None else (event.data.kind, event.data.content.decode())
    assert (case.expect["kind"], case.expect["content"]) == found
    assert case.expect["mode"] == mode_of(message)
    assert claims_event(message)


@cases("cloudevents/features")
def test_features(case: Case) -> None:
    """What the public conformance features ask of HTTP and Kafka: attributes and JSON data as they were sent."""
    event = from_message(Message.from_json(json.dumps(case.given)))
    assert case.expect["attributes"] == dict(event.attributes)
    assert case.expect["data"] == event.value()


def fields(message: Message) -> dict[str, Any]:
    """A message's fields as a plain dict."""
    return dict(message.fields)


def test_http() -> None:
    """HTTP: ce- headers and the content type, or the JSON text; the caller's own headers stay."""
    binary = to_http(EVENT, method="POST", path="/x", headers=(("x", "1"), ("Content-Type", "application/json")))
    assert {
        "method": "POST",
        "path": "/x",
        "headers": (
            ("x", "1"), ("content-type", "application/json"), ("ce-specversion", "1.0"), ("ce-id", "1"),
            ("ce-source", "/s"), ("ce-type", "t"), ("ce-n", "5"), ("ce-partitionkey", "%C3%A9"),
        ),
    } == fields(binary)  # fmt: skip
    assert b'{"a":1}' == binary.payload
    assert EVENT == from_http(binary)
    structured = to_http(EVENT, "structured")
    assert {"headers": (("content-type", "application/cloudevents+json"),)} == fields(structured)
    assert EVENT == from_http(structured)


def test_http_batches() -> None:
    """A batch has its own content type; one event is not a batch and a batch is not an event."""
    message = batch_to_http([EVENT, EVENT], method="PUT")
    assert (("content-type", "application/cloudevents-batch+json"),) == message.get("headers")
    assert [EVENT, EVENT] == batch_from_http(message) == list(events_of(message))
    with pytest.raises(CloudEventError, match="R37"):
        batch_from_http(to_http(EVENT, "structured"))
    with pytest.raises(CloudEventError, match="R4"):
        batch_from_http(Message("HTTP", {"headers": (("content-type", "application/cloudevents-batch+avro"),)}))
    with pytest.raises(CloudEventError, match="batch"):
        to_http(EVENT, "batch")
    broken = Message("HTTP", {"headers": (("content-type", "application/cloudevents-batch+json"),)}, b"[1")
    assert ["R1"] == [error.rule for error in events_of(broken) if isinstance(error, CloudEventError)]
    kafka = Message(
        "KAFKA", {"headers": (("content-type", b"application/cloudevents-batch+json"),)}, encode_batch([EVENT])
    )
    assert ["R37"] == [error.rule for error in events_of(kafka) if isinstance(error, CloudEventError)]


def test_kafka() -> None:
    """Kafka: ce_ headers in UTF-8, the caller's key or a mapper's, and no data as a null value."""
    message = to_kafka(EVENT, topic="t", key=b"k", headers=(("x", None),))
    assert b"k" == message.get("key")
    assert [("x", None), ("content-type", b"application/json")] == list(message.get("headers"))[:2]
    assert ["é".encode()] == message.values("headers", "ce_partitionkey")
    assert EVENT == from_kafka(message)
    assert "é".encode() == to_kafka(EVENT, key_mapper=partition_key).get("key")
    assert None is partition_key(CloudEvent(BASE))
    assert None is to_kafka(CloudEvent(BASE), key_mapper=partition_key).payload


def test_amqp() -> None:
    """AMQP: values in their own types, timestamps as the text they are; the caller's sections stay."""
    event = EVENT.with_attributes(time="2018-04-05T17:31:00+02:00", raw=b"\x01", flag=True)
    message = to_amqp(event, properties={"to": "q"}, application_properties={"x": 1})
    assert {"to": "q", "content-type": "application/json"} == message.get("properties")
    carried = message.get("application-properties")
    assert (1, 5, b"\x01", True) == tuple(
        carried[name] for name in ("x", *(f"cloudEvents:{n}" for n in ("n", "raw", "flag")))
    )
    assert "2018-04-05T17:31:00+02:00" == carried["cloudEvents:time"]
    assert event == from_amqp(message)
    assert event == from_amqp(to_amqp(event, "structured"))
    assert {} == to_amqp(CloudEvent(BASE)).get("properties", {})


def test_mqtt() -> None:
    """MQTT: user properties without a prefix in 5.0, and nothing but JSON in 3.1.1."""
    message = to_mqtt(EVENT, topic_name="t", qos=1)
    assert ("n", "5") in message.get("user_properties")
    assert EVENT == from_mqtt(message)
    old = to_mqtt(EVENT, version="3.1.1", topic_name="t")
    assert {"topic_name": "t"} == fields(old)
    assert EVENT == from_mqtt(old)
    with pytest.raises(CloudEventError, match="structured mode"):
        to_mqtt(EVENT, "binary", version="3.1.1")
    with pytest.raises(CloudEventError, match="MQTT 4"):
        to_mqtt(EVENT, version="4")
    long = EVENT.with_attributes(ext="é" * 40_000)
    with pytest.raises(CloudEventError, match="65,535"):
        to_mqtt(long)
    assert long == from_mqtt(to_mqtt(long, "structured"))
    fits = EVENT.with_attributes(ext="e" * 40_000)
    assert fits == from_mqtt(to_mqtt(fits))


def test_nats() -> None:
    """NATS: the JSON text, or headers where binary mode is asked for."""
    assert {"subject": "s"} == fields(to_nats(EVENT, subject="s"))
    assert EVENT == from_nats(to_nats(EVENT))
    binary = to_nats(EVENT, "binary", headers=(("x", "1"),))
    assert ("ce-datacontenttype", "application/json") in binary.get("headers")
    assert EVENT == from_nats(binary)
    bare = CloudEvent(BASE)
    assert bare == from_nats(to_nats(bare, "binary"))


@pytest.mark.parametrize("protocol", ["HTTP", "AMQP/1.0", "MQTT/5.0", "NATS"])
def test_zero_bytes_are_not_lost(protocol: str) -> None:
    """Zero bytes of data, which these bindings would read as no data, are rejected in binary mode (R41)."""
    event = CloudEvent(BASE, Data.binary(b""))
    with pytest.raises(CloudEventError, match="R41"):
        to_message(event, protocol, "binary")
    assert event == from_message(to_message(event, protocol, "structured"))
    assert event == from_kafka(to_kafka(event))


def test_an_event_as_data_is_not_taken_for_the_event() -> None:
    """Data that is itself an event cannot travel in binary mode, where its type would say structured (R38)."""
    event = CloudEvent({**BASE, "datacontenttype": "application/cloudevents+json"}, Data.json({}))
    with pytest.raises(CloudEventError, match="R38"):
        to_http(event)
    assert event == from_http(to_http(event, "structured"))


def test_own_fields_do_not_become_attributes() -> None:
    """Metadata of the caller that would be read as an attribute is rejected (R39)."""
    for to, metadata in (
        (to_http, {"headers": (("CE-X", "1"),)}),
        (to_mqtt, {"user_properties": (("tenant", "1"),)}),
        (to_amqp, {"application_properties": {"cloudEvents:x": 1}}),
    ):
        with pytest.raises(CloudEventError, match="would become an attribute"):
            to(EVENT, "binary", **metadata)


@cases("cloudevents/own_fields")
def test_own_fields(case: Case) -> None:
    """The caller's own fields go along, or are rejected where the event would hide them or be changed by them."""
    mode, message = case.given["mode"], Message.from_json(case.given["message"])
    if isinstance(case.expect, str):
        with pytest.raises(CloudEventError, match=case.expect):
            to_message(EVENT, message.protocol, mode, **message.fields)
        return
    made = to_message(EVENT, message.protocol, mode, **message.fields)
    for name, value in case.expect.items():
        assert value == made.to_json()[name]
    assert EVENT == from_message(made)


def test_a_batch_has_its_own_content_type() -> None:
    """A batch keeps the caller's fields, and rejects another content type."""
    made = batch_to_http([EVENT], headers={"x": "1"}, path="/in")
    assert (("x", "1"), ("content-type", "application/cloudevents-batch+json")) == made.get("headers")
    with pytest.raises(CloudEventError, match="R39"):
        batch_to_http([EVENT], headers={"Content-Type": "application/cloudevents+json"})


def test_older_spellings() -> None:
    """Fields and protocols are known by their other spellings too."""
    assert "in.box" == to_message(EVENT, "nats", subject="ok", **{"reply-to": "in.box"}).get("reply")
    assert 1 == to_message(EVENT, "mqtt", payload_format=1).get("payload_format_indicator")
    assert {"a": 1} == to_message(EVENT, "amqp", "structured", message_annotations={"a": 1}).get("message-annotations")


@pytest.mark.parametrize(
    ("protocol", "fields", "path"),
    [("KAFKA", {"nope": 1}, "/nope"), ("KAFKA", {"key": 5}, "/key"), ("FOO", {}, "/protocol")],
)
def test_fields_that_there_are_not(protocol: str, fields: dict[str, Any], path: str) -> None:
    """A protocol or field that there is not, or a value of another type, is rejected with its place."""
    with pytest.raises(WireError) as rejected:
        to_message(EVENT, protocol, **fields)
    assert [path] == [problem.path for problem in rejected.value.problems]


def test_text_goes_out_in_its_charset() -> None:
    """Text becomes the bytes that its content type says, and is rejected where it cannot (R31)."""
    event = CloudEvent({**BASE, "datacontenttype": "text/plain; charset=utf-16-be"}, Data.text("é"))
    message = to_http(event)
    assert b"\x00\xe9" == message.payload
    assert event == from_http(message)
    for charset, text in (("latin-1", "€"), ("no-such", "x")):
        lost = CloudEvent({**BASE, "datacontenttype": f"text/plain; charset={charset}"}, Data.text(text))
        with pytest.raises(CloudEventError, match="R31"):
            to_http(lost)
        assert lost == decode(to_http(lost, "structured").payload or b"")
        assert lost != lost.with_data(Data.binary(b"x"))


@pytest.mark.parametrize(
    ("given", "claims"),
    [
        ({"protocol": "HTTP", "headers": [["content-type", "application/json"]], "payload": "{}"}, False),
        ({"protocol": "HTTP", "headers": [["ce-type", "t"]]}, True),
        ({"protocol": "HTTP", "headers": [["ce-other", "t"]]}, False),
        ({"protocol": "HTTP", "headers": [["content-type", "application/cloudevents+avro"]]}, True),
        ({"protocol": "MQTT/5.0", "user_properties": [["id", "1"], ["type", "t"]]}, False),
        ({"protocol": "MQTT/5.0", "user_properties": [["specversion", "2.0"]]}, True),
        ({"protocol": "MQTT/3.1.1", "payload": '{"specversion": 1}'}, True),
        ({"protocol": "MQTT/3.1.1", "payload": "21.5"}, False),
        ({"protocol": "NATS", "payload": '{"id": 1}'}, False),
        ({"protocol": "NATS", "payload": ' {"specversion": "1.0"}'}, True),
        ({"protocol": "NATS"}, False),
        ({"protocol": "AMQP/1.0", "application-properties": {"cloudEvents:id": 1}}, True),
        ({"protocol": "KAFKA", "headers": [["ce_id", None]]}, True),
    ],
)
def test_claims(given: dict[str, Any], claims: bool) -> None:
    """Which messages say that they are events, valid or not."""
    assert claims is claims_event(Message.from_json(given))


def test_broken_json_is_said_when_it_is_read() -> None:
    """A body that is not the JSON its content type says is kept, and rejected when its value is asked for (R41)."""
    message = Message(
        "HTTP", {"headers": (*((f"ce-{n}", v) for n, v in BASE.items()), ("content-type", "text/json"))}, b"x"
    )
    event = from_http(message)
    assert event.data is not None
    assert (Kind.JSON, b"x", False) == (event.data.kind, event.data.content, event.data.is_readable())
    with pytest.raises(CloudEventError, match="R41"):
        event.value()
    assert event == from_http(to_http(event))
    assert Mode.BINARY is mode_of(message)
