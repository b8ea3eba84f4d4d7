"""Ids of 0.1 in the 1.0 view: a character that 1.0 does not allow is `~` and two hex digits a byte, reversibly.

0.1 section 2.1.1: an id is a `segment-nz-nc` of RFC 3986, so it may hold sub-delims and percent-encoded characters.
The two spellings `my%20id` and `my id` are one id, as a server sees them in a path.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

__all__ = ["SEGMENT", "from_id", "to_id"]

# RFC 3986 section 3.3: segment-nz-nc = 1*( unreserved / pct-encoded / sub-delims / "@" ).
SEGMENT = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})+")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.\-:@]")
_ESCAPES = re.compile(r"(?:~[0-9a-f]{2})+")
# 1.0 wants a letter, a digit or an underscore first; two tildes in a row come up nowhere else.
_START = "_~"


def to_id(text: str) -> str:
    """The 1.0 id of a 0.1 id."""
    plain = unquote(text)
    escaped = _ILLEGAL.sub(lambda found: "".join(f"~{byte:02x}" for byte in found[0].encode()), plain)
    first = escaped[:1]
    if first in ("", "_") or first.isalnum():
        return escaped
    if first != "~":
        escaped = f"~{ord(first):02x}{escaped[1:]}"
    return _START + escaped


def from_id(id_: str) -> str:
    """The 0.1 id that a 1.0 id stands for; one that only looks escaped is itself."""
    text = _plain(id_)
    return quote(text if to_id(text) == id_ else id_, safe="!$&'()*+,;=@~")


def _plain(id_: str) -> str:
    if id_.startswith(_START + "~"):
        id_ = id_[len(_START) :]
    return _ESCAPES.sub(lambda found: bytes.fromhex(found[0].replace("~", "")).decode("utf-8", "replace"), id_)
