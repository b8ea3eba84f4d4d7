"""Documents of 0.1: groups of one format with a list of definitions, each with one version or a list of them.

Rule 1: an id, a format, tags and versions are what rows cannot say; all else goes by the tables.
Rule 2: the newest version is the definition; older ones stand in `versions`, which 0.1 counts and 1.0 names.
Rule 3: an id or a number that is given twice is refused: of two that are one in 1.0, one would be lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from signalbook.document.dialects.as_written import as_it_came, keep_as_it_came
from signalbook.document.dialects.catalog_version import (
    FORMAT_LABEL,
    HEAD,
    NO_PROTOCOL,
    PROTOCOL_LABEL,
    TAGS_LABEL,
    authored,
    format_of,
    labels_of_tags,
    marked_protocol,
    opaque,
    read_version,
    selectors,
    tags_of_labels,
    write_version,
)
from signalbook.document.dialects.forms import FORMS
from signalbook.document.dialects.ids import from_id, to_id
from signalbook.document.dialects.registry_form import Json, labels_in, refuse
from signalbook.document.dialects.rows import Step, inward, outward
from signalbook.document.spelling import to_canonical
from signalbook.errors import Problem
from signalbook.spec.builtin import MESSAGE
from signalbook.spec.dialects.dialect import Dialect

__all__ = [
    "TAGS_LABEL", "format_of", "gather_versions", "read_catalog", "read_definition", "read_group", "write_catalog",
    "write_definition", "write_group", "write_lone",
]  # fmt: skip

_PART_LABEL = "1.0.messagegroupid"
_VARYING = frozenset({"version", "createdtimeutc", "definition"})  # section 2.2.5: what a version has of its own


# --- into the canonical form ------------------------------------------------------------------------------------------


def read_catalog(document: Any, dialect: Dialect, notes: list[Problem]) -> Json:
    """A group document, or a list of them, as a registry's message groups."""
    groups: dict[str, Json] = {}
    for place, group in enumerate(document if isinstance(document, list) else [document]):
        at = f"/{place}" if isinstance(document, list) else ""
        if not isinstance(group, dict):
            raise refuse(at, "group", "must be an object")
        found = read_group(group, dialect, notes, at)
        known = groups.setdefault(found["messagegroupid"], found)
        if known is not found:
            _check_part(group, known, found, at)
            known["messages"] = {**known["messages"], **found["messages"]}
            for name in ("envelope", "protocol"):
                known.pop(name, None)
    return {"messagegroups": groups}


def _check_part(group: Json, known: Json, found: Json, at: str) -> None:
    """Refuse a second group of an id, unless both are parts that one group of several formats was written as."""
    labels = group.get("labels")
    if not isinstance(labels, dict) or _PART_LABEL not in labels:
        raise refuse(at, "id", f"'{group['id']}' is the id of another group of the document")
    for messageid in known["messages"].keys() & found["messages"].keys():
        raise refuse(at, "id", f"another part of the group has a definition '{from_id(messageid)}' too")


def read_group(group: Json, dialect: Dialect, notes: list[Problem], at: str = "") -> Json:
    """One group with its definitions."""
    rest = {name: value for name, value in group.items() if name not in (*HEAD, "definitions")}
    found = _read_own(rest, dialect, notes, at)
    form = _text(group, "format", at)
    marked = marked_protocol(found, form, dialect)
    messages: dict[str, Json] = {}
    for place, definition in enumerate(_list(group.get("definitions"), f"{at}/definitions")):
        where = f"{at}/definitions/{place}"
        message = read_definition(definition, dialect, notes, where, form, marked)
        messageid = to_id(_text(definition, "id", where))
        if messageid in messages:
            raise refuse(where, "id", f"'{definition['id']}' is the id of another definition of the group")
        messages[messageid] = message
    shown = _write_own(found, dialect, [], at)
    if not keep_as_it_came(authored(rest), authored(shown), found, dialect):
        notes.append(Problem(at, "changed", "is shown as this text spells it, for there is no room to keep its own"))
    found["messagegroupid"] = (found.get("labels") or {}).pop(_PART_LABEL, None) or to_id(_text(group, "id", at))
    found.update(selectors(form, dialect, messages.values(), marked))
    if "envelope" not in found and "protocol" not in found and marked != NO_PROTOCOL:
        found["labels"] = {**(found.get("labels") or {}), FORMAT_LABEL: form}
    if not found.get("labels", True):
        del found["labels"]
    return {**to_canonical(MESSAGE, found, at, group=True), "messages": messages}


def _read_own(rest: Json, dialect: Dialect, notes: list[Problem], at: str) -> Json:
    """The attributes that a group has of itself."""
    found = inward(Step(dialect, notes, at, dict(rest)), dialect.tables["messagegroup"].rows, FORMS)
    labels_of_tags(found, at)
    return found


def read_definition(
    definition: Json,
    dialect: Dialect,
    notes: list[Problem],
    at: str = "",
    group_format: str = "",
    protocol: str = "",
) -> Json:
    """One definition: a version as a document of its own, or several in a list.

    `protocol` is the one of 1.0 that its group has, where the format is one that 0.1 does not define.
    """
    if not isinstance(definition, dict):
        raise refuse(at, "definition", "must be an object")
    form = definition.get("format") or group_format
    if not isinstance(form, str) or not form:
        raise refuse(at, "format", "must be present")
    common = {name: value for name, value in definition.items() if name != "versions"}
    given = definition.get("versions")
    if given is None:
        return read_version(common, form, dialect, notes, at, protocol)
    listed = _list(given, f"{at}/versions")
    if not listed:
        raise refuse(at, "versions", "must hold at least one version")
    if "definition" in common:
        raise refuse(at, "definition", "must stand in one of the versions, for there is a list of them")
    numbered = sorted((_number(version, place, at), place) for place, version in enumerate(listed))
    for (number, _), (following, place) in pairwise(numbered):
        if number == following:
            raise refuse(f"{at}/versions/{place}", "version", f"{number} is the number of another version")
    versions = [
        read_version(
            {**common, **listed[place], "version": number}, form, dialect, notes, f"{at}/versions/{place}", protocol
        )
        for number, place in numbered
    ]
    latest = versions[-1]
    if len(versions) == 1:
        return latest
    named = {str(version["versionid"]): version for version in versions}
    if len(named) != len(versions):
        raise refuse(at, "versions", "must not have one versionid twice")
    return {**latest, "versions": _in_order(named)}


def _in_order(versions: dict[str, Json]) -> dict[str, Json]:
    """Versions that 1.0 takes in their order: by their ids as texts, unless each names the one before it."""
    ids = list(versions)
    if ids == sorted(ids, key=str.lower):
        return versions
    before = dict(zip(ids, [ids[0], *ids], strict=False))
    return {name: {**version, "ancestorid": before[name]} for name, version in versions.items()}


def _number(version: Any, place: int, at: str) -> int:
    if not isinstance(version, dict):
        raise refuse(f"{at}/versions/{place}", "version", "must be an object")
    number = version.get("version", place + 1)
    if not isinstance(number, int) or isinstance(number, bool):
        raise refuse(f"{at}/versions/{place}", "version", "must be an integer")
    return number


def _list(value: Any, at: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise refuse(at, at.rpartition("/")[2], "must be a list")
    return value


def _text(entity: Json, name: str, at: str) -> str:
    value = entity.get(name)
    if not isinstance(value, str) or not value:
        raise refuse(at, name, "must be a non-empty string")
    return value


# --- out of the canonical form ----------------------------------------------------------------------------------------


def write_catalog(document: Json, dialect: Dialect, notes: list[Problem]) -> Any:
    """A registry's message groups as one group document, or as a list of several."""
    for name in document:
        if name not in ("messagegroups", "messagegroupsurl", "messagegroupscount", "specversion", "self"):
            notes.append(Problem(f"/{name}", "lost", "has no place in a catalog of 0.1"))
    found: list[Json] = []
    for groupid, group in (document.get("messagegroups") or {}).items():
        messages = {key: _shown(message) for key, message in (group.get("messages") or {}).items()}
        found.extend(_groups(groupid, {**group, "messages": messages}, dialect, notes))
    return found[0] if len(found) == 1 else found


def _shown(message: Json) -> Json:
    """A message with the attributes of its default version, which an export has there only."""
    versions = message.get("versions")
    if not isinstance(versions, dict) or not versions:
        return message
    meta = message.get("meta")
    default = versions.get(str(meta.get("defaultversionid") or "")) if isinstance(meta, dict) else None
    return {**(default or list(versions.values())[-1]), **message}


def _groups(groupid: str, group: Json, dialect: Dialect, notes: list[Problem]) -> Iterator[Json]:
    """A group, or one for each format where its messages have several."""
    at = f"/messagegroups/{groupid}"
    messages: Mapping[str, Json] = group["messages"]
    formats = Counter(format_of(message, dialect, group) for message in messages.values())
    own = format_of(group, dialect, {})
    if len(formats) <= 1:
        yield write_group(groupid, group, next(iter(formats), own), dialect, notes)
        return
    notes.append(Problem(at, "changed", f"has messages of several formats, and becomes {len(formats)} groups"))
    for form in formats:
        part = {key: message for key, message in messages.items() if format_of(message, dialect, group) == form}
        labels = {**labels_in(group, at), _PART_LABEL: groupid}
        yield write_group(f"{groupid}.{form}", {**group, "labels": labels, "messages": part}, form, dialect, notes)


def write_group(groupid: str, group: Json, form: str, dialect: Dialect, notes: list[Problem]) -> Json:
    """One group document with its definitions."""
    at = f"/messagegroups/{groupid}"
    skipped = ("messagegroupid", "messages", "envelope", "protocol")
    rest = {name: value for name, value in group.items() if name not in skipped}
    found = as_it_came(
        rest,
        dialect,
        lambda own: _write_own(own, dialect, notes, at),
        lambda shown: _read_own(shown, dialect, [], at),
    )
    if form not in dialect.formats and group.get("protocol") != opaque(form):
        found["labels"] = {**found.get("labels", {}), PROTOCOL_LABEL: group.get("protocol") or NO_PROTOCOL}
    head = {"id": from_id(groupid), "specversion": dialect.label, "format": form}
    definitions = [
        write_definition(key, message, dialect, notes, f"{at}/messages/{key}", group)
        for key, message in (group.get("messages") or {}).items()
    ]
    return {**head, **found, "definitions": definitions}


def _write_own(own: Json, dialect: Dialect, notes: list[Problem], at: str) -> Json:
    table = dialect.tables["messagegroup"]
    found = outward(Step(dialect, notes, at, dict(own)), table.rows, FORMS, table)
    tags_of_labels(found)
    return found


def write_definition(
    messageid: str, message: Json, dialect: Dialect, notes: list[Problem], at: str = "", group: Json | None = None
) -> Json:
    """One definition as a group's document embeds it: what its versions share, and a list of them."""
    form = format_of(message, dialect, group or {})
    head = {"id": from_id(messageid), "format": form}
    return {**head, **gather_versions(_write_versions(message, form, dialect, notes, at))}


def gather_versions(documents: Sequence[Json]) -> Json:
    """One definition of its versions, the oldest first: what the newest says for all, and a list of what differs.

    What an older version does not say stays with those that say it, for a version inherits what stands outside.
    """
    newest = documents[-1]
    names = {name for name in newest if all(name in one for one in documents)} - _VARYING
    common = {name: value for name, value in newest.items() if name in names}
    own = [{n: value for n, value in one.items() if n not in names or common[n] != value} for one in documents]
    return {**common, "versions": own}


def write_lone(
    messageid: str, message: Json, dialect: Dialect, notes: list[Problem], at: str = "", group: Json | None = None
) -> Json:
    """One definition as a document of its own: its only version, or what its versions share and a list of them."""
    written = write_definition(messageid, message, dialect, notes, at, group)
    head = {"id": written.pop("id"), "specversion": dialect.label, "format": written.pop("format")}
    if len(written["versions"]) > 1:
        return {**head, **written}
    (version,) = written.pop("versions")
    return {**head, "version": version.pop("version"), **written, **version}


def _write_versions(message: Json, form: str, dialect: Dialect, notes: list[Problem], at: str) -> list[Json]:
    """Every version of a message, the oldest first, each with a number: its id where that counts them."""
    versions = message.get("versions")
    listed = list(versions.items()) if isinstance(versions, dict) and len(versions) > 1 else [("", message)]
    if all(_is_count(str(version.get("versionid", key))) for key, version in listed):
        listed.sort(key=lambda one: int(one[1].get("versionid", one[0])))
    written, last = [], 0
    for key, version in listed:
        named = {"versionid": key, **version} if key else version
        found = write_version(named, form, dialect, notes, f"{at}/versions/{key}" if key else at)
        number = found.get("version", 0)
        if not isinstance(number, int) or number <= last:
            if "version" in found:
                found["labels"] = {**found.get("labels", {}), "1.0.versionid": str(number)}
            number = last + 1
        written.append({"version": number, **{name: value for name, value in found.items() if name != "version"}})
        last = number
    return written


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit()
