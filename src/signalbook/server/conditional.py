"""Entity tags: how a response carries one and how a request is compared with it (RFC 9110 sections 8.8 and 13.1).

Rule: a compressed response carries its tag with the coding as suffix (`"7-zstd"`), because a strong tag names exact
bytes; on the way in the suffix is dropped, so a client may send back whichever it was given.
"""

from __future__ import annotations

import re

__all__ = ["CODINGS", "coded", "matches", "not_modified"]

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


def not_modified(if_none_match: str | None, etag: str) -> bool:
    """Whether a read may be answered with 304."""
    return if_none_match is not None and matches(if_none_match, etag, weak=True)
