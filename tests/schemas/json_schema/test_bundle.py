"""Several documents written as one judge as they did before."""

from __future__ import annotations

from typing import Any

import pytest

from signalbook.schemas.json_schema import schema
from tests.schemas.json_schema.test_suite import DRAFTS, failures


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_suite_passes_in_one_document(draft: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every required test passes with the schema written as one document, wherever that can be done."""
    made = 0
    original = schema.bundled

    def counting(index: Any, start: Any) -> Any:
        nonlocal made
        found = original(index, start)
        made += found is not None
        return found

    monkeypatch.setattr(schema, "bundled", counting)
    monkeypatch.setattr(schema, "multiplies", lambda index, start, free=0: not free)
    count, failed = failures(draft)
    assert [] == failed
    assert made > 200, (made, count)
