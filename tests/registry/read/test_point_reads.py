"""The law of point reads: the fast path, its cache cold or warm, answers what the general path answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbook.registry.urls import Flags
from signalbook.server import problems
from signalbook.server.dispatch import PointCache
from signalbook.server.http import Request, Response
from signalbook.settings import Settings
from signalbook.spec import versions
from tests.conftest import POSTGRES
from tests.registry.conftest import BASE, Api
from tests.registry.random_writes import BUILTIN, PLAIN, World, Write, writes


def general(api: Api, path: str) -> Response:
    """The answer without the fast path: by the server for the body, and for the headers beside it."""
    try:
        return api.service.answer(Request("GET", path, base=BASE))
    except Exception as error:
        return problems.respond(error, path)


def bare(api: Api, path: str) -> str:
    """The text that the general read makes of what a path addresses."""
    page = api.service._requests.read(path, Flags.EMPTY, BASE).page
    assert page is not None
    return page.text


def compare(api: Api, world: World) -> Iterator[str]:
    """Compare the answers to every path; yields those that the fast path answered."""
    for path in world.paths:
        request = Request("GET", path, base=BASE)
        warm = api.service.quick(request)
        kept, api.service._points = api.service._points, PointCache()
        cold = api.service.quick(request)
        api.service._points = kept
        assert warm == cold, path
        if cold is None:
            continue
        yield path
        assert cold == general(api, path), path
        assert cold.body.decode() == bare(api, path), path
        named = f"specversion={api.service._requests.spec.name}"
        assert cold.body == api.service.answer(Request("GET", path, named, base=BASE)).body, path
        for tag in (dict(cold.headers)["etag"], '"other"', "*"):
            request = Request("GET", path, headers={"if-none-match": tag}, base=BASE)
            assert api.service.quick(request) == api.service.answer(request), (path, tag)


@pytest.mark.skipif(bool(POSTGRES), reason="a remote store has no fast path")
@pytest.mark.parametrize("world", [PLAIN, BUILTIN], ids=["plain", "builtin"])
@pytest.mark.parametrize("specversion", versions.VERSIONS)
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_point_read_is_a_read(data: st.DataObject, world: World, specversion: str) -> None:
    """Whatever is written, here or by another server of the same store, both paths give one answer."""
    with TemporaryDirectory() as folder:
        common = Settings(store=str(Path(folder) / "s.db"), model=world.model, specversion=specversion)
        apis = [Api(common), Api(common)]
        try:
            if world.sources:
                assert 200 == apis[0]("PUT", "/modelsource", world.sources[0]).status
            first = [Write("PUT", path, {}) for path in (*world.groups, *world.resources)]
            random = data.draw(st.lists(writes(world), min_size=1, max_size=8))
            answered = set()
            for number, write in enumerate([*first, *random]):
                apis[number % 2](write.method, write.path + write.query, write.body, write.headers)
                if number >= len(first) - 1:
                    for api in apis:
                        answered |= set(compare(api, world))
            assert {*world.groups, *world.resources} <= answered
        finally:
            for api in apis:
                api.service.close()
