"""Ids of 0.1 in the 1.0 view: a character that 1.0 does not allow is `~` and two hex digits a byte, reversibly.

0.1 section 2.1.1: an id is a `segment-nz-nc` of RFC 3986, so it may hold sub-delims and percent-encoded characters.
The two spellings `my%20id` and `my id` are one id, as a server sees them in a path. The end of a kept copy's id (`~`
and eight hex digits, see `document.xid`) is the same in both. Each id of 1.0 has one of its own in 0.1.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from signalbook.document.xid import ID, kept_of

__all__ = ["SEGMENT", "from_id", "to_id"]

# RFC 3986 section 3.3: segment-nz-nc = 1*( unreserved / pct-encoded / sub-delims / "@" ).
SEGMENT = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})+")
# What 1.0 does not allow, and the tilde itself, which begins an escape.
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.\-:@]")
_ESCAPES = re.compile(r"(?:~[0-9a-f]{2})+")
# 1.0 wants a letter, a digit or an underscore first; an id that begins so by itself has an escape there.
_START = "_~"
# In front of an id of 1.0 that no id of 0.1 becomes, such as one with a tilde that is not an escape.
_AS_IT_IS = "~~"


def to_id(text: str) -> str:
    """The 1.0 id of a 0.1 id."""
    plain = unquote(text)
    if plain.startswith(_AS_IT_IS):
        as_it_is = plain[len(_AS_IT_IS) :]
        if ID.fullmatch(as_it_is) and _to_id(_plain(as_it_is)) != as_it_is:
            return as_it_is
    return _to_id(plain)


def _to_id(plain: str) -> str:
    own = kept_of(plain)
    escaped = _escaped(plain if own is None else own)
    if own is not None:
        escaped += plain[len(own) :]
    elif kept_of(escaped) is not None:  # an escape that would end like a kept copy's id goes one character on
        escaped = f"{escaped[:-6]}~{ord(escaped[-6]):02x}{escaped[-5:]}"
    first = escaped[:1]
    if escaped.startswith(_START + "~"):
        return f"_~7e{escaped[2:]}"
    if first in ("", "_") or first.isalnum():
        return escaped
    if first != "~":
        escaped = f"~{ord(first):02x}{escaped[1:]}"
    return _START + escaped


def _escaped(plain: str) -> str:
    return _ILLEGAL.sub(lambda found: "".join(f"~{byte:02x}" for byte in found[0].encode()), plain)


def from_id(id_: str) -> str:
    """The 0.1 id that a 1.0 id stands for, from which `to_id` makes it again."""
    text = _plain(id_)
    return quote(text if to_id(text) == id_ else _AS_IT_IS + id_, safe="!$&'()*+,;=@~")


def _plain(id_: str) -> str:
    if id_.startswith(_START + "~"):
        id_ = id_[len(_START) :]
    own = kept_of(id_)
    end = "" if own is None else id_[len(own) :]
    plain = id_ if own is None else own
    return _ESCAPES.sub(lambda found: bytes.fromhex(found[0].replace("~", "")).decode("utf-8", "replace"), plain) + end
