"""A version's document: how it comes in, and in which form it is shown.

Rule 1: the bytes a client sent are kept as they are; `<RESOURCE>` given as JSON is kept as JSON text, given as a string
it is that string's text.
Rule 2: where a document lives elsewhere (`<RESOURCE>url`) no bytes are kept, and nobody here fetches it.
Rule 3: JSON that nests too deep to be read again within its version is shown in base64. That is found out when it is
written, for reading should cost no walk.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Protocol

import orjson

from signalbook.errors import RegistryError
from signalbook.jsontext import AROUND_VERSION, MAX_DEPTH, is_deeper
from signalbook.model.model import ResourceType
from signalbook.model.values import check_value
from signalbook.registry.work import VersionState

__all__ = ["TAKEN_AWAY", "apply_document", "document_names", "given_bytes", "render_document"]

# The form of a document that a client set to null: it is not shown, where one that was never given is shown as empty.
TAKEN_AWAY = "null"


def document_names(kind: ResourceType) -> tuple[str, str, str]:
    """Return the names of the three attributes that carry a document."""
    return kind.singular, kind.singular + "url", kind.singular + "base64"


class DocumentAsk(Protocol):
    """What a request says about how it writes."""

    @property
    def patch(self) -> bool: ...
    @property
    def contenttype(self) -> str: ...
    @property
    def document(self) -> bytes | None: ...


def apply_document(
    kind: ResourceType,
    version: VersionState,
    body: Mapping[str, Any],
    attrs: dict[str, Any],
    ask: DocumentAsk,
    subject: str,
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
    wrong = check_value("url", value)
    if wrong is not None:
        raise RegistryError("invalid_attribute", subject, name=name, error_detail=wrong)
    if value:
        attrs[name] = value


def _bytes_of(value: Any, encoded: str, subject: str) -> tuple[bytes, str | None]:
    """Return a document's bytes and their form (`EntityRow.form`); `encoded` names the attribute that holds base64."""
    if encoded:
        content = _decode_base64(value, encoded, subject)
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


def _decode_base64(value: object, name: str, subject: str) -> bytes:
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
