from __future__ import annotations

from typing import Any

import orjson
import pytest

from signalbook import Registry
from signalbook.registry.capabilities import OFFER
from signalbook.registry.store import Connection, open_store
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


# ---- stores of an older Signalbook


def make_older(url: str, version: int) -> None:
    """Give a store the shape that it had before a version, with what the registry then said of itself."""
    store = open_store(url)

    def job(db: Connection) -> None:
        db.execute("DROP TABLE schema_due")
        if version < 5:
            db.execute("DROP TABLE schema_names")
            db.execute("DROP TABLE schema_uses")
        else:
            db.execute("DELETE FROM schema_names")
            db.execute("DELETE FROM schema_uses")
        db.execute("UPDATE schema_version SET version = ?", (version,))
        ((text,),) = db.execute("SELECT value FROM settings WHERE name = 'capabilities'")
        stored = {**orjson.loads(text), "formats": [], "compatibilities": {}}
        db.execute("UPDATE settings SET value = ? WHERE name = 'capabilities'", (orjson.dumps(stored).decode(),))

    store.write(job)
    store.close()


def entries(url: str) -> dict[str, list[tuple[str, str]]]:
    """What the tables of names and uses hold, and what is still to be entered."""
    with open_store(url) as store:
        read = store.reader().execute
        return {table: sorted(read(f"SELECT name, key FROM {table}")) for table in ("schema_names", "schema_uses")} | {
            "due": sorted(read("SELECT key, '' FROM schema_due"))
        }


def catalog(case: Case) -> dict[str, Any]:
    """The groups of a case, with the schema that refers to the others."""
    return group_of(case.given["format"], {"g/user": case.given["schema"], **case.given["others"]})


@FOUND
def test_an_older_store(shared_store_url: str, case: Case) -> None:
    """A store from before the index gets all entries with the first write about schemas; rechecks work from then on."""
    with Registry.open(shared_store_url) as registry:
        registry.post("/", {"schemagroups": catalog(case)})
    expected = entries(shared_store_url)
    assert expected["schema_uses"]
    make_older(shared_store_url, 4)
    assert entries(shared_store_url)["due"]
    with Registry.open(shared_store_url) as registry:
        registry.put("/messagegroups/m", {})
        assert entries(shared_store_url)["due"], "only who writes about schemas waits for them"
        registry.patch("/capabilities", {"formats": ["*"], "compatibilities": {}})
        registry.put("/schemagroups/other", {})
        assert expected == entries(shared_store_url)
        for place in case.given["others"]:
            group, id_ = place.split("/")
            registry.delete(f"/schemagroups/{group}/schemas/{id_}")
        assert registry.get(USER)["formatvalidated"] is False


def test_an_older_store_and_the_group_that_goes(shared_store_url: str) -> None:
    """What the first request takes away from an older store counts as well."""
    case = next(one for one in read_cases(REFERENCES) if one.expect and any("h/" in it for it in one.given["others"]))
    with Registry.open(shared_store_url) as registry:
        registry.post("/", {"schemagroups": catalog(case)})
    make_older(shared_store_url, 5)
    with Registry.open(shared_store_url) as registry:
        registry.patch("/capabilities", {"formats": ["*"], "compatibilities": {}})
        registry.delete("/schemagroups/h")
        assert registry.get(USER)["formatvalidated"] is False


@pytest.mark.parametrize(("version", "healed"), [(4, True), (5, False)])
def test_the_formats_of_an_older_store(shared_store_url: str, version: int, healed: bool) -> None:
    """A store from before formats offers them all; in a newer one an empty list was chosen."""
    Registry.open(shared_store_url).close()
    make_older(shared_store_url, version)
    with Registry.open(shared_store_url) as registry:
        shown = registry.get("/capabilities")
    initial = OFFER.initial().to_dict()
    for name, nothing in (("formats", []), ("compatibilities", {})):
        assert (initial[name] if healed else nothing) == shown[name]


def test_a_type_that_comes_to_be_checked(api: Api) -> None:
    """The names of schemas that were there are known once a model says that formats are checked."""
    source = api("GET", "/modelsource").json
    kind = source["groups"]["schemagroups"]["resources"]["schemas"]
    rules = {name: kind[name] for name in ("validateformat", "validatecompatibility")}
    kind.update(dict.fromkeys(rules, False))
    assert 200 == api("PUT", "/modelsource", source).status
    body = {"format": "JsonSchema/draft-07", "schema": {"$id": "https://x.example/b"}}
    assert 201 == api("PUT", "/schemagroups/h/schemas/b$details", body).status
    kind.update(rules)
    assert 200 == api("PUT", "/modelsource", source).status
    body = {"format": "JsonSchema/draft-07", "schema": {"$ref": "https://x.example/b"}}
    assert api("PUT", f"{USER}$details", body).json["formatvalidated"] is True
