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
from signalbook.document.attribute import Attribute
from signalbook.document.model import GroupType, Model, ResourceType
from signalbook.registry.operations import ALLOWED
from signalbook.registry.requests import Requests
from signalbook.server import cross_origin
from signalbook.server.http import JSON, Request, Response
from signalbook.server.openapi01 import PATHS as CATALOG_PATHS
from signalbook.server.openapi01 import SCHEMAS as CATALOG_SCHEMAS
from signalbook.server.problems import not_supported

__all__ = ["OpenApi", "document"]

Json = dict[str, Any]

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
            return cross_origin.options(request, "GET, OPTIONS")
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
    schemas: Json = {"Object": {"type": "object"}, "Problem": _PROBLEM, **CATALOG_SCHEMAS}
    schemas["Registry"] = _entity(model.level.attributes)
    for group in model.groups.values():
        paths.update(_group_paths(group))
        schemas[_name(group)] = _entity(group.attributes)
        for resource in group.resources.values():
            schemas[_name(group, resource)] = _entity(resource.attributes)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Signalbook", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": {**paths, **CATALOG_PATHS},
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
