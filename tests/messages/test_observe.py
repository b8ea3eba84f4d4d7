"""Messages as definitions see them, where they are hard to read."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from signalbook.messages import Catalog, Outcome
from signalbook.messages.observe import CannotUndo, Observed, Unreadable, observe, undo
from signalbook.protocols import Message

XID = "/messagegroups/g/messages/m"
DEFINITION = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "t"}}}
EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
BINARY = [["ce-specversion", "1.0"], ["ce-id", ""], ["ce-source", "/s"], ["ce-type", "t"]]
STRUCTURED = [["content-type", "application/cloudevents+json"]]
BATCH = [["content-type", "application/cloudevents-batch+json"]]


def http(headers: list[list[str]], **more: Any) -> dict[str, Any]:
    """A message over HTTP, on paper."""
    return {"protocol": "HTTP", "headers": headers, **more}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b'{"type": "t", "specversion": 1}', [XID]),
        (b'{"type": "t", "n": 1', []),
        (b'{"type": "t", "id": "1"}', [XID]),
        (b'{"type": 5, "specversion": "1.0"}', []),
        (b'[{"type": "t"}, {"type": 5}, 7]', [XID]),
        (b'[{"type": "t", "n": NaN}]', []),
        (http(BINARY), [XID]),
        (http([*BINARY[:3], ["ce-type", "%ff"]]), []),
        (http(BINARY[:3]), []),
        (http(STRUCTURED, payload='{"type": "t"}'), [XID]),
        (http(STRUCTURED, payload='{"type": "t"'), []),
        (http(STRUCTURED, payload="7"), []),
        (http(BATCH, payload='[{"type": "t"}]'), [XID]),
    ],
)
def test_what_an_unreadable_message_would_have_been(given: Any, expected: list[str]) -> None:
    """What cannot be read lists the definitions of its type, where that much of it can be read."""
    catalog = Catalog.from_documents({"messagegroups": {"g": {"messages": {"m": DEFINITION}}}})
    answer = catalog.match_all(given)[0]
    assert Outcome.MALFORMED is answer.outcome
    assert expected == [one.definition for one in answer.candidates]


def test_a_charset_that_nobody_knows() -> None:
    """Text in a charset that cannot be written is judged as the bytes that came."""
    document = {**EVENT, "datacontenttype": "text/plain; charset=klingon", "data": "x"}
    (found,) = observe(document)
    assert isinstance(found, Observed)
    assert b"x" == found.payload()


def test_an_event_alone_has_no_content_type_of_a_message() -> None:
    """Only a message has a content type at itself."""
    (found,) = observe(EVENT)
    assert isinstance(found, Observed)
    assert (None, None) == (found.transport_content_type(), found.data_content_type())


@pytest.mark.parametrize(
    ("encoding", "payload"),
    [("br", b"\xff\xff\xff"), ("br", b""), ("gzip", b"x"), ("zstd", b"x"), ("deflate", b"x"), ("gzip", b"\x1f\x8b")],
)
def test_what_is_not_encoded_as_it_says(encoding: str, payload: bytes) -> None:
    """A payload that is not what its content encoding says is a problem in words."""
    with pytest.raises(CannotUndo, match="not what its content encoding says"):
        undo(encoding, payload)


def test_too_many_encodings() -> None:
    """More content encodings than anybody uses are not undone."""
    with pytest.raises(CannotUndo, match="5 content encodings"):
        undo("gzip,gzip,gzip,gzip,gzip", b"")


def test_a_protocol_that_nobody_knows() -> None:
    """A message of a protocol that is not in the table is unreadable."""
    (found,) = observe(Message("SMTP", {}, b""))
    assert isinstance(found, Unreadable)
    assert ["/protocol"] == [problem.path for problem in found.problems]


def test_a_native_payload_that_has_the_word() -> None:
    """A NATS message whose payload only mentions `specversion` is not an event."""
    payload = base64.b64encode(b'{"note": "specversion"}').decode()
    (found,) = observe({"protocol": "NATS", "subject": "s", "payload_base64": payload})
    assert isinstance(found, Observed)
    assert found.event is None
