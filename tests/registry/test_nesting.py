"""How deep JSON may nest: whatever a registry takes, its export can be read again."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson
import pytest

from signalbook import Registry, RegistryError
from signalbook.jsontext import MAX_DEPTH, is_deeper
from signalbook.settings import Settings
from tests.registry.conftest import Api

ANY = {"*": {"type": "any"}}
FILES = {"singular": "file", "hasdocument": False, "attributes": ANY, "metaattributes": ANY}
NOTES = {"singular": "note", "hasdocument": True, "attributes": ANY}
MODEL = {"attributes": ANY, "groups": {"dirs": {"singular": "dir", "attributes": ANY, "resources": {}}}}
MODEL["groups"]["dirs"]["resources"] = {"files": FILES, "notes": NOTES}  # type: ignore[index]

D1, F1 = "/dirs/d1", "/dirs/d1/files/f1"
OWN = ("epoch", "modifiedat", "createdat", "self", "registryid")


class Carried(NamedTuple):
    """A request that carries a value as the attribute `x`, and whose attribute that becomes."""

    method: str
    path: str
    body: Callable[[Any], Any]
    owner: str


VERSION = f"{F1}/versions/v1"
CARRIED = [
    Carried("PUT", "/", lambda x: x, "/"),
    Carried("PATCH", "/", lambda x: x, "/"),
    Carried("PUT", "/", lambda x: {"dirs": {"d1": x}}, D1),
    Carried("POST", "/", lambda x: {"dirs": {"d1": x}}, D1),
    Carried("POST", "/dirs", lambda x: {"d1": x}, D1),
    Carried("PATCH", "/dirs", lambda x: {"d1": x}, D1),
    Carried("PUT", D1, lambda x: x, D1),
    Carried("PATCH", D1, lambda x: x, D1),
    Carried("PUT", "/", lambda x: {"dirs": {"d1": {"files": {"f1": {"versionid": "v1", **x}}}}}, VERSION),
    Carried("PUT", "/", lambda x: {"dirs": {"d1": {"files": {"f1": {"versions": {"v1": x}}}}}}, VERSION),
    Carried("PUT", "/", lambda x: {"dirs": {"d1": {"files": {"f1": {"meta": x}}}}}, f"{F1}/meta"),
    Carried("PUT", D1, lambda x: {"files": {"f1": {"versionid": "v1", **x}}}, VERSION),
    Carried("PUT", D1, lambda x: {"files": {"f1": {"meta": x}}}, f"{F1}/meta"),
    Carried("POST", D1, lambda x: {"files": {"f1": {"versionid": "v1", **x}}}, VERSION),
    Carried("POST", f"{D1}/files", lambda x: {"f1": {"versionid": "v1", **x}}, VERSION),
    Carried("PATCH", f"{D1}/files", lambda x: {"f1": {"versionid": "v1", **x}}, VERSION),
    Carried("POST", f"{D1}/files", lambda x: {"f1": {"versions": {"v1": x}}}, VERSION),
    Carried("PUT", F1, lambda x: {"versionid": "v1", **x}, VERSION),
    Carried("PATCH", F1, lambda x: {"versionid": "v1", **x}, VERSION),
    Carried("POST", F1, lambda x: {"versionid": "v1", **x}, VERSION),
    Carried("PUT", F1, lambda x: {"meta": x}, f"{F1}/meta"),
    Carried("PUT", F1, lambda x: {"versions": {"v1": x}}, VERSION),
    Carried("PUT", f"{F1}/meta", lambda x: x, f"{F1}/meta"),
    Carried("PATCH", f"{F1}/meta", lambda x: x, f"{F1}/meta"),
    Carried("POST", f"{F1}/versions", lambda x: {"v1": x}, VERSION),
    Carried("PATCH", f"{F1}/versions", lambda x: {"v1": x}, VERSION),
    Carried("PUT", VERSION, lambda x: x, VERSION),
    Carried("PATCH", VERSION, lambda x: x, VERSION),
]


def nested(levels: int, innermost: Any = 1) -> Any:
    """Objects and arrays by turns, so many of them in each other."""
    value = innermost
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


def deepest(owner: str) -> int:
    """The levels that are left for an attribute of the entity at a path: an export has one level a step around it."""
    return MAX_DEPTH - owner.rstrip("/").count("/") - 1


def opened() -> Api:
    """A new registry with types that take anything, in memory."""
    api = Api(Settings(store="memory:", model="empty", specversion="1.0-rc4"))
    assert 200 == api("PUT", "/modelsource", MODEL).status
    return api


def lasting(value: Any) -> Any:
    """A document without what a new registry has of its own."""
    if isinstance(value, list):
        return [lasting(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {name: lasting(entry) for name, entry in value.items() if name not in OWN}


def loaded(export: bytes) -> Api:
    """A new registry that was given an export, and whose own is the same then."""
    other = Api(Settings(store="memory:", model="empty", specversion="1.0-rc4"))
    reply = other("PUT", "/?ignore=epoch,id", export)
    assert (200, "") == (reply.status, reply.error), reply.json
    assert lasting(orjson.loads(export)) == lasting(other("GET", "/export").json)
    return other


@pytest.fixture
def target() -> Iterator[Api]:
    """A registry with types that take anything."""
    api = opened()
    yield api
    api.service.close()


@pytest.mark.parametrize("carried", CARRIED, ids=lambda one: f"{one.method} {one.path} {orjson.dumps(one.body({}))!r}")
def test_the_deepest_that_is_taken_comes_back(target: Api, carried: Carried) -> None:
    """The deepest value that a request may carry is exported and loaded again; with one level more it is refused."""
    levels = deepest(carried.owner)
    refused = target(carried.method, carried.path, carried.body({"x": nested(levels + 1)}))
    assert (400, "parsing_data") == (refused.status, refused.error)
    assert 404 == target("GET", D1).status  # nothing of it is there
    reply = target(carried.method, carried.path, carried.body({"x": nested(levels)}))
    assert reply.status in (200, 201)
    assert nested(levels) == target("GET", carried.owner).json["x"]
    export = target("GET", "/export").body
    assert not is_deeper(orjson.loads(export), MAX_DEPTH)
    assert is_deeper(orjson.loads(export), MAX_DEPTH - 1)
    assert not is_deeper(target("GET", "/?inline=*").json, MAX_DEPTH)
    loaded(export).service.close()


@pytest.mark.parametrize("carried", CARRIED, ids=lambda one: f"{one.method} {one.path} {orjson.dumps(one.body({}))!r}")
def test_the_same_from_python(carried: Carried) -> None:
    """Python values obey the same rule."""
    levels = deepest(carried.owner)
    with Registry.open(model=MODEL) as registry, Registry.open(model="empty") as other:
        with pytest.raises(RegistryError, match="nested deeper than 64 levels"):
            registry.write_text(carried.method, carried.path, carried.body({"x": nested(levels + 1)}))
        registry.write_text(carried.method, carried.path, carried.body({"x": nested(levels)}))
        other.put("/?ignore=epoch,id", registry.export())
        assert nested(levels) == other.get(carried.owner)["x"]


def test_the_error_names_the_entity_and_counts() -> None:
    """A value that is too deep only for an export: the error says of which entity, and what counts."""
    with Registry.open(model=MODEL) as registry, pytest.raises(RegistryError) as caught:
        registry.put(D1, {"files": {"f0": {"x": 1}, "f1": {"x": nested(58)}}})
    words = "nested deeper than 64 levels, with the 6 that stand around it in an export of the registry"
    expected = ("parsing_data", f"{F1}/versions/1", {"error_detail": words})
    assert expected == (caught.value.name, caught.value.subject, caught.value.args_)


def test_what_is_kept_deeper_than_it_was_given() -> None:
    """What counts is what an export shows: an object that is kept as an array of one counts so."""
    with Registry.open() as registry:
        endpoint = {"usage": ["producer"], "protocol": "HTTP"}
        registry.put("/endpoints/e", {**endpoint, "protocoloptions": {"authorization": nested(59, {})[0]}})
        assert not is_deeper(registry.export(), MAX_DEPTH)
        with pytest.raises(RegistryError, match="nested deeper"):
            registry.put("/endpoints/e", {**endpoint, "protocoloptions": {"authorization": {"a": nested(59)}}})


def test_the_message_catalog_of_0_1() -> None:
    """What comes in by the older API obeys the rule of what is kept of it."""
    target, other = (Api(Settings(store="memory:")) for _ in range(2))
    target("PUT", "/messagecatalog/g", {"specversion": "0.1", "format": "Own"})
    path, statuses = "/messagecatalog/g/messagedefinitions/", []
    for levels in (56, 57):
        reply = target("POST", path, {"id": f"m{levels}", "definition": {"x": nested(levels)}})
        statuses.append((reply.status, reply.error))
    assert [(201, ""), (400, "parsing_data")] == statuses
    assert 200 == other("PUT", "/?ignore=epoch,id", target("GET", "/export").body).status
    assert {"x": nested(56)} == other("GET", f"{path}m56").json["definition"]
    target.service.close()
    other.service.close()


def history(*levels: int) -> Any:
    """A message whose versions have data schemas so deep, each the ancestor of the next."""
    return {
        "versions": {
            f"v{number}": {
                "ancestor": f"v{max(number - 1, 1)}", "dataschemaformat": "JSONSchema/draft-07",
                "dataschema": {"a": nested(depth - 1)},
            }
            for number, depth in enumerate(levels, 1)
        }
    }  # fmt: skip


def test_versions_that_pass() -> None:
    """A version that is only recorded, as newer ones came with it, obeys the rule of those that stay."""
    with Registry.open() as registry:
        registry.put("/messagegroups/g/messages/m", history(57, 57, 56))
        assert ["v3"] == list(registry.get("/messagegroups/g/messages/m/versions"))
        with pytest.raises(RegistryError, match="nested deeper"):
            registry.put("/messagegroups/g/messages/n", history(57, 58, 56))


def model_of(levels: int) -> Any:
    """A model whose attribute types nest so deep."""
    innermost: Any = {"type": "any"}
    while is_deeper(nested(levels - 2), _depth(innermost)):
        innermost = {"type": "array", "item": innermost}
    return {"attributes": {"x": innermost}}


def _depth(value: Any) -> int:
    return next(levels for levels in range(1000) if not is_deeper(value, levels))


def test_a_model_stands_one_level_deeper() -> None:
    """The model source of an export has a level around it, wherever it was written."""
    for path, body in (("/modelsource", lambda model: model), ("/", lambda model: {"modelsource": model})):
        target = opened()
        refused = target("PUT", path, body(model_of(MAX_DEPTH)))
        assert (400, "parsing_data") == (refused.status, refused.error)
        assert 200 == target("PUT", path, body(model_of(MAX_DEPTH - 1))).status
        assert not is_deeper(target("GET", "/?inline=model,modelsource").json, MAX_DEPTH)
        loaded(target("GET", "/export").body).service.close()
        target.service.close()
    with pytest.raises(RegistryError, match="nested deeper"):
        Registry.open(model=model_of(MAX_DEPTH))


@pytest.mark.parametrize(
    ("levels", "form"),
    [(57, "note"), (58, "notebase64"), (64, "notebase64"), (900, "notebase64"), (5000, "notebase64")],
)
@pytest.mark.parametrize("path", [f"{D1}/notes/n1", f"{D1}/notes/n1/versions/v1"])
def test_documents_may_be_as_deep_as_they_like(target: Api, path: str, levels: int, form: str) -> None:
    """A document of any depth is taken, shown in a form that can be read again, and loaded with the same bytes."""
    document = b'{"a":' * levels + b"1" + b"}" * levels
    assert 201 == target("PUT", path, document, {"content-type": "application/json"}).status
    shown = target("GET", f"{path}$details?inline=note").json
    assert {form} == shown.keys() & {"note", "notebase64"}
    export = target("GET", "/export").body
    other = loaded(export)
    assert document == other("GET", path).body
    other.service.close()


DEEP = b'{"a":' * 60 + b"1" + b"}" * 60


@pytest.mark.parametrize(
    "given",
    [
        {"note": orjson.loads(DEEP)},
        {"note": DEEP.decode(), "contenttype": "application/json"},
        {"notebase64": base64.b64encode(DEEP).decode(), "contenttype": "application/json"},
        {"notebase64": base64.b64encode(DEEP).decode(), "contenttype": "text/plain"},
        {"note": DEEP.decode()[1:], "contenttype": "application/json"},
    ],
    ids=["JSON", "a string", "base64", "another type", "no JSON"],
)
def test_a_deep_document_within_metadata(target: Api, given: Any) -> None:
    """The same for one that came within metadata, and where its type is told later."""
    assert 201 == target("PUT", f"{D1}/notes/n1$details", given).status
    for change in ({}, {"contenttype": "application/json"}):
        assert 200 == target("PATCH", f"{D1}/notes/n1$details", change).status
        other = loaded(target("GET", "/export").body)
        assert target("GET", f"{D1}/notes/n1").body == other("GET", f"{D1}/notes/n1").body
        other.service.close()
