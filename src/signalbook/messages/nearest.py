"""The definitions nearest to a message that none expects, with what each of them misses.

Rule: a small scope is judged whole; of a large one, the definitions that share the rarest words with the message. So an
unexpected message costs the same in any catalog.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from signalbook.messages.answer import Candidate
from signalbook.messages.compiled import Plan
from signalbook.messages.judged import Judged, judge
from signalbook.messages.observed import Kind, Observed

__all__ = ["Neighbours"]

_MOST_LISTED = 5
_MOST_JUDGED = 64
_words = re.compile(r"[A-Za-z0-9_]+").findall
# A word that more definitions have says little about any.
_COMMON = 200
_LONGEST_READ = 1000


class Neighbours:
    """The plans for one kind of message, by the words of what they state."""

    __slots__ = ("_by_word", "_plans")

    def __init__(self, plans: Iterable[Plan]) -> None:
        self._plans = tuple(plan for plan in plans if not _is_no_event(plan))
        self._by_word: dict[str, list[int]] | None = None

    def of(self, observed: Observed) -> tuple[Candidate, ...]:
        """The nearest definitions, the one with the fewest problems first."""
        judged = sorted(
            (judge(plan, observed) for plan in self._near(observed)), key=lambda one: _distance(one, observed)
        )
        return tuple(one.candidate() for one in judged[:_MOST_LISTED])

    def _near(self, observed: Observed) -> Iterable[Plan]:
        if len(self._plans) <= _MOST_JUDGED:
            return self._plans
        if self._by_word is None:
            self._by_word = {}
            for place, plan in enumerate(self._plans):
                for word in set(_words_of(_stated(plan))):
                    self._by_word.setdefault(word, []).append(place)
        shared: Counter[int] = Counter()
        for word in set(_words_of(_said(observed))):
            places = self._by_word.get(word, ())
            if len(places) <= _COMMON:
                shared.update(places)
        return [self._plans[place] for place, _ in shared.most_common(_MOST_JUDGED)]


def _distance(judged: Judged, observed: Observed) -> tuple[int, str]:
    """How many things are wrong; what could not be tested over another protocol counts, over another version not."""
    misfit, wanted = judged.plan.misfit, judged.plan.compiled
    elsewhere = (
        misfit is not None and misfit.code == "protocol" and _family(wanted.protocol) != _family(observed.protocol)
    )
    return len(judged.problems) + (len(wanted.on_protocol) if elsewhere else 0), judged.xid


def _family(protocol: str | None) -> str:
    return (protocol or "").partition("/")[0]


def _is_no_event(plan: Plan) -> bool:
    """Whether the plan is for bare events and the definition has no envelope, so that it is never tested."""
    return plan.kind is Kind.BARE and plan.misfit is not None


def _stated(plan: Plan) -> Iterator[str]:
    for constraint in plan.compiled.on_envelope + plan.compiled.on_protocol:
        if constraint.constant is not None:
            yield constraint.constant
        elif constraint.template is not None:
            yield from constraint.template.literals


def _said(observed: Observed) -> Iterator[str]:
    yield from (value for value in observed.attributes.values() if isinstance(value, str))
    if observed.message is not None:
        for value in observed.message.fields.values():
            if isinstance(value, str):
                yield value
            elif isinstance(value, dict):
                yield from (member for member in value.values() if isinstance(member, str))
            elif isinstance(value, tuple):
                yield from (text for _, text in value if isinstance(text, str))


def _words_of(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from _words(text[:_LONGEST_READ])
