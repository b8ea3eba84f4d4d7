"""NATS: subjects, and header lines as HTTP has them, whose names compare with case but for those of an event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from signalbook.protocols.http import line_flaw, name_flaw, read_header, write_header
from signalbook.protocols.protocol import PAIRS, TEXT, Binding, Fields, Mode, Protocol, on_paper, route, values_in
from signalbook.protocols.values import PropertyPlace, PropertySection

__all__ = ["NATS"]


def _fields(content_type: str | None, pairs: Iterable[tuple[str, Any]] | None) -> Fields:
    if pairs is None:
        return {}
    stated = () if content_type is None else (("ce-datacontenttype", write_header(content_type)),)
    return {"headers": (*pairs, *stated)}


def _subject_flaw(text: str) -> str | None:
    """A subject is tokens joined by dots; a publisher's holds no wildcard and nothing that ends it on the line."""
    tokens = text.split(".")
    if any(character <= " " or character == "\x7f" for character in text):
        return "must not have white space or control characters, which end a subject"
    if "" in tokens:
        return "must have something before, after and between its dots"
    return "must not have wildcards, which are for subscribers" if "*" in tokens or ">" in tokens else None


_line_flaw = line_flaw("utf-8")
_FIELDS = on_paper(subject=TEXT, reply=TEXT, headers=PAIRS)

NATS = Protocol(
    name="NATS",
    any_version=True,
    fields=_FIELDS | {"reply-to": _FIELDS["reply"]},
    options={
        "subject": route(_subject_flaw),
        "reply": route(_subject_flaw),
        "headers": PropertySection(other=PropertyPlace(test=_line_flaw), content_type="content-type", name=name_flaw),
    },
    keys=(("subject", ""),),
    target=lambda fields: fields.get("subject"),
    content_encodings=values_in("headers", "content-encoding"),
    address="subject",
    endpoint_address="subject",
    schemes=("nats", "tls", "ws"),
    texts={"subject": _subject_flaw, "reply": _subject_flaw},
    pairs={"headers": (name_flaw, _line_flaw)},
    binding=Binding(
        protocol="NATS",
        # nats 3 at 1.0.2: always structured. Headers came with NATS 2.2, and with them binary mode (1.0.3-wip, 3.1): it
        # is read where an attribute is among the headers, and written on demand.
        modes=(Mode.STRUCTURED, Mode.BINARY),
        attributes_in="headers",
        content_types=values_in("headers", "content-type"),
        fields=_fields,
        read_value=read_header,
        write_value=write_header,
        prefixes=("ce-",),
        any_case=True,
        repeats_content_type=True,
        native_content_type="Content-Type",
    ),
)
