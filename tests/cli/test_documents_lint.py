import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases import FOLDER, Case, cases
from tests.cli.conftest import Run

NATS = {"protocol": "NATS", "protocoloptions": {"subject": "s"}}  # a definition that nothing is wrong with


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, []),
        ({"messagegroups": {"g": {"messages": {"m": NATS}}}}, []),
        ({"messagegroup": {}}, [("error", "unknown_attribute", "/")]),
        ({"messagegroups": []}, [("error", "invalid_attribute", "/messagegroups")]),
        ({"messagegroups": {"g": 1, "a b": {}}},
         [("error", "invalid_attribute", "/messagegroups/g"), ("error", "malformed_id", "/messagegroups/a b")]),
        ({"messagegroups": {"g": {"messagegroupid": "h"}}}, [("error", "mismatched_id", "/messagegroups/g")]),
        ({"messagegroups": {"g": {"name": 1, "messages": {"m": {**NATS, "labels": 2}}}}},
         [("error", "invalid_attribute", "/messagegroups/g"),
          ("error", "invalid_attribute", "/messagegroups/g/messages/m")]),
        ({"messagegroups": {"g": {"envelope": "CloudEvents/1.0", "messages": {"m": {"envelope": "Other/1.0"}}}}},
         [("error", "invalid_attribute", "/messagegroups/g/messages/m"),
          ("warning", "invalid_attribute", "/messagegroups/g/messages/m"),
          ("warning", "never-matches", "/messagegroups/g/messages/m")]),
        ({"messagegroups": {"g": {"messages": {"m": {**NATS, "basemessage": "/messagegroups/g/messages/n"}}}}},
         [("warning", "dangling_reference", "/messagegroups/g/messages/m")]),
        ({"messagegroups": {"g": {"messages": {"m": {**NATS, "basemessageuri": "/messagegroups/g/messages/n"},
                                               "n": {"deprecated": {}, **NATS}}}}},
         [("note", "respelled", "/messagegroups/g/messages/m"),
          ("warning", "deprecated_reference", "/messagegroups/g/messages/m")]),
        ({"schemagroups": {"g": {"schemas": {"s": {"versions": {"1": {"name": 1, "format": "X/1"}, "2": []}}}}}},
         [("error", "invalid_attribute", "/schemagroups/g/schemas/s/versions/2"),
          ("error", "invalid_attribute", "/schemagroups/g/schemas/s/versions/1")]),
    ],
)  # fmt: skip
def test_findings(run: Run, document: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    """Every fault of a document is found, with its severity, its error and its place."""
    result = run("lint", "-", "--json", stdin=json.dumps(document))
    found = [json.loads(line) for line in result.out.splitlines()]
    assert expected == [(finding["severity"], finding["code"], finding["xid"]) for finding in found]
    assert any(severity == "error" for severity, _, _ in expected) == (result.code == 1)


def test_findings_in_words(run: Run, tmp_path: Path) -> None:
    """Each finding is a line with file, severity, sentence and error name; the count goes to standard error."""
    (tmp_path / "a.json").write_text(
        '{"messagegroups": {"g": {"messages": {"m": {"basemessage": "/messagegroups/h"}}}}}'
    )
    result = run("lint", "a.json")
    assert "a.json: error: " in result.out or "a.json: warning: " in result.out
    assert result.err.startswith("1 document(s) checked: ")


def test_documents_are_checked_together(run: Run, tmp_path: Path) -> None:
    """A reference from one document into another is no dangling one."""
    one = {"messagegroups": {"g": {"messages": {"m": {"basemessage": "/messagegroups/h/messages/n"}}}}}
    other = {"messagegroups": {"h": {"messages": {"n": {}}}}}
    (tmp_path / "a.json").write_text(json.dumps(one))
    (tmp_path / "b.json").write_text(json.dumps(other))
    assert (0, "") == (run("lint", "a.json", "b.json").code, "")
    assert (0, 1) == (run("lint", "a.json").code, run("lint", "a.json", "--strict").code)


def test_a_documents_own_model(run: Run, tmp_path: Path) -> None:
    """--model document checks by the model in the document, a file by the model in the file."""
    model = {"groups": {"dirs": {"singular": "dir", "attributes": {"size": {"type": "integer"}}}}}
    (tmp_path / "model.json").write_text(json.dumps(model))
    document = {"modelsource": model, "dirs": {"d": {"size": "x"}}}
    for choice in ("document", "model.json"):
        result = run("lint", "-", "--json", "--model", choice, stdin=json.dumps(document))
        assert ("invalid_attribute", "/dirs/d") == (result.json["code"], result.json["xid"])
    assert 2 == run("lint", "-", "--model", "document", stdin="{}").code
    broken = run("lint", "-", "--json", "--model", "document", stdin='{"modelsource": {"groups": {"DIRS": {}}}}')
    assert 1 == broken.code
    assert "/model" == broken.json["xid"]


def test_the_samples_have_no_errors(run: Run) -> None:
    """The sample catalog passes its own check."""
    result = run("lint", str(Path(__file__).resolve().parents[2] / "samples"))
    assert 0 == result.code, result.out


def test_an_unreadable_file_is_one_finding(run: Run, tmp_path: Path) -> None:
    """Each file that cannot be read is a finding, the others are checked, and the exit code is 1."""
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text('{"messagegroup": {}}')
    (tmp_path / "c.yaml").write_text("- [")
    (tmp_path / "d.json").write_text("[]")
    result = run("lint", str(tmp_path), "--json")
    found = [json.loads(line) for line in result.out.splitlines()]
    expected = [("a.json", "unreadable_document"), ("c.yaml", "unreadable_document"), ("d.json", "unreadable_document")]
    assert [*expected, ("b.json", "unknown_attribute")] == [(Path(one["source"]).name, one["code"]) for one in found]
    assert 1 == result.code
    assert 2 == run("lint", str(tmp_path / "nothing.json")).code
    assert "4 document(s) checked: 4 error(s)" in run("lint", str(tmp_path)).err


OVERLAP = {
    "messagegroups": {
        "g": {"messages": {name: {"protocol": "NATS", "protocoloptions": {"subject": "s"}} for name in ("one", "two")}}
    }
}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("", [("warning", "definitions-overlap")]),
        ('[[silence]]\nrule = "definitions-overlap"\nxid = "/messagegroups/g/messages/one"\nreason = "known"', []),
        ('[[silence]]\nrule = "definitions-*"', []),
        ('[[silence]]\nxid = "/messagegroups/g/*"', []),
        ('[[silence]]\nrule = "never-matches"', [("warning", "definitions-overlap")]),
        ('[[silence]]\nxid = "/messagegroups/h/*"', [("warning", "definitions-overlap")]),
        ('[severity]\ndefinitions-overlap = "error"', [("error", "definitions-overlap")]),
        ('[severity]\ndefinitions-overlap = "note"', [("note", "definitions-overlap")]),
        ('[severity]\ndefinitions-overlap = "off"', []),
    ],
)
def test_a_configuration(run: Run, tmp_path: Path, config: str, expected: list[tuple[str, str]]) -> None:
    """The file .signalbook-lint.toml of the folder, or the one that --config names, silences by rule and xid."""
    (tmp_path / "catalog.json").write_text(json.dumps(OVERLAP))
    for name, options in ((".signalbook-lint.toml", ()), ("other.toml", ("--config", "other.toml"))):
        (tmp_path / name).write_text(config)
        result = run("lint", "catalog.json", "--json", *options)
        found = [json.loads(line) for line in result.out.splitlines()]
        assert expected == [(finding["severity"], finding["rule"]) for finding in found]
        assert int(any(severity == "error" for severity, _ in expected)) == result.code


@pytest.mark.parametrize(
    "config",
    [
        "[",
        "[other]",
        "[[silence]]",
        '[[silence]]\nfile = "x"',
        '[severity]\nnever-matches = "fatal"',
        "severity = 1",
        "[severity]\nnever-matches = []",
        '[severity]\nno-such-rule = "error"',
        '[[silence]]\nrule = "definition-overlap"',
        '[[silence]]\nrule = "no-*-such"',
        "[[silence]]\nrule = 5",
        "silence = 5",
    ],
)
def test_a_configuration_that_is_none(run: Run, tmp_path: Path, config: str) -> None:
    """What a configuration cannot have is refused as wrong usage."""
    (tmp_path / "lint.toml").write_text(config)
    assert 2 == run("lint", "-", "--config", "lint.toml", stdin="{}").code
    assert 2 == run("lint", "-", "--config", "nothing.toml", stdin="{}").code


@cases("sources/lint_load")
def test_what_lint_passes_a_load_takes(run: Run, tmp_path: Path, case: Case) -> None:
    """What a load refuses is an error of lint, with file, severity, error and place; what it takes is none."""
    (tmp_path / "catalog").mkdir()
    for name, document in case.given["documents"].items():
        (tmp_path / "catalog" / name).write_text(json.dumps(document))
    (tmp_path / "model.json").write_text(json.dumps(case.given.get("model", {})))
    model = ["--model", "model.json"] if "model" in case.given else []
    linted = run("lint", "catalog", "--json", *case.given.get("options", model))
    found = [json.loads(line) for line in linted.out.splitlines()]
    assert case.expect == [[Path(one["source"]).name, one["severity"], one["code"], one["xid"]] for one in found]
    loaded = run("load", "catalog", "--store", "memory:", *case.given.get("load", model))
    assert (linted.code == 0) == (loaded.code == 0), loaded.err
    # the sentence and the name of the first refusal are the same
    told = [f"{one['message'].rstrip('.')} [{one['code']}]" for one in found if one["severity"] == "error"]
    assert linted.code == 0 or any(f"signalbook: {words}" in loaded.err for words in told)


def documents(value: Any) -> Iterator[dict[str, Any]]:
    """What in the data of a case is a catalog document of any dialect."""
    collections = ("messagegroups", "schemagroups", "endpoints")
    if isinstance(value, dict) and (
        any(isinstance(value.get(name), dict) for name in collections) or isinstance(value.get("definitions"), list)
    ):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from documents(member)


HOLDING = [path for path in sorted(FOLDER.rglob("*.json")) if any(documents(json.loads(path.read_text("utf-8"))))]


@pytest.mark.slow
@pytest.mark.parametrize("path", HOLDING, ids=lambda path: str(path.relative_to(FOLDER)))
def test_lint_without_errors_means_that_a_load_succeeds(run: Run, tmp_path: Path, path: Path) -> None:
    """Every document of any case in which lint finds no error is loaded."""
    for document in documents(json.loads(path.read_text("utf-8"))):
        (tmp_path / "a.json").write_text(json.dumps(document))
        if run("lint", "a.json", "--group", "g").code == 0:
            loaded = run("load", "a.json", "--store", "memory:", "--group", "g")
            assert 0 == loaded.code, (loaded.err, document)


STICKY = {"messagegroups": {"g": {"messages": {"m": {**NATS, "meta": {"defaultversionsticky": True}}}}}}


def test_standard_input_is_loaded_on_trial(run: Run) -> None:
    """Standard input is checked and loaded, though it can be read once only."""
    result = run("lint", "-", "--json", stdin=json.dumps(STICKY))
    assert (1, "setdefaultversionsticky_false") == (result.code, result.json["code"])
    assert "standard input" == result.json["source"]


def test_a_pipe_is_loaded_on_trial(run: Run, tmp_path: Path) -> None:
    """A pipe, which can be read once only, is checked and loaded."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(json.dumps(STICKY)))
    writer.start()
    result = run("lint", "pipe", "--json")
    writer.join()
    assert (1, "setdefaultversionsticky_false") == (result.code, result.json["code"])


@pytest.mark.parametrize(
    ("document", "silence", "code"),
    [
        (STICKY, 'rule = "setdefaultversionsticky_false"', 0),
        (STICKY, 'xid = "/messagegroups/g/messages/m/*"', 0),
        (STICKY, 'rule = "mismatched_id"', 1),
        # what a check told and a project silenced does not come back from the load in other words
        ({"messagegroups": {"g": {"messages": {"m": {**NATS, "name": 1}}}}}, 'xid = "/messagegroups/g/messages/m"', 0),
        ({"messagegroup": {}}, 'rule = "unknown_attribute"', 0),
        ({"messagegroup": {}, "messagegroups": {"g": {"createdat": "x"}}}, 'rule = "unknown_attribute"', 1),
        ({"schemagroups": {"g": {"schemas": {"s": {"format": "JsonSchema", "schema": {"type": "x"}}}}}},
         'rule = "format_violation"', 0),
        ({"messagegroups": {"g": {"createdat": "x", "messages": {"m": {**NATS, "name": 1}}}}},
         'xid = "/messagegroups/g/messages/m"', 1),
    ],
)  # fmt: skip
def test_what_a_load_refuses_can_be_silenced(
    run: Run, tmp_path: Path, document: dict[str, Any], silence: str, code: int
) -> None:
    """A configuration rules what a load refuses too, and a silenced error hides no other."""
    (tmp_path / ".signalbook-lint.toml").write_text(f"[[silence]]\n{silence}\n")
    result = run("lint", "-", stdin=json.dumps(document))
    assert code == result.code, result.out
