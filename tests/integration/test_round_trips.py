"""Events and messages through real brokers: what arrives is what was sent."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from scripts.brokers import Broker
from signalbook.cloudevents import CloudEvent, Data, decode
from signalbook.protocols import (
    BINDINGS,
    Message,
    Mode,
    batch_from_http,
    batch_to_http,
    claims_event,
    from_message,
    mode_of,
    to_message,
)
from tests.cases import read_cases
from tests.integration import exchanges

BINARY, STRUCTURED = Mode.BINARY, Mode.STRUCTURED
BASE = {"specversion": "1.0", "source": "/orders", "type": "order.placed"}
BIG = os.urandom(100_000)
EVENTS = [
    *(decode(case.given) for case in read_cases("integration/events")),
    CloudEvent({**BASE, "id": "100 kB of bytes", "datacontenttype": "application/octet-stream"}, Data.binary(BIG)),
    CloudEvent({**BASE, "id": "100 kB of JSON"}, Data.json({"hex": BIG[:50_000].hex()})),
]
Exchange = Callable[[list[Message]], list[Message]]


def round_trip(protocol: str, mode: Mode, exchange: Exchange, **fields: Any) -> None:
    """Assert that every event arrives, in its mode, by meaning and with its payload's bytes."""
    events = [event for event in EVENTS if event.payload() != b"" or BINDINGS[protocol].tells_empty or mode != BINARY]
    sent = [to_message(event, protocol, mode, **fields) for event in events]
    for event, message, found in zip(events, sent, exchange(sent), strict=True):
        assert mode is mode_of(found), event.id
        assert claims_event(found)
        assert event == from_message(found), event.id
        assert (message.payload or b"") == (found.payload or b""), event.id
        assert event.payload() == from_message(found).payload(), event.id


def native(protocol: str) -> list[Message]:
    """Messages of the protocol that are no events."""
    return [Message.from_json(case.given) for case in read_cases("integration/messages") if protocol == case.expect]


def arrive(protocol: str, exchange: Exchange) -> None:
    """Assert that native messages arrive with all that the sender chose."""
    sent = native(protocol)
    assert sent
    for message, found in zip(sent, exchange(sent), strict=True):
        for name, value in message.fields.items():
            assert value == found.get(name), name
        assert message.payload == found.payload


modes = pytest.mark.parametrize("mode", [BINARY, STRUCTURED])


@modes
def test_http_requests(http_server: str, mode: Mode) -> None:
    """A server is sent the events."""
    round_trip("HTTP", mode, lambda sent: exchanges.by_http_request(http_server, sent), method="POST")


@modes
def test_http_responses(http_server: str, mode: Mode) -> None:
    """A server answers with the events."""
    round_trip("HTTP", mode, lambda sent: exchanges.by_http_response(http_server, sent), method="POST")


def test_http_batches(http_server: str) -> None:
    """All events in one request, and in one response."""
    batch = batch_to_http(EVENTS, method="POST")
    for exchange in (exchanges.by_http_request, exchanges.by_http_response):
        (arrived,) = exchange(http_server, [batch])
        assert batch.payload == arrived.payload
        assert batch_from_http(arrived) == EVENTS


@pytest.mark.broker("kafka")
@modes
def test_kafka(kafka_broker: Broker, mode: Mode) -> None:
    """Kafka gives the events back."""
    round_trip("KAFKA", mode, lambda sent: exchanges.by_kafka(kafka_broker, sent), key=b"k\xff")


@pytest.mark.broker("kafka")
def test_kafka_messages(kafka_broker: Broker) -> None:
    """Tombstones, null headers and repeated headers too."""
    arrive("KAFKA", lambda sent: exchanges.by_kafka(kafka_broker, sent))


@pytest.mark.broker("mosquitto")
@modes
def test_mqtt(mosquitto_broker: Broker, mode: Mode) -> None:
    """Mosquitto gives the events back over MQTT 5.0."""
    round_trip("MQTT/5.0", mode, lambda sent: exchanges.by_mqtt(mosquitto_broker, sent), qos=1)


@pytest.mark.broker("mosquitto")
def test_mqtt3(mosquitto_broker: Broker) -> None:
    """And over MQTT 3.1.1."""
    round_trip("MQTT/3.1.1", STRUCTURED, lambda sent: exchanges.by_mqtt(mosquitto_broker, sent), qos=1)


@pytest.mark.broker("mosquitto")
@pytest.mark.parametrize("protocol", ["MQTT/5.0", "MQTT/3.1.1"])
def test_mqtt_messages(mosquitto_broker: Broker, protocol: str) -> None:
    """Every property of a PUBLISH too, repeated user properties among them."""
    arrive(protocol, lambda sent: exchanges.by_mqtt(mosquitto_broker, sent))


@pytest.mark.broker("nats")
@pytest.mark.parametrize("exchange", [exchanges.by_nats, exchanges.by_jetstream])
@modes
def test_nats(nats_broker: Broker, mode: Mode, exchange: Callable[[Broker, list[Message]], list[Message]]) -> None:
    """NATS gives the events back, at once or from a stream."""
    round_trip("NATS", mode, lambda sent: exchange(nats_broker, sent))


@pytest.mark.broker("nats")
def test_nats_messages(nats_broker: Broker) -> None:
    """Replies and headers too."""
    arrive("NATS", lambda sent: exchanges.by_nats(nats_broker, sent))


@pytest.mark.broker("rabbitmq")
@modes
def test_amqp(rabbitmq_broker: Broker, mode: Mode) -> None:
    """RabbitMQ gives the events back over AMQP 1.0."""
    round_trip("AMQP/1.0", mode, lambda sent: exchanges.by_amqp(rabbitmq_broker, sent))


@pytest.mark.broker("rabbitmq")
def test_amqp_messages(rabbitmq_broker: Broker) -> None:
    """Values of every type, and bodies that are values or sequences, too."""
    arrive("AMQP/1.0", lambda sent: exchanges.by_amqp(rabbitmq_broker, sent))
