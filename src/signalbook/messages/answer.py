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

from signalbook.cloudevents import CloudEvent, decode, encode
from signalbook.errors import Problem
from signalbook.schemas import Checked

__all__ = ["Answer", "Candidate", "Event", "Outcome", "answer_of"]


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


class _Parts(NamedTuple):
    outcome: Outcome
    definition: str | None = None
    context: Mapping[str, str] = _NO_CONTEXT
    problems: tuple[Problem, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    event: Event = None
    checked: Checked | None = None


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
    def schemaid(self) -> int | None:
        """The schema id of Confluent's framing, where the payload came with one."""
        return getattr(self.checked, "schemaid", None)

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
        event = self.cloudevent
        if event is not None:
            written["cloudevent"] = event_of(encode(event))
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
        return self.outcome, self.definition, context, self.problems, self.candidates, self.cloudevent


def _problem(problem: Problem) -> dict[str, str]:
    return {"path": problem.path, "code": problem.code, "message": problem.message}


# Seven parts in their order to an answer, without the Python call that a named tuple's own constructor is.
answer_of: Callable[[tuple[Any, ...]], Answer] = partial(tuple.__new__, Answer)
