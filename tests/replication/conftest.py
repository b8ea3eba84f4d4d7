"""Catalogs to replicate between."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from signalbook.settings import Settings
from tests.conftest import FreshStore
from tests.registry.conftest import Api
from tests.replication.peers import ApiPeer

MakePeer = Callable[[str], ApiPeer]


@pytest.fixture
def make_peer(fresh_store: FreshStore) -> Iterator[MakePeer]:
    """Make a catalog of its own at an address of its own."""
    made: list[Api] = []

    def make(name: str) -> ApiPeer:
        api = Api(Settings(store=fresh_store()))
        made.append(api)
        return ApiPeer(api, f"http://{name}.test")

    yield make
    for api in made:
        api.service.close()


@pytest.fixture
def a(make_peer: MakePeer) -> ApiPeer:
    """A catalog."""
    return make_peer("a")


@pytest.fixture
def b(make_peer: MakePeer) -> ApiPeer:
    """Another catalog."""
    return make_peer("b")
