"""Laws of the Protobuf format, on random texts and messages."""

import pyarrow as pa
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook.schemas import compatible
from signalbook.schemas.protobuf import schema as protobuf
from tests.schemas.arrow_types import assert_tabular, plain
from tests.schemas.protobuf_values import changed, messages, render, texts

SETTINGS = settings(max_examples=60, deadline=None)


def read(text: str) -> protobuf.ProtobufSchema:
    """The schema of the message Top, in either language."""
    reading = protobuf.read_proto2 if '"proto2"' in text else protobuf.read_proto3
    return reading(text).at(":Top")


@SETTINGS
@given(st.data(), st.sampled_from(["proto2", "proto3"]))
def test_a_message_passes_its_own_check(data: st.DataObject, syntax: str) -> None:
    """A message made from a text is accepted by it, in binary and as JSON, and the bytes are all taken."""
    schema = read(render(data.draw(texts()), syntax))
    message = data.draw(messages(schema.message))
    checked = schema.check(message.SerializeToString())
    assert () == checked.problems
    assert message == checked.value.message
    try:
        text = json_format.MessageToJson(message, descriptor_pool=schema.file.pool)
    except (TypeError, ValueError, json_format.SerializeToJsonError):  # an Any of no type, NaN in a Value
        return
    again = schema.check(text.encode(), "application/json")
    # The library does not read back the largest float that it writes.
    assert all("Float value too" in problem.message for problem in again.problems)


@SETTINGS
@given(st.data())
def test_damage_never_raises(data: st.DataObject) -> None:
    """Damaged bytes are accepted or refused, with a problem that has a place; what is accepted has columns."""
    schema = read(render(data.draw(texts()), data.draw(st.sampled_from(["proto2", "proto3"]))))
    damaged = bytearray(data.draw(messages(schema.message)).SerializeToString() + data.draw(st.binary(max_size=4)))
    for _ in range(data.draw(st.integers(1, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    checked = schema.check(bytes(damaged))
    assert (checked.value is None) == bool(checked.problems)
    assert all(problem.path == "" or problem.path.startswith("/") for problem in checked.problems)
    if not checked.problems:
        dict(checked.value)
        pa.array([schema.convert(checked.value)], type=schema.columns())


@SETTINGS
@given(st.data(), st.sampled_from(["proto2", "proto3"]))
def test_columns_hold_every_value(data: st.DataObject, syntax: str) -> None:
    """The columns take every checked message and give it back, with types that Delta and Spark hold."""
    schema = read(render(data.draw(texts()), syntax))
    kind = schema.columns()
    assert_tabular(kind)
    made = [data.draw(messages(schema.message)).SerializeToString() for _ in range(3)]
    rows = [schema.convert(schema.check(payload).value) for payload in made]
    array = pa.array(rows, type=kind)
    array.validate(full=True)
    assert [plain(kind, row) for row in rows] == [plain(kind, row) for row in array.to_pylist()]


@SETTINGS
@given(st.data())
def test_different_messages_have_different_rows(data: st.DataObject) -> None:
    """Nothing is lost: messages with the same row are the same message."""
    schema = read(render(data.draw(texts())))
    first, second = data.draw(messages(schema.message)), data.draw(messages(schema.message))
    rows = [plain(schema.columns(), schema.convert(protobuf.MessageValue(one))) for one in (first, second)]
    assert (first == second) == (rows[0] == rows[1]) or -0.0 in _numbers(rows)


def _numbers(value: object) -> list[float]:
    if isinstance(value, dict):
        return [one for inner in value.values() for one in _numbers(inner)]
    if isinstance(value, list | tuple):
        return [one for inner in value for one in _numbers(inner)]
    return [value] if isinstance(value, float) else []


@settings(max_examples=120, deadline=None)
@given(st.data(), st.sampled_from(["proto2", "proto3"]))
def test_backward_means_that_older_payloads_are_read(data: st.DataObject, syntax: str) -> None:
    """If a change is backward compatible, the newer text accepts what the older one wrote."""
    text = data.draw(texts())
    older, newer = read(render(text, syntax)), read(render(changed(data, text), syntax))
    if list(compatible([older, newer], "backward")):
        return
    payload = data.draw(messages(older.message)).SerializeToString()
    assert () == newer.check(payload).problems
