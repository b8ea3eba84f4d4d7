"""Protobuf: one .proto text, its messages, and the payloads they take.

Rule 1: a payload is a message of the text: its only one at the top, or the one that no other refers to; a deep link
names another. Where nothing decides, payloads cannot be judged, and the answer says so.
Rule 2: a payload is binary, with or without Confluent's frame (no message begins with a zero byte); under a JSON content
type it is the JSON mapping, by which a field that the message does not have is a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from signalbook.errors import Problem
from signalbook.schemas.format import Checked, References, Text, unusable
from signalbook.schemas.framing import Framed, frame_id, message_indexes
from signalbook.schemas.protobuf_compile import compile_text
from signalbook.schemas.protobuf_inspect import inspector, locate, missing_required, problems
from signalbook.schemas.protobuf_value import MessageValue, is_map

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ProtobufSchema", "read_proto2", "read_proto3"]

_PROBLEMS = 100
_DEEPEST = 100


def read_proto2(text: Text, references: References | None = None) -> ProtobufSchema:
    """The schema that a proto2 text holds; what it imports is asked of `references` by the name in the import."""
    return ProtobufSchema("Protobuf/2", compile_text(text, references, "proto2"))


def read_proto3(text: Text, references: References | None = None) -> ProtobufSchema:
    """The schema that a proto3 text holds; what it imports is asked of `references` by the name in the import."""
    return ProtobufSchema("Protobuf/3", compile_text(text, references, "proto3"))


class ProtobufSchema:
    """One .proto text, or one message of it; it never changes once made."""

    __slots__ = ("_clean", "_columns", "_parse", "_required", "file", "format", "linked", "message")

    def __init__(self, format: str, file: FileDescriptor, message: Descriptor | None = None) -> None:
        self.format = format
        self.file = file
        self.linked = message is not None
        self.message = message or _payload_message(file)
        self._columns: tuple[pyarrow.DataType, Callable[[Any], Any]] | None = None
        if self.message is not None:
            self._parse: Callable[[bytes], Message] = GetMessageClass(self.message).FromString
            self._clean = inspector(self.message)
            self._required = any(field.is_required for one in _reachable(self.message) for field in one.fields)

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
            return self._judge(payload)
        if self._clean(message) and (not self._required or message.IsInitialized()):
            return Checked((), MessageValue(message))
        return Checked(tuple(islice(self._problems(message), _PROBLEMS)), None)

    def _problems(self, message: Message) -> Iterator[Problem]:
        yield from problems(message)
        yield from missing_required(message)

    def _judge(self, payload: bytes) -> Checked:
        """What to say of a payload that cannot be parsed as it is."""
        schemaid = frame_id(payload)
        assert self.message is not None
        if schemaid is None:
            return Checked((locate(self.message, payload),), None)
        indexes = message_indexes(payload)
        if isinstance(indexes, Problem):
            return Checked((indexes,), None)
        named = _by_index(self.file, indexes[0])
        if named is None or named.full_name != self.message.full_name:
            told = "no message of this text" if named is None else named.full_name
            words = f"the frame names {told}, where {self.message.full_name} is expected"
            return Checked((Problem("", "payload", words),), None)
        rest = payload[indexes[1] :]
        if rest[:1] == b"\0":
            return Checked((locate(self.message, rest),), None)
        return Framed.of(self.check(rest), schemaid)

    def _check_json(self, payload: bytes) -> Checked:
        assert self.message is not None
        message = GetMessageClass(self.message)()
        try:
            json_format.Parse(payload, message, descriptor_pool=self.file.pool, max_recursion_depth=_DEEPEST)
        except (json_format.ParseError, ValueError, RecursionError) as error:
            return Checked((Problem("", "payload", str(error) or type(error).__name__),), None)
        if self._clean(message) and (not self._required or message.IsInitialized()):
            return Checked((), MessageValue(message))
        return Checked(tuple(islice(self._problems(message), _PROBLEMS)), None)

    def _undecided(self) -> Checked:
        words = f"nothing says which message a payload is: one of {', '.join(self.messages) or 'none'}; name it with :Message"
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
            from signalbook.schemas.protobuf_columns import columns  # pyarrow is loaded where tables are

            self._columns = columns(self.message)
        return self._columns


def _is_json(contenttype: str) -> bool:
    bare = contenttype.partition(";")[0].strip().lower()
    return bare.endswith("+json") or bare in ("application/json", "text/json")


def _own(file: FileDescriptor) -> list[Descriptor]:
    """The messages at the top of a text, in its order."""
    names = [one.name for one in _proto(file).message_type]
    return [file.message_types_by_name[name] for name in names]


def _proto(file: FileDescriptor) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    return FileDescriptorProto.FromString(file.serialized_pb)


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


def _by_index(file: FileDescriptor, indexes: tuple[int, ...]) -> Descriptor | None:
    """The message that the indexes of Confluent's framing lead to: at the top, then within."""
    found: Descriptor | None = None
    for index in indexes:
        among = _own(file) if found is None else list(found.nested_types)
        if index >= len(among):
            return None
        found = among[index]
    return found
