"""The fast path says what the general path says about every message that is kept."""

from __future__ import annotations

import pytest
from lxml.etree import iselement as is_element

from signalbook.messages import Answer, Catalog, match
from signalbook.messages.observe import observe
from tests.corpora import Corpus, corpora

ALL = corpora()


def said(answers: list[Answer]) -> list[object]:
    """All that answers say; an XML document is equal only to itself, but its text is in the JSON form."""
    return [
        (one, None if is_element(one.checked and one.checked.value) else one.checked, one.to_json(), one.cloudevent)
        for one in answers
    ]


def compare(corpus: Corpus) -> int:
    """Compare the answers about all messages; how many the fast path gave."""
    catalog = Catalog.from_documents(*corpus.documents, roots=corpus.roots)
    scope = catalog.scope(corpus.within)
    fast = 0
    for line in corpus.lines:
        fast += scope.fast.answer(line) is not None
        general = [match.answer(scope, observed) for observed in observe(line)]
        assert said(general) == said(catalog.match_all(line, corpus.within)), line
    return fast


@pytest.mark.parametrize(("name", "least"), [("samples", 10), ("demo", 30)])
def test_messages_that_are_made(name: str, least: int) -> None:
    """The samples of definitions, and the traffic of the demo."""
    (corpus,) = (one for one in ALL if one.name == name)
    assert compare(corpus) >= least


def test_messages_of_cases() -> None:
    """Every case of matching, the examples of the seeds among them."""
    found = {corpus.name: compare(corpus) for corpus in ALL[2:]}
    assert len(found) > 200
    assert sum(1 for fast in found.values() if fast) > 50
