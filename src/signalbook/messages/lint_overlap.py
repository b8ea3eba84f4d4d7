"""Pairs of definitions that the same message could satisfy, with nothing to decide between them.

Rule 1: two definitions are apart where a property that a message must have for one of them has no value for both.
Rule 2: a pair is passed over where a match would decide: the one derives from the other, they are aliases, or just one
is bound to a protocol or has a payload schema (matching.md, "Several hold").
Rule 3: only definitions whose keys can meet are compared, and of those a bounded number. Those without a key are
compared with each other, where they have the same payload schema or none; each is told of with the first that it meets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product

from signalbook.document.property_types import canonical
from signalbook.document.xid import kept_of
from signalbook.messages.definition import Definition
from signalbook.messages.filling import NOW, template_of
from signalbook.messages.slots import Slot, envelope_slots, protocol_slots
from signalbook.template import Template
from signalbook.wire import find_protocol

__all__ = ["Overlaps"]

_MOST_PAIRS = 500_000
_MOST_STEPS = 32
_SCHEMA = ("dataschema", "dataschemauri", "dataschemaxid")
# What is the same in many messages is no key (matching.md, "key").
_NO_KEYS = frozenset({"specversion", "datacontenttype", "content-type", "content_type"})
# By protocol, the fields that a consumer would route by, the first that says something counts (matching.md, "key").
_KEYS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "AMQP/1.0": (("properties", "subject"), ("properties", "to")),
    "MQTT/3.1.1": (("topic_name", ""),),
    "MQTT/5.0": (("topic_name", ""),),
    "KAFKA": (("topic", ""), ("key", "")),
    "NATS": (("subject", ""),),
    "HTTP": (("path", ""),),
}


@dataclass(frozen=True, slots=True)
class _Shape:
    """A definition as a comparison needs it: its properties by place, and those that a message must have."""

    definition: Definition
    protocol: str
    event: bool
    templates: Mapping[tuple[str, str], Template]
    needed: frozenset[tuple[str, str]]
    key: tuple[tuple[str, str], Template] | None
    by_constants: bool = False


class Overlaps:
    """Each pair that could be ambiguous, as xids; `complete` is false once there were too many to compare."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        shapes = [_shape(one) for one in definitions if one.target is None and not one.problems]
        self._shapes = [shape for shape in shapes if shape.key is not None]
        self._keyless = [shape for shape in shapes if shape.key is None]
        self._left = _MOST_PAIRS
        self.complete = True

    def __iter__(self) -> Iterator[tuple[str, str]]:
        self._left = _MOST_PAIRS
        for one, other in _meeting(self._shapes):
            if not self._may_compare():
                return
            if not _decided(one.definition, other.definition) and not _apart(one, other):
                yield one.definition.xid, other.definition.xid
        for same in _alike(self._keyless):
            for at, one in enumerate(same):
                for other in same[at + 1 :]:
                    if not self._may_compare():
                        return
                    if not _decided(one.definition, other.definition) and not _apart(one, other):
                        yield one.definition.xid, other.definition.xid
                        break

    def _may_compare(self) -> bool:
        self._left -= 1
        self.complete = self.complete and self._left >= 0
        return self.complete


_Keyed = tuple[_Shape, list[str]]


def _shape(definition: Definition) -> _Shape:
    protocol = find_protocol(definition.protocol or "") or ""
    event = (definition.envelope or "").lower().startswith("cloudevents/")
    slots = list(envelope_slots(definition.document)) if event else []
    slots += protocol_slots(protocol, definition.document) if protocol else ()
    templates = {_place(slot): _said(slot) for slot in slots if slot.value is not None and slot.value != NOW}
    key = _key(protocol, event, templates)
    constants = {
        place for place, template in templates.items() if template.literal and place[1].lower() not in _NO_KEYS
    }
    needed = {_place(slot) for slot in slots if slot.required} | ({key[0]} if key is not None else constants)
    return _Shape(definition, protocol, event, templates, frozenset(needed), key, key is None and bool(constants))


def _place(slot: Slot) -> tuple[str, str]:
    return slot.field, slot.name


def _said(slot: Slot) -> Template:
    return template_of(slot) or Template.parse(canonical(slot.value).replace("{", "%7B"))


def _key(
    protocol: str, event: bool, templates: Mapping[tuple[str, str], Template]
) -> tuple[tuple[str, str], Template] | None:
    places = (("", "type"),) if event else ()
    for place in (*places, *_KEYS.get(protocol, ())):
        template = templates.get(place)
        if template is not None and template.has_literal_text:
            return place, template
    return None


def _meeting(shapes: list[_Shape]) -> Iterator[tuple[_Shape, _Shape]]:
    """Pairs whose keys a message could satisfy both, as far as their steps tell."""
    by_place: dict[tuple[str, tuple[str, str]], list[_Shape]] = {}
    for shape in shapes:
        assert shape.key is not None
        # An event's type is the same key whatever protocol carries it.
        by_place.setdefault(("" if shape.key[0][0] == "" else shape.protocol, shape.key[0]), []).append(shape)
    for found in by_place.values():
        loose = [shape for shape in found if _crosses(shape)]
        by_length: dict[int, list[_Keyed]] = {}
        for shape in found:
            if not _crosses(shape):
                steps = _text(shape).text.split("/", _MOST_STEPS)
                by_length.setdefault(len(steps), []).append((shape, steps))
        for length, keyed in by_length.items():
            yield from _within(keyed, 0, length)
        yield from combinations(loose, 2)
        yield from ((one, other) for one in loose for other in found if not _crosses(other))


def _text(shape: _Shape) -> Template:
    assert shape.key is not None
    return shape.key[1]


def _crosses(shape: _Shape) -> bool:
    """Whether a key has any number of steps."""
    return any(part.reserved for part in _text(shape).placeholders)


def _within(keyed: list[_Keyed], at: int, length: int) -> Iterator[tuple[_Shape, _Shape]]:
    """Pairs of one list whose steps from one on can be the same."""
    if len(keyed) < 2:
        return
    if at == length:
        yield from combinations((shape for shape, _ in keyed), 2)
        return
    fixed, open_ = _split(keyed, at)
    for same in fixed.values():
        yield from _within(same, at + 1, length)
        yield from _across(same, open_, at + 1, length)
    yield from _within(open_, at + 1, length)


def _across(ones: list[_Keyed], others: list[_Keyed], at: int, length: int) -> Iterator[tuple[_Shape, _Shape]]:
    """Pairs of two lists whose steps from one on can be the same."""
    if not ones or not others:
        return
    if at == length:
        yield from product((shape for shape, _ in ones), (shape for shape, _ in others))
        return
    fixed, open_ = _split(ones, at)
    other_fixed, other_open = _split(others, at)
    for step, same in fixed.items():
        yield from _across(same, other_fixed.get(step, []), at + 1, length)
        yield from _across(same, other_open, at + 1, length)
    yield from _across(open_, others, at + 1, length)


def _split(keyed: list[_Keyed], at: int) -> tuple[dict[str, list[_Keyed]], list[_Keyed]]:
    """By a step that is fixed, and those whose step is open."""
    fixed: dict[str, list[_Keyed]] = {}
    open_: list[_Keyed] = []
    for one in keyed:
        step = one[1][at]
        (open_ if "{" in step else fixed.setdefault(step, [])).append(one)
    return fixed, open_


def _alike(shapes: list[_Shape]) -> Iterable[list[_Shape]]:
    """Definitions without a property to route by: those with constants apart, and by what they say about payloads.

    Constants together are a key, and a key goes before none; whether other payloads tell them apart is not looked at.
    """
    found: dict[tuple[bool, str], list[_Shape]] = {}
    for shape in shapes:
        said = repr([shape.definition.document.get(name) for name in (*_SCHEMA, "datacontenttype")])
        found.setdefault((shape.by_constants, said), []).append(shape)
    return found.values()


def _apart(one: _Shape, other: _Shape) -> bool:
    """Whether no message can satisfy both."""
    if one.protocol and other.protocol and one.protocol != other.protocol:
        return True
    if one.event != other.event and not (one.protocol and other.protocol):
        return True
    for place in sorted(one.templates.keys() & other.templates.keys()):
        needed = place in one.needed or place in other.needed
        if needed and not _can_meet(one.templates[place], other.templates[place]):
            return True
    return False


def _can_meet(one: Template, other: Template) -> bool:
    """Whether a value could fit both; for two templates, judged by how they begin and end."""
    if one.literal:
        return other.match(one.text) is not None
    if other.literal:
        return one.match(other.text) is not None
    return _compatible(one.literals[0], other.literals[0], str.startswith) and (
        _compatible(one.literals[-1], other.literals[-1], str.endswith) and _same_steps(one, other)
    )


def _compatible(one: str, other: str, test: object) -> bool:
    assert callable(test)
    return bool(test(one, other) or test(other, one))


def _same_steps(one: Template, other: Template) -> bool:
    """Whether both have as many steps, each of which could be the other's; `{+name}` has any number."""
    if any(part.reserved for part in (*one.placeholders, *other.placeholders)):
        return True
    steps, others = one.text.split("/"), other.text.split("/")
    return len(steps) == len(others) and all(
        "{" in left or "{" in right or left == right for left, right in zip(steps, others, strict=True)
    )


def _decided(one: Definition, other: Definition) -> bool:
    """Whether a match that both satisfy would be decided by who they are."""
    if one.identity == other.identity or other.xid in one.derives_from or one.xid in other.derives_from:
        return True
    if kept_of(one.xid) == other.xid or kept_of(other.xid) == one.xid:  # a copy that is kept beside the other
        return True
    return (one.protocol is None) != (other.protocol is None) or _has_schema(one) != _has_schema(other)


def _has_schema(definition: Definition) -> bool:
    return any(name in definition.document for name in _SCHEMA)
