"""What every entity in a request has in common: its id, its epoch, its times, and what of it a user controls.

Rule: functions here look at one JSON object of a request and raise the specification's error, or return a value; they
know nothing of rows or versions.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import orjson

from signalbook.errors import RegistryError
from signalbook.jsontext import AROUND_VERSION, MAX_DEPTH, is_deeper
from signalbook.model.levels import Level
from signalbook.model.model import ResourceType
from signalbook.model.value_types import VALUE_TYPES, check
from signalbook.model.xids import ID
from signalbook.registry.work import VersionState

__all__ = [
    "GROUP_SYSTEM",
    "META_SYSTEM",
    "RESOURCE_MEMBERS",
    "TAKEN_AWAY",
    "VERSION_SYSTEM",
    "apply_document",
    "check_epoch",
    "check_id_matches",
    "created",
    "document_names",
    "entries",
    "epoch_of",
    "given_bytes",
    "is_id",
    "modified",
    "object_of",
    "read_texts",
    "render_document",
    "typed",
    "uinteger",
]

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


# A version's document: how it comes in, and in which form it is shown.
#
# Rule 1: the bytes a client sent are kept as they are; `<RESOURCE>` given as JSON is kept as JSON text, given as a
# string
# it is that string's text.
# Rule 2: where a document lives elsewhere (`<RESOURCE>url`) no bytes are kept, and nobody here fetches it.
# Rule 3: JSON that nests too deep to be read again within its version is shown in base64. That is found out when it is
# written, for reading should cost no walk.


# The form of a document that a client set to null: it is not shown, where one that was never given is shown as empty.
TAKEN_AWAY = "null"


class Asked(Protocol):
    """What a request says about how it writes."""

    @property
    def patch(self) -> bool: ...
    @property
    def contenttype(self) -> str: ...
    @property
    def document(self) -> bytes | None: ...


def apply_document(
    kind: ResourceType, version: VersionState, body: Mapping[str, Any], attrs: dict[str, Any], ask: Asked, subject: str
) -> None:
    """Take the document of a request into the version and its attributes: DOC-4, DOC-5, DOC-9."""
    plain, url, encoded = document_names(kind)
    if ask.document is not None:
        attrs.pop(url, None)
        version.content, version.form = ask.document, _form_of(ask.document)
        return
    given = [name for name in (plain, url, encoded) if name in body]
    filled = [name for name in given if body[name] is not None]
    if len(filled) > 1:
        raise RegistryError("one_resource", subject, list=",".join((plain, url, encoded)))
    before = version.attrs
    if not given:
        if url in before and not ask.patch:
            version.content, version.form = None, None
        return
    attrs.pop(url, None)
    version.content, version.form = None, None if filled else TAKEN_AWAY
    if not filled:
        return
    name = filled[0]
    if name == url:
        _keep_url(attrs, url, body[url], subject)
        return
    version.content, version.form = _bytes_of(body[name], encoded if name == encoded else "", subject)
    if "contenttype" not in body and ("contenttype" not in before if ask.patch else name == plain):
        attrs["contenttype"] = ask.contenttype


def given_bytes(kind: ResourceType, body: Mapping[str, Any], subject: str) -> bytes | None:
    """Return the document that a request says a version has; None where it says nothing of one, or where it is."""
    plain, _, encoded = document_names(kind)
    for name, within in ((plain, ""), (encoded, encoded)):
        if body.get(name) is not None:
            return _bytes_of(body[name], within, subject)[0]
    return None


def _keep_url(attrs: dict[str, Any], name: str, value: object, subject: str) -> None:
    wrong = check("url", value)
    if wrong is not None:
        raise RegistryError("invalid_attribute", subject, name=name, error_detail=wrong)
    if value:
        attrs[name] = value


def _bytes_of(value: Any, encoded: str, subject: str) -> tuple[bytes, str | None]:
    """Return a document's bytes and their form (`EntityRow.form`); `encoded` names the attribute that holds base64."""
    if encoded:
        content = _decode(value, encoded, subject)
        return content, _form_of(content)
    if isinstance(value, str):
        content = value.encode("utf-8", "surrogatepass")
        return content, _form_of(content) or "string"
    content = orjson.dumps(value)
    return content, _form_of(content)


_DEEP = "deep"
_DEEPEST = MAX_DEPTH - AROUND_VERSION - 1


def _form_of(content: bytes) -> str | None:
    """Return the form of JSON that must not stand within its version; None of anything else."""
    if content.count(b"{") + content.count(b"[") <= _DEEPEST:
        return None
    try:
        return _DEEP if is_deeper(orjson.loads(content), _DEEPEST) else None
    except orjson.JSONDecodeError:
        return None


def _decode(value: object, name: str, subject: str) -> bytes:
    try:
        if isinstance(value, str):
            return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise RegistryError("invalid_attribute", subject, name=name, error_detail="must be base64 encoded")


def render_document(
    kind: ResourceType, contenttype: str | None, given: str | None, content: bytes, binary: bool
) -> str:
    """Return the member, name and value as JSON text, that shows a document within its version: DOC-6.

    `given` is the form it was given in: what came as a JSON string goes as one.
    """
    form = "binary" if binary else kind.content_kind(contenttype or "")
    if form == "json":
        if given != _DEEP and _is_json(content):
            return f'"{kind.singular}":{content.decode()}'
        form = given or "binary"
    if form == "string":
        try:
            return f'"{kind.singular}":{orjson.dumps(content.decode()).decode()}'
        except UnicodeDecodeError:
            pass
    return f'"{kind.singular}base64":"{base64.b64encode(content).decode()}"'


def _is_json(content: bytes) -> bool:
    try:
        orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    return True
