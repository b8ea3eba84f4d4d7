"""The data of a message that is built: its content type, a value as bytes, its frame, and bytes as events have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from signalbook import schemas
from signalbook.cloudevents import Data
from signalbook.cloudevents.json_value import is_json_text
from signalbook.cloudevents.media_type import read_media_type
from signalbook.document.property_types import value_template
from signalbook.errors import UsageError
from signalbook.messages.built import Plan
from signalbook.schemas.framing import frame, frame_id, is_framed
from signalbook.schemas.json_exact import encode as encode_json
from signalbook.schemas.samples import BadValue

__all__ = [
    "as_text",
    "content_type_of",
    "content_type_texts",
    "event_data",
    "framed",
    "has_frame",
    "schemaid_of",
    "structured_type",
    "written",
]

_STRUCTURED = "application/cloudevents"


def content_type_of(
    document: Mapping[str, Any], given: Any, of_fields: Iterable[Any], context: Mapping[str, str]
) -> str | None:
    """The content type of the data: what is given or declared, else what the schema's format implies.

    `of_fields` are those that the protocol's own fields have. One that is declared with placeholders is filled from the
    context; without values for them it says nothing.
    """
    declared = document.get("envelopemetadata")
    stated = declared.get("datacontenttype") if isinstance(declared, Mapping) else None
    candidates = [
        given,
        stated.get("value") if isinstance(stated, Mapping) else None,
        document.get("datacontenttype"),
        *of_fields,
    ]
    for value in candidates:
        text = _filled(value, context) if isinstance(value, str) else None
        if text is not None and not text.lower().startswith(_STRUCTURED):
            return text
    return schemas.media_type(str(document.get("dataschemaformat", "")))


def content_type_texts(document: Mapping[str, Any]) -> list[str]:
    """The content types that a definition states beside its properties."""
    options = document.get("envelopeoptions")
    form = options.get("format") if isinstance(options, Mapping) else None
    return [value for value in (document.get("datacontenttype"), form) if isinstance(value, str)]


def structured_type(document: Mapping[str, Any], context: Mapping[str, str], stated: Iterable[Any]) -> str | None:
    """The content type of the envelope, where the definition or one of those `stated` elsewhere says it is sent."""
    for value in (*content_type_texts(document), *stated):
        text = _filled(value, context) if isinstance(value, str) else None
        if text is not None and text.lower().startswith(_STRUCTURED):
            return text
    return None


def _filled(value: str, context: Mapping[str, str]) -> str | None:
    template = value_template(value, "string", is_content_type=True)
    return template.expand(context) if all(name in context for name in template.names) else None


def schemaid_of(given: Any) -> int:
    """The id for Confluent's frame that was asked for; raises `UsageError` where it is not one."""
    if type(given) is not int or not 0 <= given < 1 << 32:
        shown = f'"{given}"' if isinstance(given, str) else repr(given)
        raise UsageError(f"schemaid is {shown}, but has to be a whole number from 0 to {(1 << 32) - 1}")
    return given


def framed(plan: Plan, data: Any, payload: bytes, content_type: str) -> bytes:
    """The payload in the frame that it has to have; bytes that begin as a frame does have theirs.

    Raises KeyError where the id is not known, and `UsageError` where one was given that no frame takes.
    """
    if not has_frame(plan, content_type):
        if plan.asked is not None:
            words = 'payloads are framed where the definition or its group says "dataschemaframing": "confluent"'
            raise UsageError(f"schemaid is given, but the payload has no frame to hold it; {words}")
        return payload
    known = frame_id(payload) if isinstance(data, bytes | bytearray | memoryview) else None
    if known is not None:
        if plan.asked not in (None, known):
            words = f"the payload is framed already, with the schema id {known}, but schemaid is {plan.asked}"
            raise UsageError(f"{words}; give only one of them")
        return payload
    if plan.usable_schema is None and str(plan.document.get("dataschemaformat", "")).lower().startswith("protobuf"):
        words = "the schema that has the message indexes of its frame is not at hand"
        raise BadValue(f"cannot be framed, since {words}; give bytes that have their frame")
    schemaid = plan.schemaid if plan.asked is None else plan.asked
    if schemaid is None:
        raise KeyError("schemaid")
    return frame(plan.usable_schema, schemaid, payload)


def has_frame(plan: Plan, content_type: str) -> bool:
    """Whether payloads of a definition have to be framed."""
    stated = plan.document.get("dataschemaframing")
    return is_framed(stated.lower() if isinstance(stated, str) else None, content_type)


def written(data: Any, content_type: str) -> bytes:
    """Data without a schema: bytes as they are, a text of a type that is no JSON, else JSON with exact numbers."""
    media = read_media_type(content_type) if content_type else None
    if isinstance(data, bytes | bytearray | memoryview) or (media is not None and not media.is_json):
        return Data.of(data, media).content
    try:
        return encode_json(data).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadValue(f"is no JSON value: {error}") from None


def event_data(payload: bytes | None, content_type: Any) -> Data | None:
    """The data of an event that is built, from its bytes."""
    if payload is None:
        return None
    media = read_media_type(content_type) if isinstance(content_type, str) else None
    if media is None or media.is_json:
        # An Avro or Protobuf payload under a JSON content type is not JSON, and stays the bytes it is.
        return Data.json_text(payload) if is_json_text(payload) else Data.binary(payload)
    if media.name.startswith("text/") or media.name.endswith(("/xml", "+xml")):
        text = as_text(payload)
        return Data.text(text) if isinstance(text, str) else Data.binary(payload)
    return Data.binary(payload)


def as_text(content: bytes) -> str | bytes:
    """Bytes as the text they are, or as they are."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
