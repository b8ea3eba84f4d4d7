"""Damaged events: whatever the bytes, there is an event or a `CloudEventError`, and never another event."""

from __future__ import annotations

import json
import random

import pytest

from signalbook.cloudevents import RULES, CloudEvent, CloudEventError, decode, encode, iter_batch
from signalbook.protocols import BINDINGS, Message, Mode, WireError, events_of, to_message

SEEDS = [
    b'{"specversion":"1.0","id":"A-1","source":"/ctx","type":"com.example.t","time":"2018-04-05T17:31:00Z","data":{"a":[1,2.5]}}',
    b'{"specversion": "1.0", "id": "A-1", "source": "/ctx", "type": "t", "ext": 5, "flag": true, "data": "x"}',
    b'{"data" : null , "specversion" : "1.0", "id":"\\u00e9", "source":"urn:x:y", "type":"t", "subject":null}',
    b'{"specversion":"1.0","id":"1","source":"#","type":"t","datacontenttype":"text/xml","data":"<a b=\\"c\\"/>"}',
    '{"specversion":"1.0","id":"é🌎","source":"/a","type":"t","data_base64":"AQID","dataschema":"urn:s"}'.encode(),
]
SPICE = [
    *(bytes([byte]) for byte in b'"\\{}[],: \n-0E%\x00\x7f\xff'),
    *(b"null", b"\\ud800", b"\xef\xbb\xbf", b"1e999", b'"id":"2",', b'"data":', b'"data_base64":"AQ",', b"\xc2\x85"),
]


def damaged(dice: random.Random, document: bytes) -> bytes:
    """The document after a few small accidents."""
    for _ in range(dice.randint(1, 4)):
        at, end = sorted((dice.randrange(len(document) + 1), dice.randrange(len(document) + 1)))
        end = min(end, at + dice.randint(0, 12))
        part = dice.choice([b"", dice.choice(SPICE), bytes([dice.randrange(256)]), document[at:end] * 2])
        document = document[:at] + part + document[end:] if dice.random() < 0.9 else document[:at]
    return document


def read(document: bytes) -> CloudEvent | CloudEventError:
    """The event, or the error that was raised in its place."""
    try:
        return decode(document)
    except CloudEventError as error:
        return error


def look(document: bytes) -> None:
    """Read a document; an event has the members that Python's own reader finds, an error names its rule."""
    event = read(document)
    if isinstance(event, CloudEventError):
        assert event.rule in RULES
        assert str(event)
        return
    members = json.loads(document, parse_float=str, parse_int=str)
    assert len(members) == len(json.loads(document, object_pairs_hook=list))
    plain = {name: value for name, value in members.items() if value is not None}
    coded, data = plain.pop("data_base64", None), members.get("data", Ellipsis)
    plain.pop("data", None)
    assert plain == {name: str(value) if type(value) is int else value for name, value in event.attributes.items()}
    assert (coded is None and data is Ellipsis) is (event.data is None)
    assert event == decode(encode(event))


def look_at_messages(dice: random.Random) -> None:
    """Damage a message on paper and read what it carries."""
    event = decode(SEEDS[dice.randrange(len(SEEDS))])
    row = dice.choice(list(BINDINGS.values()))
    paper = to_message(event, row.protocol, dice.choice([m for m in row.modes if m is not Mode.BATCH])).to_bytes()
    try:
        message = Message.from_json(damaged(dice, paper))
    except WireError:
        return
    for found in events_of(message):
        assert isinstance(found, CloudEvent | CloudEventError)
        if isinstance(found, CloudEvent):
            assert found == decode(encode(found))


def run(rounds: int, seed: int) -> None:
    """Damage as many events, alone, in messages and in batches."""
    dice = random.Random(seed)
    for _ in range(rounds):
        document = damaged(dice, dice.choice(SEEDS))
        look(document)
        look_at_messages(dice)
        try:
            found = list(iter_batch(b"[" + SEEDS[0] + b"," + document + b"]"))
        except CloudEventError:
            continue
        assert decode(SEEDS[0]) == found[0]


def test_damaged_events() -> None:
    """A thousand damaged events raise nothing but `CloudEventError`."""
    run(1_000, seed=1)


@pytest.mark.slow
def test_a_hundred_thousand_damaged_events() -> None:
    """A hundred thousand damaged events raise nothing but `CloudEventError`."""
    run(100_000, seed=2)
