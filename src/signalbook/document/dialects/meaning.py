"""What a canonical document means: the document without what a server assigns and without what says nothing.

Rule: two documents that read alike mean the same; `convert` there and back never changes a meaning without a note.
"""

from __future__ import annotations

from typing import Any

__all__ = ["meaning"]

_ASSIGNED = frozenset(
    {"self", "shortself", "xid", "epoch", "modifiedat", "isdefault", "ancestorid", "ancestor", "metaurl"}
    | {"versionsurl", "versionscount", "messagesurl", "messagescount", "schemasurl", "schemascount", "specversion"}
    | {"messagegroupsurl", "messagegroupscount", "schemagroupsurl", "schemagroupscount", "endpointsurl"}
    | {"endpointscount", "defaultversionurl"}
)
_FIRST = "1"  # core/spec.md: the id that a server gives to a lone version
_OWN = frozenset({"messagegroupid", "schemagroupid", "endpointid"})
_IDS = _OWN | {"messageid", "schemaid", "versionid"}
_SECTIONS = (
    "envelopemetadata", "properties", "application-properties", "message-annotations", "delivery-annotations", "footer",
    "headers", "query", "user_properties", "protocoloptions",
)  # fmt: skip


def meaning(value: Any) -> Any:
    """A canonical document or entity, reduced to what it means."""
    if not isinstance(value, dict):
        return value
    found = {name: member for name, member in value.items() if name not in _ASSIGNED and member not in (None, {}, [])}
    for name in ("messagegroups", "schemagroups", "endpoints", "messages", "schemas", "versions"):
        if isinstance(found.get(name), dict):
            found[name] = {key: _member(meaning(member), key) for key, member in found[name].items()}
    if found.get("versionid") == _FIRST and "versions" not in found:
        del found["versionid"]
    if isinstance(found.get("meta"), dict):
        found["meta"] = {name: member for name, member in meaning(found["meta"]).items() if member is not False}
    for name in _SECTIONS:
        if name in found:
            found[name] = _properties(found[name])
    return _content_type(found)


def _member(entity: Any, key: str) -> Any:
    """A member of a map without ids: its own is the key, and those above it are those of the maps it is in."""
    if not isinstance(entity, dict):
        return entity
    return {name: value for name, value in entity.items() if name not in _IDS or (name in _OWN and value != key)}


def _properties(value: Any) -> Any:
    """Property definitions without a type that is the default anyway: a text is a template either way."""
    if isinstance(value, list):
        return [_properties(member) for member in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") in ("string", "uritemplate"):
        value = {name: member for name, member in value.items() if name != "type"}
    return {name: _properties(member) for name, member in value.items() if name != "value"} | (
        {"value": value["value"]} if "value" in value else {}
    )


def _content_type(found: dict[str, Any]) -> dict[str, Any]:
    """A message's content type where an envelope has it, be it stated there, beside it, or in both places."""
    content, metadata = found.get("datacontenttype"), found.get("envelopemetadata")
    if content is None or "envelope" not in found:
        return found
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    member = metadata.get("datacontenttype") or {}
    if not isinstance(member, dict) or member.get("value", content) != content:
        return found
    rest = {name: value for name, value in found.items() if name != "datacontenttype"}
    return {**rest, "envelopemetadata": {**metadata, "datacontenttype": {**member, "value": content}}}
