"""Building a message by its definition: a CloudEvent, and the protocol's message where there is one.

Rule 1: a build gives what was asked for or every reason why not, all at once: `missing` names what has to be given,
`problems` says what is wrong with what was.
Rule 2: what was built matches its own definition, and gives the same context back: it is matched before it is given.
Rule 3: nothing here reads a clock or makes an id by itself: both come from an `Origin`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from signalbook import schemas
from signalbook.cloudevents import ABSENT, CloudEvent, CloudEventError, Data, encode
from signalbook.cloudevents.attributes import ATTRIBUTE_TYPES, is_name
from signalbook.cloudevents.bindings import BINDINGS, Mode
from signalbook.cloudevents.json_value import is_json_text
from signalbook.cloudevents.media_type import read_media_type
from signalbook.errors import Problem, UsageError
from signalbook.messages.answer import Answer
from signalbook.messages.carry import carry, encoded, native, together
from signalbook.messages.filling import NOTHING, Filling, Origin, texts
from signalbook.messages.slots import BadSlot, Slot, envelope_slots, lay_out, protocol_slots, typed
from signalbook.schemas import Schema
from signalbook.schemas.json_exact import encode as encode_json
from signalbook.schemas.samples import BadValue, payload_of
from signalbook.wire import FIELDS, Message, WireError, find_protocol

__all__ = ["Built", "Plan", "build"]

_STRUCTURED = "application/cloudevents"


@dataclass(frozen=True, slots=True)
class Built:
    """What a build gives: the event and the message where all is well, else what is missing and what is wrong."""

    cloudevent: CloudEvent | None = None
    message: Message | None = None
    missing: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is something to send."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """The result as a JSON value."""
        written: dict[str, Any] = {"ok": self.ok}
        if self.cloudevent is not None:
            written["cloudevent"] = orjson.Fragment(encode(self.cloudevent))
        if self.message is not None:
            written["message"] = self.message.to_json()
        if self.missing:
            written["missing"] = list(self.missing)
        if self.problems:
            written["problems"] = [
                {"path": one.path, "code": one.code, "message": one.message} for one in self.problems
            ]
        return written

    def to_bytes(self) -> bytes:
        """The result as one line of JSON."""
        return orjson.dumps(self.to_json())


@dataclass(frozen=True, slots=True)
class Plan:
    """What a build goes by: the materialised definition, its schema, and what judges the result."""

    document: Mapping[str, Any]
    schema: Schema | None = None
    judge: Callable[[CloudEvent | Message], Answer] | None = None


def build(
    plan: Plan,
    *,
    data: Any = ABSENT,
    context: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
    protocol: str | Mapping[str, Any] | None = None,
    origin: Origin | None = None,
) -> Built:
    """The message that the definition and these values make.

    `context` has the values of placeholders, `attributes` those of properties, by name; `protocol` names the protocol
    to use where the definition leaves it open, or is an object that also has fields of its own for the message.
    """
    return _Building(plan, texts(context), dict(attributes or {}), origin or Origin()).build(data, protocol)


class _Building:
    """One build."""

    def __init__(self, plan: Plan, context: dict[str, str], given: dict[str, Any], origin: Origin) -> None:
        self.plan = plan
        self.document = plan.document
        self.given = given
        self.filling = Filling(context, origin)

    def build(self, data: Any, asked: str | Mapping[str, Any] | None) -> Built:
        protocol, own = self._protocol(asked)
        is_event = str(self.document.get("envelope", "")).lower().startswith("cloudevents/")
        if not is_event and not protocol and data is ABSENT and "dataschemaformat" not in self.document:
            self._wrong("", "protocol", "the definition has neither envelope nor protocol; name a protocol")
        slots = {slot.name: slot for slot in envelope_slots(self.document)} if is_event else {}
        fields = list(protocol_slots(protocol, self.document)) if protocol else []
        for_event, for_fields = self._sorted(slots, fields, is_event)
        self.filling.learn([(slot, for_event[name]) for name, slot in slots.items() if name in for_event])
        self.filling.learn([(slot, for_fields[slot.label]) for slot in fields if slot.label in for_fields])
        payload = self._payload(data)
        event = self._event(slots, for_event, payload) if is_event else None
        filled = self._filled(fields, for_fields, event)
        message = None
        if protocol and not self.filling.missing and (event is not None or not is_event):
            event, message = self._message(protocol, own, filled, event, payload)
            message = self._encoded(message)
        if not self.filling.problems and not self.filling.missing:
            self._judge(event, message)
        gaps = tuple(self.filling.missing.values())
        problems = (*gaps, *self.filling.problems)
        if problems:
            return Built(None, None, tuple(self.filling.missing), problems)
        return Built(event, message)

    # What was asked for ----------------------------------------------------------------------------------------------

    def _protocol(self, asked: str | Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
        """The protocol to use, and the fields that were given for its message."""
        own = dict(asked) if isinstance(asked, Mapping) else {}
        named = own.pop("protocol", None) if isinstance(asked, Mapping) else asked
        declared = find_protocol(str(self.document.get("protocol") or ""))
        if self.document.get("protocol") and declared is None:
            self._wrong("/protocol", "protocol", f"{self.document['protocol']} is no protocol that can be built for")
        if named is None:
            return declared or "", self._own_fields(declared or "", own)
        wanted = find_protocol(str(named))
        if wanted is None:
            raise UsageError(f"'{named}' is not one of the protocols {', '.join(FIELDS)}")
        if declared is not None and wanted != declared:
            self._wrong("/protocol", "protocol", f"the definition is one of {declared}, not of {wanted}")
        return wanted, self._own_fields(wanted, own)

    def _own_fields(self, protocol: str, own: dict[str, Any]) -> dict[str, Any]:
        if not own:
            return {}
        try:
            return dict(Message.from_json({"protocol": protocol, **own}).fields)
        except WireError as error:
            self.filling.problems += [replace(one, path=f"/protocoloptions{one.path}") for one in error.problems]
            return {}

    def _sorted(
        self, slots: Mapping[str, Slot], fields: list[Slot], is_event: bool
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The given attributes: those of the event, and those of the protocol's message."""
        labels = {slot.label for slot in fields}
        for_event: dict[str, Any] = {}
        for_fields: dict[str, Any] = {}
        for name, value in self.given.items():
            if is_event and (name in slots or name in ATTRIBUTE_TYPES or (is_name(name) and name not in labels)):
                for_event[name] = value
            elif name in labels:
                for_fields[name] = value
            else:
                self._wrong(f"/{name}", "value", f"the definition has no property {name}")
        return for_event, for_fields

    # The payload -----------------------------------------------------------------------------------------------------

    def _content_type(self) -> str | None:
        """The content type of the data: what is given or declared, else what the schema's format implies."""
        declared = self.document.get("envelopemetadata")
        stated = declared.get("datacontenttype") if isinstance(declared, Mapping) else None
        candidates = [
            self.given.get("datacontenttype"),
            stated.get("value") if isinstance(stated, Mapping) else None,
            self.document.get("datacontenttype"),
        ]
        for value in candidates:
            if isinstance(value, str) and "{" not in value and not value.lower().startswith(_STRUCTURED):
                return value
        row = schemas.find(str(self.document.get("dataschemaformat", "")))
        return row.media[0] if row is not None else None

    def _payload(self, data: Any) -> bytes | None:
        """The data as bytes, which the schema accepts."""
        if data is ABSENT:
            return None
        content_type = self._content_type() or ""
        try:
            if self.plan.schema is not None:
                payload = payload_of(self.plan.schema, data, content_type)
            else:
                payload = _written(data, content_type)
        except BadValue as bad:
            self._wrong(f"/data{bad.path}", "payload", bad.message)
            return None
        except CloudEventError as error:
            self.filling.problems += [Problem("/data", "payload", one.message) for one in error.problems]
            return None
        if self.plan.schema is not None:
            for problem in self.plan.schema.check(payload, content_type).problems:
                code = "schema_unavailable" if problem.code == "schema_unavailable" else "payload"
                self._wrong(f"/data{problem.path}", code, problem.message)
        return payload

    # The event -------------------------------------------------------------------------------------------------------

    def _event(self, slots: Mapping[str, Slot], given: Mapping[str, Any], payload: bytes | None) -> CloudEvent | None:
        attributes: dict[str, Any] = {"specversion": "1.0"}
        for name in dict.fromkeys(("type", "source", "id", *slots, *given)):
            slot = slots.get(name) or Slot(f"/envelopemetadata/{name}", "", name, "string", None, name in _NEEDED)
            value = self._attribute(slot, given.get(name, NOTHING))
            if value is not NOTHING:
                attributes[name] = value
        if payload is not None:
            content_type = self._content_type()
            if content_type is not None:
                attributes.setdefault("datacontenttype", content_type)
        schema = self.document.get("dataschemauri")
        if isinstance(schema, str) and "://" in schema:
            attributes.setdefault("dataschema", schema)
        if self.filling.missing:
            return None
        try:
            return CloudEvent(attributes, _data(payload, attributes.get("datacontenttype")))
        except CloudEventError as error:
            for problem in error.problems:
                path = problem.path if problem.path == "/data" else f"/envelopemetadata{problem.path}"
                self._wrong(path, "payload" if path == "/data" else "value", problem.message)
            return None

    def _attribute(self, slot: Slot, given: Any) -> Any:
        if given is None:
            given = NOTHING
        if given is NOTHING and slot.value is None:
            if slot.name == "id":
                return self.filling.origin.new_id()
            if slot.name == "time":
                return self.filling.now()
        value = self.filling.value(slot, given)
        try:
            return typed(slot.type, value)
        except ValueError as error:
            self.filling.wrong(slot, "type", f"value ({value}) {error}")
            return NOTHING

    # The message -----------------------------------------------------------------------------------------------------

    def _filled(self, fields: list[Slot], given: Mapping[str, Any], event: CloudEvent | None) -> list[tuple[Slot, Any]]:
        filled = []
        for slot in fields:
            is_id = slot.field == "properties" and slot.name == "message-id" and slot.value is None
            if is_id and slot.label not in given:
                value = self._message_id(slot, event)
            else:
                value = self.filling.value(slot, given.get(slot.label, NOTHING))
            if value is not NOTHING:
                filled.append((slot, value))
        return filled

    def _message_id(self, slot: Slot, event: CloudEvent | None) -> Any:
        """An AMQP message's own id where one is required: the event's, or a new one where ids can be of its type."""
        if not slot.required or slot.type not in ("string", "uuid", "uritemplate"):
            return self.filling.value(slot)
        return event.id if event is not None and slot.type != "uuid" else self.filling.origin.new_id()

    def _message(
        self,
        protocol: str,
        own: dict[str, Any],
        filled: list[tuple[Slot, Any]],
        event: CloudEvent | None,
        payload: bytes | None,
    ) -> tuple[CloudEvent | None, Message | None]:
        try:
            fields = together(own, lay_out(protocol, filled))
        except BadSlot as bad:
            self.filling.wrong(bad.slot, "type", str(bad))
            return event, None
        if protocol == "HTTP" and "status" not in fields:
            fields.setdefault("method", "POST")
        if event is None:
            return None, native(protocol, fields, payload, self._content_type() if payload is not None else None)
        try:
            return carry(event, protocol, self._mode(protocol), fields)
        except CloudEventError as error:
            for problem in error.problems:
                self._wrong(f"/envelopemetadata{problem.path}" if problem.path else "", "value", problem.message)
            return event, None
        except WireError as error:
            for problem in error.problems:
                self._wrong(f"/protocoloptions{problem.path}", "value", problem.message)
            return event, None

    def _encoded(self, message: Message | None) -> Message | None:
        try:
            return None if message is None else encoded(message)
        except ValueError as error:
            self._wrong("/data", "payload", str(error))
            return None

    def _mode(self, protocol: str) -> str:
        options = self.document.get("envelopeoptions")
        stated = options.get("mode") if isinstance(options, Mapping) else None
        if stated is None and str(self.document.get("datacontenttype", "")).lower().startswith(_STRUCTURED):
            return Mode.STRUCTURED
        return str(stated or BINDINGS[protocol].modes[0])

    # The proof -------------------------------------------------------------------------------------------------------

    def _judge(self, event: CloudEvent | None, message: Message | None) -> None:
        """Match what was built, and note where its definition does not hold or gives other values back."""
        built = message or event
        if built is None or self.plan.judge is None:
            return
        answer = self.plan.judge(built)
        for problem in answer.problems:
            names = self.filling.left_out.get(problem.path, ())
            for name in names if problem.code == "missing" else ():
                self.filling.missing.setdefault(name, problem)
            if not names:
                self.filling.problems.append(problem)

    def _wrong(self, path: str, code: str, words: str) -> None:
        self.filling.problems.append(Problem(path, code, words))


_NEEDED = frozenset({"type", "source", "id"})


def _written(data: Any, content_type: str) -> bytes:
    """Data without a schema: bytes as they are, a text of a type that is no JSON, else JSON with exact numbers."""
    media = read_media_type(content_type) if content_type else None
    if isinstance(data, bytes | bytearray | memoryview) or (media is not None and not media.is_json):
        return Data.of(data, media).content
    try:
        return encode_json(data).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadValue(f"is no JSON value: {error}") from None


def _data(payload: bytes | None, content_type: Any) -> Data | None:
    if payload is None:
        return None
    media = read_media_type(content_type) if isinstance(content_type, str) else None
    if media is None or media.is_json:
        # An Avro or Protobuf payload under a JSON content type is not JSON, and stays the bytes it is.
        return Data.json_text(payload) if is_json_text(payload) else Data.binary(payload)
    if media.name.startswith("text/") or media.name.endswith(("/xml", "+xml")):
        try:
            return Data.text(payload.decode())
        except UnicodeDecodeError:
            return Data.binary(payload)
    return Data.binary(payload)
