"""Queues of MQTT, NATS and AMQP brokers, and the spool that their messages are written to.

These brokers cannot give a range of messages twice, so `spool` writes messages to files first, which are landed later.

Rule 1: messages are taken, written, synced, and only then acknowledged. What was not acknowledged comes again, over
this connection or the next one: nothing is lost, and what was written before may be there twice.
Rule 2: `connect` raises `PipelineError` where a broker is not there or refuses the login. A connection that breaks
later raises `ConnectionLost`, and is made again for as long as it takes.
Rule 3: MQTT with QoS 0 and NATS without JetStream have no acknowledgement: they are at most once up to here.
Rule 4: the file that is being written is hidden (`.NAME.open`); it gets its name when it is full or old enough, and
nobody reads it before. What a killed spooler left is given its name by the next one, without the line it had begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import queue
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Protocol

from signalbook.errors import UsageError
from signalbook.pipeline.files import Folder, PipelineError, sync_folder, take_lease
from signalbook.protocols import Message, WireError

__all__ = [
    "CONNECTIONS",
    "BrokerConnection",
    "BrokerQueue",
    "ConnectionLost",
    "Spool",
    "connect",
    "parse_queue",
    "spool",
]

_MOST = 1000
_WAIT_SECONDS = 0.2
_REACH_SECONDS = 10
_SESSION_SECONDS = 7 * 24 * 3600


class ConnectionLost(Exception):
    """A connection has broken; in words, why."""


@dataclass(frozen=True, slots=True)
class BrokerQueue:
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

    @property
    def address(self) -> str:
        """The broker's host and port."""
        return f"{self.host}:{self.port}"


class BrokerConnection(Protocol):
    """A connection to a broker that reads one queue."""

    def take(self) -> list[Message]:
        """Give what has come, after a short wait where nothing has."""

    def acknowledge(self) -> None:
        """Tell the broker that everything taken arrived."""

    def close(self) -> None:
        """End the connection; one that is lost too."""


def parse_queue(text: str, user: str | None = None, password: str | None = None) -> BrokerQueue:
    """The queue that a text names; raises `UsageError`.

    >>> parse_queue("mqtt:localhost:1883/fleet/#").name
    'fleet/#'
    """
    scheme, _, rest = text.partition(":")
    address, _, name = rest.partition("/")
    host, _, port = address.rpartition(":")
    if scheme not in CONNECTIONS or not host or not port.isdigit() or not name:
        raise UsageError(
            f"'{text}' does not name a queue; write mqtt:HOST:PORT/TOPIC, nats:HOST:PORT/SUBJECT or amqp:…/ADDRESS"
        )
    return BrokerQueue(scheme, host, int(port), name, user, password)


def connect(source: BrokerQueue) -> BrokerConnection:
    """Connect to the broker of a queue; raises `PipelineError`."""
    return CONNECTIONS[source.scheme](source)


def _unreachable(source: BrokerQueue, reason: object) -> PipelineError:
    return PipelineError(f"{source.address} cannot be reached: {_reason_text(reason)}")


def _reason_text(reason: object) -> str:
    return str(reason) or type(reason).__name__


def _as_message(read: Callable[[Any], Message], given: Any, protocol: str, payload: Any) -> Message:
    """The message as it came; of one that is not a valid message, the payload."""
    try:
        return read(given)
    except WireError:
        return Message(protocol, {}, bytes(payload or b""))


class _Mqtt:
    """MQTT 5.0, with a session that outlives the connection."""

    def __init__(self, source: BrokerQueue) -> None:
        from signalbook.clients.mqtt import to_paper

        # After the adapter, which says what to install where it is missing.
        from paho.mqtt import client as paho  # isort: skip
        from paho.mqtt.enums import CallbackAPIVersion  # isort: skip
        from paho.mqtt.packettypes import PacketTypes  # isort: skip
        from paho.mqtt.properties import Properties  # isort: skip

        self._to_paper = to_paper
        self._source = source
        self._arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lost: list[Any] = []
        self._taken: list[Any] = []
        self._client = client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=source.reader,
            protocol=paho.MQTTv5,
            manual_ack=True,
            reconnect_on_failure=False,
        )
        if source.user is not None:
            client.username_pw_set(source.user, source.password)
        client.on_message = lambda _client, _data, message: self._arrived.put(message)
        client.on_connect = lambda _client, _data, _flags, reason, _more: self._answers.put(reason)
        client.on_subscribe = lambda _client, _data, _mid, reasons, _more: self._answers.put(reasons[0])
        client.on_disconnect = lambda _client, _data, _flags, reason, _more: self._lost.append(reason)
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = _SESSION_SECONDS
        try:
            client.connect(source.host, source.port, clean_start=False, properties=properties)
        except OSError as error:
            raise _unreachable(source, error) from None
        client.loop_start()
        try:
            self._expect("refuses the login")
            client.subscribe(source.name, qos=1)
            self._expect(f"does not allow reading '{source.name}'")
        except BaseException:
            self.close()
            raise

    def _expect(self, refusal: str) -> None:
        """Wait for the broker's answer to what was asked."""
        try:
            reason = self._answers.get(timeout=_REACH_SECONDS)
        except queue.Empty:
            raise _unreachable(self._source, self._lost[0] if self._lost else "it does not answer") from None
        if reason.is_failure:
            raise PipelineError(f"{self._source.address} {refusal}: {reason}")

    def take(self) -> list[Message]:
        self._taken = list(self._some())
        # What came before the connection broke is read first: with QoS 0 it would not come again.
        if not self._taken and self._lost:
            raise ConnectionLost(_reason_text(self._lost[0]))
        return [_as_message(self._to_paper, message, "MQTT/5.0", message.payload) for message in self._taken]

    def _some(self) -> Iterator[Any]:
        try:
            yield self._arrived.get(timeout=_WAIT_SECONDS)
            for _ in range(_MOST - 1):
                yield self._arrived.get_nowait()
        except queue.Empty:
            pass

    def acknowledge(self) -> None:
        for message in self._taken:
            # Over a lost connection this does nothing, and the message comes again.
            self._client.ack(message.mid, message.qos)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class _Nats:
    """NATS: by JetStream, which acknowledges, where a stream has the subject; as it comes elsewhere."""

    def __init__(self, source: BrokerQueue) -> None:
        from signalbook.clients.nats import to_paper

        self._to_paper = to_paper
        self._source = source
        self._loop = asyncio.new_event_loop()
        self._met: list[Exception] = []
        self._taken: list[Any] = []
        self._client: Any = None
        self._pulled: Any = None
        self._plain: Any = None
        try:
            self._loop.run_until_complete(self._connect())
        except BaseException as error:
            self.close()
            if isinstance(error, _nats_errors()):
                raise _unreachable(source, self._met[0] if self._met else error) from None
            raise

    async def _connect(self) -> None:
        from nats.aio.client import Client
        from nats.js.errors import NotFoundError, ServiceUnavailableError

        async def meet(error: Exception) -> None:
            self._met[:] = [error]

        self._client = Client()
        # It is not made again by the client's own rules, which try for minutes and do not say why.
        await self._client.connect(
            f"nats://{self._source.address}",
            connect_timeout=_REACH_SECONDS,
            user=self._source.user,
            password=self._source.password,
            error_cb=meet,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0.1,
        )
        try:
            stream = self._client.jetstream()
            self._pulled = await stream.pull_subscribe(self._source.name, durable=self._source.reader)
        except (NotFoundError, ServiceUnavailableError):
            self._plain = await self._client.subscribe(self._source.name)
        except TimeoutError:
            # A server that does not let this user ask for streams says so beside, and does not answer. Any other
            # silence is not a reason to read without acknowledgement.
            if not any("permissions violation" in str(error).lower() for error in self._met):
                raise TimeoutError("its JetStream does not answer") from None
            self._plain = await self._client.subscribe(self._source.name)

    def take(self) -> list[Message]:
        self._taken = self._run(self._fetch())
        return [_as_message(self._to_paper, message, "NATS", message.data) for message in self._taken]

    async def _fetch(self) -> list[Any]:
        found: list[Any] = []
        # Where nothing came, the client raises its own TimeoutError or, at the very end of a wait, Python's.
        with contextlib.suppress(TimeoutError):
            if self._pulled is not None:
                return list(await self._pulled.fetch(_MOST, timeout=_WAIT_SECONDS))
            found.append(await self._plain.next_msg(timeout=_WAIT_SECONDS))
            while len(found) < _MOST and self._plain.pending_msgs:
                found.append(await self._plain.next_msg(timeout=_WAIT_SECONDS))
        if not found and self._client.is_closed:
            raise ConnectionLost(_reason_text(self._met[0]) if self._met else "the connection was closed")
        return found

    def acknowledge(self) -> None:
        if self._pulled is not None:
            self._run(self._acknowledge())

    async def _acknowledge(self) -> None:
        for message in self._taken:
            await message.ack()
        await self._client.flush()

    def _run(self, work: Any) -> Any:
        try:
            return self._loop.run_until_complete(work)
        except _nats_errors() as error:
            raise ConnectionLost(_reason_text(self._met[0] if self._met else error)) from None

    def close(self) -> None:
        with contextlib.closing(self._loop), contextlib.suppress(*_nats_errors()):
            if self._client is not None:
                self._loop.run_until_complete(self._client.close())


def _nats_errors() -> tuple[type[Exception], ...]:
    from nats.errors import Error

    return (Error, OSError)


class _Amqp:
    """AMQP 1.0: messages stay with the broker until they are accepted."""

    def __init__(self, source: BrokerQueue) -> None:
        from signalbook.clients.amqp import to_paper

        from proton import ProtonException, Timeout  # isort: skip
        from proton.utils import BlockingConnection  # isort: skip

        self._to_paper = to_paper
        self._failures = (ProtonException, OSError)
        self._nothing = Timeout
        self._taken = 0
        try:
            self._connection = BlockingConnection(f"amqp://{source.address}", timeout=30, **_amqp_login(source))
        except self._failures as error:
            raise _unreachable(source, error) from None
        try:
            self._receiver = self._connection.create_receiver(source.name, credit=_MOST)
        except self._failures as error:
            self.close()
            raise _unreachable(source, error) from None

    def take(self) -> list[Message]:
        found: list[Message] = []
        try:
            wait = _WAIT_SECONDS
            while len(found) < _MOST:
                message = self._receiver.receive(timeout=wait)
                wait = 0.001
                found.append(_as_message(self._to_paper, message, "AMQP/1.0", message.encode()))
        except self._nothing:
            pass
        except self._failures as error:
            raise ConnectionLost(_reason_text(error)) from None
        self._taken = len(found)
        return found

    def acknowledge(self) -> None:
        try:
            for _ in range(self._taken):
                self._receiver.accept()
        except self._failures as error:
            raise ConnectionLost(_reason_text(error)) from None

    def close(self) -> None:
        with contextlib.suppress(*self._failures):
            self._connection.close()


def _amqp_login(source: BrokerQueue) -> dict[str, Any]:
    if source.user is None:
        return {}
    login = {"user": source.user, "password": source.password}
    return {**login, "allowed_mechs": "PLAIN", "allow_insecure_mechs": True}


CONNECTIONS: Mapping[str, Callable[[BrokerQueue], BrokerConnection]] = {"mqtt": _Mqtt, "nats": _Nats, "amqp": _Amqp}


# The spool.


_ENDING = ".jsonl"
_OPEN = ".open"


class Spool:
    """The writing end of a spool; one process has it at a time."""

    def __init__(self, path: str, *, roll_bytes: int = 64 << 20, roll_seconds: float = 10) -> None:
        self._folder = Path(Folder.at(path).uri)
        self._roll_bytes = roll_bytes
        self._roll_seconds = roll_seconds
        self._file: IO[bytes] | None = None
        self._name = ""
        self._opened = 0.0
        lease = take_lease(Folder(str(self._folder)), ".lease")
        if lease is None:
            raise PipelineError(f"another process writes to the spool '{path}'")
        self._lease = lease
        self._recover()

    def append(self, messages: Iterable[Message]) -> None:
        """Put messages into the spool; they are on disk when this returns."""
        lines = b"".join(message.to_bytes() + b"\n" for message in messages)
        if lines:
            file = self._file or self._open()
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        self.roll_if_due()

    def roll_if_due(self) -> None:
        """Give the file its name where it is full or old enough."""
        if self._file is not None:
            full = self._file.tell() >= self._roll_bytes
            if full or time.monotonic() - self._opened >= self._roll_seconds:
                self._roll()

    def close(self) -> None:
        """Give the file its name, and the spool to others."""
        self._roll()
        self._lease.release()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> IO[bytes]:
        self._name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}{_ENDING}"
        self._opened = time.monotonic()
        place = self._folder / f".{self._name}{_OPEN}"
        # What messages say is for whoever spools them.
        self._file = os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb")
        sync_folder(self._folder)
        return self._file

    def _roll(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._file = None
        self._named(self._folder / f".{self._name}{_OPEN}")

    def _recover(self) -> None:
        for left in sorted(self._folder.glob(f".*{_ENDING}{_OPEN}")):
            content = left.read_bytes()
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                # The line was not on disk in whole, so its message was never acknowledged.
                os.truncate(left, whole)
            if whole:
                self._named(left)
            else:
                left.unlink()

    def _named(self, file: Path) -> None:
        file.replace(file.with_name(file.name.removeprefix(".").removesuffix(_OPEN)))
        sync_folder(self._folder)


# From the queue of a broker to a spool.


_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_STEP_SECONDS = 0.2


def spool(
    source: BrokerQueue,
    target: Spool,
    *,
    idle: float | None = None,
    count: int | None = None,
    notice: Callable[[str], None] = lambda _: None,
) -> int:
    """Spool until stopped, or until nothing came for `idle` seconds, or `count` messages came; how many came.

    `notice` is called when the broker is lost, and when it is available again.
    """
    taken, last = 0, time.monotonic()

    def enough() -> bool:
        return (idle is not None and time.monotonic() - last >= idle) or (count is not None and taken >= count)

    connection: BrokerConnection | None = connect(source)
    try:
        while connection is not None and not enough():
            try:
                messages = connection.take()
                if messages:
                    target.append(messages)
                    taken, last = taken + len(messages), time.monotonic()
                    connection.acknowledge()
                else:
                    target.roll_if_due()
            except ConnectionLost as lost:
                broken, connection = connection, None  # closed once, whoever stops us while we wait
                broken.close()
                notice(f"{source.address} is lost: {lost}")
                connection = _reconnect(source, target, enough, notice)
    finally:
        if connection is not None:
            connection.close()
    return taken


def _reconnect(
    source: BrokerQueue, target: Spool, enough: Callable[[], bool], notice: Callable[[str], None]
) -> BrokerConnection | None:
    """A new connection after however many tries; none where it is enough before."""
    pause = _FIRST_PAUSE_SECONDS
    while True:
        until = time.monotonic() + pause
        while time.monotonic() < until:
            if enough():
                return None
            target.roll_if_due()
            time.sleep(_STEP_SECONDS)
        try:
            connection = connect(source)
        except PipelineError as error:
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            notice(f"{error}; next try in {pause:g} s")
        else:
            notice(f"{source.address} is available again")
            return connection
