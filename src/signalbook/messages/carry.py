"""An event or a payload laid into a protocol's message, beside the fields that a definition gives it.

Rule: what the definition says about a header or user property that is an attribute of the event by the protocol's
binding (`ce-subject`, or in MQTT any property named like an attribute) is said about that attribute: it is set where
the event has none, and a problem where the event's is another.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import brotli
import orjson
import zstandard

from signalbook import schemas
from signalbook.cloudevents import CloudEvent, CloudEventError, Data, encode
from signalbook.cloudevents.attributes import EVENT, canonical, is_name, read_media_type
from signalbook.errors import Problem, UsageError
from signalbook.jsontext import encode_json, is_json_text
from signalbook.messages.answer import Answer
from signalbook.messages.definition import Absolute, schema_address
from signalbook.messages.observe import content_encodings, is_label
from signalbook.protocols import BINDINGS, Binding, Message, Mode, to_message
from signalbook.protocols.binding import attributes_of
from signalbook.protocols.http import is_token
from signalbook.protocols.protocol import as_text, pointer
from signalbook.protocols.values import value_template
from signalbook.schemas import Schema
from signalbook.schemas.format import BadValue
from signalbook.schemas.framing import HEADER, frame, frame_id, framing_header, is_framed

__all__ = [
    "BuildPlan",
    "Built",
    "carry",
    "content_type_of",
    "content_type_texts",
    "encoded",
    "event_data",
    "framed",
    "has_frame",
    "header_value",
    "in_definition",
    "native",
    "schemaid_of",
    "sent_as",
    "structured_type",
    "together",
    "unescaped",
    "written",
]

# `BuildPlan` and `Built`: what a build goes by, and what it gives, as a value and as JSON.


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """What a build goes by: the materialised definition, its schema or why it has none, and what judges the result.

    `absolute` gives a reference its absolute form, where the catalog has an address; `schemaid` and `guid` are what is
    known for Confluent's frame, `asked` what was asked for; `has_ids` says that the catalog has such ids at all.
    """

    document: Mapping[str, Any]
    schema: Schema | Problem | None = None
    judge: Callable[[CloudEvent | Message], Answer] | None = None
    absolute: Absolute = lambda reference: reference if "://" in reference else None
    schemaid: int | None = None
    guid: str | None = None
    asked: int | str | None = None
    has_ids: bool = False

    @property
    def framing(self) -> str | None:
        """What the definition or its group says about Confluent's frame."""
        stated = self.document.get("dataschemaframing")
        return stated.lower() if isinstance(stated, str) else None

    @property
    def usable_schema(self) -> Schema | None:
        """The schema, where payloads can be judged by it."""
        return None if isinstance(self.schema, Problem) else self.schema

    @property
    def schema_address(self) -> str | None:
        """The absolute address of the schema that the definition names."""
        return schema_address(self.document, self.absolute)


@dataclass(frozen=True, slots=True)
class Built:
    """What a build gives: the event and the message where all is well, else what is missing and what is wrong.

    `unchecked` says, as in an answer, that there is a payload schema which could not be applied; `carrier` is the
    protocol of an example whose definition names none, and would be met over any other as well.
    """

    cloudevent: CloudEvent | None = None
    message: Message | None = None
    missing: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    unchecked: tuple[str, ...] = ()
    carrier: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is something to send."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """The result as a JSON value."""
        return self._written(json.loads)

    def to_bytes(self, **beside: Any) -> bytes:
        """The result as one line of JSON, with members of the caller's own before it; numbers stay as they are."""
        return orjson.dumps({**beside, **self._written(orjson.Fragment)})

    def _written(self, event_of: Callable[[bytes], Any]) -> dict[str, Any]:
        written: dict[str, Any] = {"ok": self.ok}
        if self.cloudevent is not None:
            written["cloudevent"] = event_of(encode(self.cloudevent))
        if self.message is not None:
            written["message"] = self.message.to_json()
        if self.unchecked:
            written["unchecked"] = list(self.unchecked)
        if self.carrier:
            written["carrier"] = self.carrier
        if self.missing:
            written["missing"] = list(self.missing)
        if self.problems:
            written["problems"] = [
                {"path": one.path, "code": one.code, "message": one.message} for one in self.problems
            ]
        return written


# The data of a message that is built: its content type, a value as bytes, its frame, and bytes as events have them.


_STRUCTURED = "application/cloudevents"


def content_type_of(
    document: Mapping[str, Any], given: Any, of_fields: Iterable[Any], context: Mapping[str, str]
) -> str | None:
    """The content type of the data: what is given or declared, else what the schema's format implies.

    `of_fields` are those that the protocol's own fields have. One that is declared with placeholders is filled from the
    context; without values for them it says nothing.
    """
    declared = document.get("envelopemetadata")
    stated = declared.get("datacontenttype") if isinstance(declared, Mapping) else None
    candidates = [
        given,
        stated.get("value") if isinstance(stated, Mapping) else None,
        document.get("datacontenttype"),
        *of_fields,
    ]
    for value in candidates:
        text = _filled(value, context) if isinstance(value, str) else None
        if text is not None and not text.lower().startswith(_STRUCTURED):
            return text
    return schemas.media_type(str(document.get("dataschemaformat", "")))


def content_type_texts(document: Mapping[str, Any]) -> list[str]:
    """The content types that a definition states beside its properties."""
    options = document.get("envelopeoptions")
    form = options.get("format") if isinstance(options, Mapping) else None
    return [value for value in (document.get("datacontenttype"), form) if isinstance(value, str)]


def structured_type(document: Mapping[str, Any], context: Mapping[str, str], stated: Iterable[Any]) -> str | None:
    """The content type of the envelope, where the definition or one of those `stated` elsewhere says it is sent."""
    for value in (*content_type_texts(document), *stated):
        text = _filled(value, context) if isinstance(value, str) else None
        if text is not None and text.lower().startswith(_STRUCTURED):
            return text
    return None


def _filled(value: str, context: Mapping[str, str]) -> str | None:
    template = value_template(value, "string", is_content_type=True)
    return template.expand(context) if all(name in context for name in template.names) else None


def schemaid_of(given: Any) -> int | str:
    """The id, or the guid, for Confluent's frame that was asked for; raises `UsageError` where it is not one."""
    if isinstance(given, str):
        with contextlib.suppress(ValueError):
            return str(UUID(given))
    if type(given) is not int or not 0 <= given < 1 << 32:
        shown = f'"{given}"' if isinstance(given, str) else repr(given)
        raise UsageError(f"schemaid is {shown}, but has to be a whole number from 0 to {(1 << 32) - 1}, or a guid")
    return given


def framed(plan: BuildPlan, data: Any, payload: bytes, content_type: str) -> bytes:
    """The payload in the frame that it has to have; bytes that begin as a frame does have theirs.

    Raises KeyError where the id is not known, and `UsageError` where one was given that no frame takes.
    """
    if not has_frame(plan, content_type):
        if plan.asked is not None:
            words = 'payloads are framed where the definition or its group says "dataschemaframing": "confluent"'
            raise UsageError(f"schemaid is given, but the payload has no frame to hold it; {words}")
        return payload
    if plan.framing == HEADER:
        _expect_form(plan, str, "a guid, since the frame is in a header")
        return payload
    _expect_form(plan, int, "a whole number, since the frame is before the payload")
    known = frame_id(payload) if isinstance(data, bytes | bytearray | memoryview) else None
    if known is not None:
        if plan.asked not in (None, known):
            words = f"the payload is framed already, with the schema id {known}, but schemaid is {plan.asked}"
            raise UsageError(f"{words}; give only one of them")
        return payload
    schemaid = plan.schemaid if plan.asked is None else plan.asked
    _expect_indexes(plan)
    if not isinstance(schemaid, int):
        raise KeyError("schemaid")
    return frame(plan.usable_schema, schemaid, payload)


def header_value(plan: BuildPlan) -> bytes:
    """What the header of a record has to hold; raises KeyError where the guid is not known."""
    guid = plan.guid if plan.asked is None else plan.asked
    _expect_indexes(plan)
    if not isinstance(guid, str):
        raise KeyError("schemaid")
    return framing_header(plan.usable_schema, guid)


def _expect_form(plan: BuildPlan, form: type, words: str) -> None:
    if plan.asked is not None and not isinstance(plan.asked, form):
        raise UsageError(f"schemaid is {plan.asked}, but has to be {words}")


def _expect_indexes(plan: BuildPlan) -> None:
    if plan.usable_schema is None and str(plan.document.get("dataschemaformat", "")).lower().startswith("protobuf"):
        words = "the schema that has the message indexes of its frame is not available"
        raise BadValue(f"cannot be framed, since {words}; give bytes that have their frame")


def has_frame(plan: BuildPlan, content_type: str) -> bool:
    """Whether payloads of a definition have to be framed."""
    return is_framed(plan.framing, content_type)


def written(data: Any, content_type: str) -> bytes:
    """Data without a schema: bytes as they are, a text of a type that is not JSON, else JSON with exact numbers."""
    media = read_media_type(content_type) if content_type else None
    if isinstance(data, bytes | bytearray | memoryview) or (media is not None and not media.is_json):
        return Data.of(data, media).content
    try:
        return encode_json(data).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadValue(f"is not a JSON value: {error}") from None


def event_data(payload: bytes | None, content_type: Any) -> Data | None:
    """The data of an event that is built, from its bytes."""
    if payload is None:
        return None
    media = read_media_type(content_type) if isinstance(content_type, str) else None
    if media is None or media.is_json:
        # An Avro or Protobuf payload under a JSON content type is not JSON, and stays the bytes it is.
        return Data.json_text(payload) if is_json_text(payload) else Data.binary(payload)
    if media.name.startswith("text/") or media.name.endswith(("/xml", "+xml")):
        text = as_text(payload)
        return Data.text(text) if isinstance(text, str) else Data.binary(payload)
    return Data.binary(payload)


def carry(event: CloudEvent, protocol: str, mode: str, fields: Mapping[str, Any]) -> tuple[CloudEvent, Message]:
    """The event as it is carried, and the message of the protocol with these fields; raises `CloudEventError`."""
    if mode == Mode.STRUCTURED:
        return event, to_message(event, protocol, mode, **fields)
    row = BINDINGS[protocol]
    left: dict[str, Any] = dict(fields)
    added: dict[str, Any] = {}
    field = row.attributes_in
    if field in left:
        section = left[field]
        pairs = list(section.items() if isinstance(section, Mapping) else section)
        added |= dict(_attributes(row, event, pairs))
        # The binding lays the content type itself, unless an event has another place for it than other messages.
        laid = () if row.native_content_type else ("content-type",)
        kept = [pair for pair in pairs if _attribute_name(row, pair[0]) is None and pair[0].lower() not in laid]
        left[field] = dict(kept) if isinstance(section, Mapping) else tuple(kept)
    carried = event.with_attributes(**added) if added else event
    return carried, to_message(carried, protocol, mode, **left)


def native(protocol: str, fields: dict[str, Any], payload: bytes | None, content_type: str | None) -> Message:
    """A message that is not an event, with its content type where its fields do not say one."""
    message = Message(protocol, fields, payload)
    row = BINDINGS[protocol]
    if content_type is None or row.content_types(message.fields):
        return message
    header = row.native_content_type
    laid = {row.attributes_in: ((header, content_type),)} if header else row.fields(content_type, ())
    return Message(protocol, together(fields, {name: value for name, value in laid.items() if value}), payload)


def sent_as(
    document: Mapping[str, Any], protocol: str, fields: dict[str, Any], context: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """The mode that an event is sent in, and the fields with the content type that the definition has for it then."""
    row = BINDINGS[protocol]
    stated = row.content_types(fields)
    kind = structured_type(document, context, stated)
    options = document.get("envelopeoptions")
    named = options.get("mode") if isinstance(options, Mapping) else None
    usual = row.modes[0] if kind is None else Mode.STRUCTURED
    if kind is None and Mode.BINARY in row.modes and (stated or any(attributes_of(row, Message(protocol, fields)))):
        usual = Mode.BINARY  # a content type of the data, or an attribute among the fields, is that of a binary event
    mode = str(named or usual)
    media = read_media_type(kind) if kind is not None and mode == Mode.STRUCTURED and not stated else None
    if media is None or media.name != EVENT:
        return mode, fields
    laid = row.fields(kind, None)
    return mode, together(fields, {name: value for name, value in laid.items() if value})


def unknown_encoding(stated: str) -> str | None:
    """The first of content encodings, separated by commas, that cannot be applied; None where all can."""
    names = (name.strip().lower() for name in stated.split(","))
    return next((name for name in names if name not in _ENCODERS and not is_label(name)), None)


def encoded(message: Message) -> Message:
    """The message with its payload in the content encodings that it states, of which none is unknown."""
    stated = [name.strip().lower() for name in content_encodings(message).split(",")]
    payload = message.payload
    for name in stated if payload else ():
        if name in _ENCODERS:
            payload = _ENCODERS[name](payload or b"")
    return message if payload is message.payload else Message(message.protocol, message.fields, payload)


def _gzip(payload: bytes) -> bytes:
    return gzip.compress(payload, mtime=0)


_ENCODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
    "br": brotli.compress,
}


def together(own: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Two sets of fields as one; pairs and sections are put together, of all else the second counts."""
    merged = dict(own)
    for name, value in fields.items():
        given = merged.get(name)
        if isinstance(value, tuple) and isinstance(given, tuple):
            value = (*given, *value)
        elif isinstance(value, Mapping) and isinstance(given, Mapping):
            value = {**given, **value}
        merged[name] = value
    return merged


def _attributes(row: Binding, event: CloudEvent, pairs: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The attributes that the pairs add to the event."""
    for found, raw in pairs:
        name = _attribute_name(row, found)
        if name is None or name in ("specversion", "datacontenttype"):
            continue
        try:
            value = row.read_value(raw)
        except ValueError as error:
            raise CloudEventError(Problem(f"/{name}", "R39", f"{found} {error}")) from None
        known = event.get(name)
        if known is None and value is not None:
            yield name, value
        elif known is not None and canonical(known) != canonical(value):
            words = f"{found} is {canonical(value)}, but the event's {name} is {canonical(known)}"
            raise CloudEventError(Problem(f"/{name}", "R39", words))


def _attribute_name(row: Binding, found: str) -> str | None:
    """The name of the attribute that a header or property is; None where it is not an attribute."""
    plain = found.lower() if row.any_case else found
    for prefix in row.prefixes:
        if prefix and plain.startswith(prefix):
            return plain.removeprefix(prefix)
        if not prefix and is_name(plain):
            return plain
    return None


# What is wrong with a message on paper, in the words of its definition.


def in_definition(message: Message, problems: Iterable[Problem]) -> Iterator[tuple[str, Problem]]:
    """Each problem with its path there: a header or user property stands under its name, the payload is the data."""
    for problem in problems:
        field, _, rest = problem.path.removeprefix("/").partition("/")
        place = rest.partition("/")[0]
        pairs = message.get(field)
        if field == "payload":
            yield "/data", problem
        elif isinstance(pairs, tuple) and place.isdecimal() and int(place) < len(pairs):
            name = str(pairs[int(place)][0])
            if is_token(name):
                yield pointer(f"/protocoloptions/{field}", name), replace(problem, message=f"{name} {problem.message}")
            else:  # what is not a name cannot be one of a place either
                yield f"/protocoloptions/{field}/{place}", problem
        else:
            yield f"/protocoloptions{problem.path}", replace(problem, message=f"{field} {problem.message}")


def unescaped(step: str) -> str:
    """A step of a JSON Pointer as the name that it stands for."""
    return step.replace("~1", "/").replace("~0", "~")
