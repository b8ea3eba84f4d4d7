"""The record of changes as a follower reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook import Registry, RegistryError
from signalbook.registry.changes import START, Change, Position, latest, parse_position, read_changes, trim

FUTURE = "9999-01-01T00:00:00Z"


def plain(recorded: list[Any]) -> list[Any]:
    """The events of core/events.md as they were recorded, without those of the log of snapshots."""
    return [event for event in recorded if not event[0].startswith("snapshot.")]


@pytest.fixture
def registry(store_url: str) -> Iterator[Registry]:
    """A registry with three changes: of three, three and one events."""
    with Registry.open(store_url) as registry:
        registry.put("/messagegroups/g", {})
        registry.put("/messagegroups/g/messages/m", {})
        registry.patch("/messagegroups/g", {"name": "x"})
        yield registry


def read(registry: Registry, after: Position = START, limit: int = 100) -> list[Change]:
    """What is behind a position."""
    return registry.store.read(lambda db: read_changes(db, after, limit, plain))


def error_of(registry: Registry, after: Position) -> str:
    """Why nothing can be read behind a position."""
    with pytest.raises(RegistryError) as caught:
        read(registry, after)
    return caught.value.name


def test_all_in_order(registry: Registry) -> None:
    """From the start one reads every event in the order of the writes, each with the place behind it."""
    found = read(registry)
    assert [
        ("registry.updated", "/"),
        ("group.created", "/messagegroups/g"),
        ("group.updated", "/messagegroups/g"),
        ("resource.created", "/messagegroups/g/messages/m"),
        ("version.created", "/messagegroups/g/messages/m/versions/1"),
        ("group.updated", "/messagegroups/g"),
    ] == [(change.type, change.subject) for change in found]
    assert [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 1)] == [(c.position.seq, c.position.done) for c in found]


def test_any_pages_give_the_same(registry: Registry) -> None:
    """However a reader cuts its pages, it misses nothing and sees nothing twice."""
    whole = read(registry)

    @settings(max_examples=30)
    @given(st.lists(st.integers(1, 4), min_size=1))
    def holds(limits: list[int]) -> None:
        found: list[Change] = []
        for turn in range(20):
            found += read(registry, found[-1].position if found else START, limits[turn % len(limits)])
        assert whole == found

    holds()


def test_a_cursor_survives_being_text(registry: Registry) -> None:
    """A position is a text and back."""
    for position in (START, latest(registry.store.reader(), plain), *(change.position for change in read(registry))):
        assert position == parse_position(str(position), "/changes")


@pytest.mark.parametrize(
    "text", ["", "x", "1", "1.2", "-1.0.a", "0.0.a", "1.2.é", "1" * 30 + ".1.a", "1.1." + "a" * 99]
)
def test_no_cursor(text: str) -> None:
    """What is no cursor is refused by name."""
    with pytest.raises(RegistryError) as caught:
        parse_position(text, "/changes")
    assert "unknown_cursor" == caught.value.name


def test_a_cursor_of_another_catalog(registry: Registry) -> None:
    """A cursor with a number that there is and another name, or with a number still to come, is another catalog's."""
    last = read(registry)[-1].position
    assert "unknown_cursor" == error_of(registry, Position(last.seq, 1, "another"))
    assert "unknown_cursor" == error_of(registry, Position(99, 1, last.name))
    assert "unknown_cursor" == error_of(registry, Position(last.seq, 7, last.name))


def test_trimmed(registry: Registry) -> None:
    """What is older than the bound goes, the newest change stays, and only who has missed something is told so."""
    found = read(registry)
    assert 2 == trim(registry.store, FUTURE, plain)
    assert "feed_trimmed" == error_of(registry, START)
    assert "feed_trimmed" == error_of(registry, found[2].position)
    assert found[5:] == read(registry, found[4].position)
    assert [] == read(registry, found[5].position)
    assert 0 == trim(registry.store, FUTURE, plain)
    assert found[5].position == latest(registry.store.reader(), plain)


def test_trimming_waits_for_who_reads(registry: Registry) -> None:
    """Changes that somebody waits for are kept, and so is what is young."""
    assert 0 == trim(registry.store, "2000-01-01T00:00:00Z", plain)
    assert 1 == trim(registry.store, FUTURE, plain, keep=2)
    assert 4 == len(read(registry, parse_position(str(Position(1, 2, _name(registry))), "/")))


def _name(registry: Registry) -> str:
    found = registry.store.reader().one("SELECT value FROM settings WHERE name = 'trimmed'")
    assert found is not None
    return str(found[0]).rpartition(".")[2]


def test_an_empty_record(store_url: str) -> None:
    """Before the first change there is nothing, and the start is the newest place."""
    with Registry.open(store_url) as registry:
        assert [] == read(registry)
        assert START == latest(registry.store.reader(), plain)
