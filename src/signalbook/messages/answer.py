"""`Answer`: what a catalog says about one message, in one form for every reader.

Rule: an answer is a value; its CloudEvent is made and its JSON form written when somebody asks.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import orjson

from signalbook.cloudevents import CloudEvent, Kind, decode, encode
from signalbook.errors import Problem
from signalbook.jsontext import JsonError, decode_json, encode_json
from signalbook.schemas import Checked
from signalbook.schemas.framing import FrameOnly

__all__ = ["UNCHECKED_PAYLOAD", "Answer", "Candidate", "Event", "Outcome", "answer_of"]


class Outcome(enum.StrEnum):
    """What became of a message."""

    MATCHED = "matched"
    NONCONFORMANT = "nonconformant"
    AMBIGUOUS = "ambiguous"
    UNEXPECTED = "unexpected"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A definition that was considered, and what of the message it does not accept."""

    definition: str
    problems: tuple[Problem, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The candidate as a JSON value."""
        return {"definition": self.definition, "problems": [_problem(one) for one in self.problems]}


# The event of a message: itself, what makes it, or the text that it was read from.
Event = CloudEvent | Callable[[], CloudEvent | None] | bytes | None
_NO_CONTEXT: Final[Mapping[str, str]] = {}


# What an answer says of a payload whose schema, or whose content encoding, could not be applied.
UNCHECKED_PAYLOAD: Final = ("payload",)


class _Parts(NamedTuple):
    outcome: Outcome
    definition: str | None = None
    context: Mapping[str, str] = _NO_CONTEXT
    problems: tuple[Problem, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    event: Event = None
    checked: Checked | None = None
    unchecked: tuple[str, ...] = ()


# A named tuple and not a dataclass: one is made for each message, and it costs a third.
class Answer(_Parts):
    """The outcome for one message, and why."""

    __slots__ = ()

    @property
    def matched(self) -> bool:
        """Whether exactly one definition holds."""
        return self.outcome is Outcome.MATCHED

    @property
    def cloudevent(self) -> CloudEvent | None:
        """The event that the message is, or that it maps to; None where it does neither."""
        event = self.event
        if isinstance(event, bytes):
            return decode(event)
        return event() if callable(event) else event

    @property
    def data(self) -> Any:
        """The decoded payload: what the schema made of it, or without one the JSON value that the event holds.

        None where there is no payload, where it could not be decoded, and where it was not checked.
        """
        if self.checked is not None and self._is_judged:
            return _decoded(self.checked.value)
        event = None if self.unchecked else self.cloudevent
        data = None if event is None else event.data
        if data is None or data.kind is not Kind.JSON:
            return None
        try:
            return decode_json(data.content)
        except JsonError:
            return None

    @property
    def schemaid(self) -> int | None:
        """The schema id of Confluent's framing, where the payload came with one."""
        return getattr(self.checked, "schemaid", None)

    @property
    def schemaguid(self) -> str | None:
        """The schema's guid, where the payload came with one: Confluent's frame in a header of the record."""
        return getattr(self.checked, "guid", None)

    @property
    def _is_judged(self) -> bool:
        """Whether a schema was applied to the payload."""
        return self.checked is not None and not isinstance(self.checked, FrameOnly)

    def to_json(self) -> dict[str, Any]:
        """The answer as a JSON value."""
        return self._written(json.loads)

    def to_bytes(self) -> bytes:
        """The answer as one line of JSON; the event's data stands in it as it came."""
        return orjson.dumps(self._written(orjson.Fragment))

    def _written(self, event_of: Callable[[bytes], Any]) -> dict[str, Any]:
        written: dict[str, Any] = {
            "outcome": self.outcome.value,
            "definition": self.definition,
            "context": dict(self.context),
            "problems": [_problem(one) for one in self.problems],
            "candidates": [one.to_json() for one in self.candidates],
        }
        if self.unchecked:
            written["unchecked"] = list(self.unchecked)
        if self.schemaid is not None:
            written["schemaid"] = self.schemaid
        if self.schemaguid is not None:
            written["schemaguid"] = self.schemaguid
        event = self.cloudevent
        if event is not None:
            written["cloudevent"] = event_of(encode(event))
        data = self.data
        if data is not None or self._is_judged:
            written["data"] = event_of(encode_json(data).encode())
        return written

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Answer):
            return NotImplemented
        return self._parts() == other._parts()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.outcome, self.definition))

    def __repr__(self) -> str:
        return f"Answer({self.outcome.value}, {self.definition}, {dict(self.context)}, {list(self.problems)})"

    def _parts(self) -> tuple[Any, ...]:
        context = dict(self.context)
        return self.outcome, self.definition, context, self.problems, self.candidates, self.cloudevent, self.unchecked


def _decoded(value: Any) -> Any:
    """What a schema made of a payload, as plain values: of an XML document, its text."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "getroottree"):
        from lxml import etree  # which is loaded already, where there is such a value

        return etree.tostring(value, encoding="unicode")
    return value


def _problem(problem: Problem) -> dict[str, str]:
    return {"path": problem.path, "code": problem.code, "message": problem.message}


# Eight parts in their order to an answer, without the Python call that a named tuple's own constructor is.
answer_of: Callable[[tuple[Any, ...]], Answer] = partial(tuple.__new__, Answer)
