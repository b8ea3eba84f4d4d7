"""Where the parts meet: which paths a server has beside those of the model."""

from __future__ import annotations

import logging

import orjson
import pytest

from signalbook import app
from signalbook.errors import UsageError
from signalbook.registry.registry import Registry
from signalbook.server.http import Request
from signalbook.settings import Settings


@pytest.mark.parametrize("name", sorted(app.GIVE_WAY & app.RESERVED))
def test_a_path_gives_way(name: str, shared_store_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """A path that came after a store was made is off where the store's model has a group type of its name."""
    model = {"groups": {name: {"singular": f"one{name}", "resources": {"files": {"singular": "file"}}}}}
    with Registry.open(shared_store_url, model=model) as registry:
        registry.put(f"/{name}/g", {})
    with caplog.at_level(logging.WARNING, "signalbook.server"):
        service = app.service(Settings(store=shared_store_url, deliver=False))
    try:
        said = [one.getMessage() for one in caplog.records]
        assert [True] == [one.startswith(f"/{name} is off: the model in this store has a group type") for one in said]
        found = orjson.loads(service.answer(Request("GET", f"/{name}")).body)
        assert ["g"] == list(found)
    finally:
        service.close()


def test_other_paths_do_not(shared_store_url: str) -> None:
    """A path that was always there is a mistake of the operator, who is told."""
    model = {"groups": {"changes": {"singular": "change", "resources": {"files": {"singular": "file"}}}}}
    Registry.open(shared_store_url, model=model).close()
    with pytest.raises(UsageError, match="group type 'changes'"):
        app.service(Settings(store=shared_store_url, deliver=False))
