"""The nineteen value types."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.model.values import TYPE_ALIASES, VALUE_TYPES, check_value, from_text, moment, text_of
from tests.cases import Case, cases

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def test_the_types_are_those_of_the_specification() -> None:
    """There are 19 types, 15 of them scalar; old spellings lead to one of them."""
    assert 19 == len(VALUE_TYPES)
    assert {"any", "array", "map", "object"} == {name for name, row in VALUE_TYPES.items() if not row.scalar}
    assert set(TYPE_ALIASES.values()) <= VALUE_TYPES.keys()


@cases("document/value_types")
def test_read(case: Case) -> None:
    """A value is read into its canonical form, or the fault is said in words that follow the attribute's name."""
    read = VALUE_TYPES[case.given["type"]].read
    assert case.expect.get("error") == check_value(case.given["type"], case.given["value"])
    if "error" not in case.expect:
        value = read(case.given["value"])
        assert case.expect["value"] == value
        assert type(case.expect["value"]) is type(value)


@given(st.sampled_from(sorted(VALUE_TYPES)), JSON)
def test_reading_twice_changes_nothing(type_name: str, value: object) -> None:
    """A canonical value reads as itself, and no value makes a type fail otherwise than in words."""
    if check_value(type_name, value) is None:
        once = VALUE_TYPES[type_name].read(value)
        assert once == VALUE_TYPES[type_name].read(once)


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),
    st.integers(-23 * 60, 23 * 60),
    st.sampled_from(["", ".5", ".000000001", ".120"]),
)
def test_a_timestamp_is_the_same_moment_in_utc(at: datetime, offset: int, fraction: str) -> None:
    """Normalising to UTC keeps the moment, and the digits of its fraction."""
    at = at.replace(microsecond=0)
    sign = "-" if offset < 0 else "+"
    local = f"{at.isoformat()}{fraction}{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    expected = at.replace(tzinfo=timezone(timedelta(minutes=offset))).astimezone(UTC)
    assert f"{expected.replace(tzinfo=None).isoformat()}{fraction}Z" == VALUE_TYPES["timestamp"].read(local)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00.1Z"),
        ("2024-01-01T00:00:00.09Z", "2024-01-01T00:00:00.1Z"),
        ("2024-01-01T00:00:00.999Z", "2024-01-01T00:00:01Z"),
    ],
)
def test_moments_are_ordered(earlier: str, later: str) -> None:
    """Timestamps compare as moments, whatever number of digits they have."""
    assert moment(earlier) < moment(later)
    assert moment("2024-01-01T00:00:00.10Z") == moment("2024-01-01T00:00:00.1Z")


@pytest.mark.parametrize(
    ("type_name", "text", "value"),
    [
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("boolean", "True", "True"),
        ("integer", "-5", -5),
        ("uinteger", "5", 5),
        ("integer", "5x", "5x"),
        ("decimal", "-5", -5),
        ("decimal", "5.5", 5.5),
        ("decimal", "nope", "nope"),
        ("string", "5", "5"),
        ("any", "5", "5"),
        ("timestamp", "5", "5"),
    ],
)
def test_values_of_headers(type_name: str, text: str, value: object) -> None:
    """Text becomes a value of the attribute's type, and stays text where it is none, for the check to refuse."""
    found = from_text(type_name, text)
    assert value == found
    assert type(value) is type(found)


def test_text_of_scalars() -> None:
    """Booleans are written as in JSON; what is no scalar is not written out."""
    assert ["true", "false", "5", "5.5", "a"] == [text_of(value) for value in (True, False, 5, 5.5, "a")]
    assert ["<list>", "<dict>"] == [text_of(value) for value in ([1], {"a": 1})]
