"""What the message specification says about definitions and a model cannot: one check a rule.

Rule 1: a check sees canonical attributes that passed the model, yet trusts no shape: another model may be in place.
Rule 2: what a definition may inherit from its `basemessage` is not missing.

message/spec.md of 1.0-rc2 (texts of September 2025 and May 2026) and 1.0-rc4; M-n are the rules of the digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from signalbook.cloudevents.uri import is_uri_reference
from signalbook.document.inherited import MAX_CHAIN, message_of
from signalbook.document.property_places import CONTENT_TYPE, Place, Property, fault, form_fault, stated_properties
from signalbook.document.rule import Check, Finding, Path, Subject
from signalbook.document.spelling import is_event
from signalbook.document.xid import Xid
from signalbook.spec.protocols import find_protocol, stated_protocol
from signalbook.template import Template

__all__: list[str] = []

NAME_AND_VERSION = re.compile(r"[^/\s]+/\S+")
NAME = re.compile(r"[^/\s]+(/\S+)?")
ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:\S+")


def section(attrs: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The object at `path`, or an empty one."""
    for name in path:
        value = attrs.get(name)
        if value.__class__ is not dict:
            return _EMPTY
        attrs = value
    return attrs


_EMPTY: Mapping[str, Any] = {}


def is_template(value: object) -> bool:
    """Whether a value has a placeholder, and so says little before it is filled in."""
    return isinstance(value, str) and "{" in value


# --- envelope and protocol --------------------------------------------------------------------------------------


def named(attribute: str, form: re.Pattern[str], words: str) -> Check:
    """A check that the attribute's value has the form."""

    def check(subject: Subject) -> Iterator[Finding]:
        value = subject.whole[attribute]
        if isinstance(value, str) and not form.fullmatch(value):
            yield (attribute,), f"value ({value}) must be {words}"

    return check


def of_group(attribute: str) -> Check:
    """M-3, E-3: a message has its group's value, or a more precise one where the group names no version."""

    def check(subject: Subject) -> Iterator[Finding]:
        own, groups = subject.whole[attribute], subject.group.get(attribute)
        if not (isinstance(own, str) and isinstance(groups, str) and groups):
            return
        if own.lower() != groups.lower() and not own.lower().startswith(groups.lower() + "/"):
            yield (attribute,), f"value ({own}) must be the same as that of its group ({groups})"

    return check


def stated(attribute: str, because: str) -> Check:
    """M-4, M-8: the text requires the attribute, the published model does not."""

    def check(subject: Subject) -> Iterator[Finding]:
        if attribute not in subject.attrs and "basemessage" not in subject.attrs:
            yield (attribute,), f"is missing although {because}"

    return check


def protocoloptions_stated(subject: Subject) -> Iterator[Finding]:
    """M-8: the text requires the options of a protocol; who says to have none needs none."""
    if stated_protocol(subject.attrs.get("protocol")) is not None:
        yield from stated("protocoloptions", "a protocol is set")(subject)


def envelope_stated(subject: Subject) -> Iterator[Finding]:
    """M-4: a message repeats the envelope of its group, since it may be borrowed by others."""
    if subject.group.get("envelope") and "envelope" not in subject.attrs and "basemessage" not in subject.attrs:
        yield ("envelope",), f"is missing although its group has one ({subject.group['envelope']})"


# --- basemessage ------------------------------------------------------------------------------------------------


def base_reference(subject: Subject) -> Iterator[Finding]:
    """M-5: an absolute URI, which nobody checks, or the xid of a message or of its version."""
    base = subject.attrs.get("basemessage")
    if not isinstance(base, str) or ABSOLUTE.fullmatch(base):
        return
    try:
        xid = Xid.parse(base)
    except ValueError as problem:
        yield ("basemessage",), f"value ({base}) must be an absolute URI or the xid of a message: {problem}"
        return
    if xid.resources != "messages" or xid.kind == "meta":
        yield ("basemessage",), f"value ({base}) must be the xid of a message or of its version"


def uri_reference(name: str) -> Check:
    """Return the check that an attribute is a URI reference (RFC 3986)."""

    def check(subject: Subject) -> Iterator[Finding]:
        value = subject.attrs.get(name)  # it may be there by the base alone
        if isinstance(value, str) and not is_uri_reference(value):
            yield (name,), f"value ({value}) must be a URI or a relative reference"

    return check


def base_chain(subject: Subject) -> Iterator[Finding]:
    """M-5: following the references never comes back to a message already seen."""
    chain = [message_of(subject.xid)]
    attrs: Mapping[str, Any] | None = subject.attrs
    while attrs is not None:
        base = attrs.get("basemessage")
        if not isinstance(base, str) or not base.startswith("/"):
            return
        message = message_of(base)
        if message in chain:
            yield ("basemessage",), f"must not lead back to a message: {' -> '.join([*chain, message])}"
            return
        chain.append(message)
        if len(chain) > MAX_CHAIN:
            yield ("basemessage",), f"must not lead through more than {MAX_CHAIN} messages"
            return
        attrs = subject.lookup(base)


# --- payload ----------------------------------------------------------------------------------------------------


def one_dataschema(subject: Subject) -> Iterator[Finding]:
    """M-9: the schema is here or elsewhere."""
    if "dataschemauri" in subject.whole:
        yield ("dataschema",), 'must not be present together with "dataschemauri"'


def dataschema_has_format(subject: Subject) -> Iterator[Finding]:
    """M-9: a schema cannot be read without its format."""
    for name in ("dataschema", "dataschemauri"):
        if name in subject.attrs and not {"dataschemaformat", "basemessage"} & subject.attrs.keys():
            yield ("dataschemaformat",), f'must be present together with "{name}"'
            return


def dataschemaxid_agrees(subject: Subject) -> Iterator[Finding]:
    """M-10: the URI is the `self` of the entity that the xid names; it may point into the document."""
    xid, uri = subject.whole["dataschemaxid"], subject.whole.get("dataschemauri")
    if not isinstance(xid, str) or not isinstance(uri, str) or not xid:
        return
    root, found, rest = uri.partition("#")[0].replace("$details", "").rpartition(xid)
    if not found or (rest and not rest.startswith(":")) or (root and not ABSOLUTE.fullmatch(root)):
        yield ("dataschemauri",), f'value ({uri}) must be the "self" URL of "dataschemaxid" ({xid})'


def content_type_syntax(subject: Subject) -> Iterator[Finding]:
    """M-11: a media type as RFC 2046 has it."""
    value = subject.whole["datacontenttype"]
    words = fault(CONTENT_TYPE, Property.plain(value))
    if words is not None:
        yield ("datacontenttype",), f"value ({value}) {words}"


def content_types_agree(subject: Subject) -> Iterator[Finding]:
    """M-11: wherever the content type stands, it is the same; for a structured event it is the envelope's."""
    attrs = subject.whole
    found: list[tuple[Path, str]] = []
    templates: list[tuple[Path, str]] = []
    for path, value in _content_types(attrs):
        if isinstance(value, str):
            (found if Template.parse(value).literal else templates).append((path, value))
    options = section(attrs, "envelopeoptions") if is_event(attrs.get("envelope")) else _EMPTY
    mode, form = options.get("mode"), options.get("format")
    nested = mode == "structured" or (mode is None and any(_of_envelope(value) for _, value in found))
    if isinstance(form, str) and mode != "binary" and _of_envelope(form):
        nested = True
        found.insert(0, (("envelopeoptions", "format"), form))
    for path, value in found:
        if nested and not _of_envelope(value):
            yield path, f"value ({value}) must be the content type of the envelope, which holds the data"
            return
        if mode == "binary" and _of_envelope(value):
            yield path, f"value ({value}) must be the content type of the data, since the mode is binary"
            return
    event = section(attrs, "envelopemetadata", "datacontenttype").get("value")
    if isinstance(event, str) and is_event(attrs.get("envelope")) and not nested:
        of_event = (("envelopemetadata", "datacontenttype", "value"), event)
        (found if Template.parse(event).literal else templates).append(of_event)
    for path, value in found[1:]:
        if _media_type(value) != _media_type(found[0][1]):
            first = ".".join(str(step) for step in found[0][0])
            yield path, f'value ({value}) must be the same as "{first}" ({found[0][1]})'
    for path, value in templates if found else ():
        if not _may_be(value, found[0][1]):
            first = ".".join(str(step) for step in found[0][0])
            yield path, f'value ({value}) must allow the same value as "{first}" ({found[0][1]})'


def _may_be(template: str, content_type: str) -> bool:
    """Whether a content type with placeholders can be the other one, as far as type and subtype tell."""
    head = Template.parse(template.partition(";")[0].strip().lower()).as_whole()
    return head.match(content_type.partition(";")[0].strip().lower()) is not None


def _of_envelope(value: str) -> bool:
    return value.lower().startswith("application/cloudevents")


def _content_types(attrs: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    if "datacontenttype" in attrs:
        yield ("datacontenttype",), attrs["datacontenttype"]
    options = section(attrs, "protocoloptions")
    if "content_type" in options:
        yield ("protocoloptions", "content_type"), options["content_type"]
    if value := section(options, "properties", "content-type").get("value"):
        yield ("protocoloptions", "properties", "content-type", "value"), value
    for key, member in members(options, "headers"):
        if isinstance(member, dict) and str(member.get("name", key)).lower() == "content-type":
            yield ("protocoloptions", "headers", key, "value"), member.get("value")


def _media_type(value: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """RFC 2045: type and parameter names without case, parameters in any order, quoted or not."""
    kind, *parameters = value.split(";")
    pairs = (parameter.partition("=") for parameter in parameters if parameter.strip())
    return kind.strip().lower(), frozenset(
        (name.strip().lower(), text.strip().strip('"').lower()) for name, _, text in pairs
    )


# --- property definitions ---------------------------------------------------------------------------------------


def members(options: Mapping[str, Any], name: str) -> Iterator[tuple[str | int, Any]]:
    """The members of an array or a map, each with its key."""
    value = options.get(name)
    if isinstance(value, dict):
        return iter(value.items())
    return iter(enumerate(value)) if isinstance(value, list) else iter(())


def metadata_objects(subject: Subject) -> Iterator[Finding]:
    """M-8: whatever the envelope or the protocol is."""
    for name in ("envelopemetadata", "envelopeoptions", "protocoloptions"):
        if not isinstance(subject.attrs.get(name, {}), dict):
            yield (name,), "must be an object"


def properties(subject: Subject) -> Iterator[Finding]:
    """M-12, M-13: a value is one that a message can have: of its type, stated or implied."""
    attrs = subject.whole
    protocol = find_protocol(attrs.get("protocol")) or ""
    event = is_event(attrs.get("envelope"))
    for path, place, given in stated_properties(attrs, event, protocol):
        if (words := form_fault(place, given)) is not None:
            yield path, words
        elif (words := fault(place, given)) is not None and path != _SPECVERSION:
            yield path if given.is_plain else (*path, "value"), f"value ({given.value}) {words}"
    for path, member in _property_definitions(attrs):
        if member.get("description") == "":
            yield (*path, "description"), "must not be empty"
        specurl = member.get("specurl")
        if isinstance(specurl, str) and not is_uri_reference(specurl):
            yield (*path, "specurl"), f"value ({specurl}) must be a URI or a relative reference"
        # Another envelope or protocol implies no type, yet all have these definitions in common.
        if "type" in member and not (event if path[0] == "envelopemetadata" else protocol):
            given = Property.of(member)
            words = fault(_ANY, given) if form_fault(_ANY, given) is None else None
            if words is not None:
                yield (*path, "value"), f"value ({member.get('value')}) {words}"


_ANY = Place("any", nests=True)
_SPECVERSION = ("envelopemetadata", "specversion")  # has a rule of its own
_SECTIONS = frozenset(
    {
        *("properties", "application-properties", "message-annotations", "delivery-annotations", "footer"),
        *("headers", "query", "user_properties"),
    }
)


def _property_definitions(attrs: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for key, member in members(attrs, "envelopemetadata"):
        if isinstance(member, dict):
            yield ("envelopemetadata", key), member
    options = section(attrs, "protocoloptions")
    for name in _SECTIONS.intersection(options):
        for key, member in members(options, name):
            if isinstance(member, dict):
                yield ("protocoloptions", name, key), member
