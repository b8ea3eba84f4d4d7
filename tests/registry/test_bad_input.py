"""Bad input to a real server and to the registry behind it: a clear error, bounded cost, nothing half written."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from signalbook import Registry, RegistryError
from signalbook.registry.read.reads import Limits
from tests.conftest import StartServer
from tests.patience import LONG
from tests.registry.conftest import Api, MakeApi

LIMIT = 64 * 1024


@pytest.fixture
def port(start_server: StartServer) -> int:
    """Where a server listens that takes 64 KiB a body and waits a second for it."""
    address = start_server("--max-body", "64k", "--body-timeout", "1", "--no-log")
    found = urlsplit(address).port
    assert found is not None
    return found


def talk(port: int, data: bytes, *, finish: bool = False, seconds: float = LONG) -> tuple[int, Any]:
    """Send bytes and read until the server closes; the status (0 without an answer) and the body."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        answer = b""
        try:
            connection.sendall(data)
            if finish:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionError:
            pass
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, json.loads(body) if body else None


def request(method: str, path: str, body: bytes = b"", *headers: str, length: int | None = None) -> bytes:
    """A request whose connection ends with it; `length` is what it announces."""
    size = len(body) if length is None else length
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {size}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def name(answer: Any) -> str:
    """The name of an error."""
    return str(answer["type"].rpartition("#")[2])


def lives(port: int, groups: int = 0) -> bool:
    """Whether the server answers, and holds so many groups."""
    status, answer = talk(port, request("GET", "/"))
    return status == 200 and answer["messagegroupscount"] == groups


def test_a_body_over_the_limit(port: int) -> None:
    """A body of more than the limit is refused with 413, announced or not, and nothing of it is written."""
    body = json.dumps({"name": "x" * LIMIT}).encode()
    status, answer = talk(port, request("PUT", "/messagegroups/g1", body))
    assert (413, "request_too_large") == (status, name(answer))
    status, answer = talk(port, request("PUT", "/messagegroups/g1", b"", length=10**15))
    assert (413, "request_too_large") == (status, name(answer))
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:40000], body[40000:])) + b"0\r\n\r\n"
    head = (
        b"PUT /messagegroups/g1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    status, answer = talk(port, head + chunked)
    assert (413, "request_too_large") == (status, name(answer))
    small = json.dumps({"name": "x", "description": "y" * 3000}).encode()
    assert 201 == talk(port, request("PUT", "/messagegroups/g1", small))[0]
    assert lives(port, groups=1)


def test_half_a_request(port: int) -> None:
    """A client that goes away in the middle of its request has asked for nothing."""
    whole = request("PUT", "/messagegroups/g1", b'{"name": "half"}')
    for size in range(1, len(whole), 7):
        status, _ = talk(port, whole[:size], finish=True)
        assert status == 0 or 400 <= status < 500
    assert lives(port)


def test_a_client_that_stalls(port: int) -> None:
    """Clients that send half a body and wait are told so after their time, and hold up nobody meanwhile."""
    begun = request("PUT", "/messagegroups/g1", b'{"name": ', length=100)
    answers: list[tuple[int, Any]] = []
    threads = [threading.Thread(target=lambda: answers.append(talk(port, begun))) for _ in range(30)]
    for thread in threads:
        thread.start()
    assert lives(port)
    for thread in threads:
        thread.join()
    assert {(408, "request_timeout")} == {(status, name(answer)) for status, answer in answers}
    assert lives(port)


@pytest.mark.parametrize("path", ["/messagegroups/g1", "/modelsource", "/capabilities", "/"])
@pytest.mark.parametrize("pattern", ['{"a":', "["])
def test_nesting(api: Api, path: str, pattern: str) -> None:
    """JSON that is nested deeper than 64 is refused as such, however deep it is."""
    for depth in (65, 1000, 100_000):
        ending = ("}" if pattern[0] == "{" else "]") * depth
        reply = api("PUT", path, f"{pattern * depth}1{ending}".encode())
        assert (400, "parsing_data") == (reply.status, reply.error)
        assert len(reply.body) < 2000


def test_nesting_that_is_fine(api: Api) -> None:
    """64 levels are taken."""
    value: Any = 1
    for _ in range(60):
        value = {"a": value}
    reply = api("PUT", "/messagegroups/g1", {"deep": value})
    assert (201, value) == (reply.status, reply.json["deep"])


@pytest.mark.parametrize(
    "id_", ["a b", "ä", "-a", "a" * 129, "$", "%00", "a\0b", "..", "a\\b", "<a>", "'", "a;b", "日本"]
)
def test_hostile_ids(api: Api, id_: str) -> None:
    """An id that is none is an error of the specification's kind at every level, and nothing comes to be."""
    for path in (
        f"/messagegroups/{id_}",
        f"/messagegroups/g/messages/{id_}",
        f"/messagegroups/g/messages/m/versions/{id_}",
    ):
        reply = api("PUT", path, {})
        assert (400, "malformed_id") == (reply.status, reply.error)
    assert 0 == api("GET", "/").json["messagegroupscount"]


def test_ids_with_nul(api: Api) -> None:
    """U+0000, which not every database can look for, is in no id and in no name of a JSON object."""
    api("PUT", "/messagegroups/g1/messages/m1", {})
    for path in ("/messagegroups/\0", "/messagegroups/g1/messages/m\0", "/messagegroups/g1/messages/m1/versions/\0"):
        assert (404, "not_found") == (api("GET", path).status, api("GET", path).error)
        assert 404 == api("DELETE", path).status
    assert "parsing_data" == api("DELETE", "/messagegroups", {"a\0": {}}).error
    assert "parsing_data" == api("POST", "/messagegroups/g1/messages", {"a\0": {}}).error
    assert api("GET", "/messagegroups?filter=name=%00").status == 200
    assert api("GET", "/messagegroups?page=AA").status in (200, 400)


@pytest.mark.parametrize("filter_", ["description=*a*b*c*d*e*", "name!=zzz", "description<m", "labels.*=q*"])
def test_a_filter_that_takes_too_much(store_url: str, filter_: str) -> None:
    """A filter that no index helps stops after its steps with an error, and the registry goes on."""
    with Registry.open(store_url, limits=Limits(filtering=500)) as registry:
        registry.put("/messagegroups/g1", {"messages": {f"m{n}": {"description": "a" * 50} for n in range(300)}})
        with pytest.raises(RegistryError) as caught:
            registry.get(f"/messagegroups/g1/messages?filter={filter_}")
        assert "bad_filter" == caught.value.name
        assert "it takes more than 500 steps" in caught.value.args_["error_detail"]
        assert 300 == registry.get("/messagegroups/g1")["messagescount"]


def test_wildcards_are_not_tried_out(api: Api) -> None:
    """A pattern of many wildcards over a long text costs what its length says, not all ways to split it."""
    api("PUT", "/messagegroups/g1/messages/m1", {"description": "a" * 4000})
    started = time.thread_time()
    for pattern in ("*a" * 100 + "b", "*" * 500 + "b", "a*" * 200 + "b"):
        reply = api("GET", f"/messagegroups/g1/messages?filter=description={pattern}")
        assert (200, {}) == (reply.status, reply.json)
    assert time.thread_time() - started < 2


def test_an_answer_that_is_too_large(store_url: str) -> None:
    """An answer over the bound is refused with `too_large` instead of being made."""
    with Registry.open(store_url, limits=Limits(size=10_000)) as registry:
        registry.put("/messagegroups/g1", {"messages": {f"m{n}": {"description": "a" * 500} for n in range(50)}})
        for path in ("/?inline=*", "/export", "/messagegroups/g1/messages", "/messagegroups?inline=messages"):
            with pytest.raises(RegistryError) as caught:
                registry.get(path)
            assert "too_large" == caught.value.name


# ---- never fetching


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """An address where somebody listens, and who came."""
    came: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        done = threading.Event()

        def wait() -> None:
            while not done.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                came.append("somebody")
                connection.close()

        thread = threading.Thread(target=wait)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", came
        done.set()
        thread.join()


def test_nothing_is_fetched(api: Api, listener: tuple[str, list[str]], tmp_path: Any) -> None:
    """Neither `$include` nor `<RESOURCE>url` makes the server open an address or a file."""
    address, came = listener
    secret = tmp_path / "model.json"
    secret.write_text('{"secret": {"singular": "topsecret"}}')
    for place in (f"{address}/model.json", f"file://{secret}", str(secret), "model.json", "//127.0.0.1/x", "../x#/a"):
        for source in (
            {"$include": place},
            {"groups": {"$includes": [place]}},
            {"groups": {"dirs": {"$include": place}}},
        ):
            reply = api("PUT", "/modelsource", source)
            assert (400, "model_error") == (reply.status, reply.error)
            assert b"topsecret" not in reply.body
            assert 400 == api("PUT", "/", {"modelsource": source}).status
    path = "/schemagroups/g1/schemas/s1"
    written = api("PUT", f"{path}$details", {"schemaurl": f"{address}/schema", "format": "JSONSchema/draft-07"})
    assert 201 == written.status
    assert 201 == api("PUT", f"{path}2", b"", {"xregistry-schemaurl": f"{address}/schema"}).status
    shown = api("GET", path)
    assert (303, f"{address}/schema", b"") == (shown.status, shown.headers["location"], shown.body)
    for reading in (f"{path}$details?inline=schema", "/export", "/?inline=*", f"{path}/versions/1"):
        assert api("GET", reading).status in (200, 303)
    time.sleep(0.3)
    assert [] == came


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "zstd, gzip"])
def test_a_coded_body_is_refused(api: Api, coding: str) -> None:
    """A body in a content coding is 415, as a document would be kept in it; `identity` is none."""
    path = "/schemagroups/g1/schemas/s1"
    reply = api("PUT", path, b"\x1f\x8b", {"content-encoding": coding})
    assert (415, "unsupported_content_encoding", "identity") == (
        reply.status,
        reply.error,
        reply.headers["accept-encoding"],
    )
    assert 404 == api("GET", path).status
    assert 201 == api("PUT", path, b"{}", {"content-encoding": "identity"}).status


@pytest.mark.parametrize("page", ["%00", "AA", "!", "YQ==", "Y"])
def test_a_page_that_nobody_named(api: Api, page: str) -> None:
    """The name of a page is one that the server gave, to the letter."""
    assert (400, "bad_request") == (
        api("GET", f"/messagegroups?limit=2&page={page}").status,
        api("GET", f"/messagegroups?limit=2&page={page}").error,
    )


def test_a_read_only_server_says_so(make_api: MakeApi) -> None:
    """Its capabilities show nothing mutable; an export has those that are stored."""
    api = make_api(read_only=True)
    for shown in (api("GET", "/capabilities").json, api("GET", "/?inline=capabilities").json["capabilities"]):
        assert {False} == {entry["mutable"] for entry in shown["available"].values()}
    assert api("GET", "/export").json["capabilities"]["available"]["entities"]["mutable"]
