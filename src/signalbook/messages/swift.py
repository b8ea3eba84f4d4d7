"""The swift road: a bare event of a shape that is known, answered by one pattern and the payload schema.

Rule 1: a shape is learned from an event that the patient road matched: the names of its attributes in their order, and
what the definition says about each. As one pattern over the text it says all that reading and matching would.
Rule 2: the road says `matched` where the patient road would, or nothing: every doubt (a second definition, an escape,
another spelling, anything wrong) is left to the patient road.
Rule 3: a pattern never goes back over what it has taken, and the data is read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from signalbook.cloudevents import CloudEvent, Kind
from signalbook.cloudevents.timestamp import COMMON
from signalbook.cloudevents.uri import remembered_reference
from signalbook.messages.answer import Answer, Outcome, answer_of
from signalbook.messages.compiled import Plan
from signalbook.messages.constraint import Constraint
from signalbook.messages.envelope import TYPE
from signalbook.messages.key_index import KeyIndex
from signalbook.schemas import Checked
from signalbook.schemas.json_exact import LONG, RUNS, quick

__all__ = ["SwiftRoad"]

_MATCHED = Outcome.MATCHED
_checked = partial(tuple.__new__, Checked)
_ATTRIBUTE = "/envelopemetadata/"
# Events of one type that are looked at to learn from; most of them have one shape.
_MOST_LESSONS = 8
# A longer attribute would make the pattern's errand long; a longer source is not worth remembering.
_LONGEST_HEAD = 4000
# The characters of a string without escapes, of a captured one that is not encoded, and of one in a source.
_TEXT = r'[^"\\\x00-\x1f\x7f-\U0010ffff]'
_CAPTURED = r'[^/?#%"\\\x00-\x1f\x7f-\U0010ffff]'
_UNRESERVED = r"[A-Za-z0-9._~-]"
# The texts between names and values, as writers without and with white space have them.
_SPELLINGS = ((",", ":"), (", ", ": "))
_SAME = frozenset({"specversion", "type", "datacontenttype"})
_TEXTS = frozenset({"any", "string", "uritemplate"})
_TYPE, _TYPE_SPACED = '"type":"', '"type": "'
_Match = Callable[[str], re.Match[str] | None]


class _Shape:
    """One shape of one definition's events; `names` are those of the pattern's groups, an empty one the source's."""

    __slots__ = ("accepts", "has_data", "has_schema", "match", "names", "source", "xid")

    def __init__(
        self, plan: Plan, accepts: Callable[[Any], bool], match: _Match, names: tuple[str, ...], has_data: bool
    ) -> None:
        self.xid = plan.compiled.definition.xid
        self.accepts = accepts
        self.has_schema = plan.compiled.payload.source is not None
        self.match = match
        self.names = names
        self.source = names.index("") if "" in names else -1
        self.has_data = has_data


class SwiftRoad:
    """The shapes that are known of one scope's events, by their type."""

    __slots__ = ("_index", "_lessons", "_plans", "_shapes")

    def __init__(self, index: KeyIndex) -> None:
        self._index = index
        self._plans = index.alone(TYPE)
        self._shapes: dict[str, list[_Shape]] = {}
        self._lessons: dict[str, int] = {}

    def answer(self, document: bytes) -> Answer | None:
        """The answer about an event that matches; None where that is not certain."""
        try:
            text = document.decode()
            begins = text.find(_TYPE) + 8
            if begins < 8:
                begins = text.find(_TYPE_SPACED) + 9
            for shape in self._shapes.get(text[begins : text.find('"', begins)], ()):
                found = shape.match(text)
                if found is not None:
                    return _answer(shape, document, found)
        except (ValueError, RecursionError):
            pass  # it is not JSON, or too much of it
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


def _answer(shape: _Shape, document: bytes, found: re.Match[str]) -> Answer | None:
    """The answer about an event that has a shape, its data still to be judged; ValueError where that is no JSON."""
    captured = found.groups()
    if shape.source >= 0 and not remembered_reference(captured[shape.source]):
        return None
    checked = None
    if shape.has_data:
        # All before it is ASCII, so that its place is the same in the text and in the bytes.
        content = document[found.end() : -1]
        # Numbers that a quick reader would round are left to one that does not.
        if LONG in content.translate(RUNS) or not shape.accepts(value := quick(content)):
            return None
        if shape.has_schema:
            checked = _checked(((), value))
    context = dict(zip(shape.names, captured, strict=True))
    if shape.source >= 0:
        del context[""]
    return answer_of((_MATCHED, shape.xid, context, (), (), document, checked))


def _anything(value: Any) -> bool:
    return True


def _shape_of(plan: Plan, event: CloudEvent, document: bytes) -> _Shape | None:
    """The shape that an event has; None where a pattern cannot tell it."""
    data = event._data
    # With a protocol it would be a message on paper.
    if "protocol" in event.attributes or (data is not None and data[0] is not Kind.JSON):
        return None
    accepts = _accepting(plan)
    told = _told(plan, event)
    if accepts is None or told is None:
        return None
    names, members = told
    text = document.decode()
    for comma, colon in _SPELLINGS:
        head = comma.join(f'"{name}"{colon}"{part}"' for name, part in members)
        pattern = re.compile(rf"\{{{head}" + (r"\}" if data is None else f'{comma}"data"{colon}'))
        match = pattern.fullmatch if data is None else pattern.match
        found = match(text)
        shape = _Shape(plan, accepts, match, names, data is not None)
        if found is not None and found.end() <= _LONGEST_HEAD and _answers(shape, document, found):
            return shape
    return None


def _answers(shape: _Shape, document: bytes, found: re.Match[str]) -> bool:
    """Whether the event that taught a shape is answered by it."""
    try:
        return _answer(shape, document, found) is not None
    except (ValueError, RecursionError):
        return False


def _accepting(plan: Plan) -> Callable[[Any], bool] | None:
    """What judges the value of JSON data; None where its format needs more than the value."""
    schema = plan.compiled.payload.schema
    return _anything if schema is None else getattr(schema, "accepts", None)


def _told(plan: Plan, event: CloudEvent) -> tuple[tuple[str, ...], list[tuple[str, str]]] | None:
    """The names that the patterns of an event's attributes capture, and these patterns."""
    constraints = {one.path.removeprefix(_ATTRIBUTE): one for one in plan.tests if one.path.startswith(_ATTRIBUTE)}
    captured: list[str] = []
    members: list[tuple[str, str]] = []
    for name, value in event.attributes.items():
        constraint = constraints.get(name)
        certain = name != "source" or _is_reference(constraint)
        if not certain:
            captured.append("")
        part = _part(name, value, constraint, captured) if isinstance(value, str) and value.isascii() else None
        if part is None or not part.isascii():
            return None
        members.append((name, part if certain else f"({part})"))
    # A name that occurs again has to mean the same, which a pattern cannot tell.
    return (tuple(captured), members) if len(set(captured)) == len(captured) else None


def _is_reference(constraint: Constraint | None) -> bool:
    """Whether every source is a URI-reference if one is: only unreserved characters of its path differ."""
    if constraint is None:
        return False
    template = constraint.template
    return constraint.constant is not None or (
        template is not None and all(literal.endswith("/") for literal in template.literals[:-1])
    )


def _part(name: str, value: str, constraint: Constraint | None, captured: list[str]) -> str | None:
    """The pattern of one attribute's value; None where there is none."""
    if name in _SAME or (constraint is not None and constraint.constant is not None):
        return re.escape(value)
    if constraint is not None and constraint.template is not None:
        captured += [one.name for one in constraint.template.placeholders]
        return constraint.template.as_pattern(_UNRESERVED if name == "source" else _CAPTURED)
    if name == "time":
        return COMMON if constraint is None or constraint.type == "timestamp" else None
    if name == "dataschema" or (constraint is not None and constraint.type not in _TEXTS):
        return None
    return _TEXT + ("++" if name in ("id", "source", "subject") else "*+")
