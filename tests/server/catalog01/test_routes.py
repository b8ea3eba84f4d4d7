"""The 0.1 message catalog API, asked by a plain HTTP client of a real server; sections are those of its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.cases import read_cases
from tests.conftest import StartServer
from tests.in_process import in_process
from tests.patience import LONG

ROOT = "/messagecatalog"
Json = dict[str, Any]


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    """A client of a server with an empty catalog."""
    with in_process() as found:
        yield found


def event(name: str, **attributes: Json) -> Json:
    """A definition of an event."""
    return {"id": name, "definition": {"attributes": {"type": {"value": name}, **attributes}}}


def make_group(client: httpx.Client, name: str = "g", form: str = "CloudEvents", **more: Any) -> httpx.Response:
    """Put a group."""
    return client.put(f"{ROOT}/{name}", json={"specversion": "0.1", "format": form, **more})


def post(client: httpx.Client, definition: Json, group: str = "g") -> httpx.Response:
    """Post a definition."""
    return client.post(f"{ROOT}/{group}/messagedefinitions/", json=definition)


def numbers(client: httpx.Client, name: str, group: str = "g") -> list[int]:
    """The versions that a definition has."""
    return [one["version"] for one in client.get(f"{ROOT}/{group}/messagedefinitions/{name}/versions").json()]


# --- 4.2: the catalog and its groups ----------------------------------------------------------------------------------


def test_features(client: httpx.Client, start_server: StartServer) -> None:
    """4.2.1: OPTIONS says what can be filtered by, at least the id, and whether there are pages and updates."""
    answer = client.options(ROOT)
    assert 200 == answer.status_code
    assert {"filterattributes", "pagination", "update"} == set(answer.json())
    assert "id" in answer.json()["filterattributes"]
    assert (True, True) == (answer.json()["pagination"], answer.json()["update"])
    assert "GET, OPTIONS" == answer.headers["allow"]
    capabilities = client.get("/capabilities").json()
    capabilities["available"]["entities"]["mutable"] = False
    client.put("/capabilities", json=capabilities).raise_for_status()
    assert client.options(ROOT).json()["update"] is False
    assert 405 == make_group(client).status_code
    read_only = start_server("--no-log", "--read-only")
    assert httpx.options(read_only + ROOT, timeout=LONG).json()["update"] is False


def test_features_regard_who_asks(start_server: StartServer) -> None:
    """4.2.1: whoever asks gets the features, and `update` says whether they could write."""
    address = start_server("--no-log", "--read-token", "r", "--write-token", "w") + ROOT
    found = {}
    for token in ("", "r", "w", "x"):
        answer = httpx.options(address, headers={"authorization": f"Bearer {token}"} if token else {}, timeout=LONG)
        assert (200, True) == (answer.status_code, answer.json()["pagination"])
        found[token] = answer.json()["update"]
    assert {"": False, "r": False, "w": True, "x": False} == found
    assert 401 == httpx.get(address, timeout=LONG).status_code


def test_groups(client: httpx.Client) -> None:
    """4.2.2 to 4.2.5: a group is made by PUT, read, listed, updated and deleted."""
    made = make_group(client, "org.example.app", description="The app.", documentation="# App", tags="a,b")
    assert (201, f"{client.base_url}{ROOT}/org.example.app") == (made.status_code, made.headers["location"])
    shown = client.get(f"{ROOT}/org.example.app").json()
    times = {name: shown.pop(name) for name in ("createdtimeutc", "updatedtimeutc")}
    assert all(time.endswith("Z") for time in times.values())
    assert {
        "id": "org.example.app",
        "specversion": "0.1",
        "format": "CloudEvents",
        "description": "The app.",
        "documentation": "# App",
        "tags": "a,b",
        "definitions": [],
    } == shown
    assert 200 == make_group(client, "org.example.app", description="Other.").status_code
    make_group(client, "events@example.com", "NATS")
    assert ["events@example.com", "org.example.app"] == [one["id"] for one in client.get(ROOT).json()]
    assert 204 == client.delete(f"{ROOT}/events@example.com").status_code
    assert 404 == client.get(f"{ROOT}/events@example.com").status_code
    assert 404 == client.delete(f"{ROOT}/events@example.com").status_code


@pytest.mark.parametrize("missing", ["specversion", "format"])
def test_a_group_states_its_version_and_format(client: httpx.Client, missing: str) -> None:
    """2.1.1: `specversion` is 0.1 and `format` is there; the id is the path's."""
    body = {"specversion": "0.1", "format": "NATS"}
    del body[missing]
    answer = client.put(f"{ROOT}/g", json=body)
    assert (400, missing) == (answer.status_code, answer.json()["args"]["name"])
    assert 400 == client.put(f"{ROOT}/g", json={"specversion": "0.2", "format": "NATS"}).status_code
    assert 400 == client.put(f"{ROOT}/g", json={"specversion": "0.1", "format": "NATS", "id": "h"}).status_code


def test_a_format_stays_while_there_are_definitions(client: httpx.Client) -> None:
    """2.1.1: the format of a group is not modified while it has definitions."""
    make_group(client, form="NATS")
    assert 200 == make_group(client, form="CloudEvents").status_code
    post(client, event("a")).raise_for_status()
    answer = make_group(client, form="NATS")
    assert (400, "format") == (answer.status_code, answer.json()["args"]["name"])
    assert 200 == make_group(client, form="CloudEvents", description="x").status_code


def test_a_group_document_with_definitions(client: httpx.Client) -> None:
    """1: a group with its definitions and their versions can be stored as one document."""
    versions = [{"version": 1, **event("b")}, {"version": 2, **event("b", subject={"value": "/{x}"})}]
    for version in versions:
        del version["id"]
    answer = make_group(client, definitions=[event("a"), {"id": "b", "versions": versions}])
    assert ["a", "b"] == [one["id"] for one in answer.json()["definitions"]]
    assert [1, 2] == numbers(client, "b")


def test_a_group_document_has_every_version(client: httpx.Client) -> None:
    """2.1, 2.2: a group's document has an array of versions a definition, and specversion once, for the group."""
    make_group(client)
    for text in ("one", "two"):
        post(client, {**event("a"), "description": "all", "documentation": text}).raise_for_status()
    (embedded,) = client.get(f"{ROOT}/g").json()["definitions"]
    common = {"id": "a", "format": "CloudEvents", "description": "all", "documentation": "two"}
    assert common == {n: embedded[n] for n in embedded if n != "versions"}
    wanted = [(1, None, event("a")["definition"]), (2, None, event("a")["definition"])]
    assert wanted == [(one["version"], one.get("documentation"), one["definition"]) for one in embedded["versions"]]
    assert all("createdtimeutc" in one and "specversion" not in one for one in embedded["versions"])
    for path in ("", "/a", "/a/versions", "/a/versions/1"):
        shown = client.get(f"{ROOT}/g/messagedefinitions{path}").json()
        for one in shown if isinstance(shown, list) else [shown]:
            assert ("0.1", False, "two") == (one["specversion"], "versions" in one, one["documentation"])


def test_definitions_of_a_group_refer_to_each_other(client: httpx.Client) -> None:
    """2.2.4: a definition may be related to a later one of the same document, and in a circle; not to nobody."""
    first, second = {**event("a"), "relatedto": "b"}, {**event("b"), "relatedto": "a"}
    assert 201 == make_group(client, definitions=[first, second]).status_code
    answer = make_group(client, "h", definitions=[event("a"), {**event("b"), "relatedto": "nobody"}])
    assert (400, "relatedto") == (answer.status_code, answer.json()["args"]["name"])
    assert ["g"] == [one["id"] for one in client.get(ROOT).json()]


def test_an_id_is_given_once(client: httpx.Client) -> None:
    """2.2.4: an id is unique in its group, in each of its spellings."""
    for ids in (("a", "a"), ("p%41", "pA")):
        definitions = [{"id": id_, "definition": {}, "description": str(place)} for place, id_ in enumerate(ids)]
        answer = make_group(client, form="NATS", definitions=definitions)
        assert (400, "definitions") == (answer.status_code, answer.json()["args"]["name"])
    answer = make_group(client, form="NATS", definitions=[{"definition": {}}, {"definition": {}}])
    assert (400, "definitions[0].id") == (answer.status_code, answer.json()["args"]["name"])
    assert [] == client.get(ROOT).json()


def test_a_history_is_stored_once(client: httpx.Client) -> None:
    """2.2: a document with all versions of a definition may come again, and with one more."""
    versions = [
        {"version": number, "definition": {"pub": {"subject": {"value": f"s{number}"}}}} for number in (1, 2, 3)
    ]
    for count in (2, 2, 3):
        make_group(client, form="NATS", definitions=[{"id": "d", "versions": versions[:count]}]).raise_for_status()
        assert list(range(1, count + 1)) == numbers(client, "d")
    assert 200 == post(client, {"id": "d", "versions": versions}).status_code
    assert 201 == post(client, {"id": "d", "versions": versions[:2]}).status_code
    shown = client.get(f"{ROOT}/g/messagedefinitions/d/versions").json()
    assert ["s1", "s2", "s3", "s2"] == [one["definition"]["pub"]["subject"]["value"] for one in shown]


def test_every_tag_that_is_shown_is_found(client: httpx.Client) -> None:
    """4.3.1: a tag that 1.0 cannot have as a label's name is one to filter by as well, whole and as it is written."""
    make_group(client, tags="EU,a")
    make_group(client, "h", tags="EUR, EU west ,a", form="NATS")
    post(client, {**event("x"), "tags": "One tag,b"}).raise_for_status()
    post(client, {**event("y"), "labels": {"b": "valued"}}).raise_for_status()
    for tag, groups in {"EU": ["g"], "EUR": ["h"], "EU west": ["h"], "a": ["g", "h"], "eu": [], "E*": []}.items():
        assert groups == [one["id"] for one in client.get(ROOT, params={"tags": tag}).json()], tag
    listing = f"{ROOT}/g/messagedefinitions"
    for tag, found in {"One tag": ["x"], "tag": [], "b": ["x"], "One tag,b": [], "it's": []}.items():
        assert found == [one["id"] for one in client.get(listing, params={"tags": tag}).json()], tag


def test_lists_are_filtered_and_paged(client: httpx.Client) -> None:
    """4.2.2, 4.3.1, 4.4.1: a listing can be filtered by what OPTIONS names, and comes in pages."""
    make_group(client, tags="x", description="One, of two")
    make_group(client, "h", "NATS")
    for name in ("a", "b", "c"):
        post(client, {**event(name), "tags": f"t{name}", "authority": "urn:x"} if name != "c" else event(name))
    assert ["g"] == [one["id"] for one in client.get(ROOT, params={"tags": "x"}).json()]
    assert ["g"] == [one["id"] for one in client.get(ROOT, params={"description": "One, of two"}).json()]
    assert ["h"] == [one["id"] for one in client.get(ROOT, params={"id": "h"}).json()]
    listing = f"{ROOT}/g/messagedefinitions"
    assert ["b"] == [one["id"] for one in client.get(listing, params={"id": "b"}).json()]
    assert ["a", "b"] == [one["id"] for one in client.get(listing, params={"authority": "urn:x"}).json()]
    assert ["b"] == [one["id"] for one in client.get(listing, params={"authority": "urn:x", "tags": "tb"}).json()]
    assert 400 == client.get(listing, params={"colour": "red"}).status_code
    found, address = [], f"{listing}?limit=2"
    while address:
        answer = client.get(address)
        found.append([one["id"] for one in answer.json()])
        address = answer.links.get("next", {}).get("url", "")
    assert [["a", "b"], ["c"]] == found
    post(client, event("a", subject={"value": "s"}))
    first = client.get(f"{listing}/a/versions?limit=1")
    second = client.get(first.links["next"]["url"])
    assert ([1], [2]) == ([one["version"] for one in first.json()], [one["version"] for one in second.json()])


# --- 4.3: definitions -------------------------------------------------------------------------------------------------


def test_definitions(client: httpx.Client) -> None:
    """4.3: a definition is added by POST, a second POST adds a version, GET gives the latest, DELETE takes all."""
    make_group(client)
    made = post(client, {**event("a"), "description": "First."})
    place = f"{client.base_url}{ROOT}/g/messagedefinitions/a/versions/1"
    assert (201, place) == (made.status_code, made.headers["location"])
    assert ("CloudEvents", 1, "0.1") == (made.json()["format"], made.json()["version"], made.json()["specversion"])
    assert 2 == post(client, {**event("a"), "description": "Second."}).json()["version"]
    latest = client.get(f"{ROOT}/g/messagedefinitions/a")
    assert ("Second.", 2) == (latest.json()["description"], latest.json()["version"])
    assert ["a"] == [one["id"] for one in client.get(f"{ROOT}/g/messagedefinitions").json()]
    head = client.head(f"{ROOT}/g/messagedefinitions/a")
    assert (200, b"", latest.headers["content-length"]) == (
        head.status_code,
        head.content,
        head.headers["content-length"],
    )
    assert 204 == client.delete(f"{ROOT}/g/messagedefinitions/a").status_code
    assert 404 == client.get(f"{ROOT}/g/messagedefinitions/a").status_code
    assert 404 == client.get(f"{ROOT}/g/messagedefinitions/a/versions/1").status_code


def test_all_definitions_can_be_deleted(client: httpx.Client) -> None:
    """4.3.2: DELETE of the collection takes every definition and leaves the group."""
    make_group(client)
    for name in ("a", "b"):
        post(client, event(name))
    assert 204 == client.delete(f"{ROOT}/g/messagedefinitions").status_code
    assert [] == client.get(f"{ROOT}/g/messagedefinitions").json()
    assert 200 == client.get(f"{ROOT}/g").status_code


def test_a_definition_needs_its_group(client: httpx.Client) -> None:
    """4.3: what is not there is 404, and a body that is none is refused."""
    assert 404 == post(client, event("a")).status_code
    assert 404 == client.get(f"{ROOT}/g/messagedefinitions").status_code
    assert 404 == client.delete(f"{ROOT}/g/messagedefinitions").status_code
    make_group(client)
    assert 404 == client.get(f"{ROOT}/g/messagedefinitions/a").status_code
    assert 404 == client.get(f"{ROOT}/g/other").status_code
    assert 400 == client.post(f"{ROOT}/g/messagedefinitions", content=b"").status_code
    assert 400 == client.post(f"{ROOT}/g/messagedefinitions", content=b"{").status_code
    assert 400 == client.post(f"{ROOT}/g/messagedefinitions", json=[1]).status_code


def test_rules_of_definitions(client: httpx.Client) -> None:
    """2.2.4, 2.2.5 and 3: each rule is checked, names the attribute, and leaves nothing behind."""
    for form in ("CloudEvents", "AMQP", "MQTT", "NATS"):
        make_group(client, form, form).raise_for_status()
    for case in read_cases("server/catalog01_refused"):
        answer = post(client, case.given["document"], case.given["format"])
        assert (400, case.expect) == (answer.status_code, answer.json().get("args", {}).get("name")), case.name
    for form in ("CloudEvents", "AMQP", "MQTT", "NATS"):
        assert [] == client.get(f"{ROOT}/{form}/messagedefinitions").json()


def test_an_error_says_where(client: httpx.Client) -> None:
    """What is wrong in a group's document is told at the definition that has it, in the names of 0.1."""
    for case in read_cases("server/catalog01_places"):
        first = {"id": "first", "definition": {"attributes": {"type": {"value": "first"}}}}
        first = first if case.given["format"] == "CloudEvents" else {"id": "first", "definition": {}}
        answer = make_group(client, form=case.given["format"], definitions=[first, case.given["definition"]])
        told = answer.json()
        assert (400, *case.expect) == (answer.status_code, told.get("subject"), told["args"]["name"]), case.name
    assert [] == client.get(ROOT).json()
    make_group(client).raise_for_status()
    answer = post(client, {**event("a"), "authority": "not a uri"})
    assert f"{ROOT}/g/messagedefinitions/a" == answer.json()["subject"]
    answer = make_group(client, labels={"A": "x"})
    assert (f"{ROOT}/g", "labels") == (answer.json()["subject"], answer.json()["args"]["name"])


DEFINITIONS: dict[str, list[Json]] = {
    "AMQP": [
        {
            "header": {"durable": {"value": "true"}, "ttl": {"value": "{ttl}"}},
            "properties": {"subject": {"value": "s", "required": True}, "correlationid": {"value": ""}},
            "applicationproperties": {"Own": {"value": "{x}"}},
            "applicationdata": {"dataschema": {"value": "https://s", "schematype": "Avro"}, "amqpencoding": "Value"},
        },
        {"header": {"durable": True, "priority": {"value": 4}}, "properties": {"creationtime": {"required": True}}},
        {"applicationdata": {"dataschema": {"schema": {"type": "record", "name": "R", "fields": []}}}},
        {"applicationdata": {"dataschema": {"schema": "nobody knows what"}}},
    ],
    "MQTT": [
        {"publish": {"mqttversion": "3.1.1", "qos": {"value": "1"}, "topicname": {"value": "a/{b}"}}},
        {"publish": {"mqttversion": "5.0", "topicname": {"value": "t"}}, "userproperty": {"p": {"value": "v"}}},
        {"publish": {"mqttversion": {"value": "5.0"}, "qos": 1, "retain": {"value": "{r}", "required": True}}},
        {"publish": {"topicname": {"value": "a/{b-c}"}, "contenttype": {"required": True, "description": "d"}}},
    ],
    "NATS": [{"pub": {"subject": {"value": "a.{b}", "required": True}, "replyto": {"value": "r"}}}],
    "Own Format": [{"anything": {"at": ["all"]}}],
    "Kafka": [{"topic": {"own": 1}, "Headers": [1], "payload": {"dataschema": {"rule": 2}}}],
    "HTTP": [{"path": 5, "status": {"x-y": "z"}}],
    "mqtt": [{"publish": {"qos": "high"}}],
    "Generic": [{"payload": {"dataschema": {"schema": 5}}}],
}


@pytest.mark.parametrize("form", DEFINITIONS)
def test_formats(client: httpx.Client, form: str) -> None:
    """3: definitions of every format, a format of its own among them, are served as they were posted."""
    make_group(client, form=form).raise_for_status()
    for number, definition in enumerate(DEFINITIONS[form]):
        answer = post(client, {"id": f"d{number}", "definition": definition})
        assert (201, definition) == (answer.status_code, answer.json().get("definition")), answer.text
    group = client.get(f"{ROOT}/g").json()
    shown = [one["versions"][0]["definition"] for one in group["definitions"]]
    assert (form, DEFINITIONS[form]) == (group["format"], shown)


@pytest.mark.parametrize("tags", ["b,a", "a, b", " A ,b,,a", "x y,X", " ", ",", " , ", ",a"])
def test_tags_come_back_as_they_came(client: httpx.Client, tags: str) -> None:
    """2.1.1, 2.2.4: tags are one string, and stay it: order, spaces and case."""
    assert tags == make_group(client, tags=tags).json()["tags"]
    assert tags == post(client, {**event("a"), "tags": tags}).json()["tags"]
    client.patch("/messagegroups/g", json={"labels": {"c": ""}}).raise_for_status()
    assert "c" == client.get(f"{ROOT}/g").json()["tags"]


def test_protocols_of_10_are_formats(client: httpx.Client) -> None:
    """A group of 1.0 with a protocol that 0.1 has no format for is one of that name, and takes more of its kind."""
    messages = {"m": {"protocol": "KAFKA", "protocoloptions": {"topic": "t"}}}
    client.put("/messagegroups/g", json={"protocol": "KAFKA", "messages": messages}).raise_for_status()
    assert "KAFKA" == post(client, {"id": "n", "definition": {"topic": "u"}}).json()["format"]
    assert "KAFKA" == client.get("/messagegroups/g/messages/n").json()["protocol"]
    copied = client.put(f"{ROOT}/h", json={**client.get(f"{ROOT}/g").json(), "id": "h"})
    assert (201, "KAFKA") == (copied.status_code, client.get("/messagegroups/h/messages/m").json()["protocol"])


def test_relations(client: httpx.Client) -> None:
    """2.2.4: a relation names a definition of the same group, by a property that carries it."""
    make_group(client, form="AMQP")
    post(client, {"id": "request", "definition": {}}).raise_for_status()
    reply = {"relatedto": "request", "relatedvia": "properties.correlationid", "relation": "reply"}
    shown = post(client, {"id": "answer", **reply, "definition": {"properties": {"correlationid": {"value": ""}}}})
    assert reply == {name: shown.json()[name] for name in reply}


def test_what_others_are_related_to_stays(client: httpx.Client) -> None:
    """2.2.4: a definition cannot be deleted alone while another says that it is related to it."""
    make_group(client)
    post(client, {**event("a"), "relatedto": "a"}).raise_for_status()
    post(client, {**event("b"), "relatedto": "a"}).raise_for_status()
    for path in ("a", "a/versions/1"):
        answer = client.delete(f"{ROOT}/g/messagedefinitions/{path}")
        assert (400, True) == (answer.status_code, "'b' is related to it" in answer.text)
    post(client, event("b")).raise_for_status()
    assert 204 == client.delete(f"{ROOT}/g/messagedefinitions/a").status_code
    post(client, {**event("c"), "relatedto": "b"}).raise_for_status()
    assert 204 == client.delete(f"{ROOT}/g/messagedefinitions").status_code


def test_authority(client: httpx.Client) -> None:
    """2.2.1, 2.2.4: an authority is inherited by later versions, and never changes."""
    make_group(client)
    post(client, {**event("a"), "authority": "urn:example:one"}).raise_for_status()
    assert "urn:example:one" == post(client, event("a", subject={"value": "s"})).json()["authority"]
    answer = post(client, {**event("a"), "authority": "urn:example:two"})
    assert (400, "authority") == (answer.status_code, answer.json()["args"]["name"])
    post(client, event("b")).raise_for_status()
    assert 400 == post(client, {**event("b"), "authority": "urn:example:two"}).status_code


def test_ids_that_10_cannot_have(client: httpx.Client) -> None:
    """2.1.1: ids are segments of a path, with characters that 1.0 does not allow; there they are escaped."""
    assert 201 == make_group(client, "a+b", "NATS").status_code
    assert "x!y" == post(client, {"id": "x!y", "definition": {}}, "a+b").json()["id"]
    assert 200 == client.get(f"{ROOT}/a+b/messagedefinitions/x!y").status_code
    assert "x~21y" == client.get("/messagegroups/a~2bb/messages/x~21y").json()["messageid"]


# --- 4.4: versions ----------------------------------------------------------------------------------------------------


def test_versions_are_immutable(client: httpx.Client) -> None:
    """2.2, 4.4: versions are counted by the server, listed, read and deleted, never modified, never counted anew."""
    make_group(client)
    for text in ("one", "two", "three"):
        post(client, {**event("a"), "version": 77, "description": text}).raise_for_status()
    versions = f"{ROOT}/g/messagedefinitions/a/versions"
    assert [1, 2, 3] == numbers(client, "a")
    assert "one" == client.get(f"{versions}/1").json()["description"]
    assert 200 == client.head(f"{versions}/1").status_code
    assert 404 == client.get(f"{versions}/77").status_code
    assert 404 == client.get(f"{versions}/x").status_code
    for method in ("PUT", "PATCH", "POST"):
        assert 405 == client.request(method, f"{versions}/1", json=event("a")).status_code
        assert 405 == client.request(method, f"{ROOT}/g/messagedefinitions/a", json=event("a")).status_code
    assert 204 == client.delete(f"{versions}/2").status_code
    assert [1, 3] == numbers(client, "a")
    assert 204 == client.delete(f"{versions}/3").status_code
    latest = client.get(f"{ROOT}/g/messagedefinitions/a").json()
    assert ([1], 1, "one") == (numbers(client, "a"), latest["version"], latest["description"])
    assert "one" == client.get("/messagegroups/g/messages/a").json()["description"]
    assert [(200, 1), (201, 4)] == [
        (answer.status_code, answer.json()["version"])
        for answer in (post(client, {**event("a"), "description": text}) for text in ("one", "three"))
    ]
    client.delete(f"{ROOT}/g/messagedefinitions/a")
    assert 5 == post(client, event("a")).json()["version"]
    assert 204 == client.delete(f"{versions}/5").status_code
    assert 404 == client.get(f"{ROOT}/g/messagedefinitions/a").status_code


def test_the_same_document_is_no_new_version(client: httpx.Client) -> None:
    """2.2: a version is added where the definition changes; the same again answers with the one there is."""
    make_group(client)
    answers = [post(client, event("a")) for _ in range(2)]
    assert [(201, 1), (200, 1)] == [(answer.status_code, answer.json()["version"]) for answer in answers]


def test_the_same_document_is_no_change(client: httpx.Client) -> None:
    """2.2: a document that is sent again, as it was sent or as it is shown, raises no epoch and sends no event."""
    make_group(client, tags="b, A", documentation="# d")
    for text in ("one", "two"):
        post(client, {**event("a", subject={"description": text}), "tags": "x, y"}).raise_for_status()
    whole = client.get(f"{ROOT}/g").json()
    cursor, before = client.get("/changes").headers["signalbook-cursor"], client.get("/export").json()
    assert 200 == make_group(client, tags="b, A", documentation="# d").status_code
    assert 200 == client.put(f"{ROOT}/g", json=whole).status_code
    assert 200 == post(client, {**event("a", subject={"description": "two"}), "tags": "x, y"}).status_code
    assert 200 == post(client, client.get(f"{ROOT}/g/messagedefinitions/a").json()).status_code
    assert [] == client.get("/changes", params={"since": cursor}).json()
    assert before == client.get("/export").json()
    assert 201 == post(client, {**event("a"), "tags": "x,y"}).status_code


def test_version_uris(client: httpx.Client) -> None:
    """2.2.2, 4.4.3: a version is found by its authority and its id, wherever its copy is."""
    make_group(client)
    authorities = {"implied": None, "url": "https://catalog.example.com/", "urn": "urn:example:messagecatalog"}
    for name, authority in authorities.items():
        post(client, {**event(name), **({"authority": authority} if authority else {})}).raise_for_status()
        post(client, event(name, subject={"value": "s"})).raise_for_status()
    base = f"{client.base_url}{ROOT}".replace("//messagecatalog", "/messagecatalog")
    for uri, name, version in (
        (f"{base}/g/messagedefinitions/implied/versions/1", "implied", 1),
        (f"{base}/g/messagedefinitions/implied", "implied", 2),
        (f"{base}/implied", "implied", 2),
        ("https://catalog.example.com/g/messagedefinitions/url/versions/1", "url", 1),
        ("https://catalog.example.com/url", "url", 2),
        ("urn:example:messagecatalog:urn", "urn", 2),
        ("urn:example:messagecatalog:urn:1", "urn", 1),
        ("urn:example:messagecatalog:g:urn:1", "urn", 1),
        ("urn:example:messagecatalog:g:urn", "urn", 2),
    ):
        answer = client.get("/messagedefinition", params={"uri": uri})
        assert (200, name, version) == (answer.status_code, *(answer.json().get(part) for part in ("id", "version")))
        assert 200 == client.head("/messagedefinition", params={"uri": uri}).status_code
    shown = client.get(f"{ROOT}/g/messagedefinitions/url/versions/1")
    assert "https://catalog.example.com/g/messagedefinitions/url/versions/1" == shown.links["canonical"]["url"]
    for uri in ("https://other.example/url", f"{base}/url", "urn:x", "nothing", f"{base}/g/messagedefinitions/no"):
        assert 404 == client.get("/messagedefinition", params={"uri": uri}).status_code
    assert 400 == client.get("/messagedefinition").status_code
    assert 405 == client.post("/messagedefinition", json={}).status_code


def test_what_no_uri_names(client: httpx.Client) -> None:
    """4.4.3: a URI that names nothing is the subject of the answer, also where only its version is not there."""
    make_group(client)
    post(client, {**event("a"), "authority": "https://c.example"}).raise_for_status()
    for uri in ("https://c.example/a/versions/9", "https://c.example/a/versions/x", "https://c.example/b"):
        answer = client.get("/messagedefinition", params={"uri": uri})
        assert (404, uri) == (answer.status_code, answer.json()["subject"])


def test_a_uri_names_the_definition_of_its_group(client: httpx.Client) -> None:
    """2.2.2, 4.4.3: a reference is unambiguous: another group's definition is never the answer, nor one of several."""
    base = f"{client.base_url}{ROOT}".replace("//messagecatalog", "/messagecatalog")
    for group, authority in (("ua", None), ("ub", "urn:example:cat"), ("uc", None), ("ud", "urn:example:cat:ub")):
        for name in ("zed", "zed9") if group == "ua" else ("zed",):
            definition = {"id": name, "definition": {"pub": {"subject": {"value": f"from.{group}"}}}}
            make_group(client, group, "NATS").raise_for_status()
            post(client, definition | ({"authority": authority} if authority else {}), group).raise_for_status()
    for case in read_cases("server/catalog01_uris"):
        answer = client.get("/messagedefinition", params={"uri": case.given.replace("BASE", base)})
        subject = answer.json()["definition"]["pub"]["subject"]["value"] if answer.status_code == 200 else None
        assert (200 if case.expect else 404, case.expect) == (answer.status_code, subject), case.name


def test_a_uri_that_names_several_says_which(client: httpx.Client) -> None:
    """4.4.3: where a URI could mean several definitions, the answer says which."""
    for group in ("a", "b"):
        make_group(client, group, "NATS", definitions=[{"id": "m", "definition": {}}]).raise_for_status()
    answer = client.get("/messagedefinition", params={"uri": f"{client.base_url}".rstrip("/") + f"{ROOT}/m"})
    words = "Several definitions could be meant: /messagegroups/a/messages/m, /messagegroups/b/messages/m."
    assert (404, words) == (answer.status_code, answer.json()["detail"])


def test_definitions_are_a_list(client: httpx.Client) -> None:
    """2.1: the definitions of a group are a list of objects; what is something else is refused and makes no group."""
    for given in ({}, "", 0, False, "x", {"a": 1}, [1], [None]):
        answer = make_group(client, definitions=given)
        assert (400, "definitions") == (answer.status_code, answer.json()["args"]["name"]), given
    assert [] == client.get(ROOT).json()


def test_labels_are_a_map(client: httpx.Client) -> None:
    """Labels, a further attribute of groups and definitions, are a map; what is something else is refused."""
    make_group(client).raise_for_status()
    for given in ("", 0, False, [], 1):
        assert "labels" == make_group(client, labels=given).json()["args"]["name"], given
        assert "labels" == post(client, {**event("a"), "labels": given}).json()["args"]["name"], given


def test_versions_are_told(client: httpx.Client) -> None:
    """5.5: an event names the version that was added or deleted, by a path that leads to it, at its own time."""
    make_group(client)
    for text in ("one", "two"):
        post(client, {**event("a"), "description": text}).raise_for_status()
    cursor = client.get("/changes").headers["signalbook-cursor"]
    place = f"{ROOT}/g/messagedefinitions/a"
    events = [one for one in client.get("/changes").json() if one.get("subject", "").startswith(f"{place}/")]
    assert [f"{place}/version/1", f"{place}/version/2"] == [one["subject"] for one in events]
    for one, text in zip(events, ("one", "two"), strict=True):
        assert ("io.cloudevents.messagecatalog.updated.v1", False) == (one["type"], "data" in one)
        shown = client.get(one["subject"]).json()
        assert (text, one["time"]) == (shown["description"], shown["createdtimeutc"])
    assert 405 == client.delete(f"{place}/version/1").status_code
    client.delete(f"{place}/versions/1").raise_for_status()
    deleted = client.get("/changes", params={"since": cursor}).json()
    wanted = [("io.cloudevents.messagecatalog.deleted.v1", f"{place}/version/1")]
    assert wanted == [(one["type"], one["subject"]) for one in deleted]
    client.delete(f"{place}/versions/2").raise_for_status()
    assert 404 == client.get(place).status_code


def test_a_version_that_goes_brings_no_other(client: httpx.Client) -> None:
    """2.2, 5.5: where the latest version is deleted the one before is the latest, and no version is told as new."""
    make_group(client)
    for text in ("one", "two"):
        post(client, {**event("a"), "description": text}).raise_for_status()
    cursor = client.get("/changes").headers["signalbook-cursor"]
    place = f"{ROOT}/g/messagedefinitions/a"
    client.delete(f"{place}/versions/2").raise_for_status()
    told = [one for one in client.get("/changes", params={"since": cursor}).json() if "messagecatalog" in one["type"]]
    assert [("deleted.v1", f"{place}/version/2"), ("updated.v1", place)] == [
        (one["type"].removeprefix("io.cloudevents.messagecatalog."), one["subject"]) for one in told
    ]


def test_what_is_not_there_is_named_as_it_was_asked_for(client: httpx.Client) -> None:
    """4.1: an error names the path of this API, whatever the registry calls it."""
    make_group(client)
    for path in (
        "/nothing",
        "/nothing/messagedefinitions",
        "/g/messagedefinitions/x",
        "/g/messagedefinitions/x/versions",
    ):
        answer = client.get(f"{ROOT}{path}")
        assert (404, f"{ROOT}{path}") == (answer.status_code, answer.json()["subject"])


# --- one store, two APIs ----------------------------------------------------------------------------------------------


def test_both_apis_show_the_same(client: httpx.Client) -> None:
    """What is written through one API is there through the other, with each change a version."""
    make_group(client, tags="t")
    post(client, event("a", subject={"value": "/{x}", "required": True}))
    message = client.get("/messagegroups/g/messages/a").json()
    assert {"type": "uritemplate", "value": "/{x}", "required": True} == message["envelopemetadata"]["subject"]
    assert {"t": ""} == client.get("/messagegroups/g").json()["labels"]
    client.patch("/messagegroups/g/messages/a", json={"description": "By 1.0."}).raise_for_status()
    client.patch("/messagegroups/g/messages/a", json={"description": "By 1.0."}).raise_for_status()
    latest = client.get(f"{ROOT}/g/messagedefinitions/a").json()
    assert ("By 1.0.", 2) == (latest["description"], latest["version"])
    client.put("/messagegroups/g/messages/b", json={"envelope": "CloudEvents/1.0", "envelopemetadata": {}})
    assert ["a", "b"] == [one["id"] for one in client.get(f"{ROOT}/g/messagedefinitions").json()]
    assert 3 == post(client, event("a")).json()["version"]
    assert "description" not in client.get("/messagegroups/g/messages/a").json()
    client.post("/messagegroups/g", json={"messages": {"a": {"description": "x"}, "c": {"description": "y"}}})
    assert ([1, 2, 3, 4], [1]) == (numbers(client, "a"), numbers(client, "c"))
    client.delete("/messagegroups/g/messages/a").raise_for_status()
    assert 404 == client.get(f"{ROOT}/g/messagedefinitions/a").status_code
    client.put("/messagegroups/g/messages/a", json={"description": "again"}).raise_for_status()
    assert [5] == numbers(client, "a")
    client.delete("/messagegroups/g").raise_for_status()
    assert [] == client.get(ROOT).json()
    make_group(client)
    assert 6 == post(client, event("a")).json()["version"]


def test_the_rules_of_10_are_its_own(client: httpx.Client) -> None:
    """Through the xRegistry API an authority can change and a relation dangle; versions keep the URIs that they had."""
    make_group(client)
    post(client, {**event("a"), "authority": "urn:one"}).raise_for_status()
    message = "/messagegroups/g/messages/a"
    client.patch(message, json={"authority": "urn:two", "relatedto": "gone"}).raise_for_status()
    for uri, version in {"urn:one:a:1": 1, "urn:two:a:2": 2, "urn:two:a": 2}.items():
        assert version == client.get("/messagedefinition", params={"uri": uri}).json()["version"]
    for uri in ("urn:one:a:2", "urn:two:a:1", "urn:one:a"):
        assert 404 == client.get("/messagedefinition", params={"uri": uri}).status_code
    for number in (1, 2):
        canonical = client.get(f"{ROOT}/g/messagedefinitions/a/versions/{number}").links["canonical"]["url"]
        assert number == client.get("/messagedefinition", params={"uri": canonical}).json()["version"]
    assert 204 == client.delete(message).status_code


def test_a_refused_write_leaves_no_version(client: httpx.Client) -> None:
    """A version is written with its change or not at all, through either API."""
    make_group(client)
    post(client, event("a")).raise_for_status()
    refused = {"messages": {"a": {"description": "x"}, "b": {"envelope": "Other/1.0"}}}
    assert 400 == client.post("/messagegroups/g", json=refused).status_code
    assert [1] == numbers(client, "a")
    group = {"specversion": "0.1", "format": "CloudEvents", "definitions": [event("c"), {"id": "d"}]}
    assert 400 == client.put(f"{ROOT}/g", json=group).status_code
    assert ["a"] == [one["id"] for one in client.get(f"{ROOT}/g/messagedefinitions").json()]


def test_definitions_are_matched(client: httpx.Client) -> None:
    """A definition posted here is one that messages are matched against; one of a format of its own never is."""
    make_group(client)
    post(client, event("com.example.a", subject={"value": "/{x}", "required": True})).raise_for_status()
    make_group(client, "own", "Own")
    post(client, {"id": "o", "definition": {"x": 1}}, "own").raise_for_status()
    sample = {"specversion": "1.0", "type": "com.example.a", "source": "/s", "id": "1", "subject": "/seven"}
    answer = client.post("/match", json=sample).json()
    found = (answer["outcome"], answer["definition"], answer["context"])
    assert ("matched", "/messagegroups/g/messages/com.example.a", {"x": "seven"}) == found


def test_an_answer_in_05(client: httpx.Client) -> None:
    """`?specversion=0.5-wip` shows any entity, and the whole, in that dialect; nothing is written in it."""
    make_group(client)
    post(client, event("a"))
    message = client.get("/messagegroups/g/messages/a?specversion=0.5-wip").json()
    assert ("a", "CloudEvents/1.0", {"type": {"value": "a"}}) == tuple(message[n] for n in ("id", "format", "metadata"))
    group = client.get("/messagegroups/g?inline=messages&specversion=0.5-wip").json()
    assert ("g", "CloudEvents/1.0", ["a"]) == (group["id"], group["format"], list(group["messages"]))
    assert ["g"] == list(client.get("/messagegroups?specversion=0.5-wip").json())
    whole = client.get("/export?specversion=0.5-wip").json()
    assert ("0.5-wip", "a") == (whole["specversion"], whole["messagegroups"]["g"]["messages"]["a"]["id"])
    client.put("/messagegroups/h/messages/b", json={"meta": {"xref": "/messagegroups/g/messages/a"}}).raise_for_status()
    places = ("/messagegroups/h/messages/b", "/messagegroups/h/messages", "/messagegroups/h?inline=messages")
    for place in (*places, "/messagegroups?inline=messages", "/?inline=messagegroups.messages"):
        shown = client.get(place + ("&" if "?" in place else "?") + "specversion=0.5-wip").json()
        for name in ("messagegroups", "h", "messages", "b"):
            shown = shown.get(name, shown)
        url = f"{client.base_url}/messagegroups/h/messages/b/versions/1"
        found = [shown[name] for name in ("xref", "defaultversionid", "defaultversionurl")]
        assert ["messagegroups/g/messages/a", "1", url] == found, place
    assert 404 == client.get("/messagegroups/g/messages/a/meta?specversion=0.5-wip").status_code
    assert 400 == client.put("/messagegroups/h?specversion=0.5-wip", json={}).status_code


@pytest.mark.parametrize("messageid", ["a~b", "a~", "a~7eb", "a~41", "_~~x", "a~b~deadbeef", "a:b@c", "a~ff"])
def test_whatever_a_listing_shows_is_there(client: httpx.Client, messageid: str) -> None:
    """An id that 1.0 had first is fetched, found by its URI and deleted by what a listing of 0.1 shows for it."""
    entity = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": messageid}}}
    group = {"envelope": "CloudEvents/1.0", "messages": {messageid: entity}}
    client.put("/", json={"messagegroups": {messageid: group}}).raise_for_status()
    (shown,) = client.get(ROOT).json()
    path = f"{ROOT}/{shown['id']}/messagedefinitions"
    (listed,) = client.get(path).json()
    found = client.get(f"{path}/{listed['id']}")
    assert (200, listed) == (found.status_code, found.json())
    assert [listed] == client.get(path, params={"id": listed["id"]}).json()
    uri = f"{client.base_url}{path}/{listed['id']}".replace("//messagecatalog", "/messagecatalog")
    by_uri = client.get("/messagedefinition", params={"uri": uri})
    assert (200, listed) == (by_uri.status_code, by_uri.json())
    assert client.delete(f"{path}/{listed['id']}").is_success
    assert [] == client.get(path).json()


def test_an_export_is_the_groups_as_they_are_shown(client: httpx.Client) -> None:
    """`/export?specversion=0.1` is every group with all versions; nothing else can be had in 0.1 there."""
    assert [] == client.get("/export?specversion=0.1").json()
    make_group(client, "g", tags="a, b")
    for text in ("one", "two", "three"):
        assert 201 == post(client, {**event("x.y"), "description": text}).status_code
    client.delete(f"{ROOT}/g/messagedefinitions/x.y/versions/2").raise_for_status()
    assert client.get(f"{ROOT}/g").json() == client.get("/export?specversion=0.1").json()
    make_group(client, "m", form="MQTT/5.0")
    assert 201 == post(client, {"id": "q", "definition": {"publish": {"topicname": {"value": "t"}}}}, "m").status_code
    make_group(client, "own", form="BunnyMQ/0.9")
    assert 201 == post(client, {"id": "b", "definition": {"any": {"thing": 1}}}, "own").status_code
    client.put("/messagegroups/z/messages/shown/meta", json={"xref": "/messagegroups/g/messages/x.y"})
    shown = [client.get(f"{ROOT}/{name}").json() for name in ("g", "m", "own", "z")]
    found = client.get("/export?specversion=0.1").json()
    assert shown[:3] == found[:3]
    assert shown[3]["definitions"] == found[3]["definitions"]
    assert 400 == client.get("/messagegroups?specversion=0.1").status_code


# --- groups of the xRegistry API that state no format -----------------------------------------------------------------

_EVENT: Json = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "m"}}}
_AMQP: Json = {"protocol": "AMQP/1.0", "protocoloptions": {"properties": {"subject": {"value": "x"}}}}


@pytest.mark.parametrize(
    ("group", "messages", "form"),
    [
        ({}, {"m": _EVENT}, "CloudEvents"),
        ({}, {"a": _AMQP, "b": _AMQP}, "AMQP"),
        ({"protocol": "AMQP/1.0"}, {"m": {**_AMQP, **_EVENT}}, "CloudEvents"),
        ({}, {}, "Generic"),
        ({}, {"m": {"description": "Of no format."}}, "Generic"),
        ({}, {"m": _EVENT, "a": _AMQP, "n": {"description": "Of no format."}}, "Generic"),
        ({}, {"m": {**_EVENT, **_AMQP}, "a": _AMQP}, "Generic"),
        ({"protocol": "AMQP/1.0"}, {"m": {**_EVENT, **_AMQP}, "a": _AMQP}, "Generic"),
    ],
)
def test_a_group_has_the_format_of_its_messages(client: httpx.Client, group: Json, messages: Json, form: str) -> None:
    """2.1.1, 2.2.4: a definition reflects its group's format; what is shown and sent again changes nothing."""
    client.put("/messagegroups/g", json={**group, "messages": messages}).raise_for_status()
    before = client.get("/export").json()
    shown = client.get(f"{ROOT}/g").json()
    assert [form] * (len(messages) + 1) == [shown["format"], *(one["format"] for one in shown["definitions"])]
    assert form == client.get(ROOT).json()[0]["format"]
    newest = client.get("/changes").json()
    again = client.put(f"{ROOT}/g", json=shown)
    assert (200, shown) == (again.status_code, again.json()), again.text
    for one in [*shown["definitions"], *client.get(f"{ROOT}/g/messagedefinitions").json()]:
        answer = post(client, one)
        assert (200, form) == (answer.status_code, answer.json()["format"]), answer.text
    assert (before, newest) == (client.get("/export").json(), client.get("/changes").json())
    with in_process() as other:
        made = other.put(f"{ROOT}/g", json=shown)
        assert 201 == made.status_code, made.text
        copied = other.get("/messagegroups/g?inline=messages").json()
        for name, message in messages.items():
            there = copied["messages"][name]
            assert message == {key: value for key, value in there.items() if key in {*message, *_EVENT, *_AMQP}}
        assert form == other.get(f"{ROOT}/g").json()["format"]


def test_versions_of_several_formats(client: httpx.Client) -> None:
    """2.2: no version overrides the format, so a definition that changed it is shown in the one that takes both."""
    client.put("/messagegroups/g/messages/m", json=_AMQP).raise_for_status()
    client.put("/messagegroups/g/messages/m", json=_EVENT).raise_for_status()
    shown = client.get(f"{ROOT}/g").json()
    assert ("Generic", [1, 2]) == (shown["format"], [one["version"] for one in shown["definitions"][0]["versions"]])
    again = client.put(f"{ROOT}/g", json=shown)
    assert (200, shown) == (again.status_code, again.json()), again.text
