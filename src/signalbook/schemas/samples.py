"""A payload that a schema takes, and a value written as such a payload: one row for each kind of schema.

Rule 1: what is given back has passed the schema's own check; where nothing did, the answer is None or a `BadValue`.
Rule 2: bytes are a payload already, and are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from signalbook.schemas.format import BadValue, Schema

__all__ = ["BadValue", "payload_of", "sample"]


@dataclass(frozen=True, slots=True)
class _Row:
    """What writes values (`encode(schema, value, contenttype)`) and makes them up (`samples(schema, contenttype)`)."""

    module: str

    def encode(self, schema: Any, value: Any, contenttype: str) -> bytes:
        """The value as a payload."""
        found: bytes = self._module().encode(schema, value, contenttype)
        return found

    def samples(self, schema: Any, contenttype: str) -> Iterator[bytes]:
        """Payloads to try."""
        found: Iterator[bytes] = self._module().samples(schema, contenttype)
        return found

    def _module(self) -> Any:
        return import_module(f"signalbook.schemas.{self.module}")


# By the family of the format's name.
_ROWS: Mapping[str, _Row] = {
    "jsonschema": _Row("json_samples"),
    "jsonstructure": _Row("json_samples"),
    "avro": _Row("avro.encode"),
    "protobuf": _Row("protobuf.schema"),
    "xsd": _Row("xsd.schema"),
}
_ATTEMPTS = 32


def sample(schema: Schema, contenttype: str = "") -> bytes | None:
    """A payload that the schema takes; None where none was found."""
    return _first(lambda: _row(schema).samples(schema, contenttype), schema, contenttype)


def payload_of(schema: Schema, value: Any, contenttype: str = "") -> bytes:
    """A value as a payload of the schema's format; raises `BadValue`. Whether the schema takes it is not asked."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    return _row(schema).encode(schema, value, contenttype)


def _row(schema: Schema) -> _Row:
    return _ROWS[schema.format.partition("/")[0].lower()]


def _first(attempts: Callable[[], Iterator[bytes]], schema: Schema, contenttype: str) -> bytes | None:
    try:
        for _, payload in zip(range(_ATTEMPTS), attempts(), strict=False):
            if not schema.check(payload, contenttype).problems:
                return payload
    except (ValueError, ArithmeticError, RecursionError):  # a schema that asks for what no sample can be made of
        return None
    return None
