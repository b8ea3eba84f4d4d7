"""CloudEvents in the messages of any protocol: read from them, written to them, carried from one to another.

Rule 1: what the bindings differ in is in their protocols' `Binding`; reading and writing are the same for all.
Rule 2: the content type says the mode, never the presence of attributes (http 3 and its like).
Rule 3: what a binding cannot carry so that it comes back the same is a `CloudEventError`, not a near thing.
Rule 4: the caller's own fields go along as they are; one that the protocol does not have is a `WireError`, one that
would change the event or be hidden by it a `CloudEventError`.
Rule 5: when an event is carried over, the transport's own fields (topic, key, headers that are not attributes) go along
to a message of the same protocol; each part that is left is a `Problem` with its place in the first message. What the
event says already is not left. What speaks of the connection stays there, and what speaks of the payload's bytes goes
with just those bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from signalbook.cloudevents.attributes import (
    EVENT,
    EVENT_BATCH,
    AttributeValue,
    CloudEventError,
    accepted_attributes,
    canonical,
    is_name,
    pointer,
    problems,
    read_media_type,
    said,
)
from signalbook.cloudevents.event import CloudEvent, Kind, made
from signalbook.cloudevents.json_format import decode, decode_batch, encode, encode_batch, iter_batch
from signalbook.errors import Problem
from signalbook.protocols.message import (
    BINDINGS,
    FIELDS,
    PROTOCOLS,
    Message,
    WireError,
    find_protocol,
    sending_problems,
)
from signalbook.protocols.protocol import Binding, Mode
from signalbook.protocols.protocol import pointer as member_pointer

__all__ = [
    "Carried", "attributes_of", "batch_from_http", "batch_to_http", "carry_over", "claims_event", "events_of",
    "from_amqp", "from_http", "from_kafka", "from_message", "from_mqtt", "from_nats", "left_behind", "mode_of",
    "partition_key", "to_amqp", "to_http", "to_kafka", "to_message", "to_mqtt", "to_nats",
]  # fmt: skip

_EVENT_PREFIX = "application/cloudevents"
_BATCH_PREFIX = "application/cloudevents-batch"


def mode_of(message: Message) -> Mode:
    """The mode that the message is in, were it an event."""
    return _mode_of(BINDINGS[message.protocol], message)


def claims_event(message: Message) -> bool:
    """Whether the message says that it is an event, valid or not; if not, it is a native message."""
    return _claims_event(BINDINGS[message.protocol], message)


def from_message(message: Message) -> CloudEvent:
    """The event that the message carries, by its own protocol's binding; raises `CloudEventError`."""
    return _read_event(BINDINGS[message.protocol], message)


def to_message(event: CloudEvent, protocol: str, mode: str | None = None, **fields: Any) -> Message:
    """The event as a message of the protocol, in its first mode unless one is named, with fields of its own.

    Raises `CloudEventError` where the binding cannot carry the event so, `WireError` where there are no such fields.
    """
    row = BINDINGS.get(find_protocol(protocol) or "")
    if row is None:
        raise WireError(Problem("/protocol", "value", f"must be one of {', '.join(BINDINGS)}"))
    return _write_event(row, event, mode or row.modes[0], fields)


def events_of(message: Message) -> Iterator[CloudEvent | CloudEventError]:
    """Each event of a message or what is wrong with it: one, or those of a batch in their order."""
    try:
        if mode_of(message) is Mode.BATCH and Mode.BATCH in BINDINGS[message.protocol].modes:
            yield from iter_batch(message.payload or b"")
        else:
            yield from_message(message)
    except CloudEventError as error:
        yield error


# By protocol ----------------------------------------------------------------------------------------------------------

_HTTP, _KAFKA, _AMQP, _NATS = (BINDINGS[name] for name in ("HTTP", "KAFKA", "AMQP/1.0", "NATS"))


def from_http(message: Message) -> CloudEvent:
    """The event of a request or response in binary or structured mode."""
    return _read_event(_HTTP, message)


def to_http(event: CloudEvent, mode: str = Mode.BINARY, **fields: Any) -> Message:
    """The event as a message; `fields` are `method`, `path`, `query`, `headers`, `status`."""
    return _write_event(_HTTP, event, mode, fields)


def batch_from_http(message: Message) -> list[CloudEvent]:
    """The events of a batch; raises where one of them is bad."""
    if _mode_of(_HTTP, message) is not Mode.BATCH:
        raise CloudEventError(Problem("", "R37", "is not a batch, and is to be read as one event"))
    _expect_media_type(_HTTP, message, EVENT_BATCH)
    return decode_batch(message.payload or b"")


def batch_to_http(events: Iterable[CloudEvent], **fields: Any) -> Message:
    """The events in one message; send it only to who has asked for batches (http 3)."""
    return _with_fields(_HTTP, fields, EVENT_BATCH, encode_batch(events))


def from_kafka(message: Message) -> CloudEvent:
    """The event of a record."""
    return _read_event(_KAFKA, message)


def to_kafka(
    event: CloudEvent,
    mode: str = Mode.BINARY,
    key_mapper: Callable[[CloudEvent], bytes | None] | None = None,
    **fields: Any,
) -> Message:
    """The event as a record; `fields` are `topic`, `key` (bytes), `headers`, …; a mapper makes the key instead."""
    if key_mapper is not None:
        fields["key"] = key_mapper(event)
    return _write_event(_KAFKA, event, mode, fields)


def partition_key(event: CloudEvent) -> bytes | None:
    """The key mapper of the partitioning extension (kafka 3.1): `partitionkey` as it is, and it stays an attribute."""
    value = event.get("partitionkey")
    return None if value is None else canonical(value).encode()


def from_mqtt(message: Message) -> CloudEvent:
    """The event of a PUBLISH, by the message's own version of MQTT."""
    return _read_event(BINDINGS[message.protocol if message.protocol in _MQTT else _MQTT[0]], message)


def to_mqtt(event: CloudEvent, mode: str | None = None, version: str = "5.0", **fields: Any) -> Message:
    """The event as a PUBLISH, binary where the version has it; `fields` are `topic_name`, `qos` and the like."""
    name = find_protocol(f"mqtt/{version}")
    if name is None:
        raise CloudEventError(Problem("", "R38", f"there is no binding for MQTT {version}, but for 5.0 and 3.1.1"))
    return _write_event(BINDINGS[name], event, mode or BINDINGS[name].modes[0], fields)


_MQTT = ("MQTT/5.0", "MQTT/3.1.1")


def from_amqp(message: Message) -> CloudEvent:
    """The event of a message whose body is a data section."""
    return _read_event(_AMQP, message)


def to_amqp(event: CloudEvent, mode: str = Mode.BINARY, **fields: Any) -> Message:
    """The event as a message; `fields` are the sections, `application_properties` for `application-properties`."""
    return _write_event(_AMQP, event, mode, fields)


def from_nats(message: Message) -> CloudEvent:
    """The event of a message."""
    return _read_event(_NATS, message)


def to_nats(event: CloudEvent, mode: str = Mode.STRUCTURED, **fields: Any) -> Message:
    """The event as a message; `fields` are `subject`, `reply`, `headers`."""
    return _write_event(_NATS, event, mode, fields)


# Through any binding --------------------------------------------------------------------------------------------------


def _mode_of(binding: Binding, message: Message) -> Mode:
    """The mode that the message is in, were it an event."""
    stated = _stated_mode(binding, message)
    if stated is not None:
        return stated
    implied = binding.modes[0]
    if implied is Mode.STRUCTURED and Mode.BINARY in binding.modes and _has_mark(binding, message):
        return Mode.BINARY
    return implied


def _claims_event(binding: Binding, message: Message) -> bool:
    """Whether the message says that it is an event: by content type, metadata, or as JSON with `specversion`."""
    if _stated_mode(binding, message) is not None or _has_mark(binding, message):
        return True
    payload = (message.payload or b"").lstrip(b" \t\r\n")
    return binding.modes[0] is Mode.STRUCTURED and payload.startswith(b"{") and b'"specversion"' in payload


def _read_event(binding: Binding, message: Message) -> CloudEvent:
    """The event that the message carries; raises `CloudEventError`."""
    if message.get("body", "data") != "data":
        raise CloudEventError(Problem("/data", "R41", "an event's body is a data section"))
    mode = _mode_of(binding, message)
    if mode is Mode.BINARY:
        return _read_binary(binding, message)
    if mode is Mode.BATCH:
        words = "is a batch, and is to be read as one" if Mode.BATCH in binding.modes else "the binding has no batches"
        raise CloudEventError(Problem("", "R37", words))
    if _stated_mode(binding, message) is not None:
        _expect_media_type(binding, message, EVENT)
    return decode(message.payload or b"")


def _write_event(binding: Binding, event: CloudEvent, mode: str, fields: Mapping[str, Any]) -> Message:
    """The event in a message; `fields` are the protocol's others, such as a topic."""
    if mode not in binding.modes or mode == Mode.BATCH:
        offered = " or ".join(known for known in binding.modes if known is not Mode.BATCH)
        raise CloudEventError(Problem("", "R38", f"{binding.protocol} carries one event in {offered} mode, not {mode}"))
    if mode == Mode.STRUCTURED:
        return _with_fields(binding, fields, EVENT, encode(event))
    named = event.content_type
    wrong = list(_cannot_carry(binding, event, named))
    pairs = []
    for name, value in event.attributes.items():
        if name != "datacontenttype":
            try:
                pairs.append((binding.prefixes[0] + name, binding.write_value(value)))
            except ValueError as error:
                wrong.append(Problem(f"/{name}", "R39", f"{name} {error}"))
    if wrong:
        raise CloudEventError(*wrong)
    return _with_fields(binding, fields, named, event.payload(), pairs)


def _with_fields(
    binding: Binding,
    fields: Mapping[str, Any],
    content_type: str | None,
    payload: bytes | None,
    pairs: Iterable[tuple[str, Any]] | None = None,
) -> Message:
    """The message of a content type, and in binary mode its pairs, beside the caller's own fields."""
    if not fields:
        laid = binding.fields(content_type, pairs)
        return Message(binding.protocol, _merged(binding, {}, laid), payload)
    own = Message(binding.protocol, fields, payload).settled()
    wrong = list(_content_type_differs(binding, own, content_type, is_event=pairs is None))
    if pairs is not None or binding.modes[0] is Mode.STRUCTURED:
        wrong += _would_add(binding, own)
    if wrong:
        raise CloudEventError(*wrong)
    stated = next(iter(binding.content_types(own.fields)), content_type)
    return Message(binding.protocol, _merged(binding, own.fields, binding.fields(stated, pairs)), payload)


def _expect_media_type(binding: Binding, message: Message, expected: str) -> None:
    """Refuse a content type of another event format than JSON."""
    stated = binding.content_types(message.fields)
    media = read_media_type(stated[0].strip(" "))
    if media is None or media.name != expected:
        words = f"the event format {stated[0][:80]!r} is not read; {expected} is"
        raise CloudEventError(Problem("/datacontenttype", "R4", words))
    if len(stated) > 1:
        raise CloudEventError(Problem("/datacontenttype", "R3", "the content type occurs more than once"))


def _merged(binding: Binding, fields: Mapping[str, Any], laid: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's fields with those of the event, pairs and sections put together."""
    together = dict(fields)
    for name, value in laid.items():
        given = together.get(name)
        if given is not None and isinstance(value, tuple):
            value = (*_beside(binding, given, value), *value)
        elif given is not None and isinstance(value, Mapping):
            value = {**given, **value}
        together[name] = _set(value) if isinstance(value, Mapping) else value
    return {name: value for name, value in together.items() if value is not None and value != () and value != {}}


def _beside(
    binding: Binding, given: Iterable[tuple[str, Any]], laid: Iterable[tuple[str, Any]]
) -> Iterator[tuple[str, Any]]:
    """The caller's pairs, but for a content type that is laid again."""
    is_laid = any(name == "content-type" for name, _ in laid)
    for name, value in given:
        if not (is_laid and (name.lower() if binding.any_case else name) == "content-type"):
            yield name, value


def _set(section: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in section.items() if value is not None}


def _stated_mode(binding: Binding, message: Message) -> Mode | None:
    """The mode that the content type says: "prefixed with the CloudEvents media type" (http 3)."""
    named = next(iter(binding.content_types(message.fields)), None)
    text = named.lower() if isinstance(named, str) else ""
    if text.startswith(_BATCH_PREFIX):
        return Mode.BATCH
    return Mode.STRUCTURED if text.startswith(_EVENT_PREFIX) else None


def _has_mark(binding: Binding, message: Message) -> bool:
    return any(name in binding.marks for name, _ in attributes_of(binding, message))


def _would_add(binding: Binding, own: Message) -> Iterator[Problem]:
    """What of the caller's own fields would be read as an attribute of the event."""
    for name, _ in attributes_of(binding, own):
        yield Problem(
            f"/{name}", "R39", f"{name} among the message's own fields would become an attribute of the event"
        )


def _content_type_differs(
    binding: Binding, own: Message, content_type: str | None, *, is_event: bool
) -> Iterator[Problem]:
    """A content type among the caller's own fields that says another thing than the event's."""
    for text in binding.content_types(own.fields):
        if text != content_type and not (is_event and _is_spelling(text, content_type)):
            shown = content_type or "none"
            words = f"the content type {str(text)[:80]!r} among the message's own fields is not the event's, {shown}"
            yield Problem("/datacontenttype", "R39", words)
    if len(binding.content_types(own.fields)) > 1:
        yield Problem("/datacontenttype", "R3", "the content type occurs more than once")


def _is_spelling(text: Any, content_type: str | None) -> bool:
    """Whether the text is another spelling of an event's media type: its JSON is UTF-8, said or not."""
    media = read_media_type(text) if isinstance(text, str) else None
    return media is not None and media.name == content_type and (media.charset or "utf-8").lower() == "utf-8"


def attributes_of(binding: Binding, message: Message) -> Iterator[tuple[str, Any]]:
    """The names and values of what is carried as attributes."""
    for found, value in binding.carried(message.fields):
        name = found.lower() if binding.any_case else found
        for prefix in binding.prefixes:
            if prefix:
                if name.startswith(prefix):
                    yield name.removeprefix(prefix), value
            elif is_name(name):
                # Without a prefix, whatever cannot be an attribute is not meant as one.
                yield name, value


def _read_binary(binding: Binding, message: Message) -> CloudEvent:
    given: dict[str, Any] = {}
    wrong: list[Problem] = list(_mixed(binding, message))
    for name, raw in attributes_of(binding, message):
        if name in given:
            wrong.append(Problem(pointer(name), "R3", f"{said(name)} occurs more than once"))
        try:
            given[name] = binding.read_value(raw)
        except ValueError as error:
            wrong.append(Problem(pointer(name), "R40", f"{said(name)} {error}"))
    _take_content_type(binding, message, given, wrong)
    accepted = None if wrong else accepted_attributes(given.items(), clean=False)
    if accepted is None:
        placed = {problem.path for problem in wrong}
        raise CloudEventError(*wrong, *(found for found in problems(given) if found.path not in placed))
    payload = message.payload
    if payload is None or not (payload or binding.tells_empty):
        return made(accepted, None)
    named: Any = accepted.get("datacontenttype")
    media = None if named is None else read_media_type(named)
    if media is not None and media.is_json:
        return made(accepted, (Kind.JSON, payload, False))
    return made(accepted, (Kind.BINARY, payload, True))


def _mixed(binding: Binding, message: Message) -> Iterator[Problem]:
    if len(binding.prefixes) == 1:
        return
    used = {
        prefix
        for found, _ in binding.carried(message.fields)
        for prefix in binding.prefixes
        if found.startswith(prefix)
    }
    if len(used) > 1:
        yield Problem("", "R39", f"mixes the prefixes {' and '.join(sorted(used))}")


def _take_content_type(binding: Binding, message: Message, given: dict[str, Any], wrong: list[Problem]) -> None:
    stated = [text for text in binding.content_types(message.fields) if text is not None]
    repeated = given.get("datacontenttype")
    path = "/datacontenttype"
    if repeated is not None and not binding.repeats_content_type:
        wrong.append(Problem(path, "R39", "datacontenttype must be the content type and not an attribute beside it"))
    elif repeated is not None and stated and repeated != stated[0]:
        wrong.append(Problem(path, "R39", "datacontenttype and the content type differ"))
    if len(stated) > 1:
        wrong.append(Problem(path, "R3", "the content type occurs more than once"))
    if stated:
        given["datacontenttype"] = stated[0]


def _cannot_carry(binding: Binding, event: CloudEvent, named: str | None) -> Iterator[Problem]:
    if named is not None and named.lower().startswith(_EVENT_PREFIX):
        words = f"data of the type {named} would be taken for the event itself; use structured mode"
        yield Problem("/datacontenttype", "R38", words)
    if not binding.tells_empty and event.payload() == b"":
        yield Problem("/data", "R41", "zero bytes of data would be read as no data; use structured mode")


# From one message to another ------------------------------------------------------------------------------------------

# Names of headers and properties that are true of some bytes only.
_OF_THE_PAYLOAD = frozenset(
    (
        "content-encoding", "content-digest", "content-md5", "content-range", "digest", "repr-digest",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Carried:
    """The message that carries the event, and what of the one before is not in it."""

    message: Message
    left: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class _MessagePart:
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


def _left(part: _MessagePart, words: str) -> Problem:
    return Problem(part.path, "lost", f"{part.name} is not carried: {words}")


def _own_parts(event: CloudEvent, source: Message) -> Iterator[_MessagePart]:
    """The parts of a message that are not the event's."""
    row, mode = BINDINGS[source.protocol], mode_of(source)
    return (part for part in _parts(source) if not _is_said(row, mode, event, part.alone(source.protocol)))


def _parts(message: Message) -> Iterator[_MessagePart]:
    for field, value in message.fields.items():
        path = member_pointer("", field)
        if isinstance(value, tuple):
            for index, pair in enumerate(value):
                yield _MessagePart(f"{path}/{index}", field, pair[0], (pair,))
        elif isinstance(value, Mapping):
            for name, item in value.items():
                yield _MessagePart(member_pointer(path, name), field, name, {name: item})
        else:
            yield _MessagePart(path, field, field, value)


def _joined(before: Any, value: Any) -> Any:
    if isinstance(value, tuple):
        return (*(before or ()), *value)
    return {**(before or {}), **value} if isinstance(value, Mapping) else value


def _is_said(row: Binding, mode: Mode, event: CloudEvent, alone: Message) -> bool:
    """Whether the event, or the mode it came in, says what a part of its message does."""
    for stated in row.content_types(alone.fields):
        return stated == event.content_type or str(stated).lower().startswith(_EVENT_PREFIX)
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


def _obstacle(part: _MessagePart, source: Message, bare: Message) -> str | None:
    """Why a part of the source cannot go along with the event, in words."""
    row, alone = BINDINGS[bare.protocol], part.alone(bare.protocol)
    if _family(source) != _family(bare) or part.field not in FIELDS[bare.protocol]:
        return f"{bare.protocol} has no place for it"
    if _is_of_the_connection(part, source):
        return "it belongs to the connection"
    if _is_of_the_payload(part, source) and source.payload != bare.payload:
        return "it is about another payload"
    if row.content_types(alone.fields):
        return "the event has another content type"
    if any(attributes_of(row, alone)) and (mode_of(bare) is Mode.BINARY or row.modes[0] is Mode.STRUCTURED):
        return "it would become an attribute of the event"
    return next((problem.message for problem in sending_problems(alone)), None)


def _family(message: Message) -> str:
    return message.protocol.partition("/")[0]


def _is_of_the_connection(part: _MessagePart, source: Message) -> bool:
    row = PROTOCOLS[source.protocol]
    if part.field in row.of_connection:
        return True
    return part.field == row.binding.attributes_in and part.name.lower() in row.connection_names(source.fields)


def _is_of_the_payload(part: _MessagePart, source: Message) -> bool:
    return part.field in PROTOCOLS[source.protocol].of_payload or part.name.lower() in _OF_THE_PAYLOAD
