"""The rules of the older texts, by which a document is judged before it is converted."""

from __future__ import annotations

from typing import Any

import pytest

from signalbook.dialects.convert import check, convert, detect
from signalbook.errors import RegistryError
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


@cases("server/catalog01_refused")
def test_a_document_is_held_to_the_rules_of_the_api(case: Case) -> None:
    """What the API of 0.1 refuses, a document that has it is told to be wrong, or cannot be read."""
    group = {"id": "g", "specversion": "0.1", "format": case.given["format"], "definitions": [case.given["document"]]}
    assert is_refused(group)


def is_refused(document: Any) -> bool:
    """Whether a document cannot be read, or breaks rules of its own text."""
    try:
        return bool(convert(document, DIALECTS["1.0-rc4"]).problems)
    except RegistryError as refused:
        return refused.name == "invalid_attribute"


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
