"""Percent-encoding as templates use it (RFC 3986 section 2, RFC 6570 section 1.5).

Rule: what is no escape, or no UTF-8 once decoded, stays as it is.
"""

from __future__ import annotations

import re
from urllib.parse import quote

__all__ = ["decode", "encode", "encode_reserved"]

_escapes = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
# RFC 6570 section 3.2.3: reserved expansion keeps reserved characters and escapes that are there already.
_foreign = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]")


def decode(text: str) -> str:
    """The text with its escapes undone.

    >>> decode("a%20b"), decode("100%"), decode("%41%ff")
    ('a b', '100%', 'A%ff')
    """
    return _escapes.sub(_decoded, text) if "%" in text else text


def encode(text: str) -> str:
    """The text with everything escaped that is not unreserved."""
    return quote(text, safe="", errors="surrogatepass")


def encode_reserved(text: str) -> str:
    """The text with only that escaped which a URI cannot hold."""
    return _foreign.sub(lambda found: encode(found[0]), text)


def _decoded(found: re.Match[str]) -> str:
    escapes = found[0]
    raw = bytes.fromhex(escapes.replace("%", ""))
    done: list[str] = []
    at = 0
    while at < len(raw):
        try:
            done.append(raw[at:].decode())
            break
        except UnicodeDecodeError as error:
            bad, end = at + error.start, at + error.end
            done += (raw[at:bad].decode(), escapes[3 * bad : 3 * end])
            at = end
    return "".join(done)
