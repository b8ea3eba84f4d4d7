"""Requests that a registry takes, by the model it has, and where every attribute of the built-in model is.

Rule: data only; what is done to them is `hostile`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from signalbook.spec.builtin import builtin_modelsource

PROPERTIES = {
    "type": {"type": "string", "value": "com.example.made", "required": True},
    "source": {"type": "uritemplate", "value": "{site}/x"},
}
MESSAGE = {
    "name": "Made",
    "labels": {"stage": "dev"},
    "envelope": "CloudEvents/1.0",
    "envelopemetadata": PROPERTIES,
    "protocol": "KAFKA",
    "protocoloptions": {"topic": "t", "key": "k", "headers": [{"name": "h", "value": "v"}]},
    "dataschemaformat": "JSONSchema/draft-07",
    "dataschema": {"type": "object"},
}
ENDPOINT = {
    "name": "E",
    "usage": ["producer"],
    "envelope": "CloudEvents/1.0",
    "protocol": "HTTP",
    "protocoloptions": {"endpoints": [{"url": "https://example.com/"}], "method": "POST"},
    "messages": {"m9": MESSAGE},
    "messagegroups": ["/messagegroups/g1"],
    "channel": "c",
    "deprecated": {"effective": "2030-01-01T00:00:00Z"},
}
SCHEMA = {
    "name": "S",
    "format": "JSONSchema/draft-07",
    "contenttype": "application/json",
    "schema": {"type": "object"},
    "labels": {"a": "b"},
}
META = {
    "defaultversionid": "v1",
    "defaultversionsticky": True,
    "compatibility": "backward",
    "labels": {"x": "y"},
    "deprecated": {},
}
MODEL = {
    "attributes": {"ext": {"type": "string", "ifvalues": {"a": {"siblingattributes": {"more": {"type": "integer"}}}}}},
    "groups": {
        "dirs": {
            "plural": "dirs",
            "singular": "dir",
            "attributes": {"*": {"type": "any"}, "n": {"type": "uinteger", "required": True, "default": 5}},
            "constraints": {"files.format": {"enum": ["a", "b"]}},
            "resources": {
                "files": {
                    "plural": "files",
                    "singular": "file",
                    "maxversions": 3,
                    "versionmode": "createdat",
                    "singleversionroot": True,
                    "hasdocument": True,
                    "typemap": {"text/*": "string"},
                    "attributes": {
                        "o": {
                            "type": "object",
                            "attributes": {
                                "x": {"type": "array", "item": {"type": "map", "item": {"type": "decimal"}}}
                            },
                        },
                        "e": {"type": "string", "enum": ["p", "q"]},
                    },
                    "metaattributes": {"m": {"type": "xid", "target": "/dirs/files"}},
                    "validateformat": False,
                },
                "notes": {
                    "singular": "note",
                    "hasdocument": False,
                    "versionmode": "semver",
                    "singleversionroot": True,
                    "setversionid": False,
                },
            },
        },
        "boxes": {"singular": "box", "ximportresources": ["/dirs/files"]},
    },
}
CAPABILITIES = {
    "flags": [
        "binary",
        "collections",
        "doc",
        "epoch",
        "filter",
        "ignore",
        "inline",
        "setdefaultversionid",
        "sort",
        "specversion",
    ],
    "ignores": ["*"],
    "pagination": True,
    "shortself": False,
    "specversions": ["1.0-rc2", "1.0-rc4"],
    "versionmodes": ["manual"],
    "formats": [],
    "compatibilities": {},
    "available": {
        "capabilities": {"mutable": True},
        "entities": {"mutable": True},
        "model": {"mutable": False},
        "export": {"mutable": False},
        "modelsource": {"mutable": True},
    },
}
VERSION = {
    "versionid": "v2",
    "ancestor": "v1",
    "name": "second",
    "epoch": 1,
    "createdat": "2030-01-01T00:00:00Z",
    "modifiedat": None,
}
DIR = {
    "name": "d",
    "n": 3,
    "files": {"f1": {"o": {"x": [{"a": 1.5}]}, "e": "p", "file": {"a": 1}}},
    "constraints": {"files.format": {"default": "a"}},
}

BUILTIN: list[tuple[str, str, Any]] = [
    ("PUT", "/messagegroups/g1", {"name": "G", "envelope": "CloudEvents/1.0", "messages": {"m1": MESSAGE}}),
    ("PUT", "/messagegroups/g1/messages/m1", MESSAGE),
    ("PATCH", "/messagegroups/g1/messages/m1", {"name": "x"}),
    ("POST", "/messagegroups/g1/messages/m1", {**MESSAGE, "versionid": "v2"}),
    ("PUT", "/messagegroups/g1/messages/m1/meta", META),
    ("PATCH", "/messagegroups/g1/messages/m2/meta", {"xref": "/messagegroups/g1/messages/m1"}),
    (
        "POST",
        "/messagegroups/g1/messages",
        {"m3": MESSAGE, "m4": {**MESSAGE, "basemessage": "/messagegroups/g1/messages/m3"}},
    ),
    ("POST", "/messagegroups/g1/messages/m1/versions", {"v2": VERSION, "v1": {"name": "first"}}),
    ("PUT", "/endpoints/e1", ENDPOINT),
    ("PUT", "/schemagroups/s1/schemas/a", b'{"type": "object"}'),
    ("PUT", "/schemagroups/s1/schemas/a$details", SCHEMA),
    ("POST", "/schemagroups/s1/schemas/a$details", {**SCHEMA, "versionid": "v2"}),
    ("PATCH", "/schemagroups/s1/schemas/a/versions/v2$details", {"schemaurl": "http://127.0.0.1:9/never"}),
    (
        "POST",
        "/",
        {"messagegroups": {"g2": {"messages": {"m1": MESSAGE}}}, "schemagroups": {"s2": {"schemas": {"b": SCHEMA}}}},
    ),
    ("POST", "/endpoints", {"e2": ENDPOINT}),
    ("PUT", "/", {"name": "R", "labels": {"a": "b"}}),
    ("DELETE", "/messagegroups/g1/messages", {"m1": {"meta": {"epoch": 1}}}),
    ("DELETE", "/messagegroups/g1/messages/m1/versions/v2", None),
    ("DELETE", "/endpoints/e1", None),
    ("GET", "/", None),
    ("GET", "/export", None),
    ("GET", "/messagegroups/g1/messages", None),
    ("GET", "/schemagroups/s1/schemas/a", None),
    ("GET", "/schemagroups/s1/schemas/a/versions/v2$details", None),
    ("GET", "/model", None),
    ("GET", "/capabilitiesoffered", None),
    ("PATCH", "/capabilities", CAPABILITIES),
    ("PUT", "/modelsource", builtin_modelsource()),
    ("GET", "/.xregistry", None),
    ("GET", "/messagegroups/g1/messages/m1/meta", None),
    ("PUT", "/messagegroups/g1/messages/m1/versions/v3", {**MESSAGE, **VERSION, "versionid": "v3"}),
]
EMPTY: list[tuple[str, str, Any]] = [
    ("PUT", "/modelsource", MODEL),
    ("PUT", "/modelsource", MODEL),
    ("PUT", "/modelsource", MODEL),
    ("PUT", "/", {"modelsource": MODEL, "ext": "a", "more": 5, "dirs": {"d1": DIR}}),
    ("PUT", "/capabilities", CAPABILITIES),
    ("PUT", "/dirs/d1", DIR),
    ("POST", "/dirs/d1", {"files": {"f2": {}}, "notes": {"n1": {"name": "x"}}}),
    ("PUT", "/dirs/d1/files/f1$details", {"o": {"x": []}, "file": "text", "contenttype": "text/plain"}),
    ("PUT", "/dirs/d1/files/f1", b"\x00\xff"),
    ("PUT", "/dirs/d1/files/f1/meta", {"m": "/dirs/d1/files/f2"}),
    ("POST", "/dirs/d1/notes/n1", {"name": "y"}),
    ("PUT", "/boxes/b1/files/f9/meta", {"xref": "/dirs/d1/files/f1"}),
    ("POST", "/dirs/d1/files/f1/versions", {"v1": {"createdat": "2030-01-01T00:00:00Z"}, "v2": {"ancestorid": "v1"}}),
    ("DELETE", "/dirs", {"d1": {"epoch": 3}}),
    ("DELETE", "/dirs/d1/files/f1/versions", {"v1": {}}),
    ("GET", "/dirs/d1/files", None),
    ("GET", "/", None),
    ("GET", "/export", None),
    ("GET", "/dirs/d1/files/f1", None),
    ("GET", "/boxes/b1/files/f9$details", None),
]


# ---- every attribute of the built-in model

Steps = tuple[str, ...]


def _attributes(attributes: dict[str, Any], above: Steps = ()) -> Iterator[tuple[Steps, dict[str, Any]]]:
    """Where each attribute is, and what else has to be there for it to be allowed."""
    for name, attribute in attributes.items():
        if name == "*":
            continue
        yield (*above, name), {}
        yield from _attributes(attribute.get("attributes", {}), (*above, name))
        yield from _attributes(attribute.get("item", {}).get("attributes", {}), (*above, name, "x"))
        for value, more in attribute.get("ifvalues", {}).items():
            for steps, needed in _attributes(more["siblingattributes"], above):
                yield steps, {**needed, name: value}


def _every_attribute() -> list[tuple[str, Steps, dict[str, Any]]]:
    found = []
    for plural, group in builtin_modelsource()["groups"].items():
        found += [(f"/{plural}/g1", *one) for one in _attributes(group.get("attributes", {}))]
        for name, resource in group.get("resources", {}).items():
            details = "$details" if resource.get("hasdocument", True) else ""
            found += [(f"/{plural}/g1/{name}/r1{details}", *one) for one in _attributes(resource.get("attributes", {}))]
    common = [
        "name",
        "description",
        "documentation",
        "icon",
        "labels",
        "epoch",
        "createdat",
        "modifiedat",
        "xid",
        "self",
        "deprecated",
    ]
    meta = [
        *common,
        "readonly",
        "compatibility",
        "xref",
        "defaultversionid",
        "defaultversionsticky",
        "defaultversionurl",
    ]
    version = [
        *common,
        "versionid",
        "isdefault",
        "ancestor",
        "ancestorid",
        "format",
        "contenttype",
        "schema",
        "schemaurl",
        "schemabase64",
        "meta",
        "versions",
    ]
    found += [("/messagegroups/g1", (name,), {}) for name in [*common, "constraints", "messages", "messagescount"]]
    found += [
        ("/", (name,), {})
        for name in [*common, "specversion", "registryid", "model", "messagegroups", "endpointscount"]
    ]
    found += [("/messagegroups/g1/messages/m1/meta", (name,), {}) for name in meta]
    found += [("/schemagroups/s1/schemas/a$details", (name,), {}) for name in version]
    return found


ATTRIBUTES = _every_attribute()
