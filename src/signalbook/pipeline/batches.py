"""Records that hold several events, taken apart before they are counted: each event is one input.

Rule: an event of a batch that a protocol message carried becomes that message in structured mode with this one event,
so it is judged by the same metadata, and can be judged again from a dead letter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from signalbook.messages.observed import is_batch
from signalbook.pipeline.elements import Elements
from signalbook.pipeline.reading import LARGEST, Record
from signalbook.wire import Message, WireError

__all__ = ["expand"]

_MARK = b"cloudevents-batch"
_WHITE = b" \t\r\n"
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode


def expand(records: Iterable[Record]) -> Iterator[Record]:
    """The records, with an event of a batch in the place of the batch."""
    for record in records:
        data = record.data
        if record.message is not None:
            yield from _of_message(record, record.message)
        elif data is None or record.reason is not None:
            yield record
        elif data[:1] == b"[" or data.lstrip(_WHITE)[:1] == b"[":
            yield from _of_array(record, data)
        elif _MARK in data:
            yield from _of_paper(record, data)
        else:
            yield record


def _of_array(record: Record, data: bytes) -> Iterator[Record]:
    elements = Elements(LARGEST)
    for element, position in elements.take(data):
        yield replace(record, data=element, position=record.position + position)
    left = elements.finish()
    if left is not None:
        rest, position, words = left
        yield Record(rest or data, record.origin, record.position + position, words, len(rest))


def _of_paper(record: Record, data: bytes) -> Iterator[Record]:
    try:
        message = Message.from_json(data)
    except WireError:
        yield record
        return
    yield from _of_message(record, message)


def _of_message(record: Record, message: Message) -> Iterator[Record]:
    try:
        events = _split(message.payload or b"") if is_batch(message) else []
    except (msgspec.DecodeError, RecursionError):
        events = []
    if not events:
        yield record
        return
    fields = _structured(message.fields)
    for event in events:
        yield replace(record, data=Message(message.protocol, fields, bytes(event)).to_bytes(), message=None)


def _structured(value: Any) -> Any:
    """The fields with the content type of a single event wherever that of a batch stood."""
    if isinstance(value, Mapping):
        return {name: _structured(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_structured(member) for member in value)
    if isinstance(value, bytes):
        return value.replace(_MARK, b"cloudevents") if _MARK in value else value
    return value.replace(_MARK.decode(), "cloudevents") if isinstance(value, str) else value
