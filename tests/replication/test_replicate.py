"""Replication between catalogs: who may change what, what travels, and that it ends equal whatever happens."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from signalbook.client import Call, RegistryReply, RemoteError, refusal
from signalbook.errors import UsageError
from signalbook.registry.changes import trim
from signalbook.replication.replicate import Replication
from signalbook.replication.scope import ReplicationScope
from signalbook.replication.target import ReplicationReport
from signalbook.server.events.changes import expand
from tests.replication.conftest import MakePeer
from tests.replication.peers import ApiPeer, catalog_of, content, without_feed

Json = dict[str, Any]
MESSAGE = "/messagegroups/g/messages/m"
SCHEMA = {"format": "JsonSchema/draft-07", "schema": {"type": "object"}}


def pull(source: ApiPeer, target: ApiPeer, scope: str = "/", *maps: str, compare: bool = False) -> ReplicationReport:
    """Replicate once."""
    return Replication(source, target, ReplicationScope.parse(scope, maps)).run(compare=compare)


def fill(peer: ApiPeer) -> None:
    """Some of everything: groups, messages, schemas with versions and documents, a sticky default, a reference."""
    api = peer.api
    replies = [
        api("PUT", "/messagegroups/g", {"name": "G", "labels": {"a": "b"}}),
        api("PUT", MESSAGE, {"description": "x", "envelope": "CloudEvents/1.0"}),
        api("PUT", "/messagegroups/g/messages/n", {"basemessage": MESSAGE}),
        api("PUT", "/schemagroups/s/schemas/x$details", SCHEMA),
        api("POST", "/schemagroups/s/schemas/x$details", {**SCHEMA, "versionid": "2", "ancestorid": "1"}),
        api("PUT", "/schemagroups/s/schemas/raw", b"\x00\xff raw", {"content-type": "application/octet-stream"}),
        api("PATCH", "/schemagroups/s/schemas/x/meta", {"defaultversionid": "1", "defaultversionsticky": True}),
        api("PUT", "/messagegroups/h/messages/ref", {"meta": {"xref": MESSAGE}}),
        api("PUT", "/endpoints/e", {"usage": ["producer"], "protocol": "HTTP"}),
        api("PUT", "/endpoints/e/messages/own", {"name": "own"}),
    ]
    assert [] == [reply.body for reply in replies if reply.status >= 300]


# ---- what travels


def test_all_of_a_catalog(a: ApiPeer, b: ApiPeer) -> None:
    """After a pull the target has every group, resource, version and document as the source has it."""
    fill(a)
    report = pull(a, b)
    assert ({}, True) == (report.problems, report.compared)
    assert content(a.api) == content(b.api)
    assert b"\x00\xff raw" == b.api("GET", "/schemagroups/s/schemas/raw").body


def test_a_copy_is_read_only_and_names_its_authority(a: ApiPeer, b: ApiPeer) -> None:
    """Seed 004 2.2.4: an imported definition gets its source's authority where it had none; META-3 protects it."""
    fill(a)
    a.api("PUT", "/messagegroups/g/messages/named", {"authority": "urn:example:corp"})
    pull(a, b)
    assert "http://a.test/messagecatalog" == b.api("GET", MESSAGE).json["authority"]
    assert "urn:example:corp" == b.api("GET", "/messagegroups/g/messages/named").json["authority"]
    assert b.api("GET", f"{MESSAGE}/meta").json["readonly"] is True
    for method in ("PUT", "DELETE"):
        assert "readonly" == b.api(method, MESSAGE, {} if method == "PUT" else None).error
    assert 200 == a.api("PUT", MESSAGE, {"description": "mine"}).status


def test_a_copy_has_the_uri_that_its_source_states(a: ApiPeer, b: ApiPeer) -> None:
    """Seed 004 2.2.2: the canonical link of a version is the same at source and copy, however it was pulled."""
    a.api("PUT", MESSAGE, {"envelope": "CloudEvents/1.0"})
    states = {"base": "https://public.example/catalog", "fixed": True}
    a.after = lambda path, value: value | states if path.startswith("/replicas") and "catalog" in value else value
    pull(a, b)
    path = "/messagecatalog/g/messagedefinitions/m/versions/1"
    stated = a.api("GET", path, base="https://public.example/catalog").headers["link"]
    assert stated == b.api("GET", path).headers["link"]
    assert 200 == b.api("GET", f"/messagedefinition?uri={stated.partition('>')[0][1:]}").status


def test_a_source_behind_two_addresses(a: ApiPeer, b: ApiPeer) -> None:
    """Seed 004 2.2.4: an authority is immutable: where no base is fixed, the first address that was used stays it."""
    fill(a)
    pull(a, b)
    a.address = "http://elsewhere.test"
    a.api("PATCH", MESSAGE, {"description": "new"})
    for compare in (False, True):
        assert {} == pull(a, b, compare=compare).problems
        assert "http://a.test/messagecatalog" == b.api("GET", MESSAGE).json["authority"]
    assert {"new"} == {b.api("GET", MESSAGE).json["description"]}


def test_a_plain_server_behind_two_addresses(a: ApiPeer, b: ApiPeer) -> None:
    """Another xRegistry server is who its root says that it is, by whatever address it was read."""
    fill(a)
    a.before = without_feed
    a.after = lambda path, value: value | {"self": "https://public.example/"} if path == "/" else value
    for address in ("http://a.test", "http://127.0.0.1:1"):
        a.address = address
        a.api("PATCH", MESSAGE, {"description": address})
        assert {} == pull(a, b).problems
        assert {"description": address, "authority": "https://public.example"}.items() <= b.api(
            "GET", MESSAGE
        ).json.items()


def test_marks_are_those_of_one_source(a: ApiPeer, b: ApiPeer, make_peer: MakePeer) -> None:
    """Two servers without feeds whose entities have the same epochs are told apart: the second is a conflict."""
    hub = make_peer("hub")
    for peer, words in ((a, "of a"), (b, "of b")):
        peer.api("PUT", MESSAGE, {"description": words})
        peer.before = without_feed
        report = pull(peer, hub)
    assert [MESSAGE] == list(report.problems)


def test_events_of_versions_have_their_times(a: ApiPeer, b: ApiPeer) -> None:
    """Seed 004 5.5: the time of a version's event is exactly its createdtimeutc, also at a copy that came later."""
    a.api("PUT", MESSAGE, {"envelope": "CloudEvents/1.0"})
    a.api("PATCH", MESSAGE, {"description": "new"})
    pull(a, b)
    shown = b.api("GET", "/messagecatalog/g/messagedefinitions/m/versions").json
    for peer in (a, b):
        events = peer.api("GET", "/changes?since=0").json
        told = {event["subject"]: event["time"] for event in events if "/version/" in event["subject"]}
        path = "/messagecatalog/g/messagedefinitions/m/version"
        assert {f"{path}/{one['version']}": one["createdtimeutc"] for one in shown} == told


def test_events_of_groups_have_their_times(a: ApiPeer) -> None:
    """Seed 004 5.5: the time of a group's event is exactly its updatedtimeutc, also where a client chose that."""
    a.api("PUT", "/messagegroups/g", {"modifiedat": "2020-10-30T17:31:00Z"})
    group = a.api("GET", "/messagecatalog/g").json
    events = {event["subject"]: event for event in a.api("GET", "/changes?since=0").json}
    assert "2020-10-30T17:31:00Z" == group["updatedtimeutc"] == events["/messagecatalog/g"]["time"]
    assert "2020-10-30T17:31:00Z" != events["/messagegroups/g"]["time"]


def test_changes_and_deletions_travel(a: ApiPeer, b: ApiPeer) -> None:
    """What is changed, added and deleted at the source is so at the target, by the feed and without a comparison."""
    fill(a)
    pull(a, b)
    api = a.api
    api("PATCH", MESSAGE, {"description": "new"})
    api("PATCH", "/messagegroups/g", {"name": None, "labels": {"c": "d"}})
    api("POST", "/schemagroups/s/schemas/x$details", {**SCHEMA, "versionid": "3", "ancestorid": "2"})
    api("DELETE", "/schemagroups/s/schemas/x/versions/2")
    api("PUT", "/schemagroups/s/schemas/raw", b"other", {"content-type": "text/plain"})
    api("DELETE", "/messagegroups/g/messages/n")
    api("DELETE", "/endpoints/e")
    api("PATCH", f"{MESSAGE}/meta", {"deprecated": {"alternative": "http://x"}})
    report = pull(a, b)
    assert (False, {}) == (report.compared, report.problems)
    assert content(a.api) == content(b.api)
    assert 0 == pull(a, b).changed


def test_versions_that_have_nothing_in_common(a: ApiPeer, b: ApiPeer) -> None:
    """A resource that was deleted and made again, or became a reference, is made again."""
    fill(a)
    pull(a, b)
    a.api("DELETE", "/schemagroups/s/schemas/x")
    a.api("PUT", "/schemagroups/s/schemas/x/versions/9$details", SCHEMA)
    a.api("PUT", "/messagegroups/h/messages/ref/meta", {})
    a.api("PUT", "/messagegroups/g/messages/n", {"meta": {"xref": MESSAGE}})
    assert {} == pull(a, b).problems
    assert content(a.api) == content(b.api)


# ---- authority


def test_two_ways_settle(a: ApiPeer, b: ApiPeer) -> None:
    """Replicating both ways ends: each has both, and a further round writes nothing."""
    fill(a)
    b.api("PUT", "/messagegroups/b/messages/own", {"description": "of b"})
    pull(a, b)
    pull(b, a)
    before = [peer.api("GET", "/changes?since=latest").headers["signalbook-cursor"] for peer in (a, b)]
    for _ in range(3):
        assert 0 == pull(a, b).changed + pull(b, a).changed
    assert before == [peer.api("GET", "/changes?since=latest").headers["signalbook-cursor"] for peer in (a, b)]
    assert content(a.api) == content(b.api)


def test_conflicts_are_reported_and_not_overwritten(a: ApiPeer, b: ApiPeer) -> None:
    """What the target owns, or has changed in a copied group, stays; the rest comes."""
    fill(a)
    b.api("PUT", MESSAGE, {"description": "of b"})
    report = pull(a, b)
    assert ["conflict", "conflict"] == [report.problems[xid].code for xid in ("/messagegroups/g", MESSAGE)]
    assert "of b" == b.api("GET", MESSAGE).json["description"]
    assert 200 == b.api("GET", "/messagegroups/g/messages/n").status
    b.api("PATCH", "/schemagroups/s", {"name": "changed at b"})
    a.api("PATCH", "/schemagroups/s", {"name": "changed at a"})
    assert "changed here" in pull(a, b).problems["/schemagroups/s"].message
    assert "changed at b" == b.api("GET", "/schemagroups/s").json["name"]


def test_what_is_equal_is_no_conflict(a: ApiPeer, b: ApiPeer) -> None:
    """Where both have the same, whenever each made it, there is nothing to report; once it differs there is."""
    for peer in (a, b):
        peer.api("PUT", "/messagegroups/x", {"name": "X"})
        peer.api("PUT", "/messagegroups/x/messages/m", {"description": "same"})
        peer.api("PUT", "/schemagroups/s/schemas/x$details", SCHEMA)
    for compare in (False, True):
        report = pull(a, b, compare=compare)
        assert ({}, 0) == (report.problems, report.changed)
    assert 200 == b.api("PUT", "/messagegroups/x/messages/m", {"description": "still of b"}).status
    a.api("PATCH", "/messagegroups/x/messages/m", {"description": "of a"})
    assert ["/messagegroups/x/messages/m"] == list(pull(a, b).problems)


def test_equal_copies_of_two_owners(a: ApiPeer, b: ApiPeer, make_peer: MakePeer) -> None:
    """A group that two sources have alike is no conflict at a hub; their messages differ in who has authority."""
    hub = make_peer("hub")
    for peer in (a, b):
        peer.api("PUT", "/messagegroups/x", {"name": "X"})
        peer.api("PUT", "/messagegroups/x/messages/implied", {"description": "same"})
        peer.api("PUT", "/messagegroups/x/messages/stated", {"description": "same", "authority": "urn:acme"})
        report = pull(peer, hub)
    assert ["/messagegroups/x/messages/implied"] == list(report.problems)


def test_conflicts_and_refusals_are_tried_again(a: ApiPeer, b: ApiPeer) -> None:
    """They are reported by each run, and end when what is in the way has gone, without a comparison."""
    fill(a)
    b.api("PUT", MESSAGE, {"description": "of b"})
    b.api("PUT", "/messagegroups/g", {"name": "G", "labels": {"a": "b"}})
    for _ in range(3):
        report = pull(a, b)
        assert ["conflict"] == [problem.code for problem in report.problems.values()]
        assert 1 == report.outcomes["conflict"]
    b.api("DELETE", MESSAGE)
    report = pull(a, b)
    assert ({}, 1, False) == (report.problems, report.changed, report.compared)
    assert content(a.api)[MESSAGE] == content(b.api)[MESSAGE]
    assert 0 == len(pull(a, b).outcomes)


def test_a_conflict_under_another_name_is_tried_again(a: ApiPeer, b: ApiPeer) -> None:
    """What has another name at the target is found again at the source."""
    fill(a)
    mapped = "/messagegroups/from-a/messages/m"
    b.api("PUT", mapped, {"description": "of b"})
    for _ in range(2):
        assert mapped == pull(a, b, "/", "g=from-a").problems[MESSAGE].path
    a.api("DELETE", MESSAGE)
    assert MESSAGE not in pull(a, b, "/", "g=from-a").problems
    assert "of b" == b.api("GET", mapped).json["description"]


def test_a_conflict_of_what_has_gone_is_forgotten(a: ApiPeer, b: ApiPeer) -> None:
    """A comparison that does not meet it any more ends it, too."""
    fill(a)
    b.api("PUT", MESSAGE, {"description": "of b"})
    pull(a, b)
    a.api("DELETE", MESSAGE)
    assert MESSAGE not in pull(a, b, compare=True).problems
    assert MESSAGE not in pull(a, b).problems


def test_two_authorities_for_one_name(a: ApiPeer, b: ApiPeer, make_peer: MakePeer) -> None:
    """Who came first stays; the other is a conflict."""
    hub = make_peer("hub")
    for peer, words in ((a, "of a"), (b, "of b")):
        peer.api("PUT", MESSAGE, {"description": words})
        report = pull(peer, hub)
    assert "a copy from http://a.test" in report.problems[MESSAGE].message
    assert "of a" == hub.api("GET", MESSAGE).json["description"]


def test_a_hub_passes_on_under_the_owner_s_name(a: ApiPeer, b: ApiPeer, make_peer: MakePeer) -> None:
    """Through a hub a definition keeps its authority, comes back to its owner as its own, and is deleted everywhere."""
    hub = make_peer("hub")
    fill(a)
    pull(a, hub)
    pull(hub, b)
    assert content(a.api) == content(b.api)
    assert "http://a.test/messagecatalog" == b.api("GET", MESSAGE).json["authority"]
    assert {"ours": 10} == dict(pull(hub, a, compare=True).outcomes)
    a.api("DELETE", "/messagegroups/g")
    pull(a, hub)
    pull(hub, b)
    assert content(a.api) == content(hub.api) == content(b.api)


def test_an_older_copy_does_not_come_back(a: ApiPeer, b: ApiPeer, make_peer: MakePeer) -> None:
    """What was deleted or changed directly is not undone by a hub that lags behind."""
    hub = make_peer("hub")
    fill(a)
    pull(a, hub)
    pull(a, b)
    a.api("DELETE", "/messagegroups/h/messages/ref")
    a.api("PATCH", MESSAGE, {"description": "newer"})
    pull(a, b)
    report = pull(hub, b)
    assert "stale" in report.outcomes
    assert content(a.api) == content(b.api)


def test_a_group_with_others_resources_stays(a: ApiPeer, b: ApiPeer) -> None:
    """Deleting a group at its owner leaves what the target owns in it."""
    fill(a)
    pull(a, b)
    b.api("PUT", "/messagegroups/g/messages/own", {})
    a.api("DELETE", "/messagegroups/g")
    pull(a, b)
    assert ["own"] == list(b.api("GET", "/messagegroups/g/messages").json)


def test_a_group_made_for_its_resource_is_a_copy_too(a: ApiPeer, b: ApiPeer) -> None:
    """Where a resource comes before its group, the group is its owner's all the same, and follows later."""
    a.api("PUT", MESSAGE, {})
    pull(a, b)
    a.api("DELETE", "/messagegroups/g")
    pull(a, b)
    a.api("PUT", "/messagegroups/g", {"name": "again"})
    a.api("PUT", MESSAGE, {})
    entries = a.api("GET", f"/replicas/entities?xid={MESSAGE}").json["entries"]
    name = f"{catalog_of(a.api)} /"
    b.api("POST", "/replicas", {"link": {"name": name, "number": 1}, "entries": entries})
    assert (
        catalog_of(a.api)
        == b.api("GET", "/replicas/entities?xid=/messagegroups/g").json["entries"][0]["origin"]["catalog"]
    )
    assert {} == pull(a, b).problems
    assert content(a.api) == content(b.api)


def test_a_deleted_group_lingers_while_it_holds_resources(a: ApiPeer, b: ApiPeer) -> None:
    """A group whose deletion comes before that of its resources is told as deleted, and goes with the last of them."""
    fill(a)
    pull(a, b)
    a.api("DELETE", "/messagegroups/g")
    name = f"{catalog_of(a.api)} /"
    for xid, left in (("/messagegroups/g", 200), (MESSAGE, 200), ("/messagegroups/g/messages/n", 404)):
        entries = a.api("GET", f"/replicas/entities?xid={xid}").json["entries"]
        b.api("POST", "/replicas", {"link": {"name": name, "number": 1}, "entries": entries})
        assert left == b.api("GET", "/messagegroups/g").status
        assert b.api("GET", "/replicas/entities?xid=/messagegroups/g").json["entries"][0]["body"] is None


# ---- both of one name


def keep(source: ApiPeer, target: ApiPeer, scope: str = "/", *, compare: bool = False) -> ReplicationReport:
    """Replicate once, keeping both of what two origins have under one name."""
    return Replication(source, target, ReplicationScope.parse(scope, ()), keep_both=True).run(compare=compare)


def kept_xid(authority: str, xid: str = MESSAGE) -> str:
    """Where the second of one name is kept."""
    return f"{xid}~{hashlib.sha256(authority.encode()).hexdigest()[:8]}"


OF_B = kept_xid("http://b.test/messagecatalog")


def event_of(words: str) -> Json:
    """A message of one type, told apart by its description."""
    metadata = {"type": {"value": "m", "required": True}}
    return {"envelope": "CloudEvents/1.0", "description": words, "envelopemetadata": metadata}


@pytest.fixture
def hub(a: ApiPeer, b: ApiPeer, make_peer: MakePeer) -> ApiPeer:
    """A hub that has what two origins call by one name."""
    made = make_peer("hub")
    for peer, words in ((a, "of a"), (b, "of b")):
        peer.api("PUT", MESSAGE, event_of(words))
        assert {} == keep(peer, made).problems
    return made


def descriptions(peer: ApiPeer) -> Json:
    """The messages of the group by their ids."""
    found = peer.api("GET", "/messagegroups/g/messages").json
    return {id_: one.get("description") for id_, one in found.items()}


def test_both_of_one_name_are_kept(hub: ApiPeer) -> None:
    """Seed 004 2.2.1: authority tells definitions of two origins apart: each is found by its own URI."""
    assert {"m": "of a", OF_B.rpartition("/")[2]: "of b"} == descriptions(hub)
    assert hub.api("GET", f"{OF_B}/meta").json["readonly"] is True
    for origin in ("a", "b"):
        uri = f"http://{origin}.test/messagecatalog/g/messagedefinitions/m/versions/1"
        assert f"of {origin}" == hub.api("GET", f"/messagedefinition?uri={uri}").json["description"]
    path = f"/messagecatalog/g/messagedefinitions/{OF_B.rpartition('/')[2]}"
    shown = hub.api("GET", path)
    assert ("of b", OF_B.rpartition("/")[2]) == (shown.json["description"], shown.json["id"])
    assert f"<{uri}>;rel=canonical" == shown.headers["link"]


def test_who_has_the_name_outranks_the_kept_copy(hub: ApiPeer, a: ApiPeer) -> None:
    """In matching the first of two origins decides; where it has gone, the kept copy does."""
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "m"}
    headers = {"content-type": "application/cloudevents+json"}
    answer = hub.api("POST", "/match", event, headers).json
    assert ("matched", MESSAGE) == (answer["outcome"], answer["definition"])
    a.api("DELETE", MESSAGE)
    keep(a, hub)
    answer = hub.api("POST", "/match", event, headers).json
    assert ("matched", OF_B) == (answer["outcome"], answer["definition"])


@pytest.mark.parametrize("has_feed", [True, False])
@pytest.mark.parametrize("compare", [True, False])
def test_a_kept_copy_follows_its_origin(hub: ApiPeer, b: ApiPeer, has_feed: bool, compare: bool) -> None:
    """Updates and deletes reach the kept copy, with or without the option, and no second copy is made."""
    if not has_feed:
        hub, b = _without_feeds(hub, b)
    kept = OF_B if has_feed else kept_xid("http://b.test")
    for run in (keep, pull):
        assert {} == run(b, hub, compare=compare).problems
        b.api("PATCH", MESSAGE, {"description": run.__name__})
        assert {} == run(b, hub, compare=compare).problems
        assert {"m": "of a", kept.rpartition("/")[2]: run.__name__} == descriptions(hub)
    b.api("DELETE", MESSAGE)
    pull(b, hub, compare=compare)
    assert {"m": "of a"} == descriptions(hub)


def _without_feeds(hub: ApiPeer, b: ApiPeer) -> tuple[ApiPeer, ApiPeer]:
    """The same where the second origin is a plain xRegistry server."""
    b.api("DELETE", MESSAGE)
    pull(b, hub)
    b.api("PUT", MESSAGE, event_of("of b"))
    b.before = without_feed
    keep(b, hub)
    return hub, b


def test_without_the_option_a_conflict_is_reported(hub: ApiPeer, make_peer: MakePeer) -> None:
    """Nothing is kept under another name unless that was said."""
    third = make_peer("third")
    third.api("PUT", MESSAGE, event_of("of the third"))
    assert [MESSAGE] == list(pull(third, hub).problems)
    assert 2 == len(descriptions(hub))


def test_what_is_this_catalog_s_own_stays_first(a: ApiPeer, b: ApiPeer) -> None:
    """The local one keeps its name and can still be changed; the copy that comes is kept beside it."""
    a.api("PUT", MESSAGE, event_of("own"))
    b.api("PUT", MESSAGE, {**event_of("of b"), "authority": "urn:example:corp"})
    assert {} == keep(b, a).problems
    kept = kept_xid("urn:example:corp").rpartition("/")[2]
    assert {"m": "own", kept: "of b"} == descriptions(a)
    assert 200 == a.api("PATCH", MESSAGE, {"description": "changed"}).status
    assert "of b" == a.api("GET", "/messagedefinition?uri=urn:example:corp:g:m:1").json["description"]


def test_references_mean_the_kept_copy(a: ApiPeer, b: ApiPeer, make_peer: MakePeer) -> None:
    """What an origin says by reference it says of its own: bases, aliases and schemas, also in the log."""
    hub = make_peer("hub")
    for peer, type_ in ((a, "string"), (b, "integer")):
        schema = {"format": "JsonSchema/draft-07", "schema": {"type": type_}}
        assert 201 == peer.api("PUT", "/schemagroups/s/schemas/x$details", schema).status
        named = {"dataschemauri": "/schemagroups/s/schemas/x", "dataschemaformat": "JsonSchema/draft-07"}
        assert 201 == peer.api("PUT", MESSAGE, {**event_of("x"), **named}).status
        peer.api("PUT", f"/messagegroups/g/messages/derived-{type_}", {"basemessage": MESSAGE})
        peer.api("PUT", f"/messagegroups/g/messages/alias-{type_}", {"meta": {"xref": MESSAGE}})
        assert {} == keep(peer, hub).problems
    schema = kept_xid("http://b.test/messagecatalog", "/schemagroups/s/schemas/x")
    assert "integer" == hub.api("GET", schema).json["type"]
    for _ in range(2):
        assert OF_B == hub.api("GET", "/messagegroups/g/messages/derived-integer").json["basemessage"]
        assert OF_B == hub.api("GET", "/messagegroups/g/messages/alias-integer/meta").json["xref"]
        assert schema == hub.api("GET", OF_B).json["dataschemauri"]
        assert MESSAGE == hub.api("GET", "/messagegroups/g/messages/derived-string").json["basemessage"]
        logged = hub.api("GET", f"/replicas/entities?xid={OF_B}").json["entries"][0]["log"]["snapshots"]
        assert [schema] == [said["dataschemauri"] for _, _, said in logged]
        assert {"same"} == keep(b, hub, compare=True).outcomes.keys()


def test_a_kept_copy_is_handed_on(hub: ApiPeer, b: ApiPeer, make_peer: MakePeer) -> None:
    """A further catalog has both from the hub, and no third where it also reads from the origin; that knows its own."""
    further = make_peer("further")
    keep(hub, further)
    b.api("PATCH", MESSAGE, {"description": "newer"})
    keep(b, further)
    assert {"m": "of a", OF_B.rpartition("/")[2]: "newer"} == descriptions(further)
    assert {"m": "newer"} == {id_: words for id_, words in descriptions(b).items() if words != "of a"}
    assert {"ours"} <= pull(hub, b, compare=True).outcomes.keys()


# ---- scope and names


def test_a_scope(a: ApiPeer, b: ApiPeer) -> None:
    """Only the scope travels; what leaves it elsewhere is not touched."""
    fill(a)
    pull(a, b, "/messagegroups/g")
    assert {"/messagegroups/g", MESSAGE, "/messagegroups/g/messages/n"} == content(b.api).keys()
    pull(a, b, "/schemagroups/s/schemas/raw")
    assert {"/schemagroups/s", "/schemagroups/s/schemas/raw"} <= content(b.api).keys()
    a.api("DELETE", "/schemagroups/s/schemas/raw")
    pull(a, b, "/schemagroups/s/schemas/raw")
    assert "/schemagroups/s/schemas/raw" not in content(b.api)


def test_groups_by_another_name(a: ApiPeer, b: ApiPeer) -> None:
    """A group gets its new name, references to it follow, and so do later changes and deletions."""
    fill(a)
    pull(a, b, "/", "/messagegroups/g=/messagegroups/from-a")
    mapped = "/messagegroups/from-a/messages/"
    assert f"{mapped}m" == b.api("GET", f"{mapped}n").json["basemessage"]
    assert f"{mapped}m" == b.api("GET", "/messagegroups/h/messages/ref/meta").json["xref"]
    assert 404 == b.api("GET", "/messagegroups/g").status
    a.api("PATCH", MESSAGE, {"description": "new"})
    a.api("DELETE", "/messagegroups/g/messages/n")
    pull(a, b, "/", "/messagegroups/g=/messagegroups/from-a")
    assert "new" == b.api("GET", f"{mapped}m").json["description"]
    assert 404 == b.api("GET", f"{mapped}n").status


def test_a_name_that_the_source_has_too(a: ApiPeer, b: ApiPeer) -> None:
    """A group cannot take the name of another that is copied: that is a conflict each time, and nothing is lost."""
    for group in ("g1", "g2"):
        a.api("PUT", f"/messagegroups/{group}", {"name": group})
        for number in range(3):
            a.api("PUT", f"/messagegroups/{group}/messages/m{number}", {"description": group})
        a.api("PUT", f"/messagegroups/{group}/messages/only-{group}", {})
    for compare in (False, False, True):
        report = pull(a, b, "/", "g1=g2", compare=compare)
        assert {"conflict"} == {problem.code for problem in report.problems.values()}
        assert "taken here by the copy of /messagegroups/g1" in report.problems["/messagegroups/g2"].message
        assert {"g1"} == {
            one.get("description", "g1") for one in b.api("GET", "/messagegroups/g2/messages").json.values()
        }
        assert "/messagegroups/g2/messages/only-g2" not in content(b.api)
    assert 0 == report.changed
    a.api("DELETE", "/messagegroups/g2")
    assert ({}, 200) == (pull(a, b, "/", "g1=g2").problems, b.api("GET", "/messagegroups/g2").status)
    a.api("DELETE", "/messagegroups/g1")
    pull(a, b, "/", "g1=g2")
    assert {} == content(b.api)


def test_two_replications_to_one_name(a: ApiPeer, b: ApiPeer) -> None:
    """Neither can another replication of the same source; what it does not have there it does not delete."""
    for group in ("g1", "g2"):
        a.api("PUT", f"/messagegroups/{group}/messages/m", {"description": group})
    pull(a, b, "/messagegroups/g1", "g1=x")
    report = pull(a, b, "/messagegroups/g2", "g2=x")
    assert {"/messagegroups/g2", "/messagegroups/g2/messages/m"} == report.problems.keys()
    assert {"/messagegroups/x", "/messagegroups/x/messages/m"} == {one.path for one in report.problems.values()}
    a.api("DELETE", "/messagegroups/g2")
    assert {} == pull(a, b, "/messagegroups/g2", "g2=x").problems
    assert "g1" == b.api("GET", "/messagegroups/x/messages/m").json["description"]


@pytest.mark.parametrize(
    "scope", ["/messagegroups/nobody", "/nothings", "/messagegroups/g/nothings", "/messagegroups/g/messages/nobody"]
)
@pytest.mark.parametrize("has_feed", [True, False])
def test_a_scope_that_is_not_there(a: ApiPeer, b: ApiPeer, scope: str, has_feed: bool) -> None:
    """A scope that names nothing is told each time; one that names something empty is not."""
    fill(a)
    a.before = a.before if has_feed else without_feed
    for _ in range(2):
        report = pull(a, b, scope)
        known = report.outcomes.get("written", 0) + report.outcomes.get("same", 0)
        assert f"has no {scope}" in report.failure or (known and scope.startswith("/messagegroups/g/"))
    a.api("PUT", "/messagegroups/empty", {})
    for there in ("/messagegroups/empty/messages", "/messagegroups/g", "/schemagroups/s/schemas/raw"):
        for _ in range(2):
            assert "" == pull(a, b, there).failure


# ---- interruptions


class Interrupted(Exception):
    """The process ends here."""


def interrupt(peer: ApiPeer, number: int) -> None:
    """Let the request of this number, and all later ones, never be made."""
    start = peer.requests

    def stop(method: str, path: str) -> None:
        if peer.requests - start >= number:
            raise Interrupted

    peer.before = stop


@pytest.mark.parametrize("side", ["source", "target"])
def test_interrupted_anywhere(side: str, make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended before any of its requests, a replication goes on with the next run and ends equal."""
    monkeypatch.setattr("signalbook.replication.target._MOST_ENTRIES", 2)
    for number in range(1, 12):
        source, target = make_peer("a"), make_peer("b")
        fill(source)
        for change in (lambda: None, lambda: source.api("DELETE", "/messagegroups/g/messages/n")):
            change()
            interrupt(source if side == "source" else target, number)
            with suppress(Interrupted):
                pull(source, target, compare=True)
            source.before = target.before = lambda method, path: None
        pull(source, target)
        assert content(source.api) == content(target.api), number


def test_the_feed_was_trimmed(a: ApiPeer, b: ApiPeer) -> None:
    """Where the feed does not go back far enough everything is compared, and deletions are found."""
    fill(a)
    pull(a, b)
    a.api("DELETE", "/messagegroups/g/messages/n")
    a.api("PATCH", MESSAGE, {"description": "new"})
    trim(a.api.service.store, "9999-01-01T00:00:00Z", expand)
    report = pull(a, b)
    assert (True, 1) == (report.compared, report.outcomes["deleted"])
    assert content(a.api) == content(b.api)


def test_another_catalog_at_the_address(a: ApiPeer, b: ApiPeer, make_peer: MakePeer) -> None:
    """A cursor is never used at another catalog: its content is another link's, and nothing is deleted for it."""
    fill(a)
    pull(a, b)
    other = make_peer("a")
    other.api("PUT", "/messagegroups/other", {})
    assert {} == pull(other, b).problems
    assert content(a.api).keys() | {"/messagegroups/other"} == content(b.api).keys()


# ---- bad sources


@pytest.mark.parametrize(
    "value",
    [None, [], {"entries": 5}, {"entries": [5]}, {"entries": [{"xid": 5}]}, {"entries": [], "next": "x"}],
)
def test_a_source_that_talks_nonsense(a: ApiPeer, b: ApiPeer, value: Any) -> None:
    """An answer of another form ends the run with a clear error; the target stays as it was."""
    fill(a)
    a.after = lambda path, real: value if path.startswith("/replicas/entities") else real
    with pytest.raises(RemoteError, match=r"a\.test"):
        pull(a, b)
    assert {} == content(b.api)


def test_definitions_that_break_our_rules(a: ApiPeer, b: ApiPeer) -> None:
    """What the target's model or rules refuse is reported one by one; the rest comes."""
    fill(a)

    def spoil(path: str, value: Any) -> Any:
        for entry in value.get("entries", []) if isinstance(value, dict) else []:
            if entry["xid"] == MESSAGE:
                entry["body"]["versions"]["1"]["envelopemetadata"] = 5
            if entry["xid"] == "/schemagroups/s":
                entry["xid"] = "/unknowns/s"
        return value

    a.after = spoil
    report = pull(a, b)
    assert {MESSAGE, "/unknowns/s"} == report.problems.keys()
    assert {"refused"} == {problem.code for problem in report.problems.values()}
    assert 404 == b.api("GET", MESSAGE).status
    assert 200 == b.api("GET", "/messagegroups/g/messages/n").status


def test_refusals_are_counted_once(a: ApiPeer, b: ApiPeer) -> None:
    """What is refused is tried twice and told once; a copy that was there before stays as it was."""
    fill(a)
    pull(a, b)

    def spoil(path: str, value: Any) -> Any:
        for entry in value.get("entries", []) if isinstance(value, dict) else []:
            if entry["xid"].startswith("/messagegroups/g/"):
                entry["body"]["versions"]["1"]["labels"] = 5
        return value

    a.after = spoil
    for compare in (True, False):
        report = pull(a, b, compare=compare)
        assert (2, 2) == (report.outcomes["refused"], len(report.problems))
    assert "x" == b.api("GET", MESSAGE).json["description"]
    a.after = lambda path, value: value
    assert {} == pull(a, b).problems


@pytest.mark.parametrize(
    ("spoilt", "words"),
    [
        ("a\0b", "NUL"),
        ("\ud800", "cannot be sent"),
        (float("inf"), "cannot be sent"),
    ],
    ids=["a NUL", "half a character", "a number"],
)
def test_a_text_that_cannot_be_kept(a: ApiPeer, b: ApiPeer, spoilt: Any, words: str) -> None:
    """It is reported for its entity, and the rest comes."""
    fill(a)
    a.before = without_feed

    def spoil(path: str, value: Any) -> Any:
        if path.startswith("/messagegroups/g/messages?"):
            value["m"]["versions"]["1"]["description"] = spoilt
        return value

    a.after = spoil
    for _ in range(2):
        report = pull(a, b)
        assert [(MESSAGE, "refused")] == [(xid, one.code) for xid, one in report.problems.items()]
        assert words in report.problems[MESSAGE].message
    assert content(a.api).keys() - {MESSAGE} == content(b.api).keys()
    a.after = lambda path, value: value
    pull(a, b)
    assert content(a.api, logs=False) == content(b.api, logs=False)


@pytest.mark.parametrize("shown", [5, {"1": 5}, "x"])
def test_a_resource_that_is_none(a: ApiPeer, b: ApiPeer, shown: Any) -> None:
    """So is one whose versions are something else."""
    fill(a)
    a.before = without_feed

    def spoil(path: str, value: Any) -> Any:
        if path.startswith("/messagegroups/g/messages?"):
            value["m"]["versions"] = shown
        return value

    a.after = spoil
    assert {MESSAGE: "refused"} == {xid: one.code for xid, one in pull(a, b).problems.items()}


def test_what_goes_while_it_is_read(a: ApiPeer, b: ApiPeer) -> None:
    """A group or a resource that is deleted after it was listed is not there, and no reason to end."""
    fill(a)

    def delete(method: str, path: str) -> None:
        without_feed(method, path)
        if path.startswith("/messagegroups/g/messages?"):
            a.api("DELETE", "/messagegroups/g")
        if path.startswith("/schemagroups/s/schemas/raw$details"):
            a.api("DELETE", "/schemagroups/s/schemas/raw")

    a.before = delete
    assert {} == pull(a, b).problems
    pull(a, b)
    a.before = without_feed
    assert content(a.api, logs=False) == content(b.api, logs=False)


# ---- any xRegistry server


@pytest.fixture
def plain(a: ApiPeer) -> ApiPeer:
    """A catalog that knows xRegistry alone."""
    fill(a)
    a.before = without_feed
    return a


def test_a_server_without_a_feed(plain: ApiPeer, b: ApiPeer) -> None:
    """It is read through once, and afterwards only what shows other epochs."""
    assert {} == pull(plain, b).problems
    plain.before = lambda method, path: None
    assert content(plain.api, logs=False) == content(b.api, logs=False)
    plain.before = without_feed
    assert 0 == pull(plain, b).changed
    plain.api("PATCH", MESSAGE, {"description": "new"})
    plain.api("DELETE", "/messagegroups/g/messages/n")
    plain.api("POST", "/schemagroups/s/schemas/x$details", {**SCHEMA, "versionid": "7", "ancestorid": "2"})
    assert 3 == pull(plain, b).changed
    plain.before = lambda method, path: None
    assert content(plain.api, logs=False) == content(b.api, logs=False)


def test_a_server_that_lies_about_epochs(plain: ApiPeer, b: ApiPeer) -> None:
    """A change without a new epoch is not seen, unless everything is to be compared."""
    pull(plain, b)
    plain.api("PATCH", MESSAGE, {"description": "new"})

    def lie(path: str, value: Any) -> Any:
        if "/messages?" in path:
            for message in value.values():
                for version in message.get("versions", {}).values():
                    version["epoch"] = 1
        return value

    plain.after = lie
    assert 0 == pull(plain, b).changed
    assert 1 == pull(plain, b, compare=True).changed
    assert "new" == b.api("GET", MESSAGE).json["description"]


def test_a_server_that_vanishes(plain: ApiPeer, b: ApiPeer) -> None:
    """Where the source ends in the middle nothing is deleted for being unseen."""
    pull(plain, b)
    before = content(b.api)

    def vanish(method: str, path: str) -> None:
        without_feed(method, path)
        if path.startswith("/schemagroups"):
            raise RemoteError("nothing answers")

    plain.before = vanish
    with pytest.raises(RemoteError):
        pull(plain, b)
    assert before == content(b.api)


def test_pages_in_a_circle_and_elsewhere(plain: ApiPeer, b: ApiPeer) -> None:
    """A source whose links lead in a circle or to another host is left."""
    for link, words in (("http://a.test/messagegroups", "circle"), ("http://evil.test/x", "not followed")):
        api = plain.api

        class Linked(ApiPeer):
            def answer(self, call: Call) -> RegistryReply:
                reply = super().answer(call)
                return replace(reply, headers={**reply.headers, "link": f"<{link}>;rel=next"})

        peer = Linked(api, "http://a.test")
        peer.before = without_feed
        with pytest.raises(RemoteError, match=words):
            pull(peer, b)


# ---- following


def test_following_waits_for_a_source_that_is_not_up_yet(a: ApiPeer, b: ApiPeer) -> None:
    """A source or target that does not answer when a following begins is asked again; then it is copied."""
    a.api("PUT", MESSAGE, {})
    for peer in (a, b):
        peer.before = nobody_answers
        reports = Replication(a, b, ReplicationScope()).follow(1, pause=lambda _: None)
        assert ["nothing answers"] * 2 == [next(reports).to_dict()["failure"] for _ in range(2)]
        peer.before = lambda method, path: None
        assert "failure" not in next(reports).to_dict()
    assert 200 == b.api("GET", MESSAGE).status


def test_following_ends_where_it_is_refused_from_the_start(a: ApiPeer, b: ApiPeer) -> None:
    """A source that refuses the very first request would refuse the next: that is an error."""
    a.before = refused
    with pytest.raises(RemoteError, match="its token"):
        next(Replication(a, b, ReplicationScope()).follow(1, pause=lambda _: None))


def nobody_answers(method: str, path: str) -> None:
    """Let nothing answer."""
    raise RemoteError("nothing answers")


def refused(method: str, path: str) -> None:
    """Let every request be refused."""
    raise RemoteError("its token may not do that", status=403)


def test_the_target_has_to_be_ours(a: ApiPeer, b: ApiPeer) -> None:
    """A target without `/replicas` is refused before anything is written."""
    b.before = without_feed
    with pytest.raises(RemoteError, match="has to be"):
        pull(a, b)


@pytest.mark.parametrize("authority", ["not a uri", "acme", "https://x y", "https:", "1:x", "urn:\u00e4"])
def test_no_authority(a: ApiPeer, b: ApiPeer, authority: str) -> None:
    """What is no URI cannot be an authority (seed 004, 2.2.4)."""
    with pytest.raises(UsageError, match="not an authority"):
        Replication(a, b, ReplicationScope(), authority=authority)


def test_a_target_that_is_read_only(a: ApiPeer, b: ApiPeer) -> None:
    """It says so itself; the token is not to blame."""
    detail = b'{"type": "x#forbidden", "title": "Not allowed", "detail": "This server is read-only."}'
    assert "This server is read-only." in str(refusal(RegistryReply("http://b.test", 403, {}, detail), "/replicas"))
    assert "token" in str(refusal(RegistryReply("http://b.test", 403, {}, b"{}"), "/replicas"))


def test_who_it_is(a: ApiPeer, b: ApiPeer) -> None:
    """`authority` names the source where its address does not."""
    fill(a)
    Replication(a, b, ReplicationScope(), authority="urn:example:a").run()
    assert "urn:example:a" == b.api("GET", MESSAGE).json["authority"]
    assert catalog_of(a.api) != catalog_of(b.api)
