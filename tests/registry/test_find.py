"""Collections from Python and over HTTP: all of them arrive, in pages or at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from signalbook import Registry, UsageError
from signalbook.registry.reads import Limits

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
