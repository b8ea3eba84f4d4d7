"""`xRegistry-` headers: attributes of a Resource or Version beside its document (core/http.md, HDR-1 to HDR-9).

Rule 1: only scalars and maps of scalars travel; a map entry is `xRegistry-<map>.<key>`, the key being all that follows
the first dot. Both spec versions use the dot: the 1.0-rc2 core text (xregistry/spec 7f31467) already has it.
Rule 2: values are percent-encoded UTF-8 ("HTTP Header Values"), so no value can end a header or start another.
Rule 3: types come from the model, which is not known here: decoded values are text, and `null` is `None`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import orjson

from signalbook.errors import RegistryError
from signalbook.model.model import ResourceType
from signalbook.model.values import from_text
from signalbook.registry import rows
from signalbook.registry.documents import document_names
from signalbook.registry.read.render import View
from signalbook.registry.requests import RequestResult
from signalbook.registry.store import Connection
from signalbook.registry.urls import DETAILS, RequestTarget
from signalbook.registry.write.versions import Ask
from signalbook.server.http import ATTRIBUTE, REPEATED, Headers, Request, Response

__all__ = [
    "decode_attributes",
    "decode_value",
    "document_body",
    "document_response",
    "encode_attributes",
    "encode_value",
    "refuse_headers",
    "repeated",
]

# "Space, double-quote, percent, and any characters outside the printable ASCII range of U+0021-U+007E inclusive."
_ENCODED = re.compile(r"[^\x21\x23\x24\x26-\x7e]")
# What may not stand in a standard header such as Content-Type, where space and quotes have their meaning.
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
# RFC 9110 section 5.6.2 `tchar`: a map key may hold a colon (ID-9), a header name may not.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


# Responses -----------------------------------------------------------------------------------------------------------


def encode_value(value: str | bool | int | float) -> str:
    """A scalar as header text; `decode_value` gives its text back."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    if text == "null":
        return "%6Eull"  # the plain word would mean "no such attribute"
    return _ENCODED.sub(_percent, text) if _ENCODED.search(text) else text


def _percent(found: re.Match[str]) -> str:
    # A lone surrogate has no UTF-8 form; it cannot come out of `parse_json`, and must not end a response if it does.
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace"))


def encode_attributes(attributes: Mapping[str, Any], *, singular: str) -> list[tuple[str, str]]:
    """The headers for a Resource's or Version's attributes: scalars, maps of scalars, and `Content-Type`.

    The document itself never travels in a header, nor does a map key that no header name can hold.
    """
    headers: list[tuple[str, str]] = []
    unheard = (singular, f"{singular}base64")
    for name, value in attributes.items():
        if name in unheard or value is None:
            continue
        if name == "contenttype":
            headers.append(("content-type", _UNPRINTABLE.sub(_percent, str(value))))
        elif isinstance(value, str | bool | int | float):
            headers.append((f"xRegistry-{name}", encode_value(value)))
        elif isinstance(value, Mapping) and all(isinstance(item, str | bool | int | float) for item in value.values()):
            headers.extend(
                (f"xRegistry-{name}.{key}", encode_value(item)) for key, item in value.items() if _TOKEN.fullmatch(key)
            )
    return headers


# Requests ------------------------------------------------------------------------------------------------------------


def decode_value(text: str) -> str:
    """The text that a header value stands for; `ValueError` says why there is none."""
    if _UNPRINTABLE.search(text.replace("\t", " ")):
        raise ValueError("it holds characters outside printable ASCII; percent-encode them")
    if '"' in text:
        text = _QUOTED.sub(lambda quoted: _ESCAPED.sub(r"\1", quoted[1]), text)
    if "%" not in text:
        return text
    if _BARE_PERCENT.search(text):
        raise ValueError("a % that starts no escape has to be written as %25")
    try:
        text = unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise ValueError("its percent-encoding is not valid UTF-8") from None
    if "\0" in text:
        raise ValueError("it holds a NUL character")
    return text


def decode_attributes(headers: Headers, subject: str, *, singular: str, has_body: bool) -> dict[str, Any]:
    """The attributes in a request's headers, with PATCH semantics: what is absent stays, `None` deletes (HDR-4).

    A map is complete as given. `meta.<name>` and `meta.<map>.<key>` fill the `meta` entity. `Content-Type` is
    `contenttype`. `singular` is the Resource type's, whose document attributes no header may carry.
    """
    attributes: dict[str, Any] = {}
    contenttype = headers.get("content-type")
    if contenttype is not None:
        if _UNPRINTABLE.search(contenttype):
            raise RegistryError("header_error", subject, name="Content-Type", error_detail="it is not printable ASCII")
        attributes["contenttype"] = None if contenttype == "null" else contenttype
    for header, raw in headers.items():
        if not header.startswith(ATTRIBUTE):
            continue
        name = header[len(ATTRIBUTE) :]
        shown = f"xRegistry-{name}"
        if not name:
            raise RegistryError(
                "header_error", subject, name=shown, error_detail='missing an attribute name after the "-"'
            )
        if name in (singular, f"{singular}base64"):
            raise _extra(subject, shown, f"'{shown}' isn't a valid HTTP header")
        if name == "contenttype":
            raise _extra(subject, shown, "the attribute travels as Content-Type")
        if name == f"{singular}url" and has_body and raw != "null":
            raise _extra(subject, shown, "header isn't allowed if there's a body")
        raw = raw.partition(REPEATED)[0]
        try:
            value = None if raw == "null" else decode_value(raw)
        except ValueError as wrong:
            raise RegistryError("header_error", subject, name=shown, error_detail=str(wrong)) from None
        place = attributes
        if name.startswith("meta."):
            name = name[len("meta.") :]
            meta = attributes.get("meta")
            place = attributes["meta"] = meta if isinstance(meta, dict) else {}
        _put(place, name, value)
    return attributes


def repeated(headers: Headers, subject: str) -> RegistryError | None:
    """What is wrong with an attribute that is given more than once, provided that there is such an attribute."""
    for header, raw in headers.items():
        if header.startswith(ATTRIBUTE) and REPEATED in raw:
            name = f"xRegistry-{header[len(ATTRIBUTE) :]}"
            return RegistryError("header_error", subject, name=name, error_detail="it is given more than once")
    return None


def _put(attributes: dict[str, Any], name: str, value: str | None) -> None:
    name, dot, key = name.partition(".")
    current = attributes.get(name)
    if not dot:
        # `xRegistry-labels: null` beside `xRegistry-labels.a: b` empties the map and then fills it.
        if value is not None or not isinstance(current, dict):
            attributes[name] = value
    elif current is None or isinstance(current, dict):
        entries = attributes[name] = current if current is not None else {}
        if value is not None:
            entries[key] = value


def refuse_headers(names: Iterable[str], subject: str) -> None:
    """Raise `extra_xregistry_header` if any header is an xRegistry one: this request has its metadata in the body."""
    for name in names:
        if name.startswith(ATTRIBUTE):
            raise _extra(subject, name, 'including "xRegistry" HTTP headers when "$details" is used is not allowed')


def _extra(subject: str, name: str, detail: str) -> RegistryError:
    return RegistryError("extra_xregistry_header", subject, name=name, error_detail=detail)


# Resources and versions as documents: their bytes in the body, their metadata in headers (DOC-1, HDR-1 to HDR-5).


def document_body(request: Request, target: RequestTarget, setdefault: str | None) -> tuple[dict[str, Any], Ask]:
    """Return what a request with a document as its body writes: the headers' attributes, and the bytes."""
    kind = target.resource_type
    body = decode_attributes(request.headers, target.path, singular=kind.singular, has_body=bool(request.body))
    body.setdefault("contenttype", None)  # DOC-10
    for entity in (body, body.get("meta") or {}):
        for name, type_ in _OWN_TYPES.items():
            if isinstance(entity, dict) and isinstance(entity.get(name), str):
                entity[name] = from_text(type_, entity[name])
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


def document_response(db: Connection, view: View, answer: RequestResult, base: str) -> Response:
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
