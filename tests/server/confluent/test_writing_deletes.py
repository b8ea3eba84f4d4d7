"""Deleting: hidden here alone, taken away for good only where nobody needs it."""

from __future__ import annotations

from typing import Any

from tests.server.confluent.conftest import PING, PONG, Registered

SCHEMA = "/schemagroups/confluent/schemas/a"


def message(confluent: Registered, **more: Any) -> None:
    """Put a message that refers to a schema."""
    path = "/messagegroups/g/messages/m"
    body = {"envelope": "CloudEvents/1.0", "dataschemaformat": "Avro/1.11.0", **more}
    answer = confluent.http.put(path, json=body)
    assert 201 == answer.status_code, answer.text


def test_hidden_here_alone(confluent: Registered) -> None:
    """MAP-8: a version that was deleted is gone here and stays on the registry, where messages may refer to it."""
    confluent.register("a", PING)
    assert [1] == confluent("DELETE", "/subjects/a")
    assert 40401 == confluent.code("GET", "/subjects/a/versions/1")
    shown = confluent.http.get(f"{SCHEMA}/versions/1$details").json()
    assert shown["confluentdeleted"] is True
    assert 1 == confluent("GET", "/schemas/ids/1?subject=a")["version"]
    assert confluent("GET", "/subjects/a/versions/1?deleted=true")["deleted"] is True


def test_a_hidden_schema_comes_back(confluent: Registered) -> None:
    """CSR-65: registered again it is a new version with the old id."""
    confluent.register("a", PING)
    confluent("DELETE", "/subjects/a")
    found = confluent.register("a", PING)
    assert (1, 2) == (found["id"], found["version"])
    assert [2] == confluent("GET", "/subjects/a/versions")


def test_the_old_id_comes_back(confluent: Registered) -> None:
    """MAP-5: what was deleted for good is not found by its id, which still is its own."""
    confluent.register("a", PING)
    confluent("DELETE", "/subjects/a")
    confluent("DELETE", "/subjects/a?permanent=true")
    assert 40403 == confluent.code("GET", "/schemas/ids/1")
    assert 404 == confluent.http.get(f"{SCHEMA}$details").status_code
    assert 2 == confluent.register("b", PONG)["id"]
    assert (1, 1) == tuple(confluent.register("a", PING)[name] for name in ("id", "version"))


def test_messages_keep_a_schema(confluent: Registered) -> None:
    """42206, naming them, while messages of the catalog refer to a schema or to its version."""
    confluent.register("a", PING)
    message(confluent, dataschemauri=f"{SCHEMA}/versions/1")
    confluent("DELETE", "/subjects/a")
    for path in ("/subjects/a", "/subjects/a/versions/1"):
        found = confluent("DELETE", f"{path}?permanent=true")
        assert 42206 == found["error_code"]
        assert "/messagegroups/g/messages/m" in found["message"]
    confluent.http.delete("/messagegroups/g").raise_for_status()
    assert [1] == confluent("DELETE", "/subjects/a?permanent=true")


def test_numbers_do_not_come_back(confluent: Registered) -> None:
    """MAP-9: the number of a version that went is not given again while the subject is there."""
    confluent("PUT", "/config", {"compatibility": "NONE"})
    confluent.register("a", PING)
    confluent.register("a", PONG)
    confluent("DELETE", "/subjects/a/versions/2")
    confluent("DELETE", "/subjects/a/versions/2?permanent=true")
    assert 3 == confluent.register("a", PONG)["version"]


def test_deleted_on_the_other_side(confluent: Registered) -> None:
    """MAP-9: what is deleted on the registry is gone here, without being hidden before."""
    confluent.register("a", PING)
    confluent.http.delete(SCHEMA).raise_for_status()
    assert [] == confluent("GET", "/subjects?deleted=true")
    assert 40403 == confluent.code("GET", "/schemas/ids/1")
    assert 1 == confluent.register("a", PING)["version"]


def test_one_request_is_one_change(confluent: Registered) -> None:
    """All that a request writes is found under one name in the change feed."""
    confluent.register("a", PING)
    names = {event["xregcorrelationid"] for event in confluent.http.get("/changes").json()}
    assert 1 == len(names)
