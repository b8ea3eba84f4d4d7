"""Following the change feed from zero and reading again what it names rebuilds the registry."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import orjson
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from signalbook import Registry, RegistryError
from signalbook.registry.changes import START, read_changes
from tests.conftest import FreshStore

MODEL = {
    "groups": {
        "dirs": {"singular": "dir", "resources": {"files": {"singular": "file", "hasdocument": False}}},
    }
}
GROUPS, FILES, VERSIONS = ["d1", "d2"], ["f1", "f2"], ["v1", "v2", "v3"]
names = st.sampled_from(["one", "two"])
paths = st.one_of(
    st.builds("/dirs/{}".format, st.sampled_from(GROUPS)),
    st.builds("/dirs/{}/files/{}".format, st.sampled_from(GROUPS), st.sampled_from(FILES)),
    st.builds(
        "/dirs/{}/files/{}/versions/{}".format,
        *(st.sampled_from(some) for some in (GROUPS, FILES, VERSIONS)),
    ),
)
requests = st.one_of(
    st.tuples(st.sampled_from(["put", "patch"]), paths, st.fixed_dictionaries({}, optional={"name": names})),
    st.tuples(st.just("delete"), paths, st.none()),
    st.tuples(
        st.just("patch"),
        st.builds("/dirs/{}/files/{}/meta".format, st.sampled_from(GROUPS), st.sampled_from(FILES)),
        st.fixed_dictionaries({}, optional={"defaultversionid": st.sampled_from(VERSIONS)}),
    ),
    st.tuples(st.just("patch"), st.just("/"), st.fixed_dictionaries({}, optional={"name": names})),
)


class Follower:
    """Knows nothing but what events name, and what a GET of that shows."""

    def __init__(self) -> None:
        self.entities: dict[str, Any] = {}
        self.position = START

    def follow(self, registry: Registry) -> None:
        """Take in all that has happened since."""
        while found := registry.store.read(lambda db: read_changes(db, self.position, 3, list)):
            for change in found:
                self._read(registry, change.subject)
            self.position = found[-1].position

    def _read(self, registry: Registry, subject: str) -> None:
        if subject in ("/model", "/modelsource", "/capabilities"):
            return
        for path in [subject, f"{subject}/meta"] if subject.count("/") == 4 else [subject]:
            try:
                self.entities[path] = registry.get(path)
            except RegistryError:
                self.entities.pop(path, None)


def everything(registry: Registry) -> dict[str, Any]:
    """Every entity by its xid."""
    found = {"/": registry.get("/")}
    for group in registry.find("/dirs"):
        found[group["xid"]] = group
        for file in registry.find(f"{group['xid']}/files"):
            found[file["xid"]] = file
            found[f"{file['xid']}/meta"] = registry.get(f"{file['xid']}/meta")
            found |= {version["xid"]: version for version in registry.find(f"{file['xid']}/versions")}
    return found


def known(entities: dict[str, Any]) -> dict[str, Any]:
    """Without a version's `isdefault`: a moved pointer is an event of the resource alone, whose meta has it."""
    return {
        xid: {name: value for name, value in entity.items() if name != "isdefault"} if "/versions/" in xid else entity
        for xid, entity in entities.items()
    }


def test_the_feed_rebuilds_the_registry(fresh_store: FreshStore) -> None:
    """Whatever was written, and whenever it looked, a follower ends with exactly what is there, epochs included."""

    @settings(max_examples=40, phases=(Phase.reuse, Phase.generate))
    @given(st.lists(requests, max_size=25), st.integers(1, 5))
    def holds(wishes: list[tuple[str, str, Any]], pace: int) -> None:
        with Registry.open(fresh_store(), model=MODEL) as registry:
            registry.patch("/", {"name": "start"})
            follower = Follower()
            for turn, (method, path, body) in enumerate(wishes):
                with suppress(RegistryError):
                    getattr(registry, method)(path, *([orjson.loads(orjson.dumps(body))] if body is not None else []))
                if turn % pace == 0:
                    follower.follow(registry)
            follower.follow(registry)
            assert known(everything(registry)) == known(follower.entities)

    holds()
