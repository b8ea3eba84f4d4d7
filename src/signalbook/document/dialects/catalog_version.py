"""One version of a 0.1 definition, and what it shares with its group: the format, tags, and how it was written.

Rule: a format that 0.1 does not define is kept whole, whatever its name resembles: its protocol in 1.0 is one that
nobody knows. Only a label says that a format of that name was a protocol of 1.0.
"""

from __future__ import annotations

import re
from typing import Any

from signalbook.document.dialects.as_written import as_it_came, keep_as_it_came
from signalbook.document.dialects.forms import FORMS
from signalbook.document.dialects.ids import to_id
from signalbook.document.dialects.placeholders import names_in
from signalbook.document.dialects.registry_form import Json, refuse, without_given
from signalbook.document.dialects.rows import Step, inward, outward
from signalbook.document.spelling import to_canonical
from signalbook.document.xid import MAP_KEY
from signalbook.errors import Problem
from signalbook.spec.builtin import MESSAGE
from signalbook.spec.dialects.dialect import Dialect, Format, Row
from signalbook.spec.dialects.v01 import GENERIC
from signalbook.spec.protocols import PROTOCOLS, find_protocol

__all__ = [
    "FORMAT_LABEL", "HEAD", "NO_PROTOCOL", "PROTOCOL_LABEL", "TAGS_LABEL", "authored", "can_be_label", "format_of",
    "labels_of_tags", "marked_protocol", "opaque", "read_version", "selectors", "tags_of_labels", "write_version",
]  # fmt: skip

FORMAT_LABEL = "0.1.format"
TAGS_LABEL = "0.1.tags"
PROTOCOL_LABEL = "1.0.protocol"
NO_PROTOCOL = "-"
HEAD = ("id", "format", "specversion")
_SPACE = re.compile(r"[\s~]")
_CONVERTED = ("0.1.", "1.0.")
_CUSTOM = (Row("definition", "protocoloptions"),)
_PROTOCOL = (Row("definition/payload/dataschema", "", "dataschema"), *_CUSTOM)
_SCHEMA = ("dataschema", "dataschemauri", "dataschemaformat")
_ASSIGNED = ("version", "createdtimeutc", "updatedtimeutc")
_REST = Row("definition", "labels/0.1.definition", "rest")  # sections that a format does not define


# --- into the canonical form ------------------------------------------------------------------------------------------


def read_version(version: Json, form: str, dialect: Dialect, notes: list[Problem], at: str, protocol: str) -> Json:
    """A version in the canonical form, with how it was written where that would be shown otherwise."""
    found = _converted(version, form, dialect, notes, at, protocol)
    shown = _written(found, form, dialect, [], at)
    given = {name: value for name, value in version.items() if name not in HEAD}
    if not keep_as_it_came(authored(given), authored(shown), found, dialect):
        notes.append(Problem(at, "changed", "is shown as this text spells it, for there is no room to keep its own"))
    return found


def _converted(version: Json, form: str, dialect: Dialect, notes: list[Problem], at: str, protocol: str) -> Json:
    rest = {name: value for name, value in version.items() if name not in HEAD}
    taken = {name: name for name in names_in(version.get("definition"))}
    labels = rest.get("labels")
    if isinstance(labels, dict):
        rest["labels"] = labels = dict(labels)
    protocol = marked_protocol(rest, form, dialect) or protocol
    if labels == {}:
        del rest["labels"]
    step = Step(dialect, notes, at, rest, names=taken)
    known = protocol and protocol != opaque(form)
    rows = (*dialect.tables["message"].rows, *(_PROTOCOL if known else _rows(form, dialect)))
    found = inward(step, rows, FORMS)
    labels_of_tags(found, at)
    for name, value in selectors(form, dialect, (), protocol).items():
        found.setdefault(name, value)
    if isinstance(version.get("id"), str):
        found["messageid"] = to_id(version["id"])
    return dict(to_canonical(MESSAGE, found, at))


def _rows(form: str, dialect: Dialect) -> tuple[Row, ...]:
    known = dialect.formats.get(form)
    return _CUSTOM if known is None else (*known.rows, _REST)


def opaque(form: str) -> str:
    """The protocol that a format of its own has in 1.0: its name, escaped where that would name another."""
    if form == NO_PROTOCOL or find_protocol(form) or form.lower().partition("/")[0] in PROTOCOLS:
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
    return protocol if _named(protocol) == form or (protocol, form) == (NO_PROTOCOL, GENERIC) else ""


def authored(entity: Json) -> Json:
    """What of a document its author says: neither what a server assigns, nor labels, which stay what they are."""
    return {name: value for name, value in entity.items() if name not in (*_ASSIGNED, "labels")}


def labels_of_tags(found: Json, at: str) -> None:
    """Make labels without a value of the tags; all of them are kept as one text where some cannot be labels."""
    if found.get("labels") is not None and not isinstance(found["labels"], dict):
        raise refuse(at, "labels", "must be a map")
    tags = found.pop("tags", None)
    if not isinstance(tags, str) or not tags:
        return
    names = [tag.strip() for tag in tags.split(",")]
    labels = {name: "" for name in names if can_be_label(name)}
    if len(labels) != len(names):
        labels[TAGS_LABEL] = tags
    found["labels"] = {**labels, **(found.get("labels") or {})}


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
    skipped = {"messageid", "versions"} | ({"envelope"} if form in dialect.formats else set())
    known: Format | None = dialect.formats.get(form)
    if known is None or known.protocol:
        skipped.add("protocol")
    rest = {name: value for name, value in without_given(message).items() if name not in skipped}
    table = dialect.tables["message"]
    protocol = message.get("protocol")
    own = known is None and protocol == opaque(form) and not any(name in message for name in _SCHEMA)
    step = Step(dialect, notes, at, rest, protocol=str(protocol or ""))
    rows = _rows(form, dialect) if own or known is not None else _PROTOCOL
    found = outward(step, (*table.rows, *rows), FORMS, table)
    found.setdefault("definition", {})
    tags_of_labels(found)
    if known is None and not own:
        found["labels"] = {**found.get("labels", {}), PROTOCOL_LABEL: protocol or NO_PROTOCOL}
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
                return _named(value)
    labels = entity.get("labels") or group.get("labels")
    return str(labels.get(FORMAT_LABEL, GENERIC)) if isinstance(labels, dict) else GENERIC


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
