"""The answer about one message: by all definitions of a scope, or by one alone.

Rule 1: a definition holds where its key is there and every constraint and the payload hold.
Rule 2: a key that holds decides: a violation of such a definition is not hidden by one without a key.
Rule 3: where several hold, the steps of `_settled` decide in their order; what remains is ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from signalbook.cloudevents import CloudEvent
from signalbook.messages.answer import Answer, Candidate, Outcome
from signalbook.messages.compiled import Compiled, Plan
from signalbook.messages.envelope import TYPE
from signalbook.messages.judged import Judged, judge, key_holds, may_hold
from signalbook.messages.key_index import KeyIndex
from signalbook.messages.mapped import mapped_event
from signalbook.messages.observed import Kind, Observed, Unreadable
from signalbook.messages.scope import Scope

__all__ = ["answer", "answer_by_one"]


def answer(scope: Scope, observed: Observed | Unreadable) -> Answer:
    """What the definitions of a scope say about a message."""
    if isinstance(observed, Unreadable):
        return _malformed(scope, observed)
    index = scope.index(observed.kind, observed.protocol)
    keyed = [one for plan in _once(index.find(observed)) if (one := _judged_by_key(plan, observed)) is not None]
    if keyed:
        holding = [one for one in keyed if one.holds]
        return (
            _held(observed, holding + _derived_without_key(index, observed, holding))
            if holding
            else _near_miss(observed, keyed)
        )
    holding = _holding(index.keyless, observed)
    if holding:
        return _held(observed, holding)
    return Answer(Outcome.UNEXPECTED, candidates=index.neighbours.of(observed), event=observed.event)


def answer_by_one(compiled: Compiled, observed: Observed | Unreadable) -> Answer:
    """What one definition says about a message, whatever its key."""
    xid = compiled.definition.xid
    if isinstance(observed, Unreadable):
        return Answer(Outcome.MALFORMED, xid, problems=observed.problems)
    judged = judge(compiled.plan(observed.kind, observed.protocol), observed)
    problems = compiled.definition.problems or judged.problems
    if problems:
        return Answer(Outcome.NONCONFORMANT, xid, judged.context, problems, (), observed.event, judged.checked)
    return _matched(observed, judged)


def _judged_by_key(plan: Plan, observed: Observed) -> Judged | None:
    """What a definition says that an index found; None where its key does not hold."""
    # A single constant is what the index went by: it is looked at again only where something is wrong.
    if not plan.is_single and not key_holds(plan, observed):
        return None
    judged = judge(plan, observed)
    return judged if judged.holds or not plan.is_single or key_holds(plan, observed) else None


def _malformed(scope: Scope, unreadable: Unreadable) -> Answer:
    """What cannot be read, with the definitions that its type would have meant."""
    hint = unreadable.hint
    meant: tuple[Candidate, ...] = ()
    if hint is not None:
        plans = _once(scope.index(hint.kind, hint.protocol).find(hint))
        named = [plan for plan in plans if plan.key[0].path == TYPE and key_holds(plan, hint)]
        meant = tuple(Candidate(xid) for xid in sorted(plan.compiled.definition.xid for plan in named))
    return Answer(Outcome.MALFORMED, problems=unreadable.problems, candidates=meant)


def _holding(plans: Iterable[Plan], observed: Observed) -> list[Judged]:
    judged = (judge(plan, observed) for plan in plans if may_hold(plan, observed))
    return [one for one in judged if one.holds]


def _derived_without_key(index: KeyIndex, observed: Observed, holding: list[Judged]) -> list[Judged]:
    """Definitions without a key that hold and derive from one that holds by its key, which yields to them."""
    bases = {one.identity for one in holding}
    return _holding((plan for plan in index.keyless_derived if not bases.isdisjoint(plan.derives_from)), observed)


def _held(observed: Observed, holding: list[Judged]) -> Answer:
    left = _settled(observed.kind, holding)
    if len(left) == 1:
        return _matched(observed, left[0])
    candidates = tuple(one.candidate() for one in sorted(left, key=lambda one: one.xid))
    return Answer(Outcome.AMBIGUOUS, candidates=candidates, event=observed.event)


def _matched(observed: Observed, judged: Judged) -> Answer:
    event: CloudEvent | Callable[[], CloudEvent | None] | None = observed.event
    if event is None:
        compiled = judged.plan.compiled
        event = lambda: mapped_event(compiled, observed, judged.context)  # noqa: E731  # made when it is asked for
    return Answer(Outcome.MATCHED, judged.xid, judged.context, (), (), event, judged.checked)


def _near_miss(observed: Observed, keyed: list[Judged]) -> Answer:
    """The answer where keys hold and nothing else does: the definition with the fewest problems, if that is one."""
    fewest = min(len(one.problems) for one in keyed)
    left = _without_bases(_one_each([one for one in keyed if len(one.problems) == fewest]))
    if len(left) > 1:
        candidates = tuple(one.candidate() for one in sorted(left, key=lambda one: one.xid))
        return Answer(Outcome.NONCONFORMANT, candidates=candidates, event=observed.event)
    one = left[0]
    return Answer(Outcome.NONCONFORMANT, one.xid, one.context, one.problems, (), observed.event, one.checked)


def _settled(kind: Kind, holding: list[Judged]) -> list[Judged]:
    """Which of several that hold are left once each rule had its say."""
    left = _one_each(holding)
    if len(left) > 1 and kind is Kind.BARE:
        left = _preferred(left, lambda one: one.plan.compiled.protocol is None)
    if len(left) > 1:
        left = _without_bases(left)
    if len(left) > 1:
        left = _preferred(left, lambda one: bool(one.plan.key))
    if len(left) > 1 and kind is Kind.EVENT:
        left = _preferred(left, lambda one: one.plan.compiled.envelope is not None)
    if len(left) > 1:
        left = _preferred(left, lambda one: one.confirmed)
    return left


def _preferred(judged: list[Judged], better: Callable[[Judged], bool]) -> list[Judged]:
    return [one for one in judged if better(one)] or judged


def _without_bases(judged: list[Judged]) -> list[Judged]:
    """Those from which no other of them derives."""
    bases = {base for one in judged for base in one.plan.derives_from}
    return [one for one in judged if one.identity not in bases] or judged


def _one_each(judged: list[Judged]) -> list[Judged]:
    """One for each definition: it may be in scope under the limits of several endpoints."""
    return list({one.identity: one for one in judged}.values())


def _once(plans: list[Plan]) -> Iterable[Plan]:
    return dict.fromkeys(plans) if len(plans) > 1 else plans
