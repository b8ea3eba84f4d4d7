"""Catalogs from files and from running registries, read again only where they changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import signalbook
from signalbook.client import RemoteError
from signalbook.errors import UsageError
from signalbook.pipeline.worker import PackedCatalog
from signalbook.sources import Reach, open_source
from signalbook.sources import catalogs as external_module
from tests.conftest import StartServer

XID = "/messagegroups/g/messages/m"
Handler = Callable[[httpx.Request], httpx.Response]


def document(**attributes: Any) -> dict[str, Any]:
    """A catalog of one message."""
    return {"messagegroups": {"g": {"messages": {"m": attributes}}}}


class Web:
    """A web server that a test plays."""

    def __init__(self) -> None:
        self.pages: dict[str, httpx.Response | Handler] = {}
        self.asked: list[httpx.Request] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        """What the test has laid out for the path."""
        self.asked.append(request)
        found = self.pages.get(request.url.raw_path.decode(), httpx.Response(404))
        return found(request) if callable(found) else found


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Web:
    """Every client of the sources talks to this server."""
    made = Web()
    real = httpx.Client
    monkeypatch.setattr(httpx, "Client", lambda **options: real(transport=httpx.MockTransport(made.answer)))
    return made


def test_a_file_is_read_again_when_it_changed(tmp_path: Path) -> None:
    """The catalog is the same object until the file is another."""
    path = tmp_path / "c.json"
    path.write_text(json.dumps(document(name="one")))
    with open_source(str(path)) as source:
        first = source.catalog()
        assert first is source.catalog()
        path.write_text(json.dumps(document(name="another")))
        os.utime(path, ns=(1, 1))
        second = source.catalog()
    assert first is not second
    assert ["one", "another"] == [one.definition(XID).document["name"] for one in (first, second)]


def test_a_folder_and_a_file_are_one_catalog(tmp_path: Path) -> None:
    """Several places make one catalog; a base may lie in another file."""
    base = {"messagegroups": {"h": {"messages": {"b": {"name": "base"}}}}}
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.json").write_text(json.dumps(base))
    (tmp_path / "c.json").write_text(json.dumps(document(basemessage="/messagegroups/h/messages/b")))
    with open_source(str(tmp_path / "a"), str(tmp_path / "c.json")) as source:
        assert "base" == source.catalog().definition(XID).document["name"]


def test_a_registry_is_asked_whether_it_changed(web: Web) -> None:
    """The tag is remembered, so that a refresh costs one 304."""
    state = {"etag": '"1"', "name": "one"}

    def export(request: httpx.Request) -> httpx.Response:
        if request.headers.get("if-none-match") == state["etag"]:
            return httpx.Response(304)
        return httpx.Response(200, json=document(name=state["name"]), headers={"etag": state["etag"]})

    web.pages["/export"] = export
    with open_source("http://registry.example/", reach=Reach(token="secret")) as source:
        first = source.catalog()
        assert first is source.catalog()
        assert [None, '"1"'] == [request.headers.get("if-none-match") for request in web.asked]
        state.update(etag='"2"', name="two")
        assert "two" == source.catalog().definition(XID).document["name"]
    assert {"Bearer secret"} == {request.headers["authorization"] for request in web.asked}


@pytest.mark.parametrize("asked", ["http://127.0.0.1:81", "http://localhost:81/", "http://[::1]:81"])
@pytest.mark.parametrize("named", ["127.0.0.1:81", "localhost:81", "[::1]:81", "cat.example"])
def test_a_schema_by_any_address_of_the_registry(web: Web, asked: str, named: str) -> None:
    """A schema that is named by another name of the same machine is found, by a worker of the pipeline too."""
    uri = f"http://{named}/schemagroups/s/schemas/n"
    held = document(
        envelope="CloudEvents/1.0",
        envelopemetadata={"type": {"value": "t"}},
        dataschemaformat="JsonSchema/draft-07",
        dataschemauri=uri,
    )
    schema = {"format": "JsonSchema/draft-07", "schema": {"type": "integer"}}
    held["schemagroups"] = {"s": {"schemas": {"n": schema}}}
    link = {"link": '<http://cat.example/>; rel="xregistry-root"'}
    web.pages["/export"] = httpx.Response(200, json=held, headers=link)
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": "no"}
    with open_source(asked) as source:
        outcomes = [
            one.match(event).outcome.value
            for one in (source.catalog(), PackedCatalog.of_contents(source.read()).catalog())
        ]
    assert ["nonconformant"] * 2 == outcomes


def test_a_registry_without_exports(web: Web) -> None:
    """Where there is no export, everything is asked for inline."""
    web.pages["/?inline=*"] = httpx.Response(200, json=document(name="x"))
    with open_source("http://registry.example") as source:
        assert [XID] == list(source.catalog().definitions)


def test_a_document_at_an_address(web: Web) -> None:
    """An address that ends like a file is one document, in YAML too."""
    web.pages["/a/c.yaml"] = httpx.Response(200, text="messagegroups: {g: {messages: {m: {name: x}}}}")
    with open_source("https://files.example/a/c.yaml") as source:
        assert [XID] == list(source.catalog().definitions)


def test_a_document_at_an_address_is_read_by_its_dialect(web: Web) -> None:
    """A document of an older dialect on a web server means what it means in a file; a foreign one is refused."""
    message = {"id": "m", "binding": "Kafka", "message": {"topic": {"value": "t"}}}
    old = {"specversion": "0.5-wip", "messagegroups": {"g": {"id": "g", "messages": {"m": message}}}}
    web.pages["/old.json"] = httpx.Response(200, json=old)
    with open_source("https://files.example/old.json") as source:
        assert source.catalog().match({"protocol": "KAFKA", "topic": "t"}).matched
        assert not source.catalog().match({"protocol": "NATS", "subject": "s"}).matched
    web.pages["/api.json"] = httpx.Response(200, json={"asyncapi": "3.0.0", "info": {}})
    with (
        open_source("https://files.example/api.json") as source,
        pytest.raises(UsageError, match=r"files\.example/api\.json is not a catalog document"),
    ):
        source.catalog()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(401), "--token"),
        (httpx.Response(403), "may not read"),
        (httpx.Response(302, headers={"location": "http://elsewhere.example/"}), "redirects elsewhere"),
        (httpx.Response(500), "answered 500"),
        (httpx.Response(200, content=b"x" * 2000), "sends more than"),
    ],
)
def test_what_a_server_refuses(web: Web, answer: httpx.Response, words: str) -> None:
    """What goes wrong is said with the remedy; no redirect is followed."""
    web.pages["/export"] = answer
    with (
        open_source("http://registry.example", reach=Reach(largest=1000)) as source,
        pytest.raises(RemoteError, match=words),
    ):
        source.catalog()
    assert 1 == len(web.asked)


def test_what_is_no_registry(web: Web) -> None:
    """An answer that is no JSON names the address."""
    web.pages["/export"] = httpx.Response(200, text="<html>")
    with open_source("http://registry.example") as source, pytest.raises(UsageError, match=r"registry\.example/export"):
        source.catalog()


def test_nobody_answers() -> None:
    """An address where nobody listens, and what is no address, are said."""
    with open_source("http://127.0.0.1:9") as source, pytest.raises(RemoteError, match="nothing answers"):
        source.catalog()
    with open_source("http://[::1") as source, pytest.raises(UsageError, match="is not an address"):
        source.catalog()


def test_a_store_is_no_document(tmp_path: Path) -> None:
    """Who opens a store is told what opens it; a password in its address is not repeated."""
    path = str(tmp_path / "d.db")
    signalbook.Registry.open(path).close()
    with pytest.raises(UsageError, match=rf"'{path}' is a store.*Registry\.open.*signalbook\.app\.catalog_of"):
        open_source(path)
    with pytest.raises(UsageError, match=r"this is a store.*catalog_of") as refused:
        open_source("postgresql://user:secret@localhost/d")
    assert "secret" not in str(refused.value)


def test_certificates(tmp_path: Path) -> None:
    """A file of certificates that holds none is refused before anything is sent."""
    (tmp_path / "ca.pem").write_text("no certificate")
    source = open_source("https://registry.example", reach=Reach(ca=tmp_path / "ca.pem"))
    with pytest.raises(UsageError, match="--ca"):
        source.catalog()


def test_bases_elsewhere_are_followed_only_where_allowed(web: Web, tmp_path: Path) -> None:
    """An external base, its own base beside it, and no token for either; other hosts stay notes."""
    base = "http://base.example/reg/messagegroups/h/messages/b"
    (tmp_path / "c.json").write_text(json.dumps(document(basemessage=base)))
    web.pages["/reg/messagegroups/h/messages/b"] = httpx.Response(
        200, json={"xid": "/messagegroups/h/messages/b", "name": "near", "basemessage": "/messagegroups/h/messages/a"}
    )
    web.pages["/reg/messagegroups/h/messages/a"] = httpx.Response(200, json={"name": "far", "description": "far"})
    with open_source(str(tmp_path / "c.json")) as source:
        assert ["external"] == [note.code for note in source.catalog().definition(XID).notes]
    assert [] == web.asked
    reach = Reach(token="secret", resolve=frozenset({"base.example"}))
    with open_source(str(tmp_path / "c.json"), reach=reach) as source:
        found = source.catalog().definition(XID)
    assert ("near", "far") == (found.document["name"], found.document["description"])
    assert all("authorization" not in request.headers for request in web.asked)


def test_a_base_that_cannot_be_had_is_left_out(web: Web, tmp_path: Path) -> None:
    """A base that is not there, in a version too, is no error."""
    versions = {"versions": {"1": {"basemessage": "http://base.example/x"}}}
    (tmp_path / "c.json").write_text(json.dumps(document(**versions)))
    with open_source(str(tmp_path / "c.json"), reach=Reach(resolve=frozenset({"base.example"}))) as source:
        assert ["external"] == [note.code for note in source.catalog().definition(XID).notes]
    assert 1 == len(web.asked)


def test_bases_are_bounded(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain without an end is left after so many."""
    monkeypatch.setattr(external_module, "MOST", 5)
    for length in range(1, 10):
        following = f"http://base.example/{'x' * (length + 1)}"
        web.pages[f"/{'x' * length}"] = httpx.Response(200, json={"basemessage": following})
    (tmp_path / "c.json").write_text(json.dumps(document(basemessage="http://base.example/x")))
    source = open_source(str(tmp_path / "c.json"), reach=Reach(resolve=frozenset({"base.example"})))
    with pytest.raises(RemoteError, match="more than 5 base messages"):
        source.catalog()
    assert 5 == len(web.asked)


def test_a_catalog_matches_the_same_from_a_file_and_from_a_server(
    tmp_path: Path, shared_store_url: str, start_server: StartServer
) -> None:
    """The samples read from files and read back from a server that loaded them are the same catalog."""
    from signalbook.cli import main

    samples = str(Path(__file__).resolve().parents[2] / "samples")
    assert 0 == main(["load", samples, "--store", shared_store_url, "--quiet"])
    with open_source(samples) as files, open_source(start_server(store=shared_store_url)) as server:
        ours, theirs = files.catalog(), server.catalog()
    assert set(ours.definitions) == set(theirs.definitions)
    for xid in ours.definitions:
        made = ours.message(xid).sample()
        message = made.message or made.cloudevent
        assert message is not None
        assert ours.match(message) == theirs.match(message)
    assert ours.digest == theirs.digest


def test_a_document_of_an_older_dialect(tmp_path: Path) -> None:
    """It is read into today's form: its messages match."""
    metadata = {"type": {"value": "old.type", "required": True}}
    message = {"id": "m", "format": "CloudEvents/1.0", "metadata": metadata}
    group = {"id": "g", "format": "CloudEvents/1.0", "messages": {"m": message}}
    file = tmp_path / "old.xreg.json"
    file.write_text(json.dumps({"specversion": "0.5-wip", "messagegroups": {"g": group}}))
    with open_source(str(file)) as source:
        event = b'{"specversion": "1.0", "id": "1", "type": "old.type", "source": "/x"}'
        assert XID == source.catalog().match(event).definition
