import json
from pathlib import Path

from tests.cli.conftest import CATALOG, Run

Target = tuple[str, str]


def test_load_a_file(run: Run, target: Target, catalog: Path) -> None:
    """A file's groups and resources are there after load; standard output stays empty."""
    result = run("load", str(catalog), *target)
    assert (0, "", "loaded 2 groups with 3 resources from 1 document(s)\n") == (result.code, result.out, result.err)
    assert "A vehicle moved." == run("get", "/messagegroups/fleet/messages/moved", *target).json["description"]


def test_load_again_is_safe(run: Run, target: Target, catalog: Path) -> None:
    """Loading twice writes the same entities over, also in small requests."""
    for chunk in ("1", "2", "0", "500"):
        assert 0 == run("load", str(catalog), "--chunk", chunk, *target).code
    group = run("get", "/messagegroups/fleet", *target).json
    assert ("Fleet", 2) == (group["name"], group["messagescount"])


def test_load_standard_input_and_folder(run: Run, catalog: Path) -> None:
    """`-` and a folder are sources too, and --json counts what was written."""
    expected = {"documents": 1, "groups": 2, "resources": 3, "requests": 1}
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
    assert "'messagegroup' is no group type" in result.err


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
