from __future__ import annotations

from typing import Any

import pytest

from tests.cases import Case, cases, read_cases
from tests.registry.conftest import Api

USER = "/schemagroups/g/schemas/user"
REFERENCES = "registry/schema_references"
FOUND = pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name) for case in read_cases(REFERENCES) if case.expect]
)


def group_of(format: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """A registry's groups with one schema each way."""
    groups: dict[str, Any] = {}
    for place, schema in schemas.items():
        group, id_ = place.split("/")
        groups.setdefault(group, {"schemas": {}})["schemas"][id_] = {"format": format, "schema": schema}
    return groups


@cases(REFERENCES)
def test_look_up(api: Api, case: Case) -> None:
    """What a schema refers to is found in the registry where the documentation says; else it is kept, and says why."""
    if case.given["others"]:
        reply = api("POST", "/", {"schemagroups": group_of(case.given["format"], case.given["others"])})
        assert 200 == reply.status, reply.body
    reply = api("PUT", f"{USER}/versions/1$details", {"format": case.given["format"], "schema": case.given["schema"]})
    assert 201 == reply.status, reply.body
    assert case.expect is reply.json["formatvalidated"], reply.json.get("formatvalidatedreason")
    assert case.expect is ("formatvalidatedreason" not in reply.json)


@FOUND
def test_what_comes_and_goes(api: Api, case: Case) -> None:
    """A schema is looked at again when what it refers to comes, and when that goes."""
    user = f"{USER}$details"
    api("PUT", user, {"format": case.given["format"], "schema": case.given["schema"]})
    assert api("GET", user).json["formatvalidated"] is False
    groups = group_of(case.given["format"], case.given["others"])
    api("POST", "/", {"schemagroups": groups})
    assert api("GET", user).json["formatvalidated"] is True
    epoch = api("GET", user).json["epoch"]
    for group, body in groups.items():
        for id_ in body["schemas"]:
            assert 204 == api("DELETE", f"/schemagroups/{group}/schemas/{id_}").status
    shown = api("GET", user).json
    assert (False, epoch) == (shown["formatvalidated"], shown["epoch"])
    assert shown["formatvalidatedreason"]


@FOUND
def test_within_one_request(api: Api, case: Case) -> None:
    """The schemas of one request find each other, whatever their order."""
    schemas = {"g/user": case.given["schema"], **case.given["others"]}
    reply = api("POST", "/", {"schemagroups": group_of(case.given["format"], schemas)})
    assert 200 == reply.status, reply.body
    assert api("GET", f"{USER}$details").json["formatvalidated"] is True


def test_a_group_that_goes(api: Api) -> None:
    """What refers to a schema of a group that is deleted is looked at again."""
    base = {"$id": "https://x.example/b"}
    api("PUT", "/schemagroups/h/schemas/b$details", {"format": "JsonSchema/draft-07", "schema": base})
    for id_, name in (("1", "https://x.example/b"), ("2", "/schemagroups/h/schemas/b")):
        body = {"format": "JsonSchema/draft-07", "schema": {"$ref": name}}
        assert api("PUT", f"/schemagroups/g/schemas/{id_}$details", body).json["formatvalidated"] is True
    assert 204 == api("DELETE", "/schemagroups/h").status
    shown = [api("GET", f"/schemagroups/g/schemas/{id_}$details").json["formatvalidated"] for id_ in "12"]
    assert [False, False] == shown


def test_only_the_default_version_has_names(api: Api) -> None:
    """The name that a newer default version no longer declares leads nowhere."""
    at = "/schemagroups/g/schemas/b"
    for id_, name in (("1", "https://x.example/one"), ("2", "https://x.example/two")):
        body = {"format": "JsonSchema/draft-07", "schema": {"$id": name}}
        assert 201 == api("PUT", f"{at}/versions/{id_}$details", body).status
    for name, found in (("one", False), ("two", True)):
        body = {"format": "JsonSchema/draft-07", "schema": {"$ref": f"https://x.example/{name}"}}
        assert found is api("PUT", f"{USER}$details", body).json["formatvalidated"]
