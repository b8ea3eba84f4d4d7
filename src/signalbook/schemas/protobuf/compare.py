"""What changed between two Protobuf texts, and which promises that breaks.

Rule 1: backward means that the newer text reads what the older wrote, forward the other way round; both on the wire.
Rule 2: where Confluent, Karapace, Buf (its WIRE category) and Apicurio agree, so do we; where they differ, we follow
what a reader of the bytes loses (docs/decisions/0011). What matters to the JSON mapping only breaks nothing.
Rule 3: messages are paired by their names without the package, fields by their numbers; a path has both names.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto

from signalbook.schemas.format import BREAKS_BOTH, MOST_STEPS, Difference, Direction, Schema, StepBudget, pointer
from signalbook.schemas.protobuf.values import is_map

if TYPE_CHECKING:
    from signalbook.schemas.protobuf.schema import ProtobufSchema

__all__ = ["compare", "confluent_breaks"]

_BACKWARD: frozenset[Direction] = frozenset({"backward"})
_FORWARD: frozenset[Direction] = frozenset({"forward"})
_NONE: frozenset[Direction] = frozenset()

_F = FieldDescriptor
_TYPES = {getattr(_F, name): name.removeprefix("TYPE_").lower() for name in dir(_F) if name.startswith("TYPE_")}
# What is read from the same bytes: https://protobuf.dev/programming-guides/proto3/#updating. Enums are with the first.
_GROUPS = (
    frozenset({"int32", "uint32", "int64", "uint64", "bool"}),
    frozenset({"sint32", "sint64"}),
    frozenset({"fixed32", "sfixed32"}),
    frozenset({"fixed64", "sfixed64"}),
)


_PARTS_A_STEP = 2


def compare(older: Schema, newer: Schema, budget: StepBudget | None = None) -> Iterator[Difference]:
    """Yield the differences of two Protobuf texts or messages, the breaking ones with the promises they break."""
    old, new = cast("ProtobufSchema", older), cast("ProtobufSchema", newer)
    if old.file.package != new.file.package:
        words = f"the package changes from {old.file.package or 'none'} to {new.file.package or 'none'}"
        yield Difference("", "package_changed", words)
    budget = budget or StepBudget(MOST_STEPS)
    before, after = _messages(old), _messages(new)
    names = _Names(old, new, budget)
    for name, message in before.items():
        if name in after:
            budget.spend(1 + (_size(message) + _size(after[name])) // _PARTS_A_STEP)
            yield from _message(message, after[name], name, names)
        elif not message.GetOptions().map_entry:
            yield Difference(pointer([name]), "message_removed", f"the message {name} is gone", _BACKWARD)
    for name in after.keys() - before.keys():
        words = f"the message {name} is new: readers with the older schema cannot read it"
        yield Difference(pointer([name]), "message_added", words, _FORWARD)


def _size(message: Descriptor) -> int:
    return len(message.fields) + len(message.oneofs)


class _Names:
    """The names of types without the package of their text; an enum is compared with another once."""

    def __init__(self, old: ProtobufSchema, new: ProtobufSchema, budget: StepBudget) -> None:
        self._old = old.file.package
        self._new = new.file.package
        self._budget = budget
        self._compared: set[tuple[str, str]] = set()

    def is_first(self, old: EnumDescriptor, new: EnumDescriptor) -> bool:
        """Tell whether two enums have not been compared yet."""
        pair = (old.full_name, new.full_name)
        if pair in self._compared:
            return False
        self._compared.add(pair)
        self._budget.spend(1 + (len(old.values) + len(new.values)) // _PARTS_A_STEP)
        return True

    def same(self, old: Any, new: Any) -> bool:
        """Tell whether two types are called the same."""
        return _relative(old.full_name, self._old) == _relative(new.full_name, self._new)


def _relative(name: str, package: str) -> str:
    return name.removeprefix(f"{package}.") if package else name


def _messages(schema: ProtobufSchema) -> dict[str, Descriptor]:
    """The messages that a payload can hold: what a deep link reaches, or all of the text with what they reach."""
    package = schema.file.package
    if schema.linked and schema.message is not None:
        start = [schema.message]
    else:
        start = list(schema.file.message_types_by_name.values())
    found: dict[str, Descriptor] = {}
    waiting = start[::-1]
    while waiting:
        one = waiting.pop()
        # The message of a deep link is the payload, whatever it is called.
        name = "" if schema.linked and one is schema.message else _relative(one.full_name, package)
        if name in found or one.full_name.startswith("google.protobuf."):
            continue
        if not one.GetOptions().map_entry:
            found[name] = one
        if not schema.linked:
            waiting.extend(reversed(one.nested_types))
        waiting.extend(field.message_type for field in one.fields if field.message_type is not None)
    return found


def _message(old: Descriptor, new: Descriptor, path: str, names: _Names) -> Iterator[Difference]:
    steps = (path,) if path else ()
    before, after = old.fields_by_number, new.fields_by_number
    was, is_ = _Side(old), _Side(new)
    for number, field in before.items():
        if number in after:
            yield from _field(field, after[number], (*steps, field.name), names)
        else:
            yield from _removed(field, is_, (*steps, field.name))
    for number, field in after.items():
        if number not in before:
            yield from _added(field, was, (*steps, field.name))
    yield from _moved(old, new, steps)
    yield from _reserved(was, is_, steps)


class _Side:
    """One of two messages: the numbers that it has and reserves, and which oneofs of the other have a member in it."""

    def __init__(self, message: Descriptor) -> None:
        self.message = message
        self.numbers = sorted(message.fields_by_number)
        self.reserved = sorted((one.start, one.end) for one in _proto(message).reserved_range)
        self._survives: dict[str, bool] = {}

    def reserves(self, number: int) -> bool:
        """Tell whether a number lies in a range that the message reserves; ranges do not overlap."""
        place = bisect_right(self.reserved, (number, 1 << 31)) - 1
        return place >= 0 and number < self.reserved[place][1]

    def uses(self, start: int, end: int) -> bool:
        """Tell whether a field has a number from `start` to before `end`."""
        place = bisect_left(self.numbers, start)
        return place < len(self.numbers) and self.numbers[place] < end

    def survives(self, field: FieldDescriptor) -> bool:
        """Tell whether a field of the other message is in a oneof of which this one has another member."""
        oneof = _real_oneof(field)
        if oneof is None:
            return False
        if oneof.full_name not in self._survives:
            known = self.message.fields_by_number
            self._survives[oneof.full_name] = any(one.number in known for one in oneof.fields)
        return self._survives[oneof.full_name]


def _removed(field: FieldDescriptor, new: _Side, steps: tuple[str, ...]) -> Iterator[Difference]:
    place = pointer(steps)
    if field.is_required:
        yield Difference(place, "required_removed", f"the required field {field.name} is gone", BREAKS_BOTH)
    elif new.survives(field):
        words = f"{field.name} is gone from the oneof {field.containing_oneof.name}, where it may have been the one set"
        yield Difference(place, "oneof_field_removed", words, _BACKWARD)
    else:
        kept = new.reserves(field.number)
        hint = "its number is reserved" if kept else f"its number {field.number} is not reserved, and may be used again"
        yield Difference(place, "field_removed", f"the field {field.name} is gone; {hint}")


def _added(field: FieldDescriptor, old: _Side, steps: tuple[str, ...]) -> Iterator[Difference]:
    place = pointer(steps)
    if field.is_required:
        yield Difference(place, "required_added", f"the required field {field.name} is new", BREAKS_BOTH)
    elif old.reserves(field.number):
        words = (
            f"{field.name} has the number {field.number}, which was reserved: earlier payloads may hold something else"
        )
        yield Difference(place, "reserved_used", words, _BACKWARD, certain=False)
    elif old.survives(field):
        words = f"{field.name} is new in the oneof {field.containing_oneof.name}, which the older text would find unset"
        yield Difference(place, "oneof_field_added", words, _FORWARD)
    else:
        yield Difference(place, "field_added", f"the field {field.name} is new")


def _field(old: FieldDescriptor, new: FieldDescriptor, steps: tuple[str, ...], names: _Names) -> Iterator[Difference]:
    place = pointer(steps)
    if old.is_required != new.is_required:
        words = f"{old.name} {'is no longer' if old.is_required else 'becomes'} required"
        yield Difference(place, "required_changed", words, BREAKS_BOTH)
    if is_map(old) != is_map(new):
        words = f"{old.name} {'is no longer' if is_map(old) else 'becomes'} a map"
        yield Difference(place, "type_changed", words, BREAKS_BOTH)
        return
    if is_map(old):
        for part in ("key", "value"):
            pair = [one.message_type.fields_by_name[part] for one in (old, new)]
            yield from _type(pair[0], pair[1], (*steps, part), names)
    else:
        if old.is_repeated != new.is_repeated:
            yield from _label(old, new, place)
        yield from _type(old, new, steps, names)
    if old.name != new.name or old.json_name != new.json_name:
        words = f"field {old.number} changes its name from {old.name} ({old.json_name}) to {new.name} ({new.json_name})"
        yield Difference(place, "name_changed", f"{words}; the JSON mapping goes by names")
    if old.has_presence and new.has_presence and _default(old) != _default(new):
        words = (
            f"the default of {new.name} changes from {_default(old)!r} to {_default(new)!r}: what is not sent changes"
        )
        yield Difference(place, "default_changed", words, BREAKS_BOTH)


def _default(field: FieldDescriptor) -> Any:
    return field.default_value if field.message_type is None and field.has_default_value else None


def _label(old: FieldDescriptor, new: FieldDescriptor, place: str) -> Iterator[Difference]:
    words = f"{new.name} {'becomes' if new.is_repeated else 'is no longer'} repeated"
    if old.message_type is None and old.type not in (_F.TYPE_STRING, _F.TYPE_BYTES):
        yield Difference(place, "label_changed", f"{words}: numbers are packed another way", BREAKS_BOTH)
    else:
        words = f"{words}: who reads one gets the last of several"
        yield Difference(place, "label_changed", words, _FORWARD if new.is_repeated else _BACKWARD)


def _type(old: FieldDescriptor, new: FieldDescriptor, steps: tuple[str, ...], names: _Names) -> Iterator[Difference]:
    place = pointer(steps)
    before, after = _TYPES[old.type], _TYPES[new.type]
    words = f"the type of {old.name} changes from {_called(old)} to {_called(new)}"
    if old.enum_type is not None and new.enum_type is not None:
        if not names.same(old.enum_type, new.enum_type):
            yield Difference(place, "type_changed", f"{words}; the numbers are the same")
        if names.is_first(old.enum_type, new.enum_type):
            yield from _enum(old.enum_type, new.enum_type, steps)
    elif before != after:
        yield Difference(place, "type_changed", *_changed_type(old, new, words))
    elif old.message_type is not None and not names.same(old.message_type, new.message_type):
        yield Difference(place, "type_changed", words, BREAKS_BOTH)


def _changed_type(old: FieldDescriptor, new: FieldDescriptor, words: str) -> tuple[str, frozenset[Direction]]:
    """What to say of two types, and what their change breaks."""
    before, after = _TYPES[old.type], _TYPES[new.type]
    if (before, after) == ("string", "bytes"):
        return f"{words}, which need not be UTF-8", _FORWARD
    if (before, after) == ("bytes", "string"):
        return f"{words}, which must be UTF-8", _BACKWARD
    if "enum" in (before, after) and {before, after} <= {"enum", *_GROUPS[0]}:
        closed = (old.enum_type or new.enum_type).is_closed
        breaks = (_FORWARD if before == "enum" else _BACKWARD) if closed else _NONE
        return f"{words}{', which lacks other values' if closed else '; the numbers are the same'}", breaks
    if any(before in group and after in group for group in _GROUPS):
        return f"{words}; the bytes are the same, large values may be cut", _NONE
    return words, BREAKS_BOTH


def _called(field: FieldDescriptor) -> str:
    kind = field.message_type or field.enum_type
    return _TYPES[field.type] if kind is None else str(kind.full_name)


def _enum(old: EnumDescriptor, new: EnumDescriptor, steps: tuple[str, ...]) -> Iterator[Difference]:
    before, after = old.values_by_number, new.values_by_number
    names, new_names = _value_names(old), _value_names(new)
    for number, value in before.items():
        place = pointer((*steps, value.name))
        if number not in after:
            words = f"the value {value.name} = {number} of {old.name} is gone"
            yield Difference(place, "enum_value_removed", words, _BACKWARD if new.is_closed else _NONE)
        elif names[number].isdisjoint(new_names[number]):
            words = f"the value {number} of {old.name} changes its name from {value.name} to {after[number].name}"
            yield Difference(place, "enum_value_renamed", words)
    for number, value in after.items():
        if number not in before:
            words = f"the value {value.name} = {number} of {new.name} is new"
            place = pointer((*steps, value.name))
            yield Difference(place, "enum_value_added", words, _FORWARD if old.is_closed else _NONE)


def _value_names(enum: EnumDescriptor) -> dict[int, set[str]]:
    """The names of each number; aliases have the same."""
    found: dict[int, set[str]] = {}
    for one in enum.values:
        found.setdefault(one.number, set()).add(one.name)
    return found


def _real_oneof(field: FieldDescriptor) -> Any:
    """The oneof of a field; `optional` in proto3 makes one that is none."""
    oneof = field.containing_oneof
    if oneof is None or (len(oneof.fields) == 1 and oneof.name == f"_{field.name}"):
        return None
    return oneof


def _moved(old: Descriptor, new: Descriptor, steps: tuple[str, ...]) -> Iterator[Difference]:
    """Yield the fields that went into a oneof or out of one.

    Fields that could be set together, and exclude each other for the reader, break the promise of that reader.
    """
    shared = set(old.fields_by_number) & set(new.fields_by_number)
    torn = {"backward": _newly_exclusive(old, new), "forward": _newly_exclusive(new, old)}
    for number in sorted(shared):
        before, after = _real_oneof(old.fields_by_number[number]), _real_oneof(new.fields_by_number[number])
        breaks = frozenset(cast("Direction", direction) for direction, numbers in torn.items() if number in numbers)
        if (before is None) != (after is None) or breaks:
            name = new.fields_by_number[number].name
            places = [f"the oneof {one.name}" if one is not None else "the message" for one in (before, after)]
            words = (
                f"{name} moves from {places[0]} to {places[1]}"
                if places[0] != places[1]
                else f"{name} shares its oneof with other fields"
            )
            yield Difference(pointer((*steps, name)), "oneof_changed", words, breaks)


def _newly_exclusive(writer: Descriptor, reader: Descriptor) -> set[int]:
    """The numbers of fields that a writer can set together, of which a reader keeps the last one only."""
    found: set[int] = set()
    for oneof in reader.oneofs:
        known = [writer.fields_by_number[one.number] for one in oneof.fields if one.number in writer.fields_by_number]
        groups = {field.number: _real_oneof(field).name if _real_oneof(field) else field.number for field in known}
        if len(set(groups.values())) > 1:
            found.update(groups)
    return found


def _proto(message: Descriptor) -> DescriptorProto:
    found = DescriptorProto()
    message.CopyToProto(found)
    return found


def _reserved(old: _Side, new: _Side, steps: tuple[str, ...]) -> Iterator[Difference]:
    for start, end in old.reserved:
        if not (new.reserves(start) and new.reserves(end - 1)) and not new.uses(start, end):
            span = str(start) if end == start + 1 else f"{start} to {end - 1}"
            yield Difference(pointer(steps), "reserved_removed", f"{new.message.name} no longer reserves {span}")


# The rules of Confluent's registry, which decide on its API: what breaks a promise by them.
#
# Rule 1: fields go by their numbers, messages by their names; names of fields, enum values, services and options do not
# count. Backward and forward differ only in which text is the older one.
# Rule 2: a finding is a name that tools show, a path and words.

_ALIKE = (
    frozenset({_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_BOOL, _F.TYPE_ENUM}),
    frozenset({_F.TYPE_SINT32, _F.TYPE_SINT64}),
    frozenset({_F.TYPE_STRING, _F.TYPE_BYTES}),
    frozenset({_F.TYPE_FIXED32, _F.TYPE_SFIXED32}),
    frozenset({_F.TYPE_FIXED64, _F.TYPE_SFIXED64}),
)
_MESSAGES = frozenset({_F.TYPE_MESSAGE, _F.TYPE_GROUP})
_Found = tuple[str, str, str]


def confluent_breaks(older: Schema, newer: Schema, wanted: frozenset[Direction]) -> Iterator[_Found]:
    """Yield what breaks a promise."""
    old, new = cast("ProtobufSchema", older).file, cast("ProtobufSchema", newer).file
    seen: set[_Found] = set()
    for direction in sorted(wanted):
        pair = (old, new) if direction == "backward" else (new, old)
        for found in _ConfluentComparison(*pair).findings():
            if found not in seen:
                seen.add(found)
                yield found


class _ConfluentComparison:
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
            elif _real_oneof(field) is not None and _real_oneof(field).name in new.oneofs_by_name:
                yield "ONEOF_FIELD_REMOVED", place, f"{field.name} is gone from the oneof {_real_oneof(field).name}"
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
                if one.number in old.fields_by_number and _real_oneof(old.fields_by_number[one.number]) is None
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
                if one.number in new.fields_by_number and _real_oneof(new.fields_by_number[one.number]) is None
            ]
            if left and oneof.name in new.oneofs_by_name:
                words = f"fields {left} leave the oneof {oneof.name}"
                yield "ONEOF_FIELD_REMOVED", f"{path}{oneof.name}", words

    def _field(self, old: FieldDescriptor, new: FieldDescriptor, place: str) -> Iterator[_Found]:
        if old.is_required != new.is_required:
            name = "REQUIRED_FIELD_REMOVED" if old.is_required else "REQUIRED_FIELD_ADDED"
            yield name, place, f"{new.name} {'is no longer' if old.is_required else 'becomes'} required"
        elif (
            _written_label(old)
            and _written_label(new)
            and _written_label(old) != _written_label(new)
            and not _is_unpacked(new)
        ):
            words = f"the label of {new.name} changes from {_written_label(old)} to {_written_label(new)}"
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
        elif old.type != new.type and not any(old.type in group and new.type in group for group in _ALIKE):
            yield "FIELD_SCALAR_KIND_CHANGED", place, words

    def _relative(self, message: Descriptor, file: FileDescriptor) -> str:
        """A name without the package of its file, whose change is a finding of its own."""
        name = str(message.full_name)
        return name.removeprefix(f"{file.package}.") if file.package and message.file is file else name


def _kind(field: FieldDescriptor) -> str:
    return "map" if is_map(field) else "message" if field.type in _MESSAGES else "scalar"


def _written_label(field: FieldDescriptor) -> str:
    """The label that is written; a bare field of proto3 has none."""
    if field.is_repeated:
        return "repeated"
    if field.is_required:
        return "required"
    return "optional" if field.has_presence and _real_oneof(field) is None else ""


def _is_unpacked(field: FieldDescriptor) -> bool:
    return field.type in (_F.TYPE_STRING, _F.TYPE_BYTES) or field.type in _MESSAGES


def _is_real(oneof: Any) -> bool:
    """Tell a oneof from the one that `optional` makes in proto3."""
    return not (len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}")
