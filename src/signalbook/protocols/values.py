"""The values of properties: their types, how a transport carries each, and where a definition can state one.

Rule 1: a value is validated in the form that its transport has. JSON carries numbers and booleans as such, headers and
user properties carry canonical strings, AMQP carries its own types or canonical strings.
Rule 2: what a value is compared by is its canonical string, whatever form it came in.
Rule 3: a definition may state a value as JSON has it or as a header would carry it. A type that it states wins; where
it states none, the place has one (message/spec.md: `string`, or what the tables of CloudEvents and of the protocols
say). An implied `symbol` is ASCII text, since the text's own example has `application/json` there; a stated one has
letters, digits and underscores only.
Rule 4: a value with placeholders is validated with the placeholders filled. In a `uritemplate` braces hold a name, or
`+` and a name, and what stands between them is what RFC 6570 allows; in other texts other braces are text.

message/spec.md, Property Definitions, `type`; AMQP's `message-id` adds `ulong` and `uuid`. The types in `EXACT` are
those of single fields of a protocol, which a definition states as `integer` or `symbol`.
"""

from __future__ import annotations

import base64
import binascii
import enum
import json
import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

from signalbook.cloudevents.attributes import (
    flaw,
    format_timestamp,
    instant,
    is_timestamp,
    is_uri_reference,
    read_media_type,
)
from signalbook.template import NAME_IN_BRACES, Template, encode

__all__ = [
    "CONTENT_TYPE",
    "ENVELOPE",
    "EVENT_FORMAT",
    "EVENT_MODE",
    "EXACT",
    "FILLINGS",
    "NOW",
    "STATED_CONTENT_TYPE",
    "STATED_TEXTS",
    "STATED_TIMES",
    "STATED_URIS",
    "TEXTS",
    "TYPES",
    "Flaw",
    "Property",
    "PropertyPlace",
    "PropertySection",
    "Typed",
    "ValueForm",
    "attribute_place",
    "canonical",
    "decoded",
    "fault",
    "form_fault",
    "is_base64",
    "is_of",
    "is_stated",
    "milliseconds",
    "name_fault",
    "named_members",
    "same",
    "section_fault",
    "typed",
    "unique_fault",
    "value_template",
]

# What is wrong with a text, in words that follow its place; None where nothing is.
Flaw = Callable[[str], str | None]
_IsOf = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Typed:
    """A value whose AMQP type Python has no type for: `Typed("timestamp", 1522900584000)`, `Typed("symbol", "x")`."""

    type: str
    value: Any


class ValueForm(enum.Enum):
    """How a transport carries values."""

    JSON = "json"
    TEXT = "text"
    AMQP = "amqp"


# The types whose values may be templates.
TEXTS = frozenset({"string", "uritemplate", "symbol", "uri", "ascii"})
# The bounds of whole numbers: CloudEvents' `Integer`, and those of single fields of MQTT, AMQP and Kafka.
_BOUNDS: Mapping[str, tuple[int, int]] = {
    "integer": (-(2**31), 2**31 - 1),
    "ulong": (0, 2**64 - 1),
    "bit": (0, 1),
    "qos": (0, 2),
    "ubyte": (0, 2**8 - 1),
    "partition": (0, 2**31 - 1),
    "uint": (0, 2**32 - 1),
}
EXACT: Mapping[str, str] = {
    **dict.fromkeys(("bit", "qos", "ubyte", "partition", "uint"), "integer"),
    "ascii": "symbol",
}
# The attributes of an event, and the types of others, whose value may be one placeholder that stands for all of it.
_WHOLE_ATTRIBUTES = frozenset({"source", "dataschema", "subject"})
_WHOLE_TYPES = frozenset({"uri", "urireference", "uritemplate"})

_WHOLE = frozenset({"ubyte", "ushort", "uint", "ulong", "byte", "short", "int"})
_FRACTIONS = frozenset({"float", "decimal32", "decimal64", "decimal128"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_symbol = re.compile("[A-Za-z0-9_]+").fullmatch
_integer = re.compile("-?(?:0|[1-9][0-9]*)").fullmatch
_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?").fullmatch
# RFC 3339 appendix A: no fractions, and no unit is left out between two others.
_TIME = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DATE = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
_duration = re.compile(f"P(?:[0-9]+W|{_TIME}|{_DATE}(?:{_TIME})?)").fullmatch
_uuid = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
_LONGEST_NUMBER = 1000


def is_base64(text: str) -> bool:
    """Whether a text is Base64 (RFC 4648), with its padding and nothing else."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_integer(text: str) -> bool:
    return len(text) <= _LONGEST_NUMBER and bool(_integer(text))


def _is_number(text: str) -> bool:
    return len(text) <= _LONGEST_NUMBER and bool(_number(text)) and isfinite(float(text))


def _integer_text_test(bounds: tuple[int, int]) -> Callable[[str], bool]:
    low, high = bounds
    return lambda text: _is_integer(text) and low <= int(text) <= high


def _integer_test(bounds: tuple[int, int]) -> _IsOf:
    low, high = bounds
    return lambda value: value.__class__ is int and low <= value <= high


def _text_test(test: Callable[[str], Any]) -> _IsOf:
    """A test of a string, which a JSON value and a header both are."""
    return lambda value: value.__class__ is str and bool(test(value))


def _amqp_test(kinds: frozenset[str], test: _IsOf, natural: tuple[type, ...] = ()) -> _IsOf:
    """A test of an AMQP value: of one of these AMQP types, of a Python type that stands for one, or a string."""

    def holds(value: Any) -> bool:
        if value.__class__ is Typed:
            return value.type in kinds
        return value.__class__ in natural or test(value)

    return holds


def _any(value: Any) -> bool:
    return True


_NONE: frozenset[str] = frozenset()
_is_text = _text_test(_any)
_IN_TEXT: Mapping[str, _IsOf] = {
    "any": _any,
    "binary": lambda value: value.__class__ is bytes or (value.__class__ is str and is_base64(value)),
    "boolean": lambda value: value in ("true", "false"),
    "duration": _text_test(_duration),
    "number": _text_test(_is_number),
    "string": _is_text,
    "symbol": _text_test(_symbol),
    "timestamp": _text_test(is_timestamp),
    "uri": _text_test(is_uri_reference),
    "uritemplate": _is_text,
    "uuid": _text_test(_uuid),
    "ascii": _text_test(str.isascii),
    **{name: _text_test(_integer_text_test(bounds)) for name, bounds in _BOUNDS.items()},
}
_is_short = _IN_TEXT["integer"]
_IN_JSON: Mapping[str, _IsOf] = {
    **_IN_TEXT,
    "boolean": lambda value: value.__class__ is bool,
    **{name: _integer_test(bounds) for name, bounds in _BOUNDS.items()},
    # A fraction, or a number of more than 32 bits, has no other form in an event: CloudEvents knows no type for it but
    # the string.
    "number": lambda value: value.__class__ in (int, float) or (_IN_TEXT["number"](value) and not _is_short(value)),
    "ulong": lambda value: (
        _integer_test(_BOUNDS["ulong"])(value) or (_IN_TEXT["ulong"](value) and not _is_short(value))
    ),
}


def _symbol_in_amqp(value: Any) -> bool:
    text = value.value if value.__class__ is Typed and value.type == "symbol" else value
    return text.__class__ is str and bool(_symbol(text))


def _whole_in_amqp(name: str) -> _IsOf:
    number, text = _integer_test(_BOUNDS[name]), _IN_TEXT[name]

    def holds(value: Any) -> bool:
        if value.__class__ is Typed:
            return value.type in (_WHOLE if name != "ulong" else ("ulong",)) and number(value.value)
        return (name != "ulong" and number(value)) or text(value)

    return holds


def _ascii_in_amqp(value: Any) -> bool:
    text = value.value if value.__class__ is Typed and value.type in _AMQP_TEXTS else value
    return text.__class__ is str and bool(text.isascii())


_AMQP_TEXTS = frozenset({"symbol", "char"})
_IN_AMQP: Mapping[str, _IsOf] = {
    "any": _any,
    "binary": _amqp_test(_NONE, _IN_TEXT["binary"], (bytes,)),
    "boolean": _amqp_test(_NONE, _IN_TEXT["boolean"], (bool,)),
    "duration": _IN_TEXT["duration"],
    "number": _amqp_test(_WHOLE | _FRACTIONS, _IN_TEXT["number"], (int, float)),
    "string": _amqp_test(_AMQP_TEXTS, _is_text),
    "symbol": _symbol_in_amqp,
    "timestamp": _amqp_test(frozenset({"timestamp"}), _IN_TEXT["timestamp"]),
    "uri": _amqp_test(_AMQP_TEXTS, _IN_TEXT["uri"]),
    "uritemplate": _amqp_test(_AMQP_TEXTS, _is_text),
    "uuid": _amqp_test(frozenset({"uuid"}), _IN_TEXT["uuid"]),
    "ascii": _ascii_in_amqp,
    **{name: _whole_in_amqp(name) for name in _BOUNDS},
}
_TESTS: Mapping[ValueForm, Mapping[str, _IsOf]] = {
    ValueForm.JSON: _IN_JSON,
    ValueForm.TEXT: _IN_TEXT,
    ValueForm.AMQP: _IN_AMQP,
}


def is_of(type_name: str, form: ValueForm, value: Any) -> bool:
    """Whether a value in a transport's form is of the type; a type that nobody knows takes any."""
    return _TESTS[form].get(type_name, _any)(value)


# Those that a definition may state.
TYPES = frozenset(_IN_TEXT.keys() - EXACT.keys())


def is_stated(type_name: str, value: Any) -> bool:
    """Whether a definition may state the value for a property of the type: as JSON has it, or as a header would."""
    if value.__class__ is float and value.is_integer():  # JSON has one kind of number, and 1.0 is 1
        value = int(value)
    return _IN_TEXT[type_name](value) or _IN_JSON[type_name](value)


def same(type_name: str, one: str, other: str) -> bool:
    """Whether two canonical strings, which are not alike, are the same value of the type."""
    compare = _MEANINGS.get(type_name)
    if compare is None:
        return False
    try:
        return bool(compare(one) == compare(other))
    except ValueError:
        return False


_MEANINGS: Mapping[str, Callable[[str], Any]] = {
    "number": float,
    "binary": lambda text: base64.b64decode(text, validate=True),
    "timestamp": lambda text: instant(text) if is_timestamp(text) else text,
    "uuid": str.lower,
}


def canonical(value: Any) -> str:
    """The canonical string of a value, in whichever form it came."""
    if value.__class__ is str:
        return value
    if value.__class__ is bool:
        return "true" if value else "false"
    if value.__class__ is bytes:
        return base64.b64encode(value).decode()
    if value.__class__ is float and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if value.__class__ is Typed:
        return _moment(value.value) if value.type == "timestamp" else canonical(value.value)
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(_as_json(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return str(value)


def _as_json(value: Any) -> Any:
    """A list or a map as JSON has it."""
    if isinstance(value, Mapping):
        return {canonical(name): _as_json(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(member) for member in value]
    return value if value is None or value.__class__ in (str, bool, int, float) else canonical(value)


def _moment(milliseconds: int) -> str:
    try:
        return format_timestamp(_EPOCH + timedelta(milliseconds=milliseconds))
    except OverflowError:
        return str(milliseconds)


def value_template(text: str, type_: str, attribute: str = "", *, is_content_type: bool = False) -> Template:
    """The template that a property's value is; `attribute` is its name where it is one of an event.

    A lone placeholder takes the whole text where it stands for a content type, which always has a slash, or in an event
    for a URI or for `subject`. A content type is not a URI, so nothing in it is percent-encoded.
    """
    template = Template.parse(text)
    if is_content_type:
        return template.as_whole().as_verbatim()
    if attribute and (attribute in _WHOLE_ATTRIBUTES or type_ in _WHOLE_TYPES):
        return template.as_whole()
    return template


# Values that a definition states, in the type they are sent in --------------------------------------------------------


def typed(kind: str, value: Any) -> Any:
    """A value that a definition may state as text, in its own type; raises ValueError where it is not of that type."""
    if kind in ("integer", "ulong") and isinstance(value, str):
        return _whole_of(value)
    if kind in ("integer", "ulong") and value.__class__ is float and value.is_integer():
        return int(value)
    if kind == "boolean" and isinstance(value, str):
        if value not in ("true", "false"):
            raise ValueError("is not true or false")
        return value == "true"
    return value


def _whole_of(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("is not a valid integer") from None


def milliseconds(text: str) -> int:
    """A timestamp in milliseconds since 1970."""
    minutes, seconds, fraction = instant(text)
    # `instant` counts from March of year 0, which is 719,468 days before 1970.
    return (minutes * 60 - 719_468 * 86_400 + seconds) * 1000 + int(fraction.ljust(3, "0")[:3] or 0)


def decoded(value: Any) -> bytes:
    """The bytes that a definition states in Base64; raises ValueError where they are not."""
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(str(value), validate=True)
    except binascii.Error:
        raise ValueError("is not valid Base64") from None


# Places: which type each has, and what can never be there ------------------------------------------------------------

# message/spec.md, Property Definitions: the mark for the current time when building, for any when matching.
NOW = "0000-01-01T00:00:00Z"
# What is tried in the place of placeholders, one of them being enough: a word, or a number, which a port is.
FILLINGS = ("x", "1")
_separators = re.compile("[/?#]").search
# RFC 6570 section 2.1, `literals`, with the apostrophe that erratum 6937 gives back.
_LITERAL = "[!#$&-;=?-\\[\\]_a-z~\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\uffef\U00010000-\U0010fffd]"
_control = re.compile("[\x00-\x1f\x7f]").search
_is_literal = re.compile(f"(?:{_LITERAL}|%[0-9A-Fa-f]{{2}})*").fullmatch


@dataclass(frozen=True, slots=True)
class PropertyPlace:
    """A place for one value.

    `type` is that of `property_types` which holds where none is stated. With `several` it is only what a definition's
    own value has then: a message may have another. `types` are those that can be stated, where not all can. `test` says
    what is wrong with a text beyond its type, and `fillings` are tried in the place of placeholders, where `filled` is
    the test if it is another; with `whole` one that stands alone takes any text.
    """

    type: str = "string"
    several: bool = False
    types: frozenset[str] = TYPES
    test: Flaw | None = None
    fillings: tuple[str, ...] = FILLINGS
    whole: bool = False
    filled: Flaw | None = None
    is_content_type: bool = False
    nests: bool = False  # AMQP has lists and maps, of the type `any`
    is_route: bool = False  # a topic or a subject, of which its protocol says what it may hold: it need not be a URI
    is_json: bool = False  # a number or a flag as JSON has it, not the text of one
    is_text_with_placeholders: bool = False  # a value with placeholders is a string here, another is of the `type`

    @property
    def name(self) -> str:
        """The type as a definition would state it."""
        return EXACT.get(self.type, self.type)

    def kind(self, stated: Any, value: Any = None) -> str:
        """The type that holds here for a value where a definition states a type, or None."""
        if self.is_text_with_placeholders:
            return self.type if value.__class__ is not str or Template.parse(value).literal else "string"
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


def _write_text(type_: str, value: Any) -> str:
    return canonical(value)


@dataclass(frozen=True, slots=True)
class PropertySection:
    """Places by name: those that the text types, and any other; `plain` ones hold values, not property definitions."""

    named: Mapping[str, PropertyPlace] = field(default_factory=dict)
    other: PropertyPlace = field(default_factory=PropertyPlace)
    plain: bool = False
    # Where a name, in lower case, is one that a content type stands under.
    content_type: str = ""
    # What is wrong with a name, in words that follow its place; and whether a message has a name once at most.
    name: Flaw | None = None
    unique: bool = False
    # How a definition holds them: in a map by name, or in an array.
    is_keyed: bool = False
    # How a message carries them: a value by name or pairs, names in any case or not, and in which form; what is read
    # from a value that is carried, and how one of a type is written.
    is_map: bool = False
    any_case: bool = False
    form: ValueForm = ValueForm.TEXT
    read: Callable[[Any], Any] | None = None
    write: Callable[[str, Any], Any] = _write_text

    def place(self, name: str) -> PropertyPlace:
        """The place of a name."""
        if self.content_type and name.lower() == self.content_type:
            return CONTENT_TYPE
        return self.named.get(name, self.other)


def fault(place: PropertyPlace, given: Property) -> str | None:
    """What is wrong with what a definition states at a place, in words that follow it; None where nothing is."""
    return form_fault(place, given) or _value_fault(place, given)


def form_fault(place: PropertyPlace, given: Property) -> str | None:
    """What is wrong with how a property is stated, whatever its value is, in words that follow its place."""
    if given.flaw is not None or given.type is None:
        return given.flaw
    if given.type.__class__ is not str or given.type not in TYPES:
        return "has a type that is not one of a property"
    if given.type not in place.types:
        return f"has the type {given.type}, and its type must be one of: {', '.join(sorted(place.types))}"
    return None


def _value_fault(place: PropertyPlace, given: Property) -> str | None:
    value = given.value
    if value is None:
        return None
    kind = place.kind(given.type, value)
    if kind == "uritemplate" and value.__class__ is str and (words := _template_flaw(place, value)) is not None:
        return words
    if value.__class__ is str and "{" in value and kind in TEXTS:
        template = Template.parse(value)
        test = place.filled or place.test
        flaws = [_flaw(place, test, kind, _filled(place, template, text)) for text in place.fillings]
        return flaws[0] if all(flaws) else None
    words = _flaw(place, place.test, kind, value)
    if words is not None and given.type is None and value.__class__ in (bool, int, float) and place.name == "string":
        is_text = given.is_plain or place.types <= TEXTS
        return words if is_text else f'{words}; state a "type" where it is meant to be another'
    return words


def section_fault(value: Any) -> str | None:
    """What is wrong with the form of several named properties, in words that follow their place."""
    return None if value is None or isinstance(value, (Mapping, list)) else "must be an object or an array"


def name_fault(section: PropertySection, name: str) -> str | None:
    """What is wrong with the name of a member, in words that follow its place; None where a message may have it."""
    if not name:
        return "must have a name that is not empty"
    return None if section.name is None else section.name(name)


def unique_fault(section: PropertySection, name: str, taken: Container[str]) -> str | None:
    """What is wrong with a name that others may have already, in words that follow its place; None where nothing is."""
    return f'must have a name of its own: "{name}" is that of another' if section.unique and name in taken else None


def _filled(place: PropertyPlace, template: Template, text: str) -> str:
    """The template with a text for each placeholder, where one can be built and matched with it.

    What RFC 6570 would percent-encode cannot be (the colon of a scheme, for instance), unless the placeholder is all of
    the value or keeps reserved characters. A content type is not encoded, yet its placeholders hold no separator.
    """
    is_alone = place.whole and len(template.placeholders) == 1 and not template.has_literal_text
    apart = not is_alone and (bool(_separators(text)) if place.is_content_type else encode(text) != text)
    parts = [template.literals[0]]
    for one, literal in zip(template.placeholders, template.literals[1:], strict=True):
        parts += ("x" if apart and not one.reserved else text, literal)
    return "".join(parts)


def _template_flaw(place: PropertyPlace, text: str) -> str | None:
    literals = Template.parse(text).literals
    if any("{" in one or "}" in one for one in literals):
        return f"must be a URI template of which each variable has a name alone: {NAME_IN_BRACES}"
    if place.is_route:
        return "must not have control characters" if _control(text) else None
    if not all(map(_is_literal, literals)):
        return "must be a URI template (RFC 6570), which has no spaces, double quotes or control characters"
    return None


def _flaw(place: PropertyPlace, test: Flaw | None, kind: str, value: Any) -> str | None:
    if value.__class__ not in _SCALARS:
        return None if place.nests and kind == "any" else "must be a text, a number, true or false"
    if not is_stated(kind, value) or (place.is_json and kind == place.type and value.__class__ is str):
        return f"must be of type {EXACT.get(kind, kind)}{_MORE.get(kind, '')}"
    return None if test is None else test(canonical(value))


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


def named_members(value: Any) -> Iterator[tuple[str | int, str, Any]]:
    """The members of an array, or of a map whose keys name them, with key and name (empty where it is not a text).

    A null in a map is not one of them.
    """
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, member in pairs:
        named = member.get("name") if isinstance(member, Mapping) else None
        name = key if named is None else named
        if member is not None or isinstance(key, int):
            yield key, name if isinstance(name, str) else "", member


def _of_event(name: str) -> Flaw:
    return lambda text: flaw(name, text)


def _media_type(text: str) -> str | None:
    return None if read_media_type(text.rstrip(";")) else "must be a media type such as application/json (RFC 2045)"


def _event_format(text: str) -> str | None:
    media = read_media_type(text.rstrip(";"))
    if media is not None and media.name.startswith("application/cloudevents"):
        return None
    return "must be the content type of a structured event, such as application/cloudevents+json"


def _event_mode(text: str) -> str | None:
    return None if text.lower() in ("binary", "structured") else "must be binary or structured"


CONTENT_TYPE = PropertyPlace(
    "ascii", test=_media_type, fillings=("x", "application/json"), whole=True, is_content_type=True
)
# `envelopeoptions.format` of CloudEvents: what an event is known by that holds its data.
EVENT_FORMAT = PropertyPlace(
    "ascii",
    test=_event_format,
    fillings=("x", "+json", "cloudevents+json", "application/cloudevents+json"),
    whole=True,
    is_content_type=True,
)
# `envelopeoptions.mode` of CloudEvents.
EVENT_MODE = PropertyPlace(test=_event_mode)

_MOMENT = "2000-01-01T00:00:00Z"

# Which types can be stated where the texts and the published models leave some out.
STATED_TEXTS = frozenset({"string", "symbol", "uritemplate"})
STATED_URIS = frozenset({"string", "uri", "uritemplate"})
STATED_TIMES = frozenset({"timestamp"})
STATED_CONTENT_TYPE = replace(CONTENT_TYPE, types=STATED_TEXTS)

# message/spec.md, CloudEvents/1.0
ENVELOPE = PropertySection(
    named={
        "specversion": PropertyPlace(test=_of_event("specversion"), types=frozenset({"string"})),
        **{name: PropertyPlace(test=_of_event(name)) for name in ("id", "type", "subject")},
        "source": PropertyPlace("uritemplate", test=_of_event("source"), whole=True, types=STATED_URIS),
        "dataschema": PropertyPlace(
            "uritemplate",
            test=_of_event("dataschema"),
            fillings=("x", "1", "urn:x", "https://x/x"),
            whole=True,
            types=STATED_URIS,
        ),
        "time": PropertyPlace(
            "timestamp", test=_of_event("time"), fillings=(_MOMENT, *_MOMENT.split("T")), types=STATED_TIMES
        ),
        "datacontenttype": STATED_CONTENT_TYPE,
    },
    other=PropertyPlace(test=_of_event("extension")),
)
# In an event it is absolute; the relative one that `dataschemauri` says too is the end of that.
_RELATIVE_SCHEMA = replace(ENVELOPE.named["dataschema"], test=_of_event("source"), filled=_of_event("dataschema"))


def attribute_place(name: str, given: Any, attrs: Mapping[str, Any]) -> PropertyPlace:
    """The place of an event's attribute, of which a definition with `attrs` states a property."""
    uri = attrs.get("dataschemauri") if name == "dataschema" and isinstance(given, Mapping) else None
    return ENVELOPE.place(name) if uri is None or given.get("value") != uri else _RELATIVE_SCHEMA
