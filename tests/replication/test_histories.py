"""Version URIs name the same document at every copy, and an owner whose history went back is believed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from signalbook.registry.registry import Registry
from signalbook.registry.store.sqlite import backup, restore
from signalbook.replication import entries
from signalbook.replication.links import home_of
from signalbook.settings import Settings
from tests.registry.conftest import Api
from tests.replication.conftest import MakePeer
from tests.replication.peers import ApiPeer, Json, catalog_of, content
from tests.replication.test_replicate import Interrupted, interrupt, pull

DEFINITIONS = "/messagecatalog/shop/messagedefinitions"
MESSAGE = "/messagegroups/shop/messages/parcel.accepted"
FORMAT = "CloudEvents"
OWN = "https://catalog.acme.example/"


def publish(peer: ApiPeer, name: str, *words: str, authority: str = "") -> None:
    """Post versions of a definition through the API of 0.1."""
    if peer.api("GET", "/messagecatalog/shop").status == 404:
        peer.api("PUT", "/messagecatalog/shop", {"specversion": "0.1", "format": FORMAT}, base=peer.address)
    for one in words:
        more = {"authority": authority} if authority else {}
        definition = {"attributes": {"type": {"value": name}, "subject": {"value": one}}}
        body = {
            "id": name,
            "specversion": "0.1",
            "format": FORMAT,
            "description": one,
            "definition": definition,
            **more,
        }
        reply = peer.api("POST", DEFINITIONS, body, base=peer.address)
        assert 201 == reply.status, reply.body


def by_uri(peer: ApiPeer, uri: str) -> tuple[int, str]:
    """The status and the words of what a version URI names."""
    reply = peer.api("GET", f"/messagedefinition?uri={quote(uri, safe='')}", base=peer.address)
    return reply.status, reply.json.get("description", "") if reply.status == 200 else ""


def uris(peer: ApiPeer, name: str) -> dict[str, tuple[int, str]]:
    """The canonical URIs of a definition's versions, and what each names there."""
    found = {}
    for number in range(1, 10):
        reply = peer.api("GET", f"{DEFINITIONS}/{name}/versions/{number}", base=peer.address)
        if reply.status == 200:
            uri = reply.headers["link"].partition(">")[0].lstrip("<")
            found[uri] = by_uri(peer, uri)
    return found


# ---- version URIs


@pytest.mark.parametrize("authority", [OWN, "urn:acme", ""])
def test_a_version_uri_names_one_document_everywhere(
    a: ApiPeer, b: ApiPeer, make_peer: MakePeer, authority: str
) -> None:  # fmt: skip
    """Seed 004 4.4.3 and 5.3: also where the authority is implied, and through a hub; numbers go on after a pull."""
    hub = make_peer("hub")
    publish(a, "parcel.accepted", "one", "two", "three", authority=authority)
    for source, target in ((a, hub), (hub, b)):
        pull(source, target)
    publish(a, "parcel.accepted", "four", authority=authority)
    for source, target in ((a, hub), (hub, b)):
        assert {} == pull(source, target).problems
    named = uris(a, "parcel.accepted")
    assert ["one", "two", "three", "four"] == [words for _, words in named.values()]
    if authority == OWN:
        assert f"{OWN}shop/messagedefinitions/parcel.accepted/versions/4" in named
    for copy in (hub, b):
        assert named == {uri: by_uri(copy, uri) for uri in named}
        assert named == uris(copy, "parcel.accepted")


def test_a_version_that_is_taken_away(a: ApiPeer, b: ApiPeer, make_peer: MakePeer) -> None:
    """It is gone at every copy, by the feed and without a comparison; the other numbers stay."""
    hub = make_peer("hub")
    publish(a, "x", "one", "two", "three")
    pull(a, hub)
    pull(hub, b)
    for number in (1, 3):  # the newest, too: then the one before holds, as a version of its own
        assert 204 == a.api("DELETE", f"{DEFINITIONS}/x/versions/{number}", base=a.address).status
        for source, target in ((a, hub), (hub, b)):
            assert not pull(source, target).compared
    assert {"two"} == {words for _, words in uris(b, "x").values()}
    assert uris(a, "x") == uris(b, "x")
    assert content(a.api) == content(hub.api) == content(b.api)


def test_the_versions_of_a_copy_stay(a: ApiPeer, b: ApiPeer) -> None:
    """A copy is read-only with all its versions."""
    publish(a, "x", "one", "two")
    pull(a, b)
    for number in (1, 2):
        assert "readonly" == b.api("DELETE", f"{DEFINITIONS}/x/versions/{number}", base=b.address).error
    assert uris(a, "x") == uris(b, "x")


def test_numbers_are_not_given_again(a: ApiPeer, b: ApiPeer) -> None:
    """A definition that is deleted and made again goes on with its numbers, at the copy as at its owner."""
    publish(a, "x", "one", "two")
    pull(a, b)
    for _ in range(2):
        a.api("DELETE", f"{DEFINITIONS}/x")
        pull(a, b)
        publish(a, "x", "again")
        pull(a, b)
    assert uris(a, "x") == uris(b, "x")
    assert ["/versions/4"] == [uri[-11:] for uri in uris(b, "x")]


def test_long_logs_travel_in_pages(
    a: ApiPeer, b: ApiPeer, make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """A log longer than a page comes whole; a change of it costs one page, wherever a run is interrupted."""
    monkeypatch.setattr(entries, "_MOST_SNAPSHOTS", 3)
    publish(a, "x", *(f"w{number}" for number in range(11)))
    pull(a, b)
    monkeypatch.setattr(entries, "_MOST_SNAPSHOTS", 100)
    assert content(a.api) == content(b.api)
    monkeypatch.setattr(entries, "_MOST_SNAPSHOTS", 3)
    publish(a, "x", "new")
    before = a.requests
    pull(a, b)
    pages = a.requests - before
    before = a.requests
    publish(a, "y", "new")
    pull(a, b)
    assert pages == a.requests - before
    for number in range(1, 6):
        target = make_peer(f"t{number}")
        interrupt(a, number)
        with pytest.raises(Interrupted):
            pull(a, target)
        a.before = lambda method, path: None
        pull(a, target)
        with monkeypatch.context() as patch:
            patch.setattr(entries, "_MOST_SNAPSHOTS", 100)
            assert content(a.api) == content(target.api), number


def test_logs_under_another_name(a: ApiPeer, b: ApiPeer) -> None:
    """In a group with another name the same URIs name the same documents, and what is referred to follows."""
    publish(a, "x", "one", "two", authority=OWN)
    a.api("PUT", "/messagegroups/shop/messages/y", {"basemessage": "/messagegroups/shop/messages/x"})
    a.api("PATCH", "/messagegroups/shop/messages/y", {"description": "two"})
    pull(a, b, "/", "shop=stall")
    publish(b, "x", "another", authority="https://other.example/")
    linked = uris(a, "x")
    assert OWN + "shop/messagedefinitions/x/versions/2" in linked
    for uri, named in linked.items():
        assert named == by_uri(b, uri)
    shown = b.api("GET", "/messagecatalog/stall/messagedefinitions/x/versions/2", base=b.address)
    assert f"<{OWN}shop/messagedefinitions/x/versions/2>;rel=canonical" == shown.headers["link"]
    log = b.api("GET", "/replicas/entities?xid=/messagegroups/stall/messages/y").json["entries"][0]["log"]
    assert {"/messagegroups/stall/messages/x"} == {said["basemessage"] for *_, said in log["snapshots"]}
    home = b.api.service.store.read(lambda db: home_of(db, "/messagegroups/stall/messages/x"))
    assert "/messagegroups/shop/messages/x" == home


@pytest.mark.parametrize(
    "said",
    [
        {"envelope": "CloudEvents/1.0", "envelopemetadata": 5},
        {"protocol": "KAFKA", "protocoloptions": {"partition": "x"}},
        {"authority": ["x"]},
    ],
    ids=["a rule", "a protocol", "a type"],
)
def test_a_history_that_breaks_our_rules(a: ApiPeer, b: ApiPeer, said: Json) -> None:
    """A version that the model does not allow is refused with its definition, and the rest comes."""
    publish(a, "x", "one", "two")
    publish(a, "y", "one")

    def spoil(path: str, value: Json) -> Json:
        for entry in value.get("entries", []) if isinstance(value, dict) else []:
            if entry["xid"].endswith("/x"):
                entry["log"]["snapshots"][0][2] = said
        return value

    a.after = spoil
    report = pull(a, b)
    assert {"/messagegroups/shop/messages/x": "refused"} == {xid: one.code for xid, one in report.problems.items()}
    assert 404 == b.api("GET", "/messagegroups/shop/messages/x").status
    assert 200 == b.api("GET", "/messagegroups/shop/messages/y").status


# ---- an owner whose history went back


@pytest.fixture
def make_file(tmp_path: Path) -> Iterator[Callable[[], ApiPeer]]:
    """Open the catalog in a file, again and again."""
    opened: list[Api] = []

    def make() -> ApiPeer:
        for api in opened:
            api.service.close()
        opened[:] = [Api(Settings(store=str(tmp_path / "a.db")))]
        return ApiPeer(opened[0], "http://a.test")

    yield make
    for api in opened:
        api.service.close()


def copied(tmp_path: Path) -> None:
    """Put the backup back as an administrator would, by copying files."""
    for name in ("a.db", "a.db-wal", "a.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", tmp_path / "a.db")


def restored(tmp_path: Path) -> None:
    """Put the backup back with the command for it."""
    restore(tmp_path / "backup.db", tmp_path / "a.db", force=True)


@pytest.mark.parametrize("put_back", [copied, restored])
def test_a_backup_from_before_the_first_replication(
    put_back: Callable[[Path], None], make_file: Callable[[], ApiPeer], b: ApiPeer, tmp_path: Path
) -> None:
    """The id is made with the store, so what is restored is the same catalog, and nothing conflicts."""
    with Registry.open(tmp_path / "a.db") as registry:
        registry.put(MESSAGE, {"description": "old"})
    backup(tmp_path / "a.db", tmp_path / "backup.db")
    a = make_file()
    catalog = catalog_of(a.api)
    a.api("PATCH", MESSAGE, {"description": "new"})
    a.api("PUT", f"{MESSAGE}2", {})
    pull(a, b)
    a.api.service.close()
    put_back(tmp_path)
    a = make_file()
    assert catalog == catalog_of(a.api)
    report = pull(a, b)
    assert ({}, 0) == (report.problems, report.outcomes["stale"])
    assert content(a.api) == content(b.api)


@pytest.mark.parametrize("put_back", [copied, restored])
@pytest.mark.parametrize("compare", [False, True])
@pytest.mark.parametrize("later", [0, 1, 5])
def test_a_source_that_was_restored_wins_over_its_former_self(
    put_back: Callable[[Path], None], compare: bool, later: int, make_file: Callable[[], ApiPeer], b: ApiPeer,
    make_peer: MakePeer, tmp_path: Path,
) -> None:  # fmt: skip
    """Whatever it wrote since, and even where the first run after it is interrupted: all copies are as it is now."""
    hub = make_peer("hub")
    a = make_file()
    publish(a, "parcel.accepted", "one")
    publish(a, "kept", "one")
    pull(a, b)
    backup(tmp_path / "a.db", tmp_path / "backup.db")
    publish(a, "parcel.accepted", "lost", "lost too")
    publish(a, "made", "lost")
    a.api("DELETE", f"{DEFINITIONS}/kept")
    pull(a, b)
    pull(a, hub)
    a.api.service.close()
    put_back(tmp_path)
    a = make_file()
    publish(a, "parcel.accepted", *(f"after {number}" for number in range(later)))
    interrupt(a, 4)
    with pytest.raises(Interrupted):
        pull(a, b, compare=compare)
    a.before = lambda method, path: None
    for target in (b, hub):
        report = pull(a, target, compare=compare)
        assert ({}, 0, True) == (report.problems, report.outcomes["stale"], report.compared)
        assert content(a.api) == content(target.api)
    assert uris(a, "parcel.accepted") == uris(b, "parcel.accepted")
    publish(a, "made", "again")
    pull(a, b)
    assert content(a.api) == content(b.api)


def test_a_hub_does_not_bring_back_what_was_undone(
    make_file: Callable[[], ApiPeer], b: ApiPeer, make_peer: MakePeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub that knows the former self only is passed over, for the owner was read later; then it learns, too."""
    hub = make_peer("hub")
    a = make_file()
    publish(a, "x", "one")
    backup(tmp_path / "a.db", tmp_path / "backup.db")
    publish(a, "x", "lost", "lost too")
    for source, target in ((a, b), (a, hub), (hub, b)):
        pull(source, target)
    a.api.service.close()
    copied(tmp_path)
    a = make_file()
    later = time.time_ns() + 60_000_000_000
    monkeypatch.setattr("signalbook.replication.entries.time.time_ns", lambda: later)
    pull(a, b)
    assert content(a.api) == content(b.api)
    assert 0 < pull(hub, b, compare=True).outcomes["stale"]
    assert content(a.api) == content(b.api)
    pull(a, hub)
    pull(hub, b)
    assert content(a.api) == content(hub.api) == content(b.api)
