"""How much a document holds: the limits beyond which the registry reads none, and what reading takes."""

import pytest

from signalbook.schemas import find, read
from signalbook.schemas.format import SECOND, reading_steps, too_large
from tests.cases import Case, cases, read_cases
from tests.schemas.bounds import bounded

WEIGHTS = "schemas/weight"


def document(case: Case) -> bytes:
    """The document that a case describes."""
    given = case.given
    middle = "".join(given["each"].format(n=number) for number in range(1, given["times"] + 1))
    return (given["begin"] + middle + given["end"]).encode()


def family(case: Case) -> str:
    """The family of a case's format."""
    row = find(case.given["format"])
    assert row is not None
    return row.family


@cases(WEIGHTS)
def test_limits(case: Case) -> None:
    """A text is within the limits of its format, or the words say what it has too much of; counting takes no time."""
    text = document(case)
    with bounded(0.2):
        assert case.expect == too_large(family(case), text)


@pytest.mark.parametrize("case", [pytest.param(one, id=one.name) for one in read_cases(WEIGHTS) if not one.expect])
def test_within_the_limits(case: Case) -> None:
    """A document within the limits is one that its format reads, and takes a part of what one at the limit does."""
    text = document(case)
    assert read(case.given["format"], text).format
    assert 50 < reading_steps(family(case), text) < SECOND // 10


def test_steps_grow_with_the_document() -> None:
    """A document at its limit takes all the steps of a second, one of half the size half of them."""
    assert [SECOND + 50, SECOND // 2 + 50] == [reading_steps("xsd", b"<" * number) for number in (100_000, 50_000)]
    assert 50 == reading_steps("numbers", b"1")
    assert "" == too_large("numbers", b"{" * 1_000_000)
