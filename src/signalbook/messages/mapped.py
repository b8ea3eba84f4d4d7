"""A native message as the CloudEvent that its definition makes of it.

Rule 1: an attribute is what the envelope's constant or template says, its names filled from what the message captured;
one that cannot be filled is left out, and without `type` or `source` there is no event.
Rule 2: nothing is invented. `id` is the transport's own identity of the message, else a hash of it, so that the same
message gets the same id again; `time` is the transport's timestamp or absent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from signalbook.cloudevents import CloudEvent, CloudEventError, Data, Kind
from signalbook.cloudevents.json_value import is_json_text
from signalbook.cloudevents.timestamp import format_timestamp, is_timestamp
from signalbook.cloudevents.uri import is_absolute_uri
from signalbook.document.property_types import canonical
from signalbook.messages.compiled import Compiled
from signalbook.messages.constraint import Constraint, Context
from signalbook.messages.content_type import is_json
from signalbook.messages.envelope import CLOUDEVENTS
from signalbook.messages.observed import Observed
from signalbook.schemas import media_type
from signalbook.wire import Message, Typed

__all__ = ["mapped_event"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def mapped_event(compiled: Compiled, observed: Observed, context: Context) -> CloudEvent | None:
    """The event that a native message is by its definition; None where the definition makes none of it."""
    message = observed.message
    if compiled.envelope != CLOUDEVENTS or message is None:
        return None
    attributes: dict[str, Any] = {"specversion": "1.0"}
    for constraint in compiled.on_envelope:
        value = _filled(constraint, context)
        if value is not None:
            attributes[constraint.path.rpartition("/")[2]] = value
    attributes.setdefault("id", _identity(message))
    attributes.setdefault("time", _time(message))
    payload = observed.payload()
    if payload is not None:
        attributes["datacontenttype"] = _content_type(compiled, observed, attributes.get("datacontenttype"))
        attributes.setdefault("dataschema", _dataschema(compiled.definition.document))
    try:
        return CloudEvent(attributes, _data(payload, attributes.get("datacontenttype")))
    except CloudEventError:
        return None


def _filled(constraint: Constraint, context: Context) -> Any:
    if constraint.template is not None:
        names = constraint.template.names
        return constraint.template.expand(context) if all(name in context for name in names) else None
    if constraint.constant is None:
        return None
    read = _FROM_TEXT.get(constraint.type)
    try:
        return constraint.constant if read is None else read(constraint.constant)
    except ValueError:
        return None


def _boolean(text: str) -> bool:
    return text == "true"


_FROM_TEXT: Mapping[str, Callable[[str], Any]] = {"integer": int, "boolean": _boolean}


def _identity(message: Message) -> str:
    """The message's identity in its transport, or a hash of all that was observed of it."""
    read = _IDENTITIES.get(message.protocol)
    known = None if read is None else read(message)
    if known:
        return known
    written = orjson.dumps(message.to_json(), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(written).hexdigest()


def _kafka_identity(message: Message) -> str | None:
    parts = [message.get(name) for name in ("topic", "partition", "offset")]
    return None if None in parts else "/".join(map(str, parts))


def _amqp_identity(message: Message) -> str | None:
    value = (message.get("properties") or {}).get("message-id")
    return None if value is None else canonical(value)


_IDENTITIES: Mapping[str, Callable[[Message], str | None]] = {"KAFKA": _kafka_identity, "AMQP/1.0": _amqp_identity}


def _time(message: Message) -> str | None:
    moment = message.get("timestamp", (message.get("properties") or {}).get("creation-time"))
    if isinstance(moment, Typed):
        moment = moment.value
    if isinstance(moment, int) and not isinstance(moment, bool):
        try:
            return format_timestamp(_EPOCH + timedelta(milliseconds=moment))
        except OverflowError:
            return None
    return moment if isinstance(moment, str) and is_timestamp(moment) else None


def _content_type(compiled: Compiled, observed: Observed, stated: Any) -> str | None:
    """What the message says, else the definition, else what its schema format implies."""
    known = observed.transport_content_type() or stated or compiled.payload.content_type
    if known:
        return str(known)
    return media_type(str(compiled.definition.document.get("dataschemaformat", "")))


def _dataschema(document: Mapping[str, Any]) -> str | None:
    uri = document.get("dataschemauri")
    return uri if isinstance(uri, str) and is_absolute_uri(uri) else None


def _data(payload: bytes | None, content_type: Any) -> Data | None:
    if payload is None:
        return None
    if content_type is not None and is_json(content_type) and is_json_text(payload):
        return Data(Kind.JSON, payload)
    return Data.binary(payload)
