"""Definitions that share their key and are distinguished by what else they say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.messages import Catalog, index
from signalbook.messages.observe import MessageKind, Observed
from signalbook.protocols import Message

GROUP = "/messagegroups/g/messages"


def catalog_of(definitions: dict[str, dict[str, Any]]) -> Catalog:
    """A catalog of one group."""
    return Catalog.from_documents({"messagegroups": {"g": {"messages": definitions}}})


def kafka(*headers: dict[str, Any], topic: str = "t") -> dict[str, Any]:
    """A definition of a Kafka topic with these headers."""
    return {"protocol": "KAFKA", "protocoloptions": {"topic": topic, "headers": list(headers)}}


def message(*headers: tuple[str, str], topic: str = "t") -> Message:
    """A message of that topic."""
    return Message("KAFKA", {"topic": topic, "headers": tuple((name, text.encode()) for name, text in headers)})


def open_to(catalog: Catalog, given: Message) -> list[str]:
    """The ids of the definitions that are judged for a message."""
    observed = Observed(given, None)
    found = catalog.scope().index(MessageKind.NATIVE, given.protocol).find(observed)
    return [plan.compiled.definition.xid.rpartition("/")[2] for same in found for plan in same.open_to(observed)]


def told_by_type(size: int, **more: Any) -> Catalog:
    """So many definitions of one topic, each with a header of its own."""
    return catalog_of({f"m{n}": kafka({"name": "eventType", "value": f"order{n}.placed", **more}) for n in range(size)})


@pytest.mark.parametrize("size", [10, 1000, 10_000])
def test_a_message_is_judged_by_the_one_that_its_header_names(size: int) -> None:
    """However many definitions share a topic, the header leads to one of them."""
    catalog = told_by_type(size, required=True)
    one = message(("eventType", "order7.placed"))
    assert ["m7"] == open_to(catalog, one)
    assert f"{GROUP}/m7" == catalog.match(one).definition


def test_two_headers_tell_apart_what_one_does_not() -> None:
    """Where the first header leaves many, the second is looked at."""
    catalog = catalog_of(
        {
            f"m{n}": kafka(
                {"name": "kind", "value": f"k{n % 30}", "required": True},
                {"name": "version", "value": f"{n // 30}", "required": True},
            )
            for n in range(900)
        }
    )
    assert ["m37"] == open_to(catalog, message(("kind", "k7"), ("version", "1")))


def test_templates_and_silent_definitions() -> None:
    """A header that is a template is found by its text; a definition that does not speak of it stays."""
    definitions = {f"m{n}": kafka({"name": "h", "value": f"part{n}.{{x}}", "required": True}) for n in range(500)}
    catalog = catalog_of({**definitions, "any": kafka({"name": "other"})})
    one = message(("h", "part7.a"))
    assert ["any", "m7"] == sorted(open_to(catalog, one))
    assert "ambiguous" == catalog.match(one).outcome


def test_a_key_that_is_a_template() -> None:
    """Definitions that share a topic with placeholders are distinguished in the same way."""
    definitions = {
        f"m{n}": kafka({"name": "h", "value": f"v{n}", "required": True}, topic="a.{x}.b") for n in range(500)
    }
    assert ["m7"] == open_to(catalog_of(definitions), message(("h", "v7"), topic="a.1.b"))


def test_methods_beside_a_path_with_placeholders() -> None:
    """A path is looked up before a method, which many definitions share."""
    catalog = catalog_of(
        {
            f"m{n}": {"protocol": "HTTP", "protocoloptions": {"path": f"/service{n}/{{id}}", "method": "POST"}}
            for n in range(1000)
        }
    )
    assert ["m7"] == open_to(catalog, Message("HTTP", {"method": "POST", "path": "/service7/1"}))


def test_constants_that_are_a_key_together() -> None:
    """Of several constants that are a key together, the rarest is looked up."""
    catalog = catalog_of(
        {
            f"m{n}": {
                "protocol": "NATS",
                "protocoloptions": {
                    "headers": [{"name": "the-same-for-all", "value": "a" * 50}, {"name": "b", "value": f"{n}"}]
                },
            }
            for n in range(1000)
        }
    )
    one = Message("NATS", {"subject": "s", "headers": (("the-same-for-all", "a" * 50), ("b", "7"))})
    assert ["m7"] == open_to(catalog, one)


def test_a_miss_names_the_likest_and_says_how_many_more() -> None:
    """Where no definition of a key holds, the likest are listed, and how many more there are is said."""
    answer = told_by_type(1000, required=True).match(message(("eventType", "order7.palced")))
    assert ("nonconformant", None) == (answer.outcome, answer.definition)
    assert f"{GROUP}/m7" in [one.definition for one in answer.candidates]
    assert len(answer.candidates) <= 64
    left = 1000 - len(answer.candidates)
    assert [f"{left} more definitions have the same key and are not listed"] == [one.message for one in answer.problems]


@pytest.mark.parametrize("versions", [20, 100])
def test_a_miss_stays_with_those_that_agree(versions: int) -> None:
    """Where one header is known and the next is not, the definitions that agree on the first are listed."""
    catalog = catalog_of(
        {
            f"k{kind}-v{version}": kafka(
                {"name": "kind", "value": f"k{kind}", "required": True},
                {"name": "version", "value": f"{version}", "required": True},
            )
            for kind in range(200)
            for version in range(versions)
        }
    )
    answer = catalog.match(message(("kind", "k7"), ("version", "lost")))
    assert ("nonconformant", None) == (answer.outcome, answer.definition)
    assert {f"{GROUP}/k7"} == {one.definition.partition("-")[0] for one in answer.candidates}
    left = 200 * versions - len(answer.candidates)
    assert [f"{left:,} more definitions have the same key and are not listed"] == [
        one.message for one in answer.problems
    ]


def test_a_miss_of_few_lists_them_all() -> None:
    """Up to 64 definitions of one key are judged and listed whole."""
    answer = told_by_type(64, required=True).match(message(("eventType", "lost")))
    assert (64, ()) == (len(answer.candidates), answer.problems)


def test_what_many_hold_is_listed_in_part() -> None:
    """Without the header that is optional, all hold; 64 are listed."""
    answer = told_by_type(100).match(message())
    assert ("ambiguous", 64) == (answer.outcome, len(answer.candidates))
    assert ["36 more definitions have the same key and are not listed"] == [one.message for one in answer.problems]


def test_a_malformed_event_of_a_type_that_many_have() -> None:
    """What an unreadable event would have meant is listed in part, too."""
    definitions = {
        f"m{n}": {
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {"type": {"value": "t"}, "subject": {"value": f"{n}", "required": True}},
        }
        for n in range(100)
    }
    answer = catalog_of(definitions).match({"specversion": "1.0", "type": "t"})
    assert ("malformed", 64) == (answer.outcome, len(answer.candidates))
    assert "36 more definitions have the same key and are not listed" == answer.problems[-1].message


def test_the_one_that_the_header_names_is_the_definition_of_a_wrong_message() -> None:
    """Among many of one key, the definition that the header names says what is wrong."""
    definitions = {
        f"m{n}": kafka({"name": "h", "value": f"v{n}", "required": True}, {"name": "n", "required": True})
        for n in range(100)
    }
    answer = catalog_of(definitions).match(message(("h", "v7")))
    assert ("nonconformant", f"{GROUP}/m7") == (answer.outcome, answer.definition)
    assert [("/protocoloptions/headers/n", "missing")] == [(one.path, one.code) for one in answer.problems]


_VALUES = st.sampled_from(["a", "b", "c-{x}", "{y}-c", "{z}"])
_HEADERS = st.lists(
    st.builds(
        lambda name, value, required: {
            "name": name,
            **({} if value is None else {"value": value}),
            "required": required,
        },
        st.sampled_from(["h", "i", "j"]),
        st.none() | _VALUES,
        st.booleans(),
    ),
    max_size=3,
)
_DEFINITIONS = st.lists(_HEADERS, min_size=4, max_size=12).map(
    lambda rows: {f"m{n}": kafka(*row) for n, row in enumerate(rows)}
)
_MESSAGES = st.lists(
    st.tuples(st.sampled_from(["h", "i", "j"]), st.sampled_from(["a", "b", "c", "c-1", "2-c", "c-c"])), max_size=5
).map(lambda pairs: message(*pairs))


@given(_DEFINITIONS, st.lists(_MESSAGES, min_size=1, max_size=4))
def test_looking_up_changes_no_answer(definitions: dict[str, Any], messages: list[Message]) -> None:
    """What is found by properties that tell definitions apart is what judging each of them finds."""
    looked_up = catalog_of(definitions)
    answers = [looked_up.match(one) for one in messages]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "_FEW", 10**9)
        judged = catalog_of(definitions)
        assert [judged.match(one) for one in messages] == answers
