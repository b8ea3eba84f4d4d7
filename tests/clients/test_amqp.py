from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.cloudevents import CloudEvent
from signalbook.protocols import Message, Mode, Typed, WireError
from tests.cases import Case, cases
from tests.clients.round_trips import arrives, modes, rejects
from tests.cloudevents.strategies import events

proton = pytest.importorskip("proton", reason="python-qpid-proton is not installed")
from signalbook.clients import amqp  # noqa: E402

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
SYMBOLS = st.text(st.characters(max_codepoint=127), max_size=8)


def typed(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Typed]:
    """Values of one AMQP type."""
    return st.builds(Typed, st.just(name), values)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | TEXTS
    | st.binary(max_size=8)
    | typed("symbol", SYMBOLS)
    | typed("char", st.characters(exclude_categories=("Cs",)))
    | typed("uuid", st.uuids().map(str))
    | typed("float", st.floats(width=32, allow_nan=False))
    | st.one_of(
        *(
            typed(name, st.integers(lowest, highest))
            for name, lowest, highest in (
                ("ubyte", 0, 2**8 - 1),
                ("ushort", 0, 2**16 - 1),
                ("uint", 0, 2**32 - 1),
                ("ulong", 0, 2**64 - 1),
                ("byte", -(2**7), 2**7 - 1),
                ("short", -(2**15), 2**15 - 1),
                ("int", -(2**31), 2**31 - 1),
                ("timestamp", -(2**63), 2**63 - 1),
            )
        )
    )
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.builds(
    Message,
    st.just("AMQP/1.0"),
    st.fixed_dictionaries(
        {},
        optional={
            "application-properties": st.dictionaries(TEXTS, SCALARS, min_size=1, max_size=4),
            "message-annotations": st.dictionaries(SYMBOLS, VALUES, min_size=1, max_size=2),
            "delivery-annotations": st.dictionaries(SYMBOLS, VALUES, min_size=1, max_size=2),
            "footer": st.dictionaries(SYMBOLS, VALUES, min_size=1, max_size=2),
        },
    ),
    st.none() | st.binary(),
)


def through_client(message: Message) -> Message:
    """What a receiver is shown: the message as proton decodes it from its bytes."""
    shown = proton.Message()
    shown.decode(amqp.to_client(message).encode())
    return amqp.to_paper(shown)


@given(MESSAGES)
def test_the_bytes_hold_everything(message: Message) -> None:
    """decode(encode(m)) == m: each value with its type, the footer too."""
    assert message == amqp.decode(amqp.encode(message))


@given(MESSAGES)
def test_a_message_comes_back(message: Message) -> None:
    """Without a footer, a message is the same after proton had it."""
    message = Message("AMQP/1.0", {**message.fields, "footer": None}, message.payload)
    expected = {name: value for name, value in message.fields.items() if value is not None}
    assert Message("AMQP/1.0", expected, message.payload) == through_client(message)


@modes("AMQP/1.0")
@given(event=events())
def test_an_event_comes_back(mode: Mode, event: CloudEvent) -> None:
    """An event is the same after the client had it."""
    arrives(event, "AMQP/1.0", mode, through_client)


@cases("clients/amqp_messages")
def test_messages(case: Case) -> None:
    """Properties, headers, annotations and every kind of body come back as they are written best."""
    assert case.expect == through_client(Message.from_json(case.given)).to_json()


@cases("clients/amqp_refused")
def test_refused(case: Case) -> None:
    """What is of the wrong type, or cannot be sent, is rejected with its place."""
    rejects(amqp.to_client, case.given, case.expect)


def test_a_plain_message_of_the_client() -> None:
    """What the client's attributes would call None, 4 or empty is not on paper."""
    shown = proton.Message(body=b"x", inferred=True, content_type="a/b", properties={"n": proton.uint(1)})
    fields = {"properties": {"content-type": "a/b"}, "application-properties": {"n": Typed("uint", 1)}}
    assert Message("AMQP/1.0", fields, b"x") == amqp.to_paper(shown)


def section(code: int, value: Any) -> bytes:
    """One section's bytes."""
    data = proton.Data()
    data.put_object(proton.Described(proton.ulong(code), value))
    return bytes(data.encode())


def test_what_paper_has_no_form_for() -> None:
    """An array is its list, a described value the value, a reserved annotation's number a text; bodies are joined."""
    symbols = proton.Array(proton.UNDESCRIBED, proton.Data.SYMBOL, proton.symbol("a"))
    noted = section(0x72, {proton.symbol("x"): symbols, proton.ulong(5): proton.Described("d", 1)})
    read = amqp.decode(noted + section(0x75, b"ab") + section(0x75, b"cd"))
    assert Message("AMQP/1.0", {"message-annotations": {"x": (Typed("symbol", "a"),), "5": 1}}, b"abcd") == read
    assert b"[1,2]" == amqp.decode(section(0x76, [1]) + section(0x76, [2])).payload


INFINITY = 0x78000000


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (b"\x00", ""),
        (b"junk", ""),
        (b"\x40", ""),
        (section(0x79, {}), ""),
        (section(0x73, [None] * 14), "/properties"),
        (section(0x70, {}), "/header"),
        (section(0x75, b"x") + section(0x77, 1), "/body"),
        (section(0x77, 1) + section(0x77, 1), "/body"),
        (section(0x75, "x"), "/body"),
        (section(0x76, 1), "/body"),
        (section(0x74, []), "/application-properties"),
        (section(0x77, {1: 2}), "/payload"),
        (section(0x77, proton.decimal32(INFINITY)), "/payload"),
        (b"\x00\x53\x77\xa1\x01\xff", ""),
    ],
    ids=str,
)
def test_bytes_that_are_no_message(content: bytes, path: str) -> None:
    """What is not a message, or has no form on paper, is rejected with its place."""
    with pytest.raises(WireError) as rejected:
        amqp.decode(content)
    assert path == rejected.value.problems[0].path


def nested(depth: int) -> bytes:
    """A value of lists in lists."""
    body = b"\x45"
    for _ in range(depth):
        body = b"\xd0" + (len(body) + 4).to_bytes(4, "big") + (1).to_bytes(4, "big") + body
    return b"\x00\x53\x77" + body


@pytest.mark.parametrize("depth", [65, 5_000])
def test_nesting_is_bounded(depth: int) -> None:
    """Lists nested without end are rejected."""
    with pytest.raises(WireError, match=r"nested deeper|recursion"):
        amqp.decode(nested(depth))


def damaged(message: Message, at: int, other: bytes) -> bytes:
    """A message's bytes with one of them replaced."""
    content = amqp.encode(message)
    return content[:at] + other + content[at + 1 :]


@given(st.binary() | st.builds(damaged, MESSAGES, st.integers(0, 200), st.binary(max_size=2)))
def test_any_bytes(content: bytes) -> None:
    """Bytes are a message or a `WireError`, and nothing else."""
    with contextlib.suppress(WireError):
        assert "AMQP/1.0" == amqp.decode(content).protocol
