"""How like texts are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.messages.nearest import edits, segments, shared


def _by_the_book(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for above, left in enumerate(one, 1):
        before, row[0] = row[0], above
        for at, right in enumerate(other, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (left != right))
    return row[-1]


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_edits(one: str, other: str) -> None:
    """As many characters are changed as the table of all prefixes says, whichever text is first."""
    assert _by_the_book(one, other) == edits(one, other) == edits(other, one)


def test_long_texts_are_cut() -> None:
    """What differs is looked at over 64 characters."""
    assert 64 == edits("a" * 100_000, "b" * 100_000)
    assert 64 == edits("x" * 1000, "x" * 1000 + "y" * 1000)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("com.acme.order.created", "com.acme.order.craeted", 3),
        ("com.acme.order.created", "com.acme.ordr.created", 3),
        ("com.acme.order.created", "com.acme.created", 3),
        ("a.b", "a.b", 2),
        ("a.b", "c.d", 0),
        ("Com.Acme", "com-acme", 2),
        ("", "a", 0),
    ],
)
def test_shared_words(one: str, other: str, expected: int) -> None:
    """Words count that two texts have alike from the beginning or from the end, without case."""
    assert expected == shared(segments(one), segments(other))
