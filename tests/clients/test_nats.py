from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg

from signalbook.clients import nats
from signalbook.cloudevents import CloudEvent
from signalbook.protocols import Message, Mode
from tests.cases import Case, cases
from tests.clients.round_trips import arrives, modes, rejects
from tests.cloudevents.strategies import events

NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True)
LINES = st.text(st.characters(exclude_categories=("Cs", "Cc"))).filter(lambda text: text == text.strip())
MESSAGES = st.builds(
    Message,
    st.just("NATS"),
    st.fixed_dictionaries(
        {"subject": NAMES},
        optional={"reply": NAMES, "headers": st.dictionaries(NAMES, LINES, min_size=1).map(lambda m: tuple(m.items()))},
    ),
    st.none() | st.binary(min_size=1),
)
NOBODY = cast("Client", None)


def through_client(message: Message) -> Message:
    """What a subscriber is shown: the headers go through the client's own reader."""
    args = nats.publish_args(message)
    lines = "".join(f"{name}: {value}\r\n" for name, value in args.get("headers", {}).items())
    shown: Any = {"subject": args["subject"], "reply": args.get("reply", ""), "data": args["payload"]}
    return nats.to_paper(Msg(NOBODY, **shown, headers=Client._parse_header_lines(lines.encode()) or None))


@given(MESSAGES)
def test_a_message_comes_back(message: Message) -> None:
    """Subject, reply, headers in their order and payload are the same on paper after the client had them."""
    assert message == through_client(message)


@modes("NATS")
@given(event=events())
def test_an_event_comes_back(mode: Mode, event: CloudEvent) -> None:
    """An event is the same after the client had it."""
    arrives(event, "NATS", mode, through_client, subject="s")


def test_jetstream_has_the_reply_to_itself() -> None:
    """Where a message is acknowledged is not its reply, and zero bytes are no payload."""
    shown = Msg(NOBODY, subject="s", reply="$JS.ACK.stream.consumer.1.1.1.1.0", data=b"")
    assert Message("NATS", {"subject": "s"}) == nats.to_paper(shown)


@cases("clients/nats_refused")
def test_refused(case: Case) -> None:
    """What nats-py would drop, trim or join is rejected before, with its place."""
    rejects(nats.publish_args, case.given, case.expect)
