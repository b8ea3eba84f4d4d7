"""Avro: one schema, the payloads it takes, and its deep links.

Rule 1: a payload is raw binary, unless a mark says otherwise: a container file or single-object encoding; under a
content type that ends in `avro+json` it is Avro's JSON encoding. Confluent's frame is taken off before (`framing`).
Rule 2: bytes after the value are a problem.
Rule 3: the value has Python's dates, times and decimals (`avro_logical`); the value of a union with several members
besides null is a dictionary with the member's label, as in Avro's JSON encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from signalbook.errors import Problem
from signalbook.schemas.avro_container import MAGIC, read_container
from signalbook.schemas.avro_decode import BadPayload, Cursor, decoder
from signalbook.schemas.avro_fast import fast_decoder
from signalbook.schemas.avro_json import check_json
from signalbook.schemas.avro_read import read_graph
from signalbook.schemas.avro_types import Node, fingerprint
from signalbook.schemas.format import Checked, References, Text, pointer, unusable
from signalbook.schemas.framing import Records

if TYPE_CHECKING:
    import pyarrow

__all__ = ["AvroSchema", "read"]

# A named tuple's own constructor takes twice as long, and one is made for each payload.
_checked = tuple.__new__
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
                    return _checked(Checked, ((), value))
            except Exception:  # whatever the library says, the general path says where and why
                value = None
        return self._judge(payload)

    def _judge(self, payload: bytes) -> Checked:
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
        cursor = Cursor(payload, at)
        try:
            value = self._strict(cursor)
            if cursor.at != len(payload):
                raise BadPayload(f"the value ends after {cursor.at - at} bytes, {len(payload) - cursor.at} more follow")
        except BadPayload as bad:
            return _problem(bad)
        except RecursionError:
            return _problem(BadPayload("nested too deeply"))
        return Checked((), value)

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
        """The Arrow struct of a payload; one that is no record has a single column `value`."""
        return self._table()[0]

    def convert(self, value: Any) -> Any:
        """A checked value as the struct holds it; of a container file, the list of them."""
        convert = self._table()[1]
        return [convert(one) for one in value] if isinstance(value, Records) else convert(value)

    def _table(self) -> tuple[pyarrow.DataType, Callable[[Any], Any]]:
        if self._columns is None:
            from signalbook.schemas.avro_columns import columns  # pyarrow is loaded where tables are

            self._columns = columns(self.node)
        return self._columns


def _is_json(contenttype: str) -> bool:
    return contenttype.partition(";")[0].strip().lower().endswith("avro+json")


def _problem(bad: BadPayload) -> Checked:
    return Checked((Problem(pointer(bad.steps), "payload", bad.message),), None)
