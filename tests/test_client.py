"""The client of a registry, over HTTP and in this process: what is asked, what is read, what is refused."""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import orjson
import pytest

from signalbook.app import store_client
from signalbook.client import (
    Call,
    Client,
    HttpTransport,
    Refusal,
    RemoteError,
    ReplyBounds,
    Shown,
    Unanswered,
    _with_details,
    connect,
)
from signalbook.errors import RegistryError, UsageError
from signalbook.exchange import Exchange

ADDRESS = "http://registry.example/prefix"
Answer = Callable[[httpx.Request], httpx.Response]


def served(answer: Answer, token: str = "", **options: Any) -> Client:
    """The client of a server that answers so."""
    transport = HttpTransport(ADDRESS, token, **options)
    transport._exchange = Exchange(httpx.create_ssl_context, httpx.MockTransport(answer))
    return Client(transport)


def pages(link: str, *texts: str) -> Answer:
    """Answers with one text a page; `link` is the address of a page, as the server writes it."""

    def answer(request: httpx.Request) -> httpx.Response:
        assert "http://registry.example/prefix/things" == str(request.url).partition("?")[0]
        number = int(request.url.params.get("page", "0"))
        links = ["</>;rel=xregistry-root"]
        if number + 1 < len(texts):
            links.append(f"<{link.format(number + 1)}>;rel=next;count=7")
        return httpx.Response(200, text=texts[number], headers=[("link", value) for value in links])

    return answer


@pytest.mark.parametrize(
    "link",
    [
        "http://registry.example/prefix/things?page={}",
        "https://elsewhere.example/things?page={}",
        "/prefix/things?sort=a&page={}",
        "?page={}",
    ],
)
def test_pages_are_followed_at_the_address_that_was_named(link: str) -> None:
    """Every page is asked for where the first one was, and all of them are one object, however each is laid out."""
    shown = served(pages(link, '{"a":1}', '{\n  "b": 2\n}\n', "{}", '{"c":3}')).show("/things?sort=a")
    assert Shown('{"a":1,"b": 2,"c":3}') == shown


def test_a_limit_ends_it() -> None:
    """With a limit one page is shown, with where the next is and how many entries there are."""
    answer = pages("http://registry.example/prefix/things?limit=1&page={}", '{"a":1}', '{"b":2}')
    assert Shown('{"a":1}', "/things?limit=1&page=1", 7) == served(answer).show("/things?limit=1")


def test_a_circle_is_left() -> None:
    """A server whose pages never end is not followed for ever."""
    answer = httpx.Response(200, text="{}", headers={"link": "<?page=1>;rel=next"})
    with pytest.raises(RemoteError, match="links the pages of /things in a circle"):
        served(lambda request: answer).show("/things")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("/a/b/c", "/a/b/c"),
        ("/a/b/c/d", "/a/b/c/d$details"),
        ("/a/b/c/d$details", "/a/b/c/d$details"),
        ("/a/b/c/d/?inline", "/a/b/c/d$details?inline"),
        ("/a/b/c/d/meta", "/a/b/c/d/meta"),
        ("/a/b/c/d/versions", "/a/b/c/d/versions"),
        ("/a/b/c/d/versions/v", "/a/b/c/d/versions/v$details"),
    ],
)
def test_metadata_is_asked_for(path: str, expected: str) -> None:
    """Resources and versions are asked for by their metadata."""
    assert expected == _with_details(path)


# ---- one answer, over HTTP


def problem(status: int, **body: Any) -> httpx.Response:
    """An xRegistry error."""
    return httpx.Response(status, json={"type": "https://x.example/spec.md#not_found", "title": "Gone.", **body})


def test_an_error_that_the_registry_states() -> None:
    """It is raised under its own name, with the subject, the arguments and the status; its words name the registry."""
    stated = problem(404, subject="/things/t", args={"a": 1})
    with pytest.raises(Refusal) as caught:
        served(lambda request: stated).get("/things/t?doc")
    error = caught.value
    assert isinstance(error, RegistryError)
    assert isinstance(error, RemoteError)
    assert ("not_found", "/things/t", {"a": "1"}, 404) == (error.name, error.subject, error.args_, error.status)
    assert f"{ADDRESS} answered 404 at /things/t: Gone; is it the root of a registry?" == str(error)


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (httpx.Response(502, text="bad gateway"), "without an xRegistry error; is it an xRegistry server"),
        (httpx.Response(502, json=[1]), "without an xRegistry error"),
        (httpx.Response(401), "give its token"),
        (httpx.Response(302, headers={"location": "/"}), "it redirects, which is not followed"),
        (problem(403, detail="This server is read-only."), "This server is read-only."),
        (httpx.Response(200, html="<p>"), "answered with text/html; charset=utf-8, not with JSON"),
        (httpx.Response(200, content=b"\xff"), "answered with no content type, not with JSON"),
    ],
)
def test_what_is_not_an_answer_of_a_registry(response: httpx.Response, words: str) -> None:
    """The error says which registry, what it answered, and what to do."""
    client = served(lambda request: response)
    for read in (client.get, client.show):
        with pytest.raises(RemoteError, match=words):
            read("/things")


def test_values_that_cannot_be_kept() -> None:
    """A number that no double keeps does not hide the rest of an answer; orjson refuses to send it on."""
    client = served(lambda request: httpx.Response(200, text='{"a": 1e999, "b": NaN, "c": 1.5}'))
    value = client.request("GET", "/").value
    assert ("1e999", "NaN", 1.5) == (str(value["a"]), str(value["b"]), value["c"])
    with pytest.raises(TypeError):
        orjson.dumps(value)
    with pytest.raises(RemoteError, match="not with JSON"):
        client.get("/")


def test_bounds() -> None:
    """An answer that is too large or too slow is left; what counts is its size after decompression."""
    small = gzip.compress(b"[" + b" " * 5000 + b"]")
    client = served(
        lambda request: httpx.Response(200, content=small, headers={"content-encoding": "gzip"}),
        bounds=ReplyBounds(largest=4000),
    )
    with pytest.raises(RemoteError, match="in one answer"):
        client.get("/")
    client = served(lambda request: httpx.Response(200, json=[]), bounds=ReplyBounds(timeout=-1000.0))
    assert [] == client.get("/")
    with pytest.raises(RemoteError, match="takes too long"):
        served(lambda request: httpx.Response(200, stream=Slow()), bounds=ReplyBounds(timeout=0.1)).get("/")


class Slow(httpx.SyncByteStream):
    """A body whose second piece comes after an hour, by a clock that the test turns."""

    def __iter__(self) -> Iterator[bytes]:
        yield b"["
        with patch("signalbook.exchange.time.monotonic", return_value=float("inf")):
            yield b"]"


def test_a_token_is_sent_unless_a_call_is_anonymous() -> None:
    """The token goes with every call but those that must not have it."""
    sent: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers.get("authorization"))
        return httpx.Response(200, json={})

    client = served(answer, "secret")
    client.get("/")
    client.send(Call("GET", "/", anonymous=True))
    assert ["Bearer secret", None] == sent


@pytest.mark.parametrize("address", ["", "registry.example", "ftp://x", "http://", "http://x:99999", "http://[::1"])
def test_what_is_not_an_address(address: str) -> None:
    """An address that cannot be one is refused before anything is sent."""
    with pytest.raises(UsageError, match="is not a server address; try http://"):
        connect(address)


def test_nothing_answers() -> None:
    """A closed port, a certificate that is not trusted, a path that cannot be sent: each has its own words."""
    with connect("http://127.0.0.1:9") as client, pytest.raises(Unanswered, match=r"nothing answers at http://127"):
        client.get("/")

    def distrust(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("CERTIFICATE_VERIFY_FAILED")

    with pytest.raises(RemoteError, match="--ca"):
        served(distrust).get("/")
    with pytest.raises(UsageError, match="is not an address"):
        served(distrust).get("/a\0b")


def test_certificates(tmp_path: Path) -> None:
    """A file that holds no certificates is refused before anything is sent."""
    (tmp_path / "ca.pem").write_text("nothing")
    with connect("https://registry.example", ca=tmp_path / "ca.pem") as client, pytest.raises(UsageError, match="--ca"):
        client.get("/")


def test_what_is_sent() -> None:
    """A body is JSON, a part of a load says so, metadata are asked for; what JSON cannot hold is refused here."""
    sent: list[tuple[str, str, bytes, str | None]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append((request.method, request.url.path, request.content, request.headers.get("prefer")))
        return httpx.Response(200, headers={"signalbook-written": "groups=1, resources=2"}, json={})

    client = served(answer)
    assert "{}" == client.write("PUT", "/gs/g/rs/r", {"a": 1})
    assert (1, 2) == client.load_part("/", {}, "one")
    with pytest.raises(RegistryError, match="parsing_data"):
        client.write("PUT", "/gs/g", {"a": "\ud800"})
    expected = [("PUT", "/prefix/gs/g/rs/r$details", b'{"a":1}', None), ("POST", "/prefix/", b"{}", "load=one")]
    assert expected == sent
    assert "" == served(lambda request: httpx.Response(204)).write("DELETE", "/gs/g")
    assert served(lambda request: httpx.Response(200, json={})).load_part("/", {}, "one") is None


# ---- the same, in this process

SCHEMA = "/schemagroups/g/schemas/s"


def test_a_store_answers_as_a_server_does(tmp_path: Path) -> None:
    """What is written comes back, documents as bytes; a refusal has its name; capabilities do not bind the owner."""
    with store_client(str(tmp_path / "a.db")) as client:
        assert ("", str(tmp_path / "a.db")) == (client.address, client.name)
        client.write("PUT", f"{SCHEMA}", {"format": "JsonSchema/draft-07", "schema": {"type": "object"}})
        assert "s" == client.get(SCHEMA)["schemaid"]
        assert b'{"type":"object"}' == client.read_document(SCHEMA)
        client.write_document(SCHEMA, b'{"type": "array"}', "application/json", client.get(SCHEMA)["epoch"])
        assert b'{"type": "array"}' == client.read_document(SCHEMA)
        assert {"s"} == client.export()["schemagroups"]["g"]["schemas"].keys()
        with pytest.raises(Refusal, match="answered 404 at /schemagroups/none"):
            client.get("/schemagroups/none")
        with pytest.raises(UsageError, match="has no document"):
            client.read_document("/schemagroups/g")
        available = client.get("/capabilities")["available"] | {"entities": {"mutable": False}}
        client.write("PATCH", "/capabilities", {"available": available, "flags": []})
        client.write("PUT", "/schemagroups/h", {})
        assert ["h"] == list(orjson.loads(client.show("/schemagroups?filter=schemagroupid=h").text))


def test_pages_of_a_store(tmp_path: Path) -> None:
    """A collection is cut where the flags say so, and can be gone on with."""
    with store_client(str(tmp_path / "a.db")) as client:
        client.write("POST", "/messagegroups", {name: {} for name in "abc"})
        first = client.show("/messagegroups?limit=2")
        assert (["a", "b"], 3) == (list(orjson.loads(first.text)), first.count)
        assert ["c"] == list(orjson.loads(client.show(first.following).text))
        assert 2 == len(list(client.pages("/messagegroups?limit=2")))


def test_a_document_that_is_elsewhere(tmp_path: Path) -> None:
    """It is said where it is."""
    with store_client(str(tmp_path / "a.db")) as client:
        client.write("PUT", SCHEMA, {"schemaurl": "https://files.example/s.json"})
        with pytest.raises(UsageError, match=r"not in the registry but at https://files\.example/s\.json"):
            client.read_document(SCHEMA)
        with pytest.raises(Refusal):
            client.read_document("/schemagroups/g/schemas/none")


def test_a_store_is_made_by_the_first_call(tmp_path: Path) -> None:
    """A client that is not used leaves no file behind, and a path may be in its encoded form."""
    store_client(str(tmp_path / "none.db")).close()
    assert not (tmp_path / "none.db").exists()
    with store_client(str(tmp_path / "a.db")) as client:
        client.write("PUT", "/messagegroups/a%3Ab", {})
        assert "a:b" == client.get("/messagegroups/a:b")["messagegroupid"]
