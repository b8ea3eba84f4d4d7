"""What the message specification says about CloudEvents and about each protocol, and a model cannot: one check a rule.

Rule 1: as in `message_checks`, a check sees canonical attributes and trusts no shape.
Rule 2: a value with a placeholder says little before it is filled in, and is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from signalbook.document.inherited import message_of
from signalbook.document.message_checks import is_template, section
from signalbook.document.property_places import NOW, Section, name_fault, stated_names
from signalbook.document.rule import Check, Finding, Path, Subject
from signalbook.document.spelling import is_event
from signalbook.spec.protocols import find_protocol

__all__: list[str] = []

# --- CloudEvents ------------------------------------------------------------------------------------------------

_ALWAYS_THERE = ("id", "source", "specversion", "type")
_ATTRIBUTE = re.compile(r"[a-z0-9]+")


def _event(subject: Subject) -> Mapping[str, Any]:
    """The declared attributes of a CloudEvent; another envelope has metadata of its own."""
    return section(subject.whole, "envelopemetadata") if is_event(subject.whole.get("envelope")) else {}


def _own_event(subject: Subject) -> Mapping[str, Any]:
    """Those that the definition declares itself: of what it inherits, its base is told."""
    return section(subject.attrs, "envelopemetadata") if is_event(subject.whole.get("envelope")) else {}


def event_required(subject: Subject) -> Iterator[Finding]:
    """M-16: every CloudEvent has them."""
    metadata = _event(subject)
    for name in _ALWAYS_THERE:
        if section(metadata, name).get("required") is False:
            yield ("envelopemetadata", name, "required"), "must not be false, every CloudEvent has this attribute"


def event_specversion(subject: Subject) -> Iterator[Finding]:
    """M-16: the envelope is CloudEvents 1.0."""
    value = section(_event(subject), "specversion").get("value")
    if value not in (None, "1.0"):
        yield ("envelopemetadata", "specversion", "value"), f'value ({value}) must be "1.0"'


def event_names(subject: Subject) -> Iterator[Finding]:
    """M-16: lower-case letters and digits, as CloudEvents has them; `data` is never an attribute."""
    for name in _event(subject):
        if not _ATTRIBUTE.fullmatch(name):
            yield ("envelopemetadata", name), "must have a name of lower-case letters and digits only"
        elif name == "data":
            yield ("envelopemetadata", name), "must have another name: in an event this is the payload"


def event_dataschema(subject: Subject) -> Iterator[Finding]:
    """M-16: the event names the schema that the definition names."""
    value = section(_event(subject), "dataschema").get("value")
    uri = subject.whole.get("dataschemauri")
    if isinstance(value, str) and isinstance(uri, str) and not is_template(value) and value != uri:
        yield (
            ("envelopemetadata", "dataschema", "value"),
            f'value ({value}) must be the same as "dataschemauri" ({uri})',
        )


def event_options(subject: Subject) -> Iterator[Finding]:
    """E-5: only a structured event has a format; MQTT 3.1.1 has no place for the attributes of a binary one."""
    options = section(subject.whole, "envelopeoptions") if is_event(subject.whole.get("envelope")) else {}
    if options.get("mode") != "binary":
        return
    if options.get("format") is not None:
        yield ("envelopeoptions", "format"), 'must not be present when "mode" is binary'
    if find_protocol(subject.whole.get("protocol")) == "MQTT/3.1.1":
        yield ("envelopeoptions", "mode"), "must not be binary: MQTT 3.1.1 carries events in structured mode only"


def event_id(subject: Subject) -> Iterator[Finding]:
    """M-16: an id that is the same in every event identifies none."""
    if section(_own_event(subject), "id").get("value") is not None:
        yield ("envelopemetadata", "id", "value"), "should not be set"


def event_time(subject: Subject) -> Iterator[Finding]:
    """M-16: the only value that makes sense is the mark for now."""
    value = section(_own_event(subject), "time").get("value")
    if value not in (None, NOW):
        yield ("envelopemetadata", "time", "value"), f"value ({value}) should be {NOW}, which means now"


def event_type(subject: Subject) -> Iterator[Finding]:
    """M-19: a definition is found by the type of the event."""
    value = section(_own_event(subject), "type").get("value")
    id_ = message_of(subject.xid).rpartition("/")[2]
    if isinstance(value, str) and not is_template(value) and value != id_:
        yield ("envelopemetadata", "type", "value"), f'value ({value}) should be the same as "messageid" ({id_})'


# --- protocols --------------------------------------------------------------------------------------------------


def http_direction(subject: Subject) -> Iterator[Finding]:
    """M-18: a response has a status, a request a method."""
    if {"status", "method"} <= section(subject.whole, "protocoloptions").keys():
        yield ("protocoloptions", "status"), 'must not be present together with "method"'


def names(*parts: str) -> Check:
    """M-18: names that can be sent, in these parts."""

    def check(subject: Subject) -> Iterator[Finding]:
        for path, part, name in _names(subject):
            words = name_fault(part, name) if path[1] in parts else None
            if words is not None:
                yield (*path, "name") if isinstance(path[-1], int) else path, words

    return check


def unique_names(subject: Subject) -> Iterator[Finding]:
    """message/spec.md, AMQP/1.0: a name is unique within its map, whatever the keys are."""
    seen: set[tuple[str | int, str]] = set()
    for path, part, name in _names(subject):
        if part.unique and (path[1], name) in seen:
            yield path, f'must have a name of its own: "{name}" is that of another'
        seen.add((path[1], name))


def _names(subject: Subject) -> Iterator[tuple[Path, Section, str]]:
    return stated_names(subject.whole, find_protocol(subject.whole.get("protocol")) or "")


def kafka_key(subject: Subject) -> Iterator[Finding]:
    """M-18: one key."""
    if {"key", "key_base64"} <= section(subject.whole, "protocoloptions").keys():
        yield ("protocoloptions", "key_base64"), 'must not be present together with "key"'


def no_wildcards(option: str, pattern: re.Pattern[str], kind: str) -> Check:
    """Nothing can be published to a pattern."""

    def check(subject: Subject) -> Iterator[Finding]:
        value = section(subject.whole, "protocoloptions").get(option)
        if isinstance(value, str) and pattern.search(re.sub(r"\{[^{}]*\}", "x", value)):
            yield ("protocoloptions", option), f"value ({value}) should be a {kind} without wildcards"

    return check


def amqp_message_id(subject: Subject) -> Iterator[Finding]:
    """message/spec.md, AMQP properties: what tells messages apart is not the same in all of them."""
    member = section(section(subject.attrs, "protocoloptions"), "properties").get("message-id")
    value = member.get("value") if isinstance(member, dict) else None
    if value is not None and not (isinstance(value, str) and is_template(value)):
        yield ("protocoloptions", "properties", "message-id", "value"), "should not be set, unless it is a template"
