from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signalbook.cli.schema import guess_format
from signalbook.errors import UsageError
from tests.cli.conftest import Run

OLD: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NOTE = {"name": "note", "type": "string"}
NEW: dict[str, Any] = {"type": "record", "name": "Order", "fields": [*OLD["fields"], NOTE]}
JSON_SCHEMA = {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"n": {"type": "integer"}}}


def write(name: str, content: Any) -> str:
    """A file with a text, or with a value as JSON."""
    Path(name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return name


def test_check(run: Run) -> None:
    """A schema that is right is told by its format; one that is not, by what is wrong and where."""
    result = run("schema", "check", write("order.avsc", OLD))
    assert (0, "", "order.avsc: a schema of the format Avro/*\n") == (result.code, result.out, result.err)
    bad = write("bad.json", {**JSON_SCHEMA, "type": "objekt"})
    result = run("schema", "check", bad)
    assert 1 == result.code
    assert result.out.startswith("bad.json: /type: ")
    result = run("schema", "check", "--json", bad)
    assert {"file": "bad.json", "path": "/type"} == {name: result.json[name] for name in ("file", "path")}


def test_check_standard_input(run: Run) -> None:
    """A schema may come on standard input, with or without its format being named."""
    assert 0 == run("schema", "check", "-", stdin=json.dumps(OLD)).code
    assert 0 == run("schema", "check", "-", "--format", "avro", stdin='"string"').code
    assert 0 == run("schema", "check", "--at", "/properties/n", write("s.json", JSON_SCHEMA)).code
    assert 1 == run("schema", "check", "--at", "/properties/x", "s.json").code


def test_references(run: Run) -> None:
    """What a schema refers to is read where --reference names it, and nowhere else."""
    schema = write("s.json", {**JSON_SCHEMA, "properties": {"n": {"$ref": "/other"}}})
    write("other", {"type": "integer"})
    assert 1 == run("schema", "check", schema).code
    assert 0 == run("schema", "check", "--reference", "/other=other", schema).code


def test_diff(run: Run) -> None:
    """Each change is named by path and kind with what it breaks, and the exit code is 1 where the promise is broken."""
    old, new = write("old.avsc", OLD), write("new.avsc", NEW)
    result = run("schema", "diff", old, new)
    assert (1, "backward compatible: no, forward compatible: yes\n") == (result.code, result.err)
    assert "note" in result.out
    assert result.out.endswith(": breaks backward\n")
    assert 0 == run("schema", "diff", "--compatibility", "forward", old, new).code
    assert 1 == run("schema", "diff", "--compatibility", "full", old, new).code
    found = run("schema", "diff", "--json", old, new)
    assert (["backward"], True, True) == tuple(found.json[name] for name in ("breaks", "certain", "breaking"))
    assert (0, "") == (run("schema", "diff", old, old).code, run("schema", "diff", old, old).out)


def test_diff_of_the_unknown(run: Run) -> None:
    """What cannot be decided says so, and breaks the promise unless it is trusted."""
    old = write("old.json", {**JSON_SCHEMA, "properties": {"n": {"type": "string", "pattern": "^a+$"}}})
    new = write("new.json", {**JSON_SCHEMA, "properties": {"n": {"type": "string", "pattern": "^(a|aa)+$"}}})
    result = run("schema", "diff", old, new)
    assert 1 == result.code
    assert "cannot be decided" in result.out
    assert 0 == run("schema", "diff", "--trust-unknown", old, new).code


def test_diff_of_what_is_no_schema(run: Run) -> None:
    """A file that holds no schema is named, and the exit code is 1."""
    result = run("schema", "diff", write("old.avsc", {}), write("new.avsc", NEW))
    assert 1 == result.code
    assert result.out.startswith("old.avsc: ")


def test_validate(run: Run) -> None:
    """Every payload is checked; what is wrong is named with its file and its place in the payload."""
    schema = write("s.json", JSON_SCHEMA)
    good, bad = write("good.json", {"n": 1}), write("bad.json", {"n": "x"})
    result = run("schema", "validate", schema, good, bad)
    assert (1, "2 payload(s) checked: 1 invalid\n") == (result.code, result.err)
    assert result.out.startswith("bad.json: /n: ")
    assert {"file": "bad.json", "path": "/n"}.items() <= run("schema", "validate", "--json", schema, bad).json.items()
    assert 0 == run("schema", "validate", schema, "-", stdin="{}").code
    assert 1 == run("schema", "validate", write("no.json", {"type": 1}), good).code


def test_columns(run: Run) -> None:
    """The columns are shown with their Arrow types, the parts of a struct below it."""
    inner = {"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}]}
    fields = [*OLD["fields"], {"name": "items", "type": {"type": "array", "items": inner}}]
    file = write("order.avsc", {**OLD, "fields": fields})
    lines = run("schema", "columns", file).out.splitlines()
    assert ["id: int64", "items: list", "  sku: string"] == [
        line.partition(" not null")[0].split("<")[0] for line in lines
    ]
    found = [json.loads(line) for line in run("schema", "columns", "--json", file).out.splitlines()]
    assert [("id", "int64"), "items"] == [(found[0]["name"], found[0]["type"]), found[1]["name"]]
    assert 1 == run("schema", "columns", write("no.avsc", {})).code


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("a.xsd", "", "XSD/1.0"),
        ("a", "\ufeff <schema/>", "XSD/1.0"),
        ("a.proto", "// nothing said", "Protobuf/2"),
        ("a.proto", 'syntax = "proto3";', "Protobuf/3"),
        ("a", "// what\npackage x;\n", "Protobuf/2"),
        ("a.json", '{"$schema": "https://json-structure.org/meta/core/v0/#"}', "JsonStructure/draft-04"),
        ("a.json", '{"type": "object"}', "JsonSchema"),
        ("a.json", '{"type": "enum", "name": "E"}', "Avro/*"),
        ("a.json", '["null", "int"]', "Avro/*"),
        ("a.json", "{", "JsonSchema"),
    ],
)
def test_guess(file: str, text: str, expected: str) -> None:
    """The format is told by the suffix, by `$schema`, and else by the content."""
    assert expected == guess_format(file, text.encode())


def test_no_guess() -> None:
    """Where nothing tells the format, --format has to."""
    with pytest.raises(UsageError, match="--format"):
        guess_format("a.txt", b"what")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("check", "none.avsc"), 3, "none.avsc"),
        (("check", "--format", "RAML", "s.json"), 2, "JsonSchema/draft-07"),
        (("check", "--reference", "x", "s.json"), 2, "NAME=FILE"),
        (("validate", "-", "-"), 2, "once"),
        (("validate", "s.json"), 2, "PAYLOAD"),
        (("diff", "s.json"), 2, "NEW"),
    ],
)
def test_wrong_usage(run: Run, arguments: tuple[str, ...], code: int, said: str) -> None:
    """What cannot be meant is refused with what to do instead; what is not there ends with its own exit code."""
    write("s.json", JSON_SCHEMA)
    result = run("schema", *arguments)
    assert code == result.code
    assert said in result.err
