"""The cases that Avro's own Python package ships, run as data; the pass counts are printed, each gap is named."""

import io
import json
import warnings
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import avro.datafile
import avro.io
import avro.schema
import avro.test.test_io
import avro.test.test_schema
import pytest

from signalbook.schemas import SchemaError
from signalbook.schemas.avro import payload as avro_format
from signalbook.schemas.avro.payload import canonical_form, fingerprint

# Fingerprints that differ, by a word of their schema, and why.
OTHER_FINGERPRINTS = {
    "HandshakeRequest": "Python's canonical form repeats the definition of MD5; the specification has its name",
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def told(capsys: pytest.CaptureFixture[str], what: str, passed: int, total: int) -> None:
    """Print a count, whatever pytest captures."""
    with capsys.disabled():
        print(f"\nAvro suite, {what}: {passed} of {total} pass")


def test_schemas(capsys: pytest.CaptureFixture[str]) -> None:
    """What the suite calls a valid schema is read, what it calls an invalid one is refused."""
    wrong = []
    for example in avro.test.test_schema.EXAMPLES:
        try:
            avro_format.read(example.data)
            valid = True
        except SchemaError:
            valid = False
        if valid != example.valid:
            wrong.append(example.data)
    told(capsys, "schemas", len(avro.test.test_schema.EXAMPLES) - len(wrong), len(avro.test.test_schema.EXAMPLES))
    assert [] == wrong


def test_fingerprints(capsys: pytest.CaptureFixture[str]) -> None:
    """The CRC-64-AVRO of each schema is the one the suite has, but for the named ones."""
    examples = avro.test.test_schema.FINGERPRINT_EXAMPLES
    other = [
        next(word for word in OTHER_FINGERPRINTS if word in str(schema))
        for schema, expected in examples
        if fingerprint(avro_format.read(str(schema)).node).hex() != expected[0]
    ]
    told(capsys, "fingerprints", len(examples) - len(other), len(examples))
    assert list(OTHER_FINGERPRINTS) == other


def test_canonical_forms_are_stable() -> None:
    """The canonical form of a canonical form is itself."""
    for example in avro.test.test_schema.VALID_EXAMPLES:
        form = canonical_form(avro_format.read(example.data).node)
        assert form == canonical_form(avro_format.read(form).node)


def written(schema: avro.schema.Schema, datum: Any) -> bytes:
    """What Avro's own writer makes of a value."""
    stream = io.BytesIO()
    avro.io.DatumWriter(schema).write(datum, avro.io.BinaryEncoder(stream))
    return stream.getvalue()


def test_payloads(capsys: pytest.CaptureFixture[str]) -> None:
    """What Avro's own writer writes passes the check of the same schema."""
    wrong = []
    for schema, datum in avro.test.test_io.SCHEMAS_TO_VALIDATE:
        payload = written(avro.schema.parse(schema), datum)
        checked = avro_format.read(schema).check(payload)
        if checked.problems:
            wrong.append((schema, datum, checked.problems))
    total = len(avro.test.test_io.SCHEMAS_TO_VALIDATE)
    told(capsys, "payloads", total - len(wrong), total)
    assert [] == wrong


def test_encodings_of_integers() -> None:
    """The integers of the suite's table have the bytes it says."""
    for kind in ("int", "long"):
        schema = avro_format.read(json.dumps(kind))
        for value, text in avro.test.test_io.BINARY_ENCODINGS:
            assert ((), value) == schema.check(bytes.fromhex(text.decode()))


def test_defaults() -> None:
    """Each default of the suite's table is read where the writer had no such field."""
    older = avro.schema.parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}))
    for kind, default in avro.test.test_io.DEFAULT_VALUE_EXAMPLES:
        fields = [{"name": "a", "type": "int"}, {"name": "b", "type": kind, "default": default}]
        newer = avro_format.read({"type": "record", "name": "R", "fields": fields})
        stream = io.BytesIO()
        writer = avro.datafile.DataFileWriter(stream, avro.io.DatumWriter(), older)
        writer.append({"a": 1})
        writer.flush()
        checked = newer.check(stream.getvalue())
        assert () == checked.problems
        expected = default.encode("latin-1") if kind == "bytes" or "fixed" in str(kind) else default
        assert (pytest.approx(expected) if kind == "float" else expected) == checked.value[0]["b"]


def test_interop_schema() -> None:
    """The schema of the interoperability tests is read, and a file of its records is right with each codec."""
    text = files("avro").joinpath("interop.avsc").read_text(encoding="utf-8")
    schema = avro_format.read(text)
    datum = {
        "intField": 12,
        "longField": 15234324,
        "stringField": "hey",
        "boolField": True,
        "floatField": 1234.0,
        "doubleField": -1234.0,
        "bytesField": b"12312adf",
        "nullField": None,
        "arrayField": [5.0, 0.0, 12.0],
        "mapField": {"a": {"label": "a"}},
        "unionField": 12.0,
        "enumField": "C",
        "fixedField": b"1019181716151413",
        "recordField": {"label": "blah", "children": [{"label": "inner", "children": []}]},
    }
    parsed = avro.schema.parse(text)
    assert () == schema.check(written(parsed, datum)).problems
    for codec in ("null", "deflate", "bzip2", "zstandard"):
        stream = io.BytesIO()
        writer = avro.datafile.DataFileWriter(stream, avro.io.DatumWriter(), parsed, codec=codec)
        for _ in range(3):
            writer.append(datum)
        writer.flush()
        checked = schema.check(stream.getvalue())
        assert () == checked.problems
        assert [{"double": 12.0}] * 3 == [record["unionField"] for record in checked.value]


def test_the_suite_is_where_it_was() -> None:
    """The package still ships its tests; without them this file proves nothing."""
    assert Path(str(files("avro").joinpath("test"))).is_dir()
