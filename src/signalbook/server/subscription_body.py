"""A subscription as a client writes it: checked, made plain, and parted from its secrets.

Rule 1: what is kept and shown is what will be done (the realised object, subscriptions/spec.md 3.2.5.1). What cannot be
done is refused, never ignored.
Rule 2: the form of the 0.1 message catalog (seed 004, section 5.5: `filter`, `HTTPS`) is the same subscription.
Rule 3: secrets leave the body here and are stored apart; nothing shows them again.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from signalbook.errors import RegistryError
from signalbook.server.sinks import SinkError, split_sink
from signalbook.server.subscription_filters import read_filters

__all__ = ["read_subscription"]

Json = dict[str, Any]

_MEMBERS = frozenset(
    {"id", "source", "types", "config", "filters", "filter", "sink", "sinkcredential", "protocol", "protocolsettings"}
    | {"status"}
)
_MODES = ("structured", "binary")
_METHODS = ("POST", "PUT")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
# What a delivery says itself, and what belongs into sinkcredential.
_OWN_HEADERS = re.compile(
    r"ce-.*|host|content-.*|transfer-encoding|connection|te|upgrade|authorization|webhook-.*", re.I
)


def read_subscription(body: Any, base: str, path: str) -> tuple[Json, Json]:
    """The subscription that a client asks for at the registry `base`, and its secrets; what cannot be is refused."""
    if not isinstance(body, dict):
        raise _wrong(path, "a subscription is an object")
    for name in body.keys() - _MEMBERS:
        raise _wrong(path, f'"{name}" is no attribute of a subscription')
    protocol, sink = _transport(body, path)
    found: Json = {"protocol": protocol, "sink": sink}
    if body.get("source") is not None:
        if str(body["source"]).rstrip("/") != base.rstrip("/"):
            raise _wrong(path, f'"source" must be the root of this catalog, {base}, for all events come from it')
        found["source"] = base
    if body.get("types") is not None:
        found["types"] = _texts(body["types"], path)
    filters = _filters(body, path)
    if filters:
        read_filters(filters, path)
        found["filters"] = filters
    found["config"] = _config(body.get("config"), path)
    found["protocolsettings"] = _settings(body.get("protocolsettings"), path)
    credential, secret = _credential(body.get("sinkcredential"), path)
    if credential:
        found["sinkcredential"] = credential
    return found, secret


def _wrong(path: str, detail: str) -> RegistryError:
    return RegistryError("bad_request", path, error_detail=detail)


def _transport(body: Json, path: str) -> tuple[str, str]:
    protocol, sink = body.get("protocol"), body.get("sink")
    if protocol not in ("HTTP", "HTTPS"):
        raise _wrong(path, f'"protocol" is {protocol!r}; only "HTTP" is delivered to, over http:// or https://')
    if not isinstance(sink, str):
        raise _wrong(path, '"sink" is missing: the address that events are sent to')
    try:
        scheme = split_sink(sink).scheme
    except SinkError as error:
        raise RegistryError("sink_refused", path, sink=sink[:200], error_detail=error) from None
    if protocol == "HTTPS" and scheme != "https":
        raise _wrong(path, '"protocol" is "HTTPS", but "sink" does not begin with https://')
    return "HTTP", sink


def _texts(value: Any, path: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) and 0 < len(one) <= 500 for one in value):
        raise _wrong(path, '"types" must be an array of texts that are not empty')
    if len(value) > 100:
        raise _wrong(path, '"types" must have at most 100 entries')
    return list(value)


def _filters(body: Json, path: str) -> list[Any]:
    if body.get("filter") is not None and body.get("filters") is not None:
        raise _wrong(path, '"filter" and "filters" mean the same; give one of them')
    if body.get("filter") is not None:
        return [body["filter"]]
    filters = body.get("filters") or []
    if not isinstance(filters, list):
        raise _wrong(path, '"filters" must be an array')
    return filters


def _config(value: Any, path: str) -> Json:
    config = {} if value is None else value
    if not isinstance(config, dict) or config.keys() - {"mode"} or config.get("mode", "structured") not in _MODES:
        raise _wrong(path, f'"config" may hold "mode", one of {", ".join(_MODES)}')
    return {"mode": config.get("mode", "structured")}


def _settings(value: Any, path: str) -> Json:
    settings = {} if value is None else value
    if not isinstance(settings, dict) or settings.keys() - {"method", "headers"}:
        raise _wrong(path, '"protocolsettings" may hold "method" and "headers"')
    method, headers = settings.get("method", "POST"), settings.get("headers") or {}
    if method not in _METHODS:
        raise _wrong(path, f'"method" must be one of {", ".join(_METHODS)}')
    if not isinstance(headers, dict) or len(headers) > 32:
        raise _wrong(path, '"headers" must be an object of at most 32 texts')
    for name, text in headers.items():
        if not _HEADER.fullmatch(name) or not isinstance(text, str) or not re.fullmatch(r"[\x20-\x7e]{0,1000}", text):
            raise _wrong(path, f'the header "{name[:50]}" is none that can be sent')
        if _OWN_HEADERS.fullmatch(name):
            raise _wrong(path, f'the header "{name}" is set by the delivery itself; for secrets use "sinkcredential"')
    return {"method": method, **({"headers": headers} if headers else {})}


# ---- secrets


def _credential(value: Any, path: str) -> tuple[Json, Json]:
    """What is shown of a credential, and the header that is sent."""
    if value is None:
        return {}, {}
    kind = value.get("credentialtype") if isinstance(value, dict) else None
    read = _CREDENTIALS.get(str(kind))
    if read is None:
        known = ", ".join(_CREDENTIALS)
        raise _wrong(path, f'"sinkcredential" has the credentialtype {kind!r}; there are {known}')
    return read(value, path)


def _secret(value: Json, name: str, path: str) -> str:
    text = value.get(name)
    if not isinstance(text, str) or not re.fullmatch(r"[\x21-\x7e]{1,4000}", text):
        raise _wrong(path, f'"sinkcredential" needs "{name}", a text without blanks')
    return text


def _plain(value: Json, path: str) -> tuple[Json, Json]:
    identifier, secret = _secret(value, "identifier", path), _secret(value, "secret", path)
    header = "Basic " + b64encode(f"{identifier}:{secret}".encode()).decode()
    return {"credentialtype": "PLAIN", "identifier": identifier}, {"authorization": header}


def _access_token(value: Json, path: str) -> tuple[Json, Json]:
    token = _secret(value, "accesstoken", path)
    if str(value.get("accesstokentype", "bearer")).lower() != "bearer":
        raise _wrong(path, '"accesstokentype" must be "bearer"')
    shown = {name: value[name] for name in ("accesstokenexpiresutc",) if isinstance(value.get(name), str)}
    return (
        {"credentialtype": "ACCESSTOKEN", "accesstokentype": "bearer", **shown},
        {"authorization": f"Bearer {token}"},
    )


_CREDENTIALS: Mapping[str, Callable[[Json, str], tuple[Json, Json]]] = {
    "PLAIN": _plain,
    "ACCESSTOKEN": _access_token,
}
