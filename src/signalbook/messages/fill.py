"""Where the properties of a definition stand in a message: the way from a definition to what is sent.

Rule 1: a slot is one place that a definition says something about: its path in the definition, the field of the message
on paper, and the name within that field where it holds several.
Rule 2: which places a protocol has, and of which types, is the table `OPTIONS` of the protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from signalbook.cloudevents.attributes import ATTRIBUTE_TYPES, format_timestamp, is_absolute_uri
from signalbook.errors import Problem
from signalbook.protocols.message import OPTIONS, PROTOCOLS, address_of
from signalbook.protocols.protocol import Protocol, pointer
from signalbook.protocols.values import (
    ENVELOPE,
    NOW,
    TEXTS,
    PropertyPlace,
    PropertySection,
    ValueForm,
    canonical,
    is_of,
    named_members,
    typed,
    value_template,
)
from signalbook.template import Template

__all__ = [
    "NOTHING",
    "NOW",
    "BadSlot",
    "Filling",
    "Origin",
    "Slot",
    "envelope_slots",
    "in_event",
    "lay_out",
    "protocol_slots",
    "template_of",
]

REQUIRED = frozenset({"id", "source", "type"})


@dataclass(frozen=True, slots=True)
class Slot:
    """One property: `value` is None where the definition leaves it open."""

    path: str
    field: str
    name: str
    type: str
    value: Any = None
    required: bool = False
    is_content_type: bool = False
    is_plain: bool = False  # a field with one value, or a member of a plain section: old dialects have templates there

    @property
    def label(self) -> str:
        """What a person calls it."""
        return self.name or self.field


def envelope_slots(document: Mapping[str, Any]) -> Iterator[Slot]:
    """The CloudEvents attributes that a materialised definition declares."""
    metadata = document.get("envelopemetadata")
    for name, member in metadata.items() if isinstance(metadata, Mapping) else ():
        if not isinstance(member, Mapping):
            continue
        path = pointer("/envelopemetadata", name)
        place = ENVELOPE.place(name)
        kind = str(member.get("type") or place.name)
        required = name in REQUIRED or member.get("required") is True
        value = member.get("value")
        if name == "dataschema" and value == document.get("dataschemauri") and not is_absolute_uri(str(value)):
            value = None  # the event has the absolute one, as where `dataschemauri` alone says it
        yield Slot(path, "", name, kind, value, required, place.is_content_type)


def protocol_slots(protocol: str, document: Mapping[str, Any]) -> Iterator[Slot]:
    """The properties of a protocol's message that a materialised definition declares."""
    options = document.get("protocoloptions")
    if isinstance(options, Mapping):
        for name, place in OPTIONS.get(protocol, {}).items():
            stated = options.get(name)
            if isinstance(place, PropertySection):
                yield from _named(name, place, stated)
            elif stated is not None:
                # Without its address nothing can be sent.
                yield _slot(name, "", place, stated, plain=True, required=name == address_of(protocol))


def _named(field: str, section: PropertySection, value: Any) -> Iterator[Slot]:
    """The properties by name that a field holds, as an array or as a map."""
    for _, name, member in named_members(value):
        if name and (isinstance(member, Mapping) or section.plain):  # a write takes no name that is empty
            yield _slot(field, name, section.place(name), member, plain=section.plain)


def _slot(field: str, name: str, place: PropertyPlace, stated: Any, *, plain: bool, required: bool = False) -> Slot:
    """The slot of a property definition, or of a plain value in its place."""
    member = stated if isinstance(stated, Mapping) else {"value": stated}
    path = pointer("/protocoloptions", field)
    named, value = member.get("type"), member.get("value")
    if place.is_text_with_placeholders:
        kind = place.kind(named, value)
    else:
        kind = place.name if named is None or (named == "any" and place.type not in TEXTS) else str(named)
    return Slot(
        pointer(path, name) if name else path,
        field,
        name,
        kind,
        value,
        required or member.get("required") is True,
        place.is_content_type,
        plain,
    )


# Laying values into a message ----------------------------------------------------------------------------------------


class BadSlot(ValueError):
    """A value that is not of its property's type."""

    def __init__(self, slot: Slot, words: str) -> None:
        super().__init__(words)
        self.slot = slot


def lay_out(protocol: str, filled: list[tuple[Slot, Any]]) -> dict[str, Any]:
    """The fields of a message that has these values; raises `BadSlot`."""
    row = PROTOCOLS[protocol]
    fields: dict[str, Any] = {}
    for slot, value in filled:
        try:
            _lay(row, fields, slot, value)
        except ValueError as error:
            raise BadSlot(slot, f"value ({canonical(value)}) {error}") from None
    return fields


def _lay(row: Protocol, fields: dict[str, Any], slot: Slot, value: Any) -> None:
    place = row.options[slot.field]
    if isinstance(place, PropertySection):
        written = place.write(slot.type, value)
        if place.is_map:
            fields.setdefault(slot.field, {})[slot.name] = written
        else:
            fields[slot.field] = (*fields.get(slot.field, ()), (slot.name, written))
    else:
        option = row.special.get(slot.field)
        if option is None:
            fields[slot.field] = typed(slot.type, value)
        else:
            fields[option.field] = option.write(slot.type, value)


def in_event(slot: Slot, value: Any) -> Any:
    """A value as an event has it: a string for an attribute of CloudEvents' own, and for a number that no integer is.

    Raises ValueError where the value is not of the property's type.
    """
    found = typed(slot.type, value)
    if slot.type == "number" and is_of("integer", ValueForm.TEXT, found):
        found = int(found)
    if found.__class__ not in (bool, int, float):
        return found
    if slot.name in ATTRIBUTE_TYPES:
        return found if slot.type in TEXTS else canonical(found)
    if slot.type not in _NUMBERS or found.__class__ is bool:
        return found
    whole = isinstance(found, int) or found.is_integer()
    return int(found) if whole and is_of("integer", ValueForm.JSON, int(found)) else canonical(found)


_NUMBERS = frozenset({"number", "ulong", "any"})


# Values for the properties of a definition: what was given, what the definition says, what can be made up.
#
# Rule 1: a value that is given wins, unless it contradicts the definition; a given value that fits a template gives the
# template's names their values, for all properties alike.
# Rule 2: an optional template whose names have no value is left out; a required one is a gap. All gaps are kept.
# Rule 3: each template is matched against what was made of it: what it gives back must be what was put in.


NOTHING: Any = object()


def _this_moment() -> datetime:
    return datetime.now(UTC)


def _random_id() -> str:
    return str(uuid4())


@dataclass(frozen=True, slots=True)
class Origin:
    """Where times and ids come from."""

    clock: Callable[[], datetime] = _this_moment
    new_id: Callable[[], str] = _random_id


@dataclass(slots=True)
class Filling:
    """The values of one message while it is built, with all that is missing or wrong."""

    context: dict[str, str]
    origin: Origin
    missing: dict[str, Problem] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    left_out: dict[str, tuple[Slot, tuple[str, ...]]] = field(default_factory=dict)

    def learn(self, pairs: Iterable[tuple[Slot, Any]]) -> None:
        """Take the names' values from properties that are given whole."""
        for slot, given in pairs:
            template = template_of(slot)
            if template is None or template.literal or given is None:
                continue
            found = template.match(canonical(given))
            if found is None:
                self.wrong(slot, "template", f"value ({canonical(given)}) does not fit {template.text}")
                continue
            for name, text in found.items():
                known = self.context.setdefault(name, text)
                if known != text:
                    self.wrong(slot, "placeholder_conflict", f"{name} is {text} here and {known} elsewhere")

    def value(self, slot: Slot, given: Any = NOTHING) -> Any:
        """The value of a property, or `NOTHING` where it has none."""
        if slot.type == "timestamp" and slot.value == NOW:
            return self.now() if given is NOTHING else given
        template = template_of(slot)
        if given is not NOTHING:
            return self._given(slot, template, given)
        if template is not None and not template.literal:
            return self._expanded(slot, template)
        if slot.value is None and slot.required:
            self.lacks(slot, slot.label)
        return NOTHING if slot.value is None else slot.value

    def _given(self, slot: Slot, template: Template | None, given: Any) -> Any:
        constant = slot.value is not None and (template is None or template.literal)
        if constant and canonical(given) != canonical(slot.value):
            words = f"value ({canonical(given)}) contradicts the definition's ({canonical(slot.value)})"
            self.wrong(slot, "value", words)
        return given

    def _expanded(self, slot: Slot, template: Template) -> Any:
        absent = tuple(name for name in template.names if name not in self.context)
        if absent:
            self.left_out[slot.path] = slot, absent
            if slot.required:
                for name in absent:
                    self.lacks(slot, name)
            return NOTHING
        text = template.expand(self.context)
        if template.match(text) != template.given_back(self.context):
            self.wrong(slot, "template", f"{text} would not give back what was put into {template.text}")
        return text

    def now(self) -> str:
        """This moment as a timestamp."""
        return format_timestamp(self.origin.clock())

    def lacks(self, slot: Slot, name: str) -> None:
        """Note a gap."""
        words = f"{name} needs a value" if name == slot.label else f"{slot.label} needs a value for {name}"
        self.missing.setdefault(name, Problem(slot.path, "missing", words))

    def wrong(self, slot: Slot, code: str, words: str) -> None:
        """Note what is wrong with a property."""
        self.problems.append(Problem(slot.path, code, words))


def template_of(slot: Slot) -> Template | None:
    """The template that a property's value is; None where it is open, or of a type that has none."""
    if isinstance(slot.value, str) and (slot.type in TEXTS or slot.is_plain):
        attribute = "" if slot.field else slot.name
        return value_template(slot.value, slot.type, attribute, is_content_type=slot.is_content_type)
    return None
