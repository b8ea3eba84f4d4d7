from __future__ import annotations

from typing import Any

import pytest

from signalbook.registry import judging
from tests.registry.conftest import Api

BASE, USE = "/schemagroups/g/schemas/base", "/schemagroups/g/schemas/use"
DEFINED = {"definitions": {"n": {"type": "integer"}}}


def schema(document: Any) -> dict[str, Any]:
    """The body of a JSON Schema."""
    return {"format": "JsonSchema/draft-07", "schema": document}


@pytest.fixture
def broken(api: Api) -> Api:
    """A registry with a schema whose reference leads nowhere any more."""
    assert 201 == api("PUT", f"{BASE}$details", schema(DEFINED)).status
    assert 201 == api("PUT", f"{USE}$details", schema({"$ref": f"{BASE}#/definitions/n"})).status
    assert api("GET", f"{USE}$details").json["formatvalidated"] is True
    assert 204 == api("DELETE", BASE).status
    return api


def test_an_older_document_stops_no_other_change(broken: Api) -> None:
    """A name, the meta and the model can be written whatever became of what a schema refers to."""
    shown = broken("PATCH", f"{USE}$details", {"name": "Use"}).json
    assert ("Use", False) == (shown["name"], shown["formatvalidated"])
    assert BASE in shown["formatvalidatedreason"]
    assert 200 == broken("PATCH", f"{USE}/meta", {"compatibility": "backward"}).status
    source = broken("GET", "/modelsource").json
    assert 200 == broken("PUT", "/modelsource", {**source, "description": "another"}).status


def test_a_definition_that_vanishes(api: Api) -> None:
    """A schema says that it cannot be used since what it refers to changed, and again when that is mended."""
    api("PUT", f"{BASE}$details", schema(DEFINED))
    api("PUT", f"{USE}$details", schema({"$ref": f"{BASE}#/definitions/n"}))
    for document, expected in (({}, False), (DEFINED, True)):
        assert 200 == api("PUT", f"{BASE}$details", schema(document)).status
        assert expected is api("GET", f"{USE}$details").json["formatvalidated"]


def test_an_export_loads(broken: Api) -> None:
    """What a registry exports can be written to it again, though a reference in it leads nowhere."""
    exported = broken("GET", "/export").json["schemagroups"]
    assert 204 == broken("DELETE", "/schemagroups/g").status
    reply = broken("POST", "/", {"schemagroups": exported})
    assert 200 == reply.status, reply.body
    assert broken("GET", f"{USE}$details").json["formatvalidated"] is False


def test_many_users(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of schemas that refer to one, the others say that nobody looked at them."""
    monkeypatch.setattr(judging, "MOST_USERS", 1)
    api("PUT", f"{BASE}$details", schema(DEFINED))
    for number in range(3):
        api("PUT", f"{USE}{number}$details", schema({"$ref": BASE}))
    api("PUT", f"{BASE}$details", schema({}))
    shown = [api("GET", f"{USE}{number}$details").json for number in range(3)]
    assert [True, False, False] == [one["formatvalidated"] for one in shown]
    assert judging.CHANGED == shown[2]["formatvalidatedreason"]


def test_wrong_in_itself(broken: Api) -> None:
    """A document that is wrong in itself is refused, whatever else it refers to."""
    wrong = {"type": "strin", "properties": {"a": {"$ref": BASE}}}
    assert "format_violation" == broken("PUT", f"{USE}$details", schema(wrong)).error
    lost = {"properties": {"a": {"$ref": "#/definitions/none"}}}
    assert "format_violation" == broken("PUT", f"{USE}$details", schema(lost)).error
