"""The law of a write's answer: it shows what the following GET shows (WRITE-11, HTTP-15)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbook.settings import Settings
from signalbook.spec import versions
from tests.conftest import POSTGRES, FreshStore
from tests.registry.conftest import Api, MakeApi, Reply
from tests.registry.random_writes import BUILTIN, FLAGS, PLAIN, World, Write, each_write, writes

# What only a write says, and what only a read says.
OWN = {"xregistry-xregcorrelationid", "location", "content-location", "etag", "signalbook-sequence"}

# Flags that shape a write alone, or a read alone: a write shows all that it wrote.
ONLY_READS_OR_WRITES = ("setdefaultversionid", "ignore", "filter", "sort")


def described(reply: Reply) -> dict[str, str]:
    """The headers of a reply that describe what it shows."""
    return {name: value for name, value in reply.headers.items() if name not in OWN}


def members(world: World, write: Write, reply: Reply) -> list[tuple[str, object]]:
    """The entities in the answer to a write of several, each with its path."""
    found = [(write.path.rstrip("/"), reply.json)]
    for _ in range(1 if write.collection else 2):
        found = [(f"{path}/{name}", value) for path, shown in found for name, value in shown.items()]
    details = {path.rpartition("/")[0] for path in world.documents}
    details |= {f"{path}/versions" for path in world.documents}
    return [(f"{path}$details" if path.rpartition("/")[0] in details else path, value) for path, value in found]


def compare(api: Api, world: World, write: Write, reply: Reply) -> None:
    """Compare the answer to a write with what is read then."""
    shaping = "" if any(name in write.query for name in ONLY_READS_OR_WRITES) else write.query
    if write.collection:
        read = api("GET", write.path + shaping).json
        assert {name: read.get(name) for name in reply.json} == reply.json, write.path
    if write.collection or (write.method == "POST" and (write.path == "/" or write.path.count("/") == 2)):
        # What is shown as a document of its own has other addresses.
        for path, shown in members(world, write, reply) if shaping not in ("?doc", "?collections") else ():
            assert shown == api("GET", path + shaping).json, path
        return
    path = write.path
    if write.method == "POST" and write.path.count("/") == 4:  # a version is made, and shown
        path, _, details = path.partition("$")
        vid = reply.headers.get("xregistry-versionid") or reply.json["versionid"]
        path = f"{path}/versions/{vid}{'$' if details else ''}{details}"
        assert reply.status != 201 or reply.headers["location"].endswith(path)
    shown = api("GET", path + shaping)
    assert (shown.body, described(shown)) == (reply.body, described(reply)), path
    assert shown.headers.get("content-location", "") in ("", reply.headers.get("content-location"))


@pytest.mark.parametrize("world", [PLAIN, BUILTIN], ids=["plain", "builtin"])
@pytest.mark.parametrize("specversion", versions.VERSIONS)
def test_each_write_with_each_flag(make_api: MakeApi, world: World, specversion: str) -> None:
    """Each kind of write with each flag is answered as it is read, unless it is refused."""
    api = make_api(model=world.model, specversion=specversion)
    if world.sources:
        assert 200 == api("PUT", "/modelsource", world.sources[0]).status
    taken = set()
    for query in FLAGS:
        for write in each_write(world):
            reply = api(write.method, write.path + query, write.body, write.headers)
            if reply.status < 400:
                taken.add(query)
                compare(api, world, replace(write, query=query), reply)
    assert set(FLAGS) == taken


@pytest.mark.parametrize("world", [PLAIN, BUILTIN], ids=["plain", "builtin"])
@pytest.mark.parametrize("specversion", versions.VERSIONS)
@settings(max_examples=4 if POSTGRES else 15, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_an_answer_is_a_read(fresh_store: FreshStore, data: st.DataObject, world: World, specversion: str) -> None:
    """Whatever is written, the answer is what is read next."""
    api = Api(Settings(store=fresh_store(), model=world.model, specversion=specversion))
    try:
        if world.sources:
            assert 200 == api("PUT", "/modelsource", world.sources[0]).status
        for write in data.draw(st.lists(writes(world), min_size=1, max_size=12)):
            reply = api(write.method, write.path + write.query, write.body, write.headers)
            if reply.status in (200, 201, 303):
                compare(api, world, write, reply)
    finally:
        api.service.close()
