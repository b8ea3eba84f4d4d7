"""The pages that are written from tables are current and complete."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.write_spec_reference import PAGES
from signalbook.model.rules import RULES
from signalbook.spec.error_types import ERROR_TYPES


@pytest.mark.parametrize(("page", "write"), PAGES.items(), ids=lambda value: getattr(value, "name", ""))
def test_a_page_is_current(page: Path, write: Callable[[], str]) -> None:
    """A page is what `make docs` would write."""
    assert write() == page.read_text(encoding="utf-8")


def test_every_rule_can_be_looked_up() -> None:
    """Each named rule has its heading."""
    text = next(page for page in PAGES if page.name == "rules.md").read_text(encoding="utf-8")
    assert [] == [rule.name for rule in RULES if f"\n### {rule.name}\n" not in text]


def test_every_error_can_be_looked_up() -> None:
    """Each error has its row."""
    text = next(page for page in PAGES if page.name == "errors.md").read_text(encoding="utf-8")
    assert [] == [name for name in ERROR_TYPES if f"`{name}`" not in text]
