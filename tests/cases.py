"""Cases as data: `tests/cases/<folder>/<file>.json` is a list of {"name", "given", "expect", "spec"?}.

@cases("xid/parse")
def test_parse(case: Case) -> None: ...
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "cases"


@dataclass(frozen=True, slots=True)
class Case:
    """One case; `spec` names the rule or the section it comes from."""

    name: str
    given: Any
    expect: Any
    spec: str = ""


def read_cases(name: str) -> list[Case]:
    """The cases of one file, named without its suffix; two of the same name are a mistake."""
    found = [Case(**row) for row in json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))]
    names = [case.name for case in found]
    assert len(set(names)) == len(names), f"{name}.json has two cases of one name"
    return found


def cases(name: str) -> pytest.MarkDecorator:
    """Run a test once for each case of a file."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in read_cases(name)])
