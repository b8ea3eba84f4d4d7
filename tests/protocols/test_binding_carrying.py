from __future__ import annotations

from signalbook.cloudevents import decode
from signalbook.protocols import Message, from_message
from signalbook.protocols.binding import carry_over, left_behind
from tests.cases import Case, cases


@cases("cloudevents/carried")
def test_carried(case: Case) -> None:
    """A message's own fields go along with its event where they can; what is left is said, with its place."""
    source = Message.from_json(case.given["source"])
    event = from_message(source)
    carried = carry_over(event, source, case.given["to"], case.given["mode"], **case.given["fields"])
    assert event == from_message(carried.message)
    written = carried.message.to_json()
    assert case.expect["fields"] == {name: written.get(name) for name in case.expect["fields"]}
    assert case.expect["left"] == [problem.path for problem in carried.left]
    assert all(problem.code == "lost" for problem in carried.left)


def test_an_event_alone() -> None:
    """What of a message is not the event is listed."""
    text = '{"specversion":"1.0","id":"1","source":"/s","type":"t"}'
    source = Message.from_json({"protocol": "NATS", "subject": "s", "headers": [["a", "b"]], "payload": text})
    assert ["/subject", "/headers/0"] == [problem.path for problem in left_behind(decode(text), source)]
    assert () == left_behind(decode(text), Message("NATS", {}, text.encode()))
