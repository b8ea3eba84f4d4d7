"""What holds for every message that is built."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from signalbook.messages.catalog import Catalog
from signalbook.messages.fill import Origin
from signalbook.template import encode_reserved
from tests.messages.definitions import NAMES, XID, Given, givens

ORIGIN = Origin(lambda: datetime(2024, 5, 17, tzinfo=UTC), lambda: "the-id")


def alone(definition: dict[str, Any]) -> Catalog:
    """A catalog of one definition."""
    return Catalog.from_documents({"messagegroups": {"g": {"messages": {"m": definition}}}})


@given(givens())
def test_what_was_built_matches_its_own_definition(given: Given) -> None:
    """In a catalog of d alone, for every v that `build` accepts, `match(build(d, v))` is `matched` and gives v back."""
    catalog = alone(given.definition)
    built = catalog.message(XID).build(
        context=given.context, attributes=given.attributes, data=given.data, origin=ORIGIN
    )
    event("built" if built.ok else f"refused: {built.problems[0].code}")
    assume(built.ok)
    answer = catalog.match(built.message or built.cloudevent)
    assert ("matched", XID) == (answer.outcome.value, answer.definition), answer
    for name, text in answer.context.items():
        assert text in (given.context[name], encode_reserved(given.context[name]))
    event_ = answer.cloudevent
    if event_ is not None and built.cloudevent is not None:
        assert given.data == event_.value()
        assert built.cloudevent == event_


@given(givens())
def test_a_build_gives_a_message_or_every_reason(given: Given) -> None:
    """A build gives a message and no problems, or problems and no message; what is missing is among them."""
    built = alone(given.definition).message(XID).build(context=given.context, attributes=given.attributes)
    assert built.ok == bool(built.message or built.cloudevent)
    assert not built.missing or not built.ok
    missing = [problem for problem in built.problems if problem.code == "missing"]
    assert bool(built.missing) == bool(missing)


@given(givens())
def test_gaps_are_reported_at_once(given: Given) -> None:
    """Giving all that is missing leaves nothing missing."""
    handle = alone(given.definition).message(XID)
    missing = handle.build(context=given.context, attributes=given.attributes).missing
    filled = dict.fromkeys(missing, "v1")
    known = {"type", "source", "subject", "id", "time", "tenant"}
    attributes = {**given.attributes, **{name: text for name, text in filled.items() if name in known}}
    placeholders = {name: text for name, text in filled.items() if name in NAMES}
    again = handle.build(context={**given.context, **placeholders}, attributes=attributes)
    assert () == again.missing, (missing, again)


@given(givens())
def test_a_sample_matches(given: Given) -> None:
    """A sample that was made is matched by its definition."""
    catalog = alone(given.definition)
    built = catalog.message(XID).sample()
    if built.ok:
        assert "matched" == catalog.match(built.message or built.cloudevent).outcome.value


_JUNK = st.sampled_from(
    ["", "x", "\ud800", "a\r\nb", "\0", "a/+/#", "{x}", 5, 2**70, 1.5, float("nan"), True, None, b"\xff", [1], {1: 2}]
)
_NAMES = st.sampled_from([*NAMES, "id", "time", "type", "tenant", "topic", "retain", "datacontenttype", "X-One", ""])
_FIELDS = st.sampled_from(["topic", "subject", "path", "key", "headers", "properties", "qos", "payload_json", "nope"])
CODES = frozenset(
    {
        *("missing", "type", "value", "template", "placeholder_conflict", "protocol", "envelope", "mode"),
        *("content_type", "payload", "schema_unavailable", "malformed"),
    }
)


@given(
    givens(),
    st.dictionaries(_NAMES, _JUNK, max_size=4),
    st.dictionaries(_NAMES, _JUNK, max_size=4),
    st.dictionaries(_FIELDS, _JUNK | st.just([["a\r\n", "b"]]), max_size=3),
    _JUNK,
)
def test_no_values_are_too_wrong(
    given: Given, context: dict[str, Any], attributes: dict[str, Any], own: dict[str, Any], data: Any
) -> None:
    """Whatever is given, a build gives a result that can be written, and its problems have codes of the list."""
    handle = alone(given.definition).message(XID)
    built = handle.build(context=context, attributes=attributes, protocol=own, data=data)
    assert built.to_json()["ok"] == built.ok == (b'"ok":true' in built.to_bytes())
    assert {problem.code for problem in built.problems} <= CODES
