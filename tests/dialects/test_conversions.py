"""Documents from one dialect to another: the table of conversions, the examples of the older texts, and the laws."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signalbook.dialects.convert import convert, detect, meaning, read, write
from signalbook.dialects.rows import SEGMENT, from_id, to_id
from signalbook.errors import RegistryError, UsageError
from signalbook.model.xids import ID
from signalbook.sources.documents import Raw
from signalbook.sources.lint import broken
from signalbook.spec.dialects import DIALECTS, WRITTEN
from tests.cases import Case, cases, read_cases

RC2 = DIALECTS["1.0-rc2"]
# The rows of the tables of differences between the texts: of the message registry, and of the 0.1 catalog.
ROWS = {*(f"3.1/{row}" for row in range(1, 37)), *(f"4.1/{row}" for row in range(1, 33))}


def without_label(document: dict[str, Any]) -> dict[str, Any]:
    """The document without its `specversion`."""
    return {name: value for name, value in document.items() if name != "specversion"}


def there_and_back(document: Any, source: str, target: str) -> tuple[Any, Any]:
    """What a document means, and what it means after going to another dialect and back."""
    first = read(document, DIALECTS[source])
    written = write(first, DIALECTS[target])[0]
    second = read(written, DIALECTS[target], first.level)
    back = write(second, DIALECTS[source])[0]
    return meaning(first.content), meaning(read(back, DIALECTS[source], first.level).content)


@cases("dialects/conversions")
def test_a_document_is_converted(case: Case) -> None:
    """A document has the expected form in the other dialect, and the report names what that did to it."""
    found = convert(case.given["document"], DIALECTS[case.given["to"]], DIALECTS[case.given["from"]])
    assert case.expect["document"] == found.content
    assert case.expect["notes"] == [[note.code, note.path] for note in found.notes]


@cases("dialects/conversions")
def test_a_conversion_can_be_undone(case: Case) -> None:
    """What came in means the same after the way back, unless the report says that something is lost."""
    source, lost = case.given["from"], [note for note in case.expect["notes"] if note[0] == "lost"]
    if DIALECTS[source].written and not lost:
        before, after = there_and_back(case.given["document"], source, case.given["to"])
        assert before == after


@cases("dialects/through01")
def test_a_group_goes_through_01(case: Case) -> None:
    """A group of 1.0 comes back from 0.1 as it was, with nothing stated that it did not state, and can be loaded."""
    document = {"specversion": "1.0-rc2", "messagegroups": {"g": case.given}}
    there = convert(document, DIALECTS["0.1"], RC2)
    back = convert(there.content, RC2, DIALECTS["0.1"])
    assert case.expect == [[note.code, note.path] for note in there.notes if note.code != "assigned"]
    assert effective(document) == effective(back.content)
    assert ("changed" in {note.code for note in there.notes}) == bool(back.notes)
    assert [] == list(broken(Raw("back", back.content), RC2))


EXTENSIONS_NAMED_AS_IN_01 = {
    "id": "two", "tags": ["a"], "format": 1, "definition": "d", "definitions": [1], "createdtimeutc": "noon",
}  # fmt: skip


def test_an_extension_is_not_taken_for_a_member_of_01() -> None:
    """An extension of 1.0 that has the name of a member of 0.1 is held in a label, and comes back as it was."""
    both = EXTENSIONS_NAMED_AS_IN_01
    messages = {
        name: {"messageid": name, "protocol": "NATS", "protocoloptions": {"subject": name}} for name in ("one", "two")
    }
    messages["one"] |= {**both, "version": "nine", "labels": {"bare": ""}}
    group = {"messagegroupid": "h", "protocol": "NATS", **both, "updatedtimeutc": 1, "versions": {}}
    document = {"specversion": "1.0-rc2", "messagegroups": {"h": {**group, "messages": messages}}}
    there = convert(document, DIALECTS["0.1"])
    assert ("h", ["one", "two"]) == (there.content["id"], [one["id"] for one in there.content["definitions"]])
    assert "bare" == there.content["definitions"][0]["tags"]
    held = {note.path.removeprefix("/messagegroups/h/") for note in there.notes if note.code == "held"}
    assert {*both, "updatedtimeutc", "versions", "messages/one/version"} <= held
    assert {f"messages/one/{name}" for name in both} <= held
    back = convert(there.content, DIALECTS["1.0-rc2"]).content["messagegroups"]["h"]
    found = back.pop("messages")
    assert group == back
    for name, message in messages.items():
        assert message == {key: value for key, value in found[name].items() if key != "versionid"}


def test_a_value_that_was_changed_since_is_not_the_held_one() -> None:
    """A label holds a value as long as the document says it: another one is read by itself."""
    kept = {"envelopemetadata/subject": {"value": "x{my-name}"}, "protocoloptions/subject": {"value": "x{a-b}"}}
    held = {"1.0.properties": json.dumps(kept)}
    attributes_ = {"type": {"value": "m"}, "subject": {"value": "other"}}
    definition = {"id": "m", "format": "CloudEvents", "labels": held, "definition": {"attributes": attributes_}}
    assert {"value": "other"} == convert(definition, RC2, DIALECTS["0.1"]).content["envelopemetadata"]["subject"]
    sent = {"id": "m", "format": "NATS", "labels": held, "definition": {"pub": {"subject": {"value": "other"}}}}
    assert "other" == convert(sent, RC2, DIALECTS["0.1"]).content["protocoloptions"]["subject"]


@cases("dialects/conversions")
def test_what_is_not_told_is_not_respelled(case: Case) -> None:
    """A document that the report has no note about is the same in another version of 1.0, but for its label."""
    document, source, target = case.given["document"], DIALECTS[case.given["from"]], DIALECTS[case.given["to"]]
    found = convert(document, target, source)
    if source.modern and target.spec is not None and not found.notes:
        assert without_label(document) == without_label(found.content)


def test_every_difference_has_a_case() -> None:
    """The table of conversions has every row of the two tables of differences, and at least 120 cases."""
    found = read_cases("dialects/conversions")
    assert ROWS <= {case.spec for case in found}
    assert len(found) >= 120


@cases("dialects/unrecognised")
def test_a_document_of_no_dialect_is_refused(case: Case) -> None:
    """A document that is none of ours, or not of the one dialect that it says, is refused with its members named."""
    with pytest.raises(UsageError) as caught:
        detect(case.given)
    for words in case.expect:
        assert words in str(caught.value)


@cases("dialects/detected")
def test_a_dialect_is_recognised(case: Case) -> None:
    """A document's dialect is the one that its label names; what it contains tells where there is none, or several."""
    assert case.expect == detect(case.given).dialect.name


@pytest.mark.parametrize("seed", ["seed03", "seed04"])
def test_the_examples_of_the_older_texts(seed: str) -> None:
    """Each example is recognised, converts to 1.0-rc2 as expected, and back with equal meaning."""
    for case in read_cases(f"dialects/{seed}"):
        document = case.given["document"]
        dialect = detect(document).dialect
        assert case.expect["dialect"] == dialect.name, case.name
        found = convert(document, RC2)
        assert case.expect["document"] == found.content, case.name
        assert case.expect["notes"] == [[note.code, note.path] for note in found.notes], case.name
        before, after = there_and_back(document, dialect.name, RC2.name)
        assert before == after, case.name


@pytest.mark.parametrize(
    "document",
    [
        [],
        "text",
        7,
        {"definition": 3, "id": "x", "format": "NATS"},
        {"definitions": {"a": 1}, "specversion": "0.1"},
        {"specversion": "0.1", "id": "g"},
        {"specversion": "0.1", "id": "g", "format": "NATS", "definitions": [3]},
        {"id": "d", "format": "NATS", "versions": []},
        {"id": "d", "format": "NATS", "versions": [{"version": "x"}]},
        {"messagegroups": []},
        {"messagegroups": {"g": 3}},
        {"messagegroups": {"g": {"messages": {"m": 3}}}},
        {"metadata": 3, "binding": 3, "message": [], "labels": 3, "format": {}},
        {"messagegroups": {"g": {"id": "g", "messages": {"m": {"binding": "MQTT/5.0", "message": 3}}}}},
    ],
)
def test_a_document_that_is_none_is_refused(document: Any) -> None:
    """What is no document ends in the registry's error, or is carried over for its rules to judge: never in a crash."""
    refused = set()
    for target in WRITTEN:
        try:
            convert(document, DIALECTS[target])
        except RegistryError as error:
            refused.add(error.name)
        except UsageError:
            refused.add("none of ours")
    assert refused <= {"invalid_attribute", "none of ours"}


@cases("dialects/refused")
def test_nothing_of_two_is_lost(case: Case) -> None:
    """What a document has twice, and 1.0 could have once, is refused where it stands."""
    with pytest.raises(RegistryError) as refused:
        convert(case.given, RC2)
    assert case.expect == [refused.value.subject, refused.value.args_["name"]]


@pytest.mark.parametrize("labels", ["x", [1], 5, True])
def test_labels_of_a_group_in_parts_are_a_map(labels: Any) -> None:
    """Labels that are not a map are refused where a group of several formats is written as several groups."""
    group = {"labels": labels, "messages": {"a": {"protocol": "NATS"}, "b": {"protocol": "AMQP/1.0"}}}
    with pytest.raises(RegistryError) as refused:
        convert({"specversion": "1.0-rc2", "messagegroups": {"g": group}}, DIALECTS["0.1"])
    assert ("/messagegroups/g", "labels") == (refused.value.subject, refused.value.args_["name"])


def test_parts_of_a_group_become_one_again() -> None:
    """A group of several formats is written as several groups, and read back as one."""
    message = {"messages": {"a": {"protocol": "NATS"}, "b": {"protocol": "AMQP/1.0"}}}
    before, after = there_and_back({"messagegroups": {"g": message}}, "1.0-rc4", "0.1")
    assert before == after


def test_an_unknown_label_is_told() -> None:
    """A label that no dialect has is replaced with a note; one that belongs to another dialect is none."""
    found = convert({"specversion": "9.9", "messagegroups": {}}, RC2)
    assert [("changed", "/specversion")] == [(note.code, note.path) for note in found.notes]
    assert () == convert({"specversion": "1.0-rc4", "messagegroups": {"g": {"id": "g"}}}, RC2).notes


# --- laws -------------------------------------------------------------------------------------------------------------

names = st.text("abcdefgh", min_size=1, max_size=4)
texts = st.text("abc {}/-_+1é", max_size=8)
templates = st.fixed_dictionaries(
    {}, optional={"value": texts, "required": st.booleans(), "description": st.text("abc ", min_size=1, max_size=4)}
)
schemas = st.one_of(
    st.fixed_dictionaries({"value": names, "schematype": st.sampled_from(["Avro", "JSON", "Protobuf", "Own"])}),
    st.fixed_dictionaries({"schematype": st.just("JSON"), "schema": st.just({"type": "object"})}),
    st.fixed_dictionaries({"value": names}),
)
sections = {
    "CloudEvents": {"attributes": st.dictionaries(names, templates, max_size=3)},
    "AMQP": {
        "properties": st.fixed_dictionaries({}, optional={"subject": templates, "messageid": templates}),
        "applicationproperties": st.dictionaries(names, templates, max_size=2),
        "applicationdata": st.fixed_dictionaries({"dataschema": schemas}),
    },
    "MQTT": {
        "publish": st.fixed_dictionaries({"topicname": templates}, optional={"contenttype": templates}),
        "userproperty": st.dictionaries(names, templates, max_size=2),
        "payload": st.fixed_dictionaries({"dataschema": schemas}),
    },
    "NATS": {"pub": st.fixed_dictionaries({"subject": templates}, optional={"replyto": templates})},
}
definitions = st.sampled_from(sorted(sections)).flatmap(
    lambda form: st.fixed_dictionaries(
        {
            "id": names,
            "format": st.just(form),
            "definition": st.fixed_dictionaries({}, optional=sections[form]),
        },
        optional={
            "authority": names,
            "tags": st.sampled_from(["a", "a,b", "A b,c", "x y"]),
            "documentation": names,
            "relation": names,
            "version": st.integers(1, 9),
        },
    )
)


@given(definitions, st.sampled_from(WRITTEN))
def test_a_definition_of_01_survives_any_dialect(definition: dict[str, Any], target: str) -> None:
    """A definition of 0.1 means the same after going through any dialect that can be written."""
    before, after = there_and_back(definition, "0.1", target)
    assert before == after


properties = st.fixed_dictionaries(
    {},
    optional={
        "value": texts,
        "type": st.sampled_from(["string", "uritemplate", "integer", "any", "uri", "timestamp"]),
        "required": st.booleans(),
        "description": st.text("abc", min_size=1, max_size=3),
    },
)
messages = st.one_of(
    st.fixed_dictionaries(
        {"envelope": st.just("CloudEvents/1.0"), "envelopemetadata": st.dictionaries(names, properties, max_size=3)},
        optional={"envelopeoptions": st.just({"mode": "binary"}), "labels": st.dictionaries(names, names, max_size=2)},
    ),
    st.fixed_dictionaries(
        {
            "protocol": st.just("MQTT/5.0"),
            "protocoloptions": st.fixed_dictionaries(
                {"topic_name": names},
                optional={
                    "qos": st.integers(0, 2),
                    "retain": st.booleans(),
                    "user_properties": st.lists(
                        st.fixed_dictionaries({"name": names, "value": names}), min_size=1, max_size=3
                    ),
                },
            ),
        }
    ),
    st.fixed_dictionaries(
        {
            "protocol": st.just("HTTP"),
            "protocoloptions": st.fixed_dictionaries(
                {"path": names},
                optional={"query": st.lists(st.fixed_dictionaries({"name": names, "value": names}), min_size=1)},
            ),
        },
        optional={"datacontenttype": st.just("text/csv"), "dataschemaxid": st.just("/schemagroups/g/schemas/s")},
    ),
)


@given(messages, st.sampled_from(WRITTEN))
def test_a_message_survives_any_dialect(message: dict[str, Any], target: str) -> None:
    """A message of 1.0 means the same after going through any dialect that can be written."""
    before, after = there_and_back({"messageid": "m", **message}, "1.0-rc4", target)
    assert before == after


# Selectors that 0.1 has a format for, that it has none for, that only resemble one, and that are not ours.
envelopes = st.sampled_from(["CloudEvents/1.0", "SOAP/1.2"])
protocols = st.sampled_from(
    ["AMQP/1.0", "HTTP", "KAFKA", "MQTT/3.1.1", "MQTT/5.0", "NATS", "BunnyMQ/0.9.1", "Own", "NATS/9", "KAFKAESQUE"]
)
stated = {"envelope": envelopes, "protocol": protocols}
braced = st.text("ab{}?#-,+.", max_size=8)
attributes = st.fixed_dictionaries(
    {},
    optional={
        "value": braced,
        "type": st.sampled_from(["string", "uritemplate", "uri"]),
        "required": st.booleans(),
    },
)
grouped = st.fixed_dictionaries(
    {},
    optional={
        **stated,
        "envelopemetadata": st.dictionaries(st.sampled_from(["type", "subject", "own"]), attributes, max_size=2),
        "protocoloptions": st.fixed_dictionaries(
            {}, optional={"subject": braced, "topic_name": braced, "topic": braced, "path": braced}
        ),
        "labels": st.dictionaries(names, names, max_size=1),
    },
)
groups = st.fixed_dictionaries(
    {"messages": st.dictionaries(st.sampled_from(["a", "b"]), grouped, max_size=2)},
    optional={**stated, "labels": st.dictionaries(names, names, max_size=1)},
)


def effective(document: dict[str, Any]) -> Any:
    """What a document means, each message with the selectors that it has from its group."""
    content = read(document, RC2).content
    for group in content["messagegroups"].values():
        for message in group.get("messages", {}).values():
            for name in ("envelope", "protocol"):
                if group.get(name):
                    message.setdefault(name, group[name])
    return meaning(content)


@given(groups)
@example({"messages": {"a": {"protocol": "KAFKA", "protocoloptions": {"topic": "t"}}}})
@example({"messages": {"a": {"envelope": "CloudEvents/1.0", "envelopemetadata": {"subject": {"value": "x{my-name}"}}}}})
@example({"protocol": "HTTP", "messages": {"a": {"envelope": "CloudEvents/1.0"}}})
@example({"envelope": "SOAP/1.2", "messages": {"a": {"protocol": "NATS"}}})
@example({"protocol": "MQTT/3.1.1", "messages": {"a": {}}})
@example({"protocol": "NATS", "specversion": "ours", "messages": {"a": {"protocol": "NATS", "specversion": 2}}})
def test_a_group_survives_01_or_the_report_says_so(group: dict[str, Any]) -> None:
    """A group of 1.0 means the same after going through 0.1, unless something is told to be changed or lost."""
    document = {"specversion": "1.0-rc2", "messagegroups": {"g": group}}
    there = convert(document, DIALECTS["0.1"], RC2)
    back = convert(there.content, RC2, DIALECTS["0.1"])
    if not {"changed", "lost"} & {note.code for note in there.notes}:
        assert effective(document) == effective(back.content)


def test_an_extension_called_as_the_label_is_kept() -> None:
    """A group and a message of 1.0 may have an extension called `specversion`, which is a label of documents only."""
    group = {"protocol": "NATS", "specversion": "ours", "messages": {"a": {"protocol": "NATS", "specversion": "0.1"}}}
    there = convert({"specversion": "1.0-rc2", "messagegroups": {"g": group}}, DIALECTS["0.1"], RC2)
    assert ["held", "held"] == [note.code for note in there.notes]
    back = convert(there.content, RC2, DIALECTS["0.1"]).content["messagegroups"]["g"]
    assert ("ours", "0.1") == (back["specversion"], back["messages"]["a"]["specversion"])


@given(definitions)
def test_nothing_is_dropped_in_silence(definition: dict[str, Any]) -> None:
    """Every text of a definition is found in the converted document, or in a note."""
    found = convert(definition, RC2, DIALECTS["0.1"])
    shown = json.dumps([found.content, [note.message for note in found.notes]], ensure_ascii=False)
    for text in _texts({name: value for name, value in definition.items() if name not in ("format", "id")}):
        plain = text.replace("-", "_")
        wanted = (json.dumps(piece, ensure_ascii=False)[1:-1] for piece in (text, plain))
        doubled = (
            json.dumps(json.dumps(piece, ensure_ascii=False)[1:-1], ensure_ascii=False)[1:-1] for piece in (text,)
        )
        if "-" not in text and "," not in text:
            assert any(piece in shown for piece in (*wanted, *doubled)), text


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [] if value in ("JSON", "Avro", "Protobuf", "Own") else [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for member in members for text in _texts(member)]


@given(
    st.text(min_size=1, max_size=20).filter(
        lambda text: "%" not in text and not any(0xD800 <= ord(c) < 0xE000 for c in text)
    )
)
def test_an_id_can_be_escaped_and_read_back(text: str) -> None:
    """Any id becomes one that 1.0 takes, and comes back as the same; two ids never become one."""
    escaped = to_id(text)
    assert ID.fullmatch(escaped) or len(escaped) > 128
    assert SEGMENT.fullmatch(from_id(escaped))
    assert escaped == to_id(from_id(escaped))


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("m~2bab12cd", "m~2bab12cd"),
        ("a+b~deadbeef", "a~2bb~deadbeef"),
        ("m+ab12cd", "m~2b~61b12cd"),
        ("m~ab12cd", "m~7e~61b12cd"),
        ("m~deadbee", "m~7edeadbee"),
    ],
)
def test_the_end_of_a_kept_copy_s_id_is_the_same_in_both(text: str, id_: str) -> None:
    """A tilde and eight hex digits at an id's end are not escaped, and no escape looks like them."""
    assert (id_, text) == (to_id(text), from_id(id_))


@given(st.from_regex(re.compile(r"[a-fA-Z0-9_][a-z0-9~:.@_]{0,20}", re.ASCII), fullmatch=True))
@example("a~b")
@example("a~7eb")
@example("_~~2dx")
@example("_~~41")
@example("a~b~deadbeef")
@example("x~ff")
def test_an_id_of_10_is_found_by_the_one_that_01_shows(id_: str) -> None:
    """An id that 1.0 had first is a segment of a path in 0.1, and leads there to the same entity."""
    assert SEGMENT.fullmatch(from_id(id_))
    assert id_ == to_id(from_id(id_))


@pytest.mark.parametrize(
    ("id_", "shown"), [("a~b", "~~a~b"), ("a~", "~~a~"), ("a~B1", "~~a~B1"), ("a~41", "~~a~41"), ("a~7eb", "a~b")]
)
def test_an_id_that_no_other_becomes(id_: str, shown: str) -> None:
    """A tilde of 0.1 is an escape in 1.0 as well; an id of 1.0 that no id of 0.1 becomes has two tildes before it."""
    assert shown == from_id(id_)


WORDS = """id format binding metadata message definition definitions versions version attributes type value labels tags
meta messagegroups messages schemagroups schemas endpoints config options usage query key headers properties publish pub
payload dataschema schematype schema envelope protocol envelopemetadata protocoloptions specversion xref
definitionGroups schemaGroups deprecated basemessageurl authorization header topic-name user-properties user_properties
userproperty mqttversion applicationdata dataschemauri datacontenttype compatibility"""
words = st.sampled_from(WORDS.split())
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "0.1", "0.5-wip", "CloudEvents", "MQTT", "AMQP", "Kafka", "HTTP/1.1", "#/a", "{a-b}"]),
)  # fmt: skip
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=5)),
    max_leaves=25,
)


@example({"messagegroups": "0.1", "envelopemetadata": ""}, "1.0-rc2-2025-06", "1.0-rc2")
@example({"compatibility": [], "definitions": {}, "schemagroups": [None]}, "0.5-wip", "1.0-rc2")
@example({"version": {}, "envelope": {}, "user-properties": {}}, "1.0-rc1", "0.1")
@given(anything, st.sampled_from(sorted(DIALECTS)), st.sampled_from(WRITTEN))
def test_no_document_breaks_a_conversion(document: Any, source: str, target: str) -> None:
    """Whatever JSON value is given as a document of whatever dialect, it is converted or refused as an attribute."""
    refused = set()
    for chosen in (DIALECTS[source], None):
        try:
            convert(document, DIALECTS[target], chosen)
        except RegistryError as error:
            refused.add(error.name)
        except UsageError:
            refused.add("none of ours")
    assert refused <= {"invalid_attribute", "none of ours"}
