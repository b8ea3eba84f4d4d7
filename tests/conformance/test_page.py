"""The conformance page, the list of rules and the tests agree."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from scripts.write_conformance import PAGE, answers, page
from tests.conformance.case import read, read_cases

ROOT = Path(__file__).resolve().parents[2]
RULES = [rule for area in read("rules").values() for rule in area["rules"]]


def test_the_page_is_current() -> None:
    """docs/reference/conformance.md is what `make docs` would write."""
    assert page() == PAGE.read_text(encoding="utf-8")


def test_every_rule_is_listed_once() -> None:
    """The 314 core rules are numbered through in each area, and each has one row of the page."""
    assert 314 == len(RULES)
    for name, area in read("rules").items():
        assert [f"{name}-{number}" for number in range(1, len(area["rules"]) + 1)] == list(area["rules"])
    rows = Counter(re.findall(r"^\| ([A-Z]+-\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert dict.fromkeys(RULES, 1) == dict(rows)


def test_cases_and_answers_name_rules_that_there_are() -> None:
    """No case and no answer is about a rule that is not in the list."""
    named = {rule for case in read_cases().values() for rule in case["rules"]} | read("answers").keys()
    assert set() == named - set(RULES)


def test_every_answer_is_shown() -> None:
    """A rule is answered by yes or partly with a case or a test that shows it, or by no."""
    assert {"yes", "partly", "no"} >= {row["answer"] for row in answers().values()}
    assert [] == [rule for rule, row in answers().items() if row["answer"] != "no" and not row["shown"]]


def test_what_is_not_yes_has_a_reason() -> None:
    """Where a rule is kept partly or not at all, the page says why."""
    assert [] == [rule for rule, row in answers().items() if row["answer"] != "yes" and not row["reason"]]


def test_every_test_that_is_named_is_there() -> None:
    """A test named by its file and function is in that file."""
    named = {test for note in read("answers").values() for test in note.get("tests", ())}
    missing = []
    for test in sorted(named):
        file, _, function = test.partition("::")
        path = ROOT / file
        if not path.is_file() or f"def {function}(" not in path.read_text(encoding="utf-8"):
            missing.append(test)
    assert [] == missing
