from __future__ import annotations

import enum
from datetime import UTC, datetime
from typing import Any

import pytest

from signalbook.cloudevents import ABSENT, CloudEvent, CloudEventError, Data, Kind, decode, encode
from signalbook.cloudevents.attributes import attribute_type

BASE = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


def test_an_event_says_what_it_has() -> None:
    """An event gives its attributes by name, with their types, and its data."""
    event = CloudEvent.create({**BASE, "time": "2018-04-05T17:31:00Z", "n": 5, "subject": None}, [1])
    assert ("1", "/s", "t") == (event.id, event.source, event.type)
    assert (5, None, "x") == (event["n"], event.get("subject"), event.get("subject", "x"))
    assert {"n": 5} == event.extensions
    assert ["URI-reference", "Timestamp", "Integer"] == [event.attribute_type(n) for n in ("source", "time", "n")]
    assert ["Boolean", "Binary", "String"] == [attribute_type("x", value) for value in (True, b"", "")]
    assert [1] == event.value()
    assert b"[1]" == event.payload()
    assert (None, "application/json") == (event.media_type, event.content_type)
    assert "CloudEvent({'specversion': '1.0'" in repr(event)


def test_an_event_does_not_change() -> None:
    """Nothing of an event can be set or deleted, nor through its attributes; changes give another event."""
    event = CloudEvent(BASE)
    for change in (lambda: setattr(event, "data", None), lambda: delattr(event, "_data")):
        with pytest.raises(AttributeError, match="does not change"):
            change()
    with pytest.raises(TypeError):
        event.attributes["id"] = "2"  # type: ignore[index]
    other = event.with_attributes(id="2", ext="x").with_data(Data.json(None))
    assert ("1", "2", "x") == (event.id, other.id, other["ext"])
    assert None is other.value()
    assert ABSENT is event.value() is CloudEvent.create(BASE).value()
    assert None is event.payload()
    assert "ext" not in other.with_attributes(ext=None).attributes


def test_the_callers_values_are_not_kept() -> None:
    """What the caller does with his values afterwards does not reach the event."""
    attributes, value = dict(BASE), {"a": [1]}
    event = CloudEvent.create(attributes, value)
    attributes["id"] = "2"
    value["a"].append(2)
    assert "1" == event.id
    assert {"a": [1]} == event.value()


def test_native_values_are_taken() -> None:
    """Moments, enumerations and other bytes become what events hold."""
    event = CloudEvent(
        {
            **BASE,
            "time": datetime(2018, 4, 5, tzinfo=UTC),
            "c": Colour.RED,
            "s": Size.BIG,
            "b": bytearray(b"x"),
            "t": True,
        }
    )
    assert ["2018-04-05T00:00:00Z", "red", 3, b"x", True] == [event[name] for name in ("time", "c", "s", "b", "t")]
    assert {str, int, bytes, bool} == {type(value) for value in event.attributes.values()}
    with pytest.raises(CloudEventError, match="time zone"):
        CloudEvent({**BASE, "time": datetime(2018, 4, 5)})


@pytest.mark.parametrize(
    ("attributes", "problems"),
    [
        ({}, ["R7", "R7", "R7", "R7"]),
        ({**BASE, "data": "x"}, ["R11"]),
        ({**BASE, "data_base64": "x"}, ["R11"]),
        ({**BASE, "a-b": "x", "n": 2**31, "f": 1.0, "o": object()}, ["R5", "R13", "R13", "R12"]),
        ({**BASE, "id": b"x", "subject": True, "time": 1.5, "type": []}, ["R8", "R12", "R12", "R8"]),
        ({**BASE, "subject": b"x", "source": 5}, ["R12", "R8"]),
        ({**BASE, "ext": "a\nb"}, ["R15"]),
    ],
)
def test_what_is_no_event(attributes: dict[str, Any], problems: list[str]) -> None:
    """An event that would not be valid is not made, and the error has every problem."""
    with pytest.raises(CloudEventError) as rejected:
        CloudEvent(attributes)
    assert sorted(problems) == sorted(problem.code for problem in rejected.value.problems)


@pytest.mark.parametrize(
    ("content_type", "value", "kind", "content"),
    [
        (None, None, Kind.JSON, b"null"),
        (None, "x", Kind.JSON, b'"x"'),
        ("application/json", {"a": 1}, Kind.JSON, b'{"a":1}'),
        ("application/json", b"x", Kind.BINARY, b"x"),
        ("text/plain", "é", Kind.TEXT, "é".encode()),
        ("text/plain", memoryview(b"x"), Kind.BINARY, b"x"),
    ],
)
def test_what_data_is_made_of(content_type: str | None, value: Any, kind: Kind, content: bytes) -> None:
    """Bytes are binary, a JSON type takes a value, another type text (json 3.1.1)."""
    event = CloudEvent.create({**BASE, "datacontenttype": content_type}, value)
    assert event.data is not None
    assert (kind, content) == (event.data.kind, event.data.content)
    assert event == decode(encode(event))


@pytest.mark.parametrize(
    ("content_type", "make", "rule"),
    [
        ("text/xml", lambda: {"a": 1}, "R31"),
        ("text/xml", lambda: Data.json({"a": 1}), "R31"),
        ("text/json", lambda: Data.text("x"), "R31"),
        (None, lambda: Data.text("x"), "R31"),
        (None, lambda: float("nan"), "R34"),
        (None, lambda: object(), "R34"),
        (None, lambda: Data.json_text(b"{"), "R34"),
        ("text/xml", lambda: "\ud800", "R34"),
    ],
)
def test_data_that_does_not_go_with_its_type(content_type: str | None, make: Any, rule: str) -> None:
    """What cannot be written as the content type says is rejected, never written in some other way."""
    attributes = {**BASE, "datacontenttype": content_type}

    def attempt() -> CloudEvent:
        value = make()
        return CloudEvent(attributes, value) if isinstance(value, Data) else CloudEvent.create(attributes, value)

    with pytest.raises(CloudEventError) as rejected:
        attempt()
    assert ("/data", rule) == (rejected.value.path, rejected.value.rule)


def test_a_number_that_nothing_holds_is_kept() -> None:
    """Data with a number beyond every type is kept as text, and rejected only when its value is asked for (R32)."""
    event = CloudEvent(BASE, Data.json_text(b"1e9999999999999999999999"))
    with pytest.raises(CloudEventError, match="R32"):
        event.value()
    assert event == decode(encode(event))


def event(data: Data | None = None, **attributes: Any) -> CloudEvent:
    """An event of little else."""
    return CloudEvent({**BASE, **attributes}, data)


JSON = {"datacontenttype": "application/json"}
TEXT = {"datacontenttype": "text/plain"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (event(n=5), event(n="5"), True),
        (event(n=True), event(n="true"), True),
        (event(n=True), event(n=1), False),
        (event(n=b"\x01\x02\x03"), event(n="AQID"), True),
        (event(time="2018-04-05T17:31:00Z"), event(time="2018-04-05T19:31:00.0+02:00"), True),
        (event(ext="2018-04-05T17:31:00Z"), event(ext="2018-04-05T19:31:00.0+02:00"), False),
        (event(a="x"), event(), False),
        (event(Data.json(1)), event(Data.json(1), **JSON), True),
        (event(), event(**JSON), False),
        (event(Data.json_text(b'{"a":1, "b":1.0}')), event(Data.json_text(b'{"b":1,"a":1}')), True),
        (event(Data.json(1)), event(Data.json(True)), False),
        (event(Data.json(None)), event(), False),
        (event(Data.binary(b"")), event(), False),
        (event(Data.binary(b"1")), event(Data.json(1)), False),
        (event(Data.binary(b" 1"), **JSON), event(Data.json(1), **JSON), True),
        (event(Data.binary(b"x"), **JSON), event(Data.json(1), **JSON), False),
        (event(Data.binary(b"x"), **TEXT), event(Data.text("x"), **TEXT), True),
        (event(Data.binary(b"x")), event(Data.binary(b"y")), False),
        (event(Data.text("x"), **TEXT), event(Data.text("y"), **TEXT), False),
    ],
)
def test_equality(one: CloudEvent, other: CloudEvent, same: bool) -> None:
    """Events are equal by what they mean, not by how it is presented."""
    assert same is (one == other)
    assert same is (other == one)
    assert one != "something else"
