"""Documents of 0.1: groups of one format with a list of definitions, each with one version or a list of them.

Rule 1: an id, a format, tags and versions are what rows cannot say; all else goes by the tables.
Rule 2: the newest version is the definition; older ones stand in `versions`, which 0.1 counts and 1.0 names.
Rule 3: an id or a number that is given twice is refused: of two that are one in 1.0, one would be lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from signalbook.document.dialects.forms import FORMS
from signalbook.document.dialects.ids import from_id, to_id
from signalbook.document.dialects.placeholders import names_in
from signalbook.document.dialects.registry_form import Json, refuse, without_given
from signalbook.document.dialects.rows import Step, inward, outward
from signalbook.document.spelling import PROTOCOLS, to_canonical
from signalbook.document.xid import MAP_KEY
from signalbook.errors import Problem
from signalbook.spec.builtin import MESSAGE
from signalbook.spec.dialects.dialect import Dialect, Format, Row
from signalbook.spec.dialects.v01 import GENERIC

__all__ = [
    "TAGS_LABEL", "format_of", "read_catalog", "read_definition", "read_group", "write_catalog", "write_definition",
    "write_group",
]  # fmt: skip

_FORMAT_LABEL = "0.1.format"
TAGS_LABEL = "0.1.tags"
_PART_LABEL = "1.0.messagegroupid"
_SPACE = re.compile(r"[\s~]")
_CUSTOM = (
    Row("definition/payload/dataschema", "", "dataschema"),
    Row("definition", "protocoloptions"),
)
_REST = Row("definition", "labels/0.1.definition", "rest")  # sections that a format does not define


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
    rest = {name: value for name, value in group.items() if name not in ("id", "format", "definitions", "specversion")}
    step = Step(dialect, notes, at, rest)
    found = inward(step, dialect.tables["messagegroup"].rows, FORMS)
    _labels_of_tags(found, at)
    form = _text(group, "format", at)
    messages: dict[str, Json] = {}
    for place, definition in enumerate(_list(group.get("definitions"), f"{at}/definitions")):
        where = f"{at}/definitions/{place}"
        message = read_definition(definition, dialect, notes, where, form)
        messageid = to_id(_text(definition, "id", where))
        if messageid in messages:
            raise refuse(where, "id", f"'{definition['id']}' is the id of another definition of the group")
        messages[messageid] = message
    found["messagegroupid"] = (found.get("labels") or {}).pop(_PART_LABEL, None) or to_id(_text(group, "id", at))
    found.update(_selectors(form, dialect, messages.values()))
    if "envelope" not in found and "protocol" not in found and form != GENERIC:
        found["labels"] = {**(found.get("labels") or {}), _FORMAT_LABEL: form}
    if not found.get("labels", True):
        del found["labels"]
    return {**to_canonical(MESSAGE, found, at), "messages": messages}


def read_definition(
    definition: Json, dialect: Dialect, notes: list[Problem], at: str = "", group_format: str = ""
) -> Json:
    """One definition: a version as a document of its own, or several in a list."""
    if not isinstance(definition, dict):
        raise refuse(at, "definition", "must be an object")
    form = definition.get("format") or group_format
    if not isinstance(form, str) or not form:
        raise refuse(at, "format", "must be present")
    common = {name: value for name, value in definition.items() if name != "versions"}
    given = definition.get("versions")
    if given is None:
        return _read_version(common, form, dialect, notes, at)
    listed = _list(given, f"{at}/versions")
    if not listed:
        raise refuse(at, "versions", "must hold at least one version")
    numbered = sorted((_number(version, place, at), place) for place, version in enumerate(listed))
    for (number, _), (following, place) in pairwise(numbered):
        if number == following:
            raise refuse(f"{at}/versions/{place}", "version", f"{number} is the number of another version")
    versions = [
        _read_version({**common, **listed[place], "version": number}, form, dialect, notes, f"{at}/versions/{place}")
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


def _read_version(version: Json, form: str, dialect: Dialect, notes: list[Problem], at: str) -> Json:
    rest = {name: value for name, value in version.items() if name not in ("id", "format", "specversion")}
    taken = {name: name for name in names_in(version.get("definition"))}
    step = Step(dialect, notes, at, rest, names=taken)
    rows = (*dialect.tables["message"].rows, *_rows(form, dialect))
    found = inward(step, rows, FORMS)
    _labels_of_tags(found, at)
    for name, value in _selectors(form, dialect, ()).items():
        found.setdefault(name, value)
    if isinstance(version.get("id"), str):
        found["messageid"] = to_id(version["id"])
    return dict(to_canonical(MESSAGE, found, at))


def _rows(form: str, dialect: Dialect) -> tuple[Row, ...]:
    known = dialect.formats.get(form)
    return _CUSTOM if known is None else (*known.rows, _REST)


def _selectors(form: str, dialect: Dialect, messages: Any) -> dict[str, str]:
    """The envelope or the protocol that a format stands for; that of MQTT is what its messages agree on."""
    known = dialect.formats.get(form)
    if known is None:
        return {"protocol": PROTOCOLS.get(form.lower()) or _SPACE.sub(lambda found: f"~{ord(found[0]):02x}", form)}
    if known.envelope:
        return {"envelope": known.envelope}
    protocols = {message.get("protocol") for message in messages} or {known.protocol}
    protocol = protocols.pop()
    return {"protocol": protocol} if protocol and not protocols else {}


def _labels_of_tags(found: Json, at: str) -> None:
    if not isinstance(found.get("labels") or {}, dict):
        raise refuse(at, "labels", "must be a map")
    tags = found.pop("tags", None)
    if not isinstance(tags, str) or not tags:
        return
    names = [tag.strip() for tag in tags.split(",")]
    labels = {name: "" for name in names if MAP_KEY.fullmatch(name)}
    if len(labels) != len(names):
        labels[TAGS_LABEL] = tags
    found["labels"] = {**labels, **(found.get("labels") or {})}


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
    default = versions.get(meta.get("defaultversionid")) if isinstance(meta, dict) else None
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
        labels = {**(group.get("labels") or {}), _PART_LABEL: groupid}
        yield write_group(f"{groupid}.{form}", {**group, "labels": labels, "messages": part}, form, dialect, notes)


def write_group(groupid: str, group: Json, form: str, dialect: Dialect, notes: list[Problem]) -> Json:
    """One group document with its definitions."""
    at = f"/messagegroups/{groupid}"
    skipped = ("messagegroupid", "messages", "envelope", "protocol")
    rest = {name: value for name, value in group.items() if name not in skipped}
    table = dialect.tables["messagegroup"]
    found = outward(Step(dialect, notes, at, rest), table.rows, FORMS, table)
    _tags_of_labels(found)
    head = {"id": from_id(groupid), "specversion": dialect.label, "format": form}
    definitions = [
        write_definition(key, message, dialect, notes, f"{at}/messages/{key}", group)
        for key, message in (group.get("messages") or {}).items()
    ]
    return {**head, **found, "definitions": definitions}


def write_definition(
    messageid: str, message: Json, dialect: Dialect, notes: list[Problem], at: str = "", group: Json | None = None
) -> Json:
    """One definition: the newest version with its parts, or all versions in a list where there are several."""
    form = format_of(message, dialect, group or {})
    head: Json = {"id": from_id(messageid)} if messageid else {}
    head["format"] = form
    versions = message.get("versions")
    if not isinstance(versions, dict) or len(versions) < 2:
        return {**head, **_write_version(message, form, dialect, notes, at)}
    written = [
        _write_version(version, form, dialect, notes, f"{at}/versions/{key}") for key, version in versions.items()
    ]
    varying = {"version", "createdtimeutc", "definition"}
    names = {name for version in written for name in version}
    common = {n for n in names - varying if all(version.get(n) == written[0].get(n) for version in written)}
    latest = {name: value for name, value in written[-1].items() if name in common}
    own = [{name: value for name, value in version.items() if name not in common} for version in written]
    return {**head, **latest, "versions": own}


def _write_version(message: Json, form: str, dialect: Dialect, notes: list[Problem], at: str) -> Json:
    skipped = {"messageid", "versions"} | ({"envelope"} if form in dialect.formats else set())
    known: Format | None = dialect.formats.get(form)
    if known is None or known.protocol:
        skipped.add("protocol")
    rest = {name: value for name, value in without_given(message).items() if name not in skipped}
    table = dialect.tables["message"]
    step = Step(dialect, notes, at, rest, protocol=str(message.get("protocol", "")))
    found = outward(step, (*table.rows, *_rows(form, dialect)), FORMS, table)
    found.setdefault("definition", {})
    _tags_of_labels(found)
    return found


def format_of(entity: Json, dialect: Dialect, group: Json) -> str:
    """The format of 0.1 that an envelope or a protocol means; without either, that of the group."""
    for name, written in (("envelope", "envelope"), ("protocol", "protocol")):
        value = entity.get(name) or group.get(name)
        if isinstance(value, str) and value:
            family = value.partition("/")[0].lower()
            for form, known in dialect.formats.items():
                if getattr(known, written).partition("/")[0].lower() == family:
                    return form
            if name == "protocol":
                return re.sub(r"~([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), value)
    labels = entity.get("labels") or group.get("labels")
    return str(labels.get(_FORMAT_LABEL, GENERIC)) if isinstance(labels, dict) else GENERIC


def _tags_of_labels(found: Json) -> None:
    """Labels without a value as tags; the others stay labels, which 0.1 allows as further attributes."""
    labels = found.pop("labels", None)
    if not isinstance(labels, dict):
        return
    labels = {name: value for name, value in labels.items() if name != _FORMAT_LABEL}
    given = labels.pop(TAGS_LABEL, "")
    tags = [tag.strip() for tag in given.split(",") if tag.strip()]
    tags += [name for name, value in labels.items() if value == "" and name not in tags]
    if tags:
        found["tags"] = given if given and len(tags) == len(given.split(",")) else ",".join(tags)
    valued = {name: value for name, value in labels.items() if value != ""}
    if valued:
        found["labels"] = valued
