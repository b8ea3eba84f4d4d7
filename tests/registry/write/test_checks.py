from __future__ import annotations

from typing import Any

import pytest

from signalbook.registry.write import checks
from tests.cases import Case, read_cases
from tests.registry.conftest import Api
from tests.schemas.bounds import bounded
from tests.schemas.test_format_weight import WEIGHTS
from tests.schemas.test_format_weight import document as text_of

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
    monkeypatch.setattr(checks, "MOST_USERS", 1)
    api("PUT", f"{BASE}$details", schema(DEFINED))
    for number in range(3):
        api("PUT", f"{USE}{number}$details", schema({"$ref": BASE}))
    api("PUT", f"{BASE}$details", schema({}))
    shown = [api("GET", f"{USE}{number}$details").json for number in range(3)]
    assert [True, False, False] == [one["formatvalidated"] for one in shown]
    assert checks.CHANGED == shown[2]["formatvalidatedreason"]


def test_wrong_in_itself(broken: Api) -> None:
    """A document that is wrong in itself is refused, whatever else it refers to."""
    wrong = {"type": "strin", "properties": {"a": {"$ref": BASE}}}
    assert "format_violation" == broken("PUT", f"{USE}$details", schema(wrong)).error
    lost = {"properties": {"a": {"$ref": "#/definitions/none"}}}
    assert "format_violation" == broken("PUT", f"{USE}$details", schema(lost)).error


# ---- what a request may take while others wait

LARGE = {"definitions": {f"d{number}": {} for number in range(20_000)}}


def users(api: Api, count: int, document: Any) -> list[dict[str, Any]]:
    """Schemas that say the same, as they are shown."""
    return [api("PUT", f"{USE}{number}$details", schema(document)).json for number in range(count)]


def shown(api: Api, count: int) -> list[dict[str, Any]]:
    """The same schemas as they are shown later."""
    return [api("GET", f"{USE}{number}$details").json for number in range(count)]


def test_large_users(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users are looked at again within a budget of steps; the others say that nobody looked, and no epoch moves."""
    api("PUT", f"{BASE}$details", schema(DEFINED))
    users(api, 3, {"$ref": BASE})
    monkeypatch.setattr(checks, "SECOND", 150)  # 52 for the document, and as much for what it refers to
    assert 200 == api("PUT", f"{BASE}$details", schema({"type": "string"})).status
    found = shown(api, 3)
    assert [True, False, False] == [one["formatvalidated"] for one in found]
    assert [None, checks.CHANGED, checks.CHANGED] == [one.get("formatvalidatedreason") for one in found]
    assert [1, 1, 1] == [one["epoch"] for one in found]


def test_a_large_schema_with_users(api: Api) -> None:
    """A small change of a large schema takes bounded time, however often others refer to it."""
    api("PUT", f"{BASE}$details", schema(LARGE))
    assert all(one["formatvalidated"] for one in users(api, 10, {"$ref": f"{BASE}#/definitions/d1"}))
    with bounded(6):
        assert 200 == api("PUT", f"{BASE}$details", schema({**LARGE, "title": "x"})).status
    found = shown(api, 10)
    seen = [one["formatvalidated"] for one in found]
    assert (True, False) == (seen[0], seen[-1])
    assert seen == sorted(seen, reverse=True)
    assert checks.CHANGED == found[-1]["formatvalidatedreason"]


def test_a_user_that_nobody_looked_at_is_mended(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema that nobody looked at is judged where it is written again with the same document."""
    api("PUT", f"{BASE}$details", schema(DEFINED))
    users(api, 1, {"$ref": BASE})
    monkeypatch.setattr(checks, "MOST_USERS", 0)
    api("PUT", f"{BASE}$details", schema({}))
    assert checks.CHANGED == shown(api, 1)[0]["formatvalidatedreason"]
    assert users(api, 1, {"$ref": BASE})[0]["formatvalidated"] is True


def test_what_the_server_says_is_no_update(api: Api) -> None:
    """A schema that is looked at again keeps its epoch and time (TYPE-18, FMT-9); its tag is another."""
    api("PUT", f"{BASE}$details", schema(DEFINED))
    api("PUT", f"{USE}$details", schema({"$ref": f"{BASE}#/definitions/n"}))
    before = api("GET", f"{USE}$details")
    api("PUT", f"{BASE}$details", schema({}))
    after = api("GET", f"{USE}$details")
    assert [True, False] == [reply.json["formatvalidated"] for reply in (before, after)]
    for name in ("epoch", "modifiedat"):
        assert before.json[name] == after.json[name]
    assert before.headers["etag"] != after.headers["etag"]
    assert 200 == api("GET", f"{USE}$details", headers={"if-none-match": before.headers["etag"]}).status


@pytest.mark.parametrize("case", [pytest.param(one, id=one.name) for one in read_cases(WEIGHTS)])
def test_large_documents(api: Api, case: Case) -> None:
    """A document that would take too long is kept unchecked, and says so: FMT-3."""
    text = text_of(case)
    with bounded(3):
        reply = api("PUT", USE, text, {"xregistry-format": case.given["format"]})
    assert 201 == reply.status, reply.body
    shown = api("GET", f"{USE}$details").json
    assert (not case.expect, case.expect) == (shown["formatvalidated"], shown.get("formatvalidatedreason", ""))
    assert text == api("GET", USE).body


def test_large_documents_of_a_strict_registry(api: Api) -> None:
    """Where validation is strict, a document that would take too long is refused as an unknown format is: FMT-6."""
    source = api("GET", "/modelsource").json
    source["groups"]["schemagroups"]["resources"]["schemas"]["strictvalidation"] = True
    assert 200 == api("PUT", "/modelsource", source).status
    case = next(one for one in read_cases(WEIGHTS) if one.given["format"] == "XSD/1.0" and one.expect)
    assert "format_unknown" == api("PUT", USE, text_of(case), {"xregistry-format": "XSD/1.0"}).error


@pytest.mark.parametrize("case", [pytest.param(one, id=one.name) for one in read_cases(WEIGHTS) if one.expect])
def test_references_to_large_documents(api: Api, case: Case) -> None:
    """A schema is not read with another that is too large itself; it is kept, and says why."""
    form = case.given["format"]
    small = REFERRING[form]
    name = "com.x.R" if "Avro" in form else "base"
    large = text_of(case).replace(b'"name":"R"', b'"name":"com.x.R"').replace(b'"name":"E"', b'"name":"com.x.R"')
    assert 201 == api("PUT", BASE, large, {"xregistry-format": form}).status
    with bounded(3):
        reply = api("PUT", USE, small.encode(), {"xregistry-format": form})
    assert 201 == reply.status, reply.body
    shown = api("GET", f"{USE}$details").json
    assert shown["formatvalidated"] is False
    assert name in shown["formatvalidatedreason"]
    assert "too large to be read with it" in shown["formatvalidatedreason"]


REFERRING = {
    "JsonSchema/draft-07": '{"properties": {"p": {"$ref": "base"}}}',
    "JsonSchema/draft/2020-12": '{"properties": {"p": {"$ref": "base"}}}',
    "Avro/1.11": '{"type": "record", "name": "U", "fields": [{"name": "f", "type": "com.x.R"}]}',
    "Protobuf/3": 'syntax = "proto3"; import "base"; message U {}',
    "Protobuf/2": 'import "base"; message U {}',
    "XSD/1.0": '<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema"><s:include schemaLocation="base"/></s:schema>',
    "JsonStructure/draft-04": '{"$schema":"https://json-structure.org/meta/import/v0/#","$id":"https://x.example/u","name":"U",'
    '"$import":"base","type":"object","properties":{"p":{"type":"int32"}}}',
}


def test_references_that_are_large_together(api: Api) -> None:
    """What one schema refers to is read up to a limit for all together."""
    for number in range(3):
        api("PUT", f"{BASE}{number}$details", schema(LARGE))
    body = {"allOf": [{"$ref": f"{BASE}{number}"} for number in range(3)]}
    assert "too large to be read with it" in api("PUT", f"{USE}$details", schema(body)).json["formatvalidatedreason"]


@pytest.mark.parametrize(("steps", "each", "expect"), [(0, 0, "compatibility_violation"), (0, 2000, ""), (500, 0, "")])
def test_the_budget_of_a_request(api: Api, monkeypatch: pytest.MonkeyPatch, steps: int, each: int, expect: str) -> None:
    """The comparisons of one request have steps in common, and some more for each document that it brings."""
    monkeypatch.setattr(checks, "MOST_STEPS", steps)
    monkeypatch.setattr(checks, "STEPS_EACH", each)
    api("PUT", f"{BASE}$details", {**schema({"type": "integer"}), "meta": {"compatibility": "backward"}})
    reply = api("PUT", f"{BASE}/versions/2$details", schema({"type": "number"}))
    assert expect == reply.error, reply.body
    if expect:
        assert "to be compared with" in reply.json["detail"]
    else:
        assert reply.json["compatibilityvalidated"] is True


def test_a_line_that_is_too_long_to_compare(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that brings many versions is compared until its steps are spent, and is refused whole beyond."""
    monkeypatch.setattr(checks, "MOST_STEPS", 300)
    monkeypatch.setattr(checks, "STEPS_EACH", 0)
    body = {"meta": {"compatibility": "backward_transitive"}, "versions": {
        f"v{number}": {**schema({"type": "integer"}), "ancestor": f"v{max(number - 1, 0)}"} for number in range(9)
    }}  # fmt: skip
    assert "compatibility_violation" == api("PUT", f"{BASE}$details", body).error
    assert 404 == api("GET", f"{BASE}$details").status
