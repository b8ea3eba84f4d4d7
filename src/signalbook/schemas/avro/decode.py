"""Avro's binary encoding, read strictly, within bounds, and with the place of what is wrong.

Rule 1: this is the general path; `fast` gives the same answers sooner, for schemas where that is safe.
Rule 2: bytes that no writer produces are refused: a boolean other than 0 and 1, an integer out of its range, a
negative length or index.
Rule 3: depth and the number of values are bounded, whatever counts the bytes claim.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact, Rounded
from typing import Any
from uuid import UUID

from signalbook.schemas.avro.resolve import Resolution, field_of
from signalbook.schemas.avro.schema import NOTHING, Node, of_values, raw_default, single

__all__ = [
    "DEEPEST_VALUE",
    "MOST_VALUES",
    "BadPayload",
    "Cursor",
    "Decoder",
    "decoder",
    "logical_value",
    "resolved_value",
]

# The values of Avro's logical types in Python.
#
# Rule 1: a value that its logical type cannot have is refused, never bent: a time of day beyond the day, a decimal with
# more digits than declared, a date outside of the years 1 to 9999 (no table holds one).
# Rule 2: a value that was written with another logical type is what its writer meant, or it is refused.
# Rule 3: nanoseconds stay the number they are: Python's and Spark's timestamps end at microseconds.
#
# | logical type | value |
# |---|---|
# | date, time-millis, time-micros | `datetime.date`, `datetime.time` |
# | timestamp-millis, timestamp-micros | `datetime.datetime` in UTC; local-timestamp-*: without a zone |
# | timestamp-nanos, local-timestamp-nanos | `int` |
# | decimal, big-decimal | `decimal.Decimal` |
# | uuid | `uuid.UUID` |
# | duration | a dictionary of `months`, `days`, `milliseconds` |


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH = datetime(1970, 1, 1)
_DAY_ONE = date(1970, 1, 1).toordinal()
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, Rounded])
_SCALES = 1_000_000


def _time(unit: int) -> Callable[[int], time]:
    per_second = 1_000_000 // unit

    def read(value: int) -> time:
        seconds, rest = divmod(value, per_second)
        if not 0 <= seconds < 86_400:
            raise ValueError(f"{value} is not a time of day")
        return time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest * unit)

    return read


def _timestamp(unit: int, epoch: datetime) -> Callable[[int], datetime]:
    def read(value: int) -> datetime:
        try:
            return epoch + timedelta(microseconds=value * unit)
        except OverflowError:
            raise ValueError(f"{value} is not a time within the years 1 to 9999") from None

    return read


def _date(value: int) -> date:
    try:
        return date.fromordinal(value + _DAY_ONE)
    except (ValueError, OverflowError):
        raise ValueError(f"{value} is not a day within the years 1 to 9999") from None


def _duration(value: bytes) -> dict[str, int]:
    months, days, milliseconds = (int.from_bytes(value[at : at + 4], "little") for at in (0, 4, 8))
    return {"months": months, "days": days, "milliseconds": milliseconds}


def _decimal(precision: int, scale: int) -> Callable[[bytes], Decimal]:
    # Ten to the precision has this many bits at most; a longer number need not be made to see that it is too long.
    bits = precision * 10 // 3 + 1

    def read(value: bytes) -> Decimal:
        unscaled = int.from_bytes(value, "big", signed=True)
        if unscaled.bit_length() <= bits:
            found = Decimal(unscaled)
            if found.adjusted() < precision:
                return found.scaleb(-scale, _EXACT)
        raise ValueError(f"a number has more than the {precision} digits of its type")

    return read


def _big_decimal(value: bytes) -> Decimal:
    """Decode bytes and a scale, each as Avro writes them."""
    size, at = _varint(value, 0)
    if not 0 <= size <= len(value) - at:
        raise ValueError("a big-decimal ends too early")
    scale, end = _varint(value, at + size)
    if end != len(value) or abs(scale) > _SCALES:
        raise ValueError("a big-decimal has a wrong scale")
    return Decimal(int.from_bytes(value[at : at + size], "big", signed=True)).scaleb(-scale, _EXACT)


def _varint(value: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while at < len(value) and shift < 70:
        byte = value[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
        shift += 7
    raise ValueError("a big-decimal ends too early")


def _uuid_of_bytes(value: bytes) -> UUID:
    return UUID(bytes=value)


_READERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("int", "date"): _date,
    ("int", "time-millis"): _time(1000),
    ("long", "time-micros"): _time(1),
    ("long", "timestamp-millis"): _timestamp(1000, _EPOCH),
    ("long", "timestamp-micros"): _timestamp(1, _EPOCH),
    ("long", "local-timestamp-millis"): _timestamp(1000, _LOCAL_EPOCH),
    ("long", "local-timestamp-micros"): _timestamp(1, _LOCAL_EPOCH),
    ("string", "uuid"): UUID,
    ("fixed", "uuid"): _uuid_of_bytes,
    ("fixed", "duration"): _duration,
    ("bytes", "big-decimal"): _big_decimal,
}


def logical_value(node: Node) -> Callable[[Any], Any] | None:
    """What makes a node's value of the decoded one, `ValueError` or `OverflowError` where it is out of range."""
    if node.logical == "decimal":
        return _decimal(node.precision, node.scale)
    return _READERS.get((node.kind, node.logical))


# Logical types of one kind: a moment, or a time of day, is the same in whichever unit it is counted.
_SAME_KIND = (
    frozenset({"timestamp-millis", "timestamp-micros"}),
    frozenset({"local-timestamp-millis", "local-timestamp-micros"}),
    frozenset({"time-millis", "time-micros"}),
    frozenset({"decimal", "big-decimal"}),
)


def resolved_value(writer: Node, reader: Node) -> Callable[[Any], Any] | None:
    """The same for what a writer's type wrote and a reader's type reads.

    A number without a logical type is what the reader takes it for. One with another logical type is what the writer
    meant, where the reader's type can hold that, and is refused elsewhere: days are not milliseconds.
    """
    meant, wanted = logical_value(writer), logical_value(reader)
    if meant is None or wanted is None or _logical_type(writer) == _logical_type(reader):
        # Nanoseconds have no value of their own, but a meaning.
        if writer.logical and reader.logical and writer.logical != reader.logical:
            return _other_meaning(writer, reader)
        return wanted
    if not any({writer.logical, reader.logical} <= kind for kind in _SAME_KIND):
        return _other_meaning(writer, reader)
    return meant if reader.logical != "decimal" else _rescaled(meant, reader)


def _logical_type(node: Node) -> tuple[str, int, int]:
    return node.logical, node.precision, node.scale


def _other_meaning(writer: Node, reader: Node) -> Callable[[Any], Any]:
    def refuse(value: Any) -> Any:
        raise ValueError(f"a {writer.logical} cannot be read as a {reader.logical}")

    return refuse


def _rescaled(meant: Callable[[Any], Any], reader: Node) -> Callable[[Any], Any]:
    def read(value: Any) -> Decimal:
        found: Decimal = meant(value)
        try:
            made = found.quantize(Decimal(1).scaleb(-reader.scale), context=_EXACT)
        except ArithmeticError:
            raise ValueError(f"{found:.60g} has more than the {reader.scale} decimal places of its type") from None
        if made and made.adjusted() + reader.scale >= reader.precision:
            raise ValueError(f"{found:.60g} has more than the {reader.precision} digits of its type")
        return made

    return read


DEEPEST_VALUE = 100
MOST_VALUES = 4_000_000

Decoder = Callable[["Cursor"], Any]


class BadPayload(Exception):
    """A payload that is none of its schema, and the steps to the place."""

    def __init__(self, message: str, *steps: str | int) -> None:
        super().__init__(message)
        self.message = message
        self.steps = list(steps)


class Cursor:
    """A place in the bytes, and what may still be spent."""

    __slots__ = ("at", "data", "depth", "left")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at
        self.depth = DEEPEST_VALUE
        self.left = MOST_VALUES

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise BadPayload(f"{size} bytes are announced, {len(self.data) - self.at} are left")
        found = self.data[self.at : end]
        self.at = end
        return found

    def long(self) -> int:
        """Return the next integer, of 64 bits."""
        data, at = self.data, self.at
        try:
            byte = data[at]
            at += 1
            if byte < 0x80:  # most integers are lengths, counts and indexes of one byte
                self.at = at
                return (byte >> 1) ^ -(byte & 1)
            found, shift = byte & 0x7F, 7
            while True:
                byte = data[at]
                at += 1
                found |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
                if shift > 63:
                    raise BadPayload("an integer has more than ten bytes")
        except IndexError:
            raise BadPayload("the payload ends within an integer") from None
        if found >> 64:
            raise BadPayload("an integer has more than 64 bits")
        self.at = at
        return (found >> 1) ^ -(found & 1)

    def spend(self, values: int) -> None:
        """Count values, so that a few bytes cannot announce more than memory holds."""
        self.left -= values
        if self.left < 0:
            raise BadPayload(f"the payload holds more than {MOST_VALUES} values")


def decoder(writer: Node, reader: Node | None = None) -> Decoder:
    """What reads a value that the writer's schema wrote, as the reader's schema sees it."""
    if reader is None or reader is writer:
        return _Compiler(None).compile(writer, writer)
    return _Compiler(Resolution(writer, reader)).compile(writer, reader)


class _Compiler:
    """Makes the decoder of each pair of types once."""

    def __init__(self, resolution: Resolution | None) -> None:
        self._resolution = resolution
        self._made: dict[tuple[int, int, bool], Decoder | None] = {}

    def compile(self, writer: Node, reader: Node, logical: bool = True) -> Decoder:
        key = (id(writer), id(reader), logical)
        if key in self._made:
            # A type within itself: its decoder is looked up when it is needed.
            return self._made[key] or (lambda cursor: self._made[key](cursor))  # type: ignore[misc]
        self._made[key] = None
        made = self._make(writer, reader)
        convert = self._logical(writer, reader) if logical else None
        self._made[key] = made if convert is None else _converted(made, convert)
        return self._made[key] or made

    def _logical(self, writer: Node, reader: Node) -> Callable[[Any], Any] | None:
        """What makes a value of the decoded one: as the writer meant it, where both say what it means."""
        if writer is reader or "union" in (writer.kind, reader.kind):
            return logical_value(reader)
        return resolved_value(writer, reader)

    def _make(self, writer: Node, reader: Node) -> Decoder:
        if writer.kind == "union":
            return self._union(writer, reader)
        if reader.kind == "union":
            member = self._resolution.member(writer, reader) if self._resolution else None
            if member is None:
                return _reject(f"a value of type {writer.label} does not fit any member of the union")
            return _labelled(self.compile(writer, member), member, len(of_values(reader)) > 1)
        if writer.kind != reader.kind or (self._resolution and not self._resolution.matches(writer, reader)):
            return self._promoted(writer, reader)
        match writer.kind:
            case "record":
                return self._record(writer, reader)
            case "array":
                return self._array(writer, reader)
            case "map":
                return self._map(writer, reader)
            case "enum":
                return _enum(writer, reader)
            case "fixed":
                return _fixed(writer.size) if writer.size == reader.size else _reject("the sizes differ")
        return _PRIMITIVES[writer.kind]

    def _promoted(self, writer: Node, reader: Node) -> Decoder:
        read = _PRIMITIVES.get(writer.kind)
        change = _CHANGES.get((writer.kind, reader.kind))
        if read is None or change is None:
            return _reject(f"a value of type {writer.label} is not a valid {reader.label}")
        return lambda cursor: change(read(cursor))

    def _union(self, writer: Node, reader: Node) -> Decoder:
        if writer is reader:
            several = len(of_values(reader)) > 1
            members = [_labelled(self.compile(member, member), member, several) for member in writer.members]
        else:
            members = [self.compile(member, reader) for member in writer.members]

        def read(cursor: Cursor) -> Any:
            index = cursor.long()
            if not 0 <= index < len(members):
                raise BadPayload(f"the union has {len(members)} members, the payload says {index}")
            return members[index](cursor)

        return read

    def _record(self, writer: Node, reader: Node) -> Decoder:
        by_name = {field.name: field for field in writer.fields}
        sources = {id(found): field for field in reader.fields if (found := field_of(by_name, field)) is not None}
        steps: list[tuple[str, str, Decoder]] = []
        for field in writer.fields:
            target = sources.get(id(field))
            if target is None:
                steps.append((field.name, "", self.compile(field.node, field.node, logical=False)))
            else:
                steps.append((field.name, target.name, self.compile(field.node, target.node)))
        present = {target.name for target in sources.values()}
        absent = [field for field in reader.fields if field.name not in present]
        unknown = next((field.name for field in absent if field.default is NOTHING), None)
        if unknown is not None:
            return _reject(f"{writer.name} was written without {unknown}, which has no default in {reader.name}")
        order = [field.name for field in reader.fields]
        as_written = not absent and [target for _, target, _ in steps] == order
        defaults = [(field.name, _defaulted(raw_default(field), field.node)) for field in absent]
        counted = len(steps) + 1

        def read(cursor: Cursor) -> Any:
            cursor.left -= counted
            if cursor.left < 0:
                cursor.spend(0)  # raises
            cursor.depth -= 1
            if cursor.depth < 0:
                raise BadPayload(f"nested deeper than {DEEPEST_VALUE} records, arrays and maps")
            found = {}
            try:
                for name, target, decode in steps:  # noqa: B007 - named below, where one fails
                    found[target] = decode(cursor)
            except BadPayload as bad:
                bad.steps.insert(0, name)
                raise
            cursor.depth += 1
            if as_written:
                return found
            found.update(defaults)
            return {name: found[name] for name in order}

        return read

    def _array(self, writer: Node, reader: Node) -> Decoder:
        assert writer.inner is not None
        assert reader.inner is not None
        decode = self.compile(writer.inner, reader.inner)

        def read(cursor: Cursor) -> Any:
            found: list[Any] = []
            _deeper(cursor)
            while count := _block(cursor):
                cursor.spend(count)
                try:
                    for _ in range(count):
                        found.append(decode(cursor))
                except BadPayload as bad:
                    bad.steps.insert(0, len(found))
                    raise
            cursor.depth += 1
            return found

        return read

    def _map(self, writer: Node, reader: Node) -> Decoder:
        assert writer.inner is not None
        assert reader.inner is not None
        decode = self.compile(writer.inner, reader.inner)

        def read(cursor: Cursor) -> Any:
            found: dict[str, Any] = {}
            _deeper(cursor)
            while count := _block(cursor):
                cursor.spend(count)
                for _ in range(count):
                    key = _string(cursor)
                    try:
                        found[key] = decode(cursor)
                    except BadPayload as bad:
                        bad.steps.insert(0, key)
                        raise
            cursor.depth += 1
            return found

        return read


def _deeper(cursor: Cursor) -> None:
    cursor.depth -= 1
    if cursor.depth < 0:
        raise BadPayload(f"nested deeper than {DEEPEST_VALUE} records, arrays and maps")


def _block(cursor: Cursor) -> int:
    """The number of items in the next block.

    A negative one is followed by the block's size in bytes, which "permits fast skipping" (Avro 1.12, Arrays). A reader
    of all items has no use for it: it is ignored, as by other readers.
    """
    count = cursor.long()
    if count < 0:
        count = -count
        cursor.long()
    return count


def _converted(read: Decoder, convert: Callable[[Any], Any]) -> Decoder:
    def both(cursor: Cursor) -> Any:
        value = read(cursor)
        try:
            return convert(value)
        except (ValueError, OverflowError) as error:
            raise BadPayload(str(error)) from None

    return both


def _labelled(read: Decoder, member: Node, several: bool) -> Decoder:
    """A member of a union with several: its value goes under its label, as in Avro's JSON encoding."""
    if member.kind == "null" or not several:
        return read
    label = member.label

    def labelled(cursor: Cursor) -> Any:
        try:
            return {label: read(cursor)}
        except BadPayload as bad:
            bad.steps.insert(0, label)
            raise

    return labelled


def _defaulted(raw: Any, node: Node) -> Any:
    """A field's default as decoding it would give it."""
    if node.kind == "union":
        number, value = raw
        member = node.members[number]
        value = _defaulted(value, member)
        return value if member.kind == "null" or len(of_values(node)) < 2 else {member.label: value}
    if node.inner is not None:
        inner = node.inner
        if node.kind == "array":
            return [_defaulted(item, inner) for item in raw]
        return {key: _defaulted(item, inner) for key, item in raw.items()}
    if node.kind == "record":
        return {field.name: _defaulted(raw[field.name], field.node) for field in node.fields}
    convert = logical_value(node)
    try:
        return raw if convert is None else convert(raw)
    except (ValueError, OverflowError):
        return raw


def _reject(message: str) -> Decoder:
    def refuse(cursor: Cursor) -> Any:
        raise BadPayload(message)

    return refuse


def _boolean(cursor: Cursor) -> bool:
    byte = cursor.take(1)[0]
    if byte > 1:
        raise BadPayload(f"a boolean is 0 or 1, not {byte}")
    return byte == 1


def _int(cursor: Cursor) -> int:
    value = cursor.long()
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        raise BadPayload(f"{value} is not a valid int: it does not fit into 32 bits")
    return value


def _string(cursor: Cursor) -> str:
    size = cursor.long()
    begin = cursor.at
    cursor.at = end = begin + size
    if size < 0 or end > len(cursor.data):
        cursor.at = begin
        cursor.take(size)  # raises, and says how many bytes are left
    try:
        return str(cursor.data[begin:end], "utf-8")
    except UnicodeDecodeError as error:
        raise BadPayload(f"a string is not UTF-8: {error.reason}") from None


def _fixed(size: int) -> Decoder:
    return lambda cursor: cursor.take(size)


def _enum(writer: Node, reader: Node) -> Decoder:
    known = set(reader.symbols)
    values = [symbol if symbol in known else reader.default for symbol in writer.symbols]

    def read(cursor: Cursor) -> Any:
        index = cursor.long()
        if not 0 <= index < len(values):
            raise BadPayload(f"{writer.name} has {len(values)} symbols, the payload says {index}")
        if values[index] is None:
            raise BadPayload(f'"{writer.symbols[index]}" is not a symbol of {reader.name}')
        return values[index]

    return read


_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_PRIMITIVES: dict[str, Decoder] = {
    "null": lambda cursor: None,
    "boolean": _boolean,
    "int": _int,
    "long": Cursor.long,
    "float": lambda cursor: _FLOAT.unpack(cursor.take(4))[0],
    "double": lambda cursor: _DOUBLE.unpack(cursor.take(8))[0],
    "bytes": lambda cursor: cursor.take(cursor.long()),
    "string": _string,
}


def _bytes_to_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise BadPayload(f"bytes read as a string are not UTF-8: {error.reason}") from None


_CHANGES: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("int", "long"): int,
    ("int", "float"): single,
    ("int", "double"): float,
    ("long", "float"): single,
    ("long", "double"): float,
    ("float", "double"): float,
    ("string", "bytes"): str.encode,
    ("bytes", "string"): _bytes_to_text,
}
