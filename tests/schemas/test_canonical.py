"""Schemas in one spelling: texts that say the same are the same, and what they say is kept."""

from __future__ import annotations

import base64

import orjson
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from signalbook.schemas.canonical import (
    Content,
    Reference,
    canonical_text,
    content_of,
    guid_of,
    read_schema,
    serialised,
    written_out,
)
from signalbook.schemas.format import SchemaError
from tests.cases import Case, cases


@cases("schemas/canonical")
def test_case(case: Case) -> None:
    """A text has the canonical one that the case states, and that one has itself."""
    given, expect = case.given, case.expect
    normalise = bool(given.get("normalise"))
    found = canonical_text(given["type"], given["text"], given.get("references", {}), normalise=normalise)
    assert expect["text"] == found
    assert found == canonical_text(given["type"], found, given.get("references", {}), normalise=normalise)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("AVRO", "{"),
        ("AVRO", '{"type": "record"}'),
        ("AVRO", "1"),
        ("JSON", "{"),
        ("PROTOBUF", "message A"),
        ("XML", ""),
    ],
)
def test_no_schema(type_: str, text: str) -> None:
    """What is not a schema has no canonical text."""
    with pytest.raises(SchemaError):
        canonical_text(type_, text)


def test_a_descriptor_is_the_file() -> None:
    """A file as its descriptor has the text of the file, and the text has the descriptor."""
    crane = "message Crane { string id = 1; int32 load = 2; }"
    text = canonical_text("PROTOBUF", f'syntax = "proto3"; package yard; {crane}')
    encoded = serialised(text)
    made = FileDescriptorProto.FromString(base64.b64decode(encoded))
    assert ["id", "load"] == [one.name for one in made.message_type[0].field]
    assert text == canonical_text("PROTOBUF", encoded)


@pytest.mark.parametrize("name", ["google/type/money.proto", "confluent/type/decimal.proto", "google/type/color.proto"])
def test_known_files(name: str) -> None:
    """CSR-69: some files need no reference; one of that name in the catalog goes before."""
    package = name.rpartition("/")[0].replace("/", ".")
    kind = name.rpartition("/")[2].removesuffix(".proto").capitalize()
    text = f'syntax = "proto3"; import "{name}"; message A {{ {package}.{kind} a = 1; }}'
    assert not read_schema("PROTOBUF", text).check(b"").problems
    with pytest.raises(SchemaError):
        read_schema("PROTOBUF", text, {name: 'syntax = "proto3"; message Other {}'})


def test_guid() -> None:
    """Everything that makes up a content makes up its guid."""
    plain = Content("AVRO", '"string"')
    assert "095d71cf-1255-6b9d-5e33-0ad575b3df5d" == guid_of(plain)
    others = [
        Content("AVRO", '"int"'),
        Content("AVRO", '"string"', (Reference("a", "b", 1),)),
        Content("AVRO", '"string"', (Reference("a", "b", 2),)),
        Content("AVRO", '"string"', metadata={"properties": {"a": "b"}}),
        Content("AVRO", '"string"', metadata={"tags": {"a": ["c"]}}),
        Content("AVRO", '"string"', rules={"domainRules": [{"name": "r"}]}),
    ]
    assert len(others) + 1 == len({guid_of(one) for one in (plain, *others)})


def test_written_out() -> None:
    """Definitions of other texts stand where they are first used, and only there."""
    text = canonical_text("AVRO", orjson.dumps({
        "type": "record", "name": "Yard", "namespace": "com.x", "fields": [
            {"name": "a", "type": "com.x.Crane"}, {"name": "b", "type": "Crane"},
        ],
    }).decode())  # fmt: skip
    crane = '{"type":"record","name":"Crane","namespace":"com.x","fields":[]}'
    content = Content("AVRO", text, (Reference("any", "crane", 1),))
    found = orjson.loads(written_out(content, {"any": crane}))
    assert [{"type": "record", "name": "Crane", "fields": []}, "Crane"] == [one["type"] for one in found["fields"]]
    assert text == written_out(content, {})


def test_what_is_not_a_reference() -> None:
    """What stands beside a document and has another shape is left out."""
    found = content_of("AVRO", '"int"', [{"name": 1}, 7, {"name": "a", "subject": "b", "version": True}], [], "x")
    assert Content("AVRO", '"int"') == found


def test_references_of_json_schema() -> None:
    """A `$ref` finds a reference by its name, also where `$id` makes it absolute."""
    texts = {"part.json": '{"type": "string"}'}
    for base in ({}, {"$id": "https://x.example/yard/whole.json"}):
        schema = read_schema("JSON", orjson.dumps({**base, "properties": {"a": {"$ref": "part.json"}}}).decode(), texts)
        assert schema.check(b'{"a": 1}').problems
        assert not schema.check(b'{"a": "1"}').problems


EVERYTHING = """
syntax = "proto2";
package yard.v1;
import public "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/descriptor.proto";
option java_package = 'com.example.yard';
option optimize_for = SPEED;
option java_multiple_files = true;
option (origin) = { name: "a" tags: ["x", 'y'] };
extend google.protobuf.FileOptions { optional Origin origin = 50001; }
message Origin { optional string name = 1; repeated string tags = 2; }
message Crane {
  option deprecated = true;
  reserved 9 to 11, 7;
  reserved "old", "older";
  extensions 100 to 199, 500 to max;
  required string id = 1;
  optional int32 load = 2 [default = -5, deprecated = true];
  optional string word = 3 [default = "a \\"b\\"", json_name = "wort"];
  repeated double weights = 4 [packed = true];
  map<string, Part> parts = 5;
  optional group Place = 6 { optional int64 x = 1; optional int64 y = 2; }
  oneof drive { Engine engine = 12; string rope = 13; }
  optional Mode mode = 14 [default = UP];
  message Part { optional string name = 1; message Bolt { optional int32 size = 1; } repeated Bolt bolts = 2; }
  enum Mode {
    option allow_alias = true; UP = 0; DOWN = 1; LOW = 1 [deprecated = true]; reserved 5 to 8, -3; reserved "HIGH";
  }
}
message Engine { optional float power = 1; extensions 4 to 10; }
extend Engine { optional string maker = 4; repeated Crane.Part spare = 5; }
enum Size { SMALL = 0; }
service Yard {
  option deprecated = true;
  rpc Lift (Crane) returns (Engine);
  rpc Watch (stream Crane) returns (stream Engine) { option idempotency_level = IDEMPOTENT; option deprecated = false; }
}
"""


def test_everything_that_a_proto_file_can_say() -> None:
    """A file's text has itself, normalised or not, and its descriptor says the same as its text."""
    plain = canonical_text("PROTOBUF", EVERYTHING)
    assert plain == canonical_text("PROTOBUF", plain)
    normalised = canonical_text("PROTOBUF", EVERYTHING, normalise=True)
    assert normalised == canonical_text("PROTOBUF", normalised, normalise=True)
    assert normalised == canonical_text("PROTOBUF", plain, normalise=True)
    described = canonical_text("PROTOBUF", serialised(plain))
    for word in ("map<string, .yard.v1.Crane.Part>", "oneof drive {", 'default = "a \\"b\\""', "500 to max", "stream"):
        assert word in described
    meant = FileDescriptorProto.FromString(base64.b64decode(serialised(plain)))
    again = FileDescriptorProto.FromString(base64.b64decode(serialised(described)))
    crane, other = meant.message_type[1], again.message_type[1]
    assert [(one.name, one.number, one.type) for one in crane.field if one.name != "place"] == [
        (one.name, one.number, one.type) for one in other.field if one.name != "place"
    ]
    assert meant.enum_type == again.enum_type
    assert crane.reserved_name == other.reserved_name


def test_avro_is_normalised() -> None:
    """Full names, members in one order, aliases sorted; what a reader or a person needs is kept."""
    one = {
        "fields": [
            {"order": "Descending", "type": ["null", "Kind"], "name": "kind", "aliases": ["b", "a"], "doc": "which"},
            {"name": "all", "type": {"items": {"type": "long", "logicalType": "timestamp-millis"}, "type": "array"}},
            {"name": "by", "type": {"values": {"type": {"type": "string"}}, "type": "map"}, "default": {}, "z": 1},
            {"name": "mark", "type": {"type": "fixed", "size": 4, "name": "other.Mark", "aliases": ["Old"]}},
            {"name": "next", "type": ["null", "Ping"]},
        ],
        "doc": "a ping",
        "namespace": "yard",
        "name": "Ping",
        "type": "record",
        "aliases": ["far.Pong", "Pang"],
        "team": "a",
    }
    one["fields"][0]["type"][1] = {"name": "Kind", "symbols": ["A", "B"], "type": "enum", "default": "A"}
    found = canonical_text("AVRO", orjson.dumps(one).decode(), normalise=True)
    assert found == canonical_text("AVRO", found, normalise=True)
    for part in (
        '"name":"Ping"',
        '"namespace":"yard"',
        '"order":"descending"',
        '"default":"A"',
        '"team":"a"',
        '"size":4',
    ):
        assert part in found
    turned = dict(reversed(one.items()))
    assert found == canonical_text("AVRO", orjson.dumps(turned).decode(), normalise=True)
