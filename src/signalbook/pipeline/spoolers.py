"""Brokers to a spool: MQTT, NATS and AMQP, which cannot give a range of messages twice.

Rule 1: messages are taken, written, synced, and only then acknowledged; a killed spooler gets again what it had not
acknowledged, so nothing is lost, and what it had written already is there twice.
Rule 2: MQTT with QoS 0 and NATS without JetStream have no acknowledgement: they are at most once up to the spool.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import queue
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from signalbook.errors import UsageError
from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.spool import Spool
from signalbook.wire import Message, WireError

__all__ = ["BROKERS", "Arrived", "Queue", "parse_queue", "spool"]

_MOST = 1000
_WAIT_SECONDS = 0.2
_REACH_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Queue:
    """Where messages are taken from: a broker, a topic, subject or address there, and as whom."""

    scheme: str
    host: str
    port: int
    name: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def reader(self) -> str:
        """The name by which the broker knows this reader of this queue, and what it has not acknowledged."""
        return f"signalbook-{hashlib.sha256(self.name.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message, and how its broker is told that it arrived."""

    message: Message
    acknowledge: Callable[[], Any]


def parse_queue(text: str, user: str | None = None, password: str | None = None) -> Queue:
    """The queue that a text names; raises `UsageError`.

    >>> parse_queue("mqtt:localhost:1883/fleet/#").name
    'fleet/#'
    """
    scheme, _, rest = text.partition(":")
    address, _, name = rest.partition("/")
    host, _, port = address.rpartition(":")
    if scheme not in BROKERS or not host or not port.isdigit() or not name:
        raise UsageError(
            f"'{text}' names no queue; write mqtt:HOST:PORT/TOPIC, nats:HOST:PORT/SUBJECT or amqp:…/ADDRESS"
        )
    return Queue(scheme, host, int(port), name, user, password)


def spool(source: Queue, target: Spool, *, idle: float | None = None, count: int | None = None) -> int:
    """Spool until stopped, or until nothing came for `idle` seconds, or `count` messages came; how many came."""
    taken, last = 0, time.monotonic()
    for arrived in BROKERS[source.scheme](source):
        if arrived:
            target.append(one.message for one in arrived)
            for one in arrived:
                one.acknowledge()
            taken, last = taken + len(arrived), time.monotonic()
        else:
            target.roll_if_due()
        if (idle is not None and time.monotonic() - last >= idle) or (count is not None and taken >= count):
            break
    return taken


def _on_paper(read: Callable[[Any], Message], given: Any, protocol: str, payload: Any) -> Message:
    """The message as it came; of one that paper cannot hold, the payload."""
    try:
        return read(given)
    except WireError:
        return Message(protocol, {}, bytes(payload or b""))


def _mqtt(source: Queue) -> Iterator[list[Arrived]]:
    from signalbook.clients.mqtt import to_paper

    # After the adapter, which says what to install where it is missing.
    from paho.mqtt import client as paho  # isort: skip
    from paho.mqtt.enums import CallbackAPIVersion  # isort: skip
    from paho.mqtt.packettypes import PacketTypes  # isort: skip
    from paho.mqtt.properties import Properties  # isort: skip

    arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id=source.reader, protocol=paho.MQTTv5, manual_ack=True)
    if source.user is not None:
        client.username_pw_set(source.user, source.password)
    client.on_message = lambda _client, _data, message: arrived.put(message)
    client.on_connect = lambda client, *_: client.subscribe(source.name, qos=1)
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = 7 * 24 * 3600
    try:
        client.connect(source.host, source.port, clean_start=False, properties=properties)
    except OSError as error:
        raise PipelineError(f"{source.host}:{source.port} cannot be reached: {error}") from None
    client.loop_start()
    try:
        while True:
            yield [
                Arrived(
                    _on_paper(to_paper, message, "MQTT/5.0", message.payload),
                    lambda message=message: client.ack(message.mid, message.qos),  # type: ignore[misc]
                )
                for message in _some(arrived)
            ]
    finally:
        client.disconnect()
        client.loop_stop()


def _some(arrived: queue.SimpleQueue[Any]) -> Iterable[Any]:
    """What has come, after a wait where nothing has."""
    found = []
    try:
        found.append(arrived.get(timeout=_WAIT_SECONDS))
        while len(found) < _MOST:
            found.append(arrived.get_nowait())
    except queue.Empty:
        pass
    return found


def _nats(source: Queue) -> Iterator[list[Arrived]]:
    from signalbook.clients.nats import to_paper

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        run = loop.run_until_complete
        connection, fetch, acknowledged = run(_nats_subscription(source))
        try:
            while True:
                messages = run(fetch())
                yield [
                    Arrived(
                        _on_paper(to_paper, message, "NATS", message.data),
                        (lambda message=message: run(message.ack())) if acknowledged else lambda: None,  # type: ignore[misc]
                    )
                    for message in messages
                ]
                run(connection.flush())
        finally:
            run(connection.close())


async def _nats_subscription(source: Queue) -> tuple[Any, Callable[[], Any], bool]:
    """A connection, what fetches messages, and whether they are acknowledged: by JetStream where it has the subject."""
    from nats.errors import TimeoutError as NatsTimeout
    from nats.js.errors import NotFoundError, ServiceUnavailableError

    connection = await _nats_connection(source)
    try:
        pulled = await connection.jetstream().pull_subscribe(source.name, durable=source.reader)
    except (NotFoundError, ServiceUnavailableError, NatsTimeout):
        plain = await connection.subscribe(source.name)

        async def next_one() -> list[Any]:
            try:
                return [await plain.next_msg(timeout=_WAIT_SECONDS)]
            except NatsTimeout:
                return []

        return connection, next_one, False

    async def fetch() -> list[Any]:
        try:
            return list(await pulled.fetch(_MOST, timeout=_WAIT_SECONDS))
        except NatsTimeout:
            return []

    return connection, fetch, True


async def _nats_connection(source: Queue) -> Any:
    """A connection that is made again when it breaks; one that never came about is told at once, in one line."""
    from nats.aio.client import Client
    from nats.errors import Error as NatsError

    met: list[Exception] = []

    async def meet(error: Exception) -> None:
        met[:] = [error]

    async def connect(**more: Any) -> Client:
        client = Client()
        try:
            await client.connect(
                f"nats://{source.host}:{source.port}",
                connect_timeout=_REACH_SECONDS,
                user=source.user,
                password=source.password,
                error_cb=meet,
                **more,
            )
        except BaseException:
            await client.close()
            raise
        return client

    try:
        # The client tries for minutes by its own rules: whether the broker is there is asked by a connection that is
        # not made again. Its last error says why; the one it raises says only that no server is left.
        await (await connect(allow_reconnect=False, max_reconnect_attempts=1, reconnect_time_wait=0.1)).close()
        return await connect()
    except (NatsError, OSError, TimeoutError) as error:
        reason = met[0] if met else error
        words = str(reason) or type(reason).__name__
        raise PipelineError(f"{source.host}:{source.port} cannot be reached: {words}") from None


def _amqp(source: Queue) -> Iterator[list[Arrived]]:
    from signalbook.clients.amqp import to_paper

    from proton import ProtonException, Timeout  # isort: skip
    from proton.utils import BlockingConnection  # isort: skip

    try:
        connection = BlockingConnection(f"amqp://{source.host}:{source.port}", timeout=30, **_amqp_login(source))
        receiver = connection.create_receiver(source.name, credit=_MOST)
    except (ProtonException, OSError) as error:
        raise PipelineError(f"{source.host}:{source.port} cannot be reached: {error}") from None
    try:
        while True:
            found: list[Arrived] = []
            wait = _WAIT_SECONDS
            while len(found) < _MOST:
                try:
                    message = receiver.receive(timeout=wait)
                except Timeout:
                    break
                wait = 0.001
                found.append(Arrived(_on_paper(to_paper, message, "AMQP/1.0", message.encode()), receiver.accept))
            yield found
    finally:
        connection.close()


def _amqp_login(source: Queue) -> dict[str, Any]:
    if source.user is None:
        return {}
    login = {"user": source.user, "password": source.password}
    return {**login, "allowed_mechs": "PLAIN", "allow_insecure_mechs": True}


BROKERS: Mapping[str, Callable[[Queue], Iterator[list[Arrived]]]] = {"mqtt": _mqtt, "nats": _nats, "amqp": _amqp}
