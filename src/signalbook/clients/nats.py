"""NATS: the messages of nats-py, core and JetStream alike.

Rule 1: nats-py shows one value a header's name, and trims it; what would not come back so is a `WireError`.
Rule 2: NATS does not tell a payload of zero bytes from none: it is None on paper.
"""

from __future__ import annotations

from typing import Any

from signalbook.clients import MissingLibrary, checked_to_send, required_field, wire_error
from signalbook.protocols import Message

try:
    from nats.aio.msg import Msg
except ImportError as error:
    raise MissingLibrary("nats-py", "nats") from error

__all__ = ["publish_args", "to_paper"]

_ACKNOWLEDGE = f"{Msg.Ack.Prefix0}.{Msg.Ack.Prefix1}."


def to_paper(message: Msg) -> Message:
    """The message that a subscription gave; JetStream's reply, where it is acknowledged, is left out."""
    fields: dict[str, Any] = {"subject": message.subject}
    if message.reply and not message.reply.startswith(_ACKNOWLEDGE):
        fields["reply"] = message.reply
    if message.headers:
        fields["headers"] = tuple(message.headers.items())
    return Message("NATS", fields, message.data or None)


def publish_args(message: Message) -> dict[str, Any]:
    """The arguments for `client.publish(**…)` or, where the message has no `reply`, `jetstream.publish(**…)`."""
    message = checked_to_send(message, "NATS")
    args: dict[str, Any] = {"subject": required_field(message, "subject"), "payload": message.payload or b""}
    if message.get("reply"):
        args["reply"] = message.get("reply")
    if message.get("headers"):
        args["headers"] = _write_headers(message)
    return args


def _write_headers(message: Message) -> dict[str, str]:
    headers: dict[str, str] = {}
    for index, (name, value) in enumerate(message.get("headers")):
        if name in headers:
            raise wire_error(f"/headers/{index}/0", f"{name} occurs again, and nats-py carries one value a name")
        headers[name] = value
    return headers
