"""The places of a message for which a definition can state a value: which type each has, and what can never be there.

Rule 1: one table for all. A write refuses by it, lint names by it, a match is made by it, a build is typed by it.
Rule 2: a type that is stated wins; where none is, the text implies one (message/spec.md: `string`, or what the tables
of CloudEvents and of the protocols say). An implied `symbol` is ASCII text, since the text's own example has
`application/json` there; a stated one has letters, digits and underscores only.
Rule 3: what no message can be sent with (`protocols.sending`) is refused as well, names included: one test a place.
Rule 4: a value with placeholders is judged with the placeholders filled. In a `uritemplate` braces hold a name, or `+`
and a name, and what stands between them is what RFC 6570 allows; in other texts braces that hold
anything else are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from signalbook.cloudevents.attributes import flaw
from signalbook.cloudevents.media_type import read_media_type
from signalbook.protocols.sending import pair_flaws, text_flaw
from signalbook.protocols.types import EXACT, TEXTS, TYPES, is_stated
from signalbook.protocols.types import canonical as canonical_text
from signalbook.template import Template

__all__ = [
    "CONTENT_TYPE",
    "ENVELOPE",
    "EVENT_FORMAT",
    "EVENT_MODE",
    "NOW",
    "PLACES",
    "Place",
    "Property",
    "Section",
    "fault",
    "form_fault",
    "name_fault",
    "named_members",
    "section_fault",
    "stated_names",
    "stated_properties",
]

# message/spec.md, Property Definitions: the mark for the current time when building, for any when matching.
NOW = "0000-01-01T00:00:00Z"
_Test = Callable[[str], str | None]
# What is tried in the place of placeholders, one of them being enough: a word, or a number, which a port is.
_FILLINGS = ("x", "1")
_separators = re.compile("[/?#]").search
# RFC 6570 section 2.1, `literals`, with the apostrophe that erratum 6937 gives back.
_LITERAL = "[!#$&-;=?-\\[\\]_a-z~\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\uffef\U00010000-\U0010fffd]"
_control = re.compile("[\x00-\x1f\x7f]").search
_is_literal = re.compile(f"(?:{_LITERAL}|%[0-9A-Fa-f]{{2}})*").fullmatch


@dataclass(frozen=True, slots=True)
class Place:
    """A place for one value.

    `type` is that of `types` which holds where none is stated. With `several` it is only what a definition's
    own value has then: a message may have another. `types` are those that can be stated, where not all can. `test` says
    what is wrong with a text beyond its type, and `fillings` are tried in the place of placeholders, where `filled` is
    the test if it is another; with `whole` one that stands alone takes any text.
    """

    type: str = "string"
    several: bool = False
    types: frozenset[str] = TYPES
    test: _Test | None = None
    fillings: tuple[str, ...] = _FILLINGS
    whole: bool = False
    filled: _Test | None = None
    is_content_type: bool = False
    nests: bool = False  # AMQP has lists and maps, of the type `any`
    is_route: bool = False  # a topic or a subject, of which its protocol says what it may hold: it need not be a URI
    is_json: bool = False  # a number or a flag as JSON has it, not the text of one

    @property
    def name(self) -> str:
        """The type as a definition would state it."""
        return EXACT.get(self.type, self.type)

    def kind(self, stated: Any) -> str:
        """The type that holds here where a definition states one, or None."""
        if stated.__class__ is not str or (stated == "integer" and EXACT.get(self.type) == "integer"):
            return self.type
        return str(stated)


@dataclass(frozen=True, slots=True)
class Property:
    """What a definition states of one property: `type` and `value` are None where it leaves them open.

    `flaw` says what is wrong with the form in which it is stated, in words that follow its place.
    """

    type: Any = None
    value: Any = None
    required: bool = False
    flaw: str | None = None
    is_plain: bool = False

    @classmethod
    def of(cls, given: Any) -> Property:
        """The property that a property definition states."""
        if not isinstance(given, Mapping):
            return cls(flaw="must be an object")
        required = given.get("required")
        flaw = None if required is None or required.__class__ is bool else 'must have true or false for "required"'
        return cls(given.get("type"), given.get("value"), required is True, flaw)

    @classmethod
    def plain(cls, value: Any) -> Property:
        """The property that is stated by its value alone."""
        return cls(value=value, is_plain=True)


@dataclass(frozen=True, slots=True)
class Section:
    """Places by name: those that the text types, and any other; `plain` ones hold values, not property definitions."""

    named: Mapping[str, Place] = field(default_factory=dict)
    other: Place = field(default_factory=Place)
    plain: bool = False
    # Where a name, in lower case, is one that a content type stands under.
    content_type: str = ""
    # What is wrong with a name, in words that follow its place; and whether a message has a name once at most.
    name: _Test | None = None
    unique: bool = False

    def place(self, name: str) -> Place:
        """The place of a name."""
        if self.content_type and name.lower() == self.content_type:
            return CONTENT_TYPE
        return self.named.get(name, self.other)


def fault(place: Place, given: Property) -> str | None:
    """What is wrong with what a definition states at a place, in words that follow it; None where nothing is."""
    return form_fault(place, given) or _value_fault(place, given)


def form_fault(place: Place, given: Property) -> str | None:
    """What is wrong with how a property is stated, whatever its value is, in words that follow its place."""
    if given.flaw is not None or given.type is None:
        return given.flaw
    if given.type.__class__ is not str or given.type not in TYPES:
        return "has a type that is not one of a property"
    if given.type not in place.types:
        return f"has the type {given.type}, and its type must be one of: {', '.join(sorted(place.types))}"
    return None


def _value_fault(place: Place, given: Property) -> str | None:
    value = given.value
    if value is None:
        return None
    kind = place.kind(given.type)
    if kind == "uritemplate" and value.__class__ is str and (words := _template_flaw(place, value)) is not None:
        return words
    if value.__class__ is str and "{" in value and kind in TEXTS:
        template = Template.parse(value)
        test = place.filled or place.test
        flaws = [_flaw(place, test, kind, _filled(template, text, place.whole)) for text in place.fillings]
        return flaws[0] if all(flaws) else None
    words = _flaw(place, place.test, kind, value)
    if words is not None and given.type is None and value.__class__ in (bool, int, float) and place.name == "string":
        return words if given.is_plain else f'{words}; state a "type" where it is meant to be another'
    return words


def section_fault(value: Any) -> str | None:
    """What is wrong with the form of several named properties, in words that follow their place."""
    return None if value is None or isinstance(value, (Mapping, list)) else "must be an object or an array"


def name_fault(section: Section, name: str) -> str | None:
    """What is wrong with the name of a member, in words that follow its place; None where a message may have it."""
    if not name:
        return "must have a name that is not empty"
    return None if section.name is None else section.name(name)


def _filled(template: Template, text: str, whole: bool) -> str:
    """The template with a text for each placeholder, where that can be taken for it."""
    apart = bool(_separators(text)) and not (whole and not template.has_literal_text)
    parts = [template.literals[0]]
    for one, literal in zip(template.placeholders, template.literals[1:], strict=True):
        parts += ("x" if apart and not one.reserved else text, literal)
    return "".join(parts)


def _template_flaw(place: Place, text: str) -> str | None:
    literals = Template.parse(text).literals
    if any("{" in one or "}" in one for one in literals):
        return "must have nothing in braces but a name of letters, digits and underscores"
    if place.is_route:
        return "must not have control characters" if _control(text) else None
    if not all(map(_is_literal, literals)):
        return "must be a URI template (RFC 6570), which has no spaces, double quotes or control characters"
    return None


def _flaw(place: Place, test: _Test | None, kind: str, value: Any) -> str | None:
    if value.__class__ not in _SCALARS:
        return None if place.nests and kind == "any" else "must be a text, a number, true or false"
    if not is_stated(kind, value) or (place.is_json and kind == place.type and value.__class__ is str):
        return f"must be of type {EXACT.get(kind, kind)}{_MORE.get(kind, '')}"
    return None if test is None else test(canonical_text(value))


_SCALARS = frozenset({str, bool, int, float})
_MORE: Mapping[str, str] = {
    "integer": ", a whole number of 32 bits",
    "timestamp": " (RFC 3339, with an offset)",
    "binary": ", which is Base64",
    "symbol": ", which has letters, digits and underscores only",
    "uri": " (RFC 3986)",
    "bit": ", 0 or 1",
    "qos": ", 0, 1 or 2",
    "ubyte": ", from 0 to 255",
    "partition": ", from 0 to 2147483647",
    "uint": ", from 0 to 4294967295",
    "ascii": ", which is ASCII text",
}


# --- tests of texts ---------------------------------------------------------------------------------------------


def _of_event(name: str) -> _Test:
    return lambda text: flaw(name, text)


def _media_type(text: str) -> str | None:
    return None if read_media_type(text.rstrip(";")) else "must be a media type such as application/json (RFC 2045)"


def _symbol_name(name: str) -> str | None:
    """AMQP 1.0 section 1.6.21: the names of what an application adds are symbols, which are ASCII text."""
    return None if name.isascii() else f'must have a name of ASCII characters, not "{name}"'


def _form(pattern: re.Pattern[str], words: str) -> _Test:
    matches = pattern.fullmatch
    return lambda text: None if matches(text) else words


def _event_format(text: str) -> str | None:
    media = read_media_type(text.rstrip(";"))
    if media is not None and media.name.startswith("application/cloudevents"):
        return None
    return "must be the content type of a structured event, such as application/cloudevents+json"


def _event_mode(text: str) -> str | None:
    return None if text.lower() in ("binary", "structured") else "must be binary or structured"


CONTENT_TYPE = Place("ascii", test=_media_type, fillings=("x", "application/json"), whole=True, is_content_type=True)
# `envelopeoptions.format` of CloudEvents: what an event is known by that holds its data.
EVENT_FORMAT = Place(
    "ascii",
    test=_event_format,
    fillings=("x", "+json", "cloudevents+json", "application/cloudevents+json"),
    whole=True,
    is_content_type=True,
)
# `envelopeoptions.mode` of CloudEvents.
EVENT_MODE = Place(test=_event_mode)

_MOMENT = "2000-01-01T00:00:00Z"


# --- the tables -------------------------------------------------------------------------------------------------

# Which types can be stated where the texts and the published models leave some out.
_TEXTS = frozenset({"string", "symbol", "uritemplate"})
_URIS = frozenset({"string", "uri", "uritemplate"})
_IDS = frozenset({"binary", "string", "ulong", "uritemplate", "uuid"})
_TIMES = frozenset({"timestamp"})
_MEDIA_TYPE = replace(CONTENT_TYPE, types=_TEXTS)

# message/spec.md, CloudEvents/1.0
ENVELOPE = Section(
    named={
        "specversion": Place(test=_of_event("specversion"), types=frozenset({"string"})),
        **{name: Place(test=_of_event(name)) for name in ("id", "type", "subject")},
        "source": Place("uritemplate", test=_of_event("source"), whole=True, types=_URIS),
        # In an event it is absolute; one that is relative, as `dataschemauri` may be, is the end of that.
        "dataschema": Place(
            "uritemplate",
            test=_of_event("source"),
            filled=_of_event("dataschema"),
            fillings=("x", "1", "https://x/x"),
            whole=True,
            types=_URIS,
        ),
        "time": Place("timestamp", test=_of_event("time"), fillings=(_MOMENT, *_MOMENT.split("T")), types=_TIMES),
        "datacontenttype": _MEDIA_TYPE,
    },
    other=Place(test=_of_event("extension")),
)

_FLAG, _COUNT = Place("boolean", is_json=True), Place("uint", is_json=True)
_TEXT, _ADDRESS, _TIME = Place(types=_TEXTS), Place("uritemplate", types=_URIS), Place("timestamp", types=_TIMES)
_ID = Place(several=True, types=_IDS)  # AMQP: an id is a ulong, a uuid, bytes or a string; so is its echo
_ADDED = Section(other=Place(nests=True), name=_symbol_name, unique=True)


def _template(protocol: str, field: str, *fillings: str) -> Place:
    """A field that is a URI template, of which a protocol may not send any text."""
    return Place("uritemplate", test=text_flaw(protocol, field), fillings=(*_FILLINGS, *fillings), is_route=True)


def _pairs(protocol: str, field: str, content_type: str = "") -> Section:
    """A field of named texts, of which a protocol may not send any."""
    name, value = pair_flaws(protocol, field)
    return Section(other=Place(test=value), content_type=content_type, name=name)


def _mqtt(protocol: str) -> Mapping[str, Place | Section]:
    return {"topic_name": _template(protocol, "topic_name"), "qos": Place("qos", is_json=True), "retain": _FLAG}


# message/spec.md, Message Protocols: the options of each, in canonical spelling.
PLACES: Mapping[str, Mapping[str, Place | Section]] = {
    "HTTP": {
        "path": _template("HTTP", "path", "/x"),
        "method": Place(test=text_flaw("HTTP", "method")),
        "status": Place(  # a text in a definition, a number in a message
            several=True,
            test=_form(re.compile("[1-5][0-9][0-9]"), "must be an HTTP status code"),
            fillings=("404", "4", "04"),
        ),
        "headers": _pairs("HTTP", "headers", "content-type"),
        "query": _pairs("HTTP", "query"),
    },
    "AMQP/1.0": {
        "properties": Section(
            named={
                "message-id": _ID,
                "user-id": Place("binary", types=frozenset({"binary", "string", "uritemplate"})),
                "to": _ADDRESS,
                "subject": _TEXT,
                "reply-to": _ADDRESS,
                "correlation-id": _ID,
                "content-type": _MEDIA_TYPE,
                "content-encoding": Place("ascii", types=_TEXTS),
                "absolute-expiry-time": _TIME,
                "creation-time": _TIME,
                "group-id": _TEXT,
                "group-sequence": Place("uint", types=frozenset({"integer"})),
                "reply-to-group-id": Place("uritemplate", types=_TEXTS),
            },
        ),
        "application-properties": _ADDED,
        "message-annotations": _ADDED,
        "delivery-annotations": _ADDED,
        "header": Section(
            named={
                "durable": _FLAG,
                "priority": Place("ubyte", is_json=True),
                "ttl": _COUNT,
                "first-acquirer": _FLAG,
                "delivery-count": _COUNT,
            },
            plain=True,
        ),
        "footer": _ADDED,
        "body": Place(),  # of 0.1, see `dialects.forms`
    },
    "MQTT/3.1.1": _mqtt("MQTT/3.1.1"),
    "MQTT/5.0": {
        **_mqtt("MQTT/5.0"),
        "payload_format_indicator": Place("bit", is_json=True),
        "message_expiry_interval": _COUNT,
        "response_topic": _template("MQTT/5.0", "response_topic"),
        "correlation_data": Place(),  # Base64 by the text, a text by the published model; a message is asked for both
        "content_type": CONTENT_TYPE,
        "user_properties": _pairs("MQTT/5.0", "user_properties"),
    },
    "KAFKA": {
        "topic": Place(test=text_flaw("KAFKA", "topic")),
        "partition": Place("partition", is_json=True),
        "key": Place(several=True),
        "key_base64": Place("binary"),
        "headers": _pairs("KAFKA", "headers", "content-type"),
        "timestamp": Place("ulong"),  # of 0.5, see `dialects.forms`
    },
    "NATS": {
        "subject": _template("NATS", "subject"),
        "reply": _template("NATS", "reply"),
        "headers": _pairs("NATS", "headers", "content-type"),
    },
}

Path = tuple[str | int, ...]


def stated_properties(attrs: Mapping[str, Any], event: bool, protocol: str) -> Iterator[tuple[Path, Place, Property]]:
    """Every property that a canonical definition states: its path, its place, and what is stated.

    `event` says that its envelope is CloudEvents, `protocol` is the canonical name of its protocol.
    """
    if event:
        yield from _members(("envelopemetadata",), ENVELOPE, attrs.get("envelopemetadata"))
        stated = attrs.get("envelopeoptions")
        chosen: Mapping[str, Any] = stated if isinstance(stated, Mapping) else {}
        for name, place in (("mode", EVENT_MODE), ("format", EVENT_FORMAT)):
            if name in chosen:
                yield ("envelopeoptions", name), place, Property.plain(chosen[name])
    options = attrs.get("protocoloptions")
    table = PLACES.get(protocol)
    if table is None or not isinstance(options, Mapping):
        return
    for name, value in options.items():
        found = table.get(name)
        if isinstance(found, Section):
            if (words := section_fault(value)) is not None:
                yield ("protocoloptions", name), found.other, Property(flaw=words)
            yield from _members(("protocoloptions", name), found, value)
        elif found is not None:
            yield ("protocoloptions", name), found, Property.plain(value)


def _members(path: Path, section: Section, value: Any) -> Iterator[tuple[Path, Place, Property]]:
    for key, name, member in named_members(value):
        given = Property.plain(member) if section.plain else Property.of(member)
        yield (*path, key), section.place(name), given


def named_members(value: Any) -> Iterator[tuple[str | int, str, Any]]:
    """The members of an array, or of a map whose keys name them, with key and name (empty where it is not a text).

    A null in a map is none of them.
    """
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, member in pairs:
        named = member.get("name") if isinstance(member, Mapping) else None
        name = key if named is None else named
        if member is not None or isinstance(key, int):
            yield key, name if isinstance(name, str) else "", member


def stated_names(attrs: Mapping[str, Any], protocol: str) -> Iterator[tuple[Path, Section, str]]:
    """Every named property of a canonical definition's protocol: its path, its section and its name."""
    options = attrs.get("protocoloptions")
    if not isinstance(options, Mapping):
        return
    for field_name, section in PLACES.get(protocol, {}).items():
        if isinstance(section, Section) and not section.plain:
            for key, name, _ in named_members(options.get(field_name)):
                yield ("protocoloptions", field_name, key), section, name
