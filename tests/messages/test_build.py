"""Messages built by their definitions, case by case."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from signalbook.errors import UsageError
from signalbook.messages.catalog import Catalog, CatalogError
from signalbook.messages.fill import Origin
from tests.cases import Case, cases

XID = "/messagegroups/g/messages/m"
ORIGIN = Origin(lambda: datetime(2024, 5, 17, 12, 30, tzinfo=UTC), lambda: "new-id")


def catalog_of(definition: dict[str, Any], **more: Any) -> Catalog:
    """A catalog of one definition, with the schemas of the group s, reached by some addresses."""
    schemas = {"s": {"schemas": more.pop("schemas", {})}}
    document = {"messagegroups": {"g": {"messages": {"m": definition}}}, "schemagroups": schemas}
    return Catalog.from_documents(document, **more)


@cases("messages/build")
def test_build(case: Case) -> None:
    """A build gives the event and the message, or everything that is missing and wrong."""
    given = dict(case.given)
    more = {name: given.pop(name) for name in ("roots", "schemas") if name in given}
    catalog = catalog_of(given.pop("definition"), **more)
    built = catalog.message(XID).build(**given, origin=ORIGIN)
    written = json.loads(built.to_bytes())
    expected = {"ok": "problems" not in case.expect, **case.expect}
    written["problems"] = [[one["path"], one["code"]] for one in written.get("problems", ())]
    assert {"problems": [], **expected} == written
    if built.ok:
        answer = catalog.match(built.message or built.cloudevent)
        assert ("matched", XID) == (answer.outcome.value, answer.definition)


def test_an_unknown_definition_is_refused() -> None:
    """A handle of a definition that is not there cannot be had."""
    with pytest.raises(CatalogError, match="is not a message of the catalog"):
        catalog_of({}).message("/messagegroups/g/messages/other")


def test_an_unknown_protocol_is_refused() -> None:
    """A protocol that nobody knows is a wrong request, not a finding."""
    with pytest.raises(UsageError, match="CARRIERPIGEON"):
        catalog_of({"envelope": "CloudEvents/1.0"}).message(XID).build(protocol="CARRIERPIGEON")


@pytest.mark.parametrize(
    ("framing", "data", "schemaid", "words"),
    [
        ("confluent", 1, "7", 'schemaid is "7", but has to be a whole number'),
        ("confluent", 1, True, "schemaid is True, but has to be a whole number"),
        ("confluent", 1, 1.5, "schemaid is 1.5, but"),
        ("confluent", 1, -1, "schemaid is -1, but"),
        ("confluent", 1, 1 << 32, "from 0 to 4294967295"),
        ("none", 1, 3, "the payload has no frame to hold it"),
        (None, 1, 3, "the payload has no frame to hold it"),
        ("confluent", b"\0\0\0\0\x071", 3, "framed already, with the schema id 7, but schemaid is 3"),
    ],
)
def test_a_schemaid_that_no_frame_takes_is_refused(framing: str | None, data: Any, schemaid: Any, words: str) -> None:
    """An id for Confluent's frame that is not one, or that would be lost, is a wrong request."""
    definition: dict[str, Any] = {"protocol": "KAFKA", "protocoloptions": {"topic": "t"}}
    definition |= {"dataschemaformat": "JsonSchema/draft-07", "dataschema": {"type": "integer"}}
    definition |= {} if framing is None else {"dataschemaframing": framing}
    with pytest.raises(UsageError, match=words):
        catalog_of(definition).message(XID).build(data=data, schemaid=schemaid)


def test_ids_and_times_are_new_each_time() -> None:
    """Without an origin of its own, a build has a new id and the present time."""
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}, "source": {"value": "/s"}, "time": {}},
    }
    handle = catalog_of(definition).message(XID)
    one, other = handle.build().cloudevent, handle.build().cloudevent
    assert one is not None
    assert other is not None
    assert one.id != other.id
    assert abs(datetime.now(UTC) - datetime.fromisoformat(str(one["time"]))).total_seconds() < 60
    assert (XID, definition) == (handle.xid, dict(handle.document))


def test_the_dataschema_of_an_event_is_inferred() -> None:
    """An absolute `dataschemauri` that the catalog has is what the event says (message/spec.md, CloudEvents/1.0)."""
    uri = "https://example.com/schemagroups/g/schemas/s"
    schema = {"self": uri, "format": "JsonSchema/draft-07", "schema": {"type": "integer"}}
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}, "source": {"value": "/s"}},
        "dataschemaformat": "JsonSchema/draft-07",
        "dataschemauri": uri,
    }
    documents = {
        "messagegroups": {"g": {"messages": {"m": definition}}},
        "schemagroups": {"g": {"schemas": {"s": schema}}},
    }
    built = Catalog.from_documents(documents).message(XID).build(data=5)
    assert built.cloudevent is not None
    assert (uri, 5) == (built.cloudevent["dataschema"], built.cloudevent.value())


@pytest.mark.parametrize(
    "definition",
    [
        {
            "protocol": "HTTP",
            "protocoloptions": {"path": "/a", "headers": [{"name": "Content-Encoding", "value": "x-own"}]},
        },
        {"protocol": "AMQP/1.0", "protocoloptions": {"properties": {"content-encoding": {"value": "gzip, x-own"}}}},
        {"protocol": "KAFKA", "protocoloptions": {"topic": "t", "headers": {"content-encoding": {"value": "x-{own}"}}}},
    ],
)
@pytest.mark.parametrize("envelope", ["", "CloudEvents/1.0"])
def test_a_payload_in_an_encoding_that_nobody_knows(definition: dict[str, Any], envelope: str) -> None:
    """Bytes are taken for the encoded payload, which no schema is applied to; a value cannot be encoded."""
    definition = {**definition, "dataschemaformat": "JsonSchema/draft-07", "dataschema": {"type": "integer"}}
    if envelope:
        metadata = {"type": {"value": "t"}, "source": {"value": "/s"}}
        definition |= {"envelope": envelope, "envelopemetadata": metadata, "envelopeoptions": {"mode": "binary"}}
    catalog = catalog_of(definition)
    context = {"own": "own"} if definition["protocol"] == "KAFKA" else {}
    built = catalog.message(XID).build(data=b"\x07\x01", context=context)
    assert (True, ("payload",)) == (built.ok, built.unchecked), built.problems
    assert built.message is not None
    assert b"\x07\x01" == built.message.payload
    assert ("matched", ("payload",)) == (catalog.match(built.message).outcome, catalog.match(built.message).unchecked)
    (problem,) = catalog.message(XID).build(data=5, context=context).problems
    assert 'the content encoding "x-own" cannot be applied here; give bytes that have it already' in problem.message
    if envelope:
        given = {**definition, "envelopeoptions": {"mode": "structured"}}
        problems = catalog_of(given).message(XID).build(data=b"\x07\x01", context=context).problems
        assert any("send the event in binary mode" in one.message for one in problems), problems


@pytest.mark.parametrize(
    ("named", "roots", "expected"),
    [
        ({"dataschemauri": "/schemagroups/s/schemas/n"}, ["https://r.example/x"], "/schemagroups/s/schemas/n"),
        ({"dataschemauri": "schemagroups/s/schemas/n"}, ["https://r.example/x/"], "/schemagroups/s/schemas/n"),
        ({"dataschemaxid": "/schemagroups/s/schemas/n"}, ["https://r.example/x"], "/schemagroups/s/schemas/n"),
        ({"dataschemaxid": "/schemagroups/s/schemas/n"}, [], None),
    ],
)
@pytest.mark.parametrize("is_said_twice", [False, True])
def test_the_dataschema_of_a_mapped_event(
    named: dict[str, str], roots: list[str], expected: str | None, is_said_twice: bool
) -> None:
    """A native message that is an event by its definition has the `dataschema` that a built event has."""
    stated = {"dataschema": {"value": named["dataschemauri"]}} if is_said_twice and "dataschemauri" in named else {}
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}, "source": {"value": "/s"}, **stated},
        "protocol": "KAFKA",
        "protocoloptions": {"topic": "t"},
        **named,
    }
    schemas = {"n": {"format": "JsonSchema/draft-07", "schema": {"type": "integer"}}}
    catalog = catalog_of(definition, schemas=schemas, roots=roots)
    built = catalog.message(XID).build(data=5)
    assert built.cloudevent is not None
    native = {"protocol": "KAFKA", "topic": "t", "payload": "5", "headers": {"content-type": "application/json"}}
    wanted = None if expected is None else f"https://r.example/x{expected}"
    for found in (
        built.cloudevent,
        catalog.match(native).cloudevent,
        catalog.validate(native, XID).cloudevent,
        catalog.addressed(*roots).match(native).cloudevent,
    ):
        assert found is not None
        assert wanted == found.get("dataschema")


@pytest.mark.parametrize(
    ("protocol", "field", "template"),
    [("HTTP", "path", "/{a}/{b}"), ("NATS", "subject", "s.{a}.{b}"), ("MQTT/5.0", "topic_name", "t/{a}/{b}")],
)
def test_a_gap_is_named_by_its_placeholder(protocol: str, field: str, template: str) -> None:
    """What needs a value says for which name, in the same words whatever the protocol is."""
    built = catalog_of({"protocol": protocol, "protocoloptions": {field: template}}).message(XID).build()
    assert {name: f"{field} needs a value for {name}" for name in "ab"} == {
        name: problem.message for name, problem in zip(built.missing, built.problems, strict=True)
    }


def test_data_that_has_no_form() -> None:
    """What JSON cannot hold is a problem; bytes that are no text stay bytes."""
    handle = catalog_of({"envelope": "CloudEvents/1.0", "datacontenttype": "application/xml"}).message(XID)
    given = {"type": "t", "source": "/s"}
    assert ["payload"] == [one.code for one in handle.build(data=object(), attributes=given).problems]
    built = handle.build(data=b"\xff", attributes=given)
    assert built.cloudevent is not None
    assert b"\xff" == built.cloudevent.value()
    plain = catalog_of({"envelope": "CloudEvents/1.0"}).message(XID)
    assert ["payload"] == [one.code for one in plain.build(data=object(), attributes=given).problems]


def test_a_thousand_placeholders() -> None:
    """A definition with a thousand placeholders names all that are missing, and is built in one go."""
    topic = "/".join(f"{{p{number}}}" for number in range(1000))
    handle = catalog_of({"protocol": "MQTT/5.0", "protocoloptions": {"topic_name": f"t/{topic}"}}).message(XID)
    assert tuple(f"p{number}" for number in range(1000)) == handle.build().missing
    built = handle.build(context={f"p{number}": number for number in range(1000)})
    assert built.message is not None
    assert "t/" + "/".join(map(str, range(1000))) == built.message.get("topic_name")


def test_values_of_ten_mebibytes() -> None:
    """A value of 10 MiB is put in, and comes back."""
    handle = catalog_of({"protocol": "KAFKA", "protocoloptions": {"topic": "t", "key": "k-{a}-z"}}).message(XID)
    value = "x" * (10 << 20)
    built = handle.build(context={"a": value})
    assert built.message is not None
    assert value == catalog_of(dict(handle.document)).match(built.message).context["a"]


def test_a_result_is_plain_json() -> None:
    """What `to_json` gives is what `to_bytes` writes, for any writer of JSON."""
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}, "source": {"value": "/s"}},
    }
    built = catalog_of(definition).message(XID).build(data={"a": [1, "b"]}, origin=ORIGIN)
    assert json.loads(built.to_bytes()) == json.loads(json.dumps(built.to_json()))
    assert {"definition": XID, **built.to_json()} == json.loads(built.to_bytes(definition=XID))


def test_numbers_stay_exact_in_bytes() -> None:
    """A number that no double keeps is written as it was given."""
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}, "source": {"value": "/s"}},
    }
    built = catalog_of(definition).message(XID).build(data={"a": 10**30})
    assert f'"data":{{"a":{10**30}}}'.encode() in built.to_bytes()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (float("nan"), [("/data", "is nan, which is not a number of JSON")]),
        ({"a": [1, float("-inf")]}, [("/data/a/1", "is -inf, which is not a number of JSON")]),
        ({"a": {1: 2}}, [("/data/a", "has the name 1, which is not a text")]),
        ({"a": Decimal("NaN"), "b/c": float("inf")}, [("/data/a", ...), ("/data/b~1c", ...)]),
        ((1, 2, {"a": None}), []),
    ],
)
@pytest.mark.parametrize("schema", [{}, {"dataschemaformat": "JsonSchema/draft-07", "dataschema": {}}])
def test_data_that_json_has_not(data: Any, expected: list[tuple[str, Any]], schema: dict[str, Any]) -> None:
    """Numbers and names that JSON has not are problems, not null or another name."""
    metadata = {"type": {"value": "t"}, "source": {"value": "/s"}}
    definition = {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata, **schema}
    built = catalog_of(definition).message(XID).build(data=data)
    found = [(one.path, one.message) for one in built.problems if one.code == "payload"]
    assert [path for path, _ in expected] == [path for path, _ in found]
    assert all(words in (..., said) for (_, words), (_, said) in zip(expected, found, strict=True))
    assert built.ok == (not expected)


def test_data_that_holds_itself_is_refused() -> None:
    """A value without an end is no JSON value."""
    endless: list[Any] = []
    endless.append(endless)
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}, "source": {"value": "/s"}},
    }
    built = catalog_of(definition).message(XID).build(data=endless)
    assert [("/data", "payload")] == [(one.path, one.code) for one in built.problems]


def words(definition: dict[str, Any], **values: Any) -> list[str]:
    """What a build says."""
    return [one.message for one in catalog_of(definition).message(XID).build(**values).problems]


def test_the_words_of_problems() -> None:
    """Values stand in words as JSON has them, and a property is not named twice."""
    metadata = {
        "type": {"value": "t"},
        "source": {"value": "/s"},
        "level": {"type": "integer", "required": True},
        "flag": {"type": "boolean", "value": True},
    }
    definition = {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata}
    assert ["level needs a value", "value (false) contradicts the definition's (true)"] == words(
        definition, attributes={"flag": False}
    )
    mqtt = {"protocol": "MQTT/5.0", "protocoloptions": {"topic_name": "doors/{door}"}}
    assert ["topic_name needs a value for door", 'the definition has no placeholder "dor"; it has "door"'] == words(
        mqtt, context={"dor": "front"}
    )
    assert ['the definition has no placeholder "zzz"'] == words(mqtt, context={"door": "front", "zzz": 1})
    assert ["door is nan, which is not a number"] == words(mqtt, context={"door": float("nan")})
    assert ["retain is a field of MQTT/5.0: give it under protocol"] == words(
        mqtt, context={"door": "front"}, attributes={"retain": True}
    )
