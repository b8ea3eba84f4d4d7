"""Confluent's own clients against a server: what they write is read, by themselves and by the catalog, also from Kafka.

The checks that lie beside the project, in `../shared/conformance/clients`, run where they are; the others need nothing
but the clients. The JavaScript client is fetched with npm into `.cache`, as `clients/package-lock.json` names it; where
that cannot be done, its tests are skipped by name.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import httpx
import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from scripts.brokers import Broker
from signalbook.clients import kafka
from signalbook.messages import Catalog
from signalbook.protocols import Message
from tests.conftest import ROOT, StartServer
from tests.integration.processes import missing
from tests.patience import LONG

CHECKS = ROOT.parent / "shared" / "conformance" / "clients"
OWN = Path(__file__).parent / "clients"
MODULES = ROOT / ".cache" / "confluent-clients"
REQUIRED = "clients" in os.environ.get("SIGNALBOOK_REQUIRE", "").split(",")

OLDER = {"type": "record", "name": "Berth", "fields": [{"name": "quay", "type": "string"}]}
NEWER = {
    "type": "record",
    "name": "Berth",
    "fields": [{"name": "depth", "type": "int", "default": 9}, {"name": "quay", "type": "string"}],
}
BROKEN = {**NEWER, "fields": [*NEWER["fields"], {"name": "crane", "type": "string"}]}
BERTH = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Berth",
    "type": "object",
    "properties": {"quay": {"type": "string"}, "depth": {"type": "integer"}},
    "required": ["quay"],
}


class Clients:
    """The address of a server, and clients of it that are closed with the test."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.base = f"{root}/confluent"
        self._made: list[SchemaRegistryClient] = []

    def new(self) -> SchemaRegistryClient:
        """A client that has nothing in its caches."""
        self._made.append(SchemaRegistryClient({"url": self.base, "max.retries": 0}))
        return self._made[-1]

    def close(self) -> None:
        """Close what was made."""
        for one in self._made:
            one.__exit__(None, None, None)


@pytest.fixture
def clients(start_server: StartServer) -> Iterator[Clients]:
    """Clients of a new server."""
    made = Clients(start_server())
    yield made
    made.close()


def at(topic: str, headers: list[tuple[str, bytes]] | None = None) -> SerializationContext:
    """The value of a record of a topic."""
    return SerializationContext(topic, MessageField.VALUE, headers)


def fresh(name: str) -> str:
    """A name that nobody has used."""
    return f"{name}-{uuid.uuid4().hex[:12]}"


def berth_class(*more: str) -> Any:
    """The class of a Protobuf message, in a file that imports another, as protoc would have made it."""
    pool = descriptor_pool.DescriptorPool()
    part = descriptor_pb2.FileDescriptorProto(name="harbour/place.proto", package="harbour", syntax="proto3")
    part.message_type.add(name="Place").field.add(name="quay", number=1, type=9, label=1)
    file = descriptor_pb2.FileDescriptorProto(name="harbour/berth.proto", package="harbour", syntax="proto3")
    file.dependency.append(part.name)
    file.message_type.add(name="Unused").field.add(name="n", number=1, type=5, label=1)
    berth = file.message_type.add(name="Berth")
    berth.field.add(name="place", number=1, type=11, label=1, type_name=".harbour.Place")
    berth.field.add(name="depth", number=2, type=5, label=1)
    for number, name in enumerate(more, 3):
        berth.field.add(name=name, number=number, type=9, label=1)
    pool.Add(part)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("harbour.Berth"))


# ---- the checks beside the project


def run_checks(command: list[str], count: int, **environment: str) -> None:
    """Assert that a program of checks passes all of them."""
    known = {**os.environ, **environment}
    done = subprocess.run(command, env=known, capture_output=True, text=True, timeout=LONG, check=False)
    said = done.stdout.strip().splitlines()
    assert f"{count} passed, 0 failed" == (said[-1] if said else ""), f"{done.stdout}{done.stderr[-2000:]}"
    assert 0 == done.returncode


@pytest.fixture(scope="session")
def modules() -> str:
    """The folder that has the JavaScript client, or the test ends here."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        missing("Confluent's JavaScript client: npm or node is not installed", required=REQUIRED)
    lock, ready = (OWN / "package-lock.json").read_bytes(), MODULES / "ready"
    if not ready.exists() or ready.read_bytes() != lock:
        MODULES.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            (MODULES / name).write_bytes((OWN / name).read_bytes())
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=MODULES, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            missing(f"Confluent's JavaScript client: npm failed: {done.stderr.strip()[-300:]}", required=REQUIRED)
        ready.write_bytes(lock)
    return str(MODULES)


@pytest.mark.slow
@pytest.mark.skipif(not CHECKS.is_dir(), reason="the checks are not beside the project")
def test_the_checks_of_the_python_client(clients: Clients) -> None:
    """All checks with Confluent's Python client pass."""
    run_checks([sys.executable, str(CHECKS / "python_client.py"), clients.base], 36)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not CHECKS.is_dir(), reason="the checks are not beside the project")
def test_the_checks_of_the_javascript_client(clients: Clients, modules: str) -> None:
    """All checks with Confluent's JavaScript client pass."""
    run_checks(["node", str(CHECKS / "js_client.mjs"), clients.base], 19, CLIENT_MODULES=modules)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_round_trips_of_the_javascript_client(clients: Clients, modules: str) -> None:
    """What Confluent's JavaScript client writes in each format, it reads."""
    run_checks(["node", str(OWN / "round_trips.mjs"), clients.base], 3, CLIENT_MODULES=modules)


# ---- the Python client


def test_avro_evolves(clients: Clients) -> None:
    """A record of the older schema is read by the newer one, and the other way round; a break is refused."""
    topic = fresh("berths")
    older = AvroSerializer(clients.new(), json.dumps(OLDER))({"quay": "east"}, at(topic))
    newer = AvroSerializer(clients.new(), json.dumps(NEWER))({"quay": "west", "depth": 7}, at(topic))
    assert {"quay": "east", "depth": 9} == AvroDeserializer(clients.new(), json.dumps(NEWER))(older, at(topic))
    assert {"quay": "west"} == AvroDeserializer(clients.new(), json.dumps(OLDER))(newer, at(topic))
    broken = AvroSerializer(clients.new(), json.dumps(BROKEN))
    with pytest.raises(SchemaRegistryError) as refused:
        broken({"quay": "north", "depth": 1, "crane": "c1"}, at(topic))
    assert (409, 40901) == (refused.value.http_status_code, refused.value.error_code)
    assert [1, 2] == clients.new().get_versions(f"{topic}-value")


@pytest.mark.parametrize("version", [1, 2])
def test_a_chosen_id(clients: Clients, version: int) -> None:
    """`use.schema.id` writes with the version that has the id."""
    topic = fresh("berths")
    ids = [clients.new().register_schema(f"{topic}-value", Schema(json.dumps(one), "AVRO")) for one in (OLDER, NEWER)]
    conf = {"auto.register.schemas": False, "use.schema.id": ids[version - 1]}
    sent = AvroSerializer(clients.new(), json.dumps(OLDER), conf=conf)({"quay": "east", "depth": 1}, at(topic))
    assert ids[version - 1] == int.from_bytes(sent[1:5], "big")


def test_a_guid_in_a_header(clients: Clients) -> None:
    """The newer frame: the schema's guid in a header, the payload bare."""
    topic, headers = fresh("berths"), []
    write = {"schema.id.serializer": header_schema_id_serializer}
    sent = AvroSerializer(clients.new(), json.dumps(OLDER), conf=write)({"quay": "eastern"}, at(topic, headers))
    assert b"\x0eeastern" == sent
    read = {"schema.id.deserializer": dual_schema_id_deserializer}
    assert {"quay": "eastern"} == AvroDeserializer(clients.new(), conf=read)(sent, at(topic, headers))


def test_json_with_a_reference(clients: Clients) -> None:
    """A schema that refers to another one is read with it."""
    topic, part = fresh("berths"), fresh("place.json")
    place = {"type": "object", "properties": {"quay": {"type": "string"}}, "required": ["quay"]}
    clients.new().register_schema(part, Schema(json.dumps(place), "JSON"))
    whole = json.dumps({"title": "Berth", "type": "object", "properties": {"place": {"$ref": "place.json"}}})
    schema = Schema(whole, "JSON", [SchemaReference("place.json", part, 1)])
    sent = JSONSerializer(schema, clients.new())({"place": {"quay": "east"}}, at(topic))
    read = JSONDeserializer(None, schema_registry_client=clients.new())
    assert {"place": {"quay": "east"}} == read(sent, at(topic))
    with pytest.raises(SchemaRegistryError) as refused:
        clients.new().delete_subject(part)
    assert 42206 == refused.value.error_code


def test_protobuf_with_an_import(clients: Clients) -> None:
    """Descriptors are registered, the imported file under its path; the frame names the second message."""
    topic, berth = fresh("berths"), berth_class()
    value = berth(depth=7)
    value.place.quay = "east"
    sent = ProtobufSerializer(berth, clients.new(), {})(value, at(topic))
    assert b"\x02\x02" == sent[5:7]
    assert value == ProtobufDeserializer(berth, {}, clients.new())(sent, at(topic))
    text = clients.new().get_latest_version(f"{topic}-value").schema.schema_str
    assert "message Berth" in (text or "")
    assert "harbour/place.proto" in clients.new().get_subjects()


def test_the_catalog_steers_a_producer(clients: Clients) -> None:
    """A producer without any setting takes the subject of the schema that the catalog states for its topic."""
    topic, subject = fresh("berths"), fresh("harbour.Berth")
    clients.new().register_schema(subject, Schema(json.dumps(OLDER), "AVRO"))
    message = {"dataschemaformat": "Avro/1.11.0", "dataschemaxid": f"/schemagroups/confluent/schemas/{subject}"}
    endpoint = {
        "usage": ["producer"],
        "protocol": "KAFKA",
        "protocoloptions": {"topic": topic},
        "messagegroups": ["/messagegroups/harbour"],
    }
    put = httpx.put(f"{clients.root}/messagegroups/harbour/messages/berth", json=message, timeout=LONG)
    assert 201 == put.status_code, put.text
    put = httpx.put(f"{clients.root}/endpoints/berths", json=endpoint, timeout=LONG)
    assert 201 == put.status_code, put.text
    sent = AvroSerializer(clients.new(), json.dumps(OLDER))({"quay": "east"}, at(topic))
    assert [subject] == clients.new().get_subjects()
    assert {"quay": "east"} == AvroDeserializer(clients.new())(sent, at(topic))


# ---- through Kafka


def produce(broker: Broker, topic: str, values: list[bytes], headers: Any = None) -> None:
    """Send values to a topic, in their order."""
    send(broker, *(Message("KAFKA", {"topic": topic, "headers": tuple(headers or ())}, value) for value in values))


def send(broker: Broker, *messages: Message) -> None:
    """Send messages."""
    failures: list[object] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.address})
    for message in messages:
        producer.produce(
            **kafka.publish_args(message), on_delivery=lambda error, _: failures.append(error) if error else None
        )
    assert 0 == producer.flush(LONG)
    assert [] == failures


def consume(broker: Broker, topic: str, count: int) -> list[confluent_kafka.Message]:
    """The first records of a topic."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.address, "group.id": topic})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
        records = consumer.consume(count, LONG)
        assert count == len(records)
        return records
    finally:
        consumer.close()


def _of_protobuf(value: Any) -> Any:
    return {"quay": value.place.quay, "depth": value.depth}


Serdes = tuple[Callable[..., Any], Callable[..., Any]]


def _avro(clients: Clients, schema: Any, writing: Any = None, reading: Any = None) -> Serdes:
    text = json.dumps(schema)
    return AvroSerializer(clients.new(), text, conf=writing), AvroDeserializer(clients.new(), text, conf=reading)


def _json(clients: Clients, schema: Any, writing: Any = None, reading: Any = None) -> Serdes:
    text = json.dumps(schema)
    read = JSONDeserializer(text, schema_registry_client=clients.new(), conf=reading)
    return JSONSerializer(text, clients.new(), conf=writing), read


def _protobuf(clients: Clients, berth: Any, writing: Any = None, reading: Any = None) -> Serdes:
    def write(given: Any, where: SerializationContext) -> Any:
        value = berth(depth=given["depth"])
        value.place.quay = given["quay"]
        return ProtobufSerializer(berth, clients.new(), writing or {})(value, where)

    read = ProtobufDeserializer(berth, reading or {}, clients.new())
    return write, lambda data, where: _of_protobuf(read(data, where))


WIDER = {**BERTH, "properties": {**BERTH["properties"], "note": {"type": "string"}}, "additionalProperties": True}
CLOSED = {**BERTH, "additionalProperties": False}
FORMATS: dict[str, Any] = {
    "Avro": (_avro, NEWER, {**NEWER, "fields": [*NEWER["fields"], {"name": "note", "type": "string", "default": ""}]}),
    "JSON Schema": (_json, CLOSED, {**CLOSED, "properties": WIDER["properties"]}),
    "Protobuf": (_protobuf, berth_class(), berth_class("note")),
}


@pytest.mark.broker("kafka")
@pytest.mark.parametrize("name", FORMATS)
def test_evolution_in_flight(clients: Clients, kafka_broker: Broker, name: str) -> None:
    """Records of a producer that is still on the first version, between those of the second, are read by the second."""
    serdes, older, newer = FORMATS[name]
    topic = fresh("berths")
    write_older, _ = serdes(clients, older)
    write_newer, read_newer = serdes(clients, newer)
    given = [{"quay": f"q{number}", "depth": number} for number in range(10)]
    extra = {"note": ""} if name == "Avro" else {}
    values = [
        (write_newer({**one, **extra}, at(topic)) if number % 3 == 2 else write_older(one, at(topic)))
        for number, one in enumerate(given)
    ]
    assert {1, 2} == {clients.new().get_version(f"{topic}-value", number).version for number in (1, 2)}
    assert 2 == len({value[1:5] for value in values})
    produce(kafka_broker, topic, values)
    found = [read_newer(record.value(), at(topic)) for record in consume(kafka_broker, topic, len(values))]
    assert [{**one, **extra} for one in given] == found


# ---- the catalog's `build` and `match` with Confluent's serializers


STATED = {"Avro": ("Avro/1.11", ""), "JSON Schema": ("JsonSchema/draft-07", ""), "Protobuf": ("Protobuf/3", "#:Berth")}


def catalog_of(clients: Clients, topic: str, name: str, framing: str) -> Catalog:
    """The server's catalog, with one message of the topic whose payload is the subject `{topic}-value`."""
    format_name, message_name = STATED[name]
    subject = f"/schemagroups/confluent/schemas/{topic}-value"
    message = {
        "protocol": "KAFKA", "protocoloptions": {"topic": topic}, "dataschemauri": f"{subject}{message_name}",
        "dataschemaformat": format_name, "dataschemaframing": framing,
    }  # fmt: skip
    put = httpx.put(f"{clients.root}/messagegroups/harbour/messages/{topic}", json=message, timeout=LONG)
    assert 201 == put.status_code, put.text
    return Catalog.from_documents(httpx.get(f"{clients.root}/export", timeout=LONG).raise_for_status().json())


VALUE = {"quay": "eastern", "depth": 7}
IN_PROTOBUF = {"place": {"quay": "eastern"}, "depth": 7}
FRAMES = ["confluent", "confluent-header"]


@pytest.mark.broker("kafka")
@pytest.mark.parametrize("framing", FRAMES)
@pytest.mark.parametrize("name", FORMATS)
def test_what_clients_write_is_matched(clients: Clients, kafka_broker: Broker, name: str, framing: str) -> None:
    """Records of Confluent's serializers match the definition of their topic, by the version that wrote them."""
    serdes, older, newer = FORMATS[name]
    topic = fresh("berths")
    conf = {"schema.id.serializer": header_schema_id_serializer} if framing == "confluent-header" else {}
    headers: list[tuple[str, bytes]] = []
    sent = serdes(clients, older, conf)[0](VALUE, at(topic, headers))
    more = {"note": ""} if name == "Avro" else {}
    serdes(clients, newer, {})[0]({**VALUE, **more}, at(topic))
    catalog = catalog_of(clients, topic, name, framing)
    produce(kafka_broker, topic, [sent], headers)
    (record,) = consume(kafka_broker, topic, 1)
    answer = catalog.match(kafka.to_paper(record))
    assert ("matched", []) == (answer.outcome.value, [str(one) for one in answer.problems])
    first = clients.new().get_version(f"{topic}-value", 1)
    assert (first.schema_id if not headers else None, first.guid if headers else None) == (
        answer.schemaid,
        answer.schemaguid,
    )
    expected = IN_PROTOBUF if name == "Protobuf" else {**VALUE, **more}
    assert expected == {key: value for key, value in answer.data.items() if key in expected}


@pytest.mark.broker("kafka")
@pytest.mark.parametrize("framing", FRAMES)
@pytest.mark.parametrize("name", FORMATS)
def test_clients_read_what_is_built(clients: Clients, kafka_broker: Broker, name: str, framing: str) -> None:
    """A message that the catalog builds is read by Confluent's deserializers."""
    serdes, older, _ = FORMATS[name]
    topic = fresh("berths")
    conf = {"schema.id.deserializer": dual_schema_id_deserializer}
    write, _ = serdes(clients, older, {})
    write(VALUE, at(topic))
    catalog = catalog_of(clients, topic, name, framing)
    given = IN_PROTOBUF if name == "Protobuf" else VALUE
    built = catalog.message(f"/messagegroups/harbour/messages/{topic}").build(data=given)
    assert [] == list(built.problems)
    assert built.message is not None
    send(kafka_broker, built.message)
    (record,) = consume(kafka_broker, topic, 1)
    read = serdes(clients, older, {}, conf)[1]
    assert VALUE == read(record.value(), at(topic, record.headers() or []))
