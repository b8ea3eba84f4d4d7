from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.registry.filters import collated, number_in
from signalbook.registry.rows import fold

NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Straße", "strasse"),
        (True, "true"),
        (False, "false"),
        (5, "5"),
        (5.0, "5"),
        (-0.0, "0"),
        (1e21, "1000000000000000000000"),
        (0.1, "0.1"),
        ("2024-01-01T12:00:00Z", "2024-01-01t12:00:00"),
        ("2024-01-01t12:00:00.000z", "2024-01-01t12:00:00"),
        ("2024-01-01T00:30:00.25+01:00", "2023-12-31t23:30:00.25"),
        ("0000-01-01T00:00:00Z", "0000-01-01t00:00:00"),
        ("0001-01-01T00:00:00+01:00", "0001-01-01t00:00:00+01:00"),
        ("2024-13-01T00:00:00+01:00", "2024-13-01t00:00:00+01:00"),
        ("2024-01-01T00:00:00+25:00", "2024-01-01t00:00:00+25:00"),
        ("2024-01-01T is no timestamp", "2024-01-01t is no timestamp"),
    ],
)
def test_fold(value: str | int | float, expected: str) -> None:
    """Equal values fold to one text: case, zone, trailing zeros and the spelling of a number do not count."""
    assert expected == fold(value)


@given(NUMBERS, NUMBERS)
def test_numbers_fold_alike_when_they_are_equal(one: int | float, other: int | float) -> None:
    """Two numbers have the same folded text exactly when they are equal."""
    assert (one == other) is (fold(one) == fold(other))
    assert fold(one) == fold(float(one)) or not -(2**53) <= one <= 2**53


@given(st.text(), st.text())
def test_collation_agrees_with_folding(one: str, other: str) -> None:
    """Two texts are neither below nor above each other exactly when they fold alike."""
    assert (fold(one) == fold(other)) is (collated(one) == collated(other))


@given(st.text())
def test_case_does_not_count(text: str) -> None:
    """Strings are compared in a case-insensitive manner."""
    assert fold(text) == fold(text.casefold())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", 5),
        ("-5", -5),
        ("5.5", 5.5),
        ("1e3", 1000.0),
        ("1E-2", 0.01),
        ("", None),
        ("05", None),
        ("+5", None),
        ("5.", None),
        ("nan", None),
        ("٣", None),
        ("1" * 401, None),
    ],
)
def test_number_in(text: str, expected: float | None) -> None:
    """A number is written as in JSON."""
    assert expected == number_in(text)


def test_collated_puts_accents_after_letters() -> None:
    """Letters decide first, then accents; case never does."""
    assert ["a", "á", "Ab", "b"] == sorted(["b", "á", "Ab", "a"], key=collated)
