"""The command convert, and load of documents in older dialects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signalbook.cli import Exit, main
from signalbook.registry import changes
from signalbook.registry.registry import Registry
from tests.cases import Case, cases

Json = dict[str, Any]

OLD: Json = {
    "specversion": "0.5-wip",
    "id": "r",
    "messagegroups": {"g": {"id": "g", "origin": "urn:x", "messages": {}}},
}
EVENT: Json = {
    "id": "m",
    "format": "CloudEvents/1.0",
    "metadata": {"type": {"value": "m"}, "time": {"value": "noon"}},
}
FIRST: Json = {"id": "g", "specversion": "0.1", "format": "NATS", "definitions": [{"id": "d", "definition": {}}]}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file in 0.5."""
    path = tmp_path / "old.xreg.json"
    path.write_text(json.dumps(OLD), encoding="utf-8")
    return path


def test_the_document_goes_out_and_the_report_beside(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The converted document is standard output, what happened to it standard error."""
    assert Exit.OK == main(["convert", str(old), "--to", "1.0-rc4"])
    shown = capsys.readouterr()
    assert {"0.5.origin": "urn:x"} == json.loads(shown.out)["messagegroups"]["g"]["labels"]
    assert f"{old}: held: /messagegroups/g/origin is kept in the label '0.5.origin'\n" == shown.err


def test_the_report_as_json(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json each note is an object on a line of its own."""
    assert Exit.OK == main(["convert", str(old), "--from", "0.5-wip", "--to", "1.0-rc2", "--json"])
    note = json.loads(capsys.readouterr().err)
    assert ("held", "/messagegroups/g/origin") == (note["code"], note["path"])


@cases("dialects/broken")
@pytest.mark.parametrize("lone", [False, True])
@pytest.mark.parametrize("target", ["0.1", "1.0-rc4"])
def test_what_breaks_a_rule_of_10_is_told(
    case: Case, lone: bool, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A document of 1.0 that breaks a rule of 1.0 is converted as it stands, told to be invalid, and the code is 1."""
    group = {"messagegroups": {"g": {"messages": {"m": case.given}}}}
    path = tmp_path / "new.json"
    path.write_text(json.dumps({"messageid": "m", **case.given} if lone else {"specversion": "1.0-rc2", **group}))
    code = main(["convert", str(path), "--from", "1.0-rc2", "--to", target, "--json"])
    shown = capsys.readouterr()
    notes = [json.loads(line) for line in shown.err.splitlines()]
    at = "" if lone else "/messagegroups/g/messages/m"
    assert [at + place for place in case.expect] == [note["path"] for note in notes if note["code"] == "invalid"]
    assert (Exit.REFUSED if case.expect else Exit.OK) == code
    assert json.loads(shown.out)


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({**OLD, "messagegroups": {"g": {"messages": {"m": EVENT}}}}, "/messagegroups/g/messages/m/metadata/time"),
        ({"specversion": "0.5-wip", **EVENT}, "/metadata/time"),
    ],
)
def test_what_a_registry_refuses_of_an_older_document_is_told(
    document: Json, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `load` refuses of an older document is reported at its place, and is not good enough for --strict."""
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert Exit.OK == main(["convert", str(path), "--to", "1.0-rc2"])
    assert f"{path}: changed: {place}/value is refused by a registry: value (noon) must be" in capsys.readouterr().err
    assert Exit.REFUSED == main(["convert", str(path), "--to", "1.0-rc2", "--strict"])
    assert Exit.REFUSED == main(["load", str(path), "--group", "g", "--store", str(tmp_path / "a.db")])


def test_detect(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--detect says which dialect a document is in, and why."""
    assert Exit.OK == main(["convert", "--detect", str(old)])
    assert f"{old}: 0.5-wip, xRegistry 0.5-wip (September 2024) (/messagegroups/g has 'origin')\n" == (
        capsys.readouterr().out
    )
    assert Exit.OK == main(["convert", "--detect", "--json", str(old)])
    assert "0.5-wip" == json.loads(capsys.readouterr().out)["dialect"]


def test_several_documents_go_into_files(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder is converted into a folder; without one, several documents are refused."""
    (tmp_path / "more.xreg.json").write_text(json.dumps([FIRST, {**FIRST, "id": "h"}]), encoding="utf-8")
    assert Exit.USAGE == main(["convert", str(tmp_path), "--to", "1.0-rc2"])
    assert "--output" in capsys.readouterr().err
    out = tmp_path / "out"
    assert Exit.OK == main(["convert", str(tmp_path), "--to", "1.0-rc2", "--output", str(out)])
    assert ["more.xreg.json", "old.xreg.json"] == sorted(path.name for path in out.iterdir())
    assert ["g", "h"] == list(json.loads((out / "more.xreg.json").read_text(encoding="utf-8"))["messagegroups"])


def test_files_of_one_name_go_where_they_were(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two files of one name in different folders become two files; none is replaced unless that is asked for."""
    source, out = tmp_path / "in", tmp_path / "out"
    for folder in ("a", "b/c"):
        (source / folder).mkdir(parents=True)
        content = {**OLD, "id": folder.replace("/", "-")}
        (source / folder / "x.xreg.json").write_text(json.dumps(content), encoding="utf-8")
    arguments = ["convert", str(source), "--to", "1.0-rc2", "--output", str(out)]
    assert Exit.OK == main(arguments)
    written = {str(path.relative_to(out)): json.loads(path.read_text("utf-8")) for path in out.rglob("*.json")}
    assert {"a/x.xreg.json": "a", "b/c/x.xreg.json": "b-c"} == {
        place: document["registryid"] for place, document in written.items()
    }
    capsys.readouterr()
    assert Exit.USAGE == main(arguments)
    assert "already exists" in capsys.readouterr().err
    assert Exit.OK == main([*arguments, "--force"])
    (source / "a" / "x.xreg.yaml").write_text("specversion: 0.5-wip\nid: y\n", encoding="utf-8")
    assert Exit.USAGE == main([*arguments, "--force"])
    assert "would both be written to" in capsys.readouterr().err
    assert "a" == json.loads((out / "a" / "x.xreg.json").read_text("utf-8"))["registryid"]


@cases("dialects/folders")
def test_every_catalog_document_of_a_folder_is_converted(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a folder all catalog documents are converted, and what is none is told as skipped, never passed over."""
    source, out = tmp_path / "in", tmp_path / "out"
    for place, content in case.given["files"].items():
        (source / place).parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (source / place).write_text(text, encoding="utf-8")
    code = main(["convert", str(source), "--to", "1.0-rc4", "--output", str(out), *case.given.get("arguments", ())])
    said = capsys.readouterr().err
    assert case.expect["code"] == code, said
    assert case.expect["written"] == sorted(str(path.relative_to(out)) for path in out.rglob("*.json"))
    skipped = [line for line in said.splitlines() if ": skipped: " in line]
    assert case.expect["skipped"] == [line.partition(": ")[0].removeprefix(f"{source}/") for line in skipped]
    assert all(words in said for words in case.expect.get("words", ()))


@pytest.mark.parametrize("name", ["asyncapi", "openapi"])
def test_a_document_that_is_not_ours(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no catalog document is said to be none, by every command that reads one."""
    path, store = tmp_path / "foreign.json", str(tmp_path / "s.db")
    path.write_text(json.dumps({name: "3.0.0", "info": {}, "components": {"messages": {}}}), encoding="utf-8")
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"specversion": "1.0", "id": "1", "type": "t", "source": "/s"}), encoding="utf-8")
    for arguments, code in (
        (["convert", "--detect", str(path)], Exit.REFUSED),
        (["convert", "--detect", "--json", str(path)], Exit.REFUSED),
        (["convert", "--to", "1.0-rc2", str(path)], Exit.USAGE),
        (["load", str(path), "--store", store], Exit.USAGE),
        (["lint", str(path)], Exit.REFUSED),
        (["match", str(event), "--catalog", str(path)], Exit.USAGE),
    ):
        assert code == main(arguments), arguments
        said = "".join(capsys.readouterr())
        assert "is not a catalog document" in said, arguments
        assert name in said.lower(), arguments
    assert not Path(store).exists()


def test_strict(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--strict fails where something is lost or changed, not where it is held."""
    assert Exit.OK == main(["convert", str(old), "--to", "1.0-rc2", "--strict"])
    lossy = tmp_path / "lossy.json"
    lossy.write_text('{"specversion": "1.0-rc2", "endpoints": {"e": {}}}', encoding="utf-8")
    assert Exit.REFUSED == main(["convert", str(lossy), "--to", "0.1", "--strict"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--to", "2.0"], "--to '2.0' is not one of"),
        ([], "--to is missing; name one of"),
        (["--from", "None", "--to", "0.1"], "--from 'None' is not one of"),
        (["--to", "1.0-rc1"], "--to '1.0-rc1' is not one of"),
    ],
)
def test_a_dialect_that_there_is_not(
    old: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dialect that is not known, or cannot be written, is named with those that can."""
    assert Exit.USAGE == main(["convert", str(old), *arguments])
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{", "[[[", "3", '{"specversion": "0.1"}'])
def test_what_is_no_document(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that holds no document ends in one sentence."""
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    assert main(["convert", str(path), "--to", "1.0-rc2"]) in (Exit.USAGE, Exit.REFUSED)
    assert capsys.readouterr().err.startswith("signalbook: ")


def test_load_takes_any_dialect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Documents of older dialects load, a lone definition into the group that is named."""
    store = str(tmp_path / "s.db")
    group, lone = tmp_path / "group.json", tmp_path / "lone.json"
    group.write_text(json.dumps(FIRST), encoding="utf-8")
    lone.write_text(json.dumps({"id": "m", "binding": "Kafka", "message": {"topic": {"value": "t"}}}), encoding="utf-8")
    assert Exit.OK == main(["load", str(group), "--store", store])
    assert "loaded 1 group with 1 resource from 1 document" in capsys.readouterr().err
    assert Exit.USAGE == main(["load", str(lone), "--store", store])
    assert Exit.OK == main(["load", str(lone), "--store", store, "--group", "h"])
    capsys.readouterr()
    assert Exit.OK == main(["get", "/messagegroups/h/messages/m", "--store", store, "--json"])
    assert {"topic": "t"} == json.loads(capsys.readouterr().out)["protocoloptions"]


def history(*texts: str) -> Json:
    """A group of 0.1 with a definition that has one version, and one that has a version for each text."""
    time = "2022-03-01T00:00:00Z"
    versions = [
        {"version": number, "createdtimeutc": time, "definition": {"pub": {"subject": {"value": text}}}}
        for number, text in enumerate(texts, 1)
    ]
    return {**FIRST, "definitions": [*FIRST["definitions"], {"id": "h", "versions": versions}]}


def loaded(folder: Path, document: Json, *more: str) -> int:
    """Load a document into the store of a folder."""
    path = folder / "document.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return main(["load", str(path), "--store", str(folder / "s.db"), *more])


def said(folder: Path) -> list[str]:
    """What the versions of the definition with a history say."""
    with Registry.open(folder / "s.db") as registry:
        found = changes.listing(registry.store.reader(), "/messagegroups/g/messages/h", 0, 100)
        newest = registry.get("/messagegroups/g/messages/h")["protocoloptions"]["subject"]
    texts = [one.attrs["protocoloptions"]["subject"] for one in found]
    assert newest == texts[-1]
    return texts


def test_a_history_is_loaded_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A definition with its versions is one resource; loaded again it adds what is new."""
    assert Exit.OK == loaded(tmp_path, history("a", "b"))
    told = capsys.readouterr().err
    assert "assigned: /definitions/1 left out, for the catalog gives it anew: createdtimeutc" in told
    assert "loaded 1 group with 2 resources from 1 document" in told
    for texts in (("a", "b"), ("a", "b", "c")):
        assert Exit.OK == loaded(tmp_path, history(*texts))
        assert list(texts) == said(tmp_path)


def test_a_history_is_loaded_as_a_whole(tmp_path: Path) -> None:
    """Where a version is refused, none of the definition is loaded, and what there was stays the newest."""
    assert Exit.OK == loaded(tmp_path, history("x"))
    wrong = history("a", "b")
    wrong["definitions"][1]["versions"][1]["labels"] = {"NOT A KEY": "x"}
    assert Exit.REFUSED == loaded(tmp_path, wrong)
    assert ["x"] == said(tmp_path)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({**FIRST, "definitions": [{"id": "d", "authority": "a b", "definition": {}}]}, "/definitions/0/authority"),
        ({**FIRST, "definitions": [{"id": "d", "relatedto": "nobody", "definition": {}}]}, "/definitions/0/relatedto"),
        ({"messagegroups": {"g": {"id": "other", "binding": 7}}}, "/messagegroups/g/binding"),
    ],
)
def test_what_its_own_dialect_forbids(
    document: Json, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A document that breaks the rules of its dialect is converted as it stands, with exit code 1, and not loaded."""
    assert Exit.REFUSED == loaded(tmp_path, document)
    told = capsys.readouterr().err
    assert f"invalid: {path} must" in told
    assert "nothing was loaded" in told
    assert not (tmp_path / "s.db").exists()
    assert Exit.REFUSED == main(["convert", str(tmp_path / "document.json"), "--to", "1.0-rc4"])
    out, told = capsys.readouterr()
    assert f"invalid: {path} must" in told
    assert "messagegroups" in json.loads(out)


def test_a_sticky_default_of_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A message of 0.5 whose default version sticks loads: 1.0 has one version of it, and a label says what it was."""
    messages = {"m": {"id": "m", "binding": "NATS", "defaultversionsticky": True, "defaultversionid": "1"}}
    document = {"specversion": "0.5-wip", "messagegroups": {"g": {"id": "g", "messages": messages}}}
    assert Exit.OK == loaded(tmp_path, document)
    assert "held: /messagegroups/g/messages/m/defaultversionsticky" in capsys.readouterr().err


def test_a_mislabelled_document_is_refused_with_a_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The words name the command that takes --from: `load` does not."""
    group = {"id": "g", "messages": {"m": {"id": "m", "binding": "NATS", "message": {"subject": {"value": "s"}}}}}
    assert Exit.USAGE == loaded(tmp_path, {"specversion": "1.0-rc4", "id": "r", "messagegroups": {"g": group}})
    assert "correct the label, or say what it is: signalbook convert --from" in capsys.readouterr().err


def test_an_unknown_label_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A label that no dialect has is no reason to refuse a document, and is told."""
    assert Exit.OK == loaded(tmp_path, {"specversion": "9.9", "messagegroups": {"g": {}}})
    assert 'changed: /specversion "9.9" is not the label of a known dialect' in capsys.readouterr().err


def test_labels_of_a_meta_are_loaded_as_they_are_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The labels of a meta stay there, in a conversion and in a registry."""
    message = {"protocol": "NATS", "meta": {"labels": {"team": "a"}}}
    document = {"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {"m": message}}}}
    assert Exit.OK == loaded(tmp_path, document)
    capsys.readouterr()
    assert Exit.OK == main(["convert", str(tmp_path / "document.json"), "--to", "1.0-rc4"])
    assert message == json.loads(capsys.readouterr().out)["messagegroups"]["g"]["messages"]["m"]
    with Registry.open(tmp_path / "s.db") as registry:
        shown = registry.get("/messagegroups/g/messages/m?inline=meta")
    assert ({"team": "a"}, False) == (shown["meta"]["labels"], "labels" in shown)


def test_a_respelling_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is stored in another spelling than it was sent in is a note of convert, at its place."""
    message = {"protocol": "nats", "protocoloptions": {"subject": "a", "reply-to": "r"}}
    event = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"attributes": {"type": {"value": "e"}}}}
    other = {
        "protocol": "BunnyMQ/1",
        "protocoloptions": {"reply-to": "r"},
        "basemessageuri": "/messagegroups/g/messages/m",
    }
    document = {
        "specversion": "1.0-rc4",
        "messagegroups": {"g": {"messages": {"m": message, "o": other}}, "h": {"messages": {"e": event}}},
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    expected = [
        "/messagegroups/g/messages/m/protocol",
        "/messagegroups/g/messages/m/protocoloptions/reply-to",
        "/messagegroups/h/messages/e/envelopemetadata/attributes",
    ]
    assert Exit.OK == main(["convert", str(path), "--to", "1.0-rc4", "--strict", "--json"])
    notes = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert expected == [note["path"] for note in notes if note["code"] == "respelled"]
