"""Decoded Protobuf messages: their plain values, and what is wrong with them beyond what the parser rejects.

Rule 1: fields go by their names in the .proto text. A field without presence is always there, with its default; one
with presence only where it is set.
Rule 2: enums are their names (a number where an open enum has none), bytes are bytes, maps are dictionaries; wrappers
are their value or None; `Struct`, `Value` and `ListValue` are JSON values; `Timestamp` and `Duration` are the texts
of the JSON mapping; `Any` is `{"@type": …, "value": Base64}`. Set extensions go by their names in square brackets.
Rule 3: a field whose number the message does not know is accepted, as the language means it: a newer writer may have
it. A known number with another wire type, or with a value that a closed enum lacks, is a problem; the parser puts
both aside in silence.
Rule 4: text is UTF-8, also in proto2; a `Timestamp` lies in the years 1 to 9999 and a `Duration` within 10,000 years,
as their definitions say.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from signalbook.errors import Problem
from signalbook.schemas.format import pointer

__all__ = [
    "JSON_TYPES",
    "WRAPPERS",
    "Inspector",
    "MessageValue",
    "changed_values",
    "inspector",
    "is_map",
    "jsonable",
    "locate",
    "missing_required",
    "plain",
    "problems",
    "text_of",
    "took_all",
]

WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
)
JSON_TYPES = frozenset({"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"})


def is_map(field: FieldDescriptor) -> bool:
    """Tell whether a field is a map."""
    kind = field.message_type
    return kind is not None and field.is_repeated and kind.GetOptions().map_entry


class MessageValue(Mapping[str, Any]):
    """A message that reads as a dictionary of its fields; it is turned into one on first use."""

    __slots__ = ("_plain", "message")

    def __init__(self, message: Message) -> None:
        self.message = message

    @property
    def plain(self) -> dict[str, Any]:
        """The dictionary itself."""
        try:
            return self._plain
        except AttributeError:
            found = plain(self.message)
            self._plain: dict[str, Any] = found if isinstance(found, dict) else {"value": found}
            return self._plain

    def __getitem__(self, key: str) -> Any:
        return self.plain[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.plain)

    def __len__(self) -> int:
        return len(self.plain)

    def __repr__(self) -> str:
        return repr(self.plain)

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, (self.plain,))


def plain(message: Message) -> Any:
    """A message as a dictionary, or as the value that its well-known type stands for."""
    return _plan(message.DESCRIPTOR)(message)


# Descriptors keep their pools alive, so that this cache is bounded.
@lru_cache(maxsize=1024)
def _plan(descriptor: Descriptor) -> Callable[[Any], Any]:
    """What makes the plain value of each message of a type."""
    special = _SPECIAL.get(descriptor.full_name)
    if special is not None:
        return special
    reads = [(field.name, field.has_presence, _field_reader(field)) for field in descriptor.fields]
    extendable = descriptor.is_extendable

    def of_message(message: Any) -> dict[str, Any]:
        found = {
            name: getattr(message, name) if read is None else read(getattr(message, name))
            for name, presence, read in reads
            if not presence or message.HasField(name)
        }
        if extendable:
            for field, value in message.ListFields():
                if field.is_extension:
                    read = _field_reader(field)
                    found[f"[{field.full_name}]"] = value if read is None else read(value)
        return found

    return of_message


def _field_reader(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    """What makes the plain value of a field's; None where it is the same."""
    if is_map(field):
        one = _value_reader(field.message_type.fields_by_name["value"]) or _same
        return lambda values: {key: one(values[key]) for key in values}
    read = _value_reader(field)
    if not field.is_repeated:
        return read
    return list if read is None else lambda values: [read(value) for value in values]


def _value_reader(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    if field.message_type is not None:
        return plain
    if field.enum_type is not None:
        names = {value.number: value.name for value in reversed(field.enum_type.values)}
        return lambda number: names.get(number, number)
    return None


def _same(value: Any) -> Any:
    return value


def text_of(message: Message) -> str:
    """A message as JSON text: bytes in Base64, numbers that JSON lacks as text."""
    return json.dumps(jsonable(plain(message)), ensure_ascii=False, separators=(",", ":"))


def jsonable(value: Any) -> Any:
    """A plain value as JSON has it."""
    if isinstance(value, dict):
        return {_key(key): jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [jsonable(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _any(message: Any) -> dict[str, str]:
    return {"@type": message.type_url, "value": base64.b64encode(message.value).decode()}


def _struct_value(message: Any) -> Any:
    """`Struct`, `Value` and `ListValue` as JSON; a `Value` with nothing in it is null."""
    name = message.DESCRIPTOR.name
    if name == "Struct":
        return {key: _struct_value(message.fields[key]) for key in message.fields}
    if name == "ListValue":
        return [_struct_value(one) for one in message.values]
    kind = message.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    found = getattr(message, kind)
    return _struct_value(found) if kind in ("struct_value", "list_value") else found


def _json_string(message: Any) -> Any:
    return message.ToJsonString()


def _wrapped(message: Any) -> Any:
    return message.value


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    "google.protobuf.Any": _any,
    "google.protobuf.Timestamp": _json_string,
    "google.protobuf.Duration": _json_string,
    **dict.fromkeys(JSON_TYPES, _struct_value),
    **dict.fromkeys(WRAPPERS, _wrapped),
}


Steps = tuple[str | int, ...]
# Tells whether what the parser does not look at is right; where it is not, `problems` says what.
Inspector = Callable[[Any], bool]

_SECONDS = {
    "google.protobuf.Timestamp": (-62_135_596_800, 253_402_300_799),
    "google.protobuf.Duration": (-315_576_000_000, 315_576_000_000),
}
_PROBLEMS = 100
_DEEPEST = 100


def took_all(message: Message, length: int) -> bool:
    """Tell whether the parser put nothing aside, throwing away what it did; `length` is that of the bytes.

    What is left is written again: of the same length, nothing is missing. That is cheap, and says no too often (numbers
    written longer than needed, default values written out); who asks then looks closer.
    """
    message.DiscardUnknownFields()
    return len(message.SerializePartialToString()) == length


def inspector(descriptor: Descriptor) -> Inspector | None:
    """What tells whether texts and times within a message are right; None where the type has none to look at."""
    files = _Syntaxes()
    wanted = _wanted(descriptor, files)
    return _inspector(descriptor, wanted, {}, files) if descriptor.full_name in wanted else None


def _wanted(descriptor: Descriptor, files: _Syntaxes) -> set[str]:
    """The names of the messages to look into: those that hold such a field, and those on the way to them."""
    users: dict[str, list[str]] = {}
    found: list[str] = []
    seen: set[str] = set()
    waiting = [descriptor]
    while waiting:
        one = waiting.pop()
        if one.full_name in seen:
            continue
        seen.add(one.full_name)
        if one.full_name in _SECONDS or any(map(files.has_loose, one.fields)):
            found.append(one.full_name)
        for field in one.fields:
            if field.message_type is not None:
                users.setdefault(field.message_type.full_name, []).append(one.full_name)
                waiting.append(field.message_type)
    wanted: set[str] = set()
    while found:
        name = found.pop()
        if name not in wanted:
            wanted.add(name)
            found.extend(users.get(name, ()))
    return wanted


def _inspector(descriptor: Descriptor, wanted: set[str], made: dict[str, Inspector], files: _Syntaxes) -> Inspector:
    name = descriptor.full_name
    if name in made:
        return made[name]
    # A type within itself is found here by name, when it is needed.
    made[name] = lambda message: made[name](message)
    if name in _SECONDS:
        made[name] = _in_range
        return _in_range
    strings = [(field.name, field.is_repeated) for field in descriptor.fields if files.has_loose(field)]
    inner = [field for field in descriptor.fields if field.message_type and field.message_type.full_name in wanted]
    maps = [(field.name, _of_values(field, wanted, made, files)) for field in inner if is_map(field)]
    messages = [(field, _inspector(field.message_type, wanted, made, files)) for field in inner if not is_map(field)]
    single = [(field.name, inspect) for field, inspect in messages if not field.is_repeated]
    repeated = [(field.name, inspect) for field, inspect in messages if field.is_repeated]

    def clean(message: Any) -> bool:
        for field, inspect in single:
            if message.HasField(field) and not inspect(getattr(message, field)):
                return False
        for field, inspect in repeated:
            for one in getattr(message, field):
                if not inspect(one):
                    return False
        return not (strings or maps) or _clean_rest(message, strings, maps)

    made[name] = clean
    return clean


def _of_values(
    field: FieldDescriptor, wanted: set[str], made: dict[str, Inspector], files: _Syntaxes
) -> Inspector | None:
    inner = field.message_type.fields_by_name["value"].message_type
    return _inspector(inner, wanted, made, files) if inner is not None and inner.full_name in wanted else None


def _clean_rest(message: Any, strings: list[tuple[str, bool]], maps: list[tuple[str, Inspector | None]]) -> bool:
    for name, is_repeated in strings:
        value = getattr(message, name)
        if isinstance(value, bytes) or (is_repeated and any(isinstance(one, bytes) for one in value)):
            return False
    for name, inspect in maps:
        values = getattr(message, name)
        for key in values:
            if isinstance(key, bytes) or isinstance(values[key], bytes) or (inspect and not inspect(values[key])):
                return False
    return True


class _Syntaxes:
    """Which files are proto2; a file is asked once, as its bytes are made anew each time."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def has_loose(self, field: FieldDescriptor) -> bool:
        """Tell whether a field is text that the parser lets pass where it is not UTF-8, as it does in proto2."""
        if field.type != FieldDescriptor.TYPE_STRING:
            return False
        name = field.file.name
        if name not in self._known:
            self._known[name] = is_proto2(field.file)
        return self._known[name]


def is_proto2(file: FileDescriptor) -> bool:
    """Tell whether a file is proto2: others say what they are in their last field, `syntax = 12`."""
    return not file.serialized_pb.endswith(b"b\x06proto3")


def _in_range(message: Any) -> bool:
    low, high = _SECONDS[message.DESCRIPTOR.full_name]
    seconds, nanos = message.seconds, message.nanos
    if not low <= seconds <= high:
        return False
    if message.DESCRIPTOR.name == "Timestamp":
        return bool(0 <= nanos < 1_000_000_000)
    return bool(abs(nanos) < 1_000_000_000 and seconds * nanos >= 0)


def _wrong_unknown(message: Message) -> Iterator[tuple[str, str]]:
    """Yield the fields that were put aside although their number is known, with the reason."""
    known = message.DESCRIPTOR.fields_by_number
    for one in UnknownFieldSet(message):
        field = known.get(one.field_number)
        if field is not None:
            if field.enum_type is not None and field.enum_type.is_closed and one.wire_type in (0, 2):
                yield field.name, f"{field.enum_type.full_name} has no value {one.data!r:.30}"
            else:
                yield (
                    field.name,
                    f"field {field.number} has another wire type ({one.wire_type}) than {field.name} needs",
                )


def problems(message: Message, steps: Steps = ()) -> Iterator[Problem]:
    """Yield what is wrong with a message that is not clean, with its places."""
    for name, words in _wrong_unknown(message):
        yield Problem(pointer((*steps, name)), "payload", words)
    if message.DESCRIPTOR.full_name in _SECONDS and not _in_range(message):
        yield Problem(pointer(steps), "payload", f"out of the range of {message.DESCRIPTOR.full_name}")
    for field, value in message.ListFields():
        place = (*steps, field.name)
        if is_map(field):
            for key in value:
                yield from _value_problems(field, key, (*place, _shown(key)))
                yield from _value_problems(
                    field.message_type.fields_by_name["value"], value[key], (*place, _shown(key))
                )
        elif field.is_repeated:
            for number, one in enumerate(value):
                yield from _value_problems(field, one, (*place, number))
        else:
            yield from _value_problems(field, value, place)


def _value_problems(field: FieldDescriptor, value: Any, steps: Steps) -> Iterator[Problem]:
    if isinstance(value, Message):
        yield from problems(value, steps)
    elif isinstance(value, bytes) and field.type != FieldDescriptor.TYPE_BYTES:
        yield Problem(pointer(steps), "payload", f"the text of {field.name} is not UTF-8")


def _shown(key: Any) -> str:
    return key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)


def missing_required(message: Message) -> Iterator[Problem]:
    """Yield the required fields that are missing, each at the message that lacks it."""
    for path in message.FindInitializationErrors()[:_PROBLEMS]:
        steps: list[str | int] = []
        for part in path.split("."):
            name, _, index = part.partition("[")
            steps.append(name)
            if index:
                steps.append(index.rstrip("]"))
        yield Problem(pointer(steps[:-1]), "payload", f"the required field {steps[-1]} is missing")


def locate(descriptor: Descriptor, payload: bytes) -> Problem:
    """Where and why the bytes of a message cannot be parsed, as far as a plain look at the wire tells."""
    steps, words = _walk(descriptor, payload, 0, len(payload), _DEEPEST) or (
        [],
        "the bytes are not a message of this type",
    )
    return Problem(pointer(steps), "payload", words)


Failed = tuple[list[str | int], str]


def _walk(kind: Descriptor, payload: bytes, at: int, end: int, depth: int) -> Failed | None:
    """The first field that fails, by the steps to it, and the reason; None where all is well."""
    if depth < 0:
        return [], f"nested deeper than {_DEEPEST} messages"
    counts: dict[int, int] = {}
    while at < end:
        tag, at = _varint(payload, at, end)
        number, wire = tag >> 3, tag & 7
        if at < 0 or number == 0 or wire > 5:
            return [], "no field begins here: the bytes are not Protobuf, or are cut off"
        field = kind.fields_by_number.get(number)
        steps = _steps(field, counts)
        if wire == 0:
            _, at = _varint(payload, at, end)
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        elif wire == 2:
            size, at = _varint(payload, at, end)
            if at < 0 or size > end - at:
                return steps, f"field {number} announces more bytes than there are"
            failed = _inside(field, payload, at, at + size, depth)
            if failed is not None:
                return steps + failed[0], failed[1]
            at += size
        else:
            return steps, f"field {number} is a group, which cannot be followed"
        if at < 0 or at > end:
            return steps, f"field {number} is cut off"
    return None


def _steps(field: FieldDescriptor | None, counts: dict[int, int]) -> list[str | int]:
    if field is None:
        return []
    if not field.is_repeated or is_map(field):
        return [field.name]
    counts[field.number] = counts.get(field.number, -1) + 1
    return [field.name, counts[field.number]]


def _inside(field: FieldDescriptor | None, payload: bytes, at: int, end: int, depth: int) -> Failed | None:
    if field is not None and field.type == FieldDescriptor.TYPE_STRING:
        try:
            payload[at:end].decode()
        except UnicodeDecodeError:
            return [], f"the text of {field.name} is not UTF-8"
    if field is not None and field.type == FieldDescriptor.TYPE_MESSAGE:
        return _walk(field.message_type, payload, at, end, depth - 1)
    return None


def _varint(payload: bytes, at: int, end: int) -> tuple[int, int]:
    """The next integer and where it ends; a negative end where there is none."""
    found = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = payload[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, at
    return 0, -1


# What a reader's message makes of the bytes that a writer's message was.
#
# Rule: types that share a wire type are read as one another without a word (`int32` and `sint32`, `int64` and `int32`).
# So it is the values that are compared: each that the writer set is the same here, or it is a problem.


def changed_values(written: Any, read: Any, steps: tuple[str | int, ...] = ()) -> Iterator[Problem]:
    """Yield what is another value in the reader's message than in the writer's, where the reader has a field for it."""
    fields = read.DESCRIPTOR.fields_by_number
    for field, value in written.ListFields():
        here = fields.get(field.number)
        if here is None or field.is_extension:
            continue
        place = (*steps, here.name)
        if is_map(field) and is_map(here):
            held = getattr(read, here.name)
            entry, own = field.message_type.fields_by_name, here.message_type.fields_by_name
            for key, one in value.items():
                other = next((held[name] for name in held if _is_same(key, name)), None)
                pair = ([one], [] if other is None else [other])
                yield from _changed(entry["value"], own["value"], *pair, (*place, str(key)))
            continue
        present = not here.has_presence or here.is_repeated or read.HasField(here.name)
        found = getattr(read, here.name)
        values = list(value) if field.is_repeated else [value]
        yield from _changed(field, here, values, list(found) if here.is_repeated else [found] if present else [], place)


def _changed(
    field: FieldDescriptor, here: FieldDescriptor, written: list[Any], read: list[Any], steps: tuple[str | int, ...]
) -> Iterator[Problem]:
    what = f"{field.name} was written as {_type_name(field)}, and cannot be read as {_type_name(here)}"
    if len(written) != len(read) or (field.message_type is None) is not (here.message_type is None):
        yield Problem(pointer(steps), "payload", what)
        return
    for number, (one, other) in enumerate(zip(written, read, strict=True)):
        place = (*steps, number) if here.is_repeated and not is_map(here) else steps
        if field.message_type is not None:
            yield from changed_values(one, other, place)
        elif not (_is_same(one, other) and _names_agree(field, here, one)):
            yield Problem(pointer(place), "payload", f"{what}: it would be {other!r:.60} in place of {one!r:.60}")


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, str) is not isinstance(other, str):
        one, other = (value.encode() if isinstance(value, str) else value for value in (one, other))
    is_number = isinstance(one, int | float)
    return is_number is isinstance(other, int | float) and (one == other or (one != one and other != other))


def _names_agree(field: FieldDescriptor, here: FieldDescriptor, number: int) -> bool:
    """Whether the number of an enum has one name in both; a name that only one of them has is no other name."""
    if field.enum_type is None or here.enum_type is None:
        return True
    names, own = (
        {one.name for one in kind.values if one.number == number} for kind in (field.enum_type, here.enum_type)
    )
    return not names or not own or not names.isdisjoint(own)


def _type_name(field: FieldDescriptor) -> str:
    kind = field.message_type or field.enum_type
    name = kind.full_name if kind is not None else _TYPE_NAMES[field.type]
    return f"repeated {name}" if field.is_repeated else name


_TYPE_NAMES = {
    getattr(FieldDescriptor, f"TYPE_{name.upper()}"): name
    for name in (
        *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes"),
        *("uint32", "sfixed32", "sfixed64", "sint32", "sint64", "group", "message", "enum"),
    )
}
