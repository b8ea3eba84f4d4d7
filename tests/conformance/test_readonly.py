"""Read-only resources: META-3 and the `readonly` value of the ignore flag, FLAGS-6.

No client can make a resource read-only, so the tests do it in the store, as an operator would.
"""

from __future__ import annotations

import orjson
import pytest

from signalbook.registry import rows
from signalbook.registry.store import Connection
from tests.registry.conftest import Api, MakeApi

MODEL = {"groups": {"dirs": {"singular": "dir", "resources": {"notes": {"singular": "note", "hasdocument": False}}}}}
NOTES = "/dirs/d1/notes"
LOCKED = f"{NOTES}/locked"


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    """A registry with two resources, one of them read-only."""
    api = make_api(model="empty", specversion="1.0-rc4")
    api("PUT", "/modelsource", MODEL)
    assert 200 == api("POST", NOTES, {"locked": {"versions": {"v1": {}, "v2": {}}}, "free": {}}).status

    def lock(db: Connection) -> None:
        key = rows.resource_key(LOCKED)
        row = rows.load(db, key)
        assert row is not None
        doc = orjson.dumps({**orjson.loads(row.doc), "readonly": True}).decode()
        db.execute("UPDATE entities SET doc = ? WHERE key = ?", (doc, key))

    api.service._requests.store.write(lock)
    return api


def test_it_shows(api: Api) -> None:
    """The meta says that a resource is read-only, and says so of the others too."""
    assert api("GET", f"{LOCKED}/meta").json["readonly"] is True
    assert api("GET", f"{NOTES}/free/meta").json["readonly"] is False


WRITES = [
    ("PUT", LOCKED, {}),
    ("PATCH", LOCKED, {"name": "x"}),
    ("POST", LOCKED, {}),
    ("PUT", f"{LOCKED}/meta", {}),
    ("PATCH", f"{LOCKED}/meta", {"readonly": False}),
    ("POST", f"{LOCKED}/versions", {"v3": {}}),
    ("PUT", f"{LOCKED}/versions/v1", {}),
    ("DELETE", f"{LOCKED}/versions/v1", None),
    ("DELETE", f"{LOCKED}/versions", {"v1": {}}),
    ("DELETE", f"{LOCKED}/versions", None),
    ("DELETE", LOCKED, None),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_writes_are_refused(api: Api, method: str, path: str, body: object) -> None:
    """Whatever would change a read-only resource is refused, and nothing changes."""
    before = api("GET", f"{LOCKED}?inline").body
    reply = api(method, path, body)
    assert (400, "readonly", LOCKED) == (reply.status, reply.error, reply.json["subject"])
    assert before == api("GET", f"{LOCKED}?inline").body


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_one_alone_cannot_be_ignored(api: Api, method: str, path: str, body: object) -> None:
    """A request to one read-only resource has nothing left without it: `bad_flag`."""
    before = api("GET", f"{LOCKED}?inline").body
    reply = api(method, f"{path}?ignore=readonly", body)
    assert (400, "bad_flag", {"flag": "ignore"}) == (reply.status, reply.error, reply.json["args"])
    assert before == api("GET", f"{LOCKED}?inline").body


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", NOTES, {"locked": {"name": "x"}, "free": {"name": "x"}}),
        ("PATCH", NOTES, {"locked": {"name": "x"}, "free": {"name": "x"}}),
        ("POST", "/dirs/d1", {"notes": {"locked": {"name": "x"}, "free": {"name": "x"}}}),
        ("PATCH", "/dirs/d1", {"notes": {"locked": {"name": "x"}, "free": {"name": "x"}}}),
        ("POST", "/dirs", {"d1": {"notes": {"locked": {"name": "x"}, "free": {"name": "x"}}}}),
    ],
)
def test_among_others_it_is_passed_over(api: Api, method: str, path: str, body: object) -> None:
    """In a collection a read-only resource stays as it is where the request says so, and refuses it all if not."""
    before = api("GET", f"{LOCKED}?inline").body
    assert "readonly" == api(method, path, body).error
    assert "name" not in api("GET", f"{NOTES}/free").json
    assert 200 == api(method, f"{path}?ignore=readonly", body).status
    assert "x" == api("GET", f"{NOTES}/free").json["name"]
    assert before == api("GET", f"{LOCKED}?inline").body


@pytest.mark.parametrize("body", [None, {"locked": {}, "free": {}}])
def test_deleting_several(api: Api, body: object) -> None:
    """Deleting a collection passes over a read-only resource where the request says so, and deletes none if not."""
    assert "readonly" == api("DELETE", NOTES, body).error
    assert {"locked", "free"} == set(api("GET", NOTES).json)
    assert 204 == api("DELETE", f"{NOTES}?ignore=readonly", body).status
    assert {"locked"} == set(api("GET", NOTES).json)


def test_only_locked_ones(api: Api) -> None:
    """A request that is left with nothing to do is still a good request."""
    assert {} == api("POST", f"{NOTES}?ignore=readonly", {"locked": {"name": "x"}}).json
