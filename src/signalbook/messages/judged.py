"""`Judged`: what one definition says about one message."""

from __future__ import annotations

from dataclasses import dataclass

from signalbook.errors import Problem
from signalbook.messages.answer import UNCHECKED_PAYLOAD, Candidate
from signalbook.messages.compiled import Plan
from signalbook.messages.constraint import Context
from signalbook.messages.observed import Observed
from signalbook.schemas import Checked
from signalbook.schemas.framing import FrameOnly

__all__ = ["Judged", "judge", "key_holds", "may_hold"]

# So few parts of a key are compared one by one.
_FEW = 8


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A plan, what the message captured by it, what is wrong, and what the payload schema made of the payload.

    `is_unchecked` says that the payload was left unchecked.
    """

    plan: Plan
    context: Context
    problems: tuple[Problem, ...]
    checked: Checked | None
    is_unchecked: bool = False

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def confirmed(self) -> bool:
        """Whether a payload schema was applied and holds."""
        return self.checked is not None and not self.checked.problems and not isinstance(self.checked, FrameOnly)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What of the message was not checked."""
        return UNCHECKED_PAYLOAD if self.is_unchecked else ()

    @property
    def xid(self) -> str:
        """The definition's name."""
        return self.plan.compiled.definition.xid

    @property
    def identity(self) -> str:
        """The name of the definition that it is, where it is an alias."""
        return self.plan.compiled.definition.identity

    def candidate(self) -> Candidate:
        """The definition and what is wrong, as answers list it."""
        return Candidate(self.xid, self.problems)


def key_holds(plan: Plan, observed: Observed) -> bool:
    """Whether the plan has a key, and the message has what it says."""
    if not plan.key:
        return False
    context: Context = {}
    return all(part.holds(observed, context, present=True) for part in plan.key)


def may_hold(plan: Plan, observed: Observed) -> bool:
    """Whether the metadata is as the definition says; the payload may still be wrong."""
    context: Context = {}
    return plan.misfit is None and all(test.holds(observed, context) for test in plan.tests)


def judge(plan: Plan, observed: Observed) -> Judged:
    """Everything that the definition says about the message."""
    context: Context = {}
    problems = [] if plan.misfit is None else [plan.misfit]
    key = plan.key if len(plan.key) < _FEW else frozenset(plan.key)
    for test in plan.tests:
        found = test.problem(observed, context, present=test in key)
        if found is not None:
            problems.append(found)
    payload = plan.compiled.payload.judge(observed)
    return Judged(plan, context, (*problems, *payload.problems), payload.checked, payload.unchecked)
