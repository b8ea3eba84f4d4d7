"""Resources and versions as documents: their bytes in the body, their metadata in headers (DOC-1, HDR-1 to HDR-5)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import orjson

from signalbook.document.model import ResourceType
from signalbook.registry import rows
from signalbook.registry.incoming import document_names, typed
from signalbook.registry.render import View
from signalbook.registry.requests import Answer
from signalbook.registry.resources import Ask
from signalbook.registry.store import Connection
from signalbook.registry.targets import DETAILS, Target
from signalbook.server.headers import decode_attributes, encode_attributes, repeated
from signalbook.server.http import Request, Response

__all__ = ["document_body", "document_response"]


def document_body(request: Request, target: Target, setdefault: str | None) -> tuple[dict[str, Any], Ask]:
    """Return what a request with a document as its body writes: the headers' attributes, and the bytes."""
    kind = target.resource_type
    body = decode_attributes(request.headers, target.path, singular=kind.singular, has_body=bool(request.body))
    body.setdefault("contenttype", None)  # DOC-10
    for entity in (body, body.get("meta") or {}):
        for name, type_ in _OWN_TYPES.items():
            if isinstance(entity, dict) and isinstance(entity.get(name), str):
                entity[name] = typed(entity[name], type_)
    url = document_names(kind)[1]
    document = None if body.get(url) else request.body
    if document is not None:
        body.pop(url, None)
    return body, Ask(
        patch=True, setdefault=setdefault, document=document, texts=True, fault=repeated(request.headers, target.path)
    )


def _is_map(kind: ResourceType, name: str) -> bool:
    """Tell whether an attribute is a map; objects never travel in headers, whatever they hold: HDR-1."""
    attribute = kind.attributes.get(name)
    return attribute is not None and attribute.type == "map"


_LEGAL = "%/:?#[]@!$&'()*+,;="  # besides letters, digits and -._~: what RFC 3986 lets a URL consist of
# A document is somebody's file: a browser must neither guess its type nor run it as a page of this server.
_INERT = (("x-content-type-options", "nosniff"), ("content-security-policy", "sandbox"))
_OWN_TYPES = {"epoch": "uinteger", "isdefault": "boolean", "defaultversionsticky": "boolean"}


def document_response(db: Connection, view: View, answer: Answer, base: str) -> Response:
    """Return the response that shows a document: its bytes, or where it lives, with the metadata in headers."""
    target = answer.target
    kind = target.resource_type
    assert answer.page is not None
    attrs = orjson.loads(answer.page.text)
    attrs["self"] = attrs["self"].removesuffix(DETAILS)
    shown = {name: value for name, value in attrs.items() if not isinstance(value, dict) or _is_map(kind, name)}
    headers = encode_attributes(shown, singular=kind.singular)
    version = f"{target.resource_xid}/versions/{attrs['versionid']}" if "versionid" in attrs else ""
    if version:
        headers.append(("content-location", base + version))
    headers.append(("content-disposition", target.rid))
    headers.extend(_INERT)
    url = attrs.get(document_names(kind)[1])
    if url:
        return Response(303, [*headers, ("location", quote(url, safe=_LEGAL))])
    content = b""
    row = rows.load(db, rows.resource_key(target.resource_xid))
    found = view.target(row) if row is not None else None
    if found is not None and version:
        content = rows.load_content(db, rows.version_key(found[0].xid, attrs["versionid"])) or b""
    return Response(200, headers, content)
