"""The fast path of matching: an event in JSON of a known shape, answered by one regular expression and its schema.

Rule 1: a shape is learned from an event that the general path matched: the names of its attributes in their order, and
what the definition says about each. As one pattern over the text it tests all that reading and matching would.
Rule 2: the fast path answers `matched` where the general path would, or nothing: every doubt (a second definition, an
escape, another spelling, anything wrong) is left to the general path.
Rule 3: a pattern never goes back over what it has consumed, and the data is read once, by whoever needs its value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from signalbook.cloudevents import CloudEvent, Kind
from signalbook.cloudevents.attributes import COMMON_TIMESTAMP, is_uri_reference_cached
from signalbook.errors import Problem
from signalbook.jsontext import DIGIT_RUNS, LONG_NUMBER, decode_fast
from signalbook.messages.answer import Answer, Outcome, answer_of
from signalbook.messages.compile import TYPE, Compiled, EndpointLimits, MatchPlan
from signalbook.messages.constraint import PropertyConstraint
from signalbook.messages.index import KeyIndex
from signalbook.messages.layered import GONE, Changes, Layered, Lock
from signalbook.messages.observe import MessageKind
from signalbook.messages.schema_library import SchemaLibrary
from signalbook.schemas import Checked, Schema
from signalbook.schemas.framing import FRAMINGS

__all__ = ["EventShape", "FastPath", "MatchScope", "Parts", "ScopeEntry", "is_plain", "longest"]

_MATCHED = Outcome.MATCHED
_checked = partial(tuple.__new__, Checked)
_ATTRIBUTE = "/envelopemetadata/"
# Events of one type that are looked at to learn from; most of them have one shape.
_MOST_LESSONS = 8
# Attributes that are longer together than this are left to the general path.
_LONGEST_HEAD = 4000
# A longer document, times the ways in which its schema judges each value, is left to the general path, which counts.
_LONGEST = 16 << 20
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


def longest(schema: Any) -> int:
    """The longest document whose data is judged by a schema without being counted."""
    return _LONGEST // int(getattr(schema, "work", 1))


class EventShape:
    """One shape of one definition's events.

    `attributes` are an event's in their order, each with the text that all have, or with the group of the pattern that
    captures it; `names` are the captured names with their groups.
    """

    __slots__ = ("accepts", "attributes", "has_data", "longest", "match", "names", "schema", "source", "xid")

    def __init__(
        self,
        plan: MatchPlan,
        schema: Any,
        accepts: Callable[[Any], bool],
        match: _Match,
        patterns: _AttributePatterns,
        has_data: bool,
    ) -> None:
        self.xid = plan.compiled.definition.xid
        self.accepts = accepts
        self.schema = schema
        self.longest = longest(self.schema)
        self.match = match
        self.attributes = tuple(patterns.attributes)
        self.names = tuple(patterns.names)
        self.source = patterns.source
        self.has_data = has_data


# An event that has a shape, in parts: the shape, what the groups of its pattern captured, and where its data begins,
# which ends before the last byte; 0 where it has no data.
Parts = tuple[EventShape, tuple[str, ...], int]


class _Known:
    """The shapes that are known of one type, and how many events of it were looked at to learn from."""

    __slots__ = ("lessons", "shapes")

    def __init__(self) -> None:
        self.lessons = 0
        self.shapes: tuple[EventShape, ...] = ()


# So many types may have shapes of their own beside those that several states of a scope share.
_MOST_APART = 1000


class FastPath:
    """The shapes that are known of one scope's events, by their type.

    States of a scope that differ in the definitions of a few types share what is known of the others.
    """

    __slots__ = ("_apart", "_index", "_library", "_shared")

    def __init__(self, index: KeyIndex, library: SchemaLibrary) -> None:
        self._index = index
        self._library = library
        self._shared: dict[str, _Known] = {}
        # The types that are not as other states have them.
        self._apart: dict[str, _Known] = {}

    def changed(self, index: KeyIndex, library: SchemaLibrary, plans: Iterable[MatchPlan]) -> FastPath:
        """The fast path of another state, in which these plans are gone or have come."""
        found = FastPath(index, library)
        if library is not self._library:
            return found
        types: list[str] = []
        for plan in plans:
            if plan.is_single and plan.key[0].path == TYPE:
                types.append(plan.key[0].constant or "")
            elif plan.key or plan.misfit is None:
                return found  # it may be one of any type's
        found._shared = self._shared
        found._apart = {**self._apart, **{name: _Known() for name in types}}
        if len(found._apart) > _MOST_APART:
            found._shared, found._apart = {**self._shared, **found._apart}, {}
        return found

    def shapes(self, name: str) -> tuple[EventShape, ...]:
        """The shapes that are known of the events of a type."""
        known = self._apart.get(name) or self._shared.get(name)
        return () if known is None else known.shapes

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
        name = text[begins : text.find('"', begins)]
        known = self._apart.get(name) or self._shared.get(name)
        if known is None:
            return None
        for shape in known.shapes:
            if len(document) <= shape.longest and (found := shape.match(text)) is not None:
                return _parted(shape, document, found)
        return None

    def learn(self, document: bytes, answers: Sequence[Answer]) -> None:
        """Remember the shape of an event that was matched, where a pattern can recognise it."""
        answer = answers[0] if len(answers) == 1 else None
        if answer is None or answer.outcome is not _MATCHED or not isinstance(answer.event, CloudEvent):
            return
        event = answer.event
        name = event.type
        plan = self._index.alone(TYPE, name)
        if plan is None or plan.compiled.definition.xid != answer.definition:
            return
        known = self._apart.get(name) or self._shared.get(name)
        if known is None:
            known = self._shared.setdefault(name, _Known())
        if known.lessons >= _MOST_LESSONS:
            return
        known.lessons += 1
        present = {_ATTRIBUTE + attribute for attribute in event.attributes}
        if self._index.is_known_beside(TYPE, name, present - {TYPE}):
            return
        shape = _shape_of(plan, event, document, self._library)
        if shape is not None:
            known.shapes = (*known.shapes, shape)


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


def _shape_of(plan: MatchPlan, event: CloudEvent, document: bytes, library: SchemaLibrary) -> EventShape | None:
    """The shape that an event has; None where a pattern cannot recognise it."""
    data = event._data
    # A JSON object with a protocol is a message on paper.
    if "protocol" in event.attributes or (data is not None and data[0] is not Kind.JSON):
        return None
    schema = plan.compiled.payload.schema(library)
    accepts = _accepting(plan, schema)
    patterns = _attribute_patterns(plan, event)
    if accepts is None or patterns is None:
        return None
    text = document.decode()
    for comma, colon in _SPELLINGS:
        head = comma.join(f'"{name}"{colon}"{part}"' for name, part in patterns.parts)
        pattern = re.compile(rf"\{{{head}" + (r"\}" if data is None else f'{comma}"data"{colon}'))
        match = pattern.fullmatch if data is None else pattern.match
        found = match(text)
        shape = EventShape(plan, schema, accepts, match, patterns, data is not None)
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


def _accepting(plan: MatchPlan, schema: Schema | Problem | None) -> Callable[[Any], bool] | None:
    """What judges the value of JSON data; None where its format needs more than the value."""
    if plan.compiled.payload.framing in FRAMINGS:
        return None  # the value of JSON data has no frame
    return _anything if schema is None else getattr(schema, "accepts", None)


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
# Rule 2: an index is made once, when the first message of its kind comes; what it finds is a superset of what holds.
# Rule 3: the order of the definitions changes nothing.
# Rule 4: a scope never changes. `changed` gives another, with the indexes that were made, at the cost of what differs.


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
    """Entries, the library of their schemas, and an index for each kind of message."""

    __slots__ = ("_fast", "_indexes", "_lock", "_make_lock", "_same", "library")

    def __init__(
        self, entries: Iterable[ScopeEntry], library: SchemaLibrary, make_lock: Callable[[], Lock] = nullcontext
    ) -> None:
        same: dict[str, list[ScopeEntry]] = {}
        for entry in entries:
            same.setdefault(entry.identity, []).append(entry)
        # By the identity of a definition, all entries that it is in scope by.
        self._same: Layered[str, Sequence[ScopeEntry]] = Layered(dict(same))
        self.library = library
        self._make_lock = make_lock
        self._lock = make_lock()
        self._fast: FastPath | None = None
        self._indexes: dict[tuple[MessageKind, str | None], KeyIndex] = {}

    @property
    def entries(self) -> tuple[ScopeEntry, ...]:
        """One entry for each definition, or for each endpoint's limits where all of its entries have some."""
        return tuple(entry for identity in sorted(self._same) for entry in _one_each(identity, self._same[identity]))

    @property
    def fast(self) -> FastPath:
        """The fast path of events without a protocol."""
        if self._fast is None:
            with self._lock:
                if self._fast is None:
                    self._fast = FastPath(self.index(MessageKind.BARE, None), self.library)
        return self._fast

    def index(self, kind: MessageKind, protocol: str | None) -> KeyIndex:
        """The index for messages of a kind that come over a protocol."""
        found = self._indexes.get((kind, protocol))
        if found is None:
            with self._lock:
                found = self._indexes.get((kind, protocol))
                if found is None:
                    places = (place for identity in self._same for place in self._placed(identity))
                    plans = (entry.compiled.plan(kind, protocol, entry.limits, place) for place, entry in places)
                    found = self._indexes[kind, protocol] = KeyIndex(plans, self._lock)
        return found

    def prepared_as(self, other: MatchScope) -> None:
        """Make the indexes that another scope has, so that no message waits for them."""
        for kind, protocol in list(other._indexes):
            self.index(kind, protocol)
        if other._fast is not None:
            _ = self.fast

    def changed(self, gone: Mapping[str, str], come: Iterable[ScopeEntry], library: SchemaLibrary) -> MatchScope:
        """The scope without some definitions, each with its identity, and with other entries."""
        found = MatchScope((), library, self._make_lock)
        same = Changes(self._same)
        for xid, identity in gone.items():
            left = [entry for entry in same.get(identity) or () if entry.xid != xid]
            same.set(identity, left or GONE)
        for entry in come:
            same.set(entry.identity, [*(same.get(entry.identity) or ()), entry])
        found._same = same.made()
        with self._lock:
            indexes, fast = dict(self._indexes), self._fast
        old = [place for identity in same.changes for place, _ in self._placed(identity)]
        new = [row for identity in same.changes for row in found._placed(identity)]
        for (kind, protocol), index in indexes.items():
            left_out = [plan for place in old if (plan := index.plans.get(place)) is not None]
            added = [entry.compiled.plan(kind, protocol, entry.limits, place) for place, entry in new]
            made = found._indexes[kind, protocol] = index.changed(left_out, added)
            if kind is MessageKind.BARE and protocol is None and fast is not None:
                found._fast = fast.changed(made, library, (*left_out, *added))
        return found

    def _placed(self, identity: str) -> Iterator[tuple[str, ScopeEntry]]:
        """The entries of one definition that count, each with its place in an index."""
        for number, entry in enumerate(_one_each(identity, self._same.get(identity, ()))):
            yield f"{identity}\0{number}" if number else identity, entry


def _one_each(identity: str, same: Sequence[ScopeEntry]) -> Iterator[ScopeEntry]:
    """One entry for a definition, or one for each endpoint's limits where all of its entries have some."""
    if len(same) < 2:
        yield from same
        return
    same = sorted(same, key=lambda entry: (entry.xid != identity, entry.xid))
    if any(entry.limits is None for entry in same):
        # What an endpoint would add no longer counts, but the name does: the target's before an alias's.
        yield ScopeEntry(same[0].compiled)
        return
    limited: dict[EndpointLimits | None, ScopeEntry] = {}
    for entry in same:
        limited.setdefault(entry.limits, ScopeEntry(same[0].compiled, entry.limits))
    yield from limited.values()
