"""A consumer on each real broker runs a `Dispatcher` over a mixed stream, and gets every count right."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from scripts.brokers import Broker
from signalbook.messages import Catalog, Delivery, Dispatcher
from signalbook.protocols import Message, Mode, to_message
from tests.integration import exchanges

COUNTS = {"placed": 4000, "paid": 3000, "nonconformant": 1500, "unexpected": 1000, "malformed": 500}
GROUP = "/messagegroups/orders/messages"
SCHEMA = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
CATALOG = Catalog.from_documents(
    {
        "messagegroups": {
            "orders": {
                "messages": {
                    name: {
                        "envelope": "CloudEvents/1.0",
                        "envelopemetadata": {"type": {"value": name}, "source": {"value": "/shops/{shop}"}},
                        "dataschemaformat": "JsonSchema/draft-07",
                        "dataschema": SCHEMA,
                    }
                    for name in ("placed", "paid")
                }
            }
        }
    }
)
Exchange = Callable[[list[Message]], list[Message]]


def stream(protocol: str, **fields: Any) -> list[Message]:
    """So many messages of each kind, in an order that is the same each time."""
    sent = [message for kind, count in COUNTS.items() for message in [_message(protocol, kind, fields)] * count]
    random.Random(1).shuffle(sent)
    return sent


def _message(protocol: str, kind: str, fields: dict[str, Any]) -> Message:
    name = kind if kind in ("placed", "paid") else "placed"
    built = CATALOG.message(f"{GROUP}/{name}").build(
        context={"shop": "s1"}, data={"total": 1}, attributes={"id": "1"}, protocol={"protocol": protocol, **fields}
    )
    assert built.cloudevent is not None
    assert built.message is not None
    if name == kind:
        return built.message
    event: dict[str, Any] = {**built.cloudevent.attributes, "data": {"total": 1}}
    event |= {"nonconformant": {"data": {"total": "x"}}, "unexpected": {"type": "other"}}.get(kind, {})
    if kind == "malformed":
        del event["id"]
    own = {name: built.message.get(name) for name in fields}
    carried = to_message(built.cloudevent, protocol, Mode.STRUCTURED, **own)
    return Message(protocol, carried.fields, json.dumps(event).encode())


def dispatched(protocol: str, exchange: Exchange, **fields: Any) -> None:
    """Assert that every message of the stream reaches its handler, or the sideline with its outcome."""
    reached: Counter[str] = Counter()
    dispatcher = Dispatcher(CATALOG, sideline=lambda delivery: reached.update([delivery.answer.outcome.value]))

    @dispatcher.on(f"{GROUP}/placed")
    def placed(delivery: Delivery) -> None:
        assert {"shop": "s1"} == dict(delivery.answer.context)
        reached["placed"] += 1

    @dispatcher.on(f"{GROUP}/*")
    def other(delivery: Delivery) -> None:
        reached[str(delivery.answer.definition).rpartition("/")[2]] += 1

    for message in exchange(stream(protocol, **fields)):
        dispatcher.dispatch(message)
    assert reached == COUNTS
    assert sum(COUNTS.values()) == sum(dispatcher.counts.values())


@pytest.mark.broker
def test_http(http_server: str) -> None:
    """Requests to a real server."""
    dispatched("HTTP", lambda sent: exchanges.by_http_request(http_server, sent), method="POST")


@pytest.mark.broker("kafka")
def test_kafka(kafka_broker: Broker) -> None:
    """Records of a topic."""
    dispatched("KAFKA", lambda sent: exchanges.by_kafka(kafka_broker, sent), topic="orders")


@pytest.mark.broker("rabbitmq")
def test_amqp(rabbitmq_broker: Broker) -> None:
    """Messages of a queue."""
    dispatched("AMQP/1.0", lambda sent: exchanges.by_amqp(rabbitmq_broker, sent))


@pytest.mark.broker("mosquitto")
@pytest.mark.parametrize("version", ["MQTT/5.0", "MQTT/3.1.1"])
def test_mqtt(mosquitto_broker: Broker, version: str) -> None:
    """Messages of a topic, in both versions."""
    dispatched(version, lambda sent: exchanges.by_mqtt(mosquitto_broker, sent), topic_name="t", qos=1)


@pytest.mark.broker("nats")
def test_nats(nats_broker: Broker) -> None:
    """Messages of a subject."""
    dispatched("NATS", lambda sent: exchanges.by_nats(nats_broker, sent), subject="orders")
