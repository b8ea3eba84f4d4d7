"""Which subject a topic belongs to: as clients stored it, or as the catalog says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.in_process import in_process
from tests.server.confluent.conftest import PING, PONG, Registered

ASKED = "/associations/resources/-/pings?resourceType=topic&associationType=value"
SCHEMA = "/schemagroups/confluent/schemas/ping"


def endpoint(confluent: Registered, name: str = "e", topic: str = "pings", **messages: str) -> None:
    """Put an endpoint whose messages have schemas, by the names of messages."""
    body = {
        "usage": ["producer"],
        "protocol": "KAFKA",
        "protocoloptions": {"topic": topic},
        "messages": {
            message: {"envelope": "CloudEvents/1.0", "dataschemaformat": "Avro/1.11.0", "dataschemauri": schema}
            for message, schema in messages.items()
        },
    }
    answer = confluent.http.put(f"/endpoints/{name}", json=body)
    assert 201 == answer.status_code, answer.text


def subjects(confluent: Registered, path: str = ASKED) -> list[Any]:
    """The subjects that an answer names."""
    return [one["subject"] for one in confluent("GET", path)]


def test_the_catalog_says_it(confluent: Registered) -> None:
    """MAP-17: an endpoint's topic, its message and the schema of that lead to the subject."""
    confluent.register("ping", PING)
    assert [] == subjects(confluent)
    endpoint(confluent, m=SCHEMA)
    (found,) = confluent("GET", ASKED)
    assert ("ping", "WEAK", "value") == (found["subject"], found["lifecycle"], found["associationType"])
    assert {"guid", "resourceName", "resourceNamespace", "resourceId", "resourceType"} <= set(found)
    assert [] == subjects(confluent, ASKED.replace("value", "key"))
    assert [] == subjects(confluent, ASKED.replace("pings", "others"))
    assert 40410 == confluent.code("DELETE", "/associations/resources/e")


def test_messages_of_a_group(confluent: Registered) -> None:
    """The messages of the groups that an endpoint names count like its own."""
    confluent.register("ping", PING)
    message = {"envelope": "CloudEvents/1.0", "dataschemaformat": "Avro/1.11.0", "dataschemauri": SCHEMA}
    confluent.http.put("/messagegroups/g", json={"messages": {"m": message}}).raise_for_status()
    body = {
        "usage": ["producer"], "protocol": "KAFKA", "protocoloptions": {"topic": "pings"},
        "messagegroups": ["/messagegroups/g"],
    }  # fmt: skip
    confluent.http.put("/endpoints/e", json=body).raise_for_status()
    assert ["ping"] == subjects(confluent)


def test_several_subjects_are_none(confluent: Registered) -> None:
    """Clients fail on two, so where the catalog names two it says nothing."""
    confluent.register("ping", PING)
    confluent.register("pong", PONG)
    endpoint(confluent, m=SCHEMA, n="/schemagroups/confluent/schemas/pong")
    assert [] == subjects(confluent)


def test_the_usual_subject_goes_before(confluent: Registered) -> None:
    """Where `{topic}-value` is there, clients find it without help."""
    confluent.register("ping", PING)
    endpoint(confluent, m=SCHEMA)
    confluent.register("pings-value", PONG)
    assert [] == subjects(confluent)


def test_a_hidden_subject_is_none(confluent: Registered) -> None:
    """A subject that is deleted is not named."""
    confluent.register("ping", PING)
    endpoint(confluent, m=SCHEMA)
    confluent("DELETE", "/subjects/ping")
    assert [] == subjects(confluent)


def test_off() -> None:
    """With `stored` the catalog is not asked."""
    with in_process(confluent_associations="stored", deliver=False) as http:
        confluent = Registered(http)
        confluent.register("ping", PING)
        endpoint(confluent, m=SCHEMA)
        assert [] == subjects(confluent)


def stored(subject: str = "ping", **more: Any) -> dict[str, Any]:
    """The body that associates a topic with a subject."""
    made = {"subject": subject, "associationType": "value", **more}
    return {"resourceName": "pings", "resourceNamespace": "lkc", "resourceId": "id", "associations": [made]}


def test_stored_ones(confluent: Registered) -> None:
    """CSR-76: a stored association counts before the catalog's, and keeps its subject."""
    confluent.register("ping", PING)
    confluent.register("pong", PONG)
    endpoint(confluent, m=SCHEMA)
    assert "pong" == confluent("POST", "/associations", stored("pong"))["associations"][0]["subject"]
    assert ["pong"] == subjects(confluent)
    assert "pong" == confluent("POST", "/associations", stored("pong"))["associations"][0]["subject"]
    assert 40903 == confluent.code("POST", "/associations", stored("ping"))
    assert 40904 == confluent.code("DELETE", "/subjects/pong")
    assert "ping" == confluent("PUT", "/associations/resources/id", stored("ping"))["associations"][0]["subject"]
    assert ["ping"] == subjects(confluent, "/associations/subjects/ping")
    assert confluent("DELETE", "/associations/resources/id?dryRun=true") is None
    assert ["ping"] == subjects(confluent, "/associations/resources/id")
    assert confluent("DELETE", "/associations/resources/id?associationType=value") is None
    assert [] == subjects(confluent, "/associations/resources/id")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"resourceId": ""}, 42212),
        ({"resourceType": "table"}, 42212),
        ({"associations": []}, 42212),
        ({"associations": [{"subject": "ping", "associationType": "both"}]}, 42212),
        ({"associations": [{"subject": "ping"}, {"subject": "ping"}]}, 42212),
        ({"associations": [{}]}, 42212),
        ({"associations": [{"subject": "nowhere"}]}, 40907),
    ],
)
def test_bad_ones(confluent: Registered, change: dict[str, Any], code: int) -> None:
    """What no association can be is refused, and nothing is stored."""
    confluent.register("ping", PING)
    assert code == confluent.code("POST", "/associations", {**stored(), **change})
    assert [] == subjects(confluent, "/associations/resources/id")
