"""The body of an AMQP message that is no data section, as the payload that a schema judges.

Rule: a binary value is its bytes; every other value or sequence is the JSON that its AMQP types stand for.
"""

from __future__ import annotations

from typing import Any

import msgspec

from signalbook.cloudevents.json_value import write_json
from signalbook.document.property_types import canonical
from signalbook.errors import Problem
from signalbook.wire import Typed
from signalbook.wire.amqp_values import read_value

__all__ = ["plain_body"]


def plain_body(written: bytes) -> bytes | None:
    """The payload of a body on paper; what is no JSON there is taken as it is."""
    problems: list[Problem] = []
    try:
        value = read_value(msgspec.json.decode(written), "", problems)
        if problems:
            return written
        return value if isinstance(value, bytes) else write_json(_plain(value))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return written or None


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, Typed):
        return canonical(value) if value.type == "timestamp" else _plain(value.value)
    return canonical(value) if isinstance(value, bytes) else value
