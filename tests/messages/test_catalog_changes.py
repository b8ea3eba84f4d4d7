"""A catalog after changes of some entities is the catalog that is compiled anew, and costs what changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook.messages import Catalog, catalog, fast, index, layered, match, nearest
from signalbook.messages.catalog import CatalogError

GROUP, OTHER, ENDPOINT = "/messagegroups/g", "/messagegroups/h", "/endpoints/e"
MESSAGES = [*(f"{GROUP}/messages/m{n}" for n in range(4)), f"{OTHER}/messages/m", f"{ENDPOINT}/messages/m"]
SCHEMAS = [f"/schemagroups/s/schemas/s{n}" for n in range(2)]
TYPES = ["a.b.c", "a.b.d", "q", "a.b.c", "a.b.d", "q", "{kind}.b.c", "z{kind}"]
TOPICS = ["t", "{where}.t"]

# What changes --------------------------------------------------------------------------------------------------------

headers = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["h", "i"]), "value": st.sampled_from(["1", "2", "x{n}"])},
        optional={"required": st.just(True)},
    ),
    max_size=2,
    unique_by=lambda header: header["name"],
)
events = st.fixed_dictionaries(
    {"envelope": st.just("CloudEvents/1.0")},
    optional={
        "envelopemetadata": st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(TYPES).map(lambda value: {"value": value}),
                "subject": st.sampled_from(["s", "{name}"]).map(lambda value: {"value": value, "required": True}),
            },
        )
    },
)
records = st.fixed_dictionaries(
    {"protocol": st.just("KAFKA")},
    optional={
        "protocoloptions": st.fixed_dictionaries({"headers": headers}, optional={"topic": st.sampled_from(TOPICS)})
    },
)
payloads = st.one_of(
    st.just({}),
    st.sampled_from(SCHEMAS).map(lambda xid: {"dataschemauri": xid}),
    st.just({"dataschemaformat": "JsonSchema/draft-07", "dataschema": {"$ref": "/schemagroups/s/schemas/s0"}}),
)
bases = st.one_of(
    st.just({}),
    st.sampled_from([*MESSAGES, f"{MESSAGES[0]}/versions/1", "/messagegroups/g/messages/none"]).map(
        lambda xid: {"basemessage": xid}
    ),
)
definitions = st.tuples(st.one_of(events, records, st.just({})), payloads, bases).map(
    lambda parts: {name: value for part in parts for name, value in part.items()}
)
messages = st.one_of(
    definitions, definitions, definitions, st.sampled_from(MESSAGES).map(lambda xid: {"meta": {"xref": xid}})
)
types = st.sampled_from([{"type": "object"}, {"type": "integer"}, {"$ref": "/schemagroups/s/schemas/s1"}])
schemas = st.one_of(
    types.map(lambda schema: {"format": "JsonSchema/draft-07", "schema": schema}),
    st.sampled_from(SCHEMAS).map(lambda xid: {"meta": {"xref": xid}}),
)
groups = st.fixed_dictionaries(
    {},
    optional={
        "envelope": st.just("CloudEvents/1.0"),
        "protocol": st.sampled_from(["KAFKA", "HTTP"]),
        "description": st.sampled_from(["x", "y"]),
    },
)
endpoints = st.fixed_dictionaries(
    {},
    optional={
        "protocol": st.sampled_from(["KAFKA", "HTTP"]),
        "envelope": st.just("CloudEvents/1.0"),
        "messagegroups": st.lists(st.sampled_from([GROUP, OTHER]), max_size=2),
    },
)
gone = st.none()
of_messages = st.dictionaries(
    st.sampled_from(MESSAGES), st.one_of(messages, messages, messages, messages, gone), min_size=1, max_size=4
)
of_schemas = st.dictionaries(st.sampled_from(SCHEMAS), st.one_of(schemas, schemas, gone), min_size=1, max_size=2)
changes = st.one_of(
    *[of_messages] * 5,
    *[of_schemas] * 2,
    st.dictionaries(st.sampled_from([GROUP, OTHER]), st.one_of(groups, groups, groups, gone), min_size=1, max_size=1),
    st.dictionaries(st.just(ENDPOINT), st.one_of(endpoints, endpoints, endpoints, gone), min_size=1, max_size=1),
)

full = st.fixed_dictionaries(
    {**dict.fromkeys(MESSAGES, messages), **dict.fromkeys(SCHEMAS, schemas), ENDPOINT: endpoints}
)
"""A catalog that has all of them, to begin with."""

# What is asked -------------------------------------------------------------------------------------------------------

EVENTS = [
    {"specversion": "1.0", "id": "1", "source": "/s", "type": name, **more}
    for name in ("a.b.c", "a.b.d", "zb", "q")
    for more in ({}, {"subject": "s", "data": {}}, {"data": 1})
]
RECORDS = [
    {"protocol": "KAFKA", "topic": topic, "headers": headers, "payload_json": 1}
    for topic in ("t", "x.t", "w")
    for headers in ([], [["h", "1"]], [["h", "2"], ["i", "x7"]], [["i", "9"]])
]
ASKED = [json.dumps(one, separators=(",", ":")).encode() for one in (*EVENTS, *RECORDS, {**EVENTS[0], "id": 7})]
SCOPES: list[tuple[str, ...]] = [(), (GROUP,), (ENDPOINT,), (GROUP, ENDPOINT), (MESSAGES[0],)]


def answers(asked: Catalog) -> dict[str, Any]:
    """All that a catalog says."""
    found: dict[str, Any] = {"definitions": dict(asked.definitions), "digest": asked.digest}
    for scope in SCOPES:
        for number, message in enumerate(ASKED):
            try:
                said: Any = asked.match(message, scope).to_bytes()
            except CatalogError as error:
                said = str(error)
            found[f"{scope} {number}"] = said
    for xid in asked.definitions:
        found[xid] = [asked.validate(message, xid).to_bytes() for message in ASKED[:3]]
        found[f"{xid} schema"] = repr(asked.schema(xid)) if asked.schema(xid) is None else None
    return found


def document_of(entities: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The document of groups and resources by their xids."""
    found: dict[str, Any] = {}
    for xid, entity in entities.items():
        _, plural, gid, *rest = xid.split("/")
        group = found.setdefault(plural, {}).setdefault(gid, {})
        if rest:
            group.setdefault(rest[0], {})[rest[1]] = deepcopy(entity)
        else:
            group |= deepcopy(entity)
    return found


def apply(entities: dict[str, dict[str, Any]], change: dict[str, Any]) -> dict[str, Any]:
    """The change as a store would make it: a resource has its group, and a group takes its resources with it."""
    made: dict[str, Any] = {}
    for xid, entity in change.items():
        group = "/".join(xid.split("/")[:3])
        if entity is None:
            for other in [other for other in entities if other == xid or other.startswith(f"{xid}/")]:
                del entities[other]
        else:
            if group not in entities:
                entities[group] = made[group] = {}
            entities[xid] = entity
        made[xid] = deepcopy(entity)
    return made


@pytest.fixture(scope="module")
def small_bounds() -> Iterator[None]:
    """Every bound from which on something is done otherwise is so small that a few definitions pass it."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (index, nearest, match):
            patch.setattr(module, "MOST_JUDGED", 3)
        patch.setattr(index, "_FEW", 1)
        patch.setattr(nearest, "_COMMON", 3)
        patch.setattr(nearest, "_BESIDE", 4)
        patch.setattr(nearest, "_LIKEST", 4)
        patch.setattr(layered, "_SMALL", 2)
        patch.setattr(layered, "_CHUNK", 2)
        patch.setattr(fast, "_MOST_APART", 2)
        patch.setattr(catalog, "_MOST_BEHIND", 4)
        yield


@settings(deadline=None)
@given(full, st.lists(changes, min_size=1, max_size=5), st.lists(st.booleans(), min_size=5, max_size=5))
def test_a_changed_catalog_is_the_one_compiled_anew(
    small_bounds: None, first: dict[str, Any], steps: list[dict[str, Any]], asked: list[bool]
) -> None:
    """After any changes the answers are those of a catalog compiled anew, also where one was asked on the way."""
    entities: dict[str, dict[str, Any]] = {}
    changed = Catalog.from_canonical({}).changed(apply(entities, first))
    answers(changed)
    for step, is_asked in zip(steps, asked, strict=False):
        changed = changed.changed(apply(entities, step))
        if is_asked:
            answers(changed)
    anew = Catalog.from_canonical(document_of(entities))
    expected = answers(anew)
    assert expected == answers(changed)
    assert answers(anew) == answers(changed)  # now with what the fast path has learned
    assert expected == answers(Catalog.from_canonical({}).updated_canonical(document_of(entities)))


# The fast path, and what tells definitions of one key apart -----------------------------------------------------------


def of_type(name: str, **more: Any) -> dict[str, Any]:
    """A definition of the events of a type."""
    return {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": name}, **more}}


BY_SCHEMA = {**of_type("a"), "dataschemauri": SCHEMAS[0]}
INTEGER = {"format": "JsonSchema/draft-07", "schema": {"type": "integer"}}
LEARNED = {MESSAGES[0]: BY_SCHEMA, MESSAGES[1]: of_type("b"), SCHEMAS[0]: INTEGER}
AFTER_LEARNING: dict[str, dict[str, Any]] = {
    "its own definition": {MESSAGES[0]: of_type("a", subject={"value": "s", "required": True})},
    "its definition goes": {MESSAGES[0]: None},
    "its schema": {SCHEMAS[0]: {**INTEGER, "schema": {"type": "string"}}},
    "another of the type": {MESSAGES[2]: of_type("a")},
    "a template for the type": {MESSAGES[2]: of_type("{any}")},
    "another key": {MESSAGES[2]: {"envelope": "CloudEvents/1.0", "envelopemetadata": {"subject": {"value": "s"}}}},
    "one without a key that derives from it": {
        MESSAGES[2]: {"basemessage": MESSAGES[0], "envelopemetadata": {"type": {"value": "{any}"}}}
    },
    "one without a key": {MESSAGES[2]: {"envelope": "CloudEvents/1.0", "envelopemetadata": {}}},
    "its group": {GROUP: {"protocol": "KAFKA"}},
    "another type": {MESSAGES[1]: of_type("c")},
}


@pytest.mark.parametrize("change", AFTER_LEARNING)
def test_the_fast_path_after_a_change(change: str) -> None:
    """What the fast path has learned it forgets where a change could make it wrong, and keeps where not."""
    given = [
        json.dumps(
            {"specversion": "1.0", "id": "1", "source": "/s", "type": name, "subject": "s", "data": data}
        ).encode()
        for name in "abc"
        for data in (1, "x")
    ]
    entities: dict[str, dict[str, Any]] = {}
    before = Catalog.from_canonical({}).changed(apply(entities, LEARNED))
    for _ in range(2):
        assert "matched" == before.match(given[0]).outcome
    shapes = before.scope().fast.shapes("a")
    assert shapes
    after = before.changed(apply(entities, AFTER_LEARNING[change]))
    anew = Catalog.from_canonical(document_of(entities))
    for _ in range(2):
        assert [anew.match(one).to_bytes() for one in given] == [after.match(one).to_bytes() for one in given]
        assert "matched" == before.match(given[0]).outcome
    if change == "another type":
        assert shapes == after.scope().fast.shapes("a")


def told_by(name: str, value: str) -> dict[str, Any]:
    """A definition of one topic that a header tells apart."""
    options = {"topic": "t", "headers": [{"name": name, "value": value, "required": True}]}
    return {"protocol": "KAFKA", "protocoloptions": options}


def test_another_property_tells_definitions_apart() -> None:
    """Where most definitions of a key come to be told apart by another property, that one is looked up."""
    entities: dict[str, dict[str, Any]] = {}
    first = {f"{GROUP}/messages/m{n}": told_by("h", f"v{n}") for n in range(100)}
    asked = [
        json.dumps({"protocol": "KAFKA", "topic": "t", "headers": [[name, value]]}).encode()
        for name in "hi"
        for value in ("v7", "v70", "w", "v7x")
    ]
    changed = Catalog.from_canonical({}).changed(apply(entities, first))
    for begin in range(0, 100, 20):
        [changed.match(one) for one in asked]
        step = {f"{GROUP}/messages/m{n}": told_by("i", f"v{n}") for n in range(begin, begin + 20)}
        changed = changed.changed(apply(entities, step))
        anew = Catalog.from_canonical(document_of(entities))
        assert [anew.match(one).to_bytes() for one in asked] == [changed.match(one).to_bytes() for one in asked]
