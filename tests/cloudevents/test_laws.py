"""What holds for every event, under hypothesis."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook.cloudevents import CloudEvent, CloudEventError, Data, Kind, decode, decode_batch, encode, encode_batch
from signalbook.cloudevents.attributes import canonical
from signalbook.cloudevents.json_format import _decode_fast, _decode_general
from signalbook.jsontext import read_json, same_json, write_json
from signalbook.protocols import BINDINGS, Message, Mode, claims_event, events_of, from_message, mode_of, to_message
from tests.cloudevents.strategies import JSON_VALUES, events

WAYS = [(name, mode) for name, row in BINDINGS.items() for mode in row.modes if mode is not Mode.BATCH]

# Events are slow to make up; laws that run for every binding take a third of the examples each.
few = settings(max_examples=settings.default.max_examples // 3)


@given(events())
def test_json_gives_back_what_it_was_given(event: CloudEvent) -> None:
    """decode(encode(e)) == e."""
    assert event == decode(encode(event))


@given(events())
def test_both_paths_lead_to_the_same_event(event: CloudEvent) -> None:
    """The fast path gives the event that the general path gives, or none."""
    document = encode(event)
    try:
        fast = _decode_fast(document)
    except (ValueError, TypeError, AttributeError):
        fast = None
    if fast is not None:
        general = _decode_general(document)
        assert dict(general.attributes) == dict(fast.attributes)
        assert general.data == fast.data


@given(events(), st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r ")]), st.booleans())
def test_decoding_adds_and_drops_nothing(event: CloudEvent, separators: tuple[str, str], ascii_only: bool) -> None:
    """However a document is spaced and escaped, the event has its members and no others, each with its own type."""
    members = {
        name: canonical(value) if isinstance(value, bytes) else value for name, value in event.attributes.items()
    }
    unset = {"unset": None, **members, "andthis": None}
    document = json.dumps(unset, separators=separators, ensure_ascii=ascii_only)
    read = decode(document.encode())
    assert read == decode(f"\n{document} ")
    assert members == dict(read.attributes)
    assert {name: type(value) for name, value in members.items()} == {
        name: type(value) for name, value in read.attributes.items()
    }
    assert read.data is None


SPACINGS = st.sampled_from([":", ": ", " :", "\n:\t"])


@given(st.data(), st.lists(st.tuples(st.sampled_from(["id", "ext", "data", "x1"]), SPACINGS), max_size=6))
def test_no_name_occurs_twice(data: st.DataObject, more: list[tuple[str, str]]) -> None:
    """A document that repeats a name is never an event, whatever stands between the quotes and the colons."""
    members = [(name, ":") for name in ("specversion", "id", "source", "type")] + more
    values = {"specversion": "1.0", "source": "urn:x"}
    tricky = st.sampled_from([":v", '":', "a", ': "', "x:"])
    ordered = data.draw(st.permutations(members))
    texts = [json.dumps(name) + colon + json.dumps(values.get(name) or data.draw(tricky)) for name, colon in ordered]
    document = "{" + data.draw(st.sampled_from([",", ", "])).join(texts) + "}"
    names = [name for name, _ in ordered]
    if len(set(names)) == len(names):
        assert set(names) - {"data"} == decode(document.encode()).attributes.keys()
        return
    with pytest.raises(CloudEventError) as rejected:
        decode(document.encode())
    assert rejected.value.rule == "R3"


@pytest.mark.parametrize(("protocol", "mode"), WAYS)
@few
@given(event=events())
def test_a_binding_gives_back_what_it_was_given(protocol: str, mode: Mode, event: CloudEvent) -> None:
    """from_x(to_x(e)) == e where the binding can carry e, and an error that names the rule where it cannot."""
    try:
        message = to_message(event, protocol, mode)
    except CloudEventError as rejected:
        error = rejected
    else:
        assert mode is mode_of(message)
        assert claims_event(message)
        assert event == from_message(message)
        assert [event] == list(events_of(message))
        assert message == Message.from_json(message.to_bytes())
        return
    assert mode is Mode.BINARY
    assert error.rule in {"R31", "R38", "R39", "R41"}


@pytest.mark.parametrize("protocol", BINDINGS)
@few
@given(event=events())
def test_a_structured_event_crosses_unchanged(protocol: str, event: CloudEvent) -> None:
    """Through one binding and then any other, a structured event is byte for byte the same."""
    first = to_message(event, protocol, Mode.STRUCTURED)
    for other in BINDINGS:
        second = to_message(from_message(first), other, Mode.STRUCTURED)
        assert encode(event) == second.payload
        assert event == from_message(second)


@few
@given(st.lists(events(), max_size=4))
def test_a_batch_is_its_events(batch: list[CloudEvent]) -> None:
    """decode_batch(encode_batch(es)) == es, in their order."""
    assert batch == decode_batch(encode_batch(batch))


@few
@given(events(), events())
def test_equality_is_an_equality(one: CloudEvent, other: CloudEvent) -> None:
    """Equal events have equal hashes; equality goes both ways; a copy is equal."""
    copy = pickle.loads(pickle.dumps(one))
    assert one == copy
    assert hash(one) == hash(copy)
    assert (one == other) == (other == one)
    if one == other:
        assert hash(one) == hash(other)


@given(JSON_VALUES)
def test_numbers_keep_their_value(value: Any) -> None:
    """What is written is read as the same JSON value, and writing that gives the same again."""
    written = write_json(value)
    assert same_json(written, write_json(read_json(written)))
    assert Data(Kind.JSON, written).value() == read_json(written)
