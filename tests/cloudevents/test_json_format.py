from __future__ import annotations

import json

import pytest

from signalbook.cloudevents import RULES, CloudEvent, CloudEventError, Kind, decode, decode_batch, encode, iter_batch
from signalbook.cloudevents.attributes import MAX_ATTRIBUTES
from tests.cases import Case, cases
from tests.schemas.bounds import bounded

BASE = '{"specversion":"1.0","id":"1","source":"/s","type":"t"'


@cases("cloudevents/accepted")
def test_accepted(case: Case) -> None:
    """A valid document is read as it stands: attributes with their types, the data's own text, and nothing else."""
    event = decode(case.given.encode())
    assert event == decode(case.given)
    expected = case.expect
    assert expected["attributes"] == dict(event.attributes)
    assert str(expected["attributes"]) == str({name: event[name] for name in expected["attributes"]})
    if expected["kind"] == "absent":
        assert event.data is None
    else:
        assert event.data is not None
        assert (expected["kind"], expected["content"]) == (event.data.kind, event.data.content.decode())
    assert event == decode(encode(event))


@cases("cloudevents/refused")
def test_refused(case: Case) -> None:
    """An invalid document is rejected with every problem, each with its place and its rule."""
    with pytest.raises(CloudEventError) as rejected:
        decode(case.given.encode())
    error = rejected.value
    assert case.expect == [[problem.path, problem.code] for problem in error.problems]
    assert case.expect[0] == [error.path, error.rule]
    assert {problem.code for problem in error.problems} <= RULES.keys()
    assert f"[{error.rule}]" in str(error)


@pytest.mark.parametrize(
    "document",
    [
        b"\xff",
        BASE.encode() + b',"data":"\xff"}',
        BASE.encode() + b',"e":"\xed\xa0\x80"}',
        BASE.encode() + b',"\xff":1}',
        b'{"data":"\xc0\x80",' + BASE[1:].encode() + b"}",
        BASE.encode("utf-16") + b"}",
    ],
)
def test_what_is_not_utf8_is_refused(document: bytes) -> None:
    """A document that is not UTF-8 is rejected, wherever the bad bytes are (R2)."""
    with pytest.raises(CloudEventError) as rejected:
        decode(document)
    assert rejected.value.rule == "R2"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_of_every_kind_are_read(kind: type) -> None:
    """bytes, bytearray, memoryview and str hold the same event."""
    assert decode(f"{BASE}}}") == decode(kind(f"{BASE}}}".encode()))


def test_a_str_with_an_unpaired_surrogate_is_refused() -> None:
    """A str that has no UTF-8 form is not a document (R2)."""
    with pytest.raises(CloudEventError, match="R2"):
        decode(BASE + ',"data":"\ud800"}')


def test_many_extensions() -> None:
    """Two hundred extensions are read; a million are rejected, quickly and with one problem (R43)."""
    many = {f"e{n}": "v" for n in range(200)}
    assert 204 == len(decode(json.dumps({**json.loads(BASE + "}"), **many})).attributes)
    document = BASE + "".join(f',"e{n}":"v"' for n in range(1_000_000)) + "}"
    with bounded(20, mebibytes=2000), pytest.raises(CloudEventError) as rejected:
        decode(document)
    assert [("", "R43")] == [(problem.path, problem.code) for problem in rejected.value.problems]
    with pytest.raises(CloudEventError, match="R43"):
        CloudEvent({f"e{n}": "v" for n in range(MAX_ATTRIBUTES + 1)})


def test_an_error_can_be_printed() -> None:
    """Whatever a document holds, its error is text that can be written out, on one line and not long."""
    with pytest.raises(CloudEventError) as rejected:
        decode(BASE + ',"a\\nb\\ud800":1,"' + "E" * 10_000 + '":1,"specversion":"' + "x" * 10_000 + '"}')
    said = str(rejected.value)
    assert said.isprintable()
    assert 2_000 > len(said.encode())


def test_a_long_error_is_shown_in_part() -> None:
    """An error says its first twenty problems and how many there are more."""
    with pytest.raises(CloudEventError, match="and 10 more"):
        decode(BASE + "".join(f',"E{n}":"v"' for n in range(30)) + "}")


@pytest.mark.parametrize(
    ("document", "rule"),
    [("null", "R35"), (BASE + "}", "R35"), ('"[]"', "R35"), ("[" + BASE + "}", "R1"), ("", "R1"), ("\ufeff[]", "R2"),
     ("[1,]", "R1"), ("[" * 3000 + "]" * 3000, "R1"), ('["\\ud800"]', "R1")],
)  # fmt: skip
def test_what_is_no_batch(document: str, rule: str) -> None:
    """A text that is not a JSON array is rejected before any element is read."""
    for read in (decode_batch, iter_batch):
        with pytest.raises(CloudEventError) as rejected:
            read(document)
        assert rule == rejected.value.rule


def test_a_batch_with_a_bad_element() -> None:
    """A batch whose 5,000th element is bad is rejected, and the error says which; one by one, the others come."""
    good = BASE + "}"
    document = "[" + ",".join([*[good] * 4999, '{"id":""}', good, "[]"]) + "]"
    with pytest.raises(CloudEventError) as rejected:
        decode_batch(document)
    assert rejected.value.path == "/4999/specversion"
    assert "/5001" == rejected.value.problems[-1].path
    items = list(iter_batch(document))
    assert [4999, 5001] == [index for index, item in enumerate(items) if isinstance(item, CloudEventError)]
    assert 5002 == len(items)


def test_an_empty_batch() -> None:
    """A batch may be empty."""
    assert [] == decode_batch(b" [ ] ")


def test_json_that_is_none_is_written_as_bytes() -> None:
    """What a message called JSON and is not keeps its bytes in the JSON format."""
    from signalbook.cloudevents.event import made

    broken = made({**json.loads(BASE + "}"), "datacontenttype": "application/json"}, (Kind.JSON, b"{", False))
    assert b'"data_base64":"ew=="' in encode(broken)
    assert broken == decode(encode(broken))
    sound = made({**json.loads(BASE + "}"), "datacontenttype": "application/json"}, (Kind.JSON, b"{}", False))
    assert b'"data":{}' in encode(sound)
