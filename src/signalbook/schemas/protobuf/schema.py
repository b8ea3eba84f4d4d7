"""Protobuf: one .proto text, its messages, and the payloads they take.

Rule 1: a payload is a message of the text: its only one at the top, or the one that no other refers to; a deep link
names another. Where nothing decides, payloads cannot be judged, and the answer says so.
Rule 2: a payload is binary; under a JSON content type it is the JSON mapping, by which a field that the message does
not have is a problem. In Confluent's frame, which is taken off before (`framing`), the indexes have to be its own.
Rule 3: what another text's message of the same name wrote is read by that one, and has the same values here. What this
message has no field for is left out; a value that would be another here is a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from signalbook.errors import Problem
from signalbook.jsontext import encode_json
from signalbook.schemas.format import BadValue, Checked, References, Text, unusable
from signalbook.schemas.framing import Reader, written_indexes
from signalbook.schemas.protobuf.compile import compile_text
from signalbook.schemas.protobuf.values import (
    MessageValue,
    changed_values,
    inspector,
    is_map,
    locate,
    missing_required,
    problems,
    took_all,
)

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ProtobufSchema", "encode", "read_proto2", "read_proto3", "samples"]

_PROBLEMS = 100
# A named tuple's own constructor takes twice as long, and one is made for each payload.
_make_tuple = tuple.__new__
_DEEPEST = 100
# Google's library makes the class of a message after those of its fields, by recursion.
DEEPEST_MESSAGES = 150


def read_proto2(text: Text, references: References | None = None) -> ProtobufSchema:
    """The schema that a proto2 text holds; what it imports is asked of `references` by the name in the import."""
    return ProtobufSchema("Protobuf/2", compile_text(text, references, "proto2"))


def read_proto3(text: Text, references: References | None = None) -> ProtobufSchema:
    """The schema that a proto3 text holds; what it imports is asked of `references` by the name in the import."""
    return ProtobufSchema("Protobuf/3", compile_text(text, references, "proto3"))


class ProtobufSchema:
    """One .proto text, or one message of it; it never changes once made."""

    __slots__ = (
        "_columns",
        "_content_check",
        "_flat",
        "_indexes",
        "_parse",
        "_required",
        "file",
        "format",
        "linked",
        "message",
    )

    def __init__(self, format: str, file: FileDescriptor, message: Descriptor | None = None) -> None:
        self.format = format
        self.file = file
        self.linked = message is not None
        self.message = message or _payload_message(file)
        self._columns: tuple[pyarrow.DataType, Callable[[Any], Any]] | None = None
        if self.message is not None:
            if _is_too_deep(self.message):
                raise unusable(f"messages lie in one another more than {DEEPEST_MESSAGES} deep")
            self._parse: Callable[[bytes], Message] = GetMessageClass(self.message).FromString
            # The entries of maps are messages, too: Python's serializer counts them, Java's does not.
            self._indexes = {_indexes(self.message, False), _indexes(self.message, True)}
            self._required = any(field.is_required for one in _reachable(self.message) for field in one.fields)
            self._flat = all(field.message_type is None for field in self.message.fields)
            self._content_check = _content_check(self.message, self._required)

    @property
    def messages(self) -> tuple[str, ...]:
        """The full names of the messages in the text, nested ones after those around them."""
        return tuple(one.full_name for one in _all_messages(self.file))

    def check(self, payload: bytes, contenttype: str = "") -> Checked:
        """The problems of a payload, and its value: a mapping with the names of the .proto text."""
        if self.message is None:
            return self._undecided()
        if contenttype and _is_json(contenttype):
            return self._check_json(payload)
        try:
            message = self._parse(payload)
        except DecodeError:
            return Checked((locate(self.message, payload),), None)
        took_it = not len(UnknownFieldSet(message)) if self._flat else took_all(message, len(payload))
        if took_it and (self._content_check is None or self._content_check(message)):
            return _make_tuple(Checked, ((), MessageValue(message)))
        return self._look_closer(self._parse(payload))

    def _look_closer(self, message: Message) -> Checked:
        """The answer about a message that may be wrong."""
        found = tuple(islice(self._problems(message), _PROBLEMS))
        return Checked(found, None if found else MessageValue(message))

    def _problems(self, message: Message) -> Iterator[Problem]:
        yield from problems(message)
        if self._required:
            yield from missing_required(message)

    def own_message(self, indexes: tuple[int, ...]) -> Problem | None:
        """What is wrong where the message indexes of a frame are not those of this message."""
        if self.message is None:
            return self._undecided().problems[0]
        if indexes in self._indexes:
            return None
        here = " or ".join(str(list(one)) for one in sorted(self._indexes))
        words = f"the frame names the message at {list(indexes)}, {self.message.full_name} is at {here}"
        return Problem("", "payload", words)

    def written_by(self, writer: ProtobufSchema) -> Reader | Problem:
        """What reads the messages that another text's message of the same name wrote."""
        if self.message is None:
            return self._undecided().problems[0]
        name = self.message.full_name
        found = next((one for one in _all_messages(writer.file) if one.full_name == name), None)
        if found is None:
            words = f"it was written with a schema that has no message {name}; it has: {', '.join(writer.messages)}"
            return Problem("", "payload", words)
        of_writer = ProtobufSchema(writer.format, writer.file, found)
        is_same = writer.file.serialized_pb == self.file.serialized_pb

        def read(indexes: tuple[int, ...], payload: bytes, contenttype: str) -> Checked:
            wrong = of_writer.own_message(indexes)
            if wrong is not None:
                return Checked((wrong,), None)
            if is_same or (contenttype and _is_json(contenttype)):
                return self.check(payload, contenttype)
            return self._resolved(of_writer.check(payload), payload)

        return read

    def _resolved(self, written: Checked, payload: bytes) -> Checked:
        """A message of the writer's as this schema sees it: with the same values, and without fields it has not."""
        if written.problems:
            return written
        try:
            message = self._parse(payload)
        except DecodeError:
            assert self.message is not None
            return Checked((locate(self.message, payload),), None)
        changed = tuple(islice(changed_values(written.value.message, message), _PROBLEMS))
        if changed:
            return Checked(changed, None)
        return self._look_closer(message)

    def frame_indexes(self) -> bytes:
        """The indexes that a frame has before a message of this schema."""
        return written_indexes(min(self._indexes)) if self.message is not None else b""

    def _check_json(self, payload: bytes) -> Checked:
        assert self.message is not None
        message = GetMessageClass(self.message)()
        try:
            json_format.Parse(payload, message, descriptor_pool=self.file.pool, max_recursion_depth=_DEEPEST)
        except (json_format.ParseError, ValueError, RecursionError) as error:
            return Checked((Problem("", "payload", str(error) or type(error).__name__),), None)
        return self._look_closer(message)

    def _undecided(self) -> Checked:
        known = ", ".join(self.messages) or "there is none"
        words = f"nothing says which message a payload is; name it with :Message ({known})"
        return Checked((Problem("", "schema_unavailable", words),), None)

    def at(self, fragment: str) -> ProtobufSchema:
        """The message that `:Message` leads to, with or without the package; nested names have dots."""
        name = fragment.removeprefix("#").removeprefix(":")
        if not name:
            return self
        package = f"{self.file.package}." if self.file.package else ""
        for one in _all_messages(self.file):
            if name in (one.full_name, one.full_name.removeprefix(package)):
                return ProtobufSchema(self.format, self.file, one)
        raise unusable(f"no message is named {name}; there are: {', '.join(self.messages) or 'none'}")

    def columns(self) -> pyarrow.DataType:
        """The Arrow struct of a payload."""
        return self._table()[0]

    def convert(self, value: Any) -> Any:
        """A checked value as the struct holds it."""
        return self._table()[1](value.message)

    def _table(self) -> tuple[pyarrow.DataType, Callable[[Any], Any]]:
        if self.message is None:
            raise unusable(self._undecided().problems[0].message)
        if self._columns is None:
            from signalbook.schemas.protobuf.columns import columns  # pyarrow is loaded where tables are

            self._columns = columns(self.message)
        return self._columns


def _content_check(message: Descriptor, required: bool) -> Callable[[Any], bool] | None:
    """What tells whether required fields, texts and times are right; None where there is nothing to look at."""
    inspect = inspector(message)
    if not required:
        return inspect
    if inspect is None:
        return lambda one: bool(one.IsInitialized())
    return lambda one: bool(one.IsInitialized()) and inspect(one)


def _is_json(contenttype: str) -> bool:
    bare = contenttype.partition(";")[0].strip().lower()
    return bare.endswith("+json") or bare in ("application/json", "text/json")


def _own(file: FileDescriptor) -> list[Descriptor]:
    """The messages at the top of a text, in its order."""
    return list(file.message_types_by_name.values())


def _all_messages(file: FileDescriptor) -> Iterator[Descriptor]:
    waiting = _own(file)[::-1]
    while waiting:
        one = waiting.pop()
        if not one.GetOptions().map_entry:
            yield one
            waiting.extend(reversed(one.nested_types))


def _reachable(message: Descriptor) -> Iterator[Descriptor]:
    """Yield a message and every message within it, each once."""
    seen: set[str] = set()
    waiting = [message]
    while waiting:
        one = waiting.pop()
        if one.full_name not in seen:
            seen.add(one.full_name)
            yield one
            waiting.extend(field.message_type for field in one.fields if field.message_type is not None)


def _is_too_deep(message: Descriptor) -> bool:
    """Tell whether a walk from message to message, as the classes are made, goes too deep."""
    seen = {message.full_name}
    path = [_inner(message)]
    while path:
        one = next(path[-1], None)
        if one is None:
            path.pop()
        elif one.full_name not in seen:
            seen.add(one.full_name)
            path.append(_inner(one))
            if len(path) > DEEPEST_MESSAGES:
                return True
    return False


def _inner(message: Descriptor) -> Iterator[Descriptor]:
    return (field.message_type for field in message.fields if field.message_type is not None)


def _payload_message(file: FileDescriptor) -> Descriptor | None:
    """The message that a payload is where nothing names one."""
    top = _own(file)
    if len(top) == 1:
        return top[0]
    referred: set[str] = set()
    for one in top:
        inside = {nested.full_name for nested in _within(one)}
        for nested in _within(one):
            for field in nested.fields:
                kind = field.message_type
                if kind is not None and not is_map(field) and kind.full_name not in inside:
                    referred.add(_top_of(kind).full_name)
    free = [one for one in top if one.full_name not in referred]
    return free[0] if len(free) == 1 else None


def _within(message: Descriptor) -> Iterator[Descriptor]:
    """Yield a message and those nested in it, the entries of maps with them."""
    waiting = [message]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(one.nested_types)


def _top_of(message: Descriptor) -> Descriptor:
    while message.containing_type is not None:
        message = message.containing_type
    return message


def _indexes(message: Descriptor, entries: bool) -> tuple[int, ...]:
    """What Confluent's framing calls a message: its place at the top of its text, then within."""
    outer = message.containing_type
    among = _own(message.file) if outer is None else list(outer.nested_types)
    names = [one.full_name for one in among if entries or not one.GetOptions().map_entry]
    place = names.index(message.full_name)
    return (place,) if outer is None else (*_indexes(outer, entries), place)


# Protobuf payloads: written from values, and made up.


_DEEPEST_SAMPLE = 6


def encode(schema: ProtobufSchema, value: Any, contenttype: str) -> bytes:
    """The value, given as Protobuf's JSON mapping has it, in binary, or as that JSON under a JSON content type."""
    if schema.message is None:
        raise BadValue("nothing says which message a payload is")
    try:
        text = encode_json(value)
        message = GetMessageClass(schema.message)()
        json_format.Parse(text, message, descriptor_pool=schema.file.pool, max_recursion_depth=100)
        if _is_json_payload(contenttype):
            return text.encode()
        found: bytes = message.SerializeToString(deterministic=True)
    except (json_format.ParseError, EncodeError, TypeError, ValueError, RecursionError) as error:
        raise BadValue(f"does not fit {schema.message.full_name}: {error}") from None
    return found


def _is_json_payload(contenttype: str) -> bool:
    bare = contenttype.partition(";")[0].strip().lower()
    return bare.endswith("+json") or bare in ("application/json", "text/json")


def samples(schema: ProtobufSchema, contenttype: str) -> Iterator[bytes]:
    """Payloads to try: one with all fields, one with those that are required."""
    if schema.message is not None:
        for full in (True, False):
            yield encode(schema, _message(schema.message, full, 0), contenttype)


# The well-known types have forms of their own in JSON (protobuf.dev, "ProtoJSON Format").
_SAMPLE_WELL_KNOWN: Mapping[str, Any] = {
    "google.protobuf.Timestamp": "2024-05-17T12:30:00Z",
    "google.protobuf.Duration": "1.5s",
    "google.protobuf.FieldMask": "a",
    "google.protobuf.Struct": {"a": 1},
    "google.protobuf.Value": 1,
    "google.protobuf.ListValue": [1],
    "google.protobuf.Empty": {},
    "google.protobuf.Any": {},
    "google.protobuf.BoolValue": True,
    "google.protobuf.StringValue": "text",
    "google.protobuf.BytesValue": "YQ==",
    **{f"google.protobuf.{name}Value": 1 for name in ("Int32", "UInt32", "Int64", "UInt64", "Float", "Double")},
}


def _message(message: Descriptor, full: bool, depth: int) -> Any:
    if message.full_name in _SAMPLE_WELL_KNOWN:
        return _SAMPLE_WELL_KNOWN[message.full_name]
    made = {}
    for field in message.fields:
        if field.is_required or (full and _is_first_of_its_choice(field) and _fits(field, depth)):
            if depth > 4 * _DEEPEST_SAMPLE:
                raise BadValue("contains itself without an end")
            made[field.name] = _field(field, full, depth)
    return made


def _is_first_of_its_choice(field: FieldDescriptor) -> bool:
    return field.containing_oneof is None or field.containing_oneof.fields[0].name == field.name


def _fits(field: FieldDescriptor, depth: int) -> bool:
    """Whether there is room for a field."""
    return field.message_type is None or depth < _DEEPEST_SAMPLE


def _field(field: FieldDescriptor, full: bool, depth: int) -> Any:
    if is_map(field):
        key, value = field.message_type.fields
        return {str(_single(key, full, depth)).lower(): _single(value, full, depth)}
    one = _single(field, full, depth)
    return [one] if field.is_repeated else one


def _single(field: FieldDescriptor, full: bool, depth: int) -> Any:
    if field.message_type is not None:
        return _message(field.message_type, full, depth + 1)
    if field.enum_type is not None:
        values = field.enum_type.values
        return values[min(1, len(values) - 1)].name
    return _SAMPLE_VALUES.get(field.cpp_type, 1) if field.type != FieldDescriptor.TYPE_BYTES else "YQ=="


_SAMPLE_VALUES: Mapping[int, Any] = {
    FieldDescriptor.CPPTYPE_BOOL: True,
    FieldDescriptor.CPPTYPE_STRING: "text",
    FieldDescriptor.CPPTYPE_FLOAT: 1.5,
    FieldDescriptor.CPPTYPE_DOUBLE: 1.5,
}
