"""The data of a message that is built: a value as bytes, and bytes as an event has them."""

from __future__ import annotations

from typing import Any

from signalbook.cloudevents import Data
from signalbook.cloudevents.json_value import is_json_text
from signalbook.cloudevents.media_type import read_media_type
from signalbook.schemas.json_exact import encode as encode_json
from signalbook.schemas.samples import BadValue

__all__ = ["as_text", "event_data", "written"]


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
