"""Framed payloads at a server: the ids are those that its store gave."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from signalbook.protocols import Message
from tests.in_process import in_process
from tests.messages.test_constraint_writers import NEW, OLD
from tests.server.confluent.conftest import Registered

DEFINITION = {
    "protocol": "KAFKA",
    "protocoloptions": {"topic": "orders"},
    "dataschemaformat": "Avro/1.11",
    "dataschemaxid": "/schemagroups/confluent/schemas/orders-value",
    "dataschemaframing": "confluent",
}
XID = "/messagegroups/shop/messages/order"


def asked(client: Registered, payload: bytes, path: str = "/match", **fields: Any) -> dict[str, Any]:
    """What the server says about a record of Kafka."""
    message = {"protocol": "KAFKA", "topic": "orders", "payload_base64": base64.b64encode(payload).decode(), **fields}
    answer: dict[str, Any] = client.http.post(path, json=message).json()
    return answer


@pytest.mark.parametrize("framing", ["confluent", "confluent-header"])
def test_a_record_of_a_registered_version(framing: str) -> None:
    """What a client registered reads its payload, also after the version is gone for good; another id is a problem."""
    with in_process(deliver=False) as http:
        client = Registered(http)
        client("PUT", "/config", {"compatibility": "NONE"})
        first, second = (client.register("orders-value", one) for one in (OLD, NEW))
        assert (1, 2) == (first["id"], second["id"])
        assert http.put(XID, json={**DEFINITION, "dataschemaframing": framing}).status_code < 300
        guid = http.get("/schemagroups/confluent/schemas/orders-value/versions/1$details").json()["confluentguid"]
        header = b"\1" + bytes.fromhex(guid.replace("-", ""))
        read = {"id": 1, "price": 3, "qty": 2}
        for _ in range(2):
            if framing == "confluent":
                answer = asked(client, b"\0\0\0\0\1\2\4\6")
            else:
                headers = [["__value_schema_id", {"base64": base64.b64encode(header).decode()}]]
                answer = asked(client, b"\2\4\6", headers=headers)
            assert ("matched", read) == (answer["outcome"], answer.get("data")), answer
            http.delete("/schemagroups/confluent/schemas/orders-value/versions/1")
        assert 404 == http.get("/schemagroups/confluent/schemas/orders-value/versions/1").status_code
        if framing == "confluent":
            answer = asked(client, b"\0\0\0\0\7\2\4\6")
            assert ["schema_unavailable"] == [one["code"] for one in answer["problems"]]


def test_a_build_has_the_id_of_the_store() -> None:
    """A version that is written through the registry's own API has an id by the same write, and a build uses it."""
    with in_process(deliver=False) as http:
        client = Registered(http)
        schema = {"format": "Avro/1.11", "schema": OLD}
        assert http.put("/schemagroups/confluent/schemas/orders-value$details", json=schema).status_code < 300
        assert http.put(XID, json=DEFINITION).status_code < 300
        built = http.post("/build", json={"definition": XID, "data": {"id": 1, "qty": 2, "price": 3}}).json()
        payload = Message.from_json(built["message"]).payload or b""
        assert b"\0\0\0\0\1\2\4\6" == payload
        assert {"id": 1, "qty": 2, "price": 3} == asked(client, payload)["data"]
