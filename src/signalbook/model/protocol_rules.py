"""What the specifications say about endpoints, schemas and the options of each protocol, and a model cannot.

One check a rule.

Rule 1: as in `message_rules`, a check sees canonical attributes and trusts no shape.
Rule 2: a placeholder may stand in any string option, so a value with one is not checked.

endpoint/spec.md and schema/spec.md at commit 7f31467 (1.0-rc2) and at 1.0-rc4; E-n are the rules of the digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from signalbook.cloudevents.attributes import EVENT, flaw, is_name
from signalbook.model.message_rules import ABSOLUTE, Check, Finding, Path, Subject, content_types, is_template, section
from signalbook.model.normalise import is_event
from signalbook.model.xids import Xid, is_authority
from signalbook.protocols.message import (
    BINDINGS,
    OPTIONS,
    PROTOCOLS,
    exclusion_faults,
    find_protocol,
    is_protocol_name,
    stated_names,
)
from signalbook.protocols.protocol import Binding
from signalbook.protocols.values import (
    NOW,
    TEXTS,
    Property,
    PropertyPlace,
    PropertySection,
    ValueForm,
    attribute_place,
    canonical,
    fault,
    is_of,
    name_fault,
    named_members,
    same,
    unique_fault,
    value_template,
)
from signalbook.template import Template, TemplateRun

USAGES = ("subscriber", "consumer", "producer")


def _options(subject: Subject) -> Mapping[str, Any]:
    return section(subject.attrs, "protocoloptions")


def _objects(subject: Subject, name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    value = _options(subject).get(name)
    for index, member in enumerate(value if isinstance(value, list) else ()):
        if isinstance(member, dict):
            yield index, member


def _usage(subject: Subject) -> list[str]:
    usage = subject.attrs.get("usage")
    return [str(role) for role in usage] if isinstance(usage, list) else []


# --- names and authorities --------------------------------------------------------------------------------------


def protocol_name(subject: Subject) -> Iterator[Finding]:
    """M-2: a name, or a name and a version; one of ours has a version that is well formed."""
    value = subject.whole["protocol"]
    if isinstance(value, str) and not is_protocol_name(value):
        yield ("protocol",), f"value ({value}) must be a name, or a name and a version separated by a slash"


def authority(subject: Subject) -> Iterator[Finding]:
    """Message Catalog 0.1, 2.2.4: a URI, or a name without a scheme."""
    value = subject.attrs.get("authority")  # it may be there by the base alone
    if isinstance(value, str) and value and not is_authority(value):
        yield ("authority",), f"value ({value}) must be a URI"


# --- usage, channel, envelope -----------------------------------------------------------------------------------


def usage_values(subject: Subject) -> Iterator[Finding]:
    """E-1: one or more of the three roles."""
    usage = subject.attrs["usage"]
    if not isinstance(usage, list):
        return
    if not usage:
        yield ("usage",), "must have at least one value"
    for index, role in enumerate(usage):
        if role not in USAGES:
            yield ("usage", index), f"value ({role}) must be one of: {', '.join(USAGES)}"


def usage_stated(subject: Subject) -> Iterator[Finding]:
    """E-1: the text requires it, the published model does not."""
    if "usage" not in subject.attrs:
        yield ("usage",), "is missing"


def usage_single(subject: Subject) -> Iterator[Finding]:
    """E-1: one role, or subscriber and consumer together where one connection serves both (since 1.0-rc4)."""
    usage = _usage(subject)
    if len(usage) < 2:
        return
    if sorted(usage) != ["consumer", "subscriber"] or subject.attrs.get("protocol") in ("HTTP", "KAFKA"):
        yield ("usage",), f"values ({', '.join(usage)}) should be those of separate endpoints"


def not_empty(attribute: str) -> Check:
    """E-2: a string that says something."""

    def check(subject: Subject) -> Iterator[Finding]:
        if subject.attrs[attribute] == "":
            yield (attribute,), "must not be empty"

    return check


def envelope_format(subject: Subject) -> Iterator[Finding]:
    """E-5: only a structured event has a format."""
    options = section(subject.attrs, "envelopeoptions")
    if options.get("mode") == "binary" and "format" in options:
        yield ("envelopeoptions", "format"), 'must not be present when "mode" is binary'


# --- addresses and authorization --------------------------------------------------------------------------------


def address_absolute(subject: Subject) -> Iterator[Finding]:
    """E-6: an address is a whole one."""
    for index, member in _objects(subject, "endpoints"):
        uri = member.get("uri")
        if isinstance(uri, str) and not is_template(uri) and not ABSOLUTE.fullmatch(uri):
            yield ("protocoloptions", "endpoints", index, "uri"), f"value ({uri}) must be an absolute URI"


def address_scheme(subject: Subject) -> Iterator[Finding]:
    """E-12: the scheme is one of the protocol's."""
    row = PROTOCOLS.get(str(subject.attrs.get("protocol")))
    schemes = row.schemes if row is not None else ()
    for index, member in _objects(subject, "endpoints"):
        uri = member.get("uri")
        if schemes and isinstance(uri, str) and ":" in uri and uri.partition(":")[0].lower() not in (*schemes, "{"):
            words = f"value ({uri}) should have one of the schemes: {', '.join(schemes)}"
            yield ("protocoloptions", "endpoints", index, "uri"), words


def bootstrap_servers(subject: Subject) -> Iterator[Finding]:
    """E-6: where there is a list of brokers, it names some."""
    for index, member in _objects(subject, "endpoints"):
        servers = member.get("bootstrap.servers")
        if isinstance(servers, list) and (not servers or "" in servers):
            path = ("protocoloptions", "endpoints", index, "bootstrap.servers")
            yield path, "must name at least one server, and none by an empty string"


def authorization_values(subject: Subject) -> Iterator[Finding]:
    """E-7: what is stated says something."""
    for index, member in _objects(subject, "authorization"):
        for name in ("type", "mechanism", "resourceuri", "authorityuri", "granttypes"):
            if member.get(name) in ("", []):
                yield ("protocoloptions", "authorization", index, name), "must not be empty"


def authorization_type(subject: Subject) -> Iterator[Finding]:
    """E-7: the kinds that clients know."""
    known = ("oauth2", "plain", "sasl", "x509cert", "apikey")
    for index, member in _objects(subject, "authorization"):
        kind = member.get("type")
        if isinstance(kind, str) and kind and kind.lower() not in known:
            words = f"value ({kind}) should be one of: OAuth2, Plain, SASL, X509Cert, APIKey"
            yield ("protocoloptions", "authorization", index, "type"), words


def sasl_mechanism(subject: Subject) -> Iterator[Finding]:
    """E-7: only SASL has mechanisms."""
    for index, member in _objects(subject, "authorization"):
        if "mechanism" in member and str(member.get("type", "")).lower() != "sasl":
            yield ("protocoloptions", "authorization", index, "mechanism"), 'must only be present when "type" is SASL'


def messagegroup_references(subject: Subject) -> Iterator[Finding]:
    """E-9: an absolute URI, which nobody checks, or the xid of a message group."""
    groups = subject.attrs["messagegroups"]
    for index, reference in enumerate(groups if isinstance(groups, list) else ()):
        if not isinstance(reference, str) or ABSOLUTE.fullmatch(reference):
            continue
        try:
            xid = Xid.parse(reference)
        except ValueError:
            xid = Xid()
        if xid.kind != "group" or xid.groups != "messagegroups":
            words = f"value ({reference}) must be an absolute URI or the xid of a message group"
            yield ("messagegroups", index), words


# --- protocols --------------------------------------------------------------------------------------------------


def either_option(one: str, other: str) -> Check:
    """E-10: an endpoint publishes to a name or subscribes with a filter."""

    def check(subject: Subject) -> Iterator[Finding]:
        if {one, other} <= _options(subject).keys():
            yield ("protocoloptions", other), f'must not be present together with "{one}"'

    return check


def needs_option(option: str, needed: str) -> Check:
    """E-10: sharing is a matter of subscriptions."""

    def check(subject: Subject) -> Iterator[Finding]:
        options = _options(subject)
        if option in options and needed not in options:
            yield ("protocoloptions", option), f'must only be present together with "{needed}"'

    return check


def shared_group_name(subject: Subject) -> Iterator[Finding]:
    """E-10: the bare name of the group; MQTT puts it between slashes itself."""
    group = _options(subject).get("sharedsubscriptiongroup")
    if isinstance(group, str) and "/" in group:
        yield ("protocoloptions", "sharedsubscriptiongroup"), f'value ({group}) must not contain "/"'


def consumer_group(subject: Subject) -> Iterator[Finding]:
    """E-10: a consumer joins a group, a subscriber makes one (since 1.0-rc4)."""
    usage, options = _usage(subject), _options(subject)
    if "consumer" in usage and not options.get("consumergroup"):
        yield ("protocoloptions", "consumergroup"), "should be present, since a consumer joins a group"
    if usage == ["subscriber"] and "consumergroup" in options:
        yield ("protocoloptions", "consumergroup"), "should not be present, since a subscriber makes the group"


def consumer_options(subject: Subject) -> Iterator[Finding]:
    """E-10: offsets are a consumer's."""
    usage = _usage(subject)
    if not usage or "consumer" in usage:
        return
    for name in ("autooffsetreset", "enableautocommit"):
        if name in _options(subject):
            yield ("protocoloptions", name), "must only be present for a consumer"


# --- schemas ----------------------------------------------------------------------------------------------------


def schema_format_stated(subject: Subject) -> Iterator[Finding]:
    """S-2: the published model requires it, the text does not; without it nothing is validated."""
    if "format" not in subject.attrs:
        yield ("format",), "is missing, so the document is not validated"


# --- options of messages by protocol ---------------------------------------------------------------------------


def exclusions(subject: Subject) -> Iterator[Finding]:
    """M-18: a response has a status, a request a method; a record has one key."""
    protocol = find_protocol(subject.whole.get("protocol")) or ""
    for option, words in exclusion_faults(protocol, subject.whole.get("protocoloptions")).items():
        yield ("protocoloptions", option), words


def names(*parts: str) -> Check:
    """M-18: names that can be sent, in these parts."""

    def check(subject: Subject) -> Iterator[Finding]:
        for path, part, name in _names(subject):
            words = name_fault(part, name) if path[1] in parts else None
            if words is not None:
                yield (*path, "name") if isinstance(path[-1], int) else path, words

    return check


def binding_agrees(subject: Subject) -> Iterator[Finding]:
    """M-16: a binary event has each attribute in a property of its message, so what both say is the same."""
    faults = binding_faults(subject.whole)
    for (field_name, key), words in faults.items():
        path = ("protocoloptions", field_name, key)
        value = Property.of(section(subject.whole, "protocoloptions")[field_name][key]).value
        yield ((*path, "value"), f"value ({canonical(value)}) {words}") if value is not None else (path, words)


def binding_faults(attrs: Mapping[str, Any]) -> Mapping[tuple[str, str | int], str]:
    """The properties of a canonical definition's protocol that are attributes of an event, and that no event can have.

    Each by its field and its key there, with words that follow it: its value is not one of the attribute, or
    contradicts what the envelope says of the attribute.
    """
    protocol = find_protocol(attrs.get("protocol")) or ""
    binding = BINDINGS.get(protocol)
    if binding is None or not binding.attributes_in or not is_event(attrs.get("envelope")) or _is_structured(attrs):
        return {}
    field_name = binding.attributes_in
    places = OPTIONS[protocol][field_name]
    assert isinstance(places, PropertySection), "attributes are carried in named properties"
    metadata = section(attrs, "envelopemetadata")
    found: dict[tuple[str, str | int], str] = {}
    for key, name, member in named_members(section(attrs, "protocoloptions").get(field_name)):
        attribute = _attribute_in(binding, name)
        if attribute is not None and attribute != "datacontenttype":
            stated = metadata.get(attribute)
            given = Property() if stated is None else Property.of(stated)
            own = _Stated(attribute_place(attribute, stated, attrs), given, attribute)
            carried = _Stated(places.place(name), Property.of(member))
            if (words := _Carried(binding, places, own, carried).fault()) is not None:
                found[field_name, key] = words
    return found


def _attribute_in(binding: Binding, name: str) -> str | None:
    """The attribute that a binary event has in the property of this name, if any."""
    name = name.lower() if binding.any_case else name
    prefix = next((one for one in binding.prefixes if name.startswith(one)), None)
    attribute = name.removeprefix(prefix) if prefix is not None else ""
    return attribute if is_name(attribute) else None


def _is_structured(attrs: Mapping[str, Any]) -> bool:
    """Whether the definition says that the event holds its data, so that nothing is read from properties."""
    options = section(attrs, "envelopeoptions")
    texts = (options.get("format"), *(value for _, value in content_types(attrs)))
    return str(options.get("mode")).lower() == "structured" or (
        options.get("mode") is None and any(str(one).lower().startswith(EVENT) for one in texts)
    )


class _Stated:
    """What a definition says of an attribute: in its envelope, or in the property that carries it.

    It has a `template`, a `constant`, or neither, where it leaves the value open.
    """

    __slots__ = ("attribute", "constant", "given", "kind", "place", "template")

    def __init__(self, place: PropertyPlace, given: Property, attribute: str = "") -> None:
        self.place = place
        self.given = given
        self.attribute = attribute
        value, kind = given.value, place.kind(given.type, given.value)
        self.kind = "any" if place.several and given.type is None else kind
        self.template: Template | None = None
        self.constant: str | None = None
        if value.__class__ is str and kind in TEXTS:
            parsed = value_template(value, kind, attribute, is_content_type=place.is_content_type)
            self.template = None if parsed.literal else parsed
        if value is not None and self.template is None and not (kind == "timestamp" and value == NOW):
            self.constant = canonical(value)

    def takes(self, text: str) -> bool:
        """Whether a text is as it is stated."""
        if self.template is not None:
            return self.template.captures(text) is not None
        if self.constant is not None:
            return text == self.constant or same(self.kind, text, self.constant)
        return is_of(self.kind, ValueForm.TEXT, text)


@dataclass(frozen=True, slots=True)
class _Carried:
    """An attribute of an event as the envelope states it (`own`) and as the property does that carries it."""

    binding: Binding
    places: PropertySection
    own: _Stated
    carried: _Stated

    def fault(self) -> str | None:
        """What is wrong with the property, in words that follow its place."""
        own, carried = self.own, self.carried
        if fault(own.place, own.given) is not None or fault(carried.place, carried.given) is not None:
            return None  # it is named at its own place
        one, other = own.template, carried.template
        if one is not None and other is not None:
            return None if _may_meet(one, other) else self._words()
        wrong = [self._text_fault(text) for text in dict.fromkeys(self._texts())]
        return next(filter(None, wrong)) if wrong and all(wrong) else None

    def _texts(self) -> Iterator[str]:
        """Texts of the property of which one is right if any can be."""
        own, carried = self.own, self.carried
        if carried.constant is not None:
            yield carried.constant
        if own.constant is not None:
            yield own.constant
            with suppress(ValueError):
                written = self.binding.write_value(own.constant)
                yield written if isinstance(written, str) else own.constant
        template = carried.template
        if template is not None and template.has_literal_text and own.constant is None:
            for text in own.place.fillings:
                yield template.expand(dict.fromkeys(template.names, text))

    def _text_fault(self, text: str) -> str | None:
        """Why an event cannot have the text in the property; None where it can."""
        try:
            read = canonical(self.binding.read_value(self.places.write("string", text)))
        except ValueError as error:
            return str(error)
        words = flaw(self.own.attribute, read)
        if words is not None:
            return f'must be one of the attribute "{self.own.attribute}" of an event, which {words}'
        return None if self.own.takes(read) and self.carried.takes(text) else self._words()

    def _words(self) -> str:
        own = self.own
        place = f"envelopemetadata.{own.attribute}"
        if own.given.value is None:
            return f'must be of the type of "{place}" ({own.given.type or own.place.name})'
        return f'must be the same as "{place}.value" ({canonical(own.given.value)})'


def _may_meet(one: Template, other: Template) -> bool:
    """Whether a text can be that of both templates."""
    if "%" in one.text or "%" in other.text:  # it may be percent-encoded in one of them alone
        return True
    if any(template.whole or any(place.reserved for place in template.placeholders) for template in (one, other)):
        return _segments_meet(one.literals, other.literals)
    first, second = TemplateRun.of(one.literals), TemplateRun.of(other.literals)
    return first.separators == second.separators and all(map(_segments_meet, first.segments, second.segments))


def _segments_meet(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether a text can be that of both, each of literals with a placeholder between each two."""
    if len(one) == 1 or len(other) == 1:
        literals, text = (other, one[0]) if len(one) == 1 else (one, other[0])
        return TemplateRun((tuple(literals),), "").whole(text, 0, [])
    return _begins(one[0], other[0]) and _begins(one[-1][::-1], other[-1][::-1])


def _begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def unique_names(subject: Subject) -> Iterator[Finding]:
    """message/spec.md, AMQP/1.0: a name is unique within its map, whatever the keys are."""
    seen: dict[str | int, set[str]] = {}
    for path, part, name in _names(subject):
        taken = seen.setdefault(path[1], set())
        if (words := unique_fault(part, name, taken)) is not None:
            yield path, words
        taken.add(name)


def _names(subject: Subject) -> Iterator[tuple[Path, PropertySection, str]]:
    return stated_names(subject.whole, find_protocol(subject.whole.get("protocol")) or "")


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
