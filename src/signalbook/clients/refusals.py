"""What is refused on the way to a client: the wrong protocol, a missing field, a message that cannot be sent."""

from __future__ import annotations

from signalbook.errors import Problem, UsageError
from signalbook.protocols import Message, WireError, sendable

__all__ = ["MissingLibrary", "needed", "refusal", "to_send"]


class MissingLibrary(UsageError, ImportError):
    """A library that is not installed: which extra brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"the package \"{package}\" is not installed: pip install 'signalbook[{extra}]'")


def refusal(path: str, words: str) -> WireError:
    """The error of one problem with a message on its way."""
    return WireError(Problem(path, "value", words))


def to_send(message: Message, *protocols: str) -> Message:
    """The message, fit to be sent; one of another protocol than the client's is refused."""
    if message.protocol not in protocols:
        raise refusal("/protocol", f"is {message.protocol}; this client sends {' and '.join(protocols)}")
    return sendable(message)


def needed(message: Message, name: str) -> str:
    """A field that the message cannot be sent without."""
    value = message.get(name)
    if not value:
        raise refusal(f"/{name}", "is missing, and the message cannot be sent without it")
    return str(value)
