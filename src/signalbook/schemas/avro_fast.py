"""The fast road for Avro payloads: fastavro, for schemas and sizes where it is known to answer as `avro_decode`.

Rule 1: fastavro recurses in C without a bound (a list of some thousand links ends the process) and believes every
count, so a recursive schema, or one whose items may take no bytes, never comes here; a long payload does not either.
Rule 2: a record takes no bytes of its own. So each member of a union with several is read as a record with one field
named by the member's label, which tells what the union's value was: fastavro alone cannot.
Rule 3: fastavro takes negative indexes from the end of a list. Symbols are therefore given as a dictionary, and a
union's list goes on with members that cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import fastavro
from fastavro.read import LOGICAL_READERS

from signalbook.schemas.avro_decode import DEEPEST_VALUE, BadPayload
from signalbook.schemas.avro_logical import logical_value
from signalbook.schemas.avro_types import Node, inner_types, of_values, walk

__all__ = ["FastDecoder", "fast_decoder"]

FastDecoder = Callable[[BytesIO], Any]

# A payload of which each byte may announce this many values is read by the bounded road.
_MOST_VALUES = 8_000_000
# A longer list costs time in each reading.
_POISON = [{"type": "signalbook.not-there"}] * 16
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
    """What reads a value from a stream, and how long a payload may be; None where only the strict road is safe."""
    if _recursive(node):
        return None
    weight = _weight(node)
    if weight is None:
        return None
    schema, unwrap = _Rewriting().root(node)
    check = _range_check(node, {})
    read = fastavro.schemaless_reader

    def decode(stream: BytesIO) -> Any:
        value: Any = read(stream, schema, None)
        if unwrap:
            value = value["value"]
        if check is not None:
            check(value)
        return value

    return decode, _MOST_VALUES // weight


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


def _weight(node: Node) -> int | None:
    """How many values a byte can announce at most; None where items of an array may take no bytes at all."""
    free: dict[int, int] = {}

    def without_bytes(one: Node) -> int:
        """The values that a type makes without a byte being read, with their record; 0: it reads one first."""
        if one.kind == "null" or (one.kind == "fixed" and one.size == 0):
            return 1
        if one.kind != "record":
            return 0
        if id(one) not in free:
            free[id(one)] = 1 + sum(without_bytes(field.node) for field in one.fields)
        return free[id(one)]

    taken: dict[int, bool] = {}

    def takes_bytes(one: Node) -> bool:
        if one.kind == "record":
            if id(one) not in taken:
                taken[id(one)] = any(takes_bytes(field.node) for field in one.fields)
            return taken[id(one)]
        return one.kind != "null" and not (one.kind == "fixed" and one.size == 0)

    heaviest = 1
    for one in walk(node):
        heaviest = max(heaviest, without_bytes(one))
        if heaviest > _MOST_VALUES or (one.kind == "array" and one.inner is not None and not takes_bytes(one.inner)):
            return None
    return heaviest + 1


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
        parsed = fastavro.parse_schema(schema)
        _harden(parsed)
        return parsed, wrapped

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


def _harden(parsed: Any) -> None:
    """Make negative indexes fail in a parsed schema, in place; each named type stands in it once."""
    waiting = [parsed]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting.extend(one)
            one.extend(_POISON)
        elif isinstance(one, dict):
            waiting.extend(field["type"] for field in one.get("fields", ()))
            waiting.extend(one[member] for member in ("items", "values") if member in one)
            if one["type"] == "enum":
                one["symbols"] = dict(enumerate(one["symbols"]))


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
