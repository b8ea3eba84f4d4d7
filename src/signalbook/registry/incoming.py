"""What every entity in a request has in common: its id, its epoch, its times, and what of it a user controls.

Rule: functions here look at one JSON object of a request and raise the specification's error, or return a value; they
know nothing of rows or versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from signalbook.document.entity import Level
from signalbook.document.model import ResourceType
from signalbook.document.value_types import VALUE_TYPES
from signalbook.document.xid import ID
from signalbook.errors import RegistryError

__all__ = [
    "GROUP_SYSTEM", "META_SYSTEM", "RESOURCE_MEMBERS", "VERSION_SYSTEM", "check_epoch", "check_id_matches", "created",
    "document_names", "entries", "epoch_of", "is_id", "modified", "object_of", "read_texts", "typed", "uinteger",
]  # fmt: skip

_COMMON = {"self", "shortself", "xid", "epoch", "createdat", "modifiedat", "$schema"}
GROUP_SYSTEM = frozenset(_COMMON)
META_SYSTEM = frozenset(_COMMON | {"xref", "readonly", "defaultversionid", "defaultversionurl", "defaultversionsticky"})
VERSION_SYSTEM = frozenset(
    _COMMON
    | {"versionid", "isdefault", "ancestorid"}
    | {"formatvalidated", "formatvalidatedreason", "compatibilityvalidated", "compatibilityvalidatedreason"}
)
RESOURCE_MEMBERS = frozenset({"meta", "metaurl", "versions", "versionsurl", "versionscount"})


_READ_TIMESTAMP = VALUE_TYPES["timestamp"].read


def document_names(kind: ResourceType) -> tuple[str, str, str]:
    """Return the names of the three attributes that carry a document."""
    return kind.singular, kind.singular + "url", kind.singular + "base64"


def is_id(value: object) -> bool:
    """Tell whether a value is a legal id: ID-1."""
    return isinstance(value, str) and ID.fullmatch(value) is not None


def check_id_matches(body: Mapping[str, Any], singular: str, expected: str, subject: str) -> None:
    """Refuse an id in the body that is not the one in the path or key: ID-5."""
    given = body.get(singular + "id")
    if given is not None and given != expected:
        raise RegistryError("mismatched_id", subject, singular=singular, invalid_id=given, expected_id=expected)


def uinteger(value: object) -> bool:
    """Tell whether a value is a whole number from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def epoch_of(body: Mapping[str, Any], subject: str, detail: str = "must be a uinteger") -> int | None:
    """Return the epoch that a request asks for, or None where it does not."""
    given = body.get("epoch")
    if given is None:
        return None
    if not uinteger(given):
        raise RegistryError("invalid_attribute", subject, name="epoch", error_detail=detail)
    return int(given)


def check_epoch(body: Mapping[str, Any], current: int, subject: str, ignore: frozenset[str]) -> None:
    """Refuse a request made on an older state: EPOCH-2."""
    if "epoch" in body and "epoch" not in ignore:
        given = epoch_of(body, subject)
        if given is not None and given != current:
            raise RegistryError("mismatched_epoch", subject, bad_epoch=given, epoch=current)


def _timestamp(value: object, name: str, subject: str) -> str:
    try:
        return str(_READ_TIMESTAMP(value))
    except ValueError as problem:
        raise RegistryError("invalid_attribute", subject, name=name, error_detail=str(problem)) from None


def created(body: Mapping[str, Any], before: str | None, now: str, subject: str) -> str:
    """Return an entity's `createdat`: TIME-2."""
    if "createdat" not in body:
        return before or now
    value = body["createdat"]
    return now if value is None else _timestamp(value, "createdat", subject)


def modified(body: Mapping[str, Any], before: str | None, now: str, subject: str) -> str:
    """Return an entity's `modifiedat`: TIME-3."""
    value = body.get("modifiedat")
    if value is None:
        return now
    stamp = _timestamp(value, "modifiedat", subject)
    return now if stamp == before else stamp


_INTEGER = re.compile(r"-?[0-9]{1,20}")
_DECIMAL = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,2})?")


def typed(text: str, type_: str) -> Any:
    """Return the value of model type `type_` that a header's text means; the text itself where it means none."""
    if type_ == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if type_ in ("integer", "uinteger"):
        return int(text) if _INTEGER.fullmatch(text) else text
    if type_ == "decimal" and _DECIMAL.fullmatch(text):
        return int(text) if _INTEGER.fullmatch(text) else float(text)
    return text


def read_texts(level: Level, attrs: dict[str, Any], given: Iterable[str]) -> None:
    """Give attributes that came as text the types they have in an entity with `attrs`, by `ifvalues` too: HDR-1."""
    for name in given:
        value, attribute = attrs.get(name), level.find(name, attrs)
        if isinstance(value, str) and attribute is not None:
            attrs[name] = typed(value, attribute.type)
        elif isinstance(value, dict) and attribute is not None and attribute.item is not None:
            type_ = attribute.item.type
            attrs[name] = {key: typed(one, type_) if isinstance(one, str) else one for key, one in value.items()}


def object_of(value: object, name: str, subject: str) -> dict[str, Any]:
    """Return an attribute that has to be an object."""
    if not isinstance(value, dict):
        raise RegistryError("invalid_attribute", subject, name=name, error_detail=f'"{name}" must be an object')
    return value


def entries(value: object, plural: str, singular: str, subject: str) -> dict[str, dict[str, Any]]:
    """Return a nested collection of a request: a map of objects, COLL-6."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RegistryError("invalid_attribute", subject, name=plural, error_detail="must be a map")
    for key, entry in value.items():
        if not isinstance(entry, dict):
            where = f'key "{key}" in attribute "versions"' if plural == "versions" else f'Key "{key}"'
            raise RegistryError(
                "invalid_attribute", subject, name=plural,
                error_detail=f"{where} doesn't appear to be of type \"{singular}\"",
            )  # fmt: skip
    return value
