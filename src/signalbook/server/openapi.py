"""`/openapi.json`: the API of this registry as it is now, made from its model; and that of the 0.1 catalog.

Rule 1: paths, methods and schemas of entities come from the model and from the table of operations, so the document
cannot say what the server does not do.
Rule 2: entities are open: what a server adds to them and what depends on other attributes (`ifvalues`) is not said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from signalbook import __version__
from signalbook.jsontext import Json
from signalbook.model.model import GroupType, Model, ResourceType
from signalbook.model.values import Attribute
from signalbook.registry.requests import Requests
from signalbook.registry.write.operations import ALLOWED
from signalbook.server import http
from signalbook.server.http import JSON, SEQUENCE, Request, Response
from signalbook.server.problems import not_supported
from signalbook.spec.dialects.v01 import METASCHEMAS, Metaschema, Section01

__all__ = ["MESSAGE_PATHS", "PATHS", "SCHEMAS", "OpenApi", "document"]

# The paths and schemas of the 0.1 catalog for `/openapi.json`; a definition's schema is made from its metaschemas.


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

# The paths that judge and build messages: one row each, with its flags.


def _asking(words: str, *flags: str) -> Json:
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "array", "items": {"type": "string"}}} for name in flags
    ]
    demanded = "The number of a change that the catalog has to have in it; a write tells its own."
    parameters.append({"name": "since", "in": "query", "description": demanded, "schema": {"type": "integer"}})
    stands_at = {"description": "The change that the catalog stood at.", "schema": {"type": "integer"}}
    operation = _operation(words, {"type": ["object", "array"]}, body={"type": ["object", "array"]})
    operation["responses"]["200"] = {**operation["responses"]["200"], "headers": {SEQUENCE: stands_at}}
    return {"post": {**operation, "parameters": parameters, "tags": ["messages"]}}


MESSAGE_PATHS: Json = {
    "/match": _asking("What the catalog says about a message, or about each of several.", "within"),
    "/validate": _asking("What one definition says about a message.", "definition", "within"),
    "/build": _asking("The message that values make by a definition.", "definition"),
}

_TEXT: Json = {"type": "string"}
_TIME: Json = {"type": "string", "format": "date-time", "readOnly": True}
_COMMON: Json = {"id": _TEXT, "specversion": {"const": "0.1"}, "format": _TEXT, "description": _TEXT}
_COMMON |= {"documentation": _TEXT, "tags": _TEXT, "createdtimeutc": _TIME}
_OTHER_FIELDS: Json = {"dataschema": _ref("DataSchema01"), "choice": _TEXT}


def _section(section: Section01) -> Json:
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


_TYPES: Mapping[str, Json] = {
    "any": {},
    "boolean": {"type": "boolean"},
    "decimal": {"type": "number"},
    "integer": {"type": "integer"},
    "uinteger": {"type": "integer", "minimum": 0},
    "timestamp": {"type": "string", "format": "date-time"},
}
_WORDS: Mapping[str, str] = {
    "GET": "Read",
    "PUT": "Create or replace",
    "PATCH": "Change",
    "POST": "Create or update below",
    "DELETE": "Delete",
}
_DOCUMENTS = ("capabilities", "capabilitiesoffered", "export", "model", "modelsource")


class OpenApi:
    """Answers `/openapi.json` for one registry."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def answer(self, request: Request) -> Response:
        """Answer one request."""
        if request.method == "OPTIONS":
            return http.options(request, "GET, OPTIONS")
        if request.method != "GET":
            raise not_supported(request.path, request.method, "GET, OPTIONS")
        model = self._requests.setup(self._requests.store.reader()).model
        return Response(200, [JSON], orjson.dumps({**_kept(model), "servers": [{"url": request.base}]}))


@lru_cache(maxsize=8)
def _kept(model: Model) -> Json:
    return document(model)


def document(model: Model) -> Json:
    """The OpenAPI 3.1 document of a registry with this model."""
    paths: Json = {"/": _item("registry", "the registry", "Registry")}
    paths.update({f"/{name}": _item(name, f"the {name}", "Object") for name in _DOCUMENTS})
    schemas: Json = {"Object": {"type": "object"}, "Problem": _PROBLEM, **SCHEMAS}
    schemas["Registry"] = _entity(model.level.attributes)
    for group in model.groups.values():
        paths.update(_group_paths(group))
        schemas[_name(group)] = _entity(group.attributes)
        for resource in group.resources.values():
            schemas[_name(group, resource)] = _entity(resource.attributes)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Signalbook", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": {**paths, **MESSAGE_PATHS, **PATHS},
        "components": {"schemas": schemas, "responses": {"Problem": _PROBLEM_RESPONSE}},
    }


_PROBLEM: Json = {
    "type": "object",
    "required": ["type", "title"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "detail": {"type": "string"},
        "subject": {"type": "string"},
        "args": {"type": "object", "additionalProperties": {"type": "string"}},
        "instance": {"type": "string"},
    },
}
_PROBLEM_RESPONSE: Json = {
    "description": "The request is refused.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def _group_paths(group: GroupType) -> Iterator[tuple[str, Json]]:
    one = f"/{group.plural}/{{{group.singular}id}}"
    yield f"/{group.plural}", _item("groups", group.plural, _name(group), collection=True)
    yield one, _item("group", f"a {group.singular}", _name(group), f"{group.singular}id")
    for resource in group.resources.values():
        name, ids = _name(group, resource), (f"{group.singular}id", f"{resource.singular}id")
        yield f"{one}/{resource.plural}", _item("resources", resource.plural, name, ids[0], collection=True)
        path = f"{one}/{resource.plural}/{{{resource.singular}id}}"
        details = "$details" if resource.hasdocument else ""
        yield path + details, _item("resource", f"a {resource.singular}", name, *ids)
        yield f"{path}/meta", _item("meta", f"the meta of a {resource.singular}", "Object", *ids)
        yield f"{path}/versions", _item("versions", "versions", name, *ids, collection=True)
        yield (
            f"{path}/versions/{{versionid}}{details}",
            _item("version", f"a version of a {resource.singular}", name, *ids, "versionid"),
        )


def _item(kind: Any, words: str, schema: str, *ids: str, collection: bool = False) -> Json:
    """The operations of one path."""
    value: Json = {"$ref": f"#/components/schemas/{schema}"}
    if collection:
        value = {"type": "object", "additionalProperties": value}
    content = {"application/json": {"schema": value}}
    found: Json = {}
    if ids:
        found["parameters"] = [{"name": i, "in": "path", "required": True, "schema": {"type": "string"}} for i in ids]
    for method in ALLOWED[kind].split(", "):
        if method not in _WORDS:
            continue
        operation: Json = {
            "summary": f"{_WORDS[method]} {words}.",
            "responses": {
                "default": {"$ref": "#/components/responses/Problem"},
                ("204" if method == "DELETE" else "200"): {"description": "Done.", "content": content}
                if method != "DELETE"
                else {"description": "Done."},
            },
        }
        if method in ("PUT", "PATCH", "POST"):
            operation["requestBody"] = {"required": True, "content": content}
            operation["responses"]["201"] = {"description": "Created.", "content": content}
        found[method.lower()] = operation
    return found


def _name(group: GroupType, resource: ResourceType | None = None) -> str:
    return group.singular if resource is None else f"{group.singular}.{resource.singular}"


def _entity(attributes: Mapping[str, Attribute]) -> Json:
    """The schema of an entity, as a client sends it or is shown it."""
    return {"type": "object", "properties": _schema(attributes)["properties"]}


def _schema(attributes: Mapping[str, Attribute]) -> Json:
    """The schema of an object with these attributes; open where the model is, or where other attributes decide."""
    own = [attribute for name, attribute in attributes.items() if name != "*"]
    is_open = "*" in attributes or any(attribute.ifvalues for attribute in own)
    found: Json = {"type": "object", "properties": {attribute.name: _value(attribute) for attribute in own}}
    required = sorted(attribute.name for attribute in own if attribute.required)
    return {**found, **({"required": required} if required else {}), "additionalProperties": is_open}


def _value(attribute: Attribute) -> Json:
    found = dict(_TYPES.get(attribute.type, {"type": "string"}))
    if attribute.type == "object":
        found = _schema(attribute.attributes)
    elif attribute.type in ("map", "array"):
        item = _value(attribute.item) if attribute.item is not None else {}
        member = "additionalProperties" if attribute.type == "map" else "items"
        found = {"type": "object" if attribute.type == "map" else "array", member: item}
    if attribute.description:
        found["description"] = attribute.description
    if attribute.enum and attribute.type not in ("map", "array"):
        found["enum"] = list(attribute.enum)
    return found
