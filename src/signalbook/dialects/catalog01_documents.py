"""Documents of 0.1: groups of one format with a list of definitions, each with one version or a list of them.

Rule 1: an id, a format, tags and versions are what rows cannot say; all else goes by the tables.
Rule 2: the newest version is the definition; older ones stand in `versions`, which 0.1 counts and 1.0 names.
Rule 3: an id or a number that is given twice is refused: of two that are one in 1.0, one would be lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from signalbook.dialects.forms import FORMS
from signalbook.dialects.registry_documents import as_it_came, keep_as_it_came, labels_in, refuse, without_given
from signalbook.dialects.rows import ConversionStep, from_id, inward, names_in, outward, to_id
from signalbook.errors import Problem
from signalbook.jsontext import Json
from signalbook.model.normalise import to_canonical
from signalbook.model.xids import MAP_KEY
from signalbook.protocols.message import ALIASES, find_protocol
from signalbook.spec.builtin import MESSAGE
from signalbook.spec.dialects.dialect import Dialect, DialectRow, Format01
from signalbook.spec.dialects.v01 import GENERIC

__all__ = [
    "FORMAT_LABEL",
    "HEAD",
    "NO_PROTOCOL",
    "PROTOCOL_LABEL",
    "TAGS_LABEL",
    "assigned",
    "authored",
    "can_be_label",
    "common_format",
    "format_of",
    "gather_versions",
    "in_line",
    "labels_of_tags",
    "marked_protocol",
    "opaque",
    "read_catalog",
    "read_definition",
    "read_group",
    "read_version",
    "selectors",
    "tags_of_labels",
    "with_common",
    "write_catalog",
    "write_definition",
    "write_group",
    "write_lone",
    "write_version",
]

# One version of a 0.1 definition, and what it shares with its group: the format, tags, and how it was written.
#
# Rule: a format that 0.1 does not define is kept whole, whatever its name resembles: its protocol in 1.0 is one that
# nobody knows. Only a label says that a format of that name was a protocol of 1.0.


FORMAT_LABEL = "0.1.format"
TAGS_LABEL = "0.1.tags"
PROTOCOL_LABEL = "1.0.protocol"
_SELECTOR_LABELS = {"envelope": "1.0.envelope", "protocol": PROTOCOL_LABEL}
NO_PROTOCOL = "-"
HEAD = ("id", "format", "specversion")
_SPACE = re.compile(r"[\s~]")
_CONVERTED = ("0.1.", "1.0.")
_CUSTOM = (DialectRow("definition", "protocoloptions"),)
_PROTOCOL = (DialectRow("definition/payload/dataschema", "", "dataschema"), *_CUSTOM)
_SCHEMA = ("dataschema", "dataschemauri", "dataschemaformat")
_ASSIGNED = ("version", "createdtimeutc", "updatedtimeutc")
_REST = DialectRow("definition", "labels/0.1.definition", "rest")  # sections that a format does not define


# --- into the canonical form ------------------------------------------------------------------------------------------


def read_version(version: Json, form: str, dialect: Dialect, notes: list[Problem], at: str, protocol: str) -> Json:
    """A version in the canonical form, with how it was written where that would be shown otherwise."""
    found = _converted(version, form, dialect, notes, at, protocol)
    shown = _written(found, form, dialect, [], at)
    given = {name: value for name, value in version.items() if name not in HEAD}
    if not keep_as_it_came(authored(given), authored(shown), found, dialect):
        notes.append(Problem(at, "changed", "is shown in this dialect's spelling; its own spelling cannot be kept"))
    return found


def _converted(version: Json, form: str, dialect: Dialect, notes: list[Problem], at: str, protocol: str) -> Json:
    rest = {name: value for name, value in version.items() if name not in HEAD}
    taken = {name: name for name in names_in(version.get("definition"))}
    labels_of_tags(rest, at)
    labels = rest.get("labels")
    if isinstance(labels, dict):
        rest["labels"] = labels = dict(labels)
    protocol = marked_protocol(rest, form, dialect) or protocol
    if labels == {}:
        del rest["labels"]
    step = ConversionStep(dialect, notes, at, rest, names=taken)
    known = protocol and protocol != opaque(form)
    rows = (*dialect.tables["message"].rows, *(_PROTOCOL if known else _rows(form, dialect)))
    found = inward(step, rows, FORMS)
    if protocol == NO_PROTOCOL and found.get("protocoloptions") == {}:
        del found["protocoloptions"]
    for name, value in selectors(form, dialect, (), protocol).items():
        found.setdefault(name, value)
    if isinstance(version.get("id"), str):
        found["messageid"] = to_id(version["id"])
    return dict(to_canonical(MESSAGE, found, at))


def _rows(form: str, dialect: Dialect) -> tuple[DialectRow, ...]:
    known = dialect.formats.get(form)
    return _CUSTOM if known is None else (*known.rows, _REST)


def opaque(form: str) -> str:
    """The protocol that a format of its own has in 1.0: its name, escaped where that would name another."""
    if form == NO_PROTOCOL or find_protocol(form) or form.lower().partition("/")[0] in ALIASES:
        return f"~{ord(form[0]):02x}{_SPACE.sub(_escaped, form[1:])}"
    return _SPACE.sub(_escaped, form)


def _escaped(found: re.Match[str]) -> str:
    return f"~{ord(found[0]):02x}"


def _named(protocol: str) -> str:
    """The name of a format whose protocol in 1.0 is this one."""
    return re.sub(r"~([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), protocol)


def selectors(form: str, dialect: Dialect, messages: Any, protocol: str = "") -> dict[str, str]:
    """The envelope or the protocol that a format stands for; that of MQTT is what its messages agree on."""
    known = dialect.formats.get(form)
    if known is None:
        return {"protocol": protocol or opaque(form)} if protocol != NO_PROTOCOL else {}
    if known.envelope:
        return {"envelope": known.envelope}
    protocols = {message.get("protocol") for message in messages} or {known.protocol}
    found = protocols.pop()
    return {"protocol": found} if found and not protocols else {}


def marked_protocol(found: Json, form: str, dialect: Dialect) -> str:
    """The protocol of 1.0 that a format was, as a label of what was read says, which has it no longer."""
    labels = found.get("labels")
    if form in dialect.formats or not isinstance(labels, dict) or not isinstance(labels.get(PROTOCOL_LABEL), str):
        return ""
    protocol: str = labels.pop(PROTOCOL_LABEL)
    return protocol if form in (_named(protocol), GENERIC) else ""


def authored(entity: Json) -> Json:
    """What of a document its author says: neither what a server assigns, nor labels, which stay what they are."""
    return {name: value for name, value in entity.items() if name not in (*_ASSIGNED, "labels")}


def labels_of_tags(entity: Json, at: str) -> None:
    """Make labels without a value of the tags of 0.1; all are kept as one text where some cannot be labels."""
    if entity.get("labels") is not None and not isinstance(entity["labels"], dict):
        raise refuse(at, "labels", "must be a map")
    tags = entity.pop("tags", None)
    if not isinstance(tags, str) or not tags:
        return
    names = [tag.strip() for tag in tags.split(",")]
    labels = {name: "" for name in names if can_be_label(name)}
    if len(labels) != len(names):
        labels[TAGS_LABEL] = tags
    entity["labels"] = {**labels, **(entity.get("labels") or {})}


def can_be_label(tag: str) -> bool:
    """Whether a tag can be the name of a label: one that says how a text was converted is not a tag."""
    return bool(MAP_KEY.fullmatch(tag)) and not tag.startswith(_CONVERTED)


# --- out of the canonical form ----------------------------------------------------------------------------------------


def write_version(message: Json, form: str, dialect: Dialect, notes: list[Problem], at: str) -> Json:
    """A version as 0.1 has it: as it was written, as long as that is what it says."""
    protocol = message.get("protocol") or NO_PROTOCOL
    return as_it_came(
        message,
        dialect,
        lambda own: _written(own, form, dialect, notes, at),
        lambda shown: _converted(shown, form, dialect, [], at, "" if form in dialect.formats else protocol),
    )


def _written(message: Json, form: str, dialect: Dialect, notes: list[Problem], at: str) -> Json:
    skipped = {"messageid", "versions"}
    known: Format01 | None = dialect.formats.get(form)
    if known is None or _tells_protocol(known, message.get("protocol")):
        skipped.add("protocol")
    if known is not None and message.get("envelope") == known.envelope:
        skipped.add("envelope")
    rest = {name: value for name, value in without_given(message).items() if name not in skipped}
    table = dialect.tables["message"]
    protocol = message.get("protocol")
    own = known is None and protocol == opaque(form) and not any(name in message for name in _SCHEMA)
    step = ConversionStep(dialect, notes, at, rest, protocol=str(protocol or ""))
    rows = _rows(form, dialect) if own or known is not None else _PROTOCOL
    found = outward(step, (*table.rows, *rows), FORMS, table)
    found.setdefault("definition", {})
    tags_of_labels(found)
    if known is None and not own:
        found["labels"] = {**found.get("labels", {}), PROTOCOL_LABEL: protocol or NO_PROTOCOL}
    return found


def _tells_protocol(known: Format01, protocol: Any) -> bool:
    """Whether a format says which protocol a message has; that of MQTT has a member for the version."""
    return bool(known.protocol) and (protocol in (None, known.protocol) or _family(known.protocol) == "mqtt")


def format_of(entity: Json, dialect: Dialect, group: Json) -> str:
    """The format of 0.1 that an envelope or a protocol means; without either, that of the group."""
    for name, written in (("envelope", "envelope"), ("protocol", "protocol")):
        value = entity.get(name) or group.get(name)
        if isinstance(value, str) and value:
            family = _family(value)
            for form, known in dialect.formats.items():
                if _family(getattr(known, written)) == family:
                    return form
            if name == "protocol":
                return _named(value)
    labels = entity.get("labels") or group.get("labels")
    return str(labels.get(FORMAT_LABEL, GENERIC)) if isinstance(labels, dict) else GENERIC


def common_format(group: Json, messages: Iterable[Json], dialect: Dialect) -> str:
    """The format of a group: the one that all its messages have in common; without messages, what it states itself.

    Where they have several, or the group is marked as one of any, each is shown in the format that takes all.
    """
    own = format_of(group, dialect, {})
    if (group.get("labels") or {}).get(FORMAT_LABEL) == GENERIC:
        return GENERIC
    formats = {format_of(message, dialect, group) for message in messages} or {own}
    return formats.pop() if len(formats) == 1 else GENERIC


def tags_of_labels(found: Json) -> None:
    """Labels without a value as tags; the others stay labels, which 0.1 allows as further attributes."""
    labels = found.pop("labels", None)
    if not isinstance(labels, dict):
        return
    labels = {name: value for name, value in labels.items() if name != FORMAT_LABEL}
    given = labels.pop(TAGS_LABEL, "")
    told = [tag.strip() for tag in given.split(",") if tag.strip()]
    tags = [tag for tag in told if not can_be_label(tag) or tag in labels]
    bare = {name for name, value in labels.items() if value == "" and can_be_label(name)}
    tags += sorted(bare - set(tags))
    if given and tags == told:
        found["tags"] = given
    elif tags:
        found["tags"] = ",".join(tags)
    valued = {name: value for name, value in labels.items() if name not in bare}
    if valued:
        found["labels"] = valued


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
            for name in _SELECTOR_LABELS:
                if known.get(name) != found.get(name):
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
    form = _required_text(group, "format", at)
    stated = _stated(found, form, dialect)
    marked = stated.get("protocol", "") if form not in dialect.formats else ""
    if marked == NO_PROTOCOL and form != GENERIC:
        marked = ""  # the group has none; its messages have
    messages: dict[str, Json] = {}
    for place, definition in enumerate(_list(group.get("definitions"), f"{at}/definitions")):
        where = f"{at}/definitions/{place}"
        message = read_definition(definition, dialect, notes, where, form, marked)
        messageid = to_id(_required_text(definition, "id", where))
        if messageid in messages:
            raise refuse(where, "id", f"'{definition['id']}' is the id of another definition of the group")
        messages[messageid] = message
    shown = _write_own(found, dialect, [], at)
    if not keep_as_it_came(authored(rest), authored(shown), found, dialect):
        notes.append(Problem(at, "changed", "is shown in this dialect's spelling; its own spelling cannot be kept"))
    found["messagegroupid"] = (found.get("labels") or {}).pop(_PART_LABEL, None) or to_id(
        _required_text(group, "id", at)
    )
    found.update(selectors(form, dialect, messages.values(), marked))
    found.update(stated)
    for name in [name for name, value in stated.items() if value == NO_PROTOCOL]:
        del found[name]
    if "envelope" not in found and "protocol" not in found and NO_PROTOCOL not in stated.values():
        found["labels"] = {**(found.get("labels") or {}), FORMAT_LABEL: form}
    if not found.get("labels", True):
        del found["labels"]
    return {**to_canonical(MESSAGE, found, at, group=True), "messages": messages}


def _stated(found: Json, form: str, dialect: Dialect) -> dict[str, str]:
    """The selectors that a group of 1.0 stated, or a sign that it stated none, as labels say, which it has no longer.

    A label that is not about this format, for somebody changed that since, says nothing.
    """
    labels = found.get("labels")
    if not isinstance(labels, dict):
        return {}
    given = {name: labels.pop(label, None) for name, label in _SELECTOR_LABELS.items()}
    return {name: value for name, value in given.items() if _may_state(name, value, form, dialect)}


def _may_state(name: str, value: Any, form: str, dialect: Dialect) -> bool:
    """Whether a group of a format may have had a selector in 1.0."""
    if not isinstance(value, str) or not value:
        return False
    known = dialect.formats.get(form)
    own = _named(value) if known is None else getattr(known, name)
    if value == NO_PROTOCOL or not own or (name == "envelope" and known is None):
        return True
    return own == form if known is None else _family(own) == _family(value)


def _family(selector: str) -> str:
    return selector.partition("/")[0].lower()


def _read_own(rest: Json, dialect: Dialect, notes: list[Problem], at: str) -> Json:
    """The attributes that a group has of itself."""
    own = dict(rest)
    labels_of_tags(own, at)
    return inward(ConversionStep(dialect, notes, at, own), dialect.tables["messagegroup"].rows, FORMS)


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
        raise refuse(at, "definition", "must be in one of the versions, since there is a list of them")
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


def _required_text(entity: Json, name: str, at: str) -> str:
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
    marks = _marks(group, form, dialect)
    if marks:
        found["labels"] = {**found.get("labels", {}), **marks}
    for name, label in _SELECTOR_LABELS.items():
        if label in marks and not _may_state(name, marks[label], form, dialect):
            words = f"'{marks[label]}' is not that of its messages, whose format is '{form}'"
            notes.append(Problem(f"{at}/{name}", "changed", words))
    head = {"id": from_id(groupid), "specversion": dialect.label, "format": form}
    definitions = [
        write_definition(key, message, dialect, notes, f"{at}/messages/{key}", group)
        for key, message in (group.get("messages") or {}).items()
    ]
    return {**head, **found, "definitions": definitions}


def _marks(group: Json, form: str, dialect: Dialect) -> dict[str, str]:
    """The labels for the selectors of a group that its format, and those of its messages, do not tell."""
    labels, stated = group.get("labels"), {name: group.get(name) or None for name in _SELECTOR_LABELS}
    if not any(stated.values()) and isinstance(labels, dict) and labels.get(FORMAT_LABEL) == form:
        return {}
    messages = [
        {"protocol": one.get("protocol") or stated["protocol"]} for one in (group.get("messages") or {}).values()
    ]
    told = selectors(form, dialect, messages)
    marks = {
        label: str(stated[name] or NO_PROTOCOL)
        for name, label in _SELECTOR_LABELS.items()
        if stated[name] != told.get(name)
    }
    if not told and not marks:
        marks[PROTOCOL_LABEL] = NO_PROTOCOL
    return marks


def _write_own(own: Json, dialect: Dialect, notes: list[Problem], at: str) -> Json:
    table = dialect.tables["messagegroup"]
    found = outward(ConversionStep(dialect, notes, at, dict(own)), table.rows, FORMS, table)
    tags_of_labels(found)
    return found


def write_definition(
    messageid: str, message: Json, dialect: Dialect, notes: list[Problem], at: str = "", group: Json | None = None,
    form: str = "",
) -> Json:  # fmt: skip
    """One definition as a group's document embeds it: what its versions share, and a list of them.

    `form` is the format it is written in; where none is said, its own.
    """
    form = form or format_of(message, dialect, group or {})
    known, protocol = dialect.formats.get(form), (group or {}).get("protocol")
    if known is not None and isinstance(protocol, str) and _family(known.protocol) == _family(protocol):
        message = _bound(message, protocol)
    head = {"id": from_id(messageid), "format": form}
    return {**head, **gather_versions(_write_versions(message, form, dialect, notes, at))}


def _bound(message: Json, protocol: str) -> Json:
    """A message with the protocol of its group, where it, or a version of it, names none: 0.1 has no such default."""
    versions = message.get("versions")
    if isinstance(versions, dict):
        message = {**message, "versions": {key: _bound(version, protocol) for key, version in versions.items()}}
    return message if message.get("protocol") else {**message, "protocol": protocol}


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
    messageid: str, message: Json, dialect: Dialect, notes: list[Problem], at: str = "", group: Json | None = None,
    form: str = "",
) -> Json:  # fmt: skip
    """One definition as a document of its own: its only version, or what its versions share and a list of them."""
    written = write_definition(messageid, message, dialect, notes, at, group, form)
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
    newest = written[-1]
    for (key, _), one in zip(listed, written, strict=True):
        if "documentation" in one and one["documentation"] != newest.get("documentation"):
            notes.append(Problem(f"{at}/versions/{key}/documentation", "lost", _SHARED))
    return [with_common(one, newest) for one in written]


_SHARED = "is that of the newest version, for it is common to all"


def with_common(version: Json, newest: Json) -> Json:
    """A version with what is common to all versions of its definition (0.1 section 2.2), as the newest has it."""
    if version.get("documentation") == newest.get("documentation"):
        return version
    shown = {name: value for name, value in version.items() if name != "documentation"}
    return {**shown, "documentation": newest["documentation"]} if "documentation" in newest else shown


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit()


# The versions of a 0.1 definition as one message: each follows the one before, and the newest is what holds.
#
# Rule: a catalog gives versions their numbers and their times itself (0.1 section 2.2.5); what a document says there is
# told and left out.


_GIVEN = frozenset({"ancestorid", "createdat", "modifiedat", "versionid", "versions"})
_COMMON = frozenset({"messageid", "meta"})


def in_line(versions: Sequence[Json]) -> Json:
    """The message that these versions make, the oldest first, so that a registry takes them in one request."""
    plain = [{name: value for name, value in version.items() if name not in _GIVEN} for version in versions]
    if len(plain) == 1:
        return plain[0]
    line = {
        str(number): {
            **{name: value for name, value in version.items() if name not in _COMMON},
            "ancestorid": str(max(number - 1, 1)),
        }
        for number, version in enumerate(plain, 1)
    }
    return {**plain[-1], "versions": line}


def assigned(document: Any) -> Iterator[Problem]:
    """A note for each definition of a 0.1 document whose numbers or times a catalog gives anew."""
    groups = document if isinstance(document, list) else [document]
    for place, group in enumerate(groups):
        at = f"/{place}" if isinstance(document, list) else ""
        listed = group.get("definitions")
        if not isinstance(listed, list):
            yield from _assigned(group, at)
            continue
        for number, definition in enumerate(listed):
            yield from _assigned(definition, f"{at}/definitions/{number}")


def _assigned(definition: Json, at: str) -> Iterator[Problem]:
    versions = definition.get("versions")
    versions = versions if isinstance(versions, list) else [definition]
    names = [
        name
        for name, differs in (
            ("version", sorted(one.get("version", place) for place, one in enumerate(versions, 1)) != _count(versions)),
            ("createdtimeutc", "createdtimeutc" in definition or any("createdtimeutc" in one for one in versions)),
        )
        if differs
    ]
    if names:
        yield Problem(at, "assigned", f"left out, for the catalog gives it anew: {', '.join(names)}")


def _count(versions: Sequence[Any]) -> list[int]:
    return list(range(1, len(versions) + 1))
