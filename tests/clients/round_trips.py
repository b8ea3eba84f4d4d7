"""Ways of an event through a client's own objects, without a broker: what would be sent is what arrives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from signalbook.cloudevents import CloudEvent, CloudEventError
from signalbook.protocols import BINDINGS, Message, Mode, WireError, from_message, to_message

Client = Callable[[Message], Message]


def modes(protocol: str) -> pytest.MarkDecorator:
    """Run a test once for each mode in which the protocol carries one event."""
    return pytest.mark.parametrize("mode", [mode for mode in BINDINGS[protocol].modes if mode is not Mode.BATCH])


def arrives(event: CloudEvent, protocol: str, mode: Mode, through_client: Client, **fields: str) -> None:
    """Assert that the event arrives as it was sent; what the binding cannot carry is not sent."""
    try:
        message = to_message(event, protocol, mode, **fields)
    except CloudEventError:
        return
    arrived = through_client(message)
    assert event == from_message(arrived)
    assert (message.payload or None) == (arrived.payload or None)


def rejects(send: Callable[[Message], object], given: dict[str, object], path: str) -> None:
    """Assert that a message on paper is not sent, and where it is wrong."""
    with pytest.raises(WireError) as rejected:
        send(Message.from_json(given))
    assert path == rejected.value.problems[0].path
