"""What the message specification says about definitions and a model cannot: one check a rule.

Rule 1: a check sees canonical attributes that passed the model, yet trusts no shape: another model may be in place.
Rule 2: what a definition may inherit from its `basemessage` is not missing.

message/spec.md of 1.0-rc2 (texts of September 2025 and May 2026) and 1.0-rc4; M-n are the rules of the digest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from signalbook.budget import of_value, spend
from signalbook.cloudevents.attributes import is_uri_reference
from signalbook.errors import Problem, RegistryError
from signalbook.model.normalise import aligned, is_event, to_canonical
from signalbook.model.xids import Xid
from signalbook.protocols.message import BINDINGS, OPTIONS, find_protocol, stated_properties, stated_protocol
from signalbook.protocols.values import (
    CONTENT_TYPE,
    NOW,
    Property,
    PropertyPlace,
    PropertySection,
    canonical,
    fault,
    form_fault,
)
from signalbook.spec.builtin import MESSAGE
from signalbook.template import Template

__all__ = [
    "INHERITED",
    "MAX_CHAIN",
    "OF_GROUP",
    "SELECTORS",
    "Check",
    "Finding",
    "Level",
    "Path",
    "Rule",
    "RuleSet",
    "Severity",
    "Subject",
    "chosen",
    "derived",
    "merge",
    "message_of",
    "nearest",
    "whole",
]

# A named rule as a value: what it is asked about, and how it answers.
#
# Rule 1: a check takes a `Subject` and yields findings; it reads nothing else and changes nothing.


Path = tuple[str | int, ...]
Finding = tuple[Path, str]
Level = Literal["group", "version"]
Severity = Literal["error", "warning"]


def _nothing(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Subject:
    """One entity in canonical spelling, with its owning group and a way to look at others by xid.

    `lookup` gives the attributes of a group, of a resource's default version or of a version, or None. `by_model` gives
    the faults that the entity would have by its model with other attributes. `whole` is a message definition with what
    it has from its bases and its group (`inherited`), and any other entity as it is.
    """

    xid: str
    attrs: Mapping[str, Any]
    group: Mapping[str, Any] = field(default_factory=dict)
    lookup: Callable[[str], Mapping[str, Any] | None] = _nothing
    by_model: Callable[[Mapping[str, Any], str], Iterator[Problem]] | None = None
    inherited: Mapping[str, Any] | None = None

    @property
    def whole(self) -> Mapping[str, Any]:
        """The entity with what it inherits."""
        return self.attrs if self.inherited is None else self.inherited


Check = Callable[[Subject], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: `check` runs where the attribute `on` is present ("" is always) and the protocol is one of `protocols`.

    Both are asked of the entity with what it inherits. `reads` names the attributes of the owning group that it looks
    at.
    """

    name: str
    text: str
    check: Check
    domain: str
    level: Level
    on: str = ""
    protocols: tuple[str, ...] = ()
    severity: Severity = "error"
    reads: tuple[str, ...] = ()

    def problem(self, path: Path, words: str) -> Problem:
        """A finding as the specification's error `invalid_attribute`."""
        detail = f"{words} [{self.name}]"
        pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
        name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
        return Problem(pointer, "invalid_attribute", detail, {"name": name, "error_detail": detail})


@dataclass(frozen=True, slots=True, eq=False)
class RuleSet:
    """The rules for entities of one type and level, found once: `rules.rule_set` makes it, `check` asks it.

    A message definition `inherits`: it is checked with what it has from its bases and its group. Warnings alone say
    nothing about what a model finds.
    """

    rules: tuple[Rule, ...] = ()
    inherits: bool = False
    warnings_only: bool = False
    _by_protocol: dict[str, tuple[Rule, ...]] = field(default_factory=dict)

    def check(self, subject: Subject) -> Iterator[Problem]:
        """The findings of all rules about one entity, in the order of the table."""
        if self.inherits:
            try:
                found = whole(subject.xid, subject.attrs, subject.group, subject.lookup)
            except RegistryError as error:  # what comes together contradicts itself
                if not self.warnings_only:
                    yield Problem("", error.name, str(error), {key: str(value) for key, value in error.args_.items()})
                return
            if found is not subject.attrs:
                # A few bytes can inherit very much, all of which is checked.
                spend(of_value([found.get(name) for _, metadata in SELECTORS for name in metadata]))
                subject = replace(subject, inherited=found)
                if not self.warnings_only:
                    yield from _by_model(subject)
        attrs = subject.whole
        for rule in self._applicable(find_protocol(attrs.get("protocol")) or ""):
            if rule.on in attrs or not rule.on:
                for path, words in rule.check(subject):
                    yield rule.problem(path, words)

    def _applicable(self, protocol: str) -> tuple[Rule, ...]:
        found = self._by_protocol.get(protocol)
        if found is None:
            found = tuple(rule for rule in self.rules if not rule.protocols or protocol in rule.protocols)
            self._by_protocol[protocol] = found
        return found


def _by_model(subject: Subject) -> Iterator[Problem]:
    """What a model finds in a definition once it knows which metadata are for which envelope and protocol."""
    own, found = subject.attrs, subject.whole
    named = {
        name: found[name]
        for selector, metadata in SELECTORS
        for name in (selector, *metadata)
        if name in found and found[name] != own.get(name)
    }
    if named and subject.by_model is not None:
        yield from subject.by_model(to_canonical(MESSAGE, {**own, **named}, subject.xid), subject.xid)


# What a message definition is with what it has from its bases and its group: the definition that rules are asked about.
#
# Rule 1: maps merge deep, arrays and scalars replace, the nearer definition wins, null removes what was inherited.
# Rule 2: the payload schema is one piece: who sets `dataschema`, `dataschemauri` or `dataschemaxid` inherits none of
# the three.
# Rule 3: a definition with metadata of an envelope, or with options of a protocol, that names none has its group's, or
# else that of a group of its bases, the nearest first (message/spec.md, Message Groups: all messages inside a group use
# the same envelope and the same protocol).


Attributes = Mapping[str, Any]

MAX_CHAIN = 100  # definitions in one basemessage chain; a longer one is a mistake, and each write walks it
# What rules look at of that which a definition may have from its base.
INHERITED = frozenset(
    {
        *("basemessage", "envelope", "envelopemetadata", "envelopeoptions", "protocol", "protocoloptions"),
        *("dataschema", "dataschemaformat", "dataschemauri", "dataschemaxid", "datacontenttype"),
    }
)
_SCHEMA = ("dataschema", "dataschemauri", "dataschemaxid")
# What of a definition is for the envelope, and what for the protocol, that it has.
SELECTORS = (
    ("envelope", frozenset({"envelopemetadata", "envelopeoptions"})),
    ("protocol", frozenset({"protocoloptions"})),
)
_FRAMING = "dataschemaframing"
OF_GROUP = (*(selector for selector, _ in SELECTORS), _FRAMING)
"""What a definition may have from its group."""

_MAX_DEPTH = 64


def merge(base: Attributes, nearer: Attributes) -> dict[str, Any]:
    """What `nearer` is once it inherits from `base`."""
    if any(name in nearer for name in _SCHEMA):
        base = {name: value for name, value in base.items() if name not in _SCHEMA}
    return _merged({name: value for name, value in base.items() if name != "basemessage"}, aligned(base, nearer), 0)


def _merged(base: Attributes, nearer: Attributes, depth: int) -> dict[str, Any]:
    merged = dict(base)
    for name, value in nearer.items():
        inherited = merged.get(name)
        if value is None:
            merged.pop(name, None)
        elif depth == 0 and name in _SCHEMA:
            merged[name] = value
        elif isinstance(value, Mapping) and depth < _MAX_DEPTH:
            own = not isinstance(inherited, Mapping)
            merged[name] = _stated(value, depth + 1) if own else _merged(inherited or {}, value, depth + 1)
        else:
            merged[name] = value
    return merged


def _stated(value: Attributes, depth: int) -> Attributes:
    """An object that inherits nothing: itself where it takes nothing away, else another without that."""
    found = {
        name: _stated(member, depth + 1) if isinstance(member, Mapping) and depth < _MAX_DEPTH else member
        for name, member in value.items()
        if member is not None
    }
    return value if all(found.get(name, found) is member for name, member in value.items()) else found


def derived(base: Attributes, own: Attributes, group: Attributes, subject: str = "") -> tuple[Attributes, Attributes]:
    """A definition's own attributes, spelled as what it inherits wants them, and the definition that they make."""
    selected = _selectors({**base, **own}, group)
    own = _spelled(own, selected)
    return own, chosen(merge(_spelled(base, selected), own), group, subject)


def chosen(document: Attributes, group: Attributes, subject: str = "") -> Attributes:
    """The definition with its group's envelope or protocol, where it has metadata of one and does not name it.

    How payloads are framed, too, is the group's to say where the message does not.
    """
    found = _selectors(document, group)
    if isinstance(framing := group.get(_FRAMING), str):
        found[_FRAMING] = framing
    added = {name: value for name, value in found.items() if name not in document}
    return to_canonical(MESSAGE, {**document, **added}, subject) if added else document


def _selectors(document: Attributes, group: Attributes) -> dict[str, str]:
    """The envelope and the protocol that a definition has: those it states or inherits, else its group's."""
    found = {}
    for selector, metadata in SELECTORS:
        named = document.get(selector)
        if selector not in document and not metadata.isdisjoint(document):
            named = group.get(selector)
        if isinstance(named, str):
            found[selector] = named
    return found


def _spelled(attributes: Attributes, selected: Mapping[str, str]) -> Attributes:
    """Attributes as the envelope and the protocol want them that they do not state themselves."""
    added = {name: value for name, value in selected.items() if name not in attributes}
    if not added:
        return attributes
    spelled = to_canonical(MESSAGE, {**attributes, **added})
    return {name: value for name, value in spelled.items() if name not in added}


def message_of(xid: str) -> str:
    """The xid of the message that an xid is, or is a version of."""
    return xid.partition("/versions/")[0]


def whole(xid: str, attrs: Attributes, group: Attributes, lookup: Callable[[str], Attributes | None]) -> Attributes:
    """The definition at an xid as it is matched; `attrs` themselves where nothing is inherited.

    `lookup` gives the attributes of a message or of a group. A chain is followed as far as it leads.
    """
    base = attrs.get("basemessage")
    if not isinstance(base, str) or not base.startswith("/"):
        return chosen(attrs, group, xid)
    chain = [(xid, attrs, group)]
    seen = {message_of(xid)}
    while isinstance(base, str) and base.startswith("/") and len(chain) < MAX_CHAIN:
        message = message_of(base)
        found = lookup(base) if message not in seen else None
        if found is None:
            break
        seen.add(message)
        chain.append((base, found, lookup(message.rsplit("/", 2)[0]) or {}))
        base = found.get("basemessage")
    document: Attributes | None = None
    for place, own, owner in reversed(chain):
        document = chosen(own, owner, place) if document is None else derived(document, own, owner, place)[1]
    assert document is not None, "a chain has at least the definition itself"
    return chosen(document, nearest([owner for _, _, owner in chain]), xid)


def nearest(groups: Iterable[Attributes]) -> dict[str, str]:
    """The envelope and the protocol of groups, the nearest first, of which the first that states one says which."""
    found: dict[str, str] = {}
    for group in groups:
        for selector, _ in SELECTORS:
            if isinstance(stated := group.get(selector), str) and stated:
                found.setdefault(selector, stated)
    return found


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
    for path, value in content_types(attrs):
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


def content_types(attrs: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Every place where a definition states the content type, with what it says there."""
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
            shown = canonical(given.value)
            yield path if given.is_plain else (*path, "value"), f"value ({shown}) {words}" if shown else words
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
                yield (*path, "value"), f"value ({canonical(given.value)}) {words}"


_ANY = PropertyPlace("any", nests=True)
_SPECVERSION = ("envelopemetadata", "specversion")  # has a rule of its own
_SECTIONS = frozenset(
    name
    for options in OPTIONS.values()
    for name, place in options.items()
    if isinstance(place, PropertySection) and not place.plain
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


# What the message specification says about CloudEvents and about each protocol, and a model cannot: one check a rule.
#
# Rule 1: as above, a check sees canonical attributes and trusts no shape.
# Rule 2: a value with a placeholder says little before it is filled in, and is not checked.


# --- CloudEvents ------------------------------------------------------------------------------------------------

_ALWAYS_THERE = ("id", "source", "specversion", "type")
_ATTRIBUTE = re.compile(r"[a-z0-9]+")


def _event(subject: Subject) -> Mapping[str, Any]:
    """The declared attributes of a CloudEvent; another envelope has metadata of its own."""
    return section(subject.whole, "envelopemetadata") if is_event(subject.whole.get("envelope")) else {}


def _own_event(subject: Subject) -> Mapping[str, Any]:
    """Those that the definition declares itself: what it inherits is checked at its base."""
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
    """E-5: only a structured event has a format; a protocol may have no place for the attributes of a binary one."""
    options = section(subject.whole, "envelopeoptions") if is_event(subject.whole.get("envelope")) else {}
    if options.get("mode") != "binary":
        return
    if options.get("format") is not None:
        yield ("envelopeoptions", "format"), 'must not be present when "mode" is binary'
    binding = BINDINGS.get(find_protocol(subject.whole.get("protocol")) or "")
    if binding is not None and "binary" not in binding.modes:
        name = binding.protocol.replace("/", " ")
        yield ("envelopeoptions", "mode"), f"must not be binary: {name} carries events in structured mode only"


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
