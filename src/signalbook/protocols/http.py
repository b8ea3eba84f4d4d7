"""HTTP: requests and responses.

Rule 1: names of headers compare without case.
Rule 2: what would end a header's line early, be trimmed on the way or cannot be written is a problem of a message that
is to be sent. NATS took these lines over.
Rule 3: some headers speak of one connection or of how a message is framed on it; they do not go along with the message
to another (RFC 9110 sections 7.2, 7.6.1 and 8.6; RFC 9112 section 6).
Rule 4: whatever an attribute of an event may hold goes through printable ASCII and comes back the same (http 3.1.3.2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from signalbook.cloudevents.attributes import AttributeValue, canonical
from signalbook.protocols.protocol import (
    PAIRS,
    TEXT,
    Binding,
    Fields,
    Mode,
    Option,
    Protocol,
    coded,
    on_paper,
    route,
    values_in,
)
from signalbook.protocols.values import STATED_TEXTS, PropertyPlace, PropertySection, typed

__all__ = ["HTTP", "connection_headers", "is_token", "line_flaw", "name_flaw", "read_header", "write_header"]

# Header lines ---------------------------------------------------------------------------------------------------------

# RFC 9110, sections 5.1 and 5.5: a name is a token; a value holds no control character but the tab, and no white space
# at its ends.
is_token = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_is_line = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*").fullmatch
_OF_A_CONNECTION = frozenset(
    ("connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings")
)
_OF_THE_FRAME = frozenset(("host", "content-length"))


def name_flaw(name: str) -> str | None:
    """What is wrong with a header's name, in words that follow its place."""
    return (
        None if is_token(name) else f'must have a name of letters, digits and marks, as headers have, not "{name[:80]}"'
    )


def line_flaw(charset: str) -> Callable[[str], str | None]:
    """The test of a header's value that is sent in a charset, in words that follow it."""

    def flaw(value: str) -> str | None:
        if not _is_line(value) or value != value.strip():
            return "must not have control characters, nor white space at an end: it would not arrive as it is"
        return None if _fits(value, charset) else f"must be a text that can be written in {charset}"

    return flaw


def connection_headers(pairs: Sequence[tuple[str, str]]) -> frozenset[str]:
    """The names, in lower case, of the headers that are the connection's: those always, and those it names itself."""
    options = ",".join(value for name, value in pairs if name.lower() == "connection")
    return _OF_A_CONNECTION | _OF_THE_FRAME | {option.strip().lower() for option in options.split(",")}


def _fits(text: str, charset: str) -> bool:
    try:
        text.encode(charset)
    except UnicodeEncodeError:
        return False
    return True


# Attributes of events in headers --------------------------------------------------------------------------------------

# Space, double quote, percent, and everything outside U+0021 to U+007E.
_encoded = re.compile(r"[^!#$&-~]")
_quoted = re.compile(r'"((?:[^"\\]|\\.)*)"').fullmatch
_malformed = re.compile(r"%(?![0-9A-Fa-f]{2})").search
_printable = re.compile(r"[ -~]*").fullmatch


def write_header(value: AttributeValue) -> str:
    """The header's text for an attribute's value."""
    return _encoded.sub(_escape, canonical(value))


def read_header(text: str) -> str:
    """The attribute's text of a header's; raises ValueError."""
    if not isinstance(text, str) or not _printable(text):
        raise ValueError("must be printable ASCII in a header, other characters percent-encoded")
    found = _quoted(text)
    if found:
        text = re.sub(r"\\(.)", r"\1", found[1])
    if "%" not in text:
        return text
    if _malformed(text):
        raise ValueError("holds a % that is not followed by two hexadecimal digits")
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 after percent-decoding") from None


def _escape(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def _fields(content_type: str | None, pairs: Iterable[tuple[str, Any]] | None) -> Fields:
    stated = () if content_type is None else (("content-type", content_type),)
    return {"headers": (*stated, *(pairs or ()))}


# What is sent ---------------------------------------------------------------------------------------------------------

# RFC 3986, sections 3.3 and 3.4: what stands in a path and in a query; `&` and `=` part the pairs of the latter.
_is_path = re.compile(r"/(?:[/:@!$&'()*+,;=~\-._0-9A-Za-z]|%[0-9A-Fa-f]{2})*").fullmatch
_is_query_name = re.compile(r"(?:[/?:@!$'()*+,;~\-._0-9A-Za-z]|%[0-9A-Fa-f]{2})*").fullmatch
_is_query_value = re.compile(r"(?:[/?:@!$'()*+,;=~\-._0-9A-Za-z]|%[0-9A-Fa-f]{2})*").fullmatch
_is_status = re.compile("[1-5][0-9][0-9]").fullmatch


def _method_flaw(method: str) -> str | None:
    """What is wrong with a method, in words that follow it."""
    return None if is_token(method) else "must be an HTTP method, of letters, digits and some marks"


def _path_flaw(text: str) -> str | None:
    return None if _is_path(text) else "must begin with a slash and have everything else percent-encoded"


def _query_name_flaw(text: str) -> str | None:
    return None if _is_query_name(text) else "must have a name that is percent-encoded, & and = too"


def _query_value_flaw(text: str) -> str | None:
    return None if _is_query_value(text) else "must be percent-encoded, & too"


def _status_flaw(text: str) -> str | None:
    return None if _is_status(text) else "must be an HTTP status code"


def _added(fields: Fields) -> Fields:
    """A message without a status is a request, and has a method."""
    return {} if "status" in fields or "method" in fields else {"method": "POST"}


_line_flaw = line_flaw("latin-1")

HTTP = Protocol(
    name="HTTP",
    any_version=True,
    fields=on_paper(method=TEXT, path=TEXT, query=PAIRS, headers=PAIRS, status=coded(100, 599)),
    options={
        "path": route(_path_flaw, "/x"),
        "method": PropertyPlace(test=_method_flaw),
        # A text in a definition, a number in a message.
        "status": PropertyPlace(several=True, test=_status_flaw, fillings=("404", "4", "04")),
        "headers": PropertySection(
            other=PropertyPlace(test=_line_flaw), content_type="content-type", name=name_flaw, any_case=True
        ),
        # A map of names to strings, as the text has it.
        "query": PropertySection(
            other=PropertyPlace(test=_query_value_flaw, types=STATED_TEXTS), name=_query_name_flaw
        ),
    },
    special={"status": Option("status", write=lambda type_, value: typed("integer", value))},
    exclusive=(("status", "method"),),
    keys=(("path", ""),),
    beside_key=("method", "status"),
    # A status makes the definition one of a response; a request has a method.
    needed={"status": lambda fields: True, "method": lambda fields: fields.get("status") is not None},
    target=lambda fields: fields.get("path"),
    content_encodings=values_in("headers", "content-encoding"),
    schemes=("http", "https"),
    added=_added,
    texts={"method": _method_flaw, "path": _path_flaw},
    pairs={"query": (_query_name_flaw, _query_value_flaw), "headers": (name_flaw, _line_flaw)},
    whole_pairs=frozenset({"query"}),
    connection_names=lambda fields: connection_headers(fields.get("headers", ())),
    binding=Binding(
        protocol="HTTP",
        modes=(Mode.BINARY, Mode.STRUCTURED, Mode.BATCH),
        attributes_in="headers",
        content_types=values_in("headers", "content-type"),
        fields=_fields,
        read_value=read_header,
        write_value=write_header,
        prefixes=("ce-",),
        any_case=True,
    ),
)
