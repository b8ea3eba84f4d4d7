"""The paths and schemas of the 0.1 catalog for `/openapi.json`; a definition's schema is made from its metaschemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from signalbook.spec.dialects.metaschemas import METASCHEMAS, Metaschema, Section

__all__ = ["PATHS", "SCHEMAS"]

Json = dict[str, Any]


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _operation(words: str, schema: Json | None, *, body: Json | None = None, created: bool = False) -> Json:
    done: Json = {"description": "Done."} if schema is None else {"description": "Done.", "content": _content(schema)}
    responses: Json = {"204" if schema is None else "200": done, "default": {"$ref": "#/components/responses/Problem"}}
    if created:
        responses["201"] = {**done, "description": "Created."}
    found: Json = {"summary": words, "responses": responses, "tags": ["messagecatalog 0.1"]}
    return {**found, "requestBody": {"required": True, "content": _content(body)}} if body is not None else found


def _parameters(*names: str) -> list[Json]:
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _list(name: str) -> Json:
    return {"type": "array", "items": _ref(name)}


_GROUP = "/messagecatalog/{groupid}"
_DEFINITIONS = f"{_GROUP}/messagedefinitions"
_DEFINITION = f"{_DEFINITIONS}/{{definitionid}}"

PATHS: Json = {
    "/messagecatalog": {
        "get": _operation("List the groups.", _list("Group01")),
        "options": _operation("What this catalog can do.", _ref("Features01")),
    },
    _GROUP: {
        "parameters": _parameters("groupid"),
        "get": _operation("Read a group.", _ref("Group01")),
        "put": _operation("Create or update a group.", _ref("Group01"), body=_ref("Group01"), created=True),
        "delete": _operation("Delete a group.", None),
    },
    _DEFINITIONS: {
        "parameters": _parameters("groupid"),
        "get": _operation("List the definitions of a group.", _list("Definition01")),
        "post": _operation(
            "Add a definition, or a version of it.", _ref("Definition01"), body=_ref("Definition01"), created=True
        ),
        "delete": _operation("Delete all definitions of a group.", None),
    },
    _DEFINITION: {
        "parameters": _parameters("groupid", "definitionid"),
        "get": _operation("Read the latest version of a definition.", _ref("Definition01")),
        "delete": _operation("Delete a definition with all its versions.", None),
    },
    f"{_DEFINITION}/versions": {
        "parameters": _parameters("groupid", "definitionid"),
        "get": _operation("List the versions of a definition.", _list("Definition01")),
    },
    f"{_DEFINITION}/versions/{{version}}": {
        "parameters": _parameters("groupid", "definitionid", "version"),
        "get": _operation("Read a version of a definition.", _ref("Definition01")),
        "delete": _operation("Delete a version of a definition.", None),
    },
    "/messagedefinition": {
        "parameters": [{"name": "uri", "in": "query", "required": True, "schema": {"type": "string"}}],
        "get": _operation("Read the definition version that a URI names.", _ref("Definition01")),
    },
}

_TEXT: Json = {"type": "string"}
_TIME: Json = {"type": "string", "format": "date-time", "readOnly": True}
_COMMON: Json = {"id": _TEXT, "specversion": {"const": "0.1"}, "format": _TEXT, "description": _TEXT}
_COMMON |= {"documentation": _TEXT, "tags": _TEXT, "createdtimeutc": _TIME}
_OTHER_FIELDS: Json = {"dataschema": _ref("DataSchema01"), "choice": _TEXT}


def _section(section: Section) -> Json:
    if section.fields is None:
        return {
            "type": "object",
            "propertyNames": {"pattern": f"^{section.pattern}$"},
            "additionalProperties": _ref("Template01"),
        }
    fields = {name: _OTHER_FIELDS.get(kind, _ref("Template01")) for name, kind in section.fields.items()}
    return {"type": "object", "properties": fields, "additionalProperties": False}


def _metaschema(metaschema: Metaschema) -> Json:
    sections = {name: _section(section) for name, section in metaschema.sections.items()}
    return {"type": "object", "properties": sections, "additionalProperties": False}


def _schemas() -> Iterator[tuple[str, Json]]:
    template = {"value": {"type": ["string", "null"]}, "required": {"type": "boolean"}, "description": _TEXT}
    yield "Template01", {"type": "object", "properties": template}
    schema = {"value": _TEXT, "schematype": _TEXT, "schema": {"type": ["string", "object"]}}
    yield "DataSchema01", {"type": "object", "properties": {**schema, **template, "value": _TEXT}}
    for form, metaschema in METASCHEMAS.items():
        yield f"{form}Definition01", _metaschema(metaschema)
    forms = [_ref(f"{form}Definition01") for form in METASCHEMAS]
    body = {"anyOf": [*forms, {"type": "object"}]}
    version = {"version": {"type": "integer", "readOnly": True}, "createdtimeutc": _TIME, "definition": body}
    related = dict.fromkeys(("authority", "relatedto", "relatedvia", "relation"), _TEXT)
    versions = {"versions": {"type": "array", "items": {"type": "object", "properties": version}}}
    yield (
        "Definition01",
        {"type": "object", "required": ["id"], "properties": {**_COMMON, **related, **version, **versions}},
    )
    group = {**_COMMON, "updatedtimeutc": _TIME, "definitions": _list("Definition01")}
    yield "Group01", {"type": "object", "required": ["specversion", "format"], "properties": group}
    features = {"filterattributes": {"type": "array", "items": _TEXT, "minItems": 1}}
    features |= {"pagination": {"type": "boolean"}, "update": {"type": "boolean"}}
    yield "Features01", {"type": "object", "required": ["filterattributes"], "properties": features}


SCHEMAS: Json = dict(_schemas())
