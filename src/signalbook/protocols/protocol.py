"""What a protocol is: `Protocol`, one frozen value that states everything about it; and the kinds of fields.

Rule 1: what protocols differ in is in their values, one module each; nothing else asks which protocol it has.
Rule 2: whatever reads a message here takes its fields (`Fields`), in the Python types that their kinds say.
Rule 3: a kind's `read` takes the JSON value and gives the Python one, adding what is wrong to a list; `write` is its
inverse. `from_python` takes what a caller gives in Python: bytes or text where bytes are held, any sequence or map of
pairs.
Rule 4: multi-valued fields are tuples of pairs, in the order observed; a name may occur again.
"""

from __future__ import annotations

import base64
import binascii
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from signalbook.cloudevents.attributes import AttributeValue
from signalbook.errors import Problem
from signalbook.protocols.values import FILLINGS, Flaw, PropertyPlace, PropertySection, ValueForm, typed

__all__ = [
    "BINARY", "BYTES", "BYTE_PAIRS", "FLAG", "MOMENT", "PAIRS", "TEXT", "Binding", "FieldKind", "Fields", "Mode",
    "Option", "PaperField", "Protocol", "Read", "as_text", "choice", "coded", "on_paper", "pointer", "route",
    "values_in", "whole",
]  # fmt: skip

Fields = Mapping[str, Any]
Read = Callable[[Any, str, list[Problem]], Any]


@dataclass(frozen=True, slots=True)
class FieldKind:
    """How a field is read from paper and written to it; `write` gives the ending of its name there and the value."""

    name: str
    read: Read
    write: Callable[[Any], tuple[str, Any]]
    from_python: Read


def pointer(path: str, name: str) -> str:
    """The JSON Pointer of a member."""
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"


def _wrong(problems: list[Problem], path: str, expected: str) -> None:
    problems.append(Problem(path, "type", f"must be {expected}"))


def _as_it_is(value: Any) -> tuple[str, Any]:
    return "", value


def _alike(name: str, read: Read, write: Callable[[Any], tuple[str, Any]] = _as_it_is) -> FieldKind:
    """A kind whose JSON form is read as its Python form is."""
    return FieldKind(name, read, write, read)


def _read_flag(value: Any, path: str, problems: list[Problem]) -> Any:
    if type(value) is not bool:
        _wrong(problems, path, "true or false")
    return value


def _read_text(value: Any, path: str, problems: list[Problem]) -> Any:
    if type(value) is not str:
        _wrong(problems, path, "a text")
    elif not value.isascii():
        _encoded(value, path, problems)
    return value


def _encoded(text: str, path: str, problems: list[Problem]) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        _wrong(problems, path, "a text without unpaired surrogates")
        return b""


def whole(lowest: int, highest: int) -> FieldKind:
    """An integer between two bounds."""

    def read(value: Any, path: str, problems: list[Problem]) -> Any:
        if type(value) is not int or not lowest <= value <= highest:
            _wrong(problems, path, f"an integer from {lowest} to {highest}")
        return value

    return _alike("integer", read)


def coded(lowest: int, highest: int) -> FieldKind:
    """The same, which may be written as a text of its digits."""
    plain = whole(lowest, highest)

    def read(value: Any, path: str, problems: list[Problem]) -> Any:
        is_text = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= len(str(highest))
        return plain.read(int(value) if is_text else value, path, problems)

    return _alike("integer", read)


def choice(*names: str) -> FieldKind:
    """One of a few words."""

    def read(value: Any, path: str, problems: list[Problem]) -> Any:
        if value not in names:
            _wrong(problems, path, f"one of {', '.join(names)}")
        return value

    return _alike("choice", read)


def _read_moment(value: Any, path: str, problems: list[Problem]) -> Any:
    if type(value) not in (int, str):
        _wrong(problems, path, "milliseconds since 1970, or a text")
    return value


def _read_text_bytes(value: Any, path: str, problems: list[Problem]) -> bytes:
    if not isinstance(value, str):
        _wrong(problems, path, "a text")
        return b""
    return _encoded(value, path, problems)


def _bytes_from_python(value: Any, path: str, problems: list[Problem]) -> bytes:
    if isinstance(value, (bytes, str)):
        return value if isinstance(value, bytes) else _encoded(value, path, problems)
    _wrong(problems, path, "bytes or a text")
    return b""


def _read_binary(value: Any, path: str, problems: list[Problem]) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        _wrong(problems, path, "Base64 text")
        return b""


def _write_bytes(value: bytes) -> tuple[str, Any]:
    try:
        return "", value.decode()
    except UnicodeDecodeError:
        return "_base64", base64.b64encode(value).decode()


def _read_pairs(read_value: Read) -> Read:
    def read(value: Any, path: str, problems: list[Problem]) -> tuple[tuple[str, Any], ...]:
        if isinstance(value, Mapping):
            return tuple(
                (_read_text(name, path, problems), read_value(item, pointer(path, str(name)), problems))
                for name, item in value.items()
            )
        if not isinstance(value, (list, tuple)):
            _wrong(problems, path, "an array of [name, value]")
            return ()
        pairs = []
        for index, pair in enumerate(value):
            place = f"{path}/{index}"
            if isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str):
                name = _read_text(pair[0], f"{place}/0", problems)
                pairs.append((name, read_value(pair[1], f"{place}/1", problems)))
            else:
                _wrong(problems, place, "an array of a name and a value")
        return tuple(pairs)

    return read


def _read_header(value: Any, path: str, problems: list[Problem]) -> bytes | None:
    """A Kafka header's value: text, null, or bytes that are not text as {"base64": …}."""
    if value is None:
        return None
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return _read_binary(value["base64"], f"{path}/base64", problems)
    if isinstance(value, dict):
        _wrong(problems, path, 'a text, null or {"base64": …}')
        return None
    return _read_text_bytes(value, path, problems)


def _header_from_python(value: Any, path: str, problems: list[Problem]) -> bytes | None:
    return None if value is None else _bytes_from_python(value, path, problems)


def _write_header(value: bytes | None) -> Any:
    if value is None:
        return None
    ending, written = _write_bytes(value)
    return {"base64": written} if ending else written


TEXT = _alike("text", _read_text)
FLAG = _alike("boolean", _read_flag)
MOMENT = _alike("moment", _read_moment)
BYTES = FieldKind("bytes", _read_text_bytes, _write_bytes, _bytes_from_python)
BINARY = _alike("base64", _read_binary, _write_bytes)
PAIRS = _alike("pairs", _read_pairs(_read_text), lambda pairs: ("", [[name, value] for name, value in pairs]))
BYTE_PAIRS = FieldKind(
    "headers",
    _read_pairs(_read_header),
    lambda pairs: ("", [[name, _write_header(value)] for name, value in pairs]),
    _read_pairs(_header_from_python),
)


@dataclass(frozen=True, slots=True)
class PaperField:
    """How a name on paper is read: the field it means and the kind of its value."""

    field: str
    kind: FieldKind


def on_paper(**table: FieldKind) -> dict[str, PaperField]:
    """The names on paper of fields; one that holds bytes may be written in Base64 under a name of its own."""
    rows = {}
    for name, kind in table.items():
        rows[name] = PaperField(name, kind)
        if kind is BYTES:
            rows[f"{name}_base64"] = PaperField(name, BINARY)
    return rows


# How CloudEvents are carried ------------------------------------------------------------------------------------------


class Mode(enum.StrEnum):
    """How an event is laid into a message."""

    BINARY = "binary"
    STRUCTURED = "structured"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Binding:
    """How a protocol carries events.

    `modes` begins with the one that holds where no content type says another. `attributes_in` is the field whose
    members can be attributes, `content_types` gives what stands where the content type is; `read_value` and
    `write_value` convert one value and raise ValueError; `fields` lays out a message of a content type and pairs (None
    of them in structured mode).
    """

    protocol: str
    modes: tuple[Mode, ...]
    attributes_in: str
    content_types: Callable[[Fields], list[Any]]
    fields: Callable[[str | None, Iterable[tuple[str, Any]] | None], Fields]
    read_value: Callable[[Any], AttributeValue | None]
    write_value: Callable[[AttributeValue], Any]
    prefixes: tuple[str, ...] = ("",)
    any_case: bool = False
    # Whether datacontenttype may stand among the attributes too (it must then be the same), or only there.
    repeats_content_type: bool = False
    # The attributes that make a message without content type an event, or a broken one.
    marks: tuple[str, ...] = ("specversion", "id", "source", "type")
    # Whether zero bytes are another thing than no payload.
    tells_empty: bool = False
    # The header for the content type of a message that is not an event, where an event has it as an attribute.
    native_content_type: str = ""
    # The form in which a binary event has its extensions.
    form: ValueForm = ValueForm.TEXT

    def carried(self, fields: Fields) -> Iterable[tuple[str, Any]]:
        """The names and values of a message that can be attributes."""
        held = fields.get(self.attributes_in, ())
        return held if held.__class__ is tuple or not isinstance(held, Mapping) else held.items()


# The protocol ---------------------------------------------------------------------------------------------------------


def _write_typed(type_: str, value: Any) -> Any:
    return typed(type_, value)


def _no_fields(fields: Fields) -> Fields:
    return {}


def _nothing(fields: Fields) -> Any:
    return None


def _no_values(fields: Fields) -> Sequence[Any]:
    return ()


def _payload(fields: Fields, payload: bytes | None) -> bytes | None:
    return payload or None


def _no_problems(fields: Fields, payload: bytes | None) -> Iterator[Problem]:
    return iter(())


def _no_names(fields: Fields) -> frozenset[str]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class Option:
    """How an option that is not just the field of its name is read from a message, and written to one.

    `read` gives all values that the field's own value can be stated by; where a message does not have the field, it is
    `default`. Both take the type that a definition states and the value; `write` raises ValueError.
    """

    field: str
    read: Callable[[str, Any], Sequence[Any]] = lambda type_, value: (value,)
    write: Callable[[str, Any], Any] = _write_typed
    default: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Protocol:
    """Everything that is to be known of a protocol.

    `fields` are the names on paper, `options` the places for which a definition can state a value (message/spec.md,
    Message Protocols, in canonical spelling); an option is the field of its name unless `special` says more.
    """

    name: str
    binding: Binding
    fields: Mapping[str, PaperField]
    options: Mapping[str, PropertyPlace | PropertySection]
    special: Mapping[str, Option] = field(default_factory=dict)
    # Other names of the protocol in lower case, and whether any version may follow its name and a slash.
    aliases: tuple[str, ...] = ()
    any_version: bool = False
    # Other names of a message's options and of an endpoint's.
    option_aliases: Mapping[str, str] = field(default_factory=dict)
    endpoint_aliases: Mapping[str, str] = field(default_factory=dict)
    # Pairs of options of which a definition states one at most; the first of a pair is the one at fault.
    exclusive: tuple[tuple[str, str], ...] = ()
    # What a consumer routes by, the first that a definition states counts, each an option and a name in it or ""; and
    # the options that belong to it.
    keys: tuple[tuple[str, str], ...] = ()
    beside_key: tuple[str, ...] = ()
    # Options that a definition's messages must have where the message has fields of which this holds.
    needed: Mapping[str, Callable[[Fields], bool]] = field(default_factory=dict)
    # What identifies a message among all of its transport, when it was sent, and what it is about or where it goes.
    identity: Callable[[Fields], str | None] = _nothing
    moment: Callable[[Fields], Any] = _nothing
    target: Callable[[Fields], Any] = _nothing
    content_encodings: Callable[[Fields], Sequence[Any]] = _no_values
    # The bytes of a payload that a schema validates; None where the message has no payload.
    data: Callable[[Fields, bytes | None], bytes | None] = _payload
    # Whether a header may hold the frame of the payload, in the newer form of Confluent's.
    frame_in_header: bool = False
    # The field that a message cannot be sent without, and the option of an endpoint that says the same.
    address: str | None = None
    endpoint_address: str = ""
    # The schemes that the addresses of endpoints have.
    schemes: tuple[str, ...] = ()
    # What a build adds to the fields of a message, and the property that it makes an id for.
    added: Callable[[Fields], Fields] = _no_fields
    id_property: tuple[str, str] | None = None
    # What is wrong with the texts of a message that is to be sent: of a field, of the names and values in one, and all
    # else. With `whole_pairs` a pair is one thing, of which only the first problem is reported.
    texts: Mapping[str, Flaw] = field(default_factory=dict)
    pairs: Mapping[str, tuple[Flaw | None, Flaw | None]] = field(default_factory=dict)
    whole_pairs: frozenset[str] = frozenset()
    problems: Callable[[Fields, bytes | None], Iterator[Problem]] = _no_problems
    # The fields that are true of one connection or of just some bytes of payload; and the members that are, by field.
    of_connection: frozenset[str] = frozenset()
    of_payload: frozenset[str] = frozenset()
    connection_names: Callable[[Fields], frozenset[str]] = _no_names


# What modules of protocols have in common -----------------------------------------------------------------------------


def route(test: Flaw, *fillings: str) -> PropertyPlace:
    """A topic, subject or path: a URI template, of which a protocol may not send any text."""
    return PropertyPlace("uritemplate", test=test, fillings=(*FILLINGS, *fillings), is_route=True)


def values_in(field: str, name: str) -> Callable[[Fields], list[Any]]:
    """Reads every value that a field of pairs has under a name in lower case, however it is written."""
    return lambda fields: [value for found, value in fields.get(field, ()) if found.lower() == name]


def as_text(content: bytes) -> str | bytes:
    """Bytes as the text they are, or as they are."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
