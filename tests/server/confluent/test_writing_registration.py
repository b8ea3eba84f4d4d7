"""Registering: what is there is found, what is new is judged, and many clients at once are served in turn."""

from __future__ import annotations

import threading
from typing import Any

import orjson
import pytest

from tests.registry.conftest import MakeApi
from tests.server.confluent.conftest import PING, PONG, Registered


def wider(name: str = "by") -> Any:
    """The first schema with a field more, which has a default."""
    return {**PING, "fields": [*PING["fields"], {"name": name, "type": "string", "default": ""}]}


def test_what_is_there_is_not_written(confluent: Registered) -> None:
    """CSR-24: the same schema, in other spelling too, has its id and version, and makes no event."""
    first = confluent.register("a", PING)
    events = len(confluent.http.get("/changes").json())
    again = confluent.register("a", orjson.dumps(PING, option=orjson.OPT_INDENT_2).decode())
    assert first == again
    assert events == len(confluent.http.get("/changes").json())


def test_what_is_written_is_on_both_sides(confluent: Registered) -> None:
    """MAP-1, MAP-11: a version registered here is one of the registry, with its document; and the other way round."""
    confluent.register("a", PING)
    shown = confluent.http.get("/schemagroups/confluent/schemas/a/versions/1$details").json()
    assert ("Avro/1.11.0", 1) == (shown["format"], shown["confluentid"])
    text = confluent("GET", "/schemas/ids/1")["schema"]
    assert text.encode() == confluent.http.get("/schemagroups/confluent/schemas/a/versions/1").content
    path = "/schemagroups/confluent/schemas/a/versions/2$details"
    assert 201 == confluent.http.put(path, json={"format": "Avro/1.11.0", "schema": wider()}).status_code
    found = confluent("GET", "/subjects/a/versions/latest")
    assert (2, 2) == (found["version"], found["id"])
    subjects = {event["subject"] for event in confluent.http.get("/changes").json()}
    assert "/schemagroups/confluent/schemas/a/versions/1" in subjects


def test_a_level_holds_on_both_sides(confluent: Registered) -> None:
    """MAP-13: the level of a subject is the compatibility of the schema, whichever side sets it."""
    confluent("PUT", "/config/a", {"compatibility": "FULL"})
    confluent.register("a", PING)
    meta = "/schemagroups/confluent/schemas/a/meta"
    assert "full" == confluent.http.get(meta).json()["compatibility"]
    path = "/schemagroups/confluent/schemas/a/versions/2$details"
    assert 400 <= confluent.http.put(path, json={"format": "Avro/1.11.0", "schema": PONG}).status_code < 500
    confluent.http.patch(meta, json={"compatibility": "forward"}).raise_for_status()
    assert {"compatibilityLevel": "FORWARD"} == confluent("GET", "/config/a")
    confluent("PUT", "/config/a", {"compatibility": "NONE"})
    assert "compatibility" not in confluent.http.get(meta).json()
    assert {"compatibilityLevel": "NONE"} == confluent("GET", "/config/a")


def test_incompatible(confluent: Registered) -> None:
    """40901, with what is wrong, and nothing is written; with NONE it is taken."""
    confluent.register("a", PING)
    found = confluent.register("a", PONG)
    assert 40901 == found["error_code"]
    assert 'Schema being registered is incompatible with an earlier schema for subject "a"' in found["message"]
    assert [1] == confluent("GET", "/subjects/a/versions")
    confluent("PUT", "/config/a", {"compatibility": "NONE"})
    assert 2 == confluent.register("a", PONG)["version"]


def test_another_type(confluent: Registered) -> None:
    """42201: the versions of a schema have one format, so those of a subject have one type."""
    confluent("PUT", "/config", {"compatibility": "NONE"})
    confluent.register("a", PING)
    assert 42201 == confluent.register("a", {"type": "object"}, schemaType="JSON")["error_code"]
    assert 1 == len(confluent("GET", "/subjects/a/versions"))


def test_import(confluent: Registered) -> None:
    """CSR-73: ids and versions are those of the request, in any order; afterwards ids go on above the highest."""
    confluent("PUT", "/mode", {"mode": "IMPORT"})
    assert (90, 4) == tuple(confluent.register("a", wider(), id=90, version=4)[name] for name in ("id", "version"))
    assert (7, 2) == tuple(confluent.register("a", PING, id=7, version=2)[name] for name in ("id", "version"))
    assert 42205 == confluent.register("b", PONG, id=7)["error_code"]
    assert (7, 1) == tuple(confluent.register("b", PING, id=7)[name] for name in ("id", "version"))
    assert 42205 == confluent.code("PUT", "/mode/a", {"mode": "IMPORT"})
    confluent("PUT", "/mode", {"mode": "READWRITE"})
    assert [2, 4] == confluent("GET", "/subjects/a/versions")
    found = confluent.register("a", wider("more"))
    assert (91, 5) == (found["id"], found["version"])
    line = confluent.http.get("/schemagroups/confluent/schemas/a/versions").json()
    assert {"2": "2", "4": "2", "5": "4"} == {name: one["ancestor"] for name, one in line.items()}


@pytest.mark.parametrize(
    ("schema", "more"),
    [
        ("[" * 5000 + "]" * 5000, {}),
        ('{"not":' * 5000 + "true" + "}" * 5000, {"schemaType": "JSON"}),
        ("message A {" * 5000 + "}" * 5000, {"schemaType": "PROTOBUF"}),
        ("message A {}" * 5000, {"schemaType": "PROTOBUF"}),
        ('"string"', {"references": [{"name": "a", "subject": "a", "version": 1}] * 1001}),
        ('"string"', {"references": [{"name": "a", "subject": "a", "version": 1}]}),
        ('{"type": "string", "x": "\\ud800"}', {}),
        ("CgtjcmFuZS5wcm90bw==", {"schemaType": "PROTOBUF"}),
    ],
)
def test_what_cannot_be_read(confluent: Registered, schema: str, more: dict[str, Any]) -> None:
    """42201, within bounds, and nothing is registered."""
    found = confluent.register("s", schema, **more)
    if "id" not in found:
        assert 42201 == found["error_code"]
        assert [] == confluent("GET", "/subjects")


def test_a_large_schema(confluent: Registered) -> None:
    """A schema of a megabyte is registered and read back whole."""
    large = {**PING, "doc": "x" * 1_000_000}
    assert 1 == confluent.register("a", large)["id"]
    assert large == orjson.loads(confluent("GET", "/schemas/ids/1")["schema"])


def test_references_in_a_circle(confluent: Registered) -> None:
    """A version can only refer to versions that are there; a name that would close a circle is refused."""
    confluent("PUT", "/config", {"compatibility": "NONE"})
    proto = {"schemaType": "PROTOBUF"}
    confluent.register("a", 'syntax = "proto3"; message A {}', **proto)
    to_a = {**proto, "references": [{"name": "a.proto", "subject": "a", "version": 1}]}
    assert 2 == confluent.register("b", 'syntax = "proto3"; import "a.proto"; message B { A a = 1; }', **to_a)["id"]
    to_b = {**proto, "references": [{"name": "b.proto", "subject": "b", "version": 1}]}
    found = confluent.register("a", 'syntax = "proto3"; import "b.proto"; message A { B b = 1; }', **to_b)
    assert 42201 == found["error_code"]


def test_lenient(confluent: Registered) -> None:
    """CSR-55: with the policy LENIENT an optional property may come into an open model; a required one may not."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    confluent.register("a", schema, schemaType="JSON")
    wide = {"type": "object", "properties": {**schema["properties"], "b": {"type": "string"}}}
    assert 40901 == confluent.register("a", wide, schemaType="JSON")["error_code"]
    confluent("PUT", "/config/a", {"compatibilityPolicy": "LENIENT"})
    assert 2 == confluent.register("a", wide, schemaType="JSON")["version"]
    assert 40901 == confluent.register("a", {**wide, "required": ["a"]}, schemaType="JSON")["error_code"]


def test_older_drafts(confluent: Registered) -> None:
    """Drafts before the seventh are read in the words of the seventh."""
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 0}
    confluent("PUT", "/config", {"compatibility": "BACKWARD"})
    assert 1 == confluent.register("a", schema, schemaType="JSON")["version"]
    narrower = {**schema, "exclusiveMinimum": True}
    assert 40901 == confluent.register("a", narrower, schemaType="JSON")["error_code"]


def test_metadata_and_rules(confluent: Registered) -> None:
    """CSR-58 to CSR-61: both are kept, are part of the content, and are taken over by the next version."""
    metadata = {"properties": {"owner": "yard", "a b": "c"}, "tags": {"$.at": ["PII"]}}
    rules = {"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]}
    first = confluent.register("a", PING, metadata=metadata, ruleSet=rules)
    assert (metadata, rules) == (first["metadata"], first["ruleSet"])
    second = confluent.register("a", wider())
    assert (metadata, rules) == (second["metadata"], second["ruleSet"])
    assert 1 != confluent.register("b", PING)["id"]
    found = confluent("GET", "/subjects/a/metadata?key=owner&value=yard")
    assert 2 == found["version"]
    assert 40403 == confluent.code("GET", "/subjects/a/metadata?key=owner&value=dock")


def at_once(count: int, job: Any) -> list[Any]:
    """What a job gives for each number, run in as many threads at once."""
    found: list[Any] = [None] * count

    def run(number: int) -> None:
        found[number] = job(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return found


def test_the_same_schema_at_once(make_api: MakeApi) -> None:
    """Clients that register one schema at the same time get one id and one version."""
    api = make_api(deliver=False)
    body = {"schema": orjson.dumps(PING).decode()}
    found = at_once(16, lambda number: api("POST", "/confluent/subjects/a/versions", body).json)
    assert {(1, 1)} == {(one["id"], one["version"]) for one in found}
    assert [1] == api("GET", "/confluent/subjects/a/versions").json


def test_different_schemas_at_once(make_api: MakeApi) -> None:
    """Clients that register different schemas under one subject get a version and an id each, without gaps."""
    api = make_api(deliver=False)
    api("PUT", "/confluent/config", {"compatibility": "NONE"})

    def register(number: int) -> Any:
        schema = {"type": "record", "name": f"R{number}", "fields": []}
        body = {"schema": orjson.dumps(schema).decode()}
        return api("POST", "/confluent/subjects/a/versions", body).json

    found = at_once(200, register)
    assert list(range(1, 201)) == sorted(one["version"] for one in found)
    assert list(range(1, 201)) == sorted(one["id"] for one in found)
