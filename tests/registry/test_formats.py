from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from signalbook import schemas
from signalbook.registry.capabilities import OFFER
from signalbook.schemas import COMPATIBILITIES
from signalbook.schemas.format import Text, unusable
from tests.registry.conftest import Api, MakeApi

SCHEMA = "/schemagroups/g/schemas/s"
INTEGER = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
NUMBER = {"type": "object", "properties": {"n": {"type": "number"}}, "additionalProperties": False}


def put(api: Api, name: str, document: Any, format: str = "JsonSchema/draft-07", at: str = SCHEMA) -> Any:
    """Write one version of a schema."""
    return api("PUT", f"{at}/versions/{name}$details", {"format": format, "schema": document})


# One document for each format that has it, and one that has not.
DOCUMENTS: list[tuple[str, Any, Any]] = [
    ("JsonSchema/draft-07", INTEGER, {"type": "objekt"}),
    ("jsonSchema", INTEGER, {"type": "objekt"}),
    ("jsonSchema/draft-08", INTEGER, {"type": "objekt"}),
    ("JsonSchema/draft/2020-12", INTEGER, {"type": "objekt"}),
    ("Avro/1.11.0", {"type": "record", "name": "R", "fields": []}, {"type": "record", "fields": []}),
    ("Protobuf/3", 'syntax = "proto3"; message M { int32 n = 1; }', 'syntax = "proto3"; message M { int32 n; }'),
    ("XSD/1.0", '<schema xmlns="http://www.w3.org/2001/XMLSchema"/>', "<schema/>"),
    (
        "JsonStructure/draft-04",
        {
            "$schema": "https://json-structure.org/meta/core/v0/#",
            "$id": "https://example.org/n",
            "name": "N",
            "type": "object",
            "properties": {"n": {"type": "int32"}},
        },
        {"type": "objekt"},
    ),
]


@pytest.mark.parametrize(("format", "good", "bad"), DOCUMENTS, ids=[row[0] for row in DOCUMENTS])
def test_each_format(api: Api, format: str, good: Any, bad: Any) -> None:
    """FMT-3, FMT-5: a document that has its format says so; one that has not is refused with where and why."""
    reply = put(api, "1", bad, format)
    assert ("format_violation", {"format": format}) == (reply.error, reply.json["args"])
    assert reply.json["detail"]
    reply = put(api, "1", good, format)
    assert 201 == reply.status, reply.body
    assert reply.json["formatvalidated"] is True
    assert 200 == api("PATCH", f"{SCHEMA}/meta", {"compatibility": "full_transitive"}).status
    assert api("GET", f"{SCHEMA}$details").json["compatibilityvalidated"] is True


def test_compatibility(api: Api) -> None:
    """FMT-5: a version that breaks the promise is refused, and the difference is named by path and kind."""
    api("PUT", f"{SCHEMA}/meta", {"compatibility": "backward"})
    assert put(api, "1", INTEGER).json["compatibilityvalidated"] is True
    assert put(api, "2", NUMBER).json["compatibilityvalidated"] is True
    reply = put(api, "3", INTEGER)
    assert ("compatibility_violation", {"compat": "backward"}) == (reply.error, reply.json["args"])
    assert f'Version "{SCHEMA}/versions/3" is not backward compatible: /properties/n' in reply.json["detail"]
    assert 404 == api("GET", f"{SCHEMA}/versions/3").status


def test_only_what_a_change_concerns_is_written(api: Api) -> None:
    """FMT-8: a version in the midst of a line may change as long as those after it keep the promise."""
    api("PUT", f"{SCHEMA}/meta", {"compatibility": "backward_transitive"})
    for name in ("1", "2", "3"):
        put(api, name, NUMBER)
    assert 200 == put(api, "1", INTEGER).status
    assert "compatibility_violation" == put(api, "3", INTEGER).error
    assert "compatibility_violation" == put(api, "1", {"type": "array"}).error
    epochs = {name: one["epoch"] for name, one in api("GET", f"{SCHEMA}/versions").json.items()}
    assert {"1": 3, "2": 1, "3": 1} == epochs  # the first one was made with the promise, and written twice


UNDECIDED = ({"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^(a|aa)+$"})


def test_the_unknown(make_api: MakeApi) -> None:
    """What cannot be decided is not compatible, unless the registry is told to trust it."""
    for trust, expected in ((False, 400), (True, 201)):
        api = make_api(trust_unknown=trust)
        path = f"/schemagroups/g{trust:d}/schemas/s"
        api("PUT", f"{path}/meta", {"compatibility": "backward"})
        put(api, "1", UNDECIDED[0], at=path)
        assert expected == put(api, "2", UNDECIDED[1], at=path).status


def test_an_ancestor_that_was_not_checked(api: Api) -> None:
    """FMT-4: compared with a version that nobody checked, one is not called compatible, and says so."""
    api("PUT", f"{SCHEMA}/meta", {"compatibility": "backward"})
    body = {"format": "JsonSchema/draft-07", "schemaurl": "http://x.example/"}
    api("PUT", f"{SCHEMA}/versions/1$details", body)
    shown = put(api, "2", INTEGER).json
    assert (True, False) == (shown["formatvalidated"], shown["compatibilityvalidated"])
    assert "versions/1" in shown["compatibilityvalidatedreason"]


def test_unknown_formats_are_kept(api: Api) -> None:
    """FMT-3: the versions of a format that the registry does not know are kept, and say why nobody checked them."""
    api("PUT", f"{SCHEMA}/meta", {"compatibility": "backward"})
    shown = put(api, "1", "what", "RAML/1.0").json
    validated = {name: value for name, value in shown.items() if "validated" in name}
    assert {
        "formatvalidated": False,
        "formatvalidatedreason": "Unknown format",
        "compatibilityvalidated": False,
        "compatibilityvalidatedreason": "Unknown format",
    } == validated


def test_capabilities_decide(api: Api) -> None:
    """CAP-11, FMT-3: a format that the capabilities leave out is not checked."""
    assert {row.name.lower() for row in schemas.FORMATS} == set(api("GET", "/capabilities").json["formats"])
    assert 200 == api("PATCH", "/capabilities", {"formats": ["avro/*"]}).status
    assert put(api, "1", {"type": "objekt"}).json["formatvalidated"] is False


def test_offer() -> None:
    """Every row of the table is offered, with all six rules."""
    shown = OFFER.initial().to_dict()
    names = sorted(row.name.lower() for row in schemas.FORMATS)
    assert (names, dict.fromkeys(names, sorted(COMPATIBILITIES))) == (shown["formats"], shown["compatibilities"])


def test_references(api: Api) -> None:
    """A schema may refer to others of the registry, by xid with or without a version, and to nothing else."""
    other = "/schemagroups/g/schemas/other"
    user = {"properties": {"a": {"$ref": other}, "b": {"$ref": f"{other}/versions/1#/properties/n"}}}
    assert put(api, "1", user).json["formatvalidated"] is False
    assert 201 == put(api, "1", INTEGER, at=other).status
    assert put(api, "1", user).json["formatvalidated"] is True
    for outside in ("http://x.example/s", "file:///etc/hostname", "/schemagroups/g", f"{other}/versions/2", "/x/y/z/s"):
        shown = put(api, "2", {"$ref": outside}).json
        assert shown["formatvalidated"] is False, outside
        assert "the catalog has no schema" in shown["formatvalidatedreason"]


def test_references_within_a_request(api: Api) -> None:
    """The schemas of one request may refer to each other, in any order."""
    schema = {"versionid": "1", "format": "JsonSchema/draft-07"}
    a = {**schema, "schema": {"$ref": "/schemagroups/g/schemas/b"}}
    b = {**schema, "schema": {"properties": {"a": {"$ref": "/schemagroups/g/schemas/a"}}}}
    reply = api("PUT", "/schemagroups/g", {"schemas": {"a": a, "b": b}})
    assert 201 == reply.status, reply.body
    assert api("GET", "/schemagroups/g/schemas/a$details").json["formatvalidated"] is True


def test_imports_of_protobuf(api: Api) -> None:
    """A Protobuf schema imports another by its xid, without the slash that a file name must not begin with."""
    put(
        api,
        "1",
        'syntax = "proto3"; package x; message Point { int32 x = 1; }',
        "Protobuf/3",
        "/schemagroups/g/schemas/p",
    )
    text = 'syntax = "proto3"; import "schemagroups/g/schemas/p"; message Line { x.Point from = 1; }'
    assert put(api, "1", text, "Protobuf/3").json["formatvalidated"] is True


def test_a_library_that_is_missing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A format whose library is not installed is one that the registry cannot check, and the write goes on."""

    def read(text: Text, references: object) -> Any:
        try:
            raise ModuleNotFoundError("No module named 'x'", name="x")
        except ModuleNotFoundError as error:
            raise unusable("it needs the Python package x") from error

    avro = schemas.find("Avro/*")
    assert avro is not None
    row = replace(avro, read=read)
    monkeypatch.setattr(schemas, "FORMATS", (row,))
    assert put(api, "1", {}, "Avro/1").json["formatvalidated"] is False


def test_libraries_are_loaded_late() -> None:
    """Starting the registry loads none of the schema libraries."""
    heavy = ["jsonschema_rs", "fastavro", "google.protobuf", "grpc_tools", "lxml", "json_structure", "pyarrow"]
    code = f"import signalbook.app, sys; print([n for n in {heavy} if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == found.stdout.strip()
