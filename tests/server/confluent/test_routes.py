"""Paths, parameters, types of content, credentials and errors of Confluent's API."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

from signalbook import app
from signalbook.server.confluent.routes import Confluent
from signalbook.server.http import Request
from signalbook.settings import Settings
from tests.conftest import StartServer
from tests.in_process import in_process
from tests.patience import LONG
from tests.server.confluent.conftest import PING, PONG, Registered

MEDIA = "application/vnd.schemaregistry.v1+json"


@pytest.mark.parametrize(
    ("accept", "status", "media"),
    [
        ("", 200, MEDIA),
        ("*/*", 200, MEDIA),
        ("application/json", 200, "application/json"),
        ("application/vnd.schemaregistry+json", 200, "application/vnd.schemaregistry+json"),
        (f"{MEDIA}, application/vnd.schemaregistry+json, application/json", 200, MEDIA),
        ("text/html", 406, MEDIA),
    ],
)
def test_accept(confluent: Registered, accept: str, status: int, media: str) -> None:
    """CSR-2: the type of an answer is the one that the client accepts."""
    answer = confluent.http.get("/confluent/subjects", headers={"accept": accept})
    assert (status, media) == (answer.status_code, answer.headers["content-type"])


@pytest.mark.parametrize(
    ("content", "status"),
    [(MEDIA, 200), ("application/octet-stream", 200), ("application/json; charset=utf-8", 200), ("text/xml", 415)],
)
def test_content_type(confluent: Registered, content: str, status: int) -> None:
    """CSR-3: the types of a body; with a GET it is not looked at."""
    body = b'{"schema": "\\"string\\""}'
    answer = confluent.http.post("/confluent/subjects/a/versions", content=body, headers={"content-type": content})
    assert status == answer.status_code
    assert 200 == confluent.http.get("/confluent/subjects", headers={"content-type": "text/xml"}).status_code


def test_flags_in_any_case(confluent: Registered) -> None:
    """CSR-4: Python sends `True`; other words and other parameters count for nothing."""
    confluent.register("a", PING)
    confluent("DELETE", "/subjects/a")
    assert ["a"] == confluent("GET", "/subjects?deleted=True&deleted_only=False&subject=x")
    assert [] == confluent("GET", "/subjects?deleted=yes")


@pytest.mark.parametrize(
    "subject", ["yard/part.proto", "a b", "ü", "x" * 500, "a/versions/b", "%2F", "a+b", "-x", ".x"]
)
def test_names_of_subjects(confluent: Registered, subject: str) -> None:
    """CSR-7, CSR-14: any text without control characters is a subject, and comes back as it was sent."""
    found = confluent.register(subject, PING)
    assert (1, 1) == (found["id"], found["version"])
    assert [subject] == confluent("GET", "/subjects")
    (schema,) = confluent.http.get("/schemagroups/confluent/schemas").json().values()
    assert 1 == schema["confluentid"]


def test_names_that_differ_by_case(confluent: Registered) -> None:
    """Names that an xRegistry takes for one are two subjects."""
    first, second = (confluent.register(name, schema) for name, schema in (("Foo", PING), ("foo", PONG)))
    assert {1, 2} == {first["id"], second["id"]}
    assert ["Foo", "foo"] == confluent("GET", "/subjects")
    assert 2 == len(confluent.http.get("/schemagroups/confluent/schemas").json())


def test_an_id_of_a_subject(confluent: Registered) -> None:
    """CSR-41: with the subject, a schema by its id is a version of it, with its id: clients keep it as that."""
    id_ = confluent.register("a", PING)["id"]
    confluent.register("b", PONG)
    shown = confluent("GET", f"/schemas/ids/{id_}?subject=a")
    assert ("a", 1, id_) == (shown["subject"], shown["version"], shown["id"])
    for query in ("", "?subject=b"):
        assert {"subject", "version", "id"}.isdisjoint(confluent("GET", f"/schemas/ids/{id_}{query}"))


def test_an_id_is_answered_on_the_spot(confluent: Registered, monkeypatch: pytest.MonkeyPatch) -> None:
    """What readers ask first is kept until the next write, for each type of answer; then it is made anew."""
    id_ = confluent.register("a/b", PING)["id"]
    made: list[str] = []
    answer = Confluent.answer
    monkeypatch.setattr(Confluent, "answer", lambda self, request: made.append(request.path) or answer(self, request))
    path = f"/schemas/ids/{id_}?subject=a%2Fb"
    first = confluent("GET", path)
    assert [first] * 3 == [confluent("GET", path) for _ in range(3)]
    assert 1 == len(made)
    plain = confluent.http.get(f"/confluent{path}", headers={"accept": "application/json"})
    assert ("application/json", 2) == (plain.headers["content-type"], len(made))
    confluent("DELETE", "/subjects/a%2Fb")
    assert {**first, "deleted": True} == confluent("GET", path)
    confluent("DELETE", "/subjects/a%2Fb?permanent=true")
    assert 40403 == confluent.code("GET", path)


@pytest.mark.parametrize(
    "query",
    ["", "?subject=a", "?subject=b", "?subject=%3A.dock%3Aa", "?subject=a&format=serialized", "?fetchMaxId=true"],
)
def test_on_the_spot_and_in_a_thread(confluent: Registered, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    """Both ways give the same answer, for ids that there are and for others."""
    ids = [confluent.register(name, PING)["id"] for name in ("a", ":.dock:a")]
    ids.append(confluent.register("c", PONG)["id"])
    paths = [f"/schemas/ids/{id_}{query}" for id_ in (*ids, 99, "x", "0", "99999999999")]
    before = [confluent("GET", path) for path in paths]
    monkeypatch.setattr(Confluent, "is_point", lambda self, request: False)
    confluent("PUT", "/config", {"compatibility": "FULL"})
    assert before == [confluent("GET", path) for path in paths]


@pytest.mark.parametrize("subject", ["a%00b", "a%0Ab", "__GLOBAL", "__EMPTY"])
def test_names_that_no_subject_has(confluent: Registered, subject: str) -> None:
    """42208: control characters and the names that mean something else."""
    assert 42208 == confluent.code("POST", f"/subjects/{subject}/versions", {"schema": '"string"'})


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/nowhere", None, 404),
        ("GET", "/dek-registry/v1/keks", None, 404),
        ("GET", "/exporters", None, 404),
        ("GET", "/schemas/ids/one", None, 404),
        ("PUT", "/subjects", {}, 405),
        ("GET", "/schemas/ids/1", None, 40403),
        ("GET", "/schemas/ids/99999999999999999999", None, 40403),
        ("GET", "/schemas/ids/1/schema", None, 40403),
        ("GET", "/schemas/ids/1/subjects", None, 40403),
        ("GET", "/schemas/guids/x", None, 40403),
        ("GET", "/subjects/a/versions", None, 40401),
        ("GET", "/subjects/a/versions/1", None, 40401),
        ("GET", "/subjects/a/versions/0", None, 42202),
        ("GET", "/subjects/a/versions/2147483648", None, 42202),
        ("GET", "/subjects/a/versions/latest", None, 40401),
        ("POST", "/subjects/a", {"schema": '"string"'}, 40401),
        ("POST", "/subjects/a/versions", {"schema": 1}, 400),
        ("POST", "/subjects/a/versions", {"schema": '"string"', "schemaType": "avro"}, 42201),
        ("POST", "/subjects/a/versions", {"schema": '"string"', "references": [{"name": "x"}]}, 42201),
        ("POST", "/subjects/a/versions", {"schema": '"string"', "id": 3}, 42205),
        ("POST", "/subjects/a/versions", {"schema": '"string"', "version": 3}, 42201),
        ("POST", "/subjects/a/versions", [], 400),
        ("POST", "/subjects/a/versions", None, 422),
        ("PUT", "/config", {"compatibility": "SOME"}, 42203),
        ("PUT", "/config/a", {"normalize": 1}, 400),
        ("PUT", "/mode", {"mode": "SOME"}, 42204),
        ("DELETE", "/subjects/a", None, 40401),
        ("DELETE", "/subjects/a/versions/1", None, 40401),
        ("DELETE", "/config/a", None, 40401),
        ("DELETE", "/mode/a", None, 40401),
        ("GET", "/config/a", None, 40408),
        ("GET", "/mode/a", None, 40409),
        ("DELETE", "/associations/resources/a", None, 40410),
        ("GET", "/contexts/a:b/subjects", None, 400),
        ("GET", "/subjects?limit=x", None, 404),
    ],
)
def test_errors(confluent: Registered, method: str, path: str, body: Any, code: int) -> None:
    """CSR-11, CSR-12: every error has its code, whose first digits are the status."""
    answer = confluent.http.request(method, f"/confluent{path}", json=body)
    assert (code, MEDIA) == (answer.json()["error_code"], answer.headers["content-type"])
    assert int(str(code)[:3]) == answer.status_code
    assert answer.json()["message"]


def test_a_body_that_is_not_json(confluent: Registered) -> None:
    """400, and nothing is registered."""
    answer = confluent.http.post("/confluent/subjects/a/versions", content=b"{")
    assert (400, 400) == (answer.status_code, answer.json()["error_code"])
    assert [] == confluent("GET", "/subjects")


def basic(token: str) -> dict[str, str]:
    """Credentials as clients of this API send them."""
    return {"authorization": "Basic " + base64.b64encode(f"user:{token}".encode()).decode()}


def test_credentials() -> None:
    """CSR-9: a token is the password of any user, or a bearer token; what only asks needs one for reading."""
    body = {"schema": '"string"'}
    with in_process(read_token="reads", write_token="writes", deliver=False) as http:
        confluent = Registered(http)
        assert 401 == confluent.code("GET", "/subjects")
        assert 401 == confluent.code("GET", "/subjects", headers=basic("wrong"))
        assert 401 == confluent.code("GET", "/subjects", headers={"authorization": "Basic !"})
        assert [] == confluent("GET", "/subjects", headers=basic("reads"))
        assert [] == confluent("GET", "/subjects", headers={"authorization": "Bearer reads"})
        assert 403 == confluent.code("POST", "/subjects/a/versions", body, headers=basic("reads"))
        assert 1 == confluent("POST", "/subjects/a/versions", body, headers=basic("writes"))["id"]
        assert 1 == confluent("POST", "/subjects/a", body, headers=basic("reads"))["version"]
        path = "/compatibility/subjects/a/versions/latest"
        assert {"is_compatible": True} == confluent("POST", path, body, headers=basic("reads"))
        assert 401 == http.get("/schemagroups", headers=basic("reads")).status_code


def test_a_server_that_only_reads() -> None:
    """403 for a write; what is there is shown."""
    with in_process(read_only=True) as http:
        confluent = Registered(http)
        assert 403 == confluent.code("POST", "/subjects/a/versions", {"schema": '"string"'})
        assert [] == confluent("GET", "/subjects")


def test_at_the_root() -> None:
    """With `confluent_root` the paths are there without a prefix, beside those of the registry."""
    with in_process(confluent_root=True, deliver=False) as http:
        confluent = Registered(http, "")
        confluent.register("a", PING)
        assert ["a"] == confluent("GET", "/subjects")
        assert ["a"] == Registered(http)("GET", "/subjects")
        assert "schemagroups" in http.get("/").json() or "schemagroupsurl" in http.get("/").json()


def test_without() -> None:
    """Without this API its paths are not there."""
    with in_process(without=frozenset({"confluent"})) as http:
        assert 404 == http.get("/confluent/subjects").status_code


def test_a_model_without_schemas() -> None:
    """A model that has no schemas has no such API."""
    with in_process(model="empty") as http:
        assert 404 == http.get("/confluent/subjects").status_code


def test_by_id(confluent: Registered) -> None:
    """CSR-41, CSR-42: an id is found whoever asks; with the subject that has it, also as what it is there."""
    confluent.register("a", PING)
    plain = confluent("GET", "/schemas/ids/1")
    assert {"schema", "schemaType", "guid", "ts", "deleted"} == set(plain)
    named = confluent("GET", "/schemas/ids/1?subject=a&fetchMaxId=true")
    assert {"subject": "a", "version": 1, "id": 1, "maxId": 1, **plain} == named
    assert plain == confluent("GET", "/schemas/ids/1?subject=other")
    assert 40403 == confluent.code("GET", "/schemas/ids/1?subject=:.dock:a")


def test_contexts(confluent: Registered) -> None:
    """CSR-15 to CSR-19: ids count in each context; a path below one is seen from it; names are given in full."""
    one = confluent.register("a", PING)
    two = confluent("POST", "/contexts/dock/subjects/a/versions", {"schema": '"string"'})
    assert (1, 1) == (one["id"], two["id"])
    assert [".", ".dock"] == confluent("GET", "/contexts")
    assert [":.dock:a"] == confluent("GET", "/contexts/.dock/subjects")
    assert [":.dock:a", "a"] == confluent("GET", "/subjects")
    assert '"string"' == confluent("GET", "/contexts/:.dock:/schemas/ids/1")["schema"]
    assert 42211 == confluent.code("DELETE", "/contexts/.dock")
    confluent("DELETE", "/subjects/:.dock:a")
    confluent("DELETE", "/subjects/:.dock:a?permanent=true")
    assert confluent("DELETE", "/contexts/.dock") is None
    assert ["."] == confluent("GET", "/contexts")


def test_a_slash_in_a_subject_of_a_real_server(start_server: StartServer) -> None:
    """CSR-7: `%2F` is decoded once, whatever brings the request."""
    address = start_server()
    with httpx.Client(base_url=f"{address}/confluent", timeout=LONG) as http:
        body = {"schema": 'syntax = "proto3"; message A {}', "schemaType": "PROTOBUF"}
        assert 1 == http.post("/subjects/yard%2Fpart.proto/versions", json=body).json()["id"]
        assert ["yard/part.proto"] == http.get("/subjects/").json()
        assert [1] == http.get("/subjects/yard%2Fpart.proto/versions/").json()
        assert 1 == http.post("/subjects/yard%2Fpart.proto", json=body).json()["version"]


def test_a_look_up_that_takes_long_is_left_to_a_thread() -> None:
    """An id is answered on the event loop where that takes some statements, and not where every context is asked."""
    service = app.service(Settings(store="memory:", deliver=False))
    body = b'{"schema": "\\"string\\""}'
    for number in range(50):
        path = f"/confluent/subjects/:.c{number}:a/versions"
        assert 200 == service.answer(Request("POST", path, body=body)).status
    quick = service.quick(Request("GET", "/confluent/schemas/ids/1", "subject=:.c1:a"))
    assert quick is not None
    assert 200 == quick.status
    lost = Request("GET", "/confluent/schemas/ids/1", "subject=nobody")
    assert service.quick(lost) is None
    assert 404 == service.answer(lost).status
    service.close()
