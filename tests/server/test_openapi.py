"""`/openapi.json`: a valid document of what the server does, made from the model."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from signalbook.model.model import read_model
from signalbook.registry.registry import Registry
from signalbook.registry.write.operations import ALLOWED
from signalbook.server.openapi import document
from signalbook.spec.builtin import builtin_modelsource

METHODS = {"get", "put", "post", "patch", "delete", "options"}


@pytest.fixture
def found() -> dict[str, Any]:
    """The document of the built-in model."""
    return document(read_model(builtin_modelsource()))


def test_every_level_of_the_model_has_its_path(found: dict[str, Any]) -> None:
    """Each type of the model has its collection, its entity, its versions and their methods."""
    path = "/messagegroups/{messagegroupid}/messages/{messageid}"
    for place, level in (("", "resource"), ("/meta", "meta"), ("/versions", "versions")):
        methods = {name.upper() for name in found["paths"][path + place] if name in METHODS}
        assert set(ALLOWED[level].split(", ")) - {"OPTIONS"} == methods
    assert "/schemagroups/{schemagroupid}/schemas/{schemaid}$details" in found["paths"]
    assert "/messagecatalog/{groupid}/messagedefinitions/{definitionid}/versions/{version}" in found["paths"]


def test_every_reference_leads_somewhere(found: dict[str, Any]) -> None:
    """Each `$ref` names a component, and each parameter of a path is declared."""
    for reference in references(found):
        target: Any = found
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
    for path, item in found["paths"].items():
        declared = {one["name"] for one in item.get("parameters", ()) if one["in"] == "path"}
        assert {part.split("}")[0] for part in path.split("{")[1:]} == declared, path


def test_every_schema_is_one(found: dict[str, Any]) -> None:
    """Each schema is a JSON Schema of the dialect that OpenAPI 3.1 has."""
    for schema in found["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_entities_have_the_form_it_says(found: dict[str, Any]) -> None:
    """What the registry shows of a message is valid by the schema of messages."""
    with Registry.open() as registry:
        options = {"protocol": "NATS", "protocoloptions": {"subject": "s"}, "labels": {"a": "b"}}
        shown = registry.put("/messagegroups/g/messages/m", options)
    schema = {"$ref": "#/components/schemas/messagegroup.message", "components": found["components"]}
    Draft202012Validator(schema).validate(shown)


def references(value: Any) -> list[str]:
    """Every `$ref` in a value."""
    if isinstance(value, list):
        return [found for member in value for found in references(member)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
    return own + [found for member in value.values() for found in references(member)]
