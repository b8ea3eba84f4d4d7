"""`/replicas`: what catalogs ask and tell each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signalbook.app import peer_client, store_client
from signalbook.server import replicas
from tests.registry.conftest import Api, MakeApi, api, make_api

__all__ = ["api", "make_api"]

LINK = {"name": "x", "number": 1}
ORIGIN = {"catalog": "other", "authority": "http://other.test", "revision": 5}
ENTRY = {"xid": "/messagegroups/g", "origin": ORIGIN, "body": {"name": "G"}}


def test_a_catalog_has_an_id_of_its_own(api: Api) -> None:
    """It is random, and stays; beside it stands the base that the catalog states for itself."""
    found = api("GET", "/replicas").json
    assert {"base", "catalog", "cursor", "fixed"} == found.keys()
    assert found == api("GET", "/replicas").json


def test_how_far_it_came(api: Api) -> None:
    """The cursor is written with the entries; a batch without one leaves it."""
    assert {"name": "x", "cursor": "", "number": 0} == api("GET", "/replicas?link=x").json["link"]
    api("POST", "/replicas", {"link": {**LINK, "cursor": "7.1.a"}, "entries": [ENTRY]})
    api("POST", "/replicas", {"link": {**LINK, "number": 2}, "entries": [ENTRY]})
    assert {"name": "x", "cursor": "7.1.a", "number": 1} == api("GET", "/replicas?link=x").json["link"]


def test_pages_of_entities(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups come before resources, every one once, in pages bounded by number and by size."""
    for group in ("a", "b"):
        for message in ("m", "n", "o"):
            api("PUT", f"/messagegroups/{group}/messages/{message}", {"description": "x" * 100})
    for name, bound in (("MOST_ENTRIES", 3), ("_MOST_BYTES", 250)):
        with monkeypatch.context() as patch:
            patch.setattr(replicas, name, bound)
            found: list[str] = []
            after = ""
            while True:
                page = api("GET", f"/replicas/entities?after={after}").json
                assert 3 >= len(page["entries"])
                found += [entry["xid"] for entry in page["entries"]]
                after = page["next"]
                if not after:
                    break
        groups = ["/messagegroups/a", "/messagegroups/b"]
        assert groups + [f"{group}/messages/{one}" for group in groups for one in ("m", "n", "o")] == found


WRONG: list[Any] = [
    [],
    {},
    {"link": "x"},
    {"link": {"name": ""}},
    {"link": {"name": "x", "number": -1}},
    {"link": {"name": "x", "cursor": "c" * 300}},
    {"link": LINK, "entries": {}},
    {"link": LINK, "entries": [5]},
    {"link": LINK, "entries": [ENTRY] * 501},
    {"link": LINK, "entries": [{**ENTRY, "xid": "/"}]},
    {"link": LINK, "entries": [{**ENTRY, "xid": "/a/b/c/d/versions/e"}]},
    {"link": LINK, "entries": [{**ENTRY, "body": 5}]},
    {"link": LINK, "entries": [{**ENTRY, "origin": {**ORIGIN, "revision": -1}}]},
    {"link": LINK, "entries": [{**ENTRY, "origin": {**ORIGIN, "catalog": ""}}]},
    {"link": LINK, "entries": [{"xid": "/messagegroups/g"}]},
    {"link": LINK, "met": [5]},
]


@pytest.mark.parametrize("body", WRONG)
def test_refused(api: Api, body: Any) -> None:
    """A batch of another form is refused whole."""
    reply = api("POST", "/replicas", body)
    assert (400, "bad_request") == (reply.status, reply.error)
    assert {} == api("GET", "/messagegroups").json


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/replicas/nothing", 404),
        ("GET", "/replicas?other=1", 400),
        ("PUT", "/replicas", 405),
        ("POST", "/replicas/entities", 405),
        ("POST", "/replicas", 400),
        ("GET", "/replicas/marks?xid=/messagegroups/g", 200),
        ("OPTIONS", "/replicas", 200),
    ],
)
def test_paths_and_methods(api: Api, method: str, path: str, status: int) -> None:
    """Each path has its methods."""
    assert status == api(method, path).status


def test_one_bad_entry_leaves_the_others(api: Api) -> None:
    """An entry is written wholly or not at all, and each has its result."""
    bad = {**ENTRY, "xid": "/messagegroups/g/messages/m", "body": {"versions": {"1": {"labels": 5}}}}
    found = api("POST", "/replicas", {"link": LINK, "entries": [bad, ENTRY]}).json["results"]
    assert [("/messagegroups/g", "written"), (bad["xid"], "refused")] == [(one["xid"], one["outcome"]) for one in found]
    assert "invalid_attribute" in found[1]["detail"]


def test_a_model_cannot_take_the_path(make_api: MakeApi) -> None:
    """`replicas` is no name for a group type."""
    api = make_api(model="empty", specversion="1.0-rc4")
    assert 400 == api("PUT", "/modelsource", {"groups": {"replicas": {"singular": "replica"}}}).status


def test_what_is_not_mutable_is_not_replicated_into(api: Api) -> None:
    """Where clients may not change entities, they do not by a replication either; it can still be read from."""
    available = api("GET", "/capabilities").json["available"]
    api("PATCH", "/capabilities", {"available": {**available, "entities": {"mutable": False}}})
    for body in ({"link": LINK, "entries": [ENTRY]}, {"link": LINK, "sweep": True}, {"link": {**LINK, "cursor": "1"}}):
        refused = api("POST", "/replicas", body)
        assert (405, "GET, OPTIONS") == (refused.status, refused.headers["allow"])
        assert '"entities" is not mutable' in refused.json["detail"]
    assert 200 == api("GET", "/replicas").status
    assert 0 == api("GET", "/").json["messagegroupscount"]


def test_the_owner_replicates_into_what_others_cannot_change(tmp_path: Path) -> None:
    """The capabilities say what is offered to clients: whoever has the store itself may fill it."""
    place = str(tmp_path / "a.db")
    with store_client(place) as client:
        available = client.get("/capabilities")["available"]
        client.write("PATCH", "/capabilities", {"available": {**available, "entities": {"mutable": False}}})
    with peer_client(place) as client:
        client.write("POST", "/replicas", {"link": LINK, "entries": [ENTRY]})
        assert "G" == client.get("/messagegroups/g")["name"]
