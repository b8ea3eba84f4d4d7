"""Random Protobuf texts, changes to them, and random messages of a schema."""

import json
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from signalbook.schemas.protobuf.values import is_map

__all__ = ["changed", "messages", "render", "texts"]

F = FieldDescriptor
SCALARS = [
    "double",
    "float",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "sfixed32",
    "sfixed64",
    "bool",
    "string",
    "bytes",
]
WELL_KNOWN = ["Timestamp", "Duration", "Struct", "Int64Value", "StringValue", "BytesValue", "Any", "FieldMask", "Empty"]
FILES = ["timestamp", "duration", "struct", "wrappers", "any", "field_mask", "empty"]

# A text as lists: messages by name, each a list of fields (number, label, type, name, oneof).
Field = tuple[int, str, str, str, str]
Text = dict[str, list[Field]]


@st.composite
def texts(draw: st.DrawFn) -> Text:
    """Up to three messages that hold each other and themselves."""
    names = ["Top", "Mid", "Low"][: draw(st.integers(1, 3))]
    return {name: [draw(fields(number, names)) for number in range(1, draw(st.integers(1, 7)))] for name in names}


@st.composite
def fields(draw: st.DrawFn, number: int, names: list[str]) -> Field:
    """One field; those of even numbers may be in a oneof."""
    label = draw(st.sampled_from(["", "", "optional", "repeated", "map", "oneof"]))
    kind = draw(
        st.sampled_from(SCALARS)
        | st.sampled_from(["E", *names])
        | st.sampled_from([f"google.protobuf.{name}" for name in WELL_KNOWN])
    )
    name = f"{draw(st.sampled_from(['f', 'F']))}{number}"
    return number, label, kind, name, "o" if label == "oneof" else ""


def render(text: Text, syntax: str = "proto3") -> str:
    """The .proto text."""
    lines = [f'syntax = "{syntax}"; package test;']
    lines += [f'import "google/protobuf/{name}.proto";' for name in FILES]
    lines.append("enum E { Z = 0; A = 1; B = -1; }")
    for name, members in text.items():
        lines.append(f"message {name} {{")
        for number, label, kind, field, oneof in members:
            if oneof:
                continue
            bare = "optional" if syntax == "proto2" and not label else label
            declared = f"map<string, {kind}>" if label == "map" else f"{bare} {kind}"
            lines.append(f"  {declared} {field} = {number};")
        inside = [f"    {kind} {field} = {number};" for number, _, kind, field, oneof in members if oneof]
        if inside:
            lines += ["  oneof o {", *inside, "  }"]
        lines.append("}")
    return "\n".join(lines)


def changed(data: st.DataObject, text: Text) -> Text:
    """The text with a few changes, some of which break promises."""
    found = {name: list(members) for name, members in text.items()}
    for turn in range(data.draw(st.integers(1, 3))):
        members = found[data.draw(st.sampled_from(sorted(found)))]
        action = data.draw(st.sampled_from(["add", "remove", "type", "label", "rename"]))
        if action == "add" or not members:
            members.append(data.draw(fields(20 + turn, list(found))))
            continue
        at = data.draw(st.integers(0, len(members) - 1))
        number, label, kind, name, oneof = members[at]
        if action == "remove":
            del members[at]
        elif action == "rename":
            members[at] = (number, label, kind, f"{name}_new{turn}", oneof)
        elif action == "type":
            members[at] = (number, label, data.draw(st.sampled_from([*SCALARS, "E", *found])), name, oneof)
        else:
            new = data.draw(st.sampled_from(["", "optional", "repeated", "map", "oneof"]))
            members[at] = (number, new, kind, name, "o" if new == "oneof" else "")
    return found


NUMBERS = {
    F.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    F.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    F.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    F.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
    F.CPPTYPE_FLOAT: st.floats(width=32, allow_nan=False),
    F.CPPTYPE_DOUBLE: st.floats(allow_nan=False),
    F.CPPTYPE_BOOL: st.booleans(),
    F.CPPTYPE_ENUM: st.sampled_from([0, 1, -1]),
}


@st.composite
def messages(draw: st.DrawFn, descriptor: Descriptor) -> Any:
    """A message with random fields set."""
    message = GetMessageClass(descriptor)()
    fill(draw, message, 0)
    return message


def fill(draw: st.DrawFn, message: Any, depth: int) -> None:  # noqa: C901  one branch a kind
    """Set random fields of a message."""
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        message.seconds = draw(st.integers(-62_135_596_800, 253_402_300_799))
        message.nanos = draw(st.integers(0, 999_999_999))
        return
    if name == "google.protobuf.Duration":
        sign = draw(st.sampled_from([-1, 1]))
        message.seconds = sign * draw(st.integers(0, 315_576_000_000))
        message.nanos = sign * draw(st.integers(0, 999_999_999))
        return
    if name == "google.protobuf.Struct":
        message.update(json.loads(draw(st.sampled_from(["{}", '{"a": [1, null, {"b": "x"}], "c": true}']))))
        return
    for field in message.DESCRIPTOR.fields:
        if not draw(st.booleans()):
            continue
        if is_map(field):
            values = getattr(message, field.name)
            inner = field.message_type.fields_by_name["value"]
            for number in range(draw(st.integers(0, 2))):
                if inner.message_type is None:
                    values[f"k{number}"] = scalar(draw, inner)
                elif depth < 3:
                    fill(draw, values[f"k{number}"], depth + 1)
        elif field.message_type is not None:
            if depth < 3:
                for _ in range(draw(st.integers(0, 2)) if field.is_repeated else 1):
                    one = getattr(message, field.name)
                    inner_message = one.add() if field.is_repeated else one
                    inner_message.SetInParent() if not field.is_repeated else None
                    fill(draw, inner_message, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).extend(scalar(draw, field) for _ in range(draw(st.integers(0, 3))))
        else:
            setattr(message, field.name, scalar(draw, field))


def scalar(draw: st.DrawFn, field: FieldDescriptor) -> Any:
    """A random value of a field that is no message."""
    if field.type == F.TYPE_STRING:
        return draw(st.text(max_size=5))
    if field.type == F.TYPE_BYTES:
        return draw(st.binary(max_size=5))
    return draw(NUMBERS[field.cpp_type])
