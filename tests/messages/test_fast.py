"""What the fast path leaves to the general path; that both agree is a law of `test_match_laws`."""

import json
from typing import Any

import pytest

from signalbook.messages import Catalog, Outcome

EVENT: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/x", "type": "a", "data": {"n": 1}}


def catalog(**more: Any) -> Catalog:
    """A catalog of one definition."""
    metadata = {"type": {"value": "a"}, **more.pop("envelopemetadata", {})}
    one = {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata, **more}
    return Catalog.from_documents({"messagegroups": {"g": {"messages": {"m": one}}}})


def test_the_last_brace_is_looked_at() -> None:
    """A text of a known shape that does not end as an object does is not an event."""
    known, document = catalog(), json.dumps(EVENT).encode()
    assert known.match(document).matched
    assert known.match(document).matched
    for wrong in (document[:-1] + b"]", document[:-1] + b"x", document[:-1], document + b"}"):
        assert Outcome.MALFORMED is known.match(wrong).outcome


def test_what_a_content_type_captures_is_captured_each_time() -> None:
    """A name in a content type is captured by every event, not by the first alone."""
    document = json.dumps({**EVENT, "datacontenttype": "application/json"}).encode()
    stated = {"value": "application/{kind}"}
    for known in (catalog(datacontenttype="application/{kind}"), catalog(envelopemetadata={"datacontenttype": stated})):
        assert [{"kind": "json"}] * 3 == [dict(known.match(document).context) for _ in range(3)]


def test_an_event_in_parts() -> None:
    """An event in parts is the shape with its texts, what its groups captured, and where the data begins."""
    known = catalog(envelopemetadata={"source": {"value": "/x/{n}"}})
    first, second = (json.dumps({**EVENT, "id": name, "source": f"/x/{name}"}).encode() for name in "ab")
    known.match(first)
    parts = known.scope().fast.parts(second)
    assert parts is not None
    shape, groups, begins = parts
    assert [("specversion", "1.0"), ("id", 0), ("source", 1), ("type", "a")] == list(shape.attributes)
    assert ((("n", 2),), ("b", "/x/b", "b")) == (shape.names, groups)
    assert b'{"n": 1}}' == second[begins:]


SCHEMA = {"dataschemaformat": "JsonSchema/draft-07", "dataschema": {"type": "object", "required": ["n"]}}


@pytest.mark.parametrize(
    ("changed", "outcome"),
    [
        (b'"data": {"n": 1}', Outcome.MATCHED),
        (b'"data": {"m": 1}', Outcome.NONCONFORMANT),
        (b'"data": {"n": 1.00000000000000000000000000000001}', Outcome.MATCHED),
        (b'"data": {"n": }', Outcome.MALFORMED),
        (b'"data": ' + b"[" * 3000 + b"]" * 3000, Outcome.MALFORMED),
        (b'"data": {"n": "\xff"}', Outcome.MALFORMED),
    ],
)
def test_data_of_a_known_shape(changed: bytes, outcome: Outcome) -> None:
    """Of an event in a known shape the data decides; what the fast path cannot decide the general path does."""
    known, document = catalog(**SCHEMA), json.dumps(EVENT).encode()
    assert known.match(document).matched
    assert outcome is known.match(document.replace(b'"data": {"n": 1}', changed)).outcome


def test_a_source_is_tested_each_time() -> None:
    """A source that is not a URI-reference is not matched because another one was."""
    known, document = catalog(), json.dumps(EVENT).encode()
    assert known.match(document).matched
    assert Outcome.MALFORMED is known.match(document.replace(b'"/x"', b'"/x y"')).outcome


def test_a_key_besides_the_type() -> None:
    """A shape is not learned where a definition with another key could hold as well."""
    messages = {
        "m": {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "a"}}},
        "n": {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "{kind}a"}}},
        "o": {"envelope": "CloudEvents/1.0", "envelopemetadata": {"subject": {"value": "s"}}},
    }
    known = Catalog.from_documents({"messagegroups": {"g": {"messages": messages}}})
    document = json.dumps({**EVENT, "subject": "s"}).encode()
    assert [Outcome.AMBIGUOUS] * 2 == [known.match(document).outcome for _ in range(2)]
    assert () == known.scope().fast.shapes("a")


def test_a_framed_payload_is_not_for_the_fast_path() -> None:
    """The value of JSON data has no frame, so a definition that wants one is left to the general path."""
    known, document = catalog(dataschemaframing="confluent"), json.dumps(EVENT).encode()
    assert [Outcome.NONCONFORMANT] * 2 == [known.match(document).outcome for _ in range(2)]
