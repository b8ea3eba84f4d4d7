import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CATALOG, Run
from tests.conftest import StartServer

Target = tuple[str, str]


def test_load_a_file(run: Run, target: Target, catalog: Path) -> None:
    """A file's groups and resources are there after load; standard output stays empty."""
    result = run("load", str(catalog), *target)
    assert (0, "", "loaded 2 groups with 3 resources from 1 document\n") == (result.code, result.out, result.err)
    assert "A vehicle moved." == run("get", "/messagegroups/fleet/messages/moved", *target).json["description"]


def test_load_again_writes_nothing(run: Run, target: Target, catalog: Path) -> None:
    """Loading the same files again, in whatever requests, leaves every epoch, time and event as it is."""
    assert 0 == run("load", str(catalog), *target).code
    before = run("export", *target).out
    for chunk in ("1", "2", "0", "500"):
        assert 0 == run("load", str(catalog), "--chunk", chunk, *target).code
    assert before == run("export", *target).out


def test_what_is_written_and_what_is_unchanged_are_told(run: Run, target: Target, catalog: Path) -> None:
    """A load says how much of what it read was new or changed, and how much was there already."""

    def counts(*args: str) -> tuple[dict[str, int], dict[str, int]]:
        found = run("load", str(catalog), "--json", *args, *target).json
        return found["written"], found["unchanged"]

    nothing, everything = {"groups": 0, "resources": 0}, {"groups": 2, "resources": 3}
    assert (everything, nothing) == counts()
    for chunk in ("1", "2", "0"):
        assert (nothing, everything) == counts("--chunk", chunk)
    told = "no group or resource was written: 2 groups with 3 resources from 1 document are there already, unchanged\n"
    assert told == run("load", str(catalog), *target).err
    changed = json.loads(catalog.read_text())
    changed["messagegroups"]["fleet"]["messages"]["moved"]["description"] = "Another one."
    catalog.write_text(json.dumps(changed))
    told = "1 resource written, 2 groups and 2 resources unchanged\n"
    result = run("load", str(catalog), "--chunk", "1", *target)
    assert result.err.endswith(f": 0 groups and {told}"), result.err
    changed["messagegroups"]["fleet"]["description"] = "Of vehicles."
    catalog.write_text(json.dumps(changed))
    assert ({"groups": 1, "resources": 0}, {"groups": 1, "resources": 3}) == counts()


def test_refused_documents_are_listed(run: Run, target: Target, tmp_path: Path, catalog: Path) -> None:
    """With --json every document that was not loaded is listed with the error, the others are counted."""
    files = {
        "a.xreg.json": "{",
        "b.xreg.json": json.dumps({"messagegroups": {"b": {"messages": {"y": {"name": 1}}}}}),
        "c.xreg.json": catalog.read_text(),
        "d.xreg.json": json.dumps({"things": {}}),
        "e.xreg.json": json.dumps({"id": "g", "format": "NATS", "definitions": [{"id": "m", "format": "CloudEvents"}]}),
    }
    (tmp_path / "files").mkdir()
    for name, text in files.items():
        (tmp_path / "files" / name).write_text(text)
    result = run("load", "files", "--keep-going", "--json", *target)
    found = result.json
    assert (1, 1) == (result.code, found["documents"])
    refused = {(Path(one["source"]).name, one.get("code", "")) for one in found["refused"]}
    expected = {("a.xreg.json", ""), ("b.xreg.json", "invalid_attribute"), ("d.xreg.json", "")}
    assert expected <= refused
    assert {"a.xreg.json", "b.xreg.json", "d.xreg.json", "e.xreg.json"} == {name for name, _ in refused}
    assert all(one["error"] and not one["error"].startswith(one["source"]) for one in found["refused"])
    assert "/messagegroups/b/messages/y" in next(one["subject"] for one in found["refused"] if "b.x" in one["source"])


def test_nothing_that_is_good(run: Run, tmp_path: Path) -> None:
    """Where no document is loaded, load does not say that it loaded."""
    (tmp_path / "a.json").write_text("{")
    result = run("load", "a.json", "--keep-going", "--store", "a.db")
    assert (1, True, False) == (result.code, "nothing was loaded\n" in result.err, "loaded 0" in result.err)


def test_a_lone_definition_leaves_its_group_alone(run: Run, target: Target, tmp_path: Path, catalog: Path) -> None:
    """A definition that is added to a group which is there changes nothing of it; a new group has its selectors."""
    assert 0 == run("load", str(catalog), *target).code
    name = run("get", "/messagegroups/fleet", *target).json["name"]
    definition = {"messageid": "lone", "envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "lone"}}}
    (tmp_path / "lone.json").write_text(json.dumps({"specversion": "1.0-rc2", **definition}))
    for _ in range(2):
        assert 0 == run("load", "lone.json", "--group", "fleet", *target).code
    group = run("get", "/messagegroups/fleet", *target).json
    assert ("Fleet", "Fleet", 3) == (name, group["name"], group["messagescount"])
    assert 0 == run("load", "lone.json", "--group", "new", *target).code
    assert "CloudEvents/1.0" == run("get", "/messagegroups/new", *target).json["envelope"]


def test_keep_going(run: Run, target: Target, tmp_path: Path, catalog: Path) -> None:
    """With --keep-going every good file is loaded; the others are named with the reason, leave nothing, and exit 1."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.xreg.json").write_text("{")
    (folder / "b.xreg.json").write_text(json.dumps({"messagegroups": {"b": {"messages": {"x": {}, "y": {"name": 1}}}}}))
    (folder / "c.xreg.json").write_text(catalog.read_text())
    (folder / "d.xreg.json").write_text(json.dumps({"things": {}}))
    result = run("load", "files", "--keep-going", *target)
    assert 1 == result.code
    for name in ("a", "b", "d"):
        assert f"{name}.xreg.json was not loaded: " in result.err
    assert "[invalid_attribute]" in result.err
    assert "loaded 2 groups with 3 resources from 1 document" in result.err
    assert "3 document(s) were not loaded" in result.err
    assert ["fleet"] == list(run("get", "/messagegroups", *target).json)
    assert 2 == run("load", "files", *target).code
    assert 2 == run("load", "files", "--keep-going", "--chunk", "5", *target).code
    for name in ("a", "b", "d"):
        (folder / f"{name}.xreg.json").unlink()
    assert 0 == run("load", "files", "--keep-going", *target).code


@pytest.mark.parametrize(("severity", "code"), [("error", 1), ("warning", 0), ("note", 0), ("off", 0)])
def test_severities_of_lint(run: Run, tmp_path: Path, severity: str, code: int) -> None:
    """What a configuration of lint calls an error load refuses, and only that; what is off is not told."""
    message = {"id": "m", "format": "CloudEvents", "version": 1, "definition": {"attributes": {"type": {"value": "m"}}}}
    (tmp_path / "old.json").write_text(json.dumps({"id": "g", "format": "NATS", "definitions": [message]}))
    (tmp_path / "lint.toml").write_text(f'[severity]\ninvalid = "{severity}"\n')
    linted = run("lint", "old.json", "--config", "lint.toml")
    loaded = run("load", "old.json", "--store", "a.db", "--config", "lint.toml")
    assert (code, code) == (linted.code, loaded.code), (linted, loaded)
    assert ("invalid: " in loaded.err) is (severity != "off")


def _file(folder: Path, name: str, **message: Any) -> None:
    event = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": name}}}
    groups = {name: {"messages": {name: {**event, **message}}}}
    (folder / f"{name}.xreg.json").write_text(json.dumps({"specversion": "1.0-rc2", "messagegroups": groups}))


_LACKING = {"dataschemaformat": "JsonSchema/draft-07", "dataschemauri": "/schemagroups/s/schemas/s"}
_ADJACENT = {"protocol": "NATS", "protocoloptions": {"subject": "{a}{b}"}}


@pytest.mark.parametrize(
    ("rule", "message"), [("placeholders-adjacent", _ADJACENT), ("schema-unavailable", _LACKING)], ids=str
)
def test_what_the_whole_catalog_shows(run: Run, tmp_path: Path, rule: str, message: dict[str, Any]) -> None:
    """What lint calls an error of the whole catalog load refuses in lint's words, unless a configuration lowers it."""
    folder = tmp_path / "files"
    folder.mkdir()
    _file(folder, "bad", **message)
    _file(folder, "good")
    linted = run("lint", "files")
    (words,) = [
        line.split(": error: ")[1].removesuffix(f" [{rule}]") for line in linted.out.splitlines() if rule in line
    ]
    refused = run("load", "files", "--store", "a.db")
    assert (1, True) == (refused.code, f"bad.xreg.json: {rule}: {words}" in refused.err), refused.err
    assert "nothing was loaded" in refused.err
    kept = run("load", "files", "--keep-going", "--store", "a.db")
    assert (1, True) == (kept.code, "1 document(s) were not loaded" in kept.err), kept.err
    assert ["good"] == list(run("get", "/messagegroups", "--store", "a.db").json)
    (tmp_path / "lint.toml").write_text(f'[severity]\n{rule} = "warning"\n')
    assert 0 == run("load", "files", "--store", "a.db", "--config", "lint.toml").code


def test_what_the_registry_has_already(run: Run, tmp_path: Path) -> None:
    """A definition may refer to a schema that the registry has, and the documents do not."""
    schema = {"format": "JsonSchema/draft-07", "schema": {"type": "integer"}}
    (tmp_path / "s.json").write_text(json.dumps({"schemagroups": {"s": {"schemas": {"s": schema}}}}))
    _file(tmp_path, "m", **_LACKING)
    codes = [run("load", name, "--store", "a.db").code for name in ("m.xreg.json", "s.json", "m.xreg.json")]
    assert [1, 0, 0] == codes


def test_a_warning_that_is_called_an_error(run: Run, tmp_path: Path) -> None:
    """What is a warning of lint does not stop a load, unless a configuration calls it an error."""
    _file(tmp_path, "m", basemessage="/messagegroups/x/messages/x")
    (tmp_path / "lint.toml").write_text('[severity]\ndangling_reference = "error"\n')
    assert 1 == run("load", "m.xreg.json", "--store", "a.db", "--config", "lint.toml").code
    assert 0 == run("load", "m.xreg.json", "--store", "a.db").code


def test_load_again_is_safe(run: Run, target: Target, catalog: Path) -> None:
    """Loading twice writes the same entities over, also in small requests."""
    for chunk in ("1", "2", "0", "500"):
        assert 0 == run("load", str(catalog), "--chunk", chunk, *target).code
    group = run("get", "/messagegroups/fleet", *target).json
    assert ("Fleet", 2) == (group["name"], group["messagescount"])


def test_load_standard_input_and_folder(run: Run, catalog: Path) -> None:
    """`-` and a folder are sources too, and --json counts what was written."""
    counted, nothing = {"groups": 2, "resources": 3}, {"groups": 0, "resources": 0}
    expected = {"documents": 1, **counted, "requests": 1, "written": counted, "unchanged": nothing, "refused": []}
    assert expected == run("load", "-", "--json", "--store", "a.db", stdin=json.dumps(CATALOG)).json
    assert expected == run("load", str(catalog.parent), "--json", "--store", "b.db").json


def test_a_document_with_a_fault_is_not_half_loaded(run: Run, target: Target, tmp_path: Path) -> None:
    """A refusal undoes its request and says where the load stopped."""
    bad = {"messagegroups": {"g": {"messages": {"a": {}, "b": {"name": 1}}}}}
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    result = run("load", "bad.json", *target)
    assert 1 == result.code
    assert "bad.json stopped after 0 resources" in result.err
    assert "[invalid_attribute]" in result.err
    assert 3 == run("get", "/messagegroups/g", *target).code


def test_a_misspelt_collection_is_refused(run: Run) -> None:
    """A member the model does not know is a mistake, not something to skip."""
    result = run("load", "-", "--store", "a.db", stdin='{"messagegroup": {}}')
    assert 2 == result.code
    assert "'messagegroup' is not a group type" in result.err


def test_a_model_of_ones_own(run: Run, tmp_path: Path) -> None:
    """--model makes a new store with another model; --with-model takes a document's."""
    model = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}
    (tmp_path / "model.json").write_text(json.dumps(model))
    document = {"modelsource": model, "dirs": {"d": {"files": {"f": {"name": "F"}}}}}
    (tmp_path / "doc.json").write_text(json.dumps(document))
    assert 0 == run("load", "doc.json", "--store", "a.db", "--model", "model.json").code
    assert 0 == run("load", "doc.json", "--store", "b.db", "--model", "empty", "--with-model").code
    assert 2 == run("load", "doc.json", "--store", "c.db").code
    for store in ("a.db", "b.db"):
        assert "F" == run("get", "/dirs/d/files/f", "--store", store).json["name"]


def schema(document: object) -> dict[str, object]:
    """A resource with a JSON Schema."""
    return {"format": "JsonSchema/draft-07", "schema": document}


def schemas(group: str, **found: object) -> str:
    """A catalog with one group of JSON Schemas."""
    resources = {name: schema(document) for name, document in found.items()}
    return json.dumps({"schemagroups": {group: {"schemas": resources}}})


def ref(group: str, name: str) -> dict[str, str]:
    """A JSON Schema that is another one."""
    return {"$ref": f"/schemagroups/{group}/schemas/{name}"}


@pytest.mark.parametrize("chunk", ["1", "500"])
def test_files_refer_to_each_other(run: Run, target: Target, tmp_path: Path, chunk: str) -> None:
    """A schema may refer to one of a later file or a later request, and these back to others of the first."""
    (tmp_path / "a.xreg.json").write_text(schemas("a", a1=ref("z", "z1"), a2={"type": "object"}))
    (tmp_path / "z.xreg.json").write_text(schemas("z", z1={"type": "object"}, z2=ref("a", "a2")))
    assert 0 == run("lint", ".").code
    result = run("load", ".", "--chunk", chunk, *target)
    assert (0, "loaded 2 groups with 4 resources from 2 documents\n") == (result.code, result.err)
    for place in ("a/schemas/a1", "z/schemas/z2"):
        assert run("get", f"/schemagroups/{place}", *target).json["formatvalidated"]


def test_why_a_schema_is_refused(run: Run, target: Target, tmp_path: Path) -> None:
    """What is wrong with a schema is said by load and, before it, by lint; nothing of its request is left."""
    (tmp_path / "a.xreg.json").write_text(schemas("a", bad={"type": "strin"}, good={"type": "string"}))
    linted, loaded = run("lint", "."), run("load", ".", *target)
    assert (1, 1) == (linted.code, loaded.code)
    for said in (linted.out, loaded.err):
        assert '"/schemagroups/a/schemas/bad/versions/1"' in said
        assert '"strin" is not' in said
        assert "[format_violation]" in said
    assert "stopped after 0 resources" in loaded.err
    assert 3 == run("get", "/schemagroups/a", *target).code


DOCUMENTS = (
    '{"maximum":123456789012345678901234567890}',
    '{"maximum": 0.10000000000000000000001,\n "minimum": 1E5}\n',
    '"abc"',
    "null",
    '{"a":1,"a":2}',
    "[" * 100 + "]" * 100,
    '{"type":"object"}',
)


def test_an_export_is_loaded_byte_for_byte(run: Run, target: Target, tmp_path: Path) -> None:
    """Export and load leave every document as it was, and `get` shows its numbers as they are written."""
    given = {f"s{number}": {"schema": text} for number, text in enumerate(DOCUMENTS)}
    (tmp_path / "a.json").write_text(json.dumps({"schemagroups": {"g": {"schemas": given}}}))
    assert 0 == run("load", "a.json", *target).code
    assert 0 == run("export", "-o", "whole.json", *target).code
    assert 0 == run("load", "whole.json", "--store", "copy.db").code
    for number, text in enumerate(DOCUMENTS):
        path = f"/schemagroups/g/schemas/s{number}"
        assert text == run("get", path, "--document", "--store", "copy.db").out
        assert text == run("get", path, "--document", *target).out
    assert {"type": "object"} == json.loads((tmp_path / "whole.json").read_text())["schemagroups"]["g"]["schemas"][
        "s6"
    ]["versions"]["1"]["schema"]
    for options in ((), ("--json",)):
        shown = run("get", "/schemagroups/g/schemas/s1", "--inline", "schema", *options, *target).out
        assert "0.10000000000000000000001" in shown
        assert "1E5" in shown


def test_a_read_only_server_says_so(run: Run, start_server: StartServer, catalog: Path) -> None:
    """A server that takes no writes says that it is read-only, not that a token is wrong."""
    result = run("load", str(catalog), "--server", start_server("--read-only", "--no-log"))
    assert 1 == result.code
    assert "This server is read-only" in result.err
    assert "token" not in result.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("load", "a.yaml", "--store", "a.db"), 'a.yaml is not YAML: the name "x" appears more than once'),
        (("lint", "a.yaml"), 'a.yaml is not YAML: the name "x" appears more than once'),
        (("put", "/messagegroups/g", "a.yaml", "--store", "a.db"), "at line 3, column 5"),
        (("put", "/messagegroups/g", "--data", '{"a":1,"a":2}', "--store", "a.db"), 'the name "a" appears more than'),
    ],
)
def test_a_name_given_twice_is_refused(run: Run, tmp_path: Path, args: tuple[str, ...], words: str) -> None:
    """A name that appears twice in an object loses nothing in silence."""
    (tmp_path / "a.yaml").write_text("messagegroups:\n    x: {}\n    x: {}\n")
    result = run(*args)
    assert 0 != result.code
    assert words in result.out + result.err


def test_versions_that_are_not_kept_are_told(run: Run, target: Target) -> None:
    """How many versions did not stay because their type keeps only so many is one line, with the first of them."""
    versions = {"versions": {"1": {}, "2": {}}}
    messages = {"a": {}, "b": {"versions": {"1": {}}}, "c": versions}
    words = "signalbook: 1 version(s) were not kept, since their type keeps only so many: "
    result = run("load", "-", "--quiet", *target, stdin=json.dumps({"messagegroups": {"g": {"messages": messages}}}))
    assert (0, f"{words}/messagegroups/g/messages/c/versions/1\n") == (result.code, result.err)
    messages = dict.fromkeys("abcde", versions)
    result = run("load", "-", "-q", *target, stdin=json.dumps({"messagegroups": {"h": {"messages": messages}}}))
    named = ", ".join(f"/messagegroups/h/messages/{name}/versions/1" for name in "abc")
    assert f"{words.replace('1', '5')}{named} and 2 more\n" == result.err
    schemas = {"s": {"versions": {"1": {"schema": {}}, "2": {"schema": {}}}}}
    result = run("load", "-", "-q", *target, stdin=json.dumps({"schemagroups": {"g": {"schemas": schemas}}}))
    assert (0, "") == (result.code, result.err)
