"""The table of protocols, and `Message`: one message of any of them, its JSON form, and what it must be to be sent.

Rule 1: a new protocol is a module of its own and a row of `PROTOCOLS`. A definition, a message on paper, an endpoint
and a document of an older dialect mean the same protocol by the same name; a name that is not here belongs to a
protocol that somebody else defines.
Rule 2: `OPTIONS` is the one table of what a definition can state: a write rejects by it, lint names by it, a match is
made by it, a build is typed by it. A message's fields carry the same names; which ones a protocol has is in `FIELDS`.
Rule 3: `from_json(m.to_json()) == m`; what is wrong with a message on paper is listed whole, each with its path.
Rule 4: `Message(…)` itself checks nothing: who makes one from a client's objects gives the Python types of `fields`;
`settled` is for fields that somebody else has given.
Rule 5: a message that was observed need not be fit to be sent. One that is to be sent, and that its carrier would cut,
change, reject or misunderstand, is a `WireError` before that. What no message can be sent with, no definition may
demand either: a place has the same test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import msgspec
import orjson

from signalbook.errors import Problem, SignalbookError
from signalbook.jsontext import JsonError, read_members
from signalbook.protocols.amqp import AMQP
from signalbook.protocols.http import HTTP
from signalbook.protocols.kafka import KAFKA
from signalbook.protocols.mqtt import MQTT3, MQTT5
from signalbook.protocols.nats import NATS
from signalbook.protocols.protocol import BINARY, BYTES, Binding, FieldKind, PaperField, Protocol, Read, pointer
from signalbook.protocols.values import (
    EVENT_FORMAT,
    EVENT_MODE,
    Flaw,
    Property,
    PropertyPlace,
    PropertySection,
    attribute_place,
    canonical,
    named_members,
    section_fault,
)

__all__ = [
    "ALIASES",
    "BINDINGS",
    "FIELDS",
    "OPTIONS",
    "PROTOCOLS",
    "Message",
    "WireError",
    "address_of",
    "exclusion_faults",
    "find_protocol",
    "is_protocol_name",
    "sendable",
    "sending_problems",
    "stated_names",
    "stated_properties",
    "stated_protocol",
]

# The protocols ------------------------------------------------------------------------------------------

# message/spec.md and endpoint/spec.md, `protocol`, by the specification's own names.
PROTOCOLS: Mapping[str, Protocol] = MappingProxyType({row.name: row for row in (HTTP, AMQP, MQTT5, MQTT3, KAFKA, NATS)})
FIELDS: Mapping[str, Mapping[str, PaperField]] = {name: row.fields for name, row in PROTOCOLS.items()}
OPTIONS: Mapping[str, Mapping[str, PropertyPlace | PropertySection]] = {
    name: row.options for name, row in PROTOCOLS.items()
}
BINDINGS: Mapping[str, Binding] = {name: row.binding for name, row in PROTOCOLS.items()}
# Every name of a protocol in lower case: any case is one name; "AMQP" and "MQTT" stand for AMQP/1.0 and MQTT/5.0.
ALIASES: Mapping[str, str] = MappingProxyType(
    {alias: name for name, row in PROTOCOLS.items() for alias in (name.lower(), *row.aliases)}
)
# What public catalogs write (clemensv/real-time-sources) where a message has no protocol.
_NO_PROTOCOL = frozenset({"", "none"})
# A protocol that has no version in its name stands for all its versions: HTTP/1.1, HTTP/3.0, Kafka/0.11, NATS/2.10.
_ANY_VERSION = "|".join(re.escape(name.lower()) for name, row in PROTOCOLS.items() if row.any_version)
_VERSIONED = re.compile(rf"({_ANY_VERSION})/[0-9]+(?:\.[0-9]+)*", re.ASCII)

_NAME = re.compile(r"[^/\s]+(/\S+)?")
_OUR_NAMES = frozenset(name.partition("/")[0].lower() for name in PROTOCOLS)
# Of any protocol, so that one that is not known yet is not refused: MQTT/6, AMQP/0.9.1, HTTP/3-draft.
_VERSION = re.compile(r"[0-9A-Za-z]+(?:[.+_~-][0-9A-Za-z]+)*")


def find_protocol(name: object) -> str | None:
    """The specification's name of a protocol, from any spelling of it; None where it is not one of those."""
    if not isinstance(name, str) or not name.isascii():
        return None
    lower = name.lower()
    if (found := ALIASES.get(lower)) is not None:
        return found
    versioned = _VERSIONED.fullmatch(lower)
    return ALIASES[versioned[1]] if versioned else None


def is_protocol_name(text: str) -> bool:
    """Whether a text is a name, or a name and a version; one of ours has no version but a well-formed one."""
    name, slash, version = text.partition("/")
    if not _NAME.fullmatch(text):
        return False
    return not slash or name.lower() not in _OUR_NAMES or _VERSION.fullmatch(version) is not None


def stated_protocol(value: object) -> str | None:
    """The protocol that a definition states; `None`, which public catalogs write, is a word for having none."""
    return None if value is None or str(value).lower() in _NO_PROTOCOL else str(value)


def address_of(protocol: str) -> str | None:
    """The field that says where a message goes, where it must be there.

    None where it need not: a client of HTTP and AMQP may have the address from its connection.
    """
    row = PROTOCOLS.get(protocol)
    return None if row is None else row.address


Path = tuple[str | int, ...]


def stated_properties(
    attrs: Mapping[str, Any], event: bool, protocol: str
) -> Iterator[tuple[Path, PropertyPlace, Property]]:
    """Every property that a canonical definition states: its path, its place, and what is stated.

    `event` says that its envelope is CloudEvents, `protocol` is the canonical name of its protocol.
    """
    if event:
        for key, name, member in named_members(attrs.get("envelopemetadata")):
            yield ("envelopemetadata", key), attribute_place(name, member, attrs), Property.of(member)
        stated = attrs.get("envelopeoptions")
        chosen: Mapping[str, Any] = stated if isinstance(stated, Mapping) else {}
        for name, place in (("mode", EVENT_MODE), ("format", EVENT_FORMAT)):
            if name in chosen:
                yield ("envelopeoptions", name), place, Property.plain(chosen[name])
    options = attrs.get("protocoloptions")
    table = OPTIONS.get(protocol)
    if table is None or not isinstance(options, Mapping):
        return
    for name, value in options.items():
        found = table.get(name)
        if isinstance(found, PropertySection):
            if (words := section_fault(value)) is not None:
                yield ("protocoloptions", name), found.other, Property(flaw=words)
            yield from _stated_members(("protocoloptions", name), found, value)
        elif found is not None:
            yield ("protocoloptions", name), found, Property.plain(value)


def _stated_members(path: Path, section: PropertySection, value: Any) -> Iterator[tuple[Path, PropertyPlace, Property]]:
    for key, name, member in named_members(value):
        given = Property.plain(member) if section.plain else Property.of(member)
        yield (*path, key), section.place(name), given


def exclusion_faults(protocol: str, options: Any) -> Mapping[str, str]:
    """The options of a canonical definition that stand beside one that excludes them, with words that follow them."""
    row = PROTOCOLS.get(protocol)
    if row is None or not row.exclusive or not isinstance(options, Mapping):
        return _NO_FAULTS
    return {
        option: f'must not be present together with "{other}"'
        for option, other in row.exclusive
        if options.get(option) is not None and options.get(other) is not None
    }


_NO_FAULTS: Mapping[str, str] = MappingProxyType({})


def stated_names(attrs: Mapping[str, Any], protocol: str) -> Iterator[tuple[Path, PropertySection, str]]:
    """Every named property of a canonical definition's protocol: its path, its section and its name."""
    options = attrs.get("protocoloptions")
    if not isinstance(options, Mapping):
        return
    for field_name, section in OPTIONS.get(protocol, {}).items():
        if isinstance(section, PropertySection) and not section.plain:
            for key, name, _ in named_members(options.get(field_name)):
                yield ("protocoloptions", field_name, key), section, name


# Messages ------------------------------------------------------------------------------------------

_PAYLOADS = ("payload", "payload_base64", "payload_json")


class WireError(SignalbookError):
    """What is wrong with a message that cannot be read or sent: every problem, with its path."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "; ".join(f"{problem.path or '(message)'}: {problem.message}" for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Message:
    """One observed message: its protocol, that protocol's own fields, and the payload's bytes (None: it has none)."""

    protocol: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    payload: bytes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", MappingProxyType(dict(self.fields)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Message, (self.protocol, dict(self.fields), self.payload)

    def get(self, name: str, default: Any = None) -> Any:
        """The field's value, or the default where the message has none."""
        return self.fields.get(name, default)

    def values(self, name: str, key: str, *, any_case: bool = False) -> list[Any]:
        """Every value that a multi-valued field has under a key."""
        pairs = self.fields.get(name, ())
        if any_case:
            key = key.lower()
            return [value for found, value in pairs if found.lower() == key]
        return [value for found, value in pairs if found == key]

    @classmethod
    def from_json(cls, document: bytes | str | Mapping[str, Any]) -> Message:
        """The message that a JSON text or its value means; raises `WireError`.

        From a text, the payload in `payload_json` keeps its spelling and its numbers exactly.
        """
        problems: list[Problem] = []
        members = _members(document)
        protocol = _known_protocol(members.pop("protocol", None))
        payload = _read_payload(members, problems)
        found = _read_fields(protocol, members.items(), lambda kind: kind.read, problems)
        if problems:
            raise WireError(*problems)
        return cls(protocol, found, payload)

    def settled(self) -> Message:
        """The message with each field under its own name and in its own Python type; raises `WireError`.

        Older spellings are taken, and a name in Python may have underscores for hyphens.
        """
        problems: list[Problem] = []
        protocol = _known_protocol(self.protocol)
        members = ((_on_paper(name, FIELDS[protocol]), value) for name, value in self.fields.items())
        payload: Any = self.payload
        if not isinstance(payload, bytes | None):
            problems.append(Problem("/payload", "type", "must be bytes or None"))
        found = _read_fields(protocol, members, lambda kind: kind.from_python, problems)
        if problems:
            raise WireError(*problems)
        return Message(protocol, found, self.payload)

    def to_json(self) -> dict[str, Any]:
        """The message on paper, as a JSON value; a payload that is not a text goes into `payload_base64`."""
        written: dict[str, Any] = {"protocol": self.protocol}
        table = FIELDS[self.protocol]
        for name, value in self.fields.items():
            if value is not None:
                ending, form = table[name].kind.write(value)
                written[name + ending] = form
        if self.payload is not None:
            ending, form = BYTES.write(self.payload)
            written["payload" + ending] = form
        return written

    def to_bytes(self) -> bytes:
        """The message on paper, as one line of JSON."""
        return orjson.dumps(self.to_json())


def _known_protocol(name: Any) -> str:
    protocol = find_protocol(name)
    if protocol is None:
        known = ", ".join(FIELDS)
        shown = canonical(name) if isinstance(name, (int, float)) else f'"{name}"'
        words = (
            f"{shown} is not a protocol; use one of {known}" if name is not None else f"is missing; use one of {known}"
        )
        raise WireError(Problem("/protocol", "value", words))
    return protocol


def _members(document: bytes | str | Mapping[str, Any]) -> dict[str, Any]:
    """The members as JSON values; `payload_json` as the text it is."""
    if isinstance(document, Mapping):
        return dict(document)
    try:
        raw = read_members(document.encode() if isinstance(document, str) else bytes(document))
        return {
            name: bytes(text) if name == "payload_json" else msgspec.json.decode(text) for name, text in raw.items()
        }
    except (JsonError, UnicodeError, RecursionError, msgspec.DecodeError) as error:
        raise WireError(Problem("", "malformed", f"is not one JSON object: {error}")) from None


def _read_payload(members: dict[str, Any], problems: list[Problem]) -> bytes | None:
    values = {name: members.pop(name) for name in _PAYLOADS if name in members}
    # Null is the payload that payload_json gives; elsewhere it says that there is none.
    given = [name for name, value in values.items() if value is not None or name == "payload_json"]
    if len(given) > 1:
        problems.append(Problem(f"/{given[1]}", "value", f"must not be there together with {given[0]}"))
    if not given:
        return None
    name = given[0]
    value, path = values[name], f"/{name}"
    if name != "payload_json":
        kind = BYTES if name == "payload" else BINARY
        return kind.read(value, path, problems)  # type: ignore[no-any-return]
    if isinstance(value, bytes):
        return value
    try:
        return orjson.dumps(value)
    except TypeError as error:
        problems.append(Problem(path, "type", f"is not a JSON value: {error}"))
        return None


def _on_paper(name: str, table: Mapping[str, PaperField]) -> str:
    """The field's name as it is on paper, of one that Python may have written with underscores."""
    hyphened = name.replace("_", "-")
    return hyphened if name not in table and hyphened in table else name


def _read_fields(
    protocol: str, members: Iterable[tuple[str, Any]], way: Callable[[FieldKind], Read], problems: list[Problem]
) -> dict[str, Any]:
    table = FIELDS[protocol]
    found: dict[str, Any] = {}
    for name, value in members:
        row = table.get(name)
        if row is None:
            known = ", ".join(dict.fromkeys(spelling.field for spelling in table.values()))
            words = f"is not a field of {protocol}; it has {known}"
            problems.append(Problem(pointer("", name), "unknown", words))
        elif value is None:
            continue
        elif row.field in found:
            problems.append(Problem(pointer("", name), "value", f"gives {row.field} a second time"))
        else:
            found[row.field] = way(row.kind)(value, pointer("", name), problems)
    return found


# What is sent ------------------------------------------------------------------------------------------


def sendable(message: Message) -> Message:
    """The message, its fields under their own names and in their own types; raises `WireError` where it is not fit."""
    settled = message.settled()
    wrong = tuple(sending_problems(settled))
    if wrong:
        raise WireError(*wrong)
    return settled


def sending_problems(message: Message) -> Iterator[Problem]:
    """Why a settled message could not be sent as it is."""
    row = PROTOCOLS[message.protocol]
    for name, test in row.texts.items():
        yield from _wrong(test, message.get(name), f"/{name}")
    for name, tests in row.pairs.items():
        is_whole = name in row.whole_pairs
        for index, pair in enumerate(message.get(name) or ()):
            found = [
                problem
                for place, (test_of, text) in enumerate(zip(tests, pair, strict=True))
                for problem in _wrong(test_of, text, f"/{name}/{index}" + ("" if is_whole else f"/{place}"))
            ]
            yield from found[:1] if is_whole else found
    yield from row.problems(message.fields, message.payload)


def _wrong(test: Flaw | None, text: Any, path: str) -> Iterator[Problem]:
    words = test(text) if test is not None and text is not None else None
    if words is not None:
        yield Problem(path, "value", words)
