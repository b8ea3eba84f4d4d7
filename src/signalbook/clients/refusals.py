"""What is refused on the way to a client: the wrong protocol, a missing field, header lines that would not arrive."""

from __future__ import annotations

import re
from collections.abc import Iterable

from signalbook.errors import Problem, UsageError
from signalbook.wire import Message, WireError

__all__ = ["MissingLibrary", "check_headers", "expect_protocol", "needed", "refusal"]

# RFC 9110, sections 5.1 and 5.5: a name is a token; a value holds no control character but the tab, and no white space
# at its ends. NATS took both over.
_is_token = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_is_line = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*").fullmatch


class MissingLibrary(UsageError, ImportError):
    """A client's library that is not installed: which extra brings it."""

    def __init__(self, client: str, extra: str) -> None:
        super().__init__(f"{client} needs one more package: pip install 'signalbook[{extra}]'")


def refusal(path: str, words: str) -> WireError:
    """The error of one problem with a message on its way."""
    return WireError(Problem(path, "value", words))


def expect_protocol(message: Message, *protocols: str) -> None:
    """Refuse a message of another protocol than the client's."""
    if message.protocol not in protocols:
        raise refusal("/protocol", f"is {message.protocol}; this client sends {' and '.join(protocols)}")


def needed(message: Message, name: str) -> str:
    """A field that the message cannot be sent without."""
    value = message.get(name)
    if not value:
        raise refusal(f"/{name}", "is missing, and the message cannot be sent without it")
    return str(value)


def check_headers(pairs: Iterable[tuple[str, str]], charset: str) -> None:
    """Refuse header lines that would end early, be trimmed on the way, or cannot be written."""
    wrong = []
    for index, (name, value) in enumerate(pairs):
        if not _is_token(name):
            wrong.append(Problem(f"/headers/{index}/0", "value", f"{name[:80]!r} is no name of a header"))
        if not _is_line(value) or value != value.strip():
            words = "holds control characters, or white space at an end, and would not arrive as it is"
            wrong.append(Problem(f"/headers/{index}/1", "value", words))
        elif not _fits(value, charset):
            wrong.append(Problem(f"/headers/{index}/1", "value", f"cannot be written in {charset}"))
    if wrong:
        raise WireError(*wrong)


def _fits(text: str, charset: str) -> bool:
    try:
        text.encode(charset)
    except UnicodeEncodeError:
        return False
    return True
