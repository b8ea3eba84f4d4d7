"""The values that a build is asked with, as one JSON object: its context, attributes, data, protocol and schemaid.

Rule: every member may be left out; whatever else there is, or has another type, is a `UsageError` in words.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec

from signalbook.errors import UsageError
from signalbook.messages.build_data import schemaid_of
from signalbook.schemas.json_exact import BadJson, decode
from signalbook.wire import JsonError, read_members

__all__ = ["read_values"]

_OBJECTS = ("context", "attributes")
_SCALARS = (str, int, float, bool, type(None))


def read_values(text: bytes) -> dict[str, Any]:
    r"""The arguments of `build` that a JSON object has; numbers in `data` stay exact.

    >>> read_values(b'{"context": {"vin": "A1"}, "data_base64": "AQI="}')
    {'context': {'vin': 'A1'}, 'data': b'\x01\x02'}
    """
    try:
        members = read_members(text)
        values = {name: decode(bytes(raw)) for name, raw in members.items()}
    except (JsonError, BadJson, msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"the values are not one JSON object: {error}") from None
    known = {"context", "attributes", "data", "data_base64", "protocol", "definition", "schemaid"}
    unknown = sorted(values.keys() - known)
    if unknown:
        raise UsageError(f"'{unknown[0]}' is none of {', '.join(sorted(known))}")
    for name in _OBJECTS:
        if values.get(name) is not None:
            _expect_scalars(name, values[name])
    if not isinstance(values.get("protocol"), str | dict | None):
        raise UsageError("protocol is a name, or an object with a name and fields")
    if values.get("schemaid") is not None:
        schemaid_of(values["schemaid"])
    if "data_base64" in values:
        values["data"] = _decoded(values.pop("data_base64"), "data" in values)
    return {name: value for name, value in values.items() if value is not None or name == "data"}


def _expect_scalars(name: str, value: Any) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(one, _SCALARS) for one in value.values()):
        raise UsageError(f"{name} is an object of texts, numbers and booleans")


def _decoded(value: Any, twice: bool) -> bytes:
    if twice:
        raise UsageError("data and data_base64 must not be there together")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise UsageError("data_base64 is not valid Base64") from None
