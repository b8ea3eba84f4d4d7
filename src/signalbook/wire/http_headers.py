"""Header lines, as HTTP has them and NATS took them over.

Rule 1: what would end a line early, be trimmed on the way or cannot be written is a problem of a message to be sent.
Rule 2: some headers speak of one connection or of how a message is framed on it; they do not go along with the message
to another (RFC 9110 sections 7.2, 7.6.1 and 8.6; RFC 9112 section 6).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from signalbook.errors import Problem

__all__ = ["connection_headers", "header_problems", "is_token"]

# RFC 9110, sections 5.1 and 5.5: a name is a token; a value holds no control character but the tab, and no white space
# at its ends.
is_token = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_is_line = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*").fullmatch
_OF_A_CONNECTION = frozenset(
    ("connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings")
)
_OF_THE_FRAME = frozenset(("host", "content-length"))


def header_problems(pairs: Iterable[tuple[str, str]], charset: str) -> Iterator[Problem]:
    """What is wrong with header lines that are to be sent in a charset."""
    for index, (name, value) in enumerate(pairs):
        if not is_token(name):
            yield Problem(f"/headers/{index}/0", "value", f"{name[:80]!r} is no name of a header")
        if not _is_line(value) or value != value.strip():
            words = "holds control characters, or white space at an end, and would not arrive as it is"
            yield Problem(f"/headers/{index}/1", "value", words)
        elif not _fits(value, charset):
            yield Problem(f"/headers/{index}/1", "value", f"cannot be written in {charset}")


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
