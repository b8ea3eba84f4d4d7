"""The built-in model: messagegroups with messages, schemagroups with schemas, and endpoints.

Rule 1: it is the union of what the texts and the published model files allow, and states no default that would
constrain a message (docs/decisions/0005-builtin-model-is-the-union.md).
Rule 2: it is nothing but a model; the registry treats it like one that a user has put in its place.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final

from signalbook.jsontext import Json

__all__ = ["ENDPOINT", "MESSAGE", "RECORDED", "SCHEMA", "builtin_modelsource"]

# What a type says in `modelcompatiblewith`, and so what spellings and named rules go by.
MESSAGE: Final = "https://xregistry.io/xreg/domains/message/specs/model.json"
SCHEMA: Final = "https://xregistry.io/xreg/domains/schema/specs/model.json"
ENDPOINT: Final = "https://xregistry.io/xreg/domains/endpoint/specs/model.json"

# The types whose changes are kept as numbered snapshots: the definitions of the 0.1 catalog.
RECORDED: Final = frozenset({MESSAGE})

_DOCUMENTS: Final = ("message.json", "schema.json", "endpoint.json")


def builtin_modelsource() -> Json:
    """The built-in model as a client would send it to `PUT /modelsource`: a new document without includes."""
    groups: Json = {}
    for document in _DOCUMENTS:
        groups.update(_resolve(_load(document), document)["groups"])
    return {"description": "Messages, their schemas and the endpoints that carry them.", "groups": groups}


def _resolve(value: Any, document: str) -> Any:
    """A copy of `value` with each `$include` replaced by what it names; members beside it win (core/model.md)."""
    if isinstance(value, list):
        return [_resolve(item, document) for item in value]
    if not isinstance(value, dict):
        return value
    members = {name: _resolve(member, document) for name, member in value.items() if name != "$include"}
    if "$include" not in value:
        return members
    name, _, pointer = value["$include"].partition("#/")
    included = _load(name or document)
    for step in pointer.split("/"):
        included = included[step]
    return {**_resolve(included, name or document), **members}


@cache
def _load(document: str) -> Any:
    return json.loads(files(__package__).joinpath("models", document).read_text("utf-8"))
