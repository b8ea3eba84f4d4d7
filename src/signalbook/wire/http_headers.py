"""Header lines, as HTTP has them and NATS took them over.

Rule 1: what would end a line early, be trimmed on the way or cannot be written is a problem of a message to be sent.
Rule 2: some headers speak of one connection or of how a message is framed on it; they do not go along with the message
to another (RFC 9110 sections 7.2, 7.6.1 and 8.6; RFC 9112 section 6).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

__all__ = ["connection_headers", "is_token", "line_flaw", "method_flaw", "name_flaw"]

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


def method_flaw(method: str) -> str | None:
    """What is wrong with a method, in words that follow it."""
    return None if is_token(method) else "must be an HTTP method, of letters, digits and some marks"


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
