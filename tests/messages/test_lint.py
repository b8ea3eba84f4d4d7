"""What only a whole catalog shows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from signalbook.messages.lint import RULES
from signalbook.sources.documents import Document
from signalbook.sources.lint import whole_catalog
from tests.cases import Case, cases


def found(document: dict[str, Any]) -> list[list[str]]:
    """The findings about a catalog: severity, rule, xid and path."""
    findings = whole_catalog([Document("catalog.json", document)])
    return [[one.severity, one.rule, one.xid, one.args["path"]] for one in findings]


@cases("messages/lint")
def test_lint(case: Case) -> None:
    """Each rule finds what it is for, and nothing else."""
    assert case.expect == found(case.given)


def test_every_rule_has_a_case() -> None:
    """There is a case for each rule that breaks it."""
    from tests.cases import read_cases

    broken = {finding[1] for case in read_cases("messages/lint") for finding in case.expect}
    assert {rule.name for rule in RULES} == broken


@pytest.mark.parametrize("count", [2000])
def test_many_definitions_are_linted_in_bounded_time(count: int) -> None:
    """Definitions that could all meet are compared within a bound; of those that say nothing each is reported once."""
    messages = {
        f"m{number}": {"protocol": "MQTT/5.0", "protocoloptions": {"topic_name": f"a/{{x}}/b{number}"}}
        for number in range(count)
    }
    assert [] == found({"messagegroups": {"g": {"messages": messages}}})
    alike = {f"m{number}": {} for number in range(count)}
    findings = found({"messagegroups": {"g": {"messages": alike}}})
    rules = Counter(finding[1] for finding in findings)
    assert {"matches-anything": count, "definitions-overlap": count - 1} == rules


def test_what_was_not_compared_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more definitions are alike than are compared, a note says so."""
    monkeypatch.setattr("signalbook.messages.lint._MOST_PAIRS", 1)
    messages = {name: {"protocol": "NATS", "protocoloptions": {"subject": "s"}} for name in ("a", "b", "c")}
    expected = [
        ["warning", "definitions-overlap", "/messagegroups/g/messages/a", ""],
        ["note", "definitions-overlap", "/", ""],
    ]
    assert expected == found({"messagegroups": {"g": {"messages": messages}}})
    keyless = {name: {"datacontenttype": "text/csv"} for name in ("a", "b", "c")}
    assert expected == found({"messagegroups": {"g": {"messages": keyless}}})


def test_steps_that_are_open_in_either() -> None:
    """Templates meet where each step of one can be that of the other."""
    topics = {"a": "x/{b}/z", "b": "{a}/y/{c}", "c": "x/y/w", "d": "x/q/z"}
    messages = {
        name: {"protocol": "MQTT/5.0", "protocoloptions": {"topic_name": topic}} for name, topic in topics.items()
    }
    pairs = {
        (one.xid[-1], one.message.partition(" could also match ")[2].partition(",")[0][-1])
        for one in whole_catalog([Document("c", {"messagegroups": {"g": {"messages": messages}}})])
    }
    assert {("a", "b"), ("b", "c"), ("a", "d")} == {tuple(sorted(pair)) for pair in pairs}


def test_every_rule_is_documented() -> None:
    """The page of lint rules has each rule with its severity and its sentence."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "lint-rules.md").read_text(encoding="utf-8")
    rows = [(rule.name, rule.severity, rule.text) for rule in RULES]
    assert [] == [name for name, severity, text in rows if f"| `{name}` | {severity} | {text} |" not in page]
