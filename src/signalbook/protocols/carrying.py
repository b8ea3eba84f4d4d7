"""An event taken out of one message and laid into another: what of the first message goes along.

Rule 1: the transport's own fields (topic, key, headers that are not attributes) go along to a message of the same
protocol; what cannot is left, and each part that is left is a `Problem` with its place in the first message.
Rule 2: what the event says already is not left: its attributes, its content type.
Rule 3: what speaks of the connection stays there, and what speaks of the payload's bytes goes with just those bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from signalbook.cloudevents.attributes import AttributeValue, canonical
from signalbook.cloudevents.event import CloudEvent
from signalbook.errors import Problem
from signalbook.protocols import BINDINGS, FIELDS, Binding, Message, Mode, mode_of, sending_problems, to_message
from signalbook.protocols.binding import attributes_of
from signalbook.protocols.fields import connection_headers, pointer

__all__ = ["Carried", "carry_over", "left_behind"]

_EVENTS = "application/cloudevents"
# Names of headers and properties, and whole fields, that are true of some bytes only.
_OF_THE_PAYLOAD = frozenset(
    (
        "content-encoding", "content-digest", "content-md5", "content-range", "digest", "repr-digest",
        "payload_format_indicator", "footer",
    )
)  # fmt: skip
# AMQP 1.0 section 3.2.2: for the next peer alone.
_OF_THE_CONNECTION = frozenset(("delivery-annotations",))


@dataclass(frozen=True, slots=True)
class Carried:
    """The message that carries the event, and what of the one before is not in it."""

    message: Message
    left: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """A field of a message, or one of the several that a field holds."""

    path: str
    field: str
    name: str
    value: Any

    def alone(self, protocol: str) -> Message:
        """A message with nothing else in it."""
        return Message(protocol, {self.field: self.value})


def carry_over(event: CloudEvent, source: Message, protocol: str, mode: str | None = None, **fields: Any) -> Carried:
    """The event as a message of the protocol, with what of its source can go along; `fields` stand instead of those."""
    bare = to_message(event, protocol, mode, **fields)
    given = Message(bare.protocol, fields).settled().fields
    taken: dict[str, Any] = {}
    left: list[Problem] = []
    for part in _own_parts(event, source):
        words = _obstacle(part, source, bare)
        if words:
            left.append(_left(part, words))
        elif part.field not in given:
            taken[part.field] = _joined(taken.get(part.field), part.value)
    return Carried(to_message(event, protocol, mode, **{**taken, **given}), tuple(left))


def left_behind(event: CloudEvent, source: Message) -> tuple[Problem, ...]:
    """What of its source stands nowhere in the event."""
    return tuple(_left(part, "an event alone has no place for it") for part in _own_parts(event, source))


def _left(part: _Part, words: str) -> Problem:
    return Problem(part.path, "lost", f"{part.name} is not carried: {words}")


def _own_parts(event: CloudEvent, source: Message) -> Iterator[_Part]:
    """The parts of a message that are not the event's."""
    row, mode = BINDINGS[source.protocol], mode_of(source)
    return (part for part in _parts(source) if not _is_said(row, mode, event, part.alone(source.protocol)))


def _parts(message: Message) -> Iterator[_Part]:
    for field, value in message.fields.items():
        path = pointer("", field)
        if isinstance(value, tuple):
            for index, pair in enumerate(value):
                yield _Part(f"{path}/{index}", field, pair[0], (pair,))
        elif isinstance(value, Mapping):
            for name, item in value.items():
                yield _Part(pointer(path, name), field, name, {name: item})
        else:
            yield _Part(path, field, field, value)


def _joined(before: Any, value: Any) -> Any:
    if isinstance(value, tuple):
        return (*(before or ()), *value)
    return {**(before or {}), **value} if isinstance(value, Mapping) else value


def _is_said(row: Binding, mode: Mode, event: CloudEvent, alone: Message) -> bool:
    """Whether the event, or the mode it came in, says what a part of its message does."""
    for stated in row.content_types(alone):
        return stated == event.content_type or str(stated).lower().startswith(_EVENTS)
    for name, value in attributes_of(row, alone):
        # Beside a structured event, attributes may be repeated; where they differ they are somebody else's.
        return mode is Mode.BINARY or _is_value(row, event.get(name), value)
    return False


def _is_value(row: Binding, known: AttributeValue | None, raw: Any) -> bool:
    try:
        value = row.read_value(raw)
    except ValueError:
        return False
    return known is not None and value is not None and canonical(known) == canonical(value)


def _obstacle(part: _Part, source: Message, bare: Message) -> str | None:
    """Why a part of the source cannot go along with the event, in words."""
    row, alone = BINDINGS[bare.protocol], part.alone(bare.protocol)
    if _family(source) != _family(bare) or part.field not in FIELDS[bare.protocol]:
        return f"{bare.protocol} has no place for it"
    if part.field in _OF_THE_CONNECTION or _is_of_the_connection(part, source):
        return "it belongs to the connection"
    if {part.field, part.name.lower()} & _OF_THE_PAYLOAD and source.payload != bare.payload:
        return "it is about another payload"
    if row.content_types(alone):
        return "the event has another content type"
    if any(attributes_of(row, alone)) and (mode_of(bare) is Mode.BINARY or row.modes[0] is Mode.STRUCTURED):
        return "it would become an attribute of the event"
    return next((problem.message for problem in sending_problems(alone)), None)


def _family(message: Message) -> str:
    return message.protocol.partition("/")[0]


def _is_of_the_connection(part: _Part, source: Message) -> bool:
    headers = source.get("headers", ()) if source.protocol == "HTTP" and part.field == "headers" else ()
    return bool(headers) and part.name.lower() in connection_headers(headers)
