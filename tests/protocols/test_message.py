"""Messages on paper and to be sent, and the table of protocols."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from signalbook.dialects.convert import read
from signalbook.protocols import (
    FIELDS,
    PROTOCOLS,
    Message,
    Typed,
    WireError,
    address_of,
    find_protocol,
    sendable,
    sending_problems,
)
from signalbook.protocols.message import ALIASES
from signalbook.protocols.values import PropertyPlace, PropertySection
from signalbook.spec.dialects import DIALECTS
from tests.cases import Case, cases


@cases("wire/messages")
def test_paper(case: Case) -> None:
    """A message on paper is read into its fields and written back as it is written best."""
    message = Message.from_json(case.given)
    assert case.expect == message.to_json()
    assert message == Message.from_json(message.to_bytes())
    assert message == pickle.loads(pickle.dumps(message))


@cases("wire/refused")
def test_refused(case: Case) -> None:
    """Everything that is wrong with a message on paper is listed, each with its path."""
    with pytest.raises(WireError) as rejected:
        Message.from_json(case.given)
    assert case.expect == [problem.path for problem in rejected.value.problems]
    assert all(problem.message for problem in rejected.value.problems)
    assert str(rejected.value).startswith(case.expect[0] or "(message)")


@pytest.mark.parametrize(
    ("document", "payload"),
    [
        (b'{"protocol":"NATS","payload_json": {"n": 1.0, "m": 1e400} }', b'{"n": 1.0, "m": 1e400}'),
        (b'{"protocol":"NATS","payload_json":123456789012345678901234567890}', b"123456789012345678901234567890"),
        ('{"protocol":"NATS","payload_json":null}', b"null"),
        ({"protocol": "NATS", "payload_json": {"n": 1.0}}, b'{"n":1.0}'),
        ({"protocol": "NATS", "payload": "é"}, "é".encode()),
        ({"protocol": "NATS", "payload": ""}, b""),
        ({"protocol": "NATS", "payload": None}, None),
        ({"protocol": "NATS", "payload_base64": "/w=="}, b"\xff"),
        ({"protocol": "NATS"}, None),
    ],
)  # fmt: skip
def test_payloads(document: Any, payload: bytes | None) -> None:
    """A payload is text, Base64 or JSON on paper, and always bytes here; JSON text keeps its spelling."""
    assert payload == Message.from_json(document).payload


def test_a_python_value_that_is_no_json() -> None:
    """A payload given as a Python value must have a JSON form."""
    with pytest.raises(WireError, match="/payload_json"):
        Message.from_json({"protocol": "NATS", "payload_json": {1, 2}})


@pytest.mark.parametrize(
    ("spelling", "protocol"),
    [("http/1.1", "HTTP"), ("HTTP/2", "HTTP"), ("amqp", "AMQP/1.0"), ("Kafka", "KAFKA"), ("mqtt", "MQTT/5.0"),
     ("MQTT/3.1.1", "MQTT/3.1.1"), ("nats", "NATS"), ("smtp", None), ("MQTT/3", "MQTT/3.1.1"), ("HTTP/3.0", "HTTP"),
     ("Kafka/2", "KAFKA"), ("KAFKA/0.11", "KAFKA"), ("AMQP/1", "AMQP/1.0"), ("nats/2.10", "NATS"), ("mqtt/4", None),
     ("MQTT/", None), ("HTTP/", None), ("kafka/", None), ("HTTP/1.", None), ("HTTP/x", None), ("", None), (5, None),
     ("\u212aafka", None)],
)  # fmt: skip
def test_protocols(spelling: Any, protocol: str | None) -> None:
    """A protocol is known by every spelling of it, and means the same on paper, in a definition and in 0.5."""
    assert protocol == find_protocol(spelling)
    definition: Any = {"messagegroups": {"g": {"messages": {"m": {"protocol": spelling}}}}}
    older: Any = {"messagegroups": {"g": {"messages": {"m": {"binding": spelling}}}}}
    assert (protocol or spelling) == _read(definition, "1.0-rc2") == _read(older, "0.5-wip")
    if protocol is not None:
        assert protocol == Message.from_json({"protocol": spelling}).protocol
    else:
        with pytest.raises(WireError, match="/protocol"):
            Message.from_json({"protocol": spelling})


def _read(document: Any, dialect: str) -> Any:
    return read(document, DIALECTS[dialect]).content["messagegroups"]["g"]["messages"]["m"]["protocol"]


def test_python_values() -> None:
    """Each kind of field has its own Python type."""
    kafka = Message.from_json(
        {"protocol": "KAFKA", "key_base64": "/w==", "headers": [["a", "x"], ["b", None], ["c", {"base64": "/w=="}]]}
    )
    assert b"\xff" == kafka.get("key")
    assert (("a", b"x"), ("b", None), ("c", b"\xff")) == kafka.get("headers")
    amqp = Message.from_json(
        {
            "protocol": "AMQP",
            "application-properties": {
                "b": {"type": "binary", "value": "AQID"},
                "t": {"type": "timestamp", "value": 1},
            },
        }
    )
    assert {"b": b"\x01\x02\x03", "t": Typed("timestamp", 1)} == amqp.get("application-properties")
    assert "x" == amqp.get("footer", "x")


def test_values_of_one_name() -> None:
    """A name of a multi-valued field may occur again, and is found in any case where asked."""
    message = Message("HTTP", {"headers": (("A", "1"), ("a", "2"))})
    assert ["1"] == message.values("headers", "A")
    assert ["1", "2"] == message.values("headers", "a", any_case=True)
    assert [] == message.values("query", "a")


def test_a_message_does_not_change() -> None:
    """The fields are the message's own copy."""
    fields = {"topic": "t"}
    message = Message("KAFKA", fields)
    fields["topic"] = "u"
    assert "t" == message.get("topic")
    with pytest.raises(TypeError):
        message.fields["topic"] = "u"  # type: ignore[index]
    assert {"protocol": "KAFKA"} == Message("KAFKA", {"topic": None}).to_json()


def test_every_protocol_has_its_fields() -> None:
    """The fields of design section 4, by protocol."""
    assert {"HTTP", "AMQP/1.0", "MQTT/5.0", "MQTT/3.1.1", "KAFKA", "NATS"} == FIELDS.keys()


@cases("wire/unsettled")
def test_unsettled(case: Case) -> None:
    """A field that a protocol does not have, or that is of another type, is rejected with its place."""
    protocol, fields = case.given
    with pytest.raises(WireError) as rejected:
        Message(protocol, fields).settled()
    assert case.expect == [problem.path for problem in rejected.value.problems]


@pytest.mark.parametrize("value", [object(), {1: 2}, Typed("uint", -1), {"a": {1, 2}}])
def test_values_of_no_amqp_type(value: Any) -> None:
    """A Python value that AMQP has no type for is rejected."""
    with pytest.raises(WireError, match="/header"):
        Message("AMQP/1.0", {"header": {"a": value} if not isinstance(value, dict) else value}).settled()


def test_a_payload_is_bytes() -> None:
    """A payload of another type is rejected."""
    with pytest.raises(WireError, match="/payload"):
        Message("NATS", {}, "text").settled()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("protocol", "given", "settled"),
    [
        ("nats", {"reply-to": "a"}, {"reply": "a"}),
        ("NATS", {"reply_to": "a", "subject": None}, {"reply": "a"}),
        ("MQTT/5.0", {"payload_format": 1}, {"payload_format_indicator": 1}),
        ("HTTP", {"query": {"a": "1"}, "headers": [["b", "2"]]}, {"query": (("a", "1"),), "headers": (("b", "2"),)}),
        ("KAFKA", {"key": "é"}, {"key": "é".encode()}),
        ("KAFKA", {"key_base64": "/w=="}, {"key": b"\xff"}),
        ("KAFKA", {"headers": {"a": b"1", "b": None, "c": "2"}}, {"headers": (("a", b"1"), ("b", None), ("c", b"2"))}),
        (
            "AMQP/1.0",
            {"application_properties": {"a": [b"1", Typed("uint", 2)], "m": {"type": "symbol", "value": "é"}}},
            {"application-properties": {"a": (b"1", Typed("uint", 2)), "m": {"type": "symbol", "value": "é"}}},
        ),
    ],
)
def test_settled(protocol: str, given: dict[str, Any], settled: dict[str, Any]) -> None:
    """Older spellings, underscores for hyphens, maps of pairs and texts for bytes are taken."""
    message = Message(protocol, given, b"").settled()
    assert settled == dict(message.fields)
    assert message == message.settled() == Message.from_json(message.to_bytes())


@cases("wire/sending")
def test_sending(case: Case) -> None:
    """What would be cut, changed, rejected or misunderstood on its way is listed, each with its place."""
    message = Message.from_json(case.given)
    assert case.expect == [problem.path for problem in sending_problems(message)]
    if case.expect:
        with pytest.raises(WireError):
            sendable(message)
    else:
        assert message == sendable(message)


@pytest.mark.parametrize(
    ("fields", "payload", "path"),
    [
        ({"topic_name": "t" * 65_536}, None, "/topic_name"),
        ({"user_properties": (("a", "é" * 32_768),)}, None, "/user_properties/0/1"),
        ({"correlation_data": b"x" * 65_536}, None, "/correlation_data"),
        ({}, bytes(268_435_456), "/payload"),
    ],
    ids=["topic", "user property", "correlation data", "payload"],
)
def test_too_long(fields: dict[str, object], payload: bytes | None, path: str) -> None:
    """MQTT counts the bytes of strings and packets, and one too many is rejected."""
    assert [path] == [problem.path for problem in sending_problems(Message("MQTT/5.0", fields, payload))]


@pytest.mark.parametrize(
    ("protocol", "field"),
    [
        ("KAFKA", "topic"),
        ("NATS", "subject"),
        ("MQTT/5.0", "topic_name"),
        ("MQTT/3.1.1", "topic_name"),
        ("HTTP", None),
        ("AMQP/1.0", None),
    ],
)
def test_where_a_message_goes(protocol: str, field: str | None) -> None:
    """A message of a topic or a subject cannot be sent without it; a connection may have the address of others."""
    assert field == address_of(protocol)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_a_definition_states_is_in_a_message(name: str) -> None:
    """Every option is a field of the message, or says which one it is read from and written to."""
    row = PROTOCOLS[name]
    fields = {one.field for one in row.fields.values()}
    assert {row.special[option].field if option in row.special else option for option in row.options} <= fields
    assert row.special.keys() <= row.options.keys()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_a_row_names_is_there(name: str) -> None:
    """Keys, addresses, tests and the binding of a protocol name fields and options that it has."""
    row = PROTOCOLS[name]
    fields = {one.field for one in row.fields.values()}
    for option, member in row.keys:
        assert isinstance(row.options[option], PropertySection if member else PropertyPlace)
    assert {*row.beside_key, *row.needed} <= row.options.keys()
    assert {*row.texts, *row.pairs, *row.of_connection, *row.of_payload, *row.whole_pairs} <= fields
    assert {row.address, row.binding.attributes_in} - {None, ""} <= fields
    assert row.binding.protocol == row.name == name


def test_a_name_means_one_protocol() -> None:
    """No two protocols have an alias in common, and each is found by all of its names in any case."""
    names = [alias for name, row in PROTOCOLS.items() for alias in (name.lower(), *row.aliases)]
    assert sorted(ALIASES) == sorted(names)
    for name, row in PROTOCOLS.items():
        assert {name} == {find_protocol(alias.upper()) for alias in (name, *row.aliases)}
        assert (name if row.any_version else None) == find_protocol(f"{name}/9.9")
