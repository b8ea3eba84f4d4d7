"""The rules of the older texts, by which a document is judged before it is converted."""

from __future__ import annotations

from typing import Any

import pytest

from signalbook.document.dialects import check, convert, detect
from signalbook.spec.dialects import DIALECTS
from tests.cases import Case, cases


@cases("dialects/invalid")
def test_a_document_is_checked(case: Case) -> None:
    """Each place that breaks a rule of the document's own dialect is named, as the document has it."""
    found = list(check(case.given, detect(case.given).dialect))
    assert case.expect == [problem.path for problem in found]
    assert {"invalid"} >= {problem.code for problem in found}


@cases("dialects/invalid")
def test_a_conversion_tells_what_is_wrong(case: Case) -> None:
    """What is wrong in a document is told beside its conversion."""
    assert case.expect == [problem.path for problem in convert(case.given, DIALECTS["1.0-rc4"]).problems]


@pytest.mark.parametrize(
    ("dialect", "document"),
    [
        ("0.5-wip", 7),
        ("0.5-wip", {"messagegroups": {"g": 3}}),
        ("0.1", [3]),
        ("0.1", {"id": "d", "format": "NATS", "versions": [3]}),
    ],
)
def test_what_cannot_be_read_is_not_checked(dialect: str, document: Any) -> None:
    """A document that has no form at all is for its reader to refuse."""
    assert [] == list(check(document, DIALECTS[dialect]))
