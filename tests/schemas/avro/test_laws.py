"""Laws of the Avro format, on random schemas and payloads."""

import copy
import json
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook.schemas import SchemaError, compatible
from signalbook.schemas.avro import decode, fast
from signalbook.schemas.avro import payload as avro
from signalbook.schemas.avro.columns import text_of
from signalbook.schemas.avro.payload import check_json
from tests.schemas.arrow_types import assert_tabular, plain
from tests.schemas.avro_values import container, payloads, schemas, varint

SETTINGS = settings(max_examples=60, deadline=None)


@SETTINGS
@given(st.data())
def test_a_payload_passes_its_own_check(data: st.DataObject) -> None:
    """A payload made from a schema is accepted by it on both paths, with the value that was put in."""
    schema = avro.read(json.dumps(data.draw(schemas())))
    payload, value = data.draw(payloads(schema.node))
    assert ((), value) == schema.check(payload)
    assert ((), value) == schema._check_general(payload)


def damage(chance: random.Random, payload: bytes) -> bytes:
    """A payload with some bytes replaced by what writers do not write and readers may take nevertheless."""
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(payload) + 1)
        byte = payload[at] if at < len(payload) else 0
        replaced = chance.choice(
            [
                lambda byte: bytes([chance.randrange(256)]),
                lambda byte: bytes([chance.choice([0, 1, 2, 3, 127, 128, 129, 254, 255])]),
                # the same integer in more bytes, or with bits that have no place
                lambda byte: bytes([byte | 0x80, *[0x80] * chance.randint(0, 10), chance.choice([0, 0, 1, 2, 0x7F])]),
                lambda byte: bytes([byte | 0x80, *chance.choices([0x80, 0xFF], k=8), chance.choice([0, 1, 2, 0x7F])]),
                # an index from the end, or far away
                lambda byte: varint(-chance.choice([1, 2, 3, 15, 16, 17, 18, 19, 20, 64, 2**31, 2**32 - 1, 2**63])),
                # a block with its size, which may be wrong, and the count that has no absolute value
                lambda byte: varint(-(byte >> 1)) + varint(chance.choice([0, 1, byte, -1, 2**40, -(2**63)])),
                lambda byte: varint(-(2**63)) + varint(chance.choice([0, 1, -1])) + bytes([byte]),
                lambda byte: b"",
            ]
        )(byte)
        payload = payload[:at] + replaced + payload[at + 1 :]
    return payload[: chance.randint(0, len(payload))] if chance.random() < 0.1 else payload


@SETTINGS
@given(st.data(), st.randoms(use_true_random=True))
def test_the_paths_agree(data: st.DataObject, chance: random.Random) -> None:
    """Bytes that were damaged never raise, and the fast path accepts exactly what the general one accepts."""
    schema = avro.read(json.dumps(data.draw(schemas())))
    payload, _ = data.draw(payloads(schema.node))
    for _ in range(40):
        damaged = damage(chance, payload)
        checked, judged = schema.check(damaged), schema._check_general(damaged)
        assert (judged.problems, repr(judged.value)) == (checked.problems, repr(checked.value)), damaged.hex()


@pytest.mark.parametrize(
    ("items", "size"),
    [
        ("boolean", 1),
        ("double", 8),
        (["null", "int"], 1),
        ({"type": "record", "name": "R", "fields": [{"name": kind, "type": kind} for kind in ("null", "boolean")]}, 1),
        ({"type": "array", "items": "boolean"}, 1),
    ],
    ids=["boolean", "double", "union", "record", "array"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["array", "map"])
def test_the_paths_count_alike(monkeypatch: pytest.MonkeyPatch, kind: str, items: Any, size: int) -> None:
    """Where the general path finds too many values in a payload, the fast one does not read it."""
    monkeypatch.setattr(decode, "MOST_VALUES", 200)
    monkeypatch.setattr(fast, "MOST_VALUES", 200)
    schema = avro.read(json.dumps({"type": kind, "items" if kind == "array" else "values": items}))
    found = set()
    for count in range(1, 260):
        payload = varint(count) + bytes(count * (size + (kind == "map"))) + b"\0"
        checked, judged = schema.check(payload), schema._check_general(payload)
        assert (judged.problems, repr(judged.value)) == (checked.problems, repr(checked.value))
        found.add(bool(judged.problems))
    assert {False, True} == found


@SETTINGS
@given(st.data())
def test_columns_hold_every_value(data: st.DataObject) -> None:
    """The columns take every checked value and give it back, with types that Delta and Spark hold."""
    schema = avro.read(json.dumps(data.draw(schemas())))
    made = [data.draw(payloads(schema.node)) for _ in range(3)]
    rows = [schema.convert(schema.check(payload).value) for payload, _ in made]
    kind = schema.columns()
    assert_tabular(kind)
    array = pa.array(rows, type=kind)
    array.validate(full=True)
    assert [plain(kind, row) for row in rows] == [plain(kind, row) for row in array.to_pylist()]


@SETTINGS
@given(st.data())
def test_text_gives_the_value_back(data: st.DataObject) -> None:
    """The JSON text that stands for a value without columns is read back as that value."""
    schema = avro.read(json.dumps(data.draw(schemas())))
    _, value = data.draw(payloads(schema.node))
    assert ((), value) == check_json(schema.node, text_of(schema.node, value).encode())


def changed(data: st.DataObject, document: Any) -> Any:  # noqa: C901  one branch a change
    """The schema with a few changes, some of which break promises."""
    records: list[dict[str, Any]] = []

    def find(one: Any) -> None:
        if isinstance(one, dict):
            if one.get("type") == "record":
                records.append(one)
            for inner in one.values():
                find(inner)
        elif isinstance(one, list):
            for inner in one:
                find(inner)

    document = copy.deepcopy(document)
    find(document)
    for number in range(data.draw(st.integers(1, 3))):
        if not records:
            break
        fields = data.draw(st.sampled_from(records))["fields"]
        action = data.draw(st.sampled_from(["add", "add_bare", "remove", "promote", "nullable", "move"]))
        if action in ("add", "add_bare"):
            kind, default = data.draw(
                st.sampled_from([("int", 5), (["null", "string"], None), ({"type": "array", "items": "int"}, [1])])
            )
            fields.append({"name": f"new{number}", "type": kind} | ({"default": default} if action == "add" else {}))
        elif fields:
            at = data.draw(st.integers(0, len(fields) - 1))
            if action == "remove":
                del fields[at]
            elif action == "move":
                fields.append(fields.pop(at))
            elif action == "promote":
                wider = {"int": "long", "long": "double", "float": "double", "string": "bytes", "double": "int"}
                fields[at]["type"] = (
                    wider.get(fields[at]["type"], fields[at]["type"])
                    if isinstance(fields[at]["type"], str)
                    else fields[at]["type"]
                )
            elif not isinstance(fields[at]["type"], list) and fields[at]["type"] != "null":
                fields[at]["type"] = ["null", fields[at]["type"]]
    return document


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_backward_means_that_older_payloads_are_read(data: st.DataObject) -> None:
    """If a change is backward compatible, the newer schema reads a file that the older one wrote."""
    older_text = data.draw(schemas())
    try:
        newer = avro.read(json.dumps(changed(data, older_text)))
    except SchemaError:  # a change took away the definition of a name that is used later
        return
    older = avro.read(json.dumps(older_text))
    if list(compatible([older, newer], "backward")):
        return
    written = [data.draw(payloads(older.node))[0] for _ in range(2)]
    assert () == newer.check(container(json.dumps(older_text), written)).problems
