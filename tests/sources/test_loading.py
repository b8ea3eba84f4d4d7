"""Loading documents into a registry: what is asked of it, and what did not stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from signalbook import Registry, RegistryError
from signalbook.sources.dialects import Raw
from signalbook.sources.documents import Document
from signalbook.sources.loading import Loadable, Loading, loadable


class Told:
    """A registry that notes what is asked of it."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.asked: list[str] = []
        self.readable = True

    def get(self, path: str) -> Any:
        self.asked.append(f"GET {path}")
        if not self.readable:
            raise RegistryError("unauthorized", path)
        return self.registry.get(path)

    def send(self, method: str, path: str, body: Any = None) -> str:
        self.asked.append(f"{method} {path}")
        return self.registry.write_text(method, path, body)


@pytest.fixture
def told() -> Iterator[Told]:
    """A registry in memory."""
    with Registry.open() as registry:
        yield Told(registry)


def message(**versions: Any) -> Loadable:
    """A catalog with one message."""
    content = {"messagegroups": {"g": {"messages": {"m": {"versions": versions}}}}}
    return Loadable(Document("a.json", content))


def test_the_model_is_asked_for_once(told: Told) -> None:
    """However many documents there are, the model is read once, unless one of them changes it."""
    loading = Loading(told)
    for _ in range(3):
        loading.load(message(v1={}))
    loading.finish()
    assert ["GET /model", *["POST /?ignore=epoch"] * 3] == told.asked
    told.asked.clear()
    loading = Loading(told, with_model=True)
    for _ in range(2):
        loading.load(Loadable(Document("b.json", {"modelsource": told.registry.get("/modelsource")})))
    assert ["PUT /modelsource", "GET /model"] * 2 == told.asked


def test_versions_that_did_not_stay(told: Told) -> None:
    """Documents that together give more versions than are kept are told; which went is the registry's word."""
    loading = Loading(told)
    loading.load(message(v1={}))
    loading.finish()
    assert [] == loading.unkept()
    loading.load(message(v2={}, v3={}))
    (one,) = loading.unkept()
    place = "/messagegroups/g/messages/m"
    assert (place, "a.json", ("v1", "v2", "v3"), 1, 2) == (one.xid, one.source, one.given, one.most, one.count)
    assert [f"{place}/versions/v1", f"{place}/versions/v2"] == loading.gone(one)
    told.readable = False
    assert [] == loading.gone(one)


def test_a_history_is_kept(told: Told) -> None:
    """The older versions of a 0.1 definition are its history, which the registry keeps."""
    versions = [{"version": number, "definition": {"attributes": {"type": {"value": "m"}}}} for number in (1, 2)]
    given = loadable(Raw("a.json", {"id": "m", "format": "CloudEvents", "versions": versions}), "g")
    assert given.logged
    loading = Loading(told)
    loading.load(given)
    loading.finish()
    assert [] == loading.unkept()
