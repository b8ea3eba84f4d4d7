"""Between the message on paper and the objects of the real clients, one module a client.

    http    httpx requests and responses, ASGI     pip install 'signalbook[http]'
    kafka   confluent-kafka                        pip install 'signalbook[kafka]'
    amqp    python-qpid-proton (AMQP 1.0)          pip install 'signalbook[amqp]'
    mqtt    paho-mqtt (5.0 and 3.1.1)              pip install 'signalbook[mqtt]'
    nats    nats-py                                pip install 'signalbook[nats]'

Rule 1: a module imports its client's library and nothing else does; this module, which all of them use, imports none.
Rule 2: what a client shows is put on paper as it is; what it could not send so that it arrives the same is a
`WireError`, before anything is sent.
"""

from __future__ import annotations

from signalbook.errors import Problem, UsageError
from signalbook.protocols import Message, WireError, sendable

__all__ = ["MissingLibrary", "checked_to_send", "required_field", "wire_error"]


class MissingLibrary(UsageError, ImportError):
    """A library that is not installed: which extra brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"the package \"{package}\" is not installed: pip install 'signalbook[{extra}]'")


def wire_error(path: str, words: str) -> WireError:
    """The error of a message with one problem."""
    return WireError(Problem(path, "value", words))


def checked_to_send(message: Message, *protocols: str) -> Message:
    """The message, fit to be sent by a client of these protocols; raises `WireError` where it is not."""
    if message.protocol not in protocols:
        raise wire_error("/protocol", f"is {message.protocol}; this client sends {' and '.join(protocols)}")
    return sendable(message)


def required_field(message: Message, name: str) -> str:
    """The value of a field; raises `WireError` where the message does not have it, and cannot be sent without it."""
    value = message.get(name)
    if not value:
        raise wire_error(f"/{name}", "is missing, and the message cannot be sent without it")
    return str(value)
