from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.errors import RegistryError
from signalbook.registry.read.reads import MAX_TEXT, Sort, parse

DIRS: dict[str, dict[str, Any]] = {
    "d1": {"name": "d1", "myfloat": 3.1, "myany": "a string", "myobj": {"foo": "bar"}, "strs": ["zzz", "bbb"]},
    "d2": {"name": "d2", "myfloat": 1.3, "myany": 123, "myobj": {"foo": "zzz"}, "strs": ["aaa", "bbb"]},
    "d3": {"name": "D1", "mybool": False},
    "D4": {"name": "d10", "mybool": True},
}


def order(text: str) -> list[str]:
    """The ids of DIRS in the order asked for, whatever order they came in."""
    items = list(DIRS.items())
    random.Random(text).shuffle(items)
    return [id_ for id_, _ in parse(text, "/dirs").sorted(items)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name", ["d1", "d3", "D4", "d2"]),
        ("name=asc", ["d1", "d3", "D4", "d2"]),
        ("name=desc", ["d2", "D4", "d3", "d1"]),
        ("myfloat", ["d3", "D4", "d2", "d1"]),
        ("myfloat=desc", ["d1", "d2", "D4", "d3"]),
        ("myany", ["d3", "D4", "d2", "d1"]),
        ("mybool", ["d1", "d2", "d3", "D4"]),
        ("myobj.foo", ["d3", "D4", "d1", "d2"]),
        ("myobj", ["d1", "d2", "d3", "D4"]),
        ("strs[0]", ["d3", "D4", "d2", "d1"]),
        ("strs[1]=desc", ["d2", "d1", "D4", "d3"]),
        ("unknown=desc", ["D4", "d3", "d2", "d1"]),
    ],
)
def test_order(text: str, expected: list[str]) -> None:
    """Missing values come lowest, equal ones follow the id in the same direction, and types do not mix."""
    assert expected == order(text)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3), st.just({})
)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=8), st.booleans(), st.randoms())
def test_the_order_is_always_the_same(values: dict[str, Any], descending: bool, chance: random.Random) -> None:
    """An implementation sorts the result the same way each time."""
    sort = Sort(("a",), descending)
    items = [(id_, {"a": value}) for id_, value in values.items()]
    shuffled = chance.sample(items, len(items))
    assert sort.sorted(items) == sort.sorted(shuffled)
    assert sort.sorted(items) == Sort(("a",), not descending).sorted(shuffled)[::-1]


@pytest.mark.parametrize(
    ("text", "value", "detail"),
    [
        ("", "", "missing attribute name"),
        ("=desc", "=desc", "missing attribute name"),
        ("name=up", "name=up", 'the order is "asc" or "desc", not "up"'),
        ("name=", "name=", 'the order is "asc" or "desc", not ""'),
        ("a..b", "a..b", 'Unexpected "." in "a..b" at pos 3'),
        ("labels.*", "labels.*", "a wildcard leads to more than one value"),
        ("files.name", "files.name", '"files" is a collection, not an attribute'),
        ("a" * (MAX_TEXT + 1), "a" * 60 + "...", "longer than 1024 characters"),
    ],
)
def test_errors(text: str, value: str, detail: str) -> None:
    """An invalid value for the flag generates `bad_sort`."""
    with pytest.raises(RegistryError) as caught:
        parse(text, "/dirs?sort", {"files"})
    assert ("bad_sort", "/dirs?sort", {"value": value, "error_detail": detail}) == (
        caught.value.name,
        caught.value.subject,
        caught.value.args_,
    )
