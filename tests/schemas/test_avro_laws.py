"""Laws of the Avro format, on random schemas and payloads."""

import copy
import json
import re
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook.schemas import SchemaError, avro, compatible
from signalbook.schemas.avro_json import check_json
from signalbook.schemas.avro_text import text_of
from tests.schemas.arrow_types import assert_tabular, plain
from tests.schemas.avro_values import container, payloads, schemas

SETTINGS = settings(max_examples=60, deadline=None)

# What fastavro takes although no writer writes it; the strict road refuses it.
LENIENT = re.compile(r"a boolean is|an integer has more than|a block of|the union has .* says -(1[7-9]|[2-9]\d|\d{3})")


@SETTINGS
@given(st.data())
def test_a_payload_passes_its_own_check(data: st.DataObject) -> None:
    """A payload made from a schema is accepted by it on both roads, with the value that was put in."""
    schema = avro.read(json.dumps(data.draw(schemas())))
    payload, value = data.draw(payloads(schema.node))
    assert ((), value) == schema.check(payload)
    assert ((), value) == schema._judge(payload)


@SETTINGS
@given(st.data())
def test_the_roads_agree(data: st.DataObject) -> None:
    """Bytes that were damaged never raise, and the fast road accepts only what the strict one accepts too."""
    schema = avro.read(json.dumps(data.draw(schemas())))
    payload, _ = data.draw(payloads(schema.node))
    damaged = bytearray(payload + data.draw(st.binary(max_size=3)))
    for _ in range(data.draw(st.integers(1, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    payload = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    checked, judged = schema.check(payload), schema._judge(payload)
    if judged.problems and not checked.problems:
        assert LENIENT.match(judged.problems[0].message)
    else:
        assert (judged.problems, repr(judged.value)) == (checked.problems, repr(checked.value))


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
