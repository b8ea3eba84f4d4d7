"""Building a message by its definition: a CloudEvent, and the protocol's message where there is one.

Rule 1: a build gives what was asked for or every reason why not, all at once: `missing` names what has to be given,
`problems` says what is wrong with what was.
Rule 2: what was built matches its own definition, and gives the same context back: it is matched before it is given.
Rule 3: nothing here reads a clock or makes an id by itself: both come from an `Origin`.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec

from signalbook.cloudevents import ABSENT, CloudEvent, CloudEventError
from signalbook.cloudevents.attributes import ATTRIBUTE_TYPES, is_name, read_media_type
from signalbook.errors import Problem, UsageError
from signalbook.jsontext import JsonError, decode_fast, decode_json
from signalbook.messages.carry import (
    BuildPlan,
    Built,
    carry,
    content_type_of,
    content_type_texts,
    encoded,
    event_data,
    framed,
    header_value,
    in_definition,
    native,
    schemaid_of,
    sent_as,
    together,
    unescaped,
    unknown_encoding,
    written,
)
from signalbook.messages.fill import (
    NOTHING,
    BadSlot,
    Filling,
    Origin,
    Slot,
    envelope_slots,
    in_event,
    lay_out,
    protocol_slots,
    template_of,
)
from signalbook.messages.nearest import edits
from signalbook.messages.observe import content_encodings
from signalbook.protocols import (
    FIELDS,
    PROTOCOLS,
    Message,
    WireError,
    address_of,
    find_protocol,
    read_members,
    sendable,
)
from signalbook.protocols.message import stated_protocol
from signalbook.protocols.protocol import as_text, pointer
from signalbook.protocols.values import canonical
from signalbook.schemas import payload_of
from signalbook.schemas.format import BadValue
from signalbook.schemas.framing import HEADER, VALUE_HEADER
from signalbook.template import Template

__all__ = [
    "STAND_IN",
    "BuildPlan",
    "Built",
    "build",
    "changed_in_json",
    "context_texts",
    "json_flaws",
    "own_values",
    "read_values",
    "scalar_flaw",
    "unknown_name",
]

# What a build is given, checked before it is used: the values of placeholders and properties, and the data.
#
# Rule: nothing is dropped or changed silently: a name that nothing asks for, a value that is not a scalar, and a number
# or a name that JSON does not have are problems.


# What takes the place of a value that is missing or wrong, so that everything else can be judged.
STAND_IN = "x"
_SEVERAL = (Mapping, list, tuple, set, frozenset)
_MOST_FLAWS = 20
_surrogate = re.compile("[\ud800-\udfff]").search


def context_texts(context: Mapping[str, Any], problems: list[Problem]) -> dict[str, str]:
    """The values of placeholders as the texts that templates hold; None is not a value."""
    found: dict[str, str] = {}
    for name, value in context.items():
        if value is None:
            continue
        flaw = scalar_flaw(value) if isinstance(value, str | int | float | Decimal) else _NO_SCALAR
        if flaw is None:
            found[name] = canonical(value)
        else:
            problems.append(Problem(pointer("", str(name)), "type", f"{name} {flaw}"))
            found[name] = STAND_IN
    return found


_NO_SCALAR = "must be a text, a number or a boolean"


def scalar_flaw(value: Any) -> str | None:
    """What is wrong with the value of a property or a placeholder."""
    if isinstance(value, _SEVERAL):
        return _NO_SCALAR
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return f"is {value}, which is not a number"
    if isinstance(value, str) and not value.isascii() and _surrogate(value):
        return "must be a text without unpaired surrogates"
    return None


def unknown_name(name: str, kind: str, known: Collection[str]) -> Problem:
    """That a definition has nothing of a name, with the one that may have been meant."""
    words = f'the definition has no {kind} "{name}"'
    nearest = min(known, key=lambda one: (edits(one.lower(), name.lower()), one), default=None)
    if nearest is not None and edits(nearest.lower(), name.lower()) <= max(1, len(name) // 3):
        words += f'; it has "{nearest}"'
    return Problem(pointer("", name), "value", words)


def changed_in_json(data: Any, text: bytes) -> list[tuple[str, str]]:
    """The places where the JSON text of a value may be that of another value, and in words why."""
    try:
        if decode_fast(text) == data:
            return []
    except (ValueError, RecursionError):
        pass  # a number that orjson does not take; the closer look below is always right
    return list(json_flaws(data))


def json_flaws(data: Any) -> Iterator[tuple[str, str]]:
    """The places in a value, and in words what JSON does not have there though Python has."""
    seen: set[int] = set()
    left: list[tuple[str, Any]] = [("", data)]
    found = 0
    while left and found < _MOST_FLAWS:
        path, value = left.pop()
        if isinstance(value, Mapping | list | tuple):
            if id(value) in seen:
                continue
            seen.add(id(value))
        if isinstance(value, Mapping):
            named = [(name, one) for name, one in value.items() if isinstance(name, str)]
            left += [(pointer(path, name), one) for name, one in reversed(named)]
            for name in (name for name in value if not isinstance(name, str)):
                found += 1
                yield path, f"has the name {name!r}, which is not a text"
        elif isinstance(value, list | tuple):
            left += [(f"{path}/{at}", one) for at, one in reversed(list(enumerate(value)))]
        elif isinstance(value, float | Decimal) and not math.isfinite(value):
            found += 1
            yield path, f"is {value}, which is not a number of JSON"


def own_values(protocol: str | None, own: Mapping[str, Any], fields: list[Slot]) -> dict[str, Any]:
    """The single values among a message's own fields that the definition says something about, too."""
    found: dict[str, Any] = {}
    special = PROTOCOLS[protocol].special if protocol else {}
    for slot in fields:
        option = special.get(slot.field)
        value = own.get(slot.field if option is None else option.field)
        if slot.name:
            value = value.get(slot.name) if isinstance(value, Mapping) else None
        if option is not None and value is not None:
            value = option.read(slot.type, value)[0]
        elif isinstance(value, bytes):
            value = as_text(value)
        if isinstance(value, str | int | float | bytes):
            found[slot.label] = value
    return found


# The values that a build is asked with, as one JSON object: its context, attributes, data, protocol and schemaid.
#
# Rule: every member may be left out; whatever else there is, or has another type, is a `UsageError` in words.


_OBJECTS = ("context", "attributes")
_SCALARS = (str, int, float, bool, type(None))


def read_values(text: bytes) -> dict[str, Any]:
    r"""The arguments of `build` that a JSON object has; numbers in `data` stay exact.

    >>> read_values(b'{"context": {"vin": "A1"}, "data_base64": "AQI="}')
    {'context': {'vin': 'A1'}, 'data': b'\x01\x02'}
    """
    try:
        members = read_members(text)
        values = {name: decode_json(bytes(raw)) for name, raw in members.items()}
    except (JsonError, msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"the values are not one JSON object: {error}") from None
    known = {"context", "attributes", "data", "data_base64", "protocol", "definition", "schemaid"}
    unknown = sorted(values.keys() - known)
    if unknown:
        raise UsageError(f"'{unknown[0]}' is not one of {', '.join(sorted(known))}")
    for name in _OBJECTS:
        if values.get(name) is not None:
            _expect_scalars(name, values[name])
    if not isinstance(values.get("protocol"), str | dict | None):
        raise UsageError("protocol is a name, or an object with a name and fields")
    if values.get("schemaid") is not None:
        schemaid_of(values["schemaid"])
    if "data_base64" in values:
        values["data"] = _decoded(values.pop("data_base64"), "data" in values)
    return {name: value for name, value in values.items() if value is not None or name == "data"}


def _expect_scalars(name: str, value: Any) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(one, _SCALARS) for one in value.values()):
        raise UsageError(f"{name} is an object of texts, numbers and booleans")


def _decoded(value: Any, twice: bool) -> bytes:
    if twice:
        raise UsageError("data and data_base64 must not be there together")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise UsageError("data_base64 is not valid Base64") from None


def build(
    plan: BuildPlan,
    *,
    data: Any = ABSENT,
    context: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
    protocol: str | Mapping[str, Any] | None = None,
    schemaid: int | str | None = None,
    origin: Origin | None = None,
) -> Built:
    """The message that the definition and these values make.

    `context` has the values of placeholders, `attributes` those of properties, by name; `protocol` names the protocol
    to use where the definition leaves it open, or is an object that also has fields of its own for the message;
    `schemaid` is the id for Confluent's frame, where the definition declares one; the guid, where that is a header.
    """
    if schemaid is not None:
        plan = replace(plan, asked=schemaid_of(schemaid))
    return _MessageBuild(plan, dict(attributes or {}), origin or Origin()).build(data, context or {}, protocol)


class _MessageBuild:
    """One build.

    What is missing or wrong is noted, and a stand-in or nothing takes its place, so that all else is judged as well;
    `unsure` has the paths of which nothing more is said then, `rejected` those whose given value was not used.
    """

    def __init__(self, plan: BuildPlan, given: dict[str, Any], origin: Origin) -> None:
        self.plan = plan
        self.document = plan.document
        self.given = given
        self.filling = Filling({}, origin)
        self.unchecked: tuple[str, ...] = ()
        self.unsure: set[str] = set()
        self.rejected: set[str] = set()
        self.of_fields: list[Any] = []
        self.is_encoded = False  # the payload is bytes that have the content encoding, which is not known here

    def build(self, data: Any, context: Mapping[str, Any], asked: str | Mapping[str, Any] | None) -> Built:
        protocol, own = self._protocol(asked)
        is_event = str(self.document.get("envelope", "")).lower().startswith("cloudevents/")
        if not is_event and not protocol and stated_protocol(self.document.get("protocol")) is None:
            self._wrong("", "protocol", "the definition has neither protocol nor CloudEvents envelope; name a protocol")
        slots = {slot.name: slot for slot in envelope_slots(self.document)} if is_event else {}
        fields = list(protocol_slots(protocol, self.document)) if protocol else []
        self._take_context(context, [*slots.values(), *fields])
        for_event, for_fields = self._sorted(slots, fields, is_event, protocol)
        for_fields = {**own_values(protocol, own, fields), **for_fields}
        self.filling.learn([(slot, for_event[name]) for name, slot in slots.items() if name in for_event])
        self.filling.learn([(slot, for_fields[slot.label]) for slot in fields if slot.label in for_fields])
        if "datacontenttype" in for_event and isinstance(stated := self.document.get("datacontenttype"), str):
            # What is given for the event says what the definition's own is, which is not a property.
            own_type = Slot("/datacontenttype", "", "datacontenttype", "string", stated, is_content_type=True)
            self.filling.learn([(own_type, for_event["datacontenttype"])])
        self.of_fields = [for_fields.get(slot.label, slot.value) for slot in fields if slot.is_content_type]
        stated = self._encodings(protocol, own, fields, for_fields)
        self.is_encoded = isinstance(data, _BYTES) and unknown_encoding(stated) is not None
        payload = self._payload(data)
        event = self._event(slots, for_event, payload) if is_event else None
        filled = self._filled(protocol, fields, for_fields, event)
        message = None
        if protocol and (event is not None or not is_event):
            event, message = self._message(protocol, own, filled, event, payload)
            message = self._sendable(self._with_header(message, payload), payload)
        elif payload is not None and self.plan.framing == HEADER:
            self._no_header("name KAFKA as the protocol")
        self._judge(event, message)
        if isinstance(self.plan.schema, Problem) and type(self.plan.schema) is Problem:
            self._note(self.plan.schema)
        missing = {name: gap for name, gap in self.filling.missing.items() if gap.path not in self.rejected}
        problems = (*missing.values(), *self.filling.problems)
        if problems:
            return Built(None, None, tuple(missing), problems)
        return Built(event, message, unchecked=self.unchecked)

    # What was asked for ----------------------------------------------------------------------------------------------

    def _protocol(self, asked: str | Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
        """The protocol to use, and the fields that were given for its message."""
        own = dict(asked) if isinstance(asked, Mapping) else {}
        named = own.pop("protocol", None) if isinstance(asked, Mapping) else asked
        stated = stated_protocol(self.document.get("protocol"))
        declared = find_protocol(stated) if stated else None
        if stated and declared is None:
            words = f'"{stated}" is not a protocol that can be built for; they are {", ".join(FIELDS)}'
            self._wrong("/protocol", "protocol", words)
        if named is None:
            return declared or "", self._own_fields(declared or "", own)
        wanted = find_protocol(str(named))
        if wanted is None:
            raise UsageError(f'"{named}" is not a protocol; use one of {", ".join(FIELDS)}')
        if declared is not None and wanted != declared:
            self._wrong("/protocol", "protocol", f'the definition is for "{declared}", not for "{wanted}"')
            self._own_fields(wanted, own)
            return declared, {}
        return wanted, self._own_fields(wanted, own)

    def _own_fields(self, protocol: str, own: dict[str, Any]) -> dict[str, Any]:
        flaws = list(json_flaws(own))
        if flaws:
            self.filling.problems += [Problem(f"/protocoloptions{path}", "type", words) for path, words in flaws]
        if not own or flaws:
            return {}
        try:
            return dict(Message.from_json({"protocol": protocol, **own}).fields)
        except WireError as error:
            wrong = error.problems
        for one in wrong:
            self._wrong(f"/protocoloptions{one.path}", "type" if one.code == "type" else "value", one.message)
        names = {unescaped(one.path.split("/")[1]) for one in wrong if one.path}
        right = {name: value for name, value in own.items() if name not in names}
        return self._own_fields(protocol, right) if len(right) < len(own) else {}

    def _take_context(self, context: Mapping[str, Any], slots: list[Slot]) -> None:
        """The values of the definition's placeholders; a name that it has not would change nothing."""
        templates = (template_of(slot) for slot in slots)
        known = dict.fromkeys(name for one in templates if one is not None for name in one.names)
        for text in content_type_texts(self.document):
            known |= dict.fromkeys(Template.parse(text).names)
        for name in context:
            if name not in known:
                self.filling.problems.append(unknown_name(str(name), "placeholder", known))
        of_ours = {name: value for name, value in context.items() if name in known}
        self.filling.context.update(context_texts(of_ours, self.filling.problems))

    def _sorted(
        self, slots: Mapping[str, Slot], fields: list[Slot], is_event: bool, protocol: str
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The given attributes: those of the event, and those of the protocol's message."""
        labels = {slot.label: slot for slot in fields}
        for_event: dict[str, Any] = {}
        for_fields: dict[str, Any] = {}
        for name, value in self.given.items():
            of_event = is_event and (name in slots or name in ATTRIBUTE_TYPES)
            if not of_event and name not in labels and name in FIELDS.get(protocol, ()):
                self._wrong(pointer("", name), "value", f"{name} is a field of {protocol}: give it under protocol")
            elif not of_event and name not in labels and not (is_event and is_name(name)):
                self.filling.problems.append(unknown_name(name, "property", [*slots, *labels]))
            elif (flaw := scalar_flaw(value)) is not None:
                slot = slots.get(name) if name not in labels or of_event else labels[name]
                path = pointer("/envelopemetadata", name) if slot is None else slot.path
                self._wrong(path, "type", f"{name} {flaw}")
                self.rejected.add(path)
            elif of_event or name not in labels:
                for_event[name] = value
            else:
                for_fields[name] = value
        self.given = for_event
        return for_event, for_fields

    # The payload -----------------------------------------------------------------------------------------------------

    def _content_type(self) -> str | None:
        given = self.given.get("datacontenttype")
        return content_type_of(self.document, given, self.of_fields, self.filling.context)

    def _payload(self, data: Any) -> bytes | None:
        """The data as bytes, which the schema accepts; empty where it could not be written."""
        if data is ABSENT:
            return None
        if self.is_encoded:
            return bytes(data)
        content_type = self._content_type() or ""
        try:
            if self.plan.usable_schema is not None:
                payload = payload_of(self.plan.usable_schema, data, content_type)
            else:
                payload = written(data, content_type)
            if self._is_changed(data, payload, content_type):
                return b""
        except BadValue as bad:
            self._wrong(f"/data{bad.path}", "payload", bad.message)
            return b""
        except CloudEventError as error:
            self.filling.problems += [Problem("/data", "payload", one.message) for one in error.problems]
            return b""
        may_be_framed = isinstance(data, bytes | bytearray | memoryview) and payload[:1] == b"\0"
        if self.plan.usable_schema is not None and not may_be_framed:
            for problem in self.plan.usable_schema.check(payload, content_type).problems:
                code = "schema_unavailable" if problem.code == "schema_unavailable" else "payload"
                self._wrong(f"/data{problem.path}", code, problem.message)
        return self._framed(data, payload, content_type)

    def _encodings(self, protocol: str, own: Mapping[str, Any], fields: list[Slot], given: Mapping[str, Any]) -> str:
        """The content encodings that the message will state, as far as they are known before there is one."""
        found = [content_encodings(Message(protocol, own))] if protocol else []
        for slot in fields:
            if slot.field in _ENCODED_IN and slot.name.lower() == "content-encoding":
                template = template_of(slot)
                is_filled = template is not None and all(name in self.filling.context for name in template.names)
                value = template.expand(self.filling.context) if template is not None and is_filled else slot.value
                found.append(str(given.get(slot.label, value) or ""))
        return ",".join(found)

    def _framed(self, data: Any, payload: bytes, content_type: str) -> bytes:
        try:
            return framed(self.plan, data, payload, content_type)
        except BadValue as bad:
            self._wrong("/data", "value", bad.message)
        except KeyError:
            self._lacks_id("id", "confluentid")
        return payload

    def _lacks_id(self, what: str, attribute: str) -> None:
        words = f"the payload is framed, so give the {what} of its schema as schemaid"
        if self.plan.has_ids:
            words += f", or as {attribute} of the schema's version in the catalog, where it has none"
        self.filling.missing.setdefault("schemaid", Problem("/data", "missing", words))

    def _with_header(self, message: Message | None, payload: bytes | None) -> Message | None:
        """The message with the header that Confluent's frame is in, where the definition declares that."""
        if message is None or payload is None or self.plan.framing != HEADER:
            return message
        if not PROTOCOLS[message.protocol].frame_in_header or message.payload != payload:
            self._no_header("send it over KAFKA, and an event in binary mode")
            return message
        headers = message.get("headers") or ()
        if any(name == VALUE_HEADER for name, _ in headers):
            return message
        try:
            added = (VALUE_HEADER, header_value(self.plan))
        except BadValue as bad:
            self._wrong("/data", "value", bad.message)
        except KeyError:
            self._lacks_id("guid", "confluentguid")
        else:
            return replace(message, fields={**message.fields, "headers": (*headers, added)})
        return message

    def _no_header(self, instead: str) -> None:
        words = f'"dataschemaframing" is "{HEADER}", but the message has no header to hold the frame; {instead}'
        self._wrong("/data", "payload", words)

    def _is_changed(self, data: Any, payload: bytes, content_type: str) -> bool:
        """Whether the data has something that JSON has not and that was written as something else; it is noted."""
        schema, media = self.plan.usable_schema, read_media_type(content_type) if content_type else None
        is_json = schema.format.lower().startswith("json") if schema is not None else media is None or media.is_json
        if not is_json or isinstance(data, bytes | bytearray | memoryview):
            return False
        flaws = changed_in_json(data, payload)
        for path, words in flaws:
            self._wrong(f"/data{path}", "payload", words)
        return bool(flaws)

    # The event -------------------------------------------------------------------------------------------------------

    def _event(self, slots: Mapping[str, Slot], given: Mapping[str, Any], payload: bytes | None) -> CloudEvent | None:
        attributes: dict[str, Any] = {"specversion": "1.0"}
        inferred = self._inferred()
        for name in dict.fromkeys(("type", "source", "id", *slots, *given)):
            slot = slots.get(name) or Slot(f"/envelopemetadata/{name}", "", name, "string", None, name in _NEEDED)
            unless_given = inferred.get(name, NOTHING) if slot.value is None else NOTHING
            value = self._attribute(slot, given.get(name, unless_given))
            if value is not NOTHING:
                attributes[name] = value
        attributes = {**attributes, **{name: inferred[name] for name in inferred if name not in attributes}}
        for name in sorted(_NEEDED - attributes.keys()):
            self.unsure.add(f"/envelopemetadata/{name}")
            attributes[name] = STAND_IN
        return self._made(attributes, payload)

    def _inferred(self) -> dict[str, str]:
        """The attributes that the definition says elsewhere (message/spec.md, CloudEvents/1.0)."""
        found = {"datacontenttype": self._content_type(), "dataschema": self.plan.schema_address}
        return {name: value for name, value in found.items() if value is not None}

    def _made(self, attributes: dict[str, Any], payload: bytes | None) -> CloudEvent | None:
        """The event; what is wrong with it is noted and left out or replaced."""
        try:
            return CloudEvent(attributes, event_data(payload, attributes.get("datacontenttype")))
        except CloudEventError as error:
            wrong = error.problems
        for problem in wrong:
            path = problem.path if problem.path == "/data" else f"/envelopemetadata{problem.path}"
            self._wrong(path, "payload" if path == "/data" else "value", problem.message)
        names = {unescaped(problem.path[1:]) for problem in wrong}
        right = {name: value for name, value in attributes.items() if name not in names}
        try:
            return CloudEvent({**dict.fromkeys(_NEEDED, STAND_IN), **right})
        except CloudEventError:
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
            return in_event(slot, value)
        except ValueError as error:
            self.filling.wrong(slot, "type", f"value ({canonical(value)}) {error}")
            return NOTHING

    # The message -----------------------------------------------------------------------------------------------------

    def _filled(
        self, protocol: str | None, fields: list[Slot], given: Mapping[str, Any], event: CloudEvent | None
    ) -> list[tuple[Slot, Any]]:
        id_property = PROTOCOLS[protocol].id_property if protocol else None
        filled = []
        for slot in fields:
            is_id = (slot.field, slot.name) == id_property and slot.value is None
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
        fields = together(own, self._laid_out(protocol, filled))
        address = address_of(protocol)
        if (
            address is not None
            and address not in fields
            and f"/protocoloptions/{address}" not in self._reported_paths()
        ):
            self.filling.lacks(Slot(f"/protocoloptions/{address}", address, "", "string"), address)
        fields |= PROTOCOLS[protocol].added(fields)
        if event is None:
            return None, native(protocol, fields, payload, self._content_type() if payload is not None else None)
        mode, fields = sent_as(self.document, protocol, fields, self.filling.context)
        try:
            return carry(event, protocol, mode, fields)
        except CloudEventError as error:
            for problem in error.problems:
                self._wrong(f"/envelopemetadata{problem.path}" if problem.path else "", "value", problem.message)
            return event, None
        except WireError as error:
            for problem in error.problems:
                self._wrong(f"/protocoloptions{problem.path}", "value", problem.message)
            return event, None

    def _laid_out(self, protocol: str, filled: list[tuple[Slot, Any]]) -> dict[str, Any]:
        """The fields that the values make; those whose values are not of their type are noted and left out."""
        while True:
            try:
                return lay_out(protocol, filled)
            except BadSlot as bad:
                self.filling.wrong(bad.slot, "type", str(bad))
                filled = [(slot, value) for slot, value in filled if slot is not bad.slot]

    def _sendable(self, message: Message | None, payload: bytes | None) -> Message | None:
        """The message with its payload encoded as it says, if a client may send it as it is."""
        if message is None:
            return None
        unknown = unknown_encoding(content_encodings(message)) if message.payload else None
        if unknown is None:
            message = encoded(message)
        elif message.payload != payload:
            words = "send the event in binary mode, its data as bytes that have the encoding"
            self._wrong("/data", "payload", f'the content encoding "{unknown}" cannot be applied to an event; {words}')
        elif not self.is_encoded:
            words = "give bytes that have it already, as data_base64 or from Python"
            self._wrong("/data", "payload", f'the content encoding "{unknown}" cannot be applied here; {words}')
        try:
            return sendable(message)
        except WireError as error:
            said = self._reported_paths()
            for path, problem in in_definition(message, error.problems):
                if path not in said:
                    self._wrong(path, "payload" if path == "/data" else problem.code, problem.message)
            return message

    # The proof -------------------------------------------------------------------------------------------------------

    def _judge(self, event: CloudEvent | None, message: Message | None) -> None:
        """Match what was built, and note where its definition does not hold or gives other values back."""
        built = message or event
        if built is None or self.plan.judge is None:
            return
        said = self._reported_paths()
        bad_data = any(path.startswith("/data") for path in said)
        answer = self.plan.judge(built)
        self.unchecked = answer.unchecked
        for problem in answer.problems:
            slot, names = self.filling.left_out.get(problem.path, (None, ()))
            if slot is not None and problem.code == "missing":
                for name in names:
                    self.filling.lacks(slot, name)
            if slot is None and problem.path not in said and not (bad_data and problem.path.startswith("/data")):
                self.filling.problems.append(problem)

    def _reported_paths(self) -> set[str]:
        """The places of which something was said."""
        gaps = self.filling.missing.values()
        return self.unsure | {one.path for one in (*gaps, *self.filling.problems)}

    def _note(self, problem: Problem) -> None:
        """Note a problem that stands beside all others, once."""
        if problem not in self.filling.problems:
            self.filling.problems.append(problem)

    def _wrong(self, path: str, code: str, words: str) -> None:
        self.filling.problems.append(Problem(path, code, words))


_NEEDED = frozenset({"type", "source", "id"})
_BYTES = (bytes, bytearray, memoryview)
_ENCODED_IN = ("headers", "user_properties", "properties")
