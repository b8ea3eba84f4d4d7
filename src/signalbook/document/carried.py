"""Documents within an exported registry: the most readable form that a load turns back into the same bytes.

Rule 1: JSON stands as JSON where writing it again gives the same text; any other text stands as a string; what is
neither stays in base64. So white space, digits, names given twice and a document that is `null` survive.
Rule 2: a document of a media type that is shown in base64 stays so (DOC-13), and so does one without a media type:
given otherwise, it would get one.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from signalbook.document.json_text import is_deeper
from signalbook.document.model import Model, ResourceType

__all__ = ["carry_documents"]


def carry_documents(exported: Mapping[str, Any], model: Model) -> None:
    """Put the documents of an export in base64 into the form that suits each."""
    for kind, version in _versions(exported, model):
        encoded = version.get(f"{kind.singular}base64")
        if isinstance(encoded, str) and encoded:
            name, value = _form(kind, version.get("contenttype"), encoded)
            del version[f"{kind.singular}base64"]
            version[name] = value


def _versions(exported: Mapping[str, Any], model: Model) -> Iterator[tuple[ResourceType, dict[str, Any]]]:
    """Every resource and version that can hold a document, with its type."""
    for plural, group_type in model.groups.items():
        for group in _entries(exported.get(plural)):
            for resources, kind in group_type.resources.items():
                if kind.hasdocument:
                    for resource in _entries(group.get(resources)):
                        yield kind, resource
                        yield from ((kind, version) for version in _entries(resource.get("versions")))


def _entries(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value.values() if isinstance(entry, dict)] if isinstance(value, dict) else []


def _form(kind: ResourceType, contenttype: object, encoded: str) -> tuple[str, Any]:
    """The attribute that carries a document, and its value."""
    kept = f"{kind.singular}base64", encoded
    form = kind.content_kind(contenttype) if isinstance(contenttype, str) and contenttype else "binary"
    if form == "binary":
        return kept
    try:
        content = base64.b64decode(encoded, validate=True)
        text = content.decode()
    except (binascii.Error, UnicodeDecodeError):
        return kept
    if form == "json" and _is_plain(content):
        return kind.singular, orjson.loads(content)
    return kept if "\0" in text else (kind.singular, text)


_DEEPEST = 40
"""Levels of a document that leave room for those around it (`json_text.MAX_DEPTH`)."""


def _is_plain(content: bytes) -> bool:
    """Whether a document is JSON that is written again with the same bytes, and that is taken for a document."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    if value is None or isinstance(value, str) or is_deeper(value, _DEEPEST):
        return False
    return orjson.dumps(value) == content
