"""What must not be deleted stays, whichever way a request takes."""

from __future__ import annotations

import pytest

from tests.registry.conftest import Api

GROUP = "/messagegroups/copied"
ORIGIN = {"catalog": "other", "authority": "https://other.example.com", "revision": 1}
MESSAGE = {"meta": {}, "versions": {"1": {"ancestor": "1", "createdat": "2026-01-01T00:00:00Z", "name": "n"}}}


@pytest.fixture
def copy(api: Api) -> Api:
    """A registry with a read-only message, and a group of its own beside that one's."""
    entries = [{"xid": f"{GROUP}/messages/m", "origin": ORIGIN, "body": MESSAGE, "mark": ""}]
    answer = api("POST", "/replicas", {"link": {"name": "other /", "number": 1}, "entries": entries})
    assert ["written"] == [one["outcome"] for one in answer.json["results"]]
    api("PUT", "/messagegroups/own/messages/m", {"labels": {"said": '"readonly":true'}})
    return api


@pytest.mark.parametrize(
    ("path", "body"),
    [(f"{GROUP}/messages/m", None), (f"{GROUP}/messages", None), (GROUP, None), ("/messagegroups", None),
     ("/messagegroups", {"copied": {}})],
)  # fmt: skip
def test_a_read_only_resource_stays(copy: Api, path: str, body: dict[str, object] | None) -> None:
    """It is deleted neither by its name nor with its collection, its group or all groups; nothing else goes either."""
    answer = copy("DELETE", path, body)
    assert (400, "readonly") == (answer.status, answer.json["type"].rpartition("#")[2])
    assert f"{GROUP}/messages/m" == answer.json["subject"]
    assert 200 == copy("GET", f"{GROUP}/messages/m").status == copy("GET", "/messagegroups/own").status


@pytest.mark.parametrize("body", [None, {"copied": {}, "own": {}}])
def test_a_group_with_a_read_only_resource_is_passed_over(copy: Api, body: dict[str, object] | None) -> None:
    """Where the request says so, it is left out and the others go (FLAGS-6)."""
    assert 204 == copy("DELETE", "/messagegroups?ignore=readonly", body).status
    assert 200 == copy("GET", f"{GROUP}/messages/m").status
    assert 404 == copy("GET", "/messagegroups/own").status
