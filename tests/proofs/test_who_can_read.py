"""Who can read: a server for this machine is not one for web pages, secrets are for writers, files for their owner."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from signalbook import app
from signalbook.registry.store import store
from signalbook.registry.store.store import open_store
from signalbook.server.flow import AsgiApp
from signalbook.server.run import flow_for
from signalbook.settings import Settings
from tests.in_process import in_process
from tests.server.sink import Sink

MakeClient = Callable[..., httpx.Client]
EVIL = "http://evil.example"
EVENT = {"specversion": "1.0", "id": "1", "source": "/", "type": "t"}


@pytest.fixture
def make_client() -> Iterator[MakeClient]:
    """A client of a server that listens by some settings."""
    made: list[httpx.Client] = []

    def make(**given: Any) -> httpx.Client:
        settings = Settings(**{"store": "memory:", "log": False, "deliver": False, **given})
        made.append(in_process(AsgiApp(flow_for(app.service(settings), settings, listening=True))))
        return made[-1]

    yield make
    for client in made:
        client.close()


def status(client: httpx.Client, host: str, path: str = "/", **headers: str) -> int:
    """The status of a request for a host."""
    return client.get(path, headers={"host": host, **headers}).status_code


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "127.1.2.3"])
def test_this_machine_is_served_by_its_own_names(make_client: MakeClient, host: str) -> None:
    """A loopback name is one of a server without tokens on this machine."""
    assert 200 == status(make_client(), host)


@pytest.mark.parametrize("path", ["/", "/export", "/healthz", "/metrics", "/changes", "/match", "/messagegroups/g"])
@pytest.mark.parametrize("options", [{}, {"trust_proxy": True}, {"base_url": "http://catalog.example/x"}])
def test_another_host_is_refused(make_client: MakeClient, options: dict[str, Any], path: str) -> None:
    """A page whose name was made to lead to this machine (DNS rebinding) reads nothing and writes nothing."""
    client = make_client(**options)
    for method in ("GET", "POST", "PUT", "OPTIONS", "DELETE"):
        for forwarded in ({}, {"x-forwarded-host": "localhost"}):
            headers = {"host": "evil.example:8080", "origin": f"{EVIL}:8080", **forwarded}
            answer = client.request(method, path, headers=headers)
            assert 400 == answer.status_code
            assert "--allow-host" in answer.text


def test_names_that_the_operator_gives(make_client: MakeClient) -> None:
    """`--base-url` and `--allow-host` add names; with a token, or `--open`, every name is answered."""
    client = make_client(base_url="https://catalog.example/registry", allow_hosts=("Cat.internal", "[fd00::1]"))
    for host in ("catalog.example", "cat.INTERNAL:80", "[fd00::1]:1", "localhost"):
        assert 200 == status(client, host)
    assert 400 == status(client, "other.example")
    assert 200 == status(make_client(open=True), "any.example")
    assert 200 == status(make_client(read_token="t"), "any.example", authorization="Bearer t")


def test_no_page_of_another_origin_reads(make_client: MakeClient) -> None:
    """A server without tokens on this machine tells no browser that pages of other origins may read."""

    def allowed(client: httpx.Client, token: str = "") -> set[str]:
        headers = {"host": "localhost", "origin": EVIL, "access-control-request-method": "GET"}
        headers |= {"authorization": f"Bearer {token}"} if token else {}
        answers = [client.request(method, path, headers=headers) for method in ("GET", "OPTIONS")
                   for path in ("/", "/match", "/model", "/nothing", "/healthz", "/subscriptions")]  # fmt: skip
        return {name for answer in answers for name in answer.headers if name.startswith("access-control-")}

    assert set() == allowed(make_client())
    assert set() == allowed(make_client(write_token="t"))
    assert "access-control-allow-origin" in allowed(make_client(open=True))
    assert "access-control-allow-origin" in allowed(make_client(read_token="t"), "t")


@pytest.mark.parametrize("path", ["/match", "/validate", "/build"])
def test_asking_is_not_for_other_pages(make_client: MakeClient, path: str) -> None:
    """A page that may not read the answer cannot have the work done either; one of this server can."""
    client = make_client()
    for origin, expected in (
        (EVIL, 403),
        ("null", 403),
        ("http://localhost:81", 403),
        ("http://localhost", 200),
        ("", 200),
    ):
        headers = {"host": "localhost", "content-type": "text/plain", **({"origin": origin} if origin else {})}
        body = {"definition": "/messagegroups/g/messages/m"} if path == "/build" else EVENT
        found = client.post(path, json=body, headers=headers).status_code
        assert expected == found or (path == "/build" and expected == 200 and found in (400, 404))
    assert 200 == make_client(open=True).post("/match", json=EVENT, headers={"origin": EVIL}).status_code


def test_a_sink_is_shown_to_writers_alone(make_client: MakeClient) -> None:
    """Whoever may only read sees the host of a sink, for its path and query are often the key to it."""
    sink = Sink().start()
    address = f"{sink.url.rstrip('/')}/hook/s3cr3t?key=k3y"
    client = make_client(read_token="r", write_token="w", allow_sinks=("127.0.0.0/8",))
    try:
        made = client.post(
            "/subscriptions", json={"protocol": "HTTP", "sink": address}, headers={"authorization": "Bearer w"}
        )
        assert (201, address) == (made.status_code, made.json()["sink"])
        for path in ("/subscriptions", f"/subscriptions/{made.json()['id']}"):
            assert address in client.get(path, headers={"authorization": "Bearer w"}).text
            shown = client.get(path, headers={"authorization": "Bearer r"}).text
            assert "s3cr3t" not in shown
            assert "k3y" not in shown
            assert f"{sink.url.removesuffix('/events')}/********" in shown
    finally:
        sink.stop()


def test_health_says_why_to_those_who_are_known(make_client: MakeClient, tmp_path: Path) -> None:
    """A stranger learns that a server fails; whoever has a token learns why."""
    store = tmp_path / "a.db"
    client = make_client(read_token="r", write_token="w", store=str(store))
    assert (200, {"status": "ok"}) == (client.get("/healthz").status_code, client.get("/healthz").json())
    store.rename(tmp_path / "b.db")
    for headers, words in (({}, ""), ({"authorization": "Bearer x"}, ""), ({"authorization": "Bearer r"}, "a.db")):
        answer = client.get("/healthz", headers=headers)
        assert (503, "failing") == (answer.status_code, answer.json()["status"])
        assert words in answer.json().get("reason", "")
        assert bool(words) == ("reason" in answer.json())


def test_a_full_disk_is_not_well(make_client: MakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that takes writes is not well where nothing can be written; one that only reads is."""
    writer = make_client(store=str(tmp_path / "a.db"))
    reader = make_client(store=str(tmp_path / "a.db"), read_only=True)
    assert (200, 200) == (status(writer, "localhost", "/healthz"), status(reader, "localhost", "/healthz"))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store.tempfile, "TemporaryFile", full)
    answer = writer.get("/healthz", headers={"host": "localhost"})
    assert 503 == answer.status_code
    assert "No space left on device" in answer.json()["reason"]
    assert 200 == status(reader, "localhost", "/healthz")


def test_an_answer_varies_by_what_a_proxy_says(make_client: MakeClient) -> None:
    """Where a proxy is trusted, a cache keeps answers apart by the address in them; elsewhere it need not."""
    forwarded = {"x-forwarded-host", "x-forwarded-proto", "x-forwarded-prefix"}

    def varies(client: httpx.Client, path: str) -> set[str]:
        answer = client.get(path, headers={"host": "localhost"})
        return {one.strip() for one in answer.headers.get("vary", "").split(",") if one}

    assert forwarded == varies(make_client(trust_proxy=True), "/")
    assert forwarded | {"accept-encoding"} == varies(make_client(trust_proxy=True), "/model")
    assert {"accept-encoding"} == varies(make_client(), "/model")
    assert set() == varies(make_client(trust_proxy=True, base_url="http://a.example"), "/")


def test_files_are_their_owners(tmp_path: Path) -> None:
    """A store, what is put beside it, and a backup are nobody else's, whatever the umask."""
    from signalbook.cli import main

    before = os.umask(0)
    try:
        store = tmp_path / "a.db"
        opened = open_store(str(store))
        opened.write(lambda db: db.execute("UPDATE settings SET value = value"))
        assert 0 == main(["backup", "--store", str(store), str(tmp_path / "b.db")])
        files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        opened.close()
    finally:
        os.umask(before)
    assert {"a.db", "b.db"} <= files.keys()
    assert {"a.db-wal", "a.db-shm", "a.db-turn"} & files.keys()
    assert {0o600} == set(files.values()), files
