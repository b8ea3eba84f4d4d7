"""Messages through a real broker and a real client: what is sent, and what arrives of it, in its order.

Each function sends every message and gives those that arrived, as many as were sent.
"""

from __future__ import annotations

import asyncio
import queue
import uuid
from typing import Any

import confluent_kafka
import httpx
import nats as nats_client
from paho.mqtt.client import CallbackAPIVersion, Client, MQTTMessage, MQTTv5, MQTTv311

from scripts.brokers import Broker
from signalbook.clients import http, kafka, mqtt, nats
from signalbook.protocols import Message

__all__ = [
    "_with",
    "by_amqp",
    "by_http_request",
    "by_http_response",
    "by_jetstream",
    "by_kafka",
    "by_mqtt",
    "by_nats",
]

SECONDS = 60


def _with(message: Message, **fields: Any) -> Message:
    """The message with more fields of its protocol."""
    return Message(message.protocol, {**message.fields, **fields}, message.payload)


def _fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex}"


def by_http_request(address: str, messages: list[Message]) -> list[Message]:
    """Requests, as a server saw them."""
    with httpx.Client(timeout=SECONDS) as client:
        seen = [client.send(http.to_request(_with(message, path="/seen"), address)) for message in messages]
        return [Message.from_json(response.raise_for_status().content) for response in seen]


def by_http_response(address: str, messages: list[Message]) -> list[Message]:
    """Responses of a server, as a client saw them."""
    with httpx.Client(timeout=SECONDS) as client:
        sent = (http.to_request(_with(message, path="/back"), address) for message in messages)
        return [http.response_to_paper(client.send(request).raise_for_status()) for request in sent]


def by_kafka(broker: Broker, messages: list[Message]) -> list[Message]:
    """Records through a topic of their own."""
    topic = _fresh("orders")
    failures: list[object] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.address})
    for message in messages:
        producer.produce(
            **kafka.publish_args(_with(message, topic=topic)),
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert 0 == producer.flush(SECONDS)
    assert [] == failures
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.address, "group.id": topic})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
        records = consumer.consume(len(messages), SECONDS)
        return [kafka.to_paper(record) for record in records]
    finally:
        consumer.close()


def by_mqtt(broker: Broker, messages: list[Message]) -> list[Message]:
    """Messages of one version of MQTT through a topic of their own."""
    topic = _fresh("orders")
    arrived: queue.Queue[MQTTMessage] = queue.Queue()
    subscribed: queue.Queue[None] = queue.Queue()
    version = MQTTv5 if messages[0].protocol == "MQTT/5.0" else MQTTv311
    client = Client(CallbackAPIVersion.VERSION2, protocol=version)
    client.on_message = lambda client, data, message: arrived.put(message)
    client.on_subscribe = lambda *_: subscribed.put(None)
    client.on_connect = lambda *_: client.subscribe(topic, qos=2)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    try:
        subscribed.get(timeout=SECONDS)
        found = []
        for message in messages:  # one by one, because messages of different quality of service overtake each other
            client.publish(**mqtt.publish_args(_with(message, topic_name=topic)))
            found.append(mqtt.to_paper(arrived.get(timeout=SECONDS)))
        return found
    finally:
        client.disconnect()
        client.loop_stop()


def by_nats(broker: Broker, messages: list[Message]) -> list[Message]:
    """Messages through a subject of their own."""

    async def exchange() -> list[Message]:
        subject = _fresh("orders")
        client = await nats_client.connect(f"nats://{broker.address}")
        try:
            subscription = await client.subscribe(subject)
            for message in messages:
                await client.publish(**nats.publish_args(_with(message, subject=subject)))
            return [nats.to_paper(await subscription.next_msg(SECONDS)) for _ in messages]
        finally:
            await client.close()

    return asyncio.run(exchange())


def by_jetstream(broker: Broker, messages: list[Message]) -> list[Message]:
    """Messages through a stream of their own, each acknowledged."""

    async def exchange() -> list[Message]:
        subject = _fresh("orders")
        client = await nats_client.connect(f"nats://{broker.address}")
        try:
            stream = client.jetstream()
            await stream.add_stream(name=subject, subjects=[subject])
            for message in messages:
                await stream.publish(**nats.publish_args(_with(message, subject=subject)))
            subscription = await stream.pull_subscribe(subject, durable="reader")
            arrived = []
            while len(arrived) < len(messages):
                for found in await subscription.fetch(len(messages) - len(arrived), timeout=SECONDS):
                    arrived.append(nats.to_paper(found))
                    await found.ack()
            return arrived
        finally:
            await client.close()

    return asyncio.run(exchange())


def by_amqp(broker: Broker, messages: list[Message]) -> list[Message]:
    """Messages through a queue of their own."""
    from proton.utils import BlockingConnection

    from signalbook.clients import amqp

    address = f"/queue/{_fresh('orders')}"
    connection = BlockingConnection(
        f"amqp://guest:guest@{broker.address}", timeout=SECONDS, allowed_mechs="PLAIN", allow_insecure_mechs=True
    )
    try:
        sender = connection.create_sender(address)
        for message in messages:
            sender.send(amqp.to_client(message))
        receiver = connection.create_receiver(address, credit=len(messages))
        arrived = []
        for _ in messages:
            arrived.append(amqp.to_paper(receiver.receive(SECONDS)))
            receiver.accept()
        return arrived
    finally:
        connection.close()
