"""Context attributes: their names, their types, what each may hold, and the grammars of those values.

Rule 1: a value is a `str`, `bool`, `int` or `bytes`. URIs, timestamps and media types are tested and kept as the text
they are: nothing is converted, trimmed, rounded or added; null means that the attribute is not there.
Rule 2: every event, read or made, has passed `check_attributes` or `accepted_attributes`, which accept the same.
Rule 3: a URI is what RFC 3986 (appendix A) says and nothing wider; what RFC 3987 allows beyond ASCII is not a URI.
Rule 4: a timestamp is what RFC 3339 section 5.6 says, with `T` between date and time. A second 60 is accepted where one
can be: at the end of a June or December in UTC, since 1972 (section 5.7).
Rule 5: of a media type, type, subtype and parameter names compare without case (RFC 2045 section 5.1).
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from signalbook.errors import Problem, SignalbookError

__all__ = [
    "ATTRIBUTE_TYPES",
    "COMMON_TIMESTAMP",
    "EVENT",
    "EVENT_BATCH",
    "JSON",
    "MAX_ATTRIBUTES",
    "REQUIRED",
    "RULES",
    "AttributeValue",
    "CloudEventError",
    "MediaType",
    "accepted_attributes",
    "attribute_type",
    "canonical",
    "check_attributes",
    "flaw",
    "format_timestamp",
    "instant",
    "is_absolute_uri",
    "is_absolute_uri_cached",
    "is_clean",
    "is_common_timestamp",
    "is_name",
    "is_timestamp",
    "is_uri_reference",
    "is_uri_reference_cached",
    "meaning",
    "plain",
    "pointer",
    "problems",
    "read_media_type",
    "said",
    "too_many",
]

# URIs ----------------------------------------------------------------------

_ESCAPED = "%[0-9A-Fa-f]{2}"
_UNRESERVED_AND_SUB = r"A-Za-z0-9\-._~!$&'()*+,;="


def _many(characters: str) -> str:
    # Possessive: no text makes the match go back over what it has taken.
    return f"(?:[{characters}]++|{_ESCAPED})"


_PCHAR = _many(_UNRESERVED_AND_SUB + ":@")
_IP_LITERAL = rf"\[(?:([0-9A-Fa-f:.]+)|[vV][0-9A-Fa-f]+\.[{_UNRESERVED_AND_SUB}:]+)\]"
_HOST = f"(?:{_IP_LITERAL}|{_many(_UNRESERVED_AND_SUB)}*+)"
_AUTHORITY = f"//(?:{_many(_UNRESERVED_AND_SUB + ':')}*@)?{_HOST}(?::[0-9]*)?"
_SEGMENTS = f"(?:/{_PCHAR}*+)*+"
_ROOTED = f"/(?:{_PCHAR}++{_SEGMENTS})?"
_TAIL = rf"(?:\?{_many(_UNRESERVED_AND_SUB + ':@/?')}*+)?(?:#{_many(_UNRESERVED_AND_SUB + ':@/?')}*+)?"
_ABSOLUTE = rf"[A-Za-z][A-Za-z0-9+.\-]*+:(?:{_AUTHORITY}{_SEGMENTS}|{_ROOTED}|{_PCHAR}++{_SEGMENTS}|)"
_RELATIVE = f"(?:{_AUTHORITY}{_SEGMENTS}|{_ROOTED}|{_many(_UNRESERVED_AND_SUB + '@')}++{_SEGMENTS}|)"
_absolute_uri = re.compile(_ABSOLUTE + _TAIL).fullmatch
_uri_reference = re.compile(f"(?:{_ABSOLUTE}|{_RELATIVE}){_TAIL}").fullmatch


def is_absolute_uri(text: str) -> bool:
    """Whether the text is a URI with a scheme; a fragment may follow, as schema references have one."""
    return _address_holds(_absolute_uri(text))


def is_uri_reference(text: str) -> bool:
    """Whether the text is a URI or a relative reference."""
    return _address_holds(_uri_reference(text))


def _address_holds(found: re.Match[str] | None) -> bool:
    """Whether it matched and an IPv6 address in it is one."""
    if found is None:
        return False
    address = next((text for text in found.groups() if text is not None), None)
    if address is not None:
        try:
            ipaddress.IPv6Address(address)
        except ValueError:
            return False
    return True


# A producer's sources and schemas are few and come again with every event.
is_absolute_uri_cached = lru_cache(1024)(is_absolute_uri)
is_uri_reference_cached = lru_cache(4096)(is_uri_reference)


# Timestamps ----------------------------------------------------------------------

_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_REST = rf"(?:\.[0-9]+)?(?:[Zz]|[+-]{_CLOCK})"
_DAY = r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
# The days and seconds that every year and minute has; then those that only some have.
COMMON_TIMESTAMP = rf"[0-9]{{4}}-{_DAY}[Tt]{_CLOCK}:[0-5][0-9]{_REST}"
is_common_timestamp = re.compile(COMMON_TIMESTAMP).fullmatch
_rare_timestamp = re.compile(rf"[0-9]{{4}}-(?:{_DAY}|02-29)[Tt]{_CLOCK}:(?:[0-5][0-9]|60){_REST}").fullmatch
_timestamp_parts = re.compile(r"(.{4})-(..)-(..).(..):(..):(..)\.?([0-9]*)(?:[Zz]|([+-])(..):(..))").fullmatch
_MINUTES_A_DAY = 24 * 60


def is_timestamp(text: str) -> bool:
    """Whether the text is an RFC 3339 timestamp."""
    return bool(is_common_timestamp(text)) or (bool(_rare_timestamp(text)) and _day_and_second_exist(text))


def instant(text: str) -> tuple[int, int, str]:
    """What orders and equates timestamps: minutes in UTC, seconds, and the digits of the fraction."""
    found = _timestamp_parts(text)
    assert found is not None, "only what `is_timestamp` accepts has an instant"
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = found.groups()
    at = _days(int(year), int(month), int(day)) * _MINUTES_A_DAY + int(hour) * 60 + int(minute)
    if sign:
        offset = int(hours) * 60 + int(minutes)
        at += offset if sign == "-" else -offset
    return at, int(second), fraction.rstrip("0")


def format_timestamp(moment: datetime) -> str:
    """The RFC 3339 text of a moment with a time zone, in that zone; raises ValueError without one."""
    offset = moment.utcoffset()
    if offset is None:
        raise ValueError("has no time zone; which moment it means is not known")
    if offset.total_seconds() % 60:
        moment = moment.astimezone(UTC)
    text = moment.isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def _day_and_second_exist(text: str) -> bool:
    """Whether the year has that day and the minute that second."""
    year = int(text[:4])
    if text[5:10] == "02-29" and (year % 4 or (not year % 100 and year % 400)):
        return False
    if text[17:19] != "60":
        return True
    days, minute = divmod(instant(text)[0], _MINUTES_A_DAY)
    ends = (_days(near, *end) for near in (year - 1, year, year + 1) for end in ((6, 30), (12, 31)) if near >= 1972)
    return minute == _MINUTES_A_DAY - 1 and days in ends


def _days(year: int, month: int, day: int) -> int:
    """Days since the first of March of year 0, in the Gregorian calendar without end."""
    year, month = (year - 1, month + 9) if month < 3 else (year, month - 3)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1


# Media types ----------------------------------------------------------------------

EVENT = "application/cloudevents+json"
EVENT_BATCH = "application/cloudevents-batch+json"
JSON = "application/json"

# RFC 2045 section 5.1 `token`; quoted values are printable ASCII, so that a content type can be a header as it is.
_TOKEN = r"[!#$%&'*+\-.^_`{|}~0-9A-Za-z]+"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_PARAMETER = rf" *; *({_TOKEN})=({_TOKEN}|{_QUOTED})"
_media_type = re.compile(rf"({_TOKEN}/{_TOKEN})((?:{_PARAMETER})*)").fullmatch
_media_parameters = re.compile(_PARAMETER).finditer
_LONGEST_KEPT = 200


@dataclass(frozen=True, slots=True)
class MediaType:
    """A media type without its parameters, in lower case, and the parameters that say something to us."""

    name: str
    is_json: bool
    charset: str | None = None


def read_media_type(text: str) -> MediaType | None:
    """The media type that the text states; None where it does not state one."""
    return read_media_type_cached(text) if len(text) <= _LONGEST_KEPT else _parse_media_type(text)


def _parse_media_type(text: str) -> MediaType | None:
    found = _media_type(text)
    if found is None:
        return None
    name = found[1].lower()
    charset = None
    for parameter in _media_parameters(found[2]):
        if parameter[1].lower() == "charset":
            charset = re.sub(r"\\(.)", r"\1", parameter[2][1:-1]) if parameter[2][0] == '"' else parameter[2]
            break
    return MediaType(name, name.endswith(("/json", "+json")), charset)


# The same few content types come again and again.
read_media_type_cached = lru_cache(1024)(_parse_media_type)


# Attributes ----------------------------------------------------------------------

# The rules of CloudEvents 1.0.2 that this package holds, by the names its errors carry.
#
# Rule: an error names the first rule that was broken and lists every problem; each problem's `code` is a row here.
# The sections are those of the JSON format ("json"), the core ("core") and the HTTP binding ("http"); the other
# bindings say the same about their own carriers.


RULES: Mapping[str, str] = {
    "R1": "An event is exactly one JSON object (json 3).",
    "R2": "The text is UTF-8, without a byte order mark and without unpaired surrogates (RFC 8259 section 8).",
    "R3": "An attribute occurs once.",
    "R4": "The media type of an event is application/cloudevents+json, of a batch application/cloudevents-batch+json.",
    "R5": "An attribute's name is made of a to z and 0 to 9 (core, Attribute Naming Convention).",
    "R7": "id, source, specversion and type are there (core, REQUIRED Attributes).",
    "R8": "id, source, specversion and type are strings that are not empty.",
    "R9": "specversion is 1.0.",
    "R11": "data and data_base64 are not attributes.",
    "R12": "An attribute is a Boolean, an Integer, a String, or a type written as a string (json 2.2).",
    "R13": "An Integer is whole, from -2147483648 to 2147483647, without fraction or exponent.",
    "R15": "A String has no control characters, noncharacters or unpaired surrogates (core, Type System).",
    "R17": "time is an RFC 3339 timestamp.",
    "R18": "dataschema is an absolute URI (RFC 3986).",
    "R19": "source is a URI-reference (RFC 3986).",
    "R20": "subject is not empty; datacontenttype is a media type (RFC 2045).",
    "R24": "data and data_base64 exclude each other (json 3.1.1).",
    "R25": "data_base64 is a string of Base64 (RFC 4648 section 4), padded and without other characters.",
    "R28": "Data of a content type that is not JSON is a string (json 3.1).",
    "R31": "What cannot be written as its content type says is not written (json 3.1.1).",
    "R32": "A number in the data keeps its value.",
    "R34": "What has no JSON form is not written: NaN, infinity, unpaired surrogates.",
    "R35": "A batch is a JSON array of events (json 4).",
    "R37": "A batch is read and written as a batch only, an event as an event (json 4).",
    "R38": "The content type says which mode a message is in (http 3).",
    "R39": "Each attribute is one header; datacontenttype is the content type (http 3.1).",
    "R40": "A header's value is percent-encoded UTF-8 (http 3.1.3.2).",
    "R41": "The body is the data's bytes in its content type (http 3.1.2).",
    "R43": "An event is read whole or not at all; it has at most 10,000 attributes.",
}


class CloudEventError(SignalbookError):
    """What is not a CloudEvent, or cannot be written as one: every problem, with its path and its rule."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems

    @property
    def path(self) -> str:
        """Where the first problem is, as a JSON Pointer."""
        return self.problems[0].path

    @property
    def rule(self) -> str:
        """The rule that the first problem breaks, a name in `RULES`."""
        return self.problems[0].code

    def within(self, path: str) -> CloudEventError:
        """The same error, of an event that stands at `path`."""
        return CloudEventError(
            *(Problem(path + problem.path, problem.code, problem.message) for problem in self.problems)
        )

    def __str__(self) -> str:
        shown = [f"{_place(problem.path)}: {problem.message} [{problem.code}]" for problem in self.problems[:20]]
        more = len(self.problems) - len(shown)
        return "; ".join(shown) + (f"; and {more} more" if more else "")


def _place(path: str) -> str:
    """The path on one line and not too long, whatever a document calls its members."""
    return (path or "(event)") if path.isprintable() and len(path) <= 100 else repr(path[:100])


AttributeValue = str | bool | int | bytes

REQUIRED = ("specversion", "id", "source", "type")
MAX_ATTRIBUTES = 10_000
# core, REQUIRED and OPTIONAL Attributes
ATTRIBUTE_TYPES: Mapping[str, str] = {
    "specversion": "String",
    "id": "String",
    "source": "URI-reference",
    "type": "String",
    "datacontenttype": "String",
    "dataschema": "URI",
    "subject": "String",
    "time": "Timestamp",
}
_TYPE_NAMES: Mapping[type, str] = {str: "String", bool: "Boolean", int: "Integer", bytes: "Binary"}

# core, Type System: control characters, noncharacters, surrogates.
_NONCHARACTERS = "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(17))
_forbidden = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]").search
_control = re.compile("[\x00-\x1f\x7f]").search
_is_name = re.compile("[a-z0-9]+").fullmatch
_Words = tuple[str, str]


def check_attributes(given: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """The attributes that are set; raises `CloudEventError` with all that is wrong."""
    accepted = accepted_attributes(given.items(), _all_clean(given)) if len(given) <= MAX_ATTRIBUTES else None
    if accepted is None:
        raise CloudEventError(*problems(given))
    return accepted


def accepted_attributes(given: Iterable[tuple[str, Any]], clean: bool) -> dict[str, AttributeValue] | None:
    """The attributes that are set, or None where `problems` would have something to say.

    `clean` says that no string can hold a forbidden character, which is cheaper to know of the whole text.
    """
    accepted: dict[str, AttributeValue] = {}
    for name, value in given:
        kind = value.__class__
        if kind is str and not clean and not is_clean(value):
            return None
        if name in _CHECKS:
            if kind is not str:
                if value is None:
                    continue
                return None
            cached = _CACHED_CHECKS.get(name)
            # A text that is longer than usual is not worth a place in the cache.
            if not value or (cached and (len(value) > 200 or not cached(value)) and _CHECKS[name](value)):
                return None
        elif name == "data" or not _is_name(name) or not _is_extension(kind, value):
            return None
        elif value is None:
            continue
        accepted[name] = value
    if "id" in accepted and "source" in accepted and "type" in accepted and "specversion" in accepted:
        return accepted
    return None


def _is_extension(kind: type, value: Any) -> bool:
    if kind is int:
        return bool(-2147483648 <= value <= 2147483647)
    return kind is str or kind is bool or kind is bytes or value is None


def _all_clean(given: Mapping[str, Any]) -> bool:
    """Whether all values are strings that are clean, at one glance; where not, each is looked at."""
    try:
        text = "".join(given.values())
    except TypeError:
        return False
    return text.isascii() and not _control(text)


def is_clean(value: str) -> bool:
    """Whether a string holds only characters that strings may have."""
    return not _control(value) if value.isascii() else not _forbidden(value)


def problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Everything that is wrong with the attributes, each with its path and its rule."""
    if len(given) > MAX_ATTRIBUTES:
        yield too_many(len(given))
        return
    for name in REQUIRED:
        if given.get(name) is None:
            yield Problem(f"/{name}", "R7", f"{name} is required")
    for name, value in given.items():
        for rule, words in _faults(name, value):
            yield Problem(pointer(name), rule, f"{said(name)} {words}")


def flaw(name: str, value: AttributeValue) -> str | None:
    """Why no event can have the value for an attribute, in words that follow its name; None where one can."""
    return next((words for _, words in _faults(name, value)), None)


def too_many(count: int) -> Problem:
    """What is said of an event with more attributes than are read."""
    return Problem("", "R43", f"has {count:,} attributes; at most {MAX_ATTRIBUTES:,} are read")


def attribute_type(name: str, value: AttributeValue) -> str:
    """The attribute's type in the specification's words; an extension's is that of its value."""
    return ATTRIBUTE_TYPES.get(name) or _TYPE_NAMES[value.__class__]


def canonical(value: Any) -> str:
    """The canonical string of a value (core, Type System)."""
    if value.__class__ is str:
        return value
    if value.__class__ is bool:
        return "true" if value else "false"
    return str(value) if value.__class__ is int else base64.b64encode(value).decode()


def meaning(name: str, value: Any) -> Any:
    """What equates two values of an attribute: the moment of `time`, else the canonical string."""
    return instant(value) if name == "time" else canonical(value)


def plain(value: Any) -> Any:
    """A value as events hold it: a moment as its text, and no subclasses; others as they are."""
    if isinstance(value, datetime):
        try:
            return format_timestamp(value)
        except ValueError as error:
            raise CloudEventError(Problem("/time", "R17", f"time {error}")) from None
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else value


def is_name(name: str) -> bool:
    """Whether the text can be an attribute's name; 20 characters are advised, more are read."""
    return bool(_is_name(name))


def pointer(name: str) -> str:
    """The JSON Pointer of an attribute."""
    return f"/{name.encode('utf-8', 'backslashreplace').decode().replace('~', '~0').replace('/', '~1')}"


def said(name: str) -> str:
    """The name as an error says it: one that is not valid is quoted, and cut where it is long."""
    return name if is_name(name) and len(name) <= 60 else repr(name[:60])


def _faults(name: str, value: Any) -> Iterator[_Words]:
    if name in ("data", "data_base64"):
        yield "R11", "cannot be an attribute"
    elif not is_name(name):
        yield "R5", "is not an attribute name; a name is made of a to z and 0 to 9"
    if value is None:
        return
    required = name in REQUIRED
    if isinstance(value, str):
        bad = _forbidden(value)
        if bad:
            yield "R15", f"holds the character U+{ord(bad[0]):04X} at {bad.start()}, which no string may have"
        wrong = _CHECKS[name](value) if name in _CHECKS else None
        if wrong:
            yield wrong
    elif name in _CHECKS:
        yield "R8" if required else "R12", f"must be a string, not {_kind_of(value)}"
    elif value.__class__ in (int, float):
        if value.__class__ is float or not -2147483648 <= value <= 2147483647:
            yield "R13", "must be an integer from -2147483648 to 2147483647, written without fraction or exponent"
    elif value.__class__ not in (bool, bytes):
        yield "R12", f"must be a string, an integer or true or false, not {_kind_of(value)}"


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return "a number"
    kinds: tuple[tuple[type, str], ...] = ((Mapping, "an object"), (list, "an array"), (bytes, "bytes"))
    return next((words for kind, words in kinds if isinstance(value, kind)), f"a {value.__class__.__name__}")


def _not_empty(value: str) -> _Words | None:
    return None if value else ("R8", "must not be empty")


def _specversion(value: str) -> _Words | None:
    if value == "1.0":
        return None
    return (
        ("R9", f"must be 1.0, not {value[:40]!r}; other versions are not read")
        if value
        else ("R8", "must not be empty")
    )


def _source(value: str) -> _Words | None:
    if value and is_uri_reference(value):
        return None
    return ("R19", "must be a URI-reference (RFC 3986)") if value else ("R8", "must not be empty")


def _dataschema(value: str) -> _Words | None:
    return None if is_absolute_uri(value) else ("R18", "must be an absolute URI (RFC 3986)")


def _datacontenttype(value: str) -> _Words | None:
    return None if read_media_type(value) else ("R20", "must be a media type such as application/json (RFC 2045)")


def _subject(value: str) -> _Words | None:
    return None if value else ("R20", "must not be empty")


def _time(value: str) -> _Words | None:
    return None if is_timestamp(value) else ("R17", "must be an RFC 3339 timestamp such as 2018-04-05T17:31:00Z")


_CHECKS: Mapping[str, Callable[[str], _Words | None]] = {
    "specversion": _specversion,
    "id": _not_empty,
    "source": _source,
    "type": _not_empty,
    "datacontenttype": _datacontenttype,
    "dataschema": _dataschema,
    "subject": _subject,
    "time": _time,
}
# The same checks with an answer from a cache, for values that come again and again; what these reject, `_CHECKS` judge.
_CACHED_CHECKS: Mapping[str, Callable[[str], object]] = {
    "specversion": "1.0".__eq__,
    "source": is_uri_reference_cached,
    "datacontenttype": read_media_type_cached,
    "dataschema": is_absolute_uri_cached,
    "time": is_common_timestamp,
}
