"""Avro: one schema, the payloads it takes, and its deep links.

Rule 1: a payload is raw binary, unless a mark says otherwise: a container file or single-object encoding; under a
content type that ends in `avro+json` it is Avro's JSON encoding. Confluent's frame is taken off before (`framing`).
Rule 2: bytes after the value are a problem. What another schema wrote is read by that one and resolved to this one.
Rule 3: the value has Python's dates, times and decimals (`decode`); the value of a union with several members
besides null is a dictionary with the member's label, as in Avro's JSON encoding.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson
import zstandard

from signalbook.errors import Problem
from signalbook.schemas.avro.decode import (
    DEEPEST_VALUE,
    BadPayload,
    Cursor,
    Decoder,
    decoder,
    logical_value,
)
from signalbook.schemas.avro.fast import fast_decoder
from signalbook.schemas.avro.resolve import TooManyPairs
from signalbook.schemas.avro.schema import Node, of_values, read_graph, walk
from signalbook.schemas.format import Checked, References, SchemaError, Text, pointer, unusable
from signalbook.schemas.framing import Reader, Records

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "MAGIC",
    "MOST_UNPACKED",
    "AvroSchema",
    "canonical_form",
    "check_json",
    "fingerprint",
    "read",
    "read_container",
]

# Avro object container files, read within bounds.
#
# Rule 1: the file's own schema is as untrusted as the payload: it is read by `read_graph`, and its records are resolved
# to the schema that the check is for.
# Rule 2: what a block unpacks to is bounded; a codec that is not here is a problem that says so.


MAGIC = b"Obj\x01"
MOST_UNPACKED = 256 * 1024 * 1024
_BYTES = Node("bytes")
_META = decoder(Node("map", inner=_BYTES))
_SCHEMA = 10 * 1024 * 1024


def read_container(payload: bytes, node: Node, strict: Decoder) -> Iterator[Any]:
    """Yield the records of a file; `BadPayload` where something is wrong, with the record's number as first step."""
    cursor = Cursor(payload, len(MAGIC))
    meta = _META(cursor)
    sync = cursor.take(16)
    decode = _records(meta, node, strict)
    unpack = _codec(meta.get("avro.codec", b"null"))
    number = unpacked = 0
    while cursor.at < len(payload):
        count = cursor.long()
        block = unpack(cursor.take(cursor.long()), MOST_UNPACKED - unpacked)
        unpacked += len(block)
        if cursor.take(16) != sync:
            raise BadPayload("a block does not end with the file's sync marker", number)
        inside = Cursor(block)
        inside.left = cursor.left
        inside.spend(max(count, 0))
        for _ in range(count):
            try:
                yield decode(inside)
            except BadPayload as bad:
                bad.steps.insert(0, number)
                raise
            number += 1
        cursor.left = inside.left
        if count < 0 or inside.at != len(block):
            raise BadPayload(f"a block of {count} records has {len(block) - inside.at} bytes too many", number)


def _records(meta: dict[str, bytes], node: Node, strict: Decoder) -> Decoder:
    """What reads a record of the file as the schema sees it."""
    text = meta.get("avro.schema", b"")
    if len(text) > _SCHEMA:
        raise BadPayload("the file's own schema is too large")
    try:
        writer, _ = read_graph(text)
    except SchemaError as error:
        raise BadPayload(f"the file's own schema is wrong: {error}") from None
    if is_same(writer, node):
        return strict
    try:
        return decoder(writer, node)
    except TooManyPairs:
        raise BadPayload("the file's own schema is too far from this one to be compared") from None


def is_same(writer: Node, reader: Node) -> bool:
    """Tell whether two schemas write the same bytes for the same values, logical types and all."""
    if canonical_form(writer) != canonical_form(reader):
        return False
    types = ([(one.logical, one.precision, one.scale) for one in walk(node)] for node in (writer, reader))
    return next(types) == next(types)


def _codec(name: bytes) -> Callable[[bytes, int], bytes]:
    found = _CODECS.get(name)
    if found is None:
        raise BadPayload(f"the file is compressed with {name.decode('utf-8', 'replace')!r}, which is not supported")
    return found


def _uncompressed(block: bytes, most: int) -> bytes:
    if len(block) > most:
        raise BadPayload(f"the file decompresses to more than {MOST_UNPACKED} bytes")
    return block


def _unpacked(make: Callable[[], Any], wrong: type[Exception]) -> Callable[[bytes, int], bytes]:
    def unpack(block: bytes, most: int) -> bytes:
        opened = make()
        try:
            found: bytes = opened.decompress(block, most + 1)
        except (wrong, EOFError) as error:
            raise BadPayload(f"a block cannot be decompressed: {error}") from None
        if len(found) > most:
            raise BadPayload(f"the file decompresses to more than {MOST_UNPACKED} bytes")
        if not opened.eof:
            raise BadPayload("a compressed block ends too early")
        return found

    return unpack


def _zstandard(block: bytes, most: int) -> bytes:
    found = bytearray()
    try:
        with zstandard.ZstdDecompressor().stream_reader(block) as opened:
            while chunk := opened.read(1 << 16):
                found += chunk
                if len(found) > most:
                    raise BadPayload(f"the file decompresses to more than {MOST_UNPACKED} bytes")
    except zstandard.ZstdError as error:
        raise BadPayload(f"a block cannot be decompressed: {error}") from None
    return bytes(found)


_CODECS: dict[bytes, Callable[[bytes, int], bytes]] = {
    b"null": _uncompressed,
    b"deflate": _unpacked(lambda: zlib.decompressobj(-15), zlib.error),
    b"bzip2": _unpacked(bz2.BZ2Decompressor, OSError),
    b"xz": _unpacked(lzma.LZMADecompressor, lzma.LZMAError),
    b"zstandard": _zstandard,
}


# Avro's JSON encoding: the values of a schema as JSON, with the labels of unions.
#
# Rule 1: as the specification has it ("JSON Encoding"): bytes and fixed are text with one character a byte, a union's
# value is null or an object with its member's label, every field of a record is there.
# Rule 2: numbers that JSON lacks are the strings Java writes: NaN, Infinity, -Infinity.


Steps = tuple[str | int, ...]
_BITS = {"int": 31, "long": 63}
_PROBLEMS = 100
_FLOAT = struct.Struct("<f")
_LARGEST_FLOAT = _FLOAT.unpack(b"\xff\xff\x7f\x7f")[0]


def check_json(node: Node, payload: bytes) -> Checked:
    """The problems of a payload in JSON encoding, and its value."""
    try:
        document = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        return Checked((Problem("", "payload", f"not JSON: {error}"),), None)
    reading = _JsonReader()
    value = reading.value(document, node, ())
    return Checked(tuple(reading.problems), None if reading.problems else value)


class _JsonReader:
    """One reading of a document; it goes on after a problem, up to a number."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def problem(self, steps: Steps, message: str) -> None:
        if len(self.problems) < _PROBLEMS:
            self.problems.append(Problem(pointer(steps), "payload", message))

    def value(self, given: Any, node: Node, steps: Steps) -> Any:
        if len(steps) > 2 * DEEPEST_VALUE:
            return self.problem(steps, f"nested deeper than {DEEPEST_VALUE} records, arrays and maps")
        if node.kind == "union":
            return self._union(given, node, steps)
        if node.kind == "record" and isinstance(given, dict):
            return self._record(given, node, steps)
        if node.inner is not None:
            if node.kind == "array" and isinstance(given, list):
                return [self.value(item, node.inner, (*steps, number)) for number, item in enumerate(given)]
            if node.kind == "map" and isinstance(given, dict):
                return {key: self.value(item, node.inner, (*steps, key)) for key, item in given.items()}
        found = next(_scalar(given, node), _JsonReader)
        if found is _JsonReader:
            return self.problem(steps, f"{given!r:.60} is not a valid {node.label}")
        convert = logical_value(node)
        try:
            return found if convert is None else convert(found)
        except (ValueError, OverflowError) as error:
            return self.problem(steps, str(error))

    def _union(self, given: Any, node: Node, steps: Steps) -> Any:
        if given is None:
            if all(member.kind != "null" for member in node.members):
                self.problem(steps, "null is not a member of the union")
            return None
        if isinstance(given, dict) and len(given) == 1:
            ((label, inner),) = given.items()
            for member in of_values(node):
                if member.label == label:
                    value = self.value(inner, member, (*steps, label))
                    return value if len(of_values(node)) == 1 else {label: value}
        labels = ", ".join(member.label for member in node.members)
        return self.problem(steps, f'a union\'s value is null or {{"label": value}}, with a label of {labels}')

    def _record(self, given: dict[str, Any], node: Node, steps: Steps) -> Any:
        found = {}
        for field in node.fields:
            if field.name in given:
                found[field.name] = self.value(given[field.name], field.node, (*steps, field.name))
            else:
                self.problem(steps, f"{field.name} is missing")
        for name in given.keys() - {field.name for field in node.fields}:
            self.problem((*steps, name), f"{node.name} has no field {name}")
        return found


def _scalar(given: Any, node: Node) -> Iterator[Any]:
    """Yield the decoded value, or nothing where it is none of the type."""
    kind = node.kind
    if isinstance(given, str):
        yield from _of_text(given, node)
    elif isinstance(given, bool) or given is None:
        if (kind == "boolean" and given is not None) or (kind == "null" and given is None):
            yield given
    elif isinstance(given, int | float):
        if kind == "double":
            yield float(given)
        elif kind == "float":
            if abs(given) <= _LARGEST_FLOAT:
                yield _FLOAT.unpack(_FLOAT.pack(given))[0]
        elif kind in _BITS and isinstance(given, int) and -(1 << _BITS[kind]) <= given < 1 << _BITS[kind]:
            yield given


def _of_text(given: str, node: Node) -> Iterator[Any]:
    kind = node.kind
    if kind == "string" or (kind == "enum" and given in node.numbers):
        yield given
    elif kind in ("float", "double") and given in ("NaN", "Infinity", "-Infinity"):
        yield float(given)
    elif kind in ("bytes", "fixed") and max(given, default="") < "\u0100" and len(given) == (node.size or len(given)):
        yield given.encode("latin-1")


# A named tuple's own constructor takes twice as long, and one is made for each payload.
_make_tuple = tuple.__new__
_SINGLE = b"\xc3\x01"
_MARKS = frozenset({_SINGLE, MAGIC[:2]})


def read(text: Text, references: References | None = None) -> AvroSchema:
    """The schema that a document holds; a name it does not define is asked of `references` by its full name."""
    node, names = read_graph(text, references)
    return AvroSchema(node, names)


class AvroSchema:
    """One Avro schema; it never changes once made."""

    __slots__ = ("_columns", "_fast", "_fingerprint", "_limit", "_strict", "names", "node")

    format = "Avro/*"

    def __init__(self, node: Node, names: Mapping[str, Node]) -> None:
        self.node = node
        self.names = names
        self._strict = decoder(node)
        fast = fast_decoder(node)
        self._fast = None if fast is None else fast[0]
        self._limit = -1 if fast is None else fast[1]
        self._fingerprint = fingerprint(node)
        self._columns: tuple[pyarrow.DataType, Callable[[Any], Any]] | None = None

    def check(self, payload: bytes, contenttype: str = "") -> Checked:
        """The problems of a payload, and its value; that of a container file is the list of its records."""
        if contenttype and _is_json(contenttype):
            return check_json(self.node, payload)
        if payload[:2] not in _MARKS and self._fast is not None and len(payload) <= self._limit:
            try:
                value, end = self._fast(payload)
                if end == len(payload):
                    return _make_tuple(Checked, ((), value))
            except Exception:  # whatever the library says, the general path says where and why
                value = None
        return self._check_general(payload)

    def _check_general(self, payload: bytes) -> Checked:
        if payload[:4] == MAGIC:
            return self._container(payload)
        if payload[:2] == _SINGLE and payload[2:10] == self._fingerprint:
            return self._raw(payload, 10)
        found = self._raw(payload, 0)
        if not found.problems:
            return found
        if payload[:2] == _SINGLE and len(payload) >= 10:
            given = payload[9:1:-1].hex()
            words = f"single-object encoding of another schema, with the fingerprint {given}"
            return Checked((Problem("", "payload", words),), None)
        return found

    def _raw(self, payload: bytes, at: int) -> Checked:
        return _read_all(self._strict, payload, at)

    def is_same(self, other: AvroSchema) -> bool:
        """Whether both write the same bytes for the same values."""
        return is_same(other.node, self.node)

    def written_by(self, writer: AvroSchema) -> Reader | Problem:
        """What reads the values that another schema wrote, each in its binary encoding, as this one sees them."""
        try:
            same = is_same(writer.node, self.node)
            decode = self._strict if same else decoder(writer.node, self.node)
        except TooManyPairs:
            return Problem("", "payload", "the schema that it was written with is too far from this one to be compared")
        fast, limit = (self._fast, self._limit) if same else (None, -1)

        def read(indexes: tuple[int, ...], payload: bytes, contenttype: str) -> Checked:
            if contenttype and _is_json(contenttype):
                return check_json(self.node, payload)
            if fast is not None and len(payload) <= limit:
                try:
                    value, end = fast(payload)
                    if end == len(payload):
                        return _make_tuple(Checked, ((), value))
                except Exception:  # whatever the library says, the general path says where and why
                    value = None
            return _read_all(decode, payload, 0)

        return read

    def _container(self, payload: bytes) -> Checked:
        try:
            return Checked((), Records(read_container(payload, self.node, self._strict)))
        except BadPayload as bad:
            return _problem(bad)
        except RecursionError:
            return _problem(BadPayload("nested too deeply"))

    def at(self, fragment: str) -> AvroSchema:
        """The named type that `:Name` or `Name` leads to; the namespace may be left out where that is clear."""
        name = fragment.removeprefix("#").removeprefix(":")
        if not name:
            return self
        if name in self.names:
            return self._of(self.names[name])
        found = [node for full, node in self.names.items() if full.rpartition(".")[2] == name]
        if len(found) == 1:
            return self._of(found[0])
        known = ", ".join(sorted(self.names)) or "none"
        raise unusable(f"{'several types are' if found else 'no type is'} named {name}; there are: {known}")

    def _of(self, node: Node) -> AvroSchema:
        try:
            return AvroSchema(node, self.names)
        except RecursionError:  # a walk that begins here goes deeper than the one from the top, which was bounded
            raise unusable(f"{node.name} is nested too deeply") from None

    def columns(self) -> pyarrow.DataType:
        """The Arrow struct of a payload; one that is not a record has a single column `value`."""
        return self._table()[0]

    def convert(self, value: Any) -> Any:
        """A checked value as the struct holds it; of a container file, the list of them."""
        convert = self._table()[1]
        return [convert(one) for one in value] if isinstance(value, Records) else convert(value)

    def _table(self) -> tuple[pyarrow.DataType, Callable[[Any], Any]]:
        if self._columns is None:
            from signalbook.schemas.avro.columns import columns  # pyarrow is loaded where tables are

            self._columns = columns(self.node)
        return self._columns


def _read_all(decode: Decoder, payload: bytes, at: int) -> Checked:
    """The value that a payload holds from a place to its end."""
    cursor = Cursor(payload, at)
    try:
        value = decode(cursor)
        if cursor.at != len(payload):
            raise BadPayload(f"the value ends after {cursor.at - at} bytes, {len(payload) - cursor.at} more follow")
    except BadPayload as bad:
        return _problem(bad)
    except RecursionError:
        return _problem(BadPayload("nested too deeply"))
    return _make_tuple(Checked, ((), value))


def _is_json(contenttype: str) -> bool:
    return contenttype.partition(";")[0].strip().lower().endswith("avro+json")


def _problem(bad: BadPayload) -> Checked:
    return Checked((Problem(pointer(bad.steps), "payload", bad.message),), None)


# What identifies an Avro schema on the wire: its canonical form, and the fingerprint of that (Avro 1.12).


def canonical_form(node: Node) -> str:
    """The "Parsing Canonical Form" of the specification: what is left when nothing but the wire matters."""
    return "".join(_canonical(node, set()))


def _canonical(node: Node, seen: set[str]) -> Iterator[str]:
    if node.name:
        if node.name in seen:
            yield f'"{node.name}"'
            return
        seen.add(node.name)
    match node.kind:
        case "union":
            yield from _joined(node.members, seen)
        case "array" | "map":
            assert node.inner is not None
            yield f'{{"type":"{node.kind}","{"items" if node.kind == "array" else "values"}":'
            yield from _canonical(node.inner, seen)
            yield "}"
        case "enum":
            yield f'{{"name":"{node.name}","type":"enum","symbols":['
            yield ",".join(f'"{symbol}"' for symbol in node.symbols) + "]}"
        case "fixed":
            yield f'{{"name":"{node.name}","type":"fixed","size":{node.size}}}'
        case "record":
            yield f'{{"name":"{node.name}","type":"record","fields":['
            for number, field in enumerate(node.fields):
                yield f'{"," if number else ""}{{"name":"{field.name}","type":'
                yield from _canonical(field.node, seen)
                yield "}"
            yield "]}"
        case kind:
            yield f'"{kind}"'


def _joined(members: tuple[Node, ...], seen: set[str]) -> Iterator[str]:
    yield "["
    for number, member in enumerate(members):
        if number:
            yield ","
        yield from _canonical(member, seen)
    yield "]"


_EMPTY = 0xC15D213AA4D7A795


def _table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_EMPTY & -(value & 1))
        table.append(value)
    return tuple(table)


_TABLE = _table()


def fingerprint(node: Node) -> bytes:
    """The CRC-64-AVRO of the canonical form, as single-object encoding carries it: eight bytes, least one first."""
    value = _EMPTY
    for byte in canonical_form(node).encode():
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value.to_bytes(8, "little")
