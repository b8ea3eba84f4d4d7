"""What can only be said of a whole document: a derived message beside its base, a message beside its schema.

0.5 "`basemessageurl`": the base is overridden by the definition. 1.0 merges the two deeply, so that a derived message
gets what its base has and it has not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from signalbook.errors import Problem

__all__ = ["filled_formats", "overrides"]

_PARTS = ("envelopemetadata", "protocoloptions", "envelopeoptions")


def overrides(document: dict[str, Any]) -> Iterator[Problem]:
    """A note for each part of a message that 1.0 fills up from its base, where the document holds the base too."""
    messages = _messages(document)
    for xid, message in messages.items():
        base = messages.get(str(message.get("basemessage", "")), {})
        for part in _PARTS:
            more = sorted(_more(base.get(part), message.get(part)))
            if more:
                words = f"1.0 adds what the base message has and this one has not: {', '.join(more)}"
                yield Problem(f"{xid}/{part}", "changed", words)


def _more(base: Any, own: Any) -> Iterator[str]:
    """The members of the base's part that the derived message leaves out of its own."""
    if isinstance(base, dict) and isinstance(own, dict):
        yield from base.keys() - own.keys()
        for name in base.keys() & own.keys():
            yield from (f"{name}.{inner}" for inner in _more(base[name], own[name]))


def filled_formats(document: dict[str, Any]) -> Iterator[Problem]:
    """Give each message that refers to a schema of the document, and leaves its format out, that format; note each."""
    for _, group in _members(document, "schemagroups"):
        for _, schema in _members(group, "schemas"):
            for _, version in _members(schema, "versions") if schema.get("format") else ():
                version.setdefault("format", schema["format"])
    for xid, message in _messages(document).items():
        uri = message.get("dataschemauri")
        if not isinstance(uri, str) or "dataschemaformat" in message:
            continue
        form = _format(document, uri.partition("#")[0].strip("/").split("/"))
        if form:
            message["dataschemaformat"] = form
            yield Problem(f"{xid}/dataschemaformat", "changed", f"is '{form}', as the schema that it refers to says")


def _format(document: Mapping[str, Any], steps: list[str]) -> str:
    schema: Any = document
    for step in steps[:4]:
        schema = schema.get(step) if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or steps[0] != "schemagroups":
        return ""
    versions = schema.get("versions")
    named = versions.get(steps[5]) if isinstance(versions, dict) and len(steps) > 5 else None
    newest = list(versions.values())[-1:] if isinstance(versions, dict) else []
    places = [named, schema, *newest]
    return next((str(one["format"]) for one in places if isinstance(one, dict) and one.get("format")), "")


def _messages(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"/{groups}/{groupid}/messages/{messageid}": message
        for groups in ("messagegroups", "endpoints")
        for groupid, group in _members(document, groups)
        for messageid, message in _members(group, "messages")
    }


def _members(entity: Mapping[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a collection; a document from outside may have anything in its place."""
    members = entity.get(name)
    if isinstance(members, dict):
        yield from ((key, member) for key, member in members.items() if isinstance(member, dict))
