"""Replication with catalogs that speak the 0.1 API alone: seed 004, sections 5.3, 5.4 and 5.5, over real sockets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from signalbook.client import RemoteError, ReplyBounds, connect
from signalbook.errors import UsageError
from signalbook.replication.catalog01 import Catalog01Source, definition_path
from signalbook.replication.replicate import Replication
from signalbook.replication.scope import ReplicationScope
from signalbook.replication.target import ReplicationReport
from tests.patience import LONG, until
from tests.replication.catalog01_server import CatalogServer
from tests.replication.peers import ApiPeer

Json = dict[str, Any]
MakeCatalog = Callable[..., CatalogServer]
GROUP = "/messagegroups/orders"
MESSAGE = f"{GROUP}/messages/order.placed"


@pytest.fixture
def make_catalog() -> Iterator[MakeCatalog]:
    """Make a catalog that speaks 0.1 alone."""
    made: list[CatalogServer] = []

    def make(**options: Any) -> CatalogServer:
        made.append(CatalogServer(**options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def catalog(make_catalog: MakeCatalog) -> CatalogServer:
    """A catalog of 0.1 with two groups, and two versions of a definition."""
    return filled(make_catalog())


def definition(type_: str, subject: str = "", **more: Any) -> Json:
    """A definition version of a CloudEvent, as it is posted."""
    attributes = {"type": {"value": type_, "required": True}, **({"subject": {"value": subject}} if subject else {})}
    return {"id": type_, "specversion": "0.1", "definition": {"attributes": attributes}, **more}


def filled(catalog: CatalogServer) -> CatalogServer:
    """Two groups, and two versions of a definition."""
    send(
        catalog,
        "PUT",
        "/orders",
        {"specversion": "0.1", "format": "CloudEvents", "description": "Orders.", "tags": "a,b"},
    )
    send(catalog, "PUT", "/mail", {"specversion": "0.1", "format": "AMQP"})
    post(catalog, definition("order.placed"))
    post(catalog, definition("order.placed", "/{id}", description="An order."))
    post(catalog, definition("order.gone", authority="urn:acme", relatedto="order.placed", relation="followup"))
    amqp = {"properties": {"subject": {"value": "hello", "required": True}}}
    post(catalog, {"id": "hello", "specversion": "0.1", "format": "AMQP", "definition": amqp}, "mail")
    return catalog


def send(catalog: CatalogServer, method: str, path: str, body: Any = None) -> httpx.Response:
    """One request to a catalog of 0.1, which it must not refuse."""
    headers = {"authorization": f"Bearer {catalog.token}"} if catalog.token else {}
    answer = httpx.request(method, f"{catalog.address}/messagecatalog{path}", json=body, headers=headers, timeout=LONG)
    assert answer.is_success, answer.text
    return answer


def post(catalog: CatalogServer, body: Json, group: str = "orders") -> None:
    """Add a version of a definition."""
    send(catalog, "POST", f"/{group}/messagedefinitions", body)


def pull(
    catalog: CatalogServer, target: ApiPeer, scope: str = "/", bounds: ReplyBounds | None = None, **options: Any
) -> ReplicationReport:
    """Replicate once from a catalog of 0.1."""
    peer = connect(catalog.address, catalog.token, bounds=bounds)
    try:
        return Replication(peer, target, ReplicationScope.parse(scope, ()), **options).run()
    finally:
        peer.close()


def shown(target: ApiPeer, group: str, id_: str) -> list[Json]:
    """The versions of a definition at a target, as its 0.1 API shows them."""
    found: list[Json] = target.api("GET", f"/messagecatalog/{group}/messagedefinitions/{id_}/versions").json
    return found


# ---- pulling


@pytest.mark.parametrize("options", [{}, {"style": "ids"}, {"page": 1}, {"style": "ids", "page": 1}, {"times": False}])
def test_all_of_a_catalog(make_catalog: MakeCatalog, b: ApiPeer, options: Json) -> None:
    """5.4: a target traverses the source by the catalog API; numbers, times and definitions are those of the source."""
    catalog = filled(make_catalog(**options))
    report = pull(catalog, b)
    assert ({}, {"written": 5}) == (report.problems, dict(report.outcomes))
    for group, id_ in (("orders", "order.placed"), ("orders", "order.gone"), ("mail", "hello")):
        there = [catalog._version(group, id_, number) for number in catalog.definitions[group][id_]["versions"]]
        here = shown(b, group, id_)
        assert [one["version"] for one in there] == [one["version"] for one in here]
        implied = {"authority": f"{catalog.address}/messagecatalog"}
        given = [{} if catalog.times else {"createdtimeutc": one["createdtimeutc"]} for one in here]
        assert here == [{**implied, **one, **more} for one, more in zip(there, given, strict=True)]
    described = b.api("GET", "/messagecatalog/orders").json
    assert ("Orders.", "a,b", "CloudEvents") == tuple(described[name] for name in ("description", "tags", "format"))
    assert b.api("GET", f"{MESSAGE}/meta").json["readonly"] is True
    assert 0 == pull(catalog, b).changed


def test_a_group_s_document_goes_from_one_to_the_other(catalog: CatalogServer, a: ApiPeer) -> None:
    """2.1, 2.2: a group with all definitions and versions is one document, which each catalog takes of the other."""
    document = send(catalog, "GET", "/orders").json()
    assert [[1], [1, 2]] == [[one["version"] for one in held["versions"]] for held in document["definitions"]]
    assert not any("specversion" in one for one in document["definitions"])
    made = a.api("PUT", "/messagecatalog/orders", document)
    assert (201, []) == (made.status, [*_unlike(document, made.json)])
    again = send(catalog, "PUT", "/copies", {**made.json, "id": "copies"}).json()
    assert [] == [*_unlike({**document, "id": "copies"}, again)]
    assert 200 == a.api("PUT", "/messagecatalog/orders", again | {"id": "orders"}).status
    assert [1, 2] == [one["version"] for one in shown(a, "orders", "order.placed")]


def _unlike(one: Any, other: Any, at: str = "") -> Iterator[str]:
    """Where two documents differ, but for the times that a catalog gives."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in (one.keys() | other.keys()) - {"createdtimeutc", "updatedtimeutc"}:
            yield from _unlike(one.get(name), other.get(name), f"{at}/{name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (member, others) in enumerate(zip(one, other, strict=True)):
            yield from _unlike(member, others, f"{at}/{place}")
    elif one != other:
        yield f"{at}: {one!r} and {other!r}"


def test_authority_is_stated(catalog: CatalogServer, make_catalog: MakeCatalog, b: ApiPeer) -> None:
    """2.2.4: an imported definition has the implied authority; a canonical link says which, whatever the address."""
    pull(catalog, b)
    assert f"{catalog.address}/messagecatalog" == shown(b, "orders", "order.placed")[0]["authority"]
    assert "urn:acme" == shown(b, "orders", "order.gone")[0]["authority"]
    uri = f"{catalog.address}/messagecatalog/orders/messagedefinitions/order.placed/versions/1"
    assert 1 == b.api("GET", f"/messagedefinition?uri={uri}").json["version"]
    other = make_catalog(canonical="https://public.example/catalog")
    send(other, "PUT", "/x", {"specversion": "0.1", "format": "CloudEvents"})
    post(other, definition("t"), "x")
    pull(other, b)
    assert "https://public.example/catalog" == shown(b, "x", "t")[0]["authority"]


def test_differences_travel(catalog: CatalogServer, b: ApiPeer) -> None:
    """5.4: a periodic pull applies differences: versions, definitions and groups that came or went."""
    pull(catalog, b)
    post(catalog, definition("order.placed", "/{id}/new"))
    post(catalog, definition("order.new"))
    send(catalog, "DELETE", "/orders/messagedefinitions/order.gone")
    send(catalog, "DELETE", "/orders/messagedefinitions/order.placed/versions/1")
    send(catalog, "DELETE", "/mail")
    report = pull(catalog, b)
    assert ({}, {"written": 2, "deleted": 3, "same": 1}) == (report.problems, dict(report.outcomes))
    assert [2, 3] == [one["version"] for one in shown(b, "orders", "order.placed")]
    assert 404 == b.api("GET", "/messagegroups/mail").status
    assert ["order.new", "order.placed"] == sorted(b.api("GET", f"{GROUP}/messages").json)


@pytest.mark.parametrize(
    ("scope", "held"),
    [
        (GROUP, ["order.gone", "order.placed"]),
        ("/messagecatalog/orders", ["order.gone", "order.placed"]),
        (MESSAGE, ["order.placed"]),
        ("/messagecatalog/orders/messagedefinitions/order.placed", ["order.placed"]),
    ],
)
def test_scopes(catalog: CatalogServer, b: ApiPeer, scope: str, held: list[str]) -> None:
    """5.4: the full catalog, one group, or one definition, written as either API does."""
    assert {} == pull(catalog, b, scope).problems
    assert held == sorted(b.api("GET", f"{GROUP}/messages").json)
    assert 404 == b.api("GET", "/messagegroups/mail").status


@pytest.mark.parametrize("scope", ["/messagegroups/nothing", "/messagegroups/no/messages/x", "/schemagroups/x"])
def test_a_scope_that_is_not_there(catalog: CatalogServer, b: ApiPeer, scope: str) -> None:
    """It is said."""
    assert "has no" in pull(catalog, b, scope).failure


def test_a_long_log_comes_in_pages(make_catalog: MakeCatalog, b: ApiPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many versions there are, all come, and a change brings the newest."""
    monkeypatch.setattr("signalbook.replication.catalog01._MOST_SNAPSHOTS", 3)
    catalog = make_catalog()
    send(catalog, "PUT", "/orders", {"specversion": "0.1", "format": "CloudEvents"})
    for number in range(1, 9):
        post(catalog, definition("order.placed", f"/{number}"))
        if number in (7, 8):
            assert {} == pull(catalog, b).problems
    assert list(range(1, 9)) == [one["version"] for one in shown(b, "orders", "order.placed")]


def test_what_is_told_by_an_option(a: ApiPeer, catalog: CatalogServer, b: ApiPeer) -> None:
    """Which API a source speaks may be said; a Signalbook can be read by its 0.1 API too."""
    a.api("PUT", "/messagecatalog/g", {"specversion": "0.1", "format": "CloudEvents"})
    a.api("POST", "/messagecatalog/g/messagedefinitions", definition("t"))
    assert {} == Replication(a, b, ReplicationScope(), apis=("0.1", "auto")).run().problems
    assert "http://a.test/messagecatalog" == shown(b, "g", "t")[0]["authority"]
    with pytest.raises(RemoteError):
        pull(catalog, b, apis=("xregistry", "auto"))


# ---- pushing


def push(source: ApiPeer, catalog: CatalogServer, scope: str = "/", *maps: str, **options: Any) -> ReplicationReport:
    """Replicate once to a catalog of 0.1."""
    peer = connect(catalog.address, catalog.token)
    try:
        return Replication(source, peer, ReplicationScope.parse(scope, maps), **options).run()
    finally:
        peer.close()


def write(source: ApiPeer, group: str, body: Json) -> None:
    """Add a version of a definition by the 0.1 API of a Signalbook."""
    assert source.api("POST", f"/messagecatalog/{group}/messagedefinitions", body).status in (200, 201)


@pytest.fixture
def full(a: ApiPeer) -> ApiPeer:
    """A Signalbook with two groups of definitions, and a schema that 0.1 has no place for."""
    group = {"specversion": "0.1", "format": "CloudEvents", "description": "Orders.", "tags": "x,y"}
    a.api("PUT", "/messagecatalog/orders", group)
    a.api("PUT", "/messagecatalog/mail", {"specversion": "0.1", "format": "AMQP"})
    write(a, "orders", definition("order.placed"))
    write(a, "orders", definition("order.placed", "/{id}", description="An order."))
    write(a, "orders", definition("order.placed", "/{id}", description="A placed order."))
    for id_ in ("a.reply", "b.reply"):
        write(a, "orders", definition(id_, relatedto="order.placed", relation="reply", authority="urn:acme"))
    write(a, "mail", {"id": "m", "definition": {"properties": {"subject": {"value": "hello", "required": True}}}})
    a.api("PUT", "/schemagroups/s/schemas/x$details", {"format": "JsonSchema/draft-07", "schema": {}})
    return a


def numbers(catalog: CatalogServer, id_: str = "order.placed", group: str = "orders") -> list[int]:
    """The versions of a definition there."""
    return sorted(catalog.definitions[group][id_]["versions"])


@pytest.mark.parametrize("options", [{}, {"style": "ids", "page": 1}])
def test_all_is_pushed(full: ApiPeer, make_catalog: MakeCatalog, options: Json) -> None:
    """5.3: a catalog forwards its state by the catalog API; a further run finds nothing to do."""
    catalog = make_catalog(**options)
    report = push(full, catalog)
    assert ({}, []) == (report.problems, report.notes)
    assert {"written": 6, "unsupported": 2} == dict(report.outcomes)
    assert ("Orders.", "x,y") == (catalog.groups["orders"]["description"], catalog.groups["orders"]["tags"])
    assert [1, 2, 3] == numbers(catalog)
    for one in shown(full, "orders", "order.placed"):
        assert catalog._version("orders", "order.placed", one["version"])["definition"] == one["definition"]
    latest = catalog._latest("orders", "order.placed")
    assert ("A placed order.", "http://a.test/messagecatalog") == (latest["description"], latest["authority"])
    assert "urn:acme" == catalog._latest("orders", "a.reply")["authority"]
    uri = "http://a.test/messagecatalog/orders/messagedefinitions/order.placed/versions/2"
    assert 2 == httpx.get(f"{catalog.address}/messagedefinition", params={"uri": uri}, timeout=LONG).json()["version"]
    posted = len(catalog.posted)
    assert 0 == push(full, catalog).changed
    assert posted == len(catalog.posted)


def test_changes_and_deletions_are_pushed(full: ApiPeer, make_catalog: MakeCatalog) -> None:
    """New versions are posted, and what was deleted is deleted: versions, definitions of any authority, and groups."""
    catalog = make_catalog()
    full.api("PUT", "/messagecatalog/empty", {"specversion": "0.1", "format": "NATS"})
    push(full, catalog)
    write(full, "orders", definition("order.placed", "/{id}/new"))
    full.api("DELETE", "/messagecatalog/orders/messagedefinitions/order.placed/versions/1")
    full.api("DELETE", "/messagecatalog/orders/messagedefinitions/a.reply")
    full.api("DELETE", "/messagecatalog/mail")
    full.api("DELETE", "/messagecatalog/empty")
    full.api("PATCH", "/messagegroups/orders", {"description": "All orders."})
    report = push(full, catalog)
    assert ({}, []) == (report.problems, report.notes)
    assert ({"orders"}, {"order.placed"}) == (catalog.groups.keys(), catalog.definitions["orders"].keys() - {"b.reply"})
    assert [2, 3, 4] == numbers(catalog)
    assert 0 == push(full, catalog).changed


def test_what_went_with_its_authority_is_told(full: ApiPeer, make_catalog: MakeCatalog) -> None:
    """A definition of an authority that the source states no more may be another's: it stays, unless that is said."""
    catalog = make_catalog()
    push(full, catalog)
    for id_ in ("a.reply", "b.reply"):
        full.api("DELETE", f"/messagecatalog/orders/messagedefinitions/{id_}")
    noted = {xid for xid, words in push(full, catalog).notes if "its authority is urn:acme" in words}
    assert {f"{GROUP}/messages/{id_}" for id_ in ("a.reply", "b.reply")} == noted
    assert 3 == len(catalog.definitions["orders"])
    report = push(full, catalog, authority="urn:acme")
    assert 2 == report.outcomes["deleted"]


def test_a_follower_deletes_what_it_pushed(full: ApiPeer, make_catalog: MakeCatalog) -> None:
    """5.3: all changes are forwarded: what the same process found at the source before goes, whoever has authority."""
    catalog = make_catalog()
    with closing(connect(catalog.address, catalog.token)) as peer:
        replication = Replication(full, peer, ReplicationScope.parse("/", ()))
        replication.run()
        for id_ in ("a.reply", "b.reply"):
            full.api("DELETE", f"/messagecatalog/orders/messagedefinitions/{id_}")
        catalog.definitions["orders"]["b.reply"]["common"]["authority"] = "urn:other"
        report = replication.run()
        assert (1, []) == (report.outcomes["deleted"], [xid for xid, _ in report.notes if xid.endswith("a.reply")])
        assert {"order.placed", "b.reply"} == catalog.definitions["orders"].keys()
        assert 0 == replication.run().changed


def test_numbers_that_differ_are_told(full: ApiPeer, make_catalog: MakeCatalog) -> None:
    """The catalog assigns numbers: where one is another than the source's, the report says which."""
    full.api("DELETE", "/messagecatalog/orders/messagedefinitions/order.placed/versions/1")
    catalog = make_catalog()
    report = push(full, catalog)
    words = [f"the source's version {number} is version {number - 1} at the target" for number in (2, 3)]
    assert [(MESSAGE, one) for one in words] == report.notes
    assert ({}, [1, 2]) == (report.problems, numbers(catalog))
    assert (0, []) == (push(full, catalog).changed, push(full, catalog).notes)


def test_versions_that_the_api_cannot_delete(full: ApiPeer, make_catalog: MakeCatalog) -> None:
    """Section 4.4 has no DELETE: where a catalog offers none, a version stays, which is told; what holds is latest."""
    catalog = make_catalog(deletes_versions=False)
    push(full, catalog)
    full.api("DELETE", "/messagecatalog/orders/messagedefinitions/order.placed/versions/3")
    report = push(full, catalog)
    assert {} == report.problems
    assert (MESSAGE, "its version 3 was deleted at the source and stays at the target") in report.notes
    assert "An order." == catalog._latest("orders", "order.placed")["description"]


def test_what_the_target_retired_is_not_posted_again(full: ApiPeer, make_catalog: MakeCatalog) -> None:
    """2.2: a catalog may remove outdated versions; what came before the latest is not brought back as a newer one."""
    catalog = make_catalog()
    push(full, catalog)
    del catalog.definitions["orders"]["order.placed"]["versions"][1]
    assert 0 == push(full, catalog).changed
    assert [2, 3] == numbers(catalog)


@pytest.mark.parametrize("authority", [None, "urn:other"])
def test_what_is_another_s_is_not_touched(full: ApiPeer, make_catalog: MakeCatalog, authority: str | None) -> None:
    """A definition of the catalog's own, or of another authority, stays: a conflict is reported; nor is it deleted."""
    catalog = make_catalog()
    send(catalog, "PUT", "/orders", {"specversion": "0.1", "format": "CloudEvents", "description": "Its own."})
    more = {"authority": authority} if authority else {}
    for id_ in ("order.placed", "of.its.own"):
        post(catalog, definition(id_, "/x", **more))
    report = push(full, catalog)
    assert {MESSAGE: "conflict", GROUP: "conflict"} == {xid: one.code for xid, one in report.problems.items()}
    assert (authority or "the catalog itself") in report.problems[MESSAGE].message
    assert ([1], "Its own.") == (numbers(catalog), catalog.groups["orders"]["description"])
    full.api("DELETE", "/messagecatalog/orders")
    push(full, catalog)
    assert {"order.placed", "of.its.own"} <= catalog.definitions["orders"].keys()


def test_scopes_and_names_of_a_push(full: ApiPeer, make_catalog: MakeCatalog) -> None:
    """5.3: one group or one definition, under another name of the group; what is outside is not deleted."""
    catalog = make_catalog()
    push(full, catalog, "/messagegroups/mail")
    push(full, catalog, MESSAGE, "orders=from-a")
    assert {"mail", "from-a"} == catalog.groups.keys()
    assert {"order.placed"} == catalog.definitions["from-a"].keys()
    for id_ in ("a.reply", "b.reply"):
        full.api("DELETE", f"/messagecatalog/orders/messagedefinitions/{id_}")
    full.api("DELETE", "/messagecatalog/orders/messagedefinitions/order.placed")
    push(full, catalog, MESSAGE, "orders=from-a")
    assert ({"mail"}, {"m"}) == (
        {group for group, held in catalog.definitions.items() if held},
        catalog.definitions["mail"].keys(),
    )


def test_a_catalog_that_takes_no_changes(full: ApiPeer, make_catalog: MakeCatalog) -> None:
    """4.2.1: without "update" a catalog is read-only, which is said before anything is sent."""
    catalog = make_catalog(update=False)
    with pytest.raises(RemoteError, match="takes no changes"):
        push(full, catalog)
    assert [] == [one for one in catalog.asked if one.split()[0] in ("PUT", "POST", "DELETE")]


def test_what_a_catalog_refuses_is_told(full: ApiPeer, make_catalog: MakeCatalog) -> None:
    """A refusal is one definition's, and the rest is pushed; a failing server ends the run, and the next goes on."""
    catalog = make_catalog()
    full.api("PUT", "/messagegroups/orders/messages/strange", {"envelopemetadata": {"type": {"value": "other"}}})
    report = push(full, catalog)
    assert {f"{GROUP}/messages/strange": "refused"} == {xid: one.code for xid, one in report.problems.items()}
    full.api("DELETE", "/messagegroups/orders/messages/strange")
    write(full, "orders", definition("order.new"))
    catalog.spoil = lambda method, path: (500, b"", {}) if method == "POST" else None
    with pytest.raises(RemoteError, match="500"):
        push(full, catalog)
    catalog.spoil = lambda method, path: None
    assert {} == push(full, catalog).problems
    assert {"order.placed", "a.reply", "b.reply", "order.new"} == catalog.definitions["orders"].keys()


def test_keep_both_is_a_signalbook_s(full: ApiPeer, make_catalog: MakeCatalog) -> None:
    """3.2.1: in 0.1 the id of an event is its type, so nothing can be kept under another."""
    with pytest.raises(UsageError, match="keep-both"):
        push(full, make_catalog(), keep_both=True)


def test_an_owner_s_uri_that_is_lost_is_told(hub: ApiPeer, make_catalog: MakeCatalog) -> None:
    """2.2.2: where a copy has another name than at its owner, a catalog of 0.1 cannot know it by its owner's URI."""
    catalog = make_catalog()
    for _ in range(2):
        told = {xid: words for xid, words in push(hub, catalog, "/messagegroups/renamed").notes if "URI" in words}
        assert ["/messagegroups/renamed/messages/ev"] == [*told]
        assert "its owner's URI for it, urn:two:g:ev, does not lead to it" in told["/messagegroups/renamed/messages/ev"]


def test_documentation_that_is_common_travels_once(make_catalog: MakeCatalog, b: ApiPeer) -> None:
    """2.2: each version has the documentation of the newest; that is pulled, pushed on, and then nothing changes."""
    catalog = make_catalog()
    send(catalog, "PUT", "/orders", {"specversion": "0.1", "format": "CloudEvents"})
    post(catalog, definition("order.placed", documentation="one"))
    assert 2 == pull(catalog, b).changed
    post(catalog, definition("order.placed", "/{id}", documentation="both"))
    assert 1 == pull(catalog, b).changed
    assert [(1, "both"), (2, "both")] == [
        (v["version"], v["documentation"]) for v in shown(b, "orders", "order.placed")
    ]
    further = make_catalog()
    assert {} == push(b, further).problems
    assert (0, 0) == (pull(catalog, b).changed, push(b, further).changed)
    assert "both" == further._version("orders", "order.placed", 1)["documentation"]


def test_from_one_catalog_to_another(catalog: CatalogServer, make_catalog: MakeCatalog, b: ApiPeer) -> None:
    """Both sides may speak 0.1 alone; what comes back to a Signalbook that has authority over it is its own."""
    other = make_catalog()
    source = connect(catalog.address)
    push(source, other)  # type: ignore[arg-type]
    source.close()
    assert [1, 2] == numbers(other)
    assert f"{catalog.address}/messagecatalog" == other._latest("orders", "order.placed")["authority"]


def test_there_and_back(full: ApiPeer, make_catalog: MakeCatalog) -> None:
    """What a Signalbook pushed and pulls again it knows as its own, and nothing changes."""
    catalog = make_catalog()
    push(full, catalog)
    before = full.api("GET", "/export").json["messagegroups"]
    report = pull(catalog, full)
    assert (0, {}) == (report.changed, report.problems)
    assert before == full.api("GET", "/export").json["messagegroups"]


# ---- following


class Following:
    """A replication that follows in a thread until the test ends."""

    def __init__(self, catalog: CatalogServer, target: ApiPeer, scope: str = "/", every: float = 300) -> None:
        self.peer = connect(catalog.address, catalog.token)
        replication = Replication(self.peer, target, ReplicationScope.parse(scope, ()))
        self.webhook = replication.webhook("127.0.0.1:0", "")
        self.reports: list[ReplicationReport] = []
        self._ended = threading.Event()
        self._reports = replication.follow(every, webhook=self.webhook, pause=lambda _: self._ended.wait(0.05) and None)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for report in self._reports:
            self.reports.append(report)
            if self._ended.is_set():
                return

    def end(self, wake: Callable[[], object]) -> None:
        """Let it end with its next report, for which `wake` sees."""
        self._ended.set()
        wake()
        self._thread.join(LONG)
        assert not self._thread.is_alive()
        self.webhook.close()
        self.peer.close()


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_a_subscription_is_followed(make_catalog: MakeCatalog, b: ApiPeer, mode: str) -> None:
    """5.5: the source is subscribed to at its root, and what its events name is pulled; deletions and groups too."""
    catalog = filled(make_catalog(mode=mode))
    following = Following(catalog, b)
    assert until(lambda: len(following.reports) > 1)
    (made,) = catalog.subscriptions.values()
    assert (catalog.address, "HTTP", {"prefix": {"subject": "/messagecatalog"}}) == (
        made["source"],
        made["protocol"],
        made["filter"],
    )
    asked = len(catalog.asked)
    post(catalog, definition("order.placed", "/{id}/new"))
    assert until(lambda: len(shown(b, "orders", "order.placed")) == 3)
    listed = [one for one in catalog.asked[asked:] if one == "GET /messagecatalog"]
    assert [] == listed  # only what the event named was read
    send(catalog, "DELETE", "/orders/messagedefinitions/order.gone")
    assert until(lambda: b.api("GET", f"{GROUP}/messages/order.gone").status == 404)
    send(catalog, "DELETE", "/orders/messagedefinitions")
    assert until(lambda: b.api("GET", f"{GROUP}/messages").json == {})
    send(catalog, "DELETE", "/mail")
    assert until(lambda: b.api("GET", "/messagegroups/mail").status == 404)
    following.end(lambda: post(catalog, definition("order.last")))
    assert {} == catalog.subscriptions


def test_a_follower_catches_up(catalog: CatalogServer, b: ApiPeer) -> None:
    """What changed while nobody followed is caught up with; a subscription that was left behind is not kept."""
    left = {"source": catalog.address, "protocol": "HTTP", "sink": "http://127.0.0.1:1/?key=old"}
    catalog.subscriptions["left"] = {"id": "left", **left}
    first = Following(catalog, b)
    assert until(lambda: len(first.reports) > 1)
    first.end(lambda: post(catalog, definition("order.last")))
    post(catalog, definition("order.new"))
    send(catalog, "DELETE", "/orders/messagedefinitions/order.gone")
    second = Following(catalog, b)
    assert until(lambda: b.api("GET", f"{GROUP}/messages/order.new").status == 200)
    assert until(lambda: b.api("GET", f"{GROUP}/messages/order.gone").status == 404)
    second.end(lambda: post(catalog, definition("order.end")))
    assert {"left"} == catalog.subscriptions.keys()


def test_a_scope_is_followed(catalog: CatalogServer, b: ApiPeer) -> None:
    """5.5: a prefix of the subject scopes the subscription."""
    following = Following(catalog, b, MESSAGE)
    assert until(lambda: len(following.reports) > 1)
    (made,) = catalog.subscriptions.values()
    assert "/messagecatalog/orders/messagedefinitions/order.placed" == made["filter"]["prefix"]["subject"]
    post(catalog, definition("order.gone", "/x", authority="urn:acme"))
    post(catalog, definition("order.placed", "/x"))
    assert until(lambda: len(shown(b, "orders", "order.placed")) == 3)
    assert ["order.placed"] == list(b.api("GET", f"{GROUP}/messages").json)
    following.end(lambda: post(catalog, definition("order.placed", "/y")))


def test_a_catalog_without_subscriptions_is_compared(make_catalog: MakeCatalog, b: ApiPeer) -> None:
    """Where the peer has no subscriptions, that is told once, and it is polled."""
    catalog = filled(make_catalog(events=False))
    following = Following(catalog, b, every=0.05)
    for number in (3, 4):
        post(catalog, definition("order.placed", f"/{number}"))
        assert until(lambda: len(shown(b, "orders", "order.placed")) == number)
    following.end(lambda: None)
    assert 1 == len([one for one in following.reports if "the source is compared" in one.failure])


def test_an_outage_is_caught_up_with(catalog: CatalogServer, b: ApiPeer) -> None:
    """A source that fails for a while is asked again, and then everything is compared: no event is missed."""
    following = Following(catalog, b)
    assert until(lambda: len(following.reports) > 1)
    catalog.spoil = lambda method, path: (500, b"", {})
    catalog._tell("updated", "/messagecatalog/orders/messagedefinitions/order.placed/version/9")
    assert until(lambda: any(report.failure for report in following.reports))
    catalog.spoil = lambda method, path: None
    post(catalog, definition("order.placed", "/after"))
    assert until(lambda: len(shown(b, "orders", "order.placed")) == 3)
    following.end(lambda: post(catalog, definition("order.last")))


def test_only_who_knows_the_secret_is_heard(catalog: CatalogServer, b: ApiPeer) -> None:
    """The form of 0.1 has no credential, so the sink carries a key; a call without it does nothing."""
    following = Following(catalog, b)
    assert until(lambda: len(following.reports) > 1)
    (made,) = catalog.subscriptions.values()
    sink = made["sink"].partition("?")[0]
    assert [401, 401] == [httpx.post(place, json={}, timeout=LONG).status_code for place in (sink, f"{sink}?key=guess")]
    following.end(lambda: post(catalog, definition("order.last")))


# ---- bad peers

LARGE = b'["' + b"x" * 2000 + b'"]'


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        ("/messagecatalog", (500, b"oops", {}), "answered 500 at /messagecatalog"),
        ("/messagecatalog", (401, b"", {}), "give its token"),
        ("/messagecatalog", (200, b"{not json", {}), "not with JSON"),
        ("/messagecatalog", (200, b"5", {}), "something other than a list"),
        ("/messagecatalog", (200, [{}], {}), "without 'id'"),
        ("/messagecatalog", (200, LARGE, {}), "bytes in one answer"),
        ("/messagecatalog", (302, b"", {"Location": "http://elsewhere.test/"}), "redirects, which is not followed"),
        ("/messagecatalog", (200, [], {"Link": "<http://elsewhere.test/x>;rel=next"}), "is not followed"),
        ("/messagecatalog", (200, [], {"Link": "</messagecatalog>;rel=next"}), "in a circle"),
        ("/messagecatalog/orders/messagedefinitions", (500, b"", {}), "answered 500"),
        ("/messagecatalog/orders/messagedefinitions/order.placed/versions", (500, b"", {}), "answered 500"),
        ("/messagecatalog/orders/messagedefinitions/order.placed/versions", (200, ["x"], {}), "is not a number"),
    ],
)
def test_a_bad_source(catalog: CatalogServer, b: ApiPeer, path: str, answer: Any, words: str) -> None:
    """What goes wrong there is said in words; nothing is written by halves, nothing deleted, and later all comes."""
    pull(catalog, b)
    before = b.api("GET", "/export").json
    post(catalog, definition("order.placed", "/{id}/new"))
    catalog.spoil = lambda method, asked: answer if (method, asked) == ("GET", path) else None
    with pytest.raises(RemoteError, match=words):
        pull(catalog, b, bounds=ReplyBounds(largest=1000) if answer[1] is LARGE else None)
    assert before["messagegroups"] == b.api("GET", "/export").json["messagegroups"]
    catalog.spoil = lambda method, asked: None
    pull(catalog, b)
    assert 3 == len(shown(b, "orders", "order.placed"))


def test_a_bad_definition_is_refused_alone(catalog: CatalogServer, b: ApiPeer) -> None:
    """One that cannot be kept is reported by its name, and the others come."""
    catalog.definitions["orders"]["order.placed"]["versions"][2]["definition"] = 5
    report = pull(catalog, b)
    assert ([MESSAGE], ["refused"]) == (list(report.problems), [one.code for one in report.problems.values()])
    assert 200 == b.api("GET", f"{GROUP}/messages/order.gone").status


def test_what_is_no_catalog(make_catalog: MakeCatalog, b: ApiPeer) -> None:
    """A server that speaks neither API is not taken for one."""
    catalog = make_catalog()
    catalog.spoil = lambda method, path: (404, b"", {})
    with pytest.raises(RemoteError, match="404"):
        pull(catalog, b)


def test_a_token(make_catalog: MakeCatalog, b: ApiPeer) -> None:
    """A catalog that asks for a token gets it."""
    catalog = filled(make_catalog(token="secret"))
    assert {} == pull(catalog, b).problems
    catalog.token = "another"
    peer = connect(catalog.address, "wrong")
    with pytest.raises(RemoteError, match="give its token"):
        Replication(peer, b, ReplicationScope()).run()
    peer.close()


# ---- the catalog of 0.1 itself


def test_the_catalog_of_the_tests_keeps_its_text(catalog: CatalogServer) -> None:
    """2.2, 3, 4: what replication is tried against does what the text says, so that it is worth the trial."""
    web = httpx.Client(timeout=LONG)
    root = f"{catalog.address}/messagecatalog"
    headed = web.head(f"{root}/orders/messagedefinitions/order.placed")
    assert (200, b"") == (headed.status_code, headed.content)
    assert ["order.gone"] == [one["id"] for one in web.get(f"{root}/orders/messagedefinitions?id=order.gone").json()]
    uri = "urn:acme:orders:order.gone:1"
    assert "order.gone" == web.get(f"{catalog.address}/messagedefinition", params={"uri": uri}).json()["id"]
    assert 400 == web.get(f"{catalog.address}/messagedefinition").status_code
    refused = [
        definition("a b"),
        {**definition("x"), "definition": {"pub": {}}},
        {**definition("x"), "definition": {"attributes": {"type": {"value": "x", "type": "string"}}}},
        {"id": "x", "specversion": "0.1", "versions": []},
    ]
    answers = [web.post(f"{root}/orders/messagedefinitions", json=one).status_code for one in refused]
    assert [400] * len(refused) == answers
    assert 404 == web.get(f"{root}/orders/messagedefinitions/order.placed/versions/x").status_code
    for number in (1, 2):
        send(catalog, "DELETE", f"/orders/messagedefinitions/order.placed/versions/{number}")
    assert 404 == web.get(f"{root}/orders/messagedefinitions/order.placed").status_code
    web.close()


# ---- names and formats that 0.1 has no word for


def uri_of(peer: ApiPeer, group: str, id_: str) -> str:
    """The URI that a Signalbook states for a definition, which it must find it by."""
    answer = peer.api("GET", f"/messagecatalog/{group}/messagedefinitions/{id_}")
    uri = str(answer.headers["link"]).partition(">")[0].removeprefix("<")
    found = peer.api("GET", f"/messagedefinition?{urlencode({'uri': uri})}")
    assert (200, answer.json) == (found.status, found.json)
    return uri


@pytest.fixture
def hub(a: ApiPeer, b: ApiPeer, make_peer: Callable[[str], ApiPeer]) -> ApiPeer:
    """A Signalbook with copies of two catalogs' definitions: under another group, and kept beside each other."""
    hub = make_peer("hub")
    for number, peer in enumerate((a, b)):
        group = {"specversion": "0.1", "format": "CloudEvents", "description": "Events."}
        assert 201 == peer.api("PUT", "/messagecatalog/g", group).status
        write(peer, "g", definition("ev", f"/{number}"))
        write(peer, "g", definition("ev", f"/{number}/{{id}}", description="Later."))
        assert {} == Replication(peer, hub, ReplicationScope.parse("/", ()), keep_both=True).run().problems
    two = "urn:two"
    assert (
        {} == Replication(a, hub, ReplicationScope.parse("/", ("g=renamed",)), authority=two).run(compare=True).problems
    )
    return hub


def by_01(hub: ApiPeer, target: ApiPeer, **options: Any) -> ReplicationReport:
    """Pull from a Signalbook by its 0.1 API."""
    return Replication(hub, target, ReplicationScope.parse("/", ()), apis=("0.1", "auto")).run(**options)


def test_a_copy_of_a_copy_has_its_owner_s_uri(hub: ApiPeer, make_peer: Callable[[str], ApiPeer]) -> None:
    """2.2.2, 2.2.4: the source tells the URI of what it has copied, whatever the group and the id are there."""
    c = make_peer("c")
    assert {} == by_01(hub, c).problems
    places = [
        (group, id_)
        for group, found in hub.api("GET", "/messagegroups?inline=messages").json.items()
        for id_ in found["messages"]
    ]
    assert 3 == len(places)
    assert any("~" in id_ for _, id_ in places)
    for place in places:
        assert uri_of(hub, *place) == uri_of(c, *place)
        assert shown(hub, *place) == shown(c, *place)
    for options in ({}, {"compare": True}):
        again = by_01(hub, c, **options)
        assert (0, {}) == (again.changed, again.problems)
    gone = next(place for place in places if place[0] == "renamed")
    kept = next(place for place in places if "~" in place[1])
    for (group, id_), named in ((gone, True), (kept, False)):
        xid = f"/messagegroups/{group}/messages/{id_}"
        hub.before = hidden(definition_path(group, id_))
        hub.after = without(id_, f"/messagecatalog/{group}/messagedefinitions")
        report = by_01(hub, c, **({"named": [xid]} if named else {}))
        assert (1, {}) == (report.outcomes["deleted"], report.problems)
        assert 404 == c.api("GET", xid).status


def test_a_copy_that_was_named_by_its_place_gets_its_owner_s_name(
    hub: ApiPeer, make_peer: Callable[[str], ApiPeer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was pulled before the owner's name was asked for is mended by a comparison."""
    c = make_peer("c")
    with monkeypatch.context() as patch:
        patch.setattr(Catalog01Source, "_origin", lambda *given: {})
        by_01(hub, c)
    assert uri_of(hub, "renamed", "ev") != uri_of(c, "renamed", "ev")
    assert {} == by_01(hub, c, compare=True).problems
    assert uri_of(hub, "renamed", "ev") == uri_of(c, "renamed", "ev")


def hidden(place: str) -> Callable[[str, str], None]:
    """Make a definition one that has gone."""

    def before(method: str, path: str) -> None:
        if f"{path}/".startswith(f"{place}/"):
            raise RemoteError("there is no such path", status=404, name="not_found")

    return before


def without(id_: str, listing: str) -> Callable[[str, Any], Any]:
    """Leave a definition out of a listing."""
    return lambda path, value: [one for one in value if one["id"] != id_] if path == listing else value


_EVENT: Json = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "m"}}}
_AMQP: Json = {"protocol": "AMQP/1.0", "protocoloptions": {"properties": {"subject": {"value": "x"}}}}


@pytest.mark.parametrize(
    ("messages", "form"),
    [({"m": _EVENT}, "CloudEvents"), ({"a": _AMQP}, "AMQP"), ({"m": _EVENT, "a": _AMQP}, "Generic")],
)
def test_a_group_that_states_no_format_is_pushed(
    a: ApiPeer, b: ApiPeer, make_catalog: MakeCatalog, messages: Json, form: str
) -> None:
    """2.1.1: it has the one that its messages have in common, or else the one that takes all of them."""
    for group in ("g", "h"):
        assert 201 == a.api("PUT", f"/messagegroups/{group}", {"messages": messages}).status
    catalog = make_catalog()
    report = push(a, catalog)
    assert ({}, {"written": 2 + 2 * len(messages)}) == (report.problems, dict(report.outcomes))
    assert [form, form] == [catalog.groups[group]["format"] for group in ("g", "h")]
    assert 0 == push(a, catalog).changed
    report = Replication(a, b, ReplicationScope.parse("/", ()), apis=("auto", "0.1")).run()
    assert ({}, {"written": 2 + 2 * len(messages)}) == (report.problems, dict(report.outcomes))
    copied = b.api("GET", "/messagegroups/g?inline=messages").json["messages"]
    for name, message in messages.items():
        assert message == {key: value for key, value in copied[name].items() if key in {*_EVENT, *_AMQP}}
    assert form == b.api("GET", "/messagecatalog/g").json["format"]
    assert 0 == Replication(a, b, ReplicationScope.parse("/", ()), apis=("auto", "0.1")).run().changed
