"""Entity tags: how a response carries one and how a request is compared with it (RFC 9110 sections 8.8 and 13.1).

Rule: a compressed response carries its tag with the coding as suffix (`"7-zstd"`), because a strong tag names exact
bytes; on the way in the suffix is dropped, so a client may send back whichever it was given.
"""

from __future__ import annotations

import re

from signalbook.server.http import Response

__all__ = ["CODINGS", "coded", "matches", "unchanged"]

CODINGS = ("zstd", "gzip")
"""The content codings this server can apply, the one it likes best first."""

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_SUFFIXES = tuple(f"-{coding}" for coding in CODINGS)


def coded(etag: str, coding: str) -> str:
    """The tag of the same response in a content coding: `'"7"'` becomes `'"7-gzip"'`."""
    return f'{etag[:-1]}-{coding}"' if etag.endswith('"') else etag


def matches(header: str, etag: str, *, weak: bool = False) -> bool:
    """Whether `If-Match`, or with `weak` `If-None-Match`, holds for the entity that has `etag`."""
    if header == etag:
        return True
    if header.strip() == "*":
        return True
    current = _TAG.fullmatch(etag)
    if current is None or (current[1] and not weak):
        return False
    wanted = current[2]
    for prefix, tag in _TAG.findall(header):
        if prefix and not weak:
            continue
        if tag == wanted or (tag.endswith(_SUFFIXES) and tag.rpartition("-")[0] == wanted):
            return True
    return False


def unchanged(if_none_match: str | None, etag: str) -> Response | None:
    """The 304 for a client that has what it asks for, with the tag under which it has it; else None."""
    if if_none_match is None or not matches(if_none_match, etag, weak=True):
        return None
    known = next((tag for tag in (etag, *(coded(etag, coding) for coding in CODINGS)) if tag in if_none_match), etag)
    return Response(304, [("etag", known)])
