import base64
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from signalbook.cli.entities import address
from tests.cli.conftest import Run

MOVED = "/messagegroups/fleet/messages/moved"
SCHEMA = "/schemagroups/fleet/schemas/position"
Target = tuple[str, str]
GIVEN = ("createdtimeutc", "updatedtimeutc")


@pytest.mark.parametrize(
    ("path", "flags", "expected"),
    [
        ("/", [], "/"),
        ("a/b", [("inline", "*")], "/a/b?inline=*"),
        ("/a?doc", [("sort", "name=desc")], "/a?doc&sort=name=desc"),
        ("/a", [("filter", "labels.x=a&b#c"), ("filter", "y=1 2")], "/a?filter=labels.x=a%26b%23c&filter=y=1%202"),
    ],
)
def test_an_address_carries_its_flags(path: str, flags: list[tuple[str, str | None]], expected: str) -> None:
    """Flags follow the path, escaped where a URL needs it."""
    assert expected == address(path, flags)


def test_put_get_delete(run: Run, target: Target) -> None:
    """What put writes, get prints and delete removes, in a store and on a server alike."""
    written = run("put", MOVED, "--data", '{"description": "one"}', *target)
    assert (0, "one", 1) == (written.code, written.json["description"], written.json["epoch"])
    changed = run("put", MOVED, "--patch", "--data", '{"name": "Moved"}', *target)
    assert ("one", "Moved", 2) == tuple(changed.json[name] for name in ("description", "name", "epoch"))
    assert changed.json["name"] == run("get", MOVED, *target).json["name"]
    stale = run("put", MOVED, "--epoch", "1", "--data", "{}", *target)
    assert (1, "") == (stale.code, stale.out)
    assert "[mismatched_epoch]" in stale.err
    assert "read it again" in stale.err
    assert 0 == run("delete", MOVED, *target).code
    gone = run("get", MOVED, *target)
    assert (3, "") == (gone.code, gone.out)
    assert "[not_found]" in gone.err
    assert 1 == len(gone.err.splitlines())


def test_get_takes_flags(run: Run, target: Target, catalog: Path) -> None:
    """Inline, filter, sort and the rest reach the registry."""
    assert 0 == run("load", str(catalog), *target).code
    shown = run("get", "/messagegroups/fleet", "--inline", "messages", "--filter", "messages.labels.team=road", *target)
    assert ["moved"] == list(shown.json["messages"])
    ordered = run("get", "/messagegroups/fleet/messages", "--sort", "description=desc", *target)
    assert ["parked", "moved"] == list(ordered.json)
    other = run("get", MOVED, "--specversion", "1.0-rc4", "--json", *target)
    assert 1 == len(other.out.splitlines())
    bad = run("get", "/", "--filter", "[", *target)
    assert (1, "") == (bad.code, bad.out)


def test_a_document_is_printed_as_it_is(run: Run, target: Target, catalog: Path) -> None:
    """`get --document` prints the bytes of a resource's document, `get` its metadata."""
    assert 0 == run("load", str(catalog), *target).code
    place = "/schemagroups/fleet/schemas/position"
    assert "position" == run("get", place, *target).json["schemaid"]
    assert {"type": "object"} == run("get", place, "--document", *target).json


DOCUMENTS: list[tuple[str, bytes, tuple[str, ...], str | None]] = [
    ("position.json", b'{ "type":"object" }\n', (), "application/json"),
    ("position.avsc", b'{ "type":"record" }', (), None),
    ("position.avsc", b'{ "type":"record" }', ("--content-type", "application/json"), "application/json"),
    ("position.bin", b"\x00\xff", ("--content-type", "application/x-fdset"), "application/x-fdset"),
    ("nothing", b"", (), None),
]


def test_a_document_is_written_as_it_is(run: Run, target: Target, tmp_path: Path) -> None:
    """`put --document` makes a file's bytes the document of a resource or version; its other attributes stay."""
    assert 0 == run("put", SCHEMA, "--data", '{"name": "Position", "contenttype": "text/x"}', *target).code
    for place in (SCHEMA, f"{SCHEMA}$details", f"{SCHEMA}/versions/1"):
        for file, content, options, contenttype in DOCUMENTS:
            (tmp_path / file).write_bytes(content)
            written = run("put", place, file, "--document", *options, *target)
            assert (0, "") == (written.code, written.err)
            assert ("Position", contenttype) == (written.json["name"], written.json.get("contenttype"))
            shown = run("get", SCHEMA, "--inline", "schema", "--binary", *target).json
            assert content == base64.b64decode(shown.get("schemabase64", ""))
    stale = run("put", SCHEMA, "nothing", "--document", "--epoch", "1", *target)
    assert (1, True) == (stale.code, "[mismatched_epoch]" in stale.err)
    second = run("put", f"{SCHEMA}/versions/v2", "-", "--document", *target, stdin="text")
    assert (0, "v2") == (second.code, second.json["versionid"])
    assert "text" == run("get", f"{SCHEMA}/versions/v2", "--document", *target).out


def test_a_document_needs_a_place(run: Run, target: Target) -> None:
    """What has no document is not written as metadata instead."""
    for path in (MOVED, "/schemagroups/fleet", "/schemagroups", f"{SCHEMA}/versions", "/none/x/none/y"):
        refused = run("put", path, "-", "--document", *target, stdin="{}")
        assert (2, "", True) == (refused.code, refused.out, "has no document" in refused.err)


@pytest.mark.parametrize(
    ("path", "body", "hinted"),
    [
        (SCHEMA, {"type": "object"}, True),
        (SCHEMA, {"$schema": "http://json-schema.org/draft-07/schema#"}, True),
        (SCHEMA, {"description": "A place.", "properties": {}}, True),
        (f"{SCHEMA}/versions/1", {"type": "object"}, True),
        (SCHEMA, {"type": "object", "name": "Position"}, False),
        (SCHEMA, {"type": "object", "schema": {"type": "object"}}, False),
        (SCHEMA, {"description": "A place."}, False),
        (MOVED, {"type": "object"}, False),
        ("/schemagroups/fleet", {"type": "object"}, False),
    ],
)
def test_a_schema_in_place_of_metadata_is_told(run: Run, path: str, body: dict[str, Any], hinted: bool) -> None:
    """A JSON Schema that is put as metadata is written, as it was said, and a line says what was likely meant."""
    result = run("put", path, "--data", json.dumps(body), "--store", "x.db")
    assert (0, hinted) == (result.code, "looks like a JSON Schema" in result.err)
    assert int(hinted) == len(result.err.splitlines())


def test_a_collection_is_printed_whole(run: Run, target: Target) -> None:
    """More entries than a page holds are all printed; where a limit cuts them, standard error says so."""
    messages = "/messagegroups/big/messages"
    body = {f"m{number}": {"name": str(number % 2)} for number in range(10_005)}
    assert 0 == run("put", messages, "--post", *target, stdin=json.dumps(body)).code
    whole = run("get", messages, "--json", *target)
    assert (sorted(body), "") == (sorted(whole.json), whole.err)
    cut = run("get", messages, "--limit", "2", "--filter", "name=1", *target)
    assert (0, ["m1", "m10001"]) == (cut.code, list(cut.json))
    assert "there is more (5,002 entries in all); leave out the limit, or go on with '/messagegroups/" in cut.err
    (following,) = shlex.split(cut.err.rpartition(" go on with ")[2])
    assert ["m10003", "m1001"] == list(run("get", following, *target).json)
    assert "" == run("get", messages, "--limit", "2", "--filter", "name=2", *target).err


def test_export_is_what_load_takes(run: Run, target: Target, catalog: Path, tmp_path: Path) -> None:
    """An export loaded into a new store gives the same catalog."""
    assert 0 == run("load", str(catalog), *target).code
    exported = tmp_path / "out.json"
    assert 0 == run("export", "--output", str(exported), *target).code
    loaded = run("load", str(exported), "--with-model", "--with-metadata", "--store", str(tmp_path / "copy.db"))
    assert (0, "") == (loaded.code, loaded.out), loaded.err
    copied = run("export", "--store", str(tmp_path / "copy.db")).json
    original = json.loads(exported.read_text())
    for name in ("messagegroups", "schemagroups"):
        assert _lasting(original[name]) == _lasting(copied[name])


def test_an_export_in_01_has_the_log(run: Run, target: Target, tmp_path: Path) -> None:
    """What was written one by one is a version each in an export of 0.1, and a load of that has them all again."""
    for group, name in (("fleet", "CloudEvents/1.0"), ("road", "CloudEvents/1.0")):
        run("put", f"/messagegroups/{group}", "--data", json.dumps({"envelope": name}), *target)
    for text in ("one", "two", "three"):
        message = {"envelope": "CloudEvents/1.0", "description": text, "envelopemetadata": {"type": {"value": "moved"}}}
        assert 0 == run("put", MOVED, "--data", json.dumps(message), *target).code
    run("put", SCHEMA, "--data", '{"description": "of a position"}', *target)
    exported = run("export", "--specversion", "0.1", *target)
    assert (0, ["fleet", "road"]) == (exported.code, [group["id"] for group in exported.json])
    assert "signalbook: a catalog of 0.1 has message groups alone; left out: 1 schemagroups\n" == exported.err
    (definition,) = exported.json[0]["definitions"]
    assert [1, 2, 3] == [version["version"] for version in definition["versions"]]
    copy = ("--store", str(tmp_path / "copy.db"))
    loaded = run("load", "-", *copy, stdin=exported.out)
    assert 0 == loaded.code, loaded.err
    again = run("export", "--specversion", "0.1", *copy)
    assert (_timeless(exported.json), "") == (_timeless(again.json), again.err)
    assert "0 resources written" not in loaded.err
    assert "there already" in run("load", "-", *copy, stdin=exported.out).err


def test_an_export_in_01_of_a_group_with_several_formats(run: Run, tmp_path: Path) -> None:
    """A group of messages of several formats becomes one of each, which a load puts together again."""
    store = ("--store", str(tmp_path / "one.db"))
    for protocol in ("MQTT/5.0", "NATS"):
        for text in ("one", "two"):
            message = {"protocol": protocol, "description": text}
            path = f"/messagegroups/mixed/messages/{protocol[:4].lower()}"
            assert 0 == run("put", path, "--data", json.dumps(message), *store).code
    exported = run("export", "--specversion", "0.1", *store)
    assert ["mixed.MQTT", "mixed.NATS"] == [group["id"] for group in exported.json]
    copy = ("--store", str(tmp_path / "copy.db"))
    loaded = run("load", "-", *copy, stdin=exported.out)
    assert 0 == loaded.code, loaded.err
    assert _timeless(exported.json) == _timeless(run("export", "--specversion", "0.1", *copy).json)


def test_an_export_in_01_keeps_the_ids(run: Run, target: Target, tmp_path: Path) -> None:
    """An extension attribute called `id` does not become the id of a definition of 0.1."""
    for name in ("one", "two"):
        message = {"protocol": "NATS", "id": "two", "protocoloptions": {"subject": name}}
        assert 0 == run("put", f"/messagegroups/h/messages/{name}", "--data", json.dumps(message), *target).code
    exported = run("export", "--specversion", "0.1", *target)
    assert ["one", "two"] == [one["id"] for one in exported.json["definitions"]]
    copy = ("--store", str(tmp_path / "copy.db"))
    assert 0 == run("load", "-", *copy, stdin=exported.out).code
    assert "two" == run("get", "/messagegroups/h/messages/one", *copy).json["id"]


def test_an_export_in_01_says_what_breaks_its_rules(run: Run, target: Target) -> None:
    """A definition of an export that a load would refuse by the rules of 0.1 is named."""
    message = json.dumps({"envelope": "CloudEvents/1.0"})
    assert 0 == run("put", "/messagegroups/h/messages/m", "--data", message, *target).code
    exported = run("export", "--specversion", "0.1", *target)
    place = "/definitions/0/versions/0/definition/attributes/type"
    words = f"signalbook: changed: {place} is against the rules of 0.1: must be present, with a value\n"
    assert (0, words) == (exported.code, exported.err)


def _timeless(value: Any) -> Any:
    """Documents of 0.1 without the times that each catalog gives."""
    if isinstance(value, dict):
        return {
            key: _timeless(inner) for key, inner in value.items() if key not in ("createdtimeutc", "updatedtimeutc")
        }
    return [_timeless(inner) for inner in value] if isinstance(value, list) else value


def _lasting(value: Any) -> Any:
    """An export without what belongs to the registry it came from."""
    if isinstance(value, dict):
        return {key: _lasting(inner) for key, inner in value.items() if key not in ("epoch", "createdat", "modifiedat")}
    return value


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("put", "/x", "--data", "{"), "--data is not JSON"),
        (("put", "/x", "--data", "[]"), "--data must be a JSON object"),
        (("put", "/x", "absent.json"), "there is no file or folder 'absent.json'"),
        (("get", "/", "--store", "a.db", "--server", "http://127.0.0.1:1"), "give one of them"),
        (("get", "/", "--limit", "0"), "--limit"),
        (("get", "/", "--nope"), "--nope"),
        (("nope",), "nope"),
        (("get", "/", "--server", "http://127.0.0.1:1", "--token-file", "empty"), "is empty"),
        (("get", "/", "--server", "nonsense"), "'nonsense' is not a server address; try http"),
        (("get", "/", "--server", "http://"), "is not a server address"),
        (("get", "/", "--server", "http://["), "is not a server address"),
        (("get", "/", "--server", "http://x:99999"), "is not a server address"),
        (("get", "/", "--store", "."), "'.' is a folder; a store is a file"),
        (("put", "/x", "--data", "{}", "--store", "sqlite:."), "'.' is a folder"),
        (("put", "/x", "empty", "--content-type", "text/plain"), "add --document"),
        (("put", "/x", "--data", "{}", "--document"), "--data, --patch and --post do not go with it"),
        (("put", "/x", "empty", "--document", "--patch"), "--data, --patch and --post do not go with it"),
        (("put", SCHEMA, "empty", "--document", "--content-type", "text"), "'text' is not a media type"),
        (("put", SCHEMA, "absent", "--document"), "there is no file or folder 'absent'"),
    ],
)
def test_wrong_usage_is_exit_code_2(run: Run, tmp_path: Path, args: tuple[str, ...], words: str) -> None:
    """A command that was used wrongly says how and ends with 2."""
    (tmp_path / "empty").touch()
    result = run(*args)
    assert (2, "") == (result.code, result.out)
    assert words in result.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("get", "/"), "there is no store 'signalbook.db'; make one with: signalbook load"),
        (("export", "--store", "x.db"), "there is no store 'x.db'"),
        (("delete", "/x", "--store", "sqlite:x.db"), "there is no store 'x.db'"),
        (("get", "/", "--server", "http://127.0.0.1:1"), "start one with: signalbook serve"),
        (("get", "/", "--server", "http://127.0.0.1:1", "--token-file", "absent"), "'absent': No such file"),
    ],
)
def test_what_cannot_be_reached_is_exit_code_3(run: Run, args: tuple[str, ...], words: str) -> None:
    """A store or server that is not there is named with the likely remedy."""
    result = run(*args)
    assert (3, "") == (result.code, result.out)
    assert words in result.err
    assert 1 == len(result.err.splitlines())


def test_put_reads_standard_input_and_yaml(run: Run, tmp_path: Path) -> None:
    """An entity may come from standard input or from YAML."""
    assert "a" == run("put", MOVED, "-", "--store", "x.db", stdin="name: a\n").json["name"]
    (tmp_path / "b.yaml").write_text("name: b\n")
    assert "b" == run("put", MOVED, "b.yaml", "--store", "x.db").json["name"]


def test_what_the_registry_refuses_is_one_sentence(run: Run) -> None:
    """A refusal names the attribute, the error and what to do."""
    result = run("put", MOVED, "--data", '{"name": 5}', "--store", "x.db")
    assert 1 == result.code
    assert 1 == len(result.err.splitlines())
    assert '"name"' in result.err
    assert result.err.endswith("[invalid_attribute]\n")


def test_an_entity_given_twice_is_refused(run: Run) -> None:
    """A FILE beside --data would be ignored, so it is refused."""
    result = run("put", "/messagegroups/g", "g.json", "--data", "{}")
    assert (2, True) == (result.code, "is given twice" in result.err)
