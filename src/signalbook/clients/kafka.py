"""Kafka: the records of confluent-kafka.

Rule: keys, values and headers are bytes or null, as Kafka has them; a null value is not a payload (it is a tombstone
where there is a key), zero bytes are a payload.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from signalbook.clients import MissingLibrary, checked_to_send, required_field, wire_error
from signalbook.cloudevents.attributes import is_timestamp
from signalbook.protocols import Message

try:
    import confluent_kafka
except ImportError as error:
    raise MissingLibrary("confluent-kafka", "kafka") from error

__all__ = ["publish_args", "to_paper"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_paper(record: confluent_kafka.Message) -> Message:
    """The message of a record that was consumed or delivered; raises `WireError` for an event of the client itself."""
    error = record.error()
    if error is not None:
        raise wire_error("", f"is not a record but a client event: {error.str()}")
    kind, moment = record.timestamp()
    headers: Any = record.headers() or ()
    fields = {
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "timestamp": None if kind == confluent_kafka.TIMESTAMP_NOT_AVAILABLE else moment,
        "key": _bytes(record.key()),
        "headers": tuple((name, _bytes(value)) for name, value in headers) or None,
    }
    return Message(
        "KAFKA", {name: value for name, value in fields.items() if value is not None}, _bytes(record.value())
    )


def publish_args(message: Message) -> dict[str, Any]:
    """The arguments for `producer.produce(**…)`; the offset is the broker's to give and is left out."""
    message = checked_to_send(message, "KAFKA")
    args: dict[str, Any] = {"topic": required_field(message, "topic"), "value": message.payload}
    for name, value in (("key", message.get("key")), ("partition", message.get("partition"))):
        if value is not None:
            args[name] = value
    if message.get("headers"):
        args["headers"] = list(message.get("headers"))
    if message.get("timestamp") is not None:
        args["timestamp"] = _milliseconds(message.get("timestamp"))
    return args


def _bytes(value: Any) -> bytes | None:
    """A key, value or header; a client with deserializers shows text."""
    return value.encode() if isinstance(value, str) else value


def _milliseconds(moment: int | str) -> int:
    if isinstance(moment, str):
        moment = _since_epoch(moment)
    if not 0 < moment < 2**63:
        raise wire_error(
            "/timestamp", "must be later than 1970-01-01 and fit 64 bits; the client takes 0 to mean the present"
        )
    return moment


def _since_epoch(text: str) -> int:
    try:
        if not is_timestamp(text):
            raise ValueError
        return (datetime.fromisoformat(text.upper()) - _EPOCH) // timedelta(milliseconds=1)
    except ValueError:
        raise wire_error("/timestamp", "must be milliseconds since 1970, or RFC 3339 without a leap second") from None
