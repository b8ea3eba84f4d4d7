"""Laws of matching, over the catalogs and messages of all cases and over made-up ones."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook.cloudevents import CloudEvent
from signalbook.messages import Answer, Catalog, Outcome, match
from signalbook.messages.definition import Entities, materialise
from signalbook.messages.observe import observe
from tests.cases import Case, read_cases
from tests.messages.test_match import FILES, catalog_of, message_of

CASES = [case for name in FILES for case in read_cases(f"messages/{name}")]
cases = st.sampled_from(CASES)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab{}/%é", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)
ASPECTS = st.sampled_from(
    [
        *("envelope", "envelopemetadata", "envelopeoptions", "protocol", "protocoloptions", "basemessage"),
        *("dataschema", "dataschemaformat", "dataschemauri", "dataschemaxid", "datacontenttype", "meta", "versions"),
    ]
)


def answers_of(catalog: Catalog, case: Case) -> list[Answer]:
    """The answers about the message of a case."""
    return catalog.match_all(message_of(case.given), case.given.get("within", ()))


def shuffled(value: Any, turn: random.Random) -> Any:
    """The collections of entities in another order; what is inside an entity stays."""
    entries = list(value.items())
    turn.shuffle(entries)
    return dict(entries)


@given(cases, st.randoms(use_true_random=False))
def test_the_order_of_the_catalog_changes_nothing(case: Case, turn: random.Random) -> None:
    """`match` does not depend on the order of the catalog."""
    other = {
        name: shuffled(value, turn) if name in ("messages", "groups", "schemas") else value
        for name, value in case.given.items()
    }
    assert answers_of(catalog_of(case.given), case) == answers_of(catalog_of(other), case)


@given(cases, st.sampled_from(["never.sent", "{x}never{y}"]))
def test_what_neither_holds_nor_has_its_key_there_changes_nothing(case: Case, kind: str) -> None:
    """Adding a definition that neither holds nor whose key holds never changes an outcome."""
    added = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": kind}}}
    more = {**case.given, "groups": {**case.given.get("groups", {}), "added": {"messages": {"z": added}}}}
    before, after = answers_of(catalog_of(case.given), case), answers_of(catalog_of(more), case)
    assert [(one.outcome, one.definition, one.problems) for one in before] == [
        (one.outcome, one.definition, one.problems) for one in after
    ]


@given(cases)
def test_materialising_is_idempotent(case: Case) -> None:
    """What was materialised is its own materialisation."""
    for xid, definition in catalog_of(case.given).definitions.items():
        _, _, groupid, _, messageid = xid.split("/")
        document = {"messagegroups": {groupid: {"messages": {messageid: dict(definition.document)}}}}
        again = materialise(Entities.of(document))[f"/messagegroups/{groupid}/messages/{messageid}"]
        without_base = {name: value for name, value in definition.document.items() if name != "basemessage"}
        assert without_base == {name: value for name, value in again.document.items() if name != "basemessage"}


@given(cases, cases)
@settings(max_examples=300)
def test_validate_never_raises(case: Case, other: Case) -> None:
    """Whatever message is validated by whatever definition, there is an answer; `match` and `validate` agree."""
    catalog = catalog_of(case.given)
    for xid in catalog.definitions:
        for answer in catalog.validate_all(message_of(other.given), xid):
            assert answer.outcome in (Outcome.MATCHED, Outcome.NONCONFORMANT, Outcome.MALFORMED)
            assert json.loads(answer.to_bytes())["outcome"] == answer.outcome
    for answer in answers_of(catalog, case):
        if answer.matched and not case.given.get("within") and not isinstance(case.expect, list):
            assert catalog.validate(message_of(case.given), str(answer.definition)).matched


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), st.dictionaries(ASPECTS, JSON, max_size=6)), cases)
@settings(max_examples=300)
def test_no_document_is_too_wrong(messages: dict[str, Any], case: Case) -> None:
    """Whatever stands in a definition, a catalog is made of it, and the others match as if it were not there."""
    sound = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "sound.one"}}}
    document = {"messagegroups": {"g": {"messages": messages}, "sound": {"messages": {"m": sound}}}}
    catalog = Catalog.from_documents(document)
    assert len(catalog.digest) == 64
    catalog.match_all(message_of(case.given))
    event = b'{"specversion":"1.0","id":"1","source":"/s","type":"sound.one"}'
    assert Outcome.UNEXPECTED is not catalog.match(event).outcome


@given(st.binary(max_size=80) | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_message_is_too_wrong(message: bytes) -> None:
    """Whatever bytes come, there are answers."""
    for case in CASES[:3]:
        for answer in catalog_of(case.given).match_all(message):
            assert isinstance(answer, Answer)


SOURCES = ["/stores/7", "/stores/8", "/stores/a b", "/stores/7/8", "/stores/%41", "/stores/", "no", "/stores/7?a"]
KINDS = ["sold", "fed", "far"]
SOLD: dict[str, Any] = {
    "messages": {
        "m": {
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {
                "type": {"value": "sold"},
                "source": {"value": "/stores/{store}"},
                "subject": {"value": "{till}-{clerk}"},
                "kind": {"value": "k"},
            },
            "dataschemaformat": "JsonSchema/draft-07",
            "dataschema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        },
        "fed": {
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {
                "type": {"value": "fed"},
                "source": {"value": "{feed}"},
                "subject": {"value": "{till}"},
            },
            "dataschemaformat": "JsonSchema/draft-07",
            "dataschema": {"type": "object"},
        },
        "far": {
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {"type": {"value": "far"}},
            "dataschemaformat": "JsonSchema/draft-07",
            "dataschemauri": "https://example.com/far.json",
        },
    }
}
REQUIRED: dict[str, list[Any]] = {
    "specversion": ["1.0"],
    "id": ["1", "2", "", 'a"b', "é"],
    "source": SOURCES,
    "type": ["sold", "sold", "sold", "lost", "fed", "far"],
}
OPTIONAL: dict[str, list[Any]] = {
    "subject": ["1-2", "1-%20", "", "x"],
    "time": ["2026-01-01T00:00:00Z", "2024-02-29T00:00:00Z", "never"],
    "kind": ["k", "l"],
    "ext": ["", "e", 5],
    "protocol": ["x"],
    "data": [None, {}, {"n": 1}, {"n": "x"}, {"n": 12345678901234567890}, "é", {"type": "sold"}],
}
EVENTS = st.fixed_dictionaries(
    {name: st.sampled_from(values) for name, values in REQUIRED.items()},
    optional={name: st.sampled_from(values) for name, values in OPTIONAL.items()},
)
# What other definitions may say about the same events: nothing, or one that some of them have the key of.
BESIDE: list[dict[str, Any]] = [
    {},
    {"ext": {"value": "e"}},
    {"ext": {"value": "{any}"}},
    {"source": {"value": "/stores/8"}},
    {"subject": {"value": "1-{other}"}},
    {"kind": {"value": "k"}, "ext": {"value": "e"}},
    {"type": {"value": "{any}ld"}},
]
TEACHER = {"specversion": "1.0", "id": "1", "source": "/stores/7", "type": "sold"}


def sold_beside(beside: dict[str, Any]) -> Catalog:
    """A new catalog of what is sold, and of another definition."""
    other = {"other": {"envelope": "CloudEvents/1.0", "envelopemetadata": beside}} if beside else {}
    return catalog_of({"messages": {**SOLD["messages"], **other}})


def expect_same(catalog: Catalog, document: bytes) -> None:
    """Compare the answers of both paths."""
    scope = catalog.scope()
    general = [match.answer(scope, observed) for observed in observe(document)]
    answers = catalog.match_all(document)
    assert general == answers
    assert [one.checked for one in general] == [one.checked for one in answers]


@given(
    st.lists(EVENTS, min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :")]),
    st.sampled_from(KINDS),
    st.sampled_from(BESIDE),
)
@settings(max_examples=500)
def test_the_swift_road_says_what_the_patient_road_says(
    events: list[dict[str, Any]], like_the_first: bool, spelling: tuple[str, str], kind: str, beside: dict[str, Any]
) -> None:
    """A shape that was learned gives the answer that reading and matching give, to whatever comes after it."""
    catalog = sold_beside(beside)
    teacher = {**events[0], **TEACHER, "type": kind, "subject": "1-2", "kind": "k", "data": {"n": 1}}
    if like_the_first:
        events = [{name: event.get(name, value) for name, value in teacher.items()} for event in events]
    for event in (teacher, *events):
        expect_same(catalog, json.dumps(event, separators=spelling, ensure_ascii=False).encode())


@pytest.mark.parametrize("beside", BESIDE, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_neighbour_of_what_was_learned(kind: str, beside: dict[str, Any]) -> None:
    """An event that differs from a learned one in one member is answered as reading and matching answer."""
    whole = {**TEACHER, "type": kind, "subject": "1-2", "kind": "k", "ext": "x", "data": {"n": 1}}
    for teacher in (whole, {**whole, "time": "2026-01-01T00:00:00Z"}, {**TEACHER, "type": kind}):
        for name, value in ((name, value) for name, values in {**REQUIRED, **OPTIONAL}.items() for value in values):
            catalog = sold_beside(beside)
            for event in (teacher, teacher, {**teacher, name: value}):
                expect_same(catalog, json.dumps(event, separators=(",", ":")).encode())


def test_the_swift_road_is_taken() -> None:
    """The second event of a shape is answered by the shape: its event is not read until somebody asks."""
    catalog = catalog_of(SOLD)
    document = b'{"specversion":"1.0","id":"1","source":"/stores/7","type":"sold","data":{"n":1}}'
    catalog.match(document)
    answer = catalog.match(document.replace(b"/7", b"/8"))
    assert ({"store": "8"}, {"n": 1}) == (answer.context, answer.checked.value if answer.checked else None)
    assert isinstance(answer.event, bytes)
    assert isinstance(answer.cloudevent, CloudEvent)
    assert "/stores/8" == answer.cloudevent.source


def test_a_catalog_learns_from_few_events_of_a_type() -> None:
    """Shapes that keep changing are not learned for ever."""
    catalog = catalog_of(SOLD)
    for number in range(50):
        catalog.match(json.dumps({**TEACHER, f"ext{number}": "e"}).encode())
    assert len(catalog.scope().fast.shapes("sold")) < 10
