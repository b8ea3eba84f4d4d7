"""The calls of kafka-ui and of Redpanda's console, in the order of somebody who clicks through them."""

from __future__ import annotations

import orjson

from tests.cases import read_cases
from tests.server.confluent.conftest import Registered

# As Spring's client sends it.
HEADERS = {"accept": "application/json", "content-type": "application/json"}


def test_a_walk_through_a_ui(confluent: Registered) -> None:
    """CSR-81: each call is answered with the status and the members that the programs look at."""
    for case in read_cases("server/kafka_ui"):
        given, expect = case.given, case.expect
        body = orjson.dumps(given["body"]) if "body" in given else None
        path = f"{confluent.root}{given['path']}"
        answer = confluent.http.request(given["method"], path, content=body, headers=HEADERS)
        found = orjson.loads(answer.content)
        assert (expect["status"], "application/json") == (answer.status_code, answer.headers["content-type"]), case.name
        assert expect.get("equals", found) == found, case.name
        for name, value in expect.get("has", {}).items():
            assert value == found[name], case.name
        for name in expect.get("members", ()):
            assert name in found, case.name
