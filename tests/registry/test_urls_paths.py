from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.registry.urls import MAX_STEPS, MAX_TEXT, PathError, Wild, format_path, parse_path, values_at
from tests.cases import Case, cases

NAMES = st.text(min_size=1, max_size=12).filter(lambda name: not ("'" in name and '"' in name))
STEPS = st.one_of(NAMES, st.integers(0, 999_999_999), st.sampled_from(Wild))
PATHS = st.lists(STEPS, min_size=1, max_size=8).map(tuple)


def read(steps: list[Any]) -> tuple[Any, ...]:
    """The steps of a case, in which a wildcard is an object."""
    return tuple(Wild(step["wild"]) if isinstance(step, dict) else step for step in steps)


@cases("registry/paths")
def test_cases(case: Case) -> None:
    """A path is read into its steps, or refused with the character and the place that is wrong."""
    if isinstance(case.expect, dict):
        with pytest.raises(PathError) as caught:
            parse_path(case.given)
        assert case.expect["error"] == str(caught.value)
    else:
        assert read(case.expect) == parse_path(case.given)


@given(PATHS)
def test_format_is_read_back(path: tuple[Any, ...]) -> None:
    """Reading what `format_path` wrote gives the path again."""
    assert path == parse_path(format_path(path))


@given(st.text(alphabet="ab.[]'\"*01- \\=é", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text is a path or a PathError, and what is read is written as itself or a shorter quoting."""
    try:
        path = parse_path(text)
    except PathError:
        return
    assert path == parse_path(format_path(path))


def test_bounds() -> None:
    """A path has a greatest length and a greatest number of steps."""
    assert MAX_STEPS == len(parse_path(".".join(["a"] * MAX_STEPS)))
    with pytest.raises(PathError, match="steps"):
        parse_path(".".join(["a"] * (MAX_STEPS + 1)))
    with pytest.raises(PathError, match="characters"):
        parse_path("a" * (MAX_TEXT + 1))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("name", ["x"]),
        ("missing", []),
        ("gone", []),
        ("labels.a", ["1"]),
        ("name.a", []),
        ("list[1]", ["q"]),
        ("list[2]", []),
        ("labels[0]", []),
        ("labels.*", ["1", "2"]),
        ("list[*]", ["p", "q"]),
        ("list.*", []),
        ("labels[*]", []),
        ("deep[*].in", [1, 2]),
        ("holes[*]", [0]),
        ("empty", [{}]),
    ],
)
def test_values_at(path: str, expected: list[Any]) -> None:
    """A path leads to the values in its place; null is absent, and what does not fit leads nowhere."""
    attrs = {
        "name": "x",
        "gone": None,
        "labels": {"a": "1", "b": "2"},
        "list": ["p", "q"],
        "deep": [{"in": 1}, {"out": 3}, {"in": 2}],
        "holes": [None, 0],
        "empty": {},
    }
    assert expected == list(values_at(parse_path(path), attrs))


def test_no_step_leads_to_the_entity() -> None:
    """The path without steps is the entity itself."""
    assert [{"a": 1}] == list(values_at((), {"a": 1}))
