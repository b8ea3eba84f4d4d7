"""Values of messages as cells of tables: moments, attributes, what a transport said.

Rule 1: a cell is exact, or its text is kept beside it: a moment that a column cannot give back (an offset, more than
six digits of a second) stands among the `extensions` as well, as it came.
Rule 2: what a column cannot hold at all raises `CellError`; the message is then a dead letter. A `time` of the event
that is such a moment stands among the `extensions` alone.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pyarrow as pa

from signalbook.cloudevents.attributes import canonical
from signalbook.messages.observed import Observed
from signalbook.wire import FIELDS, Message, Typed

__all__ = [
    "ATTRIBUTE_CELLS",
    "MOMENT",
    "TRANSPORT",
    "CellError",
    "attribute_text",
    "gives_back",
    "moment",
    "transport_cells",
]

MOMENT = pa.timestamp("us", tz="UTC")
TRANSPORT = pa.struct(
    [
        ("protocol", pa.string()),
        ("address", pa.string()),
        ("key", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", MOMENT),
        ("schemaid", pa.int64()),
        ("fields", pa.string()),
    ]
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Where a protocol says what a message is about.
_ADDRESSES = {"KAFKA": "topic", "MQTT/5.0": "topic_name", "MQTT/3.1.1": "topic_name", "NATS": "subject", "HTTP": "path"}
_OWN_COLUMNS = {"KAFKA": frozenset({"topic", "key", "partition", "offset"})}


class CellError(ValueError):
    """A value that its column cannot hold, in words."""


def moment(text: str) -> datetime:
    """The moment that an RFC 3339 text means, to the microsecond; a second 60 is the next minute's first."""
    if text[19:] == "Z" and text[17:19] != "60":
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise CellError(f"the column's type has no moment {text}") from None
    spelled = text.upper()
    leap = spelled[17:19] == "60"
    if leap:
        spelled = f"{spelled[:17]}59{spelled[19:]}"
    try:
        found = datetime.fromisoformat(spelled).astimezone(UTC)
        return found + timedelta(seconds=1) if leap else found
    except (ValueError, OverflowError):
        raise CellError(f"the column's type has no moment {text}") from None


def gives_back(text: str, at: datetime) -> bool:
    """Whether a moment in a column can be written as that very text."""
    if text[19:] == "Z" and text[10] == "T" and text[17:19] != "60":
        return True
    digits = "microseconds" if at.microsecond % 1000 else "milliseconds" if at.microsecond else "seconds"
    return at.replace(tzinfo=None).isoformat(timespec=digits) + "Z" == text


def attribute_text(value: Any) -> str:
    """An attribute's canonical string."""
    return value if type(value) is str else canonical(value)


def _whole(value: Any) -> int:
    try:
        return int(value)
    except ValueError:
        raise CellError(f"the column's type has no {value!r}") from None


def _flag(value: Any) -> bool:
    return value if isinstance(value, bool) else attribute_text(value) == "true"


def _octets(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise CellError("the column's type holds Base64 only") from None


def _moment_of(value: Any) -> datetime:
    return moment(attribute_text(value))


# The columns of attributes, by the type that a definition gives them; any other is text.
ATTRIBUTE_CELLS: Mapping[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "boolean": (pa.bool_(), _flag),
    "integer": (pa.int32(), _whole),
    "binary": (pa.binary(), _octets),
    "timestamp": (MOMENT, _moment_of),
}


def transport_cells(observed: Observed, schemaid: int | None) -> dict[str, Any] | None:
    """What the message's transport said; None for a bare event."""
    message = observed.message
    if message is None:
        return None
    cells: dict[str, Any] = {
        "protocol": message.protocol,
        "address": _address(message),
        "schemaid": schemaid,
        "fields": _fields(message),
    }
    if message.protocol == "KAFKA":
        cells |= {name: message.get(name) for name in ("key", "partition", "offset")}
        cells["timestamp"] = _kafka_moment(message.get("timestamp"))
    return cells


def _kafka_moment(stated: Any) -> datetime | None:
    """When a record was made; None where that is no moment, which then stands among the fields only."""
    try:
        return _EPOCH + timedelta(milliseconds=stated) if isinstance(stated, int) else stated and moment(stated)
    except (CellError, OverflowError):
        return None


def _address(message: Message) -> str | None:
    if message.protocol == "AMQP/1.0":
        properties = message.get("properties") or {}
        stated = properties.get("to") or properties.get("subject")
        stated = stated.value if isinstance(stated, Typed) else stated
    else:
        stated = message.get(_ADDRESSES[message.protocol])
    return stated if isinstance(stated, str) else None


def _fields(message: Message) -> str | None:
    """The fields that have no column of their own, as they stand on paper."""
    table, own = FIELDS[message.protocol], _OWN_COLUMNS.get(message.protocol, frozenset())
    written = {}
    for name, value in message.fields.items():
        if value is not None and name not in own:
            ending, form = table[name].kind.write(value)
            written[name + ending] = form
    return orjson.dumps(written).decode() if written else None
