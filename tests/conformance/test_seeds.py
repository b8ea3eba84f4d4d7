"""What the five source texts say, sentence by sentence: the cases, the numbering and the pages agree."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from scripts.write_conformance import seed_pages
from signalbook.settings import Settings
from tests.conformance import statement
from tests.registry.conftest import Api, MakeApi

ROOT = Path(__file__).resolve().parents[2]
SEEDS = statement.read_seeds()
ROWS = {row["id"]: row for seed in SEEDS.values() for row in statement.rows_of(seed)}


@pytest.fixture(scope="module")
def shared() -> Iterator[Api]:
    """A registry for all writes: they leave nothing but their group, and to make one takes longer than they do."""
    api = Api(Settings(store="memory:"))
    yield api
    api.service.close()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{name}/{number}")
        for name, row in ROWS.items()
        for number, case in enumerate(row["cases"], 1)
    ],
)
def test_case(case: dict[str, Any], make_api: MakeApi, shared: Api, tmp_path: Path) -> None:
    """A case is answered as its statement says."""
    statement.run(case, statement.Around(make_api, shared, tmp_path))


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_are_complete(seed: str) -> None:
    """The statements of a text are numbered through, in the order of its lines, each with words of its own."""
    rows = list(statement.rows_of(SEEDS[seed]))
    letter = f"S{int(seed)}"
    assert [f"{letter}-{number}" for number in range(1, len(rows) + 1)] == [row["id"] for row in rows]
    assert sorted(row["line"] for row in rows) == [row["line"] for row in rows]
    assert [] == [text for text, count in Counter(row["text"] for row in rows).items() if count > 1]


def test_every_answer_is_shown() -> None:
    """Whatever is not answered by `no` is shown by a case or by a test."""
    assert set(statement.ANSWERS) >= {row["answer"] for row in ROWS.values()}
    assert [] == [name for name, row in ROWS.items() if row["answer"] != "no" and not row["cases"] + row["tests"]]


def test_what_is_not_yes_has_a_reason() -> None:
    """Where a statement is decided otherwise or not kept, the page says why."""
    assert [] == [name for name, row in ROWS.items() if row["answer"] != "yes" and not row["remark"]]


def test_every_test_that_is_named_is_there() -> None:
    """A test named by its file and function is in that file."""
    named = {test for row in ROWS.values() for test in row["tests"]}
    assert [] == sorted(test for test in named if test.partition("::")[2] not in _functions(test.partition("::")[0]))


@cache
def _functions(file: str) -> set[str]:
    path = ROOT / file
    tree = ast.parse(path.read_text(encoding="utf-8") if path.is_file() else "")
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_the_pages_are_current() -> None:
    """The pages about the texts are what `make docs` would write."""
    for path, text in seed_pages().items():
        assert text == path.read_text(encoding="utf-8")
