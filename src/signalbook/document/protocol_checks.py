"""What the message specification says about CloudEvents and about each protocol, and a model cannot: one check a rule.

Rule 1: as in `message_checks`, a check sees canonical attributes and trusts no shape.
Rule 2: a value with a placeholder says little before it is filled in, and is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from signalbook.document.message_checks import TOKEN, is_template, members, message_of, section
from signalbook.document.rule import Check, Finding, Subject

__all__: list[str] = []

# --- CloudEvents ------------------------------------------------------------------------------------------------

_ALWAYS_THERE = ("id", "source", "specversion", "type")
_ATTRIBUTE = re.compile(r"[a-z0-9]+")
NOW = "0000-01-01T00:00:00Z"


def _event(subject: Subject) -> Mapping[str, Any]:
    """The declared attributes of a CloudEvent; another envelope has metadata of its own."""
    if str(subject.attrs.get("envelope", "cloudevents/")).lower().startswith("cloudevents/"):
        return section(subject.attrs, "envelopemetadata")
    return {}


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
    """M-16: lower-case letters and digits, as CloudEvents has them."""
    for name in _event(subject):
        if not _ATTRIBUTE.fullmatch(name):
            yield ("envelopemetadata", name), "must have a name of lower-case letters and digits only"


def event_dataschema(subject: Subject) -> Iterator[Finding]:
    """M-16: the event names the schema that the definition names."""
    value = section(_event(subject), "dataschema").get("value")
    uri = subject.attrs.get("dataschemauri")
    if isinstance(value, str) and isinstance(uri, str) and not is_template(value) and value != uri:
        yield (
            ("envelopemetadata", "dataschema", "value"),
            f'value ({value}) must be the same as "dataschemauri" ({uri})',
        )


def event_id(subject: Subject) -> Iterator[Finding]:
    """M-16: an id that is the same in every event identifies none."""
    if section(_event(subject), "id").get("value") is not None:
        yield ("envelopemetadata", "id", "value"), "should not be set"


def event_time(subject: Subject) -> Iterator[Finding]:
    """M-16: the only value that makes sense is the mark for now."""
    value = section(_event(subject), "time").get("value")
    if value not in (None, NOW):
        yield ("envelopemetadata", "time", "value"), f"value ({value}) should be {NOW}, which means now"


def event_type(subject: Subject) -> Iterator[Finding]:
    """M-19: a definition is found by the type of the event."""
    value = section(_event(subject), "type").get("value")
    id_ = message_of(subject.xid).rpartition("/")[2]
    if isinstance(value, str) and not is_template(value) and value != id_:
        yield ("envelopemetadata", "type", "value"), f'value ({value}) should be the same as "messageid" ({id_})'


# --- protocols --------------------------------------------------------------------------------------------------


def http_direction(subject: Subject) -> Iterator[Finding]:
    """M-18: a response has a status, a request a method."""
    if {"status", "method"} <= section(subject.attrs, "protocoloptions").keys():
        yield ("protocoloptions", "status"), 'must not be present together with "method"'


def http_status(subject: Subject) -> Iterator[Finding]:
    """M-18: three digits (RFC 9110 section 15)."""
    status = section(subject.attrs, "protocoloptions").get("status")
    if isinstance(status, str) and not is_template(status) and not re.fullmatch(r"[1-5][0-9][0-9]", status):
        yield ("protocoloptions", "status"), f"value ({status}) must be an HTTP status code"


def http_method(subject: Subject) -> Iterator[Finding]:
    """M-18: a token (RFC 9110 section 9.1)."""
    method = section(subject.attrs, "protocoloptions").get("method")
    if isinstance(method, str) and not is_template(method) and not TOKEN.fullmatch(method):
        yield ("protocoloptions", "method"), f"value ({method}) must be an HTTP method"


def http_header_names(subject: Subject) -> Iterator[Finding]:
    """M-18: a token (RFC 9110 section 5.1)."""
    for key, member in members(section(subject.attrs, "protocoloptions"), "headers"):
        name = str(member.get("name", key)) if isinstance(member, dict) else ""
        if name and not TOKEN.fullmatch(name):
            yield ("protocoloptions", "headers", key, "name"), f"value ({name}) must be an HTTP header name"


def kafka_key(subject: Subject) -> Iterator[Finding]:
    """M-18: one key."""
    if {"key", "key_base64"} <= section(subject.attrs, "protocoloptions").keys():
        yield ("protocoloptions", "key_base64"), 'must not be present together with "key"'


def kafka_key_base64(subject: Subject) -> Iterator[Finding]:
    """KAFKA `key_base64`: the bytes of the key in Base64."""
    key = section(subject.attrs, "protocoloptions").get("key_base64")
    if isinstance(key, str) and not re.fullmatch(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", key):
        yield ("protocoloptions", "key_base64"), f"value ({key}) must be Base64"


def mqtt_qos(subject: Subject) -> Iterator[Finding]:
    """MQTT 5.0 section 4.3: three levels."""
    qos = section(subject.attrs, "protocoloptions").get("qos")
    if qos not in (None, 0, 1, 2):
        yield ("protocoloptions", "qos"), f"value ({qos}) should be 0, 1 or 2"


def no_wildcards(option: str, pattern: re.Pattern[str], kind: str) -> Check:
    """Nothing can be published to a pattern."""

    def check(subject: Subject) -> Iterator[Finding]:
        value = section(subject.attrs, "protocoloptions").get(option)
        if isinstance(value, str) and pattern.search(re.sub(r"\{[^{}]*\}", "x", value)):
            yield ("protocoloptions", option), f"value ({value}) should be a {kind} without wildcards"

    return check
