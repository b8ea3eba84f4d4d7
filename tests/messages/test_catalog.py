import json
import zlib
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest

from signalbook.cloudevents import CloudEvent
from signalbook.messages import Catalog, CatalogError, Outcome
from signalbook.messages.observe import MessageKind, Observed
from signalbook.protocols import Message
from tests.schemas.bounds import bounded

A = "/messagegroups/g/messages/a"
B = "/messagegroups/g/messages/b"
EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "x"}


def event_of(kind: str, **more: Any) -> dict[str, Any]:
    """A definition of events of a type."""
    return {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": kind}}, **more}


def catalog_of(**messages: Any) -> Catalog:
    """A catalog of one group."""
    return Catalog.from_documents({"messagegroups": {"g": {"messages": messages}}})


@pytest.mark.parametrize(
    "message",
    [EVENT, json.dumps(EVENT), json.dumps(EVENT).encode(), CloudEvent(EVENT)],
    ids=["value", "text", "bytes", "event"],
)
def test_an_event_in_every_form(message: Any) -> None:
    """An event may be given as a value, a text, bytes or an event."""
    answer = catalog_of(a=event_of("x")).match(message)
    assert (Outcome.MATCHED, A, EVENT) == (answer.outcome, answer.definition, answer.to_json()["cloudevent"])


def test_a_message_of_a_protocol_that_nobody_knows() -> None:
    """A message that was made by hand and has no protocol of ours is malformed, not an error."""
    assert Outcome.MALFORMED is catalog_of(a=event_of("x")).match(Message("SMTP", {})).outcome


def test_the_id_of_a_frame_is_kept() -> None:
    """Confluent's schema id stays with the answer."""
    definition = {"protocol": "KAFKA", "protocoloptions": {"topic": "t"}, "dataschemaformat": "Avro/1.11.0"}
    catalog = catalog_of(a={**definition, "dataschema": {"type": "string"}})
    answer = catalog.match(Message("KAFKA", {"topic": "t"}, b"\0\0\0\0\x07\x04hi"))
    assert (True, 7, "hi") == (answer.matched, answer.schemaid, answer.checked.value if answer.checked else None)


def test_questions_that_cannot_be_taken() -> None:
    """An unknown definition or scope, and a batch where one event is expected, are errors that say so."""
    catalog = catalog_of(a=event_of("x"))
    for ask in (
        lambda: catalog.definition("/messagegroups/g/messages/none"),
        lambda: catalog.match(EVENT, ["/messagegroups/none"]),
        lambda: catalog.match(json.dumps([EVENT, EVENT])),
        lambda: catalog.validate(json.dumps([]), A),
    ):
        with pytest.raises(CatalogError):
            ask()


# Two spellings of one option with different values, which only the protocol tells.
TWICE = {"payload_format": 1, "payload_format_indicator": 0}


@pytest.mark.parametrize(
    ("unusable", "path"),
    [
        ({"basemessage": A}, "/basemessage"),
        ({"meta": {"xref": A}}, "/meta/xref"),
        ({"meta": {"xref": B}}, "/meta/xref"),
        ({"basemessage": "/x/y", "basemessageuri": "/x/z"}, "/basemessageuri"),
        ({"basemessage": "/messagegroups/g/messages/mqtt", "protocoloptions": TWICE}, "/protocoloptions"),
    ],
    ids=["a loop", "an alias of itself", "an alias of nothing", "two spellings", "two spellings by the base"],
)
def test_what_is_wrong_with_a_definition_has_a_code_of_answers(unusable: dict[str, Any], path: str) -> None:
    """Every problem that an answer has is of the closed list, those of the definition itself too."""
    catalog = catalog_of(a=unusable, mqtt={"protocol": "MQTT/5.0", "protocoloptions": {"topic_name": "t"}})
    problems = catalog.validate(EVENT, A).problems
    assert [(path, "malformed")] == [(one.path, one.code) for one in problems]


def test_a_group_that_makes_its_message_unusable() -> None:
    """Options that cannot be spelled by the group's protocol are a problem of that definition alone."""
    group = {"protocol": "MQTT/5.0", "messages": {"a": {"protocoloptions": TWICE}, "b": event_of("x")}}
    catalog = Catalog.from_documents({"messagegroups": {"g": group}})
    assert (B, [A]) == (catalog.match(EVENT).definition, list(catalog.problems))


@pytest.mark.parametrize(
    "message",
    [
        *(b"[oops", b"[", '["x"]', '["x", 1]', f"[{json.dumps(EVENT)}, ", "", "null", "\ud800", "[\ud800"),
        *(-1, 10**12, None, 1.5, True, object(), EVENT.keys),
        *({**EVENT, "data": float("nan")}, {**EVENT, "data": {1: 2}}, {**EVENT, "data": {1, 2}}),
        Message("HTTP", {"method": "POST", "headers": (("content-type", "application/cloudevents-batch+json"),)}, b"["),
    ],
    ids=lambda message: repr(message) if isinstance(message, str | bytes) else type(message).__name__,
)
def test_what_is_no_message_is_malformed(message: Any) -> None:
    """Whatever is given and is neither an event nor a message is answered, by a catalog and by one definition."""
    catalog = catalog_of(a=event_of("x"))
    for answer in (catalog.match(message), catalog.validate(message, A)):
        assert (Outcome.MALFORMED, {"malformed"}) == (answer.outcome, {one.code for one in answer.problems})


@pytest.mark.parametrize(
    "message",
    [
        bytearray(json.dumps(EVENT).encode()),
        memoryview(json.dumps(EVENT).encode()),
        MappingProxyType(EVENT),
        {**EVENT, "data": [10**30, Decimal("1.10"), None]},
    ],
    ids=["bytearray", "memoryview", "mapping", "exact numbers"],
)
def test_other_forms_of_an_event(message: Any) -> None:
    """Other bytes and mappings are taken too, and numbers that JSON can write."""
    assert catalog_of(a=event_of("x")).match(message).matched


def test_several_messages_at_once() -> None:
    """A list or any iterable has an answer for each of its messages, in their order; so has a batch among them."""
    catalog = catalog_of(a=event_of("x"))
    other = {**EVENT, "type": "y"}
    batch = json.dumps([other, EVENT])
    given: list[Any] = [EVENT, other, json.dumps(EVENT).encode(), CloudEvent(EVENT), batch, [EVENT], "x"]
    expected = ["matched", "unexpected", "matched", "matched", "unexpected", "matched", "malformed", "malformed"]
    assert expected == [one.outcome.value for one in catalog.match_all(given)]
    assert expected == [one.outcome.value for one in catalog.match_all(iter(given))]
    validated = [one.replace("unexpected", "nonconformant") for one in expected]
    assert validated == [one.outcome.value for one in catalog.validate_all((one for one in given), A)]
    assert [] == catalog.match_all([])


@pytest.mark.parametrize(
    "batch",
    [[EVENT], [], json.dumps([EVENT]), bytearray(b"[]"), iter([EVENT])],
    ids=["list", "empty", "text", "bytearray", "iterator"],
)
def test_one_answer_about_a_batch(batch: Any) -> None:
    """`match` and `validate` answer about one message; of a batch they say what to call."""
    catalog = catalog_of(a=event_of("x"))
    with pytest.raises(CatalogError, match="match_all"):
        catalog.match(batch)
    with pytest.raises(CatalogError, match="validate_all"):
        catalog.validate(batch, A)


def test_the_digest_says_what_the_author_said() -> None:
    """Epochs, times, counts and the registry's own URLs do not count; any other word does."""
    plain = {"messagegroups": {"g": {"messages": {"a": event_of("x", basemessage=B)}}}}
    message = event_of("x", basemessageuri=B, messageid="a", versionid="1", epoch=3, createdat="2026-01-01T00:00:00Z")
    served = {
        "specversion": "1.0-rc4",
        "registryid": "r",
        "epoch": 7,
        "self": "https://r.example.com/",
        "messagegroupsurl": "https://r.example.com/messagegroups",
        "messagegroupscount": 1,
        "messagegroups": {
            "g": {
                "messagegroupid": "g",
                "self": "https://r.example.com/messagegroups/g",
                "messagesurl": "https://r.example.com/messagegroups/g/messages",
                "messagescount": 1,
                "messages": {"a": {**message, "self": "https://r.example.com/x", "metaurl": "m", "isdefault": True}},
            }
        },
    }
    other = {"messagegroups": {"g": {"messages": {"a": event_of("y", basemessage=B)}}}}
    digests = [Catalog.from_documents(document).digest for document in (plain, served, other)]
    assert digests[0] == digests[1] != digests[2]


def test_an_update_compiles_only_what_changed() -> None:
    """A definition that is the same keeps its constraints, and a schema that is the same is not read again."""
    schema = {"dataschemaformat": "JsonSchema/draft-07", "dataschema": {"type": "integer"}}
    before = catalog_of(a=event_of("x", **schema), b=event_of("y"))
    known = before.schema(A)
    changed = {"a": event_of("x", **json.loads(json.dumps(schema))), "b": event_of("z")}
    after = before.updated({"messagegroups": {"g": {"messages": changed}}})
    assert before.compiled(A).on_envelope is after.compiled(A).on_envelope
    assert before.compiled(B).on_envelope is not after.compiled(B).on_envelope
    assert known is after.schema(A)
    assert after.match({**EVENT, "type": "z"}).matched


def test_a_schema_is_read_again_when_what_it_refers_to_changed() -> None:
    """A schema that asked for another document is read again where that document is another."""

    def document(kind: str) -> dict[str, Any]:
        referred = {"format": "JsonSchema/draft-07", "schema": {"type": kind}}
        schema = {"dataschemaformat": "JsonSchema/draft-07", "dataschema": {"$ref": "/schemagroups/s/schemas/n"}}
        messages = {"a": event_of("x", **schema)}
        return {"messagegroups": {"g": {"messages": messages}}, "schemagroups": {"s": {"schemas": {"n": referred}}}}

    catalog = Catalog.from_documents(document("integer"))
    assert catalog.match({**EVENT, "data": 1}).matched
    updated = catalog.updated(document("string"))
    assert (False, True) == (
        updated.match({**EVENT, "data": 1}).matched,
        updated.match({**EVENT, "data": "s"}).matched,
    )


def test_every_value_has_its_origin() -> None:
    """Each value of a materialised definition names the definition that it comes from."""
    base = event_of("x", dataschemaformat="JsonSchema/draft-07", dataschema={"type": "object"})
    nearer = {"basemessage": A, "envelopemetadata": {"subject": {"required": True}}, "protocol": "KAFKA"}
    origins = catalog_of(a=base, b=nearer).definition(B).origins()
    expected = {
        "/envelope": A,
        "/envelopemetadata/type/value": A,
        "/envelopemetadata/subject/required": B,
        "/dataschemaformat": A,
        "/dataschema": A,
        "/basemessage": B,
        "/protocol": B,
    }
    assert expected == origins


def test_bases_that_cannot_be_followed_are_notes() -> None:
    """A base that is missing or elsewhere is noted; one that was fetched is merged."""
    uri = "https://example.com/messagegroups/g/messages/m"
    catalog = catalog_of(
        a=event_of("x", basemessage="/messagegroups/g/messages/none"), b=event_of("y", basemessage=uri)
    )
    assert ["dangling", "external"] == [catalog.definition(xid).notes[0].code for xid in (A, B)]
    document = {"messagegroups": {"g": {"messages": {"b": {"basemessageuri": uri}}}}}
    fetched = Catalog.from_documents(document, bases={uri: event_of("y")})
    assert (True, (uri,)) == (fetched.match({**EVENT, "type": "y"}).matched, fetched.definition(B).derives_from)


def test_chains_and_loops_are_bounded() -> None:
    """A chain of a thousand bases and a loop are problems of those definitions alone, at once, in a code of answers."""
    chain = {f"m{n}": {"basemessage": f"/messagegroups/g/messages/m{n + 1}"} for n in range(1000)}
    with bounded(10):
        catalog = catalog_of(**chain, m1000=event_of("x"), loop={"basemessage": "/messagegroups/g/messages/loop"})
    assert {"malformed"} == {problems[0].code for problems in catalog.problems.values()}
    assert 901 + 1 == len(catalog.problems)
    answer = catalog.validate(EVENT, "/messagegroups/g/messages/loop")
    assert (Outcome.NONCONFORMANT, [("/basemessage", "malformed")]) == (
        answer.outcome,
        [(one.path, one.code) for one in answer.problems],
    )
    assert "/messagegroups/g/messages/m901" == catalog.match(EVENT).definition


def test_hostile_values_take_no_time() -> None:
    """Ten mebibytes in a header, a thousand placeholders, and schemas made to hurt: an answer within seconds."""
    long = "-" * 10_000_000
    template = "-".join(f"{{p{n}}}" for n in range(1000))
    kafka = {"protocol": "KAFKA", "protocoloptions": {"topic": "t", "headers": {"h": {"value": template + "x"}}}}
    deep: Any = {}
    for _ in range(200):
        deep = {"properties": {"a": deep}}
    hostile = [
        {"pattern": "^(a+)+$"},
        {"$ref": "#"},
        {"$ref": "https://example.com/never"},
        deep,
        {"enum": list(range(100_000))},
    ]
    broken = {
        f"h{n}": event_of(f"h{n}", dataschemaformat="JsonSchema/draft-07", dataschema=schema)
        for n, schema in enumerate(hostile)
    }
    catalog = catalog_of(a=kafka, b=event_of("x"), **broken)
    with bounded(20):
        answer = catalog.match(Message("KAFKA", {"topic": "t", "headers": (("h", long.encode()),)}))
        assert [("/protocoloptions/headers/h", "template")] == [(one.path, one.code) for one in answer.problems]
        assert len(answer.problems[0].message) < 10_000
        for number in range(len(hostile)):
            catalog.match({**EVENT, "type": f"h{number}", "data": "a" * 40 + "!"})
        assert catalog.match(EVENT).matched


def test_a_bomb_is_not_unpacked() -> None:
    """A payload that would become larger than the bound is a payload problem."""
    packed = zlib.compress(b"0" * (80 * 1024 * 1024), 9)
    http = {"protocol": "HTTP", "protocoloptions": {"path": "/p"}, "dataschemaformat": "JsonSchema/draft-07"}
    catalog = catalog_of(a={**http, "dataschema": True})
    message = Message("HTTP", {"method": "GET", "path": "/p", "headers": (("content-encoding", "deflate"),)}, packed)
    answer = catalog.match(message)
    assert [("/data", "payload")] == [(one.path, one.code) for one in answer.problems]
    assert "larger" in answer.problems[0].message


def test_the_cost_of_a_match_does_not_grow_with_the_catalog() -> None:
    """Of ten thousand definitions with templates for keys, an index gives the few that a message may mean."""
    messages = {
        f"m{n}": {"protocol": "NATS", "protocoloptions": {"subject": f"{{tenant}}.order{n}.{{id}}"}}
        for n in range(10_000)
    }
    catalog = catalog_of(**messages)
    message = Message("NATS", {"subject": "acme.order77.9"})
    assert {"tenant": "acme", "id": "9"} == catalog.match(message).context
    found = catalog.scope().index(MessageKind.NATIVE, "NATS").find(Observed(message, None))
    assert ["/messagegroups/g/messages/m77"] == [plan.compiled.definition.xid for same in found for plan in same.plans]


def test_the_nearest_of_many() -> None:
    """In a large catalog the nearest definitions are those that share a rare word with the message."""
    messages = {f"m{n}": event_of(f"com.example.order{n}.placed") for n in range(500)}
    kafka = {"protocol": "KAFKA", "protocoloptions": {"topic": "rare-{x}"}}
    amqp = {"protocol": "AMQP/1.0", "protocoloptions": {"properties": {"subject": {"value": "scarce"}}}}
    catalog = catalog_of(**messages, kafka=kafka, amqp=amqp)
    near = catalog.match({**EVENT, "type": "org.example.order77"}).candidates
    assert "/messagegroups/g/messages/m77" == near[0].definition
    for message in (
        Message("KAFKA", {"topic": "rare", "headers": (("a", "b"),)}),
        Message("AMQP/1.0", {"properties": {"subject": "x", "to": "scarce"}}),
    ):
        answer = catalog.match(message)
        named = message.protocol.partition("/")[0].lower()
        assert (Outcome.UNEXPECTED, f"/messagegroups/g/messages/{named}") == (
            answer.outcome,
            answer.candidates[0].definition,
        )


def test_other_keys_are_not_overlooked() -> None:
    """An event whose type one definition has alone may have the key of another: both are asked each time."""
    by_subject = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"subject": {"value": "s"}}}
    by_template = event_of("x{rest}")
    for other, event in ((by_subject, {**EVENT, "subject": "s"}), (by_template, {**EVENT, "type": "xy"})):
        catalog = catalog_of(a=event_of(event["type"]), b=other)
        document = json.dumps(event).encode()
        assert [Outcome.AMBIGUOUS] * 3 == [catalog.match(document).outcome for _ in range(3)]
