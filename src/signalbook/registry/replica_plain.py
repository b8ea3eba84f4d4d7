"""What of a group or a resource travels between catalogs: all that a user controls, nothing that is a server's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from signalbook.registry import incoming

__all__ = ["plain_group", "plain_resource"]

Json = dict[str, Any]

_COUNTS = ("url", "count")


def plain_group(singular: str, plurals: Iterable[str], value: Mapping[str, Any]) -> Json:
    """Return what a user controls of a group that has these collections."""
    nested = {plural + suffix for plural in plurals for suffix in ("", *_COUNTS)}
    left = (incoming.GROUP_SYSTEM - {"createdat"}) | nested | {singular + "id"}
    return {name: one for name, one in value.items() if name not in left}


def plain_resource(singular: str, value: Mapping[str, Any]) -> Json:
    """Return what a user controls of a resource: its meta and its versions."""
    meta = value.get("meta") or {}
    if meta.get("xref"):
        return {"meta": {"xref": meta["xref"]}}
    rid = singular + "id"
    own = {name: one for name, one in meta.items() if name not in incoming.META_SYSTEM and name != rid}
    if meta.get("defaultversionsticky"):
        own |= {"defaultversionid": meta.get("defaultversionid"), "defaultversionsticky": True}
    return {"meta": own, "versions": {vid: _version(rid, one) for vid, one in (value.get("versions") or {}).items()}}


_VERSION = incoming.VERSION_SYSTEM - {"createdat", "modifiedat", "ancestorid"}


def _version(rid: str, value: Mapping[str, Any]) -> Json:
    return {name: one for name, one in value.items() if name not in _VERSION and name != rid}
