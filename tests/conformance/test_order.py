"""The order of a collection's members, and its pages: SORT-3 to SORT-5, PAGE-2 to PAGE-5.

A JSON object has no order for most readers, so these look at the members as they come.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.registry.conftest import BASE, Api, MakeApi

MODEL = {
    "groups": {
        "dirs": {
            "singular": "dir",
            "attributes": {
                "age": {"type": "integer"},
                "size": {"type": "decimal"},
                "open": {"type": "boolean"},
                "since": {"type": "timestamp"},
                "site": {"type": "url"},
                "rest": {"type": "object", "attributes": {"deep": {"type": "string"}}},
            },
            "resources": {"notes": {"singular": "note", "hasdocument": False}},
        }
    }
}
DIRS: dict[str, dict[str, Any]] = {
    "b": {"name": "Zoe", "age": 10, "open": True, "since": "2024-01-01T00:00:00+02:00", "labels": {"x.y": "2"}},
    "A": {"name": "amy", "age": 9, "size": 0.5, "site": "http://B.example/"},
    "d": {"name": "Éva", "size": 10, "since": "2023-12-31T22:30:00Z", "rest": {"deep": "1"}},
    "c": {"name": "amy", "age": -5, "open": False, "site": "http://a.example/", "labels": {"x.y": "10"}},
}
LINK = re.compile(r"<([^>]*)>;rel=next;count=(\d+)")


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    """A registry with four groups, written in no order."""
    api = make_api(model="empty", specversion="1.0-rc4")
    api("PUT", "/modelsource", MODEL)
    assert 200 == api("POST", "/dirs", DIRS).status
    return api


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("dirid", "Abcd"),
        ("dirid=desc", "dcbA"),
        ("name", "Acdb"),
        ("name=asc", "Acdb"),
        ("name=desc", "bdcA"),
        ("age", "dcAb"),
        ("age=desc", "bAcd"),
        ("size", "bcAd"),
        ("size=desc", "dAcb"),
        ("open", "Adcb"),
        ("open=desc", "bcdA"),
        ("since", "Acbd"),
        ("site", "bdcA"),
        ("labels['x.y']", "Adcb"),
        ("rest.deep=desc", "dcbA"),
        ("nothing", "Abcd"),
        ("nothing=desc", "dcbA"),
    ],
)
def test_sort(api: Api, sort: str, order: str) -> None:
    """Values are compared by their type, a missing one is the lowest, and ids decide in the same direction."""
    assert list(order) == list(api("GET", f"/dirs?sort={sort}").json)


def test_sort_at_every_level(api: Api) -> None:
    """Resources and versions are sorted as groups are."""
    api("POST", "/dirs/b/notes", {"n2": {"name": "1"}, "n1": {"name": "2"}, "n3": {"name": "0"}})
    assert ["n3", "n2", "n1"] == list(api("GET", "/dirs/b/notes?sort=name").json)
    api("POST", "/dirs/b/notes/n1/versions", {"v2": {"name": "x"}, "v10": {"name": "y"}})
    assert ["v10", "v2", "1"] == list(api("GET", "/dirs/b/notes/n1/versions?sort=name=desc").json)
    assert ["v2", "v10", "1"] == list(api("GET", "/dirs/b/notes/n1/versions?sort=versionid=desc").json)


def test_order_without_sort(api: Api) -> None:
    """Members come by their ids, whatever order they were written in, and wherever they are shown."""
    assert ["A", "b", "c", "d"] == list(api("GET", "/dirs").json)
    assert ["A", "b", "c", "d"] == list(api("GET", "/?inline=dirs").json["dirs"])


def test_the_same_order_every_time(api: Api) -> None:
    """The same question has the same answer, byte for byte."""
    for path in ("/dirs?sort=name", "/dirs?sort=age=desc&filter=age", "/?inline=*", "/dirs?sort=labels"):
        assert api("GET", path).body == api("GET", path).body


def pages(api: Api, path: str) -> tuple[list[list[str]], set[str]]:
    """The ids of each page of a collection, and the counts that the links between them gave."""
    found, counts = [], set()
    while True:
        reply = api("GET", path)
        assert 200 == reply.status
        found.append(list(reply.json))
        if "link" not in reply.headers:
            return found, counts
        link = LINK.fullmatch(reply.headers["link"])
        assert link is not None
        path = link[1].removeprefix(BASE)
        counts.add(link[2])


@pytest.mark.parametrize("limit", [1, 3, 7, 10, 29, 30, 31])
@pytest.mark.parametrize(
    "query",
    [
        "",
        "sort=name",
        "sort=name=desc",
        "filter=labels.odd=1",
        "sort=name&filter=labels.odd=1",
        "inline=notes&sort=age",
    ],
)
def test_pages(make_api: MakeApi, query: str, limit: int) -> None:
    """Page by page all members come once, in the order of the whole, none larger than the limit, all with one count."""
    api = make_api(model="empty", specversion="1.0-rc4")
    api("PUT", "/modelsource", MODEL)
    body = {f"d{n:02}": {"name": f"n{n * 7 % 5}", "age": n % 3, "labels": {"odd": str(n % 2)}} for n in range(30)}
    api("POST", "/dirs", body)
    whole = list(api("GET", f"/dirs?{query}").json)
    found, counts = pages(api, f"/dirs?{query}&limit={limit}" if query else f"/dirs?limit={limit}")
    assert whole == [id_ for page in found for id_ in page]
    assert all(len(page) <= limit for page in found)
    assert {len(whole)} == {int(count) for count in counts} or (len(found) == 1 and not counts)


def test_pages_of_resources_and_versions(api: Api) -> None:
    """Every collection has pages."""
    api("POST", "/dirs/b/notes", {f"n{n}": {} for n in range(5)})
    api("POST", "/dirs/b/notes/n1/versions", {f"v{n}": {} for n in range(4)})
    assert [["n0", "n1"], ["n2", "n3"], ["n4"]] == pages(api, "/dirs/b/notes?limit=2")[0]
    assert [["1", "v0"], ["v1", "v2"], ["v3"]] == pages(api, "/dirs/b/notes/n1/versions?limit=2")[0]


def test_a_page_after_a_change(api: Api) -> None:
    """A link goes on behind the last member that was shown, also where that one is gone."""
    reply = api("GET", "/dirs?limit=2")
    link = LINK.fullmatch(reply.headers["link"])
    assert link is not None
    api("DELETE", "/dirs/b")
    assert ["c", "d"] == list(api("GET", link[1].removeprefix(BASE)).json)


def test_the_server_makes_pages_unasked(make_api: MakeApi) -> None:
    """A collection that is too large for one answer comes in pages by id."""
    api = make_api(model="empty", specversion="1.0-rc4")
    api("PUT", "/modelsource", MODEL)
    api("POST", "/dirs", {f"d{n:05}": {} for n in range(10_001)})
    found, counts = pages(api, "/dirs")
    assert [10_000, 1] == [len(page) for page in found]
    assert {"10001"} == counts
