"""The swift road: a bare event of a shape that is known, answered by one pattern and the payload schema.

Rule 1: a shape is learned from an event that the patient road matched: the names of its attributes in their order, and
what the definition says about each. As one pattern over the text it says all that reading and matching would.
Rule 2: the road says `matched` where the patient road would, or nothing: every doubt (a second definition, an escape,
another spelling, anything wrong) is left to the patient road.
Rule 3: a pattern never goes back over what it has taken, and the data is read once, by whoever needs its value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from signalbook.cloudevents import CloudEvent, Kind
from signalbook.cloudevents.attributes import COMMON_TIMESTAMP, is_uri_reference_cached
from signalbook.jsontext import LONG, RUNS, quick
from signalbook.messages.answer import Answer, Outcome, answer_of
from signalbook.messages.compile import TYPE, Compiled, Limits, Plan
from signalbook.messages.constraint import Constraint
from signalbook.messages.index import KeyIndex
from signalbook.messages.observe import MessageKind
from signalbook.schemas import Checked
from signalbook.schemas.framing import CONFLUENT

__all__ = ["Entry", "Parts", "Scope", "Shape", "SwiftRoad", "is_plain"]

_MATCHED = Outcome.MATCHED
_checked = partial(tuple.__new__, Checked)
_ATTRIBUTE = "/envelopemetadata/"
# Events of one type that are looked at to learn from; most of them have one shape.
_MOST_LESSONS = 8
# A longer attribute would make the pattern's errand long; a longer source is not worth remembering.
_LONGEST_HEAD = 4000
# The characters of a string without escapes, of a captured one that is not encoded, of one that is a whole attribute,
# and of one in a source.
_TEXT = r'[^"\\\x00-\x1f\x7f-\U0010ffff]'
_CAPTURED = r'[^/?#%"\\\x00-\x1f\x7f-\U0010ffff]'
_WHOLE = r'[^%"\\\x00-\x1f\x7f-\U0010ffff]'
_UNRESERVED = r"[A-Za-z0-9._~-]"
# The texts between names and values, as writers without and with white space have them.
_SPELLINGS = ((",", ":"), (", ", ": "))
_SAME = frozenset({"specversion", "type", "datacontenttype"})
_OF_SAME = frozenset({"/datacontenttype", *(_ATTRIBUTE + name for name in _SAME)})
_TEXTS = frozenset({"any", "string", "uritemplate"})
_TYPE, _TYPE_SPACED = '"type":"', '"type": "'
_CLOSES = ord("}")
_Match = Callable[[str], re.Match[str] | None]


class Shape:
    """One shape of one definition's events.

    `attributes` are an event's in their order, each with the text that all have, or with the group of the pattern that
    takes it; `names` are the captured names with their groups.
    """

    __slots__ = ("accepts", "attributes", "has_data", "match", "names", "schema", "source", "xid")

    def __init__(self, plan: Plan, accepts: Callable[[Any], bool], match: _Match, told: _Told, has_data: bool) -> None:
        self.xid = plan.compiled.definition.xid
        self.accepts = accepts
        self.schema = plan.compiled.payload.schema
        self.match = match
        self.attributes = tuple(told.attributes)
        self.names = tuple(told.names)
        self.source = told.source
        self.has_data = has_data


# An event that has a shape, in parts: the shape, what the groups of its pattern took, and where its data begins, which
# ends before the last byte; 0 where it has none.
Parts = tuple[Shape, tuple[str, ...], int]


class SwiftRoad:
    """The shapes that are known of one scope's events, by their type."""

    __slots__ = ("_index", "_lessons", "_plans", "_shapes")

    def __init__(self, index: KeyIndex) -> None:
        self._index = index
        self._plans = index.alone(TYPE)
        self._shapes: dict[str, list[Shape]] = {}
        self._lessons: dict[str, int] = {}

    def answer(self, document: bytes) -> Answer | None:
        """The answer about an event that matches; None where that is not certain."""
        parts = self.parts(document)
        if parts is None:
            return None
        shape, groups, begins = parts
        checked = None
        if begins:
            content = document[begins:-1]
            try:
                if not is_plain(content) or not shape.accepts(value := quick(content)):
                    return None
            except (ValueError, RecursionError):
                return None  # it is not JSON, or too much of it
            if shape.schema is not None:
                checked = _checked(((), value))
        context = {name: groups[at] for name, at in shape.names}
        return answer_of((_MATCHED, shape.xid, context, (), (), document, checked, ()))

    def parts(self, document: bytes) -> Parts | None:
        """An event that matches if its data is JSON that its shape accepts; None where that is not certain."""
        try:
            text = document.decode()
        except ValueError:
            return None
        begins = text.find(_TYPE) + 8
        if begins < 8:
            begins = text.find(_TYPE_SPACED) + 9
        for shape in self._shapes.get(text[begins : text.find('"', begins)], ()):
            if (found := shape.match(text)) is not None:
                return _parted(shape, document, found)
        return None

    def learn(self, document: bytes, answers: Sequence[Answer]) -> None:
        """Remember the shape of an event that was matched, where it can be told by a pattern."""
        answer = answers[0] if len(answers) == 1 else None
        if answer is None or answer.outcome is not _MATCHED or not isinstance(answer.event, CloudEvent):
            return
        event = answer.event
        name = event.type
        plan, known = self._plans.get(name), self._shapes.get(name, [])
        if (
            plan is None
            or plan.compiled.definition.xid != answer.definition
            or self._lessons.get(name, 0) >= _MOST_LESSONS
        ):
            return
        self._lessons[name] = self._lessons.get(name, 0) + 1
        present = {_ATTRIBUTE + attribute for attribute in event.attributes}
        if self._index.is_known_beside(TYPE, name, present - {TYPE}):
            return
        shape = _shape_of(plan, event, document)
        if shape is not None:
            self._shapes[name] = [*known, shape]


def is_plain(content: bytes) -> bool:
    """Whether a quick reader reads every number of a text exactly."""
    return LONG not in content.translate(RUNS)


def _parted(shape: Shape, document: bytes, found: re.Match[str]) -> Parts | None:
    groups = found.groups()
    if shape.source is not None and not is_uri_reference_cached(groups[shape.source]):
        return None
    if not shape.has_data:
        return shape, groups, 0
    # All before it is ASCII, so that its place is the same in the text and in the bytes.
    return (shape, groups, found.end()) if document[-1] == _CLOSES else None


def _anything(value: Any) -> bool:
    return True


def _shape_of(plan: Plan, event: CloudEvent, document: bytes) -> Shape | None:
    """The shape that an event has; None where a pattern cannot tell it."""
    data = event._data
    # With a protocol it would be a message on paper.
    if "protocol" in event.attributes or (data is not None and data[0] is not Kind.JSON):
        return None
    accepts = _accepting(plan)
    told = _told(plan, event)
    if accepts is None or told is None:
        return None
    text = document.decode()
    for comma, colon in _SPELLINGS:
        head = comma.join(f'"{name}"{colon}"{part}"' for name, part in told.parts)
        pattern = re.compile(rf"\{{{head}" + (r"\}" if data is None else f'{comma}"data"{colon}'))
        match = pattern.fullmatch if data is None else pattern.match
        found = match(text)
        shape = Shape(plan, accepts, match, told, data is not None)
        if found is not None and found.end() <= _LONGEST_HEAD and _takes(shape, document, found):
            return shape
    return None


def _takes(shape: Shape, document: bytes, found: re.Match[str]) -> bool:
    """Whether the event that taught a shape is taken by it."""
    parts = _parted(shape, document, found)
    if parts is None or not parts[2]:
        return parts is not None
    content = document[parts[2] : -1]
    try:
        return is_plain(content) and shape.accepts(quick(content))
    except (ValueError, RecursionError):
        return False


def _accepting(plan: Plan) -> Callable[[Any], bool] | None:
    """What judges the value of JSON data; None where its format needs more than the value."""
    payload = plan.compiled.payload
    if payload.framing == CONFLUENT:
        return None  # the value of JSON data has no frame
    return _anything if payload.schema is None else getattr(payload.schema, "accepts", None)


@dataclass(slots=True)
class _Told:
    """What is known of an event's attributes: their patterns, and which group of them takes what."""

    parts: list[tuple[str, str]] = field(default_factory=list)
    attributes: list[tuple[str, str | int]] = field(default_factory=list)
    names: list[tuple[str, int]] = field(default_factory=list)
    source: int | None = None
    groups: int = 0


def _told(plan: Plan, event: CloudEvent) -> _Told | None:
    """The patterns of an event's attributes; None where one has none."""
    constraints = {one.path.removeprefix(_ATTRIBUTE): one for one in plan.tests if one.path.startswith(_ATTRIBUTE)}
    if any(one.template is not None and one.path in _OF_SAME for one in plan.tests):
        return None  # what it captures is not told by a text that stays the same
    told = _Told()
    for name, value in event.attributes.items():
        constraint = constraints.get(name)
        if not isinstance(value, str) or not value.isascii():
            return None
        if name in _SAME or (constraint is not None and constraint.constant is not None):
            told.parts.append((name, re.escape(value)))
            told.attributes.append((name, value))
            continue
        part = _part(name, constraint)
        if part is None or not part.isascii():
            return None
        if name == "source" and not _is_reference(constraint):
            told.source = told.groups
        told.parts.append((name, f"({part})"))
        told.attributes.append((name, told.groups))
        captured = [] if constraint is None or constraint.template is None else constraint.template.placeholders
        told.names += [(one.name, told.groups + at) for at, one in enumerate(captured, 1)]
        told.groups += 1 + len(captured)
    # A name that occurs again has to mean the same, which a pattern cannot tell.
    return told if len(dict(told.names)) == len(told.names) else None


def _is_reference(constraint: Constraint | None) -> bool:
    """Whether every source is a URI-reference if one is: only unreserved characters of its path differ."""
    template = None if constraint is None else constraint.template
    return template is not None and all(literal.endswith("/") for literal in template.literals[:-1])


def _part(name: str, constraint: Constraint | None) -> str | None:
    """The pattern of an attribute's values; None where there is none."""
    if constraint is not None and constraint.template is not None:
        if constraint.template.whole:
            return constraint.template.as_pattern(_WHOLE)
        return constraint.template.as_pattern(_UNRESERVED if name == "source" else _CAPTURED)
    if name == "time":
        return COMMON_TIMESTAMP if constraint is None or constraint.type == "timestamp" else None
    if name == "dataschema" or (constraint is not None and constraint.type not in _TEXTS):
        return None
    return _TEXT + ("++" if name in ("id", "source", "subject") else "*+")


# `Scope`: the definitions that a message is tested against, with an index on their keys for each kind of message.
#
# Rule 1: an alias and its target are one definition: the target where it is in scope, else the alias.
# Rule 2: an index is made when the first message of its kind comes; what it finds is a superset of what holds.
# Rule 3: the order of the definitions changes nothing.


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A definition in a scope, under the limits of an endpoint where it is there through one."""

    compiled: Compiled
    limits: Limits | None = None

    @property
    def xid(self) -> str:
        """The definition's own name, which may be an alias."""
        return self.compiled.definition.xid

    @property
    def identity(self) -> str:
        """The name of the definition that it is."""
        return self.compiled.definition.identity


class Scope:
    """Entries, and an index for each kind of message."""

    __slots__ = ("_indexes", "_swift", "entries")

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(_one_each(entries))
        self._swift: SwiftRoad | None = None
        self._indexes: dict[tuple[MessageKind, str | None], KeyIndex] = {}

    @property
    def swift(self) -> SwiftRoad:
        """The road for bare events that match."""
        if self._swift is None:
            self._swift = SwiftRoad(self.index(MessageKind.BARE, None))
        return self._swift

    def index(self, kind: MessageKind, protocol: str | None) -> KeyIndex:
        """The index for messages of a kind that come over a protocol."""
        found = self._indexes.get((kind, protocol))
        if found is None:
            plans = (entry.compiled.plan(kind, protocol, entry.limits) for entry in self.entries)
            found = self._indexes[kind, protocol] = KeyIndex(plans)
        return found


def _one_each(entries: Iterable[Entry]) -> Iterator[Entry]:
    """One entry for each definition, or for each endpoint's limits where all of its entries have some."""
    known: dict[str, list[Entry]] = {}
    for entry in entries:
        known.setdefault(entry.identity, []).append(entry)
    for identity in sorted(known):
        same = sorted(known[identity], key=lambda entry: (entry.xid != identity, entry.xid))
        free = next((entry for entry in same if entry.limits is None), None)
        if free is not None:
            # What an endpoint would add no longer counts, but the name does: the target's before an alias's.
            yield Entry(same[0].compiled)
        else:
            limited: dict[Limits | None, Entry] = {}
            for entry in same:
                limited.setdefault(entry.limits, Entry(same[0].compiled, entry.limits))
            yield from limited.values()
