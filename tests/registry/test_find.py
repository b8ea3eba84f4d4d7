"""Collections from Python and over HTTP: all of them arrive, in pages or at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from signalbook import Registry, UsageError
from signalbook.registry.read.reads import Limits

MESSAGES = "/messagegroups/g/messages"
ALL = [f"m{number}" for number in range(12)]


@pytest.fixture
def registry(store_url: str) -> Iterator[Registry]:
    """A registry with twelve messages that shows five at a time."""
    with Registry.open(store_url, limits=Limits(page=5)) as opened:
        opened.post(MESSAGES, {name: {"labels": {"odd": str(int(name[1:]) % 2)}} for name in ALL})
        yield opened


def ids(found: Iterator[dict[str, str]]) -> list[str]:
    """The ids of what was found, in the order of their numbers."""
    return sorted((message["messageid"] for message in found), key=lambda name: int(name[1:]))


@pytest.mark.parametrize("page", [1, 4, 5, 1000])
@pytest.mark.parametrize("sort", ["", "name", "epoch=desc"])
def test_find_gives_everything_once(registry: Registry, page: int, sort: str) -> None:
    """Whatever the size of a page and the order, each entity comes exactly once."""
    assert ALL == ids(registry.find(MESSAGES, sort=sort, page=page))


@pytest.mark.parametrize("path", [MESSAGES, MESSAGES.removeprefix("/"), f"{MESSAGES}?filter=labels.odd=1"])
def test_find_takes_the_paths_that_get_takes(registry: Registry, path: str) -> None:
    """A path may lack its first slash and may carry flags."""
    wanted = [name for name in ALL if int(name[1:]) % 2] if "?" in path else ALL
    assert wanted == ids(registry.find(path))


@pytest.mark.parametrize("path", ["/", "/model", "/messagegroups/g", f"{MESSAGES}/m1"])
def test_find_is_for_collections(registry: Registry, path: str) -> None:
    """What is not a collection is refused, not taken apart."""
    with pytest.raises(UsageError, match="is not a collection"):
        list(registry.find(path))


def test_find_does_not_depend_on_capabilities(registry: Registry) -> None:
    """A registry that offers clients neither filters nor pages can still be searched from Python."""
    registry.patch("/capabilities", {"flags": [], "pagination": False})
    assert ["m1", "m3", "m5", "m7", "m9", "m11"] == ids(registry.find(MESSAGES, "labels.odd=1", page=2))


def test_without_pagination_nothing_is_cut(registry: Registry) -> None:
    """Where `pagination` is off a collection is shown whole: no client could ask for the rest."""
    assert 5 == len(registry.get(MESSAGES))
    registry.patch("/capabilities", {"pagination": False})
    assert 12 == len(registry.get(MESSAGES))


def test_a_collection_comes_whole_where_no_limits_are_given(store_url: str) -> None:
    """More entries than a page of HTTP holds come at once, within a transaction too, and a limit in the path cuts."""
    names = {f"m{number}" for number in range(Limits().page + 5)}
    with Registry.open(store_url) as registry:
        registry.post(MESSAGES, {name: {} for name in names})
        assert names == registry.get(MESSAGES).keys()
        with registry.transaction() as transaction:
            assert names == transaction.get(MESSAGES).keys()
        assert 3 == len(registry.get(f"{MESSAGES}?limit=3"))


def test_a_page_tells_of_more(registry: Registry) -> None:
    """`get_page` gives what names the next page and how many entries there are, until there is none."""
    found: list[str] = []
    page = registry.get_page(f"{MESSAGES}?limit=5")
    while page.next:
        found += json.loads(page.text)
        assert len(ALL) == page.count
        page = registry.get_page(f"{MESSAGES}?limit=5&page={page.next}")
    assert sorted(ALL) == sorted([*found, *json.loads(page.text)])


@pytest.mark.parametrize("given", [{"filter": ["labels.odd=1"]}, {"filter": None}, {"sort": ["name"]}], ids=repr)
def test_a_filter_is_a_text(registry: Registry, given: dict[str, Any]) -> None:
    """What is no text is refused at once, not searched for."""
    with pytest.raises(UsageError, match="is not a text; put alternatives into the path"):
        registry.find(MESSAGES, **given)


def test_a_filter_beside_one_in_the_path_is_an_alternative(registry: Registry) -> None:
    """What fits either is found."""
    assert ["m0", "m1", "m3"] == ids(
        registry.find(f"{MESSAGES}?filter=messageid=m0", "labels.odd=1,messageid<m4,messageid!=m11")
    )
