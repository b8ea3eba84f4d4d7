"""The fast path of matching: an event in JSON of a known shape, answered by one regular expression and its schema.

Rule 1: a shape is learned from an event that the general path matched: the names of its attributes in their order, and
what the definition says about each. As one pattern over the text it tests all that reading and matching would.
Rule 2: the fast path answers `matched` where the general path would, or nothing: every doubt (a second definition, an
escape, another spelling, anything wrong) is left to the general path.
Rule 3: a pattern never goes back over what it has consumed, and the data is read once, by whoever needs its value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from signalbook.cloudevents import CloudEvent, Kind
from signalbook.cloudevents.attributes import COMMON_TIMESTAMP, is_uri_reference_cached
from signalbook.jsontext import DIGIT_RUNS, LONG_NUMBER, decode_fast
from signalbook.messages.answer import Answer, Outcome, answer_of
from signalbook.messages.compile import TYPE, Compiled, EndpointLimits, MatchPlan
from signalbook.messages.constraint import PropertyConstraint
from signalbook.messages.index import KeyIndex
from signalbook.messages.observe import MessageKind
from signalbook.schemas import Checked
from signalbook.schemas.framing import FRAMINGS

__all__ = ["EventShape", "FastPath", "MatchScope", "Parts", "ScopeEntry", "is_plain"]

_MATCHED = Outcome.MATCHED
_checked = partial(tuple.__new__, Checked)
_ATTRIBUTE = "/envelopemetadata/"
# Events of one type that are looked at to learn from; most of them have one shape.
_MOST_LESSONS = 8
# Attributes that are longer together than this are left to the general path.
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


class EventShape:
    """One shape of one definition's events.

    `attributes` are an event's in their order, each with the text that all have, or with the group of the pattern that
    captures it; `names` are the captured names with their groups.
    """

    __slots__ = ("accepts", "attributes", "has_data", "match", "names", "schema", "source", "xid")

    def __init__(
        self,
        plan: MatchPlan,
        accepts: Callable[[Any], bool],
        match: _Match,
        patterns: _AttributePatterns,
        has_data: bool,
    ) -> None:
        self.xid = plan.compiled.definition.xid
        self.accepts = accepts
        self.schema = plan.compiled.payload.schema
        self.match = match
        self.attributes = tuple(patterns.attributes)
        self.names = tuple(patterns.names)
        self.source = patterns.source
        self.has_data = has_data


# An event that has a shape, in parts: the shape, what the groups of its pattern captured, and where its data begins,
# which ends before the last byte; 0 where it has no data.
Parts = tuple[EventShape, tuple[str, ...], int]


class FastPath:
    """The shapes that are known of one scope's events, by their type."""

    __slots__ = ("_index", "_lessons", "_plans", "_shapes")

    def __init__(self, index: KeyIndex) -> None:
        self._index = index
        self._plans = index.alone(TYPE)
        self._shapes: dict[str, list[EventShape]] = {}
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
                if not is_plain(content) or not shape.accepts(value := decode_fast(content)):
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
        """Remember the shape of an event that was matched, where a pattern can recognise it."""
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
    """Whether orjson reads every number of a text exactly."""
    return LONG_NUMBER not in content.translate(DIGIT_RUNS)


def _parted(shape: EventShape, document: bytes, found: re.Match[str]) -> Parts | None:
    groups = found.groups()
    if shape.source is not None and not is_uri_reference_cached(groups[shape.source]):
        return None
    if not shape.has_data:
        return shape, groups, 0
    # All before it is ASCII, so that its place is the same in the text and in the bytes.
    return (shape, groups, found.end()) if document[-1] == _CLOSES else None


def _anything(value: Any) -> bool:
    return True


def _shape_of(plan: MatchPlan, event: CloudEvent, document: bytes) -> EventShape | None:
    """The shape that an event has; None where a pattern cannot recognise it."""
    data = event._data
    # A JSON object with a protocol is a message on paper.
    if "protocol" in event.attributes or (data is not None and data[0] is not Kind.JSON):
        return None
    accepts = _accepting(plan)
    patterns = _attribute_patterns(plan, event)
    if accepts is None or patterns is None:
        return None
    text = document.decode()
    for comma, colon in _SPELLINGS:
        head = comma.join(f'"{name}"{colon}"{part}"' for name, part in patterns.parts)
        pattern = re.compile(rf"\{{{head}" + (r"\}" if data is None else f'{comma}"data"{colon}'))
        match = pattern.fullmatch if data is None else pattern.match
        found = match(text)
        shape = EventShape(plan, accepts, match, patterns, data is not None)
        if found is not None and found.end() <= _LONGEST_HEAD and _takes(shape, document, found):
            return shape
    return None


def _takes(shape: EventShape, document: bytes, found: re.Match[str]) -> bool:
    """Whether the event that a shape was learned from has that shape."""
    parts = _parted(shape, document, found)
    if parts is None or not parts[2]:
        return parts is not None
    content = document[parts[2] : -1]
    try:
        return is_plain(content) and shape.accepts(decode_fast(content))
    except (ValueError, RecursionError):
        return False


def _accepting(plan: MatchPlan) -> Callable[[Any], bool] | None:
    """What judges the value of JSON data; None where its format needs more than the value."""
    payload = plan.compiled.payload
    if payload.framing in FRAMINGS:
        return None  # the value of JSON data has no frame
    return _anything if payload.schema is None else getattr(payload.schema, "accepts", None)


@dataclass(slots=True)
class _AttributePatterns:
    """What is known of an event's attributes: their patterns, and which group of them captures what."""

    parts: list[tuple[str, str]] = field(default_factory=list)
    attributes: list[tuple[str, str | int]] = field(default_factory=list)
    names: list[tuple[str, int]] = field(default_factory=list)
    source: int | None = None
    groups: int = 0


def _attribute_patterns(plan: MatchPlan, event: CloudEvent) -> _AttributePatterns | None:
    """The patterns of an event's attributes; None where one of them cannot be tested by a pattern."""
    constraints = {one.path.removeprefix(_ATTRIBUTE): one for one in plan.tests if one.path.startswith(_ATTRIBUTE)}
    if any(one.template is not None and one.path in _OF_SAME for one in plan.tests):
        return None  # what it captures is not known from a text that stays the same
    found = _AttributePatterns()
    for name, value in event.attributes.items():
        constraint = constraints.get(name)
        if not isinstance(value, str) or not value.isascii():
            return None
        if name in _SAME or (constraint is not None and constraint.constant is not None):
            found.parts.append((name, re.escape(value)))
            found.attributes.append((name, value))
            continue
        part = _part(name, constraint)
        if part is None or not part.isascii():
            return None
        if name == "source" and not _is_reference(constraint):
            found.source = found.groups
        found.parts.append((name, f"({part})"))
        found.attributes.append((name, found.groups))
        captured = [] if constraint is None or constraint.template is None else constraint.template.placeholders
        found.names += [(one.name, found.groups + at) for at, one in enumerate(captured, 1)]
        found.groups += 1 + len(captured)
    # A name that occurs again has to mean the same, which a pattern cannot test.
    return found if len(dict(found.names)) == len(found.names) else None


def _is_reference(constraint: PropertyConstraint | None) -> bool:
    """Whether every source is a URI-reference if one is: only unreserved characters of its path differ."""
    template = None if constraint is None else constraint.template
    return template is not None and all(literal.endswith("/") for literal in template.literals[:-1])


def _part(name: str, constraint: PropertyConstraint | None) -> str | None:
    """The pattern of an attribute's values; None where a pattern cannot test them."""
    if constraint is not None and constraint.template is not None:
        if constraint.template.whole:
            return constraint.template.as_pattern(_WHOLE)
        return constraint.template.as_pattern(_UNRESERVED if name == "source" else _CAPTURED)
    if name == "time":
        return COMMON_TIMESTAMP if constraint is None or constraint.type == "timestamp" else None
    if name == "dataschema" or (constraint is not None and constraint.type not in _TEXTS):
        return None
    return _TEXT + ("++" if name in ("id", "source", "subject") else "*+")


# `MatchScope`: the definitions that a message is tested against, with an index on their keys for each kind of message.
#
# Rule 1: an alias and its target are one definition: the target where it is in scope, else the alias.
# Rule 2: an index is made when the first message of its kind comes; what it finds is a superset of what holds.
# Rule 3: the order of the definitions changes nothing.


@dataclass(frozen=True, slots=True, eq=False)
class ScopeEntry:
    """A definition in a scope, under the limits of an endpoint where it is there through one."""

    compiled: Compiled
    limits: EndpointLimits | None = None

    @property
    def xid(self) -> str:
        """The definition's own name, which may be an alias."""
        return self.compiled.definition.xid

    @property
    def identity(self) -> str:
        """The name of the definition that it is."""
        return self.compiled.definition.identity


class MatchScope:
    """Entries, and an index for each kind of message."""

    __slots__ = ("_fast", "_indexes", "entries")

    def __init__(self, entries: Iterable[ScopeEntry]) -> None:
        self.entries = tuple(_one_each(entries))
        self._fast: FastPath | None = None
        self._indexes: dict[tuple[MessageKind, str | None], KeyIndex] = {}

    @property
    def fast(self) -> FastPath:
        """The fast path of events without a protocol."""
        if self._fast is None:
            self._fast = FastPath(self.index(MessageKind.BARE, None))
        return self._fast

    def index(self, kind: MessageKind, protocol: str | None) -> KeyIndex:
        """The index for messages of a kind that come over a protocol."""
        found = self._indexes.get((kind, protocol))
        if found is None:
            plans = (entry.compiled.plan(kind, protocol, entry.limits) for entry in self.entries)
            found = self._indexes[kind, protocol] = KeyIndex(plans)
        return found


def _one_each(entries: Iterable[ScopeEntry]) -> Iterator[ScopeEntry]:
    """One entry for each definition, or for each endpoint's limits where all of its entries have some."""
    known: dict[str, list[ScopeEntry]] = {}
    for entry in entries:
        known.setdefault(entry.identity, []).append(entry)
    for identity in sorted(known):
        same = sorted(known[identity], key=lambda entry: (entry.xid != identity, entry.xid))
        free = next((entry for entry in same if entry.limits is None), None)
        if free is not None:
            # What an endpoint would add no longer counts, but the name does: the target's before an alias's.
            yield ScopeEntry(same[0].compiled)
        else:
            limited: dict[EndpointLimits | None, ScopeEntry] = {}
            for entry in same:
                limited.setdefault(entry.limits, ScopeEntry(same[0].compiled, entry.limits))
            yield from limited.values()
