"""What the columns of an Avro payload hold, read from its bytes and the schema's document as `schema-formats.md` says.

It shares no code with the product: it is what the product is compared with.
"""

from __future__ import annotations

import json
import math
import struct
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context
from typing import Any

from tests.pipeline.column_spelling import columns

__all__ = ["avro_cells"]

_EPOCH = datetime(1970, 1, 1)
_EXACT = Context(prec=10_000)


def avro_cells(document: Any, payload: bytes) -> dict[str, Any]:
    """The struct of a payload; what is not a record with fields is the column `value`."""
    reading = _Reading(payload)
    kind = document.get("type") if isinstance(document, dict) else None
    whole = kind == "record" and document["fields"]
    found = reading.cell(document, "", frozenset())
    assert len(payload) == reading.at
    return found if whole else {"value": found}


class _Reading:
    """A walk over the bytes beside the document; `names` are the types that were defined on the way."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.at = 0
        self.names: dict[str, Any] = {}

    def take(self, count: int) -> bytes:
        self.at += count
        return self.payload[self.at - count : self.at]

    def number(self) -> int:
        found = shift = 0
        while True:
            (byte,) = self.take(1)
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found // 2 if found % 2 == 0 else -(found // 2) - 1

    def sized(self) -> bytes:
        return self.take(self.number())

    def blocks(self, one: Callable[[], Any]) -> list[Any]:
        found = []
        while count := self.number():
            if count < 0:
                self.number()
            found += [one() for _ in range(abs(count))]
        return found

    def cell(self, document: Any, namespace: str, within: frozenset[str]) -> Any:
        """The value of a column, of the bytes that come next."""
        if isinstance(document, list):
            return self._union(document, namespace, within)
        if isinstance(document, str) and document in _PRIMITIVES:
            return self._plain(document, {})
        if isinstance(document, str):
            document, namespace = self._named(document, namespace)
        kind, full = document["type"], self._define(document, namespace)
        if kind == "record":
            space = full.rpartition(".")[0]
            if full in within or not document["fields"]:
                return json.dumps(self.text(document, namespace), ensure_ascii=False, separators=(",", ":"))
            names = columns(field["name"] for field in document["fields"])
            inner = within | {full}
            return {names[field["name"]]: self.cell(field["type"], space, inner) for field in document["fields"]}
        if kind == "array":
            return self.blocks(lambda: self.cell(document["items"], namespace, within))
        if kind == "map":
            pair = lambda: (self.sized().decode(), self.cell(document["values"], namespace, within))  # noqa: E731
            return self.blocks(pair)
        return _logical(document, self._plain(kind, document))

    def _union(self, members: list[Any], namespace: str, within: frozenset[str]) -> Any:
        chosen = members[self.number()]
        found = self.cell(chosen, namespace, within)
        if chosen == "null":
            return None
        labels = [self._label(one, namespace) for one in members if one != "null"]
        if len(labels) == 1:
            return found
        return {
            name: found if label == self._label(chosen, namespace) else None for label, name in columns(labels).items()
        }

    def text(self, document: Any, namespace: str) -> Any:
        """The JSON value of the bytes that come next, in Avro's JSON encoding."""
        if isinstance(document, list):
            chosen = document[self.number()]
            found = self.text(chosen, namespace)
            return None if chosen == "null" else {self._label(chosen, namespace): found}
        if isinstance(document, str) and document in _PRIMITIVES:
            return _json(self._plain(document, {}))
        if isinstance(document, str):
            document, namespace = self._named(document, namespace)
        kind, space = document["type"], self._define(document, namespace).rpartition(".")[0]
        if kind == "record":
            return {field["name"]: self.text(field["type"], space) for field in document["fields"]}
        if kind == "array":
            return self.blocks(lambda: self.text(document["items"], namespace))
        if kind == "map":
            return dict(self.blocks(lambda: (self.sized().decode(), self.text(document["values"], namespace))))
        return _json(self._plain(kind, document))

    def _plain(self, kind: str, document: dict[str, Any]) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self.take(1) == b"\1"
            case "int" | "long":
                return self.number()
            case "float":
                return struct.unpack("<f", self.take(4))[0]
            case "double":
                return struct.unpack("<d", self.take(8))[0]
            case "bytes":
                return self.sized()
            case "string":
                return self.sized().decode()
            case "fixed":
                return self.take(document["size"])
        return document["symbols"][self.number()]

    def _define(self, document: dict[str, Any], namespace: str) -> str:
        """The full name of a type, by which it is known from now on; that of one without a name is its namespace's."""
        if "name" not in document:
            return f"{namespace}."
        space = document.get("namespace", namespace)
        full = f"{space}.{document['name']}" if space else document["name"]
        self.names[full] = (document, namespace)
        return full

    def _named(self, name: str, namespace: str) -> tuple[Any, str]:
        found: tuple[Any, str] = self.names[f"{namespace}.{name}" if namespace else name]
        return found

    def _label(self, member: Any, namespace: str) -> str:
        if isinstance(member, str):
            return member if member in _PRIMITIVES else f"{namespace}.{member}" if namespace else member
        return self._define(member, namespace) if "name" in member else member["type"]


_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float) and not math.isfinite(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _logical(document: dict[str, Any], value: Any) -> Any:
    """The value of a column by its logical type."""
    match document.get("logicalType"):
        case "date":
            return date(1970, 1, 1) + timedelta(days=value)
        case "timestamp-millis" | "local-timestamp-millis" | "timestamp-micros" | "local-timestamp-micros" as logical:
            unit = 1000 if logical.endswith("millis") else 1
            local = _EPOCH + timedelta(microseconds=value * unit)
            return local if logical.startswith("local") else local.replace(tzinfo=UTC)
        case "uuid":
            return str(uuid.UUID(bytes=value)) if isinstance(value, bytes) else value
        case "duration":
            return dict(zip(("months", "days", "milliseconds"), struct.unpack("<III", value), strict=True))
        case "decimal":
            number = _EXACT.create_decimal(int.from_bytes(value, "big", signed=True))
            found = number.scaleb(-document.get("scale", 0), _EXACT)
            return found if document["precision"] <= 38 else format(found, "f")
        case "big-decimal":
            inside = _Reading(value)
            number, scale = int.from_bytes(inside.sized(), "big", signed=True), inside.number()
            return format(_EXACT.create_decimal(number).scaleb(-scale, _EXACT), "f")
    return value
