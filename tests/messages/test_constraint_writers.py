"""Payloads in Confluent's frame, read by the schema that wrote them."""

from __future__ import annotations

import io
import json
from typing import Any
from uuid import UUID

import fastavro
import pytest

from signalbook import Catalog, SchemaPolicy
from signalbook.errors import Problem
from signalbook.messages.answer import Answer
from signalbook.protocols import Message

ORDERS = "/schemagroups/shop/schemas/order"
XID = "/messagegroups/shop/messages/order"
GUID = "00000000-0000-0000-0000-00000000000"
INTS = [{"name": name, "type": "int"} for name in "abcde"]


def record(*fields: Any, name: str = "Order") -> dict[str, Any]:
    """An Avro record with fields of the type int, or those that are given."""
    members = [{"name": one, "type": "int"} if isinstance(one, str) else one for one in fields]
    return {"type": "record", "name": name, "fields": members}


def version(schema: Any, schemaid: int | None, format_name: str = "Avro/1.11") -> dict[str, Any]:
    """A version of a schema with its id, and a guid that is like it."""
    ids = {} if schemaid is None else {"confluentid": schemaid, "confluentguid": f"{GUID}{schemaid}"}
    return {"format": format_name, "schema": schema, **ids}


def document(*versions: dict[str, Any], **definition: Any) -> dict[str, Any]:
    """A catalog of one message, whose schema has these versions, the last of them the default."""
    numbered = {str(number): one for number, one in enumerate(versions, 1)}
    message = {
        "protocol": "KAFKA", "protocoloptions": {"topic": "orders"}, "dataschemaxid": ORDERS,
        "dataschemaformat": versions[-1]["format"], "dataschemaframing": "confluent", **definition,
    }  # fmt: skip
    schema = {"versions": numbered, "meta": {"defaultversionid": str(len(versions))}}
    return {
        "schemagroups": {"shop": {"schemas": {"order": schema}}},
        "messagegroups": {"shop": {"messages": {"order": message}}},
    }


def encoded(schema: Any, value: Any) -> bytes:
    """A value as fastavro writes it."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def framed(schemaid: int, payload: bytes) -> Message:
    """A record with a frame before its payload."""
    return Message("KAFKA", {"topic": "orders"}, b"\0" + schemaid.to_bytes(4, "big") + payload)


def headed(header: bytes, payload: bytes) -> Message:
    """A record with a frame in its header."""
    return Message("KAFKA", {"topic": "orders", "headers": (("__value_schema_id", header),)}, payload)


def by_guid(schemaid: int) -> bytes:
    """The header that names a version by its guid."""
    return b"\1" + UUID(f"{GUID}{schemaid}").bytes


def said(answer: Answer) -> tuple[str, list[tuple[str, str]]]:
    """The outcome, and the places and codes of the problems."""
    return answer.outcome.value, [(one.path, one.code) for one in answer.problems]


OLD, NEW = record("id", "qty", "price"), record("id", "price", "qty")
TEXT = {"name": "s", "type": "string"}
EVOLUTIONS = [
    (OLD, NEW, {"id": 1, "qty": 3, "price": 1000}, {"id": 1, "price": 1000, "qty": 3}),
    (
        record("id", "qty"),
        record("id", {"name": "currency", "type": "string", "default": "EUR"}, {"name": "qty", "type": "long"}),
        {"id": 1, "qty": 3},
        {"id": 1, "currency": "EUR", "qty": 3},
    ),
    (
        record(*"abcde", TEXT),
        record(TEXT, *"edcba"),
        {"a": 5, "b": 1, "c": 2, "d": 3, "e": 4, "s": ""},
        {"s": "", "e": 4, "d": 3, "c": 2, "b": 1, "a": 5},
    ),
    (record("a", "b", TEXT), record("b", "a", TEXT), {"a": 1, "b": 2, "s": "x"}, {"b": 2, "a": 1, "s": "x"}),
]


@pytest.mark.parametrize("framing", ["confluent", None])
@pytest.mark.parametrize(("old", "new", "written", "read"), EVOLUTIONS)
def test_a_record_of_an_older_version(framing: str | None, old: Any, new: Any, written: Any, read: Any) -> None:
    """What the first version wrote is matched and validated by the second with the values that its writer meant."""
    catalog = Catalog.from_documents(document(version(old, 7), version(new, 9), dataschemaframing=framing))
    message = framed(7, encoded(old, written))
    for answer in (catalog.match(message), catalog.validate(message, XID)):
        assert ("matched", []) == said(answer), answer.problems
        assert (read, 7) == (answer.data, answer.schemaid)
        assert list(read) == list(answer.data)
    current = catalog.match(framed(9, encoded(new, read)))
    assert (read, 9) == (current.data, current.schemaid)


@pytest.mark.parametrize("framing", ["confluent", "confluent-header", None])
def test_a_header_names_the_writer(framing: str | None) -> None:
    """The guid in a record's header says who wrote the bare payload; an id may stand there, too."""
    catalog = Catalog.from_documents(document(version(OLD, 7), version(NEW, 9), dataschemaframing=framing))
    payload = encoded(OLD, {"id": 1, "qty": 3, "price": 1000})
    answer = catalog.match(headed(by_guid(7), payload))
    assert {"id": 1, "price": 1000, "qty": 3} == answer.data, answer.problems
    assert (None, f"{GUID}7") == (answer.schemaid, answer.schemaguid)
    assert f"{GUID}7" == json.loads(answer.to_bytes())["schemaguid"]
    answer = catalog.match(headed(b"\0\0\0\0\7", payload))
    assert ({"id": 1, "price": 1000, "qty": 3}, 7) == (answer.data, answer.schemaid)


def test_a_header_goes_before_the_payload() -> None:
    """Bytes that look like a frame are the payload where the header has the frame."""
    catalog = Catalog.from_documents(document(version(record(*"abcde", TEXT), 7)))
    answer = catalog.match(headed(by_guid(7), bytes.fromhex("0000000007" + "08" + "61626364")))
    assert {"a": 0, "b": 0, "c": 0, "d": 0, "e": -4, "s": "abcd"} == answer.data, answer.problems


@pytest.mark.parametrize(
    ("message", "problems"),
    [
        (framed(8, b"\2\2\2"), [("/data", "schema_unavailable")]),
        (headed(by_guid(8), b"\2\2\2"), [("/data", "schema_unavailable")]),
        (headed(b"\0\0\0\0\x08", b"\2\2\2"), [("/data", "schema_unavailable")]),
        (headed(b"\1short", b"\2\2\2"), [("/data", "payload")]),
        (headed(by_guid(7) + b"more", b"\2\2\2"), [("/data", "payload")]),
        (framed(7, b"\2\2"), [("/data/price", "payload")]),
        (framed(7, b"\2\2\2\2"), [("/data", "payload")]),
    ],
)
def test_what_no_writer_of_the_catalog_wrote(message: Message, problems: list[tuple[str, str]]) -> None:
    """An id that the catalog does not know is a problem that names it, never a guess; so is a damaged payload."""
    catalog = Catalog.from_documents(document(version(OLD, 7), version(NEW, 9)))
    answer = catalog.match(message)
    assert ("nonconformant", problems) == said(answer)
    if problems[0][1] == "schema_unavailable":
        assert "8, which no schema of the catalog has" in answer.problems[0].message


def test_a_header_that_is_declared_has_to_be_there() -> None:
    """Where the frame is declared to be in a header, one before the payload is not it."""
    catalog = Catalog.from_documents(document(version(OLD, 7), dataschemaframing="confluent-header"))
    answer = catalog.match(framed(7, b"\2\2\2"))
    assert ("nonconformant", [("/data", "payload")]) == said(answer)
    assert "no header __value_schema_id" in answer.problems[0].message


def test_a_definition_without_frames_takes_no_header() -> None:
    """A payload that is declared not to be framed is read by the definition's schema, as it is."""
    catalog = Catalog.from_documents(document(version(OLD, 7), version(NEW, 9), dataschemaframing="none"))
    answer = catalog.match(headed(by_guid(7), b"\2\6\4"))
    assert ({"id": 1, "price": 3, "qty": 2}, None) == (answer.data, answer.schemaguid)


def test_a_catalog_without_ids_knows_nothing_of_writers() -> None:
    """Any id is taken where the catalog has none at all: the definition's schema reads the payload."""
    catalog = Catalog.from_documents(document(version(OLD, None)))
    for message in (framed(7, b"\2\4\6"), headed(by_guid(7), b"\2\4\6")):
        assert {"id": 1, "qty": 2, "price": 3} == catalog.match(message).data


def groups(**schemagroups: Any) -> dict[str, Any]:
    """The catalog of the older and the newer version, with other groups of schemas beside."""
    found = document(version(OLD, 7), version(NEW, 9))
    found["schemagroups"] |= schemagroups
    return found


def of(*versions: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    """A schema group with one schema."""
    numbered = {str(number): one for number, one in enumerate(versions, 1)}
    return {**attributes, "schemas": {"order": {"versions": numbered}}}


def test_an_id_counts_in_its_context() -> None:
    """An id of another context is not one of the definition's, and a file may have the same id in two."""
    other = record("qty", "price", "id")
    catalog = Catalog.from_documents(groups(far=of(version(other, 7), version(other, 8), confluentcontext=".far")))
    assert {"id": 1, "price": 3, "qty": 2} == catalog.match(framed(7, b"\2\4\6")).data
    assert ("nonconformant", [("/data", "schema_unavailable")]) == said(catalog.match(framed(8, b"\2\4\6")))
    far, near = catalog.by_id(".far", 7), catalog.by_id(".", 7)
    assert not isinstance(far, Problem | None)
    assert not isinstance(near, Problem | None)
    assert {"qty": 1, "price": 2, "id": 3} == far.check(b"\2\4\6").value
    assert {"id": 1, "qty": 2, "price": 3} == near.check(b"\2\4\6").value
    assert (None, None, None) == (catalog.by_id(".", 8), catalog.by_id(".none", 7), catalog.by_guid(f"{GUID}1"))
    assert catalog.by_guid(f"{GUID}9") is not None


def test_a_schema_in_a_definition_has_the_ids_of_the_default_context() -> None:
    """Where the definition's own schema is not in a context, ids are those of the default one."""
    given = groups(confluent=of(version(record("price", "qty", "id"), 7)))
    given["messagegroups"]["shop"]["messages"]["order"] |= {"dataschema": NEW, "dataschemaxid": None}
    catalog = Catalog.from_documents(given)
    assert {"id": 3, "price": 1, "qty": 2} == catalog.match(framed(7, b"\2\4\6")).data


@pytest.mark.parametrize(("other", "is_same"), [(NEW, False), ({**OLD, "fields": list(OLD["fields"])}, True)])
def test_an_id_of_two_contents_is_none(other: Any, is_same: bool) -> None:
    """A file that has one id for two schemas does not say who wrote a payload; two spellings of one schema are one."""
    spelled = json.dumps(other, indent=2)
    catalog = Catalog.from_documents(document(version(OLD, 7), version(spelled, 7), version(NEW, 9)))
    answer = catalog.match(framed(7, b"\2\4\6"))
    assert is_same is answer.matched
    if not is_same:
        assert "several contents" in answer.problems[0].message


def test_a_policy_names_the_writer() -> None:
    """Ids that a caller knows lead to versions of the catalog."""
    policy = SchemaPolicy(ids={70: f"{ORDERS}/versions/1"})
    catalog = Catalog.from_documents(document(version(OLD, None), version(NEW, None)), schemas=policy)
    assert {"id": 1, "price": 3, "qty": 2} == catalog.match(framed(70, b"\2\4\6")).data


def test_references_that_a_version_states() -> None:
    """A version finds what it refers to by subject and number, though newer versions have other fields."""
    old, new = record("zip", name="Place"), record("city", "zip", name="Place")
    user = record({"name": "place", "type": "Place"})
    stated = {"confluentreferences": [{"name": "Place", "subject": "place", "version": 1}]}
    newer = {"confluentreferences": [{"name": "Place", "subject": ":.:place", "version": 2}]}
    reader = record({"name": "place", "type": {**record({"name": "city", "type": "int", "default": 0}, "zip")}})
    reader["fields"][0]["type"]["name"] = "Place"
    given = document({**version(user, 7), **stated}, {**version(user, 8), **newer}, version(reader, 9))
    places = {"1": version(old, 1), "2": version(new, 2)}
    given["schemagroups"]["shop"]["schemas"]["place"] = {"versions": places}
    catalog = Catalog.from_documents(given)
    assert {"place": {"city": 0, "zip": 5}} == catalog.match(framed(7, b"\x0a")).data
    assert {"place": {"city": 5, "zip": 6}} == catalog.match(framed(8, b"\x0a\x0c")).data


PROTO = 'syntax = "proto3"; package shop; '


def proto(*messages: str) -> str:
    """A .proto text."""
    return PROTO + " ".join(messages)


OLD_PROTO = proto("message Order { int32 id = 1; int32 qty = 2; string note = 3; }")


@pytest.mark.parametrize(
    ("new", "payload", "read"),
    [
        # The message is the second of its text; a field was added, another dropped, one is wider.
        (
            proto("message Other { int32 x = 1; }", "message Order { int64 id = 1; string more = 4; bytes note = 3; }"),
            b"\0\x08\x05\x10\x06\x1a\x01x",
            {"id": 5, "more": "", "note": b"x"},
        ),
        (proto("message Order { int32 id = 1; }"), b"\0\x08\x05", {"id": 5}),
        (proto("message Order { int32 id = 1; }"), b"\2\0\x08\x05", {"id": 5}),
    ],
)
def test_a_protobuf_message_of_an_older_version(new: str, payload: bytes, read: Any) -> None:
    """Message indexes are those of the writer's text, and values those that the writer set."""
    old = version(OLD_PROTO, 7, "Protobuf/3")
    catalog = Catalog.from_documents(
        document(old, version(new, 9, "Protobuf/3"), dataschemaxid=None, dataschemauri=f"{ORDERS}:Order")
    )
    answer = catalog.match(framed(7, payload))
    assert (read, 7) == (answer.data, answer.schemaid), answer.problems
    indexes = payload[: 1 + (payload[0] > 0)]
    assert read == catalog.match(headed(by_guid(7) + indexes, payload[len(indexes) :])).data


@pytest.mark.parametrize(
    ("field", "payload", "words"),
    [
        (
            "sint32 id = 1;",
            b"\0\x08\x05",
            "was written as int32, and cannot be read as sint32: it would be -3 in place",
        ),
        ("string id = 1;", b"\0\x08\x05", "was written as int32, and cannot be read as string"),
        ("uint32 id = 1;", b"\0\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "in place of -1"),
        ("int32 qty = 3;", b"\0\x1a\x01x", "note was written as string"),
        ("int32 id = 1;", b"\2\2\x08\x05", "names the message at [1], shop.Order is at [0]"),
    ],
)
def test_a_protobuf_value_that_would_be_another(field: str, payload: bytes, words: str) -> None:
    """A field of another type on the same wire is never read as a value that nobody wrote."""
    new = proto(f"message Order {{ {field} }}")
    catalog = Catalog.from_documents(document(version(OLD_PROTO, 7, "Protobuf/3"), version(new, 9, "Protobuf/3")))
    answer = catalog.match(framed(7, payload))
    assert "nonconformant" == answer.outcome.value
    assert words in answer.problems[0].message


def test_a_protobuf_text_without_the_message() -> None:
    """A writer's text that has no message of the name did not write it."""
    other = version(proto("message Other { int32 x = 1; }"), 7, "Protobuf/3")
    catalog = Catalog.from_documents(document(other, version(OLD_PROTO, 9, "Protobuf/3")))
    (problem,) = catalog.match(framed(7, b"\0\x08\x05")).problems
    assert "has no message shop.Order; it has: shop.Other" in problem.message


JSON_SCHEMA = "JsonSchema/draft-07"


def test_json_is_judged_by_the_definition() -> None:
    """JSON says what it is, so that the definition's schema judges it, whoever wrote it; a schema of Avro did not."""
    given = document(version({"type": "object"}, 7, JSON_SCHEMA), version({"type": "integer"}, 9, JSON_SCHEMA))
    given["schemagroups"]["shop"]["schemas"]["avro"] = {"versions": {"1": version(OLD, 3)}}
    catalog = Catalog.from_documents(given)
    assert 5 == catalog.match(framed(7, b"5")).data
    assert 5 == catalog.match(framed(1234, b"5")).data
    assert ("nonconformant", [("/data", "payload")]) == said(catalog.match(framed(7, b"{}")))
    (problem,) = catalog.match(framed(3, b"5")).problems
    assert "written with a schema of the format Avro" in problem.message


BUILT = [
    ("Avro/1.11", OLD, {"id": 1, "qty": 2, "price": 3}, b"", b"\2\4\6"),
    (JSON_SCHEMA, {"type": "object"}, {"id": 1}, b"", b'{"id":1}'),
    ("Protobuf/3", OLD_PROTO, {"id": 5}, b"\0", b"\x08\x05"),
    ("Protobuf/3", proto("message A { Order o = 1; message B { int32 x = 1; } }", OLD_PROTO.partition("shop; ")[2]),
     {"o": {"id": 5}}, b"\0", b"\n\x02\x08\x05"),
]  # fmt: skip


@pytest.mark.parametrize(("format_name", "schema", "data", "indexes", "payload"), BUILT)
def test_a_build_has_the_frame_that_the_catalog_knows(
    format_name: str, schema: Any, data: Any, indexes: bytes, payload: bytes
) -> None:
    """The id before the payload, or the guid in a header, is that of the definition's own version."""
    given = document(version(schema, 6, format_name), version(schema, 7, format_name))
    built = Catalog.from_documents(given).message(XID).build(data=data)
    assert built.message is not None, built.problems
    assert b"\0\0\0\0\7" + indexes + payload == built.message.payload
    given["messagegroups"]["shop"]["messages"]["order"]["dataschemaframing"] = "confluent-header"
    catalog = Catalog.from_documents(given)
    for made in (catalog.message(XID).build(data=data), catalog.message(XID).sample()):
        assert made.message is not None, made.problems
        assert (("__value_schema_id", by_guid(7) + indexes),) == made.message.get("headers")[-1:]
    built = catalog.message(XID).build(data=data)
    assert built.message is not None
    assert payload == built.message.payload


@pytest.mark.parametrize("framing", ["confluent", "confluent-header"])
def test_an_id_that_the_catalog_lacks_is_a_gap(framing: str) -> None:
    """A version without an id, in a catalog that has some, is not framed with another's; a caller may give it."""
    given = document(version(OLD, 7), version(NEW, None), dataschemaframing=framing)
    handle = Catalog.from_documents(given).message(XID)
    data = {"id": 1, "price": 2, "qty": 3}
    for built in (handle.build(data=data), handle.sample()):
        assert ("schemaid",) == built.missing
        assert [("/data", "missing")] == [(one.path, one.code) for one in built.problems]
        assert "confluentid" in built.problems[0].message or "confluentguid" in built.problems[0].message


def test_a_part_of_an_avro_document_has_no_id() -> None:
    """What stands after an id is of the whole document, so that a type within it is not written with the id."""
    given = document(version(json.dumps([OLD, record("x", name="Other")]), 7))
    message = given["messagegroups"]["shop"]["messages"]["order"]
    message |= {"dataschemaxid": None, "dataschemauri": f"{ORDERS}:Order"}
    catalog = Catalog.from_documents(given)
    assert ("schemaid",) == catalog.message(XID).build(data={"id": 1, "qty": 2, "price": 3}).missing
    assert {"id": 1, "qty": 2, "price": 3} == catalog.match(framed(7, b"\0\2\4\6")).data
    assert "nonconformant" == catalog.match(framed(7, b"\2\2")).outcome.value


@pytest.mark.parametrize("protocol", ["HTTP", None])
def test_a_header_needs_kafka(protocol: str | None) -> None:
    """A message without headers of Kafka cannot hold a frame that is declared to be in one."""
    definition = {
        "protocol": protocol, "protocoloptions": None, "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}, "source": {"value": "/s"}},
    }  # fmt: skip
    given = document(version(OLD, 7), dataschemaframing="confluent-header", **definition)
    built = Catalog.from_documents(given).message(XID).build(data={"id": 1, "qty": 2, "price": 3})
    assert "payload" in [one.code for one in built.problems]
    assert any("no header to hold the frame" in one.message for one in built.problems)


def test_a_writer_without_a_document() -> None:
    """A version that has an id and no document says so; its guid that is not one is passed over."""
    bare = {"format": "Avro/1.11", "confluentid": 7, "confluentguid": "seven"}
    catalog = Catalog.from_documents(document(bare, version(NEW, 9)))
    answer = catalog.match(framed(7, encoded(OLD, {"id": 1, "qty": 3, "price": 1000})))
    assert "nonconformant" == answer.outcome.value
    assert ["schema_unavailable"] == [one.code for one in answer.problems]
    assert (None, 9) == (catalog.by_guid("seven"), catalog.schemaid(XID))


@pytest.mark.parametrize("second", ["{", {"type": "record"}])
def test_one_id_for_two_texts_that_cannot_be_read(second: Any) -> None:
    """An id that a file gives to two contents is nobody's, also where one cannot be read."""
    catalog = Catalog.from_documents(document(version(OLD, 7), version(second, 7), version(NEW, 9)))
    answer = catalog.match(framed(7, encoded(OLD, {"id": 1, "qty": 3, "price": 1000})))
    assert ("nonconformant", ["schema_unavailable"]) == (answer.outcome.value, [one.code for one in answer.problems])


@pytest.mark.parametrize(("subject", "group"), [("part", "shop"), (":.dock:part", "dock"), (":.:part", "confluent")])
def test_a_writer_that_refers_to_others(subject: str, group: str) -> None:
    """What a writer's schema refers to is found in its own context, or in the one that the subject names."""
    part = {"type": "record", "name": "Part", "fields": [{"name": "n", "type": "int"}]}
    uses = record({"name": "part", "type": "Part"})
    named = [{"name": "Part", "subject": subject, "version": 1}, {"name": "Lost", "subject": "lost", "version": 1}]
    writer = {**version(uses, 7), "confluentreferences": [*named, named[0]]}
    made = document(writer, version(record({"name": "part", "type": part}), 9))
    groups = made["schemagroups"]
    groups.setdefault(group, {"schemas": {}})["schemas"]["part"] = {"versions": {"1": version(part, 3)}}
    if group == "dock":
        groups["dock"]["confluentcontext"] = ".dock"
    catalog = Catalog.from_documents(made)
    answer = catalog.match(framed(7, b"\x0a"))
    assert ({"part": {"n": 5}}, []) == (answer.data, list(answer.problems))


def test_many_scopes_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers within a scope are the same however many scopes were asked for before."""
    monkeypatch.setattr("signalbook.messages.catalog._MOST_SCOPES", 2)
    catalog = Catalog.from_documents(document(version(OLD, 7)))
    message = framed(7, encoded(OLD, {"id": 1, "qty": 3, "price": 1000}))
    for _ in range(2):
        for within in ((), "/messagegroups/shop", XID):
            assert XID == catalog.match(message, within=within).definition


def test_indexes_are_made_before_they_are_needed() -> None:
    """A catalog gets the indexes of the one before it; a scope that is gone is passed over."""
    older = Catalog.from_documents(document(version(OLD, 7)))
    message = framed(7, encoded(OLD, {"id": 1, "qty": 3, "price": 1000}))
    for within in ((), XID):
        assert older.match(message, within=within).definition == XID
    newer = older.changed({XID: None}).prepared_as(older)
    assert "unexpected" == newer.match(message).outcome.value
