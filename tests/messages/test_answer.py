"""Answers as values."""

from __future__ import annotations

from signalbook.errors import Problem
from signalbook.messages.answer import Answer, Outcome


def test_answers_compare_by_what_they_say() -> None:
    """Answers are equal where all that they say is; what made them does not count."""
    one = Answer(Outcome.MATCHED, "/messagegroups/g/messages/m", {"vin": "A1"})
    same = Answer(Outcome.MATCHED, "/messagegroups/g/messages/m", {"vin": "A1"}, event=lambda: None)
    other = Answer(Outcome.MATCHED, "/messagegroups/g/messages/m", {"vin": "B2"})
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != ("matched",)


def test_an_answer_shows_why() -> None:
    """What a person sees of an answer in Python is its outcome, its definition, its context and its problems."""
    problem = Problem("/data", "payload", "is wrong")
    shown = repr(Answer(Outcome.NONCONFORMANT, "/m", {"vin": "A1"}, (problem,)))
    assert f"Answer(nonconformant, /m, {{'vin': 'A1'}}, [{problem!r}])" == shown
