"""The fast path for Avro payloads: fastavro, made to accept exactly what `decode` accepts.

Rule 1: fastavro recurses in C without a bound (a list of some thousand links ends the process) and believes every
count, so a recursive schema, or one whose items may take no bytes, is never read here, nor is a payload that could
hold more values than the general path allows.
Rule 2: a record takes no bytes of its own. So each member of a union with several is read as a record with one field
named by the member's label, which says of which member the value is: fastavro alone does not.
Rule 3: fastavro takes negative indexes from the end of a list. Symbols are therefore given as a dictionary, and a
union's members as a list that has no length.
Rule 4: fastavro takes every byte but 0 for true. A boolean is therefore read as a symbol: as integers, the byte 0 is 0
and the byte 1 is -1. Longer spellings of the two integers are left to the general path.
Rule 5: fastavro drops the bits of an integer above the 64th, and cannot negate the smallest integer as a block count.
A payload with bytes that may be such an integer is left to the general path; text that is not ASCII often has some.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import BytesIO
from typing import Any

import fastavro
from fastavro.read import LOGICAL_READERS

from signalbook.schemas.avro.decode import DEEPEST_VALUE, MOST_VALUES, BadPayload, logical_value
from signalbook.schemas.avro.schema import Node, inner_types, of_values, walk

__all__ = ["FastDecoder", "fast_decoder"]

FastDecoder = Callable[[bytes], tuple[Any, int]]

# Bytes by what they are at the end of ten that make an integer: one of at most 64 bits ends with 0 or 1.
_CLASSES = b"\2\2" + b"\1" * 126 + b"\x80" * 128
_NINE = b"\x80" * 9
_TEN = b"\x80" * 10
_TOO_HIGH = _NINE + b"\1"
_SMALLEST = b"\xff" * 9 + b"\1"
_LIMITS = (-0x80000000, 0x7FFFFFFF)

# Logical types that fastavro reads as we do; the others are read under names of our own.
_SAME = frozenset({"date", "timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros"})
_OWN = "signalbook-"


def _register() -> None:
    def decimal(value: Any, writer: Any = None, reader: Any = None) -> Any:
        return writer["signalbook-convert"](value)

    for kind, name in (("bytes", "decimal"), ("fixed", "decimal")):
        LOGICAL_READERS[f"{kind}-{_OWN}{name}"] = decimal
    for kind, name in (
        ("int", "time-millis"),
        ("long", "time-micros"),
        ("string", "uuid"),
        ("fixed", "uuid"),
        ("fixed", "duration"),
        ("bytes", "big-decimal"),
    ):
        convert = logical_value(Node(kind, logical=name))
        assert convert is not None
        LOGICAL_READERS[f"{kind}-{_OWN}{name}"] = _reader(convert)


def _reader(convert: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    def read(value: Any, writer: Any = None, reader: Any = None) -> Any:
        return convert(value)

    return read


_register()


def fast_decoder(node: Node) -> tuple[FastDecoder, int] | None:
    """Return what reads a payload, and how long a payload may be; None where only the general path is safe.

    The reader gives the value and where it ends; an end before the beginning says that it did not read.
    """
    if _recursive(node):
        return None
    longest = _longest(node)
    if longest is None:
        return None
    schema, unwrap = _Rewriting().root(node)
    check = _range_check(node, {})
    read = fastavro.schemaless_reader
    booleans = any(one.kind == "boolean" for one in walk(node))

    def decode(payload: bytes) -> tuple[Any, int]:
        classes = payload.translate(_CLASSES)
        if classes.find(_NINE) >= 0 and _may_be_misread(payload, classes):
            return None, -1
        if booleans and (payload.find(b"\x80\0") >= 0 or payload.find(b"\x81\0") >= 0):
            return None, -1
        stream = BytesIO(payload)
        value: Any = read(stream, schema, None)
        if unwrap:
            value = value["value"]
        if check is not None:
            check(value)
        return value, stream.tell()

    return decode, longest


def _may_be_misread(payload: bytes, classes: bytes) -> bool:
    """Tell whether a payload may hold an integer that fastavro misreads (Rule 5)."""
    return classes.find(_TEN) >= 0 or classes.find(_TOO_HIGH) >= 0 or payload.find(_SMALLEST) >= 0


def _recursive(node: Node) -> bool:
    """Tell whether a type contains itself, or is nested deeper than a value may be."""
    depths: dict[int, int] = {}
    open_: set[int] = set()

    def depth(one: Node) -> int:
        if id(one) in depths:
            return depths[id(one)]
        if id(one) in open_ or len(open_) > 3 * DEEPEST_VALUE:
            return DEEPEST_VALUE + 1
        open_.add(id(one))
        found = max((depth(other) for other in inner_types(one)), default=0) + (one.kind in ("record", "array", "map"))
        open_.discard(id(one))
        depths[id(one)] = found
        return found

    return depth(node) > DEEPEST_VALUE


def _longest(node: Node) -> int | None:
    """The longest payload that cannot hold too many values, as the general path counts them.

    None where items may take no bytes at all, or one value alone holds too many.
    """
    seen: dict[int, tuple[int, int]] = {}

    def measure(one: Node) -> tuple[int, int]:
        """The values that are counted for one value at most, and its bytes at least, without items of collections."""
        if one.kind == "record":
            if id(one) not in seen:
                inner = [measure(field.node) for field in one.fields]
                counted = 1 + len(inner) + sum(values for values, _ in inner)
                seen[id(one)] = counted, sum(size for _, size in inner)
            return seen[id(one)]
        if one.kind == "union":
            members = [measure(member) for member in one.members]
            return max((values for values, _ in members), default=0), 1 + min((size for _, size in members), default=0)
        return 0, one.size if one.kind == "fixed" else _LEAST_BYTES.get(one.kind, 1)

    room, longest = MOST_VALUES - measure(node)[0], sys.maxsize
    for one in walk(node):
        if one.inner is not None:
            values, size = measure(one.inner)
            size += one.kind == "map"  # the key's length
            if not size:
                return None
            longest = min(longest, room * size // (1 + values))
    return longest if room >= 0 else None


_LEAST_BYTES = {"null": 0, "float": 4, "double": 8}


class _Rewriting:
    """The schema that fastavro is given: the same on the wire, but telling more."""

    def __init__(self) -> None:
        self._defined: set[str] = set()
        self._wrappers = 0

    def root(self, node: Node) -> tuple[Any, bool]:
        """The parsed schema, and whether its value is wrapped in a record of one field."""
        wrapped = node.kind != "record"
        schema = self._write(node)
        if wrapped:
            schema = {"type": "record", "name": "signalbook root", "fields": [{"name": "value", "type": schema}]}
        return _harden(fastavro.parse_schema(schema)), wrapped

    def _write(self, node: Node) -> Any:
        if node.name and node.name in self._defined:
            return node.name
        self._defined.add(node.name)
        match node.kind:
            case "record":
                fields = [{"name": field.name, "type": self._write(field.node)} for field in node.fields]
                return {"type": "record", "name": node.name, "fields": fields}
            case "enum":
                return {"type": "enum", "name": node.name, "symbols": list(node.symbols)}
            case "array" | "map":
                assert node.inner is not None
                return {"type": node.kind, "items" if node.kind == "array" else "values": self._write(node.inner)}
            case "union":
                several = len(of_values(node)) > 1
                return [self._member(member, several) for member in node.members]
            case "fixed":
                return {"type": "fixed", "name": node.name, "size": node.size, **_logical(node)}
        logical = _logical(node)
        return {"type": node.kind, **logical} if logical else node.kind

    def _member(self, member: Node, several: bool) -> Any:
        if member.kind == "null" or not several:
            return self._write(member)
        self._wrappers += 1
        # A blank in the name: no schema has one of that name.
        name = f"signalbook member {self._wrappers}"
        fields = [{"name": member.label, "type": self._write(member)}]
        return {"type": "record", "name": name, "fields": fields}


def _logical(node: Node) -> dict[str, Any]:
    convert = logical_value(node)
    if convert is None:
        return {}
    if node.logical in _SAME:
        return {"logicalType": node.logical}
    found: dict[str, Any] = {"logicalType": _OWN + node.logical}
    if node.logical == "decimal":
        found["signalbook-convert"] = convert
    return found


def _harden(parsed: Any) -> Any:
    """Return a parsed schema that is read as Rules 3 and 4 say; each named type stands in it once."""
    if isinstance(parsed, list):
        return _Members(_harden(member) for member in parsed)
    if parsed == "boolean":
        return _BOOLEAN
    if isinstance(parsed, dict):
        for field in parsed.get("fields", ()):
            field["type"] = _harden(field["type"])
        for member in ("items", "values"):
            if member in parsed:
                parsed[member] = _harden(parsed[member])
        if parsed["type"] == "enum":
            parsed["symbols"] = dict(enumerate(parsed["symbols"]))
    return parsed


class _Members(list[Any]):
    """The members of a union; fastavro's compiled reader asks for the length only to count from the end."""

    def __len__(self) -> int:
        raise IndexError


_BOOLEAN = {"type": "enum", "symbols": {0: False, -1: True}}


Check = Callable[[Any], None]


def _range_check(node: Node, made: dict[int, Check | None]) -> Check | None:
    """What raises where an int has more than 32 bits, which fastavro lets pass; None where there is no int."""
    if id(node) in made:
        return made[id(node)]
    made[id(node)] = found = _make_range_check(node, made)
    return found


def _make_range_check(node: Node, made: dict[int, Check | None]) -> Check | None:
    if node.kind == "int" and not node.logical:
        return _check_int
    if node.kind == "record":
        return _record_check(node, made)
    if node.inner is not None:
        inner = _range_check(node.inner, made)
        if inner is _check_int and node.kind == "array":
            return _check_ints
        if inner is None:
            return None
        if node.kind == "array":
            return lambda value: _each(inner, value)
        return lambda value: _each(inner, value.values())
    if node.kind == "union":
        return _union_check(node, made)
    return None


def _record_check(node: Node, made: dict[int, Check | None]) -> Check | None:
    low, high = _LIMITS
    ints = [field.name for field in node.fields if field.node.kind == "int" and not field.node.logical]
    others = [
        (field.name, check)
        for field in node.fields
        if field.name not in ints and (check := _range_check(field.node, made)) is not None
    ]
    if not ints and not others:
        return None

    def of_record(value: Any) -> None:
        for name in ints:
            if not low <= value[name] <= high:
                raise BadPayload("an int has more than 32 bits", name)
        for name, check in others:
            check(value[name])

    return of_record


def _union_check(node: Node, made: dict[int, Check | None]) -> Check | None:
    members = {member.label: check for member in of_values(node) if (check := _range_check(member, made)) is not None}
    if not members:
        return None
    if len(of_values(node)) == 1:
        (only,) = members.values()
        return lambda value: only(value) if value is not None else None

    def of_union(value: Any) -> None:
        if value is not None:
            for label, inner in value.items():
                if label in members:
                    members[label](inner)

    return of_union


def _check_int(value: Any) -> None:
    if not _LIMITS[0] <= value <= _LIMITS[1]:
        raise BadPayload("an int has more than 32 bits")


def _check_ints(values: list[int]) -> None:
    if values and not (max(values) <= 0x7FFFFFFF and min(values) >= -0x80000000):
        raise BadPayload("an int has more than 32 bits")


def _each(check: Check, values: Any) -> None:
    for value in values:
        check(value)
