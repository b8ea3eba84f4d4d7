"""What the fast path leaves to the general path; that both agree is a law of `test_match_laws`."""

import json
from typing import Any

from signalbook.messages import Catalog, Outcome

EVENT: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/x", "type": "a", "data": {"n": 1}}


def catalog(**more: Any) -> Catalog:
    """A catalog of one definition."""
    metadata = {"type": {"value": "a"}, **more.pop("envelopemetadata", {})}
    one = {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata, **more}
    return Catalog.from_documents({"messagegroups": {"g": {"messages": {"m": one}}}})


def test_the_last_brace_is_looked_at() -> None:
    """A text of a known shape that does not end as an object does is no event."""
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
    """An event in parts is the shape with its texts, what its groups took, and where the data begins."""
    known = catalog(envelopemetadata={"source": {"value": "/x/{n}"}})
    first, second = (json.dumps({**EVENT, "id": name, "source": f"/x/{name}"}).encode() for name in "ab")
    known.match(first)
    parts = known.scope().fast.parts(second)
    assert parts is not None
    shape, groups, begins = parts
    assert [("specversion", "1.0"), ("id", 0), ("source", 1), ("type", "a")] == list(shape.attributes)
    assert ((("n", 2),), ("b", "/x/b", "b")) == (shape.names, groups)
    assert b'{"n": 1}}' == second[begins:]
