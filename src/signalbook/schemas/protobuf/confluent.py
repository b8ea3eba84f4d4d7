"""What breaks a promise between two Protobuf texts by the rules of Confluent's registry.

Rule 1: fields go by their numbers, messages by their names; names of fields, enum values, services and options do not
count. Backward and forward differ only in which text is the older one.
Rule 2: a finding is a name that tools show, a path and words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

from signalbook.schemas.format import Direction, Schema
from signalbook.schemas.protobuf.values import is_map

if TYPE_CHECKING:
    from signalbook.schemas.protobuf.schema import ProtobufSchema

__all__ = ["broken"]

_F = FieldDescriptor
_GROUPS = (
    frozenset({_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_BOOL, _F.TYPE_ENUM}),
    frozenset({_F.TYPE_SINT32, _F.TYPE_SINT64}),
    frozenset({_F.TYPE_STRING, _F.TYPE_BYTES}),
    frozenset({_F.TYPE_FIXED32, _F.TYPE_SFIXED32}),
    frozenset({_F.TYPE_FIXED64, _F.TYPE_SFIXED64}),
)
_MESSAGES = frozenset({_F.TYPE_MESSAGE, _F.TYPE_GROUP})
_Found = tuple[str, str, str]


def broken(older: Schema, newer: Schema, wanted: frozenset[Direction]) -> Iterator[_Found]:
    """Yield what breaks a promise."""
    old, new = cast("ProtobufSchema", older).file, cast("ProtobufSchema", newer).file
    seen: set[_Found] = set()
    for direction in sorted(wanted):
        pair = (old, new) if direction == "backward" else (new, old)
        for found in _Comparison(*pair).findings():
            if found not in seen:
                seen.add(found)
                yield found


class _Comparison:
    """One direction: what a reader with the second text cannot read of the first."""

    def __init__(self, old: FileDescriptor, new: FileDescriptor) -> None:
        self._old, self._new = old, new
        self._under_way: set[tuple[str, str]] = set()

    def findings(self) -> Iterator[_Found]:
        if self._old.package != self._new.package:
            words = f"the package changes from {self._old.package or 'none'} to {self._new.package or 'none'}"
            yield "PACKAGE_CHANGED", "#/", words
        yield from self._messages(self._old.message_types_by_name, self._new.message_types_by_name, "#/")

    def _messages(self, before: Any, after: Any, path: str) -> Iterator[_Found]:
        for name, message in before.items():
            if message.GetOptions().map_entry:
                continue
            if name not in after:
                yield "MESSAGE_REMOVED", f"{path}{name}", f"the message {name} is gone"
            else:
                yield from self._message(message, after[name], f"{path}{name}/")

    def _message(self, old: Descriptor, new: Descriptor, path: str) -> Iterator[_Found]:
        yield from self._messages(old.nested_types_by_name, new.nested_types_by_name, path)
        yield from self._fields(old, new, path)

    def _fields(self, old: Descriptor, new: Descriptor, path: str) -> Iterator[_Found]:
        pair = (old.full_name, new.full_name)
        if pair in self._under_way:
            return
        self._under_way.add(pair)
        before, after = old.fields_by_number, new.fields_by_number
        for number, field in before.items():
            place = f"{path}{number}"
            if number in after:
                yield from self._field(field, after[number], place)
            elif field.is_required:
                yield "REQUIRED_FIELD_REMOVED", place, f"the required field {field.name} is gone"
            elif _oneof(field) is not None and _oneof(field).name in new.oneofs_by_name:
                yield "ONEOF_FIELD_REMOVED", place, f"{field.name} is gone from the oneof {_oneof(field).name}"
        for number, field in after.items():
            if number not in before and field.is_required:
                yield "REQUIRED_FIELD_ADDED", f"{path}{number}", f"the required field {field.name} is new"
        yield from self._oneofs(old, new, path)

    def _oneofs(self, old: Descriptor, new: Descriptor, path: str) -> Iterator[_Found]:
        for oneof in new.oneofs:
            if not _is_real(oneof):
                continue
            moved = [
                one.number
                for one in oneof.fields
                if one.number in old.fields_by_number and _oneof(old.fields_by_number[one.number]) is None
            ]
            known = oneof.name in old.oneofs_by_name and _is_real(old.oneofs_by_name[oneof.name])
            if known and moved:
                words = f"fields {moved} move into the oneof {oneof.name}, which was there"
                yield "FIELD_MOVED_TO_EXISTING_ONEOF", f"{path}{oneof.name}", words
            elif len(moved) > 1:
                words = f"fields {moved} move into the oneof {oneof.name} together"
                yield "MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{path}{oneof.name}", words
        for oneof in old.oneofs:
            if not _is_real(oneof):
                continue
            left = [
                one.number
                for one in oneof.fields
                if one.number in new.fields_by_number and _oneof(new.fields_by_number[one.number]) is None
            ]
            if left and oneof.name in new.oneofs_by_name:
                words = f"fields {left} leave the oneof {oneof.name}"
                yield "ONEOF_FIELD_REMOVED", f"{path}{oneof.name}", words

    def _field(self, old: FieldDescriptor, new: FieldDescriptor, place: str) -> Iterator[_Found]:
        if old.is_required != new.is_required:
            name = "REQUIRED_FIELD_REMOVED" if old.is_required else "REQUIRED_FIELD_ADDED"
            yield name, place, f"{new.name} {'is no longer' if old.is_required else 'becomes'} required"
        elif _label(old) and _label(new) and _label(old) != _label(new) and not _is_text(new):
            words = f"the label of {new.name} changes from {_label(old)} to {_label(new)}"
            yield "FIELD_NUMERIC_LABEL_CHANGED", place, words
        yield from self._type(old, new, place)

    def _type(self, old: FieldDescriptor, new: FieldDescriptor, place: str) -> Iterator[_Found]:
        words = f"the type of {new.name} changes from {_called(old)} to {_called(new)}"
        if _kind(old) != _kind(new):
            yield "FIELD_KIND_CHANGED", place, words
        elif is_map(old):
            for part in ("key", "value"):
                one, two = (field.message_type.fields_by_name[part] for field in (old, new))
                yield from self._type(one, two, f"{place}/{part}")
        elif old.type in _MESSAGES:
            if self._relative(old.message_type, self._old) != self._relative(new.message_type, self._new):
                yield "FIELD_NAMED_TYPE_CHANGED", place, words
            elif old.message_type.file is not self._old and any(
                True for _ in self._message(old.message_type, new.message_type, f"{place}/")
            ):
                yield "FIELD_NAMED_TYPE_CHANGED", place, f"the type {_called(new)} of {new.name} is another"
        elif old.type != new.type and not any(old.type in group and new.type in group for group in _GROUPS):
            yield "FIELD_SCALAR_KIND_CHANGED", place, words

    def _relative(self, message: Descriptor, file: FileDescriptor) -> str:
        """A name without the package of its file, whose change is a finding of its own."""
        name = str(message.full_name)
        return name.removeprefix(f"{file.package}.") if file.package and message.file is file else name


def _kind(field: FieldDescriptor) -> str:
    return "map" if is_map(field) else "message" if field.type in _MESSAGES else "scalar"


def _label(field: FieldDescriptor) -> str:
    """The label that is written; a bare field of proto3 has none."""
    if field.is_repeated:
        return "repeated"
    if field.is_required:
        return "required"
    return "optional" if field.has_presence and _oneof(field) is None else ""


def _is_text(field: FieldDescriptor) -> bool:
    return field.type in (_F.TYPE_STRING, _F.TYPE_BYTES) or field.type in _MESSAGES


def _called(field: FieldDescriptor) -> str:
    kind = field.message_type or field.enum_type
    names = {value: name.removeprefix("TYPE_").lower() for name, value in vars(_F).items() if name.startswith("TYPE_")}
    return str(kind.full_name) if kind is not None else names[field.type]


def _is_real(oneof: Any) -> bool:
    """Tell a oneof from the one that `optional` makes in proto3."""
    return not (len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}")


def _oneof(field: FieldDescriptor) -> Any:
    oneof = field.containing_oneof
    return oneof if oneof is not None and _is_real(oneof) else None
