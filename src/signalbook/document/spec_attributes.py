"""The attributes that the specification itself defines at each level of a registry.

Rule 1: these tables are the full model of a type that declares nothing (core/sample-model-full.json, 1.0-rc4).
Rule 2: a model may narrow a row, never remove or widen one; `attribute_read.overlay` holds it to that.

The names a client controls are in `CLIENT`; every other row is the server's to fill and to check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from signalbook.document.attribute import model_error

__all__ = [
    "CLIENT",
    "FOLDED",
    "NONEMPTY",
    "RESERVED_FOR_RESOURCES",
    "SPECVERSION",
    "Definitions",
    "folded",
    "group_attributes",
    "meta_attributes",
    "opaque",
    "registry_attributes",
    "resource_attributes",
    "version_attributes",
]

Definitions = Mapping[str, Mapping[str, Any]]

SPECVERSION = "1.0-rc4"

# What `entity.Level` normalises; the registry takes care of the rest before it asks.
CLIENT = frozenset(
    {
        *("name", "description", "documentation", "icon", "labels"),
        *("deprecated", "constraints", "contenttype", "format", "compatibility"),
    }
)

# ATTR-5, ATTR-7, and `format` and `compatibility` as an xRegistry server answers.
NONEMPTY = frozenset({"name", "documentation", "icon", "format", "compatibility"})

# CASE-2: specification-defined attributes whose values are the same in any case. Of these `compatibility` alone has an
# enum; a format is whatever its maker calls it.
FOLDED = frozenset({"compatibility", "format"})

# TYPE-14: what a Version cannot have as an extension, since its Resource has it.
RESERVED_FOR_RESOURCES = frozenset({"meta", "metaurl", "versions", "versionsurl", "versionscount"})

_FIXED = {"readonly": True, "immutable": True, "required": True}
_OPEN = {"*": {"name": "*", "type": "any"}}


def folded(path: Sequence[str], value: Any) -> Any:
    """The value at a path in the form in which it is compared with others."""
    return value.lower() if len(path) == 1 and path[0] in FOLDED and isinstance(value, str) else value


def _row(name: str, type_: str, **aspects: Any) -> tuple[str, dict[str, Any]]:
    return name, {"name": name, "type": type_, **aspects}


_SELF = (
    _row("self", "url", **_FIXED),
    _row("shortself", "url", readonly=True, immutable=True),
    _row("xid", "xid", **_FIXED),
)
_EPOCH = _row("epoch", "uinteger", readonly=True, required=True)
_NAME = _row("name", "string")
_TEXTS = (_row("description", "string"), _row("documentation", "url"), _row("icon", "url"))
_LABELS = _row("labels", "map", item={"type": "string"})
_TIMES = (_row("createdat", "timestamp", required=True), _row("modifiedat", "timestamp", required=True))
_DEPRECATED = _row(
    "deprecated",
    "object",
    attributes=dict(
        (
            _row("alternative", "url"),
            _row("documentation", "url"),
            _row("effective", "timestamp"),
            _row("removal", "timestamp"),
            _row("*", "any"),
        )
    ),
)
_CONSTRAINTS = _row(
    "constraints",
    "map",
    item={
        "type": "object",
        "attributes": dict(
            (_row("default", "any"), _row("enum", "array", item={"type": "any"}), _row("equals", "string"))
        ),
    },
)
_COMPATIBILITIES = ["backward", "backward_transitive", "forward", "forward_transitive", "full", "full_transitive"]


def registry_attributes(groups: Iterable[str]) -> Definitions:
    """The Registry's attributes, with the collections of its Group types."""
    return _table(
        "the Registry",
        _row("specversion", "string", readonly=True, required=True, default=SPECVERSION),
        _row("registryid", "string", **_FIXED),
        *_SELF,
        _EPOCH,
        _NAME,
        *_TEXTS,
        _LABELS,
        *_TIMES,
        _row("capabilities", "object", attributes=_OPEN),
        _row("model", "object", readonly=True, attributes=_OPEN),
        _row("modelsource", "object", attributes=_OPEN),
        *(row for plural in groups for row in _collection(plural)),
    )


def group_attributes(plural: str, singular: str, resources: Iterable[str]) -> Definitions:
    """A Group's attributes, with the collections of its Resource types."""
    return _table(
        f'Group type "{plural}"',
        _row(f"{singular}id", "string", immutable=True, required=True),
        *_SELF,
        _EPOCH,
        _NAME,
        *_TEXTS,
        _LABELS,
        *_TIMES,
        _DEPRECATED,
        _CONSTRAINTS,
        *(row for resource in resources for row in _collection(resource)),
    )


def version_attributes(plural: str, singular: str, hasdocument: bool) -> Definitions:
    """A Version's attributes, with those of its document where it has one."""
    document = (_row(f"{singular}url", "url"), _row(singular, "any"), _row(f"{singular}base64", "string"))
    return _table(
        f'Resource type "{plural}"',
        _row(f"{singular}id", "string", immutable=True, required=True),
        _row("versionid", "string", immutable=True, required=True),
        *_SELF,
        _EPOCH,
        _NAME,
        _row("isdefault", "boolean", readonly=True, required=True, default=False),
        *_TEXTS,
        _LABELS,
        *_TIMES,
        _row("ancestorid", "string", required=True),
        _row("contenttype", "string"),
        _row("format", "string"),
        _row("formatvalidated", "boolean", readonly=True),
        _row("formatvalidatedreason", "string", readonly=True),
        _row("compatibilityvalidated", "boolean", readonly=True),
        _row("compatibilityvalidatedreason", "string", readonly=True),
        *(document if hasdocument else ()),
    )


def resource_attributes(plural: str, singular: str) -> Definitions:
    """The attributes a Resource has beside those of its default Version."""
    return _table(
        f'Resource type "{plural}"',
        _row(f"{singular}id", "string", immutable=True, required=True),
        *_SELF,
        _row("metaurl", "url", **_FIXED),
        _row("meta", "object", attributes=_OPEN),
        *_collection("versions"),
    )


def meta_attributes(plural: str, singular: str) -> Definitions:
    """The attributes of a Resource's `meta`."""
    return _table(
        f'Resource type "{plural}"',
        _row(f"{singular}id", "string", immutable=True, required=True),
        *_SELF,
        _row("xref", "url"),
        _EPOCH,
        _LABELS,
        *_TIMES,
        _row("readonly", "boolean", readonly=True, required=True, default=False),
        _row("compatibility", "string", enum=_COMPATIBILITIES, strict=True),
        _DEPRECATED,
        _row("defaultversionid", "string", required=True),
        _row("defaultversionurl", "url", readonly=True, required=True),
        _row("defaultversionsticky", "boolean", required=True, default=False),
    )


def opaque(definition: Mapping[str, Any]) -> bool:
    """Whether the full model says no more of this attribute than "an object" or "a map of objects"."""
    return (definition.get("item") or definition).get("attributes") is _OPEN


def _collection(plural: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    return (
        _row(f"{plural}url", "url", **_FIXED),
        _row(f"{plural}count", "uinteger", readonly=True, required=True),
        _row(plural, "map", item={"type": "object", "attributes": _OPEN}),
    )


def _table(owner: str, *rows: tuple[str, dict[str, Any]]) -> Definitions:
    table: dict[str, Mapping[str, Any]] = {}
    for name, definition in rows:
        if name in table:  # TYPE-15
            raise model_error(f'{owner} would have two attributes called "{name}", choose another type name')
        table[name] = definition
    return MappingProxyType(table)
