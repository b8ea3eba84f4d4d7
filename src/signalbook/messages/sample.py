"""A valid example of a definition's message, payload included.

Rule 1: a sample is built like any message, from values made up here, so it matches its own definition; where that
cannot be had, the result says why.
Rule 2: the same definition always gives the same sample: time and id are fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from signalbook.cloudevents import ABSENT
from signalbook.errors import Problem
from signalbook.messages.build import Built, Plan, build
from signalbook.messages.filling import NOW, Origin, template_of
from signalbook.messages.property_types import canonical
from signalbook.messages.slots import Slot, envelope_slots, protocol_slots
from signalbook.schemas.samples import sample as sample_payload
from signalbook.wire import address_of, find_protocol

__all__ = ["sample"]

_MOMENT = datetime(2024, 5, 17, 12, 30, tzinfo=UTC)
_ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
ORIGIN = Origin(lambda: _MOMENT, lambda: _ID)
# Where a definition has neither envelope nor protocol, its payload travels in one that takes any.
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


_WHOLE: Mapping[str, str] = {"time": "2024-05-17T12:30:00Z"}


def sample(plan: Plan, xid: str, origin: Origin = ORIGIN) -> Built:
    """An example message, or what stands in the way of one; `xid` is the definition's."""
    document = plan.document
    has_event = str(document.get("envelope", "")).lower().startswith("cloudevents/")
    protocol = find_protocol(str(document.get("protocol") or ""))
    event_slots = list(envelope_slots(document)) if has_event else []
    field_slots = list(protocol_slots(protocol, document)) if protocol else []
    payload: Any = ABSENT
    if plan.schema is not None:
        payload = sample_payload(plan.schema, _content_type(document))
        if payload is None:
            words = f"no payload was found that the schema of {xid} ({plan.schema.format}) accepts"
            return Built(problems=(Problem("/data", "payload", words),))
    attributes = _attributes(xid, event_slots, field_slots, has_event)
    return build(
        plan,
        data=payload,
        context=_context([*event_slots, *field_slots], attributes),
        attributes=attributes,
        protocol=_carrier(protocol, field_slots, has_event),
        origin=origin,
    )


def _carrier(protocol: str | None, fields: list[Slot], has_event: bool) -> str | dict[str, str] | None:
    """What the message travels in, with an address where its definition leaves that to the endpoint."""
    if protocol is None:
        return None if has_event else _CARRIER
    address = address_of(protocol)
    if address is None or any(slot.field == address for slot in fields):
        return None
    return {"protocol": protocol, address: "sample"}


def _content_type(document: Mapping[str, Any]) -> str:
    metadata = document.get("envelopemetadata")
    stated = metadata.get("datacontenttype") if isinstance(metadata, Mapping) else None
    value = stated.get("value") if isinstance(stated, Mapping) else None
    value = value or document.get("datacontenttype")
    return value if isinstance(value, str) and "cloudevents" not in value.lower() else ""


def _context(slots: Iterable[Slot], given: Mapping[str, Any]) -> dict[str, str]:
    """A value for each placeholder: what is given for a whole property says, else its own name.

    The name is written in letters and digits, which no text between placeholders can split; one that another follows
    at once takes a single character.
    """
    slots = list(slots)
    found: dict[str, str] = {}
    for slot in slots:
        template = template_of(slot)
        if template is not None:
            followed = zip(template.placeholders, template.literals[1:-1], strict=False)
            found |= {one.name: "1" for one, text in followed if not text}
    for slot in slots:
        template = template_of(slot)
        for name in template.names if template is not None else ():
            found.setdefault(name, f"{name.replace('_', '')}1")
        if template is not None and slot.label in given:
            found |= template.match(canonical(given[slot.label])) or {}
    return found


def _attributes(xid: str, event_slots: list[Slot], field_slots: list[Slot], has_event: bool) -> dict[str, Any]:
    """A value for each property that the definition names and leaves open."""
    found: dict[str, Any] = {}
    for slot in (*field_slots, *event_slots):
        if slot.value is None and slot.name not in ("id", "time", "specversion", "datacontenttype"):
            found[slot.label] = _value(slot)
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


def _value(slot: Slot) -> Any:
    if slot.type == "timestamp":
        return _VALUES["timestamp"] if slot.value != NOW else NOW
    if slot.name == "dataschema":
        return "https://example.com/schema"
    return "/sample" if slot.name == "source" else _VALUES.get(slot.type, "text")
