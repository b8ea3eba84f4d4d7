"""Copies that come many at once: the same as if they came one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signalbook import Registry
from signalbook.registry.store import Connection, open_store
from signalbook.replication.entries import EntryOrigin
from tests.conftest import POSTGRES, FreshStore
from tests.registry.conftest import Api, MakeApi, api, make_api

__all__ = ["api", "make_api"]

Json = dict[str, Any]
LINK = {"name": "x", "number": 1}
GROUP = "/messagegroups/g"
SCHEMAS = "/schemagroups/s/schemas"


def entry(xid: str, body: Json | None, catalog: str = "other", revision: int = 5) -> Json:
    """An entry as it travels."""
    origin = {"catalog": catalog, "authority": f"http://{catalog}.test", "revision": revision}
    return {"xid": xid, "origin": origin, "body": body}


def message(name: str, **more: Any) -> Json:
    """A message's entry."""
    return entry(f"{GROUP}/messages/{name}", {"meta": {}, "versions": {"1": {"name": name, **more}}})


WRONG = {"envelopemetadata": 5}
BATCHES: dict[str, list[Json]] = {
    "all are good": [entry(GROUP, {"name": "G"}), *(message(f"m{number}") for number in range(9))],
    "some are refused": [message(f"m{number}", **(WRONG if number in (2, 3, 7) else {})) for number in range(9)],
    "all are refused": [message(f"m{number}", **WRONG) for number in range(5)],
    "one comes twice": [message("a"), message("b"), message("a", description="again"), message("A"), message("c")],
    "references": [message("a"), entry(f"{GROUP}/messages/x", {"meta": {"xref": f"{GROUP}/messages/a"}})],
    "several owners": [
        *(entry(f"{GROUP}/messages/{name}", {"versions": {"1": {}}}, name) for name in ("o1", "o2", "o3")),
        entry(f"{GROUP}/messages/gone", None),
    ],
    "several collections": [
        message("a"),
        message("b"),
        *(entry(f"{SCHEMAS}/{name}", {"versions": {"1": {"name": name}, "2": {}}}) for name in ("a", "b")),
        entry("/unknowns/u/things/t", {}),
        entry("/unknowns/u/things/v", {}),
        entry(f"{GROUP}/nothings/t", {}),
        entry(f"{GROUP}/messages/not an id", {}),
    ],
    "documents": [
        entry(f"{SCHEMAS}/{name}", {"versions": {"1": {"contenttype": "text/plain", "schemabase64": "AP8="}}})
        for name in ("a", "b", "c")
    ],
}


def content(api: Api) -> list[Json]:
    """Everything with its origin, without the time that a write has."""
    found = api("GET", "/replicas/entities").json["entries"]
    for one in found:
        one["body"].pop("createdat", None)
        if "log" in one:
            one["log"] = [[number, said] for number, _, said in one["log"]["snapshots"]]
        for version in (one["body"].get("versions") or {}).values():
            version.pop("createdat", None)
            version.pop("modifiedat", None)
    return list(found)


@pytest.fixture
def fresh_file(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A new store that can be opened again."""
    return str(request.getfixturevalue("postgres_url")) if POSTGRES else str(tmp_path / "signalbook.db")


@pytest.mark.parametrize("name", BATCHES)
def test_many_are_as_one_by_one(name: str, make_api: MakeApi, fresh_store: FreshStore) -> None:
    """Results, entities, owners and protection are the same, whether a batch comes whole or in single entries."""
    whole, single = (make_api(store=fresh_store()) for _ in range(2))
    results = whole("POST", "/replicas", {"link": LINK, "entries": BATCHES[name]}).json["results"]
    apart = [
        single("POST", "/replicas", {"link": LINK, "entries": [one]}).json["results"][0] for one in BATCHES[name]
    ]  # fmt: skip

    def order(result: Json) -> tuple[str, str]:
        return result["xid"], result["outcome"]

    assert sorted(apart, key=order) == sorted(results, key=order)
    assert content(single) == content(whole)
    written = {one["xid"] for one in results if one["outcome"] == "written" and one["xid"].count("/") == 4}
    for xid in written - {f"{GROUP}/messages/x"}:
        assert whole("GET", f"{xid}/meta").json["readonly"] is True


def test_many_are_one_write(api: Api) -> None:
    """What is new in one collection is one change of the catalog, and the group made for it is a copy too."""
    api("POST", "/replicas", {"link": LINK, "entries": BATCHES["all are good"][1:]})
    changes = api("GET", "/changes?since=0&limit=1000").json
    assert 1 == len({event["id"].split(".")[0] for event in changes})
    found = {one["xid"]: one["origin"]["catalog"] for one in content(api)}
    assert "other" == found[GROUP]


# ---- who it is


def catalog_of(url: str) -> str | None:
    """The id that a store has, without asking for it."""
    with open_store(url) as store:
        found = store.reader().one("SELECT value FROM settings WHERE name = 'catalogid'")
        return None if found is None else str(found[0])


def make_older(db: Connection) -> None:
    """Give a store the shape it had before it knew what copies are called at their owners."""
    db.execute("DELETE FROM settings WHERE name = 'catalogid'")
    db.execute("ALTER TABLE replicas DROP COLUMN home")
    db.execute("ALTER TABLE replicas DROP COLUMN at")
    db.execute("DROP TABLE replica_problems")
    db.execute("UPDATE schema_version SET version = 6")


def test_a_store_is_made_with_an_id(fresh_file: str) -> None:
    """Every backup has it, also one from before the first replication; an older store gets one when it is opened."""
    with Registry.open(fresh_file) as registry:
        registry.put(f"{GROUP}/messages/m", {})
    made = catalog_of(fresh_file)
    assert made is not None
    assert made == catalog_of(fresh_file)
    with open_store(fresh_file) as store:
        store.write(make_older)
    given = catalog_of(fresh_file)
    assert given is not None
    assert given.isalnum()
    assert given != made
    assert given == catalog_of(fresh_file)


def test_copies_of_an_older_store(fresh_file: str, make_api: MakeApi) -> None:
    """They stay what they are, and learn from the next word of their owner what they are called there."""
    first = make_api(store=fresh_file)
    first("POST", "/replicas", {"link": LINK, "entries": BATCHES["all are good"]})
    entries = first("GET", "/replicas/entities").json["entries"]
    first.service.store.write(make_older)
    first.service.close()
    again = make_api(store=fresh_file)
    homes = {one["xid"]: one["xid"].replace(GROUP, "/messagegroups/home") for one in entries}
    told = [{**one, "origin": {**one["origin"], "revision": 6, "home": homes[one["xid"]]}} for one in entries]
    results = again("POST", "/replicas", {"link": LINK, "entries": told}).json["results"]
    assert {"same"} == {one["outcome"] for one in results}
    assert homes == {one["xid"]: one["origin"]["home"] for one in content(again)}


# ---- texts that cannot be kept


@pytest.mark.parametrize("text", ["a\0b", "\0"])
def test_a_text_that_cannot_be_kept_is_refused_alone(api: Api, text: str) -> None:
    """Its entity is named, kept as a problem, and the rest of the batch is written."""
    bad = [message("bad", description=text), message(f"w{text}"), message("also", labels={text: text})]
    results = api("POST", "/replicas", {"link": LINK, "entries": [message("a"), *bad, message("b")]}).json["results"]
    outcomes = {one["xid"].rpartition("/")[2]: one["outcome"] for one in results}
    assert {"a": "written", "b": "written", "bad": "refused", "also": "refused"}.items() <= outcomes.items()
    assert 3 == len([one for one in outcomes.values() if one == "refused"])
    assert ["a", "b"] == list(api("GET", f"{GROUP}/messages").json)
    assert 3 == len(api("GET", "/replicas?link=x").json["problems"])


def deep(levels: int) -> Json:
    """A data schema so deep, with its format."""
    value: Any = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return {"dataschemaformat": "JSONSchema/draft-07", "dataschema": value}


@pytest.mark.parametrize("levels", [58, 60, 61, 64, 200])
def test_one_that_is_too_deep_is_refused_alone(api: Api, levels: int) -> None:
    """What this catalog could not export is refused, also where it makes the whole body too deep."""
    entries = [message("a"), message("bad", **deep(levels)), message("b", **deep(57))]
    results = api("POST", "/replicas", {"link": LINK, "entries": entries}).json["results"]
    outcomes = {one["xid"].rpartition("/")[2]: one["outcome"] for one in results}
    assert {"a": "written", "bad": "refused", "b": "written"} == outcomes


def test_the_deepest_travels(make_api: MakeApi) -> None:
    """What a catalog takes, another takes as its copy, with its log."""
    source, other = make_api(store="memory:"), make_api(store="memory:")
    for name in ("first", "second"):
        source("PUT", f"{GROUP}/messages/m", {"name": name, **deep(57)})
    entries = source("GET", "/replicas/entities").json["entries"]
    results = other("POST", "/replicas", {"link": LINK, "entries": entries}).json["results"]
    assert ["written", "written"] == [one["outcome"] for one in results]
    assert deep(57).items() <= other("GET", f"{GROUP}/messages/m").json.items()
    assert 2 == len(other("GET", f"/replicas/entities?xid={GROUP}/messages/m").json["entries"][0]["log"]["snapshots"])


@pytest.mark.parametrize(
    "body",
    [
        b'{"link": {"name": "a\\u0000"}, "entries": []}',
        b'{"link": {"name": "x"}, "entries": [{"xid": 5, "body": "\\u0000"}]}',
        b'{"link": {"name": "x"}, "link": {"name": "y"}, "entries": []}',
        b'{"link": {"name": "x"}, "entries": "\\u0000"}',
        b'{"link": {"name": "x"}, "entries": [{"xid": "/a/b", "body": {"a": 1, "a": 2}}]}',
        b'{"entries": [' + b"[" * 300 + b"]" * 300 + b"]}",
        b"{",
    ],
)
def test_another_body_is_refused_whole(api: Api, body: bytes) -> None:
    """What is wrong elsewhere than in one entry is an error of the whole request."""
    assert 400 == api("POST", "/replicas", body).status


# ---- logs


@pytest.mark.parametrize(
    "log",
    [
        5,
        {"digest": "", "before": 0, "end": True},
        {"digest": "", "before": 0, "end": False, "snapshots": []},
        {"digest": "", "before": -1, "end": True, "snapshots": []},
        {"digest": "", "before": 2, "end": True, "snapshots": [[2, "", {}]]},
        {"digest": "", "before": 0, "end": True, "snapshots": [[2, "", {}], [1, "", {}]]},
        {"digest": "", "before": 0, "end": True, "snapshots": [[1, "", {}], [1, "", {}]]},
        {"digest": "", "before": 0, "end": True, "snapshots": [[1, "", 5]]},
        {"digest": "", "before": 0, "end": True, "snapshots": [[1, "t" * 200, {}]]},
        {"digest": "", "before": 0, "end": 1, "snapshots": [[1, "", {}]]},
        {"digest": "", "before": 0, "end": True, "snapshots": [[1 << 63, "", {}]]},
        {"digest": "", "before": 0, "end": True, "snapshots": [[1, ""]]},
    ],
)
def test_no_log(api: Api, log: Any) -> None:
    """A page of another form is refused."""
    reply = api("POST", "/replicas", {"link": LINK, "entries": [{**message("a"), "log": log}]})
    assert (400, "bad_request") == (reply.status, reply.error)


# ---- what is newer


@pytest.mark.parametrize(
    ("new", "old", "is_direct", "is_older"),
    [
        ((5, 0), (6, 0), False, True),
        ((6, 9_000), (5, 9_500), False, False),  # clocks of one catalog's servers differ
        ((5, 9_500), (6, 9_000), False, True),
        ((9, 10_000), (5, 90_000), False, True),  # by a hub: the former self of an owner that was restored
        ((5, 90_000), (9, 10_000), False, False),
        ((5, 90_000), (9, 10_000), True, False),
        ((9, 10_000), (5, 90_000), True, False),  # by the owner itself, whose clock was set back
        ((5, 10_000), (9, 90_000), True, True),
    ],
)
def test_what_is_older(new: tuple[int, int], old: tuple[int, int], is_direct: bool, is_older: bool) -> None:
    """Numbers decide where the times are near each other; else the times."""
    here, there = (EntryOrigin("a", "", *one) for one in (new, old))
    assert is_older is here.is_older(there, is_direct=is_direct)
