import io
import json
from pathlib import Path
from typing import Any

import pytest

from signalbook.errors import UsageError
from signalbook.sources import choose_model, read_document, read_documents


def write(path: Path, text: str) -> Path:
    """A file with this text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: yes", {"a": "yes"}),
        ("a: on", {"a": "on"}),
        ("a: 2026-01-01T00:00:00Z", {"a": "2026-01-01T00:00:00Z"}),
        ("a: 1.0-rc2", {"a": "1.0-rc2"}),
        ("a: 010", {"a": 10.0}),
        ("a: true\nb: ~\nc: 1.5\nd: -3\ne: ''", {"a": True, "b": None, "c": 1.5, "d": -3, "e": ""}),
        ("1: x", {"1": "x"}),
        ('{"a": [1]}', {"a": [1]}),
    ],
)
def test_yaml_has_the_types_of_json(tmp_path: Path, text: str, expected: Any) -> None:
    """YAML is read by the types of JSON: no dates, no `yes` for true, keys are texts."""
    assert expected == read_document(write(tmp_path / "a.yaml", text)).content


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", '{"a": 1,\n "b"}', "a.json is not JSON: .* at line 2"),
        ("a.yaml", "a: [1\nb: 2", "a.yaml is not YAML: .* at line 2"),
        ("a.json", "[1]", "a.json holds an array; a catalog document is one JSON object"),
        ("a.json", "", "a.json is not JSON"),
        ("a.yaml", "", "a.yaml holds nothing"),
        ("a.json", "[" * 5000, "a.json is not JSON"),
        ("a.yaml", "[" * 100_000, "a.yaml is not YAML: nested deeper than 64 levels at line 1, column 65"),
        ("a.yaml", "- " * 50_000, "a.yaml is not YAML: nested deeper than 64 levels at line 1, column 129"),
        ("a.yaml", "a: " + "{a: " * 50_000, "a.yaml is not YAML: nested deeper than 64 levels at line 1"),
        ("a.yaml", "? " * 50_000, "a.yaml is not YAML: nested deeper than 64 levels at line 1"),
        ("a.yaml", "a: " + "[" * 64 + "]" * 64, "a.yaml is not YAML: nested deeper than 64 levels at line 1"),
        ("a.yaml", "l0: &l0 []\n" + "".join(f"l{n}: &l{n} [*l{n - 1}]\n" for n in range(1, 70)), "deeper than 64"),
        ("a.yaml", "b: 1\na: 99999999999999999999999", "an integer beyond 64 bits at line 2, column 4"),
        ("a.yaml", "a: 0.10000000000000000000001", "a number with more digits .* at line 1, column 4"),
        ("a.yaml", "a: !!int x", "not an integer as JSON has them at line 1"),
        ("a.yaml", "a: !!float .inf", "not a number as JSON has them at line 1"),
        ("a.yaml", "a: !!binary aGk=", "a.yaml holds a value that JSON cannot hold"),
        ("a.yaml", "? [a]\n: b", "a name must be a text at line 1"),
        ("a.yaml", "a: 1\nb:\n  c: 1\n  c: 2", 'the name "c" appears more than once in one object at line 4, column 3'),
        ("a.yaml", '1: x\n"1": y', 'the name "1" appears more than once in one object at line 2'),
        ("a.json", '{"a": 1,\n "b": {"c": 1,\n "c": 2}}', "path '.b': the name \"c\" appears .* at line 3, column 2"),
        ("a.json", '{"a":\n 123456789012345678901}', "path '.a': an integer beyond 64 bits at line 2, column 2"),
        ("a.json", '{"a": 0.10000000000000000000001}', "path '.a': a number with more digits .* at line 1"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, text: str, words: str) -> None:
    """A file that is no document is refused with its name and, where known, the line."""
    with pytest.raises(UsageError, match=words):
        read_document(write(tmp_path / name, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A missing file is a usage error that names it."""
    with pytest.raises(UsageError, match=r"there is no file or folder '.*absent\.json'"):
        list(read_documents(str(tmp_path / "absent.json")))


def test_a_folder_is_read_in_order_of_names(tmp_path: Path) -> None:
    """Every JSON and YAML file of a folder and its folders is read, hidden ones are not."""
    for name in ("b.json", "a/z.yaml", ".hidden/c.json", ".d.json"):
        write(tmp_path / name, "{}")
    assert ["a/z.yaml", "b.json"] == [
        str(Path(document.source).relative_to(tmp_path)) for document in read_documents(str(tmp_path))
    ]


def test_catalogs_among_other_files(tmp_path: Path) -> None:
    """In a folder that has `*.xreg.json` files the other JSON files are no catalogs."""
    for name in ("fleet.xreg.json", "schema.json"):
        write(tmp_path / name, "{}")
    assert ["fleet.xreg.json"] == [Path(document.source).name for document in read_documents(str(tmp_path))]


def test_an_empty_folder_is_a_mistake(tmp_path: Path) -> None:
    """A folder without a document is refused rather than loaded as nothing."""
    with pytest.raises(UsageError, match="holds no"):
        list(read_documents(str(tmp_path)))


@pytest.mark.parametrize("text", ['{"a": 1}', "a: 1"])
def test_standard_input_may_be_json_or_yaml(text: str) -> None:
    """`-` reads JSON or YAML from standard input."""
    assert [{"a": 1}] == [document.content for document in read_documents("-", lambda: io.BytesIO(text.encode()))]


def test_a_model_is_a_name_or_a_file(tmp_path: Path) -> None:
    """`builtin` and `empty` are names; anything else is a file, which may be a whole registry document."""
    model = {"groups": {"dirs": {"plural": "dirs", "singular": "dir"}}}
    file = write(
        tmp_path / "model.json", '{"modelsource": {"groups": {"dirs": {"plural": "dirs", "singular": "dir"}}}}'
    )
    assert ["builtin", "empty", model] == [choose_model("builtin"), choose_model("empty"), choose_model(str(file))]


@pytest.mark.parametrize(
    ("uri", "words"),
    [("http://example.com/m.json", "nothing is fetched"), ("../outside.json", "outside its folder")],
)
def test_a_model_includes_only_files_beside_it(tmp_path: Path, uri: str, words: str) -> None:
    """`$include` of a model file reads files in its folder and nothing else."""
    write(tmp_path / "outside.json", "{}")
    file = write(tmp_path / "in" / "model.json", f'{{"groups": {{"$include": "{uri}"}}}}')
    with pytest.raises(UsageError, match=words):
        choose_model(str(file))


def test_a_model_includes_a_file_beside_it(tmp_path: Path) -> None:
    """`$include` of a model file is resolved from its own folder."""
    write(tmp_path / "groups.json", '{"dirs": {"singular": "dir"}}')
    file = write(tmp_path / "model.json", '{"groups": {"$include": "groups.json"}}')
    assert {"groups": {"dirs": {"singular": "dir"}}} == choose_model(str(file))


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"l{n}: &l{n} [{', '.join(['*l' + str(n - 1)] * 9) if n else 'x'}]" for n in range(12)),
        "a: &a\n  b: *a\n",
    ],
)
def test_aliases_cannot_blow_a_document_up(tmp_path: Path, text: str) -> None:
    """A YAML document whose aliases multiply, or contain themselves, is refused before it fills the memory."""
    with pytest.raises(UsageError, match="aliases make more than"):
        read_document(write(tmp_path / "bomb.yaml", text))


def test_yaml_may_be_as_deep_as_json(tmp_path: Path) -> None:
    """A YAML document of 64 levels is read, aliases counted, as a JSON document is."""
    deep = "a: &a " + "[" * 32 + "]" * 32 + "\nb: " + "[" * 31 + "*a" + "]" * 31
    content = read_document(write(tmp_path / "a.yaml", deep)).content
    assert read_document(write(tmp_path / "a.json", json.dumps(content))).content == content


def test_a_mark_of_the_byte_order_is_no_content(tmp_path: Path) -> None:
    """Editors that begin UTF-8 with a byte order mark do no harm."""
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf{}")
    assert {} == read_document(tmp_path / "a.json").content
