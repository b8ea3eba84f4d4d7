"""The command convert, and load of documents in older dialects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from signalbook.cli import Exit, main

OLD = {"specversion": "0.5-wip", "id": "r", "messagegroups": {"g": {"id": "g", "origin": "urn:x", "messages": {}}}}
FIRST = {"id": "g", "specversion": "0.1", "format": "NATS", "definitions": [{"id": "d", "definition": {}}]}


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
    assert ["more.json", "old.json"] == sorted(path.name for path in out.iterdir())
    assert ["g", "h"] == list(json.loads((out / "more.json").read_text(encoding="utf-8"))["messagegroups"])


def test_strict(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--strict fails where something is lost or changed, not where it is held."""
    assert Exit.OK == main(["convert", str(old), "--to", "1.0-rc2", "--strict"])
    lossy = tmp_path / "lossy.json"
    lossy.write_text('{"specversion": "1.0-rc2", "endpoints": {"e": {}}}', encoding="utf-8")
    assert Exit.REFUSED == main(["convert", str(lossy), "--to", "0.1", "--strict"])


@pytest.mark.parametrize("arguments", [["--to", "2.0"], [], ["--from", "x", "--to", "0.1"], ["--to", "1.0-rc1"]])
def test_a_dialect_that_there_is_not(old: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A dialect that is not known, or cannot be written, is named with those that can."""
    assert Exit.USAGE == main(["convert", str(old), *arguments])
    assert "is not one of" in capsys.readouterr().err


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
    assert "loaded 1 groups with 1 resources from 1 document(s)" in capsys.readouterr().err
    assert Exit.USAGE == main(["load", str(lone), "--store", store])
    assert Exit.OK == main(["load", str(lone), "--store", store, "--group", "h"])
    capsys.readouterr()
    assert Exit.OK == main(["get", "/messagegroups/h/messages/m", "--store", store, "--json"])
    assert {"topic": "t"} == json.loads(capsys.readouterr().out)["protocoloptions"]
