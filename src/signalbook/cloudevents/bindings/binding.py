"""What a protocol binding is, and how events go through any of them.

Rule 1: a binding is a row: where attributes are carried and under which prefix, how a value is written there, where the
content type stands, which modes there are. `read` and `write` are the same for all.
Rule 2: the content type says the mode, never the presence of attributes (http 3 and its like).
Rule 3: what a binding cannot carry so that it comes back the same is a `CloudEventError`, not a near thing.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from signalbook.cloudevents.attributes import AttributeValue, is_name, problems, settle_quickly
from signalbook.cloudevents.data import Kind
from signalbook.cloudevents.event import CloudEvent, made
from signalbook.cloudevents.json_format import decode, encode
from signalbook.cloudevents.media_type import EVENT, EVENT_BATCH, read_media_type
from signalbook.cloudevents.rules import CloudEventError
from signalbook.errors import Problem
from signalbook.wire import Message

__all__ = ["Binding", "Mode", "claims_event", "mode_of", "read", "write"]

_EVENT_PREFIX = "application/cloudevents"
_BATCH_PREFIX = "application/cloudevents-batch"


class Mode(enum.StrEnum):
    """How an event is laid into a message."""

    BINARY = "binary"
    STRUCTURED = "structured"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Binding:
    """One protocol's row.

    `carried` gives the metadata of a message that can be attributes, `content_types` what stands where the content
    type is; `read_value` and `write_value` convert one value and raise ValueError; `fields` lays out a message.
    """

    protocol: str
    modes: tuple[Mode, ...]
    carried: Callable[[Message], Iterable[tuple[str, Any]]]
    content_types: Callable[[Message], list[Any]]
    fields: Callable[[str | None, Iterable[tuple[str, Any]]], Mapping[str, Any]]
    read_value: Callable[[Any], AttributeValue | None]
    write_value: Callable[[AttributeValue], Any]
    prefixes: tuple[str, ...] = ("",)
    any_case: bool = False
    # Whether datacontenttype may stand among the attributes too (it must then be the same), or only there.
    repeats_content_type: bool = False
    # The attributes that make a message without content type an event, or a broken one.
    marks: tuple[str, ...] = ("specversion", "id", "source", "type")
    # Whether zero bytes are another thing than no payload.
    tells_empty: bool = False


def mode_of(binding: Binding, message: Message) -> Mode:
    """The mode that the message is in, were it an event."""
    if binding.modes == (Mode.STRUCTURED,):
        return Mode.STRUCTURED
    named = next((text for text in binding.content_types(message) if isinstance(text, str)), "").lower()
    if named.startswith(_BATCH_PREFIX):
        return Mode.BATCH
    if named.startswith(_EVENT_PREFIX):
        return Mode.STRUCTURED
    return Mode.BINARY


def claims_event(binding: Binding, message: Message) -> bool:
    """Whether the message says that it is an event: by its content type, its metadata, or as JSON with `specversion`."""
    if mode_of(binding, message) is Mode.BINARY:
        return any(name in binding.marks for name, _ in _attributes(binding, message))
    if binding.modes != (Mode.STRUCTURED,):
        return True
    payload = (message.payload or b"").lstrip(b" \t\r\n")
    return payload.startswith(b"{") and b'"specversion"' in payload


def read(binding: Binding, message: Message) -> CloudEvent:
    """The event that the message carries; raises `CloudEventError`."""
    mode = mode_of(binding, message)
    if mode is Mode.BINARY:
        return _read_binary(binding, message)
    if mode is Mode.BATCH:
        words = "is a batch, and is to be read as one" if Mode.BATCH in binding.modes else "the binding has no batches"
        raise CloudEventError(Problem("", "R37", words))
    for named in binding.content_types(message) if binding.modes != (Mode.STRUCTURED,) else ():
        expect_media_type(named, EVENT)
    return decode(message.payload or b"")


def write(binding: Binding, event: CloudEvent, mode: str, fields: Mapping[str, Any]) -> Message:
    """The event in a message; `fields` are the protocol's others, such as a topic."""
    if mode not in binding.modes or mode == Mode.BATCH:
        offered = " or ".join(known for known in binding.modes if known is not Mode.BATCH)
        raise CloudEventError(Problem("", "R38", f"{binding.protocol} carries one event in {offered} mode, not {mode}"))
    if mode == Mode.STRUCTURED:
        named = EVENT if binding.modes != (Mode.STRUCTURED,) else None
        return Message(binding.protocol, _merged(fields, binding.fields(named, ())), encode(event))
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
    return Message(binding.protocol, _merged(fields, binding.fields(named, pairs)), event.payload())


def expect_media_type(named: Any, expected: str) -> None:
    """Refuse a content type of another event format than JSON."""
    media = read_media_type(named.strip(" ")) if isinstance(named, str) else None
    if media is None or media.name != expected:
        words = f"the event format {str(named)[:80]!r} is not read; {expected} is"
        raise CloudEventError(Problem("/datacontenttype", "R4", words))


def _merged(fields: Mapping[str, Any], laid: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's fields with the event's; the pairs and sections of both are put together."""
    merged = {name: value for name, value in fields.items() if value is not None}
    for name, value in laid.items():
        given = merged.get(name)
        if given is None:
            merged[name] = value
        elif isinstance(value, tuple):
            merged[name] = (*((found, item) for found, item in given if found.lower() != "content-type"), *value)
        else:
            merged[name] = {**given, **value} if isinstance(value, Mapping) else value
    return merged


def _attributes(binding: Binding, message: Message) -> Iterator[tuple[str, Any]]:
    """The names and values of what is carried as attributes."""
    for found, value in binding.carried(message):
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
    for name, raw in _attributes(binding, message):
        if name in given:
            wrong.append(Problem(f"/{name}", "R3", f"{name} occurs more than once"))
        try:
            given[name] = binding.read_value(raw)
        except ValueError as error:
            wrong.append(Problem(f"/{name}", "R40", f"{name} {error}"))
            given[name] = "?" if name not in ("source", "time") else None
    _take_content_type(binding, message, given, wrong)
    settled = None if wrong else settle_quickly(given.items(), clean=False)
    if settled is None:
        placed = {problem.path for problem in wrong}
        raise CloudEventError(*wrong, *(found for found in problems(given) if found.path not in placed))
    if message.payload is None or (not message.payload and not binding.tells_empty):
        return made(settled, None)
    named: Any = settled.get("datacontenttype")
    media = None if named is None else read_media_type(named)
    if media is not None and media.is_json:
        return made(settled, (Kind.JSON, message.payload, False))
    return made(settled, (Kind.BINARY, message.payload, True))


def _mixed(binding: Binding, message: Message) -> Iterator[Problem]:
    used = {prefix for found, _ in binding.carried(message) for prefix in binding.prefixes if found.startswith(prefix)}
    if len(used) > 1:
        yield Problem("", "R39", f"mixes the prefixes {' and '.join(sorted(used))}")


def _take_content_type(binding: Binding, message: Message, given: dict[str, Any], wrong: list[Problem]) -> None:
    stated = [text for text in binding.content_types(message) if text is not None]
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
        yield Problem("/data", "R41", "zero bytes of data cannot be told from no data; use structured mode")
