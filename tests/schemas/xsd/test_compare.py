"""Compatibility of XML Schemas, case by case, and by documents made at random."""

from __future__ import annotations

import random

import pytest

from signalbook.schemas import Difference, compatible, read
from signalbook.schemas.xsd.compare import compare
from signalbook.schemas.xsd.schema import XsdSchema
from signalbook.schemas.xsd.schema import read as read_xsd
from tests.cases import Case, cases
from tests.schemas.xsd_documents import WRAP, document


def pair(case: Case) -> tuple[XsdSchema, XsdSchema]:
    """The older and the newer schema of a case."""
    older, newer = (read_xsd(WRAP.format(case.given[which])) for which in ("older", "newer"))
    return older, newer


def verdict(found: list[Difference], direction: str) -> bool | None:
    """True: compatible; False: broken; None: cannot be decided."""
    broken = [one for one in found if direction in one.breaks]
    return True if not broken else None if all(not one.certain for one in broken) else False


@cases("schemas/compatibility-xsd")
def test_compatibility(case: Case) -> None:
    """Each change breaks the promises that containment of documents says, and is named."""
    found = list(compare(*pair(case)))
    assert case.expect == {
        "backward": verdict(found, "backward"),
        "forward": verdict(found, "forward"),
        "kinds": sorted({one.kind for one in found}),
    }


@cases("schemas/compatibility-xsd")
def test_contained_documents(case: Case) -> None:
    """A document of a schema is one of each that is said to be compatible with it."""
    older, newer = pair(case)
    chance = random.Random(case.name)
    for source, target, direction in ((older, newer, "backward"), (newer, older, "forward")):
        for _ in range(20):
            payload = document(source, chance)
            assert () == source.check(payload).problems, payload
            if case.expect[direction]:
                assert () == target.check(payload).problems, payload


def test_places() -> None:
    """A difference names the way to the element or attribute in question."""
    text = (
        '<xs:element name="a"><xs:complexType><xs:sequence><xs:element name="b"><xs:complexType>'
        '<xs:attribute name="c" type="xs:{}"/></xs:complexType></xs:element></xs:sequence>'
        "</xs:complexType></xs:element>"
    )
    older, newer = (read_xsd(WRAP.format(text.format(kind))) for kind in ("int", "date"))
    assert [("/a/b/@c", "type_changed")] == [(one.path, one.kind) for one in compare(older, newer)]


def test_a_deep_link() -> None:
    """Two schemas that are narrowed to one root each are compared by it."""
    text = WRAP.format('<xs:element name="a" type="xs:int"/><xs:element name="b" type="xs:int"/>')
    schema = read("XSD/1.0", text)
    one, two = schema.at("//xs:element[@name='a']"), schema.at("//xs:element[@name='b']")
    assert [] == list(compatible([one, schema], "backward"))
    assert ["root_added"] == [found.kind for found in compatible([one, schema], "forward")]
    assert {"root_added", "root_removed"} == {found.kind for found in compatible([one, two], "full")}


@pytest.mark.parametrize("size", [10, 30])
def test_a_large_content_model(size: int) -> None:
    """A content model that cannot be compared within bounds is uncertain, never wrong."""
    inner = "".join(f'<xs:element name="e{number}" minOccurs="0"/>' for number in range(size))
    text = '<xs:element name="a"><xs:complexType><xs:{0}>{1}</xs:{0}></xs:complexType></xs:element>'
    older, newer = (read_xsd(WRAP.format(text.format(kind, inner))) for kind in ("all", "sequence"))
    found = list(compare(older, newer))
    assert verdict(found, "backward") in (False, None)
    assert verdict(found, "forward") in (True, None)
