"""POST /match, /validate and /build, through the whole edge and on a real store."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from signalbook import Registry, UsageError
from signalbook.app import RegistryCatalog, catalog_of, flow, service
from signalbook.server.flow import AsgiApp
from signalbook.server.run import flow_for
from signalbook.settings import Settings
from tests.in_process import in_process

XID = "/messagegroups/g/messages/moved"
DEFINITION = {
    "envelope": "CloudEvents/1.0",
    "envelopemetadata": {"type": {"value": "moved"}, "source": {"value": "/vehicles/{vin}"}},
}
MOVED = {"specversion": "1.0", "id": "1", "type": "moved", "source": "/vehicles/A1"}
LINES = {"content-type": "application/x-ndjson"}


class Client:
    """A server without a socket."""

    def __init__(self, application: AsgiApp | None = None, **settings: Any) -> None:
        self._client = in_process(application, **settings)

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """One request; a body that is not text or bytes goes as JSON."""
        content = body if isinstance(body, (bytes, str, type(None))) else json.dumps(body)
        return self._client.request(method, path, content=content, **options)

    def close(self) -> None:
        """End the threads."""
        self._client.close()


@pytest.fixture
def client() -> Iterator[Client]:
    """A server with one definition."""
    made = Client()
    assert 201 == made.send("PUT", XID, DEFINITION).status_code
    yield made
    made.close()


def test_one_message_one_answer(client: Client) -> None:
    """A message is answered with JSON, and status 200 whatever the outcome is."""
    answer = client.send("POST", "/match", MOVED)
    assert (200, "application/json; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
    assert ("matched", XID, {"vin": "A1"}) == tuple(
        answer.json()[name] for name in ("outcome", "definition", "context")
    )
    assert "malformed" == client.send("POST", "/match", "nonsense").json()["outcome"]
    assert "unexpected" == client.send("POST", "/match", {**MOVED, "type": "z"}).json()["outcome"]


def test_json_lines(client: Client) -> None:
    """As many lines come back as messages were sent, in their order; empty ones are passed over."""
    body = "\n".join(json.dumps(one) for one in (MOVED, {**MOVED, "type": "z"})) + "\n\n" + json.dumps(MOVED)
    answer = client.send("POST", "/match", body, headers=LINES)
    assert "application/x-ndjson" == answer.headers["content-type"]
    found = [json.loads(line)["outcome"] for line in answer.text.splitlines()]
    assert ["matched", "unexpected", "matched"] == found
    assert answer.text == client.send("POST", "/match", body).text
    assert "matched" == client.send("POST", "/match", json.dumps(MOVED, indent=1) + "\n").json()["outcome"]


def test_a_batch_gets_an_array(client: Client) -> None:
    """The events of a batch are answered one by one."""
    answer = client.send("POST", "/match", [MOVED, {}])
    assert ["matched", "malformed"] == [one["outcome"] for one in answer.json()]


def test_within(client: Client) -> None:
    """`within` names groups and endpoints to look among; one that is not there is a bad request."""
    client.send("PUT", "/messagegroups/h", {})
    assert "matched" == client.send("POST", "/match?within=/messagegroups/g,/messagegroups/h", MOVED).json()["outcome"]
    assert "unexpected" == client.send("POST", "/match?within=/messagegroups/h", MOVED).json()["outcome"]
    refused = client.send("POST", "/match?within=/messagegroups/z", MOVED)
    assert (400, "bad_request") == (refused.status_code, refused.json()["type"].rpartition("#")[2])


def test_validate(client: Client) -> None:
    """A message is checked by the definition that is named, or by the one it matches."""
    assert "matched" == client.send("POST", "/validate", MOVED).json()["outcome"]
    answer = client.send("POST", f"/validate?definition={XID}", {**MOVED, "type": "z", "source": "/x"})
    assert ["/envelopemetadata/type", "/envelopemetadata/source"] == [one["path"] for one in answer.json()["problems"]]
    assert 400 == client.send("POST", "/validate?definition=/messagegroups/g/messages/z", MOVED).status_code


def test_build(client: Client) -> None:
    """Values make a message by the definition that the request or the line names."""
    values = {"context": {"vin": "A"}, "attributes": {"id": "1"}}
    expected = {"ok": True, "cloudevent": {**MOVED, "source": "/vehicles/A"}}
    assert expected == client.send("POST", f"/build?definition={XID}", values).json()
    assert expected == client.send("POST", "/build", {**values, "definition": XID}).json()
    body = json.dumps({**values, "definition": XID}) + "\n" + json.dumps({"definition": XID}) + "\n{"
    found = [json.loads(line) for line in client.send("POST", "/build", body, headers=LINES).text.splitlines()]
    assert [True, False, False] == [one["ok"] for one in found]
    assert ["vin"] == found[1]["missing"]
    assert 400 == client.send("POST", "/build", values).status_code


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error"),
    [
        ("GET", "/match", None, 405, "action_not_supported"),
        ("PUT", "/build", "{}", 405, "action_not_supported"),
        ("POST", "/match", None, 400, "missing_body"),
        ("POST", "/match?other=1", "{}", 400, "bad_flag"),
        ("POST", "/match?" + "&".join(["within=/messagegroups/g"] * 1001), "{}", 400, "bad_request"),
        ("POST", "/build?definition=/a&definition=/b", "{}", 400, "bad_request"),
        ("POST", "/match?within=", "{}", 400, "bad_request"),
        ("POST", "/match?within=/messagegroups/g&within=,", "{}", 400, "bad_request"),
        ("POST", "/validate?definition=", "{}", 400, "bad_request"),
        ("POST", f"/validate?definition={XID}&within=/messagegroups/g", "{}", 400, "bad_request"),
        ("POST", "/build?definition=/z", "{}\n{}\n", 400, "bad_request"),
    ],
)
def test_wrong_requests(client: Client, method: str, path: str, body: Any, status: int, error: str) -> None:
    """What the paths do not have is refused as any request is."""
    answer = client.send(method, path, body)
    assert (status, error) == (answer.status_code, answer.json()["type"].rpartition("#")[2])


def test_a_body_in_a_coding_is_refused(client: Client) -> None:
    """A compressed body is not taken for a message; `identity` is no coding."""
    for path in ("/match", "/validate", "/build"):
        refused = client.send("POST", path, gzip.compress(b"{}"), headers={"content-encoding": "gzip"})
        assert "unsupported_content_encoding" == refused.json()["type"].rpartition("#")[2]
    assert 200 == client.send("POST", "/match", MOVED, headers={"content-encoding": "identity"}).status_code


def test_a_line_that_cannot_be_built_refuses_no_other(client: Client) -> None:
    """A line that names an unknown definition, or none, is answered as one that could not be built."""
    values = {"context": {"vin": "A"}, "attributes": {"id": "1"}}
    body = "\n".join(json.dumps(one) for one in ({**values, "definition": XID}, {"definition": "/z"}, values))
    found = [json.loads(line) for line in client.send("POST", "/build", body).text.splitlines()]
    assert [True, False, False] == [one["ok"] for one in found]
    assert '"/z" is not a message of the catalog' == found[1]["problems"][0]["message"]
    assert "definition" in found[2]["problems"][0]["message"]
    assert 400 == client.send("POST", "/build", {"definition": "/z"}).status_code


def test_a_message_that_carries_a_batch(client: Client) -> None:
    """The events that one message carries are answered one by one."""
    header = ["content-type", "application/cloudevents-batch+json"]
    carrying = {"protocol": "HTTP", "method": "POST", "headers": [header], "payload": json.dumps([MOVED, MOVED])}
    assert ["matched", "matched"] == [one["outcome"] for one in client.send("POST", "/match", carrying).json()]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("{}\n" * 5, 5),
        ("\n\n" * 50 + "{}\n" * 5, 5),
        (json.dumps([{**MOVED, "data": [{"a": {}}, {"b": {}}, {}, {}, {}, {}]}] * 5), 5),
        (json.dumps([{**MOVED, "data": [{}] * 50}]), 1),
        ("[[" + "0," * 10, 1),
        ("[]\n" * 5, 0),
    ],
    ids=["lines", "blank lines", "nested objects", "one event", "no array", "empty batches"],
)
def test_messages_are_counted_and_nothing_else(
    client: Client, monkeypatch: pytest.MonkeyPatch, body: str, count: int
) -> None:
    """Just as many messages as are answered at once are answered, whatever else is in the body."""
    monkeypatch.setattr("signalbook.server.messages.MOST_MESSAGES", 5)
    answer = client.send("POST", "/match", body)
    assert 200 == answer.status_code, answer.text
    assert count == answer.text.count('"outcome"')


@pytest.mark.parametrize(
    "body",
    [
        "{}\n" * 6,
        "[{},{},{},{},{},{}]",
        "[0,0,0,0,0,0]",
        "[{},{},{}]\n" * 2,
        b'["\xff",0,0,0,0,0]',
        f"[{'1' * 5000}{',0' * 5}]",
    ],
    ids=["lines", "batch", "no events", "lines of batches", "no UTF-8", "long number"],
)
def test_one_message_more_is_refused(client: Client, monkeypatch: pytest.MonkeyPatch, body: str | bytes) -> None:
    """As many messages as one too many are refused, in whatever form they come."""
    monkeypatch.setattr("signalbook.server.messages.MOST_MESSAGES", 5)
    refused = client.send("POST", "/match", body)
    assert (400, "bad_request") == (refused.status_code, refused.json()["type"].rpartition("#")[2])
    assert "more than 5 messages" in refused.text


def test_how_much_one_request_may_ask(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """More messages than are answered at once are refused, as lines and as a batch; so is too large an answer."""
    assert 400 == client.send("POST", "/match", "{}\n" * 100_001, headers=LINES).status_code
    assert 400 == client.send("POST", "/match", f"[{'{},' * 100_001}{{}}]").status_code
    assert 400 == client.send("POST", "/match", f"[{'{},' * 100_001}{{}}]", headers=LINES).status_code
    monkeypatch.setattr("signalbook.server.messages.LARGEST_ANSWER", 1000)
    for body in ("{}\n" * 100, "[" + "{}," * 99 + "{}]"):
        refused = client.send("POST", "/match", body)
        assert "too_large" == refused.json()["type"].rpartition("#")[2]


def test_options(client: Client) -> None:
    """A browser is told the methods."""
    assert "OPTIONS, POST" == client.send("OPTIONS", "/match").headers["allow"]


def test_the_catalog_follows_the_store(client: Client) -> None:
    """A write is seen by the next question."""
    assert "unexpected" == client.send("POST", "/match", {**MOVED, "type": "new"}).json()["outcome"]
    other = {**DEFINITION, "envelopemetadata": {"type": {"value": "new"}}}
    client.send("PUT", "/messagegroups/g/messages/new", other)
    assert "matched" == client.send("POST", "/match", {**MOVED, "type": "new"}).json()["outcome"]
    client.send("DELETE", "/messagegroups/g/messages/new")
    assert "unexpected" == client.send("POST", "/match", {**MOVED, "type": "new"}).json()["outcome"]


def test_who_may_read_may_ask() -> None:
    """A read token is enough, none is not; a server that is read-only answers."""
    client = Client(read_token="r", write_token="w", read_only=True)
    try:
        assert 401 == client.send("POST", "/match", MOVED).status_code
        assert 200 == client.send("POST", "/match", MOVED, headers={"authorization": "Bearer r"}).status_code
        assert 403 == client.send("PUT", XID, DEFINITION, headers={"authorization": "Bearer w"}).status_code
    finally:
        client.close()


def test_a_path_that_is_switched_off() -> None:
    """Without the path a model may have a group type of that name; with it, the model is refused."""
    model = {"groups": {"match": {"singular": "matching", "resources": {"things": {"singular": "thing"}}}}}
    plain = Client()
    without = Client(without=frozenset({"match"}))
    try:
        refused = plain.send("PUT", "/modelsource", model)
        assert (400, "model_error") == (refused.status_code, refused.json()["type"].rpartition("#")[2])
        assert 200 == without.send("PUT", "/modelsource", model).status_code
        assert 201 == without.send("PUT", "/match/one", {}).status_code
        assert 200 == without.send("POST", "/validate", MOVED).status_code
    finally:
        plain.close()
        without.close()


def test_a_store_whose_model_has_the_path(tmp_path: Path) -> None:
    """A server does not hide a group type of a store behind its own path: it says what to do, and does not start."""
    store = str(tmp_path / "one.db")
    model = {"groups": {"build": {"singular": "building"}}}
    Registry.open(store, model=model).close()
    with pytest.raises(UsageError, match="--without build"):
        flow(Settings(store=store))
    with pytest.raises(UsageError, match="--without"):
        Settings(without=frozenset({"messagegroups"})).checked()


def test_a_catalog_is_compiled_once() -> None:
    """The catalog of a registry is the same object until something is written."""
    with Registry.open("memory:") as registry:
        registry.put(XID, DEFINITION)
        kept = RegistryCatalog(registry.store)
        first = kept.current()
        assert first is kept.current()
        registry.patch(XID, {"description": "x"})
        assert first is not kept.current()
        assert [XID] == list(catalog_of(registry).definitions)


SCHEMA = {"format": "JsonSchema/draft-07", "schema": {"definitions": {"n": {"type": "integer"}}, "type": "integer"}}


@pytest.mark.parametrize("suffix", ["", "$details", "/versions/1", "/versions/1$details", "#/definitions/n"])
@pytest.mark.parametrize("host", ["http://registry.example:8080", "http://other.example"])
def test_a_schema_by_the_registrys_own_address(client: Client, suffix: str, host: str) -> None:
    """A schema that is named by an address of the server is found by /match and /build, whichever it is reached by."""
    assert 201 == client.send("PUT", "/schemagroups/s/schemas/n$details", SCHEMA).status_code
    uri = f"{host}/schemagroups/s/schemas/n{suffix}"
    named = {**DEFINITION, "dataschemaformat": "JsonSchema/draft-07", "dataschemauri": uri}
    assert 200 == client.send("PUT", XID, named).status_code
    there = {"headers": {"host": host.removeprefix("http://")}}
    wrong = client.send("POST", "/match", {**MOVED, "data": "no"}, **there).json()
    assert ("nonconformant", ["/data"]) == (wrong["outcome"], [one["path"] for one in wrong["problems"]])
    right = client.send("POST", "/match", {**MOVED, "data": 5}, **there).json()
    assert ("matched", 5, None) == (right["outcome"], right["data"], right.get("unchecked"))
    built = client.send("POST", f"/build?definition={XID}", {"context": {"vin": "A"}, "data": "no"}, **there).json()
    assert [("/data", "payload")] == [(one["path"], one["code"]) for one in built["problems"]]
    elsewhere = client.send("POST", "/match", {**MOVED, "data": "no"}, headers={"host": "third.example"}).json()
    assert ("matched", ["payload"]) == (elsewhere["outcome"], elsewhere["unchecked"])


def test_the_names_of_this_machine_are_one(client: Client) -> None:
    """A schema that is named by 127.0.0.1 is found by those who say localhost."""
    client.send("PUT", "/schemagroups/s/schemas/n$details", SCHEMA)
    uri = "http://127.0.0.1:8080/schemagroups/s/schemas/n"
    client.send("PUT", XID, {**DEFINITION, "dataschemaformat": "JsonSchema/draft-07", "dataschemauri": uri})
    found = client.send("POST", "/match", {**MOVED, "data": "no"}, headers={"host": "localhost:8080"}).json()
    assert "nonconformant" == found["outcome"]


@pytest.mark.parametrize(
    "named", ["127.0.0.1:8099", "localhost:8099", "[::1]:8099", "fixed.example", "sent.example:81"]
)
@pytest.mark.parametrize("listening", ["127.0.0.1", "0.0.0.0", "::1"])
def test_each_address_of_a_server_is_its_own(named: str, listening: str) -> None:
    """Where it listens, what its operator fixed and the host of a request are addresses of a server."""
    settings = Settings(store="memory:", log=False, host=listening, port=8099, base_url="http://fixed.example")
    client = Client(AsgiApp(flow_for(service(settings), settings)))
    client.send("PUT", "/schemagroups/s/schemas/n$details", SCHEMA)
    uri = f"http://{named}/schemagroups/s/schemas/n"
    client.send("PUT", XID, {**DEFINITION, "dataschemaformat": "JsonSchema/draft-07", "dataschemauri": uri})
    event = {**MOVED, "data": "no"}
    found = client.send("POST", "/match", event, headers={"host": "sent.example:81"}).json()
    other = client.send("POST", "/match", event, headers={"host": "other.example:x:y"}).json()
    client.close()
    known = "matched" if named == "sent.example:81" else "nonconformant"
    assert ("nonconformant", known) == (found["outcome"], other["outcome"])


@pytest.mark.parametrize("attribute", ["dataschemauri", "dataschemaxid"])
def test_a_relative_schema_is_absolute_in_what_is_built(client: Client, attribute: str) -> None:
    """The dataschema of an event that is built has the address by which the server was reached."""
    client.send("PUT", "/schemagroups/s/schemas/n$details", SCHEMA)
    relative = {"dataschemaformat": "JsonSchema/draft-07", attribute: "/schemagroups/s/schemas/n"}
    client.send("PUT", XID, {**DEFINITION, **relative})
    for host in ("a.example", "b.example:81"):
        values = {"context": {"vin": "A"}, "data": 5}
        built = client.send("POST", f"/build?definition={XID}", values, headers={"host": host}).json()
        assert f"http://{host}/schemagroups/s/schemas/n" == built["cloudevent"]["dataschema"]


def test_schemas_required() -> None:
    """With --schemas required a schema at a foreign host is a problem; without it the metadata decide."""
    foreign = {"dataschemaformat": "JsonSchema/draft-07", "dataschemauri": "https://example.com/n.json"}
    for setting, outcome in (("optional", "matched"), ("required", "nonconformant")):
        client = Client(schemas=setting)
        client.send("PUT", XID, {**DEFINITION, **foreign})
        assert outcome == client.send("POST", "/match", {**MOVED, "data": 1}).json()["outcome"]
        client.close()


BINARY = {"ce-specversion": "1.0", "ce-id": "1", "ce-type": "moved", "ce-source": "/vehicles/A1"}


@pytest.mark.parametrize("path", ["/match", "/validate", f"/validate?definition={XID}"])
def test_an_event_in_binary_mode(client: Client, path: str) -> None:
    """A request may be an event itself: its ce- headers, and the data as its body, whatever that is."""
    for content_type, body in (("application/json", '{"a": 1}'), ("application/octet-stream", b"\0\1"), (None, "")):
        headers = {**BINARY, **({"content-type": content_type} if content_type else {})}
        found = client.send("POST", path, body or None, headers=headers)
        assert (200, "matched", {"vin": "A1"}) == (
            found.status_code, found.json()["outcome"], found.json()["context"],
        )  # fmt: skip
        assert content_type == found.json()["cloudevent"].get("datacontenttype")


def test_an_event_in_binary_mode_that_is_none(client: Client) -> None:
    """A request that claims to be an event and is none is malformed, and what its type would have meant is named."""
    found = client.send("POST", "/match", "1", headers={**BINARY, "ce-id": ""}).json()
    assert ("malformed", [XID]) == (found["outcome"], [one["definition"] for one in found["candidates"]])


def test_the_content_type_goes_before_ce_headers(client: Client) -> None:
    """A structured event is read from its body, whatever headers stand beside it."""
    headers = {**BINARY, "ce-type": "other", "content-type": "application/cloudevents+json"}
    assert "matched" == client.send("POST", "/match", MOVED, headers=headers).json()["outcome"]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/cloudevents+json", [MOVED]),
        ("application/cloudevents+json; charset=utf-8", []),
        ("Application/CloudEvents-Batch+JSON", MOVED),
        ("application/cloudevents+json", "\n".join([json.dumps(MOVED)] * 2)),
        ("application/cloudevents-batch+json", "\n".join([json.dumps([MOVED])] * 2)),
    ],
)
def test_a_batch_as_one_event_and_the_reverse(client: Client, content_type: str, body: Any) -> None:
    """A batch, or several lines, sent as one event are refused, and so is what is sent as a batch and is none."""
    refused = client.send("POST", "/match", body, headers={"content-type": content_type})
    assert (400, "bad_request") == (refused.status_code, refused.json()["type"].rpartition("#")[2])
    right = {"content-type": "application/cloudevents-batch+json"}
    assert ["matched"] == [one["outcome"] for one in client.send("POST", "/match", [MOVED], headers=right).json()]
