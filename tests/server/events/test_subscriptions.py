"""Filters of subscriptions, against a straightforward reference."""

from __future__ import annotations

import random
from typing import Any

import pytest

from signalbook.errors import RegistryError
from signalbook.server.events.subscriptions import read_filters
from tests.cases import Case, cases

ATTRIBUTES = ("type", "source", "subject", "id", "extension")
WORDS = ("a", "ab", "abc", "b", "bc", "c", "A", "io.x", "io.xregistry", "/dirs/d1", "/dirs/d")


def reference(filter_: dict[str, Any], event: dict[str, str]) -> bool:
    """The table of the dialects, word for word."""
    ((dialect, value),) = filter_.items()
    if dialect == "exact":
        return all(event.get(name) == text for name, text in value.items())
    if dialect == "prefix":
        return all(name in event and event[name][: len(text)] == text for name, text in value.items())
    if dialect == "suffix":
        return all(name in event and event[name][-len(text) :] == text for name, text in value.items())
    if dialect == "all":
        return all(reference(one, event) for one in value)
    if dialect == "any":
        return any(reference(one, event) for one in value)
    assert dialect == "not"
    return not reference(value, event)


def a_filter(chance: random.Random, depth: int = 0) -> dict[str, Any]:
    """Some filter."""
    dialect = chance.choice(["exact", "prefix", "suffix", *([] if depth > 3 else ["all", "any", "not"])])
    if dialect in ("all", "any"):
        return {dialect: [a_filter(chance, depth + 1) for _ in range(chance.randint(1, 3))]}
    if dialect == "not":
        return {"not": a_filter(chance, depth + 1)}
    names = chance.sample(ATTRIBUTES, chance.randint(1, 2))
    return {dialect: {name: chance.choice(WORDS) for name in names}}


def an_event(chance: random.Random) -> dict[str, str]:
    """Some event's attributes."""
    names = chance.sample(ATTRIBUTES, chance.randint(1, len(ATTRIBUTES)))
    return {name: "".join(chance.choices(WORDS, k=chance.randint(1, 2))) for name in names}


def test_ten_thousand_random_events() -> None:
    """On 10,000 random events the filters agree with the reference, and both answers are common."""
    chance = random.Random(7)
    answers = []
    for _ in range(1000):
        filters = [a_filter(chance) for _ in range(chance.randint(0, 2))]
        wanted = read_filters(filters, "/subscriptions")
        for _ in range(10):
            event = an_event(chance)
            assert all(reference(one, event) for one in filters) == wanted(event), (filters, event)
            answers.append(wanted(event))
    assert 10_000 == len(answers)
    assert 2000 < sum(answers) < 8000


@cases("server/filters_refused")
def test_refused(case: Case) -> None:
    """What is no filter refuses the subscription, with the reason."""
    with pytest.raises(RegistryError) as caught:
        read_filters(case.given, "/subscriptions")
    assert "bad_filter" == caught.value.name
    assert case.expect in caught.value.args_["error_detail"]


def test_bounds() -> None:
    """Depth and number of filters are bounded."""
    deep: Any = {"exact": {"type": "a"}}
    for _ in range(20):
        deep = {"not": deep}
    for given in ([deep], [{"any": [{"exact": {"type": "a"}}] * 300}]):
        with pytest.raises(RegistryError) as caught:
            read_filters(given, "/subscriptions")
        assert "at most" in caught.value.args_["error_detail"]
