"""A valid example of a definition's message, payload included.

Rule 1: a sample is built like any message, from values made up here, so it matches its own definition; where that
cannot be had, the result says why.
Rule 2: the same definition always gives the same sample: time and id are fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from signalbook.cloudevents import ABSENT
from signalbook.errors import Problem
from signalbook.messages.build import build
from signalbook.messages.carry import BuildPlan, Built
from signalbook.messages.fill import NOW, Origin, Slot, envelope_slots, protocol_slots, template_of
from signalbook.protocols import address_of, find_protocol
from signalbook.protocols.message import OPTIONS
from signalbook.protocols.values import ENVELOPE, Property, PropertyPlace, PropertySection, canonical, fault
from signalbook.schemas import media_type
from signalbook.schemas import sample as sample_payload
from signalbook.template import Template

__all__ = ["sample"]

_MOMENT = datetime(2024, 5, 17, 12, 30, tzinfo=UTC)
# The id and the guid for Confluent's frame in a catalog that has none at all, where every one is as good.
_SCHEMAID = 1
_ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
ORIGIN = Origin(lambda: _MOMENT, lambda: _ID)
# A definition with neither envelope nor protocol is tested on messages that came over one, whichever, and not on bare
# events (matching.md); the message on paper names its protocol, so the example has the one that asks for least.
_CARRIER = "HTTP"

# message/spec.md, property types.
_VALUES: Mapping[str, Any] = {
    "any": "text",
    "binary": "YQ==",
    "boolean": True,
    "duration": "PT1H",
    "integer": 1,
    "number": 1.5,
    "string": "text",
    "symbol": "symbol1",
    "timestamp": "2024-05-17T12:30:00Z",
    "ulong": 1,
    "uri": "https://example.com/a",
    "uritemplate": "text",
    "uuid": _ID,
}


_OPEN: Mapping[str, str] = {"dataschema": "https://example.com/schema", "datacontenttype": "application/json"}
_WHOLE: Mapping[str, str] = {"time": "2024-05-17T12:30:00Z"}


def sample(plan: BuildPlan, xid: str, origin: Origin = ORIGIN) -> Built:
    """An example message, or what stands in the way of one; `xid` is the definition's."""
    document = plan.document
    has_event = str(document.get("envelope", "")).lower().startswith("cloudevents/")
    protocol = find_protocol(str(document.get("protocol") or ""))
    event_slots = list(envelope_slots(document)) if has_event else []
    field_slots = list(protocol_slots(protocol, document)) if protocol else []
    payload: Any = ABSENT
    schema = plan.usable_schema
    if schema is not None:
        payload = sample_payload(schema, _content_type(document))
        if payload is None:
            words = f"no payload was found that the schema of {xid} ({schema.format}) accepts"
            return Built(problems=(Problem("/data", "payload", words),))
    attributes = _attributes(xid, event_slots, field_slots, has_event, _inferable(plan))
    is_carried = protocol is None and not has_event
    built = build(
        plan if plan.has_ids else replace(plan, schemaid=plan.schemaid or _SCHEMAID, guid=plan.guid or _ID),
        data=payload,
        context=_context([*event_slots, *field_slots], attributes, _places(protocol or "", event_slots, field_slots)),
        attributes=attributes,
        protocol=_CARRIER if is_carried else _addressed(protocol, field_slots),
        origin=origin,
    )
    return replace(built, carrier=_CARRIER) if is_carried and built.ok else built


def _inferable(plan: BuildPlan) -> frozenset[str]:
    """The attributes that a build infers, where the definition leaves them open."""
    implied = media_type(str(plan.document.get("dataschemaformat", ""))) or _content_type(plan.document)
    names = {"dataschema": plan.schema_address, "datacontenttype": implied}
    return frozenset(name for name, is_inferred in names.items() if is_inferred)


def _addressed(protocol: str | None, fields: list[Slot]) -> dict[str, str] | None:
    """The protocol with an address, where the definition leaves that to the endpoint."""
    address = address_of(protocol) if protocol else None
    if protocol is None or address is None or any(slot.field == address for slot in fields):
        return None
    return {"protocol": protocol, address: "sample"}


def _content_type(document: Mapping[str, Any]) -> str:
    metadata = document.get("envelopemetadata")
    stated = metadata.get("datacontenttype") if isinstance(metadata, Mapping) else None
    value = stated.get("value") if isinstance(stated, Mapping) else None
    value = value or document.get("datacontenttype")
    if not isinstance(value, str) or not Template.parse(value).literal or "cloudevents" in value.lower():
        return ""
    return value


def _context(slots: Iterable[Slot], given: Mapping[str, Any], places: Mapping[str, PropertyPlace]) -> dict[str, str]:
    """A value for each placeholder: what is given for a whole property says, else its own name.

    The name is written in letters and digits, which no text between placeholders can split; one that another follows
    at once takes a single character, and one that its place does not take is what the place tries.
    """
    # What a content type can be is narrower than what a text can, so its names come first.
    slots = sorted(slots, key=lambda slot: not slot.is_content_type)
    found: dict[str, str] = {}
    for slot in slots:
        template = template_of(slot)
        if template is not None:
            followed = zip(template.placeholders, template.literals[1:-1], strict=False)
            found |= {one.name: "1" for one, text in followed if not text}
    for slot in slots:
        template = template_of(slot)
        if template is not None:
            found |= _fitting(template, places[slot.path], slot.type, found)
        if template is not None and slot.label in given:
            found |= template.match(canonical(given[slot.label])) or {}
    return found


def _fitting(template: Template, place: PropertyPlace, kind: str, known: Mapping[str, str]) -> dict[str, str]:
    """Values for the placeholders that have none yet, of which a text is made that its place takes."""
    names = [name for name in template.names if name not in known]
    usual = {name: f"{name.replace('_', '')}1" for name in names}
    filled = replace(place, test=place.filled or place.test)
    for values in (usual, *(dict.fromkeys(names, text) for text in place.fillings)):
        stated = Property(None if kind == place.name else kind, template.expand({**known, **values}))
        if fault(filled, stated) is None:
            return values
    return usual


def _places(protocol: str, event_slots: Iterable[Slot], field_slots: Iterable[Slot]) -> dict[str, PropertyPlace]:
    """The places of properties, by their paths."""
    found = {slot.path: ENVELOPE.place(slot.name) for slot in event_slots}
    for slot in field_slots:
        place = OPTIONS[protocol][slot.field]
        found[slot.path] = place.place(slot.name) if isinstance(place, PropertySection) else place
    return found


def _attributes(
    xid: str, event_slots: list[Slot], field_slots: list[Slot], has_event: bool, inferable: frozenset[str]
) -> dict[str, Any]:
    """A value for each property that the definition names and leaves open, and that is not inferred."""
    found: dict[str, Any] = {}
    for slot in (*field_slots, *event_slots):
        inferred = not slot.field and slot.name in inferable
        if slot.value is None and not inferred and slot.name not in ("id", "time", "specversion"):
            found[slot.label] = _made_up_value(slot)
    for slot in event_slots:
        # Given whole, since what a template expands to is never a time: its colons are escaped.
        template, whole = template_of(slot), _WHOLE.get(slot.name)
        if whole is not None and template is not None and not template.literal and template.match(whole) is not None:
            found[slot.name] = whole
    if has_event:
        declared = {slot.name for slot in event_slots}
        found |= {name: value for name, value in _undeclared(xid).items() if name not in declared}
    return found


def _undeclared(xid: str) -> dict[str, str]:
    """What every event has though a definition need not say so (message/spec.md: the messageid is the type)."""
    return {"type": xid.rpartition("/")[2] or "sample", "source": "/sample"}


def _made_up_value(slot: Slot) -> Any:
    if slot.is_content_type or (not slot.field and slot.name in _OPEN):
        return _OPEN.get(slot.name, _OPEN["datacontenttype"])
    if slot.type == "timestamp":
        return _VALUES["timestamp"] if slot.value != NOW else NOW
    return "/sample" if slot.name == "source" else _VALUES.get(slot.type, "text")
