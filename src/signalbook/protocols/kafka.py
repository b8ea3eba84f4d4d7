"""Kafka: records of a topic; headers and key are bytes, and no data is a null value."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Any

from signalbook.cloudevents.attributes import AttributeValue, is_timestamp
from signalbook.cloudevents.attributes import canonical as attribute_text
from signalbook.protocols.protocol import (
    BYTE_PAIRS,
    BYTES,
    MOMENT,
    TEXT,
    Binding,
    Fields,
    Mode,
    Option,
    Protocol,
    as_text,
    on_paper,
    values_in,
    whole,
)
from signalbook.protocols.values import PropertyPlace, PropertySection, canonical, decoded, milliseconds

__all__ = ["KAFKA"]

_is_topic = re.compile(r"[0-9A-Za-z._-]{1,249}").fullmatch


def _topic_flaw(text: str) -> str | None:
    if _is_topic(text) and text not in (".", ".."):
        return None
    return "must be a topic, which has 1 to 249 letters, digits, dots, hyphens and underscores"


def _name_flaw(text: str) -> str | None:
    return "must have a name without U+0000, at which clients cut it" if "\0" in text else None


def _identity(fields: Fields) -> str | None:
    parts = [fields.get(name) for name in ("topic", "partition", "offset")]
    return None if None in parts else "/".join(map(str, parts))


def _read_timestamp(type_: str, value: Any) -> Sequence[Any]:
    """The timestamp in milliseconds since 1970."""
    return (milliseconds(value),) if isinstance(value, str) and is_timestamp(value) else (value,)


def _fields(content_type: str | None, pairs: Iterable[tuple[str, Any]] | None) -> Fields:
    stated = () if content_type is None else (("content-type", content_type.encode()),)
    return {"headers": (*stated, *(pairs or ()))}


def _content_types(fields: Fields) -> list[Any]:
    # What is not a text is not a media type either, and is rejected as such.
    return [
        value.decode(errors="replace")
        for name, value in fields.get("headers", ())
        if name == "content-type" and value is not None
    ]


def _read_attribute(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None


def _write_attribute(value: AttributeValue) -> bytes:
    return attribute_text(value).encode()


KAFKA = Protocol(
    name="KAFKA",
    any_version=True,
    frame_in_header=True,
    fields=on_paper(
        topic=TEXT,
        partition=whole(0, 2**31 - 1),
        offset=whole(0, 2**63 - 1),
        timestamp=MOMENT,
        key=BYTES,
        headers=BYTE_PAIRS,
    ),
    options={
        "topic": PropertyPlace(test=_topic_flaw),
        "partition": PropertyPlace("partition", is_json=True),
        "key": PropertyPlace(several=True),
        "key_base64": PropertyPlace("binary"),
        "headers": PropertySection(
            content_type="content-type",
            name=_name_flaw,
            is_keyed=True,
            read=lambda value: None if value is None else as_text(value),
            write=lambda type_, value: canonical(value).encode(),
        ),
        "timestamp": PropertyPlace("ulong"),  # of 0.5, see `dialects.forms`
    },
    special={
        "key": Option(
            "key",
            read=lambda type_, value: (as_text(value),),
            write=lambda type_, value: value if isinstance(value, bytes) else canonical(value).encode(),
        ),
        "key_base64": Option(
            "key",
            read=lambda type_, value: (base64.b64encode(value).decode(),),
            write=lambda type_, value: decoded(value),
        ),
        "timestamp": Option("timestamp", read=_read_timestamp),
    },
    exclusive=(("key_base64", "key"),),
    keys=(("topic", ""), ("key", "")),
    identity=_identity,
    moment=lambda fields: fields.get("timestamp"),
    target=lambda fields: fields.get("topic"),
    content_encodings=values_in("headers", "content-encoding"),
    address="topic",
    endpoint_address="topic",
    texts={"topic": _topic_flaw},
    pairs={"headers": (_name_flaw, None)},
    binding=Binding(
        protocol="KAFKA",
        modes=(Mode.BINARY, Mode.STRUCTURED),
        attributes_in="headers",
        content_types=_content_types,
        fields=_fields,
        read_value=_read_attribute,
        write_value=_write_attribute,
        prefixes=("ce_",),
        repeats_content_type=True,
        tells_empty=True,
    ),
)
