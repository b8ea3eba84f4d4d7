"""Random requests against the registry and against the rules in plain dicts: both have to say and hold the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from signalbook import Registry, RegistryError
from signalbook.registry.requests import Requests, spec_version
from signalbook.registry.store import open_store
from tests.conftest import POSTGRES, FreshStore
from tests.properties.simple_lineage import Rules
from tests.properties.simple_registry import SimpleRegistry
from tests.properties.simple_view import matching, view

# Making a failure short takes minutes; that is for `make soak`.
SHORT: dict[str, Any] = {"stateful_step_count": 25, "phases": (Phase.reuse, Phase.generate)}
RIGHT, WRONG = -1, -2  # what an epoch is to be; the machine puts the number in

TIMES = [f"2030-01-01T00:{minute:02}:00Z" for minute in (0, 5, 59)]
# one place is hit often, so that requests meet
GROUPS = [*["/dirs/d1"] * 12, *["/boxes/b1"] * 3, "/dirs/d2", "/dirs/D1"]
FILES = [*["f1"] * 12, *["f2"] * 3, "f3", "F1"]
COLLECTIONS = ["/dirs", "/boxes", *(f"{group}/files" for group in GROUPS)]
VERSIONS = [*["v1", "v2", "v3"] * 4, "v10", "1", "2", "V1"]
SEMVERS = ["1.0.0", "1.0.0-rc.1", "1.0.0-rc.10", "1.2.0", "1.10.0", "2", "final"]
SOME = st.integers(0, 9)  # a choice that comes up once in ten


def maybe(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of these members."""
    return st.fixed_dictionaries({}, optional=optional)


texts = st.sampled_from(["one", "two", None])
labels = st.sampled_from([{"stage": "dev"}, {"stage": "Prod"}, {"stage": "DEV", "team": "a"}, {}, None])
times = st.sampled_from([*TIMES, None])
epochs = st.sampled_from([*[RIGHT] * 8, None, WRONG])
common: dict[str, st.SearchStrategy[Any]] = {
    "name": texts, "labels": labels, "epoch": epochs, "createdat": times, "modifiedat": times,
}  # fmt: skip
vids = st.sampled_from(VERSIONS)
semvers = st.sampled_from(SEMVERS)
wrongs = maybe(nope=st.just("x"), labels=st.just(5), fileid=st.just("other"), versionid=st.just("other"))
right_or_wrong = st.one_of(*[st.just(dict[str, Any]())] * 15, wrongs)


def bodies(ids: st.SearchStrategy[str], ancestors: bool) -> dict[str, st.SearchStrategy[Any]]:
    """The strategies for versions, meta and resources with versionids of this kind."""
    ancestor = {"ancestorid": ids | st.just("request")} if ancestors else {}
    version = maybe(**common, color=texts, **ancestor)
    no_name = {name: strategy for name, strategy in common.items() if name != "name"}
    meta = maybe(**no_name, defaultversionid=ids | st.none(), defaultversionsticky=st.sampled_from([True, False, None]))
    xref = st.sampled_from(["/dirs/d1/files/f1", "/boxes/b1/files/f2", "/dirs/d1/files/f2", "/dirs/d1", "f1", None])
    crossed = st.fixed_dictionaries({"xref": xref}, optional={"epoch": epochs})
    metas = st.one_of(*[meta] * 9, crossed)
    nested = st.dictionaries(ids, version, max_size=3)
    resource = maybe(**common, color=texts, meta=metas | st.none(), versions=nested)
    named = maybe(**common, color=texts, versionid=ids)
    plain = maybe(**common, color=texts)
    crossing = st.fixed_dictionaries({"meta": crossed})
    return {
        "version": version,
        "meta": metas,
        "nested": nested,
        "resource": st.one_of(resource, resource, resource, named, plain, plain, plain, plain, crossing),
    }


BODIES = {True: bodies(semvers, False), False: bodies(vids, False), None: bodies(vids, True)}


class Both(RuleBasedStateMachine):
    """The registry and the rules side by side."""

    store: Callable[[], str] = staticmethod(lambda: "memory:")

    @initialize(
        mode=st.sampled_from(["manual", "manual", "createdat", "modifiedat", "semver"]),
        maxversions=st.sampled_from([0, 0, 1, 2, 3]),
        root=st.booleans(),
        setversionid=st.sampled_from([True] * 7 + [False]),
        first=st.sampled_from([[], ["v1"], ["v1", "v2"], ["1.0.0", "2", "final"]]),
    )
    def start(self, mode: str, maxversions: int, root: bool, setversionid: bool, first: list[str]) -> None:
        """A new registry."""
        self.minute = 0
        self.model = Rules(mode, maxversions, root or mode != "manual", setversionid)
        requests = Requests(open_store(self.store()), spec_version("1.0-rc4"), clock=lambda: self.now)
        self.registry = Registry(requests)
        requests.create("r", self.model.source())
        self.simple = SimpleRegistry(self.model, self.now)
        for vid in first if setversionid else []:
            self.send("PUT", f"/dirs/d1/files/f1/versions/{vid}", {"labels": {"stage": "dev"}})
            self.time_passes()

    def teardown(self) -> None:
        """Give the store back."""
        if hasattr(self, "registry"):
            self.registry.close()

    @property
    def now(self) -> str:
        """This instant."""
        return f"2030-01-01T00:{self.minute:02}:30Z"

    @property
    def kinds(self) -> dict[str, st.SearchStrategy[Any]]:
        """The strategies that fit the version mode."""
        mode = self.model.versionmode
        return BODIES[True if mode == "semver" else None if mode == "manual" else False]

    def ids(self) -> st.SearchStrategy[str]:
        """The versionids that fit the version mode."""
        return semvers if self.model.versionmode == "semver" else vids

    # ---- rules

    @rule()
    def time_passes(self) -> None:
        """Not every request has an instant of its own."""
        self.minute = min(self.minute + 1, 59)

    @rule(method=st.sampled_from(["PUT", "PATCH"]), body=maybe(**common), wrong=right_or_wrong)
    def write_registry(self, method: str, body: dict[str, Any], wrong: dict[str, Any]) -> None:
        """The registry's own attributes."""
        self.send(method, "/", {**body, **{name: wrong[name] for name in wrong if name in ("nope", "labels")}})

    @rule(data=st.data(), method=st.sampled_from(["PUT", "PATCH"]), path=st.sampled_from(GROUPS))
    def write_group(self, data: st.DataObject, method: str, path: str) -> None:
        """A group, perhaps with resources."""
        body = data.draw(
            maybe(**common, files=st.dictionaries(st.sampled_from(FILES), self.kinds["resource"], max_size=2))
        )
        self.send(method, path, body)

    @rule(data=st.data(), method=st.sampled_from(["POST", "PATCH"]), plural=st.sampled_from(["dirs", "boxes"]))
    def write_groups(self, data: st.DataObject, method: str, plural: str) -> None:
        """Several groups."""
        self.send(
            method, f"/{plural}", data.draw(st.dictionaries(st.sampled_from(["d1", "b1", "d2"]), maybe(**common)))
        )

    @rule(data=st.data(), path=st.sampled_from(GROUPS), method=st.sampled_from(["POST", "PATCH"]))
    def write_files(self, data: st.DataObject, path: str, method: str) -> None:
        """Several resources, by their collection or by their group."""
        files = data.draw(st.dictionaries(st.sampled_from(FILES), self.kinds["resource"], max_size=3))
        if method == "POST" and data.draw(st.booleans()):
            self.send("POST", path, {"files": files})
        else:
            self.send(method, path + "/files", files)

    @rule(data=st.data(), path=st.sampled_from(GROUPS), rid=st.sampled_from(FILES), wrong=right_or_wrong)
    def write_file(self, data: st.DataObject, path: str, rid: str, wrong: dict[str, Any]) -> None:
        """One resource."""
        method = data.draw(st.sampled_from(["PUT", "PATCH"]))
        body = data.draw(self.kinds["resource"])
        self.send(method, f"{path}/files/{rid}", {**body, **wrong}, self.flag(data))

    @rule(data=st.data(), path=st.sampled_from(GROUPS), rid=st.sampled_from(FILES))
    def write_meta(self, data: st.DataObject, path: str, rid: str) -> None:
        """A resource's meta."""
        method = data.draw(st.sampled_from(["PUT", "PATCH"]))
        self.send(method, f"{path}/files/{rid}/meta", data.draw(self.kinds["meta"]), self.flag(data))

    @rule(data=st.data(), path=st.sampled_from(GROUPS), rid=st.sampled_from(FILES), wrong=right_or_wrong)
    def write_version(self, data: st.DataObject, path: str, rid: str, wrong: dict[str, Any]) -> None:
        """One version, named in the path, in the body, or by the server."""
        body = {**data.draw(self.kinds["version"]), **wrong}
        file = f"{path}/files/{rid}"
        if data.draw(st.booleans()):
            method = data.draw(st.sampled_from(["PUT", "PATCH"]))
            self.send(method, f"{file}/versions/{data.draw(self.ids())}", body, self.flag(data))
            return
        if data.draw(st.booleans()):
            body["versionid"] = data.draw(self.ids())
        self.send("POST", file, body, self.flag(data, "request"))

    @rule(data=st.data(), path=st.sampled_from(GROUPS), rid=st.sampled_from(FILES))
    def write_versions(self, data: st.DataObject, path: str, rid: str) -> None:
        """Several versions."""
        body = data.draw(self.kinds["nested"])
        flag = self.flag(data, *(["request"] if len(body) > 1 else []))
        self.send(data.draw(st.sampled_from(["POST", "PATCH"])), f"{path}/files/{rid}/versions", body, flag)

    @rule(path=st.sampled_from(GROUPS), rid=st.sampled_from([None, *FILES]), epoch=epochs)
    def delete_one(self, path: str, rid: str | None, epoch: int | None) -> None:
        """A group or a resource."""
        target = path if rid is None else f"{path}/files/{rid}"
        file = self.found(f"{path}/files/{rid}") if rid else None
        self.send("DELETE", target, {"epoch": epoch} if epoch is not None and not (file and file["xref"]) else None)

    @rule(data=st.data(), path=st.sampled_from(GROUPS), rid=st.sampled_from(FILES), epoch=epochs)
    def delete_version(self, data: st.DataObject, path: str, rid: str, epoch: int | None) -> None:
        """One version."""
        body = {"epoch": epoch} if epoch is not None else None
        self.send("DELETE", f"{path}/files/{rid}/versions/{data.draw(self.ids())}", body, self.flag(data))

    @rule(
        data=st.data(), path=st.sampled_from(["/dirs", "/boxes", *(f"{group}/files" for group in GROUPS)]), every=SOME
    )
    def delete_several(self, data: st.DataObject, path: str, every: int) -> None:
        """Groups or resources, those named or all."""
        entry: st.SearchStrategy[Any] = maybe(epoch=epochs)
        ids = ["d1", "d2", "b1", "zz"]
        if path.endswith("/files"):
            ids = FILES
            entry = maybe(meta=maybe(epoch=epochs)) | maybe(fileid=st.just("other")) | maybe(epoch=st.just(1))
            if any(file["xref"] for file in (self.found(path) or {}).values()):
                entry = st.just({})
        body = None if every == 9 else data.draw(st.dictionaries(st.sampled_from(ids), entry, max_size=3))
        self.send("DELETE", path, body)

    @rule(data=st.data(), path=st.sampled_from(GROUPS), rid=st.sampled_from(FILES), every=SOME)
    def delete_versions(self, data: st.DataObject, path: str, rid: str, every: int) -> None:
        """Versions, those named or all."""
        body = None if every == 9 else data.draw(st.dictionaries(self.ids(), maybe(epoch=epochs), max_size=3))
        self.send("DELETE", f"{path}/files/{rid}/versions", body, self.flag(data))

    @rule(data=st.data())
    def change_model(self, data: st.DataObject) -> None:
        """Other limits, another mode, an attribute less."""
        mode = data.draw(st.sampled_from([self.model.versionmode] * 3 + ["manual", "createdat", "modifiedat"]))
        if self.model.versionmode == "semver":
            mode = "semver"
        root = True if mode != "manual" else data.draw(st.booleans())
        maxversions, some = data.draw(st.sampled_from([0, 0, 1, 2, 3])), data.draw(SOME)
        rules = Rules(mode, maxversions, root, setversionid=some != 8, color=some != 9)
        self.send("PUT", "/modelsource", rules)
        self.model = self.simple.rules

    # ---- both at once

    def flag(self, data: st.DataObject, *more: str) -> str | None:
        """The setdefaultversionid of a request."""
        choice = data.draw(SOME)
        return None if choice < 7 else data.draw(self.ids() if choice == 7 else st.sampled_from(["null", *more]))

    def found(self, path: str) -> Any:
        """What the rules have at a path."""
        at: Any = self.simple.root["groups"]
        for part in path.split("/")[1:]:
            at = at.get(part) if isinstance(at, dict) else None
        return at

    def with_epochs(self, path: str, body: Any) -> Any:
        """The body with the numbers of its epochs; in a resource it is that of the default version."""
        if not isinstance(body, dict):
            return body
        entity = self.found(path.removesuffix("/meta")) if path != "/" else self.simple.root
        if entity and entity.get("xref"):
            entity = self.simple.target(entity) or entity
        if entity and "default" in entity and not path.endswith("/meta"):
            entity = entity["versions"].get(entity["default"])
        done = {}
        for name, value in body.items():
            if name == "epoch" and value in (RIGHT, WRONG):
                current = entity["epoch"] if entity and "epoch" in entity else 1
                value = current if value == RIGHT else current + 7
            elif name == "meta":
                value = self.with_epochs(f"{path}/meta", value)
            else:
                value = self.with_epochs(f"{path.rstrip('/')}/{name}", value)
            done[name] = value
        return done

    def send(self, method: str, path: str, body: Any, flag: str | None = None) -> None:
        """Send a request to both; they agree on whether it is wrong."""
        file = self.found("/".join(path.split("/")[:5])) if path.count("/") > 3 else None
        if file and file["xref"]:
            flag = None
        in_meta = method == "DELETE" and path.count("/") == 4 and isinstance(body, dict)
        body = self.with_epochs(path + "/meta" if in_meta else path, body)
        expected = self.simple.send(method, path, body, self.now, flag)
        query = f"?setdefaultversionid={quote(flag)}" if flag else ""
        told = ""
        try:
            if method != "DELETE":
                value = body.source() if isinstance(body, Rules) else body
                {"PUT": self.registry.put, "PATCH": self.registry.patch, "POST": self.registry.post}[method](
                    path + query, value
                )
            elif path.count("/") % 2 == 0 and body is not None:
                self.registry.delete(path + query, epoch=body["epoch"])
            else:
                self.registry.delete(path + query, body)
        except RegistryError as error:
            told = error.name
        assert (told in expected) if expected else not told, (method, path + query, body, expected, told)

    @invariant()
    def hold_the_same(self) -> None:
        """Every entity, epoch and time of the registry is what the rules say."""
        if hasattr(self, "registry"):
            assert view(self.simple) == without_addresses(self.registry.get("/?inline=*"))

    @invariant()
    def find_the_same(self) -> None:
        """A filter leaves exactly what has the label."""
        if hasattr(self, "registry"):
            for stage in ("dev", "prod"):
                assert sorted(matching(self.simple, stage)) == sorted(self.filtered(stage))

    def filtered(self, stage: str) -> Iterator[str]:
        """The xids of the resources that the registry finds."""
        for plural, groups in (
            ("dirs", self.simple.root["groups"]["dirs"]),
            ("boxes", self.simple.root["groups"]["boxes"]),
        ):
            for gid in groups:
                for file in self.registry.find(f"/{plural}/{gid}/files", f"labels.stage={stage}"):
                    yield file["xid"]


def without_addresses(value: Any) -> Any:
    """A view without what only says where things are."""
    if not isinstance(value, dict):
        return value
    return {
        name: without_addresses(entry)
        for name, entry in value.items()
        if name not in ("self", "specversion") and not name.endswith("url")
    }


def test_random_requests(fresh_store: FreshStore) -> None:
    """Whatever is sent, in whatever order, the registry holds what the specification's rules say."""
    machine = type("Machine", (Both,), {"store": staticmethod(fresh_store)})
    run_state_machine_as_test(machine, settings=settings(max_examples=25 if POSTGRES else 60, **SHORT))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_random_requests(fresh_store: FreshStore) -> None:
    """The same for long sequences, and the shortest one that fails."""
    machine = type("Machine", (Both,), {"store": staticmethod(fresh_store)})
    run_state_machine_as_test(machine, settings=settings(max_examples=100 if POSTGRES else 600, stateful_step_count=50))
