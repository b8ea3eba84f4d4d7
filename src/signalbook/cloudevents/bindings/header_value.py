"""Attribute values in headers of HTTP and NATS: percent-encoded, as http 3.1.3.2 says.

Rule: whatever an attribute may hold goes through printable ASCII and comes back the same; nothing ends a line.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from signalbook.cloudevents.attributes import AttributeValue, canonical

__all__ = ["read_header", "write_header"]

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
