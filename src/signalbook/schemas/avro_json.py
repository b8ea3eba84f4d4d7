"""Avro's JSON encoding: the values of a schema as JSON, with the labels of unions.

Rule 1: as the specification has it ("JSON Encoding"): bytes and fixed are text with one character a byte, a union's
value is null or an object with its member's label, every field of a record is there.
Rule 2: numbers that JSON lacks are the strings Java writes: NaN, Infinity, -Infinity.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import orjson

from signalbook.errors import Problem
from signalbook.schemas.avro_decode import DEEPEST_VALUE
from signalbook.schemas.avro_logical import logical_value
from signalbook.schemas.avro_types import Node, of_values
from signalbook.schemas.format import Checked, pointer

__all__ = ["check_json"]

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
    reading = _Reading()
    value = reading.value(document, node, ())
    return Checked(tuple(reading.problems), None if reading.problems else value)


class _Reading:
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
        found = next(_scalar(given, node), _Reading)
        if found is _Reading:
            return self.problem(steps, f"{given!r:.60} is no {node.label}")
        convert = logical_value(node)
        try:
            return found if convert is None else convert(found)
        except (ValueError, OverflowError) as error:
            return self.problem(steps, str(error))

    def _union(self, given: Any, node: Node, steps: Steps) -> Any:
        if given is None:
            if all(member.kind != "null" for member in node.members):
                self.problem(steps, "null is no member of the union")
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
    if kind == "string" or (kind == "enum" and given in node.symbols):
        yield given
    elif kind in ("float", "double") and given in ("NaN", "Infinity", "-Infinity"):
        yield float(given)
    elif kind in ("bytes", "fixed") and max(given, default="") < "\u0100" and len(given) == (node.size or len(given)):
        yield given.encode("latin-1")
