"""The index of attribute values: what it proposes does not depend on when it was written down."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook import Registry
from signalbook.registry import rows
from signalbook.registry.rows import IndexEntry
from signalbook.registry.store import Store, open_store

TERMS = st.frozensets(st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2), max_size=4)
WRITES = st.lists(st.tuples(st.sampled_from("abc"), TERMS), max_size=20)


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store."""
    with open_store(store_url) as opened:
        yield opened


def waiting(store: Store) -> int:
    """How many rows are not entered yet."""
    found = store.reader().one("SELECT COUNT(*) FROM recent")
    assert found is not None
    return int(found[0])


@given(WRITES, st.integers(0, 3))
def test_it_proposes_at_least_what_is_there(writes: list[tuple[str, frozenset[int]]], every: int) -> None:
    """Each entity is found by each of its terms, and after a fold by no other."""
    with open_store("memory:") as store:
        held: dict[str, frozenset[int]] = {}
        for number, (key, terms) in enumerate(writes):
            before = held.get(key, frozenset())
            entry = IndexEntry(key, sorted(terms - before), sorted(before - terms))
            store.write(lambda db, entry=entry: rows.enter_terms(db, [entry]))  # type: ignore[misc]
            held[key] = terms
            if every and number % every == 0:
                store.write(rows.enter_recent)
        seen = {term for _, terms in writes for term in terms}
        for term in seen:
            assert {key for key, terms in held.items() if term in terms} <= rows.find_candidates(
                store.reader(), term, "", "~"
            )
        store.write(rows.enter_recent)
        for term in seen:
            assert {key for key, terms in held.items() if term in terms} == rows.find_candidates(
                store.reader(), term, "", "~"
            )


def test_many_rows_are_folded(store: Store) -> None:
    """What waits never grows beyond a bound, and nothing is lost by folding."""
    for number in range(rows.RECENT_ROWS + 3):
        store.write(lambda db, number=number: rows.enter_terms(db, [IndexEntry(f"k{number}", [number, 7], [])]))  # type: ignore[misc]
    assert 3 == waiting(store)
    assert rows.RECENT_ROWS + 3 == len(rows.find_candidates(store.reader(), 7, "k", "l"))


def test_a_large_write_comes_behind_what_waits(store: Store) -> None:
    """A term that a large write takes away does not come back with what waited."""
    store.write(lambda db: rows.enter_terms(db, [IndexEntry("k1", [1], [])]))
    store.write(
        lambda db: rows.enter_terms(db, [IndexEntry(f"k{number}", [2], [1]) for number in range(rows.FEW_ENTRIES + 1)])
    )
    assert 0 == waiting(store)
    assert (set(), rows.FEW_ENTRIES + 1) == (
        rows.find_candidates(store.reader(), 1, "", "~"),
        len(rows.find_candidates(store.reader(), 2, "", "~")),
    )


def test_a_filter_sees_what_waits(store_url: str) -> None:
    """A value is found at once, another one no longer."""
    with Registry.open(store_url) as registry:
        registry.put("/messagegroups/g/messages/m", {"labels": {"team": "a"}})
        registry.put("/messagegroups/g/messages/m", {"labels": {"team": "b"}})
        assert ["m"] == [one["messageid"] for one in registry.find("/messagegroups/g/messages", "labels.team=b")]
        assert [] == list(registry.find("/messagegroups/g/messages", "labels.team=a"))
